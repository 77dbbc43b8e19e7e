"""Fast path of `tool_trajectory` for many expectations: an index, so that each call is compared with few of them.

Comparing every call with every expectation takes quadratic time, which is noticeable from a few hundred of each;
`expectations.CallMatcher` uses the index from `FEW_PAIRS` pairs on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from agentv.matching.equality import canonical_key
from agentv.matching.matchers import contains, equals, has_matcher, is_matcher, is_number

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from agentv.evaluators.trajectory.expectations import Expectation
    from agentv.matching.inputs import ExpectedInput
    from agentv.matching.matchers import Predicate
    from agentv.model.conversation import ToolCall


BOUNDS = ("$gt", "$gte", "$lt", "$lte")


class MatcherIndex:
    """Distinct expected values, grouped by matchers that one lookup can decide; other matchers are tried one by one."""

    def __init__(self) -> None:
        self._equal: dict[Hashable, int] = {}
        self._bounds: dict[tuple[str, bool], NumberBounds] = {}
        self._parts: dict[str, int] = {}
        self._elements: dict[Hashable, int] = {}
        self._others: dict[Hashable, tuple[int, Predicate]] = {}
        self.one_by_one_bits = 0
        """The values that have to be tried one by one."""

    def add(self, bits: int, expected: Any, *, partial: bool = False) -> None:
        """Add an expected value."""
        single: dict[str, Any] = expected if is_matcher(expected) and len(expected) == 1 else {"": None}
        ((operator, argument),) = single.items()
        if not has_matcher(expected) and not (partial and isinstance(expected, (dict, list))):
            self._add_equal(bits, [expected])
        elif operator == "$literal" or (operator == "$oneof" and not has_matcher(argument)):
            self._add_equal(bits, [argument] if operator == "$literal" else argument)
        elif operator in BOUNDS and argument == argument:  # noqa: PLR0124 - NaN has no place in any order
            self._bounds.setdefault((operator, isinstance(argument, str)), NumberBounds(operator)).add(bits, argument)
        elif operator == "$contains":
            self._elements[canonical_key(argument)] = self._elements.get(canonical_key(argument), 0) | bits
            if isinstance(argument, str):
                self._parts[argument] = self._parts.get(argument, 0) | bits
        else:
            key = (partial, canonical_key(expected))
            known, test = self._others.get(key) or (0, contains(expected) if partial else equals(expected))
            self._others[key] = (known | bits, test)
            self.one_by_one_bits |= bits

    def _add_equal(self, bits: int, values: list[Any]) -> None:
        for value in values:
            key = canonical_key(value)
            self._equal[key] = self._equal.get(key, 0) | bits

    def mask(self, actual: Any, among: int) -> int:
        """Return the expected values, among the given ones, that accept this value."""
        mask = self.look_up(actual)
        return mask | self.try_each(actual, among) if self.one_by_one_bits & among else mask

    def try_each(self, actual: Any, among: int) -> int:
        """Return those of them that have to be tried one by one and accept the value."""
        mask = 0
        for bits, test in self._others.values():
            if bits & among and test(actual):
                mask |= bits
        return mask

    def look_up(self, actual: Any) -> int:
        """Return the expected values that accept the value and can be looked up."""
        mask = self._equal.get(canonical_key(actual), 0) if self._equal else 0
        if self._bounds and (isinstance(actual, str) or is_number(actual)):
            for (_, is_text), bounds in self._bounds.items():
                if is_text is isinstance(actual, str) and actual == actual:  # noqa: PLR0124 - as above
                    mask |= bounds.mask(actual)
        if self._elements:
            for bits in self._held_by(actual):
                mask |= bits
        return mask

    def _held_by(self, actual: Any) -> list[int]:
        """Return the `$contains` values in a text (as part), in a list (as element) or in an object (as key)."""
        if isinstance(actual, str):
            return [bits for part, bits in self._parts.items() if part in actual]
        if isinstance(actual, list):
            return [self._elements.get(canonical_key(item), 0) for item in actual]
        return [self._parts.get(key, 0) for key in actual] if isinstance(actual, dict) else []


class NumberBounds:
    """The sorted bounds of one comparison operator, searched by bisection."""

    def __init__(self, operator: str) -> None:
        self._below = operator in ("$gt", "$gte")
        self._find = bisect_left if operator in ("$gt", "$lte") else bisect_right
        self._bounds: list[tuple[Any, int]] = []
        self._sorted: tuple[list[Any], list[int]] | None = None

    def add(self, bits: int, bound: Any) -> None:
        """Add a bound."""
        self._bounds.append((bound, bits))
        self._sorted = None

    def mask(self, actual: Any) -> int:
        """Return the bounds that this value meets."""
        sorted_bounds = self._sorted
        if sorted_bounds is None:
            sorted_bounds = self._sorted = self._sort()
        bounds, masks = sorted_bounds
        return masks[self._find(bounds, actual)]

    def _sort(self) -> tuple[list[Any], list[int]]:
        bounds = sorted(self._bounds, key=lambda item: item[0])
        masks, kept = [0], 0
        for _, bits in bounds if self._below else reversed(bounds):
            kept |= bits
            masks.append(kept)
        return [bound for bound, _ in bounds], masks if self._below else masks[::-1]


class KeyGroups:
    """Expected objects with the same keys, each key looked up once for all of them."""

    def __init__(self) -> None:
        self._groups: dict[tuple[frozenset[str], bool], tuple[int, dict[str, MatcherIndex]]] = {}

    def add(self, bits: int, wanted: ExpectedInput) -> None:
        """Add an expected input whose arguments are compared key by key."""
        partial = wanted.mode == "partial"
        keys = frozenset(wanted.expected)
        known, tests = self._groups.get((keys, partial)) or (0, {key: MatcherIndex() for key in keys})
        for key, value in wanted.expected.items():
            tests[key].add(bits, value, partial=partial)
        self._groups[keys, partial] = (known | bits, tests)

    def row(self, actual: dict[str, Any]) -> int:
        """Return the expected objects that accept this one."""
        row = 0
        for (keys, partial), (everything, tests) in self._groups.items():
            if actual.keys() >= keys if partial else actual.keys() == keys:
                mask = everything
                for key, test in tests.items():
                    mask &= test.look_up(actual[key]) | test.one_by_one_bits
                # Slow matchers, above all regular expressions, are tried only where everything else fits.
                for key, test in tests.items():
                    if test.one_by_one_bits & mask:
                        mask &= test.try_each(actual[key], mask) | ~test.one_by_one_bits
                row |= mask
        return row


# Up to this many expectations that share a fixed argument, trying each is faster than comparing by argument.
FEW_ALIKE = 8
# Up to this many calls of one tool, trying each expectation with a glob is faster than indexing them.
FEW_CALLS = 8


def key_of(value: Any) -> Hashable:
    """Return a key of an input or output, which may be missing."""
    return UNSET if value is UNSET else canonical_key(value)


class ToolIndex:
    """Expectations of one tool by what they require: an equal input, certain arguments, an output, a status."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._sample: ExpectedInput | None = None
        """One of the expected inputs: all share the tool's rule."""
        self._any_input = self._any_output = self._any_status = 0
        self._equal: dict[object, tuple[ExpectedInput, dict[Hashable, int]]] = {}
        self._allowing: dict[Hashable, int] = {}
        self._allowing_all = 0
        self._anchored: list[tuple[int, ExpectedInput, list[tuple[str, Hashable]]]] = []
        self._by_anchor: dict[Hashable, list[tuple[int, ExpectedInput]]] = {}
        self._groups = KeyGroups()
        self._others: list[tuple[int, ExpectedInput]] = []
        self._outputs = MatcherIndex()
        self._statuses: dict[str, int] = {}

    def add(self, bits: int, expectation: Expectation) -> None:
        """Add an expectation (or several equal ones) in the cheapest way to look it up."""
        if expectation.entry.output is UNSET:
            self._any_output |= bits
        else:
            self._outputs.add(bits, expectation.entry.output)
        if expectation.status is None:
            self._any_status |= bits
        else:
            self._statuses[expectation.status] = self._statuses.get(expectation.status, 0) | bits
        wanted = None if expectation.input is UNSET else expectation.input_for(self._tool)
        if wanted is None or wanted.mode == "ignore":
            self._any_input |= bits
        else:
            self._sample = wanted
            self._add_input(bits, wanted)

    def _add_input(self, bits: int, wanted: ExpectedInput) -> None:
        if wanted.is_plain and (wanted.mode == "exact" or isinstance(wanted.mode, tuple)):
            _, entries = self._equal.setdefault(wanted.mode, (wanted, {}))
            key = wanted.projection(wanted.expected)
            entries[key] = entries.get(key, 0) | bits
        elif wanted.is_plain and wanted.mode == "subset" and isinstance(wanted.expected, dict):
            self._allowing_all |= bits
            for key, value in wanted.expected.items():
                argument = (key, canonical_key(value))
                self._allowing[argument] = self._allowing.get(argument, 0) | bits
        elif anchors := wanted.anchors():
            self._anchored.append((bits, wanted, anchors))
        elif wanted.is_keyed:
            self._groups.add(bits, wanted)
        else:
            self._others.append((bits, wanted))

    def row(self, call: ToolCall) -> int:
        """Return the expectations that this call meets, as bits."""
        row = self._any_input
        if self._sample is not None and call.input is not UNSET:
            prepared = self._sample.rule.prepare(call.input)
            for wanted, entries in self._equal.values():
                row |= entries.get(wanted.projection(prepared), 0)
            if isinstance(prepared, dict):
                row |= self._groups.row(prepared)
                if self._allowing_all or self._by_anchor:
                    row |= self._by_arguments(call, [(key, canonical_key(value)) for key, value in prepared.items()])
            for bits, wanted in self._others:
                if wanted.matches(call.input):
                    row |= bits
        if row & ~self._any_output:
            row &= self._any_output | (0 if call.output is UNSET else self._outputs.mask(call.output, row))
        if row & ~self._any_status:
            row &= self._any_status | self._statuses.get(call.effective_status, 0)
        return row

    def _by_arguments(self, call: ToolCall, arguments: list[tuple[str, Hashable]]) -> int:
        row = self._allowing_all
        for argument in arguments:
            row &= self._allowing.get(argument, 0)
        if self._by_anchor:
            for argument in arguments:
                for bits, wanted in self._by_anchor.get(argument, ()):
                    if wanted.matches(call.input):
                        row |= bits
        return row

    def complete(self) -> ToolIndex:
        """Index the expectations with fixed arguments by their rarest one, once all are added; return self."""
        frequency: dict[Hashable, int] = {}
        for _, _, anchors in self._anchored:
            for anchor in anchors:
                frequency[anchor] = frequency.get(anchor, 0) + 1
        for bits, wanted, anchors in self._anchored:
            # The rarest argument leaves the fewest expectations to compare in full.
            rarest = min(anchors, key=frequency.__getitem__)
            if frequency[rarest] > FEW_ALIKE:
                self._groups.add(bits, wanted)
            else:
                self._by_anchor.setdefault(rarest, []).append((bits, wanted))
        return self


def _index_of(tool: str, entries: Iterable[tuple[int, Expectation]]) -> ToolIndex:
    index = ToolIndex(tool)
    for bits, expectation in entries:
        index.add(bits, expectation)
    return index.complete()


class _OneByOne:
    """Expectations with a glob, compared one by one for a tool with too few calls to index them."""

    def __init__(self, index: ToolIndex | None, fitting: list[tuple[int, Expectation]]) -> None:
        self._index = index
        self._fitting = fitting

    def row(self, call: ToolCall) -> int:
        """Return the expectations that this call meets, as bits."""
        row = 0 if self._index is None else self._index.row(call)
        for bits, expectation in self._fitting:
            if expectation.accepts(call):
                row |= bits
        return row


class ExpectationIndex:
    """Expectations by tool, immutable once constructed."""

    def __init__(self, expectations: Sequence[Expectation]) -> None:
        self._by_name: dict[str, int] = {}
        self._by_tool: dict[str, list[tuple[int, Expectation]]] = {}
        self._globs: list[tuple[int, Expectation]] = []
        self._sees_results = False
        alike: dict[Hashable, tuple[int, Expectation]] = {}
        for index, expectation in enumerate(expectations):
            if not expectation.globbed and expectation.name_only:
                self._by_name[expectation.tool] = self._by_name.get(expectation.tool, 0) | 1 << index
            else:
                key = expectation.key()
                bits, _ = alike.get(key, (0, None))
                alike[key] = (bits | 1 << index, expectation)
        for bits, expectation in alike.values():
            self._sees_results |= not expectation.only_input
            entries = self._globs if expectation.globbed else self._by_tool.setdefault(expectation.tool, [])
            entries.append((bits, expectation))
        self._indices = {tool: _index_of(tool, entries) for tool, entries in self._by_tool.items()}

    def rows(self, calls: Sequence[ToolCall]) -> list[int]:
        """Return for each call the expectations that it meets, as bits."""
        if not self._by_tool and not self._globs:
            return [self._by_name.get(call.tool, 0) for call in calls]
        times: dict[str, int] = {}
        for call in calls if self._globs else ():
            times[call.tool] = times.get(call.tool, 0) + 1
        indices: dict[str, tuple[int, ToolIndex | _OneByOne | None]] = {}
        known: dict[Hashable, int] = {}
        rows: list[int] = []
        for call in calls:
            if not call.tool:
                rows.append(0)
                continue
            if call.tool not in indices:
                indices[call.tool] = self._for_tool(call.tool, times.get(call.tool, 0))
            named, index = indices[call.tool]
            rows.append(named if index is None else named | self._row(call, index, known))
        return rows

    def _for_tool(self, tool: str, times: int) -> tuple[int, ToolIndex | _OneByOne | None]:
        """Return the expectations that every call of this tool meets, and the index of the others."""
        named, fitting = self._by_name.get(tool, 0), []
        for bits, expectation in self._globs:
            if expectation.names(tool):
                if expectation.name_only:
                    named |= bits
                else:
                    fitting.append((bits, expectation))
        if not fitting:
            return named, self._indices.get(tool)
        if times <= FEW_CALLS:
            return named, _OneByOne(self._indices.get(tool), fitting)
        return named, _index_of(tool, [*self._by_tool.get(tool, ()), *fitting])

    def _row(self, call: ToolCall, index: ToolIndex | _OneByOne, known: dict[Hashable, int]) -> int:
        key: Hashable = (call.tool, key_of(call.input))
        if self._sees_results:
            key = (key, key_of(call.output), call.effective_status)
        row = known.get(key)
        if row is None:
            row = known[key] = index.row(call)
        return row
