"""Tests of regressions: exact p-values, few false alarms at every number of repetitions, and power where it is due."""

from itertools import product
from math import comb
from random import Random

import pytest
from scipy.stats import binomtest, fisher_exact  # type: ignore[import-untyped]  # it has no types

from agentv.scoring.regression import (
    Stratum,
    power_of,
    regressed_cases,
    runs_to_name_a_case,
    sign_flip_test,
    stratified_test,
)
from benchmarks.false_alarms import AGENTS, false_alarm_rate

SINGLE_LOSS = Stratum(1, 1, 0, 1)
SINGLE_WIN = Stratum(0, 1, 1, 1)


class TestPasses:
    @pytest.mark.parametrize(("wins", "losses"), [(0, 0), (0, 3), (2, 5), (4, 4), (9, 1)])
    def test_single_runs_are_tested_by_mcnemar(self, wins: int, losses: int) -> None:
        tails = stratified_test([SINGLE_WIN] * wins + [SINGLE_LOSS] * losses + [Stratum(1, 1, 1, 1)] * 5)
        if wins + losses:
            assert tails.worse == pytest.approx(binomtest(wins, wins + losses, alternative="less").pvalue)
            assert tails.better == pytest.approx(binomtest(wins, wins + losses, alternative="greater").pvalue)
            assert tails.two_sided == pytest.approx(binomtest(wins, wins + losses).pvalue)
        else:
            assert tails.two_sided == 1.0

    @pytest.mark.parametrize("case", [Stratum(3, 3, 0, 3), Stratum(4, 5, 1, 4), Stratum(2, 7, 3, 3)])
    def test_one_case_is_tested_by_fisher(self, case: Stratum) -> None:
        table = [[case.passed_b, case.runs_b - case.passed_b], [case.passed_a, case.runs_a - case.passed_a]]
        assert case.loss_p_value() == pytest.approx(fisher_exact(table, alternative="less").pvalue)
        assert stratified_test([case]).worse == pytest.approx(case.loss_p_value())

    def test_several_cases_are_tested_by_all_assignments_of_their_passes(self) -> None:
        strata = [Stratum(2, 2, 0, 1), Stratum(1, 2, 1, 2), Stratum(3, 3, 1, 3)]
        weights: dict[int, int] = {}
        ranges = [range(min(each.passed, each.runs_b) + 1) for each in strata]
        for counts in product(*ranges):
            ways = 1
            for count, each in zip(counts, strata, strict=True):
                ways *= comb(each.runs_b, count) * comb(each.runs_a, each.passed - count)
            weights[sum(counts)] = weights.get(sum(counts), 0) + ways
        expected = sum(ways for count, ways in weights.items() if count <= 2) / sum(weights.values())
        assert stratified_test(strata).worse == pytest.approx(expected)

    def test_many_cases_are_approximated_by_the_normal_distribution(self, monkeypatch: pytest.MonkeyPatch) -> None:
        strata = [Stratum(4, 5, 3, 5)] * 40 + [Stratum(3, 5, 4, 5)] * 25
        exact = stratified_test(strata)
        monkeypatch.setattr("agentv.scoring.regression.MAX_EXACT", 1)
        assert stratified_test(strata) == pytest.approx(exact, abs=2e-4)


class TestCases:
    def test_a_case_that_could_not_be_named_whatever_happened_is_not_corrected_for(self) -> None:
        lost = Stratum(5, 5, 0, 5)
        steady, single = Stratum(5, 5, 5, 5), Stratum(1, 1, 0, 1)
        assert regressed_cases([steady, lost, *[steady] * 500, *[single] * 500], 0.025) == {1}

    def test_flaky_cases_are_corrected_for(self) -> None:
        lost, flaky = Stratum(5, 5, 0, 5), Stratum(3, 5, 2, 5)
        assert regressed_cases([lost, *[flaky] * 5], 0.025) == {0}
        assert regressed_cases([lost, *[flaky] * 50], 0.025) == set()
        assert regressed_cases([Stratum(10, 10, 0, 10), *[Stratum(6, 10, 5, 10)] * 50], 0.025) == {0}

    def test_the_runs_that_name_a_lost_case_do_name_it(self) -> None:
        for others in (0, 3, 40):
            runs = runs_to_name_a_case(0.025, others)
            flaky = [Stratum(runs // 2, runs, runs // 2, runs)] * others
            assert 0 in regressed_cases([Stratum(runs, runs, 0, runs), *flaky], 0.025)
        assert runs_to_name_a_case(0.05, 0) == 3


class TestScores:
    def test_signs_of_differences_are_arbitrary(self) -> None:
        tails = sign_flip_test([-0.1] * 10, seed=0)
        assert tails.worse == pytest.approx(1 / 1024, abs=2e-3)
        assert tails.better == 1.0
        many = sign_flip_test([-0.1] * 300 + [0.1] * 290, seed=0)
        assert many.worse == pytest.approx(binomtest(290, 590, alternative="less").pvalue, abs=0.02)


def test_power_grows_with_cases_and_runs() -> None:
    few, many = ([Stratum(1, 1, 1, 1)] * 40, [Stratum(1, 1, 1, 1)] * 400)
    repeated = [Stratum(5, 5, 5, 5)] * 40
    found = [power_of(strata, 0.05, 0.95) or 0.0 for strata in (few, repeated, many)]
    assert found == sorted(found)
    assert found[0] < 0.3
    assert found[2] > 0.9
    assert power_of([], 0.05, 0.95) is None


@pytest.mark.parametrize("repeats", [1, 3, 5, 10])
@pytest.mark.parametrize("agent", AGENTS)
def test_at_most_five_of_a_hundred_comparisons_of_the_same_agent_raise_an_alarm(agent: str, repeats: int) -> None:
    # 100 comparisons with a true rate of 5 % have more than 12 alarms in 1 of 1,000 such tests.
    assert false_alarm_rate(agent, repeats, repeats, comparisons=100, chance=Random(7)) <= 12 / 100  # noqa: S311 - a simulation


def test_unequal_numbers_of_repetitions_raise_no_more_alarms() -> None:
    for runs_a, runs_b in ((1, 2), (2, 1), (5, 1), (1, 5)):
        rate = false_alarm_rate("one in four fails", runs_a, runs_b, comparisons=100, chance=Random(3))  # noqa: S311 - as above
        assert rate <= 12 / 100
