"""`loop_detection`: the agent went round in circles."""

from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import Annotated, ClassVar, Literal, NamedTuple

from msgspec import Meta

from agentv.errors import Problem
from agentv.evaluators.base import EvaluatorBase, Example, Tally
from agentv.evaluators.redundant_calls import keys_of
from agentv.evaluators.told import Name, concluded, counts_told, first_of, n_times, why_unseen
from agentv.evaluators.trajectory import words
from agentv.evaluators.unread import unread_calls
from agentv.matching.diff import MAX_QUOTED
from agentv.model.message import ToolCall
from agentv.model.result import EvaluatorResult
from agentv.protocols import Context

# Every length is one more look at all the calls.
LONGEST = 50


class Loop(NamedTuple):
    """Calls that repeat a cycle."""

    start: int
    """The number of its first call."""
    length: int
    """How many calls make up the cycle."""
    end: int
    """The number of the first call that is no longer in it."""

    @property
    def rounds(self) -> int:
        """How many times the whole cycle was gone through."""
        return (self.end - self.start) // self.length


class LoopDetection(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """No cycle of calls was repeated so many times in a row."""

    type: Literal["loop_detection"] = "loop_detection"
    times: Annotated[int, Meta(ge=2)] = 3
    """From how many rounds on a cycle is a loop."""
    max_length: Annotated[int, Meta(ge=1, le=LONGEST)] = 10
    """Of how many calls a cycle may consist at most."""
    input_match: Literal["exact", "ignore"] = "exact"
    """Whether calls are the same only with equal inputs, or by the name of the tool alone."""
    ignore: list[Name] = []
    """Keys of the input that make no difference; globs, and a dotted path reaches deeper."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={"type": "loop_detection", "times": 3},
            reply=[
                {"role": "assistant", "tool_calls": [{"tool": "read", "input": {"page": page}}, {"tool": "wait"}]}
                for page in pages
            ],
            passes=passes,
        )
        for pages, passes in (((1, 2, 3), True), ((1, 1, 1), False))
    )

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        if self.ignore and self.input_match == "ignore":
            return [Problem(f"{path}.ignore", "means nothing with `input_match: ignore`, which leaves out all of it")]
        return []

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """One constraint."""
        tally = Tally()
        if ctx.calls is None:
            self._from_counts(ctx, tally)
            return concluded(self, tally, loops=[])
        if not ctx.calls_complete:
            # A call that was not read may stand between any two, so that no cycle is known to be one.
            tally.undecided.append(f"loops of {n_times(self.times)} or more: {unread_calls(ctx)}")
            return concluded(self, tally, loops=[])
        loops = find_loops(self._keys(ctx.calls), self.times, self.max_length)
        if loops:
            tally.fails(*first_of([self._told(loop, ctx.calls) for loop in loops]))
        else:
            tally.holds(f"no cycle of calls came {n_times(self.times)} in a row")
        told = [{"calls": [loop.start, loop.end - 1], "length": loop.length, "rounds": loop.rounds} for loop in loops]
        return concluded(self, tally, loops=told)

    def _keys(self, calls: Sequence[ToolCall]) -> Sequence[Hashable]:
        if self.input_match == "ignore":
            return [call.tool or number for number, call in enumerate(calls)]
        return keys_of(calls, self.ignore)

    def _told(self, loop: Loop, calls: Sequence[ToolCall]) -> str:
        cycle = calls[loop.start : loop.start + loop.length]
        by_name = self.input_match == "ignore"
        label = ", ".join(call.tool if by_name else words.call_label(call) for call in cycle)
        label = label if len(label) <= MAX_QUOTED else label[: MAX_QUOTED - 1] + "…"
        rounds = f"{n_times(loop.rounds)} in a row (loop: {n_times(self.times)} or more)"
        return f"calls {loop.start} to {loop.end - 1} are [{label}] {rounds}"

    def _from_counts(self, ctx: Context, tally: Tally) -> None:
        counts = counts_told(ctx)
        if counts is not None and all(number < self.times for number in counts.values()):
            tally.holds(f"no cycle of calls came {n_times(self.times)} in a row: no tool was called that often")
        else:
            tally.undecided.append(f"loops of {n_times(self.times)} or more: {why_unseen(ctx)}")


def find_loops(keys: Sequence[Hashable], rounds: int, longest: int) -> list[Loop]:
    """Every longest stretch that goes through one cycle so many times; a cycle within a shorter one's loop is none."""
    numbers: dict[Hashable, int] = {}
    calls = [numbers.setdefault(key, len(numbers)) for key in keys]  # small numbers compare faster than keys
    found: list[Loop] = []
    reach = [0] * len(calls)  # by call, how far the loops go that begin there or before
    for length in range(1, min(longest, len(calls) // rounds) + 1):
        fresh = [loop for loop in _loops_of(length, calls, rounds) if reach[loop.start] < loop.end]
        if fresh:
            found += fresh
            for loop in fresh:
                reach[loop.start] = loop.end
            reach = list(accumulate(reach, max))
    return sorted(found)


def _loops_of(length: int, calls: list[int], rounds: int) -> list[Loop]:
    """The longest stretches in which every call is the same as the one so many calls before it."""
    found: list[Loop] = []
    start = 0
    for end, (before, call) in enumerate(zip(calls, calls[length:], strict=False), length):
        if before != call:
            if end - start >= rounds * length:
                found.append(Loop(start, length, end))
            start = end - length + 1
    if len(calls) - start >= rounds * length:
        found.append(Loop(start, length, len(calls)))
    return found
