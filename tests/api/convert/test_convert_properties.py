"""Converting any configuration never raises, loses no test case, and gives valid evals."""

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv.api.convert import convert_paths, output_files, write_files
from agentv.api.convert.promptfoo.assertions import DETERMINISTIC, JUDGED, WITHOUT
from agentv.api.convert.writer import plain_data
from agentv.errors import FormatError
from agentv.spec.loader import load_evals
from tests.support.examples import examples

TEXT = st.sampled_from(
    ["a", "", "{{q}}", "{{ q | upper }}", "{% if q %}x{% endif %}", "{{", "file://missing.txt", "x\ny", "^a$", "(", "1"]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
VALUE = TEXT | JUNK | st.fixed_dictionaries({"name": TEXT, "args": JUNK, "min": st.integers(-1, 3), "pattern": TEXT})
TYPE = st.sampled_from([*DETERMINISTIC, *JUDGED, *WITHOUT, "unknown", "assert-set"])
ASSERTION = st.fixed_dictionaries(
    {"type": st.builds(lambda sign, name: sign + name, st.sampled_from(["", "not-"]), TYPE), "value": VALUE},
    optional={
        "threshold": st.floats(-1, 2) | JUNK,
        "weight": st.floats(-1, 2) | JUNK,
        "metric": TEXT | JUNK,
        "transform": TEXT | JUNK,
        "config": JUNK,
        "assert": JUNK,
        "provider": TEXT | JUNK,
    },
)
TEST = st.fixed_dictionaries(
    {},
    optional={
        "vars": st.dictionaries(st.sampled_from(["q", "r"]), TEXT | JUNK, max_size=2) | JUNK,
        "assert": st.lists(ASSERTION | JUNK, max_size=3) | JUNK,
        "description": TEXT | JUNK,
        "options": JUNK | st.dictionaries(st.sampled_from(["transform", "provider", "prefix", "repeat"]), JUNK),
        "threshold": JUNK,
        "metadata": JUNK,
        "prompts": JUNK,
        "providers": JUNK,
    },
)
PROMPTFOO = st.fixed_dictionaries(
    {"prompts": st.lists(TEXT, min_size=1, max_size=2) | JUNK, "tests": st.lists(TEST, min_size=1, max_size=3)},
    optional={
        "providers": st.lists(TEXT | st.sampled_from(["echo", "openai:gpt-4.1", "http"]) | JUNK, max_size=2) | JUNK,
        "defaultTest": TEST | JUNK,
        "evaluateOptions": JUNK,
        "description": JUNK,
        "env": JUNK,
    },
)


LEAF = TEXT | st.sampled_from(["Which one is it", "It is kind."]) | JUNK
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system", "tool"]), "content": LEAF}),
    max_size=3,
)
GRADER = st.fixed_dictionaries(
    {"type": st.sampled_from(["contains", "tool-trajectory", "llm-rubric", "rubrics", "script", "composite", "x"])},
    optional={
        "value": LEAF,
        "criteria": LEAF,
        "minimums": JUNK,
        "expected": JUNK,
        "mode": TEXT,
        "weight": JUNK,
        "prompt": LEAF,
        "command": LEAF,
    },
)
GRADERS = st.lists(GRADER | LEAF, max_size=3) | JUNK
AGENTV_CASE = st.fixed_dictionaries(
    {"id": TEXT},
    optional={
        "input": MESSAGES | LEAF,
        "input_messages": MESSAGES | JUNK,
        "vars": JUNK,
        "criteria": LEAF,
        "expected_messages": MESSAGES | JUNK,
        "expected_output": LEAF,
        "assert": GRADERS,
        "execution": st.fixed_dictionaries({}, optional={"evaluators": GRADERS, "target": LEAF}) | JUNK,
        "turns": st.lists(st.fixed_dictionaries({"input": LEAF}, optional={"assert": GRADERS}), max_size=2) | JUNK,
        "aggregation": st.sampled_from(["mean", "min", "max"]) | JUNK,
        "metadata": JUNK,
    },
)
AGENTV = st.fixed_dictionaries(
    {"tests": st.lists(AGENTV_CASE, min_size=1, max_size=3)},
    optional={
        "prompts": st.lists(TEXT, min_size=1, max_size=1) | st.none(),
        "scenarios": JUNK,
        "default_test": JUNK,
        "evaluate_options": JUNK,
        "assert": GRADERS,
        "threshold": JUNK,
        "tags": JUNK,
    },
)
PARTS = (
    st.fixed_dictionaries({"parts": st.lists(st.fixed_dictionaries({"text": LEAF}) | JUNK, max_size=2) | JUNK}) | JUNK
)
INVOCATION = st.fixed_dictionaries(
    {"user_content": PARTS},
    optional={
        "final_response": PARTS,
        "intermediate_data": st.fixed_dictionaries({"tool_uses": JUNK | st.just([{"name": "a", "args": {}}])}) | JUNK,
        "tools": JUNK,
    },
)
ADK_CASE = st.fixed_dictionaries(
    {"eval_id": LEAF},
    optional={
        "conversation": st.lists(INVOCATION | JUNK, max_size=3) | JUNK,
        "conversation_scenario": JUNK | st.fixed_dictionaries({"conversation_plan": LEAF, "starting_prompt": LEAF}),
        "session_input": JUNK,
        "rubrics": JUNK,
    },
)
ADK = st.fixed_dictionaries({"eval_cases": st.lists(ADK_CASE, min_size=1, max_size=3)}, optional={"name": JUNK})
CRITERION = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["string_check", "text_similarity", "label_model", "score_model", "python", "multi", "x"]
        )
    },
    optional={
        "name": LEAF,
        "input": LEAF | MESSAGES,
        "operation": st.sampled_from(["eq", "ne", "like", "ilike", "x"]),
        "reference": LEAF,
        "labels": JUNK,
        "passing_labels": JUNK,
        "range": JUNK,
        "pass_threshold": JUNK,
        "source": LEAF,
        "model": LEAF,
    },
)
OPENAI = st.fixed_dictionaries(
    {
        "name": TEXT,
        "data_source_config": JUNK,
        "testing_criteria": st.lists(CRITERION | JUNK, max_size=3),
        "runs": st.lists(JUNK | st.fixed_dictionaries({"data_source": JUNK}), max_size=2) | JUNK,
    }
)
SCENARIO = st.fixed_dictionaries(
    {"id": TEXT, "name": LEAF},
    optional={
        "instructions": LEAF,
        "messages": MESSAGES | JUNK,
        "maxMessages": st.integers(-2, 12) | JUNK,
        "successCriteria": LEAF,
        "failureCriteria": LEAF,
        "failureCriteriaMode": st.sampled_from(["every_turn", "on_max_messages"]) | JUNK,
        "evaluators": JUNK | st.just([{"type": "tool-call-count"}]),
        "personaIds": st.lists(TEXT, max_size=2) | JUNK,
    },
)
SCENARIOS = st.lists(SCENARIO, min_size=1, max_size=3)
WHOLE: dict[str, tuple[st.SearchStrategy[Any], str, str | None]] = {
    "agentv-npm": (AGENTV, "a.eval.json", "tests"),
    "adk": (ADK, "a.evalset.json", "eval_cases"),
    "openai-evals": (OPENAI, "a.json", ""),
    "evalstudio": (SCENARIOS, "scenarios.json", None),
}
"""Configurations of the other sources, the names of their files, and the keys of their cases."""


def convert(data: Any, folder: Path, name: str, source: str) -> list[dict[str, Any]]:
    """Convert data and return the cases of the output, which is valid."""
    (folder / name).write_text(json.dumps(data), encoding="utf-8")
    [conversion] = convert_paths([str(folder / name)], source)
    write_files(output_files([conversion]), folder / "out", force=True)
    if conversion.evals:
        load_evals([str(folder / "out" / eval_.file) for eval_ in conversion.evals])
    return [case for eval_ in conversion.evals for case in plain_data(eval_.data).get("cases", ())]


@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PROMPTFOO)
def test_any_configuration_of_promptfoo(data: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cases = convert(data, Path(folder), "promptfooconfig.json", "promptfoo")
    assert len(cases) >= len(data["tests"])


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JUNK, st.sampled_from(["promptfoo", "openai-evals", "agentv-npm", "adk", "evalstudio"]))
def test_data_of_any_shape_is_converted_or_refused(data: Any, source: str) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(FormatError):
        convert(data, Path(folder), "data.json", source)


@pytest.mark.parametrize("source", list(WHOLE))
@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_configuration_of_another_source(source: str, data: st.DataObject) -> None:
    strategy, name, key = WHOLE[source]
    written = data.draw(strategy)
    with tempfile.TemporaryDirectory() as folder:
        cases = convert(written, Path(folder), name, source)
    if key != "":
        assert len(cases) >= len(written if key is None else written[key])
