"""Conditions of `agentv eval`: `--min-pass-rate`, `--max-regressions` and `--baseline`."""

import json
from pathlib import Path

import pytest

from agentv.model.results import OutcomeCounts
from agentv.run.summary import Gates
from tests.support.command import Command, calls, cases, command_in, mocked


@pytest.fixture
def run(tmp_path: Path) -> Command:
    """An eval of which one of four cases fails."""
    command = command_in(tmp_path)
    write(command, failing="d")
    return command


def write(run: Command, failing: str) -> None:
    replies = [calls("other" if name in failing else "search") for name in "abcd"]
    run.write("a.eval.yaml", {"targets": [mocked(*replies)], "cases": cases(*"abcd")})


def test_a_share_of_the_runs_is_enough(run: Command) -> None:
    assert run("eval", "a.eval.yaml").code == 1
    met = run("eval", "a.eval.yaml", "--min-pass-rate", "0.75", "--json")
    assert met.code == 0
    assert met.lines[-1]["exit_code"] == 0
    assert met.lines[-1]["gates"] == ["--min-pass-rate 0.75: 75.0 % of the measured runs passed: met"]
    missed = run("eval", "a.eval.yaml", "--min-pass-rate", "0.8")
    assert (missed.code, "--min-pass-rate 0.8: 75.0 % of the measured runs passed: not met" in missed.err) == (1, True)


def test_an_error_is_an_error_whatever_the_share(run: Command) -> None:
    replies = [calls("search"), {"error": {"kind": "agent", "message": "no"}}]
    run.write("a.eval.yaml", {"targets": [mocked(*replies, retries=0)], "cases": cases("a", "b")})
    assert run("eval", "a.eval.yaml", "--min-pass-rate", "0.1").code == 3


def test_cases_that_failed_before_may_fail_again(run: Command) -> None:
    assert run("eval", "a.eval.yaml").code == 1
    assert run("eval", "a.eval.yaml", "--max-regressions", "0").code == 0, "the last execution is the baseline"
    write(run, failing="bd")
    lost = run("eval", "a.eval.yaml", "--max-regressions", "0", "--baseline", "last")
    assert lost.code == 1
    assert "1 of the 3 cases that passed in " in lost.err
    assert "fail now: b: not met" in lost.err
    assert run("eval", "a.eval.yaml", "--max-regressions", "1", "--baseline", "last~2").code == 0


def test_a_file_may_be_the_baseline(run: Command) -> None:
    run("eval", "a.eval.yaml", "--no-store", "--out", "main.jsonl")
    write(run, failing="abd")
    result = run("eval", "a.eval.yaml", "--max-regressions", "1", "--baseline", "main.jsonl", "--json")
    assert (result.code, result.lines[-1]["status"]) == (1, "fail")
    assert json.loads(result.out.splitlines()[-1])["gates"][0].endswith("fail now: a, b: not met")


def test_no_baseline_is_a_mistake(run: Command) -> None:
    result = run("eval", "a.eval.yaml", "--max-regressions", "0")
    assert (result.code, result.out) == (2, "")


def test_cases_with_personas_are_cases_of_their_own() -> None:
    passed_before = frozenset({("e", "t", "c", None), ("e", "t", "c", "x")})
    gates = Gates(max_regressions=0, baseline="b", passed_before=passed_before)
    (outcome,) = gates.judge(OutcomeCounts(), [("e", "t", "c", "x"), ("e", "t", "c", "y")])
    assert not outcome.is_met
    assert outcome.text.endswith("1 of the 2 cases that passed in b fail now: c [x]")
