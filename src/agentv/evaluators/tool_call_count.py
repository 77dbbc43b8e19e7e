"""`tool_call_count`: how often tools were called, as a number to follow or a limit to keep."""

from typing import ClassVar, Literal

from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from agentv.errors import Problem
from agentv.evaluators.base import EvaluatorBase, Example, Tally
from agentv.evaluators.told import (
    Name,
    check_bounds,
    check_filter,
    concluded,
    counts_told,
    excluded_by,
    why_unseen,
)
from agentv.evaluators.trajectory import words
from agentv.evaluators.trajectory.config import CallFilter, Count
from agentv.evaluators.trajectory.counts import count, count_at_least, decide_maximum, decide_minimum, total
from agentv.evaluators.trajectory.plan import count_calls, count_certain_calls
from agentv.evaluators.unread import unread_calls
from agentv.model.result import EvaluatorResult, Kind
from agentv.protocols import Context


class ToolCallCount(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """How often tools were called: a number to follow, or with `min` or `max` a limit to keep."""

    type: Literal["tool_call_count"] = "tool_call_count"
    kind: Kind | None = None  # type: ignore[assignment]  # what is left unsaid is settled as soon as it is made
    """`assertion` with `min` or `max`, `metric` without; a metric is recorded and never gates."""
    tool: Name | UnsetType = UNSET
    """Only calls of this tool; `*` and `?` make it a glob."""
    min: Count | UnsetType = UNSET
    """The fewest calls."""
    max: Count | UnsetType = UNSET
    """The most calls."""
    calls: CallFilter | None = None
    """Which calls count, by their status; denied and pending ones do not, unless it says so."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={"type": "tool_call_count", "tool": "search_*", "max": 2},
            reply=[{"role": "assistant", "tool_calls": [{"tool": tool} for tool in made]}],
            passes=passes,
        )
        for made, passes in (
            (("search_web", "search_docs", "reply"), True),
            (("search_web", "search_docs", "search_web"), False),
        )
    )

    def __post_init__(self) -> None:
        if self.kind is None:
            force_setattr(self, "kind", "assertion" if self._is_limited else "metric")

    @property
    def _is_limited(self) -> bool:
        return self.min is not UNSET or self.max is not UNSET

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        found = [*check_bounds(self.min, self.max, path), *check_filter(self.calls, path)]
        if not self._is_limited:
            if self.kind == "assertion":
                found.append(Problem(path, "checks nothing: an assertion needs `min` or `max`"))
            if self.negate:
                found.append(Problem(f"{path}.not", "means nothing without `min` or `max`"))
        return found

    def warnings(self, path: str) -> list[str]:
        """What can never fail."""
        return [f"{path}.min: a minimum of 0: this can never fail"] if self.min == 0 else []

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """A constraint a limit; without any nothing can fall short, and the score is 1."""
        tally = Tally()
        key, named = ("*", "tools") if isinstance(self.tool, UnsetType) else (self.tool, self.tool)
        unnamed = None if ctx.calls is None else [call.tool for call in ctx.calls].count("")
        if not ctx.calls_complete:
            certain = count_certain_calls(ctx.calls or (), excluded_by(self.calls)).calls
            times = count_at_least(certain, key)
            self._decide_lower_bound(times, named, unread_calls(ctx), tally)
            return concluded(self, tally, value=None, at_least=times, unnamed=unnamed)
        counted = counts_told(ctx)
        if ctx.calls is not None:
            counted = count(call.tool for call in count_calls(ctx.calls, excluded_by(self.calls)).calls)
        value = None if counted is None else total(counted, key)
        if value is None:
            tally.undecided.append(f"calls of {named}: {why_unseen(ctx)}")
        elif not self._is_limited:
            tally.hits.append(words.called(named, value, "recorded"))
        else:
            if isinstance(self.min, int):
                tally.count(good=value >= self.min, sentence=words.called(named, value, f"minimum: {self.min}"))
            if isinstance(self.max, int):
                tally.count(good=value <= self.max, sentence=words.called(named, value, f"maximum: {self.max}"))
        return concluded(self, tally, value=value, unnamed=unnamed)

    def _decide_lower_bound(self, times: int, named: str, reason: str, tally: Tally) -> None:
        """Decide the limits when there may have been further calls; without limits the number is not known."""
        if not self._is_limited:
            tally.undecided.append(f"calls of {named}: {reason}")
        if isinstance(self.min, int):
            decide_minimum(named, self.min, times, reason, tally)
        if isinstance(self.max, int):
            decide_maximum(named, self.max, times, reason, tally)
