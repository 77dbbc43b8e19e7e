"""Conversion of objects of other libraries to plain data, without importing these libraries."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, to_builtins
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

from agentv.formats.canonical import are_plain
from agentv.formats.fields import MISSING_CALLS
from agentv.jsonio import dump_json, safe_str, scrub
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, Unread

Library = Literal["langchain", "openai_agents", "pydantic_ai", "adk"]

_LIBRARY_PACKAGES: dict[str, Library] = {
    "langchain_core.messages": "langchain",
    "pydantic_ai": "pydantic_ai",
    "agents.items": "openai_agents",
    "agents.result": "openai_agents",
    "google.adk": "adk",
}
"""Libraries by the package of a class; a user-defined class counts as the class that it is derived from."""
_PLAIN = frozenset((str, int, float, bool, type(None)))
_SERIALIZERS = ("to_dict", "toDict")
"""Serializing methods of objects that are neither pydantic models nor dataclasses."""
_MAX_LEVELS = 200
_MAX_SCANNED = 200
"""Number of parts of a value, outermost first, that are inspected if the value appears to be plain."""


def library_of(value: Any) -> Library | None:
    """Return the library that an object belongs to, by the modules of its classes."""
    for cls in type(value).__mro__:
        module = getattr(cls, "__module__", "")
        for package, library in _LIBRARY_PACKAGES.items():
            if module == package or module.startswith(f"{package}."):
                # Many projects have a package of their own named `agents`.
                is_theirs = library != "openai_agents" or hasattr(value, "raw_item") or hasattr(value, "new_items")
                return library if is_theirs else None
    return None


def is_class_of(value: Any, name: str, package: str) -> bool:
    """Return whether a value is an instance of the named class of a package, or of a class derived from it."""
    return any(
        cls.__name__ == name and (cls.__module__ == package or cls.__module__.startswith(f"{package}."))
        for cls in type(value).__mro__
    )


_SERIALIZER_PACKAGES = ("agent_framework.", "haystack.", "dspy.", "strands.telemetry.")
"""Packages whose classes serialize more than their fields."""


def is_object(value: Any) -> bool:
    """Return whether an object can be serialized: a pydantic model, a dataclass, or one with a serializing method."""
    return not isinstance(value, (type, Struct)) and (
        hasattr(type(value), "__dataclass_fields__")
        or callable(getattr(value, "model_dump", None))
        or _serializer_of(value) is not None
    )


def _preferred_serializer(value: Any) -> Any:
    """Return the serializing method of an object if it yields more than its fields; `None` otherwise."""
    is_better = any(
        f"{getattr(cls, '__module__', '')}.".startswith(_SERIALIZER_PACKAGES) for cls in type(value).__mro__
    )
    return _serializer_of(value) if is_better else None


def _serializer_of(value: Any) -> Any:
    """Return the serializing method of an object."""
    name = next((name for name in _SERIALIZERS if callable(getattr(type(value), name, None))), None)
    return None if name is None else getattr(value, name)


def plain_data(value: Any) -> Any:
    """Convert all objects of libraries in a value to plain data; return the value itself if it has none."""
    # An indexable object is accepted as a mapping by the first test, so the outer parts are inspected as well.
    if not _contains_objects(value, _MAX_SCANNED if are_plain((value,)) else None):
        return value
    return _convert(value, {}, _MAX_LEVELS)


def _contains_objects(value: Any, limit: int | None) -> bool:
    """Return whether a value contains serializable objects among its first `limit` parts."""
    todo, seen = deque([value]), set()
    while todo and (limit is None or limit > 0):
        limit = None if limit is None else limit - 1
        item = todo.popleft()
        kind = type(item)
        if kind in _PLAIN or isinstance(item, (Message, ProviderResponse)):
            continue
        if is_object(item) or _is_named_tuple(item):
            return True
        if isinstance(item, (dict, list, tuple)) and id(item) not in seen:
            seen.add(id(item))  # values may be cyclic or shared
            todo += item.values() if isinstance(item, dict) else item
    return False


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and isinstance(getattr(type(value), "_fields", None), tuple)


def _convert(value: Any, converted: dict[int, Any], levels: int) -> Any:
    """Copy a value to a maximum depth, each container once, with objects as plain data."""
    kind = type(value)
    if isinstance(value, (dict, list, tuple)) and not (is_object(value) or _is_named_tuple(value)):
        if id(value) not in converted:
            converted[id(value)] = value  # placeholder for a cyclic reference
            if levels > 0 and isinstance(value, dict):
                converted[id(value)] = {key: _convert(item, converted, levels - 1) for key, item in value.items()}
            elif levels > 0:
                converted[id(value)] = [_convert(item, converted, levels - 1) for item in value]
        return converted[id(value)]
    if kind in _PLAIN or isinstance(value, (Message, ProviderResponse)):
        return value
    if _is_named_tuple(value) and levels > 0:  # by field names, such as a `StateSnapshot`
        return {name: _convert(item, converted, levels - 1) for name, item in zip(value._fields, value, strict=True)}
    return _convert_object(value, converted, levels) if is_object(value) else value


def _convert_object(value: Any, converted: dict[int, Any], levels: int) -> Any:
    written = _write_object(value)
    if written is not None and levels > 0:
        return {name: _convert(item, converted, levels - 1) for name, item in written.items()}
    if library_of(value) == "openai_agents" and hasattr(value, "raw_item"):
        return plain_item(value)
    result = getattr(value, "result", None)
    if hasattr(value, "event_kind") and library_of(value) == "pydantic_ai" and hasattr(result, "new_messages"):
        return {"event_kind": plain(value.event_kind), "result": plain_result(result)}
    write = _preferred_serializer(value)  # which yields more than the fields of its class
    return plain(value if write is None else write())


def _write_object(value: Any) -> dict[str, Any] | None:
    """Return all fields of an object whose own serializer omits some; `None` for other objects."""
    module = getattr(type(value), "__module__", "")
    if module.startswith("agent_framework.") and type(value).__name__ == "WorkflowEvent":
        return {key: getattr(value, key, None) for key in ("type", "data", "executor_id", "state")}
    # The metrics of Strands hold more than their fields.
    fields = getattr(type(value), "__dataclass_fields__", None)
    if not module.startswith("strands.") or not isinstance(fields, dict):
        return None
    values = {name: getattr(value, name, None) for name in fields if not name.startswith("_")}
    metrics = values.get("metrics")
    summary = getattr(metrics, "get_summary", None)
    return {**values, "metrics": summary()} if callable(summary) else values


def plain_item(item: Any) -> dict[str, Any]:
    """Convert a run item of OpenAI Agents, without the agent and the tools that it refers to."""
    result: dict[str, Any] = {"type": getattr(item, "type", None), "raw_item": plain(getattr(item, "raw_item", None))}
    if result["type"] == "tool_call_output_item":  # the raw item has only the output that was sent to the model
        result["output"] = plain(getattr(item, "output", None))
    name = getattr(getattr(item, "agent", None), "name", None)
    return {**result, "agent": name} if isinstance(name, str) else result


def plain_result(result: Any) -> dict[str, Any]:
    """Convert the result of a pydantic-ai run, whose messages are not a field."""
    usage = getattr(result, "usage", None)
    usage = usage() if callable(usage) and not hasattr(usage, "input_tokens") else usage
    messages = [plain(message) for message in result.new_messages()]
    while messages and messages[0].get("kind") == "request":  # the prompt
        messages.pop(0)
    return {"messages": messages, "output": plain(getattr(result, "output", None)), "usage": plain(usage)}


def plain(value: Any) -> Any:
    """Copy a value as JSON data: models and dataclasses by their fields, other objects as text."""
    try:
        return _decode(_encode(value))
    except _ANY_ERROR:
        pass  # the fast path fails for some values
    try:
        return scrub(to_builtins(value, enc_hook=_plain_object))  # invalid UTF-8, or keys that are not strings
    except _ANY_ERROR:  # a cycle
        return scrub(value)


def final_output(output: Any, text: str) -> tuple[str, Any]:
    """Return an agent's answer as text, and its value if it is not a text; default to its last text."""
    if output is None or isinstance(output, str):
        return text if output is None else output, None
    value = plain(output)
    return dump_json(value).decode(), value


def mark_unfinished(response: ProviderResponse) -> ProviderResponse:
    """Mark the reply of a run that has not finished: later messages are missing."""
    place = Unread(path="run", reason=f"the run had not come to its end, {MISSING_CALLS}")
    return replace(response, unread=(*response.unread, place))


def dump_model(value: Any) -> Any:
    """Return the fields of a pydantic model that were set; `None` for other objects, or if it cannot be serialized."""
    try:
        dump = getattr(value, "model_dump", None)
        if not callable(dump) or isinstance(value, type):
            return None
        # Serialize by the class of each value: a field declared with a base class would lose fields.
        return dump(exclude_none=True, warnings=False, serialize_as_any=True)
    except Exception:  # noqa: BLE001, S110 - a version with other options, or its own serializer raised
        pass
    try:
        return value.model_dump(exclude_none=True, warnings=False)
    except TypeError:
        pass
    except Exception:  # noqa: BLE001 - its own serializer may raise anything
        return None
    try:
        return value.model_dump()
    except Exception:  # noqa: BLE001 - as above
        return None


def _plain_object(value: Any) -> Any:
    """Return a substitute for a value that is neither plain nor a dataclass."""
    write = _preferred_serializer(value)
    if write is not None:
        return write()
    if isinstance(value, Mapping):
        return dict(value)
    dumped = dump_model(value)
    if isinstance(dumped, dict):
        return dumped
    write = _serializer_of(value)
    if write is not None:
        return write()
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    return safe_str(value)


_encode = Encoder(enc_hook=_plain_object).encode
_decode = Decoder().decode
_ANY_ERROR = (Exception,)  # foreign objects may raise anything on access
