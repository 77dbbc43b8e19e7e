"""Rows of promptfoo's tables of tests: columns that begin with `__` are settings, all others variables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agentv.api.convert.files import is_file
from agentv.api.convert.promptfoo.assertions import DETERMINISTIC, JUDGED, WITHOUT
from agentv.api.convert.promptfoo.text import split_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.api.convert.report import Place

_ASSERTION = re.compile(r"(not-)?([a-z][a-z0-9:-]*?)(?:\((\d+(?:\.\d+)?)\))?(?::([\s\S]*))?")
_PREFIXES = {
    "javascript:": "javascript",
    "fn:": "javascript",
    "eval:": "javascript",
    "grade:": "llm-rubric",
    "llm-rubric:": "llm-rubric",
    "python:": "python",
}
_WITH_THRESHOLD = {
    *("answer-relevance", "classifier", "context-faithfulness", "context-recall", "context-relevance", "cost"),
    *("latency", "levenshtein", "perplexity-score", "perplexity", "rouge-n", "similar", "starts-with"),
}
_LISTS = {"contains-all", "contains-any", "icontains-all", "icontains-any"}
_THRESHOLD = re.compile(r"__config:__expected(\d*):threshold")
_TEXTS = {"__description": "description", "__providerOutput": "providerOutput", "__metric": "metric"}


def assertion_from_text(text: str) -> dict[str, Any]:
    """Return the assertion that a cell of a table stands for; a text of no other form has to be equal."""
    for prefix, kind in _PREFIXES.items():
        if text.startswith(prefix):
            value = text.removeprefix(prefix)
            return {"type": kind, "value": value if kind == "llm-rubric" else value.strip()}
    if is_file(text):
        return {"type": "python" if ".py" in text else "javascript", "value": text}
    match = _known_assertion(text)
    if match is None:
        return {"type": "equals", "value": text}
    negation, name, threshold, value = match.groups()
    entry: dict[str, Any] = {"type": f"{negation or ''}{name}"}
    if name in _LISTS:
        entry["value"] = split_values(value) if value else value
    elif value is not None:
        entry["value"] = value if name in {"contains-json", "is-json"} else value.strip()
    if name in _WITH_THRESHOLD:
        entry["threshold"] = float(threshold) if threshold else 0.8 if name == "similar" else 0.75
    return entry


def _known_assertion(text: str) -> re.Match[str] | None:
    """Match a text that begins with the name of an assertion; names with a colon in them come first."""
    for name in sorted((*DETERMINISTIC, *JUDGED, *WITHOUT), key=len, reverse=True):
        if text.removeprefix("not-").startswith(name):
            pattern = rf"(not-)?({re.escape(name)})(?:\((\d+(?:\.\d+)?)\))?(?::([\s\S]*))?"
            match = re.fullmatch(pattern, text)
            if match is not None:
                return match
    return None


def test_from_row(row: Mapping[str, str], place: Place) -> dict[str, Any]:
    """Return the test of a row."""
    test: dict[str, Any] = {"vars": {name: value for name, value in row.items() if not name.startswith("__")}}
    asserts: list[dict[str, Any]] = []
    thresholds: dict[int, float] = {}
    for name, value in row.items():
        if not name.startswith("__") or not value.strip():
            continue
        if name.startswith("__expected"):
            asserts.append(assertion_from_text(value.strip()))
        elif (setting := _THRESHOLD.fullmatch(name)) is not None:
            thresholds[int(setting[1] or 1) - 1] = _number(value, name, place) or 0.0
        else:
            _add_setting(test, name, value, place)
    for at, number in thresholds.items():
        if at < len(asserts):
            asserts[at]["threshold"] = number
    metric = test.pop("metric", None)
    test["assert"] = [{**entry, "metric": metric} for entry in asserts] if metric else asserts
    return test


def _add_setting(test: dict[str, Any], name: str, value: str, place: Place) -> None:
    if name in {"__prefix", "__suffix"}:
        test.setdefault("options", {})[name.removeprefix("__")] = value
    elif name in _TEXTS:
        test[_TEXTS[name]] = value
    elif name == "__threshold":
        test["threshold"] = _number(value, name, place)
    elif name.startswith("__metadata:"):
        key = name.removeprefix("__metadata:")
        items = [part.strip().replace("\\,", ",") for part in re.split(r"(?<!\\),", value)]
        test.setdefault("metadata", {})[key.removesuffix("[]")] = items if key.endswith("[]") else value
    else:
        place.leave_out(name, "this column has no counterpart")


def _number(text: str, name: str, place: Place) -> float | None:
    try:
        return float(text)
    except ValueError:
        place.leave_out(name, f"{text!r} is no number")
        return None
