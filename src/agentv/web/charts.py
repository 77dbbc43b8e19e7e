"""Histograms of the numbers of runs, by verdict."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from contextlib import suppress
from itertools import chain, pairwise
from math import ceil, floor, isfinite, log10
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentv.model.listing import RunNumbers

BINS = 20
WIDE = 100.0
"""Ratio of the largest and the smallest number from which the bins are logarithmic."""
VERDICTS = ("pass", "fail", "error")
"""Verdicts that count: the status is the first of the `RunNumbers`, and the measures follow in this order."""
MEASURES = (("score", ""), ("latency_ms", "ms"), ("cost_usd", "USD"), ("total_tokens", "tokens"))


def histograms(runs: list[RunNumbers]) -> list[dict[str, Any]]:
    """Return a histogram of each measure that at least one run reports."""
    by_verdict: dict[str, list[RunNumbers]] = {verdict: [] for verdict in VERDICTS}
    for run in runs:
        if run[0] in by_verdict:
            by_verdict[run[0]].append(run)
    measured = sum(map(len, by_verdict.values()))
    charts = []
    for at, (name, unit) in enumerate(MEASURES, 1):
        values = {verdict: _sorted_numbers(map(itemgetter(at), some)) for verdict, some in by_verdict.items()}
        reported = sum(map(len, values.values()))
        if reported:
            histogram = _histogram(values, name)
            charts.append({"name": name, "unit": unit, "missing": measured - reported, **histogram})
    return charts


def _sorted_numbers(values: Iterable[float | None]) -> list[float]:
    """Return the numbers that are known; a damaged row may hold others, and texts."""
    known = [value for value in values if value is not None]
    with suppress(TypeError):
        known.sort()
        if not known or (isfinite(known[0]) and isfinite(known[-1])):
            return known
    return sorted(value for value in known if isinstance(value, int | float) and isfinite(value))


def _histogram(values: dict[str, list[float]], name: str) -> dict[str, Any]:
    ordered = sorted(chain.from_iterable(values.values()))
    edges = [at / 10 for at in range(11)] if name == "score" else _edges(ordered)
    # The time until a run was given up is a limit of ours, not a latency of the agent.
    times = sorted([*values["pass"], *values["fail"]]) if name == "latency_ms" and values["error"] else []
    typical = times or ordered
    counts = {verdict: _count(some, edges) for verdict, some in values.items()}
    bins = [
        {"from": low, "to": high, **{verdict: counts[verdict][at] for verdict in VERDICTS}}
        for at, (low, high) in enumerate(pairwise(edges))
    ]
    return {"bins": bins, "median": _quantile(typical, 0.5), "p95": _quantile(typical, 0.95), "max": ordered[-1]}


def _edges(ordered: list[float]) -> list[float]:
    """Return the edges of the bins: round numbers, or powers where the numbers spread widely."""
    low, high = ordered[0], ordered[-1]
    if low > 0 and high / low >= WIDE:
        first, last = floor(log10(low) * 4), ceil(log10(high) * 4)
        return [10 ** (at / 4) for at in range(first, max(last, first + 1) + 1)]
    low = min(low, 0.0)
    step = _round_up((high - low) / BINS) if high > low else 1.0
    return [low + step * at for at in range(int((high - low) / step) + 2)]


def _round_up(step: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step)


def _count(ordered: list[float], edges: list[float]) -> list[int]:
    """Count sorted values between edges; the last bin includes its upper edge."""
    ends = [
        bisect_right(ordered, edge) if at == len(edges) - 1 else bisect_left(ordered, edge)
        for at, edge in enumerate(edges)
    ]
    counts = [high - low for low, high in pairwise(ends)]
    counts[0] += ends[0]
    counts[-1] += len(ordered) - ends[-1]
    return counts


def _quantile(ordered: list[float], share: float) -> float:
    """Return a quantile as a summary has it, so that a page shows one number for it."""
    return ordered[round(share * (len(ordered) - 1))]
