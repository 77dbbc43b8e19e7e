"""Confidence intervals, paired tests, and agreement between judges."""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from math import ceil, erfc, exp, fsum, isinf, lgamma, log, log1p, pi, sqrt
from typing import NamedTuple

Interval = tuple[float, float]
"""The lower and the upper end."""
CONFIDENCE = 0.95
_STEPS = 1000
_CLOSE = 1e-15


def normal_quantile(share: float) -> float:
    """Below which value this share of a standard normal distribution lies."""
    if not 0.0 < share < 1.0:
        msg = f"expected a share between 0 and 1, got {share!r}"
        raise ValueError(msg)
    if share > 0.5:  # noqa: PLR2004 - the middle
        return -normal_quantile(1.0 - share)
    # A small share is known more exactly than what is left of 1. From the middle outwards the curve bends to one side
    # only: Newton's steps from there never overshoot.
    found = 0.0
    for _ in range(_STEPS):
        step = (normal_share(-found) - share) / (exp(-found * found / 2.0) / sqrt(2.0 * pi))
        found += step
        if abs(step) <= _CLOSE * max(1.0, found):
            break
    return 0.0 - found


def normal_share(value: float) -> float:
    """Which share of a standard normal distribution lies below this value."""
    return 0.5 * erfc(-value / sqrt(2.0))


def two_sided(confidence: float) -> float:
    """How many standard deviations to either side hold this share; 1.96 for 0.95."""
    return -normal_quantile((1.0 - confidence) / 2.0)


def wilson(passed: float, measured: float, confidence: float = CONFIDENCE) -> Interval | None:
    """Wilson's score interval of a rate; `None` when nothing was measured.

    `passed` may be a sum of rates instead of a count: a mean of numbers from 0 to 1 varies at most as much as a rate
    of yes and no does, so that the interval is then rather too wide than too narrow.
    """
    if not measured:
        return None
    z = two_sided(confidence)
    rate = passed / measured
    spread = z * z / measured
    middle = rate + spread / 2.0
    half = z * sqrt((rate * (1.0 - rate) + spread / 4.0) / measured)
    low = 0.0 if passed <= 0 else max(0.0, (middle - half) / (1.0 + spread))
    high = 1.0 if passed >= measured else min(1.0, (middle + half) / (1.0 + spread))
    return low, high


def pass_at_k(measured: int, passed: int, k: int) -> float | None:
    """How likely at least one of `k` runs passes, without bias: 1 - C(n - c, k) / C(n, k); `None` with fewer runs."""
    missed = pass_hat_k(measured, measured - passed, k)
    return None if missed is None else 1.0 - missed


def pass_hat_k(measured: int, passed: int, k: int) -> float | None:
    """How likely all of `k` runs pass (pass^k), without bias: C(c, k) / C(n, k); `None` with fewer runs."""
    if not 1 <= k <= measured:
        return None
    if passed < k:
        return 0.0
    share = 1.0
    for taken in range(k):
        share *= (passed - taken) / (measured - taken)
    return share


RESAMPLES = 2_000
POWER = 0.8
MAX_RESAMPLED = 2_000
"""How many differences are drawn from at random; of more, the distribution of their mean is computed."""
_NEGLIGIBLE = 1e-17


def mcnemar(wins: int, losses: int) -> float:
    """The exact two-sided p-value of McNemar's test: so lopsided or more, if either were as likely."""
    pairs, fewer = wins + losses, min(wins, losses)
    if wins == losses:
        return 1.0
    # From the middle outwards the terms only fall, so that a sum of floats loses nothing that counts.
    term = exp(_log_binomial(pairs, fewer, 0.5))
    total = 0.0
    for count in range(fewer, -1, -1):
        total += term
        if term <= total * _NEGLIGIBLE:
            break
        term *= count / (pairs - count + 1)
    return min(1.0, 2.0 * total)


def _log_binomial(trials: int, count: int, share: float) -> float:
    ways = lgamma(trials + 1) - lgamma(count + 1) - lgamma(trials - count + 1)
    return ways + count * log(share) + (trials - count) * log1p(-share)


def paired_difference(
    both: int, wins: int, losses: int, neither: int, confidence: float = CONFIDENCE
) -> Interval | None:
    """Newcombe's interval of the difference of two rates over the same cases: his tenth method, of two of Wilson's.

    `wins` are the cases that only the second passed, `losses` those that only the first did.
    """
    cases = both + wins + losses + neither
    first, second = both + losses, both + wins
    one, two = wilson(first, cases, confidence), wilson(second, cases, confidence)
    if one is None or two is None:
        return None
    before, after = first / cases, second / cases
    alike = _correlation(both, wins, losses, neither)
    down = _combined(after - two[0], one[1] - before, alike)
    up = _combined(two[1] - after, before - one[0], alike)
    difference = after - before
    return max(-1.0, difference - down), min(1.0, difference + up)


def _correlation(both: int, wins: int, losses: int, neither: int) -> float:
    """How far the two go together, phi; a positive one is taken with caution."""
    product = (both + wins) * (losses + neither) * (both + losses) * (wins + neither)
    if not product:
        return 0.0
    over = float(both * neither - wins * losses)
    if over > 0:
        over = max(over - (both + wins + losses + neither) / 2.0, 0.0)
    return over / sqrt(product)


def _combined(one: float, other: float, alike: float) -> float:
    return sqrt(max(0.0, one * one - 2.0 * alike * one * other + other * other))


def cases_needed(
    difference: float, discordant: float, *, confidence: float = CONFIDENCE, power: float = POWER
) -> int | None:
    """How many pairs show a difference of two rates, when this share of pairs differs at all.

    Connor's formula; `None` for a difference of next to nothing, which no number of cases shows.
    """
    wanted = abs(difference)
    if not wanted:
        return None
    differing = min(1.0, max(discordant, wanted))  # a difference needs at least as many pairs that differ
    alpha, beta = two_sided(confidence), normal_quantile(power)
    root = alpha * sqrt(differing) + beta * sqrt(max(0.0, differing - wanted * wanted))
    cases = (root / wanted) * (root / wanted)
    return None if isinf(cases) else ceil(cases - 1e-9)


def paired_bootstrap(
    differences: Sequence[float], *, seed: int = 0, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Interval | None:
    """The bootstrap's percentile interval of a mean difference; the same seed gives the same interval.

    Cases that do not differ add nothing to a sum. So of each resample only the number of cases that differ is drawn,
    which is binomial, and then those: its cost is that of the cases that differ. Of more than 2,000 of these nothing is
    drawn: the quantiles to which ever more resamples would lead follow from the first four moments (Cornish and
    Fisher), and at that size they are closer to them than 2,000 resamples come.
    """
    if not differences:
        return None
    differing = array("d", [each for each in differences if each])
    tail = (1.0 - confidence) / 2.0
    if len(differing) > MAX_RESAMPLED:
        return _expanded(differences, tail)
    if not differing:
        return 0.0, 0.0
    means = _resampled(differing, len(differences), seed, resamples)
    return _quantile(means, tail), _quantile(means, 1.0 - tail)


def _resampled(differing: Sequence[float], cases: int, seed: int, resamples: int) -> list[float]:
    """The means of so many resamples, in order of size."""
    from random import Random  # noqa: PLC0415 - only a comparison needs it

    random = Random(seed)  # noqa: S311 - nobody's secret hangs on it
    least, shares = _counts(cases, len(differing))
    means = []
    for _ in range(resamples):
        count = len(differing) if not shares else least + bisect_left(shares, random.random())
        means.append(fsum(random.choices(differing, k=count)) / cases)
    return sorted(means)


def _counts(cases: int, differing: int) -> tuple[int, list[float]]:
    """How many cases of a resample differ: the least likely number, and from it on the shares up to each."""
    if differing == cases:
        return differing, []
    share = differing / cases
    reach = ceil(9.0 * sqrt(cases * share * (1.0 - share))) + 9
    least, most = max(0, differing - reach), min(cases, differing + reach)
    each = (exp(_log_binomial(cases, count, share)) for count in range(least, most + 1))
    shares = list(accumulate(each))
    shares[-1] = 1.0  # whatever rounding left
    return least, shares


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Between the two nearest, in proportion."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def _expanded(differences: Sequence[float], tail: float) -> Interval:
    """The quantiles of the mean of ever more resamples."""
    cases = len(differences)
    mean = fsum(differences) / cases
    second = fsum((each - mean) ** 2 for each in differences) / cases
    if not second:
        return mean, mean
    third = fsum((each - mean) ** 3 for each in differences) / cases
    fourth = fsum((each - mean) ** 4 for each in differences) / cases
    skew = third / second**1.5 / sqrt(cases)
    tails = (fourth / second**2 - 3.0) / cases
    spread = sqrt(second / cases)
    low, high = (mean + spread * _cornish_fisher(normal_quantile(share), skew, tails) for share in (tail, 1.0 - tail))
    return low, high


def _cornish_fisher(z: float, skew: float, tails: float) -> float:
    return z + (z**2 - 1) * skew / 6 + (z**3 - 3 * z) * tails / 24 - (2 * z**3 - 5 * z) * skew**2 / 36


_NOTHING = 1e-12
"""A variance below this is none."""


class Agreement(NamedTuple):
    """What a table of two raters comes to."""

    n: int
    agreement: float | None
    """The share of decisions in which they agree; `None` without any."""
    kappa: float | None
    """Cohen's kappa; `None` when it is not defined: both said the same one thing throughout."""
    low: float | None
    """The lower end of its interval of 95 %."""
    high: float | None
    """The upper end of that interval."""
    table: dict[str, dict[str, int]]
    """How often the second said this where the first said that: `table[first][second]`."""


def agree(pairs: Sequence[tuple[str, str]], labels: Sequence[str] = ()) -> Agreement:
    """Cohen's kappa of two raters, with the interval of Fleiss, Cohen and Everitt (1969), and their table."""
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
    if expected >= 1.0 - _NOTHING:
        return Agreement(n, observed, None, None, None, table)
    kappa = (observed - expected) / (1 - expected)
    variance = _variance(share, rows, columns, observed, expected)
    if variance > _NOTHING:
        spread = two_sided(CONFIDENCE) * sqrt(variance / n)
        low, high = kappa - spread, kappa + spread
    else:
        # Four decisions that all agree are no proof: by that formula they would be, with an interval of no width.
        # Wilson's interval of the agreement, put through the same chance, says how little they tell.
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
    """The variance of kappa for one decision, by the delta method, whatever the true kappa is."""
    chance, missed = 1 - expected, 1 - observed
    total = 0.0
    for (first, second), part in share.items():
        if first == second:
            total += part * (chance - (rows[first] + columns[first]) * missed) ** 2
        else:
            total += part * (missed * (columns[first] + rows[second])) ** 2
    return (total - (observed * expected - 2 * expected + observed) ** 2) / chance**4
