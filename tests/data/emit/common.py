"""Shared parts of the emitters: a tracer that keeps its spans, and files of OTLP with fixed ids and times."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

INTO = Path(os.environ.get("EMIT_INTO") or Path(__file__).parent.parent / "traces")
SPANS = InMemorySpanExporter()
TRACER_PROVIDER = TracerProvider()
TRACER_PROVIDER.add_span_processor(SimpleSpanProcessor(SPANS))
trace.set_tracer_provider(TRACER_PROVIDER)
_STATUS = {0: {}, 1: {"code": "STATUS_CODE_OK"}, 2: {"code": "STATUS_CODE_ERROR"}}


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attributes(value)}}
    return {"stringValue": str(value)}


def attributes(values: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return attributes as OTLP writes them."""
    return [{"key": key, "value": _value(value)} for key, value in (values or {}).items() if value is not None]


def span_data(span: ReadableSpan) -> dict[str, Any]:
    """Return one span as OTLP in JSON writes it."""
    context = span.get_span_context()
    data = {
        "traceId": f"{context.trace_id:032x}",
        "spanId": f"{context.span_id:016x}",
        "name": span.name,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": attributes(dict(span.attributes or {})),
        "events": [
            {"timeUnixNano": str(event.timestamp), "name": event.name, "attributes": attributes(_shortened(event))}
            for event in span.events
        ],
        "status": {
            **_STATUS[span.status.status_code.value],
            **({"message": span.status.description} if span.status.description else {}),
        },
    }
    return {**data, "parentSpanId": f"{span.parent.span_id:016x}"} if span.parent else data


def _shortened(event: Any) -> dict[str, Any]:
    """Return the attributes of an event without the stack trace, which names files of this machine."""
    return {key: value for key, value in (event.attributes or {}).items() if key != "exception.stacktrace"}


def request(spans: Iterable[ReadableSpan]) -> dict[str, Any]:
    """Return an export request with these spans, grouped by instrumentation."""
    scopes: dict[str, list[dict[str, Any]]] = {}
    for span in spans:
        scopes.setdefault(span.instrumentation_scope.name, []).append(span_data(span))
    groups = [{"scope": {"name": name}, "spans": each} for name, each in scopes.items()]
    resource = {"attributes": attributes({"service.name": "emitter"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": groups}]}


def save(name: str, logs: list[dict[str, Any]] | None = None) -> None:
    """Write the spans, and log records beside them, to a file, and forget them."""
    lines = [request(SPANS.get_finished_spans())]
    if logs:
        resource = {"attributes": attributes({"service.name": "emitter"})}
        lines.append({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": logs}]}]})
    SPANS.clear()
    INTO.mkdir(parents=True, exist_ok=True)
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    text = text.replace(sys.prefix, "ENVIRONMENT").replace(str(Path(__file__).parent), "EMITTERS")
    text = text.replace(sys.base_prefix, "PYTHON")
    (INTO / f"{name}.jsonl").write_text(text + "\n", encoding="utf-8")
    print(name, flush=True)
