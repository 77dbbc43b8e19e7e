"""Evals of AgentV, the npm package: `evalcases` of its first versions, and `tests` of the current ones."""

from pathlib import Path
from typing import Any

import pytest

from agentv.api.convert import detect
from agentv.api.convert.base import Conversion
from agentv.api.convert.source import SourceDocument
from agentv.api.convert.writer import plain_data
from tests.support.convert import convert_text, left_out, only_case


def convert(folder: Path, text: str, name: str = "suite.yaml") -> Conversion:
    return convert_text(text, folder, name)


def eval_data(conversion: Conversion) -> dict[str, Any]:
    [eval_] = conversion.evals
    data: dict[str, Any] = plain_data(eval_.data)
    return data


def test_first_versions(tmp_path: Path) -> None:
    text = """
description: Branches
target: mock
evalcases:
  - id: close
    expected_outcome: The agent searches twice.
    note: from the field
    conversation_id: branches
    input_messages:
      - {role: system, content: Be short.}
      - role: user
        content: [{type: text, value: How do I close a branch?}]
    expected_messages:
      - role: assistant
        tool_calls: [{tool: search, input: {query: close}, output: found}]
    execution:
      target: fast
      evaluators:
        - {name: calls, type: tool_trajectory, mode: in_order, expected: [{tool: search}]}
        - {name: judged, type: llm_judge}
"""
    conversion = convert(tmp_path, text)
    assert eval_data(conversion)["cases"] == [
        {
            "id": "close",
            "description": "from the field",
            "input": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": [{"type": "text", "text": "How do I close a branch?"}]},
            ],
            "expected_messages": [
                {
                    "role": "assistant",
                    "tool_calls": [{"tool": "search", "input": {"query": "close"}, "output": "found"}],
                }
            ],
            "metadata": {"conversation_id": "branches"},
            "evaluators": [
                {
                    "name": "calls",
                    "type": "tool_trajectory",
                    "mode": "in_order",
                    "expected": [{"tool": "search"}],
                    "score": "recall",
                },
                {"name": "judged", "type": "llm_judge", "criterion": "The agent searches twice."},
            ],
        }
    ]
    assert left_out(conversion) == []


SHARED = """
name: branches
description: Branches
prompts: ["{{ input }}"]
threshold: 0.9
timeout_seconds: 30
tags: [smoke]
evaluate_options: {repeat: 3, max_concurrency: 2, budget_usd: 5}
default_test:
  vars: {unit: days}
  assert: [{type: latency, threshold: 4000}]
"""


def test_settings_of_current_versions(tmp_path: Path) -> None:
    text = SHARED + "tests: [{id: a, vars: {input: Hi}, assert: [{type: contains, value: '{{ unit }}'}]}]"
    data = eval_data(convert(tmp_path, text))
    assert data["defaults"] == {
        "threshold": 0.9,
        "repeat": 3,
        "max_concurrency": 2,
        "max_cost": 5,
        "timeout_s": 30,
        "tags": ["smoke"],
    }
    assert data["cases"] == [
        {
            "id": "a",
            "input": "{{ input }}",
            "vars": {"unit": "days", "input": "Hi"},
            "evaluators": [{"type": "contains", "value": "days"}, {"type": "latency_budget", "max_ms": 4000}],
        }
    ]


ASSERTIONS = [
    ("{type: contains, value: a}", {"type": "contains", "value": "a"}),
    ("{type: icontains, value: a}", {"type": "contains", "value": "a", "ignore_case": True}),
    ("{type: contains-all, value: [a, b]}", {"type": "regex", "pattern": "(?s)\\A(?=.*a)(?=.*b)"}),
    ("{type: contains-any, value: [a, b]}", {"type": "contains", "any": ["a", "b"]}),
    ("{type: equals, value: a}", {"type": "equals", "value": "a", "trim": True}),
    ("{type: starts-with, value: a}", {"type": "starts_with", "value": "a", "trim": True}),
    ("{type: ends-with, value: a}", {"type": "ends_with", "value": "a", "trim": True}),
    ("{type: regex, value: a+}", {"type": "regex", "pattern": "a+"}),
    ("{type: is-json}", {"type": "json"}),
    ("{type: not-contains, value: a}", {"type": "contains", "value": "a", "not": True}),
    ("{type: latency, threshold: 9}", {"type": "latency_budget", "max_ms": 9}),
    ("{type: cost, threshold: 0.5}", {"type": "cost_budget", "max_usd": 0.5}),
    ("It is kind.", {"type": "llm_judge", "criterion": "It is kind."}),
    ("{type: llm-rubric, value: It is kind.}", {"type": "llm_judge", "criterion": "It is kind."}),
    (
        "{type: rubrics, criteria: [{id: kind, outcome: It is kind., weight: 2, required: true}]}",
        {
            "type": "llm_judge",
            "rubric": [{"id": "kind", "criterion": "It is kind.", "weight": 2, "required": True}],
        },
    ),
    (
        "{type: tool-trajectory, mode: any_order, minimums: {search: 2}}",
        {"type": "tool_trajectory", "minimums": {"search": 2}},
    ),
    ("{type: 'trajectory:tool-used', value: search}", {"type": "tool_trajectory", "minimums": {"search": 1}}),
]


@pytest.mark.parametrize(("written", "expected"), ASSERTIONS, ids=[written for written, _ in ASSERTIONS])
def test_assertion(tmp_path: Path, written: str, expected: dict[str, Any]) -> None:
    text = f"name: x\nprompts: ['{{{{ input }}}}']\ntests: [{{id: a, vars: {{input: Hi}}, assert: [{written}]}}]"
    conversion = convert(tmp_path, text)
    [found] = only_case(conversion)["evaluators"]
    assert found == expected
    assert conversion.report.counts.translated == conversion.report.counts.total == 1


def test_scenarios_are_crossed(tmp_path: Path) -> None:
    (tmp_path / "rows.yaml").write_text(
        "- config: [{vars: {language: German, hello: hallo}}]\n"
        "  tests: [{vars: {phrase: hello}, assert: [{type: equals, value: '{{ hello }}'}]}]\n",
        encoding="utf-8",
    )
    text = """
name: scenarios-demo
prompts: ["Translate '{{ phrase }}' to {{ language }}."]
scenarios:
  - description: Matrix
    config: [{vars: {language: Spanish}}, {vars: {language: French}}]
    tests: [{vars: {phrase: hello}, assert: [{type: icontains, value: o}]}]
  - file://rows.yaml
"""
    conversion = convert(tmp_path, text)
    assert [case["vars"]["language"] for case in eval_data(conversion)["cases"]] == ["Spanish", "French", "German"]
    assert detect(SourceDocument(tmp_path / "suite.yaml")) == "agentv-npm"


TURNS = """
name: talk
prompts: ["{{ input }}"]
tests:
  - id: talk
    mode: conversation
    %s
    vars: {input: [{role: system, content: Be short.}]}
    turns:
      - {input: What is 2 + 2?, assert: [{type: contains, value: '4'}, {type: contains, value: four}]}
      - {input: Double it., expected_output: It is 8.}
    assert: [It stays short.]
"""


def test_conversation(tmp_path: Path) -> None:
    case = only_case(convert(tmp_path, TURNS % "aggregation: mean"))
    assert case["input"] == [{"role": "system", "content": "Be short."}]
    assert case["turns"] == [
        {
            "user": "What is 2 + 2?",
            "evaluators": [{"type": "contains", "value": "4"}, {"type": "contains", "value": "four"}],
        },
        {"user": "Double it.", "expected": "It is 8."},
    ]
    assert case["evaluators"] == [{"type": "llm_judge", "criterion": "It stays short."}]


def test_conversation_whose_worst_turn_decides(tmp_path: Path) -> None:
    [check] = only_case(convert(tmp_path, TURNS % "aggregation: min"))["turns"][0]["evaluators"]
    assert (check["type"], check["threshold"], check["required"]) == ("all_of", 0.8, True)


def test_conversation_whose_best_turn_decides_is_named(tmp_path: Path) -> None:
    conversion = convert(tmp_path, TURNS % "aggregation: max")
    assert left_out(conversion) == ["aggregation"]
    assert only_case(conversion)["skip"]


def test_what_has_no_counterpart_is_named(tmp_path: Path) -> None:
    text = """
name: x
prompts: ["{{ input }}"]
version: "1.0"
license: MIT
environment: {type: host, workdir: app}
extensions: ["file://hooks.mjs:beforeAll"]
evaluate_options: {repeat: {count: 3, strategy: pass_any}}
default_test: {options: {transform: output.trim()}, metadata: {team: a}}
tests:
  - {id: a, vars: {input: Hi}, depends_on: [b], window_size: 2, assert: [{type: contains, value: a}]}
"""
    assert left_out(convert(tmp_path, text)) == [
        "version",
        "license",
        "environment",
        "extensions",
        "default_test.metadata",
        "options.transform",
        "evaluate_options.repeat",
        "depends_on",
        "window_size",
    ]


def test_tests_in_files(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": "Hi", "criteria": "It greets."}\n', encoding="utf-8")
    (tmp_path / "default.yaml").write_text("assert: [{type: contains, value: hello}]\n", encoding="utf-8")
    case = only_case(convert(tmp_path, "name: x\ntests: ./cases.jsonl\ndefault_test: file://default.yaml\n"))
    assert (case["id"], case["input"]) == ("a", "Hi")
    assert {"type": "contains", "value": "hello"} in case["evaluators"]


def test_variables_are_named_with_and_without_their_namespace(tmp_path: Path) -> None:
    text = """
        name: greetings
        providers: [llm]
        prompts: ['{{ input }}']
        default_test: {vars: {product: Lamps, size: big}}
        tests:
          - id: message
            vars:
              input: [{role: user, content: 'What is {{ vars.product }}?'}]
              expected_output: 'It is {{ vars.size }}.'
            assert: [{type: contains, value: '{{ vars.size }}', id: NAMES_SIZE}]
          - id: text
            vars: {person: {name: Ada}, input: 'Greet {{ vars.person.name }}'}
            assert: [{type: is-json, id: IS_JSON}]
        """
    [eval_] = convert_text(text, tmp_path, "suite.yaml").evals
    message, greeting = plain_data(eval_.data)["cases"]
    assert message["input"] == "What is Lamps?"
    assert message["expected_messages"] == "It is big."
    assert message["evaluators"] == [{"name": "NAMES_SIZE", "type": "contains", "value": "big"}]
    assert greeting["vars"]["input"] == "Greet Ada"
    assert greeting["evaluators"][0]["name"] == "IS_JSON"


def test_prompt_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Answer {{ question }}"}]', encoding="utf-8")
    text = """
        name: prompts
        providers: [llm]
        prompts: [{id: chat, label: Chat, file: ./chat.json}]
        tests: [{id: one, vars: {question: why}, assert: [{type: contains, value: x}]}]
        """
    assert only_case(convert_text(text, tmp_path, "suite.yaml"))["input"] == [
        {"role": "user", "content": "Answer {{ question }}"}
    ]


def test_case_without_defaults_has_no_shared_files(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Notes", encoding="utf-8")
    text = """
        name: files
        input_files: [notes.md]
        tests:
          - {id: with, input: Why, assert: [{type: contains, value: x}]}
          - {id: without, input: Why, execution: {skip_defaults: true}, assert: [{type: contains, value: x}]}
        """
    [eval_] = convert_text(text, tmp_path, "suite.yaml").evals
    assert [type(case["input"]) for case in plain_data(eval_.data)["cases"]] == [list, str]


def test_assertions_that_include_themselves_are_named(tmp_path: Path) -> None:
    (tmp_path / "shared.yaml").write_text("- {type: contains, value: x}\n- {include: ./shared.yaml}\n", "utf-8")
    text = "name: loop\ntests: [{id: one, input: Why, assert: [{include: ./shared.yaml}]}]\n"
    conversion = convert_text(text, tmp_path, "suite.yaml")
    assert left_out(conversion) == ["include: ./shared.yaml"]
    assert only_case(conversion)["evaluators"] == [{"type": "contains", "value": "x"}]


def test_option_of_a_test_is_named(tmp_path: Path) -> None:
    text = "name: o\ntests: [{id: one, input: Why, options: {provider: p}, assert: [{type: contains, value: x}]}]\n"
    assert left_out(convert_text(text, tmp_path, "suite.yaml")) == ["options.provider"]
