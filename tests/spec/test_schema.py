"""Do the JSON Schema and the loader agree on what an eval is?"""

import copy
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator

from agentv.cli.schema import command
from agentv.errors import SpecError
from agentv.formats.response import REPLY_KEYS
from agentv.registry import EVALUATORS, PROVIDERS
from agentv.spec.cases import CAMEL_CASE
from agentv.spec.loader import CASE_LISTS, load_data
from agentv.spec.messages import CALL_KEYS, FUNCTION_KEYS, LANGCHAIN_KEYS, MESSAGE_KEYS, OPENAI_KEYS
from agentv.spec.project import load_project
from agentv.spec.schema import eval_schema, own_docs, project_schema, schema_text
from agentv.spec.yaml import YamlError, read_yaml
from tests.support.documents import EVAL, PARTS, READS_EVAL, complaints, misfits, part, whole
from tests.support.examples import examples

ROOT = Path(__file__).parents[2]
PROJECT = project_schema()
READS_PROJECT = Draft202012Validator(PROJECT)

SAMPLE = """
$schema: eval.schema.json
name: support
description: Everything that can be written
target: [first, second]
targets:
  - name: first
    provider: mock
    timeout_s: 2.5
    retries: 0
    reply:
      - Hello!
      - text: Done.
        output_messages:
          - {role: assistant, tool_calls: [{tool: search, input: {query: x}, output: null, status: ok}]}
          - role: assistant
            content: null
            refusal: null
            tool_calls: [{id: c1, type: function, function: {name: search, arguments: "{}"}}]
          - {role: tool, tool_call_id: c1, content: [{type: text, text: found}]}
        usage: {prompt_tokens: 3, completion_tokens: 4}
        error: {kind: agent, message: tired}
      - trace: [{type: tool_call, name: search}]
        traceRef: trace.json
      - {messages: [], error: it broke, latencyMs: 12.5}
  - {name: second, provider: replay, file: "{case_id}.json", max_concurrency: 3}
  - {name: third, provider: cli, command: [python3, agent.py], env: [KEY]}
defaults:
  repeat: 2
  threshold: 0.8
  timeout_s: 30
  vars: {city: Paris}
  evaluators:
    - {type: tool-trajectory, name: guard, forbidden: ["delete_*"], weight: 0.5, required: true}
evalcases:
  - id: 1
    input: {content: "The weather in {{ city }}?"}
    tags: [slow]
    skip: not yet
    evaluators:
      - type: tool_trajectory
        mode: in_order
        unit: turn
        expected: [{tool: search, input: {query: {$contains: x}}}, [{tool: a, args: 1}, {tool: b, status: error}]]
        calls: {denied: include, error: include}
        tools: {search: {input_match: [query], ignore: [id]}}
      - {type: tool_trajectory, maximums: {"*": 3}, failed: exclude, kind: metric}
  - id: two
    inputMessages: [{role: user, content: Hi}]
    expected_messages:
      - {role: assistant, tool_calls: [{tool: search, args: {query: x}, durationMs: 3}]}
      - {role: assistant, toolCalls: [{id: c1, type: function, function: {name: find, arguments: '{"a": 1}'}}]}
      - {role: assistant, tool_calls: [{name: find, args: {a: 1}, id: c2, type: tool_call}]}
      - {role: assistant, function_call: {name: find, arguments: "{}"}}
  - id: three
    persona: [impatient, default]
    input: [{role: system, content: Be nice.}]
    turns:
      - user: I want my money back.
        evaluators: [{type: tool_trajectory, mode: exact, expected: []}]
      - user: {content: [{type: text, text: Order A-17.}]}
        expected: [{role: assistant, tool_calls: [{tool: get_order}]}]
      - {resume: {approved: true}}
      - simulate: {user: facts, goal: Get it back., facts: {order: A-17, birthday: unknown}, max_turns: 6}
    evaluators:
      - {type: contains, value: done, over: last_turn}
      - {type: contains, value: done, over: {turn: 2}}
personas:
  - {id: impatient, description: In a hurry., vars: {a: 1}, headers: {x-user: "1"}, env: {USER_ID: "1"}}
"""


def schemas_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a schema; none of ours has a property that looks like a keyword of another meaning."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from schemas_in(item)


def parsed(text: str) -> Any:
    """A document, or nothing where the documentation shows what is no YAML."""
    try:
        return read_yaml(text.encode()).data
    except YamlError:
        return None


QUICK = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(part("CaseEntry"))
def test_the_loader_reads_every_case_that_the_schema_allows(case: dict[str, Any]) -> None:
    # Two words for the same are refused in a way of their own.
    data = whole(cases=[{key: value for key, value in case.items() if CAMEL_CASE.get(key) not in case}])
    assert complaints(READS_EVAL, data) == []
    assert misfits(data) == []


@QUICK
@given(part("TurnEntry"))
def test_the_loader_reads_every_turn_that_the_schema_allows(turn: dict[str, Any]) -> None:
    data = whole()
    data["cases"][0] |= {"turns": [{"user": "Hi"}, turn], "input": [{"role": "system", "content": "x"}]}
    assert complaints(READS_EVAL, data) == []
    assert misfits(data) == []


@QUICK
@given(part("PersonaEntry"))
def test_the_loader_reads_every_persona_that_the_schema_allows(persona: dict[str, Any]) -> None:
    data = whole(personas=[persona])
    assert complaints(READS_EVAL, data) == []
    assert misfits(data) == []


@QUICK
@given(part("Messages"), st.sampled_from(["input", "expected"]))
def test_the_loader_reads_all_messages_that_the_schema_allows(messages: Any, name: str) -> None:
    data = whole()
    data["cases"][0][name] = messages
    assert complaints(READS_EVAL, data) == []
    assert misfits(data) == []


@QUICK
@given(part("Evaluator"))
def test_the_loader_reads_every_evaluator_that_the_schema_allows(evaluator: dict[str, Any]) -> None:
    data = whole(defaults={"evaluators": [evaluator]})
    assert complaints(READS_EVAL, data) == []
    assert misfits(data) == []


@QUICK
@given(part("Target"))
def test_the_loader_reads_every_target_that_the_schema_allows(target: dict[str, Any]) -> None:
    data = whole(targets=[target])
    assert complaints(READS_EVAL, data) == []
    assert misfits(data) == []


@QUICK
@given(part("ProviderResponse"))
def test_the_loader_reads_every_reply_that_the_schema_allows(reply: dict[str, Any]) -> None:
    data = whole(targets=[{"name": "t", "provider": "mock", "reply": reply}])
    assert complaints(READS_EVAL, data) == []
    assert misfits(data) == []


@QUICK
@given(part("DefaultsEntry"))
def test_the_loader_reads_all_defaults_that_the_schema_allows(defaults: dict[str, Any]) -> None:
    data = whole(defaults=defaults)
    assert complaints(READS_EVAL, data) == []
    assert misfits(data) == []


@QUICK
@given(part("DatasetEntry"))
def test_the_loader_reads_every_dataset_that_the_schema_allows(dataset: dict[str, Any]) -> None:
    data = whole(dataset={**dataset, "files": "nowhere.jsonl"})
    assert complaints(READS_EVAL, data) == []
    assert misfits(data) == []


@pytest.mark.parametrize("schema", [EVAL, PROJECT], ids=["eval", "project"])
def test_it_is_a_schema_of_the_draft_that_it_names(schema: dict[str, Any]) -> None:
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(schema)
    refs = {inner["$ref"].removeprefix("#/$defs/") for inner in schemas_in(schema) if "$ref" in inner}
    assert refs == schema["$defs"].keys()


@pytest.mark.parametrize("schema", [EVAL, PROJECT], ids=["eval", "project"])
def test_every_property_is_described(schema: dict[str, Any]) -> None:
    named = [inner["properties"] for inner in schemas_in(schema) if isinstance(inner.get("properties"), dict)]
    assert sum(map(len, named)) > 50
    assert [name for properties in named for name in properties if not properties[name].get("description")] == []


def test_a_description_is_the_string_beneath_its_field() -> None:
    properties = PARTS["CaseEntry"]["properties"]
    assert properties["tags"]["description"] == "Tags to select the case by, with `--tag`."
    assert EVAL["properties"]["defaults"]["description"] == PARTS["DefaultsEntry"]["description"]
    inherited = PARTS["Mock"]["properties"]["retries"]["description"]
    assert inherited == "Number of retries after a retryable failure; 2 by default."


def test_without_source_it_is_as_strict_and_says_less(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_source(cls: type) -> str:
        raise OSError(cls)

    own_docs.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr("agentv.spec.schema.inspect.getsource", no_source)
        bare = eval_schema()
    own_docs.cache_clear()
    assert silent(bare) == silent(EVAL)
    assert len(str(bare)) < len(str(EVAL))


def silent(value: Any) -> Any:
    """A schema without its descriptions."""
    if isinstance(value, dict):
        return {key: silent(item) for key, item in value.items() if key != "description" or isinstance(item, dict)}
    return [silent(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("key", "part", "names"), [("type", "Evaluator", EVALUATORS), ("provider", "Target", PROVIDERS)]
)
def test_everything_registered_is_in_it(key: str, part: str, names: dict[str, str]) -> None:
    classes = [choice["$ref"].removeprefix("#/$defs/") for choice in PARTS[part]["anyOf"] if "$ref" in choice]
    assert [PARTS[cls]["properties"][key]["enum"][0] for cls in classes] == list(names)
    assert all(key in PARTS[cls]["required"] for cls in classes)


def test_every_key_that_is_read_is_in_it() -> None:
    keys = {"Message": MESSAGE_KEYS, "ToolCall": CALL_KEYS, "OpenAICall": OPENAI_KEYS, "NamedCall": LANGCHAIN_KEYS}
    for name, expected in {**keys, "FunctionCall": FUNCTION_KEYS, "ProviderResponse": REPLY_KEYS}.items():
        assert PARTS[name]["properties"].keys() == set(expected)
    assert PARTS["ProviderResponse"]["properties"]["usage"]["description"] == "The same as `tokens_usage`."


def test_a_trace_is_deprecated_in_favour_of_messages() -> None:
    properties = PARTS["ProviderResponse"]["properties"]
    assert {name for name in properties if properties[name].get("deprecated")} == {"trace", "trace_ref", "traceRef"}
    assert all("`output_messages`" in properties[name]["description"] for name in ("trace", "trace_ref"))


def shown() -> Iterator[tuple[str, Any]]:
    """Every eval that we show to anybody, those with a mistake to learn from included."""
    yield "sample", parsed(SAMPLE)
    for folder in ("src", "examples"):
        for path in sorted((ROOT / folder).rglob("*.eval.yaml")):
            data = parsed(path.read_text(encoding="utf-8"))
            if not data.keys().isdisjoint((*CASE_LISTS, "dataset")):  # else a policy, for `agentv score`
                yield path.name, data
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        blocks = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        for number, block in enumerate(blocks):
            data = parsed(block)
            if isinstance(data, dict) and not data.keys().isdisjoint((*CASE_LISTS, "dataset")):
                yield f"{page.stem} {number}", data


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in shown()])
def test_both_agree_on_every_eval_of_ours(data: Any) -> None:
    # What a plugin adds or the project defines is not known to the schema.
    wrong = [each for each in misfits(data) if not each.path.endswith((".type", ".provider")) and each.path != "target"]
    assert bool(complaints(READS_EVAL, data)) == bool(wrong), wrong


def test_the_sample_loads() -> None:
    assert load_data(parsed(SAMPLE)).count == 3


def test_every_evaluator_in_the_documentation_is_one() -> None:
    read = Draft202012Validator({**PARTS["Evaluator"], "$defs": PARTS})
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "guide").glob("*.md")]
    block = re.compile(r"^```yaml moving\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    rows = [parsed(row) for page in pages for row in block.findall(page)]
    assert len(rows) > 50
    assert [(row["there"], wrong) for row in rows for wrong in complaints(read, row["evaluator"])] == []


PROJECTS = sorted((ROOT / "src").rglob("agentv.yaml"))


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_every_project_of_ours_is_one(path: Path) -> None:
    load_project(path)
    assert complaints(READS_PROJECT, parsed(path.read_text(encoding="utf-8"))) == []


def test_a_projects_evals_are_not_its_own() -> None:
    assert complaints(READS_PROJECT, {"cases": []}) != []


MISSPELLED: list[tuple[str, ...]] = [
    ("descripton",),
    ("defaults", "repeats"),
    ("defaults", "evaluators", "0", "weigth"),
    ("targets", "0", "timeout"),
    ("targets", "0", "reply", "1", "output_message"),
    ("evalcases", "0", "expected_mesages"),
    ("evalcases", "0", "input", "contents"),
    ("evalcases", "0", "evaluators", "0", "minimum"),
    ("evalcases", "0", "evaluators", "0", "expected", "0", "inputs"),
    ("evalcases", "0", "evaluators", "0", "calls", "deny"),
    ("evalcases", "0", "evaluators", "0", "tools", "search", "ignored"),
    ("evalcases", "1", "expected_messages", "0", "tool_call"),
    ("evalcases", "1", "expected_messages", "0", "tool_calls", "0", "inputs"),
    ("evalcases", "1", "expected_messages", "1", "toolCalls", "0", "functions"),
    ("evalcases", "1", "expected_messages", "1", "toolCalls", "0", "function", "argument"),
    ("evalcases", "1", "expected_messages", "2", "tool_calls", "0", "arg"),
    ("evalcases", "1", "expected_messages", "3", "function_call", "argument"),
    ("evalcases", "2", "turn"),
    ("evalcases", "2", "turns", "0", "evaluator"),
    ("evalcases", "2", "turns", "1", "expects"),
    ("evalcases", "2", "turns", "1", "user", "contents"),
    ("evalcases", "2", "turns", "3", "simulate", "goals"),
    ("evalcases", "2", "evaluators", "1", "over", "turns"),
    ("personas", "0", "header"),
]


@pytest.mark.parametrize("path", MISSPELLED, ids=".".join)
def test_a_misspelled_key_is_refused_by_both(path: tuple[str, ...]) -> None:
    data = parsed(SAMPLE)
    place = data
    for step in path[:-1]:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[path[-1]] = None
    assert complaints(READS_EVAL, data) != []
    with pytest.raises(SpecError, match=f"unknown key '{path[-1]}'"):
        load_data(data)


CALLS: list[Any] = [{"tool": "a"}]
TWICE: list[dict[str, Any]] = [
    {"expected": [{"role": "assistant", "tool_calls": CALLS, "toolCalls": CALLS}]},
    {"expected": [{"role": "assistant", "tool_calls": CALLS, "function_call": {"name": "a"}}]},
    {"expected": {"tool_calls": CALLS}, "expected_messages": {"tool_calls": CALLS}},
    {"expected_messages": {"tool_calls": CALLS}, "expectedMessages": {"tool_calls": CALLS}},
    {"input_messages": "Hello"},
]


@pytest.mark.parametrize("more", TWICE)
def test_of_two_words_for_the_same_neither_wins(more: dict[str, Any]) -> None:
    data = whole()
    data["cases"][0] |= more
    with pytest.raises(SpecError, match=r"is another word for|unknown key"):
        load_data(data)


WRONG: list[tuple[str, Any]] = [
    ("name", ""),
    ("cases", {}),
    ("targets", [{"provider": "mock"}]),
    ("targets", [{"name": "", "provider": "mock"}]),
    ("targets", [{"name": "t"}]),
    ("targets", [{"name": "t", "provider": "mock", "reply": []}]),
    ("targets", [{"name": "t", "provider": "mock", "reply": {"output_messages": [{"role": 1}]}}]),
    ("targets", [{"name": "t", "provider": "mock", "reply": {"error": {"message": "busy", "retry_after_s": -1}}}]),
    ("targets", [{"name": "t", "provider": "cli"}]),
    ("targets", [{"name": "t", "provider": "cli", "command": " "}]),
    ("defaults", {"evaluators": [{"forbidden": ["a"]}]}),
    ("defaults", {"evaluators": ["tool_trajectory"]}),
    (
        "defaults",
        {"evaluators": [{"type": "panel", "judges": ["t", "u"], "rubric": [{"criterion": "a", "scores": {}}]}]},
    ),
    ("defaults", {"repeat": 0}),
    ("defaults", {"timeout_s": 0}),
    ("defaults", {"threshold": 1.5}),
    ("cases", [{"id": "a"}]),
    ("cases", [{"id": "", "input": "Hi"}]),
    ("cases", [{"id": "a", "turns": []}]),
    ("cases", [{"id": "a", "turns": [7]}]),
    ("cases", [{"id": "a", "turns": [{"expected": "Hi"}]}]),
    ("cases", [{"id": "a", "turns": [{"user": " "}]}]),
    ("cases", [{"id": "a", "turns": [{"user": ["Hi"]}]}]),
    ("cases", [{"id": "a", "turns": [{"user": "Hi", "evaluators": [{"type": "refusal", "over": "last_turn"}]}]}]),
    ("cases", [{"id": "a", "input": "Hi", "persona": []}]),
    ("cases", [{"id": "a", "input": "Hi", "evaluators": [{"type": "refusal", "over": "turn"}]}]),
    ("cases", [{"id": "a", "input": "Hi", "evaluators": [{"type": "refusal", "over": {"turn": 0}}]}]),
    ("personas", [{"description": "no id"}]),
    ("personas", ["impatient"]),
    ("personas", [{"id": "a", "headers": {"x": 1}}]),
    ("cases", [{"id": "a", "input": [{"content": "Hi"}]}]),
    ("dataset", 3),
    ("dataset", ""),
    ("dataset", []),
    ("dataset", {}),
    ("dataset", {"files": "a.csv", "format": "xls"}),
    ("dataset", {"files": "a.csv", "sample": {"seed": 1}}),
    ("dataset", {"files": "a.csv", "shuffle": {"seed": -1}}),
    ("dataset", {"files": "a.csv", "limit": 0}),
    ("dataset", {"files": "a.csv", "where": {"level": {"is": 1}}}),
    ("dataset", {"files": "a.csv", "template": {"input": "{{ q }}"}}),
    ("dataset", {"files": "a.csv", "template": {"id": "{{ q }}"}}),
    ("dataset", {"files": "a.csv", "template": {"id": "{{ q }}", "input": "{{ q }}", "tag": []}}),
    ("cases", [{"id": "a", "input": "Hi", "expected": [{"role": "assistant", "tool_calls": [{"input": 1}]}]}]),
]


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_what_has_the_wrong_shape_is_refused_by_both(key: str, value: Any) -> None:
    assert complaints(READS_EVAL, whole()) == []
    assert complaints(READS_EVAL, whole(**{key: value})) != []
    with pytest.raises(SpecError):
        load_data(whole(**{key: value}))


@pytest.mark.parametrize("name", ["", "tool*", "tool_use", "function_call", "tool-search"])
def test_a_block_type_that_may_not_be_declared_plain_is_refused_by_both(name: str) -> None:
    def data(*blocks: str) -> dict[str, Any]:
        return whole(targets=[{"name": "t", "provider": "mock", "plain_blocks": ["chart", *blocks]}])

    assert complaints(READS_EVAL, data()) == []
    load_data(data())
    assert complaints(READS_EVAL, data(name))
    with pytest.raises(SpecError) as refused:
        load_data(data(name))
    assert [problem.path for problem in refused.value.problems] == ["targets[0].plain_blocks[1]"]


def test_a_plugins_evaluator_or_provider_takes_whatever_it_likes() -> None:
    targets = [{"name": "t", "provider": "parrot", "times": 2}]
    defaults = {"evaluators": [{"type": "politeness", "words": ["please"]}]}
    assert complaints(READS_EVAL, whole(targets=targets, defaults=defaults)) == []
    assert complaints(READS_EVAL, whole(targets=[{"provider": "parrot"}])) != []


def test_the_command_prints_it(tmp_path: Path) -> None:
    printed = CliRunner().invoke(command, [])
    assert printed.output == schema_text()
    assert msgspec.json.decode(printed.output) == EVAL
    assert printed.output.endswith("}\n")
    out = tmp_path / "project.json"
    assert CliRunner().invoke(command, ["--project", "--out", str(out)]).output == ""
    assert out.read_text(encoding="utf-8") == schema_text("project")
    nowhere = CliRunner().invoke(command, ["--out", str(tmp_path / "no" / "file.json")])
    assert (nowhere.exit_code, "No such file" in nowhere.output) == (2, True)


def test_one_schema_does_not_change_the_next() -> None:
    first = eval_schema()
    kept = copy.deepcopy(first)
    project_schema()
    assert first == kept == eval_schema() == EVAL


def test_the_help_needs_none_of_it() -> None:
    code = "import sys, agentv.cli.main, agentv; print([name for name in sys.modules if 'spec.schema' in name])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
