"""When two JSON values are the same: key order is free, `1 == 1.0`, `1 != true`, `1 != "1"`."""

import re
from collections.abc import Hashable
from typing import Any

import msgspec

# Deterministic JSON, made in C, tells two values apart several times faster than any walk in Python.
_encode = msgspec.json.Encoder(order="deterministic").encode
_may_hold_float = re.compile(rb"\d[.e]").search
_TRUE, _FALSE = object(), object()
_SCALARS = {str, int, float, bool, type(None)}


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal."""
    # Python's own equality is only ever too generous (True == 1), so it rules out most pairs at once.
    if left != right:
        return _odd(left, right) and _walk(left) == _walk(right)
    if type(left) is type(right) and type(left) in _SCALARS:
        return True
    text = encoded(left)
    return (text is not None and text == encoded(right)) or _walk(left) == _walk(right)


def canonical(value: Any) -> Hashable:
    """A key that two JSON values share exactly when they are the same."""
    try:
        text = _encode(value)
    except (TypeError, ValueError, RecursionError):
        return _walk(value)
    return text if _may_hold_float(text) is None else _encode(_integral(value))


def encoded(value: Any) -> bytes | None:
    """The value as JSON with its keys in order; `None` when it is not quite JSON."""
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        return None


def has_operators(text: bytes | None) -> bool:
    """Whether any key in this JSON begins with `$` (or a text looks like one: too careful is fine)."""
    # Asking for the one byte first takes a tenth of the time, and hardly any text has it.
    return text is None or (b"$" in text and b'"$' in text)


def _integral(value: Any) -> Any:
    """The value with `1.0` written as `1`."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _integral(item) for key, item in value.items()}
    return [_integral(item) for item in value] if isinstance(value, (list, tuple)) else value


def _odd(left: Any, right: Any) -> bool:
    """Whether two values that Python calls different may still be the same JSON: a tuple is a list there."""
    if isinstance(left, dict) and isinstance(right, dict):
        return any([_odd(item, right.get(key)) for key, item in left.items() if type(item) not in _SCALARS])  # noqa: C419 - a list is faster
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return type(left) is not type(right) or any(map(_odd, left, right))
    return False


def _walk(value: Any) -> Hashable:
    """The key of a value that is not quite JSON: a lone surrogate, a number beyond all bounds, an object."""
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, dict):
        return frozenset([(key, _walk(item)) for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return tuple([_walk(item) for item in value])
    return value if isinstance(value, Hashable) else repr(value)
