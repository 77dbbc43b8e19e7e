"""Rates in words, each with how sure it is, and what repeated runs say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.reports.problems import counted

if TYPE_CHECKING:
    from agentv.model.record import RepeatedCase, Repeats, Summary

DASH = "\N{EN DASH}"
_WIDE, _NARROW = 0.05, 0.005
"""How far the ends of an interval must be apart for percents, or tenths of them, to tell enough."""


def percent(share: float) -> str:
    """A share that is not all is never rounded up to all."""
    if 0 < share < 1:
        share = min(max(share, 0.001), 0.999)
    return f"{share * 100:.3g} %"


def between(interval: tuple[float, float]) -> str:
    """`30-95 %` with a longer dash, in as many digits as its width makes sense of."""
    low, high = interval
    digits = 0 if high - low >= _WIDE else 1 if high - low >= _NARROW else 2
    return f"{low * 100:.{digits}f}{DASH}{high * 100:.{digits}f} %"


def sure(interval: tuple[float, float] | None) -> str:
    """` (95 % CI 30-95 %)`, to be added to a rate."""
    return "" if interval is None else f" (95 % CI {between(interval)})"


def measured_rate(summary: Summary) -> str:
    """`75 % of 4 measured passed (95 % CI 30-95 %)`."""
    if summary.pass_rate is None:
        return "nothing could be measured"
    measured = summary.passed + summary.failed
    return f"{percent(summary.pass_rate)} of {measured:,} measured passed{sure(summary.pass_rate_interval)}"


def fraction(case: RepeatedCase) -> str:
    """`3/5 passed`, and the errors beside it."""
    errors = f", {counted(case.errors, 'error')}" if case.errors else ""
    return f"{case.passed}/{case.passed + case.failed} passed{errors}"


def flaky_cases(repeats: Repeats) -> list[RepeatedCase]:
    """Those that are listed; there may be more of them."""
    return [case for case in repeats.per_case if case.flaky]


def repeated(repeats: Repeats) -> str:
    """`pass@5 0.92 (95 % CI 0.61-0.99) · pass^5 0.41 (95 % CI 0.15-0.72) · 12 cases, 1 flaky`."""
    k = repeats.k
    told = [f"nothing could be measured {k} times"]
    if repeats.pass_at_k is not None and repeats.pass_hat_k is not None:
        told = [
            f"pass@{k} {repeats.pass_at_k:.2f}{_ends(repeats.pass_at_k_interval)}",
            f"pass^{k} {repeats.pass_hat_k:.2f}{_ends(repeats.pass_hat_k_interval)}",
        ]
    left_out = repeats.cases - repeats.measured
    fewer = f", {left_out:,} measured less often" if left_out and repeats.measured else ""
    return " · ".join([*told, f"{counted(repeats.cases, 'case')}{fewer}, {repeats.flaky:,} flaky"])


def repeated_target(repeats: Repeats, name: str) -> str:
    """` · pass@5 0.92 · pass^5 0.41`, to be added to what is said of a target."""
    found = repeats.targets.get(name)
    if found is None or found.pass_at_k is None or found.pass_hat_k is None:
        return ""
    return f" · pass@{repeats.k} {found.pass_at_k:.2f} · pass^{repeats.k} {found.pass_hat_k:.2f}"


def _ends(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" (95 % CI {interval[0]:.2f}{DASH}{interval[1]:.2f})"
