"""`agentv runs diff`: all runs of a case, aligned."""

import pytest

from agentv.scoring.statistics import fisher_exact
from tests.support.command import Command, Json, calls, cases, execution_ids, minimum, mocked, strict_json

AGENT = """
from pathlib import Path

def agent(prompt):
    counter = Path("count")
    number = int(counter.read_text()) if counter.exists() else 0
    counter.write_text(str(number + 1))
    region, approval = ("EU", [{"tool": "approve", "input": {"amount": 900}}]) if number % 5 < 3 else ("US", [])
    made = [{"tool": "order", "input": {"id": number}}, {"tool": "policy", "input": {"region": region}}, *approval]
    return {"text": "done", "output_messages": [{"role": "assistant", "tool_calls": [*made, {"tool": "refund"}]}]}
"""


@pytest.fixture(scope="module")
def flaky(module_run: Command) -> Command:
    """A store with ten runs of one case, of which four fail because of another region."""
    run = module_run
    run.write("agent.py", AGENT)
    target = {"name": "agent", "provider": "python", "function": "./agent.py:agent", "max_concurrency": 1}
    listed = cases("refund", check=minimum(approve=1), repeat=10)
    run.write("a.eval.yaml", {"targets": [target], "cases": listed})
    assert run("eval", "a.eval.yaml").code == 1
    return run


def diff(run: Command, *args: str) -> Json:
    return strict_json(run("runs", "diff", *args, "--json").out)


def test_the_first_divergence_is_named_with_counts_and_an_exact_test(flaky: Command) -> None:
    out = flaky("runs", "diff", "refund").out
    assert "refund of a: 10 runs (6 passing, 4 failing)" in out
    assert "1 policy aaaaaa bbbb 6/6 4/4 <- first divergence" in " ".join(out.split())
    assert 'first divergence: policy has input.region "US" (usually "EU"): 4 of 4 failing runs' in out
    assert "Fisher's exact test: p = 0.005" in out


def test_the_json_holds_all_runs_in_columns(flaky: Command) -> None:
    data = diff(flaky, "refund")
    assert data["schema"] == "agentv.run_diff/1"
    assert [column["tool"] for column in data["columns"]] == ["order", "policy", "approve", "refund"]
    assert [(column["first"], column["second"]) for column in data["columns"]] == [(6, 4), (6, 4), (6, 0), (6, 4)]
    assert data["split"] == 6
    assert [run["status"] for run in data["runs"]] == ["pass"] * 6 + ["fail"] * 4
    assert data["runs"][9]["cells"][2] is None
    assert data["runs"][9]["cells"][3] == {"call": 2, "variant": 0}
    assert data["first"]["p_value"] == pytest.approx(fisher_exact(0, 6, 4, 4))
    assert data["first"]["path"] == "input.region"
    assert sorted(index for each in data["divergences"] for index in each["runs"]) == [6, 7, 8, 9]


def test_a_divergence_in_a_conversation_names_its_turn(run: Command) -> None:
    turns = [{"user": "first"}, {"user": "second"}]
    for second in (calls("policy", "refund"), calls("refund")):
        check = {"type": "tool_trajectory", "minimums": {"policy": 1}}
        listed = [{"id": "talk", "turns": turns, "evaluators": [check]}]
        run.write("a.eval.yaml", {"targets": [mocked([calls("order"), second])], "cases": listed})
        run("eval", "a.eval.yaml")
    data = diff(run, "talk", "last~1", "last")
    assert [(column["tool"], column["turn"]) for column in data["columns"]] == [
        ("order", 1),
        ("policy", 2),
        ("refund", 2),
    ]
    assert data["first"]["sentence"].startswith("turn 2: policy")
    out = run("runs", "diff", "talk", "last~1", "last").out
    assert "  turn 2\n    1  policy" in out


def test_two_executions_with_one_verdict_are_compared_with_each_other(run: Command) -> None:
    for replies in (calls("search", "answer"), calls("search", "search", "answer")):
        run.write("a.eval.yaml", {"targets": [mocked(replies)], "cases": cases("q")})
        assert run("eval", "a.eval.yaml").code == 0
    new, old = execution_ids(run)
    data = diff(run, "q", old, new)
    assert data["groups"] == [old, new]
    assert data["first"]["kind"] == "extra"
    assert f"1 of 1 runs of {new}, 0 of 1 runs of {old}" in data["first"]["sentence"]


def test_a_passing_and_a_failing_execution_are_compared_by_verdict(run: Command) -> None:
    for reply in (calls("search", "answer"), calls("answer")):
        run.write("a.eval.yaml", {"targets": [mocked(reply)], "cases": cases("q")})
        run("eval", "a.eval.yaml")
    data = diff(run, "q", "last~1", "last")
    assert data["groups"] == ["passing", "failing"]
    assert (data["first"]["kind"], data["first"]["tool"]) == ("missing", "search")
    alone = run("runs", "diff", "q")
    assert alone.code == 0
    assert "all 1 run failed: add an execution" in alone.out


def test_runs_without_known_calls_are_named_and_left_out(run: Command) -> None:
    replies = [calls("search"), {"text": "no news of calls"}, {"error": {"kind": "agent", "message": "down"}}]
    for reply in replies:
        check = {"type": "contains", "value": "n"}
        run.write("a.eval.yaml", {"targets": [mocked(reply, retries=0)], "cases": cases("q", check=check)})
        run("eval", "a.eval.yaml")
    data = diff(run, "q", "last", "last~1", "last~2")
    reasons = [left["reason"] for left in data["left_out"]]
    assert reasons == ["it could not be measured", "its reply does not report its tool calls"]
    assert "left out: " in run("runs", "diff", "q", "last~1").out


def test_an_unknown_case_is_a_usage_error_with_a_suggestion(flaky: Command) -> None:
    result = flaky("runs", "diff", "refnd")
    assert result.code == 2
    assert "no run of case 'refnd'; did you mean 'refund'?" in result.err
    assert flaky("runs", "diff", "refund", "--target", "other").code == 2
