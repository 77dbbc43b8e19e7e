"""The call at which passing and failing runs part."""

import random
from collections import Counter

import pytest
from msgspec import UNSET

from agentv.divergence import find_divergences
from agentv.model.comparison import Divergence
from agentv.model.conversation import ToolCall
from tests.support.causes import CAUSES, call, seeded_runs

GOOD = [
    call("get_order", order_id="B-42"),
    call("check_policy", region="EU"),
    call("ask_approval", amount=900),
    call("refund", amount=900),
]


def first(bad: list[ToolCall], good: list[ToolCall] = GOOD, count: int = 8) -> Divergence:
    """Return the first divergence of so many good runs and as many bad ones."""
    found = find_divergences([good] * count + [bad] * count, [False] * count + [True] * count).first
    assert found is not None
    return found


def test_a_missing_call_is_named_with_its_counts() -> None:
    found = first([GOOD[0], GOOD[1], GOOD[3]])
    assert (found.kind, found.tool, found.column) == ("missing", "ask_approval", 2)
    assert (found.first, found.first_total, found.second, found.second_total) == (0, 8, 8, 8)
    assert found.p_value == pytest.approx(2 / 12870)
    assert found.significant
    assert found.sentence == ("ask_approval after check_policy is missing: 8 of 8 failing runs, 0 of 8 passing runs")


def test_an_extra_call_is_named() -> None:
    found = first([*GOOD, GOOD[3]])
    assert (found.kind, found.tool) == ("extra", "refund")
    assert found.sentence.startswith("refund is called after refund: 8 of 8 failing runs")


def test_calls_in_another_order_are_named() -> None:
    found = first([GOOD[0], GOOD[2], GOOD[1], GOOD[3]])
    assert found.kind == "order"


def test_an_argument_is_named_with_both_values() -> None:
    bad = [GOOD[0], call("check_policy", region="US"), *GOOD[2:]]
    found = first(bad)
    assert (found.kind, found.path, found.value, found.usual) == ("input", "input.region", "US", "EU")
    assert 'check_policy has input.region "US" (usually "EU")' in found.sentence


def test_an_argument_with_many_wrong_values_is_named_by_the_usual_one() -> None:
    bad = [[GOOD[0], call("check_policy", region=f"X{index}"), *GOOD[2:]] for index in range(9)]
    found = find_divergences([GOOD] * 9 + bad, [False] * 9 + [True] * 9).first
    assert found is not None
    assert (found.path, found.value, found.usual, found.second) == ("input.region", UNSET, "EU", 9)
    assert 'another input.region than "EU"' in found.sentence


def test_a_missing_argument_and_one_inside_of_another_are_named() -> None:
    good = [call("pay", card={"number": "1", "country": "DE"})]
    assert first([call("pay", card={"number": "1"})], good).path == "input.card.country"
    other = first([call("pay", card={"number": "1", "country": "FR"})], good)
    assert (other.path, other.value) == ("input.card.country", "FR")


def test_a_failed_call_comes_before_what_follows_from_it() -> None:
    failed = ToolCall(tool="get_order", input=GOOD[0].input, status="error", error="timeout")
    found = first([failed])
    assert (found.kind, found.value, found.column) == ("status", "error", 0)


def test_an_output_is_named_if_nothing_else_differs_before() -> None:
    good = [ToolCall(tool="lookup", input={"id": 1}, output={"stock": 3, "at": 17})]
    bad = [ToolCall(tool="lookup", input={"id": 1}, output={"stock": 0, "at": 18})]
    found = find_divergences([good] * 8 + [bad] * 8, [False] * 8 + [True] * 8).first
    assert found is not None
    assert (found.kind, found.path) == ("output", "output.at")


def test_true_is_not_one() -> None:
    found = first([call("pay", now=1)], [call("pay", now=True)])
    assert (found.path, found.value, found.usual) == ("input.now", 1, True)


def test_with_few_runs_the_strongest_difference_is_named_and_not_called_significant() -> None:
    found = first([GOOD[0], GOOD[1], GOOD[3]], count=1)
    assert (found.kind, found.tool, found.significant, found.p_value) == ("missing", "ask_approval", False, 1.0)


def test_runs_that_do_not_differ_are_not_explained() -> None:
    found = find_divergences([GOOD] * 4, [False, False, True, True])
    assert (found.first, found.clusters, found.unexplained) == (None, (), (2, 3))


def test_one_group_alone_has_no_divergence() -> None:
    assert find_divergences([GOOD] * 2, [False, False]).first is None
    assert find_divergences([], []).first is None


def test_a_moved_call_is_told_apart_from_a_missing_one() -> None:
    missing, moved = [GOOD[0], GOOD[1], GOOD[3]], [GOOD[0], GOOD[2], GOOD[1], GOOD[3]]
    runs = [GOOD] * 150 + [missing] * 30 + [moved] * 3
    found = find_divergences(runs, [False] * 150 + [True] * 33)
    kinds = {cluster.kind: (cluster.tool, len(cluster.runs), cluster.second) for cluster in found.clusters}
    assert kinds == {"missing": ("ask_approval", 30, 30), "order": ("ask_approval", 3, 3)}


@pytest.mark.parametrize(("failing", "seeds"), [(0.2, 20), (0.5, 6)])
def test_five_causes_in_200_runs_are_told_apart(failing: float, seeds: int) -> None:
    shares = []
    for seed in range(seeds):
        runs = seeded_runs(seed, failing=failing)
        found = find_divergences([run.calls for run in runs], [run.cause is not None for run in runs])
        recovered: dict[str | None, int] = {}
        for cluster in found.clusters:
            cause, count = Counter(runs[index].cause for index in cluster.runs).most_common(1)[0]
            recovered.setdefault(cause, count)  # one cause, one cluster: another one does not count
        shares.append(sum(recovered.values()) / sum(run.cause is not None for run in runs))
    assert sum(share >= 0.95 for share in shares) >= 0.95 * seeds


def test_the_cause_of_a_regression_is_the_first_divergence() -> None:
    tools = {
        "no approval": "ask_approval",
        "wrong region": "check_policy",
        "refunded twice": "refund",
        "order not found": "get_order",
        "approval before policy": "ask_approval check_policy",
    }
    right = 0
    for seed in range(40):
        cause = CAUSES[seed % len(CAUSES)]
        runs = [run for run in seeded_runs(seed, count=100) if run.cause in (None, cause)]
        found = find_divergences([run.calls for run in runs], [run.cause is not None for run in runs]).first
        right += found is not None and found.tool in tools[cause]
    assert right == 40


def test_runs_that_differ_by_chance_have_no_significant_divergence() -> None:
    alarms = 0
    for seed in range(60):
        runs = seeded_runs(seed, count=60, failing=0.0)
        rng = random.Random(seed)  # noqa: S311 - nobody's secret hangs on it
        found = find_divergences([run.calls for run in runs], [rng.random() < 0.4 for _ in runs]).first
        alarms += found is not None and found.significant
    assert alarms <= 3
