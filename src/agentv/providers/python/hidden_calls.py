"""Calls that a reply leaves out and that callbacks report, inserted where they were made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.fields import OBJECT
from agentv.formats.objects import is_class_of, plain
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE = {"source": "callbacks"}
"""Metadata of messages that are not in the reply itself."""


class ToolRun:
    """One run of a tool."""

    def __init__(self, name: Any, tool_input: Any, call_id: Any) -> None:
        self.name = name if isinstance(name, str) else ""
        self.input = tool_input
        self.call_id = call_id if isinstance(call_id, str) else None
        self.output: Any = UNSET
        self.error: BaseException | None = None

    @property
    def result(self) -> dict[str, Any]:
        """Fields of the call with its result; none if it has not ended."""
        if is_class_of(self.error, "GraphInterrupt", "langgraph"):
            return {"status": "pending"}
        if self.error is not None:
            # A graph also leaves a node by an exception.
            moves_on = is_class_of(self.error, "GraphBubbleUp", "langgraph")
            return {} if moves_on else {"status": "error", "error": str(self.error)}
        if self.output is UNSET:
            return {}
        output = plain(self.output)
        if isinstance(output, OBJECT) and output.get("type") == "tool":
            failed = {"status": "error"} if output.get("status") == "error" else {}
            return {"output": output.get("content"), **failed}
        return {"output": output}


class _MergedMessage:
    """Message of the reply, or one that callbacks reported."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.calls = list(message.tool_calls)
        self.is_counted = False
        """True if a model run returned this message."""
        self.runs: set[int] = set()
        """Indexes of calls whose tool run is known."""
        self.followers: list[_MergedMessage] = []

    def finish(self) -> Message:
        """Return the message with the results of its calls."""
        calls = tuple(self.calls)
        return self.message if calls == self.message.tool_calls else replace(self.message, tool_calls=calls)


class MergedMessages:
    """Messages of a reply, each followed by those that callbacks reported until the next one."""

    def __init__(self, messages: tuple[Message, ...], ids: set[str | None]) -> None:
        self._ids = ids - {None}
        """Ids of messages that model runs returned."""
        self._head = _MergedMessage(Message(role="assistant"))
        self._entries = [_MergedMessage(message) for message in messages]
        self._all = list(self._entries)
        self._anchor = self._head

    def messages(self) -> Iterator[Message]:
        """Return all messages in order."""
        for entry in (self._head, *self._entries):
            if entry is not self._head:
                yield entry.finish()
            yield from (follower.finish() for follower in entry.followers)

    def uncounted(self) -> Iterator[Message]:
        """Return the assistant messages without a known model run."""
        for entry in self._entries:
            if entry.message.role == "assistant" and not entry.is_counted:
                yield entry.message

    def add_message(self, message: Message, *, is_hidden: bool) -> None:
        """Add the message of a model run: one of the reply, or a hidden one, which is kept if it has calls."""
        entry = self._find_message(message)
        if entry is not None:
            entry.is_counted = True
            self._move(entry)
        elif message.tool_calls and is_hidden:
            self._insert(replace(message, metadata={**(message.metadata or {}), **_SOURCE}))

    def _find_message(self, message: Message) -> _MergedMessage | None:
        """Find a message by its id, else by its calls, else by its text, because nodes may write a copy."""
        waiting = [entry for entry in self._entries if entry.message.role == "assistant" and not entry.is_counted]
        for entry in waiting:
            if message.id is not None and entry.message.id == message.id:
                return entry
        for entry in [entry for entry in waiting if entry.message.id not in self._ids]:
            if message.tool_calls and _holds_calls(entry, message):
                return entry
            if not message.tool_calls and not entry.calls and message.text and entry.message.text == message.text:
                return entry
        return None

    def add_tool(self, run: ToolRun) -> None:
        """Add a tool run: to a known call, or as a hidden one."""
        place = self._find_call(run)
        if place is None:
            call = ToolCall(tool=run.name, input=run.input, id=run.call_id)
            place = self._insert(Message(role="assistant", tool_calls=(call,), metadata=dict(_SOURCE))), 0
        entry, at = place
        entry.runs.add(at)
        self._move(entry)
        call = entry.calls[at]
        if call.output is UNSET and call.status is None:
            entry.calls[at] = replace(call, **run.result)

    def _find_call(self, run: ToolRun) -> tuple[_MergedMessage, int] | None:
        """Find the call of a tool run; ids are not enough, because some models restart them in every reply."""
        named = [(entry, at) for entry in self._all for at, call in enumerate(entry.calls) if call.tool == run.name]
        owned = [(entry, at) for entry, at in named if run.call_id and entry.calls[at].id == run.call_id]
        equal = [(entry, at) for entry, at in owned if _is_same_input(entry.calls[at].input, run.input)]
        free = [(entry, at) for entry, at in equal if at not in entry.runs]
        if free or equal:  # a retry of the tool for the same call
            return (free or equal)[0]
        if len(owned) == 1 and owned[0][1] not in owned[0][0].runs:  # with defaults added to its input
            return owned[0]
        for entry, at in named if not owned else ():
            if at not in entry.runs and _is_same_input(entry.calls[at].input, run.input):
                return entry, at
        return None

    def _insert(self, message: Message) -> _MergedMessage:
        entry = _MergedMessage(message)
        self._anchor.followers.append(entry)
        self._all.append(entry)
        return entry

    def _move(self, entry: _MergedMessage) -> None:
        if entry in self._entries:
            self._anchor = entry


def _holds_calls(entry: _MergedMessage, message: Message) -> bool:
    """Return whether a message has all calls of another."""
    own = [(call.id, call.tool, call.input) for call in entry.calls]
    return all((call.id, call.tool, call.input) in own for call in message.tool_calls)


def _is_same_input(call: Any, run: Any) -> bool:
    """Compare inputs; a tool that takes one text is given that text alone."""
    if call == run:
        return True
    if isinstance(call, OBJECT) and isinstance(run, str):
        return (len(call) == 1 and next(iter(call.values())) == run) or dump_json(call).decode() == run
    return isinstance(run, OBJECT) and isinstance(call, str) and len(run) == 1 and next(iter(run.values())) == call
