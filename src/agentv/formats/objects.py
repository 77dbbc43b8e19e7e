"""Objects of other people's libraries as plain data; none of these libraries is ever imported here."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import to_builtins
from msgspec.json import Decoder, Encoder

from agentv.jsonio import describe, dump_json, scrub

Library = Literal["langchain", "openai_agents", "pydantic_ai", "adk"]

_HOMES: dict[str, Library] = {
    "langchain_core.messages": "langchain",
    "pydantic_ai": "pydantic_ai",
    "agents.items": "openai_agents",
    "agents.result": "openai_agents",
    "google.adk": "adk",
}
"""By the package that a class comes from; a class of the user's own counts as what it is derived from."""


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
    """Give an agent's answer as a text, and its value where it is none; without one, the words it said last."""
    if output is None or isinstance(output, str):
        return words if output is None else output, None
    value = plain(output)
    return dump_json(value).decode(), value


def dump_model(value: Any) -> Any:
    """Give the fields of a pydantic model that were set to something; `None` when it is none, or will not tell."""
    try:
        dump = getattr(value, "model_dump", None)
        if not callable(dump) or isinstance(value, type):
            return None
        return dump(exclude_none=True, warnings=False)
    except TypeError:  # of another make, with other options
        pass
    except Exception:  # noqa: BLE001 - its own serialiser may raise anything
        return None
    try:
        return value.model_dump()
    except Exception:  # noqa: BLE001 - as above
        return None


def _plain_object(value: Any) -> Any:
    """Give a stand-in for a value that is neither plain nor a dataclass."""
    if isinstance(value, Mapping):
        return dict(value)
    dumped = dump_model(value)
    if isinstance(dumped, dict):
        return dumped
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    return describe(value)


_encode = Encoder(enc_hook=_plain_object).encode
_decode = Decoder().decode
_UNFIT = (Exception,)  # a foreign object may raise anything when it is asked for what it holds
