"""How often tools were called: `minimums`, `maximums`, `allowed`, `forbidden`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.evaluators.trajectory import words
from agentv.evaluators.trajectory.plan import UNNAMED, count_certain_calls
from agentv.evaluators.unread import is_any_name, unread_calls
from agentv.matching.glob import glob_test, is_glob

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agentv.evaluators.base import Tally
    from agentv.evaluators.trajectory.evaluator import ToolTrajectory
    from agentv.evaluators.trajectory.plan import Made
    from agentv.model.message import ToolCall
    from agentv.protocols import Context


def decide(config: ToolTrajectory, ctx: Context, made: Made | None, tally: Tally) -> None:
    """Every count of the configuration; they can always be decided."""
    if config.minimums or config.maximums:
        counted = _given(ctx) if made is None else count(call.tool for call in made.calls)
        for key, least in (config.minimums or {}).items():
            times = total(counted, key)
            tally.count(good=times >= least, sentence=words.called(key, times, f"minimum: {least}"))
        for key, most in (config.maximums or {}).items():
            times = total(counted, key)
            tally.count(good=times <= most, sentence=words.called(key, times, f"maximum: {most}"))
    if config.forbidden:
        attempted = _given(ctx) if ctx.calls is None else count(call.tool for call in ctx.calls)
        for key in config.forbidden:
            times = total(attempted, key)
            tally.count(good=times == 0, sentence=words.called(key, times, "forbidden"))
    if config.allowed is not None:
        violations = list(_violations(config.allowed, ctx))
        if violations:
            tally.fails(*violations)
        else:
            tally.holds("only allowed tools were called")


def decide_lower_bound(config: ToolTrajectory, ctx: Context, tally: Tally) -> None:
    """Decide the counts of a partly understood reply, to which any number of calls may be added."""
    reason, calls = unread_calls(ctx), ctx.calls or ()
    certain = count_certain_calls(calls, config.excluded).calls
    for key, least in (config.minimums or {}).items():
        decide_minimum(key, least, count_at_least(certain, key), reason, tally)
    for key, most in (config.maximums or {}).items():
        decide_maximum(key, most, count_at_least(certain, key), reason, tally)
    for key in config.forbidden or ():
        times = count_at_least(calls, key)
        sentence = words.called(key, times, "forbidden", at_least=True)
        tally.decide(good=False if times else None, sentence=sentence, undecided=f"{key} (forbidden): {reason}")
    if config.allowed is not None:
        _decide_allowed(config.allowed, ctx, reason, tally)


def decide_minimum(key: str, least: int, times: int, reason: str, tally: Tally) -> None:
    """Decide a minimum by the calls that were read: once it is reached, it holds."""
    bound = f"minimum: {least}"
    sentence = words.called(key, times, bound, at_least=True)
    tally.decide(good=True if times >= least else None, sentence=sentence, undecided=f"{key} ({bound}): {reason}")


def decide_maximum(key: str, most: int, times: int, reason: str, tally: Tally) -> None:
    """Decide a maximum by the calls that were read: once it is exceeded, it does not hold."""
    bound = f"maximum: {most}"
    sentence = words.called(key, times, bound, at_least=True)
    tally.decide(good=False if times > most else None, sentence=sentence, undecided=f"{key} ({bound}): {reason}")


def _decide_allowed(allowed: list[str], ctx: Context, reason: str, tally: Tally) -> None:
    """Decide an allow-list: a call without a name violates it only where it allows no name at all."""
    violations = list(_violations(allowed, ctx, unnamed=not allowed))
    if violations:
        tally.fails(*violations)
    elif any(map(is_any_name, allowed)):
        tally.holds("only allowed tools were called")
    else:
        tally.undecided.append(f"allowed: {reason}")


def count_at_least(calls: Sequence[ToolCall], key: str) -> int:
    """Return how many calls a key, which may be a glob, stands for at least; one without a name only for all tools."""
    return len(calls) if is_any_name(key) else total(count(call.tool for call in calls), key)


def _violations(allowed: list[str], ctx: Context, *, unnamed: bool = True) -> Iterable[str]:
    exact, tests = frozenset(allowed), [glob_test(pattern) for pattern in allowed if is_glob(pattern)]
    if ctx.calls is None:
        for tool, times in _given(ctx).items():
            if times and tool not in exact and not any([fits(tool) for fits in tests]):  # noqa: C419 - see below
                yield f"{words.called(tool, times, 'not allowed')}"
        return
    known: dict[str, bool] = {"": not unnamed}
    for number, call in enumerate(ctx.calls):
        if call.tool not in known:
            known[call.tool] = call.tool in exact or any([fits(call.tool) for fits in tests])  # noqa: C419 - twice as fast
        if not known[call.tool]:
            yield f"call {number} {call.tool or UNNAMED} is not allowed"


def _given(ctx: Context) -> Mapping[str, int]:
    return {} if ctx.trace_summary is None else ctx.trace_summary.tool_calls_by_name


def count(tools: Iterable[str]) -> dict[str, int]:
    """Named calls by tool."""
    found: dict[str, int] = {}
    for tool in tools:
        if tool:
            found[tool] = found.get(tool, 0) + 1
    return found


def total(counted: Mapping[str, int], key: str) -> int:
    """All calls that a key, which may be a glob, stands for."""
    if is_glob(key):
        fits = glob_test(key)
        return sum([times for tool, times in counted.items() if fits(tool)])
    return counted.get(key, 0)
