"""What `expected` comes to when calls may be missing: only what holds, or fails, whatever was not understood."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.evaluators.trajectory import words
from agentv.evaluators.trajectory.bounds import call_units, turn_units
from agentv.evaluators.trajectory.config import CLOSED, FRACTIONS, ORDERED
from agentv.evaluators.trajectory.laid import match_rows, nothing_told
from agentv.evaluators.trajectory.plan import count_certain_calls
from agentv.evaluators.trajectory.repeats import repeated
from agentv.evaluators.trajectory.sequence import NO_TURNS, decide_times
from agentv.evaluators.trajectory.unseen import leave_undecided
from agentv.evaluators.unread import is_result_unread, unread_calls
from agentv.matching.align import largest_assignment, longest_sequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.evaluators.base import Tally
    from agentv.evaluators.trajectory.bounds import Units
    from agentv.evaluators.trajectory.evaluator import ToolTrajectory
    from agentv.evaluators.trajectory.laid import Laid
    from agentv.matching.align import Pair
    from agentv.model.message import ToolCall
    from agentv.protocols import Context


def decide(config: ToolTrajectory, ctx: Context, tally: Tally) -> dict[str, Any]:
    """Decide the constraints of `expected` and its time limits as far as possible; return the details."""
    reason = unread_calls(ctx)
    made = count_certain_calls(ctx.calls or (), config.excluded)
    details = nothing_told() | {"repeated": repeated(made)}
    if config.unit != "turn":
        units = call_units(config.judge, made, ordered=config.mode in ORDERED)
    elif ctx.calls_source != "output_messages":
        leave_undecided(config, tally, NO_TURNS if made else reason)
        return details
    else:
        units = turn_units(config, ctx, made)
    found = _align(config, units, units.bounds.certain)
    if found and len(found) == len(units.labels):
        pairs = [(e, units.numbers[a]) for e, a in found]
        details |= {"recall": 1.0, "missing": [], "alignment": match_rows(pairs)}
    if config.score in FRACTIONS:
        _decide_fraction(config, units, found, reason, tally)
    elif config.mode == "any_order" and config.score is None:
        _decide_entries(config, units, found, reason, tally)
    elif config.mode in CLOSED:
        details |= _decide_closed(config, units, ctx.calls or (), reason, tally)
    elif len(found) == len(units.labels):
        numbers = [units.numbers[a] for _, a in found]
        tally.holds(words.matched(str(config.mode), units.labels, units.unit, numbers))
    else:
        tally.undecided.append(f"expected ({config.mode}): {reason}")
    _decide_times(config, units, reason, tally)
    return details


def _align(config: ToolTrajectory, units: Units, rows: list[int]) -> list[Pair]:
    return (longest_sequence if config.mode in ORDERED else largest_assignment)(rows, len(units.labels))


def _decide_fraction(config: ToolTrajectory, units: Units, found: list[Pair], reason: str, tally: Tally) -> None:
    """Decide what no further call can change: a recall of 1, and 0 where calls were made and none are expected."""
    kind, wanted, made = str(config.score), len(units.labels), f"at least {len(units.numbers)}"
    if kind == "recall" and wanted and len(found) == wanted:
        tally.holds(words.fraction(kind, 1.0, wanted, wanted, made))
    elif not wanted and units.numbers:
        reasons = units.lay(units.bounds.possible).extra_sentences() if kind != "recall" else ()
        tally.fraction(0.0, words.fraction(kind, 0.0, 0, 0, made), reasons)
    else:
        tally.undecided.append(f"expected ({config.mode}, {kind}): {reason}")


def _decide_entries(config: ToolTrajectory, units: Units, found: list[Pair], reason: str, tally: Tally) -> None:
    """Decide each entry alone: one that is met by a call stays met, by it or another, whatever else was called."""
    if len(found) < len(units.labels):
        # A call of which something is open may be better used elsewhere, as a call that was not read may be.
        found = units.best(units.bounds.settled)
    calls = {e: units.numbers[a] for e, a in found}
    for e, name in enumerate(units.labels):
        if e in calls:
            tally.holds(f"{name} matched {units.unit} {calls[e]}")
        else:
            tally.undecided.append(f"expected {config.labels[e]}: {reason}")


def _decide_closed(
    config: ToolTrajectory, units: Units, calls: Sequence[ToolCall], reason: str, tally: Tally
) -> dict[str, Any]:
    """Decide a mode that allows no extra call: it fails when not all that was read can be what is expected."""
    if len(_align(config, units, units.bounds.possible)) == len(units.numbers):
        tally.undecided.append(f"expected ({config.mode}): {reason}")
        return {}
    laid = units.lay(units.bounds.possible)
    tally.fails(*laid.order_sentences(), *_mismatches(laid, calls), *laid.extra_sentences())
    return {"extra": [number for number, _ in laid.extra]}


def _mismatches(laid: Laid, calls: Sequence[ToolCall]) -> list[str]:
    """Return how calls differ from what they should probably have been; of results that were not read, nothing."""
    sentences: list[str] = []
    for _, number, told, differences in laid.mismatches:
        if is_result_unread(calls[number]):
            inputs = [difference for difference in differences if difference.path.startswith("input")]
            sentences.append(f"call {number} {calls[number].tool}: {words.joined(inputs)}")
        else:
            sentences += told
    return sentences


def _decide_times(config: ToolTrajectory, units: Units, reason: str, tally: Tally) -> None:
    """Decide the time limits: they hold when calls that meet all that is expected keep all of them.

    Otherwise a call that was not read may take the place of one that was, and may have taken any time.
    """
    limited = [item for item in config.expectations if item.limit is not None]
    if limited and len(_align(config, units, units.bounds.in_time)) == len(units.labels):
        decide_times(units.lay(units.bounds.in_time).timed, tally)
    else:
        tally.undecided += [f"{words.time_limit(item.tool, item.limit or 0.0)}: {reason}" for item in limited]
