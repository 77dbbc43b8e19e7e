"""Check data against a struct class, all problems at once; check ids for duplicates."""

from __future__ import annotations

import types
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from agentv.errors import Place, Problem, suggest

if TYPE_CHECKING:
    from agentv.evals import CheckedCase
    from agentv.spec.dataset import Dataset


T = TypeVar("T")


encode = msgspec.json.Encoder(decimal_format="number").encode
"""Data as JSON text; numbers of Python's that are exact stay numbers."""
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}
MAX_DEPTH = 128
NOT_JSON = "not JSON"
MAX_SHOWN = 80
MAX_LISTED = 100
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"


def build(cls: type[T], text: bytes, path: str) -> tuple[T | None, list[Problem]]:
    """The value that this JSON describes, or everything that is wrong with it."""
    if cls not in _decoders:
        _decoders[cls] = msgspec.json.Decoder(cls)
    try:
        value: T = _decoders[cls].decode(text)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        # msgspec stops at the first mistake and does not say what would have been right.
        data, problems = _parsed(text, path)
        return None, problems or list(walk(cls, data, path)) or [Problem(path, str(error))]
    else:
        return value, []


def _parsed(text: bytes, path: str) -> tuple[Any, list[Problem]]:
    try:
        return msgspec.json.decode(text), []
    except UnicodeDecodeError:
        return None, [Problem(path, f"{NOT_JSON}: some of it is not valid UTF-8", "whole")]
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        reason = _broken_off(text) if "truncated" in str(error) else str(error).replace("JSON is malformed: ", "")
        return None, [Problem(path, f"{NOT_JSON}: {reason}", "whole")]


def _broken_off(text: bytes) -> str:
    """Why a text is taken for the beginning of one: msgspec also says so of half a character."""
    import json  # noqa: PLC0415 - only a mistake needs it

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return "it breaks off; the whole object stands on one line"
    return "a text holds half a character (a lone surrogate such as '\\ud800'); write the whole character"


def is_too_deep(text: bytes) -> bool:
    """Whether this JSON nests deeper than anybody means it to."""
    if text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        return False
    try:
        level = [msgspec.json.decode(text)]
    except RecursionError:
        return True
    except (msgspec.MsgspecError, ValueError):
        return False  # what is no JSON at all has no depth
    for _ in range(MAX_DEPTH):
        level = [
            item
            for box in level
            for item in (box.values() if isinstance(box, dict) else box)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True


def not_json(error: Exception, path: str) -> Problem:
    """That a configuration cannot be written as JSON, and why."""
    if isinstance(error, RecursionError):
        return Problem(path, TOO_DEEP)
    reason = "a text holds half a character (a lone surrogate)" if isinstance(error, UnicodeError) else str(error)
    return Problem(path, f"cannot be written as JSON: {reason}")


def as_json(data: Any, path: str) -> tuple[bytes | None, list[Problem]]:
    """The data as JSON text, or why it cannot be written as such."""
    try:
        return encode(data), []
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        return None, [not_json(error, path)]


def walk(kind: Any, value: Any, path: str) -> Iterator[Problem]:
    """Everything in which a value is not of its type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        problems = list(walk(arguments[0], value, path))
        yield from problems or _convert(kind, value, path)
    elif origin in (Union, types.UnionType):
        yield from _walk_union(arguments, value, path)
    elif origin is Literal:
        if value not in arguments or isinstance(value, bool):
            yield Problem(path, not_a_choice(value, arguments))
    elif origin in (list, tuple, dict):
        yield from _walk_items(origin, arguments, value, path)
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from _walk_struct(kind, value, path)
    else:
        yield from _convert(kind, value, path)


def _walk_items(origin: Any, arguments: tuple[Any, ...], value: Any, path: str) -> Iterator[Problem]:
    if origin is dict:
        if not isinstance(value, Mapping):
            yield Problem(path, f"expected a mapping, got {shown(value)}")
            return
        for key, item in value.items():
            yield from walk(arguments[0], key, f"{path}.{key}")
            yield from walk(arguments[1], item, f"{path}.{key}")
    elif not isinstance(value, (list, tuple)):
        yield Problem(path, f"expected a list, got {shown(value)}")
    else:
        for index, item in enumerate(value):
            yield from walk(arguments[0], item, f"{path}[{index}]")


def _walk_union(kinds: tuple[Any, ...], value: Any, path: str) -> Iterator[Problem]:
    if value is None and type(None) in kinds:
        return
    kinds = tuple(kind for kind in kinds if kind not in (type(None), msgspec.UnsetType))
    fitting = [kind for kind in kinds if _same_shape(kind, value)]
    if fitting:
        yield from walk(fitting[0], value, path)
    else:
        yield Problem(path, f"expected {' or '.join(map(_described, kinds))}, got {shown(value)}")


def _same_shape(kind: Any, value: Any) -> bool:
    origin = get_origin(kind)
    if origin is Annotated:
        return _same_shape(get_args(kind)[0], value)
    if isinstance(value, Mapping):
        return origin is dict or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))
    if isinstance(value, (list, tuple)):
        return origin in (list, tuple)
    if origin is Literal:
        return isinstance(value, str)
    if not isinstance(kind, type):
        return kind is Any
    allowed = (int, float) if kind is float else kind
    return isinstance(value, allowed) and (kind is bool or not isinstance(value, bool))


def _walk_struct(kind: type[msgspec.Struct], value: Any, path: str) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield Problem(path, f"expected {_described(kind)}, got {shown(value)}")
        return
    hints = get_type_hints(kind, include_extras=True)
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for key in value:
        if key not in fields:
            yield Problem(join(path, key), unknown_key(key, fields), "key")
    for name, field in fields.items():
        if name in value:
            yield from walk(hints[field.name], value[name], join(path, name))
        elif field.required:
            yield Problem(join(path, name), "required")


def _convert(kind: Any, value: Any, path: str) -> Iterator[Problem]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        reason = str(error).replace("`", "").replace("Expected", "expected")
        described = f"expected {_described(kind)}, got {shown(value)}"
        yield Problem(path, f"{reason}; got {shown(value)}" if get_origin(kind) is Annotated else described)


def join(path: str, key: object) -> str:
    """The path of a key."""
    return f"{path}.{key}" if path else str(key)


def unknown_key(key: object, known: Mapping[str, Any] | Sequence[str]) -> str:
    """That a key is none of the known ones, and which one was probably meant."""
    return f"unknown key {shown(key)}{suggest(key, known) or '; expected one of ' + _listed(known)}"


def not_a_choice(value: object, choices: Sequence[str]) -> str:
    """That a value is none of the choices, and which one was probably meant."""
    if value == "superset" and "partial" in choices:  # the nearest word is the opposite of what others mean by it
        hint = ". What others call `superset`, more arguments than expected, is `partial` here"
    else:
        hint = suggest(value, choices, ". Did")
    return f"expected one of {_listed(choices)}; got {shown(value)}{hint}"


def _listed(choices: Iterable[object]) -> str:
    """The choices, unless they are somebody's thousand names, of which the first are shown."""
    named = [str(choice) for choice in choices]
    some = [name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}…" for name in named[:MAX_LISTED]]
    return ", ".join(some) + (f" and {len(named) - MAX_LISTED:,} more" if len(named) > MAX_LISTED else "")


def _described(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _described(arguments[0])
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    names = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}
    if origin in (list, tuple):
        return "a list"
    return names.get(kind, "a mapping")


def shown(value: Any) -> str:
    """A value named in a few words."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = "nothing" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


MAX_DOUBTS = 20


class CaseCounts:
    """What was met on the way through the cases."""

    def __init__(self) -> None:
        self.count = self.skipped = self.repeats = 0
        self.only = False
        self.doubts: list[Problem] = []
        """What is allowed in the cases' own checks and probably not meant; of very many, the first."""

    def add(self, case: CheckedCase, listed_as: str | None = None) -> None:
        """One more case, of a file's list of this name or of a dataset."""
        self.count += 1
        if case.warnings and len(self.doubts) < MAX_DOUBTS:
            below, place = (f"{listed_as}[{case.index}].", None) if listed_as else ("", case.place)
            own = [warning for warning in case.warnings if warning.startswith("evaluators[")]
            self.doubts += [as_warning(warning, below, place) for warning in own]
        self.only = self.only or case.only
        if case.skip:
            self.skipped += 1
        else:
            self.repeats += case.repeat


def as_warning(warning: str, below: str = "", place: Place | None = None) -> Problem:
    """A check's warning, which begins with its path, as something to be told with its place."""
    path, _, message = warning.partition(": ")
    return Problem(f"{below}{path}", message, place=place)


class IdRegistry:
    """Which ids there were: by name for the cases of a file, by hash for a dataset of any length."""

    def __init__(self) -> None:
        self.named: dict[str, Place | None] = {}
        self._hashes = array("q")

    def add(self, name: str, place: Place | None) -> Place | str | None:
        """The place of the first case of this name, if there was one."""
        if name in self.named:
            return self.named[name] or "above"
        self.named[name] = place
        return None

    def hash(self, name: str) -> None:
        """Remember eight bytes of it."""
        self._hashes.append(hash(name))

    def has_twins(self) -> bool:
        """Whether two may be the same."""
        if not self._hashes:
            return False
        known = sorted([*map(hash, self.named), *self._hashes])
        return any(first == second for first, second in pairwise(known))


def find_twins(dataset: Dataset, ids: IdRegistry) -> list[Problem]:
    """The ids that come twice; only a dataset that has some is held by name."""
    found = []
    for line in dataset.lines():
        if line.case is None:
            continue
        first = ids.add(line.case.case.id, line.case.place)
        if first is not None:
            found.append(Problem("id", duplicate_id(line.case.case.id, first), place=line.case.place))
    return found


def duplicate_id(name: object, first: Place | str) -> str:
    """That an id is not unique."""
    where = f"at {first.file}:{first.line}" if isinstance(first, Place) else first
    return f"{shown(str(name))} is the id of another case, {where}; ids are unique in an eval"
