"""AgentV's graders of figures and of fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentv.api.convert.base import UntranslatableError
from agentv.api.convert.promptfoo.text import literal

if TYPE_CHECKING:
    from agentv.api.convert.report import Place

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
