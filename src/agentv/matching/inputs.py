"""Comparison of a call's input with the expected one, by match mode and per-tool rule."""

from collections.abc import Hashable, Iterator
from typing import Any, Literal

from msgspec import UNSET, Struct
from msgspec.structs import replace

from agentv.matching.diff import Difference, differences
from agentv.matching.equality import canonical_key, json_equal
from agentv.matching.gaps import Known, compare_known, every
from agentv.matching.json_pointer import NOTHING
from agentv.matching.matchers import Predicate, contains, equals, has_matcher, is_matcher
from agentv.matching.text import glob_match
from agentv.model.conversation import has_gap

InputMode = Literal["exact", "partial", "subset", "ignore"] | tuple[str, ...]


class InputRule(Struct, frozen=True):
    """Ignored keys and defaults of one tool, in every mode."""

    ignore: tuple[str, ...] = ()
    defaults: dict[str, Any] = {}

    def prepare(self, value: Any, *, expected: bool = False) -> Any:
        """Return a copy of the value with defaults filled in and ignored keys removed."""
        if not isinstance(value, dict) or not (self.ignore or self.defaults):
            return value
        value = {**self.defaults, **value}
        for pattern in self.ignore:
            value = _drop(value, pattern, expected=expected)
        return value


PLAIN_RULE = InputRule()
MAX_DIGITS = 12


class ExpectedInput:
    """An expected input, compiled for comparison with many calls."""

    def __init__(self, expected: Any, mode: InputMode, rule: InputRule = PLAIN_RULE) -> None:
        self.mode = mode
        self.rule = rule
        self._is_object = isinstance(expected, dict) and not is_matcher(expected)
        self.written = self.expected = expected
        if self._is_object and rule is not PLAIN_RULE:
            self.written = replace(rule, defaults={}).prepare(expected, expected=True)
            # A key that a partial expectation lacks is not compared, so no default is needed.
            self.expected = self.written if mode == "partial" else rule.prepare(expected, expected=True)
        self._test: Predicate | None = None
        self._expects: bool | None = None
        self.is_plain = not has_matcher(expected)

    def matches(self, actual: Any) -> bool:
        """Return whether an input (`UNSET` if there is none) is the expected one."""
        if self.mode == "ignore":
            return True
        if actual is UNSET:
            return False
        if self._test is None:
            if self.is_plain and self.mode == "exact" and self.rule is PLAIN_RULE:
                return json_equal(self.expected, actual)
            self._test = self._predicate()
        return self._test(self.rule.prepare(actual) if self.rule is not PLAIN_RULE else actual)

    def matches_known(self, actual: Any) -> Known:
        """Return the same for an input in which text is missing; `None` if it depends on that text."""
        if self.mode == "ignore" or actual is UNSET or not has_gap(actual):
            return self.matches(actual)
        actual = self.rule.prepare(actual)
        if not self._is_object or self.mode in ("exact", "partial") or not isinstance(actual, dict):
            return compare_known(self.expected, actual, partial=self.mode == "partial" and self._is_object)
        if self.mode == "subset":
            return every(
                compare_known(self.expected[key], value) if key in self.expected else None if has_gap(key) else False
                for key, value in actual.items()
            )
        return every(self._matches_path(path, actual) for path in self.mode)

    def _matches_path(self, path: str, actual: dict[str, Any]) -> Known:
        wanted, got = lookup(self.expected, path), lookup(actual, path)
        if got is NOTHING:
            return True if wanted is NOTHING and not has_gap(actual) else None
        return False if wanted is NOTHING else compare_known(wanted, got)

    def _predicate(self) -> Predicate:
        whole = equals(self.expected)
        if not self._is_object or self.mode == "exact":
            return whole
        if self.mode == "partial":
            return contains(self.expected)
        if self.mode == "subset":
            fields = {key: equals(value) for key, value in self.expected.items()}
            return lambda actual: (
                all(key in fields and fields[key](value) for key, value in actual.items())
                if isinstance(actual, dict)
                else whole(actual)
            )
        wanted = [(path, lookup(self.expected, path)) for path in self.mode]
        tests = [(path, None if value is NOTHING else equals(value)) for path, value in wanted]
        return lambda actual: (
            isinstance(actual, dict)
            and all(
                (value is NOTHING) if test is None else (value is not NOTHING and test(value))
                for path, test in tests
                for value in [lookup(actual, path)]
            )
        )

    def projection(self, prepared: Any) -> Hashable:
        """Return the key that a plain expectation shares with the inputs it matches, for `exact` and for paths."""
        if not isinstance(self.mode, tuple) or not isinstance(prepared, dict):
            return canonical_key(prepared)
        # Tagged, so that it never equals an input that is a list of the same values.
        return (NOTHING, *[canonical_key(lookup(prepared, path)) for path in self.mode])

    @property
    def is_keyed(self) -> bool:
        """True if it is an object that is compared key by key, and nothing else."""
        return self._is_object and self.mode in ("exact", "partial")

    def anchors(self) -> list[tuple[str, Hashable]]:
        """Return the arguments that every matching call must have exactly, for `exact` and `partial`."""
        if not self.is_keyed:
            return []
        fixed = [(key, value) for key, value in self.expected.items() if not has_matcher(value)]
        if self.mode == "partial":
            fixed = [(key, value) for key, value in fixed if not isinstance(value, (dict, list))]
        return [(key, canonical_key(value)) for key, value in fixed]

    def differences(self, actual: Any) -> list[Difference]:
        """Return every path at which the input differs from the expected one."""
        if self.mode == "ignore":
            return []
        if actual is UNSET:
            return [Difference("input", self.expected, NOTHING)]
        actual = self.rule.prepare(actual)
        if not self._is_object or not isinstance(actual, dict):
            return list(differences(self.expected, actual, "input"))
        if isinstance(self.mode, tuple):  # of paths that overlap, such as `a` and `a.0`, each place counts once
            return list({difference.path: difference for difference in self._object_differences(actual)}.values())
        return list(self._object_differences(actual))

    def _object_differences(self, actual: dict[str, Any]) -> Iterator[Difference]:
        if self.mode == "subset":
            present = {key: value for key, value in self.expected.items() if key in actual}
            yield from differences(present, actual, "input")
        elif isinstance(self.mode, tuple):
            for path in self.mode:
                wanted, got = lookup(self.expected, path), lookup(actual, path)
                if wanted is NOTHING or got is NOTHING:
                    if wanted is not got:
                        yield Difference(f"input.{path}", wanted, got)
                else:
                    yield from differences(wanted, got, f"input.{path}")
        else:
            yield from differences(self.expected, actual, "input", partial=self.mode == "partial")

    def expects_arguments(self) -> bool:
        """Return whether any argument is expected."""
        if self._expects is None:
            self._expects = self.agreement([]) is not None
        return self._expects

    def agreement(self, differences: list[Difference]) -> float | None:
        """Return the share of expected argument keys without a difference; `None` if no argument is expected."""
        if self.mode == "ignore":
            return None
        if not self._is_object:
            return 0.0 if any(_is_input(difference.path) for difference in differences) else 1.0
        paths = [difference.path for difference in differences if _is_input(difference.path)]
        if isinstance(self.mode, tuple):
            # A path that neither side has is not compared, and does not count as an argument.
            held = [path for path in self.mode if lookup(self.expected, path) is not NOTHING]
            keys = held + [path for path in self.mode if path not in held and f"input.{path}" in paths]
        else:
            keys = list(self.written)
        if not keys:
            return None
        if "input" in paths:
            return 0.0
        wrong = sum(any(path == f"input.{key}" or path.startswith(f"input.{key}.") for path in paths) for key in keys)
        return 1 - wrong / len(keys)


def _is_input(path: str) -> bool:
    return path == "input" or path.startswith("input.")


def lookup(value: Any, path: str) -> Any:
    """Return the value at a dotted path of keys and list positions, or `NOTHING`."""
    if isinstance(value, dict) and path in value:
        return value[path]
    head, _, rest = path.partition(".")
    if isinstance(value, dict):
        inner = value.get(head, NOTHING)
    elif isinstance(value, list) and head.isdecimal() and len(head) < MAX_DIGITS and int(head) < len(value):
        inner = value[int(head)]
    else:
        inner = NOTHING
    return lookup(inner, rest) if rest and inner is not NOTHING else inner


def _drop(value: Any, pattern: str, *, expected: bool) -> Any:
    """Return the value without what the pattern names; a dot reaches one level deeper, but never into a matcher."""
    if isinstance(value, list):
        items = _drop(dict(zip(map(str, range(len(value))), value, strict=True)), pattern, expected=expected)
        return list(items.values())
    if not isinstance(value, dict) or (expected and is_matcher(value)):
        return value
    head, _, rest = pattern.partition(".")
    kept = {key: item for key, item in value.items() if not glob_match(pattern, str(key))}
    if rest:
        return {
            key: _drop(item, rest, expected=expected) if glob_match(head, str(key)) else item
            for key, item in kept.items()
        }
    return kept
