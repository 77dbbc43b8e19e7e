"""promptfoo's assertions about texts, data and costs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentv.api.convert.base import UntranslatableError
from agentv.api.convert.promptfoo import scripts
from agentv.api.convert.templates import js_text
from agentv.evaluators.json_schema import check_schema
from agentv.matching.javascript import InvalidPatternError, JavaScriptRegexError, is_same_in_python, translate_pattern
from agentv.matching.matchers import bad_pattern
from agentv.spec.yaml import YamlError, read_yaml

if TYPE_CHECKING:
    from agentv.api.convert.promptfoo.assertions import Assertion

CHECKS = "promptfoo_checks.py"
DEFAULT_DISTANCE = 5
_INVALID = "JavaScript cannot read its pattern, so that promptfoo fails it every time, and so does this"


def split_values(text: str) -> list[str]:
    """Split a text at commas, as promptfoo does: quoted parts stay whole, empty ones are dropped."""
    values: list[str] = []
    at = 0
    while at < len(text):
        if text[at] in ", \t\r\n":
            at += 1
        elif text[at] == '"':
            field, at = _quoted(text, at + 1)
            values.append(field)
            if text[at:].strip()[:1] not in {"", ","}:
                msg = "a quoted part of its value ends before a comma"
                raise UntranslatableError(msg)
        else:
            end = text.find(",", at)
            end = len(text) if end < 0 else end
            values.append(text[at:end].strip())
            at = end
    return values


def _quoted(text: str, at: int) -> tuple[str, int]:
    field = ""
    while at < len(text):
        if text[at] == "\\" and text[at + 1 : at + 2] in {'"', "\\"}:
            field, at = field + text[at + 1], at + 2
        elif text.startswith('""', at):
            field, at = field + '"', at + 2
        elif text[at] == '"':
            return field, at + 1
        else:
            field, at = field + text[at], at + 1
    msg = "a quoted part of its value does not end"
    raise UntranslatableError(msg)


def _contains(assertion: Assertion) -> dict[str, Any]:
    if isinstance(assertion.value, bool):
        msg = "promptfoo refuses a value that is neither a text nor a number"
        raise UntranslatableError(msg)
    evaluator: dict[str, Any] = {"type": "contains", "value": assertion.text_value()}
    return assertion.negate(_ignore_case(evaluator, assertion))


def _ignore_case(evaluator: dict[str, Any], assertion: Assertion) -> dict[str, Any]:
    return {**evaluator, "ignore_case": True} if assertion.type.startswith("icontains") else evaluator


def _values(assertion: Assertion) -> list[str]:
    value = assertion.value
    items = split_values(value) if isinstance(value, str) else value
    if not isinstance(items, list) or not items or not all(isinstance(item, (str, int, float)) for item in items):
        msg = "its value is no list of texts"
        raise UntranslatableError(msg)
    values = [js_text(item) for item in items]
    if not all(values):
        msg = "an empty text is in every answer"
        raise UntranslatableError(msg)
    return values


def _contains_all(assertion: Assertion) -> dict[str, Any]:
    values = _values(assertion)
    if assertion.graded and len(values) > 1:
        # The score of `all` is a share, promptfoo's is 1 or 0: one pattern has no share.
        flags = "(?si)" if assertion.type.startswith("icontains") else "(?s)"
        pattern = flags + r"\A" + "".join(f"(?=.*{re.escape(value)})" for value in values)
        return assertion.negate({"type": "regex", "pattern": pattern})
    evaluator = _ignore_case({"type": "contains", "all": values}, assertion)
    return assertion.negate(evaluator, is_partial=len(values) > 1)


def _contains_any(assertion: Assertion) -> dict[str, Any]:
    values = _values(assertion)
    if assertion.negated and not assertion.graded:
        return _ignore_case({"type": "contains", "none": values}, assertion)
    return assertion.negate(_ignore_case({"type": "contains", "any": values}, assertion))


def _equals(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if value is None:
        msg = "it has no value"
        raise UntranslatableError(msg)
    if isinstance(value, (Mapping, list)):
        return assertion.negate({"type": "equals", "value": literal(value)})
    return assertion.negate({"type": "equals", "value": js_text(value)})


def literal(value: Any) -> Any:
    """Return expected data so that keys which begin with `$` are not read as matchers."""
    return {"$literal": value} if _has_operator(value) else value


def _has_operator(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(str(key).startswith("$") or _has_operator(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_operator, value))


def _starts_with(assertion: Assertion) -> dict[str, Any]:
    if not isinstance(assertion.value, str):
        msg = "promptfoo refuses a value that is no text"
        raise UntranslatableError(msg)
    return assertion.negate({"type": "starts_with", "value": assertion.text_value()})


def _regex(assertion: Assertion) -> dict[str, Any]:
    pattern = assertion.value
    if not isinstance(pattern, str) or not pattern:
        msg = "its value is no pattern"
        raise UntranslatableError(msg)
    try:
        return assertion.negate({"type": "regex", **javascript_pattern(pattern)})
    except InvalidPatternError as error:
        assertion.place.note("regex", f"{_INVALID}: {error}")
        return scripts.convert_transformed(assertion)
    except JavaScriptRegexError:
        return scripts.convert_transformed(assertion)


def javascript_pattern(pattern: str) -> dict[str, Any]:
    """Return the keys of `regex` for a pattern of JavaScript; raise `JavaScriptRegexError`."""
    translate_pattern(pattern)
    if is_same_in_python(pattern) and bad_pattern(pattern) is None:
        return {"pattern": pattern}
    return {"pattern": pattern, "syntax": "javascript"}


def _json_schema(assertion: Assertion) -> Any:
    value = assertion.value
    if isinstance(value, str):
        try:
            value = read_yaml(value.encode()).data
        except YamlError as error:
            msg = f"its schema cannot be read: {error}"
            raise UntranslatableError(msg) from error
    if value is None or value == "":
        return None
    if not isinstance(value, dict):
        msg = "its value is no JSON Schema"
        raise UntranslatableError(msg)
    problems = check_schema(value, "schema")
    if problems:
        msg = f"its schema is not valid: {problems[0].message}"
        raise UntranslatableError(msg)
    return value


def _is_json(assertion: Assertion) -> dict[str, Any]:
    schema = _json_schema(assertion)
    if schema is not None and _has_format(schema):
        function = f"{assertion.scope.conversion.helper(CHECKS)}:is_json"
        return assertion.negate({"type": "python", "function": function, "config": {"schema": schema}})
    return assertion.negate({"type": "json"} if schema is None else {"type": "json", "schema": schema})


def _has_format(schema: Any) -> bool:
    """Return whether a schema has `format`, which promptfoo checks and our `json` does not."""
    if isinstance(schema, Mapping):
        return isinstance(schema.get("format"), str) or any(map(_has_format, schema.values()))
    return isinstance(schema, list) and any(map(_has_format, schema))


def _contains_json(assertion: Assertion) -> dict[str, Any]:
    schema = _json_schema(assertion)
    return assertion.negate(_check(assertion, "contains_json", {} if schema is None else {"schema": schema}))


def _check(assertion: Assertion, name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `python` evaluator with a function of the helper file."""
    function = f"{assertion.scope.conversion.helper(CHECKS)}:{name}"
    evaluator: dict[str, Any] = {"type": "python", "function": function}
    return {**evaluator, "config": dict(config)} if config else evaluator


def _xml(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if isinstance(value, Mapping):
        value = value.get("requiredElements")
        if value is not None and not isinstance(value, list):
            msg = "promptfoo refuses `requiredElements` that are no list"
            raise UntranslatableError(msg)
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        msg = "its value names no elements"
        raise UntranslatableError(msg)
    name = "is_xml" if assertion.type == "is-xml" else "contains_xml"
    return assertion.negate(_check(assertion, name, {"elements": value} if value else {}))


def _levenshtein(assertion: Assertion) -> dict[str, Any]:
    distance = assertion.threshold
    limit = DEFAULT_DISTANCE if distance is None else int(distance)
    if limit < 0:
        msg = "its threshold is negative"
        raise UntranslatableError(msg)
    if not isinstance(assertion.value, str):
        msg = "its value is no text"
        raise UntranslatableError(msg)
    return assertion.negate({"type": "levenshtein", "value": assertion.value, "max_distance": limit})


def _word_count(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if isinstance(value, str) and re.fullmatch(r"\s*\d+\s*", value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return assertion.negate({"type": "word_count", "min": value, "max": value})
    if not isinstance(value, Mapping):
        msg = "its value is no number of words"
        raise UntranslatableError(msg)
    bounds = {key: value[key] for key in ("min", "max") if isinstance(value.get(key), int)}
    if not bounds or any(bound < 0 for bound in bounds.values()):
        msg = "its value has neither `min` nor `max`"
        raise UntranslatableError(msg)
    return assertion.negate({"type": "word_count", **bounds})


def _limit(type_: str, key: str) -> Callable[[Assertion], dict[str, Any]]:
    def convert(assertion: Assertion) -> dict[str, Any]:
        if assertion.threshold is None or assertion.threshold < 0:
            msg = "it has no threshold"
            raise UntranslatableError(msg)
        return assertion.negate({"type": type_, key: assertion.threshold})

    return convert


def _finish_reason(assertion: Assertion) -> dict[str, Any]:
    value = assertion.text_value()
    return assertion.negate({"type": "equals", "on": "metadata.finish_reason", "value": value, "ignore_case": True})


def _guardrails(assertion: Assertion) -> dict[str, Any]:
    # `not-guardrails` passes when something was flagged.
    return {"type": "equals", "on": "metadata.guardrails.flagged", "value": assertion.negated}


def _refusal(assertion: Assertion) -> dict[str, Any]:
    return assertion.negate({"type": "refusal"})


CONVERTERS: dict[str, Callable[[Assertion], dict[str, Any]]] = {
    "contains": _contains,
    "icontains": _contains,
    "contains-all": _contains_all,
    "icontains-all": _contains_all,
    "contains-any": _contains_any,
    "icontains-any": _contains_any,
    "equals": _equals,
    "starts-with": _starts_with,
    "regex": _regex,
    "is-json": _is_json,
    "contains-json": _contains_json,
    "is-xml": _xml,
    "contains-xml": _xml,
    "levenshtein": _levenshtein,
    "word-count": _word_count,
    "latency": _limit("latency_budget", "max_ms"),
    "cost": _limit("cost_budget", "max_usd"),
    "finish-reason": _finish_reason,
    "guardrails": _guardrails,
    "is-refusal": _refusal,
}
