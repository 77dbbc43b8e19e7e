"""Events of LangChain's `astream_events`: what began and ended, each with its name and the id of its run."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.draft import Draft, join_texts
from agentv.formats.fields import OBJECT, objects_in, word
from agentv.formats.langchain import unwrap_langchain
from agentv.formats.response import add_fields
from agentv.formats.usage import add_usage, decode_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_PARTS = ("chain", "prompt", "retriever", "parser", "custom_event", "chat_model", "llm", "tool")


def _is_event(item: _Object) -> bool:
    kind = word(item.get("event"))
    return (
        kind.startswith("on_")
        and kind[3:].startswith(_PARTS)
        and "run_id" in item
        and isinstance(item.get("data"), OBJECT)
    )


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_event, objects_in(items)))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    run = _Run()
    for item in items:
        if isinstance(item, OBJECT) and _is_event(item):
            run.read(item)
        elif item not in ("", "[DONE]", None, {}):
            run.draft.keep(item)
    said = reader.read_messages(run.draft.finish(), declared=True)
    return add_fields(said, {}, usage=add_usage(run.turns) if run.turns else None)


class _Run:
    """A run so far."""

    def __init__(self) -> None:
        self.draft = Draft()
        self.turns: list[Any] = []
        self._asked: list[dict[str, Any]] = []
        """Calls that a model asked for and that no tool has begun with yet."""
        self._begun: dict[str, dict[str, Any]] = {}

    def read(self, event: _Object) -> None:
        """Read the next event."""
        kind, data, run_id = event["event"], event["data"], str(event["run_id"])
        if kind == "on_chat_model_end":
            self._hear(unwrap_langchain(data.get("output")))
        elif kind == "on_tool_start":
            self._begin(word(event.get("name")), data.get("input"), run_id)
        elif kind == "on_tool_end":
            self._end(run_id, unwrap_langchain(data.get("output")))
        elif kind == "on_tool_error" and run_id in self._begun:
            self._begun[run_id] |= {"status": "error", "error": str(data.get("error"))}

    def _hear(self, message: Any) -> None:
        if not isinstance(message, OBJECT):
            return
        self.turns.append(decode_usage(message.get("usage_metadata")))
        self.draft.say("assistant", join_texts(message.get("content"), "text"))
        for call in objects_in(message.get("tool_calls")):
            self._asked.append(self.draft.call(call.get("name"), call.get("args"), call.get("id")))

    def _begin(self, tool: str, given: Any, run_id: str) -> None:
        known = next((call for call in self._asked if call["tool"] == tool), None)
        if known is not None:
            self._asked.remove(known)
        self._begun[run_id] = self.draft.call(tool, given, run_id) if known is None else known

    def _end(self, run_id: str, output: Any) -> None:
        call = self._begun.get(run_id)
        if call is None:
            self.draft.messages.append({"role": "tool", "tool_call_id": run_id, "content": str(output)})
            return
        if isinstance(output, OBJECT) and output.get("type") == "tool":
            status = {"success": "ok", "error": "error"}.get(word(output.get("status")))
            call |= {"status": status} if status else {}
            output = output.get("content")
        call["output"] = output


FORMAT = ReplyFormat(name="langchain_events", detect=_detect, read=_read, events=True)
