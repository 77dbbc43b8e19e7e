"""Constraints of calls in which text is missing, because it was redacted or cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.evaluators.base import ConstraintTally
from agentv.evaluators.call_checks import has_missing_text
from agentv.evaluators.trajectory.config import ORDERED
from agentv.evaluators.trajectory.constraints import NO_TURNS, decide_report, leave_undecided
from agentv.evaluators.trajectory.lower_bound import call_units, turn_units
from agentv.evaluators.trajectory.script import repeated_calls
from agentv.scoring.scorer import name_incomplete

if TYPE_CHECKING:
    from agentv.evaluators.trajectory.evaluator import ToolTrajectory
    from agentv.evaluators.trajectory.expectations import CountedCalls
    from agentv.protocols import Context


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
    if config.unit == "turn" and ctx.calls_source != "output_messages":
        return leave_undecided(config, tally, NO_TURNS) | {"repeated": repeated_calls(counted)}
    if config.unit == "turn":
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
