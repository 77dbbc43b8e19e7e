"""What the stream of a LangGraph graph yields: states, updates of nodes and chunks of messages."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.langchain import unwrap_langchain
from agentv.formats.messages import is_langchain
from agentv.formats.vocabulary import is_call_key
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_MODES = frozenset((
    *("values", "updates", "messages", "custom", "debug", "tasks", "checkpoints", "error", "metadata", "end"),
    *("messages/partial", "messages/complete", "messages/metadata", "events"),
))  # fmt: skip
_RECORDS = frozenset(("debug", "tasks", "checkpoints"))
"""Modes whose data tells by itself what it is."""
_DEBUG = frozenset(("checkpoint", "task", "task_result"))
_SNAPSHOT = ("values", "next", "config", "metadata", "created_at", "parent_config", "tasks", "interrupts")
"""The fields of a `StateSnapshot`, in their order."""
_INTERRUPT = "__interrupt__"
_PIECES = ("content", "tool_call_chunks", "tool_calls", "invalid_tool_calls", "usage_metadata", "response_metadata")


class _Part(NamedTuple):
    """One element of a stream: its mode, where it is told, and its data."""

    mode: str
    data: Any


def _part(item: Any) -> _Part | None:
    """Tell what an element of a stream is; `None` when it is none."""
    if is_langchain(message := unwrap_langchain(item)):  # as a model streams it
        return _Part("messages", [message, {}])
    if isinstance(item, OBJECT):
        return _recorded(item) or (_Part(*found) if (found := _mode_of(item)) else None)
    if not isinstance(item, (list, tuple)) or not item:
        return None
    snapshot = as_snapshot(item)
    return _part_of_list(item) if snapshot is None else _recorded(snapshot)


def _part_of_list(item: Sequence[Any]) -> _Part | None:
    """Tell what a pair, or a triple with the namespace of a subgraph, is."""
    head, *rest = item
    if isinstance(head, (list, tuple)) and all(isinstance(each, str) for each in head) and rest:  # a namespace
        return _part(rest[0] if len(rest) == 1 else rest)
    if isinstance(head, str) and head in _MODES and len(rest) == 1:
        return _by_mode(head, rest[0])
    return _Part("messages", item) if _is_chunk(item) else None


def _by_mode(mode: str, data: Any) -> _Part:
    recorded = _recorded(data) if mode in _RECORDS and isinstance(data, OBJECT) else None
    return recorded or _Part(mode, data)


def _recorded(item: _Object) -> _Part | None:
    """Tell what a graph records of its run: checkpoints, the tasks of its nodes, and what they gave back."""
    kind, payload = item.get("type"), item.get("payload")
    if isinstance(kind, str) and kind in _MODES and "ns" in item and "data" in item:  # a part of version 2
        return _with_interrupts(_by_mode(kind, item["data"]), item.get("interrupts"))
    if isinstance(kind, str) and kind in _DEBUG and isinstance(payload, OBJECT):
        return _recorded(payload)
    values = item.get("values")
    if isinstance(values, OBJECT) and "next" in item and ("config" in item or "metadata" in item):
        tasks = objects_in([task for task in item.get("tasks") or () if isinstance(task, OBJECT)])
        waiting = item.get("interrupts") or [each for task in tasks for each in task.get("interrupts") or ()]
        return _with_interrupts(_Part("values", values), waiting)
    if "id" in item and "name" in item and "triggers" in item and "input" in item:
        return _Part("tasks", None)  # a node begins, with what others gave it
    if "id" in item and "name" in item and "result" in item and "interrupts" in item:
        return _with_interrupts(_Part("updates", {str(item["name"]): _written(item["result"])}), item["interrupts"])
    return None


def _written(result: Any) -> Any:
    """Return what a node wrote, which older versions tell as pairs of a channel and a value."""
    pairs = isinstance(result, (list, tuple)) and all(
        isinstance(each, (list, tuple)) and len(each) == 2 and isinstance(each[0], str)  # noqa: PLR2004
        for each in result
    )
    return dict(result) if pairs else result


def _with_interrupts(part: _Part, interrupts: Any) -> _Part:
    if not interrupts or not isinstance(part.data, OBJECT):
        return part
    return _Part(part.mode, {**part.data, _INTERRUPT: interrupts})


def as_snapshot(item: Any) -> _Object | None:
    """Return a `StateSnapshot` that was written as the list of its fields; `None` when it is none."""
    if not isinstance(item, (list, tuple)) or len(item) not in (7, 8) or not isinstance(item[0], OBJECT):
        return None
    config = item[2].get("configurable") if isinstance(item[2], OBJECT) else None
    return dict(zip(_SNAPSHOT, item, strict=False)) if isinstance(config, OBJECT) else None


def _mode_of(item: _Object) -> tuple[str, Any] | None:
    if _are_messages(item.get("messages")):
        return "values", item
    if not item or not all(isinstance(key, str) for key in item):
        return None
    if any(is_call_key(key) and value for key, value in item.items()):  # no node is called so
        return None
    told = list(item.values())
    if any(_are_messages(value.get("messages")) for value in objects_in(told)):
        told = [value for value in told if not isinstance(value, (str, int, float))]
    return ("updates", item) if all(map(_is_update, told)) else None


def _is_update(value: Any) -> bool:
    """Tell what one node changed: some of the state's fields, or nothing; or an interrupt."""
    if value is None or (isinstance(value, (list, tuple)) and all(isinstance(each, OBJECT) for each in value)):
        return True
    return isinstance(value, OBJECT)


def _are_messages(items: Any) -> bool:
    items = [items] if isinstance(items, OBJECT) else items
    return isinstance(items, (list, tuple)) and any(is_langchain(unwrap_langchain(item)) for item in items)


def _is_chunk(item: Sequence[Any]) -> bool:
    """Tell a chunk of a message with the metadata of its node."""
    if len(item) != 2 or not isinstance(item[1], OBJECT):  # noqa: PLR2004 - the two of a pair
        return False
    return is_langchain(unwrap_langchain(item[0])) and any(
        str(key).startswith(("langgraph_", "ls_")) for key in item[1]
    )


def _is_piece(message: Any) -> bool:
    kind = message.get("type") if isinstance(message, OBJECT) else None
    return isinstance(kind, str) and kind.endswith("MessageChunk")


def _holds_messages(part: _Part) -> bool:
    if part.mode == "updates" and isinstance(part.data, OBJECT):
        return any(_are_messages(each.get("messages")) for each in objects_in(list(part.data.values())))
    if part.mode == "values" and isinstance(part.data, OBJECT):
        return _are_messages(part.data.get("messages"))
    if part.mode != "messages" or not isinstance(part.data, (list, tuple)) or not part.data:
        return False
    return _is_chunk(part.data) or _is_piece(part.data[0])


def _detect(value: Any) -> bool:
    if not isinstance(value, (list, tuple)) or not value:
        return False
    parts = [_part(item) for item in value]
    return None not in parts and any(part is not None and _holds_messages(part) for part in parts)


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    return reader.read(fold_parts([part for item in _in_order(items) if (part := _part(item)) is not None]))


def _in_order(items: Sequence[Any]) -> Sequence[Any]:
    """Return the items with the first step first: `get_state_history` begins with the last."""
    shown = [as_snapshot(item) or item for item in items]
    steps = [each.get("metadata") if isinstance(each, OBJECT) and "values" in each else None for each in shown]
    numbers = [step.get("step") if isinstance(step, OBJECT) else None for step in steps]
    if not all(isinstance(number, int) for number in numbers):
        return items
    is_backward = len(numbers) > 1 and numbers[0] > numbers[-1]  # type: ignore[operator]
    return list(reversed(items)) if is_backward else items


def fold_parts(parts: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Put a stream together as the state that it ends with: each part is a mode and its data."""
    states = [data for mode, data in parts if mode == "values" and isinstance(data, OBJECT)]
    gathered, shown = GatheredMessages(), GatheredMessages()
    for state in states:
        shown.replace(state.get("messages"))
    document: dict[str, Any] = {}
    for mode, data in parts:
        if mode == "error" and data is not None:
            document["__error__"] = data
        gathered.take(mode, data)
        if isinstance(data, OBJECT) and data.get(_INTERRUPT):
            document[_INTERRUPT] = data[_INTERRUPT]
    if states:
        if not gathered.calls <= shown.calls:  # of agents that run within a node, and that no state holds
            shown.add(gathered.messages)
        return {**states[-1], "messages": shown.finish(), **document}
    return {"messages": gathered.finish(), **document}


def fold_pieces(messages: Sequence[Any]) -> Sequence[Any]:
    """Return messages of which some came in chunks as whole ones."""
    if not any(_is_piece(unwrap_langchain(item)) for item in messages):
        return messages
    gathered = GatheredMessages()
    for item in messages:
        gathered.extend(item)
    return gathered.finish()


class GatheredMessages:
    """The messages of a stream: whole ones by their ids, and chunks that make one."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        """Those that came so far."""
        self._places: dict[str, int] = {}

    def take(self, mode: str, data: Any) -> None:
        """Take the messages of one part of a stream."""
        if mode == "updates" and isinstance(data, OBJECT):
            for update in objects_in(list(data.values())):
                self.add(update.get("messages"))
        elif mode == "messages" and isinstance(data, (list, tuple)) and data:
            self.extend(data[0])
        elif mode in ("messages/partial", "messages/complete"):
            self.add(data)

    def replace(self, found: Any) -> None:
        """Take all messages of a later state; what it no longer holds, as after a summary, stays."""
        items = found if isinstance(found, (list, tuple)) else []
        if [unwrap_langchain(item) for item in items[: len(self.messages)]] == self.messages:
            self.messages, self._places = [], {}
        self.add(items)

    def add(self, found: Any) -> None:
        """Take whole messages; one that came before, in a subgraph or in chunks, is the same message."""
        items = [unwrap_langchain(item) for item in (found if isinstance(found, (list, tuple)) else [found])]
        waiting: list[Any] = []
        for message in objects_in(items):
            place = self._places.get(_key(message))
            if place is None or not _is_same(self.messages[place], message):
                waiting.append(message)
                continue
            self.messages[place] = message
            # What stands before a message that is known already came before it.
            self.messages[place:place] = waiting
            waiting = []
            self._index()
        self.messages += waiting
        self._index()

    def _index(self) -> None:
        self._places = {key: at for at, each in enumerate(self.messages) if (key := _key(each))}

    def extend(self, item: Any) -> None:
        """Take a chunk: to the last message of its id it is added, and any other it begins."""
        chunk = unwrap_langchain(item)
        if not isinstance(chunk, OBJECT):
            return
        if not _is_piece(chunk):
            self.add(chunk)
            return
        last: _Object = self.messages[-1] if self.messages else {}
        is_under_way = _is_piece(last)
        if is_under_way and (last.get("id") == chunk.get("id") or not any(chunk.get(key) for key in _PIECES)):
            self.messages[-1] = {**_joined(last, chunk), "id": last.get("id")}
        else:
            self.messages.append(chunk)
            self._index()

    @property
    def calls(self) -> set[str]:
        """The ids of all calls."""
        calls = [
            call
            for message in objects_in(self.messages)
            for call in objects_in([*_list(message, "tool_calls"), *_list(message, "tool_call_chunks")])
        ]
        return {call["id"] for call in calls if isinstance(call.get("id"), str)}

    def finish(self) -> list[Any]:
        """Return the messages, the calls of those that came in chunks put together."""
        return [_whole(each) for each in self.messages]


def _key(message: _Object) -> str:
    own_id = message.get("id")
    return own_id if isinstance(own_id, str) else ""


def _is_same(before: _Object, after: _Object) -> bool:
    """Tell a message that came again from another of the same id: some models give their runs' to all they write."""
    if _is_piece(before):
        return True
    return (before.get("content"), before.get("tool_calls")) == (after.get("content"), after.get("tool_calls"))


def _joined(first: _Object, second: _Object) -> dict[str, Any]:
    """Join two chunks of one message."""
    joined = {**first, **{key: value for key, value in second.items() if key not in _PIECES and value is not None}}
    joined["content"] = _joined_content(first.get("content"), second.get("content"))
    joined["tool_call_chunks"] = [*_list(first, "tool_call_chunks"), *_list(second, "tool_call_chunks")]
    joined["usage_metadata"] = _added(first.get("usage_metadata"), second.get("usage_metadata"))
    told = [
        each for each in (first.get("response_metadata"), second.get("response_metadata")) if isinstance(each, OBJECT)
    ]
    joined["response_metadata"] = {key: value for each in told for key, value in each.items()}
    return joined


def _joined_content(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return first + second
    blocks = [[{"type": "text", "text": each}] if isinstance(each, str) and each else each for each in (first, second)]
    return [block for each in blocks if isinstance(each, (list, tuple)) for block in each]


def _list(message: _Object, key: str) -> Sequence[Any]:
    value = message.get(key)
    return value if isinstance(value, (list, tuple)) else ()


def _added(first: Any, second: Any) -> Any:
    """Add up the counts of two chunks, as LangChain does."""
    if not isinstance(first, OBJECT) or not isinstance(second, OBJECT):
        return second if first is None else first
    sums = {**first, **second}
    for key in first.keys() & second.keys():
        if isinstance(first[key], OBJECT):
            sums[key] = _added(first[key], second[key])
        elif isinstance(first[key], int) and isinstance(second[key], int):
            sums[key] = first[key] + second[key]
    return sums


def _whole(message: Any) -> Any:
    """Write the calls of a message that came in chunks: their arguments are pieces of one JSON text."""
    if not _is_piece(message):
        return message
    calls: dict[str, dict[str, Any]] = {}
    last: str | None = None
    for at, piece in enumerate(objects_in(_list(message, "tool_call_chunks"))):
        index = piece.get("index")
        last = str(index) if index is not None else (f"at {at}" if piece.get("id") or last is None else last)
        call = calls.setdefault(last, {"name": "", "arguments": "", "id": None})
        for key, name in (("name", "name"), ("args", "arguments")):
            call[name] += piece[key] if isinstance(piece.get(key), str) else ""
        call["id"] = call["id"] or piece.get("id")
    made = [
        {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"] or "{}"}}
        for call in calls.values()
    ]
    whole = {**message, "type": str(message["type"]).removesuffix("MessageChunk").lower()}
    if not made:
        return whole
    others = {key: value for key, value in whole.items() if key not in ("tool_call_chunks", "invalid_tool_calls")}
    return {**others, "tool_calls": made}


FORMAT = ReplyFormat(name="langgraph", detect=_detect, read=_read, events=True)
