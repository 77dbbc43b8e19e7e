"""Turns: the calls of one assistant message as an unordered group."""

from collections.abc import Hashable, Sequence

from agentv.evaluators.trajectory import wording
from agentv.evaluators.trajectory.alignment import (
    MAX_COMPARED,
    Alignment,
    align_calls,
    all_in_place,
    gaps,
    greedy_pairs,
    pair_out_of_order,
)
from agentv.evaluators.trajectory.expectations import CallMatcher, CountedCalls, Expectation
from agentv.evaluators.trajectory.index import key_of
from agentv.evaluators.trajectory.report import AlignmentReport, TimeLimit, argument_scores, mean
from agentv.matching.alignment import (
    Pair,
    Worth,
    bits,
    heaviest_assignment,
    heaviest_sequence,
    largest_assignment,
    longest_sequence,
)
from agentv.model.conversation import Message

NO_CALLS = CountedCalls((), ())
# Up to this many turns, comparing each is faster than finding equal ones.
FEW_TURNS = 16
ExpectedTurn = Sequence[Expectation]
Turn = CountedCalls


def turns_of(messages: Sequence[Message]) -> list[int]:
    """Return the message index of each call."""
    return [index for index, message in enumerate(messages) for _ in message.tool_calls]


def group_turns(counted: CountedCalls, turns_of_calls: Sequence[int]) -> list[Turn]:
    """Group the counted calls by message."""
    turns: list[Turn] = []
    start = 0
    for place in range(1, len(counted) + 1):
        if place == len(counted) or turns_of_calls[counted.numbers[place]] != turns_of_calls[counted.numbers[start]]:
            turns.append(CountedCalls(counted.calls[start:place], counted.numbers[start:place]))
            start = place
    return turns


class TurnPlan:
    """Expected turns, compiled for comparison with any number of actual turns."""

    def __init__(self, expected: Sequence[ExpectedTurn]) -> None:
        self.expected = expected
        self._matchers = [CallMatcher(turn) for turn in expected]
        alike: dict[Hashable, list[int]] = {}
        for e, turn in enumerate(expected):
            alike.setdefault(tuple([item.key() for item in turn]), []).append(e)
        # Equal expected turns are compared once: the first of them represents all.
        self._alike = {turns[0]: sum(1 << e for e in turns) for turns in alike.values()}
        self._everything = CallMatcher([item for e in self._alike for item in expected[e]])
        self._turn_of = [e for e in self._alike for _ in expected[e]]
        self._limited = sum(1 << e for e, turn in enumerate(expected) if any(item.limit is not None for item in turn))

    @property
    def labels(self) -> list[str]:
        """The label of each expected turn."""
        return [wording.turn_label([item.tool for item in turn]) for turn in self.expected]

    def align_turn(self, e: int, turn: Turn) -> Alignment:
        """Align one expected turn with one actual turn."""
        return align_calls(self._matchers[e], turn, ordered=False)

    def align(self, counted: CountedCalls, messages: Sequence[Message], *, ordered: bool) -> AlignmentReport:
        """Align the turns with the expected turns."""
        turns = group_turns(counted, turns_of(messages))
        return self.align_rows(turns, self._rows(turns), ordered=ordered)

    def align_rows(self, turns: list[Turn], rows: list[int], *, ordered: bool) -> AlignmentReport:
        """Align the turns, given the expected turns that each of them meets, as bits."""
        matches = self.best_pairs(rows, turns, ordered=ordered)
        taken_e, taken_a = {e for e, _ in matches}, {a for _, a in matches}
        left_e = [e for e in range(len(self.expected)) if e not in taken_e]
        left_a = [a for a in range(len(turns)) if a not in taken_a]
        out_of_order = pair_out_of_order(rows, left_e, left_a) if ordered else []
        moved_e, moved_a = {e for e, _ in out_of_order}, {a for _, a in out_of_order}
        left_e = [e for e in left_e if e not in moved_e]
        left_a = [a for a in left_a if a not in moved_a]
        alike = [
            pair
            for gap_e, gap_a in gaps(matches if ordered else [], left_e, left_a)
            for pair in self._pair_same_tools(gap_e, gap_a, turns)
        ]
        return self._report(turns, matches, out_of_order, alike)

    def _rows(self, turns: list[Turn]) -> list[int]:
        """Return for each turn the expected turns with exactly its calls, as bits."""
        if len(turns) <= FEW_TURNS:
            return [self._row(turn) for turn in turns]
        known: dict[Hashable, int] = {}
        rows: list[int] = []
        for turn in turns:
            key = tuple([(c.tool, key_of(c.input), key_of(c.output), c.effective_status) for c in turn.calls])
            if key not in known:
                known[key] = self._row(turn)
            rows.append(known[key])
        return rows

    def _row(self, turn: Turn) -> int:
        row = 0
        first = self._everything.rows(turn.calls[:1])[0]
        for e in dict.fromkeys([self._turn_of[bit] for bit in bits(first)]):
            if self._accepts(e, turn):
                row |= self._alike[e]
        return row

    def _accepts(self, e: int, turn: Turn) -> bool:
        wanted = len(self.expected[e])
        if wanted != len(turn):
            return False
        return (
            all_in_place(self.expected[e], turn)
            or len(largest_assignment(self._matchers[e].rows(turn.calls), wanted)) == wanted
        )

    def best_pairs(self, rows: list[int], turns: list[Turn], *, ordered: bool) -> list[Pair]:
        """Return the largest alignment; among several, the one that keeps most time limits."""
        wanted = len(self.expected)
        worth: Worth = {}
        for a, row in enumerate(rows):
            for e in bits(row & self._limited):
                worth[e, a] = self._worth(e, turns[a])
        if worth:
            return heaviest_sequence(rows, wanted, worth) if ordered else heaviest_assignment(rows, worth)
        return (longest_sequence if ordered else largest_assignment)(rows, wanted)

    def _worth(self, e: int, turn: Turn) -> tuple[int, int]:
        """Return the number of time limits kept, and of those not exceeded."""
        if len(turn) == 1:
            took, limit = turn.calls[0].duration_ms, self.expected[e][0].limit or 0.0
            kept = int(took is not None and took <= limit)
            return kept, int(kept or took is None)
        limits = self._time_limits(e, turn, self.align_turn(e, turn))
        kept = sum(item.took is not None and item.took <= item.limit for item in limits)
        return kept, kept + sum(item.took is None for item in limits)

    def _time_limits(self, e: int, turn: Turn, alignment: Alignment | None) -> list[TimeLimit]:
        calls = dict(alignment.matches) if alignment else {}
        return [
            TimeLimit(
                item.tool, item.limit, turn.calls[calls[place]].duration_ms if place in calls else None, place in calls
            )
            for place, item in enumerate(self.expected[e])
            if item.limit is not None
        ]

    def _pair_same_tools(self, left_e: list[int], left_a: list[int], turns: list[Turn]) -> list[Pair]:
        """Pair turns of the same tools: fewest differing paths first, then the earliest."""
        by_tools: dict[tuple[str, ...], list[int]] = {}
        for a in left_a:
            by_tools.setdefault(tuple(sorted(call.tool for call in turns[a].calls)), []).append(a)
        pairs = [
            (e, a) for e in left_e for a in by_tools.get(tuple(sorted(item.tool for item in self.expected[e])), ())
        ]
        if len(pairs) > MAX_COMPARED:
            return greedy_pairs(pairs)
        ranked = sorted((self._distance(e, turns[a]), e, a) for e, a in pairs)
        return greedy_pairs((e, a) for _, e, a in ranked)

    def _distance(self, e: int, turn: Turn) -> int:
        return sum(len(pair.differences) for pair in self.align_turn(e, turn).mismatches)

    def _report(
        self,
        turns: list[Turn],
        matches: list[Pair],
        out_of_order: list[Pair],
        alike: list[Pair],
    ) -> AlignmentReport:
        shares: list[float] = []
        inner = {(e, a): self.align_turn(e, turns[a]) for e, a in [*matches, *out_of_order]}
        for (e, a), alignment in inner.items():
            shares += argument_scores(self.expected[e], turns[a], alignment)
        hints = {
            e: [
                wording.mismatch(turns[a], pair.actual, pair.differences)
                for pair in self.align_turn(e, turns[a]).mismatches
            ]
            for e, a in alike
        }
        aligned = dict(matches)
        paired_e = {e for e, _ in [*matches, *out_of_order]}
        paired_a = {a for _, a in [*matches, *out_of_order]}
        return AlignmentReport(
            unit="turn",
            labels=self.labels,
            long_labels=[wording.turn_label(map(wording.label, turn)) for turn in self.expected],
            actual_count=len(turns),
            matches=matches,
            out_of_order=out_of_order,
            mismatches=[],
            unrelated=[],
            missing=[e for e in range(len(self.expected)) if e not in paired_e],
            hints=hints,
            extra=[
                (a, wording.turn_label(map(turn.name, range(len(turn)))))
                for a, turn in enumerate(turns)
                if a not in paired_a
            ],
            time_limits=[
                item
                for e in range(len(self.expected))
                for item in self._time_limits(
                    e,
                    turns[aligned[e]] if e in aligned else NO_CALLS,
                    inner[e, aligned[e]] if e in aligned else None,
                )
            ],
            argument_score=mean(shares),
        )
