"""The calls of one assistant message as one unordered group."""

from collections.abc import Hashable, Sequence

from agentv.evaluators.trajectory import wording
from agentv.evaluators.trajectory.alignment import (
    MAX_COMPARED,
    Alignment,
    AlignmentReport,
    Timed,
    agreements,
    align_calls,
    extend,
    gaps,
    greedy_pairs,
    in_step,
    mean,
)
from agentv.evaluators.trajectory.expectations import CallMatcher, CountedCalls, Expectation
from agentv.evaluators.trajectory.index import key_of
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
# Up to here judging each turn is cheaper than telling which of them are alike.
FEW_TURNS = 16
ExpectedTurn = Sequence[Expectation]
Turn = CountedCalls


def turns_of(messages: Sequence[Message]) -> list[int]:
    """For each call the index of its message."""
    return [index for index, message in enumerate(messages) for _ in message.tool_calls]


def group_turns(made: CountedCalls, turns_of_calls: Sequence[int]) -> list[Turn]:
    """Counted calls by the message they were made in."""
    turns: list[Turn] = []
    start = 0
    for place in range(1, len(made) + 1):
        if place == len(made) or turns_of_calls[made.numbers[place]] != turns_of_calls[made.numbers[start]]:
            turns.append(CountedCalls(made.calls[start:place], made.numbers[start:place]))
            start = place
    return turns


class TurnPlan:
    """Expected turns made ready to judge any number of actual ones."""

    def __init__(self, expected: Sequence[ExpectedTurn]) -> None:
        self.expected = expected
        self._judges = [CallMatcher(turn) for turn in expected]
        alike: dict[Hashable, list[int]] = {}
        for e, turn in enumerate(expected):
            alike.setdefault(tuple([item.key() for item in turn]), []).append(e)
        # Turns that expect the same are judged once: the first of them stands for all.
        self._alike = {turns[0]: sum(1 << e for e in turns) for turns in alike.values()}
        self._everything = CallMatcher([item for e in self._alike for item in expected[e]])
        self._turn_of = [e for e in self._alike for _ in expected[e]]
        self._limited = sum(1 << e for e, turn in enumerate(expected) if any(item.limit is not None for item in turn))

    @property
    def labels(self) -> list[str]:
        """What each expected turn is called."""
        return [wording.turn_label([item.tool for item in turn]) for turn in self.expected]

    def inner(self, e: int, turn: Turn) -> Alignment:
        """One expected turn laid along one actual turn."""
        return align_calls(self._judges[e], turn, ordered=False)

    def lay(self, made: CountedCalls, messages: Sequence[Message], *, ordered: bool) -> AlignmentReport:
        """The turns along the expected turns."""
        turns = group_turns(made, turns_of(messages))
        return self.lay_rows(turns, self._rows(turns), ordered=ordered)

    def lay_rows(self, turns: list[Turn], rows: list[int], *, ordered: bool) -> AlignmentReport:
        """Lay the turns along the expected turns that they meet, which the rows say as bits."""
        matches = self.best_pairs(rows, turns, ordered=ordered)
        taken_e, taken_a = {e for e, _ in matches}, {a for _, a in matches}
        left_e = [e for e in range(len(self.expected)) if e not in taken_e]
        left_a = [a for a in range(len(turns)) if a not in taken_a]
        swapped = extend(rows, left_e, left_a) if ordered else []
        moved_e, moved_a = {e for e, _ in swapped}, {a for _, a in swapped}
        left_e = [e for e in left_e if e not in moved_e]
        left_a = [a for a in left_a if a not in moved_a]
        alike = [
            pair
            for gap_e, gap_a in gaps(matches if ordered else [], left_e, left_a)
            for pair in self._pair_alike(gap_e, gap_a, turns)
        ]
        return self._tell(turns, matches, swapped, alike)

    def _rows(self, turns: list[Turn]) -> list[int]:
        """For each turn the expected ones whose calls are exactly its own, as bits."""
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
            if self._is_whole(e, turn):
                row |= self._alike[e]
        return row

    def _is_whole(self, e: int, turn: Turn) -> bool:
        wanted = len(self.expected[e])
        if wanted != len(turn):
            return False
        return (
            in_step(self.expected[e], turn)
            or len(largest_assignment(self._judges[e].rows(turn.calls), wanted)) == wanted
        )

    def best_pairs(self, rows: list[int], turns: list[Turn], *, ordered: bool) -> list[Pair]:
        """The largest alignment of those that keep most time limits."""
        wanted = len(self.expected)
        worth: Worth = {}
        for a, row in enumerate(rows):
            for e in bits(row & self._limited):
                worth[e, a] = self._worth(e, turns[a])
        if worth:
            return heaviest_sequence(rows, wanted, worth) if ordered else heaviest_assignment(rows, worth)
        return (longest_sequence if ordered else largest_assignment)(rows, wanted)

    def _worth(self, e: int, turn: Turn) -> tuple[int, int]:
        """How many limits are kept, and how many are not broken."""
        if len(turn) == 1:
            took, limit = turn.calls[0].duration_ms, self.expected[e][0].limit or 0.0
            kept = int(took is not None and took <= limit)
            return kept, int(kept or took is None)
        times = self._times(e, turn, self.inner(e, turn))
        kept = sum(timed.took is not None and timed.took <= timed.limit for timed in times)
        return kept, kept + sum(timed.took is None for timed in times)

    def _times(self, e: int, turn: Turn, found: Alignment | None) -> list[Timed]:
        calls = dict(found.matches) if found else {}
        return [
            Timed(
                item.tool, item.limit, turn.calls[calls[place]].duration_ms if place in calls else None, place in calls
            )
            for place, item in enumerate(self.expected[e])
            if item.limit is not None
        ]

    def _pair_alike(self, left_e: list[int], left_a: list[int], turns: list[Turn]) -> list[Pair]:
        """Turns of the same tools: fewest differing paths first, then the earliest."""
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
        return sum(len(pair.differences) for pair in self.inner(e, turn).mismatches)

    def _tell(
        self,
        turns: list[Turn],
        matches: list[Pair],
        swapped: list[Pair],
        alike: list[Pair],
    ) -> AlignmentReport:
        shares: list[float] = []
        inner = {(e, a): self.inner(e, turns[a]) for e, a in [*matches, *swapped]}
        for (e, a), found in inner.items():
            shares += agreements(self.expected[e], turns[a], found)
        hints = {
            e: [
                wording.mismatch(turns[a], pair.actual, pair.differences) for pair in self.inner(e, turns[a]).mismatches
            ]
            for e, a in alike
        }
        aligned = dict(matches)
        paired_e = {e for e, _ in [*matches, *swapped]}
        paired_a = {a for _, a in [*matches, *swapped]}
        return AlignmentReport(
            unit="turn",
            labels=self.labels,
            long_labels=[wording.turn_label(map(wording.label, turn)) for turn in self.expected],
            made=len(turns),
            matches=matches,
            out_of_order=swapped,
            mismatches=[],
            strangers=[],
            missing=[e for e in range(len(self.expected)) if e not in paired_e],
            hints=hints,
            extra=[
                (a, wording.turn_label(map(turn.name, range(len(turn)))))
                for a, turn in enumerate(turns)
                if a not in paired_a
            ],
            timed=[
                timed
                for e in range(len(self.expected))
                for timed in self._times(
                    e,
                    turns[aligned[e]] if e in aligned else NO_CALLS,
                    inner[e, aligned[e]] if e in aligned else None,
                )
            ],
            argument_score=mean(shares),
        )
