"""Nothing is dropped in silence: every leaf of a source is in the output, or a finding names it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.convert import convert_file, convert_text
from tests.support.leaves import dropped_leaves

PROMPTFOO = """
description: Refunds of the shop
tags: {team: billing}
env: {REGION: eu-north}
prompts:
  - {raw: 'Answer the customer: {{question}}', label: polite prompt}
providers:
  - {id: 'openai:gpt-4.1', label: main model, delay: 250, timeout: 9100, config: {temperature: 0.3, seed: 417}}
  - {id: 'vertex:gemini-2.5-pro', config: {region: us-east9, foo: bar}}
defaultTest:
  metadata: {owner: ina}
  options: {provider: 'anthropic:messages:claude-4', rubricPrompt: 'Grade with care {{output}}', transformVars: up()}
  assert:
    - {type: not-contains, value: forbidden words, description: never say these}
    - {type: moderation, threshold: 0.31}
scenarios:
  - description: Languages of the world
    config: [{vars: {language: Romansh}}]
    tests: [{vars: {question: Salve}, assert: [{type: icontains, value: bun di}]}]
tests:
  - description: Period of a refund
    vars: {question: How long is the wait}
    threshold: 0.77
    metadata: {ticket: ABC-991}
    storeOutputAs: kept_output
    options: {prefix: 'Dear agent, ', repeat: 4, runSerially: true}
    assert:
      - {type: icontains, value: fourteen days, weight: 3, metric: the period, reason: the law says so}
      - {type: is-sql, value: select one}
      - {type: llm-rubric, value: It is friendly, threshold: 0.66, config: {style: warm}, unknownKey: odd}
      - type: assert-set
        threshold: 0.55
        assert: [{type: equals, value: exactly this}, {type: regex, value: '^ab+c$'}]
      - {type: javascript, value: 'output.length > 33', config: {limit: 33}}
evaluateOptions: {maxConcurrency: 6, showProgressBar: false, generateSuggestions: true}
outputPath: results-of-today.json
sharing: true
"""
AGENTV = """
name: branch-suite
description: Branches of the bank
version: 3.1.4
author: someone else
tags: {experiment: baseline-a}
prompts: ['{{ input }}']
providers: [{id: 'openai:gpt-4.1', label: fast one, config: {temperature: 0.2}}]
environment: {type: host, workdir: sandbox-folder}
evaluate_options: {repeat: {count: 7, strategy: pass_any}, max_concurrency: 3, cache: true}
default_test: {vars: {unit: fortnights}, options: {transform: output.trim()}}
assert: [{type: latency, threshold: 4321}]
tests:
  - id: close-branch
    description: Closing a branch
    vars: {input: Close it now}
    metadata: {source: field report}
    depends_on: [another-case]
    run: {repeat: 12}
    assert:
      - The answer is friendly
      - {type: tool-trajectory, mode: in_order, expected: [{tool: search_manual, args: {query: closing}}]}
      - {type: rubrics, criteria: [{id: tone, outcome: The tone is warm, weight: 2.5}], prompt: Grade it softly}
      - {type: similar, value: Archive it before}
  - id: talk
    mode: conversation
    on_turn_failure: stop
    vars: {input: [{role: system, content: Answer in one line}]}
    turns:
      - {input: Which branch, assert: [{type: icontains, value: Bern}], note: odd remark}
    assert: [It stays polite]
"""
OLD_AGENTV = """
description: Older form
target: azure_base
evalcases:
  - id: older-case
    outcome: It searches the manual
    input_messages: [{role: user, content: Please close the branch}]
    expected_messages: [{role: assistant, content: Archived, tool_calls: [{tool: archive_branch, input: {id: 77}}]}]
    execution:
      workers: 9
      evaluators:
        - {name: tools used, type: tool_trajectory, mode: any_order, minimums: {archive_branch: 2}}
        - {name: graded, type: llm_judge, prompt: Is the tone warm}
"""
ADK = {
    "eval_set_id": "home_devices",
    "name": "Devices of a home",
    "description": "Lamps and doors",
    "eval_cases": [
        {
            "eval_id": "lamp_on",
            "session_input": {
                "app_name": "home_app",
                "user_id": "user_44",
                "state": {"room": "attic"},
                "session_id": "s-12",
            },
            "final_session_state": {"lamp": "glowing"},
            "rubrics": [
                {
                    "rubric_id": "brevity",
                    "rubric_content": {"text_property": "It is brief"},
                    "type": "FINAL_RESPONSE_QUALITY",
                    "description": "Two sentences are enough",
                }
            ],
            "conversation": [
                {
                    "invocation_id": "x1",
                    "user_content": {"role": "user", "parts": [{"text": "Turn the lamp on"}, {"inline_data": "aGk="}]},
                    "final_response": {"role": "model", "parts": [{"text": "It glows now"}]},
                    "intermediate_data": {
                        "tool_uses": [{"name": "set_device", "args": {"status": "GLOW"}}],
                        "intermediate_responses": [["agent", [{"text": "one moment"}]]],
                        "invocation_events": [
                            {
                                "author": "house agent",
                                "model_version": "gemini-9",
                                "content": {
                                    "parts": [{"function_response": {"name": "set_device", "response": "lit"}}]
                                },
                            }
                        ],
                    },
                    "rubrics": [{"rubric_id": "warmth"}],
                }
            ],
        },
        {
            "eval_id": "played",
            "conversation_scenario": {"starting_prompt": "Good evening", "conversation_plan": "Ask for darkness"},
        },
    ],
}
OPENAI = {
    "name": "Ticket labels",
    "metadata": {"team": "support-desk"},
    "data_source_config": {"type": "custom", "item_schema": {"type": "object"}, "include_sample_schema": True},
    "testing_criteria": [
        {
            "type": "string_check",
            "name": "same label",
            "input": "{{ sample.output_text }}",
            "operation": "eq",
            "reference": "{{ item.label }}",
        },
        {
            "type": "text_similarity",
            "name": "close text",
            "input": "{{ sample.output_text }}",
            "reference": "{{ item.label }}",
            "evaluation_metric": "cosine",
            "pass_threshold": 0.83,
        },
        {
            "type": "label_model",
            "name": "mood",
            "model": "gpt-4.1-mini",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Which mood has {{ sample.output_text }}"}]}
            ],
            "labels": ["sunny", "gloomy"],
            "passing_labels": ["sunny"],
        },
        {
            "type": "score_model",
            "name": "marks",
            "model": "gpt-4.1-mini",
            "input": [{"role": "user", "content": "Mark {{ sample.output_text }}"}],
            "range": [1, 7],
            "pass_threshold": 5,
            "sampling_params": {"reasoning_effort": "low", "max_completions_tokens": 77},
        },
        {
            "type": "python",
            "name": "lengths",
            "source": "def grade(sample, item): return 0.25",
            "image_tag": "2025-05-08",
        },
    ],
    "runs": [
        {
            "data_source": {
                "type": "completions",
                "model": "gpt-4.1-nano",
                "sampling_params": {"temperature": 0.15, "seed": 909},
                "input_messages": {
                    "type": "template",
                    "template": [{"role": "user", "content": "Label this: {{ item.ticket }}"}],
                },
                "source": {
                    "type": "file_content",
                    "content": [
                        {
                            "item": {"ticket": "My mouse is broken", "label": "Hardware"},
                            "sample": {"output_text": "recorded words"},
                        }
                    ],
                },
            }
        }
    ],
}

CRITERIA = {
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 0.75, "matchType": "in-order", "ignore_args": True},
        "final_response_match_v2": {
            "threshold": 0.99,
            "judgeModelOptions": {"judgeModel": "gemini-8", "numSamples": 9, "judgeModelConfig": {"temperature": 0.17}},
        },
        "rubric_based_final_response_quality_v1": {
            "threshold": 0.83,
            "rubrics": [
                {"rubricId": "calm", "rubricContent": {"textProperty": "It stays calm"}, "description": "No haste"},
            ],
        },
        "hallucinations_v1": {"threshold": 0.91, "evaluate_intermediate_nl_responses": True},
        "tool_call_count_v1": 17,
        "own_metric": {"threshold": 0.43, "limit": "of mine"},
    },
    "custom_metrics": {"own_metric": {"code_config": {"name": "checks.own_metric"}}},
    "user_simulator_config": {"model": "gemini-7", "max_allowed_invocations": 6, "custom_instructions": "Be terse"},
    "live_model_config": {"timeout_seconds": 33},
}


SOURCES = [
    ("promptfooconfig.yaml", PROMPTFOO),
    ("suite.yaml", AGENTV),
    ("older.eval.yaml", OLD_AGENTV),
    ("home.evalset.json", json.dumps(ADK, indent=1)),
    ("tickets.json", json.dumps(OPENAI, indent=1)),
]


def mappings(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all mappings of a document."""
    if isinstance(data, dict):
        yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from mappings(value, (*path, key))


@pytest.mark.parametrize(("name", "text"), SOURCES, ids=[name for name, _ in SOURCES])
def test_key_that_nobody_knows_is_kept_or_named_wherever_it_stands(tmp_path: Path, name: str, text: str) -> None:
    paths = list(mappings(yaml.safe_load(text)))
    assert len(paths) > 5
    for path in paths:
        data = yaml.safe_load(text)
        holder = data
        for step in path:
            holder = holder[step]
        holder["zebra_key"] = "forty striped words"
        conversion = convert_text(json.dumps(data), tmp_path, name)
        assert dropped_leaves(data, conversion, name) == [], path


@pytest.mark.parametrize(("name", "text"), SOURCES, ids=[name for name, _ in SOURCES])
def test_every_leaf_is_kept_or_named(tmp_path: Path, name: str, text: str) -> None:
    conversion = convert_text(text, tmp_path, name)
    assert dropped_leaves(yaml.safe_load(text), conversion, name) == []


def test_every_leaf_of_the_criteria_of_adk_is_kept_or_named(tmp_path: Path) -> None:
    (tmp_path / "test_config.json").write_text(json.dumps(CRITERIA, indent=1), encoding="utf-8")
    conversion = convert_text(json.dumps(ADK, indent=1), tmp_path, "home.evalset.json")
    assert dropped_leaves(CRITERIA, conversion, "test_config.json") == []
    assert dropped_leaves(ADK, conversion, "home.evalset.json") == []


def test_every_leaf_of_an_export_with_its_results_is_kept_or_named(tmp_path: Path) -> None:
    export = {
        "eval": {key: value for key, value in OPENAI.items() if key != "runs"},
        "run": {"name": "monday run", "data_source": {"type": "completions", "model": "gpt-4.1-nano"}},
        "output_items": [
            {
                "object": "eval.run.output_item",
                "datasource_item": {"ticket": "No light", "label": "Hardware"},
                "results": [{"name": "same label", "passed": True, "score": 0.97}],
                "sample": {"output": [{"role": "assistant", "content": "Software, I think"}]},
            }
        ],
        "exported_by": "a colleague",
    }
    conversion = convert_text(json.dumps(export, indent=1), tmp_path, "export.json")
    dropped = dropped_leaves(export, conversion, "export.json")
    assert [(path, value) for path, value in dropped if path[-1] != "object"] == []


def test_check_finds_a_leaf_that_is_dropped(tmp_path: Path) -> None:
    conversion = convert_text(PROMPTFOO, tmp_path)
    data = yaml.safe_load(PROMPTFOO)
    data["tests"][0]["assert"].append({"type": "contains", "value": "a word of its own"})
    assert dropped_leaves(data, conversion, "promptfooconfig.yaml") == [
        (("tests", 0, "assert", 5, "value"), "a word of its own")
    ]


STAMP = {"createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}
EVALSTUDIO: dict[str, list[dict[str, Any]]] = {
    "personas": [
        {
            "id": "p",
            "name": "Slow Sam",
            "description": "Reads slowly",
            "systemPrompt": "Ask twice",
            "imageUrl": "p.png",
        },
        {"id": "q", "name": "Nobody Norma", **STAMP},
    ],
    "connectors": [
        {"id": "c", "name": "staging", "type": "langgraph", "baseUrl": "http://x:1", "config": {"assistantId": "bot"}},
        {"id": "d", "name": "unused one", "type": "grpc", "baseUrl": "http://y:2"},
    ],
    "evals": [{"id": "e", "name": "Every night", "scenarioIds": ["s"], "connectorId": "c", **STAMP}],
    "scenarios": [
        {
            "id": "s",
            "name": "Late parcel",
            "instructions": "Your parcel is late",
            "messages": [{"role": "system", "content": "hidden words"}, {"role": "user", "content": "Where is it?"}],
            "maxMessages": 7,
            "successCriteria": "It names a day",
            "failureCriteria": "It blames the user",
            "failureCriteriaMode": "every_turn",
            "evaluators": [{"type": "tool-call-count"}, {"type": "own-check", "config": {"limit": 61}}],
            "personaIds": ["p"],
            "category": "parcels",
            **STAMP,
        }
    ],
}


def test_every_leaf_of_evalstudio_is_kept_or_named(tmp_path: Path) -> None:
    for name, data in EVALSTUDIO.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    conversion = convert_file(tmp_path / "scenarios.json")
    internal = {"createdAt", "updatedAt", "personaIds", "scenarioIds", "connectorId", "failureCriteriaMode"}
    for name, data in EVALSTUDIO.items():
        dropped = dropped_leaves(data, conversion, f"{name}.json")
        assert [(path, value) for path, value in dropped if not internal & set(map(str, path))] == [], name
