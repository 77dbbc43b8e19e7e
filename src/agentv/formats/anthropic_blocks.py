"""Anthropic's content blocks, gathered into messages with their calls."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import force_setattr

from agentv.formats.calls import parse_arguments
from agentv.formats.pairing import Pairing
from agentv.formats.reading import OBJECT, Path, Report, whole_text
from agentv.model.message import Message, ToolCall

THINKING = "thinking"
"""Under this name a message's metadata keeps the blocks that must go back to the model as they came."""
CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
THOUGHTS = ("thinking", "redacted_thinking")
_OWN = frozenset(("type", "id", "name", "input"))


class _Turn:
    """A message that may still get words and calls."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.words: list[dict[str, Any]] = []
        self.calls: list[ToolCall] = []
        self.thinking: list[Any] = []

    @property
    def content(self) -> Any:
        """A text where it is nothing else; blocks where they say more, such as what they cite."""
        if not self.words:
            return None
        if all(is_plain(block) for block in self.words):
            return "".join(block["text"] for block in self.words)
        return self.words


class Blocks:
    """What the blocks so far say."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._turns: list[_Turn | Message] = []
        self._pairing = Pairing()
        self._thoughts: list[str] = []

    def messages(self) -> tuple[Message, ...]:
        """The conversation."""
        return tuple(
            turn
            if isinstance(turn, Message)
            else Message(
                role=turn.role,
                content=turn.content,
                tool_calls=tuple(turn.calls),
                metadata={THINKING: turn.thinking} if turn.thinking else None,
            )
            for turn in self._turns
        )

    @property
    def reasoning(self) -> str | None:
        """What the model thought, as far as it is shown."""
        return "\n\n".join(self._thoughts) or None

    def read(self, role: str, content: Any, path: Path) -> None:
        """Take in the next message."""
        if content is None or isinstance(content, str):
            self._turns.append(Message(role=role, content=None if content is None else whole_text(content)))
            return
        if not isinstance(content, (list, tuple)):
            self._report.refuse(path, "a text or a list of blocks", content)
            return
        turn: _Turn | None = None
        for position, block in enumerate(content):
            if not isinstance(block, OBJECT):
                self._report.refuse((*path, position), "an object", block)
            elif is_result(block):
                self._answer(block)
            else:
                # Words after a call are a step of their own: the vendor's tools answer within one message.
                if turn is None or (turn.calls and block.get("type") not in CALLS):
                    turn = _Turn(role)
                    self._turns.append(turn)
                self._read(turn, block, (*path, position))

    def _read(self, turn: _Turn, block: Mapping[str, Any], path: Path) -> None:
        kind = block.get("type")
        if kind in CALLS:
            turn.calls.append(self._call(block, path))
        elif kind in THOUGHTS:
            turn.thinking.append(dict(block))
            thought = block.get("thinking")
            if isinstance(thought, str) and thought:
                self._thoughts.append(whole_text(thought))
        else:
            text = block.get("text")
            turn.words.append({**block, "text": whole_text(text)} if isinstance(text, str) else dict(block))

    def _call(self, block: Mapping[str, Any], path: Path) -> ToolCall:
        given = block.get("input", UNSET)
        metadata = {key: value for key, value in block.items() if key not in _OWN and value is not None}
        if block["type"] != "tool_use":
            metadata["type"] = block["type"]
        if isinstance(given, str):  # a stream whose pieces never became an object
            given, wrong = parse_arguments(given)
            if wrong is not None:
                metadata["arguments_error"] = wrong
                self._report.warn((*path, "input"), wrong)
        own_id, name = block.get("id"), block.get("name")
        call = ToolCall(
            tool=name if isinstance(name, str) else "",
            input=self._report.limit(given, (*path, "input")),
            id=own_id if isinstance(own_id, str) else None,
            metadata=metadata or None,
        )
        self._pairing.calls.append(call)
        return call

    def _answer(self, block: Mapping[str, Any]) -> None:
        call_id, output = block.get("tool_use_id"), output_of(block.get("content"))
        own = call_id if isinstance(call_id, str) else None
        number = self._pairing.find(own, None)
        if number is None:
            content = output if isinstance(output, str) else None
            kept = {"output": output} if content is None and output is not None else None
            self._turns.append(Message(role="tool", content=content, tool_call_id=own, metadata=kept))
            return
        call = self._pairing.calls[number]
        # Made a moment ago, and nobody else has seen it yet.
        force_setattr(call, "output", output)
        if block.get("is_error") is True or failed(output):
            force_setattr(call, "status", "error")
        elif block.get("is_error") is False:
            force_setattr(call, "status", "ok")
        self._pairing.answer(number)


def is_result(block: Mapping[str, Any]) -> bool:
    """Tell a block that is what a tool returned."""
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith("tool_result")


def failed(output: Any) -> bool:
    """Whether the vendor's own tool says that it failed, as in `web_search_tool_result_error`."""
    kind = output.get("type") if isinstance(output, OBJECT) else None
    return isinstance(kind, str) and kind.endswith("_error")


def output_of(content: Any) -> Any:
    """What a tool returned: a text where it is nothing else."""
    if isinstance(content, (list, tuple)) and content and all(isinstance(b, OBJECT) and is_plain(b) for b in content):
        return _joined(content)
    return content


def _joined(blocks: Iterable[Mapping[str, Any]]) -> str:
    return "".join(whole_text(block["text"]) for block in blocks)


def is_plain(block: Mapping[str, Any]) -> bool:
    """Tell a block that is nothing but a text."""
    return (
        block.get("type") == "text"
        and isinstance(block.get("text"), str)
        and all(value is None for key, value in block.items() if key not in ("type", "text"))
    )
