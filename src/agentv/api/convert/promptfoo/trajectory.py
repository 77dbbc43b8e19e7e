"""promptfoo's assertions about tool calls and spans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentv.api.convert.base import UntranslatableError
from agentv.api.convert.promptfoo.scripts import CHECKS
from agentv.api.convert.promptfoo.text import literal, split_values

if TYPE_CHECKING:
    from agentv.api.convert.promptfoo.assertions import Assertion

_CASE = "names of tools are compared with regard to case here, which is stricter"
_SPANS = "have the target send its spans as `spans` in its reply: each with a name, startTime, endTime and statusCode"


def _matcher(value: Any) -> str:
    """Return the name or the glob of one step; raise `UntranslatableError`."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Mapping):
        if value.get("type", "tool") != "tool":
            msg = f"steps of type {value['type']!r} are no tool calls"
            raise UntranslatableError(msg)
        name = value.get("pattern") or value.get("name")
        if isinstance(name, str) and name:
            return name
    msg = "it names no tool"
    raise UntranslatableError(msg)


def _count(value: Mapping[str, Any], key: str) -> int | None:
    number = value.get(key)
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        msg = f"its `{key}` is no number of calls"
        raise UntranslatableError(msg)
    return number


def _binary(evaluator: dict[str, Any], *, constraints: int) -> dict[str, Any]:
    """Return the evaluator with a score of 1 or 0."""
    return {**evaluator, "score": "binary"} if constraints > 1 else evaluator


def _note_case(assertion: Assertion) -> None:
    assertion.place.note(f"{'not-' if assertion.negated else ''}{assertion.type}", _CASE)


def _call_check(assertion: Assertion, name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a check of calls in Python: `tool_trajectory` would miss a tool that promptfoo finds in another case."""
    function = f"{assertion.scope.conversion.helper(CHECKS)}:{name}"
    return {"type": "python", "function": function, "config": dict(config)}


def _counted(assertion: Assertion, name: str, bounds: Mapping[str, int | None]) -> dict[str, Any]:
    config = {"tool": name, **{key: bound for key, bound in bounds.items() if bound is not None}}
    return assertion.negate(_call_check(assertion, "tool_count", config))


def _tool_used(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list):
        names = [_matcher(item) for item in value]
        if not names:
            msg = "it names no tool"
            raise UntranslatableError(msg)
        if assertion.negated:
            return _call_check(assertion, "tools_not_used", {"tools": names})
        _note_case(assertion)
        minimums = dict.fromkeys(names, 1)
        return _binary({"type": "tool_trajectory", "minimums": minimums}, constraints=len(names))
    if not isinstance(value, Mapping):
        msg = "it names no tool"
        raise UntranslatableError(msg)
    name = _matcher(value)
    least, most = _count(value, "min"), _count(value, "max")
    least = 1 if least is None else least
    if most is None and least == 0:
        msg = "a minimum of 0 without a maximum holds for every run"
        raise UntranslatableError(msg)
    if most is not None or assertion.negated:
        return _counted(assertion, name, {"min": least, "max": most})
    _note_case(assertion)
    return {"type": "tool_trajectory", "minimums": {name: least}}


def _tool_args(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if not isinstance(value, Mapping):
        msg = "its value is no mapping"
        raise UntranslatableError(msg)
    name = _matcher(value)
    if "args" not in value and "arguments" not in value:
        msg = "it has no `args`"
        raise UntranslatableError(msg)
    mode = value.get("mode", "partial")
    if mode not in {"partial", "exact"}:
        msg = f"its mode {mode!r} is unknown"
        raise UntranslatableError(msg)
    if assertion.negated:
        keys = ("mode", "defaults", "ignore")
        config = {"tool": name, "args": value.get("args", value.get("arguments"))}
        config |= {key: value[key] for key in keys if value.get(key) is not None}
        return assertion.negate(_call_check(assertion, "tool_args", config))
    _note_case(assertion)
    expected = {"tool": name, "input": literal(value.get("args", value.get("arguments")))}
    evaluator: dict[str, Any] = {"type": "tool_trajectory", "mode": "superset"}
    if mode == "partial":
        evaluator["input_match"] = "partial"
    evaluator["expected"] = [expected]
    rule: dict[str, Any] = {}
    if isinstance(value.get("defaults"), Mapping) and value["defaults"]:
        rule["defaults"] = value["defaults"]
    ignore = value.get("ignore")
    if ignore:
        rule["ignore"] = [ignore] if isinstance(ignore, str) else list(ignore)
    if rule:
        evaluator["tools"] = {name: rule}
    return assertion.negate(evaluator)


def _tool_sequence(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    steps = value.get("steps") if isinstance(value, Mapping) else value
    mode = value.get("mode", "in_order") if isinstance(value, Mapping) else "in_order"
    if not isinstance(steps, list) or not steps or mode not in {"in_order", "exact"}:
        msg = "it has no steps, or its mode is unknown"
        raise UntranslatableError(msg)
    names = [_matcher(step) for step in steps]
    if assertion.negated:
        return assertion.negate(_call_check(assertion, "tool_sequence", {"tools": names, "mode": mode}))
    _note_case(assertion)
    return {"type": "tool_trajectory", "mode": mode, "expected": [{"tool": name} for name in names]}


def _step_count(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if not isinstance(value, Mapping):
        msg = "its value is no mapping"
        raise UntranslatableError(msg)
    bounds = {key: number for key in ("min", "max") if (number := _count(value, key)) is not None}
    if not bounds:
        msg = "it has neither `min` nor `max`"
        raise UntranslatableError(msg)
    if value.get("type") in ("tool", ["tool"]):
        name = value.get("pattern") or value.get("name")
        if name and ("max" in bounds or assertion.negated):
            return _counted(assertion, str(name), {"min": bounds.get("min", 0), "max": bounds.get("max")})
        evaluator: dict[str, Any] = {"type": "tool_call_count", **({"tool": name} if name else {}), **bounds}
        if name:
            _note_case(assertion)
        return assertion.negate(evaluator, is_partial=len(bounds) > 1)
    config = {key: value[key] for key in ("type", "pattern", "name") if key in value}
    return assertion.negate(_spans(assertion, "step_count", {**config, **bounds}))


def _spans(assertion: Assertion, name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    assertion.place.note(assertion.type, _SPANS)
    function = f"{assertion.scope.conversion.helper(CHECKS)}:{name}"
    return {"type": "python", "function": function, "config": dict(config)}


def _span_count(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if not isinstance(value, Mapping) or not isinstance(value.get("pattern"), str):
        msg = "it has no `pattern`"
        raise UntranslatableError(msg)
    config = {key: value[key] for key in ("pattern", "min", "max") if value.get(key) is not None}
    return _spans(assertion, "span_count", config)


def _span_duration(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if not isinstance(value, Mapping) or not isinstance(value.get("max"), (int, float)):
        msg = "it has no `max`"
        raise UntranslatableError(msg)
    config = {key: value[key] for key in ("pattern", "max", "percentile") if value.get(key) is not None}
    return _spans(assertion, "span_duration", config)


def _error_spans(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if isinstance(value, (int, float)):
        value = {"max_count": value}
    if value is not None and not isinstance(value, Mapping):
        msg = "its value is neither a number nor a mapping"
        raise UntranslatableError(msg)
    given = value or {}
    config = {key: given[key] for key in ("pattern", "max_count", "max_percentage") if given.get(key) is not None}
    return _spans(assertion, "error_spans", config)


def _tool_call_f1(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    names = split_values(value) if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        msg = "its value is no list of tools"
        raise UntranslatableError(msg)
    function = f"{assertion.scope.conversion.helper(CHECKS)}:tool_call_f1"
    evaluator: dict[str, Any] = {"type": "python", "function": function, "config": {"tools": names}}
    if assertion.threshold is not None and assertion.threshold < 1:
        evaluator["threshold"] = assertion.threshold
    return assertion.negate(evaluator, is_partial=True)


def _skill_used(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and names and all(isinstance(name, str) and name.strip() for name in names):
        expected = [{"tool": "Skill", "input": {"skill": name.strip()}} for name in names]
        shared = {"type": "tool_trajectory", "mode": "superset", "input_match": "partial"}
        if assertion.negated:  # none of them may be used
            inner = [{**shared, "expected": [entry], "not": True} for entry in expected]
            return inner[0] if len(inner) == 1 else {"type": "all_of", "evaluators": inner}
        return {**shared, "expected": expected}
    if not isinstance(value, Mapping):
        msg = "it names no skill"
        raise UntranslatableError(msg)
    function = f"{assertion.scope.conversion.helper(CHECKS)}:skill_used"
    config = {key: value[key] for key in ("name", "pattern", "min", "max") if value.get(key) is not None}
    return assertion.negate({"type": "python", "function": function, "config": config})


def _valid_calls(assertion: Assertion) -> dict[str, Any]:
    tools = assertion.scope.tools
    if tools is None:
        msg = "the tools are not the same for all providers"
        raise UntranslatableError(msg)
    schemas: dict[str, Any] = {}
    for tool in tools:
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            msg = "the tools of the provider cannot be read"
            raise UntranslatableError(msg)
        schemas[function["name"]] = function.get("parameters") or {"type": "object"}
    if not schemas:
        msg = "the provider has no tools to check calls against"
        raise UntranslatableError(msg)
    function_name = f"{assertion.scope.conversion.helper(CHECKS)}:valid_tool_calls"
    return assertion.negate({"type": "python", "function": function_name, "config": {"tools": schemas}})


CONVERTERS: dict[str, Callable[[Assertion], dict[str, Any]]] = {
    "trajectory:tool-used": _tool_used,
    "trajectory:tool-args-match": _tool_args,
    "trajectory:tool-sequence": _tool_sequence,
    "trajectory:step-count": _step_count,
    "trace-span-count": _span_count,
    "trace-span-duration": _span_duration,
    "trace-error-spans": _error_spans,
    "tool-call-f1": _tool_call_f1,
    "skill-used": _skill_used,
    "is-valid-openai-tools-call": _valid_calls,
    "is-valid-openai-function-call": _valid_calls,
    "is-valid-function-call": _valid_calls,
}
