"""Stored traces for tests: the fixtures that real libraries emitted, and short forms of sessions."""

import gzip
import json
from pathlib import Path
from typing import Any

from msgspec import UNSET

from agentv.model.session import Session, TraceCoverage
from agentv.traces.reading import TraceReading

FIXTURES = Path(__file__).parent.parent / "data" / "traces"
OTLP = sorted(path for path in FIXTURES.iterdir() if path.name.removesuffix(".gz").endswith(".jsonl"))


def read_traces(*paths: Path | str, **options: Any) -> tuple[list[Session], TraceCoverage]:
    """Read all sessions of these files with their coverage."""
    reading = TraceReading(tuple(map(str, paths)), **options)
    sessions = list(reading.sessions())
    return sessions, reading.coverage.build()


def read_one(path: Path | str, **options: Any) -> Session:
    """Read the only session of a file."""
    (session,), _ = read_traces(path, **options)
    return session


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the values of a JSON Lines file, which may be compressed."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.splitlines() if line.strip()]


def write_lines(path: Path, values: list[Any]) -> Path:
    """Write values as JSON Lines."""
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values), encoding="utf-8")
    return path


def calls(session: Session) -> list[tuple[str, Any]]:
    """Return the tools and inputs of all calls; `None` for an input that was not captured."""
    return [
        (call.tool, None if call.input is UNSET else call.input)
        for message in session.response.output_messages or ()
        for call in message.tool_calls
    ]


def results(session: Session) -> list[tuple[str, Any, str | None]]:
    """Return the tools, outputs and statuses of all calls; `None` for an output that was not captured."""
    return [
        (call.tool, None if call.output is UNSET else call.output, call.status)
        for message in session.response.output_messages or ()
        for call in message.tool_calls
    ]


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP writes them."""
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def span(number: int, name: str, start: int, end: int, **fields: Any) -> dict[str, Any]:
    """Return a span of the trace `trace`, with its attributes in `attributes` and times in milliseconds from a day."""
    base = 1_790_000_000_000
    made = {
        "traceId": f"{fields.pop('trace', 1):032x}",
        "spanId": f"{number:016x}",
        "name": name,
        "startTimeUnixNano": str((base + start) * 1_000_000),
        "endTimeUnixNano": str((base + end) * 1_000_000),
        "attributes": attributes(fields.pop("attributes", {})),
        "status": {"code": "STATUS_CODE_ERROR"} if fields.pop("failed", False) else {},
    }
    parent = fields.pop("parent", None)
    return {**made, **({} if parent is None else {"parentSpanId": f"{parent:016x}"}), **fields}


def chat(number: int, start: int, end: int, said: list[Any], asked: list[Any] | None = None, **fields: Any) -> Any:
    """Return the span of a model with the messages that it received and wrote."""
    values = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": said,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
        **({} if asked is None else {"gen_ai.input.messages": asked}),
        **fields.pop("attributes", {}),
    }
    return span(number, "chat m", start, end, attributes=values, **fields)


def tool(number: int, name: str, start: int, end: int, **fields: Any) -> Any:
    """Return the span of a tool."""
    values = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **fields.pop("attributes", {})}
    return span(number, f"execute_tool {name}", start, end, attributes=values, **fields)


def request(*spans: Any, resource: dict[str, Any] | None = None, scope: str = "test") -> dict[str, Any]:
    """Return a request of OTLP with these spans."""
    group = {"scope": {"name": scope}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": {"attributes": attributes(resource or {})}, "scopeSpans": [group]}]}


def user(text: str) -> dict[str, Any]:
    """Return a message of the user in the form of GenAI."""
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def said(text: str | None = None, *asked: tuple[str, str, Any]) -> dict[str, Any]:
    """Return a message of the assistant with calls, each as (id, tool, arguments)."""
    parts = [] if text is None else [{"type": "text", "content": text}]
    parts += [{"type": "tool_call", "id": id_, "name": name, "arguments": value} for id_, name, value in asked]
    return {"role": "assistant", "parts": parts}


def result(id_: str, value: Any) -> dict[str, Any]:
    """Return a message with the result of a call."""
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": id_, "response": value}]}
