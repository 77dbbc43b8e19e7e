"""LangGraph: states, snapshots, invocation outputs and streams of graphs; LangServe replies, which wrap one."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.detect import are_messages, is_message
from agentv.formats.fields import OBJECT, is_call_key, is_list, objects_in, texts_under
from agentv.formats.langchain import FORMAT as LANGCHAIN
from agentv.formats.langchain import list_field, unwrap_langchain
from agentv.formats.messages import is_langchain
from agentv.formats.response import decode_fields, join_responses
from agentv.model.response import ProviderResponse, ResponseError
from agentv.protocols import ReplyFormat, ReplyReader
from agentv.registry import reply_formats

_Object = Mapping[str, Any]
_MODES = frozenset((
    *("values", "updates", "messages", "custom", "debug", "tasks", "checkpoints", "error", "metadata", "end"),
    *("messages/partial", "messages/complete", "messages/metadata", "events"),
))  # fmt: skip
_RECORDS = frozenset(("debug", "tasks", "checkpoints"))
"""Modes whose data identifies itself."""
_DEBUG = frozenset(("checkpoint", "task", "task_result"))
_SNAPSHOT = ("values", "next", "config", "metadata", "created_at", "parent_config", "tasks", "interrupts")
"""Fields of a `StateSnapshot`, in order."""
_INTERRUPT = "__interrupt__"
_PIECES = ("content", "tool_call_chunks", "tool_calls", "invalid_tool_calls", "usage_metadata", "response_metadata")


class _StreamPart(NamedTuple):
    """One element of a stream: its mode and its data."""

    mode: str
    data: Any


def _part(item: Any) -> _StreamPart | None:
    """Classify an element of a stream; return `None` if it is not one."""
    if is_langchain(message := unwrap_langchain(item)):  # a bare message of a model's stream
        return _StreamPart("messages", [message, {}])
    if isinstance(item, OBJECT):
        return _debug_part(item) or (_StreamPart(*mode_and_data) if (mode_and_data := _mode_of(item)) else None)
    if not isinstance(item, (list, tuple)) or not item:
        return None
    snapshot = as_snapshot(item)
    return _part_of_list(item) if snapshot is None else _debug_part(snapshot)


def _part_of_list(item: Sequence[Any]) -> _StreamPart | None:
    """Classify a pair, or a triple with the namespace of a subgraph."""
    head, *rest = item
    if isinstance(head, (list, tuple)) and all(isinstance(entry, str) for entry in head) and rest:  # a namespace
        return _part(rest[0] if len(rest) == 1 else rest)
    if isinstance(head, str) and head in _MODES and len(rest) == 1:
        return _by_mode(head, rest[0])
    return _StreamPart("messages", item) if _is_chunk(item) else None


def _by_mode(mode: str, data: Any) -> _StreamPart:
    recorded = _debug_part(data) if mode in _RECORDS and isinstance(data, OBJECT) else None
    return recorded or _StreamPart(mode, data)


def _debug_part(item: _Object) -> _StreamPart | None:
    """Classify a debug record: a checkpoint, a started task, or the result of a task."""
    kind, payload = item.get("type"), item.get("payload")
    if isinstance(kind, str) and kind in _MODES and "ns" in item and "data" in item:  # a part of version 2
        return _with_interrupts(_by_mode(kind, item["data"]), item.get("interrupts"))
    if isinstance(kind, str) and kind in _DEBUG and isinstance(payload, OBJECT):
        return _debug_part(payload)
    values = item.get("values")
    if isinstance(values, OBJECT) and "next" in item and ("config" in item or "metadata" in item):
        tasks = objects_in([task for task in item.get("tasks") or () if isinstance(task, OBJECT)])
        waiting = item.get("interrupts") or [entry for task in tasks for entry in task.get("interrupts") or ()]
        return _with_interrupts(_StreamPart("values", values), waiting)
    if "id" in item and "name" in item and "triggers" in item and "input" in item:
        return _StreamPart("tasks", None)  # a node starts with the output of others
    if "id" in item and "name" in item and "result" in item and "interrupts" in item:
        return _with_interrupts(
            _StreamPart("updates", {str(item["name"]): _task_output(item["result"])}), item["interrupts"]
        )
    return None


def _task_output(result: Any) -> Any:
    """Return the output of a node; older versions write it as pairs of channel and value."""
    pairs = isinstance(result, (list, tuple)) and all(
        isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str)  # noqa: PLR2004
        for item in result
    )
    return dict(result) if pairs else result


def _with_interrupts(part: _StreamPart, interrupts: Any) -> _StreamPart:
    if not interrupts or not isinstance(part.data, OBJECT):
        return part
    return _StreamPart(part.mode, {**part.data, _INTERRUPT: interrupts})


def as_snapshot(item: Any) -> _Object | None:
    """Return a `StateSnapshot` that was serialized as a list of its fields; `None` if it is not one."""
    if not isinstance(item, (list, tuple)) or len(item) not in (7, 8) or not isinstance(item[0], OBJECT):
        return None
    config = item[2].get("configurable") if isinstance(item[2], OBJECT) else None
    return dict(zip(_SNAPSHOT, item, strict=False)) if isinstance(config, OBJECT) else None


def _mode_of(item: _Object) -> tuple[str, Any] | None:
    if _are_messages(item.get("messages")):
        return "values", item
    if not item or not all(isinstance(key, str) for key in item):
        return None
    if any(is_call_key(key) and value for key, value in item.items()):  # not a node's name
        return None
    values = list(item.values())
    if any(_are_messages(value.get("messages")) for value in objects_in(values)):
        values = [value for value in values if not isinstance(value, (str, int, float))]
    return ("updates", item) if all(map(_is_update, values)) else None


def _is_update(value: Any) -> bool:
    """Return whether a value is a node's update: some fields of the state, nothing, or an interrupt."""
    if value is None or (isinstance(value, (list, tuple)) and all(isinstance(item, OBJECT) for item in value)):
        return True
    return isinstance(value, OBJECT)


def _are_messages(items: Any) -> bool:
    items = [items] if isinstance(items, OBJECT) else items
    return isinstance(items, (list, tuple)) and any(is_langchain(unwrap_langchain(item)) for item in items)


def _is_chunk(item: Sequence[Any]) -> bool:
    """Recognize a message chunk with the metadata of its node."""
    if len(item) != 2 or not isinstance(item[1], OBJECT):  # noqa: PLR2004 - a pair
        return False
    return is_langchain(unwrap_langchain(item[0])) and any(
        str(key).startswith(("langgraph_", "ls_")) for key in item[1]
    )


def _is_piece(message: Any) -> bool:
    kind = message.get("type") if isinstance(message, OBJECT) else None
    return isinstance(kind, str) and kind.endswith("MessageChunk")


def _part_holds_messages(part: _StreamPart) -> bool:
    if part.mode == "updates" and isinstance(part.data, OBJECT):
        return any(_are_messages(item.get("messages")) for item in objects_in(list(part.data.values())))
    if part.mode == "values" and isinstance(part.data, OBJECT):
        return _are_messages(part.data.get("messages"))
    if part.mode != "messages" or not isinstance(part.data, (list, tuple)) or not part.data:
        return False
    return _is_chunk(part.data) or _is_piece(part.data[0])


def _detect_stream(value: Any) -> bool:
    if not isinstance(value, (list, tuple)) or not value:
        return False
    parts = [_part(item) for item in value]
    return None not in parts and any(part is not None and _part_holds_messages(part) for part in parts)


def _read_stream(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    return reader.read(assemble_state([part for item in _in_order(items) if (part := _part(item)) is not None]))


def _in_order(items: Sequence[Any]) -> Sequence[Any]:
    """Return the items in order of steps; `get_state_history` starts with the last one."""
    snapshots = [as_snapshot(item) or item for item in items]
    steps = [entry.get("metadata") if isinstance(entry, OBJECT) and "values" in entry else None for entry in snapshots]
    numbers = [step.get("step") if isinstance(step, OBJECT) else None for step in steps]
    if not all(isinstance(number, int) for number in numbers):
        return items
    is_backward = len(numbers) > 1 and numbers[0] > numbers[-1]  # type: ignore[operator]
    return list(reversed(items)) if is_backward else items


def assemble_state(parts: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Assemble the final state of a stream from its parts, pairs of mode and data."""
    states = [data for mode, data in parts if mode == "values" and isinstance(data, OBJECT)]
    streamed, from_states = MessageCollector(), MessageCollector()
    for state in states:
        from_states.replace(state.get("messages"))
    document: dict[str, Any] = {}
    for mode, data in parts:
        if mode == "error" and data is not None:
            document["__error__"] = data
        streamed.add_part(mode, data)
        if isinstance(data, OBJECT) and data.get(_INTERRUPT):
            document[_INTERRUPT] = data[_INTERRUPT]
    if states:
        if not streamed.calls <= from_states.calls:  # of agents inside a node, which no state contains
            from_states.add(streamed.messages)
        return {**states[-1], "messages": from_states.finish(), **document}
    return {"messages": streamed.finish(), **document}


def assemble_messages(messages: Sequence[Any]) -> Sequence[Any]:
    """Return the messages with chunks assembled to complete messages."""
    if not any(_is_piece(unwrap_langchain(item)) for item in messages):
        return messages
    collector = MessageCollector()
    for item in messages:
        collector.extend(item)
    return collector.finish()


class MessageCollector:
    """Collector of streamed messages: complete ones by id, and chunks that form one."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        """The messages so far."""
        self._places: dict[str, int] = {}

    def add_part(self, mode: str, data: Any) -> None:
        """Add the messages of one part of a stream."""
        if mode == "updates" and isinstance(data, OBJECT):
            for update in objects_in(list(data.values())):
                self.add(update.get("messages"))
        elif mode == "messages" and isinstance(data, (list, tuple)) and data:
            self.extend(data[0])
        elif mode in ("messages/partial", "messages/complete"):
            self.add(data)

    def replace(self, messages: Any) -> None:
        """Add the messages of a later state; messages it no longer has, as after a summary, are kept."""
        items = messages if isinstance(messages, (list, tuple)) else []
        if [unwrap_langchain(item) for item in items[: len(self.messages)]] == self.messages:
            self.messages, self._places = [], {}
        self.add(items)

    def add(self, messages: Any) -> None:
        """Add complete messages; one seen before, in a subgraph or in chunks, is replaced."""
        items = [unwrap_langchain(item) for item in (messages if isinstance(messages, (list, tuple)) else [messages])]
        waiting: list[Any] = []
        for message in objects_in(items):
            place = self._places.get(_key(message))
            if place is None or not _is_same(self.messages[place], message):
                waiting.append(message)
                continue
            self.messages[place] = message
            # New messages before a known one are inserted before it.
            self.messages[place:place] = waiting
            waiting = []
            self._index()
        self.messages += waiting
        self._index()

    def _index(self) -> None:
        self._places = {key: at for at, item in enumerate(self.messages) if (key := _key(item))}

    def extend(self, item: Any) -> None:
        """Add a chunk to the last message if it has the same id, else start a message."""
        chunk = unwrap_langchain(item)
        if not isinstance(chunk, OBJECT):
            return
        if not _is_piece(chunk):
            self.add(chunk)
            return
        last: _Object = self.messages[-1] if self.messages else {}
        is_under_way = _is_piece(last)
        if is_under_way and (last.get("id") == chunk.get("id") or not any(chunk.get(key) for key in _PIECES)):
            self.messages[-1] = {**_join_chunks(last, chunk), "id": last.get("id")}
        else:
            self.messages.append(chunk)
            self._index()

    @property
    def calls(self) -> set[str]:
        """Ids of all calls."""
        calls = [
            call
            for message in objects_in(self.messages)
            for call in objects_in([*list_field(message, "tool_calls"), *list_field(message, "tool_call_chunks")])
        ]
        return {call["id"] for call in calls if isinstance(call.get("id"), str)}

    def finish(self) -> list[Any]:
        """Return the messages, with the calls of streamed ones assembled."""
        return [_with_parsed_calls(item) for item in self.messages]


def _key(message: _Object) -> str:
    own_id = message.get("id")
    return own_id if isinstance(own_id, str) else ""


def _is_same(before: _Object, after: _Object) -> bool:
    """Return whether a message was sent again; some models give the same id to all messages of a run."""
    if _is_piece(before):
        return True
    return (before.get("content"), before.get("tool_calls")) == (after.get("content"), after.get("tool_calls"))


def _join_chunks(first: _Object, second: _Object) -> dict[str, Any]:
    """Join two chunks of a message."""
    joined = {**first, **{key: value for key, value in second.items() if key not in _PIECES and value is not None}}
    joined["content"] = _join_content(first.get("content"), second.get("content"))
    joined["tool_call_chunks"] = [*list_field(first, "tool_call_chunks"), *list_field(second, "tool_call_chunks")]
    joined["usage_metadata"] = _add_counts(first.get("usage_metadata"), second.get("usage_metadata"))
    extra = [
        item for item in (first.get("response_metadata"), second.get("response_metadata")) if isinstance(item, OBJECT)
    ]
    joined["response_metadata"] = {key: value for item in extra for key, value in item.items()}
    return joined


def _join_content(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return first + second
    blocks = [[{"type": "text", "text": item}] if isinstance(item, str) and item else item for item in (first, second)]
    return [block for item in blocks if isinstance(item, (list, tuple)) for block in item]


def _add_counts(first: Any, second: Any) -> Any:
    """Sum the token counts of two chunks, as LangChain does."""
    if not isinstance(first, OBJECT) or not isinstance(second, OBJECT):
        return second if first is None else first
    sums = {**first, **second}
    for key in first.keys() & second.keys():
        if isinstance(first[key], OBJECT):
            sums[key] = _add_counts(first[key], second[key])
        elif isinstance(first[key], int) and isinstance(second[key], int):
            sums[key] = first[key] + second[key]
    return sums


def _with_parsed_calls(message: Any) -> Any:
    """Assemble the calls of a streamed message, whose arguments are pieces of a JSON text."""
    if not _is_piece(message):
        return message
    calls: dict[str, dict[str, Any]] = {}
    last: str | None = None
    for at, piece in enumerate(objects_in(list_field(message, "tool_call_chunks"))):
        index = piece.get("index")
        last = str(index) if index is not None else (f"at {at}" if piece.get("id") or last is None else last)
        call = calls.setdefault(last, {"name": "", "arguments": "", "id": None})
        for key, name in (("name", "name"), ("args", "arguments")):
            call[name] += piece[key] if isinstance(piece.get(key), str) else ""
        call["id"] = call["id"] or piece.get("id")
    parsed_calls = [
        {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"] or "{}"}}
        for call in calls.values()
    ]
    whole = {**message, "type": str(message["type"]).removesuffix("MessageChunk").lower()}
    if not parsed_calls:
        return whole
    extra = {key: value for key, value in whole.items() if key not in ("tool_call_chunks", "invalid_tool_calls")}
    return {**extra, "tool_calls": parsed_calls}


STREAM = ReplyFormat(name="langgraph", detect=_detect_stream, read=_read_stream, events=True)


_WAITS = "the graph waits for somebody (`__interrupt__`), and this is not its answer yet"


def _is_state(value: Any) -> bool:
    if not isinstance(value, OBJECT):
        return False
    return value.get("__error__") is not None or _holds_messages(value.get("messages"))


def _holds_messages(items: Any) -> bool:
    if not is_list(items):
        return False
    # Nearly all lists have messages with roles, or of LangChain, which needs no look at all formats.
    return are_messages(items) or LANGCHAIN.detect(items) or any(item.detect(items) for item in reply_formats())


def _detect(value: Any) -> bool:
    value = as_snapshot(value) or value
    if not isinstance(value, OBJECT):
        return False
    if _is_state(value.get("values")) or value.get("__error__") is not None or _is_output(value):
        return True
    items = value.get("messages")
    return isinstance(items, (list, tuple)) and any(is_langchain(unwrap_langchain(item)) for item in items)


def _is_output(value: _Object) -> bool:
    """Recognize a graph's output with its interrupts, as `invoke` of version 2 returns it."""
    return value.keys() == {"value", "interrupts"} and _is_state(value["value"])


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    value = as_snapshot(value) or value
    if _is_state(value):
        return _read_state(value, reader)
    if _is_output(value):
        return _read_state({**value["value"], "__interrupt__": value["interrupts"]}, reader)
    response = _read_state({**value["values"], **_interrupts(value)}, reader)
    extra = decode_fields({"metadata": {key: item for key, item in value.items() if key != "values"}})
    metadata = {**(extra.metadata or {}), **(response.metadata or {})} or None
    return replace(response, metadata=metadata, thread_id=response.thread_id or _thread_of(value))


def _interrupts(value: _Object) -> dict[str, Any]:
    """Return the interrupts of a snapshot and its tasks."""
    waiting = list(objects_in(value.get("interrupts")))
    waiting += [item for task in objects_in(value.get("tasks")) for item in objects_in(task.get("interrupts"))]
    return {"__interrupt__": waiting} if waiting else {}


def _thread_of(value: _Object) -> str | None:
    """Return the thread id of a snapshot."""
    config = value.get("config")
    places = [config.get("configurable") if isinstance(config, OBJECT) else None]
    places += [value.get("checkpoint"), value.get("metadata")]
    thread_ids = [place.get("thread_id") for place in objects_in(places)]
    return next((item for item in thread_ids if isinstance(item, str) and item), None)


def _read_state(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the messages of a state, and the general reply fields beside them."""
    error = _state_error(value)
    extra = decode_fields({key: item for key, item in value.items() if key not in ("messages", "__error__")})
    if not is_list(value.get("messages")):
        return replace(extra, success=False, error=error)
    response = join_responses(reader.read_messages(assemble_messages(value["messages"])), extra)
    if error is not None:  # the run was aborted, so its usage is unknown
        response = replace(response, tokens_usage=None)
    error = response.error or error
    waits = (_WAITS,) if value.get("__interrupt__") else ()
    response = mark_pending(response, value["__interrupt__"]) if waits else response
    return replace(
        response, success=response.success and error is None, error=error, warnings=(*response.warnings, *waits)
    )


def mark_pending(response: ProviderResponse, interrupts: Any) -> ProviderResponse:
    """Mark the calls that the graph waits for: those it asks about, else all without an output."""
    values = [item.get("value") for item in objects_in(interrupts)]
    requested = {name for item in objects_in(values) for name in texts_under("name", item.get("action_requests"))}
    messages = list(response.output_messages or ())
    for at, message in enumerate(messages):
        calls = tuple(
            replace(call, status="pending")
            if call.output is UNSET and call.status is None and (not requested or call.tool in requested)
            else call
            for call in message.tool_calls
        )
        messages[at] = message if calls == message.tool_calls else replace(message, tool_calls=calls)
    return replace(response, output_messages=tuple(messages))


def _state_error(value: _Object) -> ResponseError | None:
    """Read the error that LangGraph puts into a state instead of an answer."""
    error = value.get("__error__")
    if error is None:
        return None
    text = error.get("message") or error.get("error") if isinstance(error, OBJECT) else error
    return ResponseError(kind="agent", message=str(text))


def _detect_langserve(value: Any) -> bool:
    inner = value.get("output") if isinstance(value, OBJECT) else None
    return isinstance(inner, OBJECT) and (
        _is_state(inner)
        or is_message(inner)
        or is_langchain(unwrap_langchain(inner))
        or is_list(inner.get("intermediate_steps"))
    )


def _read_langserve(value: _Object, reader: ReplyReader) -> ProviderResponse:
    return reader.read(value["output"])


STATE = ReplyFormat(name="messages", detect=_is_state, read=_read_state)
FORMAT = ReplyFormat(name="langgraph", detect=_detect, read=_read)
LANGSERVE = ReplyFormat(
    name="langserve", detect=_detect_langserve, read=_read_langserve, keys=frozenset(("output", "metadata"))
)
