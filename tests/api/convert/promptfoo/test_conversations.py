"""Conversations of promptfoo: simulated users, tests that go on from earlier answers, and providers of a test."""

from pathlib import Path
from typing import Any

import pytest

from agentv.api.convert.base import Conversion
from agentv.api.convert.writer import plain_data
from tests.support.convert import convert_data, left_out, only_case

CHAT = """[
  {"role": "system", "content": "Be short."},
  {% for completion in _conversation %}
    {"role": "user", "content": "{{ completion.input }}"},
    {"role": "assistant", "content": "{{ completion.output }}"},
  {% endfor %}
  {"role": "user", "content": "{{ question }}"}
]"""
USER = {"id": "promptfoo:simulated-user", "config": {"maxTurns": 5}}


def convert(folder: Path, tests: list[Any], **settings: Any) -> Conversion:
    return convert_data({"prompts": [CHAT], "providers": ["echo"], **settings, "tests": tests}, folder)


def cases(conversion: Conversion) -> list[dict[str, Any]]:
    return [case for eval_ in conversion.evals for case in plain_data(eval_.data)["cases"]]


def test_tests_of_one_conversation_are_its_turns(tmp_path: Path) -> None:
    about = [("Who founded it?", "c1"), ("Where does he live?", "c1"), ("And Bern?", "c2")]
    tests: list[dict[str, Any]] = [
        {
            "vars": {"question": question},
            "metadata": {"conversationId": name},
            "assert": [{"type": "contains", "value": "x"}],
        }
        for question, name in about
    ]
    tests[1]["threshold"] = 0.5
    conversion = convert(tmp_path, tests, defaultTest={"assert": [{"type": "latency", "threshold": 900}]})
    check, limit = {"type": "contains", "value": "x"}, {"type": "latency_budget", "max_ms": 900}
    before = [{"role": "system", "content": "Be short."}]
    graded = {"type": "all_of", "threshold": 0.5, "evaluators": [limit, check]}
    assert cases(conversion) == [
        {
            "id": "c1",
            "input": before,
            "turns": [
                {"user": "Who founded it?", "evaluators": [limit, check]},
                {"user": "Where does he live?", "evaluators": [graded]},
            ],
        },
        {"id": "c2", "input": before, "turns": [{"user": "And Bern?", "evaluators": [limit, check]}]},
    ]
    assert (conversion.case_count, left_out(conversion)) == (3, [])


def test_conversation_in_which_nothing_is_checked_is_skipped(tmp_path: Path) -> None:
    assert only_case(convert(tmp_path, [{"vars": {"question": "Who?"}}]))["skip"]


@pytest.mark.parametrize(
    "prompt",
    [
        "{% for c in _conversation %}{{ c.input }}{{ c.output }}{% endfor %}{{ question }}",
        '[{"role": "user", "content": "{{ _conversation[0].output }} {{ question }}"}]',
    ],
)
def test_history_that_is_no_chat_is_named(tmp_path: Path, prompt: str) -> None:
    tests = [{"vars": {"question": "Who?"}, "assert": [{"type": "contains", "value": "x"}]}]
    conversion = convert(tmp_path, tests, prompts=[prompt])
    assert "_conversation" in only_case(conversion)["skip"]
    assert left_out(conversion) == ["prompt"]


def test_code_that_uses_the_variables_of_a_turn_is_named(tmp_path: Path) -> None:
    code = {"type": "javascript", "value": "output.includes(context.vars.question)"}
    conversion = convert(tmp_path, [{"vars": {"question": "Who?"}, "assert": [code]}])
    assert left_out(conversion) == ["javascript"]


def test_simulated_user(tmp_path: Path) -> None:
    seeds = [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "I am {{name}}."}]
    test = {
        "vars": {"name": "Ina", "instructions": "You want a refund, {{name}}."},
        "provider": {"id": USER["id"], "config": {"maxTurns": 5, "initialMessages": seeds, "stateful": True}},
        "assert": [{"type": "llm-rubric", "value": "It refunds."}, {"type": "not-contains", "value": "no"}],
    }
    conversion = convert(tmp_path, [test], prompts=["You help {{name}}."])
    assert only_case(conversion) == {
        "id": "test-1",
        "input": [{"role": "system", "content": "You help {{name}}."}, {"role": "assistant", "content": "Hello."}],
        "vars": {"name": "Ina"},
        "simulate": {
            "user": "model",
            "target": "simulated-user",
            "goal": "You want a refund, Ina.",
            "opening": "I am Ina.",
            "stop": {"max_turns": 6},
        },
        "evaluators": [{"type": "llm_judge", "criterion": "It refunds."}],
    }
    assert left_out(conversion) == ["promptfoo:simulated-user.stateful", "not-contains"]


def test_simulated_user_of_all_tests(tmp_path: Path) -> None:
    tests = [{"vars": {"instructions": "You want a cat."}, "assert": [{"type": "cost", "threshold": 0.1}]}]
    case = only_case(convert(tmp_path, tests, prompts=["Help."], defaultTest={"provider": USER}))
    assert (case["simulate"]["goal"], case["simulate"]["stop"]) == ("You want a cat.", {"max_turns": 5})
    assert case["evaluators"] == [{"type": "cost_budget", "max_usd": 0.1}]


def test_simulated_user_without_instructions_is_named(tmp_path: Path) -> None:
    conversion = convert(tmp_path, [{"provider": USER}], prompts=["Help."])
    assert left_out(conversion) == ["promptfoo:simulated-user"]
    assert only_case(conversion)["skip"]


def test_provider_of_a_test_takes_the_place_of_the_others(tmp_path: Path) -> None:
    check = [{"type": "contains", "value": "x"}]
    own = {"id": "openai:gpt-5", "config": {"temperature": 0}}
    conversion = convert(tmp_path, [{"assert": check}, {"provider": own, "assert": check}], prompts=["Help."])
    first, second = (plain_data(eval_.data)["targets"] for eval_ in conversion.evals)
    assert first == [{"name": "echo", "provider": "mock"}]
    assert second == [{"name": "openai:gpt-5", "provider": "openai", "model": "gpt-5", "temperature": 0}]
