"""Exports of trace stores: Langfuse, MLflow, LangSmith, Phoenix, Jaeger and Mastra.

Each record becomes a span with the attributes of OpenInference, so that sessions are joined as those of OTLP are.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentv.formats.fields import is_count, number_or_none, objects_in
from agentv.model.session import OtelSpan
from agentv.protocols.traces import TraceFormat, TraceSample
from agentv.traces.files import HEAD_BYTES, MAX_DOCUMENT
from agentv.traces.readers.lines import iter_placed
from agentv.traces.readers.otlp import NO_SPAN, add_span
from agentv.traces.spans.span_data import count_malformed, span_from
from agentv.traces.spans.values import first_of, parse_value, read_id, read_time, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agentv.model.session import Session
    from agentv.protocols.traces import TraceSink, TraceSource

_Object = Mapping[str, Any]
_NS_PER_US = 1_000
_NO_SPANS = "a record without spans of this format"
_LANGFUSE_KINDS = {"GENERATION": "LLM", "TOOL": "TOOL", "AGENT": "AGENT"}
_LANGFUSE_TYPES = frozenset((
    *("SPAN", "EVENT", "GENERATION", "TOOL", "AGENT", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"),
))  # fmt: skip
_CACHE_COUNTS = ("cache_read_input_tokens", "cache_creation_input_tokens")
_MLFLOW_KINDS = {"LLM": "LLM", "CHAT_MODEL": "LLM", "TOOL": "TOOL", "AGENT": "AGENT"}
_LANGSMITH_KINDS = {"llm": "LLM", "tool": "TOOL"}
_MASTRA_KINDS = {
    **dict.fromkeys(("model_generation", "llm_generation"), "LLM"),
    **dict.fromkeys(("tool_call", "mcp_tool_call", "client_tool_call", "provider_tool_call"), "TOOL"),
    "agent_run": "AGENT",
}
_USAGE = {
    "llm.token_count.prompt": (
        "input_tokens",
        "prompt_tokens",
        "inputTokens",
        "promptTokens",
        "input",
        "promptTokenCount",
    ),
    "llm.token_count.completion": ("output_tokens", "completion_tokens", "outputTokens", "completionTokens", "output"),
    "llm.token_count.total": ("total_tokens", "totalTokens", "total"),
    "llm.token_count.prompt_details.cache_read": (
        *("cache_read_input_tokens", "cachedInputTokens", "input_cached_tokens", "input_cache_read", "cache_read"),
    ),
    "llm.token_count.completion_details.reasoning": ("reasoningTokens", "output_reasoning_tokens", "output_reasoning"),
}
_USAGE_OF_KEY = {key: (name, rank) for name, keys in _USAGE.items() for rank, key in enumerate(keys)}


def _usage(raw: Any) -> dict[str, int]:
    """Return the token counts of a record in the names of OpenInference."""
    counts = parse_value(raw)
    if not isinstance(counts, dict):
        return {}
    best: dict[str, tuple[int, Any]] = {}
    for key in _USAGE_OF_KEY.keys() & counts.keys():
        value = counts[key]
        name, rank = _USAGE_OF_KEY[key]
        if value is not None and value != "" and (name not in best or rank < best[name][0]):
            best[name] = rank, value
    return {name: best[name][1] for name in _USAGE if name in best and is_count(best[name][1])}


def _span(  # noqa: PLR0913 - fields of a span
    *,
    trace: Any,
    own: Any,
    parent: Any,
    name: Any,
    times: tuple[Any, Any],
    kind: str,
    attributes: dict[str, Any],
    session: Any = None,
    error: Any = None,
) -> OtelSpan | None:
    """Return a span of a store; `None` if it has no id."""
    own_id = read_id(own)
    if not own_id:
        return None
    made = {key: value for key, value in attributes.items() if value is not None}
    made["openinference.span.kind"] = kind
    if kind == "TOOL" and isinstance(name, str):
        made.setdefault("tool.name", name)
    if (session_id := text_of(session)) is not None:
        made["session.id"] = session_id
    return OtelSpan(
        trace_id=read_id(trace) or own_id,
        span_id=own_id,
        parent_id=read_id(parent),
        name=name if isinstance(name, str) else "",
        start=read_time(times[0]),
        end=read_time(times[1]),
        attributes=made,
        is_error=bool(error),
        error=error if isinstance(error, str) else "",
    )


def _unwrapped(value: Any) -> Any:
    """Return a value that may be JSON in a JSON text."""
    if value == "null":
        return None
    parsed = parse_value(value)
    return parse_value(parsed) if isinstance(parsed, str) and parsed[:1] in ("{", "[", '"') else parsed


def _is_langfuse(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("data"), list):
        return any(map(_is_langfuse, value["data"][:3]))
    if isinstance(value.get("observations"), list):
        inner = [each for each in value["observations"][:3] if isinstance(each, dict)]
        return "projectId" in value or "htmlPath" in value or any(map(_is_langfuse, inner))
    if _is_langfuse_trace(value):
        return True
    return text_of(value.get("type")) in _LANGFUSE_TYPES and any(key in value for key in ("traceId", "trace_id"))


def _is_langfuse_trace(value: _Object) -> bool:
    """Return whether a record is a trace without its observations, which are records of their own."""
    return all(key in value for key in ("id", "timestamp", "bookmarked")) and "observations" not in value


def _langfuse(value: _Object) -> Iterator[OtelSpan | None]:
    """Yield the spans of a trace with its observations, of a page of them, or of one observation."""
    if isinstance(value.get("data"), list):
        for item in value["data"]:
            yield from _langfuse(item) if isinstance(item, dict) else (None,)
        return
    if not isinstance(value.get("observations"), list) and not _is_langfuse_trace(value):
        yield _langfuse_observation(value, {})
        return
    observations = value.get("observations") or []
    if observations and all(isinstance(each, str) for each in observations):
        yield None  # only their ids were exported
    own = value.get("id")
    yield _span(
        trace=own, own=f"trace {own}", parent=None, name=value.get("name"), times=_langfuse_times(value, observations),
        kind="CHAIN", attributes={}, session=first_of(value, "sessionId", "session_id"),
    )  # fmt: skip
    for item in observations:
        yield _langfuse_observation(item, value) if isinstance(item, dict) else None


def _langfuse_times(trace: _Object, observations: list[Any]) -> tuple[Any, Any]:
    """Return the start of a trace and the end of its last observation; a trace has no end of its own."""
    start = trace.get("timestamp")
    ends = [(time, end) for item in objects_in(observations) if (end := first_of(item, "endTime", "end_time"))
            if (time := read_time(end))]  # fmt: skip
    return start, max(ends, default=(0, start))[1]


def _langfuse_usage(raw: Any) -> dict[str, int]:
    """Return token counts; cached input is not in `input`, unless the total says so."""
    counts = parse_value(raw)
    if not isinstance(counts, dict) or not counts:
        return {}
    found = _usage(counts)
    for name, start in (("llm.token_count.prompt", "input"), ("llm.token_count.completion", "output")):
        parts: list[int] = [value for key, value in counts.items() if is_count(value) and (
            key.startswith(f"{start}_") or (start == "input" and key in _CACHE_COUNTS))]  # fmt: skip
        own: Any = counts.get(start)
        if is_count(own) and not _is_total(counts):
            found[name] = own + sum(parts)
    return found


def _is_total(counts: _Object) -> bool:
    """Return whether the input and output add up to the total, so that they have all of their parts."""
    found: list[Any] = [value for name in ("input", "output", "total") if is_count(value := counts.get(name))]
    return len(found) == 3 and found[0] + found[1] == found[2]  # noqa: PLR2004 - all of them


def _langfuse_observation(item: _Object, trace: _Object) -> OtelSpan | None:
    kind = _LANGFUSE_KINDS.get(str(item.get("type")), "CHAIN")
    metadata = _unwrapped(item.get("metadata"))
    trace_id = first_of(item, "traceId", "trace_id") or trace.get("id")
    costs = parse_value(first_of(item, "costDetails", "cost_details"))
    attributes = {
        **_langfuse_usage(first_of(item, "usageDetails", "usage_details", "usage")),
        "input.value": _unwrapped(item.get("input")),
        "output.value": _unwrapped(item.get("output")),
        "llm.model_name": first_of(item, "model", "providedModelName", "provided_model_name", "modelId"),
        "llm.cost.total": costs.get("total") if isinstance(costs, dict) else item.get("calculatedTotalCost"),
        "tool_call.id": metadata.get("tool_call_id") if isinstance(metadata, dict) else None,
    }
    failed = item.get("level") == "ERROR"
    return _span(
        trace=trace_id,
        own=item.get("id"),
        parent=first_of(item, "parentObservationId", "parent_observation_id")
        or (f"trace {trace_id}" if trace else None),
        name=item.get("name"),
        times=(first_of(item, "startTime", "start_time"), first_of(item, "endTime", "end_time")),
        kind=kind,
        attributes=attributes,
        session=first_of(item, "sessionId", "session_id") or first_of(trace, "sessionId", "session_id"),
        error=failed and (first_of(item, "statusMessage", "status_message") or True),
    )


def _is_mlflow(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    data, info = value.get("data"), value.get("info")
    if isinstance(value.get("traces"), list):
        return any(map(_is_mlflow, value["traces"][:3]))
    if isinstance(info, dict) and isinstance(data, dict):
        return isinstance(data.get("spans"), list)
    if isinstance(value.get("spans"), list):
        return any(map(_is_mlflow, value["spans"][:3]))
    attributes = value.get("attributes")
    return isinstance(attributes, dict) and any(str(key).startswith("mlflow.") for key in attributes)


def _mlflow(value: _Object) -> Iterator[OtelSpan | None]:
    """Yield the spans of traces; every attribute is JSON of its own."""
    if isinstance(value.get("traces"), list):
        for item in value["traces"]:
            yield from _mlflow(item) if isinstance(item, dict) else (None,)
        return
    data, info = value.get("data"), value.get("info")
    holder = data if isinstance(data, dict) else value
    info = info if isinstance(info, dict) else value
    metadata = first_of(info, "trace_metadata", "request_metadata", "tags")
    session = metadata.get("mlflow.trace.session") if isinstance(metadata, dict) else None
    spans = holder.get("spans")
    for raw in spans if isinstance(spans, list) else [value]:
        yield _mlflow_span(raw, session) if isinstance(raw, dict) else None


def _mlflow_span(raw: _Object, session: Any) -> OtelSpan | None:
    span = span_from(raw)
    if span is None:
        return None
    attributes = {key: parse_value(item) for key, item in span.attributes.items()}
    cost = attributes.get("mlflow.llm.cost")
    kind = _MLFLOW_KINDS.get(str(attributes.get("mlflow.spanType", raw.get("span_type"))), "CHAIN")
    made = {
        **{key: item for key, item in attributes.items() if not key.startswith("mlflow.")},
        **_usage(attributes.get("mlflow.chat.tokenUsage")),
        "openinference.span.kind": kind,
        "input.value": attributes.get("mlflow.spanInputs", parse_value(raw.get("inputs"))),
        "output.value": attributes.get("mlflow.spanOutputs", parse_value(raw.get("outputs"))),
        "llm.model_name": first_of(attributes, "mlflow.llm.model", "model"),
        "llm.cost.total": cost.get("total_cost") if isinstance(cost, dict) else None,
        "session.id": text_of(attributes.get("mlflow.trace.session")) or text_of(session),
    }
    if kind == "TOOL":
        made["tool.name"] = attributes.get("mlflow.spanFunctionName") or span.name
    span.attributes = {key: item for key, item in made.items() if item is not None}
    return span


def _is_langsmith(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("runs"), list):
        return any(map(_is_langsmith, value["runs"][:3]))
    return isinstance(value.get("run_type"), str) and "id" in value and ("inputs" in value or "trace_id" in value)


def _langsmith(value: _Object, root: Any = None) -> Iterator[OtelSpan | None]:
    """Yield the spans of a run and of those below it, or of a page of runs."""
    if isinstance(value.get("runs"), list):
        for item in value["runs"]:
            yield from _langsmith(item) if isinstance(item, dict) else (None,)
        return
    extra = _unwrapped(value.get("extra"))
    metadata = extra.get("metadata") if isinstance(extra, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    outputs, inputs = _unwrapped(value.get("outputs")), _unwrapped(value.get("inputs"))
    trace = value.get("trace_id") or root or value.get("id")
    kind = _LANGSMITH_KINDS.get(str(value.get("run_type")), "CHAIN")
    error = value.get("error") or value.get("status") == "error"
    attributes: dict[str, Any] = {
        **_usage({**value, **(_langsmith_usage(outputs) or {})}),
        "input.value": _langsmith_input(inputs, kind),
        "output.value": _langsmith_output(outputs, kind),
        "llm.model_name": first_of(metadata, "ls_model_name"),
        "llm.cost.total": number_or_none(value.get("total_cost")),
        "tool_call.id": metadata.get("tool_call_id"),
    }
    if kind != "LLM":
        attributes = {key: item for key, item in attributes.items() if not key.startswith("llm.")}
    yield _span(
        trace=trace,
        own=value.get("id"),
        parent=value.get("parent_run_id"),
        name=value.get("name"),
        times=(value.get("start_time"), value.get("end_time")),
        kind=kind,
        attributes=attributes,
        session=first_of(metadata, "session_id", "thread_id", "conversation_id") or value.get("thread_id"),
        error=error,
    )
    for child in objects_in(value.get("child_runs")):
        yield from _langsmith(child, trace)


def _langsmith_usage(outputs: Any) -> dict[str, Any] | None:
    usage = outputs.get("usage_metadata") if isinstance(outputs, dict) else None
    return dict(usage) if isinstance(usage, dict) else None


def _langsmith_input(inputs: Any, kind: str) -> Any:
    if kind == "TOOL" and isinstance(inputs, dict) and inputs.keys() == {"input"}:
        return inputs["input"]  # the arguments as a text, often a Python literal
    return inputs


def _langsmith_output(outputs: Any, kind: str) -> Any:
    """Return the messages of a model, which LangChain nests in batches of generations."""
    if not isinstance(outputs, dict) or kind != "LLM":
        return outputs
    generations = outputs.get("generations")
    while isinstance(generations, list) and generations and isinstance(generations[0], list):
        generations = generations[0]
    if isinstance(generations, list):
        return [
            each.get("message", {"role": "assistant", "content": each.get("text")}) for each in objects_in(generations)
        ]
    return outputs.get("messages", outputs)


def _is_phoenix(value: Any) -> bool:
    """Recognize a span of Phoenix, of the SDK's own JSON, or a page of them."""
    if not isinstance(value, dict):
        return False
    inner = value.get("data", value.get("spans"))
    if isinstance(inner, list):
        return any(map(_is_phoenix, inner[:3]))
    context = value.get("context")
    if isinstance(context, dict):
        return any(key in context for key in ("trace_id", "traceId"))
    return "context.span_id" in value or (
        any(key in value for key in ("span_id", "spanId")) and any(key in value for key in ("attributes", "span_kind"))
    )


def _phoenix(value: _Object) -> Iterator[OtelSpan | None]:
    inner = value.get("data", value.get("spans"))
    if isinstance(inner, list):
        for item in inner:
            yield from _phoenix(item) if isinstance(item, dict) else (None,)
        return
    span = span_from(value)
    kind = value.get("span_kind")
    if span is not None and isinstance(kind, str) and "openinference.span.kind" not in span.attributes:
        nested = span.attributes.get("openinference")
        if not isinstance(nested, dict) and kind.upper() in ("LLM", "TOOL", "AGENT", "CHAIN"):
            span.attributes = {**span.attributes, "openinference.span.kind": kind}
    yield span


def _is_jaeger(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("data"), list):
        return any(map(_is_jaeger, value["data"][:3]))
    return "traceID" in value and (isinstance(value.get("spans"), list) or "spanID" in value)


def _jaeger(value: _Object) -> Iterator[OtelSpan | None]:
    """Yield the spans of a result of Jaeger's query API; parents are references, times are microseconds."""
    if isinstance(value.get("data"), list):
        for item in value["data"]:
            yield from _jaeger(item) if isinstance(item, dict) else (None,)
        return
    processes = value.get("processes")
    for raw in value["spans"] if isinstance(value.get("spans"), list) else [value]:
        yield _jaeger_span(raw, processes) if isinstance(raw, dict) else None


def _jaeger_span(raw: _Object, processes: Any) -> OtelSpan | None:
    attributes = _tags(raw.get("tags"))
    process = processes.get(text_of(raw.get("processID"))) if isinstance(processes, dict) else raw.get("process")
    resource = _tags(process.get("tags")) if isinstance(process, dict) else {}
    parents = [each.get("spanID") for each in objects_in(raw.get("references")) if each.get("refType") == "CHILD_OF"]
    start, duration = raw.get("startTime"), raw.get("duration")
    events = [
        {
            "name": fields.pop("event", fields.get("message", "")),
            "timestamp": each.get("timestamp"),
            "attributes": fields,
        }
        for each in objects_in(raw.get("logs"))
        if (fields := _tags(each.get("fields"))) is not None
    ]
    code = attributes.pop("otel.status_code", None)
    failed = attributes.pop("error", None) in (True, "true") or code == "ERROR"
    end = start + duration if isinstance(start, int) and isinstance(duration, int) else None
    made = {
        **{key: raw[key] for key in ("traceID", "spanID", "operationName") if key in raw},
        "parentSpanID": parents[0] if parents else raw.get("parentSpanID"),
        "startTime": start * _NS_PER_US if isinstance(start, int) else start,
        "endTime": None if end is None else end * _NS_PER_US,
        "attributes": attributes,
        "droppedAttributesCount": count_malformed(raw.get("tags")) + _dropped(attributes),
        "resource": {"attributes": resource},
        "scope": attributes.pop("otel.scope.name", attributes.pop("otel.library.name", "")),
        "status": {"code": "ERROR" if failed else code, "message": attributes.pop("otel.status_description", "")},
        "events": events,
    }
    return span_from(made)


def _dropped(attributes: _Object) -> int:
    """Return the number of attributes, events and links that OpenTelemetry dropped, which Jaeger keeps as tags."""
    counts = [str(attributes.get(f"otel.dropped_{what}_count")) for what in ("attributes", "events", "links")]
    return sum(int(count) for count in counts if count.isdecimal() and len(count) < 20)  # noqa: PLR2004 - 64 bits


def _tags(tags: Any) -> dict[str, Any]:
    """Return typed tags as attributes."""
    return {str(tag["key"]): tag.get("value") for tag in objects_in(tags) if "key" in tag}


def _is_mastra(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("spans"), list):
        return any(map(_is_mastra, value["spans"][:3]))
    kind = value.get("spanType", value.get("type"))
    has_ids = any(key in value for key in ("spanId", "id")) and "traceId" in value
    return has_ids and isinstance(kind, str) and (kind in _MASTRA_KINDS or "spanType" in value)


def _mastra(value: _Object) -> Iterator[OtelSpan | None]:
    """Yield the spans of a trace of Mastra, stored or exported."""
    if isinstance(value.get("spans"), list):
        for item in value["spans"]:
            yield from _mastra(item) if isinstance(item, dict) else (None,)
        return
    kind = _MASTRA_KINDS.get(str(value.get("spanType", value.get("type"))), "CHAIN")
    own = _unwrapped(value.get("attributes"))
    own = own if isinstance(own, dict) else {}
    metadata = _unwrapped(value.get("metadata"))
    metadata = metadata if isinstance(metadata, dict) else {}
    error = _unwrapped(first_of(value, "error", "errorInfo"))
    name = text_of(first_of(value, "entityName", "name")) or ""
    if kind == "TOOL" and "'" in name:
        name = name.split("'")[1]  # "tool: 'search'"
    elif kind == "TOOL":
        name = name.removeprefix("tool: ")
    attributes = {
        **_usage(own.get("usage")),
        "input.value": _unwrapped(value.get("input")),
        "output.value": _mastra_output(_unwrapped(value.get("output")), kind),
        "llm.model_name": first_of(own, "model", "responseModel"),
        "tool_call.id": first_of(own, "toolCallId") or metadata.get("toolCallId"),
    }
    yield _span(
        trace=value.get("traceId"),
        own=first_of(value, "spanId", "id"),
        parent=first_of(value, "parentSpanId", "parentId"),
        name=name,
        times=(first_of(value, "startedAt", "startTime"), first_of(value, "endedAt", "endTime")),
        kind=kind,
        attributes=attributes,
        session=first_of(metadata, "sessionId", "threadId") or first_of(value, "sessionId", "threadId"),
        error=(error.get("message") or True) if isinstance(error, dict) else error,
    )


def _mastra_output(output: Any, kind: str) -> Any:
    """Return what a model wrote as one message: its text, and its calls beside it."""
    if kind != "LLM" or not isinstance(output, dict) or not ("text" in output or "toolCalls" in output):
        return output
    calls = output.get("toolCalls")
    named = [each.get("payload", each) for each in objects_in(calls)]
    return {"role": "assistant", "content": output.get("text"), **({"tool_calls": named} if named else {})}


def _format(
    name: str,
    description: str,
    is_record: Callable[[Any], bool],
    spans_of: Callable[[_Object], Iterable[OtelSpan | None]],
) -> TraceFormat:
    """Return a format whose records hold spans; a record without any is reported."""

    def detect(sample: TraceSample) -> bool:
        return any(map(is_record, sample.values))

    def read(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
        for place, value in iter_placed(file, sink, as_lines=is_lines):
            for record in value if isinstance(value, list) else (value,):
                if not is_record(record):
                    sink.skip(place, _NO_SPANS)
                    continue
                for span in spans_of(record):
                    if span is None:
                        sink.skip(place, NO_SPAN)
                    else:
                        add_span(sink, span, place, file, name)
        return iter(())

    return TraceFormat(name=name, description=description, detect=detect, read=read)


def _is_langfuse_table(sample: TraceSample) -> bool:
    """Return whether a file is a table of observations, as the user interface exports it."""
    header = sample.head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].strip().replace(b'"', b"").split(b",")
    return b"id" in header and b"type" in header and (b"traceId" in header or b"trace_id" in header)


def _read_langfuse(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    """Add the spans of a file, which may be a table; the cells of it are texts."""
    if not _is_langfuse_table(TraceSample(file.name, _head(file), (), is_lines=False)):
        return _LANGFUSE.read(file, sink, is_lines)
    csv.field_size_limit(MAX_DOCUMENT)
    with io.TextIOWrapper(file.open(), encoding="utf-8-sig", errors="replace", newline="") as stream:
        rows = csv.DictReader(line.replace("\0", "") for line in stream)
        try:
            for row in rows:
                place = f"{file.name}:{rows.line_num}"
                value = {key: cell or None for key, cell in row.items() if isinstance(key, str)}
                whole = None not in row and None not in row.values() and _is_langfuse(value)
                span = _langfuse_observation(value, {}) if whole else None
                if span is None:
                    sink.skip(place, NO_SPAN)
                else:
                    add_span(sink, span, place, file, "langfuse")
        except csv.Error as error:
            sink.skip(f"{file.name}:{rows.line_num}", str(error))
    return iter(())


def _head(file: TraceSource) -> bytes:
    with file.open() as stream:
        return stream.read(HEAD_BYTES)


_LANGFUSE = _format("langfuse", "Langfuse: traces with observations, or observations", _is_langfuse, _langfuse)
LANGFUSE = TraceFormat(
    name="langfuse",
    description="Langfuse: traces with observations, or observations, as JSON or CSV",
    detect=lambda sample: _LANGFUSE.detect(sample) or _is_langfuse_table(sample),
    read=_read_langfuse,
)
MLFLOW = _format("mlflow", "MLflow: traces (`Trace.to_dict`, `to_json`)", _is_mlflow, _mlflow)
LANGSMITH = _format("langsmith", "LangSmith: exported runs, nested or flat", _is_langsmith, _langsmith)
JAEGER = _format("jaeger", "Jaeger: JSON of its query API and its UI", _is_jaeger, _jaeger)
MASTRA = _format("mastra", "Mastra: spans of its AI tracing", _is_mastra, _mastra)
PHOENIX = _format("phoenix", "Phoenix, and JSON of the OpenTelemetry SDK: one span each", _is_phoenix, _phoenix)
