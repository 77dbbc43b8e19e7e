"""Three-valued comparison with values in which text is missing, because it was redacted or cut.

A comparison returns `None` where the verdict depends on the text behind a mark.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from agentv.matching.equality import json_equal
from agentv.matching.matchers import TYPES, contains, equals, has_matcher, is_matcher, is_number, pattern_of
from agentv.model.conversation import GAP, GAP_IN_JSON, LABEL_PATTERN, has_gap

_is_label = re.compile(LABEL_PATTERN).fullmatch
"""A value that is nothing but a label: it may have been a text or a number."""

Known = bool | None
"""The result of a comparison; `None` if it depends on text that is missing."""


def known_parts(text: str, *, is_json: bool = False) -> list[str]:
    """Return the parts of a text before, between and after its gaps."""
    return (GAP_IN_JSON if is_json else GAP).split(text)


def may_equal(wanted: str, parts: Sequence[str]) -> bool:
    """Return whether a text with these known parts, and anything between them, can be the wanted one."""
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return wanted == first
    if len(first) + len(last) > len(wanted) or not (wanted.startswith(first) and wanted.endswith(last)):
        return False
    at, end = len(first), len(wanted) - len(last)
    for part in parts[1:-1]:
        found = wanted.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


_LOOKS_AROUND = re.compile(r"\(\?(?:[=!>(]|<[=!])|[*+?}]\+").search
"""Parts of a pattern by which text far from a match can prevent it."""
_AT_BOUNDARY = re.compile(r"(?<!\[)\^|\$|\\[bBAZ]").search
"""Parts of a pattern that depend on the characters next to a match."""


def is_found(pattern: str, parts: Sequence[str], *, ignore_case: bool = False) -> bool:
    """Return whether a pattern is found in a text with these known parts whatever is missing between them."""
    if _LOOKS_AROUND(pattern):
        return False
    search = pattern_of(pattern, ignore_case=ignore_case)
    if not _AT_BOUNDARY(pattern):
        return any(search.find(part) is not None for part in parts)
    # No pattern takes both of these characters for part of a word or a line by accident.
    gaps = _filled_gaps(parts)
    return any(
        all(end < gap or start > gap + 1 for gap in gaps)
        for filler in ("\n", "\ue000")
        for start, end in search.find_all(filler.join(parts))
    )


def _filled_gaps(parts: Sequence[str]) -> list[int]:
    """Return the positions of the gaps if each is one character."""
    positions = []
    at = 0
    for part in parts[:-1]:
        at += len(part)
        positions.append(at)
        at += 1
    return positions


def compare_known(expected: Any, actual: Any, *, partial: bool = False) -> Known:
    """Compare a value with the expected one, as `equals` does, or with `partial` as `contains` does."""
    if not has_gap(actual):
        return (contains if partial else equals)(expected)(actual)
    if is_matcher(expected):
        return every(_operator(name, argument, actual) for name, argument in expected.items())
    if isinstance(actual, str):
        return _compare_text(expected, actual)
    if isinstance(actual, dict):
        return _compare_object(expected, actual, partial=partial) if isinstance(expected, dict) else False
    if not isinstance(expected, list) or len(expected) != len(actual):
        return False
    return every(compare_known(one, two, partial=partial) for one, two in zip(expected, actual, strict=True))


def _compare_text(expected: Any, actual: str) -> Known:
    if isinstance(expected, str):
        return None if may_equal(expected, known_parts(actual)) else False
    return None if is_number(expected) and _is_label(actual) else False


def _compare_object(expected: dict[str, Any], actual: dict[str, Any], *, partial: bool) -> Known:
    if not partial and len(expected) != len(actual):
        return False
    hidden = any(map(has_gap, actual))
    missing: Known = None if hidden else False
    surplus = any(key not in expected and not has_gap(key) for key in actual)
    if surplus and not partial:
        return False
    return every(
        compare_known(value, actual[key], partial=partial) if key in actual else missing
        for key, value in expected.items()
    )


def every(results: Iterable[Known]) -> Known:
    """Return whether all of them hold."""
    known = list(results)
    return False if False in known else None if None in known else True


def some(results: Iterable[Known]) -> Known:
    """Return whether any of them holds."""
    known = list(results)
    return True if True in known else None if None in known else False


def negate(result: Known) -> Known:
    """Return the opposite."""
    return None if result is None else not result


def _operator(name: str, argument: Any, actual: Any) -> Known:  # noqa: PLR0911 - one line an operator reads best
    match name:
        case "$any":
            return True
        case "$regex":
            if not isinstance(actual, str):
                return False
            return True if not _is_label(actual) and is_found(argument, known_parts(actual)) else None
        case "$glob":
            return _fits(argument, actual) if isinstance(actual, str) else False
        case "$contains":
            return _holds(argument, actual)
        case "$oneof":
            return some(compare_known(choice, actual) for choice in argument)
        case "$not":
            return negate(compare_known(argument, actual))
        case "$type":
            return _has_type(argument, actual)
        case "$literal":
            return _compare_plain(argument, actual)
        case _:
            is_text = isinstance(actual, str)
            return None if is_text and (isinstance(argument, str) or _is_label(actual)) else False


def _fits(glob: str, actual: str) -> Known:
    """Return whether a glob fits; only that of a contained text can be certain."""
    inner = glob[1:-1]
    if len(glob) > 1 and glob[0] == glob[-1] == "*" and not any(char in inner for char in "*?["):
        return True if any(inner in part for part in known_parts(actual)) else None
    return None


def _holds(wanted: Any, actual: Any) -> Known:
    if isinstance(actual, str):
        if not isinstance(wanted, str):
            return False
        return True if any(wanted in part for part in known_parts(actual)) else None
    if isinstance(actual, dict):
        found = isinstance(wanted, str) and wanted in actual
        return True if found else None if any(map(has_gap, actual)) else False
    return some(_compare_plain(wanted, item) for item in actual)


def _has_type(argument: Any, actual: Any) -> Known:
    kinds = set(argument if isinstance(argument, list) else [argument])
    if not (isinstance(actual, str) and _is_label(actual)):
        return any(TYPES[kind](actual) for kind in kinds)
    text, number = "string" in kinds, bool(kinds & {"number", "integer"})
    return True if text and number else None if text or number else False


def _compare_plain(expected: Any, actual: Any) -> Known:
    """Compare with a value whose own keys may begin with `$`."""
    if not has_gap(actual):
        return json_equal(expected, actual)
    return None if has_matcher(expected) else compare_known(expected, actual)
