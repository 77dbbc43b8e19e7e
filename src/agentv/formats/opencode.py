"""opencode: output of `opencode run --format json`, exported sessions, and messages of its server."""

from collections.abc import Mapping
from typing import Any

from agentv.formats.builder import ReplyBuilder
from agentv.formats.conversation import text_or_none
from agentv.formats.fields import OBJECT, Path, is_count, objects_in, text_or_empty
from agentv.formats.lines import iter_events
from agentv.formats.usage import add_usage, finish_usage
from agentv.model.response import ProviderResponse, TokensUsage
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_STATUSES = {"completed": "ok", "error": "error"}
_HARMLESS = frozenset(("step-start", "file", "snapshot", "patch", "agent", "retry", "compaction"))


def _is_event(event: _Object) -> bool:
    if not isinstance(event.get("sessionID"), str):
        return False
    return isinstance(event.get("part"), OBJECT) or (event.get("type") == "error" and "error" in event)


def _is_message(item: _Object) -> bool:
    info = item.get("info")
    return isinstance(info, OBJECT) and "sessionID" in info and isinstance(item.get("parts"), (list, tuple))


def _detect(value: Any) -> bool:
    if not isinstance(value, OBJECT):
        return any(_is_event(item) or _is_message(item) for item in objects_in(value))
    return _is_event(value) or _is_message(value) or any(map(_is_message, objects_in(value.get("messages"))))


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = _OpenCodeRun()
    items = value.get("messages", value) if isinstance(value, OBJECT) else value
    for item, path in iter_events(items, run.transcript.report):
        if _is_message(item):
            run.read_message(item, path)
        else:
            run.read_event(item, path)
    return run.finish(reader)


class _OpenCodeRun:
    """Collector of a run's messages and the usage of each step."""

    def __init__(self) -> None:
        self.transcript = ReplyBuilder()
        self._steps: list[TokensUsage | None] = []
        self._is_declared = True

    def read_event(self, event: _Object, path: Path) -> None:
        """Read the next line."""
        self.transcript.thread_id = text_or_none(event.get("sessionID")) or self.transcript.thread_id
        kind, part = event.get("type"), event.get("part")
        if kind == "error":
            error = event.get("error")
            data = error.get("data") if isinstance(error, OBJECT) else None
            self.transcript.fail(data if isinstance(data, OBJECT) and "message" in data else error)
        elif isinstance(part, OBJECT):
            self._read_part(part, path)
        else:
            self.transcript.skip_event(kind, path)

    def read_message(self, message: _Object, path: Path) -> None:
        """Read a complete message with its parts."""
        info = message["info"]
        self._is_declared = False
        self.transcript.thread_id = text_or_none(info.get("sessionID")) or self.transcript.thread_id
        self.transcript.end_message()
        if info.get("role") == "user":
            own = [part for part in objects_in(message["parts"]) if part.get("synthetic") is not True]
            texts = [part["text"] for part in own if isinstance(part.get("text"), str)]
            self.transcript.messages.append({"role": "user", "content": "".join(texts)})
            return
        for position, part in enumerate(message["parts"]):
            if isinstance(part, OBJECT):
                self._read_part(part, (*path, "parts", position))
            else:
                self.transcript.report.skip_invalid((*path, "parts", position), "a part", part)
        if info.get("error"):
            data = info["error"].get("data") if isinstance(info["error"], OBJECT) else None
            self.transcript.fail(data or info["error"])

    def _read_part(self, part: _Object, path: Path) -> None:
        kind = text_or_empty(part.get("type"))
        if kind == "text":
            self.transcript.add_text(part.get("text"), part.get("messageID"))
        elif kind == "reasoning":
            self.transcript.add_reasoning(part.get("text"))
        elif kind == "tool":
            self.transcript.update_call(part.get("callID"), _call(part))
        elif kind == "step-finish":
            self._steps.append(_usage(part.get("tokens")))
            self.transcript.unfinished = ""
            self.transcript.end_message()
        elif kind == "step-start":
            self.transcript.unfinished = "`step_finish`"
        elif kind not in _HARMLESS:
            self.transcript.skip_event(kind, path)

    def finish(self, reader: ReplyReader) -> ProviderResponse:
        """Return the reply."""
        self.transcript.usage = add_usage(self._steps)
        return self.transcript.build_reply(reader, declared=self._is_declared)


def _call(part: _Object) -> dict[str, Any]:
    state = part.get("state")
    state = state if isinstance(state, OBJECT) else {}
    call = {
        "tool": part.get("tool"),
        "input": state.get("input"),
        "status": _STATUSES.get(text_or_empty(state.get("status"))),
        "error": state.get("error"),
        "duration_ms": _duration(state.get("time")),
        "title": state.get("title") or None,
        "metadata": state.get("metadata") or None,
    }
    return {**call, "output": state["output"]} if "output" in state else call


def _duration(time: Any) -> int | None:
    start, end = (_count(time.get(key)) if isinstance(time, OBJECT) else None for key in ("start", "end"))
    return None if start is None or end is None or end < start else end - start


def _usage(tokens: Any) -> TokensUsage | None:
    """Read the token counts of a step: cached tokens are not part of the input, reasoning not of the output."""
    if not isinstance(tokens, OBJECT):
        return None
    cache = tokens.get("cache")
    cache = cache if isinstance(cache, OBJECT) else {}
    read, wrote, total, thoughts = (_count(tokens.get(name)) for name in ("input", "output", "total", "reasoning"))
    cached, cache_writes = _count(cache.get("read")), _count(cache.get("write"))
    return finish_usage(
        {
            "input_tokens": None if read is None else read + (cached or 0) + (cache_writes or 0),
            "output_tokens": None if wrote is None else wrote + (thoughts or 0),
            "total_tokens": total,
            "cache_read_tokens": cached,
            "cache_write_tokens": cache_writes,
            "reasoning_tokens": thoughts,
        }
    )


def _count(value: Any) -> int | None:
    return value if is_count(value) else None


FORMAT = ReplyFormat(
    name="opencode", detect=_detect, read=_read, keys=frozenset(("info", "messages", "parts", "type", "part", "error"))
)
