"""Read one foreign object field by field; the report of everything odd in a reply."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta, convert

from agentv.jsonio import CONVERT_ERRORS, DEPTH_MARKER, TOO_LONG, is_deep, replace_surrogates, safe_str, truncate_depth
from agentv.model.response import Unread

Path = tuple[str | int, ...]
OBJECT = (dict, Mapping)
"""For `isinstance`, which knows a dict at once and asks an abstract class only about the rest."""
Number = Annotated[float, Meta(ge=0, le=1e308)]
"""A time or a cost that JSON can hold: these bounds keep out infinities and NaN, and less than nothing."""

MISSING_CALLS = "so calls may be missing"
MAX_WARNINGS = 100
"""A reply that is wrong in more places than this is not made clearer by naming them all."""
_MAX_SHOWN = 60
_MAX_ID_BITS = 64


class Report:
    """What was wrong with a reply, gathered while it is read."""

    __slots__ = ("_unread", "_warnings", "malformed", "server_tool_uses", "untold")

    def __init__(self) -> None:
        self._warnings: list[str] = []
        self._unread: list[Unread] = []
        self.server_tool_uses = 0
        """How many calls of its own tools the vendor counted."""
        self.untold = 0
        self.malformed: list[Any] = []
        """Pieces that could not be read at all."""

    def warn(self, path: Path, text: str) -> None:
        """Note what is wrong and where."""
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(whole_text(f"{render(path)}: {text}"))
        else:
            self.untold += 1

    def skip(self, path: Path, what: str) -> None:
        """Note a place that was not understood and may hold calls; `what` stands there."""
        if len(self._unread) < MAX_WARNINGS:
            self._unread.append(Unread(path=render(path), reason=f"{what} was not understood, {MISSING_CALLS}"))

    def reject(self, path: Path, expected: str, value: Any) -> None:
        """Note an element of a walked list that is not what it must be: it is kept, and calls may be in it."""
        self.refuse(path, expected, value)
        if value and not isinstance(value, (int, float)):
            self.skip(path, show(value))
        self.malformed.append(self.limit(value, path))

    def unread(self, calls_read: bool) -> tuple[Unread, ...]:  # noqa: FBT001 - the one thing that matters here
        """All places that were not understood."""
        if self.server_tool_uses and not calls_read:
            counted = f"{self.server_tool_uses} uses of the server's tools are counted, and no call was read"
            place = Unread(path="tokens_usage", reason=f"{counted}, {MISSING_CALLS}")
            return (*self._unread, place)
        return tuple(self._unread)

    def refuse(self, path: Path, expected: str, value: Any) -> None:
        """Note that a value is not what the contract expects at this place."""
        self.warn(path, f"expected {expected}, got {show(value)}")

    def whole(self, text: str, path: Path) -> str:
        """Give the text, or a copy that UTF-8 can hold; of a subclass of str, such as an enum's, a plain one."""
        text = text if type(text) is str else str.__str__(text)
        whole = whole_text(text)
        if whole is not text:
            self.warn(path, "lone surrogates are replaced")
        return whole

    def limit(self, value: Any, path: Path, *, may_hold_calls: bool = False) -> Any:
        """Return the value, or a copy cut off where it is nested too deeply."""
        if isinstance(value, (dict, list, tuple)) and is_deep(value):
            self.warn(path, f"cut off, {DEPTH_MARKER[1:-1]}")
            if may_hold_calls:
                self.skip(path, f"what is {DEPTH_MARKER[1:-1]}")
            return truncate_depth(value)
        return value

    @property
    def warnings(self) -> tuple[str, ...]:
        """All warnings, the last of them a count when there were too many."""
        more = (f"and {self.untold} more",) if self.untold else ()
        return (*self._warnings, *more)


def render(path: Path) -> str:
    """Write a path as `output_messages[3].tool_calls[0].tool`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".") or "reply"


def whole_text(text: str) -> str:
    """Give the text itself, or a copy with U+FFFD in place of each lone surrogate."""
    return text if text.isascii() else replace_surrogates(text)


def show(value: Any) -> str:
    """Name a value in a few words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= _MAX_SHOWN else f'"{value[:_MAX_SHOWN]}…"'
    if isinstance(value, (int, float)):
        return str(value) if isinstance(value, float) or abs(value) < 10**_MAX_SHOWN else TOO_LONG
    if isinstance(value, OBJECT):
        return "an object"
    return "a list" if isinstance(value, (list, tuple)) else f"a value of type {type(value).__name__!r}"


def objects_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list; what is no list holds none."""
    if isinstance(value, (list, tuple)):
        yield from (item for item in value if isinstance(item, OBJECT))


def word(value: Any) -> str:
    """Return a value that says what something is, such as a type or a status; anything but a text says nothing."""
    return value if isinstance(value, str) else ""


def number_or_none(value: Any) -> float | None:
    """Return a time or a cost; `None` for any other value."""
    try:
        return convert(value, Number)
    except CONVERT_ERRORS:
        return None


def texts_under(key: str, items: Any) -> set[str]:
    """Return the texts that the objects of a list have under a key."""
    return {each for item in objects_in(items) if isinstance(each := item.get(key), str)}


def is_count(value: Any) -> bool:
    """Tell whether a value is a whole number of at least 0 that can be shown."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**_MAX_SHOWN


class Fields:
    """The fields of one foreign object under the contract's names, and whatever else stood on it."""

    __slots__ = ("_keys", "_known", "_rest", "path", "report")

    def __init__(self, raw: Mapping[Any, Any], names: Mapping[str, str], path: Path, report: Report) -> None:
        self.path = path
        self.report = report
        self._known: dict[str, Any] = {}
        self._keys: dict[str, str] = {}
        self._rest: dict[str, Any] = {}
        aliases: list[str] = []
        for key, value in raw.items():
            name = names.get(key)
            if name is None:
                self.keep(self._name(key), value)
            elif name == key:
                self._known[name] = value
            else:
                aliases.append(key)
        for key in aliases:
            self._read_alias(names[key], key, raw[key])

    def _name(self, key: Any) -> str:
        name = key if isinstance(key, str) else safe_str(key)
        if name == TOO_LONG:
            self.report.warn(self.path, f"expected names, got {TOO_LONG}")
        return self.report.whole(name, (*self.path, name))

    def _read_alias(self, name: str, key: str, value: Any) -> None:
        # A canonical null says nothing that an alias with a value could contradict.
        if self._known.get(name) is None:
            self._known[name] = value
            self._keys[name] = key
        elif value is not None:
            self.keep(key, value)

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def get(self, name: str) -> Any:
        """Give a field as it stands; `None` when it is missing."""
        return self._known.get(name)

    def keep(self, key: str, value: Any) -> None:
        """Keep a value that the contract has no place for; it ends up in the metadata."""
        while key in self._rest:
            key += "_"
        self._rest[key] = self.report.whole(value, (*self.path, key)) if isinstance(value, str) else value

    def keep_field(self, name: str) -> None:
        """Keep a field of the contract's that cannot be used, under the key that it came with."""
        self.keep(self._keys.get(name, name), self._known[name])

    def refuse(self, name: str, expected: str) -> None:
        """Report a field that is not what the contract expects, and keep it; from now on it is missing."""
        self.report.refuse((*self.path, name), expected, self._known[name])
        self.keep_field(name)
        del self._known[name]

    def anything(self, name: str, default: Any = None) -> Any:
        """Read a field that may hold any value."""
        if name not in self._known:
            return default
        return self.report.limit(self._known[name], (*self.path, name))

    def text(self, name: str) -> str | None:
        """Read a field that holds a string."""
        value = self._known.get(name)
        if value is None:
            return None
        if isinstance(value, str):
            return self.report.whole(value, (*self.path, name))
        self.refuse(name, "a string")
        return None

    def identity(self, name: str) -> str | None:
        """Read a field that holds an id: one that is a number pairs as its digits do, and is kept as it came."""
        value = self._known.get(name)
        if type(value) is not int or value.bit_length() > _MAX_ID_BITS:
            return self.text(name)
        self.refuse(name, "a string")
        self._known[name] = text = str(value)
        return text

    def number(self, name: str) -> float | None:
        """Read a field that holds a time or a cost."""
        value = self._known.get(name)
        if value is None:
            return None
        try:
            return convert(value, Number)
        except CONVERT_ERRORS:  # text with lone surrogates among them
            self.refuse(name, "a number of at least 0")
            return None

    def flag(self, name: str) -> bool | None:
        """Read a field that holds a boolean."""
        value = self._known.get(name)
        if value is None or isinstance(value, bool):
            return value
        self.refuse(name, "a boolean")
        return None

    def items(self, name: str) -> list[Any] | tuple[Any, ...] | None:
        """Read a field that holds a list."""
        value = self._known.get(name)
        if value is None or isinstance(value, (list, tuple)):
            return value
        self.refuse(name, "a list")
        return None

    def metadata(self) -> dict[str, Any] | None:
        """Give the object's own metadata and all that was kept beside it."""
        given = self._known.get("metadata")
        if given is not None and not isinstance(given, OBJECT):
            self.refuse("metadata", "an object")
            given = None
        if given is None and not self._rest:
            return None
        merged = {}
        for key, value in given.items() if given else ():
            merged[self._name(key)] = value
        for key, value in self._rest.items():
            while key in merged:
                key += "_"  # noqa: PLW2901 - never at the cost of what the agent itself called metadata
            merged[key] = value
        limited: dict[str, Any] = self.report.limit(merged, (*self.path, "metadata"), may_hold_calls=True)
        return limited
