"""Alignment of calls with expectations, and pairs of leftovers that resemble each other."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal

from msgspec import UNSET, Struct

from agentv.evaluators.trajectory.expectations import CallMatcher, CountedCalls, Expectation
from agentv.matching.alignment import (
    Pair,
    Worth,
    bits,
    heaviest_assignment,
    heaviest_sequence,
    largest_assignment,
    longest_sequence,
)
from agentv.matching.diff import (
    Difference,
)
from agentv.matching.equality import canonical_key

# Beyond this many pairs of one tool, whole arguments are counted instead of every path inside them.
MAX_COMPARED = 20_000


def pair_same_tool(
    expectations: Sequence[Expectation], counted: CountedCalls, left_expected: list[int], left_actual: list[int]
) -> list[Pair]:
    """Pair leftovers of one tool: fewest differing paths first, then earliest expectation, then earliest call."""
    by_tool: dict[str, list[int]] = {}
    for a in left_actual:
        tool = counted.calls[a].tool
        if tool:
            by_tool.setdefault(tool, []).append(a)
    candidates = {e: _candidates(expectations[e], by_tool) for e in left_expected}
    candidate_pairs = sum(map(len, candidates.values()))
    if candidate_pairs <= 1:
        return [(e, a) for e, calls in candidates.items() for a in calls]
    if candidate_pairs <= MAX_COMPARED:
        ranked = sorted(
            (len(expectations[e].differences(counted.calls[a])), e, a) for e, calls in candidates.items() for a in calls
        )
        return sorted(greedy_pairs((e, a) for _, e, a in ranked))
    return sorted(_pair_many(expectations, counted, candidates))


def _candidates(expectation: Expectation, by_tool: dict[str, list[int]]) -> list[int]:
    if not expectation.globbed:
        return by_tool.get(expectation.tool, [])
    return sorted(a for tool, calls in by_tool.items() if expectation.names(tool) for a in calls)


def greedy_pairs(ranked: Iterable[Pair]) -> list[Pair]:
    """Take the ranked pairs in order, each expectation and each call at most once."""
    used_expected: set[int] = set()
    used_actual: set[int] = set()
    taken: list[Pair] = []
    for e, a in ranked:
        if e not in used_expected and a not in used_actual:
            used_expected.add(e)
            used_actual.add(a)
            taken.append((e, a))
    return taken


def _pair_many(
    expectations: Sequence[Expectation], counted: CountedCalls, candidates: dict[int, list[int]]
) -> list[Pair]:
    """Pair thousands of leftovers: compare an expectation with all calls at once, as bits of one integer."""
    # Expectations of one tool share one list of calls, so lists are distinguished by identity.
    distinct = {id(calls): calls for calls in candidates.values()}
    index = _ArgumentIndex(counted, sorted({a for calls in distinct.values() for a in calls}))
    buckets = {e: index.distances(expectations[e], index.mask(calls)) for e, calls in candidates.items() if calls}
    free = index.everything
    taken: list[Pair] = []
    for distance in sorted({d for by_distance in buckets.values() for d in by_distance}):
        for e in list(buckets):
            nearest = buckets[e].get(distance, 0) & free
            if nearest:
                lowest = next(bits(nearest))
                free ^= 1 << lowest
                taken.append((e, index.calls[lowest]))
                del buckets[e]
    return taken


class _ArgumentIndex:
    """Calls by argument, as bits of integers."""

    def __init__(self, counted: CountedCalls, calls: list[int]) -> None:
        self.calls = calls
        self.everything = (1 << len(calls)) - 1
        self._place = {a: position for position, a in enumerate(calls)}
        self._masks: dict[int, int] = {}
        self._with_key: dict[str, int] = {}
        self._with_argument: dict[Hashable, int] = {}
        self._by_size: dict[int, int] = {}
        for position, a in enumerate(calls):
            value = counted.calls[a].input
            arguments = value if isinstance(value, dict) else {}
            self._by_size[len(arguments)] = self._by_size.get(len(arguments), 0) | 1 << position
            for key, item in arguments.items():
                argument = (key, canonical_key(item))
                self._with_key[key] = self._with_key.get(key, 0) | 1 << position
                self._with_argument[argument] = self._with_argument.get(argument, 0) | 1 << position

    def mask(self, calls: list[int]) -> int:
        """Return these calls as bits."""
        if id(calls) not in self._masks:
            self._masks[id(calls)] = sum(1 << self._place[a] for a in calls)
        return self._masks[id(calls)]

    def distances(self, expectation: Expectation, candidates: int) -> dict[int, int]:
        """Return the candidates by the number of arguments that differ."""
        if expectation.input is UNSET or not isinstance(expectation.input, dict):
            return {0: candidates}
        is_exact = expectation.default_mode == "exact"
        by_distance = {size: mask & candidates for size, mask in self._by_size.items()} if is_exact else {0: candidates}
        for key, value in expectation.input.items():
            if is_exact:
                by_distance = _move_nearer(by_distance, self._with_key.get(key, 0))
            by_distance = _move_nearer(by_distance, self._with_argument.get((key, canonical_key(value)), 0))
        return {distance: mask for distance, mask in by_distance.items() if mask}


def _move_nearer(by_distance: dict[int, int], mask: int) -> dict[int, int]:
    """Return the calls by distance, with those in the mask one step nearer."""
    if not mask:
        return by_distance
    moved: dict[int, int] = {}
    for distance, calls in by_distance.items():
        near = calls & mask
        if near:
            moved[distance - 1] = moved.get(distance - 1, 0) | near
        if calls != near:
            moved[distance] = moved.get(distance, 0) | (calls ^ near)
    return moved


Aligner = Callable[[list[int], int], list[Pair]]


class AlignedPair(Struct, frozen=True):
    """A pair of an expectation and a call, by their positions."""

    expected: int
    actual: int
    verdict: Literal["match", "out_of_order", "mismatch"]
    differences: list[Difference] = []


class Alignment(Struct, frozen=True):
    """Pairs of expectations and calls, and what is left over."""

    matches: list[Pair]
    out_of_order: list[Pair]
    mismatches: list[AlignedPair]
    unrelated: list[Pair]
    """Leftovers paired by position though their tools differ."""
    missing: list[int]
    """Expectations in no pair of one tool."""
    extra: list[int]
    """Calls in no pair of one tool."""


def align_calls(
    matcher: CallMatcher, counted: CountedCalls, *, ordered: bool, rows: list[int] | None = None
) -> Alignment:
    """Return the best alignment, and pair its leftovers where that explains a mismatch."""
    expectations = matcher.expectations
    wanted = len(expectations)
    # Rows that are given may say less than a comparison: text may be missing in the calls.
    if rows is None and wanted == len(counted) and all_in_place(expectations, counted):
        return Alignment([(place, place) for place in range(wanted)], [], [], [], [], [])
    rows = matcher.rows(counted.calls) if rows is None else rows
    matches = best_pairs(expectations, counted, rows, ordered=ordered)
    if len(matches) == wanted == len(counted):
        return Alignment(matches, [], [], [], [], [])
    taken_expected, taken_actual = {e for e, _ in matches}, {a for _, a in matches}
    left_expected = [e for e in range(wanted) if e not in taken_expected]
    left_actual = [a for a in range(len(counted)) if a not in taken_actual]
    out_of_order = pair_out_of_order(rows, left_expected, left_actual) if ordered else []
    if out_of_order:
        moved_expected, moved_actual = {e for e, _ in out_of_order}, {a for _, a in out_of_order}
        left_expected = [e for e in left_expected if e not in moved_expected]
        left_actual = [a for a in left_actual if a not in moved_actual]
    mismatches: list[AlignedPair] = []
    unrelated: list[Pair] = []
    for gap_expected, gap_actual in gaps(matches if ordered else [], left_expected, left_actual):
        alike = pair_same_tool(expectations, counted, gap_expected, gap_actual)
        mismatches += [AlignedPair(e, a, "mismatch", expectations[e].differences(counted.calls[a])) for e, a in alike]
        used_expected, used_actual = {e for e, _ in alike}, {a for _, a in alike}
        unrelated += zip(
            [e for e in gap_expected if e not in used_expected],
            [a for a in gap_actual if a not in used_actual],
            strict=False,
        )
    paired_expected, paired_actual = {p.expected for p in mismatches}, {p.actual for p in mismatches}
    return Alignment(
        matches,
        out_of_order,
        mismatches,
        unrelated,
        [e for e in left_expected if e not in paired_expected],
        [a for a in left_actual if a not in paired_actual],
    )


def all_in_place(expectations: Sequence[Expectation], counted: CountedCalls) -> bool:
    """Return whether every call is the one expected at its place: no alignment is better, and most runs are so."""
    for expectation, call in zip(expectations, counted.calls, strict=True):
        if expectation.limit is not None or not expectation.names(call.tool) or not expectation.accepts(call):
            return False
    return True


def best_pairs(
    expectations: Sequence[Expectation], counted: CountedCalls, rows: list[int], *, ordered: bool
) -> list[Pair]:
    """Return the largest alignment for these rows; among several, the one that keeps most time limits."""
    wanted = len(expectations)
    plain: Aligner = longest_sequence if ordered else largest_assignment
    limits = [(index, item.limit) for index, item in enumerate(expectations) if item.limit is not None]
    if not limits:
        return plain(rows, wanted)
    in_time = rows_in_time(rows, limits, counted)
    pairs = plain(in_time, wanted)
    if len(pairs) == wanted:
        # Everything expected was called, and in time: no other alignment keeps more limits.
        return pairs
    worth: Worth = {}
    for index, limit in limits:
        for position, call in enumerate(counted.calls):
            if rows[position] >> index & 1:
                took = call.duration_ms
                worth[index, position] = (int(took is not None and took <= limit), int(took is None or took <= limit))
    return heaviest_sequence(rows, wanted, worth) if ordered else heaviest_assignment(rows, worth)


def rows_in_time(rows: list[int], limits: list[tuple[int, float]], counted: CountedCalls) -> list[int]:
    """Return the rows without the pairs whose time limit is exceeded or whose duration is unknown."""
    kept = list(rows)
    for index, limit in limits:
        for position, call in enumerate(counted.calls):
            duration = call.duration_ms
            if duration is None or duration > limit:
                kept[position] &= ~(1 << index)
    return kept


def pair_out_of_order(rows: list[int], left_expected: list[int], left_actual: list[int]) -> list[Pair]:
    """Pair what an in-order alignment left over, in any order: these calls came out of order."""
    place = {e: position for position, e in enumerate(left_expected)}
    mask = sum(1 << e for e in left_expected)
    narrowed = []
    for a in left_actual:
        row, narrow = rows[a] & mask, 0
        while row:
            lowest = row & -row
            narrow |= 1 << place[lowest.bit_length() - 1]
            row ^= lowest
        narrowed.append(narrow)
    if not any(narrowed):
        return []
    return [(left_expected[e], left_actual[a]) for e, a in largest_assignment(narrowed, len(left_expected))]


def gaps(matches: list[Pair], left_expected: list[int], left_actual: list[int]) -> list[tuple[list[int], list[int]]]:
    """Return what is left over before the first match, between neighbouring matches, and after the last."""
    if not matches:
        return [(left_expected, left_actual)]
    beyond = (1 + max([matches[-1][0], *left_expected[-1:]]), 1 + max([matches[-1][1], *left_actual[-1:]]))
    parts: list[tuple[list[int], list[int]]] = []
    e_from = a_from = 0
    for e_edge, a_edge in [*matches, beyond]:
        e_to, a_to = e_from, a_from
        while e_to < len(left_expected) and left_expected[e_to] < e_edge:
            e_to += 1
        while a_to < len(left_actual) and left_actual[a_to] < a_edge:
            a_to += 1
        if e_to > e_from and a_to > a_from:
            parts.append((left_expected[e_from:e_to], left_actual[a_from:a_to]))
        e_from, a_from = e_to, a_to
    return parts
