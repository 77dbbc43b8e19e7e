"""The evaluator against an independent, brute-force reading of the same specification."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, note, settings

import agentv
from tests.reference import oracle, strategies
from tests.support.examples import examples

CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def compare(result: agentv.EvaluatorResult, verdict: oracle.Verdict) -> None:
    """Return all that the specification fixes, except the sentences."""
    note(f"ours: {result}")
    note(f"oracle: {verdict}")
    details: dict[str, Any] = result.details
    assert result.status == verdict.status
    assert result.score == pytest.approx(verdict.score)
    assert len(result.hits) == verdict.n_hits
    assert bool(result.misses) == verdict.has_misses
    for key in ("precision", "recall", "f1", "argument_score"):
        assert details[key] == pytest.approx(getattr(verdict, key)), key
    for key in ("missing", "extra", "out_of_order", "repeated"):
        if key == "missing" and verdict.recall is None:
            continue  # a sequence that cannot be decided tells nothing; the oracle lists what it could
        assert details[key] == getattr(verdict, key), key
    if verdict.alignment is not None and details["alignment"] is not None:
        ours = {(pair["expected"], pair["verdict"]) for pair in details["alignment"]}
        assert ours == {(expected, kind) for expected, _, kind in verdict.alignment}


def check(example: Any) -> None:
    config, reply = example
    result = agentv.score(reply, [config])
    assert result == agentv.Scorer([config]).score(reply), "one reply alone is not scored as one of many"
    compare(result.evaluators[0], oracle.judge(config, reply))


@given(strategies.message_examples())
@settings(max_examples=examples(150), deadline=None, suppress_health_check=CHECKS)
def test_messages_are_judged_as_the_specification_reads(example: Any) -> None:
    check(example)


@given(strategies.alignment_examples())
@settings(max_examples=examples(150), deadline=None, suppress_health_check=CHECKS)
def test_alignments_are_the_best_of_all(example: Any) -> None:
    check(example)


@given(strategies.turn_examples())
@settings(max_examples=examples(150), deadline=None, suppress_health_check=CHECKS)
def test_turns_are_judged_as_the_specification_reads(example: Any) -> None:
    check(example)


@given(strategies.trace_examples())
@settings(max_examples=examples(150), deadline=None, suppress_health_check=CHECKS)
def test_traces_are_judged_as_the_specification_reads(example: Any) -> None:
    check(example)


@given(strategies.summary_examples())
@settings(max_examples=examples(150), deadline=None, suppress_health_check=CHECKS)
def test_summaries_decide_what_they_can(example: Any) -> None:
    check(example)


@given(strategies.pattern_a_examples())
@settings(max_examples=examples(150), deadline=None, suppress_health_check=CHECKS)
def test_expected_messages_are_judged_as_the_specification_reads(example: Any) -> None:
    expected, reply, *_ = example
    result = agentv.score(reply, expected_messages=expected).evaluators[0]
    compare(result, oracle.judge_expected_messages(expected, reply))


@given(strategies.invalid_configs())
@settings(max_examples=examples(150), deadline=None, suppress_health_check=CHECKS)
def test_what_cannot_be_meant_is_an_authoring_error(config: dict[str, Any]) -> None:
    assert oracle.config_errors(config)
    # The oracle wants a path in an input as it is written; ours also takes one that a default fills in.
    assume(not any("defaults" in rule for rule in config.get("tools", {}).values()))
    with pytest.raises(agentv.SpecError):
        agentv.score([], [config])


@pytest.mark.soak
@given(strategies.examples())
@settings(max_examples=20_000, deadline=None, suppress_health_check=CHECKS)
def test_soak_any_configuration_and_any_reply(example: Any) -> None:
    check(example)


@pytest.mark.soak
@given(strategies.alignment_examples())
@settings(max_examples=20_000, deadline=None, suppress_health_check=CHECKS)
def test_soak_alignments(example: Any) -> None:
    check(example)
