"""How sure a rate is, and what repeated runs say: intervals, pass@k and pass^k, in plain arithmetic."""

from math import erfc, exp, pi, sqrt

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
