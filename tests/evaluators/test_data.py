"""`equals` and `json`."""

import sys
import urllib.request
from time import perf_counter
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

import agentv
from agentv.evaluators.data import fenced_block
from agentv.matching.json_pointer import NOTHING, at_steps, bad_pointer, pointer_steps

CALL = [{"role": "assistant", "tool_calls": [{"tool": "add", "input": {"n": 10, "s": "10"}, "output": '{"sum": 3}'}]}]
AT = "tool_calls[0].input"


def run(reply: Any, **config: Any) -> agentv.EvaluatorResult:
    return agentv.score({"text": reply} if isinstance(reply, str) else reply, [config]).evaluators[0]


def reason(reply: Any, **config: Any) -> str:
    """Return the reason why it could not be decided."""
    found = run(reply, **config)
    assert (found.status, found.score) == ("error", None)
    return str(found.details.get("error") or "; ".join(found.details["undecided"]))


def problems(**config: Any) -> str:
    with pytest.raises(agentv.SpecError) as caught:
        run("", **config)
    return str(caught.value)


@pytest.mark.parametrize(
    ("reply", "config", "sentence"),
    [
        ("yes", {"value": "yes"}, 'answer is "yes"'),
        (" YES\n", {"value": "yes", "trim": True, "ignore_case": True}, 'answer is "yes"'),
        ("", {"value": ""}, 'answer is ""'),
        ("42", {"value": 42}, "answer is 42"),
        ("42.0", {"value": 42}, "answer is 42"),
        ("null", {"value": None}, "answer is null"),
        ('{"b": 1, "a": 2}', {"value": {"a": 2, "b": {"$gt": 0}}}, 'answer is {"a":2,"b":{"$gt":0}}'),
        ("a text", {"value": {"$contains": "text"}}, 'answer is {"$contains":"text"}'),
        ("a text", {"value": {"$regex": "^a"}}, 'answer is {"$regex":"^a"}'),
        (CALL, {"on": "tool_calls[0].input.n", "value": 10}, "tool_calls[0].input.n (add) is 10"),
        (CALL, {"on": "tool_calls[0].output", "value": '{"sum": 3}'}, None),
    ],
)
def test_equals(reply: Any, config: dict[str, Any], sentence: str | None) -> None:
    found = run(reply, type="equals", **config)
    assert (found.status, found.score) == ("pass", 1.0)
    assert sentence is None or found.hits == (sentence,)


@pytest.mark.parametrize(
    ("reply", "config", "sentence"),
    [
        ("no", {"value": "yes"}, 'answer expected "yes", got "no"'),
        ("yes\n", {"value": "yes"}, 'answer expected "yes", got "yes\\n"'),
        ("forty", {"value": 42}, 'answer expected 42, got "forty" (not JSON: Expecting value (line 1, column 1))'),
        ("true", {"value": 1}, "answer expected 1, got true"),
        ('{"a": 1}', {"value": {"a": 2, "b": 3}}, "answer.a expected 2, got 1; answer.b expected 3, got nothing"),
        (
            CALL,
            {"on": "tool_calls[0].input.s", "value": 10},
            f'{AT}.s (add) expected 10, got "10" (a number is expected, the call has text)',
        ),
        (
            CALL,
            {"on": "tool_calls[0].input.n", "value": "10"},
            f'{AT}.n (add) expected "10", got 10 (text is expected, the call has a number)',
        ),
        (CALL, {"on": "tool_calls[0].output", "value": {"sum": 3}}, None),
    ],
)
def test_what_is_not_equal(reply: Any, config: dict[str, Any], sentence: str | None) -> None:
    found = run(reply, type="equals", **config)
    assert (found.status, found.score, found.hits) == ("fail", 0.0, ())
    assert sentence is None or found.misses == (sentence,)


def test_what_equals_cannot_mean() -> None:
    assert "evaluators[0].value: required" in problems(type="equals")
    assert "evaluators[0].trim: is about texts" in problems(type="equals", value=3, trim=True)
    assert "unknown operator '$gtt'" in problems(type="equals", value={"$gtt": 1})


DOCUMENT = '{"items": [{"id": 1, "price": 3.5}], "a/b": {"~": true}, "n": null}'


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({}, "answer is JSON"),
        ({"pointer": ""}, "answer is JSON"),
        ({"pointer": "/n"}, "answer.n is null"),
        ({"pointer": "/a~1b/~0"}, "answer.a/b.~ is true"),
        ({"pointer": "/items/0/id", "equals": 1}, "answer.items.0.id is 1"),
        ({"pointer": "/items/0", "matches": {"price": {"$gt": 3}}}, 'answer.items.0 holds {"price":{"$gt":3}}'),
        ({"matches": {"items": [{"id": 1}]}}, 'answer holds {"items":[{"id":1}]}'),
        ({"schema": {"required": ["items"]}}, "answer meets the schema"),
        ({"schema": True}, "answer meets the schema"),
    ],
)
def test_json(config: dict[str, Any], sentence: str) -> None:
    found = run(DOCUMENT, type="json", **config)
    assert (found.status, found.score, found.hits, found.misses) == ("pass", 1.0, (sentence,), ())


@pytest.mark.parametrize(
    ("config", "score", "sentence"),
    [
        ({"pointer": "/items/1"}, 0.0, "answer has nothing at /items/1"),
        ({"pointer": "/items/00", "equals": 1}, 0.0, "answer has nothing at /items/00"),
        ({"pointer": "/items/0/id", "equals": 2}, 0.0, "answer.items.0.id expected 2, got 1"),
        ({"matches": {"items": []}}, 0.0, 'answer.items expected [], got [{"id":1,"price":3.5}]'),
        ({"matches": {"n": None}, "equals": {"n": None}}, 0.5, None),
        ({"schema": {"required": ["x"]}}, 0.0, "answer: 'x' is a required property"),
        ({"schema": False}, 0.0, None),
        ({"schema": {"properties": {"items": {"items": {"properties": {"id": {"type": "string"}}}}}}}, 0.0,
         "answer: /items/0/id 1 is not of type 'string'"),
        ({"schema": {"properties": {"items": True}, "additionalProperties": False}}, 0.0,
         'answer: "a/b" is not allowed; "n" is not allowed'),
        ({"schema": {"patternProperties": {"^a/": False}}}, 0.0, None),
        ({"schema": {"additionalProperties": {"type": ["array", "null"]}}}, 0.0, None),
    ],
)  # fmt: skip
def test_json_that_falls_short(config: dict[str, Any], score: float, sentence: str | None) -> None:
    found = run(DOCUMENT, type="json", **config)
    assert (found.status, found.score, len(found.misses)) == ("fail", score, 1)
    assert sentence is None or found.misses == (sentence,)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'the text is empty: ""'),
        (" \n", 'the text is empty: " \\n"'),
        ("It is 3.", "Expecting value (line 1, column 1)"),
        ('{"a": NaN}', "NaN is no number there"),
        ("[-Infinity]", "-Infinity is no number there"),
        ('{"a": 1,}', "line 1, column 8" if sys.version_info >= (3, 13) else "line 1, column 9"),
        ("{'a': 1}", "line 1, column 2"),
        ("[1] // no", "Extra data (line 1, column 5)"),
        ('"a\0b"', "Invalid control character"),
        ('{"a":\n 1', "line 2, column 3"),
        ("```json\n{}\n```", "line 1, column 1"),
    ],
)
def test_what_is_not_json(text: str, why: str) -> None:
    reply = agentv.ProviderResponse(text=text)
    found = run(reply, type="json", matches={"a": 1}, schema={})
    assert (found.status, found.score, len(found.misses)) == ("fail", 0.0, 1)
    assert found.misses[0].startswith("answer is not JSON: ")
    assert why in found.misses[0]


@pytest.mark.parametrize("text", ["[" * 200_000 + "]" * 200_000, "[" * 200_000, '{"a":' * 200_000, "1e999", "1" * 5000])
def test_what_cannot_be_read_is_an_error(text: str) -> None:
    assert reason(text, type="json").startswith("answer ")
    assert reason(text, type="equals", value=[1]).startswith("answer ")


def test_json_deeper_than_anything_to_compare_it_with() -> None:
    text = "[" * 300 + "]" * 300
    assert run(text, type="json").status == "pass"
    for key in ("equals", "matches", "schema"):
        assert "nested deeper than 128 levels" in reason(text, type="json", **{key: {}})


def test_an_answer_of_a_megabyte() -> None:
    text = "[" + ",".join(f'{{"id":{n},"name":"item"}}' for n in range(40_000)) + "]"
    start = perf_counter()
    assert run(text, type="json", pointer="/39999/id", equals=39_999).status == "pass"
    found = run(text, type="json", schema={"uniqueItems": True, "maxItems": 3})
    assert found.misses[0].startswith('answer: [{"id":0,')
    assert found.misses[0].endswith("is not what `maxItems` asks for")
    assert run(text, type="json", schema={"uniqueItems": True}).status == "pass"
    assert perf_counter() - start < 20


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```json\n{}\n```", "{}\n"),
        ("Here:\n  ```\n[1]\n  ```\nand ```x```", "[1]\n"),
        ("```\n{}", "{}"),
        ("{}", "{}"),
        ("", ""),
        ("a ``` b", "a ``` b"),
    ],
)
def test_a_fence_is_taken_off(text: str, inside: str) -> None:
    assert fenced_block(text) == inside


def test_fenced_json() -> None:
    text = 'Sure!\n```json\n{"a": 1}\n```\nAnything else?'
    assert run(text, type="json", fenced=True, equals={"a": 1}).status == "pass"
    assert run(text, type="json").status == "fail"
    assert run('{"a": 1}', type="json", fenced=True, equals={"a": 1}).status == "pass"


def test_an_output_that_is_data_needs_no_reading_and_one_that_is_text_is_read() -> None:
    assert run(CALL, type="json", on="tool_calls[0].input", matches={"n": 10}).status == "pass"
    assert run(CALL, type="json", on="tool_calls[0].output", pointer="/sum", equals=3).status == "pass"


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"pointer": "items.0"}, "evaluators[0].pointer: not a JSON pointer: it begins with '/', as '/items/0' does"),
        ({"pointer": "/a~2"}, "at character 3, '~' is written '~0'"),
        ({"matches": {"a": {"$gt": []}}}, "evaluators[0].matches.a.$gt: expected a number or a string"),
        ({"equals": {"$any": True, "b": 1}}, "operators beside plain keys"),
        ({"schema": {"type": "strin"}}, "evaluators[0].schema.type: not a JSON Schema: 'strin'"),
        ({"schema": {"properties": {"a": {"minimum": "1"}}}}, "evaluators[0].schema.properties.a.minimum: not a"),
        ({"schema": {"$ref": "#/$defs/x"}}, "`$ref` '#/$defs/x' leads nowhere"),
        ({"schema": {"items": {"$ref": "https://example.org/x"}}}, "a schema may refer to its own parts only"),
        ({"schema": {"pattern": "(a"}}, "evaluators[0].schema.pattern: not a JSON Schema: '(a' is not a 'regex'"),
        ({"schema": {"patternProperties": {"a++++": {}}}}, "evaluators[0].schema"),
        ({"schema": {"patternProperties": {"a": {}}, "unevaluatedProperties": False}}, "is not supported"),
        ({"schema": []}, "evaluators[0].schema: "),
    ],
)
def test_what_json_cannot_mean(config: dict[str, Any], why: str) -> None:
    assert why in problems(type="json", **config)


def repeated(depth: int) -> dict[str, Any]:
    """A schema that is small in a file with aliases, and doubles at each level."""
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"anyOf": [schema, schema]}
    return schema


@pytest.mark.parametrize(
    ("schema", "size"),
    [
        ({"anyOf": [{"const": number} for number in range(100_000)]}, "10,000 subschemas"),
        ({"anyOf": [True] * 100_000}, "10,000 subschemas"),
        ({"$defs": {str(number): {} for number in range(100_000)}}, "10,000 subschemas"),
        ({"enum": list(range(300_000))}, "200,000 values"),
        (repeated(14), "10,000 subschemas"),
    ],
    ids=["objects", "booleans", "definitions", "values", "aliases"],
)
def test_a_schema_of_any_size_is_refused_at_load(schema: dict[str, Any], size: str) -> None:
    with pytest.raises(agentv.SpecError) as caught:
        agentv.Scorer([{"type": "json", "schema": schema}])
    assert f"evaluators[0].schema: has more than {size}" in str(caught.value)


def test_a_large_schema_is_accepted() -> None:
    schema = {"properties": {str(number): {"type": "string"} for number in range(500)}, "enum": [{}, *range(50_000)]}
    assert run("{}", type="json", schema=schema).status == "pass"


def test_a_schema_may_refer_to_its_own_parts() -> None:
    tree = {"$ref": "#/$defs/node", "$defs": {"node": {"items": {"$ref": "#/$defs/node"}, "type": "array"}}}
    assert run("[[[]]]", type="json", schema=tree).status == "pass"
    assert run("[[3]]", type="json", schema=tree).misses == ("answer: /0/0 3 is not of type 'array'",)
    assert reason("{}", type="json", schema={"$ref": "#"}) == "the schema refers to itself without end"


def test_nothing_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(urllib.request, "urlopen", fetch)
    schema = {"$id": "https://example.org/a", "items": {"$ref": "b"}}
    assert run("[]", type="json", schema=schema).status == "pass"
    assert "leads nowhere" in reason("[1]", type="json", schema=schema)


def test_older_drafts_are_read_as_what_they_are() -> None:
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True}
    assert run("2", type="json", schema=schema).status == "pass"
    assert run("3", type="json", schema=schema).status == "fail"


def test_a_schema_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentv.evaluators.json_schema.SECONDS", -1.0)
    assert "took longer than" in reason("{}", type="json", schema={"type": "object"})


def test_what_is_decided_already_may_rule_out_the_threshold() -> None:
    endless = {"type": "json", "schema": {"$ref": "#"}}
    found = run("{}", **endless, equals={"a": 1})
    assert (found.status, found.score, len(found.details["undecided"])) == ("fail", 0.0, 1)
    assert run("{}", **endless, equals={}).status == "error"


def test_of_many_complaints_the_first_are_told() -> None:
    (miss,) = run(str([0] * 50), type="json", schema={"items": {"type": "string"}}).misses
    assert miss.count("is not of type") == 10
    assert miss.endswith("; and more")


def test_without_the_extra_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    expected = "evaluators[0].schema: needs a package that is not installed: pip install 'agentv[schema]'"
    assert problems(type="json", schema={"type": "array"}) == expected
    assert run("[]", type="json").status == "pass"


def test_turned_round() -> None:
    found = run("{}", type="json", **{"not": True})
    assert (found.status, found.misses) == ("fail", ("holds and should not: answer is JSON",))
    assert run("no", type="json", **{"not": True}).status == "pass"
    assert run("[" * 200_000, type="json", **{"not": True}).status == "error"


KEYS = st.text("ab/~01", max_size=3)


@given(st.lists(KEYS, max_size=5))
def test_a_pointer_leads_where_it_says(keys: list[str]) -> None:
    value: Any = 1
    for key in reversed(keys):
        value = {key: value, "zz": 0}
    pointer = "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in keys)
    assert bad_pointer(pointer) is None
    assert at_steps(value, pointer_steps(pointer)) == 1
    assert at_steps(value, (*pointer_steps(pointer), "x")) is NOTHING


@pytest.mark.parametrize("step", ["-1", "01", "+1", "1e0", "²", "9" * 20, "-", ""])
def test_a_position_is_written_in_one_way(step: str) -> None:
    assert at_steps([0, 1], (step,)) is NOTHING
