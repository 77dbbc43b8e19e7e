"""Limits on what one reply took: its time, its price, its turns."""

from collections.abc import Callable
from math import isclose, isfinite
from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from agentv.errors import Problem
from agentv.evaluators.base import EvaluatorBase, Example, Tally
from agentv.evaluators.told import NO_TURNS, check_bounds, concluded, turns_told
from agentv.evaluators.trajectory.config import Count
from agentv.evaluators.unread import unread_messages
from agentv.model.result import EvaluatorResult
from agentv.protocols import Context

Amount = Annotated[float, Meta(ge=0, le=1e15)]
# A sum of tenths of a cent must not miss its limit by the last bit of a float.
TOLERANCE = 1e-9

NO_LATENCY = "`agentv eval` measures it of every provider but `replay`; elsewhere put it into the reply"
NO_COST = "have the agent send it in its reply"


class LatencyBudget(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """The reply came in time."""

    type: Literal["latency_budget"] = "latency_budget"
    max_ms: Amount
    """The most milliseconds that the reply may take, without queueing and back-off."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(config={"type": "latency_budget", "max_ms": 2000}, reply={"text": "Done.", "latency_ms": ms}, passes=ok)
        for ms, ok in ((840, True), (2310.5, False))
    )

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """One constraint."""
        return _within(self, ctx.response.latency_ms, self.max_ms, "latency_ms", NO_LATENCY)


class CostBudget(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """The reply was cheap enough."""

    type: Literal["cost_budget"] = "cost_budget"
    max_usd: Amount
    """The most US dollars that the reply may cost."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(config={"type": "cost_budget", "max_usd": 0.05}, reply={"text": "Done.", "cost_usd": usd}, passes=ok)
        for usd, ok in ((0.0124, True), (0.31, False))
    )

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """One constraint."""
        return _within(self, ctx.response.cost_usd, self.max_usd, "cost_usd", NO_COST)


class TurnBudget(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """The agent got there in so many turns; a turn is one assistant message."""

    type: Literal["turn_budget"] = "turn_budget"
    min: Count | UnsetType = UNSET
    """The fewest turns."""
    max: Count | UnsetType = UNSET
    """The most turns."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={"type": "turn_budget", "max": 2},
            reply=[*[{"role": "assistant", "tool_calls": [{"tool": "search"}]}] * searches, {"role": "assistant"}],
            passes=ok,
        )
        for searches, ok in ((1, True), (2, False))
    )

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        if self.min is UNSET and self.max is UNSET:
            return [Problem(path, "checks nothing: give `max` or `min`")]
        return list(check_bounds(self.min, self.max, path))

    def warnings(self, path: str) -> list[str]:
        """What can never fail."""
        return [f"{path}.min: a minimum of 0: this can never fail"] if self.min == 0 else []

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """A constraint a limit."""
        tally = Tally()
        made, unread = len(turns_told(ctx)), unread_messages(ctx)
        turns = f"the agent took {'at least ' if unread else ''}{made} {'turn' if made == 1 else 'turns'}"
        for word, limit in (("min", self.min), ("max", self.max)):
            if isinstance(limit, UnsetType):
                continue
            good = made >= limit if word == "min" else made <= limit
            # Further turns cannot undo a minimum that is reached, nor a maximum that is exceeded.
            if good == (word == "min") if unread else made:
                tally.count(good=good, sentence=f"{turns} ({word}: {limit})")
            else:
                tally.undecided.append(f"turns ({word}: {limit}): {unread or NO_TURNS}")
        if unread:
            return concluded(self, tally, value=None, at_least=made)
        return concluded(self, tally, value=made or None)


def _within(evaluator: EvaluatorBase, value: float | None, limit: float, name: str, remedy: str) -> EvaluatorResult:
    tally = Tally()
    show = SHOWN[name]
    if value is None:
        tally.undecided.append(f"the reply has no `{name}` (max: {show(limit)}): {remedy}")
    elif not (isfinite(value) and value >= 0):
        tally.undecided.append(
            f"the reply's `{name}` is {value}, which measures nothing (max: {show(limit)}): {remedy}"
        )
        value = None
    else:
        good = value <= limit or isclose(value, limit, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        verb = "took" if name == "latency_ms" else "cost"
        tally.count(good=good, sentence=f"the reply {verb} {show(value)} (max: {show(limit)})")
    return concluded(evaluator, tally, value=value)


def _ms(value: float) -> str:
    return f"{int(value) if value == int(value) else value}ms"


def _usd(value: float) -> str:
    """Dollars with as many digits as it takes, never `4e-07`."""
    return f"${value:.10f}".rstrip("0").rstrip(".")


SHOWN: dict[str, Callable[[float], str]] = {"latency_ms": _ms, "cost_usd": _usd}
