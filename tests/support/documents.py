"""Documents made up from our JSON Schema, and what the schema and the loader have to say about them."""

import re
from functools import cache
from typing import Any

import hypothesis.strategies as st
from jsonschema import Draft202012Validator

from agentv.errors import Problem, SpecError
from agentv.spec.loader import load_data
from agentv.spec.schema import eval_schema

EVAL = eval_schema()
PARTS: dict[str, Any] = EVAL["$defs"]
READS_EVAL = Draft202012Validator(EVAL)

LEAVES = st.none() | st.booleans() | st.integers(-9, 99) | st.text("ab$*{}é", max_size=4)
ANYTHING = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab"), inner))
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6) | st.text("ab $*{}/", max_size=6)


@cache
def part(name: str) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: documents(PARTS[name]))  # an evaluator may hold evaluators


def documents(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Data that the schema allows: lists are short, and few of many optional keys are present."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        if "not" in schema:
            refused = Draft202012Validator(schema["not"])
            return part(name).filter(lambda document: not refused.is_valid(document))
        return documents(both(PARTS[name], {"required": schema["required"]})) if "required" in schema else part(name)
    if "anyOf" in schema:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        choices = [choice for choice in schema["anyOf"] if "properties" not in choice]  # plugins aside
        return st.one_of([documents(both(rest, choice)) for choice in choices])
    return st.sampled_from(schema["enum"]) if "enum" in schema else typed(schema)


def both(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    required = [*first.get("required", []), *second.get("required", [])]
    return {**first, **second, "required": required} if required else {**first, **second}


def typed(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    makers = {"string": strings, "array": lists, "object": objects, "number": numbers}
    kind = schema.get("type")
    if kind in makers:
        return makers[kind](schema)
    others = {"null": st.none(), "boolean": st.booleans(), None: ANYTHING}
    return st.integers(schema.get("minimum"), schema.get("maximum")) if kind == "integer" else others[kind]


def strings(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    refused = Draft202012Validator(schema.get("not", False))
    allowed = re.compile(schema.get("pattern", ""))
    fits = TEXTS.filter(lambda text: len(text) >= schema.get("minLength", 0) and not refused.is_valid(text))
    return fits.filter(lambda text: allowed.search(text) is not None)


def lists(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    return st.lists(documents(schema.get("items", {})), min_size=schema.get("minItems", 0), max_size=3)


def numbers(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    above, high = schema.get("exclusiveMinimum"), schema.get("maximum", 1e300)
    low = schema.get("minimum", -1e300) if above is None else above
    return st.just(high) | st.just(1) | st.floats(low, high, exclude_min=above is not None)


def objects(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    optional = [name for name in properties if name not in required]
    others = schema.get("additionalProperties", {})
    made = {name: documents(properties[name]) for name in properties}
    names = st.lists(st.sampled_from(optional), unique=True, max_size=4) if optional else st.just([])
    known = names.flatmap(lambda chosen: st.fixed_dictionaries({name: made[name] for name in [*required, *chosen]}))
    if others is False:
        return known
    least = schema.get("minProperties", 0)
    keys = st.text("xyz", min_size=1, max_size=3)
    more = st.dictionaries(keys, documents(others), min_size=least, max_size=max(2, least))
    return st.builds(lambda first, second: {**second, **first}, known, more)


def complaints(validator: Draft202012Validator, document: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]


# What a schema ought to have refused; it cannot say what makes a program's name, a reason to skip, and the like.
SHAPE = re.compile(r"(^|: )(unknown key|required(?! with)|[Ee]xpected (?!the |true|a program|a list with one item))")


def problems_of(data: Any) -> tuple[Problem, ...]:
    """Return the problems that the loader reports; any exception other than a `SpecError` is a bug."""
    try:
        load_data(data)
    except SpecError as error:
        return error.problems
    return ()


def misfits(data: Any) -> list[Problem]:
    """The loader's complaints about the shape of an eval."""
    problems = problems_of(data)
    assert all(problem.path or problem.about == "whole" for problem in problems)
    return [problem for problem in problems if SHAPE.search(problem.message)]


def whole(**changes: Any) -> dict[str, Any]:
    """A small eval with some of it exchanged."""
    case = {"id": "a", "input": "Hi", "evaluators": [{"type": "tool_trajectory", "maximums": {"*": 3}}]}
    return {"targets": [{"name": "t", "provider": "mock"}], "cases": [case], **changes}
