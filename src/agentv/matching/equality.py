"""JSON equality: key order is free, `1 == 1.0`, `1 != true`, `1 != "1"`."""

import re
from collections.abc import Hashable, Mapping
from math import isfinite
from typing import Any

import msgspec

# Comparing sorted JSON, encoded in C, is several times faster than comparing values in Python.
_encode = msgspec.json.Encoder(order="deterministic", decimal_format="number").encode
_write = msgspec.json.Encoder(decimal_format="number").encode
_decode = msgspec.json.decode
_may_hold_float = re.compile(rb"\d[.e]").search
_TRUE, _FALSE = object(), object()
_STRICT_TYPES = {str, int, bool, type(None)}
_SCALARS = {*_STRICT_TYPES, float}
_JSON_TYPES = {*_SCALARS, dict, list}
_KEYS = frozenset([str])
_LISTS = (list, tuple, set, frozenset)
"""Python types that are lists in JSON."""


def json_equal(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal."""
    # Python's equality is never too strict (True == 1), so that it rules out most pairs quickly.
    if left != right:
        if type(left) in _STRICT_TYPES and type(right) in _STRICT_TYPES:
            return False
        return _may_be_equal(left, right) and _walk(left) == _walk(right)
    if type(left) is type(right) and type(left) in _SCALARS:
        return True
    text = sorted_json(left)
    return (text is not None and text == sorted_json(right)) or _walk(left) == _walk(right)


def canonical_key(value: Any) -> Hashable:
    """Return a key that is equal for equal JSON values."""
    try:
        text = _encode(value)
    except (TypeError, ValueError, RecursionError):
        return _walk(value)
    return text if _may_hold_float(text) is None else _encode(_integral(value))


def sorted_json(value: Any) -> bytes | None:
    """Return the value as JSON with sorted keys; `None` if it is not quite JSON."""
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        return None


def json_round_trip(value: Any) -> Any:
    """Return the value decoded from its JSON, which must exist."""
    return _decode(_write(value))


def has_operators(text: bytes | None) -> bool:
    """Return whether any key in this JSON begins with `$` (or a text looks like one, which is harmless)."""
    # Searching for the single byte first takes a tenth of the time, and it is rare.
    return text is None or (b"$" in text and b'"$' in text)


def _integral(value: Any) -> Any:
    """Return the value with `1.0` written as `1`."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _integral(item) for key, item in value.items()}
    return [_integral(item) for item in value] if isinstance(value, (list, tuple)) else value


def _may_be_equal(left: Any, right: Any) -> bool:
    """Return whether two values that differ in Python may be the same JSON.

    There a tuple or a set is a list, NaN is null, a date is a text and every key is one.
    """
    if isinstance(left, dict) and isinstance(right, dict):
        for key, item in left.items():  # a loop takes half the time of `any` here
            other = right.get(key)
            if (type(item) not in _STRICT_TYPES or type(other) not in _STRICT_TYPES) and _may_be_equal(item, other):
                return True
        return not _KEYS.issuperset(map(type, left)) or not _KEYS.issuperset(map(type, right))
    if isinstance(left, _LISTS) and isinstance(right, _LISTS):
        return type(left) is not type(right) or any(map(_may_be_equal, left, right))
    return _is_foreign(left) or _is_foreign(right)


def _is_foreign(value: Any) -> bool:
    """Return whether a value has a type, or is a number, that JSON does not have."""
    if type(value) is float:
        return not isfinite(value)
    return type(value) not in _JSON_TYPES


def _walk(value: Any) -> Hashable:
    """Return the key of a value that is not quite JSON: a lone surrogate, an infinite number, an object."""
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, (dict, Mapping)):
        return frozenset([(_key(key), _walk(item)) for key, item in value.items()])
    if isinstance(value, _LISTS):
        return tuple([_walk(item) for item in value])
    if _is_foreign(value):
        text = sorted_json(value)
        if text is not None:
            return _walk(_decode(text))
    return value if isinstance(value, Hashable) else repr(value)


def _key(key: Any) -> str:
    """Return a key of an object as JSON has it."""
    if isinstance(key, str):
        return key
    text = sorted_json({key: None})
    return repr(key) if text is None else next(iter(_decode(text)))
