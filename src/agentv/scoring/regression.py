"""Exact tests of the question whether B passes less often than A, over cases that ran any number of times.

The null hypothesis is that each case has the same probability of passing on both sides, whatever that is. Then, given
the number of runs of a case and how many of them passed on both sides together, every assignment of the passes to the
runs is equally likely: the number of passes of B is hypergeometric. The tests use nothing else, so that their rate of
false alarms holds for every flakiness of an agent and for every number of repetitions.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from math import comb, fsum, sqrt
from operator import mul
from typing import NamedTuple

from agentv.scoring.statistics import RESAMPLES, mcnemar, normal_share, seeded_random, two_sided

MAX_EXACT = 300
"""The number of possible sums up to which their distribution is computed exactly; the normal one is used beyond."""
MAX_FLIPPED = 300
"""The number of differences up to which signs are drawn; beyond, the sum of so many is normal."""
_TOLERANCE = 1.0 + 1e-9
"""A p-value that equals its limit except for rounding reaches it."""


class Stratum(NamedTuple):
    """The measured runs of one case on both sides."""

    passed_a: int
    runs_a: int
    passed_b: int
    runs_b: int

    @property
    def passed(self) -> int:
        """Return the number of passes on both sides together."""
        return self.passed_a + self.passed_b

    @property
    def runs(self) -> int:
        """Return the number of runs on both sides together."""
        return self.runs_a + self.runs_b

    @property
    def is_informative(self) -> bool:
        """Return whether the sides can differ at all: some runs of the case passed and some failed."""
        return 0 < self.passed < self.runs

    @property
    def weight(self) -> float:
        """Return the information in the runs of the case, `ab / (a + b)`: one run on each side is a half."""
        return self.runs_a * self.runs_b / self.runs

    @property
    def variance(self) -> float:
        """Return the variance of the number of passes of B."""
        share = self.passed / self.runs
        return self.weight * self.runs * share * (1.0 - share) / (self.runs - 1)

    def distribution(self) -> tuple[int, list[float]]:
        """Return the smallest possible number of passes of B, and the probabilities from there on."""
        ways = comb(self.runs, self.passed)
        least, most = max(0, self.passed - self.runs_a), min(self.runs_b, self.passed)
        passes = range(least, most + 1)
        return least, [
            comb(self.runs_b, passed_b) * comb(self.runs_a, self.passed - passed_b) / ways for passed_b in passes
        ]

    def loss_p_value(self) -> float:
        """Return the probability of at most as many passes of B as there were: Fisher's exact test, one-sided."""
        least, shares = self.distribution()
        return min(1.0, fsum(shares[: self.passed_b - least + 1]))

    def smallest_p_value(self) -> float:
        """Return the smallest p-value that so many runs and passes can have."""
        return self.distribution()[1][0]


class Tails(NamedTuple):
    """One-sided p-values of a test."""

    worse: float
    """The probability of a result at least as bad for B, if both sides are the same."""
    better: float
    """The probability of a result at least as good for B."""

    @property
    def two_sided(self) -> float:
        """Return the two-sided p-value."""
        return min(1.0, 2.0 * min(self))


def stratified_test(strata: Iterable[Stratum]) -> Tails:
    """Return the p-values of the number of passes of B over all cases, given the passes of each case.

    With one run of each case on each side this is McNemar's exact test; in general, the exact conditional test of
    stratified 2 x 2 tables that belongs to the one of Mantel and Haenszel.
    """
    counts = Counter(stratum for stratum in strata if stratum.is_informative)
    if all(stratum.runs_a == stratum.runs_b == 1 for stratum in counts):
        wins = sum(number for stratum, number in counts.items() if stratum.passed_b)
        return _mcnemar_tails(wins, counts.total() - wins)
    observed = sum(stratum.passed_b * number for stratum, number in counts.items())
    distributions = [(*stratum.distribution(), number) for stratum, number in counts.items()]
    if sum(len(shares) * number for _, shares, number in distributions) > MAX_EXACT:
        return _normal_tails(counts, observed)
    total = [1.0]
    for least, shares, number in distributions:
        observed -= least * number
        for _ in range(number):
            total = _convolve(total, shares)
    return Tails(min(1.0, fsum(total[: observed + 1])), min(1.0, fsum(total[observed:])))


def _mcnemar_tails(wins: int, losses: int) -> Tails:
    """Return the tails of McNemar's test; both include the observation."""
    fewer, more = sorted((wins, losses))
    rest = 1.0 - (mcnemar(fewer - 1, more + 1) / 2.0 if fewer else 0.0)
    tail = rest if fewer == more else mcnemar(fewer, more) / 2.0
    return Tails(tail, rest) if losses >= wins else Tails(rest, tail)


def _convolve(first: Sequence[float], second: Sequence[float]) -> list[float]:
    sums = [0.0] * (len(first) + len(second) - 1)
    for at, one in enumerate(first):
        for offset, other in enumerate(second, at):
            sums[offset] += one * other
    return sums


def _normal_tails(counts: Counter[Stratum], observed: int) -> Tails:
    """Return the tails of the normal distribution, with half a step added since the sum is a whole number."""
    mean = fsum(number * stratum.runs_b * stratum.passed / stratum.runs for stratum, number in counts.items())
    spread = sqrt(fsum(number * stratum.variance for stratum, number in counts.items()))
    return Tails(normal_share((observed + 0.5 - mean) / spread), normal_share((mean - observed + 0.5) / spread))


def regressed_cases(strata: Sequence[Stratum], alpha: float) -> set[int]:
    """Return the indices of the cases that B lost beyond chance.

    Fisher's exact test of each case, corrected for their number by Tarone's method: cases that could not reach the
    limit whatever had happened are not counted. The probability to name any case of an agent that did not change is
    at most `alpha`.
    """
    counts = Counter(stratum for stratum in strata if stratum.is_informative)
    if not counts:
        return set()
    smallest = sorted(
        value for counts_of_case, number in counts.items() for value in [counts_of_case.smallest_p_value()] * number
    )
    divisor = next(number for number in count(1) if bisect_right(smallest, alpha / number * _TOLERANCE) <= number)
    limit = alpha / divisor * _TOLERANCE
    lost = {stratum for stratum in counts if stratum.loss_p_value() <= limit}
    return {at for at, stratum in enumerate(strata) if stratum in lost}


def sign_flip_test(differences: Sequence[float], seed: int) -> Tails:
    """Return the p-values of a sum of paired differences whose signs are arbitrary if both sides are the same."""
    observed = fsum(differences)
    if len(differences) > MAX_FLIPPED:
        spread = sqrt(fsum(difference * difference for difference in differences))
        return Tails(normal_share(observed / spread), normal_share(-observed / spread))
    random = seeded_random(seed)
    sums = [fsum(map(mul, random.choices((1.0, -1.0), k=len(differences)), differences)) for _ in range(RESAMPLES)]
    slack = 1e-9 * fsum(map(abs, differences))
    worse = 1 + sum(total <= observed + slack for total in sums)
    better = 1 + sum(total >= observed - slack for total in sums)
    return Tails(worse / (RESAMPLES + 1), better / (RESAMPLES + 1))


def power_of(strata: Iterable[Stratum], difference: float, confidence: float) -> float | None:
    """Return the probability that the test over all cases shows a drop of the pass rate by so much.

    Connor's formula for McNemar's test, with the variance and the information of repeated runs.
    """
    counts = Counter(strata)
    weight = fsum(number * stratum.weight for stratum, number in counts.items())
    if not weight:
        return None
    known = fsum(number * stratum.variance for stratum, number in counts.items() if stratum.is_informative)
    # A drop by so much makes at least so many runs differ.
    variance = max(known, difference * weight / 2.0)
    rest = max(variance - difference * difference * weight / 2.0, 1e-12)
    return normal_share((difference * weight - two_sided(confidence) * sqrt(variance)) / sqrt(rest))


def runs_to_name_a_case(alpha: float, others: int) -> int:
    """Return the number of runs on each side that name a case lost in all of them, beside so many flaky ones."""
    return next(runs for runs in count(1) if 1.0 / comb(2 * runs, runs) <= alpha / (others + 1) * _TOLERANCE)
