"""Checks and Python providers of promptfoo as functions: what they do there, they do here.

`agentv convert-eval` puts this file beside an eval that needs it. Each function is one check of a `python` evaluator;
its parameters after the first are the keys of the evaluator's `config`. `call_provider` is a `python` target.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import math
import re
import textwrap
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import yaml

MAX_JSON = 100_000
TIMEOUT_S = 25


def contains_json(ctx: Any, schema: Any = None) -> tuple[bool, str]:
    """A JSON object stands somewhere in the answer, and meets the schema if there is one."""
    found = list(_objects(ctx.candidate))
    if not found:
        return False, "the answer contains no JSON object"
    if schema is None:
        return True, "the answer contains a JSON object"
    problems = [_schema_problem(value, schema) for value in found]
    if None in problems:
        return True, "a JSON object in the answer meets the schema"
    return False, f"no JSON object in the answer meets the schema: {problems[0]}"


def is_json(ctx: Any, schema: Any) -> tuple[bool, str]:
    """The answer is JSON that meets the schema, formats such as `date` included."""
    try:
        value = json.loads(ctx.candidate, parse_constant=_refuse_constant)
    except ValueError as error:
        return False, f"the answer is not JSON: {error}"
    problem = _schema_problem(value, schema)
    return problem is None, problem or "the answer meets the schema"


def _refuse_constant(name: str) -> Any:
    msg = f"{name} is no number of JSON"
    raise ValueError(msg)


def _objects(text: str) -> Any:
    """Yield the objects in a text, from each brace to the one that closes it."""
    at = 0
    while (at := text.find("{", at)) >= 0 and at + 1 < len(text):
        depth, end = 0, at
        while end < min(len(text), at + MAX_JSON):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        try:
            value = yaml.safe_load(re.sub(r"(?<![:\"'\w])//[^\n]*", "", text[at:end] + "}" * depth))
        except yaml.YAMLError:
            value = None
        if isinstance(value, dict):
            yield json.loads(json.dumps(value, default=str))
            at = end
        else:
            at += 1


def _schema_problem(value: Any, schema: Any) -> str | None:
    jsonschema = importlib.import_module("jsonschema")  # pip install agentv[schema]
    validator = jsonschema.validators.validator_for(schema)(schema, format_checker=jsonschema.FormatChecker())
    error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    return None if error is None else str(error.message)


def is_xml(ctx: Any, elements: list[str] | None = None) -> tuple[bool, str]:
    """The answer is one well-formed XML document with these elements."""
    return _check_xml(ctx.candidate.strip(), elements or [])


def contains_xml(ctx: Any, elements: list[str] | None = None) -> tuple[bool, str]:
    """A well-formed XML element stands somewhere in the answer, with these elements."""
    reason, whole = "the answer contains no XML element", 0
    for match in re.finditer(r"<([A-Za-z_][\w:.-]*)[^<>]*?(?:/>|>)", ctx.candidate):
        if match.start() < whole:
            continue  # a part of an element that lacks some of these
        rest = ctx.candidate[match.start() :]
        ends = [match.end() - match.start()] if match[0].endswith("/>") else []
        ends += [end.end() for end in re.finditer(rf"</{re.escape(match[1])}\s*>", rest)]
        for end in ends:
            held, reason = _check_xml(rest[:end], elements or [])
            if held:
                return True, reason
            if reason.startswith(_MISSING):
                whole = match.start() + end
    return False, reason


_MISSING = "elements are missing: "


def _check_xml(text: str, elements: list[str]) -> tuple[bool, str]:
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        return False, f"it is not well-formed XML: {error}"
    missing = [path for path in elements if not _has_element(root, path.split("."))]
    return not missing, f"{_MISSING}{', '.join(missing)}" if missing else "it is well-formed XML"


def _has_element(root: Any, steps: list[str]) -> bool:
    return root.tag == steps[0] and (len(steps) == 1 or root.find("/".join(steps[1:])) is not None)


def run_code(ctx: Any, code: str, **settings: Any) -> dict[str, Any]:
    """Run inline Python: one expression, or lines with `return`, over `output` and `context`."""
    lines = textwrap.indent(code, "    ") if "\n" in code else f"    return {code}"
    scope: dict[str, Any] = {}
    try:
        exec(f"import json\ndef main(output, context):\n{lines}\n", scope)
        result = scope["main"](_output(ctx, settings), _context(ctx, settings))
    except Exception as error:
        return {"score": 0, "misses": [f"it raised {type(error).__name__}: {error}"]}
    return _verdict(result, settings)


def run_file(ctx: Any, file: str, function: str = "get_assert", **settings: Any) -> dict[str, Any]:
    """Call a function of a file beside this one with `output` and `context`."""
    try:
        result = getattr(_load(file), function)(_output(ctx, settings), _context(ctx, settings))
    except Exception as error:
        return {"score": 0, "misses": [f"it raised {type(error).__name__}: {error}"]}
    return _verdict(result, settings)


def webhook(ctx: Any, url: str, **settings: Any) -> dict[str, Any]:
    """Post the output to a URL that answers `{"pass": true, "score": 1}`."""
    context = _context(ctx, settings)
    body = json.dumps({"output": ctx.candidate, "context": {"prompt": context["prompt"], "vars": context["vars"]}})
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
        return _verdict(json.load(reply), settings)


def _output(ctx: Any, settings: dict[str, Any]) -> Any:
    if settings.get("json_output"):
        try:
            return json.loads(ctx.candidate)
        except ValueError:
            pass
    return ctx.candidate


def _context(ctx: Any, settings: dict[str, Any]) -> dict[str, Any]:
    messages: Any = ctx.case.input_messages or ()
    alone = len(messages) == 1 and isinstance(messages[0].content, str)
    prompt = messages[0].content if alone else json.dumps([{"role": m.role, "content": m.content} for m in messages])
    values = dict(ctx.case.vars or {})
    return {
        "prompt": prompt,
        "vars": values,
        "config": settings.get("config") or {},
        "test": {"vars": values, "metadata": dict(ctx.case.metadata or {})},
        "metadata": dict(ctx.response.metadata or {}),
        "providerResponse": {"output": ctx.candidate, "metadata": dict(ctx.response.metadata or {})},
    }


def _verdict(result: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return our result for what a check of promptfoo returned; what it cannot read fails, as it does there."""
    inverse, threshold = bool(settings.get("inverse")), settings.get("threshold")
    reason = None
    try:
        result = _parsed(result)
    except ValueError as error:
        return {"score": 0, "misses": [str(error)]}
    if isinstance(result, bool):
        held = result != inverse
        score: float = 1.0 if held else 0.0
    elif isinstance(result, (int, float)):
        held = (result > 0 if threshold is None else result >= threshold) != inverse
        score = float(result)
    else:
        reason, score = result["reason"], float(result["score"])
        passed = result["pass"] and (threshold is None or score >= threshold)
        held = passed != inverse
        reason = reason if passed == held else None
    shown = min(1.0, max(0.0, score)) if settings.get("graded") else float(held)
    return {"score": shown, "hits" if held else "misses": [str(reason or f"the check gave {result!r}"[:500])]}


def _parsed(result: Any) -> Any:
    """Return a boolean, a number or a result with `pass`, `score` and `reason`; raise `ValueError` for others."""
    if isinstance(result, str):
        if result.lower() in {"true", "false"}:
            return result.lower() == "true"
        if not result.startswith("{"):
            number = re.match(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", result)
            result = float(number[0]) if number else result
        else:
            result = json.loads(result)
    if isinstance(result, dict):
        result = {("pass" if key in {"pass_", "pass"} else key): value for key, value in result.items()}
        score = result.get("score")
        if isinstance(result.get("pass"), bool) and isinstance(result.get("reason"), str) and _is_number(score):
            return result
    elif isinstance(result, bool) or _is_number(result):
        return result
    msg = f"the check returned {result!r:.200}, not a boolean, a number or a result with `pass`, `score` and `reason`"
    raise ValueError(msg)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def _calls(ctx: Any) -> list[Any]:
    if ctx.calls is None:
        msg = "the reply says nothing about tool calls"
        raise ValueError(msg)
    return list(ctx.calls)


def tools_not_used(ctx: Any, tools: list[str]) -> tuple[bool, str]:
    """None of these tools was called; their names are compared without regard to case, as in promptfoo."""
    used = sorted({call.tool for call in _calls(ctx) for pattern in tools if _fits(call.tool, pattern)})
    return not used, f"used {', '.join(used)}" if used else f"none of {', '.join(tools)} was used"


def tool_count(ctx: Any, tool: str, min: int = 1, max: int | None = None) -> tuple[bool, str]:
    """A tool was called so many times; its name is compared without regard to case."""
    count = sum(_fits(call.tool, tool) for call in _calls(ctx))
    return min <= count and (max is None or count <= max), f"{tool} was called {count} times"


def tool_sequence(ctx: Any, tools: list[str], mode: str = "in_order") -> tuple[bool, str]:
    """Tools were called in this order; their names are compared without regard to case."""
    called = [call.tool for call in _calls(ctx)]
    if mode == "exact":
        held = len(called) == len(tools) and all(map(_fits, called, tools))
    else:
        at = 0
        for name in called:
            at += at < len(tools) and _fits(name, tools[at])
        held = at == len(tools)
    return held, f"called: {', '.join(called)}"


def tool_args(
    ctx: Any,
    tool: str,
    args: Any,
    mode: str = "partial",
    defaults: dict[str, Any] | None = None,
    ignore: str | list[str] | None = None,
) -> tuple[bool, str]:
    """A call of a tool has these arguments; its name is compared without regard to case."""
    patterns = [ignore] if isinstance(ignore, str) else ignore or []
    wanted = _without(args, patterns, {})
    compare = _same if mode == "exact" else _holds
    given = [call.input for call in _calls(ctx) if _fits(call.tool, tool)]
    held = any(compare(_without(each, patterns, defaults or {}), wanted) for each in given)
    return held, f"{tool} was called with {json.dumps(given, default=str)[:300]}"


def _without(value: Any, patterns: Any, defaults: dict[str, Any]) -> Any:
    """Return arguments without those that are ignored or have their default value."""
    if not isinstance(value, dict):
        return value
    return {
        key: item
        for key, item in value.items()
        if not any(key == each or (re.search(r"[*?]", each) and _fits(key, each)) for each in patterns)
        and not (key in defaults and _same(item, defaults[key]))
    }


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: `true` is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _holds(actual: Any, wanted: Any) -> bool:
    """All that is wanted is there, at any depth."""
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and all(key in actual and _holds(actual[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return isinstance(actual, list) and len(actual) == len(wanted) and all(map(_holds, actual, wanted))
    return _same(actual, wanted)


def tool_call_f1(ctx: Any, tools: list[str]) -> float:
    """The F1 of the set of tools that were called against the expected set."""
    called, wanted = {call.tool for call in _calls(ctx)}, set(tools)
    shared = len(called & wanted)
    return 2 * shared / (len(called) + len(wanted)) if called or wanted else 1.0


def skill_used(
    ctx: Any,
    name: str | None = None,
    pattern: str | None = None,
    min: int | None = None,
    max: int | None = None,
) -> tuple[bool, str]:
    """A skill was used so many times; a skill is a call of the tool `Skill`."""
    skills = [
        str((call.input or {}).get("skill")) for call in _calls(ctx) if call.tool == "Skill" and call.error is None
    ]
    fitting = [skill for skill in skills if (name is None or skill == name) and _fits(skill, pattern or "*")]
    least = 1 if min is None else min
    return (least <= len(fitting) and (max is None or len(fitting) <= max)), f"used {len(fitting)} times"


def valid_tool_calls(ctx: Any, tools: dict[str, Any]) -> tuple[bool, str]:
    """The reply calls tools, each of them known, with arguments that meet its schema."""
    if not _calls(ctx):
        return False, "no tool was called"
    for call in _calls(ctx):
        if call.tool not in tools:
            return False, f"the tool {call.tool!r} is not known"
        problem = _schema_problem(call.input if isinstance(call.input, dict) else {}, tools[call.tool])
        if problem is not None:
            return False, f"{call.tool}: {problem}"
    return True, "all calls are valid"


def _spans(ctx: Any) -> list[dict[str, Any]]:
    """Return the spans that the reply reports in its field `spans`."""
    spans = (ctx.response.metadata or {}).get("spans")
    if not isinstance(spans, list):
        msg = "the reply has no `spans`: have the target send them, each with a name"
        raise ValueError(msg)
    return spans


def _fits(name: Any, pattern: str) -> bool:
    parts = [{"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern]
    return re.fullmatch("".join(parts), str(name), re.IGNORECASE | re.DOTALL) is not None


def span_count(
    ctx: Any,
    pattern: str,
    min: float | None = None,
    max: float | None = None,
) -> tuple[bool, str]:
    """As many spans as this have a name that fits the pattern."""
    count = sum(_fits(span.get("name"), pattern) for span in _spans(ctx))
    held = (min is None or count >= min) and (max is None or count <= max)
    return held, f"{count} spans fit {pattern}"


def step_count(
    ctx: Any,
    type: str | list[str] | None = None,
    pattern: str | None = None,
    name: str | None = None,
    min: float | None = None,
    max: float | None = None,
) -> tuple[bool, str]:
    """As many steps as this are of this type; a span says its type in `type`."""
    kinds = [type] if isinstance(type, str) else type
    steps = [span for span in _spans(ctx) if kinds is None or span.get("type", "span") in kinds]
    count = sum(_fits(step.get("name"), pattern or name or "*") for step in steps)
    held = (min is None or count >= min) and (max is None or count <= max)
    return held, f"{count} steps"


def _duration(span: dict[str, Any]) -> float | None:
    start, end = span.get("startTime", span.get("start_time")), span.get("endTime", span.get("end_time"))
    return float(end) - float(start) if start is not None and end is not None else None


def span_duration(ctx: Any, max: float, pattern: str = "*", percentile: float | None = None) -> tuple[bool, str]:
    """No span took longer than this, or not at this percentile."""
    times = sorted(
        took for span in _spans(ctx) if _fits(span.get("name"), pattern) and (took := _duration(span)) is not None
    )
    if not times:
        return True, f"no span with times fits {pattern}"
    at = len(times) - 1 if percentile is None else math.ceil(percentile / 100 * len(times)) - 1
    slowest = times[at if at > 0 else 0]
    return slowest <= max, f"{slowest:g} ms (max: {max:g} ms)"


_ERROR_WORDS = re.compile(r"error|failed|failure|exception|timeout|abort", re.IGNORECASE)


def _failed(span: dict[str, Any]) -> bool:
    code = span.get("statusCode", span.get("status_code"))
    if isinstance(code, (int, float)) and (code == 2 or code >= 400):
        return True
    attributes = span.get("attributes") or {}
    if any(
        attributes.get(key) in (True, "true") or isinstance(attributes.get(key), (dict, list))
        for key in ("error", "exception", "failed", "failure")
    ):
        return True
    http = str(attributes.get("http.status_code", ""))
    if http.isdigit() and int(http) >= 400:
        return True
    if "ERROR" in (attributes.get("otel.status_code"), attributes.get("status.code")):
        return True
    message = span.get("statusMessage", span.get("status_message"))
    return bool(message and _ERROR_WORDS.search(str(message)))


def error_spans(
    ctx: Any, pattern: str = "*", max_count: float | None = None, max_percentage: float | None = None
) -> tuple[bool, str]:
    """No more spans than this ended in an error."""
    spans = [span for span in _spans(ctx) if _fits(span.get("name"), pattern)]
    if not spans:
        return True, f"no span fits {pattern}"
    if max_count is None and max_percentage is None:
        max_count = 0
    errors = sum(map(_failed, spans))
    share = 100 * errors / len(spans)
    held = (max_count is None or errors <= max_count) and (max_percentage is None or share <= max_percentage)
    return held, f"{errors} of {len(spans)} spans are errors"


def call_provider(
    request: Any, *, file: str, function: str = "call_api", config: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Call the provider with the prompt of a request and return its output."""
    messages = request.input_messages
    alone = len(messages) == 1 and isinstance(messages[0].content, str)
    prompt = messages[0].content if alone else json.dumps([{"role": m.role, "content": m.content} for m in messages])
    result = getattr(_load(file), function)(prompt, {"config": config or {}}, {"vars": dict(request.vars or {})})
    if inspect.isawaitable(result):
        result = asyncio.run(_wait(result))
    if not isinstance(result, dict):
        return {"text": str(result)}
    if result.get("error"):
        return {"error": str(result["error"])}
    output = result.get("output")
    reply: dict[str, Any] = {"text": output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)}
    usage = result.get("tokenUsage") or result.get("token_usage") or {}
    if usage:
        names = {"prompt": "input_tokens", "completion": "output_tokens", "total": "total_tokens"}
        reply["tokens_usage"] = {ours: usage[theirs] for theirs, ours in names.items() if usage.get(theirs) is not None}
    if result.get("cost") is not None:
        reply["cost_usd"] = result["cost"]
    return {**reply, **(result.get("metadata") or {})}


async def _wait(result: Any) -> Any:
    return await result


@cache
def _load(file: str) -> Any:
    path = Path(__file__).parent / file
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        msg = f"{file} cannot be loaded"
        raise ValueError(msg)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
