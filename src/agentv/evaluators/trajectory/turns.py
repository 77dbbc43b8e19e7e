"""The calls of one assistant message as one unordered group."""

from collections.abc import Sequence
from typing import NamedTuple

from agentv.evaluators.trajectory import words
from agentv.evaluators.trajectory.laid import Laid, Timed, agreements, mean
from agentv.evaluators.trajectory.likeness import MAX_COMPARED, take_first
from agentv.evaluators.trajectory.pairing import Alignment, align_calls, extend, gaps
from agentv.evaluators.trajectory.plan import Expectation, Judge, Made
from agentv.matching.align import Pair, bits, largest_assignment, longest_sequence
from agentv.matching.weighted import Worth, heaviest_assignment, heaviest_sequence
from agentv.model.message import Message

NO_CALLS = Made((), ())
ExpectedTurn = Sequence[Expectation]
Turn = Made


class Inner(NamedTuple):
    """One expected turn laid along one actual turn."""

    alignment: Alignment
    whole: bool
    """Whether the calls are exactly the expected ones."""


def turns_of(messages: Sequence[Message]) -> list[int]:
    """For each call the index of its message."""
    return [index for index, message in enumerate(messages) for _ in message.tool_calls]


def group_turns(made: Made, turns_of_calls: Sequence[int]) -> list[Turn]:
    """Counted calls by the message they were made in."""
    turns: list[Turn] = []
    start = 0
    for place in range(1, len(made) + 1):
        if place == len(made) or turns_of_calls[made.numbers[place]] != turns_of_calls[made.numbers[start]]:
            turns.append(Made(made.calls[start:place], made.numbers[start:place]))
            start = place
    return turns


class TurnPlan:
    """Expected turns made ready to judge any number of actual ones."""

    def __init__(self, expected: Sequence[ExpectedTurn]) -> None:
        self.expected = expected
        self._judges = [Judge(turn) for turn in expected]
        self._everything = Judge([item for turn in expected for item in turn])
        self._turn_of = [index for index, turn in enumerate(expected) for _ in turn]

    def inner(self, e: int, turn: Turn) -> Inner:
        """One expected turn laid along one actual turn."""
        found = align_calls(self._judges[e], turn, ordered=False)
        return Inner(found, len(found.matches) == len(turn) == len(self.expected[e]))

    def lay(self, made: Made, messages: Sequence[Message], *, ordered: bool) -> Laid:
        """The turns along the expected turns."""
        turns = group_turns(made, turns_of(messages))
        inner = self._candidates(turns)
        rows = [0] * len(turns)
        for (e, a), found in inner.items():
            rows[a] |= (1 << e) if found.whole else 0
        matches = self._best(rows, turns, inner, ordered=ordered)
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
        return self._tell(turns, inner, matches, swapped, alike)

    def _candidates(self, turns: list[Turn]) -> dict[Pair, Inner]:
        """The pairs of turns that have equally many calls, the first of which meets something."""
        found: dict[Pair, Inner] = {}
        for a, turn in enumerate(turns):
            first = self._everything.rows(turn.calls[:1])[0]
            for e in dict.fromkeys(self._turn_of[bit] for bit in bits(first)):
                if len(self.expected[e]) == len(turn):
                    found[e, a] = self.inner(e, turn)
        return found

    def _best(self, rows: list[int], turns: list[Turn], inner: dict[Pair, Inner], *, ordered: bool) -> list[Pair]:
        wanted = len(self.expected)
        worth: Worth = {}
        for (e, a), found in inner.items():
            if found.whole:
                times = self._times(e, turns[a], found.alignment)
                kept = sum(timed.took is not None and timed.took <= timed.limit for timed in times)
                unbroken = kept + sum(timed.took is None for timed in times)
                if times:
                    worth[e, a] = (kept, unbroken)
        if worth:
            return heaviest_sequence(rows, wanted, worth) if ordered else heaviest_assignment(rows, worth)
        return (longest_sequence if ordered else largest_assignment)(rows, wanted)

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
            return take_first(pairs)
        ranked = sorted((self._distance(e, turns[a]), e, a) for e, a in pairs)
        return take_first((e, a) for _, e, a in ranked)

    def _distance(self, e: int, turn: Turn) -> int:
        return sum(len(pair.differences) for pair in self.inner(e, turn).alignment.mismatches)

    def _tell(
        self,
        turns: list[Turn],
        inner: dict[Pair, Inner],
        matches: list[Pair],
        swapped: list[Pair],
        alike: list[Pair],
    ) -> Laid:
        names = [[item.tool for item in turn] for turn in self.expected]
        shares: list[float] = []
        for e, a in [*matches, *swapped]:
            shares += agreements(self.expected[e], turns[a], inner[e, a].alignment)
        hints = {
            e: [
                words.mismatch(turns[a], pair.actual, pair.differences)
                for pair in self.inner(e, turns[a]).alignment.mismatches
            ]
            for e, a in alike
        }
        aligned = dict(matches)
        paired_e = {e for e, _ in [*matches, *swapped]}
        paired_a = {a for _, a in [*matches, *swapped]}
        return Laid(
            unit="turn",
            labels=[words.turn_label(turn) for turn in names],
            long_labels=[words.turn_label(map(words.label, turn)) for turn in self.expected],
            made=len(turns),
            matches=matches,
            out_of_order=swapped,
            mismatches=[],
            strangers=[],
            missing=[e for e in range(len(self.expected)) if e not in paired_e],
            hints=hints,
            extra=[
                (a, words.turn_label(map(turn.name, range(len(turn)))))
                for a, turn in enumerate(turns)
                if a not in paired_a
            ],
            timed=[
                timed
                for e in range(len(self.expected))
                for timed in self._times(
                    e,
                    turns[aligned[e]] if e in aligned else NO_CALLS,
                    inner[e, aligned[e]].alignment if e in aligned else None,
                )
            ],
            argument_score=mean(shares),
        )
