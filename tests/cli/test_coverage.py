"""`agentv coverage`, held against a count by hand on three small projects."""

from typing import Any

import pytest

from tests.support.command import Command, Json, calls, cases, minimum, mocked, strict_json

REFUND = {
    "name": "refund",
    "input_schema": {
        "type": "object",
        "properties": {"id": {"type": "string"}, "currency": {"enum": ["EUR", "USD"]}, "notify": {"type": "boolean"}},
    },
}


def reply(*made: Json) -> Json:
    return {"text": "done", "output_messages": [{"role": "assistant", "content": "done", "tool_calls": list(made)}]}


def coverage(run: Command, *args: str) -> Json:
    return strict_json(run("coverage", *args, "--json").out)


def statuses(data: Json) -> dict[str, str]:
    return {tool["name"]: tool["status"] for tool in data["tools"]}


def tool(data: Json, name: str) -> Any:
    return next(each for each in data["tools"] if each["name"] == name)


def test_a_project_with_declared_tools(run: Command) -> None:
    run.write("agentv.yaml", {"tools": ["search", "delete_user", REFUND], "targets": [mocked(
        reply({"tool": "search"}, {"tool": "log"}),
        reply({"tool": "refund", "input": {"id": "1", "currency": "EUR"}}, {"tool": "refund", "status": "error"}),
    )]})  # fmt: skip
    run.write("a.eval.yaml", {"cases": [*cases("one"), *cases("two", check=minimum(refund=2))]})
    run("eval", "a.eval.yaml")
    data = coverage(run)
    assert statuses(data) == {
        "delete_user": "never called",
        "log": "called",
        "search": "asserted",
        "refund": "asserted",
    }
    assert (data["asserted"], data["called"], data["never_called"], data["coverage"]) == (2, 1, 1, 0.5)
    assert (data["runs"], data["cases"], data["cases_without_runs"], data["unknown_calls"]) == (2, 2, 0, 0)
    refund = tool(data, "refund")
    assert (refund["calls"], refund["cases"], refund["failing_path"]) == (2, 1, True)
    assert (refund["asserted_by"], refund["sources"]) == ("two", ["declared", "seen"])
    assert [(argument["name"], argument["calls"]) for argument in refund["arguments"]] == [
        ("id", 1),
        ("currency", 1),
        ("notify", 0),
    ]
    assert refund["arguments"][1]["values"] == [{"value": "EUR", "calls": 1}, {"value": "USD", "calls": 0}]
    assert [value["calls"] for value in refund["arguments"][2]["values"]] == [0, 0]
    assert data["next_cases"][:3] == [
        "a case in which delete_user is called",
        "an evaluator that notices a change of log, as in case one: see `agentv mutate`",
        'a case in which refund is called with currency: "USD"',
    ]
    assert "a case in which search fails" in data["next_cases"]


def test_a_project_whose_target_has_tools_and_whose_agent_reports_others(run: Command) -> None:
    listed = ["search", {"type": "function", "function": {"name": "browse"}}]
    answer = {**reply({"tool": "search"}), "metadata": {"tools": listed}}
    run.write("a.eval.yaml", {"targets": [mocked(answer)], "cases": cases("one")})
    run("eval", "a.eval.yaml")
    model = {"name": "m", "provider": "openai", "model": "x", "tools": [{"type": "function", "name": "lookup"}]}
    run.write("b.eval.yaml", {"targets": [model], "cases": cases("other")})
    data = coverage(run, "a.eval.yaml", "b.eval.yaml")
    assert statuses(data) == {"browse": "never called", "lookup": "never called", "search": "asserted"}
    assert [tool(data, name)["sources"] for name in ("browse", "lookup")] == [["target"], ["target"]]
    assert data["cases_without_runs"] == 1


def test_a_project_with_failing_and_unknown_runs_counts_the_last_execution_of_each_case(run: Command) -> None:
    replies = [calls("old"), {"text": "says nothing of calls"}]
    run.write("a.eval.yaml", {"targets": [mocked(*replies)], "cases": cases("one", "two")})
    run("eval", "a.eval.yaml")
    run.write("a.eval.yaml", {"targets": [mocked(calls("new"), {"text": "?"})], "cases": cases("one", "two")})
    run("eval", "a.eval.yaml", "--case", "one")
    data = coverage(run)
    assert statuses(data) == {"new": "called"}
    assert (data["runs"], data["unknown_calls"]) == (2, 1)
    run.write("a.eval.yaml", {"targets": [mocked()], "cases": cases("two")})
    assert statuses(coverage(run)) == {}


@pytest.mark.parametrize(("share", "code"), [("0.5", 0), ("0.51", 1)])
def test_a_gate_on_the_share_of_asserted_tools(run: Command, share: str, code: int) -> None:
    run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "tools": ["search", "b"], "cases": cases("one")})
    run("eval", "a.eval.yaml")
    result = run("coverage", "--fail-under", share)
    assert result.code == code
    assert "2 tools: 1 asserted, 0 called only, 1 never called; 50 % asserted" in result.out
    assert "- a case in which b is called" in result.out


def test_without_runs_a_gate_is_an_error(run: Command) -> None:
    run.write("a.eval.yaml", {"targets": [mocked()], "tools": ["search"], "cases": cases("one")})
    assert run("coverage").code == 0
    assert run("coverage", "--fail-under", "0.1").code == 3
    assert run("coverage", "nowhere").code == 2


def test_a_persona_without_runs_is_named(run: Command) -> None:
    personas = [{"id": name, "description": "x"} for name in ("terse", "wordy", "late")]
    one, two = cases("one", "two")
    data = {
        "targets": [mocked(calls("search"))],
        "personas": personas,
        "cases": [one | {"persona": ["terse", "wordy"]}],
    }
    run.write("a.eval.yaml", data)
    run("eval", "a.eval.yaml", "--persona", "terse")
    run.write("a.eval.yaml", data | {"cases": [*data["cases"], two | {"persona": "late"}]})
    report = coverage(run)
    assert report["personas"] == [{"id": "late", "runs": 0}, {"id": "terse", "runs": 1}, {"id": "wordy", "runs": 0}]
    assert "a run of case two with persona late" in report["next_cases"]
    assert "a run of case one with persona wordy" in report["next_cases"]
    assert "persona wordy: never" in run("coverage").out


def test_a_tool_that_only_a_judge_looks_at_is_not_asserted(run: Command) -> None:
    run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("one")})
    run("eval", "a.eval.yaml")
    judge = {"type": "llm_judge", "criterion": "It is polite."}
    targets = [mocked(calls("search")), mocked(name="j")]
    run.write("a.eval.yaml", {"targets": targets, "judge": "j", "cases": cases("one", check=judge)})
    assert statuses(coverage(run)) == {"search": "called"}


def test_mistakes_in_declared_tools_have_a_place(run: Command) -> None:
    run.write("a.eval.yaml", "tools: [{description: x}, a, a]\ncases: [{id: a, input: x, expected: [b]}]\n")
    result = run("validate", "a.eval.yaml")
    assert result.code == 2
    assert "a.eval.yaml:1:9: a tool needs a `name`, or a `function` that has one" in result.err
    assert "the tool 'a' is declared twice" in result.err
