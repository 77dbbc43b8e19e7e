"""Confidence intervals, pass@k and pass^k, paired tests and bootstrap, Cohen's kappa of two raters."""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from math import ceil, erfc, exp, fsum, isinf, lgamma, log, log1p, pi, sqrt
from random import Random
from typing import NamedTuple

Interval = tuple[float, float]
"""The lower and the upper end."""
CONFIDENCE = 0.95
_STEPS = 1000
_CONVERGED = 1e-15
_ZERO_VARIANCE = 1e-12
"""A variance below this counts as 0."""


def normal_quantile(share: float) -> float:
    """Return the value below which this share of a standard normal distribution lies."""
    if not 0.0 < share < 1.0:
        msg = f"expected a share between 0 and 1, got {share!r}"
        raise ValueError(msg)
    if share > 0.5:  # noqa: PLR2004 - the middle
        return -normal_quantile(1.0 - share)
    # A small share is more precise than 1 minus it. From the middle outwards the curve bends to one side only, so that
    # Newton's method never overshoots.
    value = 0.0
    for _ in range(_STEPS):
        step = (normal_share(-value) - share) / (exp(-value * value / 2.0) / sqrt(2.0 * pi))
        value += step
        if abs(step) <= _CONVERGED * max(1.0, value):
            break
    return 0.0 - value


def normal_share(value: float) -> float:
    """Return the share of a standard normal distribution below this value."""
    return 0.5 * erfc(-value / sqrt(2.0))


def two_sided(confidence: float) -> float:
    """Return the number of standard deviations to either side that hold this share; 1.96 for 0.95."""
    return -normal_quantile((1.0 - confidence) / 2.0)


def wilson(passed: float, measured: float, confidence: float = CONFIDENCE) -> Interval | None:
    """Return Wilson's score interval of a rate; `None` if nothing was measured.

    `passed` may be a sum of rates instead of a count: a mean of numbers from 0 to 1 varies at most as much as a rate
    of yes and no, so that the interval is then rather too wide than too narrow.
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
    """Return the unbiased pass@k: 1 - C(n - c, k) / C(n, k); `None` with fewer than `k` runs."""
    missed = pass_hat_k(measured, measured - passed, k)
    return None if missed is None else 1.0 - missed


def pass_hat_k(measured: int, passed: int, k: int) -> float | None:
    """Return the unbiased pass^k: C(c, k) / C(n, k); `None` with fewer than `k` runs."""
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
"""The number of differences up to which they are resampled; beyond, the distribution is computed."""
_NEGLIGIBLE = 1e-17


def mcnemar(wins: int, losses: int) -> float:
    """Return the exact two-sided p-value of McNemar's test."""
    pairs, fewer = wins + losses, min(wins, losses)
    if wins == losses:
        return 1.0
    # From the middle outwards the terms only decrease, so that the sum loses no precision that matters.
    term = exp(_log_binomial(pairs, fewer, 0.5))
    total = 0.0
    for count in range(fewer, -1, -1):
        total += term
        if term <= total * _NEGLIGIBLE:
            break
        term *= count / (pairs - count + 1)
    return min(1.0, 2.0 * total)


def fisher_exact(first: int, first_total: int, second: int, second_total: int) -> float:
    """Return the two-sided p-value of Fisher's exact test of a property that is as frequent in one group as in another.

    `first` of the `first_total` members of one group have it, and `second` of the `second_total` of the other. Summed
    are the probabilities of all tables with the same margins that are at most as likely as this one.
    """
    with_property, total = first + second, first_total + second_total
    ways = _log_choose(total, with_property)

    def log_share(count: int) -> float:
        return _log_choose(first_total, count) + _log_choose(second_total, with_property - count) - ways

    limit = log_share(first) + 1e-7  # tables that are equally likely except for rounding
    least, most = max(0, with_property - second_total), min(first_total, with_property)
    shares = []
    # From either end inwards the probabilities only increase, until they exceed the limit.
    for counts in (range(least, most + 1), range(most, least - 1, -1)):
        for count in counts:
            log_probability = log_share(count)
            if log_probability > limit:
                break
            shares.append(exp(log_probability))
        else:
            return 1.0
    return min(1.0, fsum(shares))


def _log_choose(items: int, chosen: int) -> float:
    return lgamma(items + 1) - lgamma(chosen + 1) - lgamma(items - chosen + 1)


def _log_binomial(trials: int, count: int, share: float) -> float:
    return _log_choose(trials, count) + count * log(share) + (trials - count) * log1p(-share)


def paired_difference(
    both: int, wins: int, losses: int, neither: int, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return Newcombe's interval (his tenth method) of the difference of two rates over the same cases.

    `wins` are the cases that only the second passed, `losses` those that only the first did.
    """
    cases = both + wins + losses + neither
    first, second = both + losses, both + wins
    one, two = wilson(first, cases, confidence), wilson(second, cases, confidence)
    if one is None or two is None:
        return None
    before, after = first / cases, second / cases
    alike = _correlation(both, wins, losses, neither)
    down = _combine_errors(after - two[0], one[1] - before, alike)
    up = _combine_errors(two[1] - after, before - one[0], alike)
    difference = after - before
    return max(-1.0, difference - down), min(1.0, difference + up)


def _correlation(both: int, wins: int, losses: int, neither: int) -> float:
    """Return the correlation phi of the two; a positive one is reduced for caution."""
    product = (both + wins) * (losses + neither) * (both + losses) * (wins + neither)
    if not product:
        return 0.0
    over = float(both * neither - wins * losses)
    if over > 0:
        over = max(over - (both + wins + losses + neither) / 2.0, 0.0)
    return over / sqrt(product)


def _combine_errors(one: float, other: float, alike: float) -> float:
    return sqrt(max(0.0, one * one - 2.0 * alike * one * other + other * other))


def cases_needed(
    difference: float, discordant: float, *, confidence: float = CONFIDENCE, power: float = POWER
) -> int | None:
    """Return the number of pairs needed to show a difference of two rates, if this share of pairs differs at all.

    By Connor's formula; `None` for a difference near 0, which no number of cases shows.
    """
    wanted = abs(difference)
    if not wanted:
        return None
    differing = min(1.0, max(discordant, wanted))  # a difference needs at least as many differing pairs
    alpha, beta = two_sided(confidence), normal_quantile(power)
    root = alpha * sqrt(differing) + beta * sqrt(max(0.0, differing - wanted * wanted))
    cases = (root / wanted) * (root / wanted)
    return None if isinf(cases) else ceil(cases - 1e-9)


def paired_bootstrap(
    differences: Sequence[float], *, seed: int = 0, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Interval | None:
    """Return the bootstrap's percentile interval of a mean difference; the same seed gives the same interval.

    Cases that do not differ add nothing to a sum. So each resample draws only the number of differing cases, which is
    binomial, and then those: the cost depends on the differing cases alone. With more than 2,000 of them nothing is
    drawn: the limiting quantiles follow from the first four moments (Cornish and Fisher), which is more precise at
    that size than 2,000 resamples.
    """
    if not differences:
        return None
    differing = array("d", [difference for difference in differences if difference])
    tail = (1.0 - confidence) / 2.0
    if len(differing) > MAX_RESAMPLED:
        return _limit_quantiles(differences, tail)
    if not differing:
        return 0.0, 0.0
    means = _resample_means(differing, len(differences), seed, resamples)
    return _quantile(means, tail), _quantile(means, 1.0 - tail)


def _resample_means(differing: Sequence[float], cases: int, seed: int, resamples: int) -> list[float]:
    """Return the sorted means of so many resamples."""
    random = seeded_random(seed)
    least, shares = _counts(cases, len(differing))
    means = []
    for _ in range(resamples):
        count = len(differing) if not shares else least + bisect_left(shares, random.random())
        means.append(fsum(random.choices(differing, k=count)) / cases)
    return sorted(means)


def seeded_random(seed: int) -> Random:
    """Return a generator of random numbers that the seed determines."""
    return Random(seed)  # noqa: S311 - it protects no secret


def _counts(cases: int, differing: int) -> tuple[int, list[float]]:
    """Return the distribution of the number of differing cases: its least value, and the cumulative shares."""
    if differing == cases:
        return differing, []
    share = differing / cases
    reach = ceil(9.0 * sqrt(cases * share * (1.0 - share))) + 9
    least, most = max(0, differing - reach), min(cases, differing + reach)
    terms = (exp(_log_binomial(cases, count, share)) for count in range(least, most + 1))
    shares = list(accumulate(terms))
    shares[-1] = 1.0  # despite rounding
    return least, shares


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile by linear interpolation."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def _limit_quantiles(differences: Sequence[float], tail: float) -> Interval:
    """Return the quantiles of the mean in the limit of many resamples."""
    cases = len(differences)
    mean = fsum(differences) / cases
    second = fsum((difference - mean) ** 2 for difference in differences) / cases
    if not second:
        return mean, mean
    third = fsum((difference - mean) ** 3 for difference in differences) / cases
    fourth = fsum((difference - mean) ** 4 for difference in differences) / cases
    skew = third / second**1.5 / sqrt(cases)
    tails = (fourth / second**2 - 3.0) / cases
    spread = sqrt(second / cases)
    low, high = (mean + spread * _cornish_fisher(normal_quantile(share), skew, tails) for share in (tail, 1.0 - tail))
    return low, high


def _cornish_fisher(z: float, skew: float, tails: float) -> float:
    return z + (z**2 - 1) * skew / 6 + (z**3 - 3 * z) * tails / 24 - (2 * z**3 - 5 * z) * skew**2 / 36


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
