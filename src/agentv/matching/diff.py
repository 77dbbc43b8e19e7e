"""Differences of two values by path."""

from collections.abc import Iterator
from typing import Any

import msgspec

from agentv.matching.equality import json_equal
from agentv.matching.json_pointer import NOTHING
from agentv.matching.matchers import equals, has_matcher, is_matcher
from agentv.redaction import shorten

MAX_QUOTED = 200


class Difference(msgspec.Struct, frozen=True):
    """A path at which two values differ."""

    path: str
    expected: Any
    actual: Any

    def __str__(self) -> str:
        return f"{self.path} expected {quote(self.expected)}, got {quote(self.actual)}{_type_note(self)}"


def _type_note(difference: Difference) -> str:
    """Return a note if two values differ only in their types, such as 10 and "10"; quotes are easily overlooked."""
    expected, actual = difference.expected, difference.actual
    if isinstance(expected, str) and _is_written_as(actual, expected):
        return f" (text is expected, the call has {_type_word(actual)})"
    if isinstance(actual, str) and _is_written_as(expected, actual):
        return f" ({_type_word(expected)} is expected, the call has text)"
    return ""


def _is_written_as(value: Any, text: str) -> bool:
    if value is not None and type(value) not in (bool, int, float):
        return False
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return json_equal(decoded, value)


def _type_word(value: Any) -> str:
    return "null" if value is None else "true or false" if isinstance(value, bool) else "a number"


def quote(value: Any) -> str:
    """Return a value as JSON on one line, truncated so that it fits into a sentence."""
    if value is NOTHING:
        return "nothing"
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = _describe(value)
    return shorten(text, MAX_QUOTED)


def _describe(value: Any) -> str:
    """Describe a value that is not JSON: a lone surrogate, an object, a number too long to be written."""
    try:
        return repr(value).encode("utf-8", "replace").decode()
    except (ValueError, RecursionError):
        return f"a value of type {type(value).__name__}"


def differences(expected: Any, actual: Any, path: str, *, partial: bool = False) -> Iterator[Difference]:
    """Return every path at which `actual` differs from `expected`; `partial` allows extra keys at every level."""
    if is_matcher(expected):
        if not equals(expected)(actual):
            yield Difference(path, expected, actual)
    elif isinstance(expected, dict) and isinstance(actual, dict):
        yield from _key_differences(expected, actual, path, partial=partial)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, value in enumerate(expected):
            yield from differences(value, actual[index], f"{path}.{index}", partial=partial)
    elif has_matcher(expected) or not json_equal(expected, actual):
        yield Difference(path, expected, actual)


def plain_differences(expected: Any, actual: Any, path: str) -> list[Difference]:
    """Return the differences to an expected value without matchers, known to differ, at a quarter of the cost."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return plain_key_differences(expected, actual, differing_keys(expected, actual), path)
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        result: list[Difference] = []
        for index, value in enumerate(expected):
            if not json_equal(value, actual[index]):
                result += plain_differences(value, actual[index], f"{path}.{index}")
        return result
    return [Difference(path, expected, actual)]


def differing_keys(expected: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    """Return the expected keys that are missing or have another value."""
    return [key for key, value in expected.items() if key not in actual or not json_equal(value, actual[key])]


def plain_key_differences(
    expected: dict[str, Any], actual: dict[str, Any], unlike: list[str], path: str
) -> list[Difference]:
    """Return the differences under these keys, and the unexpected keys."""
    result: list[Difference] = []
    for key in unlike:
        if key in actual:
            result += plain_differences(expected[key], actual[key], f"{path}.{key}")
        else:
            result.append(Difference(f"{path}.{key}", expected[key], NOTHING))
    for key, value in actual.items():
        if key not in expected:
            result.append(Difference(f"{path}.{key}", NOTHING, value))
    return result


def _key_differences(
    expected: dict[str, Any], actual: dict[str, Any], path: str, *, partial: bool
) -> Iterator[Difference]:
    for key, value in expected.items():
        if key in actual:
            yield from differences(value, actual[key], f"{path}.{key}", partial=partial)
        else:
            yield Difference(f"{path}.{key}", value, NOTHING)
    if not partial:
        for key, value in actual.items():
            if key not in expected:
                yield Difference(f"{path}.{key}", NOTHING, value)
