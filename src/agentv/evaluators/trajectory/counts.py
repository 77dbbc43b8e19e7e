"""How often tools were called: `minimums`, `maximums`, `allowed`, `forbidden`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.evaluators.trajectory import words
from agentv.evaluators.trajectory.plan import UNNAMED
from agentv.matching.glob import glob_test, is_glob

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentv.evaluators.base import Tally
    from agentv.evaluators.trajectory.evaluator import ToolTrajectory
    from agentv.evaluators.trajectory.plan import Made
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


def _violations(allowed: list[str], ctx: Context) -> Iterable[str]:
    exact, tests = frozenset(allowed), [glob_test(pattern) for pattern in allowed if is_glob(pattern)]
    if ctx.calls is None:
        for tool, times in _given(ctx).items():
            if times and tool not in exact and not any([fits(tool) for fits in tests]):  # noqa: C419 - see below
                yield f"{words.called(tool, times, 'not allowed')}"
        return
    known: dict[str, bool] = {"": False}
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
