"""Which expectations the calls, or turns, of a partly understood reply meet for certain, and which they may meet."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from agentv.evaluators.trajectory.config import ORDERED
from agentv.evaluators.trajectory.laid import Laid, lay_calls
from agentv.evaluators.trajectory.pairing import best_pairs, rows_in_time
from agentv.evaluators.trajectory.plan import Judge
from agentv.evaluators.trajectory.turns import group_turns, turns_of
from agentv.evaluators.unread import is_result_unread
from agentv.matching.align import largest_assignment
from agentv.scoring.calls import MESSAGE_PATH, about_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.evaluators.trajectory.evaluator import ToolTrajectory
    from agentv.evaluators.trajectory.plan import Expectation, Made
    from agentv.evaluators.trajectory.turns import TurnPlan
    from agentv.matching.align import Pair
    from agentv.model.message import ToolCall
    from agentv.protocols import Context


class Bounds(NamedTuple):
    """For each call, or turn, the expectations that it meets, as bits."""

    certain: list[int]
    """Those that it meets whatever was not understood."""
    possible: list[int]
    """Those that it meets if what was not understood is right for them."""
    in_time: list[int]
    """Of the certain ones those whose time limits are known to be kept."""
    settled: list[int]
    """The possible ones where they are certain and their durations are known; else none."""


class Units(NamedTuple):
    """The calls, or turns, that were read, along those that are expected."""

    unit: str
    labels: list[str]
    """What each expected one is called."""
    numbers: Sequence[int]
    """Those of the calls, or turns, that were read."""
    bounds: Bounds
    best: Callable[[list[int]], list[Pair]]
    """Returns the best alignment for these rows."""
    lay: Callable[[list[int]], Laid]
    """Returns the same with reasons for what it leaves over."""


class KnownRows(Judge):
    """A judge of calls whose rows are known already."""

    def __init__(self, expectations: Sequence[Expectation], rows: list[int]) -> None:
        super().__init__(expectations)
        self._known = rows

    def rows(self, calls: Sequence[ToolCall]) -> list[int]:
        """Return the rows."""
        del calls
        return self._known


def call_units(judge: Judge, made: Made, *, ordered: bool) -> Units:
    """Return the calls along the expected calls."""
    expectations = judge.expectations
    return Units(
        unit="call",
        labels=[item.tool for item in expectations],
        numbers=made.numbers,
        bounds=call_bounds(judge, made),
        best=lambda rows: best_pairs(expectations, made, rows, ordered=ordered),
        lay=lambda rows: lay_calls(KnownRows(expectations, rows), made, ordered=ordered),
    )


def call_bounds(judge: Judge, made: Made) -> Bounds:
    """Return what each call meets; of a call without a name, or whose result was not read, less is certain."""
    calls, expectations = made.calls, judge.expectations
    rows = judge.rows(calls)
    certain, possible = list(rows), list(rows)
    loose = [item.without_result() for item in expectations]
    asking = sum(1 << e for e, item in enumerate(expectations) if not item.only_input)
    if asking and any(map(is_result_unread, calls)):
        for place, row in enumerate(Judge(loose).rows(calls)):
            if is_result_unread(calls[place]):
                certain[place] &= ~asking
                possible[place] = row
    for place, call in enumerate(calls):
        if not call.tool:
            items = loose if is_result_unread(call) else expectations
            possible[place] = sum(1 << e for e, item in enumerate(items) if item.may_accept(call))
            must = sum(1 << e for e, item in enumerate(expectations) if item.must_accept(call))
            certain[place] = must & ~asking if is_result_unread(call) else must
    limits = [(e, item.limit) for e, item in enumerate(expectations) if item.limit is not None]
    limited = sum(1 << e for e, _ in limits)
    settled = [
        sure if sure == may and not (may & limited and call.duration_ms is None) else 0
        for sure, may, call in zip(certain, possible, calls, strict=True)
    ]
    return Bounds(certain, possible, rows_in_time(certain, limits, made), settled)


def turn_units(config: ToolTrajectory, ctx: Context, made: Made) -> Units:
    """Return the turns along the expected turns."""
    plan, ordered = config.turn_plan, config.mode in ORDERED
    places = turns_of(ctx.output_messages or ())
    turns = group_turns(made, places)
    doubtful = _doubtful_messages(ctx)
    if ("ok" in config.excluded) != ("error" in config.excluded):
        doubtful |= {places[number] for number, call in enumerate(ctx.calls or ()) if is_result_unread(call)}
    calls, spans = call_bounds(config.judge, made), _spans(plan)
    bounds, start = Bounds([], [], [], []), 0
    for turn in turns:
        inner = Bounds(*(rows[start : start + len(turn)] for rows in calls))
        _add_turn(bounds, spans, inner, is_whole=places[turn.numbers[0]] not in doubtful)
        start += len(turn)
    return Units(
        unit="turn",
        labels=plan.labels,
        numbers=range(len(turns)),
        bounds=bounds,
        best=lambda rows: plan.best_pairs(rows, turns, ordered=ordered),
        lay=lambda rows: plan.lay_rows(turns, rows, ordered=ordered),
    )


class Span(NamedTuple):
    """Where the entries of one expected turn are among those of all."""

    start: int
    size: int

    def part(self, rows: list[int]) -> list[int]:
        """Return the rows of calls for the entries of this turn alone."""
        mask = (1 << self.size) - 1
        return [row >> self.start & mask for row in rows]

    def takes(self, rows: list[int]) -> bool:
        """Return whether every call can have an entry of its own in this turn."""
        inner = self.part(rows)
        return all(inner) and len(largest_assignment(inner, self.size)) == len(inner)


def _spans(plan: TurnPlan) -> list[Span]:
    ends = list(accumulate(len(turn) for turn in plan.expected))
    return [Span(end - len(turn), len(turn)) for end, turn in zip(ends, plan.expected, strict=True)]


def _doubtful_messages(ctx: Context) -> set[int]:
    """Return the messages that may hold further calls: all of them, unless every place is in an assistant's message."""
    messages = ctx.output_messages or ()
    found: set[int] = set()
    for place in filter(about_messages, ctx.unread):
        inside = MESSAGE_PATH.match(place.path)
        index = int(inside[1]) if inside else len(messages)
        if index >= len(messages) or messages[index].role != "assistant":
            return set(range(len(messages)))
        found.add(index)
    return found


def _add_turn(bounds: Bounds, spans: Sequence[Span], calls: Bounds, *, is_whole: bool) -> None:
    """Add the rows of one turn; one that may have had further calls meets nothing for certain."""
    certain = possible = in_time = settled = 0
    made = len(calls.possible)
    for e, span in enumerate(spans):
        fits_size = span.size == made if is_whole else span.size >= made
        if fits_size and span.takes(calls.possible):
            possible |= 1 << e
            if is_whole:
                certain |= span.takes(calls.certain) << e
                in_time |= span.takes(calls.in_time) << e
                settled |= span.takes(calls.settled) << e
    bounds.certain.append(certain)
    bounds.possible.append(possible)
    bounds.in_time.append(in_time)
    bounds.settled.append(settled if settled == possible else 0)
