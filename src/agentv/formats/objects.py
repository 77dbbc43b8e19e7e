"""Objects of other libraries as plain data; none of these libraries is ever imported here."""

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

_HOMES: dict[str, Library] = {
    "langchain_core.messages": "langchain",
    "pydantic_ai": "pydantic_ai",
    "agents.items": "openai_agents",
    "agents.result": "openai_agents",
    "google.adk": "adk",
}
"""By the package that a class comes from; a class of the user's own counts as what it is derived from."""
_PLAIN = frozenset((str, int, float, bool, type(None)))
_WRITERS = ("to_dict", "toDict")
"""Methods by which objects that are neither pydantic models nor dataclasses write their fields."""
_MAX_LEVELS = 200
_LOOKED_AT = 200
"""Parts of a value, the outer ones first, that are looked at where all of it seems to be plain."""


def library_of(value: Any) -> Library | None:
    """Tell whose object this is, by where its classes were written."""
    for cls in type(value).__mro__:
        module = getattr(cls, "__module__", "")
        for home, library in _HOMES.items():
            if module == home or module.startswith(f"{home}."):
                # Many a project calls a package of its own `agents`.
                is_theirs = library != "openai_agents" or hasattr(value, "raw_item") or hasattr(value, "new_items")
                return library if is_theirs else None
    return None


def is_class_of(value: Any, name: str, home: str) -> bool:
    """Tell whether a value is of the class of this name, or of one derived from it, in that package."""
    return any(
        cls.__name__ == name and (cls.__module__ == home or cls.__module__.startswith(f"{home}."))
        for cls in type(value).__mro__
    )


_OWN_WRITERS = ("agent_framework.", "haystack.", "dspy.", "strands.telemetry.")
"""Packages whose classes write more than their fields."""


def is_object(value: Any) -> bool:
    """Tell an object that can be written by its fields: a pydantic model, a dataclass, or one that does it itself."""
    return not isinstance(value, (type, Struct)) and (
        hasattr(type(value), "__dataclass_fields__")
        or callable(getattr(value, "model_dump", None))
        or _written_by(value) is not None
    )


def _writer_of(value: Any) -> Any:
    """Return the method that writes an object of a library better than its fields would; `None` when it has none."""
    is_better = any(f"{getattr(cls, '__module__', '')}.".startswith(_OWN_WRITERS) for cls in type(value).__mro__)
    return _written_by(value) if is_better else None


def _written_by(value: Any) -> Any:
    """Return the method by which an object writes itself."""
    name = next((name for name in _WRITERS if callable(getattr(type(value), name, None))), None)
    return None if name is None else getattr(value, name)


def plain_data(value: Any) -> Any:
    """Return a value with every object of a library in it as plain data; a value without any is returned itself."""
    # An object that can be indexed passes for a mapping at first: the beginning is looked at more closely.
    if not _holds_objects(value, _LOOKED_AT if are_plain((value,)) else None):
        return value
    return _converted(value, {}, _MAX_LEVELS)


def _holds_objects(value: Any, limit: int | None) -> bool:
    """Tell whether objects that can be written by their fields stand in a value, among so many of its parts."""
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
            seen.add(id(item))  # a value may hold itself, or others many times over
            todo += item.values() if isinstance(item, dict) else item
    return False


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and isinstance(getattr(type(value), "_fields", None), tuple)


def _converted(value: Any, done: dict[int, Any], levels: int) -> Any:
    """Copy a value down to so many levels, each container once, with objects as plain data."""
    kind = type(value)
    if isinstance(value, (dict, list, tuple)) and not (is_object(value) or _is_named_tuple(value)):
        if id(value) not in done:
            done[id(value)] = value  # in place of itself, where it holds itself
            if levels > 0 and isinstance(value, dict):
                done[id(value)] = {key: _converted(item, done, levels - 1) for key, item in value.items()}
            elif levels > 0:
                done[id(value)] = [_converted(item, done, levels - 1) for item in value]
        return done[id(value)]
    if kind in _PLAIN or isinstance(value, (Message, ProviderResponse)):
        return value
    if _is_named_tuple(value) and levels > 0:  # by the names of its fields, as a `StateSnapshot`
        return {name: _converted(item, done, levels - 1) for name, item in zip(value._fields, value, strict=True)}
    return _converted_object(value, done, levels) if is_object(value) else value


def _converted_object(value: Any, done: dict[int, Any], levels: int) -> Any:
    written = _written(value)
    if written is not None and levels > 0:
        return {name: _converted(item, done, levels - 1) for name, item in written.items()}
    if library_of(value) == "openai_agents" and hasattr(value, "raw_item"):
        return plain_item(value)
    result = getattr(value, "result", None)
    if hasattr(value, "event_kind") and library_of(value) == "pydantic_ai" and hasattr(result, "new_messages"):
        return {"event_kind": plain(value.event_kind), "result": plain_result(result)}
    write = _writer_of(value)  # which says more than the fields of its class
    return plain(value if write is None else write())


def _written(value: Any) -> dict[str, Any] | None:
    """Return the fields of an object that does not write all of them itself; `None` for others."""
    module = getattr(type(value), "__module__", "")
    if module.startswith("agent_framework.") and type(value).__name__ == "WorkflowEvent":
        return {key: getattr(value, key, None) for key in ("type", "data", "executor_id", "state")}
    # Strands' metrics hold more than their fields.
    fields = getattr(type(value), "__dataclass_fields__", None)
    if not module.startswith("strands.") or not isinstance(fields, dict):
        return None
    found = {name: getattr(value, name, None) for name in fields if not name.startswith("_")}
    metrics = found.get("metrics")
    summary = getattr(metrics, "get_summary", None)
    return {**found, "metrics": summary()} if callable(summary) else found


def plain_item(item: Any) -> dict[str, Any]:
    """Write a run item of OpenAI Agents without the agent, the tools and all else that hangs on it."""
    found: dict[str, Any] = {"type": getattr(item, "type", None), "raw_item": plain(getattr(item, "raw_item", None))}
    if found["type"] == "tool_call_output_item":  # the item beneath has only what the model was told of it
        found["output"] = plain(getattr(item, "output", None))
    name = getattr(getattr(item, "agent", None), "name", None)
    return {**found, "agent": name} if isinstance(name, str) else found


def plain_result(result: Any) -> dict[str, Any]:
    """Write the result of a run of pydantic-ai's, whose messages are no field of it."""
    usage = getattr(result, "usage", None)
    usage = usage() if callable(usage) and not hasattr(usage, "input_tokens") else usage
    messages = [plain(message) for message in result.new_messages()]
    while messages and messages[0].get("kind") == "request":  # what the agent was asked
        messages.pop(0)
    return {"messages": messages, "output": plain(getattr(result, "output", None)), "usage": plain(usage)}


def plain(value: Any) -> Any:
    """Copy a value as what JSON knows: models by their fields, dataclasses too, anything else by its words."""
    try:
        return _decode(_encode(value))
    except _UNFIT:
        pass  # the quick way is for most values, not for all
    try:
        return scrub(to_builtins(value, enc_hook=_plain_object))  # text that UTF-8 cannot hold, or keys that are none
    except _UNFIT:  # a circle
        return scrub(value)


def final_output(output: Any, words: str) -> tuple[str, Any]:
    """Return an agent's answer as a text, and its value where it is none; without one, the words it said last."""
    if output is None or isinstance(output, str):
        return words if output is None else output, None
    value = plain(output)
    return dump_json(value).decode(), value


def mark_unfinished(response: ProviderResponse) -> ProviderResponse:
    """Return the reply of a run that is still under way: whatever comes is not in it."""
    place = Unread(path="run", reason=f"the run had not come to its end, {MISSING_CALLS}")
    return replace(response, unread=(*response.unread, place))


def dump_model(value: Any) -> Any:
    """Return the fields of a pydantic model that were set to something; `None` when it is none, or will not tell."""
    try:
        dump = getattr(value, "model_dump", None)
        if not callable(dump) or isinstance(value, type):
            return None
        # By the class of each value: a field declared with a base class would lose what the value has more.
        return dump(exclude_none=True, warnings=False, serialize_as_any=True)
    except Exception:  # noqa: BLE001, S110 - of another make with other options, or its own serialiser raised
        pass
    try:
        return value.model_dump(exclude_none=True, warnings=False)
    except TypeError:
        pass
    except Exception:  # noqa: BLE001 - its own serialiser may raise anything
        return None
    try:
        return value.model_dump()
    except Exception:  # noqa: BLE001 - as above
        return None


def _plain_object(value: Any) -> Any:
    """Return a stand-in for a value that is neither plain nor a dataclass."""
    write = _writer_of(value)
    if write is not None:
        return write()
    if isinstance(value, Mapping):
        return dict(value)
    dumped = dump_model(value)
    if isinstance(dumped, dict):
        return dumped
    write = _written_by(value)
    if write is not None:
        return write()
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    return safe_str(value)


_encode = Encoder(enc_hook=_plain_object).encode
_decode = Decoder().decode
_UNFIT = (Exception,)  # a foreign object may raise anything when it is asked for what it holds
