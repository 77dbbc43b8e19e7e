"""Many expected values held against one actual value at once: which of them accept it, as bits."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from agentv.matching.equality import canonical
from agentv.matching.values import contains, equals, has_matcher, is_matcher, is_number

if TYPE_CHECKING:
    from collections.abc import Hashable

    from agentv.matching.inputs import ExpectedInput
    from agentv.matching.values import Predicate

BOUNDS = ("$gt", "$gte", "$lt", "$lte")


class ValueTests:
    """Distinct expected values, filed by how they can be asked together; a matcher of its own kind is asked alone."""

    def __init__(self) -> None:
        self._equal: dict[Hashable, int] = {}
        self._bounds: dict[tuple[str, bool], Bounds] = {}
        self._parts: dict[str, int] = {}
        self._elements: dict[Hashable, int] = {}
        self._others: dict[Hashable, tuple[int, Predicate]] = {}
        self.asked = 0
        """Those that are asked one by one."""

    def add(self, bits: int, expected: Any, *, partial: bool = False) -> None:
        """File one expected value."""
        single: dict[str, Any] = expected if is_matcher(expected) and len(expected) == 1 else {"": None}
        ((operator, argument),) = single.items()
        if not has_matcher(expected) and not (partial and isinstance(expected, (dict, list))):
            self._file_equal(bits, [expected])
        elif operator == "$literal" or (operator == "$oneof" and not has_matcher(argument)):
            self._file_equal(bits, [argument] if operator == "$literal" else argument)
        elif operator in BOUNDS and argument == argument:  # noqa: PLR0124 - NaN has no place in any order
            self._bounds.setdefault((operator, isinstance(argument, str)), Bounds(operator)).add(bits, argument)
        elif operator == "$contains":
            self._elements[canonical(argument)] = self._elements.get(canonical(argument), 0) | bits
            if isinstance(argument, str):
                self._parts[argument] = self._parts.get(argument, 0) | bits
        else:
            key = (partial, canonical(expected))
            known, test = self._others.get(key) or (0, contains(expected) if partial else equals(expected))
            self._others[key] = (known | bits, test)
            self.asked |= bits

    def _file_equal(self, bits: int, values: list[Any]) -> None:
        for value in values:
            key = canonical(value)
            self._equal[key] = self._equal.get(key, 0) | bits

    def mask(self, actual: Any, among: int) -> int:
        """The expected values, of these, that accept this one."""
        found = self.at_once(actual)
        return found | self.one_by_one(actual, among) if self.asked & among else found

    def one_by_one(self, actual: Any, among: int) -> int:
        """The same for those that cannot be asked together."""
        found = 0
        for bits, test in self._others.values():
            if bits & among and test(actual):
                found |= bits
        return found

    def at_once(self, actual: Any) -> int:
        """The same for those that can."""
        found = self._equal.get(canonical(actual), 0) if self._equal else 0
        if self._bounds and (isinstance(actual, str) or is_number(actual)):
            for (_, is_text), bounds in self._bounds.items():
                if is_text is isinstance(actual, str) and actual == actual:  # noqa: PLR0124 - as above
                    found |= bounds.mask(actual)
        if self._elements:
            for bits in self._held_by(actual):
                found |= bits
        return found

    def _held_by(self, actual: Any) -> list[int]:
        """For `$contains`: a part of a text, an element of a list, a key of an object."""
        if isinstance(actual, str):
            return [bits for part, bits in self._parts.items() if part in actual]
        if isinstance(actual, list):
            return [self._elements.get(canonical(item), 0) for item in actual]
        return [self._parts.get(key, 0) for key in actual] if isinstance(actual, dict) else []


class Bounds:
    """The bounds of one comparison in order, so that a search replaces asking each of them."""

    def __init__(self, operator: str) -> None:
        self._below = operator in ("$gt", "$gte")
        self._find = bisect_left if operator in ("$gt", "$lte") else bisect_right
        self._given: list[tuple[Any, int]] = []
        self._sorted: tuple[list[Any], list[int]] | None = None

    def add(self, bits: int, bound: Any) -> None:
        """File one more."""
        self._given.append((bound, bits))
        self._sorted = None

    def mask(self, actual: Any) -> int:
        """The bounds that this value keeps."""
        found = self._sorted
        if found is None:
            found = self._sorted = self._sort()
        bounds, masks = found
        return masks[self._find(bounds, actual)]

    def _sort(self) -> tuple[list[Any], list[int]]:
        given = sorted(self._given, key=lambda item: item[0])
        masks, kept = [0], 0
        for _, bits in given if self._below else reversed(given):
            kept |= bits
            masks.append(kept)
        return [bound for bound, _ in given], masks if self._below else masks[::-1]


class KeyGroups:
    """Expected objects with the same keys, each key asked once for all of them."""

    def __init__(self) -> None:
        self._groups: dict[tuple[frozenset[str], bool], tuple[int, dict[str, ValueTests]]] = {}

    def add(self, bits: int, wanted: ExpectedInput) -> None:
        """File one expected input whose arguments are compared key by key."""
        partial = wanted.mode == "partial"
        keys = frozenset(wanted.expected)
        known, tests = self._groups.get((keys, partial)) or (0, {key: ValueTests() for key in keys})
        for key, value in wanted.expected.items():
            tests[key].add(bits, value, partial=partial)
        self._groups[keys, partial] = (known | bits, tests)

    def row(self, actual: dict[str, Any]) -> int:
        """The expected objects that accept this one."""
        row = 0
        for (keys, partial), (everything, tests) in self._groups.items():
            if actual.keys() >= keys if partial else actual.keys() == keys:
                mask = everything
                for key, test in tests.items():
                    mask &= test.at_once(actual[key]) | test.asked
                # What takes time, a regular expression above all, is asked only where all else fits.
                for key, test in tests.items():
                    if test.asked & mask:
                        mask &= test.one_by_one(actual[key], mask) | ~test.asked
                row |= mask
        return row
