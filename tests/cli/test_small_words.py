"""Numbers and words of the terminal: one run, no latency without an answer, runs apart from each other."""

import json

from tests.cli.command import Command, calls, cases, mocked

LATE = {"name": "late", "provider": "mock", "delay_ms": 2_000, "timeout_s": 0.05, "retries": 0}


def test_one_run_is_not_one_runs(run: Command) -> None:
    run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
    assert run.inside("eval", "a.eval.yaml").code == 0
    for command in (("executions", "list"), ("executions", "show", "last")):
        assert "1 run: 1 passed" in run.inside(*command).out
    assert "1 of 1 run is done" in run.inside("eval", "--resume", "--retry-errors").err


def test_a_run_that_never_answered_has_no_latency(run: Command) -> None:
    reply = mocked(calls("search"), name="quick")
    run.write("a.eval.yaml", {"targets": [reply, LATE], "cases": cases("a")})
    assert run.inside("eval", "a.eval.yaml").code == 3
    summary = json.loads(run.inside("executions", "show", "last", "--json").out)["summary"]
    assert summary["reported"]["latency_ms"] == 1
    assert summary["latency_ms"]["max"] < 50
    shown = run.inside("executions", "show", "last").out
    (line,) = [line for line in shown.splitlines() if line.startswith("ERROR")]
    assert " s" not in line.removeprefix("ERROR a  late")
    whole = run.inside("runs", "show", "last", "--case", "a").out
    assert whole.count("latency none: there was no answer") == 1


def test_no_latency_is_shown_where_nobody_answered(run: Command) -> None:
    run.write("a.eval.yaml", {"targets": [LATE], "cases": cases("a")})
    assert "latency" not in run.inside("eval", "a.eval.yaml").out


def test_runs_stand_apart(run: Command) -> None:
    run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a", repeat=2)})
    run.inside("eval", "a.eval.yaml")
    lines = run.inside("runs", "show", "last", "--case", "a").out.splitlines()
    heads = [at for at, line in enumerate(lines) if line.startswith("case a of")]
    assert len(heads) == 2
    assert lines[heads[1] - 2] == ""
