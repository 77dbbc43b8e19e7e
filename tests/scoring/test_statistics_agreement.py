"""Cohen's kappa and its interval, held against calculations by hand and against other arithmetic."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]  # it has no types

from agentv.scoring.statistics import cohens_kappa

Pairs = list[tuple[str, str]]


def pairs(both: int, first: int, second: int, neither: int) -> Pairs:
    """Two raters: how often both said yes, only the first, only the second, neither."""
    return [*[("yes", "yes")] * both, *[("yes", "no")] * first, *[("no", "yes")] * second, *[("no", "no")] * neither]


@pytest.mark.parametrize(
    ("counts", "agreement", "kappa"),
    [
        # 0.7 seen, 0.5 * 0.6 + 0.5 * 0.4 = 0.5 by chance: (0.7 - 0.5) / (1 - 0.5)
        ((20, 5, 10, 15), 0.7, 0.4),
        # 0.6 seen, 0.7 * 0.6 + 0.3 * 0.4 = 0.54 by chance: 0.06 / 0.46
        ((45, 25, 15, 15), 0.6, 0.06 / 0.46),
        ((10, 0, 0, 10), 1.0, 1.0),
        ((0, 10, 10, 0), 0.0, -1.0),
        ((5, 5, 5, 5), 0.5, 0.0),
    ],
)
def test_kappa_as_calculated_by_hand(counts: Sequence[int], agreement: float, kappa: float) -> None:
    found = cohens_kappa(pairs(*counts))
    assert found.agreement == pytest.approx(agreement)
    assert found.kappa == pytest.approx(kappa)


def kappa_of(share: np.ndarray) -> float:
    table = share.reshape(int(len(share) ** 0.5), -1)
    chance = float((table.sum(axis=1) * table.sum(axis=0)).sum())
    return (float(np.trace(table)) - chance) / (1 - chance)


@pytest.mark.parametrize("counts", [(20, 5, 10, 15), (45, 25, 15, 15), (90, 3, 5, 12), (7, 1, 2, 8)])
def test_the_interval_is_that_of_the_delta_method(counts: tuple[int, ...]) -> None:
    """The gradient by differences and the covariance of a multinomial: another way to the same number."""
    n = sum(counts)
    share = np.array(counts) / n
    step = 1e-6
    gradient = np.array(
        [(kappa_of(share + step * unit) - kappa_of(share - step * unit)) / (2 * step) for unit in np.eye(len(share))]
    )
    deviation = np.sqrt(gradient @ (np.diag(share) - np.outer(share, share)) @ gradient / n)
    half = stats.norm.ppf(0.975) * deviation
    found = cohens_kappa(pairs(*counts))
    assert found.low == pytest.approx(max(-1, kappa_of(share) - half), abs=1e-6)
    assert found.high == pytest.approx(min(1, kappa_of(share) + half), abs=1e-6)


def test_the_interval_covers_what_resampling_finds() -> None:
    counts = (60, 8, 12, 40)
    share = np.array(counts) / sum(counts)
    drawn = np.random.default_rng(7).multinomial(sum(counts), share, size=4_000) / sum(counts)
    low, high = np.quantile([kappa_of(each) for each in drawn], [0.025, 0.975])
    found = cohens_kappa(pairs(*counts))
    assert found.low == pytest.approx(low, abs=0.02)
    assert found.high == pytest.approx(high, abs=0.02)


def test_a_few_decisions_that_all_agree_are_no_proof() -> None:
    few, many = cohens_kappa(pairs(2, 0, 0, 2)), cohens_kappa(pairs(100, 0, 0, 100))
    assert few.kappa == many.kappa == 1.0
    assert few.low is not None
    assert many.low is not None
    # Wilson's interval of 4 of 4 begins at 0.51: beyond a chance of one half, that is next to nothing.
    low = stats.binomtest(4, 4).proportion_ci(method="wilson").low
    assert few.low == pytest.approx((low - 0.5) / 0.5)
    assert many.low > 0.95


def test_one_answer_throughout_is_no_agreement_beyond_chance() -> None:
    found = cohens_kappa(pairs(10, 0, 0, 0))
    assert (found.agreement, found.kappa, found.low, found.high) == (1.0, None, None, None)


def test_the_table_has_a_row_for_each_answer_also_where_it_never_came() -> None:
    found = cohens_kappa([("pass", "pass"), ("pass", "fail")], ("pass", "fail"))
    assert found.table == {"pass": {"pass": 1, "fail": 1}, "fail": {"pass": 0, "fail": 0}}
    assert cohens_kappa([], ("pass", "fail")).n == 0


def test_more_than_two_answers() -> None:
    # 3 of 4 seen; by chance (2 * 3 + 1 * 1 + 1 * 0) / 16
    found = cohens_kappa([("a", "a"), ("a", "a"), ("b", "b"), ("c", "a")])
    assert found.kappa == pytest.approx((0.75 - 7 / 16) / (1 - 7 / 16))
