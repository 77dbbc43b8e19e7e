"""Whether two runs of the same cases differ: the tests and intervals for pairs, in plain arithmetic."""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from math import ceil, exp, fsum, isinf, lgamma, log, log1p, sqrt

from agentv.scoring.stats import CONFIDENCE, Interval, normal_quantile, two_sided, wilson

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
