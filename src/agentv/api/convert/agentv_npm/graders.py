"""AgentV's graders that measure, compare fields, or ask a model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentv.api.convert.base import UntranslatableError, Watched
from agentv.api.convert.files import read_text
from agentv.api.convert.promptfoo.text import literal
from agentv.api.convert.templates import has_template

if TYPE_CHECKING:
    from agentv.api.convert.source import Place

_STEP = re.compile(r"[^.\[\]]+")
_LIMITS: dict[str, tuple[str, str]] = {
    "max_tool_calls": ("tool_call_count", "max"),
    "max_llm_calls": ("turn_budget", "max"),
    "max_tokens": ("token_budget", "max_total"),
    "max_cost_usd": ("cost_budget", "max_usd"),
    "max_duration_ms": ("latency_budget", "max_ms"),
}
_TOKENS = {
    "max_total": "max_total",
    "max_total_tokens": "max_total",
    "max_input": "max_input",
    "max_output": "max_output",
}


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _execution_metrics(entry: Mapping[str, Any], place: Place) -> dict[str, Any]:
    found = [{"type": type_, key: entry[name]} for name, (type_, key) in _LIMITS.items() if _number(entry.get(name))]
    if entry.get("target_exploration_ratio") is not None:
        msg = "the share of reading calls (`target_exploration_ratio`) has no counterpart"
        if not found:
            raise UntranslatableError(msg)
        place.at("target_exploration_ratio").leave_out("execution-metrics.target_exploration_ratio", msg)
    if not found:
        msg = "it has no limit"
        raise UntranslatableError(msg)
    return found[0] if len(found) == 1 else {"type": "all_of", "evaluators": found}


def _limit(type_: str, key: str, *names: str) -> Callable[[Mapping[str, Any], Place], dict[str, Any]]:
    def convert(entry: Mapping[str, Any], place: Place) -> dict[str, Any]:
        del place
        value = next((entry[name] for name in names if _number(entry.get(name))), None)
        if value is None:
            msg = "it has no limit"
            raise UntranslatableError(msg)
        return {"type": type_, key: value}

    return convert


def _token_usage(entry: Mapping[str, Any], place: Place) -> dict[str, Any]:
    del place
    limits = {ours: int(entry[theirs]) for theirs, ours in _TOKENS.items() if _number(entry.get(theirs))}
    if not limits:
        msg = "it has no limit"
        raise UntranslatableError(msg)
    return {"type": "token_budget", **limits}


def field_accuracy(entry: Mapping[str, Any], expected: Any) -> dict[str, Any]:
    """Return a check of each field of a JSON answer against the expected one."""
    wanted = _expected_object(expected)
    fields = entry.get("fields")
    if not isinstance(fields, list) or not fields:
        msg = "it names no fields"
        raise UntranslatableError(msg)
    found = [_field(item, wanted) for item in fields]
    if entry.get("aggregation") == "all_or_nothing":
        # A score of 1 or 0: turned round twice, a composite has no share.
        return {"type": "all_of", "not": True, "evaluators": [{"type": "all_of", "not": True, "evaluators": found}]}
    return found[0] if len(found) == 1 else {"type": "all_of", "evaluators": found}


def _expected_object(expected: Any) -> Any:
    if isinstance(expected, list) and expected and isinstance(expected[-1], Mapping):
        expected = expected[-1].get("content", expected[-1])
    if isinstance(expected, str):
        try:
            expected = json.loads(expected)
        except ValueError:
            expected = None
    if not isinstance(expected, Mapping):
        msg = "the case has no expected object to compare fields with"
        raise UntranslatableError(msg)
    return expected


def _field(item: Any, wanted: Any) -> dict[str, Any]:
    path = item.get("path") if isinstance(item, Mapping) else None
    if not isinstance(path, str) or not path:
        msg = "a field has no path"
        raise UntranslatableError(msg)
    steps = _STEP.findall(path)
    value: Any = wanted
    for step in steps:
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, Mapping) and step in value:
            value = value[step]
        else:
            msg = f"the expected object has no field {path!r}"
            raise UntranslatableError(msg)
    pointer = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
    evaluator: dict[str, Any] = {
        "name": path,
        "type": "json",
        "pointer": pointer,
        "equals": _expected_value(item, value),
    }
    weight = item.get("weight")
    return {**evaluator, "weight": weight} if _number(weight) and weight != 1 else evaluator


def _expected_value(item: Mapping[str, Any], value: Any) -> Any:
    match = item.get("match", "exact")
    if match == "exact":
        return literal(value)
    if match == "numeric_tolerance" and isinstance(value, (int, float)):
        tolerance = item.get("tolerance", 0)
        if not _number(tolerance):
            msg = "the tolerance of a field is no number"
            raise UntranslatableError(msg)
        margin = abs(value) * tolerance if item.get("relative") else tolerance
        return {"$gte": value - margin, "$lte": value + margin}
    msg = f"fields that match by {match!r} have no counterpart"
    raise UntranslatableError(msg)


CONVERTERS: dict[str, Callable[[Mapping[str, Any], Place], dict[str, Any]]] = {
    "execution-metrics": _execution_metrics,
    "latency": _limit("latency_budget", "max_ms", "threshold", "max_ms", "max_duration_ms"),
    "cost": _limit("cost_budget", "max_usd", "budget", "max_usd", "threshold"),
    "token-usage": _token_usage,
}


HIGHEST = 10
"""AgentV's scales of score ranges end here."""


def convert_judge(
    entry: Mapping[str, Any], criteria: str, place: Place, render: Callable[[Any], Any]
) -> dict[str, Any]:
    """Return an `llm_judge` for a grader; raise `UntranslatableError`."""
    items = entry.get("criteria", entry.get("rubrics"))
    if items is None and isinstance(entry.get("value"), list):
        items = entry["value"]
    for key in ("temperature", "max_steps"):
        if entry.get(key) is not None:
            place.at(key).leave_out(f"{entry['type']}.{key}", "it is a setting of the judge's target")
    if isinstance(items, list) and items:
        if entry.get("prompt"):
            place.at("prompt").leave_out(
                f"{entry['type']}.prompt", "the judge has a prompt of its own: the rubric is kept"
            )
        key = next((key for key in ("criteria", "rubrics") if key in entry), "value")
        return {
            "type": "llm_judge",
            "rubric": [_item(item, place.at(key, at), render) for at, item in enumerate(items)],
        }
    text = next((entry[key] for key in ("value", "criteria", "prompt") if isinstance(entry.get(key), str)), None)
    sentence = _sentence(text, criteria, entry, place, render)
    return {"type": "llm_judge", "criterion": sentence}


def _sentence(text: Any, criteria: str, entry: Mapping[str, Any], place: Place, render: Callable[[Any], Any]) -> str:
    """Return what is judged: a sentence of the grader, the text of its prompt, or the criteria of the case."""
    written = str(text).strip() if isinstance(text, str) else ""
    if "prompt" in entry and written == str(entry["prompt"]).strip() and _names_a_file(written):
        path = place.document.folder / written.removeprefix("file://")
        if path.is_file() and path.suffix in {".md", ".txt"}:
            written = read_text(path).strip()
        elif not criteria:
            msg = f"its prompt {written!r} is a program, or does not exist"
            raise UntranslatableError(msg)
        else:
            place.leave_out(
                f"{entry['type']}.prompt", "its prompt is a program, or does not exist: the criteria are judged"
            )
            written = ""
    if has_template(written) and "prompt" in entry:
        if not criteria:
            msg = "its prompt is a template: write `prompt` of `llm_judge` with our variables"
            raise UntranslatableError(msg)
        place.leave_out(f"{entry['type']}.prompt", "its prompt is a template of its own: the criteria are judged")
        written = ""
    sentence = str(render(written)).strip() if written else criteria
    if not sentence:
        msg = "it has no criterion in words"
        raise UntranslatableError(msg)
    return sentence


def _names_a_file(text: str) -> bool:
    return "\n" not in text and (
        text.startswith(("file://", "./", "../")) or text.endswith((".md", ".txt", ".ts", ".js"))
    )


def _item(item: Any, place: Place, render: Callable[[Any], Any]) -> Any:
    if isinstance(item, str):
        return str(render(item)).strip()
    if not isinstance(item, Mapping):
        msg = "an item of its rubric is neither a sentence nor a mapping"
        raise UntranslatableError(msg)
    watched = Watched(item)
    result = _rubric_item(watched, render)
    watched.report(place, "rubric")
    return result


def _rubric_item(item: Mapping[str, Any], render: Callable[[Any], Any]) -> dict[str, Any]:
    outcome = item.get("outcome", item.get("description", item.get("expected_outcome")))
    if not isinstance(outcome, str) or not outcome.strip():
        msg = "an item of its rubric has no outcome"
        raise UntranslatableError(msg)
    text = str(render(outcome)).strip()
    if item.get("operator") == "contradiction":
        text = f"The answer makes no claim that is incompatible with this: {text}"
    result: dict[str, Any] = {}
    if item.get("id") is not None:
        result["id"] = str(item["id"])
    result["criterion"] = text
    weight = item.get("weight")
    if isinstance(weight, (int, float)) and weight != 1 and weight >= 0:
        result["weight"] = weight
    if item.get("required"):
        result["required"] = True
    ranges = _ranges(item.get("score_ranges"))
    if ranges:
        result["scores"] = ranges
        minimum = item.get("min_score")
        least = item.get("required_min_score", minimum * HIGHEST if isinstance(minimum, (int, float)) else None)
        if isinstance(least, (int, float)):
            result["min"] = round(least)
    return result


def _ranges(written: Any) -> dict[str, str]:
    """Return score ranges as ours: `0-3: meaning`."""
    found: list[tuple[int, int, str]] = []
    if isinstance(written, list):
        for item in written:
            bounds = item.get("score_range") if isinstance(item, Mapping) else None
            meaning = item.get("outcome", item.get("description", "")) if isinstance(item, Mapping) else ""
            if isinstance(bounds, list) and len(bounds) == 2:  # noqa: PLR2004 - its two ends
                found.append((int(bounds[0]), int(bounds[1]), str(meaning)))
    elif isinstance(written, Mapping):
        if all("-" in str(key) for key in written):
            for key, meaning in written.items():
                low, _, high = str(key).partition("-")
                found.append((int(low), int(high), str(meaning)))
        else:
            starts = sorted((int(key), str(meaning)) for key, meaning in written.items() if str(key).isdigit())
            for at, (start, meaning) in enumerate(starts):
                end = starts[at + 1][0] - 1 if at + 1 < len(starts) else max(start, HIGHEST)
                found.append((start, end, meaning))
    return {(f"{low}-{high}" if low != high else str(low)): meaning for low, high, meaning in sorted(found)}
