"""Names of other tools lead to ours."""

import re
from typing import Any

import pytest

from agentv.errors import SpecError
from agentv.other_tools import _ASSERTIONS, _COMMANDS, _KEYS, assertion_hint, command_meant, key_meant
from agentv.spec.evaluators import check_evaluators
from agentv.spec.loader import load_data
from agentv.spec.schema import eval_schema
from agentv.spec.yaml import read_yaml
from tests.support.documents import whole

SAMPLES = {
    "pattern: ...": "pattern: a",
    "[...]}": "[{type: contains, value: a}]}",
    "expected: [{type: contains, value: a}]": "expected: [a]",
    "function: ./checks.py:check": "function: ./checks.py:check",
    "command: [{type: contains, value: a}]": "command: [a]",
    "rubric: [{type: contains, value: a}]": "rubric: [a]",
    "forbidden: [{type: contains, value: a}]": "forbidden: [a]",
    "all: [{type: contains, value: a}]": "all: [a]",
    "any: [{type: contains, value: a}]": "any: [a]",
    "none: [{type: contains, value: a}]": "none: [a]",
    "all: [...]": "all: [a]",
    "any: [...]": "any: [a]",
    "allowed: [...]": "allowed: [b]",
    "max: ...": "max: 3",
    "max_ms: ...": "max_ms: 3",
    "max_usd: ...": "max_usd: 3",
    "max_total: ...": "max_total: 3",
    "schema: ...": "schema: {type: object}",
    "...": "a",
}


@pytest.mark.parametrize("written", _ASSERTIONS)
def test_what_is_to_be_written_is_an_evaluator(written: str) -> None:
    config = written
    for dots, sample in SAMPLES.items():
        config = config.replace(dots, sample)
    check_evaluators([read_yaml(config.encode()).data])


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("icontains", "{type: contains, value: ..., ignore_case: true}"),
        ("llm-rubric", "{type: llm_judge, rubric: [...]}"),
        ("llm_rubric", "{type: llm_judge, rubric: [...]}"),
        ("is-json", "{type: json}"),
        ("not-icontains", "{type: contains, value: ..., ignore_case: true, not: true}"),
        ("latency", "{type: latency_budget, max_ms: ...}"),
        ("trajectory:tool-used", "{type: tool_trajectory, minimums: {TOOL: 1}}"),
        ("ToolCorrectnessMetric", "mode: in_order"),
        ("GEval", "{type: llm_judge, rubric: [...]}"),
        ("create_trajectory_match_evaluator", "{type: tool_trajectory, "),
        ("EqualsExpected", "{type: equals, value: ...}"),
        ("MaxDuration", "{type: latency_budget, max_ms: ...}"),
        ("model_graded_qa", "{type: llm_judge, criterion: ...}"),
        ("string_check", "{type: equals, value: ...}"),
        ("code-grader", "{type: code, command: [...]}"),
        ("similar", "it has no counterpart here (it needs embeddings)"),
    ],
)
def test_an_assertion_of_another_tool_is_an_error_that_says_what_to_write(name: str, ours: str) -> None:
    with pytest.raises(SpecError) as caught:
        check_evaluators([{"type": name}])
    (problem,) = caught.value.problems
    assert problem.message.startswith(f"got {name!r}, which is a name of another tool: ")
    assert ours in problem.message
    assert problem.message.index(ours) < problem.message.index("Expected one of all_of, any_of, ")


@pytest.mark.parametrize("name", ["containss", "tool-trajectroy", "Contains"])
def test_a_misspelt_name_is_no_name_of_another_tool(name: str) -> None:
    assert assertion_hint(name) == ""


def test_every_key_that_is_named_is_ours() -> None:
    definitions: dict[str, Any] = {**eval_schema()["$defs"], "EvalEntry": eval_schema()}
    for name, keys in _KEYS.items():
        known = definitions[name]["properties"].keys()
        assert keys.keys() <= known, name
        others = {other for names in keys.values() for other in names.split()}
        assert not others & known, name


@pytest.mark.parametrize(
    ("key", "ours"), [("assert", "evaluators"), ("prompt", "input"), ("expectedOutput", "expected"), ("name", "id")]
)
def test_a_key_of_a_case_elsewhere_leads_to_ours(key: str, ours: str) -> None:
    assert key_meant("CaseEntry", key) == ours
    case = {"id": "a", "input": "x", "evaluators": [{"type": "contains", "value": "x"}]}
    value = case.pop(ours, "x")
    with pytest.raises(SpecError) as caught:
        load_data(whole(cases=[{**case, key: value}]))
    assert [problem.message for problem in caught.value.problems] == [f"unknown key {key!r}; did you mean {ours!r}?"]


def test_a_file_of_another_tool_is_led_over_key_by_key() -> None:
    with pytest.raises(SpecError) as caught:
        load_data({"prompts": ["{{ q }}"], "providers": ["openai:gpt"], "tests": [{"vars": {"q": "x"}, "assert": []}]})
    found = [problem.sentence for problem in caught.value.problems]
    assert len(found) == 4
    assert re.search(r"unknown key 'prompts' here: .* is the `input` of each case", found[0])
    assert found[1] == "unknown key 'providers'; did you mean 'targets'?"
    assert set(found[2:]) == {"unknown key 'assert'; did you mean 'evaluators'?", "id: required"}


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("run", "eval"),
        ("test", "eval"),
        ("diff", "compare"),
        ("results", "executions show"),
        ("dashboard", "view"),
        ("lint", "validate"),
    ],
)
def test_a_command_of_another_tool_leads_to_ours(name: str, ours: str) -> None:
    assert command_meant(name) == ours
    assert command_meant("xyz") is None


def test_no_command_of_ours_is_called_that_of_another_tool() -> None:
    from agentv.cli.main import COMMANDS  # noqa: PLC0415 - the command line, for this test only

    assert {name.split()[0] for name in _COMMANDS} <= COMMANDS.keys()
    assert not {other for names in _COMMANDS.values() for other in names.split()} & COMMANDS.keys()
