"""Which call stands for which expectation, and for the rest, what it should probably have been."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from agentv.evaluators.trajectory.likeness import pair_alike
from agentv.evaluators.trajectory.plan import Expectation, Judge, Made
from agentv.matching.align import Pair, largest_assignment, longest_sequence
from agentv.matching.diff import Difference
from agentv.matching.weighted import Worth, heaviest_assignment, heaviest_sequence

Aligner = Callable[[list[int], int], list[Pair]]


class Aligned(NamedTuple):
    """One expectation and one call that belong together; positions are those of the counted calls."""

    expected: int
    actual: int
    verdict: Literal["match", "out_of_order", "mismatch"]
    differences: list[Difference] = []


class Alignment(NamedTuple):
    """How the calls lie along the expectations."""

    matches: list[Pair]
    out_of_order: list[Pair]
    mismatches: list[Aligned]
    strangers: list[Pair]
    """Leftovers paired by position though their tools differ."""
    missing: list[int]
    """Expectations in no pair of one tool."""
    extra: list[int]
    """Calls in no pair of one tool."""


def align_calls(judge: Judge, made: Made, *, ordered: bool) -> Alignment:
    """The best alignment, and reasons for what it leaves over."""
    expectations = judge.expectations
    wanted = len(expectations)
    if wanted == len(made) and in_step(expectations, made):
        return Alignment([(place, place) for place in range(wanted)], [], [], [], [], [])
    rows = judge.rows(made.calls)
    matches = best_pairs(expectations, made, rows, ordered=ordered)
    if len(matches) == wanted == len(made):
        return Alignment(matches, [], [], [], [], [])
    taken_expected, taken_actual = {e for e, _ in matches}, {a for _, a in matches}
    left_expected = [e for e in range(wanted) if e not in taken_expected]
    left_actual = [a for a in range(len(made)) if a not in taken_actual]
    swapped = extend(rows, left_expected, left_actual) if ordered else []
    if swapped:
        moved_expected, moved_actual = {e for e, _ in swapped}, {a for _, a in swapped}
        left_expected = [e for e in left_expected if e not in moved_expected]
        left_actual = [a for a in left_actual if a not in moved_actual]
    mismatches: list[Aligned] = []
    strangers: list[Pair] = []
    for gap_expected, gap_actual in gaps(matches if ordered else [], left_expected, left_actual):
        alike = pair_alike(expectations, made, gap_expected, gap_actual)
        mismatches += [Aligned(e, a, "mismatch", expectations[e].differences(made.calls[a])) for e, a in alike]
        used_expected, used_actual = {e for e, _ in alike}, {a for _, a in alike}
        strangers += zip(
            [e for e in gap_expected if e not in used_expected],
            [a for a in gap_actual if a not in used_actual],
            strict=False,
        )
    paired_expected, paired_actual = {p.expected for p in mismatches}, {p.actual for p in mismatches}
    return Alignment(
        matches,
        swapped,
        mismatches,
        strangers,
        [e for e in left_expected if e not in paired_expected],
        [a for a in left_actual if a not in paired_actual],
    )


def in_step(expectations: Sequence[Expectation], made: Made) -> bool:
    """Whether every call is the one expected at its place: nothing beats that, and most runs are like it."""
    for expectation, call in zip(expectations, made.calls, strict=True):
        if expectation.limit is not None or not expectation.names(call.tool) or not expectation.accepts(call):
            return False
    return True


def best_pairs(expectations: Sequence[Expectation], made: Made, rows: list[int], *, ordered: bool) -> list[Pair]:
    """The largest alignment for these rows, and among the largest one that keeps most time limits."""
    wanted = len(expectations)
    plain: Aligner = longest_sequence if ordered else largest_assignment
    limits = [(index, item.limit) for index, item in enumerate(expectations) if item.limit is not None]
    if not limits:
        return plain(rows, wanted)
    in_time = rows_in_time(rows, limits, made)
    found = plain(in_time, wanted)
    if len(found) == wanted:
        # Everything expected was called, and in time: no other alignment keeps more limits.
        return found
    worth: Worth = {}
    for index, limit in limits:
        for position, call in enumerate(made.calls):
            if rows[position] >> index & 1:
                took = call.duration_ms
                worth[index, position] = (int(took is not None and took <= limit), int(took is None or took <= limit))
    return heaviest_sequence(rows, wanted, worth) if ordered else heaviest_assignment(rows, worth)


def rows_in_time(rows: list[int], limits: list[tuple[int, float]], made: Made) -> list[int]:
    """The rows without the pairs whose time limit is broken or cannot be told."""
    kept = list(rows)
    for index, limit in limits:
        for position, call in enumerate(made.calls):
            duration = call.duration_ms
            if duration is None or duration > limit:
                kept[position] &= ~(1 << index)
    return kept


def extend(rows: list[int], left_expected: list[int], left_actual: list[int]) -> list[Pair]:
    """A maximum assignment of what an in-order alignment left over: calls that came at another time."""
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
    """What is left over between each two neighbouring matches, before the first and after the last."""
    if not matches:
        return [(left_expected, left_actual)]
    beyond = (1 + max([matches[-1][0], *left_expected[-1:]]), 1 + max([matches[-1][1], *left_actual[-1:]]))
    found: list[tuple[list[int], list[int]]] = []
    e_from = a_from = 0
    for e_edge, a_edge in [*matches, beyond]:
        e_to, a_to = e_from, a_from
        while e_to < len(left_expected) and left_expected[e_to] < e_edge:
            e_to += 1
        while a_to < len(left_actual) and left_actual[a_to] < a_edge:
            a_to += 1
        if e_to > e_from and a_to > a_from:
            found.append((left_expected[e_from:e_to], left_actual[a_from:a_to]))
        e_from, a_from = e_to, a_to
    return found
