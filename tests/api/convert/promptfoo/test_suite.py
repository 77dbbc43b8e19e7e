"""Prompts, tests, providers and settings of promptfoo as evals, cases and targets."""

import json
from pathlib import Path
from typing import Any

from agentv.api.convert.base import Conversion
from agentv.api.convert.writer import plain_data
from agentv.spec.loader import load_evals
from tests.support.convert import convert_data, convert_text, left_out, only_case

CHECK: list[dict[str, Any]] = [{"type": "contains", "value": "a"}]


def evals(conversion: Conversion) -> dict[str, Any]:
    return {eval_.name: plain_data(eval_.data) for eval_ in conversion.evals}


def test_configuration_as_people_write_it(tmp_path: Path) -> None:
    text = """\
# yaml-language-server: $schema=https://promptfoo.dev/config-schema.json
# The support agent.
description: Support

prompts:
  - "Answer the customer: {{question}}"

providers:
  # The model in production.
  - id: openai:gpt-4.1-mini
    config: {temperature: 0}

defaultTest:
  assert:
    - type: latency
      threshold: 3000

tests:
  # A refund must name the period.
  - description: Refund of a late order
    vars: {question: Where is my refund?}
    assert:
      - type: contains  # in days
        value: 14 days
      - type: similar
        value: You get it back
"""
    conversion = convert_text(text, tmp_path)
    assert (
        conversion.evals[0].text()
        == """\
# Converted from promptfooconfig.yaml (promptfoo) by `agentv convert-eval`.
# The support agent.
description: Support
targets:
  # The model in production.
  - {name: openai:gpt-4.1-mini, provider: openai, model: gpt-4.1-mini, temperature: 0}
defaults:
  evaluators:
    - {type: latency_budget, max_ms: 3000}
cases:
  # A refund must name the period.
  - id: refund-of-a-late-order
    description: Refund of a late order
    input: "Answer the customer: {{question}}"
    vars: {question: Where is my refund?}
    evaluators:
      - {type: contains, value: 14 days}  # in days
      # left out: similar (promptfooconfig.yaml:25:9): it needs a model of text (embeddings) or a service
"""
    )


def test_each_prompt_is_an_eval_of_its_own(tmp_path: Path) -> None:
    config = {
        "prompts": [{"label": "short", "raw": "Be short: {{q}}"}, "Be long: {{q}}"],
        "providers": ["echo"],
        "tests": [
            {"vars": {"q": "Why?"}, "assert": CHECK},
            {"vars": {"q": "Who?"}, "prompts": ["short"], "assert": CHECK},
        ],
    }
    name = tmp_path.name.lower().replace("_", "-")
    found = evals(convert_data(config, tmp_path))
    assert [len(found[key]["cases"]) for key in found] == [2, 1]
    assert [key.removeprefix(name) for key in found] == ["-short", "-prompt-2"]


def test_tests_for_some_providers_are_an_eval_with_these_targets(tmp_path: Path) -> None:
    config = {
        "prompts": ["{{q}}"],
        "providers": [{"id": "echo", "label": "fast"}, {"id": "echo", "label": "smart"}],
        "tests": [{"vars": {"q": "a"}, "assert": CHECK}, {"vars": {"q": "b"}, "providers": ["smart"], "assert": CHECK}],
    }
    found = list(evals(convert_data(config, tmp_path)).values())
    assert [[target["name"] for target in each["targets"]] for each in found] == [["fast", "smart"], ["smart"]]


def test_variables_with_several_values_make_cases(tmp_path: Path) -> None:
    config = {
        "prompts": ["{{a}} {{b}}"],
        "providers": ["echo"],
        "tests": [{"vars": {"a": ["1", "2"], "b": ["x", "y"]}, "assert": CHECK}],
    }
    [found] = evals(convert_data(config, tmp_path)).values()
    assert [case["vars"] for case in found["cases"]] == [
        {"a": "1", "b": "x"},
        {"a": "1", "b": "y"},
        {"a": "2", "b": "x"},
        {"a": "2", "b": "y"},
    ]


def test_templates_that_are_more_than_names_are_filled_in(tmp_path: Path) -> None:
    config = {
        "prompts": ["Hello {{ name | upper }}{% if polite %}, please{% endif %}{{ missing }}."],
        "providers": ["echo"],
        "tests": [{"vars": {"name": "ada", "polite": True}, "assert": CHECK}],
    }
    assert only_case(convert_data(config, tmp_path))["input"] == "Hello ADA, please."


def test_variables_may_name_others_and_files(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("A long text.\n", encoding="utf-8")
    values = {"who": "Ada", "greeting": "Dear {{who}}", "text": "file://long.txt"}
    config = {
        "prompts": ["{{greeting}}: {{text}}"],
        "providers": ["echo"],
        "tests": [{"vars": values, "assert": CHECK}],
    }
    case = only_case(convert_data(config, tmp_path))
    assert case["input"] == "{{greeting}}: {{text}}"
    assert case["vars"] == {"who": "Ada", "greeting": "Dear Ada", "text": "A long text."}


def test_chat_prompts_are_messages(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text(
        json.dumps([{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "{{q}}"}]), "utf-8"
    )
    config = {"prompts": ["file://chat.json"], "providers": ["echo"], "tests": [{"vars": {"q": "Hi"}, "assert": CHECK}]}
    assert only_case(convert_data(config, tmp_path))["input"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "{{q}}"},
    ]


def test_text_files_hold_several_prompts(tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("One: {{q}}\n---\nTwo: {{q}}\n", encoding="utf-8")
    config = {"prompts": "file://prompts.txt", "providers": ["echo"], "tests": [{"vars": {"q": "Hi"}, "assert": CHECK}]}
    found = list(evals(convert_data(config, tmp_path)).values())
    assert [each["cases"][0]["input"] for each in found] == ["One: {{q}}", "Two: {{q}}"]


def test_table_of_variables_stays_a_file(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("question,word\nWhy?,because\nWho?,Ada\n", encoding="utf-8")
    config = {
        "prompts": ["Answer: {{question}}"],
        "providers": ["echo"],
        "defaultTest": {"assert": [{"type": "contains", "value": "{{word}}"}]},
        "tests": "file://rows.csv",
    }
    conversion = convert_data(config, tmp_path)
    [found] = evals(conversion).values()
    assert found["dataset"] == {
        "files": "rows.csv",
        "template": {
            "id": "rows-{{ _line }}",
            "input": "Answer: {{question}}",
            "vars": {"question": "{{ question }}", "word": "{{ word }}"},
            "evaluators": [{"type": "contains", "value": "{{ word }}"}],
        },
    }
    assert conversion.case_count == 2
    [eval_] = load_evals([str(tmp_path / "converted" / conversion.evals[0].file)])
    assert [checked.case.id for checked in eval_.cases] == [origin.case_id for origin in conversion.evals[0].origins]


def test_table_with_expectations_becomes_cases(tmp_path: Path) -> None:
    rows = (
        "q,__expected,__expected2,__description,__metadata:area,__threshold\n"
        'Why?,contains: because,"icontains-any: a, b",First,x,0.5\n'
        "Who?,Ada,,,,\n"
    )
    (tmp_path / "rows.csv").write_text(rows, encoding="utf-8")
    [found] = evals(
        convert_data({"prompts": ["{{q}}"], "providers": ["echo"], "tests": "file://rows.csv"}, tmp_path)
    ).values()
    first, second = found["cases"]
    assert first["evaluators"] == [
        {"type": "contains", "value": "because"},
        {"type": "contains", "any": ["a", "b"], "ignore_case": True},
    ]
    assert (first["description"], first["metadata"], first["threshold"]) == ("First", {"area": "x"}, 0.5)
    assert second["evaluators"] == [{"type": "equals", "value": "Ada"}]


def test_tests_of_files_and_globs(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "a.yaml").write_text("- vars: {q: one}\n  assert: [{type: is-json}]\n", encoding="utf-8")
    (folder / "b.jsonl").write_text('{"vars": {"q": "two"}, "assert": [{"type": "is-json"}]}\n', encoding="utf-8")
    config = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": ["file://cases/*.yaml", "file://cases/b.jsonl"]}
    [found] = evals(convert_data(config, tmp_path)).values()
    assert [case["vars"]["q"] for case in found["cases"]] == ["one", "two"]


def test_scenarios_are_all_combinations(tmp_path: Path) -> None:
    scenario = {
        "config": [{"vars": {"lang": "de"}}, {"vars": {"lang": "fr"}}],
        "tests": [{"vars": {"q": "a"}, "assert": CHECK}, {"vars": {"q": "b"}, "assert": CHECK}],
    }
    config = {"prompts": ["{{lang}} {{q}}"], "providers": ["echo"], "scenarios": [scenario]}
    [found] = evals(convert_data(config, tmp_path)).values()
    assert [tuple(case["vars"].values()) for case in found["cases"]] == [
        ("de", "a"),
        ("de", "b"),
        ("fr", "a"),
        ("fr", "b"),
    ]


def test_test_without_assertions_is_kept_and_skipped(tmp_path: Path) -> None:
    conversion = convert_data({"prompts": ["{{q}}"], "providers": ["echo"], "tests": [{"vars": {"q": "a"}}]}, tmp_path)
    assert only_case(conversion)["skip"] == "promptfoo checks nothing here: add evaluators"
    assert left_out(conversion) == []


def test_prompt_of_a_function_keeps_its_cases_and_skips_them(tmp_path: Path) -> None:
    config = {
        "prompts": ["file://prompt.py:make"],
        "providers": ["echo"],
        "tests": [{"vars": {"q": "a"}, "assert": CHECK}],
    }
    conversion = convert_data(config, tmp_path)
    assert only_case(conversion)["skip"] == "the prompt is made by prompt.py:make"
    assert left_out(conversion) == ["prompt", "prompt"]


def test_providers_become_targets(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "def call_api(prompt, options, context):\n    return {'output': prompt}\n", "utf-8"
    )
    providers: list[Any] = [
        "openai:responses:gpt-4.1",
        {"id": "openai:chat:o3", "label": "thinker", "config": {"max_completion_tokens": 9, "reasoning_effort": "low"}},
        {"anthropic:messages:claude-sonnet-4-6": {"config": {"max_tokens": 100}}},
        "openrouter:qwen/qwen3-32b",
        "file://agent.py",
        {
            "id": "https://example.com/chat",
            "config": {
                "headers": {"Authorization": "Bearer abc"},
                "body": {"text": "{{prompt}}", "who": "{{user}}"},
                "transformResponse": "json.choices[0].message.content",
            },
        },
        "exec:python run.py",
        "bedrock:amazon.nova-lite-v1:0",
    ]
    config = {"prompts": ["Hi"], "providers": providers, "tests": [{"assert": CHECK}]}
    conversion = convert_data(config, tmp_path)
    [found] = evals(conversion).values()
    *known, unknown = found["targets"]
    assert known == [
        {"name": "openai:responses:gpt-4.1", "provider": "openai", "model": "gpt-4.1", "api": "responses"},
        {
            "name": "thinker",
            "provider": "openai",
            "model": "o3",
            "max_completion_tokens": 9,
            "extra_body": {"reasoning_effort": "low"},
        },
        {
            "name": "anthropic:messages:claude-sonnet-4-6",
            "provider": "anthropic",
            "model": "claude-sonnet-4-6",
            "max_tokens": 100,
        },
        {
            "name": "openrouter:qwen/qwen3-32b",
            "provider": "openai",
            "model": "qwen/qwen3-32b",
            "base_url": "https://openrouter.ai/api/v1",
            "api_key": "${OPENROUTER_API_KEY}",
        },
        {
            "name": "file://agent.py",
            "provider": "python",
            "function": "./promptfoo_checks.py:call_provider",
            "args": {"file": "agent.py"},
        },
        {
            "name": "https://example.com/chat",
            "provider": "http",
            "url": "https://example.com/chat",
            "headers": {"Authorization": "${AUTHORIZATION}"},
            "body": {"text": "{{ prompt }}", "who": "{{ vars.user }}"},
            "reply": {"text": "/choices/0/message/content"},
        },
        {"name": "exec:python run.py", "provider": "cli", "command": ["python", "run.py", "{prompt}"]},
    ]
    assert unknown["provider"] == "mock"
    assert "error" in unknown["reply"]
    assert left_out(conversion) == ["bedrock:amazon.nova-lite-v1:0"]


def test_secrets_stay_out_of_the_output(tmp_path: Path) -> None:
    provider = {"id": "openai:gpt-4.1", "config": {"apiKey": "sk-proj-abcdefghijklmnop1234567890"}}
    conversion = convert_data({"prompts": ["Hi"], "providers": [provider], "tests": [{"assert": CHECK}]}, tmp_path)
    text = conversion.evals[0].text()
    assert "sk-proj" not in text
    assert "${OPENAI_API_KEY}" in text


def test_graders_become_judges(tmp_path: Path) -> None:
    asserts = [
        {"type": "llm-rubric", "value": "Polite."},
        {"type": "llm-rubric", "value": "True.", "provider": "openai:o3"},
    ]
    config = {
        "prompts": ["Hi"],
        "providers": ["echo"],
        "defaultTest": {"options": {"provider": "openai:gpt-4.1"}},
        "tests": [{"assert": asserts}],
    }
    [found] = evals(convert_data(config, tmp_path)).values()
    assert [item["judge"] for item in found["cases"][0]["evaluators"]] == ["judge openai:gpt-4.1", "judge openai:o3"]
    assert found["target"] == "echo"


def test_no_key_is_dropped_in_silence(tmp_path: Path) -> None:
    config = {
        "prompts": ["Hi"],
        "providers": [{"id": "echo", "delay": 100}],
        "tests": [
            {
                "assert": [{"type": "contains", "value": "a", "unknown": 1}],
                "assertScoringFunction": "file://x.js",
                "options": {"transformVars": "x"},
            }
        ],
        "redteam": {},
        "extensions": ["file://hooks.js:all"],
        "evaluateOptions": {"maxConcurrency": 3, "repeat": 2, "delay": 5},
        "outputPath": "x.json",
        "surprise": 1,
    }
    conversion = convert_data(config, tmp_path)
    assert sorted(left_out(conversion)) == [
        "assertScoringFunction",
        "contains.unknown",
        "evaluateOptions.delay",
        "extensions",
        "options.transformVars",
        "outputPath",
        "providers.delay",
        "redteam",
        "surprise",
    ]
    [found] = evals(conversion).values()
    assert found["defaults"] == {"max_concurrency": 3, "repeat": 2}


def test_result_file_is_converted_by_its_configuration(tmp_path: Path) -> None:
    config = {"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": CHECK}]}
    conversion = convert_data({"evalId": "x", "results": {"results": []}, "config": config}, tmp_path, "output.json")
    assert only_case(conversion)["evaluators"] == CHECK


def test_default_assertions_without_a_test_are_named(tmp_path: Path) -> None:
    checks = [{"type": "contains", "value": "a"}, {"type": "equals", "value": "{{b}}"}]
    config = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": "file://load.js", "defaultTest": {"assert": checks}}
    conversion = convert_data(config, tmp_path)
    assert {"contains", "equals"} <= set(left_out(conversion))
    assert (conversion.report.counts.total, conversion.report.counts.translated) == (2, 0)
