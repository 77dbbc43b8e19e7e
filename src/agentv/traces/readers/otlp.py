"""OTLP files: JSON documents, JSON Lines of a collector's file exporter, and protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.errors import FormatError
from agentv.jsonio import dump_json, parse_json
from agentv.protocols.traces import TraceFormat, TraceSample
from agentv.traces.files import READ_ERRORS
from agentv.traces.records import PARSE_ERRORS, describe_error, flat_records
from agentv.traces.spans.otlp import is_otlp, spans_of_otlp
from agentv.traces.spans.protobuf import is_protobuf, spans_of_stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgspec import Raw

    from agentv.model.session import OtelSpan, Session
    from agentv.protocols.traces import TraceSink, TraceSource


NO_SPAN = "a span without an id or with malformed attributes, or that is no object"


def _detect(sample: TraceSample) -> bool:
    return any(map(is_otlp, sample.values))


def _read(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    """Add the spans of a file; a line with a mistake is reported, and its other spans are kept."""
    for record in flat_records(file, sink, as_lines=is_lines):
        try:
            for span in _spans(record.data):
                if span is None:
                    sink.skip(record.place, NO_SPAN)
                else:
                    add_span(sink, span, record.place, file, "otlp")
        except PARSE_ERRORS as error:
            sink.skip(record.place, describe_error(error))
    return iter(())


def _spans(data: bytes | Raw) -> Iterator[OtelSpan | None]:
    """Yield the spans of a request; JSON that only a tolerant parser accepts is written anew first."""
    try:
        yield from spans_of_otlp(data)
    except FormatError:
        raise
    except PARSE_ERRORS:
        yield from spans_of_otlp(dump_json(parse_json(bytes(data))))


def add_span(sink: TraceSink, span: OtelSpan, place: str, file: TraceSource, name: str) -> None:
    """Add a span with the place that it was read from."""
    span.place = place
    span.file = file.index
    span.format = name
    sink.add_span(span)


def _detect_protobuf(sample: TraceSample) -> bool:
    return is_protobuf(sample.head)


def _read_protobuf(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    del is_lines
    number = 0
    try:
        with file.open() as stream:
            for number, span in spans_of_stream(stream):
                add_span(sink, span, f"{file.name}:{number}", file, "otlp")
    except (*PARSE_ERRORS, *READ_ERRORS) as error:
        sink.skip(f"{file.name}:{number + 1}", describe_error(error))
    return iter(())


FORMAT = TraceFormat(
    name="otlp", description="OpenTelemetry: OTLP as JSON or JSON Lines, spans and logs", detect=_detect, read=_read
)
PROTOBUF = TraceFormat(
    name="otlp_protobuf", description="OpenTelemetry: OTLP as protobuf", detect=_detect_protobuf, read=_read_protobuf
)
