"""Validation of data against a struct class, with all problems at once; duplicate ids and `did you mean` messages."""

from __future__ import annotations

import types
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from agentv.errors import Location, Problem
from agentv.jsonio import parse_with_hooks
from agentv.other_tools import key_meant, other_word_hint
from agentv.suggestions import closest, suggest

if TYPE_CHECKING:
    from agentv.evals import CheckedCase
    from agentv.spec.dataset import Dataset


T = TypeVar("T")


encode = msgspec.json.Encoder(decimal_format="number").encode
"""Encodes data as JSON; `Decimal` values are numbers."""
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}
MAX_DEPTH = 128
NOT_JSON = "not JSON"
MAX_SHOWN = 80
MAX_LISTED = 100
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"


def build(cls: type[T], text: bytes, path: str) -> tuple[T | None, list[Problem]]:
    """Build a value of a class from JSON, or return all its problems."""
    if cls not in _decoders:
        _decoders[cls] = msgspec.json.Decoder(cls)
    try:
        value: T = _decoders[cls].decode(text)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        # msgspec stops at the first mistake and does not suggest a fix.
        data, problems = _parse(text, path)
        return None, problems or list(find_problems(cls, data, path)) or [Problem(path, str(error))]
    else:
        return value, []


def _parse(text: bytes, path: str) -> tuple[Any, list[Problem]]:
    try:
        return msgspec.json.decode(text), []
    except UnicodeDecodeError:
        return None, [Problem(path, f"{NOT_JSON}: some of it is not valid UTF-8", "whole")]
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        reason = _truncated_reason(text) if "truncated" in str(error) else str(error).replace("JSON is malformed: ", "")
        return None, [Problem(path, f"{NOT_JSON}: {reason}", "whole")]


def _truncated_reason(text: bytes) -> str:
    """Return the reason why msgspec calls a text truncated, which it also does for a lone surrogate."""
    try:
        parse_with_hooks(text)
    except (ValueError, RecursionError):
        return "it is incomplete; write the whole object on one line"
    return "a text holds half a character (a lone surrogate such as '\\ud800'); write the whole character"


def is_too_deep(text: bytes) -> bool:
    """Return whether this JSON is nested deeper than `MAX_DEPTH` levels."""
    if text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        return False
    try:
        level = [msgspec.json.decode(text)]
    except RecursionError:
        return True
    except (msgspec.MsgspecError, ValueError):
        return False  # not JSON, which is reported elsewhere
    for _ in range(MAX_DEPTH):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True


def not_json_problem(error: Exception, path: str) -> Problem:
    """Return the problem of a configuration that cannot be encoded as JSON."""
    if isinstance(error, RecursionError):
        return Problem(path, TOO_DEEP)
    reason = "a text contains half a character (a lone surrogate)" if isinstance(error, UnicodeError) else str(error)
    return Problem(path, f"cannot be written as JSON: {reason}")


def to_json(data: Any, path: str) -> tuple[bytes | None, list[Problem]]:
    """Encode data as JSON, or return the problem."""
    try:
        return encode(data), []
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        return None, [not_json_problem(error, path)]


def find_problems(kind: Any, value: Any, path: str) -> Iterator[Problem]:
    """Yield all problems of a value that has to be of this type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        problems = list(find_problems(arguments[0], value, path))
        yield from problems or _convert(kind, value, path)
    elif origin in (Union, types.UnionType):
        yield from _walk_union(arguments, value, path)
    elif origin is Literal:
        if value not in arguments or isinstance(value, bool):
            yield Problem(path, choice_message(value, arguments))
    elif origin in (list, tuple, dict):
        yield from _walk_items(origin, arguments, value, path)
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from _walk_struct(kind, value, path)
    else:
        yield from _convert(kind, value, path)


def _walk_items(origin: Any, arguments: tuple[Any, ...], value: Any, path: str) -> Iterator[Problem]:
    if origin is dict:
        if not isinstance(value, Mapping):
            yield Problem(path, f"expected a mapping, got {short_repr(value)}")
            return
        for key, item in value.items():
            yield from find_problems(arguments[0], key, f"{path}.{key}")
            yield from find_problems(arguments[1], item, f"{path}.{key}")
    elif not isinstance(value, (list, tuple)):
        yield Problem(path, f"expected a list, got {short_repr(value)}")
    else:
        for index, item in enumerate(value):
            yield from find_problems(arguments[0], item, f"{path}[{index}]")


def _walk_union(kinds: tuple[Any, ...], value: Any, path: str) -> Iterator[Problem]:
    if value is None and type(None) in kinds:
        return
    kinds = tuple(kind for kind in kinds if kind not in (type(None), msgspec.UnsetType))
    matching = [kind for kind in kinds if _same_shape(kind, value)]
    if matching:
        yield from find_problems(matching[0], value, path)
    else:
        yield Problem(path, f"expected {' or '.join(map(_type_name, kinds))}, got {short_repr(value)}")


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
        yield Problem(path, f"expected {_type_name(kind)}, got {short_repr(value)}")
        return
    hints = get_type_hints(kind, include_extras=True)
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    missing = [name for name, field in fields.items() if field.required and name not in value]
    meant = _meant_keys(kind, value, fields, missing)
    for key in meant:
        yield Problem(join_path(path, key), unknown_key_message(key, fields, meant[key]), "key")
    for name, field in fields.items():
        if name in value:
            yield from find_problems(hints[field.name], value[name], join_path(path, name))
        elif name in missing and name not in meant.values():
            yield Problem(join_path(path, name), "required")


def _meant_keys(
    kind: type, value: Mapping[str, Any], fields: Mapping[str, Any], missing: Sequence[str]
) -> dict[str, str | None]:
    """Return the unknown keys, each with the key that was probably meant: a missing one first."""
    free = [name for name in fields if name not in value]
    meant: dict[str, str | None] = {}
    for key in value:
        if key not in fields:
            ours = key_meant(kind.__name__, str(key))
            meant[key] = closest(key, missing) or (ours if ours in free else None) or closest(key, fields)
    return meant


def _convert(kind: Any, value: Any, path: str) -> Iterator[Problem]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        reason = str(error).replace("`", "").replace("Expected", "expected")
        described = f"expected {_type_name(kind)}, got {short_repr(value)}"
        yield Problem(path, f"{reason}; got {short_repr(value)}" if get_origin(kind) is Annotated else described)


def join_path(path: str, key: object) -> str:
    """Return the path of a key."""
    return f"{path}.{key}" if path else str(key)


def unknown_key_message(key: object, known: Mapping[str, Any] | Sequence[str], meant: str | None = None) -> str:
    """Return the message for an unknown key, with the one that was probably meant, or with all."""
    other_word = other_word_hint(key, known)
    if other_word is not None:
        return f"unknown key {short_repr(key)}: {other_word}"
    hint = f"; did you mean {meant!r}?" if meant else suggest(key, known)
    return f"unknown key {short_repr(key)}{hint or '; expected one of ' + _join_choices(known)}"


def choice_message(value: object, choices: Sequence[str]) -> str:
    """Return the message for a value that is not among the choices, with a suggestion (did you mean)."""
    if value == "superset" and "partial" in choices:  # the most similar choice, `subset`, would be the opposite
        hint = "; what others call `superset`, more arguments than expected, is `partial` here."
    elif value == "first_turn" and "last_turn" in choices:  # which would be the most similar one
        hint = "; the first turn is `{turn: 1}`."
    else:
        hint = suggest(value, choices)
    if hint:  # what was probably meant comes first, and the list, which may be long, after it
        return f"got {short_repr(value)}{hint} Expected one of {_join_choices(choices)}"
    return f"expected one of {_join_choices(choices)}; got {short_repr(value)}"


def _join_choices(choices: Iterable[object]) -> str:
    """Join the choices, at most `MAX_LISTED` of them."""
    names = [str(choice) for choice in choices]
    listed = [name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}…" for name in names[:MAX_LISTED]]
    return ", ".join(listed) + (f" and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else "")


def _type_name(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _type_name(arguments[0])
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    names = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}
    if origin in (list, tuple):
        return "a list"
    return names.get(kind, "a mapping")


def short_repr(value: Any) -> str:
    """Return a short description of a value for messages."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = "nothing" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


MAX_WARNINGS = 20


class CaseCounts:
    """Counts and warnings of the cases of an eval."""

    def __init__(self) -> None:
        self.count = self.skipped = self.variants = self.repeats = 0
        self.only = False
        self.warnings: list[Problem] = []
        """Warnings of the cases' own evaluators, at most about `MAX_WARNINGS`."""

    def add(self, case: CheckedCase, listed_as: str | None = None) -> None:
        """Count a case, of the list of this name in the file or of a dataset."""
        self.count += 1
        if case.warnings and len(self.warnings) < MAX_WARNINGS:
            below, location = (f"{listed_as}[{case.index}].", None) if listed_as else ("", case.location)
            own = [warning for warning in case.warnings if warning.startswith(("evaluators[", "turns[", "threshold:"))]
            self.warnings += [as_warning(warning, below, location) for warning in own]
        self.only = self.only or case.only
        if case.skip:
            self.skipped += 1
        else:
            variants = len(case.variants) or 1
            self.variants += variants
            self.repeats += variants * case.repeat


def as_warning(warning: str, below: str = "", location: Location | None = None) -> Problem:
    """Return the warning of an evaluator, which begins with its path, as a problem with a location."""
    path, _, message = warning.partition(": ")
    return Problem(f"{below}{path}", message, location=location)


class IdRegistry:
    """Ids of the cases, to find duplicate ids: by name for the cases of a file, by hash for a dataset of any length."""

    def __init__(self) -> None:
        self.named: dict[str, Location | None] = {}
        self._hashes = array("q")

    def add(self, name: str, location: Location | None) -> Location | str | None:
        """Add an id; return the location of the first case with this id if it is a duplicate."""
        if name in self.named:
            return self.named[name] or "above"
        self.named[name] = location
        return None

    def hash(self, name: str) -> None:
        """Add the hash of an id, which takes eight bytes."""
        self._hashes.append(hash(name))

    def has_duplicates(self) -> bool:
        """Return whether two ids may be equal."""
        if not self._hashes:
            return False
        known = sorted([*map(hash, self.named), *self._hashes])
        return any(first == second for first, second in pairwise(known))


def find_duplicate_ids(dataset: Dataset, ids: IdRegistry) -> list[Problem]:
    """Return a problem for each duplicate id; called only if hashes are equal, since it keeps all ids in memory."""
    problems = []
    for line in dataset.lines():
        if line.case is None:
            continue
        first = ids.add(line.case.case.id, line.case.location)
        if first is not None:
            problems.append(Problem("id", duplicate_id(line.case.case.id, first), location=line.case.location))
    return problems


def duplicate_id(name: object, first: Location | str) -> str:
    """Return the message for a duplicate id."""
    where = f"at {first.file}:{first.line}" if isinstance(first, Location) else first
    return f"{short_repr(str(name))} is the id of another case, {where}; ids are unique in an eval"
