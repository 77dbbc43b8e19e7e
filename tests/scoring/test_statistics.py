"""Intervals of rates, pass@k and pass^k, held against scipy and against counting."""

from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm  # type: ignore[import-untyped]  # it has no types
from scipy.stats import fisher_exact as scipy_fisher

from agentv.scoring.statistics import (
    fisher_exact,
    normal_quantile,
    normal_share,
    pass_at_k,
    pass_hat_k,
    two_sided,
    wilson,
)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    """The number of runs that were measured, and of those that passed."""
    measured = draw(st.integers(1, 2_000))
    return measured, draw(st.integers(0, measured))


@pytest.mark.parametrize("share", [1e-300, 1e-16, 1e-6, 0.001, 0.3, 0.5, 0.975, 1 - 1e-9, 1 - 2e-16])
def test_the_normal_distribution_is_scipys(share: float) -> None:
    assert normal_quantile(share) == pytest.approx(norm.ppf(share), rel=1e-12)
    assert normal_share(norm.ppf(share)) == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, 2.0, float("nan")])
def test_a_share_of_all_or_nothing_has_no_quantile(share: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        normal_quantile(share)


@pytest.mark.parametrize("confidence", [1e-300, 1e-9, 0.5, 0.95, 0.9999999999999999])
def test_any_confidence_short_of_all_has_its_width(confidence: float) -> None:
    assert two_sided(confidence) == pytest.approx(-norm.ppf((1 - confidence) / 2), abs=1e-12)


@given(counts(), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_wilsons_interval_is_scipys(found: tuple[int, int], confidence: float) -> None:
    measured, passed = found
    wanted = binomtest(passed, measured).proportion_ci(confidence, method="wilson")
    assert wilson(passed, measured, confidence) == pytest.approx((wanted.low, wanted.high), abs=1e-9)


@given(counts())
def test_an_interval_holds_its_rate_and_ends_where_rates_do(found: tuple[int, int]) -> None:
    measured, passed = found
    interval = wilson(passed, measured)
    assert interval is not None
    low, high = interval
    assert 0.0 <= low <= passed / measured <= high <= 1.0
    assert (low == 0.0) == (passed == 0)
    assert (high == 1.0) == (passed == measured)
    assert low < high, "no number of runs makes anything certain"


@given(counts())
def test_failures_have_the_mirrored_interval(found: tuple[int, int]) -> None:
    measured, passed = found
    one, other = wilson(passed, measured), wilson(measured - passed, measured)
    assert one is not None
    assert other is not None
    assert one == pytest.approx((1 - other[1], 1 - other[0]), abs=1e-12)


def test_nothing_measured_has_no_interval() -> None:
    assert wilson(0, 0) is None


def test_the_interval_of_one_run_says_how_little_that_is() -> None:
    assert wilson(1, 1) == pytest.approx((0.2065, 1.0), abs=1e-4)
    assert two_sided(0.95) == pytest.approx(1.959964, abs=1e-6)


@given(st.integers(1, 60), st.data())
def test_pass_at_k_and_pass_hat_k_are_what_the_formulas_say(measured: int, data: st.DataObject) -> None:
    passed = data.draw(st.integers(0, measured))
    k = data.draw(st.integers(1, measured))
    assert pass_at_k(measured, passed, k) == pytest.approx(1 - comb(measured - passed, k) / comb(measured, k))
    assert pass_hat_k(measured, passed, k) == pytest.approx(comb(passed, k) / comb(measured, k))


@pytest.mark.parametrize(("measured", "passed", "k"), [(5, 3, 2), (5, 3, 3), (6, 1, 4), (4, 4, 2), (4, 0, 1)])
def test_they_are_the_shares_of_all_ways_to_choose_k_runs(measured: int, passed: int, k: int) -> None:
    runs = [True] * passed + [False] * (measured - passed)
    ways = list(combinations(runs, k))
    assert pass_at_k(measured, passed, k) == pytest.approx(sum(map(any, ways)) / len(ways))
    assert pass_hat_k(measured, passed, k) == pytest.approx(sum(map(all, ways)) / len(ways))


@given(counts())
def test_with_one_run_both_are_the_pass_rate(found: tuple[int, int]) -> None:
    measured, passed = found
    assert pass_at_k(measured, passed, 1) == pytest.approx(passed / measured)
    assert pass_hat_k(measured, passed, 1) == pytest.approx(passed / measured)


@pytest.mark.parametrize("k", [0, -1, 4])
def test_more_runs_than_there_were_cannot_be_told(k: int) -> None:
    assert pass_at_k(3, 2, k) is None
    assert pass_hat_k(3, 2, k) is None
    assert pass_at_k(0, 0, 1) is None


def test_many_runs_neither_overflow_nor_take_long() -> None:
    assert pass_at_k(100_000, 1, 50_000) == pytest.approx(0.5)
    assert pass_hat_k(100_000, 99_999, 50_000) == pytest.approx(0.5)


@given(counts(), counts())
def test_fishers_exact_test_is_scipys(first: tuple[int, int], second: tuple[int, int]) -> None:
    (first_total, a), (second_total, b) = first, second
    expected = scipy_fisher([[a, first_total - a], [b, second_total - b]]).pvalue
    assert fisher_exact(a, first_total, b, second_total) == pytest.approx(expected, rel=1e-6, abs=1e-300)
