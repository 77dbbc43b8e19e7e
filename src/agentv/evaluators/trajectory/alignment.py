"""Pair calls with expectations, and report the alignment."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, Struct
from msgspec.json import decode

from agentv.evaluators.trajectory import wording
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
    MAX_QUOTED,
    NOTHING,
    Difference,
    plain_differences,
    plain_key_differences,
    quote,
    unlike_keys,
)
from agentv.matching.equality import canonical, encoded

# Beyond this many pairs of one tool, whole arguments are counted instead of every path inside them.
MAX_COMPARED = 20_000


def pair_alike(
    expectations: Sequence[Expectation], made: CountedCalls, left_expected: list[int], left_actual: list[int]
) -> list[Pair]:
    """Pairs of one tool: fewest differing paths first, then the earliest expectation, then the earliest call."""
    by_tool: dict[str, list[int]] = {}
    for a in left_actual:
        tool = made.calls[a].tool
        if tool:
            by_tool.setdefault(tool, []).append(a)
    candidates = {e: _candidates(expectations[e], by_tool) for e in left_expected}
    rivals = sum(map(len, candidates.values()))
    if rivals <= 1:
        return [(e, a) for e, calls in candidates.items() for a in calls]
    if rivals <= MAX_COMPARED:
        ranked = sorted(
            (len(expectations[e].differences(made.calls[a])), e, a) for e, calls in candidates.items() for a in calls
        )
        return sorted(greedy_pairs((e, a) for _, e, a in ranked))
    return sorted(_pair_many(expectations, made, candidates))


def _candidates(expectation: Expectation, by_tool: dict[str, list[int]]) -> list[int]:
    if not expectation.globbed:
        return by_tool.get(expectation.tool, [])
    return sorted(a for tool, calls in by_tool.items() if expectation.names(tool) for a in calls)


def greedy_pairs(ranked: Iterable[Pair]) -> list[Pair]:
    """Each expectation and each call at most once, first come first served."""
    used_expected: set[int] = set()
    used_actual: set[int] = set()
    taken: list[Pair] = []
    for e, a in ranked:
        if e not in used_expected and a not in used_actual:
            used_expected.add(e)
            used_actual.add(a)
            taken.append((e, a))
    return taken


def _pair_many(expectations: Sequence[Expectation], made: CountedCalls, candidates: dict[int, list[int]]) -> list[Pair]:
    """The same for thousands of leftovers: all calls are counted at once, as bits of one integer."""
    # Expectations of one tool share one list of calls, so lists are told apart by identity.
    distinct = {id(calls): calls for calls in candidates.values()}
    index = _ArgumentIndex(made, sorted({a for calls in distinct.values() for a in calls}))
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
    """Which calls have which argument, as bits."""

    def __init__(self, made: CountedCalls, calls: list[int]) -> None:
        self.calls = calls
        self.everything = (1 << len(calls)) - 1
        self._place = {a: position for position, a in enumerate(calls)}
        self._masks: dict[int, int] = {}
        self._with_key: dict[str, int] = {}
        self._with_argument: dict[Hashable, int] = {}
        self._by_size: dict[int, int] = {}
        for position, a in enumerate(calls):
            value = made.calls[a].input
            arguments = value if isinstance(value, dict) else {}
            self._by_size[len(arguments)] = self._by_size.get(len(arguments), 0) | 1 << position
            for key, item in arguments.items():
                argument = (key, canonical(item))
                self._with_key[key] = self._with_key.get(key, 0) | 1 << position
                self._with_argument[argument] = self._with_argument.get(argument, 0) | 1 << position

    def mask(self, calls: list[int]) -> int:
        """These calls as bits."""
        if id(calls) not in self._masks:
            self._masks[id(calls)] = sum(1 << self._place[a] for a in calls)
        return self._masks[id(calls)]

    def distances(self, expectation: Expectation, candidates: int) -> dict[int, int]:
        """The candidates by how many arguments differ."""
        if expectation.input is UNSET or not isinstance(expectation.input, dict):
            return {0: candidates}
        whole = expectation.default_mode == "exact"
        found = {size: mask & candidates for size, mask in self._by_size.items()} if whole else {0: candidates}
        for key, value in expectation.input.items():
            if whole:
                found = _closer(found, self._with_key.get(key, 0))
            found = _closer(found, self._with_argument.get((key, canonical(value)), 0))
        return {distance: mask for distance, mask in found.items() if mask}


def _closer(found: dict[int, int], mask: int) -> dict[int, int]:
    """The same calls with those in the mask one step nearer."""
    if not mask:
        return found
    moved: dict[int, int] = {}
    for distance, calls in found.items():
        near = calls & mask
        if near:
            moved[distance - 1] = moved.get(distance - 1, 0) | near
        if calls != near:
            moved[distance] = moved.get(distance, 0) | (calls ^ near)
    return moved


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


def align_calls(judge: CallMatcher, made: CountedCalls, *, ordered: bool) -> Alignment:
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


def in_step(expectations: Sequence[Expectation], made: CountedCalls) -> bool:
    """Whether every call is the one expected at its place: nothing beats that, and most runs are like it."""
    for expectation, call in zip(expectations, made.calls, strict=True):
        if expectation.limit is not None or not expectation.names(call.tool) or not expectation.accepts(call):
            return False
    return True


def best_pairs(
    expectations: Sequence[Expectation], made: CountedCalls, rows: list[int], *, ordered: bool
) -> list[Pair]:
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


def rows_in_time(rows: list[int], limits: list[tuple[int, float]], made: CountedCalls) -> list[int]:
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


DETAILS = ("precision", "recall", "f1", "argument_score", "missing", "extra", "out_of_order", "repeated", "alignment")


def nothing_told() -> dict[str, Any]:
    """The details of a configuration, or of a reply, that tells no sequence."""
    return dict.fromkeys(DETAILS)


class Fractions(Struct, frozen=True):
    """How much of what was expected was done, of what was done was expected, and both in one."""

    recall: float
    precision: float
    f1: float


def fractions_of(matched: int, wanted: int, made: int) -> Fractions:
    """`recall`, `precision` and `f1`: both sides empty is 1, one side empty is 0."""
    if wanted and made:
        return Fractions(matched / wanted, matched / made, matched / ((wanted + made) / 2))
    return Fractions(0.0, 0.0, 0.0) if wanted or made else Fractions(1.0, 1.0, 1.0)


def fraction_of(kind: str, matched: int, wanted: int, made: int) -> float:
    """One of them by its name."""
    value: float = getattr(fractions_of(matched, wanted, made), kind)
    return value


class Timed(NamedTuple):
    """One time limit and what became of it."""

    tool: str
    limit: float
    took: float | None
    was_called: bool


class AlignmentReport(Struct, frozen=True, kw_only=True):
    """Expected and actual units side by side; numbers are those of the unfiltered list."""

    unit: str
    labels: list[str]
    long_labels: list[str]
    """The labels with their inputs, for two of one name."""
    made: int
    matches: list[tuple[int, int]]
    out_of_order: list[tuple[int, int]]
    mismatches: list[tuple[int, int, list[str], list[Difference]]]
    """(expected, number, sentences, differences)"""
    strangers: list[tuple[int, int, str]]
    """(expected, number, name): leftovers of different tools that stand at the same place."""
    missing: list[int]
    hints: dict[int, list[str]]
    """For a missing turn, how the turn that it probably should have been differs."""
    extra: list[tuple[int, str]]
    timed: list[Timed]
    argument_score: float | None

    @property
    def wanted(self) -> int:
        """How many units were expected."""
        return len(self.labels)

    def fraction(self, kind: str) -> float:
        """`recall`, `precision` or `f1` of the matches."""
        return fraction_of(kind, len(self.matches), self.wanted, self.made)

    def details(self) -> dict[str, Any]:
        """Everything that a page or a program wants to know about the alignment."""
        rows = match_rows(self.matches)
        rows += [row(e, n, "out_of_order", []) for e, n in self.out_of_order]
        rows += [
            row(e, n, "mismatch", [as_json(d) for d in found[: wording.MAX_DIFFERENCES]])
            for e, n, _, found in self.mismatches
        ]
        if len(rows) > len(self.matches):
            rows.sort(key=itemgetter("expected"))
        fractions = fractions_of(len(self.matches), self.wanted, self.made)
        return {
            "precision": fractions.precision,
            "recall": fractions.recall,
            "f1": fractions.f1,
            "argument_score": self.argument_score,
            "missing": self.missing,
            "extra": [number for number, _ in self.extra],
            "out_of_order": sorted([e for e, _ in self.out_of_order]),
            "alignment": rows,
        }

    def order_sentences(self) -> list[str]:
        """One sentence per out-of-order unit, against an aligned one that it should have been before or after."""
        found: list[str] = []
        aligned = [e for e, _ in self.matches] if self.out_of_order else []
        for e, number in self.out_of_order:
            after = bisect(aligned, e)
            if after < len(aligned) and self.matches[after][1] < number:
                other, other_number = self.matches[after]
                found.append(self._order(e, other, other_number, number))
            else:
                other, other_number = self.matches[after - 1]
                found.append(self._order(other, e, number, other_number))
        return found

    def _order(self, first: int, second: int, second_number: int, first_number: int) -> str:
        names = self.labels if self.labels[first] != self.labels[second] else self.long_labels
        return wording.order(names[first], names[second], self.unit, second_number, first_number)

    def missing_with_hints(self, e: int, *, ordered: bool) -> list[str]:
        """Why an expectation that no unit stands for does not hold."""
        after = self.labels[e - 1] if e else None
        return [wording.missing(self.unit, self.labels[e], after, ordered=ordered), *self.hints.get(e, ())]

    def missing_sentences(self, *, ordered: bool) -> list[str]:
        """Everything that was expected and is not there, or not as it should be."""
        found = self.order_sentences()
        found += [sentence for _, _, sentences, _ in self.mismatches for sentence in sentences]
        for e in self.missing:
            found += self.missing_with_hints(e, ordered=ordered)
        return found

    def extra_sentences(self) -> list[str]:
        """Everything that is there and was not expected."""
        return [f"unexpected {self.unit} {number}: {name}" for number, name in self.extra]


def match_rows(pairs: Iterable[tuple[int, int]]) -> list[dict[str, Any]]:
    """The rows of an alignment for expectations and calls that match."""
    return [{"expected": e, "actual": number, "verdict": "match", "differences": []} for e, number in pairs]


def row(expected: int, actual: int, verdict: str, differences: list[dict[str, Any]]) -> dict[str, Any]:
    """One row of an alignment."""
    return {"expected": expected, "actual": actual, "verdict": verdict, "differences": differences}


def bisect(values: list[int], value: int) -> int:
    """Where `value` belongs among the sorted values."""
    from bisect import bisect_left  # noqa: PLC0415 - only a failing order needs it

    return bisect_left(values, value)


def as_json(difference: Difference) -> dict[str, Any]:
    """A difference as plain data; an absent side has no key."""
    found: dict[str, Any] = {"path": difference.path}
    for side, value in (("expected", difference.expected), ("actual", difference.actual)):
        if value is not NOTHING:
            found[side] = _plain_json(value)
    return found


def _plain_json(value: Any) -> Any:
    """A copy that any JSON writer takes; what is too long or not quite JSON is quoted."""
    if value is None or (isinstance(value, str) and value.isascii() and len(value) < MAX_QUOTED):
        return value
    text = encoded(value)
    return quote(value) if text is None or len(text) > MAX_QUOTED else decode(text)


def report_alignment(judge: CallMatcher, made: CountedCalls, *, ordered: bool) -> AlignmentReport:
    """The calls along the expectations."""
    expectations = judge.expectations
    found = align_calls(judge, made, ordered=ordered)
    numbers = made.numbers
    return AlignmentReport(
        unit="call",
        labels=[expectation.tool for expectation in expectations],
        long_labels=[wording.label(expectation) for expectation in expectations] if found.out_of_order else [],
        made=len(made),
        matches=[(e, numbers[a]) for e, a in found.matches],
        out_of_order=[(e, numbers[a]) for e, a in found.out_of_order],
        mismatches=[
            (p.expected, numbers[p.actual], [wording.mismatch(made, p.actual, p.differences)], p.differences)
            for p in found.mismatches
        ],
        strangers=[(e, numbers[a], made.name(a)) for e, a in found.strangers],
        missing=found.missing,
        hints={},
        extra=[(numbers[a], made.name(a)) for a in found.extra],
        timed=_timed(expectations, made, found),
        argument_score=mean(agreements(expectations, made, found)),
    )


def deviation(wanted: Any, given: Any) -> tuple[list[Difference], float | None]:
    """How arguments differ, and the share of the expected ones that agree; `None` when there are none."""
    if isinstance(wanted, dict) and isinstance(given, dict):
        unlike = unlike_keys(wanted, given)
        share = (len(wanted) - len(unlike)) / len(wanted) if wanted else None
        return plain_key_differences(wanted, given, unlike, "input"), share
    share = None if wanted == {} else 0.0
    return plain_differences(wanted, NOTHING if given is UNSET else given, "input"), share


def _timed(expectations: Sequence[Expectation], made: CountedCalls, found: Alignment) -> list[Timed]:
    limits = [(e, item) for e, item in enumerate(expectations) if item.limit is not None]
    if not limits:
        return []
    calls = dict(found.matches)
    return [
        Timed(item.tool, item.limit or 0.0, made.calls[calls[e]].duration_ms if e in calls else None, e in calls)
        for e, item in limits
    ]


def agreements(expectations: Sequence[Expectation], made: CountedCalls, found: Alignment) -> list[float]:
    """For each pair of one tool that expects arguments, the share of them that agree."""
    calls = made.calls
    whole = (expectations[e].expects_arguments(calls[a].tool) for e, a in [*found.matches, *found.out_of_order])
    if not found.mismatches:
        # They all agree: one is as good as a thousand.
        return [1.0] if any(whole) else []
    parts = [expectations[p.expected].agreement(calls[p.actual], p.differences) for p in found.mismatches]
    return [1.0] * sum(whole) + [share for share in parts if share is not None]


def mean(values: list[float]) -> float | None:
    """The mean; `None` of nothing."""
    return sum(values) / len(values) if values else None
