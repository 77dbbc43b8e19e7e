"""Telemetry of Claude Code: its log records, and the spans of its beta, as spans of the GenAI conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.model.session import OtelSpan
from agentv.traces.conventions.genai import read_count
from agentv.traces.spans.values import parse_value, text_of
from agentv.traces.spans.writer import STATUS, UNREAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_Object = dict[str, Any]
SCOPE = "com.anthropic.claude_code"
_MARK = "claude_code."
"""Beginning of the names of spans, and of the bodies of log records; some exports have no scopes."""
_NS_PER_MS = 1_000_000
_NEAR_NS = 1_000_000_000
"""Time between the end of a model's span and the log record of its reply, at most."""
_HIDDEN = "<REDACTED>"
_PROMPT = "prompt"
"""Id of the span around all that was recorded of one prompt."""
_REFUSED = "log records of Claude Code do not tell calls that it refused to make"


def is_of_claude_code(span: OtelSpan) -> bool:
    """Return whether Claude Code wrote a span or a log record."""
    if span.scope:
        return span.scope.startswith(SCOPE)
    if not span.is_log:
        return span.name.startswith(_MARK)
    return any(isinstance(event.body, str) and event.body.startswith(_MARK) for event in span.events)


def claude_code_spans(spans: list[OtelSpan], logs: list[OtelSpan]) -> list[OtelSpan]:
    """Return spans in which those of Claude Code follow the GenAI conventions, and those that its log records tell."""
    records = sorted(
        logs, key=lambda each: (each.start, read_count(_fields(each).get("event.sequence")) or 0, each.place)
    )
    own = [span for span in spans if is_of_claude_code(span)]
    others = [span for span in spans if not is_of_claude_code(span)]
    return [*others, *(_from_spans(own, records) if own else _from_records(records))]


def _fields(log: OtelSpan) -> _Object:
    return log.events[0].attributes


def _name(log: OtelSpan) -> str:
    return log.events[0].name.removeprefix("claude_code.")


def _from_records(records: list[OtelSpan]) -> Iterator[OtelSpan]:
    """Yield a span for each reply and each call; a prompt goes to the reply after it."""
    prompt: str | None = None
    is_new = False
    answered = {_call_id(_fields(each)) for each in records if _name(each) == "tool_result"}
    yield from _prompts(records)
    for number, log in enumerate(records):
        fields, name = _fields(log), _name(log)
        if name == "user_prompt":
            prompt, is_new = text_of(fields.get("prompt")), True
        elif name in ("api_request", "api_error"):
            attributes = _model(fields) | (_asked(prompt) if is_new else {})
            reply = _reply_after(records[number + 1 :])
            attributes |= {} if reply is None else _said(reply)
            yield _span(log, number, f"chat {fields.get('model')}", attributes, failed=name == "api_error")
            is_new = is_new and name == "api_error"
        elif name == "tool_result":
            yield _span(log, number, "execute_tool", _call(fields), failed=_has_failed(fields))
        elif name == "tool_decision" and fields.get("decision") == "reject" and _call_id(fields) not in answered:
            yield _span(log, number, "execute_tool", {**_call(fields), STATUS: "denied"}, failed=False)


def _prompts(records: list[OtelSpan]) -> Iterator[OtelSpan]:
    """Yield a span of the agent for each prompt, around all that was recorded of it."""
    groups: dict[str, list[OtelSpan]] = {}
    for log in records:
        groups.setdefault(_trace(log), []).append(log)
    for logs in groups.values():
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "claude-code", UNREAD: _REFUSED}
        span = _span(logs[0], -1, "invoke_agent", attributes, failed=False)
        start = min(_start(each) for each in logs)
        yield replace(span, span_id=_PROMPT, parent_id="", start=start, end=logs[-1].start, dropped=0)


def _trace(log: OtelSpan) -> str:
    """Return the id of the trace of a record: each prompt is one, as in the spans of Claude Code."""
    return f"{log.trace_id} {_fields(log).get('prompt.id') or ''}".rstrip()


def _start(log: OtelSpan) -> int:
    return max(0, log.start - (read_count(_fields(log).get("duration_ms")) or 0) * _NS_PER_MS)


def _call_id(fields: Mapping[str, Any]) -> str | None:
    return text_of(fields.get("tool_use_id"))


def _reply_after(records: list[OtelSpan]) -> str | None:
    """Return the text of the reply whose request was just recorded."""
    for log in records:
        if _name(log) == "assistant_response":
            return _text(log)
        if _name(log) in ("api_request", "user_prompt"):
            break
    return None


def _text(log: OtelSpan) -> str | None:
    text = text_of(_fields(log).get("response"))
    return None if text == _HIDDEN else text


def _span(log: OtelSpan, number: int, name: str, attributes: _Object, *, failed: bool) -> OtelSpan:
    fields = _fields(log)
    return OtelSpan(
        trace_id=_trace(log),
        span_id=f"record {number}",
        parent_id=_PROMPT,
        name=name,
        start=_start(log),
        end=log.start,
        attributes=attributes,
        resource=log.resource,
        scope=log.scope,
        is_error=failed,
        error=(text_of(fields.get("error")) or "") if failed else "",
        dropped=log.dropped,
        place=log.place,
        file=log.file,
        format=log.format,
    )


def _model(fields: Mapping[str, Any]) -> _Object:
    """Return the attributes of a model's reply; the input tokens of Anthropic leave out those of the cache."""
    counts = [read_count(fields.get(name)) for name in ("input_tokens", "cache_read_tokens", "cache_creation_tokens")]
    attributes: _Object = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": fields.get("model"),
        "gen_ai.usage.input_tokens": None if counts[0] is None else sum(count or 0 for count in counts),
        "gen_ai.usage.output_tokens": fields.get("output_tokens"),
        "gen_ai.usage.cache_read.input_tokens": counts[1],
        "gen_ai.usage.cache_write.input_tokens": counts[2],
        "gen_ai.usage.cost": fields.get("cost_usd"),
        "gen_ai.response.finish_reasons": fields.get("gen_ai.response.finish_reasons"),
    }
    return {key: value for key, value in attributes.items() if value is not None}


def _asked(prompt: str | None) -> _Object:
    part = {"type": "text"} if prompt in (None, _HIDDEN) else {"type": "text", "content": prompt}
    return {"gen_ai.input.messages": [{"role": "user", "parts": [part]}]}


def _said(text: str) -> _Object:
    return {"gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]}


def _call(fields: Mapping[str, Any]) -> _Object:
    """Return the attributes of a call; the name of a tool of an MCP server may be hidden."""
    name = text_of(fields.get("tool_name")) or ""
    details = parse_value(fields.get("tool_parameters"))
    if name == "mcp_tool" and isinstance(details, dict):
        server, tool = (text_of(details.get(key)) for key in ("mcp_server_name", "mcp_tool_name"))
        name = f"mcp__{server}__{tool}" if server and tool else ""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": None if name in ("", "mcp_tool") else name,
        "gen_ai.tool.call.id": fields.get("tool_use_id"),
        "gen_ai.tool.call.arguments": fields.get("tool_input"),
    }
    return {key: value for key, value in attributes.items() if value is not None}


def _has_failed(fields: Mapping[str, Any]) -> bool:
    return str(fields.get("success")).lower() == "false"


def _from_spans(spans: list[OtelSpan], records: list[OtelSpan]) -> list[OtelSpan]:
    """Return the spans of the beta, with what only the log records tell: arguments, texts and errors."""
    told = {
        text_of(_fields(each).get("tool_use_id")): _fields(each) for each in records if _name(each) == "tool_result"
    }
    parts: dict[tuple[str, str], list[OtelSpan]] = {}
    for span in spans:
        parts.setdefault((span.trace_id, span.parent_id), []).append(span)
    models = [span for span in spans if _kind(span) == "llm_request"]
    first: dict[str, int] = {}
    for span in models:
        first[span.trace_id] = min(span.start, first.get(span.trace_id, span.start))
    prompts = {
        span.trace_id: text_of(span.attributes.get("user_prompt")) for span in spans if _kind(span) == "interaction"
    }
    texts = _texts(models, records)
    made = []
    for span in spans:
        kind, fields = _kind(span), span.attributes
        kept = {key: value for key, value in fields.items() if key == "session.id"}
        if kind == "interaction":
            kept |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "claude-code"}
        elif kind == "llm_request":
            kept |= _model(fields) | texts.get((span.trace_id, span.span_id), {})
            if span.start == first[span.trace_id] and span.trace_id in prompts:
                kept |= _asked(prompts[span.trace_id])
        elif kind == "tool":
            made.append(_tool(span, kept, parts.get((span.trace_id, span.span_id), []), told))
            continue
        elif kind not in ("tool.execution", "tool.blocked_on_user"):
            kept = fields  # of another kind: it is looked at as any span
        made.append(replace(span, attributes=kept, events=[]))
    return made


def _kind(span: OtelSpan) -> str:
    return text_of(span.attributes.get("span.type")) or span.name.removeprefix("claude_code.")


def _texts(models: list[OtelSpan], records: list[OtelSpan]) -> dict[tuple[str, str], _Object]:
    """Return the replies of models by their spans: a record is written when a span has ended."""
    found: dict[tuple[str, str], _Object] = {}
    for log in records:
        text = _text(log) if _name(log) == "assistant_response" else None
        near = min(models, key=lambda span: (abs(span.end - log.start), span.span_id), default=None)
        if text is not None and near is not None and abs(near.end - log.start) <= _NEAR_NS:
            found[near.trace_id, near.span_id] = _said(text)
    return found


def _tool(span: OtelSpan, kept: _Object, parts: list[OtelSpan], told: Mapping[str | None, _Object]) -> OtelSpan:
    result = told.get(text_of(span.attributes.get("tool_use_id")), {})
    attributes = {**kept, **_call({**span.attributes, **result})}
    output = next((event.attributes for event in span.events if event.name == "tool.output"), {})
    shown = next((output[key] for key in ("output", "content") if key in output), None)
    attributes |= {} if shown is None else {"gen_ai.tool.call.result": shown}
    ran = [each for each in parts if _kind(each) == "tool.execution"]
    if not ran and any(each.attributes.get("decision") == "reject" for each in parts):
        attributes[STATUS] = "denied"
    failed = next((each for each in (span, *ran) if each.is_error), None)
    error = failed.error if failed is not None else text_of(result.get("error")) or ""
    is_error = failed is not None or (_has_failed(result) and STATUS not in attributes)
    return replace(
        span, name="execute_tool", attributes=attributes, events=[], is_error=is_error, error=error if is_error else ""
    )
