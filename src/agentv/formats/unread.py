"""Places of a reply that were not understood and may hold tool calls.

Elements of messages, content blocks and calls must be understood; an unread field anywhere else is harmless unless it
holds a value that looks like a call.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from agentv.formats.fields import (
    CALL_ID_KEYS,
    FINISH_KEYS,
    HARMLESS_TYPES,
    INPUT_KEYS,
    MISSING_CALLS,
    NAME_KEYS,
    OBJECT,
    Path,
    format_path,
    is_call_key,
    is_harmless_type,
    is_searched,
    to_snake_case,
)
from agentv.formats.plain_blocks import unknown_block_reasons
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.usage import counts_server_tools
from agentv.jsonio import safe_str
from agentv.model.conversation import Message, ToolCall, TraceEvent
from agentv.model.response import ProviderResponse, Unread

MAX_PLACES = 100
"""Maximum number of reported places."""
MAX_LEVELS = 8
"""Depth to which an unread field is searched for calls."""
MAX_NODES = 200_000
"""Maximum number of searched values per reply; if there are more, this is reported instead."""
_PLAIN_ROLES = frozenset(("assistant", "user", "system", "developer"))
WITHOUT_NAME = "a call without a name"
_TEXTS = frozenset((str, type(None)))
_LEAVES = frozenset((str, int, float, bool, type(None)))
_FINISH = frozenset(FINISH_KEYS)
_ENDS = _FINISH | {"usage", "tokens_usage", "tokensUsage", "usage_metadata", "usageMetadata"}
_RESULT_ROLES = frozenset(("tool", "function"))
_OWN_METADATA = frozenset(("thinking", "malformed", "shape", "agentv"))
"""Metadata keys that are written by this package and hold nothing unread."""
_PLAIN_METADATA = frozenset(("agent", "within_tool"))
_READ_OBJECTS = frozenset((
    *("response_metadata", "additional_kwargs", "provider_details", "provider_metadata", "vendor_details", "metadata"),
    *("annotations", "headers", "audio", "reasoning_details", "provider_options", "timings", "extra_content"),
))  # fmt: skip
"""Objects beside the content of a message that are not part of it."""
_PAYLOADS = frozenset(("type", "id", "data", "value"))
_SCHEMA_KEYS = frozenset(("properties", "$schema", "$defs", "additional_properties", "any_of", "all_of", "one_of"))
_SCHEMA_TYPES = frozenset(("object", "array", "string", "number", "integer", "boolean", "null"))
_NAMED_KEYS = 5
_MAX_DATA_LEVELS = 32
_ASKED = frozenset(("input", "inputs", "input_messages", "inputMessages", "prompt", "prompts"))
"""Keys of the request beside an answer."""
_NODE_KEYS = frozenset(("triggers", "nodeId", "typeVersion", "lc"))
"""Keys of nodes of graphs (LangGraph, Flowise, n8n) and of components (LangChain), which have names and inputs, too."""
_CALL_NAMES = frozenset(NAME_KEYS)
_CALL_PARTS = frozenset((*INPUT_KEYS, *CALL_ID_KEYS, "function"))
"""Keys of which an object that looks like a call has one each."""


def with_unread(response: ProviderResponse, prompt: Sequence[Message] = ()) -> ProviderResponse:
    """Return the reply with all places that were not understood; `prompt` holds the messages of the request."""
    messages, events = response.output_messages or (), response.trace or ()
    is_plain = _is_flat(response.metadata) and all(_is_flat(event.metadata) for event in events)
    if not response.unread and is_plain and _are_plain(messages):
        return response
    places = list(response.unread)
    calls = [call for message in messages for call in message.tool_calls]
    known = _CallIndex([*calls, *_calls_of(events)], prompt)
    search = _CallSearch(places, known)
    for position, message in enumerate(messages):
        if not _are_plain((message,)):
            search.message(message, ("output_messages", position))
    for position, event in enumerate(events):
        if event.metadata is not None:
            search.metadata(event.metadata, ("trace", position, "metadata"), known.calls)
    if response.metadata is not None:
        search.metadata(response.metadata, ("metadata",), known.calls)
        search.finish_reason(response.metadata, ("metadata",), known.calls)
    if not places:
        return response
    return replace(response, unread=_limit_places(dict.fromkeys(places)))


def _calls_of(events: Sequence[TraceEvent]) -> list[ToolCall]:
    """Return the calls of a trace, to recognise copies of them."""
    return [
        ToolCall(tool=event.name or "", input=event.input, id=event.id) for event in events if event.type == "tool_call"
    ]


def unread_fields(
    fields: Mapping[Any, Any], response: ProviderResponse, prompt: Sequence[Message] = ()
) -> list[Unread]:
    """Find calls in the unread fields of a reply; `prompt` holds the messages of the request."""
    calls = [call for message in response.output_messages or () for call in message.tool_calls]
    places: list[Unread] = []
    search = _CallSearch(places, _CallIndex(calls, prompt))
    for key, value in fields.items():
        search.field(str(key), value, (str(key),), calls)
    return places


def unread_of_turn(turn: ProviderResponse) -> tuple[Unread, ...]:
    """Return the unread places of one of several joined replies, including those outside its messages.

    Its messages are searched with those of all turns; its metadata, such as the finish reason, is not kept.
    """
    places = with_unread(turn).unread
    return (
        *turn.unread,
        *[place for place in places if place.path.startswith("metadata") and place not in turn.unread],
    )


def has_no_calls(value: Mapping[Any, Any]) -> bool:
    """Return whether an object, such as an event, has no value that looks like a call and no key about tools."""
    names = [safe_str(key).lower() for key, item in value.items() if item and not isinstance(item, (int, float))]
    if any(word in name for name in names for word in ("tool", "function", "action")):
        return False
    return not unread_fields({"item": dict(value)}, ProviderResponse())


def with_searched(
    response: ProviderResponse, values: Mapping[str, Any], prompt: Sequence[Message] = ()
) -> ProviderResponse:
    """Report the calls in values of a reply that were not kept; `values` maps their paths to them."""
    places = unread_fields(values, response, prompt)
    return replace(response, unread=(*response.unread, *places)) if places else response


def with_unread_fields(
    response: ProviderResponse, body: Mapping[Any, Any], keys: Collection[str], prompt: Sequence[Message] = ()
) -> ProviderResponse:
    """Report the calls in those fields of a body that its format does not read; `keys` are the fields it reads."""
    return with_searched(response, {key: value for key, value in body.items() if key not in keys}, prompt)


def with_dropped(response: ProviderResponse, data: Any, prompt: Sequence[Message] = ()) -> ProviderResponse:
    """Report the calls in the data of a reply of which no call was read and nothing else is known to be unread."""
    if response.unread or not response.success or _has_calls(response):
        return response
    places: list[Unread] = []
    _CallSearch(places, _CallIndex((), prompt)).dropped(data, (), _MAX_DATA_LEVELS)
    return replace(response, unread=_limit_places(places)) if places else response


def _has_calls(response: ProviderResponse) -> bool:
    calls = [message.tool_calls for message in response.output_messages or ()]
    return response.trace_summary is not None or any(calls) or bool(_calls_of(response.trace or ()))


def call_in(value: Mapping[Any, Any]) -> tuple[str, Any] | None:
    """Return the name and the input of an object that looks like a call; `None` for other objects."""
    call = _as_call(value)
    return None if call is None or call.name is None else (call.name, call.input)


def _limit_places(places: Iterable[Unread]) -> tuple[Unread, ...]:
    limited = tuple(places)
    if len(limited) <= MAX_PLACES:
        return limited
    more = Unread(path="reply", reason=f"{len(limited) - MAX_PLACES + 1} more places were not understood")
    return (*limited[: MAX_PLACES - 1], more)


def _is_flat(metadata: Mapping[Any, Any] | None) -> bool:
    """Return whether metadata has neither lists and objects nor a finish reason."""
    if metadata is None:
        return True
    return _FINISH.isdisjoint(metadata) and _LEAVES.issuperset(map(type, metadata.values()))


def _are_plain(messages: Sequence[Message]) -> bool:
    """Return whether messages cannot hold anything unread, which is the common case."""
    for message in messages:
        if message.role not in _PLAIN_ROLES or type(message.content) not in _TEXTS:
            return False
        if message.metadata is not None and not _is_plain_metadata(message.metadata):
            return False
        for call in message.tool_calls:
            if not call.tool or call.metadata is not None:
                return False
    return True


def _is_plain_metadata(metadata: Mapping[str, Any]) -> bool:
    """Return whether metadata hold only the names of agents and tools, as in sessions that were made of spans."""
    return metadata.keys() <= _PLAIN_METADATA and all(isinstance(value, str) for value in metadata.values())


class _CallIndex:
    """The calls that were read, to recognise copies of them."""

    def __init__(self, calls: Sequence[ToolCall], prompt: Sequence[Message]) -> None:
        self.calls = calls
        before = [call for message in prompt for call in message.tool_calls]
        self.ids = {call.id for call in (*calls, *before) if call.id is not None}
        self.names = {call.tool for call in (*calls, *before)}


class _FoundCall(Struct, frozen=True):
    """The properties of an object that looks like a call."""

    name: str | None
    input: Any
    ids: tuple[str, ...]


class _CallSearch:
    """One search through a reply, which appends the places it finds to a list."""

    def __init__(self, places: list[Unread], known: _CallIndex) -> None:
        self._places = places
        self._known = known
        self._nodes = 0

    def _add(self, path: Path, reason: str) -> None:
        self._places.append(Unread(path=format_path(path), reason=reason))

    def _is_full(self, path: Path) -> bool:
        """Count a value, and return whether too many were searched."""
        self._nodes += 1
        if self._nodes == MAX_NODES:
            self._add(path, f"more than {MAX_NODES:,} unread values, the rest was not searched, {MISSING_CALLS}")
        return self._nodes >= MAX_NODES

    def message(self, message: Message, path: Path) -> None:
        """Check one message: its role, content, calls and metadata."""
        role, metadata = message.role, message.metadata or {}
        if role in _RESULT_ROLES and not message.tool_calls:
            self._result(message, path)
        elif role not in _RESULT_ROLES and ("tool" in role.lower() or "function" in role.lower()):
            self._add(path, f"a message of role {role[:60]!r} was not understood, {MISSING_CALLS}")
        elif not role:
            self._item(message, metadata, path)
        before = len(self._places)
        if not isinstance(message.content, str):
            for position, block in enumerate(message.content or ()):
                self.block(block, (*path, "content", position), message.tool_calls)
        for position, call in enumerate(message.tool_calls):
            self._call(call, (*path, "tool_calls", position))
        fields = metadata if message.name is None else {"name": message.name, **metadata}
        nested_call = _as_call(fields)
        if nested_call is not None and not self._was_read(nested_call, message.tool_calls):
            self._add(path, _call_reason(nested_call))
        self.metadata(metadata, (*path, "metadata"), message.tool_calls)
        self.finish_reason(metadata, (*path, "metadata"), message.tool_calls)
        if role == "assistant" and len(self._places) == before and _is_empty(message):
            self._add(
                path, f"nothing of an assistant message with {_list_keys(metadata)} was understood, {MISSING_CALLS}"
            )

    def _item(self, message: Message, metadata: Mapping[str, Any], path: Path) -> None:
        """Check an element that is not a message: by its type, else by its content."""
        kind = metadata.get("type")
        if isinstance(kind, str) and kind:
            if not is_harmless_type(kind):
                self._add(path, unknown_block_reasons(kind)[0])
            return
        fields = metadata if message.name is None else {"name": message.name, **metadata}
        if message.content is None and not message.tool_calls and fields and not any(map(_is_payload, fields)):
            self._add(path, f"an object with {_list_keys(fields)} was not understood, {MISSING_CALLS}")

    def _result(self, message: Message, path: Path) -> None:
        call_id, name = message.tool_call_id, message.name
        if call_id in self._known.ids if call_id is not None else name is not None and name in self._known.names:
            return
        of = "" if call_id is None and name is None else f" {(call_id if call_id is not None else name)!r}"
        self._add(path, f"the result of a call{of} that was not read, {MISSING_CALLS}")

    def _call(self, call: ToolCall, path: Path) -> None:
        if not call.tool:
            self._add(path, WITHOUT_NAME)
        if call.metadata is not None:
            self.metadata(call.metadata, (*path, "metadata"), self._known.calls)

    def block(self, block: Any, path: Path, calls: Sequence[ToolCall]) -> None:
        """Check one content block: by its type, else by its keys."""
        if not isinstance(block, OBJECT):
            if not isinstance(block, str):
                self._add(path, f"a block that is no object was not understood, {MISSING_CALLS}")
            return
        kind = block.get("type")
        if kind == "non_standard":
            self._check_wrapped(block, path, calls)
        elif isinstance(kind, str) and kind:
            if is_harmless_type(kind):
                self._fields(block, path, calls)
            else:
                self._add(path, unknown_block_reasons(kind)[0])
        else:
            keys = [str(key) for key, value in block.items() if value is not None]
            if not keys:
                return
            if any(map(_is_payload, keys)):
                self._fields(block, path, calls)
            elif len(keys) == 1:
                self._add(path, unknown_block_reasons(keys[0])[1])
            else:
                self._add(path, f"a block with {_list_keys(block)} was not understood, {MISSING_CALLS}")

    def _check_wrapped(self, block: Mapping[Any, Any], path: Path, calls: Sequence[ToolCall]) -> None:
        """Check a vendor's block inside a LangChain block."""
        inner = block.get("value")
        if isinstance(inner, OBJECT):
            if not self._was_read(_as_call(inner), calls):
                self.block(inner, (*path, "value"), calls)
        elif inner is not None:
            self._add(path, unknown_block_reasons("non_standard")[0])

    def _fields(self, block: Mapping[Any, Any], path: Path, calls: Sequence[ToolCall]) -> None:
        """Check the fields of a block besides its payload."""
        for key, value in block.items():
            if to_snake_case(str(key)) not in _PAYLOADS and not _is_payload(key):
                self.field(str(key), value, (*path, str(key)), calls)

    def metadata(self, metadata: Mapping[Any, Any], path: Path, calls: Sequence[ToolCall]) -> None:
        """Check the unread fields of a message, a call or a reply."""
        for key, value in metadata.items():
            if key not in _OWN_METADATA:
                self.field(str(key), value, (*path, str(key)), calls)

    def finish_reason(self, metadata: Mapping[Any, Any], path: Path, calls: Sequence[ToolCall]) -> None:
        """Check that a model that stopped to call a tool, or whose server counts calls of tools, has called one."""
        if calls:
            return
        if not self._known.calls and counts_server_tools(metadata):
            self._add(path, f"uses of the server's tools are counted, and no call was read, {MISSING_CALLS}")
        nested = metadata.get("response_metadata")
        for place in (metadata, nested if isinstance(nested, OBJECT) else {}):
            for key in FINISH_KEYS:
                word = place.get(key)
                if isinstance(word, str) and ("tool" in word.lower() or "function" in word.lower()):
                    self._add((*path, key), f"the model stopped by {word[:60]!r} and no call was read, {MISSING_CALLS}")
                    return

    def field(self, key: str, value: Any, path: Path, calls: Sequence[ToolCall], levels: int = MAX_LEVELS) -> None:
        """Check an unread field: its key and its value."""
        if not isinstance(value, (dict, list, tuple)) or not value or not is_searched(key):
            return
        if is_call_key(key):
            if not self._are_all_known(value, calls):
                self._add(path, f"calls under the key {key[:60]!r} were not understood, {MISSING_CALLS}")
            return
        self._value(value, path, calls, levels)

    def _value(self, value: Any, path: Path, calls: Sequence[ToolCall], levels: int) -> None:
        if self._is_full(path) or levels <= 0:
            return
        if isinstance(value, (list, tuple)):
            for position, item in enumerate(value):
                if isinstance(item, (dict, list, tuple)):
                    self._value(item, (*path, position), calls, levels - 1)
            return
        call = _as_call(value)
        if call is not None:
            if not self._was_read(call, calls):
                self._add(path, _call_reason(call))
            return
        for key, item in value.items():
            self.field(str(key), item, (*path, str(key)), calls, levels - 1)

    def dropped(self, value: Any, path: Path, levels: int, *, is_node: bool = False) -> None:
        """Check the data of a whole reply, parts of which its format may have dropped.

        `is_node` tells that the object around it is a node of a graph.
        """
        if self._is_full(path) or not levels:
            return
        if isinstance(value, (list, tuple)):
            for position, item in enumerate(value):
                if isinstance(item, (dict, list, tuple)):
                    self.dropped(item, (*path, position), levels - 1)
            return
        if not _ENDS.isdisjoint(value):
            self.finish_reason(value, path, self._known.calls)
        has_node_keys = not _NODE_KEYS.isdisjoint(value)
        call = None if is_node or has_node_keys else _as_call(value)
        if call is None:
            for key, item in _kept_fields(value):
                if is_call_key(key):
                    self.field(key, item, (*path, key), self._known.calls)
                else:
                    self.dropped(item, (*path, key), levels - 1, is_node=has_node_keys)
        elif not self._was_read(call, self._known.calls):
            self._add(path, _call_reason(call))

    def _are_all_known(self, value: Any, calls: Sequence[ToolCall]) -> bool:
        """Return whether all elements under a call key are calls that were read, or their results."""
        items = value if isinstance(value, (list, tuple)) else [value]
        return all(self._is_known(item, calls, MAX_LEVELS) for item in items if item not in (None, {}, [], ""))

    def _is_known(self, item: Any, calls: Sequence[ToolCall], levels: int) -> bool:
        if isinstance(item, (list, tuple)):
            boxes = [box for box in item if isinstance(box, (dict, list, tuple)) and box]
            return levels > 0 and bool(boxes) and all(self._is_known(box, calls, levels - 1) for box in boxes)
        if not isinstance(item, dict):
            return False
        call = _as_call(item, any_id=True)
        if call is not None:
            return self._was_read(call, calls)
        boxes = [box for box in item.values() if isinstance(box, (dict, list, tuple)) and box]
        return levels > 0 and bool(boxes) and all(self._is_known(box, calls, levels - 1) for box in boxes)

    def _was_read(self, candidate: _FoundCall | None, calls: Sequence[ToolCall]) -> bool:
        """Return whether a call was read elsewhere: by its id, else by name and input in the same message."""
        if candidate is None:
            return False
        if candidate.ids:
            return any(id_ in self._known.ids for id_ in candidate.ids)
        return any(call.tool == candidate.name and _same_input(call.input, candidate.input) for call in calls)


def _kept_fields(value: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the lists and objects of an object that an agent may keep calls in."""
    kind = value.get("type")
    is_block = isinstance(kind, str) and is_harmless_type(kind)
    for key, item in value.items():
        if not isinstance(item, (dict, list, tuple)) or not item:
            continue
        name = safe_str(key)
        if (
            is_searched(name)
            and not (name in _ASKED or _has_none(item))
            and not (is_block and (to_snake_case(name) in _PAYLOADS or _is_payload(key)))
        ):
            yield name, item


def _has_none(value: Any) -> bool:
    """Return whether an object says that it has no calls: by an empty list, and without other values with parts."""
    is_said = isinstance(value, dict) and value.get("calls") == [] and _as_call(value) is None
    return is_said and not any(item and isinstance(item, (dict, list, tuple)) for item in value.values())


def _as_call(value: Mapping[Any, Any], *, any_id: bool = False) -> _FoundCall | None:
    """Read an object that looks like a call: a name with an input or a call id.

    With `any_id` the id alone is sufficient, as for a result under a key that holds only results.
    """
    if not any_id and (_CALL_NAMES.isdisjoint(value) or _CALL_PARTS.isdisjoint(value)):
        return None
    inner = value.get("function")
    if isinstance(inner, OBJECT):
        nested = _as_call(inner)
        return None if nested is None else replace(nested, ids=(*nested.ids, *_ids(value)))
    name = next((text for key in NAME_KEYS if isinstance(text := value.get(key), str) and text), None)
    key = next((key for key in INPUT_KEYS if _is_input(value.get(key))), None)
    referred = any(isinstance(value.get(key), str) and value[key] for key in CALL_ID_KEYS)
    if (name is None or (key is None and not referred)) and not (any_id and _ids(value)):
        return None
    return _FoundCall(name, UNSET if key is None else value[key], _ids(value))


def _ids(value: Mapping[Any, Any]) -> tuple[str, ...]:
    return tuple(text for key in ("id", *CALL_ID_KEYS) if isinstance(text := value.get(key), str) and text)


def _is_input(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value)
    return (isinstance(value, OBJECT) and not is_schema(value)) or (isinstance(value, (list, tuple)) and bool(value))


def is_schema(value: Mapping[Any, Any]) -> bool:
    """Return whether an object is a JSON Schema, the definition of an input."""
    kind = value.get("type")
    words = {to_snake_case(str(key)) for key in value}
    return bool(words & _SCHEMA_KEYS) or (isinstance(kind, str) and kind in _SCHEMA_TYPES and len(value) == 1)


def _same_input(left: Any, right: Any) -> bool:
    left, right = (parse_arguments(value)[0] if isinstance(value, str) else value for value in (left, right))
    try:
        return bool(left == right)
    except Exception:  # noqa: BLE001 - foreign values may raise anything on comparison
        return False


def _call_reason(call: _FoundCall) -> str:
    name = "" if call.name is None else f" of {call.name[:60]!r}"
    return f"an object that looks like a call{name} was not understood, {MISSING_CALLS}"


def _is_payload(key: Any) -> bool:
    return isinstance(key, str) and to_snake_case(key) in HARMLESS_TYPES


def _is_empty(message: Message) -> bool:
    """Return whether nothing of an assistant message was read although it has lists or objects beside its content."""
    if message.text or message.tool_calls or message.content:
        return False
    return any(
        isinstance(value, (dict, list, tuple)) and value and is_searched(str(key)) and not _is_beside(str(key))
        for key, value in (message.metadata or {}).items()
    )


def _is_beside(key: str) -> bool:
    return key in _OWN_METADATA or to_snake_case(key) in _READ_OBJECTS or _is_payload(key)


def _list_keys(value: Mapping[Any, Any]) -> str:
    keys = [repr(safe_str(key)[:60]) for key, item in value.items() if item is not None]
    if not keys:
        return "no keys"
    more = ", …" if len(keys) > _NAMED_KEYS else ""
    return f"the key{'s' if len(keys) > 1 else ''} {', '.join(keys[:_NAMED_KEYS])}{more}"
