"""Requests that are made of the OpenAPI description: each gets an answer of a described status and shape."""

from collections.abc import Iterator
from string import printable
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import json

from agentv.web.endpoints import LABEL_PATH
from agentv.web.openapi import describe_api
from tests.support.command import Command
from tests.support.examples import examples
from tests.support.viewer import store_file
from tests.support.viewer_server import Answer, Served, serve

DESCRIPTION = describe_api()
OPERATIONS = [(path, method) for path, methods in DESCRIPTION["paths"].items() for method in methods]
ODD = (
    "",
    "%",
    "..",
    "../../etc/passwd",
    "\0",
    "\ud7ff",
    "' OR 1=1 --",
    "99999999999999999999",
    "-1",
    "1e3",
    "nan",
    "a" * 600,
)
TEXTS = st.one_of(st.sampled_from(ODD), st.text(printable, max_size=20), st.text(max_size=10))
FUZZ = settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def own(project: Command) -> Iterator[Served]:
    """Serve a store to which labels may be added."""
    with serve(store_file(project)) as viewer:
        yield viewer


def values_of(schema: dict[str, Any], known: dict[str, list[str]], name: str) -> st.SearchStrategy[str]:
    """Return values of a parameter: most of them valid, or known in this store, and some of them not."""
    if schema["type"] == "array":
        chosen = st.lists(st.sampled_from(schema["items"]["enum"]), max_size=3).map(",".join)
    elif "enum" in schema:
        chosen = st.sampled_from(schema["enum"])
    elif schema["type"] == "boolean":
        chosen = st.sampled_from(["true", "false"])
    elif schema["type"] == "integer":
        chosen = st.integers(schema["minimum"], schema["maximum"]).map(str)
    else:
        chosen = st.sampled_from(known[name]) if name in known else TEXTS
    return st.one_of(chosen, chosen, chosen, TEXTS)


def known_values(viewer: Served) -> dict[str, list[str]]:
    """Return values that lead to an answer."""
    page = viewer.get("executions/last/runs?limit=3").data
    execution = page["runs"][0]["execution_id"]
    names = [execution, "last"]
    runs = [run["id"] for run in page["runs"]]
    return {
        "execution": names,
        "a": names,
        "b": names,
        "run": runs,
        "cursor": [page["next"]],
        "case_id": ["refund-1", "greeting"],
        "tool": ["refund"],
        "tag": ["money"],
        "target": ["hasty"],
        "text": ["refund"],
        "evaluator": ["approval first"],
        "failure": ["missing call: ask_approval"],
        "eval_id": ["support"],
        "persona": [""],
    }


def check(answer: Answer, path: str, method: str) -> None:
    """Compare an answer with the description."""
    responses = DESCRIPTION["paths"][path][method]["responses"]
    assert str(answer.status) in responses, (answer.status, answer.body[:500])
    content = responses[str(answer.status)]["content"]
    kind = answer.headers["Content-Type"].partition(";")[0]
    assert kind in content
    if kind == "application/json" and "contentEncoding" not in content[kind]["schema"]:
        schema = {**content[kind]["schema"], "components": DESCRIPTION["components"]}
        Draft202012Validator(schema).validate(answer.data)


@FUZZ
@given(data=st.data())
def test_each_request_gets_a_described_answer(own: Served, data: st.DataObject) -> None:
    path, method = data.draw(st.sampled_from([each for each in OPERATIONS if each[1] == "get"]))
    known = known_values(own)
    address, query = path, []
    for parameter in DESCRIPTION["paths"][path][method]["parameters"]:
        name = parameter["name"]
        if parameter["in"] == "path":
            text = data.draw(
                values_of(parameter["schema"], known, name).filter(lambda text: text not in ("", ".", ".."))
            )
            address = address.replace(f"{{{name}}}", quote(text, safe=""))
        elif data.draw(st.integers(0, 9)) < (9 if parameter["required"] else 2):
            query.append((name, data.draw(values_of(parameter["schema"], known, name))))
    if data.draw(st.integers(0, 19)) == 0:
        query.append((data.draw(TEXTS), "1"))
    check(own.get(f"{address}?{urlencode(query)}"), path, method)


BODIES = st.one_of(
    st.fixed_dictionaries(
        {"label": st.sampled_from(["pass", "fail", None])}, optional={"note": st.text(max_size=50)}
    ).map(json.encode),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists).map(json.encode),
    st.binary(max_size=50),
)


@FUZZ
@given(body=BODIES, has_token=st.integers(0, 9).map(bool), name=st.none() | TEXTS.filter(bool))
def test_a_label_of_any_body_gets_a_described_answer(
    own: Served, body: bytes, name: str | None, *, has_token: bool
) -> None:
    run = name if name not in (None, ".", "..") else known_values(own)["run"][0]
    headers = {"Content-Type": "application/json", "X-Agentv-Token": own.protection.write_token if has_token else "no"}
    answer = own.request("PUT", LABEL_PATH.replace("{run}", quote(str(run), safe="")), body, headers)
    check(answer, LABEL_PATH, "put")
