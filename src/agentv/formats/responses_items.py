"""Flat items of OpenAI's Responses, gathered into messages with their calls."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import force_setattr

from agentv.formats.calls import parse_arguments
from agentv.formats.json import dump_json
from agentv.formats.pairing import Pairing
from agentv.formats.reading import OBJECT, Path, Report, whole_text
from agentv.model.message import Message, ToolCall

_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output")
_CALLED = ("arguments", "input", "action", "queries", "query", "code", "operation")
"""Where a call says what it was given, the first that is there."""
_RETURNED = ("output", "outputs", "results", "result")
_OWN = frozenset(("type", "id", "call_id", "name", "status", "error", *_CALLED, *_RETURNED))
_PLAIN = frozenset(("type", "text", "annotations", "logprobs"))


class _Turn:
    """A message that may still get calls."""

    def __init__(self, role: str, content: Any = None, **others: Any) -> None:
        self.role = role
        self.content = content
        self.others = others
        self.calls: list[ToolCall] = []


class Items:
    """What the items so far say."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._turns: list[_Turn] = []
        self._pairing = Pairing()
        self._answered = False
        """Whether results came since the last message: what is called next is a step of its own."""
        self._thoughts: list[str] = []
        self.refusal: str | None = None
        self.others: list[Any] = []
        """Items that are neither said, called nor thought."""

    def messages(self) -> tuple[Message, ...]:
        """The conversation."""
        return tuple(
            Message(role=turn.role, content=turn.content, tool_calls=tuple(turn.calls), **turn.others)
            for turn in self._turns
        )

    @property
    def reasoning(self) -> str | None:
        """What the model thought, as far as it is shown."""
        return "\n\n".join(self._thoughts) or None

    def read(self, item: Mapping[str, Any], path: Path) -> None:
        """Take in the next item."""
        kind = item.get("type") or ("message" if "role" in item else None)
        if kind == "message":
            self._say(item)
        elif kind == "reasoning":
            self._think(item)
        elif kind in _OUTPUTS:
            self._answer(item)
        elif isinstance(kind, str) and kind.endswith("_call"):
            self._call(kind, item, path)
        else:
            self.others.append(item)

    def _say(self, item: Mapping[str, Any]) -> None:
        content = item.get("content")
        own_id = item.get("id")
        self._answered = False
        role = item.get("role")
        self._turns.append(
            _Turn(
                role if isinstance(role, str) else "assistant",
                self._content(content) if isinstance(content, (list, tuple)) else _text_of(content),
                id=own_id if isinstance(own_id, str) else None,
            )
        )

    def _content(self, parts: Any) -> Any:
        blocks = [part for part in parts if isinstance(part, OBJECT)]
        for block in blocks:
            if block.get("type") == "refusal" and isinstance(block.get("refusal"), str):
                self.refusal = whole_text(block["refusal"])
        if all(_is_plain(block) for block in blocks):
            return "".join(whole_text(block["text"]) for block in blocks) if blocks else None
        return [dict(block) for block in blocks]

    def _think(self, item: Mapping[str, Any]) -> None:
        for name in ("summary", "content"):
            parts = item.get(name)
            parts = parts if isinstance(parts, (list, tuple)) else ()
            found = [part["text"] for part in parts if isinstance(part, OBJECT) and isinstance(part.get("text"), str)]
            self._thoughts += [whole_text(text) for text in found if text]

    def _call(self, kind: str, item: Mapping[str, Any], path: Path) -> None:
        if self._answered or not self._turns or self._turns[-1].role != "assistant":
            self._turns.append(_Turn("assistant"))
            self._answered = False
        metadata = {key: value for key, value in item.items() if key not in _OWN and value is not None}
        given, wrong = self._given(item, path)
        if wrong is not None:
            metadata["arguments_error"] = wrong
        name, error = item.get("name"), item.get("error")
        if kind not in ("function_call", "custom_tool_call"):
            metadata["type"] = kind
        if item.get("status") not in (None, "completed"):
            metadata["status"] = item["status"]  # that of the item: "incomplete" when it was cut off
        call = ToolCall(
            tool=name if isinstance(name, str) else kind.removesuffix("_call"),
            input=given,
            output=next((item[key] for key in _RETURNED if item.get(key) is not None), UNSET),
            id=next((item[key] for key in ("call_id", "id") if isinstance(item.get(key), str) and item[key]), None),
            status="error" if error is not None or item.get("status") == "failed" else None,
            error=error,
            metadata=metadata or None,
        )
        self._turns[-1].calls.append(call)
        self._pairing.calls.append(call)

    def _given(self, item: Mapping[str, Any], path: Path) -> tuple[Any, str | None]:
        """What a call was given, and why that cannot be read."""
        name = next((key for key in _CALLED if key in item), None)
        if name is None:
            return UNSET, None
        given = item[name]
        if name != "arguments" or not isinstance(given, str):
            return self._report.limit(given, (*path, name)), None
        value, wrong = parse_arguments(given)
        if wrong is not None:
            self._report.warn((*path, name), wrong)
        return value, wrong

    def _answer(self, item: Mapping[str, Any]) -> None:
        call_id = item.get("call_id")
        number = self._pairing.find(call_id if isinstance(call_id, str) else None, None)
        output = item.get("output")
        if number is None:
            content = output if isinstance(output, (str, list)) else None
            self._turns.append(_Turn("tool", content, tool_call_id=call_id if isinstance(call_id, str) else None))
            return
        self._answered = True
        call = self._pairing.calls[number]
        force_setattr(call, "output", output)  # made a moment ago, and nobody else has seen it yet
        self._pairing.answer(number)


def _is_plain(block: Mapping[str, Any]) -> bool:
    return (
        isinstance(block.get("text"), str)
        and block.keys() <= _PLAIN
        and not block.get("annotations")
        and not block.get("logprobs")
    )


def _text_of(content: Any) -> str | None:
    """Content that is no list: a text, or whatever else it is as one."""
    return content if content is None or isinstance(content, str) else dump_json(content).decode()
