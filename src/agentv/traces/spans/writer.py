"""Writer of sessions as GenAI spans of OpenTelemetry: OTLP in JSON, one request in each line."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET, Struct, to_builtins

from agentv import __version__
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, ToolCall
from agentv.traces.spans.values import read_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agentv.model.conversation import TokensUsage
    from agentv.model.response import ResponseError

SESSION = "agentv.session"
"""Attribute of the first span with what no convention has a name for, as JSON."""
STATUS = "agentv.tool.status"
"""Attribute of the span of a call that was not executed: `denied` or `pending`."""
IS_TEXT = "agentv.tool.result_is_text"
"""Attribute of the span of a call whose result is a text that looks like JSON."""
UNREAD = "agentv.unread"
"""Attribute with the reason why calls may be missing that a span cannot tell."""
EVALUATION = "gen_ai.evaluation.result"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"
_UNKNOWN_TIME = 10**18
"""Start of a session whose time is not known."""
_STEP = 1_000_000
_NS_PER_MS = 1_000_000
_MAX_INTEGER = 2**63 - 1
_USAGE = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "total_tokens": "gen_ai.usage.total_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_write.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
_INTERNAL, _CLIENT, _ERROR = 1, 3, 2
"""Kinds of spans, and the status code of a failed one."""


class SpanTurn(NamedTuple):
    """One turn to write: what the agent received, and what it wrote."""

    received: tuple[Message, ...]
    sent: tuple[Message, ...]
    error: ResponseError | None = None


class SpanSession(Struct, frozen=True, kw_only=True):
    """A session or a run to write."""

    id: str
    """Id of the conversation."""
    turns: Sequence[SpanTurn]
    agent: str | None = None
    model: str | None = None
    started: str | None = None
    resource: Mapping[str, Any] = {}
    """Attributes of the resource."""
    rest: Mapping[str, Any] = {}
    """Data for the attribute `agentv.session`."""
    calls: tuple[ToolCall, ...] = ()
    """Calls that are in no message, because the agent sent a trace."""


class EvaluationResult(NamedTuple):
    """Result of an evaluator, for a log record."""

    name: str
    score: float | None
    label: str
    explanation: str
    error: str | None = None
    """Kind of the error, if it could not be evaluated."""


class WrittenSpans(NamedTuple):
    """The lines of a session."""

    spans: dict[str, Any]
    """Request with the spans."""
    root: tuple[str, str]
    """Ids of the trace and the span of the last turn."""
    end: int
    """Time of the last span."""


def write_spans(session: SpanSession) -> WrittenSpans:
    """Return a session as a request of OTLP: an agent for each turn, with its models and tools below it.

    A model has the messages that are new since the one before it, so that the size does not grow with the square of the
    number of messages.
    """
    writer = _SpanWriter(session)
    for number, turn in enumerate(session.turns):
        writer.write_turn(turn, number)
    scope = {"scope": _scope(), "schemaUrl": SCHEMA_URL, "spans": writer.spans}
    request = {"resourceSpans": [{"resource": _resource(session.resource), "scopeSpans": [scope]}]}
    return WrittenSpans(request, writer.root, writer.time)


def write_evaluations(written: WrittenSpans, session: SpanSession, results: Iterable[EvaluationResult]) -> Any:
    """Return the results of evaluators as log records of the span that they are about; `None` without any."""
    trace_id, span_id = written.root
    records = []
    for result in results:
        values: dict[str, Any] = {"gen_ai.evaluation.name": result.name}
        values |= {} if result.score is None else {"gen_ai.evaluation.score.value": float(result.score)}
        values |= {"gen_ai.evaluation.score.label": result.label}
        values |= {"gen_ai.evaluation.explanation": result.explanation} if result.explanation else {}
        values |= {"error.type": result.error} if result.error else {}
        records.append(
            {
                "timeUnixNano": str(written.end),
                "observedTimeUnixNano": str(written.end),
                "severityNumber": 9,
                "severityText": "INFO",
                "eventName": EVALUATION,
                "attributes": _attributes(values),
                "traceId": trace_id,
                "spanId": span_id,
            }
        )
    if not records:
        return None
    scope = {"scope": _scope(), "schemaUrl": SCHEMA_URL, "logRecords": records}
    return {"resourceLogs": [{"resource": _resource(session.resource), "scopeLogs": [scope]}]}


def _scope() -> dict[str, str]:
    return {"name": "agentv", "version": __version__}


def _resource(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"attributes": _attributes(attributes)}


class _SpanWriter:
    """Spans of one session, whose times never go back."""

    def __init__(self, session: SpanSession) -> None:
        self._session = session
        self.spans: list[dict[str, Any]] = []
        self.time = read_time(session.started) or _UNKNOWN_TIME
        self.root = ("", "")

    def write_turn(self, turn: SpanTurn, number: int) -> None:
        """Write the span of an agent, and those of its models and tools."""
        session = self._session
        trace = _hash(f"{session.id}/{number}", 16)
        values: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": session.id}
        values |= {"gen_ai.agent.name": session.agent} if session.agent else {}
        if not number and session.rest:
            values[SESSION] = _text(session.rest)
        root = self._span(trace, "", f"invoke_agent {session.agent or ''}".rstrip(), _INTERNAL, values)
        self.root = (trace, root["spanId"])
        waiting = list(turn.received)
        for message in turn.sent:
            if message.role == "assistant":
                waiting = self._write_model(message, waiting, trace, root["spanId"])
            else:
                waiting.append(message)
        for call in session.calls if not number else ():
            self._write_tool(call, trace, root["spanId"])
        if not any(message.role == "assistant" for message in turn.sent):
            root["attributes"] += _attributes({"gen_ai.input.messages": _text(_prompt(waiting))})
        self._end(root, turn.error.message if turn.error else None, turn.error.kind if turn.error else "")

    def _write_model(self, message: Message, waiting: list[Message], trace: str, parent: str) -> list[Message]:
        """Write the span of a model and those of the tools it called; return the results for the next model."""
        model = self._session.model
        values: dict[str, Any] = {"gen_ai.operation.name": "chat"}
        values |= {"gen_ai.request.model": model, "gen_ai.response.model": model} if model else {}
        if waiting:
            values["gen_ai.input.messages"] = _text(_prompt(waiting))
        said = _message(message)
        if said["parts"]:
            values["gen_ai.output.messages"] = _text([said])
        values["gen_ai.response.finish_reasons"] = ["tool_calls" if message.tool_calls else "stop"]
        values |= _usage(message.tokens_usage)
        span = self._span(trace, parent, f"chat {model or ''}".rstrip(), _CLIENT, values)
        self.time = max(self.time, read_time(message.timestamp))
        self._end(span)
        for call in message.tool_calls:
            self._write_tool(call, trace, parent)
        return list(_results(message))

    def _write_tool(self, call: ToolCall, trace: str, parent: str) -> None:
        """Write the span of a tool, unless nothing tells that it was run."""
        if call.output is UNSET and call.status is None and call.error is None and call.duration_ms is None:
            return
        values: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.tool}
        values |= {"gen_ai.tool.call.id": call.id} if call.id else {}
        if call.input is not UNSET:
            values["gen_ai.tool.call.arguments"] = _text(call.input)
        if call.output is not UNSET:
            values["gen_ai.tool.call.result"] = _result(call.output)
            values |= {IS_TEXT: True} if isinstance(call.output, str) and call.output[:1] in '{["' else {}
        if call.status in ("denied", "pending"):
            values[STATUS] = call.status
        self.time = max(self.time, read_time(call.timestamp))
        span = self._span(trace, parent, f"execute_tool {call.tool}", _INTERNAL, values)
        if call.duration_ms is not None and 0 <= call.duration_ms < 10**12:
            self.time = int(span["startTimeUnixNano"]) + int(call.duration_ms * _NS_PER_MS) - 1
        is_error = call.effective_status == "error"
        error = call.error if isinstance(call.error, str) else _text(call.error)
        self._end(span, (error if call.error is not None else "") if is_error else None, "tool_error")

    def _span(self, trace: str, parent: str, name: str, kind: int, values: Mapping[str, Any]) -> dict[str, Any]:
        self.time += _STEP if self.spans else 0
        span: dict[str, Any] = {
            "traceId": trace,
            "spanId": _hash(f"{self._session.id}/span {len(self.spans)}", 8),
            **({"parentSpanId": parent} if parent else {}),
            "name": name,
            "kind": kind,
            "startTimeUnixNano": str(self.time),
            "endTimeUnixNano": "0",
            "attributes": _attributes(values),
            "status": {},
        }
        self.spans.append(span)
        return span

    def _end(self, span: dict[str, Any], error: str | None = None, kind: str = "") -> None:
        self.time = max(self.time, int(span["startTimeUnixNano"])) + 1
        span["endTimeUnixNano"] = str(self.time)
        if error is not None:
            span["status"] = {"code": _ERROR, **({"message": error} if error else {})}
            span["attributes"] += _attributes({"error.type": kind})


def _hash(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


def _prompt(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return messages that a model received; calls of earlier turns are followed by their results."""
    return [_message(each) for message in messages for each in (message, *_results(message))]


def _results(message: Message) -> Iterator[Message]:
    """Yield the results of the calls in a message of the agent, each as a message of its own."""
    if message.role == "assistant":
        for call in message.tool_calls:
            if call.output is not UNSET:
                yield Message(role="tool", tool_calls=(call,))


def _message(message: Message) -> dict[str, Any]:
    """Return a message with parts; a message of the role `tool` has the results of its calls, or its own."""
    parts: list[dict[str, Any]] = []
    if message.role == "tool":
        results = [(call.id, call.tool, call.output) for call in message.tool_calls]
        results = results or [(message.tool_call_id, message.name or "", message.content)]
        for call_id, name, output in results:
            part = {"type": "tool_call_response", "id": call_id, "name": name, "response": output}
            parts.append({key: value for key, value in part.items() if key == "response" or value})
        return {"role": "tool", "parts": parts}
    for block in _blocks(message.content):
        text = block.get("text")
        if block.get("type") in ("reasoning", "thinking") and isinstance(text, str):
            parts.append({"type": "reasoning", "content": text})
        elif isinstance(text, str):
            if parts and parts[-1]["type"] == "text":
                parts[-1] = {"type": "text", "content": parts[-1]["content"] + text}
            else:
                parts.append({"type": "text", "content": text})
        else:
            parts.append({"type": "unknown", **block})
    for call in message.tool_calls:
        part = {"type": "tool_call", **({"id": call.id} if call.id else {}), "name": call.tool}
        parts.append(part if call.input is UNSET else {**part, "arguments": call.input})
    return {"role": message.role, "parts": parts, **({"name": message.name} if message.name else {})}


def _blocks(content: Any) -> Sequence[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content or () if isinstance(block, dict)]


def _usage(usage: TokensUsage | None) -> dict[str, int]:
    if usage is None:
        return {}
    return {key: count for name, key in _USAGE.items() if (count := getattr(usage, name)) is not None}


def _result(output: Any) -> Any:
    """Return a result as an attribute: scalars as they are, all else as JSON."""
    is_scalar = isinstance(output, (str, bool, float)) or (isinstance(output, int) and abs(output) <= _MAX_INTEGER)
    return output if is_scalar else _text(output)


def _text(value: Any) -> str:
    return dump_json(to_builtins(value, str_keys=True)).decode()


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any_value(value)} for key, value in values.items()]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_any_value(item) for item in value]}}
    return {"stringValue": str(value)}
