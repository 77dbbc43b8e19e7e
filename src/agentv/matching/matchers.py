"""Value matchers such as `$regex` and `$gt`, with a time limit on regular expressions."""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from math import inf, ulp
from operator import ge, gt, le, lt
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from agentv.errors import EvaluationError, Problem
from agentv.matching.equality import json_equal, sorted_json
from agentv.matching.javascript import JavaScriptRegexError, in_units, index_in_text, translate_pattern
from agentv.matching.text import glob_test

if TYPE_CHECKING:
    import regex

QUICK_SECONDS = 0.005
"""The time that an event loop can wait: nearly every search ends within a hundredth of it."""
QUICK_LENGTH = 50_000
"""The length of text up to which the engine checks its clock often enough for that."""


class SlowSearchError(Exception):
    """Error for a search that did not end within a few milliseconds."""


class Pattern:
    """A compiled pattern in Python's syntax."""

    def __init__(self, pattern: str, *, ignore_case: bool = False, full: bool = False) -> None:
        self._pattern = pattern
        compiled = _compile(pattern, ignore_case=ignore_case)
        self._search = compiled.fullmatch if full else compiled.search
        self._find_all = compiled.finditer

    def find(self, text: str) -> tuple[int, int] | None:
        """Return the position of a match within the time limit; other threads of this process continue meanwhile."""
        try:
            return self._span(text, REGEX_SECONDS)
        except TimeoutError:
            raise self._slow(text) from None

    def find_all(self, text: str) -> list[tuple[int, int]]:
        """Return the positions of all matches that do not overlap, within the same limit."""
        try:
            return [match.span() for match in self._find_all(text, timeout=REGEX_SECONDS)]
        except TimeoutError:
            raise self._slow(text) from None

    def _slow(self, text: str) -> EvaluationError:
        limit = f"took longer than {REGEX_SECONDS:g} s on a text of {len(text)} characters"
        return EvaluationError(f"the pattern {self._pattern!r} {limit}")

    def find_quickly(self, text: str) -> tuple[int, int] | None:
        """Return the position of a match within milliseconds, or raise `SlowSearchError`."""
        if len(text) > QUICK_LENGTH:
            raise SlowSearchError
        try:
            return self._span(text, QUICK_SECONDS)
        except TimeoutError:
            raise SlowSearchError from None

    def _span(self, text: str, seconds: float) -> tuple[int, int] | None:
        # The agent wrote this text and could make the standard library's engine run for hours.
        match = self._search(text, timeout=seconds)
        return None if match is None else match.span()


class JavaScriptPattern(Pattern):
    """A compiled pattern in JavaScript's syntax."""

    def __init__(self, pattern: str, *, ignore_case: bool = False, full: bool = False) -> None:
        super().__init__(translate_pattern(pattern, ignore_case=ignore_case), full=full)
        self._pattern = pattern

    def find(self, text: str) -> tuple[int, int] | None:
        """Return the position of a match within the time limit."""
        return _span_in_text(text, super().find(in_units(text)))

    def find_quickly(self, text: str) -> tuple[int, int] | None:
        """Return the position of a match within milliseconds, or raise `SlowSearchError`."""
        return _span_in_text(text, super().find_quickly(in_units(text)))


def _span_in_text(text: str, span: tuple[int, int] | None) -> tuple[int, int] | None:
    return None if span is None else (index_in_text(text, span[0]), index_in_text(text, span[1]))


def bad_pattern(pattern: Any) -> str | None:
    """Return why this is no pattern; `None` if it is one."""
    return _bad_regex(pattern)


def bad_javascript_pattern(pattern: str) -> str | None:
    """Return why this is no pattern in JavaScript's syntax; `None` if it is one."""
    if len(pattern) > MAX_PATTERN:
        return f"longer than {MAX_PATTERN:,} characters"
    try:
        _compile(translate_pattern(pattern))
    except (JavaScriptRegexError, re.error, RecursionError, OverflowError, MemoryError) as error:
        return f"not a regular expression of JavaScript: {error}"
    return None


@lru_cache(maxsize=256)
def pattern_of(pattern: str, *, ignore_case: bool = False) -> Pattern:
    """Compile a pattern; the result is cached."""
    return Pattern(pattern, ignore_case=ignore_case)


Predicate = Callable[[Any], bool]

MAX_DEPTH = 128
MAX_PATH = 60
MAX_PATTERN = 10_000
REGEX_SECONDS = 1.0
"""The time that one search may take."""
ALL_SEARCHES_SECONDS = 60.0
"""The time after which an evaluator starts no further search."""


def is_number(value: Any) -> bool:
    """Return whether this is a JSON number, which a boolean is not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TYPES: dict[str, Predicate] = {
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": lambda value: is_number(value) and value == value // 1,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def is_matcher(value: Any) -> bool:
    """Return whether this expected value is a mapping of operators."""
    if not isinstance(value, dict):
        return False
    return any([isinstance(key, str) and key[:1] == "$" for key in value])  # noqa: C419 - a list is twice as fast here


def has_matcher(value: Any) -> bool:
    """Return whether an expected value contains a matcher."""
    if isinstance(value, dict):
        return is_matcher(value) or any(
            [has_matcher(item) for item in value.values() if isinstance(item, (dict, list))]  # noqa: C419 - as above
        )
    return isinstance(value, list) and any(map(has_matcher, value))


def has_search(expected: Any) -> bool:
    """Return whether a pattern has to be searched for, which the agent's text may slow down."""
    if expected is UNSET or isinstance(expected, (str, int, float)):
        return False
    return b'"$regex"' in (sorted_json(expected) or b"")


_deadline: ContextVar[float] = ContextVar("deadline of the searches of an evaluator", default=inf)


@contextmanager
def limit_searches() -> Iterator[None]:
    """Limit the time of all searches within this block."""
    token = _deadline.set(monotonic() + ALL_SEARCHES_SECONDS)
    try:
        yield
    finally:
        _deadline.reset(token)


def check_expected(value: Any, path: str, depth: int = 0) -> Iterator[Problem]:
    """Return the problems of an expected value: operators unknown, mixed with plain keys, or with invalid arguments."""
    if depth > MAX_DEPTH:
        yield Problem(f"{path[:MAX_PATH]}…", f"nested deeper than {MAX_DEPTH} levels")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from check_expected(item, f"{path}[{index}]", depth + 1)
    elif is_matcher(value):
        yield from _check_matcher(value, path, depth)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from check_expected(item, f"{path}.{key}", depth + 1)


def _check_matcher(matcher: dict[str, Any], path: str, depth: int) -> Iterator[Problem]:
    hint = "to compare a value whose own keys begin with '$', write {$literal: ...}"
    plain = [key for key in matcher if key not in MATCHERS]
    if any(key[:1] == "$" for key in plain if isinstance(key, str)):
        unknown = next(key for key in plain if isinstance(key, str) and key[:1] == "$")
        yield Problem(path, f"unknown operator {unknown!r}; expected one of {', '.join(MATCHERS)}; {hint}")
    elif plain:
        yield Problem(path, f"operators beside plain keys ({', '.join(map(repr, plain))}); {hint}")
    else:
        for operator, argument in matcher.items():
            if (reason := MATCHERS[operator].bad_argument(argument)) is not None:
                yield Problem(f"{path}.{operator}", reason)
            elif MATCHERS[operator].nested:
                yield from check_expected(argument, f"{path}.{operator}", depth + 1)


def _accept(_: Any) -> None:
    return None


def _bad_any(argument: Any) -> str | None:
    return None if argument is True else f"expected true, got {argument!r}"


def _bad_glob(argument: Any) -> str | None:
    if isinstance(argument, str) and len(argument) > MAX_PATTERN:
        return f"longer than {MAX_PATTERN:,} characters"
    return None if isinstance(argument, str) else f"expected a string, got {argument!r}"


def _bad_part(argument: Any) -> str | None:
    return "expected a plain value, got a matcher" if has_matcher(argument) else None


def _bad_bound(argument: Any) -> str | None:
    ordered = isinstance(argument, str) or is_number(argument)
    return None if ordered else f"expected a number or a string, got {argument!r}"


def _bad_choices(argument: Any) -> str | None:
    full = isinstance(argument, list) and argument
    return None if full else f"expected a list of at least one value, got {argument!r}"


def _bad_type(argument: Any) -> str | None:
    names = argument if isinstance(argument, list) and argument else [argument]
    known = all(isinstance(name, str) and name in TYPES for name in names)
    return None if known else f"expected one of {', '.join(TYPES)}, or a list of them; got {argument!r}"


def _bad_regex(pattern: Any) -> str | None:
    if not isinstance(pattern, str):
        return f"expected a string, got {pattern!r}"
    if len(pattern) > MAX_PATTERN:
        return f"longer than {MAX_PATTERN:,} characters"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
            _compile(pattern)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        return f"not a regular expression: {error}"
    return None


def _compile(pattern: str, *, ignore_case: bool = False) -> "regex.Pattern[str]":
    """Compile a pattern with an engine whose searches have a time limit; raise `re.error` if it is invalid."""
    import regex  # noqa: PLC0415 - costs as much as starting Python, and few suites use it

    try:
        return regex.compile(_python_syntax(pattern), regex.IGNORECASE if ignore_case else 0)
    except regex.error as error:
        raise re.error(str(error)) from error


def _python_syntax(pattern: str) -> str:
    """Return the pattern with every brace that is no repeat escaped: to `regex`, `{i}` would mean fuzzy matching."""
    return re.sub(
        r"\\.|\{(?!\d+(?:,\d*)?\}|,\d+\})",
        lambda match: match[0] if match[0].startswith("\\") else "\\{",
        pattern,
        flags=re.DOTALL,
    )


def _bad_approx(argument: Any) -> str | None:
    has_both = isinstance(argument, dict) and argument.keys() == {"value", "within"}
    if has_both and is_number(argument["value"]) and is_number(argument["within"]) and argument["within"] >= 0:
        return None
    return f"expected {{value: number, within: number of at least 0}}, got {argument!r}"


def equals(expected: Any) -> Predicate:
    """Return a predicate for deep JSON equality, with matchers anywhere in `expected`."""
    if is_matcher(expected):
        return _all_operators(expected)
    if not has_matcher(expected):
        return _plain(expected)
    if isinstance(expected, dict):
        fields = [(key, equals(value)) for key, value in expected.items()]
        return lambda actual: (
            isinstance(actual, dict)
            and len(actual) == len(fields)
            and all(key in actual and test(actual[key]) for key, test in fields)
        )
    return _elements([equals(item) for item in expected])


def contains(expected: Any) -> Predicate:
    """Return a predicate for `partial`: extra keys allowed at every level, lists element by element."""
    if isinstance(expected, dict) and not is_matcher(expected):
        fields = [(key, contains(value)) for key, value in expected.items()]
        return lambda actual: (
            isinstance(actual, dict) and all(key in actual and test(actual[key]) for key, test in fields)
        )
    if isinstance(expected, list):
        return _elements([contains(item) for item in expected])
    return equals(expected)


def _plain(expected: Any) -> Predicate:
    return lambda actual: json_equal(expected, actual)


def _elements(tests: list[Predicate]) -> Predicate:
    return lambda actual: (
        isinstance(actual, list)
        and len(actual) == len(tests)
        and all(test(item) for test, item in zip(tests, actual, strict=True))
    )


def _all_operators(matcher: dict[str, Any]) -> Predicate:
    tests = [MATCHERS[name].compile(argument) for name, argument in matcher.items()]
    return tests[0] if len(tests) == 1 else lambda actual: all(test(actual) for test in tests)


def _near(actual: float, middle: float, within: float) -> bool:
    try:
        # 0.1 + 0.2 is within 0.1 of 0.2 except for rounding errors of floats, which integers do not have.
        bits = 4 * ulp(max(abs(actual), abs(middle), within)) if float in map(type, (actual, middle, within)) else 0
        return abs(actual - middle) <= within + bits
    except OverflowError:  # an integer beyond the range of floats is near none
        return False


def _holds(actual: Any, wanted: Any) -> bool:
    if isinstance(actual, str):
        return isinstance(wanted, str) and wanted in actual
    if isinstance(actual, list):
        return any(json_equal(wanted, item) for item in actual)
    return isinstance(actual, dict) and isinstance(wanted, str) and wanted in actual


def _contains(part: Any) -> Predicate:
    return lambda actual: _holds(actual, part)


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[[Any], Predicate]:
    def predicate(bound: Any) -> Predicate:
        if isinstance(bound, str):
            return lambda actual: isinstance(actual, str) and compare(actual, bound)
        return lambda actual: is_number(actual) and compare(actual, bound)

    return predicate


def _approx(argument: dict[str, Any]) -> Predicate:
    middle, within = argument["value"], argument["within"]
    return lambda actual: is_number(actual) and _near(actual, middle, within)


def _one_of(argument: list[Any]) -> Predicate:
    choices = [equals(choice) for choice in argument]
    return lambda actual: any(test(actual) for test in choices)


def _not(argument: Any) -> Predicate:
    test = equals(argument)
    return lambda actual: not test(actual)


def _type(argument: Any) -> Predicate:
    kinds = [TYPES[kind] for kind in (argument if isinstance(argument, list) else [argument])]
    return lambda actual: any(test(actual) for test in kinds)


def _glob(pattern: str) -> Predicate:
    fits = glob_test(pattern)
    return lambda actual: isinstance(actual, str) and fits(actual)


def _regex(pattern: str) -> Predicate:
    search = _compile(pattern).search

    def test(actual: Any) -> bool:
        if monotonic() > _deadline.get():
            msg = f"$regex: the searches of one evaluator took longer than {ALL_SEARCHES_SECONDS:g} s together"
            raise EvaluationError(msg)
        try:
            # The agent wrote this text and could make the standard library's engine run for hours.
            return isinstance(actual, str) and search(actual, timeout=REGEX_SECONDS) is not None
        except TimeoutError:
            msg = f"$regex {pattern!r} took longer than {REGEX_SECONDS:g} s on a text of {len(actual)} characters"
            raise EvaluationError(msg) from None

    return test


class MatcherType(Struct, frozen=True):
    """A matcher that expected values may use."""

    bad_argument: Callable[[Any], str | None]
    """Returns why this is no argument of the matcher; `None` if it is one."""
    compile: Callable[[Any], Predicate]
    """Returns the test of actual values; called only with an argument that is one."""
    nested: bool = False
    """The argument holds expected values, with matchers of their own."""


MATCHERS: dict[str, MatcherType] = {
    "$any": MatcherType(_bad_any, lambda _: lambda _: True),
    "$regex": MatcherType(_bad_regex, _regex),
    "$glob": MatcherType(_bad_glob, _glob),
    "$contains": MatcherType(_bad_part, _contains),
    "$gt": MatcherType(_bad_bound, _comparison(gt)),
    "$gte": MatcherType(_bad_bound, _comparison(ge)),
    "$lt": MatcherType(_bad_bound, _comparison(lt)),
    "$lte": MatcherType(_bad_bound, _comparison(le)),
    "$approx": MatcherType(_bad_approx, _approx),
    "$oneof": MatcherType(_bad_choices, _one_of, nested=True),
    "$not": MatcherType(_accept, _not, nested=True),
    "$type": MatcherType(_bad_type, _type),
    "$literal": MatcherType(_accept, _plain),
}
"""Matchers by name: one entry is all that a new one needs."""
