"""Each assertion of promptfoo, and the evaluator that it becomes."""

from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.api.convert.promptfoo.assertions import DETERMINISTIC, JUDGED, WITHOUT
from tests.support.convert import convert_data, left_out, only_case

SCHEMA = {"type": "object", "required": ["city"]}
ASSERTIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "equals", "value": "yes"}, {"type": "equals", "value": "yes"}),
    ({"type": "equals", "value": 3.0}, {"type": "equals", "value": "3"}),
    ({"type": "equals", "value": {"total": 3}}, {"type": "equals", "value": {"total": 3}}),
    ({"type": "equals", "value": {"$gt": 3}}, {"type": "equals", "value": {"$literal": {"$gt": 3}}}),
    ({"type": "contains", "value": "refund"}, {"type": "contains", "value": "refund"}),
    ({"type": "contains", "value": 42}, {"type": "contains", "value": "42"}),
    ({"type": "not-contains", "value": "refund"}, {"type": "contains", "value": "refund", "not": True}),
    ({"type": "icontains", "value": "Refund"}, {"type": "contains", "value": "Refund", "ignore_case": True}),
    ({"type": "contains-all", "value": ["a", "b"]}, {"type": "contains", "all": ["a", "b"]}),
    ({"type": "contains-all", "value": 'a, "b, c"'}, {"type": "contains", "all": ["a", "b, c"]}),
    (
        {"type": "not-contains-all", "value": ["a", "b"]},
        {"type": "all_of", "not": True, "evaluators": [{"type": "contains", "all": ["a", "b"]}]},
    ),
    ({"type": "icontains-all", "value": ["a"]}, {"type": "contains", "all": ["a"], "ignore_case": True}),
    ({"type": "contains-any", "value": ["a", 1]}, {"type": "contains", "any": ["a", "1"]}),
    ({"type": "not-contains-any", "value": ["a", "b"]}, {"type": "contains", "none": ["a", "b"]}),
    ({"type": "icontains-any", "value": "a,b"}, {"type": "contains", "any": ["a", "b"], "ignore_case": True}),
    ({"type": "starts-with", "value": "Yes"}, {"type": "starts_with", "value": "Yes"}),
    ({"type": "regex", "value": "^done$"}, {"type": "regex", "pattern": "^done$", "syntax": "javascript"}),
    ({"type": "not-regex", "value": "sorry"}, {"type": "regex", "pattern": "sorry", "not": True}),
    ({"type": "is-json"}, {"type": "json"}),
    ({"type": "is-json", "value": SCHEMA}, {"type": "json", "schema": SCHEMA}),
    ({"type": "is-json", "value": "type: object\nrequired: [city]"}, {"type": "json", "schema": SCHEMA}),
    ({"type": "contains-json"}, {"type": "python", "function": "./promptfoo_checks.py:contains_json"}),
    (
        {"type": "is-xml", "value": {"requiredElements": ["a.b"]}},
        {"type": "python", "function": "./promptfoo_checks.py:is_xml", "config": {"elements": ["a.b"]}},
    ),
    ({"type": "contains-xml"}, {"type": "python", "function": "./promptfoo_checks.py:contains_xml"}),
    ({"type": "levenshtein", "value": "hello"}, {"type": "levenshtein", "value": "hello", "max_distance": 5}),
    (
        {"type": "levenshtein", "value": "hello", "threshold": 2},
        {"type": "levenshtein", "value": "hello", "max_distance": 2},
    ),
    ({"type": "word-count", "value": 5}, {"type": "word_count", "min": 5, "max": 5}),
    ({"type": "word-count", "value": {"max": 9}}, {"type": "word_count", "max": 9}),
    ({"type": "latency", "threshold": 500}, {"type": "latency_budget", "max_ms": 500}),
    ({"type": "cost", "threshold": 0.01}, {"type": "cost_budget", "max_usd": 0.01}),
    (
        {"type": "finish-reason", "value": "stop"},
        {"type": "equals", "on": "metadata.finish_reason", "value": "stop", "ignore_case": True},
    ),
    ({"type": "guardrails"}, {"type": "equals", "on": "metadata.guardrails.flagged", "value": False}),
    ({"type": "not-guardrails"}, {"type": "equals", "on": "metadata.guardrails.flagged", "value": True}),
    ({"type": "is-refusal"}, {"type": "refusal"}),
    (
        {"type": "javascript", "value": "output.length > 3"},
        {"type": "code", "command": ["node", "./promptfoo_assert.mjs"], "config": {"code": "output.length > 3"}},
    ),
    (
        {"type": "not-javascript", "value": "output.length", "threshold": 9, "config": {"a": 1}},
        {
            "type": "code",
            "command": ["node", "./promptfoo_assert.mjs"],
            "config": {"code": "output.length", "threshold": 9, "inverse": True, "config": {"a": 1}},
        },
    ),
    (
        {"type": "contains", "value": "x", "transform": "output.trim()"},
        {
            "type": "code",
            "command": ["node", "./promptfoo_assert.mjs"],
            "config": {"transform": ["output.trim()"], "assert": "contains", "value": "x"},
        },
    ),
    (
        {"type": "python", "value": "len(output) > 3"},
        {"type": "python", "function": "./promptfoo_checks.py:run_code", "config": {"code": "len(output) > 3"}},
    ),
    (
        {"type": "ruby", "value": "output.length > 3"},
        {"type": "code", "command": ["ruby", "./promptfoo_assert.rb"], "config": {"code": "output.length > 3"}},
    ),
    (
        {"type": "webhook", "value": "https://example.com/check"},
        {
            "type": "python",
            "function": "./promptfoo_checks.py:webhook",
            "config": {"url": "https://example.com/check"},
        },
    ),
    (
        {"type": "trajectory:tool-used", "value": ["search", "reply"]},
        {"type": "tool_trajectory", "minimums": {"search": 1, "reply": 1}, "score": "binary"},
    ),
    (
        {"type": "trajectory:tool-used", "value": {"pattern": "search*", "min": 2, "max": 3}},
        {
            "type": "python",
            "function": "./promptfoo_checks.py:tool_count",
            "config": {"tool": "search*", "min": 2, "max": 3},
        },
    ),
    (
        {"type": "trajectory:tool-used", "value": {"name": "search", "min": 2}},
        {"type": "tool_trajectory", "minimums": {"search": 2}},
    ),
    (
        {"type": "not-trajectory:tool-used", "value": "delete_order"},
        {
            "type": "python",
            "function": "./promptfoo_checks.py:tools_not_used",
            "config": {"tools": ["delete_order"]},
        },
    ),
    (
        {"type": "trajectory:tool-args-match", "value": {"name": "search", "args": {"q": "x"}}},
        {
            "type": "tool_trajectory",
            "mode": "superset",
            "input_match": "partial",
            "expected": [{"tool": "search", "input": {"q": "x"}}],
        },
    ),
    (
        {
            "type": "trajectory:tool-args-match",
            "value": {"name": "list", "args": {"q": 1}, "mode": "exact", "defaults": {"page": 1}, "ignore": "*_id"},
        },
        {
            "type": "tool_trajectory",
            "mode": "superset",
            "expected": [{"tool": "list", "input": {"q": 1}}],
            "tools": {"list": {"defaults": {"page": 1}, "ignore": ["*_id"]}},
        },
    ),
    (
        {"type": "trajectory:tool-sequence", "value": ["search", "reply"]},
        {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "search"}, {"tool": "reply"}]},
    ),
    (
        {"type": "not-trajectory:tool-sequence", "value": {"mode": "exact", "steps": [{"name": "a"}]}},
        {
            "type": "python",
            "function": "./promptfoo_checks.py:tool_sequence",
            "config": {"tools": ["a"], "mode": "exact"},
            "not": True,
        },
    ),
    (
        {"type": "trajectory:step-count", "value": {"type": "tool", "max": 3}},
        {"type": "tool_call_count", "max": 3},
    ),
    (
        {"type": "trajectory:step-count", "value": {"type": "command", "pattern": "git*", "min": 1}},
        {
            "type": "python",
            "function": "./promptfoo_checks.py:step_count",
            "config": {"type": "command", "pattern": "git*", "min": 1},
        },
    ),
    (
        {"type": "trace-span-count", "value": {"pattern": "*retrieve*", "min": 1}},
        {
            "type": "python",
            "function": "./promptfoo_checks.py:span_count",
            "config": {"pattern": "*retrieve*", "min": 1},
        },
    ),
    (
        {"type": "trace-span-duration", "value": {"max": 100, "percentile": 95}},
        {
            "type": "python",
            "function": "./promptfoo_checks.py:span_duration",
            "config": {"max": 100, "percentile": 95},
        },
    ),
    (
        {"type": "trace-error-spans", "value": 2},
        {"type": "python", "function": "./promptfoo_checks.py:error_spans", "config": {"max_count": 2}},
    ),
    (
        {"type": "tool-call-f1", "value": ["a", "b"], "threshold": 0.5},
        {
            "type": "python",
            "function": "./promptfoo_checks.py:tool_call_f1",
            "config": {"tools": ["a", "b"]},
            "threshold": 0.5,
        },
    ),
    (
        {"type": "skill-used", "value": "review"},
        {
            "type": "tool_trajectory",
            "mode": "superset",
            "input_match": "partial",
            "expected": [{"tool": "Skill", "input": {"skill": "review"}}],
        },
    ),
    (
        {"type": "assert-set", "threshold": 0.5, "assert": [{"type": "contains", "value": "a"}, {"type": "is-json"}]},
        {"type": "all_of", "threshold": 0.5, "evaluators": [{"type": "contains", "value": "a"}, {"type": "json"}]},
    ),
    (
        {"type": "contains", "value": "a", "weight": 2, "metric": "words"},
        {"name": "words", "type": "contains", "value": "a", "weight": 2},
    ),
    ({"type": "contains", "value": "{{topic}}!"}, {"type": "contains", "value": "bananas!"}),
    (
        {"type": "llm-rubric", "value": "It is polite."},
        {"type": "llm_judge", "criterion": "It is polite."},
    ),
    (
        {"type": "g-eval", "value": ["It is short.", "It is true."], "threshold": 0.9},
        {"type": "llm_judge", "rubric": ["It is short.", "It is true."], "threshold": 0.9},
    ),
    (
        {"type": "trajectory:goal-success", "value": {"goal": "The order is found."}},
        {"type": "trajectory_judge", "goal": "The order is found.", "goal_weight": 1},
    ),
]


@pytest.mark.parametrize(("theirs", "ours"), ASSERTIONS, ids=[str(theirs["type"]) for theirs, _ in ASSERTIONS])
def test_assertion_becomes_an_evaluator(theirs: dict[str, Any], ours: dict[str, Any], tmp_path: Path) -> None:
    config = {
        "prompts": ["Write about {{topic}}"],
        "providers": ["echo"],
        "tests": [{"vars": {"topic": "bananas"}, "assert": [theirs]}],
    }
    conversion = convert_data(config, tmp_path)
    assert only_case(conversion)["evaluators"] == [ours]
    assert [item for item in conversion.report.findings if item.kind == "left_out"] == []


def test_every_assertion_that_is_translated_is_shown_here() -> None:
    shown = {str(theirs["type"]).removeprefix("not-") for theirs, _ in ASSERTIONS}
    others = {"is-valid-openai-tools-call", "is-valid-openai-function-call", "is-valid-function-call"}
    assert DETERMINISTIC.keys() - shown - others == set()


@pytest.mark.parametrize("name", [*WITHOUT, "promptfoo:redteam:harmful", "not-a-real-assertion"])
def test_assertion_without_a_counterpart_is_named(name: str, tmp_path: Path) -> None:
    config = {"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": [{"type": name, "value": "x"}]}]}
    conversion = convert_data(config, tmp_path)
    assert [item.what for item in conversion.report.findings if item.kind == "left_out"] == [name]
    case = only_case(conversion)
    assert case["skip"]
    assert f"left out: {name} (promptfooconfig.json:1:" in conversion.evals[0].text()


@pytest.mark.parametrize("name", JUDGED)
def test_every_judged_assertion_is_translated(name: str, tmp_path: Path) -> None:
    config = {"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": [{"type": name, "value": "It is so."}]}]}
    case = only_case(convert_data(config, tmp_path))
    assert case["evaluators"][0]["type"] in {"llm_judge", "trajectory_judge"}


def test_valid_calls_are_checked_against_the_tools_of_the_provider(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
    config = {
        "prompts": ["Hi"],
        "providers": [{"id": "openai:gpt-4.1", "config": {"tools": [tool]}}],
        "tests": [{"assert": [{"type": "is-valid-openai-tools-call"}]}],
    }
    evaluator = only_case(convert_data(config, tmp_path))["evaluators"][0]
    assert evaluator["config"] == {"tools": {"weather": SCHEMA}}


def test_shares_become_all_or_nothing_under_a_threshold(tmp_path: Path) -> None:
    asserts = [{"type": "contains-all", "value": ["a", "b"]}, {"type": "contains", "value": "c"}]
    config = {"prompts": ["Hi"], "providers": ["echo"], "tests": [{"threshold": 0.5, "assert": asserts}]}
    case = only_case(convert_data(config, tmp_path))
    assert case["threshold"] == 0.5
    # Half of `contains-all` is nothing in promptfoo: (0 + 0) / 2.
    assert agentv.score("a", case["evaluators"], threshold=0.5).status == "fail"
    assert agentv.score("a b", case["evaluators"], threshold=0.5).status == "pass"


def test_set_with_a_threshold_that_lost_an_assertion_is_left_out_whole(tmp_path: Path) -> None:
    inner = [{"type": "contains", "value": "a"}, {"type": "similar", "value": "b"}]
    asserts = [{"type": "assert-set", "threshold": 0.5, "assert": inner}, {"type": "is-json"}]
    conversion = convert_data({"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": asserts}]}, tmp_path)
    assert only_case(conversion)["evaluators"] == [{"type": "json"}]
    assert [item.what for item in conversion.report.findings if item.kind == "left_out"] == ["similar", "assert-set"]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"type": "contains", "value": "file://word.txt"}, {"type": "contains", "value": "hello"}),
        ({"type": "starts-with", "value": "file://word.txt"}, {"type": "starts_with", "value": "hello"}),
        (
            {"type": "levenshtein", "value": "file://word.txt"},
            {"type": "levenshtein", "value": "hello", "max_distance": 5},
        ),
        ({"type": "word-count", "value": "file://count.json"}, {"type": "word_count", "min": 1, "max": 2}),
        ({"type": "contains-all", "value": ["file://word.txt", "b"]}, {"type": "contains", "all": ["hello", "b"]}),
    ],
)
def test_file_named_by_a_value_is_read(theirs: dict[str, Any], ours: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "word.txt").write_text("hello\n", encoding="utf-8")
    (tmp_path / "count.json").write_text('{"min": 1, "max": 2}', encoding="utf-8")
    config = {"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": [theirs]}]}
    assert only_case(convert_data(config, tmp_path))["evaluators"] == [ours]


@pytest.mark.parametrize("value", ["file://word.js", "file://word.md", "file://missing.txt"])
@pytest.mark.parametrize("name", ["contains", "not-contains", "starts-with", "levenshtein", "finish-reason"])
def test_file_that_cannot_be_read_is_not_taken_as_a_text(name: str, value: str, tmp_path: Path) -> None:
    (tmp_path / "word.md").write_text("hello", encoding="utf-8")
    config = {"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": [{"type": name, "value": value}]}]}
    conversion = convert_data(config, tmp_path)
    assert "evaluators" not in only_case(conversion)
    assert left_out(conversion) == [name]


def test_set_of_metrics_is_written_without_the_set(tmp_path: Path) -> None:
    metrics = [{"type": "contains", "value": "a", "weight": 0}, {"type": "is-json", "weight": 0}]
    asserts = [{"type": "assert-set", "assert": metrics}, {"type": "contains", "value": "b"}]
    config = {"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": asserts}]}
    conversion = convert_data(config, tmp_path)
    assert [each["type"] for each in only_case(conversion)["evaluators"]] == ["contains", "json", "contains"]
    assert left_out(conversion) == []
    config["tests"] = [{"assert": asserts, "threshold": 0.5}]
    conversion = convert_data(config, tmp_path)
    assert only_case(conversion)["evaluators"] == [{"type": "contains", "value": "b"}]
    assert left_out(conversion) == ["assert-set"]


def test_set_of_weight_0_can_fail_a_test_without_a_threshold(tmp_path: Path) -> None:
    asserts = [
        {"type": "assert-set", "weight": 0, "assert": [{"type": "contains", "value": "a"}]},
        {"type": "contains", "value": "b"},
    ]
    config = {"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": asserts}]}
    assert agentv.score("b", only_case(convert_data(config, tmp_path))["evaluators"]).status == "fail"
    config["tests"] = [{"assert": asserts, "threshold": 0.5}]
    case = only_case(convert_data(config, tmp_path))
    assert agentv.score("b", case["evaluators"], threshold=0.5).status == "pass"


GRADED = "{'pass': True, 'score': 0.25, 'reason': 'low'}"
RETURNED = [
    ("'true'", {}, "pass"),
    ("'0.5'", {}, "pass"),
    ("'0.5 of 1'", {"threshold": 0.6}, "fail"),
    ("'no idea'", {}, "fail"),
    ("None", {}, "fail"),
    ("[1]", {}, "fail"),
    ("{'pass': True, 'score': 1}", {}, "fail"),
    (GRADED, {}, "pass"),
    (GRADED, {"threshold": 0.5}, "fail"),
    (f"json.dumps({GRADED})", {}, "pass"),
    (f"json.dumps({GRADED})", {"threshold": 0.5}, "fail"),
    ("{'pass_': True, 'score': 1, 'reason': 'all'}", {}, "pass"),
]


@pytest.mark.parametrize(("code", "settings", "status"), RETURNED)
def test_python_may_return_what_it_may_return_there(
    code: str, settings: dict[str, Any], status: str, tmp_path: Path
) -> None:
    asserts = [{"type": "python", "value": code, **settings}]
    evaluators = only_case(
        convert_data({"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": asserts}]}, tmp_path)
    )["evaluators"]
    assert agentv.score("hi", evaluators, root=str(tmp_path / "converted")).status == status


@pytest.mark.parametrize(("code", "status"), [(f"json.dumps({GRADED})", "pass"), ("1/0", "fail"), ("None", "fail")])
def test_inverted_python_fails_only_for_a_verdict(code: str, status: str, tmp_path: Path) -> None:
    asserts = [{"type": "not-python", "value": code, "threshold": 0.5}]
    evaluators = only_case(
        convert_data({"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": asserts}]}, tmp_path)
    )["evaluators"]
    assert agentv.score("hi", evaluators, root=str(tmp_path / "converted")).status == status


_DELETED = [
    {"tool": "Delete_Order", "input": {"id": 1, "page": 1, "request_id": "r"}, "output": "done"},
    {"tool": "reply", "input": {}, "output": "done"},
]


@pytest.mark.parametrize(
    ("theirs", "status"),
    [
        ({"type": "not-trajectory:tool-used", "value": "delete_order"}, "fail"),
        ({"type": "not-trajectory:tool-used", "value": ["refund", "DELETE_*"]}, "fail"),
        ({"type": "not-trajectory:tool-used", "value": ["refund"]}, "pass"),
        ({"type": "trajectory:tool-used", "value": {"name": "delete_order", "min": 0, "max": 0}}, "fail"),
        ({"type": "trajectory:tool-used", "value": {"name": "delete_order", "max": 1}}, "pass"),
        ({"type": "not-trajectory:tool-used", "value": {"name": "delete_order", "min": 2}}, "pass"),
        ({"type": "trajectory:step-count", "value": {"type": "tool", "pattern": "delete*", "max": 0}}, "fail"),
        ({"type": "not-trajectory:step-count", "value": {"type": "tool", "name": "reply", "min": 1}}, "fail"),
        ({"type": "not-trajectory:tool-sequence", "value": ["delete_order", "reply"]}, "fail"),
        ({"type": "not-trajectory:tool-sequence", "value": ["reply", "delete_order"]}, "pass"),
        ({"type": "not-trajectory:tool-sequence", "value": {"mode": "exact", "steps": ["DELETE*", "REPLY"]}}, "fail"),
        ({"type": "not-trajectory:tool-sequence", "value": {"mode": "exact", "steps": ["reply"]}}, "pass"),
        ({"type": "not-trajectory:tool-args-match", "value": {"name": "delete_order", "args": {"id": 1}}}, "fail"),
        ({"type": "not-trajectory:tool-args-match", "value": {"name": "delete_order", "args": {"id": True}}}, "pass"),
        (
            {
                "type": "not-trajectory:tool-args-match",
                "value": {
                    "name": "delete_order",
                    "args": {"id": 1},
                    "mode": "exact",
                    "defaults": {"page": 1},
                    "ignore": "*_id",
                },
            },
            "fail",
        ),
        (
            {
                "type": "not-trajectory:tool-args-match",
                "value": {"name": "delete_order", "args": {"id": 1}, "mode": "exact"},
            },
            "pass",
        ),
    ],
)
def test_forbidden_tool_is_found_in_another_case_too(theirs: dict[str, Any], status: str, tmp_path: Path) -> None:
    config = {"prompts": ["x"], "providers": ["echo"], "tests": [{"assert": [theirs]}]}
    evaluators = only_case(convert_data(config, tmp_path))["evaluators"]
    result = agentv.score(
        [{"role": "assistant", "content": "", "tool_calls": _DELETED}], evaluators, root=str(tmp_path / "converted")
    )
    assert result.status == status, result


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        ({"type": "contains", "value": True}, "neither a text nor a number"),
        ({"type": "starts-with", "value": 12}, "no text"),
        ({"type": "contains-any", "value": '"a" b'}, "ends before a comma"),
        ({"type": "is-xml", "value": {"requiredElements": "a"}}, "no list"),
        ({"type": "levenshtein", "value": "abc", "threshold": "3"}, "its threshold '3' is no number"),
        ({"type": "llm-rubric", "value": "It is short.", "threshold": 5}, "no number from 0 to 1"),
    ],
)
def test_value_that_promptfoo_refuses_is_left_out(theirs: dict[str, Any], reason: str, tmp_path: Path) -> None:
    config = {"prompts": ["x"], "providers": ["echo"], "tests": [{"assert": [theirs]}]}
    [finding] = convert_data(config, tmp_path).report.findings[:1]
    assert finding.kind == "left_out"
    assert reason in finding.reason


def test_pattern_that_javascript_refuses_fails_every_time(tmp_path: Path) -> None:
    config = {"prompts": ["x"], "providers": ["echo"], "tests": [{"assert": [{"type": "regex", "value": "(?i)a"}]}]}
    conversion = convert_data(config, tmp_path)
    [evaluator] = only_case(conversion)["evaluators"]
    assert evaluator["config"] == {"assert": "regex", "value": "(?i)a"}
    assert any("promptfoo fails it every time" in item.reason for item in conversion.report.findings)
