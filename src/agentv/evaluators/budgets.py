"""Budgets of latency, cost, turns and tokens, and `tool_call_count`."""

from collections.abc import Callable, Sequence
from math import isclose, isfinite
from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import force_setattr

from agentv.errors import Problem
from agentv.evaluators.base import ConstraintTally, EvaluatorBase, Example
from agentv.evaluators.call_checks import (
    NO_TURNS,
    CallFilter,
    Name,
    assistant_turns,
    check_bounds,
    check_filter,
    excluded_statuses,
    join_numbers,
    missing_calls_reason,
    reported_counts,
    result_from,
    truncate_list,
    unread_calls,
    unread_messages,
)
from agentv.evaluators.trajectory import wording
from agentv.evaluators.trajectory.config import Count
from agentv.evaluators.trajectory.constraints import count, count_at_least, decide_maximum, decide_minimum, total
from agentv.evaluators.trajectory.expectations import count_calls, count_certain_calls
from agentv.model.response import TokensUsage
from agentv.model.results import EvaluatorResult, Kind
from agentv.protocols import Context

Amount = Annotated[float, Meta(ge=0, le=1e15)]
# A sum of tenths of a cent must not miss its limit by the last bit of a float.
TOLERANCE = 1e-9

NO_LATENCY = "`agentv eval` measures it of every provider but `replay`; elsewhere put it into the reply"
NO_COST = "have the agent send it in its reply"


class LatencyBudget(EvaluatorBase, kw_only=True):
    """The reply took no longer than a limit."""

    type: Literal["latency_budget"] = "latency_budget"
    max_ms: Amount
    """The most milliseconds that the reply may take, without queueing and back-off."""

    handles_incomplete: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(config={"type": "latency_budget", "max_ms": 2000}, reply={"text": "Done.", "latency_ms": ms}, passes=ok)
        for ms, ok in ((840, True), (2310.5, False))
    )

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Decide the one constraint."""
        return _decide_limit(self, ctx.response.latency_ms, self.max_ms, "latency_ms", NO_LATENCY)


class CostBudget(EvaluatorBase, kw_only=True):
    """The reply cost no more than a limit."""

    type: Literal["cost_budget"] = "cost_budget"
    max_usd: Amount
    """The most US dollars that the reply may cost."""

    handles_incomplete: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(config={"type": "cost_budget", "max_usd": 0.05}, reply={"text": "Done.", "cost_usd": usd}, passes=ok)
        for usd, ok in ((0.0124, True), (0.31, False))
    )

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Decide the one constraint."""
        return _decide_limit(self, ctx.response.cost_usd, self.max_usd, "cost_usd", NO_COST)


class RangeBudget(EvaluatorBase, kw_only=True):
    """Base class of evaluators that limit a number by `min` and `max`."""

    min: Count | UnsetType = UNSET
    """The smallest number."""
    max: Count | UnsetType = UNSET
    """The largest number."""

    handles_incomplete: ClassVar[bool] = True

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the configuration as a whole."""
        if self.min is UNSET and self.max is UNSET:
            return [Problem(path, "checks nothing: give `max` or `min`")]
        return list(check_bounds(self.min, self.max, path))

    def warnings(self, path: str) -> list[str]:
        """Return warnings about constraints that can never fail."""
        return [f"{path}.min: a minimum of 0: this can never fail"] if self.min == 0 else []

    @property
    def limits(self) -> list[tuple[str, int]]:
        """The limits that are given, each with its key."""
        pairs = (("min", self.min), ("max", self.max))
        return [(word, limit) for word, limit in pairs if not isinstance(limit, UnsetType)]


class TurnBudget(RangeBudget, kw_only=True):
    """The agent took no more turns than allowed; a turn is one assistant message."""

    type: Literal["turn_budget"] = "turn_budget"

    unit: ClassVar[str] = "turn"
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={"type": "turn_budget", "max": 2},
            reply=[*[{"role": "assistant", "tool_calls": [{"tool": "search"}]}] * searches, {"role": "assistant"}],
            passes=ok,
        )
        for searches, ok in ((1, True), (2, False))
    )

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Decide one constraint per limit."""
        tally = ConstraintTally()
        count, unread = len(assistant_turns(ctx)), unread_messages(ctx)
        steps = f"the agent took {'at least ' if unread else ''}{count} {self.unit if count == 1 else f'{self.unit}s'}"
        for word, limit in self.limits:
            good = count >= limit if word == "min" else count <= limit
            # Further messages cannot undo a minimum that is reached, nor a maximum that is exceeded.
            if good == (word == "min") if unread else count:
                tally.add(good=good, sentence=f"{steps} ({word}: {limit})")
            else:
                tally.undecided.append(f"{self.unit}s ({word}: {limit}): {unread or NO_TURNS}")
        if unread:
            return result_from(self, tally, value=None, at_least=count)
        return result_from(self, tally, value=count or None)


class StepBudget(TurnBudget, kw_only=True):
    """The agent took no more steps than allowed; a step is one assistant message."""

    type: Literal["step_budget"] = "step_budget"  # type: ignore[assignment]  # another name of the same evaluator

    unit: ClassVar[str] = "step"
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({**example.config, "type": "step_budget"}, example.reply, example.passes)
        for example in TurnBudget.examples
    )


class ConversationTurns(RangeBudget, kw_only=True):
    """The number of turns of a conversation; a turn is a message of the user with all that the agent does after it."""

    type: Literal["conversation_turns"] = "conversation_turns"

    examples: ClassVar[tuple[Example, ...]] = (
        Example({"type": "conversation_turns", "max": 1}, [{"role": "assistant", "content": "Done."}], passes=True),
        Example({"type": "conversation_turns", "min": 2}, [{"role": "assistant", "content": "Done."}], passes=False),
    )

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Decide one constraint per limit."""
        tally = ConstraintTally()
        count = len(ctx.turns) or 1
        turns = f"the conversation has {count} {'turn' if count == 1 else 'turns'}"
        for word, limit in self.limits:
            good = count >= limit if word == "min" else count <= limit
            tally.add(good=good, sentence=f"{turns} ({word}: {limit})")
        return result_from(self, tally, value=count)


def _decide_limit(
    evaluator: EvaluatorBase, value: float | None, limit: float, name: str, remedy: str
) -> EvaluatorResult:
    tally = ConstraintTally()
    show = FORMATTERS[name]
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
        tally.add(good=good, sentence=f"the reply {verb} {show(value)} (max: {show(limit)})")
    return result_from(evaluator, tally, value=value)


def _usd(value: float) -> str:
    """Return dollars with as many digits as needed, never `4e-07`."""
    return f"${value:.10f}".rstrip("0").rstrip(".")


FORMATTERS: dict[str, Callable[[float], str]] = {"latency_ms": wording.milliseconds, "cost_usd": _usd}


COUNTS = ("total_tokens", "input_tokens", "output_tokens")


class TokenBudget(EvaluatorBase, kw_only=True):
    """The agent used no more tokens than a limit, in the whole run or in each step."""

    type: Literal["token_budget"] = "token_budget"
    max_total: Count | UnsetType = UNSET
    """The most tokens read and written together."""
    max_input: Count | UnsetType = UNSET
    """The most tokens read, cached ones included."""
    max_output: Count | UnsetType = UNSET
    """The most tokens written, reasoning included."""
    per: Literal["run", "step", "turn"] = "run"
    """The scope of the limits: the whole run, or each step (an assistant message) by the usage that it reports. `turn`
    is an alias of `step`."""

    handles_incomplete: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={"type": "token_budget", "max_total": 1000, "max_output": 200},
            reply={"text": "Done.", "tokens_usage": {"input_tokens": 700, "output_tokens": wrote}},
            passes=passes,
        )
        for wrote, passes in ((120, True), (260, False))
    )

    @property
    def limits(self) -> list[tuple[str, str, int]]:
        """The limits: for each its key, the name of the count, and the number."""
        pairs = zip(COUNTS, (self.max_total, self.max_input, self.max_output), strict=True)
        return [(f"max_{name.removesuffix('_tokens')}", name, limit) for name, limit in pairs if isinstance(limit, int)]

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the configuration as a whole."""
        if self.limits:
            return []
        return [Problem(path, "checks nothing: give `max_total`, `max_input` or `max_output`")]

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Decide one constraint per limit; with `per: step` it must hold in every step."""
        return self._whole_run(ctx) if self.per == "run" else self._each_step(ctx)

    def _whole_run(self, ctx: Context) -> EvaluatorResult:
        tally = ConstraintTally()
        used = _counts(ctx.response.tokens_usage)
        for key, name, limit in self.limits:
            number = used[name]
            if number is None:
                missing = f"the reply has no `tokens_usage.{name}`; have the agent send `tokens_usage`"
                tally.undecided.append(f"{key} {limit}: {missing}")
            else:
                tally.add(good=number <= limit, sentence=f"the run used {_tokens(number, name)} (max: {limit})")
        return result_from(self, tally, **used)

    def _each_step(self, ctx: Context) -> EvaluatorResult:
        tally = ConstraintTally()
        turns = [(place, _counts(message.tokens_usage)) for place, message in assistant_turns(ctx)]
        unread = unread_messages(ctx)
        for key, name, limit in self.limits:
            _decide(key, limit, name, [(place, used[name]) for place, used in turns], unread, self.per, tally)
        return result_from(self, tally, turns=[{"message": place, **used} for place, used in turns])


def _decide(  # noqa: PLR0913, PLR0917 - the limit, and all that is known of the steps
    key: str,
    limit: int,
    name: str,
    turns: Sequence[tuple[int, int | None]],
    unread: str,
    per: str,
    tally: ConstraintTally,
) -> None:
    reported = [(place, number) for place, number in turns if number is not None]
    unreported = [place for place, number in turns if number is None]
    over = [
        f"message {place} used {_tokens(number, name)} (max per {per}: {limit})"
        for place, number in reported
        if number > limit
    ]
    if over:
        tally.add_miss(*truncate_list(over))
    elif unread:
        tally.undecided.append(f"{key} {limit} per {per}: {unread}")
    elif unreported:
        verb = "reports" if len(unreported) == 1 else "report"
        lack = f"{join_numbers('message', unreported)} {verb} no `usage` with `{name}`"
        tally.undecided.append(f"{key} {limit} per {per}: {lack}; have the agent send it with each assistant message")
    elif reported:
        place, most = max(reported, key=lambda turn: turn[1])
        tally.add_hit(f"no {per} used more than {_tokens(most, name)}, as message {place} did (max per {per}: {limit})")
    else:
        tally.undecided.append(f"{key} {limit} per {per}: {NO_TURNS}")


def _counts(usage: TokensUsage | None) -> dict[str, int | None]:
    """Return the three counts; a missing total is computed from its parts."""
    if usage is None:
        return dict.fromkeys(COUNTS)
    read, wrote, total = usage.input_tokens, usage.output_tokens, usage.total_tokens
    if total is None and read is not None and wrote is not None:
        total = read + wrote
    return {"total_tokens": total, "input_tokens": read, "output_tokens": wrote}


def _tokens(number: int, name: str) -> str:
    kind = name.removesuffix("_tokens")
    what = "" if kind == "total" else f"{kind} "
    return f"{number} {what}{'token' if number == 1 else 'tokens'}"


class ToolCallCount(EvaluatorBase, kw_only=True):
    """The number of tool calls: recorded as a metric, or limited with `min` or `max`."""

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
    """The calls that count, by their status; denied and pending ones do not, unless it says so."""

    handles_incomplete: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={"type": "tool_call_count", "tool": "search_*", "max": 2},
            reply=[{"role": "assistant", "tool_calls": [{"tool": tool} for tool in turn_count]}],
            passes=passes,
        )
        for turn_count, passes in (
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
        """Return the problems of the configuration as a whole."""
        problems = [*check_bounds(self.min, self.max, path), *check_filter(self.calls, path)]
        if not self._is_limited:
            if self.kind == "assertion":
                problems.append(Problem(path, "checks nothing: an assertion needs `min` or `max`"))
            if self.negate:
                problems.append(Problem(f"{path}.not", "means nothing without `min` or `max`"))
        return problems

    def warnings(self, path: str) -> list[str]:
        """Return warnings about constraints that can never fail."""
        return [f"{path}.min: a minimum of 0: this can never fail"] if self.min == 0 else []

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Decide one constraint per limit; without any the score is 1."""
        tally = ConstraintTally()
        key, named = ("*", "tools") if isinstance(self.tool, UnsetType) else (self.tool, self.tool)
        unnamed = None if ctx.calls is None else [call.tool for call in ctx.calls].count("")
        if not ctx.calls_complete:
            certain = count_certain_calls(ctx.calls or (), excluded_statuses(self.calls)).calls
            times = count_at_least(certain, key)
            self._decide_lower_bound(times, named, unread_calls(ctx), tally)
            return result_from(self, tally, value=None, at_least=times, unnamed=unnamed)
        counted = reported_counts(ctx)
        if ctx.calls is not None:
            counted = count(call.tool for call in count_calls(ctx.calls, excluded_statuses(self.calls)).calls)
        value = None if counted is None else total(counted, key)
        if value is None:
            tally.undecided.append(f"calls of {named}: {missing_calls_reason(ctx)}")
        elif not self._is_limited:
            tally.hits.append(wording.called(named, value, "recorded"))
        else:
            if isinstance(self.min, int):
                tally.add(good=value >= self.min, sentence=wording.called(named, value, f"minimum: {self.min}"))
            if isinstance(self.max, int):
                tally.add(good=value <= self.max, sentence=wording.called(named, value, f"maximum: {self.max}"))
        return result_from(self, tally, value=value, unnamed=unnamed)

    def _decide_lower_bound(self, times: int, named: str, reason: str, tally: ConstraintTally) -> None:
        """Decide the limits when there may have been further calls; without limits the number is not known."""
        if not self._is_limited:
            tally.undecided.append(f"calls of {named}: {reason}")
        if isinstance(self.min, int):
            decide_minimum(named, self.min, times, reason, tally)
        if isinstance(self.max, int):
            decide_maximum(named, self.max, times, reason, tally)
