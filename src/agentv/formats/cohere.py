"""Cohere Chat API: replies of both versions, and their streams."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Report, objects_in
from agentv.formats.response import decode_fields, join_turns
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_ENDINGS = (
    "COMPLETE",
    "STOP_SEQUENCE",
    "MAX_TOKENS",
    "TOOL_CALL",
    "ERROR",
    "ERROR_TOXIC",
    "ERROR_LIMIT",
    "USER_CANCEL",
    "TIMEOUT",
)
_EVENTS = frozenset((
    *("message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start"),
    *("tool-call-delta", "tool-call-end", "citation-start", "citation-end", "message-end", "debug"),
))  # fmt: skip


def is_cohere(value: Any) -> bool:
    """Recognize a reply by its finish reason, which only Cohere writes in capitals beside one message."""
    if not isinstance(value, OBJECT) or value.get("finish_reason") not in _ENDINGS:
        return False
    message = value.get("message")
    return _is_old(value) or (isinstance(message, OBJECT) and message.get("role") == "assistant")


def _is_old(value: _Object) -> bool:
    return isinstance(value.get("text"), str) and isinstance(value.get("generation_id"), str)


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    del reader
    if _is_old(value):
        message: dict[str, Any] = {"role": "assistant", "content": value["text"]}
        calls = value.get("tool_calls")
        if isinstance(calls, (list, tuple)):
            message["tool_calls"] = [_old_call(call) for call in calls]
        meta = value.get("meta")
        usage = _usage(meta if isinstance(meta, OBJECT) else {})
    else:
        message, usage = dict(value["message"]), _usage(value.get("usage"))
    reply = {
        "output_messages": [{key: item for key, item in message.items() if item is not None}],
        "usage": usage,
        "reasoning": text_or_none(message.get("tool_plan")),
        "metadata": {"finish_reason": value["finish_reason"]},
        "raw_response": value,
    }
    return decode_fields(reply)


def _old_call(call: Any) -> Any:
    if not isinstance(call, OBJECT):
        return call
    arguments = {"input": call["parameters"]} if "parameters" in call else {}
    return {
        "tool": call.get("name"),
        "metadata": non_empty_fields(call, frozenset(("name", "parameters"))) or None,
        **arguments,
    }


def _usage(value: Any) -> Any:
    """Return the tokens used rather than the tokens billed."""
    if not isinstance(value, OBJECT):
        return None
    counts = next((value[key] for key in ("tokens", "billed_units") if isinstance(value.get(key), OBJECT)), None)
    cached = value.get("cached_tokens")
    return counts if counts is None or cached is None else {**counts, "cache_read_tokens": cached}


FORMAT = ReplyFormat(
    name="cohere",
    detect=is_cohere,
    read=_read,
    keys=frozenset((
        *("id", "message", "text", "finish_reason", "usage", "meta", "chat_history", "response_id"),
        *("generation_id", "logprobs"),
    )),
)  # fmt: skip


def _detect_stream(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(map(_is_start, objects_in(value)))


def _is_start(event: _Object) -> bool:
    if event.get("event_type") == "stream-end":
        return isinstance(event.get("response"), OBJECT)
    return event.get("type") == "message-start" and isinstance(event.get("delta"), OBJECT)


def _read_stream(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    old = [event["response"] for event in objects_in(items) if event.get("event_type") == "stream-end"]
    if old:
        return reader.read(old[-1])
    starts = [
        at for at, event in enumerate(items) if isinstance(event, OBJECT) and event.get("type") == "message-start"
    ]
    if len(starts) > 1:  # a loop that sends one reply after the other
        ends = [*starts[1:], len(items)]
        turns = [_read_stream(items[begin:end], reader) for begin, end in zip([0, *starts[1:]], ends, strict=True)]
        return join_turns(turns)
    pieces = _CohereStreamDecoder()
    for at, event in enumerate(items):
        if isinstance(event, OBJECT):
            pieces.add(event, at)
        elif event not in ("", "[DONE]", None):
            pieces.report.skip_invalid(("events", at), "an event", event)
    ended = isinstance(pieces.document.get("finish_reason"), str)
    if not ended:
        pieces.report.skip(("events",), "the end of the stream, which did not come,")
    return decode_fields(
        {
            "output_messages": [pieces.message],
            "usage": _usage(pieces.document.get("usage")),
            "reasoning": text_or_none(pieces.message.get("tool_plan")),
            "metadata": {key: pieces.document[key] for key in ("id", "finish_reason") if pieces.document.get(key)},
            "unread": pieces.report.unread(calls_read=True),
        }
    )


class _CohereStreamDecoder:
    """Decoder of a streamed message."""

    def __init__(self) -> None:
        self.report = Report()
        self.document: dict[str, Any] = {}
        self._content: dict[Any, dict[str, Any]] = {}
        self._calls: dict[Any, dict[str, Any]] = {}
        self._plan: list[str] = []

    def add(self, event: _Object, at: int) -> None:
        """Process the next event."""
        kind, index = text_or_none(event.get("type")) or "", str(event.get("index"))
        delta = event.get("delta")
        delta = delta if isinstance(delta, OBJECT) else {}
        inner = delta.get("message")
        inner = inner if isinstance(inner, OBJECT) else {}
        content, call = inner.get("content"), inner.get("tool_calls")
        if kind == "message-start":
            self.document["id"] = event.get("id")
        elif kind == "message-end":
            self.document |= delta
        elif kind.startswith("content-") and isinstance(content, OBJECT):
            _append(self._content.setdefault(index, {"type": "text"}), content, ("text", "thinking"))
        elif kind.startswith("tool-call-") and isinstance(call, OBJECT):
            self._add_call(index, call)
        elif kind == "tool-plan-delta" and isinstance(inner.get("tool_plan"), str):
            self._plan.append(inner["tool_plan"])
        elif kind not in _EVENTS:
            self.report.skip(("events", at), f"an event of type {kind[:60]!r}")

    def _add_call(self, index: str, call: _Object) -> None:
        call_so_far = self._calls.setdefault(index, {"type": "function", "function": {}})
        call_so_far |= {key: value for key, value in call.items() if key != "function" and value is not None}
        if isinstance(call.get("function"), OBJECT):
            _append(call_so_far["function"], call["function"], ("arguments",))

    @property
    def message(self) -> dict[str, Any]:
        """Return the message so far."""
        message: dict[str, Any] = {"role": "assistant", "content": list(self._content.values()) or None}
        if self._calls:
            message["tool_calls"] = list(self._calls.values())
        return {**message, "tool_plan": "".join(self._plan)} if self._plan else message


def _append(target: dict[str, Any], piece: _Object, growing: tuple[str, ...]) -> None:
    for key, value in piece.items():
        before = target.get(key)
        grows = key in growing and isinstance(value, str) and isinstance(before, str)
        target[key] = before + value if grows else value


STREAM = ReplyFormat(name="cohere", detect=_detect_stream, read=_read_stream)
