"""Summary of an execution: rates with intervals, and statistics of repeated cases."""

import gc
import tracemalloc
from collections.abc import Iterable
from itertools import permutations
from random import Random
from typing import Any

import pytest
from msgspec import UNSET
from scipy.stats import binomtest  # type: ignore[import-untyped]  # it has no types

import agentv
from agentv.model.response import ResponseError
from agentv.model.results import Repeats, ResultRecord, Summary
from agentv.run.plan import PlanCounts as Planned
from agentv.run.summary import MAX_LISTED, MAX_TAGS, ExecutionEnd, PlanNames, Totals

STATUSES = {"p": "pass", "f": "fail", "e": "error"}


def record(case_id: str, status: str, repeat: int = 0, **more: Any) -> ResultRecord:
    values: dict[str, Any] = {
        "execution_id": "e",
        "run_id": f"e-{case_id}-{repeat}",
        "eval_id": "support",
        "case_id": case_id,
        "target": "agent",
        "repeat": repeat,
        "attempts": 1,
        "status": STATUSES[status],
        "score": {"p": 1.0, "f": 0.25}.get(status),
        "candidate": "",
        "evaluators": (),
        "trace_summary": None,
        "tokens_usage": None,
        "cost_usd": None,
        "latency_ms": 5.0,
        "thread_id": None,
        "warnings": (),
        "error": None,
        "started_at": "",
        "completed_at": "",
    }
    return ResultRecord(**{**values, **more})


def runs(**cases: str) -> list[ResultRecord]:
    """`refund="ppf"` is a case that passed twice and failed once."""
    return [record(name, status, at) for name, ends in cases.items() for at, status in enumerate(ends)]


def summed(records: Iterable[ResultRecord], *, repeats: bool = True, targets: tuple[str, ...] = ("agent",)) -> Summary:
    planned = Planned(cases=0, skipped=0, left_out=0, runs=0, repeats=repeats)
    totals = Totals("e", planned, PlanNames(["support", "sales"], targets), "")
    for each in records:
        totals.add(each)
    return totals.summary(ExecutionEnd("", 0.0), out=())


def test_outcomes_are_counted_by_tag_and_tags_are_ordered_by_name() -> None:
    records = [
        record("a", "p", tags=("slow", "refund")),
        record("b", "f", tags=("refund",)),
        record("c", "e", tags=("refund",)),
        record("d", "p"),
    ]
    tags = summed(records).tags
    assert isinstance(tags, dict)
    assert {name: (each.passed, each.failed, each.errors, each.pass_rate) for name, each in tags.items()} == {
        "refund": (1, 1, 1, 0.5),
        "slow": (1, 0, 0, 1.0),
    }
    assert list(tags) == ["refund", "slow"]
    assert summed([record("a", "p")]).tags is UNSET


def test_the_number_of_tags_is_bounded() -> None:
    tags = summed(record(f"case-{at}", "p", tags=(f"tag-{at}",)) for at in range(MAX_TAGS + 5)).tags
    assert isinstance(tags, dict)
    assert len(tags) == MAX_TAGS


def test_the_time_of_a_run_that_never_answered_is_no_latency() -> None:
    late = ResponseError(kind="timeout", message="no reply after 60 s")
    summary = summed([record("a", "p", latency_ms=10.0), record("b", "e", latency_ms=60_000.0, error=late)])
    assert summary.latency_ms is not None
    assert (summary.latency_ms.max, summary.reported.latency_ms) == (10.0, 1)
    assert summed([record("b", "e", latency_ms=60_000.0, error=late)]).latency_ms is None


def repeated(records: Iterable[ResultRecord], **more: Any) -> Repeats:
    found = summed(records, **more).repeats
    assert found is not None
    return found


def test_every_rate_has_its_interval_over_what_was_measured() -> None:
    summary = summed(runs(a="p", b="p", c="p", d="f", broken="e"), repeats=False)
    wanted = binomtest(3, 4).proportion_ci(method="wilson")
    assert summary.pass_rate == 0.75
    for each in (summary, summary.evals["support"], summary.targets["agent"]):
        assert each.pass_rate_interval == pytest.approx((wanted.low, wanted.high), abs=1e-6)
    assert summary.evals["sales"].pass_rate_interval is None, "nothing of it was measured"
    assert summary.repeats is None


def test_errors_alone_are_no_rate() -> None:
    summary = summed(runs(a="e", b="ee"))
    assert (summary.pass_rate, summary.pass_rate_interval) == (None, None)
    assert summary.repeats is not None
    assert (summary.repeats.pass_at_k, summary.repeats.pass_hat_k, summary.repeats.pass_rate) == (None, None, None)
    assert (summary.repeats.cases, summary.repeats.unmeasured, summary.repeats.measured) == (1, 1, 0)
    assert summary.repeats.per_case[0].pass_rate is None


def test_a_case_that_both_passed_and_failed_is_flaky_with_its_fraction() -> None:
    found = repeated(runs(steady="ppp", flaky="pfp", broken="fff", away="eee", shaky="ppe"))
    (flaky,) = [case for case in found.per_case if case.flaky]
    assert (flaky.case_id, flaky.passed, flaky.failed, flaky.errors) == ("flaky", 2, 1, 0)
    assert flaky.pass_rate == pytest.approx(2 / 3)
    wanted = binomtest(2, 3).proportion_ci(method="wilson")
    assert flaky.pass_rate_interval == pytest.approx((wanted.low, wanted.high), abs=1e-6)
    assert (found.k, found.cases, found.flaky) == (3, 5, 1)
    assert (found.always_passed, found.always_failed, found.unmeasured) == (2, 1, 1)


def test_pass_at_k_and_pass_hat_k_are_means_over_cases() -> None:
    found = repeated(runs(a="ppp", b="pff", c="fff", d="ppf"))
    assert found.pass_at_k == pytest.approx(3 / 4), "some run passed"
    assert found.pass_hat_k == pytest.approx(1 / 4), "all runs passed"
    assert found.pass_rate == pytest.approx((1 + 1 / 3 + 0 + 2 / 3) / 4)
    wanted = binomtest(3, 4).proportion_ci(method="wilson")
    assert found.pass_at_k_interval == pytest.approx((wanted.low, wanted.high), abs=1e-6)


def test_each_target_has_its_own() -> None:
    records = [
        *runs(a="pp", b="pf"),
        *(record("a", "f", turn, target="other") for turn in range(3)),
        record("once", target="third", status="p"),
    ]
    found = repeated(records, targets=("other", "agent", "third"))
    assert list(found.targets) == ["other", "agent"], "in plan order, and nothing was repeated with the third"
    agent, other = found.targets["agent"], found.targets["other"]
    assert (found.k, agent.cases, agent.flaky, agent.measured) == (2, 2, 1, 2)
    assert (agent.pass_at_k, agent.pass_hat_k) == (1.0, 0.5)
    assert (other.pass_at_k, other.pass_hat_k, other.flaky) == (0.0, 0.0, 0)
    assert found.pass_hat_k == pytest.approx(1 / 3, abs=1e-6)


def test_k_is_the_fewest_runs_and_more_of_them_are_used_without_bias() -> None:
    found = repeated(runs(twice="pf", often="pppff", once="f"))
    assert (found.k, found.cases) == (2, 2), "a case that was run once says nothing of repetitions"
    assert found.pass_at_k == pytest.approx((1 + (1 - 1 / 10)) / 2)
    assert found.pass_hat_k == pytest.approx((0 + 3 / 10) / 2)


def test_a_case_with_too_few_measured_runs_is_left_out_of_them_and_counted() -> None:
    found = repeated(runs(whole="ppp", torn="pee"))
    assert (found.k, found.cases, found.measured) == (3, 2, 1)
    assert (found.pass_at_k, found.pass_hat_k) == (1.0, 1.0)


def test_the_order_in_which_runs_finish_does_not_matter() -> None:
    records = [*runs(a="pf", b="pp"), record("a", "f", 0, target="other"), record("a", "p", 1, target="other")]
    found = {repr(summed(order, targets=("agent", "other"))) for order in permutations(records)}
    assert len(found) == 1
    listed = repeated(records, targets=("agent", "other")).per_case
    assert [(case.case_id, case.target) for case in listed] == [("a", "agent"), ("a", "other"), ("b", "agent")]


def test_what_is_most_worth_knowing_is_listed_first_and_numbers_count_as_such() -> None:
    ends = {"z-10": "pf", "z-9": "fp", "good": "pp", "bad": "ff", "away": "ee", "z-09": "pf"}
    listed = repeated(runs(**ends)).per_case
    assert [case.case_id for case in listed] == ["z-09", "z-9", "z-10", "bad", "away", "good"]


def test_the_list_is_bounded_and_says_how_many_are_missing() -> None:
    records = [record(f"c{at}", status, at % 2) for at in range(1_000) for status in "pf"]
    found = repeated(records)
    assert (found.flaky, len(found.per_case), found.not_listed) == (1_000, MAX_LISTED, 1_000 - MAX_LISTED)
    assert found.per_case[-1].case_id == f"c{MAX_LISTED - 1}"


def kept_bytes(cases: int, times: int) -> float:
    """Return the memory that the sums need per case, without latencies."""
    chance = Random(1)  # noqa: S311 - no secret hangs on it
    planned = Planned(cases=0, skipped=0, left_out=0, runs=0, repeats=times > 1)
    totals = Totals("e", planned, PlanNames(["support"], ["agent"]), "")
    tracemalloc.start()
    try:
        for at in range(cases):
            for repeat in range(times):
                # As from an agent: every record has its own string.
                totals.add(record(f"case-{at}", chance.choice("pf"), repeat, latency_ms=None))
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / cases
    finally:
        tracemalloc.stop()


def test_without_repetitions_a_summary_holds_nothing_of_any_case() -> None:
    assert kept_bytes(5_000, times=1) < 20, "a place in a table alone is more"


def test_with_repetitions_it_holds_little_more_than_the_names() -> None:
    assert kept_bytes(5_000, times=3) < 200


def flaky_agent(request: agentv.Request) -> dict[str, Any]:
    calls = [{"tool": "search"}] if (request.id, request.repeat) != ("b", 1) else []
    return {"output_messages": [{"role": "assistant", "content": "x", "tool_calls": calls}]}


@pytest.mark.parametrize("again", [{"repeat": 3}, {"repeat": 3, "cases": "*"}, {}])
def test_an_execution_says_it_whether_the_command_or_a_case_asks_for_repetitions(again: dict[str, Any]) -> None:
    check = {"type": "tool_trajectory", "minimums": {"search": 1}}
    cases: list[dict[str, Any]] = [{"id": name, "input": "x", "evaluators": [check]} for name in "ab"]
    if not again:
        cases[1]["repeat"] = 3
    found = agentv.evaluate({"cases": cases}, target=flaky_agent, **again).summary.repeats
    assert found is not None
    assert (found.k, found.flaky, found.per_case[0].case_id) == (3, 1, "b")
    assert (found.per_case[0].passed, found.per_case[0].failed) == (2, 1)


def test_an_execution_without_repetitions_does_not() -> None:
    check = {"type": "tool_trajectory", "minimums": {"search": 1}}
    case = {"id": "a", "input": "x", "evaluators": [check]}
    assert agentv.evaluate({"cases": [case]}, target=flaky_agent).summary.repeats is None


def test_personas_are_counted_apart() -> None:
    both = [record("refund", "p", at, persona_id="b") for at in (0, 1)]
    both += [record("refund", "f", at, persona_id="a") for at in (0, 1)]
    both += [record("refund", status, at) for at, status in enumerate("pf")]
    summary = summed(both)
    assert isinstance(summary.personas, dict)
    assert {name: (counts.passed, counts.failed) for name, counts in summary.personas.items()} == {
        "a": (0, 2),
        "b": (2, 0),
        "default": (1, 1),
    }
    assert list(summary.personas) == ["a", "b", "default"]
    repeats = summary.repeats
    assert repeats is not None
    assert (repeats.cases, repeats.flaky, repeats.always_passed, repeats.always_failed) == (3, 1, 1, 1)
    assert [(case.persona_id or None, case.passed) for case in repeats.per_case] == [(None, 1), ("a", 0), ("b", 2)]
    assert repeats.pass_hat_k == pytest.approx(1 / 3)


def test_without_personas_there_is_no_list_of_them() -> None:
    assert summed(runs(refund="pp")).personas is UNSET
