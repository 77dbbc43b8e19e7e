"""Agreement of two raters: Cohen's kappa with its confidence interval."""

from collections import Counter
from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from agentv.scoring.statistics import CONFIDENCE, two_sided, wilson

_ZERO_VARIANCE = 1e-12
"""A variance below this counts as 0."""


class Agreement(NamedTuple):
    """Agreement of two raters."""

    n: int
    agreement: float | None
    """The share of decisions in which they agree; `None` without any."""
    kappa: float | None
    """Cohen's kappa; `None` if undefined: both raters gave the same one rating throughout."""
    low: float | None
    """The lower end of its interval of 95 %."""
    high: float | None
    """The upper end of that interval."""
    table: dict[str, dict[str, int]]
    """Counts of pairs of ratings: `table[first][second]`."""


def cohens_kappa(pairs: Sequence[tuple[str, str]], labels: Sequence[str] = ()) -> Agreement:
    """Return Cohen's kappa of two raters with the interval of Fleiss, Cohen and Everitt (1969), and their table."""
    names = list(dict.fromkeys([*labels, *(name for pair in pairs for name in pair)]))
    counts = Counter(pairs)
    table = {first: {second: counts[first, second] for second in names} for first in names}
    n = len(pairs)
    if not n:
        return Agreement(0, None, None, None, None, table)
    share = {pair: count / n for pair, count in counts.items()}
    rows = {name: sum(share.get((name, other), 0.0) for other in names) for name in names}
    columns = {name: sum(share.get((other, name), 0.0) for other in names) for name in names}
    observed = sum(share.get((name, name), 0.0) for name in names)
    expected = sum(rows[name] * columns[name] for name in names)
    if expected >= 1.0 - _ZERO_VARIANCE:
        return Agreement(n, observed, None, None, None, table)
    kappa = (observed - expected) / (1 - expected)
    variance = _variance(share, rows, columns, observed, expected)
    if variance > _ZERO_VARIANCE:
        spread = two_sided(CONFIDENCE) * sqrt(variance / n)
        low, high = kappa - spread, kappa + spread
    else:
        # If all decisions agree, that formula gives an interval of no width, even for four of them. Wilson's interval
        # of the agreement, corrected for chance, is used instead.
        ends = wilson(observed * n, n) or (0.0, 1.0)
        low, high = ((end - expected) / (1 - expected) for end in ends)
    return Agreement(n, observed, kappa, max(-1.0, low), min(1.0, high), table)


def _variance(
    share: dict[tuple[str, str], float],
    rows: dict[str, float],
    columns: dict[str, float],
    observed: float,
    expected: float,
) -> float:
    """Return the variance of kappa for one decision, by the delta method, whatever the true kappa is."""
    chance, missed = 1 - expected, 1 - observed
    total = 0.0
    for (first, second), part in share.items():
        if first == second:
            total += part * (chance - (rows[first] + columns[first]) * missed) ** 2
        else:
            total += part * (missed * (columns[first] + rows[second])) ** 2
    return (total - (observed * expected - 2 * expected + observed) ** 2) / chance**4
