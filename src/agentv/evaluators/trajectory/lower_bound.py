"""Constraints of a reply that was understood in part: the calls that were read are a lower bound."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from agentv.evaluators.base import ConstraintTally
from agentv.evaluators.call_checks import has_missing_text, is_result_unread, unread_calls
from agentv.evaluators.trajectory import wording
from agentv.evaluators.trajectory.alignment import best_pairs, rows_in_time
from agentv.evaluators.trajectory.config import CLOSED, FRACTIONS, ORDERED
from agentv.evaluators.trajectory.constraints import NO_TURNS, decide_report, decide_times, leave_undecided
from agentv.evaluators.trajectory.expectations import CallMatcher, count_certain_calls
from agentv.evaluators.trajectory.report import AlignmentReport, empty_details, match_rows, report_alignment
from agentv.evaluators.trajectory.script import repeated_calls
from agentv.evaluators.trajectory.turns import group_turns, turns_of
from agentv.matching.alignment import largest_assignment, longest_sequence
from agentv.scoring.calls import about_messages
from agentv.scoring.scorer import name_incomplete
from agentv.scoring.turns import MESSAGE_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.evaluators.trajectory.evaluator import ToolTrajectory
    from agentv.evaluators.trajectory.expectations import CountedCalls, Expectation
    from agentv.evaluators.trajectory.turns import TurnPlan
    from agentv.matching.alignment import Pair
    from agentv.model.conversation import ToolCall
    from agentv.protocols import Context


class CountBounds(NamedTuple):
    """Expectations that each call, or turn, meets, as bits."""

    certain: list[int]
    """Those that it meets whatever was not understood."""
    possible: list[int]
    """Those that it meets if what was not understood is right for them."""
    in_time: list[int]
    """The certain ones whose time limits are known to be kept."""
    settled: list[int]
    """The possible ones where they are certain and their durations are known; else none."""


class Units(Struct, frozen=True):
    """The calls, or turns, that were read, and the expected ones."""

    unit: str
    labels: list[str]
    """The label of each expected one."""
    numbers: Sequence[int]
    """The numbers of the calls, or turns, that were read."""
    bounds: CountBounds
    best: Callable[[list[int]], list[Pair]]
    """Returns the best alignment for these rows."""
    align: Callable[[list[int]], AlignmentReport]
    """Returns the report of the best alignment for these rows."""


def call_units(matcher: CallMatcher, counted: CountedCalls, *, ordered: bool, is_incomplete: bool = False) -> Units:
    """Return the calls and the expected calls."""
    expectations = matcher.expectations
    return Units(
        unit="call",
        labels=[item.tool for item in expectations],
        numbers=counted.numbers,
        bounds=call_bounds(matcher, counted, is_incomplete=is_incomplete),
        best=lambda rows: best_pairs(expectations, counted, rows, ordered=ordered),
        align=lambda rows: report_alignment(matcher, counted, ordered=ordered, rows=rows),
    )


def call_bounds(matcher: CallMatcher, counted: CountedCalls, *, is_incomplete: bool = False) -> CountBounds:
    """Return what each call meets; of a call without a name, or whose result was not read, less is certain.

    With `is_incomplete`, text may be missing in inputs and outputs.
    """
    calls, expectations = counted.calls, matcher.expectations
    rows = matcher.rows(calls)
    certain, possible = list(rows), list(rows)
    loose = [item.without_result() for item in expectations]
    asking = sum(1 << e for e, item in enumerate(expectations) if not item.only_input)
    if asking and any(map(is_result_unread, calls)):
        for place, row in enumerate(CallMatcher(loose).rows(calls)):
            if is_result_unread(calls[place]):
                certain[place] &= ~asking
                possible[place] = row
    for place, call in enumerate(calls):
        if not call.tool:
            items = loose if is_result_unread(call) else expectations
            possible[place] = sum(1 << e for e, item in enumerate(items) if item.may_accept(call))
            must = sum(1 << e for e, item in enumerate(expectations) if item.must_accept(call))
            certain[place] = must & ~asking if is_result_unread(call) else must
    if is_incomplete:
        _add_missing_text(expectations, calls, certain, possible)
    limits = [(e, item.limit) for e, item in enumerate(expectations) if item.limit is not None]
    limited = sum(1 << e for e, _ in limits)
    settled = [
        sure if sure == may and not (may & limited and call.duration_ms is None) else 0
        for sure, may, call in zip(certain, possible, calls, strict=True)
    ]
    return CountBounds(certain, possible, rows_in_time(certain, limits, counted), settled)


def _add_missing_text(
    expectations: Sequence[Expectation], calls: Sequence[ToolCall], certain: list[int], possible: list[int]
) -> None:
    """Replace what calls with missing text meet; one that has no name either may be any that is expected."""
    for place, call in enumerate(calls):
        if not has_missing_text(call):
            continue
        certain[place] = possible[place] = 0
        for e, item in enumerate(expectations):
            met: bool | None = None
            if call.tool:
                is_known = not is_result_unread(call)
                met = item.accepts_known(call, is_result_known=is_known) if item.names(call.tool) else False
            certain[place] |= (met is True) << e
            possible[place] |= (met is not False) << e


def turn_units(config: ToolTrajectory, ctx: Context, counted: CountedCalls) -> Units:
    """Return the turns and the expected turns."""
    plan, ordered = config.turn_plan, config.mode in ORDERED
    places = turns_of(ctx.output_messages or ())
    turns = group_turns(counted, places)
    doubtful = _doubtful_messages(ctx)
    if ("ok" in config.excluded) != ("error" in config.excluded):
        doubtful |= {places[number] for number, call in enumerate(ctx.calls or ()) if is_result_unread(call)}
    calls, spans = call_bounds(config.matcher, counted, is_incomplete=bool(ctx.incomplete)), _spans(plan)
    bounds, start = CountBounds([], [], [], []), 0
    for turn in turns:
        inner = CountBounds(*(rows[start : start + len(turn)] for rows in calls))
        _add_turn(bounds, spans, inner, is_whole=places[turn.numbers[0]] not in doubtful)
        start += len(turn)
    return Units(
        unit="turn",
        labels=plan.labels,
        numbers=range(len(turns)),
        bounds=bounds,
        best=lambda rows: plan.best_pairs(rows, turns, ordered=ordered),
        align=lambda rows: plan.align_rows(turns, rows, ordered=ordered),
    )


class Span(Struct, frozen=True):
    """Position of the entries of one expected turn among those of all turns."""

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
    indices: set[int] = set()
    for place in filter(about_messages, ctx.unread):
        inside = MESSAGE_PATH.match(place.path)
        index = int(inside[1]) if inside else len(messages)
        if index >= len(messages) or messages[index].role != "assistant":
            return set(range(len(messages)))
        indices.add(index)
    return indices


def _add_turn(bounds: CountBounds, spans: Sequence[Span], calls: CountBounds, *, is_whole: bool) -> None:
    """Add the rows of one turn; one that may have had further calls meets nothing for certain."""
    certain = possible = in_time = settled = 0
    size = len(calls.possible)
    for e, span in enumerate(spans):
        fits_size = span.size == size if is_whole else span.size >= size
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


def decide_partly_understood(config: ToolTrajectory, ctx: Context, tally: ConstraintTally) -> dict[str, Any]:
    """Decide the constraints of `expected` and its time limits as far as possible; return the details."""
    reason = unread_calls(ctx)
    counted = count_certain_calls(ctx.calls or (), config.excluded)
    details = empty_details() | {"repeated": repeated_calls(counted)}
    if not config.by_step:
        is_incomplete = bool(ctx.incomplete)
        units = call_units(config.matcher, counted, ordered=config.mode in ORDERED, is_incomplete=is_incomplete)
    elif ctx.calls_source != "output_messages":
        leave_undecided(config, tally, NO_TURNS if counted else reason)
        return details
    else:
        units = turn_units(config, ctx, counted)
    certain = _align(config, units, units.bounds.certain)
    if certain and len(certain) == len(units.labels):
        pairs = [(e, units.numbers[a]) for e, a in certain]
        details |= {"recall": 1.0, "missing": [], "alignment": match_rows(pairs)}
    if config.score in FRACTIONS:
        _decide_fraction(config, units, certain, reason, tally)
    elif config.mode == "any_order" and config.score is None:
        _decide_entries(config, units, certain, reason, tally)
    elif config.mode in CLOSED:
        details |= _decide_closed(config, units, ctx.calls or (), reason, tally)
    elif len(certain) == len(units.labels):
        numbers = [units.numbers[a] for _, a in certain]
        tally.add_hit(wording.matched(str(config.mode), units.labels, units.unit, numbers))
    else:
        tally.undecided.append(f"expected ({config.mode}): {reason}")
    _decide_times(config, units, reason, tally)
    return details


def _align(config: ToolTrajectory, units: Units, rows: list[int]) -> list[Pair]:
    return (longest_sequence if config.mode in ORDERED else largest_assignment)(rows, len(units.labels))


def _decide_fraction(
    config: ToolTrajectory, units: Units, certain: list[Pair], reason: str, tally: ConstraintTally
) -> None:
    """Decide what no further call can change: a recall of 1, and 0 where calls were made and none are expected."""
    kind, wanted, count = str(config.score), len(units.labels), f"at least {len(units.numbers)}"
    if kind == "recall" and wanted and len(certain) == wanted:
        tally.add_hit(wording.fraction(kind, 1.0, wanted, wanted, count))
    elif not wanted and units.numbers:
        reasons = units.align(units.bounds.possible).extra_sentences() if kind != "recall" else ()
        tally.add_fraction(0.0, wording.fraction(kind, 0.0, 0, 0, count), reasons)
    else:
        tally.undecided.append(f"expected ({config.mode}, {kind}): {reason}")


def _decide_entries(
    config: ToolTrajectory, units: Units, pairs: list[Pair], reason: str, tally: ConstraintTally
) -> None:
    """Decide each entry alone: one that is met by a call stays met, by it or another, whatever else was called."""
    if len(pairs) < len(units.labels):
        # A call with unknown parts may belong to another entry, as may a call that was not read.
        pairs = units.best(units.bounds.settled)
    calls = {e: units.numbers[a] for e, a in pairs}
    for e, name in enumerate(units.labels):
        if e in calls:
            tally.add_hit(f"{name} matched {units.unit} {calls[e]}")
        else:
            tally.undecided.append(f"expected {config.labels[e]}: {reason}")


def _decide_closed(
    config: ToolTrajectory, units: Units, calls: Sequence[ToolCall], reason: str, tally: ConstraintTally
) -> dict[str, Any]:
    """Decide a mode that allows no extra call: it fails when not all that was read can be what is expected."""
    if len(_align(config, units, units.bounds.possible)) == len(units.numbers):
        tally.undecided.append(f"expected ({config.mode}): {reason}")
        return {}
    report = units.align(units.bounds.possible)
    tally.add_miss(*report.order_sentences(), *_mismatches(report, calls), *report.extra_sentences())
    return {"extra": [number for number, _ in report.extra]}


def _mismatches(report: AlignmentReport, calls: Sequence[ToolCall]) -> list[str]:
    """Return how calls differ from what they should probably have been; of results that were not read, nothing."""
    sentences: list[str] = []
    for _, number, reasons, differences in report.mismatches:
        if is_result_unread(calls[number]):
            inputs = [difference for difference in differences if difference.path.startswith("input")]
            sentences.append(f"call {number} {calls[number].tool}: {wording.joined(inputs)}")
        else:
            sentences += reasons
    return sentences


def _decide_times(config: ToolTrajectory, units: Units, reason: str, tally: ConstraintTally) -> None:
    """Decide the time limits: they hold when calls that meet all that is expected keep all of them.

    Otherwise a call that was not read may take the place of one that was, and may have taken any time.
    """
    limited = [item for item in config.expectations if item.limit is not None]
    if limited and len(_align(config, units, units.bounds.in_time)) == len(units.labels):
        decide_times(units.align(units.bounds.in_time).time_limits, tally)
    else:
        tally.undecided += [f"{wording.time_limit(item.tool, item.limit or 0.0)}: {reason}" for item in limited]


def is_affected(ctx: Context, counted: CountedCalls | None) -> bool:
    """Return whether text is missing in any of the calls."""
    return bool(ctx.incomplete) and counted is not None and any(map(has_missing_text, counted.calls))


def decide_incomplete(
    config: ToolTrajectory, ctx: Context, counted: CountedCalls, tally: ConstraintTally
) -> dict[str, Any]:
    """Decide the constraints of `expected` if they come out the same whatever is missing; return the details.

    The more expectations a call meets, the more an alignment holds. So the verdict is certain if it is the same for
    what the calls certainly meet and for what they may meet.
    """
    if config.by_step and ctx.calls_source != "output_messages":
        return leave_undecided(config, tally, NO_TURNS) | {"repeated": repeated_calls(counted)}
    if config.by_step:
        units = turn_units(config, ctx, counted)
    else:
        units = call_units(config.matcher, counted, ordered=config.mode in ORDERED, is_incomplete=True)
    least, most = ConstraintTally(), ConstraintTally()
    mode = str(config.mode)
    details = decide_report(mode, config.score, units.align(units.bounds.certain), counted, least)
    is_same = units.bounds.certain == units.bounds.possible
    if not is_same and all(item.limit is None for item in config.expectations):
        decide_report(mode, config.score, units.align(units.bounds.possible), counted, most)
        is_same = least.values == most.values
    if not is_same:
        return leave_undecided(config, tally, name_incomplete(ctx))
    tally.hits += least.hits
    tally.misses += least.misses
    tally.values += least.values
    tally.undecided += least.undecided
    return details
