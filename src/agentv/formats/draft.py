"""Write a conversation of another library in our own form, as plain data that the general reader takes."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from agentv.formats.fields import OBJECT
from agentv.formats.tool_calls import parse_arguments

NO_COST = {"input_tokens": 0, "output_tokens": 0}
"""The usage of a message that no model wrote."""


class Draft:
    """Messages in the making: calls are kept by their ids, and results are laid into them.

    `usage` of a message is what its model's turn cost: `None` when it is unknown, missing when no model wrote it.
    """

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []
        self._by_id: dict[str, dict[str, Any]] = {}
        self._in_turn = False
        """Whether a call without a message of its own belongs to the last message."""

    def say(self, role: str, content: Any = None, /, **beside: Any) -> dict[str, Any]:
        """Add a message; what stands beside its content and says nothing is left out."""
        said = {key: value for key, value in beside.items() if key == "usage" or value not in (None, "", [], {})}
        message = {**said, "role": role, "content": content}
        self.messages.append(message)
        self._in_turn = role == "assistant"
        return message

    def keep(self, item: Any) -> None:
        """Add an item that was not understood: a message as it is, and anything else as a block, which is reported."""
        if not (isinstance(item, OBJECT) and isinstance(item.get("role"), str)):
            kind = item.get("type") if isinstance(item, OBJECT) else None
            block = {"type": kind if isinstance(kind, str) and kind else "unknown", "item": item}
            item = {"role": "assistant", "content": [block]}
        self.messages.append(item)
        self._in_turn = False

    def knows(self, call_id: Any) -> bool:
        """Tell whether a call of this id was added."""
        return isinstance(call_id, str) and call_id in self._by_id

    def find(self, call_id: Any) -> dict[str, Any] | None:
        """Return the call of this id."""
        return self._by_id.get(call_id) if isinstance(call_id, str) else None

    def is_open(self, tool: Any) -> bool:
        """Tell whether a call of this tool has no result yet."""
        return any(call["tool"] == tool and "output" not in call for call in self._calls)

    @property
    def first_open(self) -> Any:
        """Return the tool of the first call without a result; `None` when all have one."""
        return next((call["tool"] for call in self._calls if "output" not in call), None)

    def call(self, tool: Any, given: Any = UNSET, call_id: Any = None, /, **beside: Any) -> dict[str, Any]:
        """Add a call to the message under way; one of a known id is that call. A text as input is parsed as JSON."""
        known = self.find(call_id)
        if known is not None:
            return known
        if not self._in_turn:
            self.say("assistant")
        call: dict[str, Any] = {**{key: value for key, value in beside.items() if value is not None}, "tool": tool}
        if isinstance(call_id, str) and call_id:
            call["id"] = call_id
            self._by_id[call_id] = call
        if given is not UNSET:
            call |= read_arguments(given)
        self.messages[-1].setdefault("tool_calls", []).append(call)
        self._calls.append(call)
        return call

    def answer(self, call_id: Any, output: Any, *, tool: Any = None, status: Any = None, error: Any = None) -> None:
        """Lay a result into its call: by id, else into the first open call of that name; else it stands alone."""
        self._in_turn = False
        beside = {key: value for key, value in (("status", status), ("error", error)) if value is not None}
        call = self.find(call_id)
        if call is None and not call_id:
            call = next((each for each in self._calls if each["tool"] == tool and "output" not in each), None)
        if call is None:
            self.messages.append({"role": "tool", "tool_call_id": call_id, "name": tool, "content": output, **beside})
        elif "output" not in call:
            call |= {"output": output, **beside}

    def finish(self) -> list[dict[str, Any]]:
        """Return the messages; where any of them says what it cost, the others cost nothing.

        The `arguments` of a call, to which pieces may have been added, become its input.
        """
        for call in self._calls:
            if "arguments" in call:
                call.update(read_arguments(call.pop("arguments")))
        if any(isinstance(each, OBJECT) and isinstance(each.get("usage"), OBJECT) for each in self.messages):
            for message in self.messages:
                if isinstance(message, dict) and message.get("role") == "assistant":
                    message.setdefault("usage", NO_COST)
        return self.messages


def read_arguments(given: Any, field: str = "input") -> dict[str, Any]:
    """Return the input of a call, parsed where it is a JSON text, and why it could not be parsed."""
    if not isinstance(given, str):
        return {field: {} if given is None else given}
    if not given:
        return {field: {}}
    value, error = parse_arguments(given)
    return {field: value} if error is None else {field: value, "arguments_error": error}


def status_of(is_error: Any) -> str | None:
    """Return the status of a call whose result says whether it failed; `None` when it does not say."""
    return None if not isinstance(is_error, bool) else "error" if is_error else "ok"


def as_content(blocks: list[Any]) -> Any:
    """Return blocks as the content of a message: a text when there is nothing else."""
    if len(blocks) == 1 and isinstance(blocks[0], OBJECT) and blocks[0].keys() == {"type", "text"}:
        return blocks[0]["text"]
    return blocks or None


def join_texts(parts: Any, *keys: str) -> str | None:
    """Join the texts of a list of parts, each a text or an object with one under these keys; `None` without any."""
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, (list, tuple)):
        return None
    texts = [text for part in parts if (text := _text(part, keys)) is not None]
    return "".join(texts) if texts else None


def _text(part: Any, keys: tuple[str, ...]) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, OBJECT):
        return None
    return next((part[key] for key in keys if isinstance(part.get(key), str)), None)


def other_fields(value: Mapping[str, Any], *read: str) -> dict[str, Any]:
    """Return the fields of an object that were not read."""
    return {str(key): item for key, item in value.items() if key not in read}
