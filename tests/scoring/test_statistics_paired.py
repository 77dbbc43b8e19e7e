"""The tests and intervals for pairs, held against scipy, published figures and counting."""

import time
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, bootstrap, multinomial  # type: ignore[import-untyped]  # it has no types

from agentv.scoring.statistics import cases_needed, mcnemar, paired_bootstrap, paired_difference


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemars_exact_test_is_scipys_binomial_test(wins: int, losses: int) -> None:
    wanted = binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert mcnemar(wins, losses) == pytest.approx(wanted, rel=1e-9)
    assert mcnemar(losses, wins) == mcnemar(wins, losses)


@pytest.mark.parametrize(("wins", "losses"), [(49_000, 51_000), (49_900, 50_100), (0, 1_000)])
def test_it_stays_right_when_there_are_many(wins: int, losses: int) -> None:
    wanted = binomtest(wins, wins + losses).pvalue
    assert mcnemar(wins, losses) == pytest.approx(wanted, rel=1e-6)


def test_newcombes_interval_is_the_published_one() -> None:
    # Newcombe 1998, Statistics in Medicine 17, table II: 36, 12, 2, 0 by his method 10.
    assert paired_difference(36, 12, 2, 0) == pytest.approx((0.0569, 0.3404), abs=1e-4)


def test_without_any_case_there_is_no_interval() -> None:
    assert paired_difference(0, 0, 0, 0) is None


@given(*[st.integers(0, 60)] * 4)
def test_the_interval_holds_the_difference_and_turns_round_with_the_sides(
    both: int, wins: int, losses: int, neither: int
) -> None:
    cases = both + wins + losses + neither
    interval = paired_difference(both, wins, losses, neither)
    if not cases:
        assert interval is None
        return
    assert interval is not None
    assert -1.0 <= interval[0] <= (wins - losses) / cases + 1e-12
    assert (wins - losses) / cases - 1e-12 <= interval[1] <= 1.0
    turned = paired_difference(both, losses, wins, neither)
    assert turned is not None
    assert turned == pytest.approx((-interval[1], -interval[0]), abs=1e-12)


@pytest.mark.parametrize(
    "shares",
    [
        (0.7, 0.1, 0.1, 0.1),
        (0.5, 0.05, 0.2, 0.25),
        (0.85, 0.05, 0.05, 0.05),
        (0.3, 0.2, 0.1, 0.4),
        (0.9, 0.06, 0.02, 0.02),
    ],
)
def test_it_holds_the_truth_as_often_as_it_says(shares: tuple[float, float, float, float]) -> None:
    cases, truth = 30, shares[1] - shares[2]
    covered = 0.0
    for both in range(cases + 1):
        for wins in range(cases + 1 - both):
            for losses in range(cases + 1 - both - wins):
                found = (both, wins, losses, cases - both - wins - losses)
                interval = paired_difference(*found)
                assert interval is not None
                if interval[0] <= truth <= interval[1]:
                    covered += multinomial.pmf(found, cases, shares)
    assert 0.93 <= covered <= 0.995


CHANCE = Random(1)  # noqa: S311 - no secret hangs on it
SAMPLES = {
    "yes and no": [float(CHANCE.choice([0, 0, 0, 1, -1, -1])) for _ in range(80)],
    "scores": [CHANCE.gauss(0.05, 0.3) for _ in range(120)],
    "mostly ties": [0.0] * 950 + [CHANCE.uniform(-1, 0.2) for _ in range(50)],
    "lopsided": [CHANCE.expovariate(3) for _ in range(60)],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_bootstrap_is_scipys_up_to_chance(name: str) -> None:
    values = np.array(SAMPLES[name])
    wanted = bootstrap((values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(5))
    found = paired_bootstrap(SAMPLES[name], resamples=20_000)
    width = wanted.confidence_interval.high - wanted.confidence_interval.low
    assert found == pytest.approx(tuple(wanted.confidence_interval), abs=0.04 * width)


def test_beyond_what_is_drawn_the_computed_interval_is_the_drawn_one() -> None:
    chance = Random(6)  # noqa: S311 - as above
    values = [chance.choice([0.0, 0.0, -1.0, 0.25, 0.5, chance.random()]) for _ in range(4_000)]
    assert sum(value != 0 for value in values) > 2_000, "this many are not drawn"
    wanted = bootstrap(
        (np.array(values),), np.mean, method="percentile", n_resamples=20_000, batch=500, rng=np.random.default_rng(7)
    ).confidence_interval
    width = wanted.high - wanted.low
    assert paired_bootstrap(values) == pytest.approx(tuple(wanted), abs=0.03 * width)


def test_the_number_of_cases_that_differ_is_drawn_as_scipys_binomial() -> None:
    # Where all that differ are alike, the mean of a resample is that number, and its quantiles are known.
    found = paired_bootstrap([1.0] * 40 + [0.0] * 160, resamples=40_000)
    assert found is not None
    wanted = [binom.ppf(share, 200, 0.2) / 200 for share in (0.025, 0.975)]
    assert found == pytest.approx(tuple(wanted), abs=1.01 / 200)


def test_the_same_seed_gives_the_same_interval_and_another_one_another() -> None:
    values = SAMPLES["scores"]
    assert paired_bootstrap(values, seed=3) == paired_bootstrap(values, seed=3)
    assert paired_bootstrap(values, seed=3) != paired_bootstrap(values, seed=4)


def test_more_confidence_makes_it_wider() -> None:
    narrow, wide = (paired_bootstrap(SAMPLES["scores"], confidence=share) for share in (0.8, 0.99))
    assert narrow is not None
    assert wide is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [([], None), ([0.5], (0.5, 0.5)), ([0.0], (0.0, 0.0)), ([0.0] * 50, (0.0, 0.0)), ([0.25] * 3_000, (0.25, 0.25))],
)
def test_where_nothing_varies_there_is_nothing_between(values: list[float], wanted: tuple[float, float] | None) -> None:
    assert paired_bootstrap(values) == wanted


def test_a_hundred_thousand_pairs_take_no_longer_than_one_reads_the_line() -> None:
    chance = Random(8)  # noqa: S311 - as above
    dense = [chance.gauss(0, 1) for _ in range(100_000)]
    sparse = [chance.gauss(0, 1) if chance.random() < 0.015 else 0.0 for _ in range(100_000)]
    began = time.process_time()
    assert paired_bootstrap(dense) is not None
    assert paired_bootstrap(sparse) is not None
    assert time.process_time() - began < 10, "under a second on a machine that has nothing else to do"


@pytest.mark.parametrize(("difference", "discordant"), [(0.05, 0.2), (0.1, 0.15), (-0.1, 0.3), (0.2, 0.5)])
def test_with_as_many_cases_as_are_needed_the_test_finds_the_difference_four_times_of_five(
    difference: float, discordant: float
) -> None:
    cases = cases_needed(difference, discordant)
    assert cases is not None
    chance = np.random.default_rng(9)
    shares = [(discordant + difference) / 2, (discordant - difference) / 2, 1 - discordant]
    seen = [mcnemar(int(wins), int(losses)) < 0.05 for wins, losses, _ in chance.multinomial(cases, shares, 2_000)]
    # The exact test is a little more careful than the formula.
    assert 0.70 <= sum(seen) / len(seen) <= 0.86


def test_a_difference_needs_at_least_so_many_cases_that_differ() -> None:
    assert cases_needed(0.1, 0.0) == cases_needed(0.1, 0.1)
    assert cases_needed(0.0, 0.5) is None
    few, many = cases_needed(0.2, 0.3), cases_needed(0.02, 0.3)
    assert few is not None
    assert many is not None
    assert few < many
    assert cases_needed(0.999, 1.0) is not None
    assert cases_needed(1e-300, 0.5) is None, "so little is nothing"
