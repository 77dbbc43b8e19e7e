"""Streamed replies: receive events and read them as a reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.detect import describe_shape, longest_text
from agentv.formats.incomplete import with_cut_end
from agentv.formats.reader import read_assembled_stream
from agentv.formats.sse import LineBuffer, SseDecoder
from agentv.formats.streams import StreamEvent, assemble_stream
from agentv.jsonio import parse_json
from agentv.model.response import ProviderResponse
from agentv.providers.http.pointers import PointerValues, add_pointed, error_of, grows, read_pointed
from agentv.providers.http.response import ReplySettings, agent_failure, with_shape
from agentv.providers.transport.failures import failure_in_stream, transport_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentv.model.conversation import Message
    from agentv.providers.transport.client import ResponseStream
    from agentv.providers.transport.failures import HttpResponse


DONE = "[DONE]"
"""Data of the event that ends any stream; not required."""
_JSON_LINES = ("ndjson", "jsonl", "jsonlines", "x-ndjson", "x-jsonl", "x-jsonlines", "stream+json", "json-lines")
_DRAIN_S = 0.1
_MAX_KINDS = 8


class ReceivedEvents(NamedTuple):
    """Events that were received."""

    events: list[tuple[str, str]]
    """Name and data of each event."""
    is_done: bool
    """True if the event that ends the stream was received."""
    error: FormatError | None = None
    is_cut: bool = False
    """True if its compressed body ended early."""
    ended_in_line: bool = False
    """True if the last event ended in the middle of a line."""


def stream_kind(content_type: str, setting: str | None) -> str:
    """Return the format of a reply: `sse`, `ndjson`, or `none` for one document."""
    main, _, sub = content_type.partition("/")
    if setting == "none" or (setting == "sse" and sub in ("json", "problem+json")):
        return "none"
    if setting is not None:
        return setting
    if content_type == "text/event-stream":
        return "sse"
    return "ndjson" if main in ("application", "text") and sub in _JSON_LINES else "none"


OnCancelled = Callable[[asyncio.CancelledError, ReceivedEvents], None]


async def receive(
    stream: ResponseStream, kind: str, done: str | None, on_cancelled: OnCancelled | None = None
) -> ReceivedEvents:
    """Return all events up to the one that ends the stream; on cancellation, `keep` receives those until then."""
    reader = _EventDecoder(kind)
    marks = (DONE, done)
    events: list[tuple[str, str]] = []
    try:
        async for chunk in stream:
            for event in reader.feed(chunk):
                if event[1].strip() in marks:
                    await _drain(stream)
                    return ReceivedEvents(events, is_done=True)
                events.append(event)
        for event in reader.finish():
            if event[1].strip() in marks:
                return ReceivedEvents(events, is_done=True)
            events.append(event)
    except asyncio.CancelledError as error:
        if events:
            error.add_note(f"events of its stream that had come: {len(events):,}")
        if events and on_cancelled is not None:
            on_cancelled(error, ReceivedEvents(events, is_done=True))
        raise
    except FormatError as error:  # raised later, where it is not taken for a connection error
        return ReceivedEvents(events, is_done=False, error=error)
    return ReceivedEvents(events, is_done=False, is_cut=stream.is_cut, ended_in_line=reader.ended_in_line)


async def _drain(stream: ResponseStream) -> None:
    """Read the rest of a stream that is about to end, so that the connection can be reused."""
    with suppress(Exception):  # the reply is complete, so later errors are ignored
        async with asyncio.timeout(_DRAIN_S):
            async for _ in stream:
                pass


class _EventDecoder:
    """Decoder of events of either format, each as name and data."""

    def __init__(self, kind: str) -> None:
        self._events = SseDecoder() if kind == "sse" else None
        self._lines = LineBuffer()

    @property
    def ended_in_line(self) -> bool:
        """True if the last event ended in the middle of a line; the last line of JSON need not end with a newline."""
        return self._events is not None and self._events.ended_in_line

    def feed(self, chunk: bytes) -> Iterator[tuple[str, str]]:
        if self._events is not None:
            yield from ((event.event, event.data) for event in self._events.feed(chunk))
        else:
            yield from (
                ("message", line.decode("utf-8", "replace")) for line in self._lines.feed(chunk) if line.strip()
            )

    def finish(self) -> Iterator[tuple[str, str]]:
        if self._events is not None:
            yield from ((event.event, event.data) for event in self._events.finish())
        elif (rest := self._lines.finish()).strip():
            yield "message", rest.decode("utf-8", "replace")


def read_events(
    received: ReceivedEvents, head: HttpResponse, kind: str, settings: ReplySettings, messages: Sequence[Message]
) -> ProviderResponse:
    """Return the reply of these events; raise `FormatError` or `TransportError` if they are none."""
    if received.error is not None:
        raise received.error
    events = _parse_events(received, head, kind)
    is_told = settings.pointers.error is not None
    error = next((found for event in events if (found := _error_in(event, is_told=is_told)) is not None), None)
    if error is not None:
        return _failure(error, head)
    if settings.done is not None and not received.is_done:
        raise _cut_off_error(head, repr(settings.done))
    if not events:
        msg = f"{head.url} sent a stream without any event"
        raise transport_error(msg, kind="protocol", code="malformed")
    wanted = [event for event in events if not settings.events or {event.name, event.kind} & set(settings.events)]
    if not wanted:
        msg = f"none of the {len(events):,} events is one of {', '.join(settings.events)}; there are {_kinds(events)}"
        raise FormatError(msg)
    return _read(wanted, received, head, settings, messages)


def _read(
    events: list[StreamEvent],
    received: ReceivedEvents,
    head: HttpResponse,
    settings: ReplySettings,
    messages: Sequence[Message],
) -> ProviderResponse:
    values = PointerValues(settings.pointers, snapshots=settings.snapshots)
    for event in events:
        values.add(event.value)
    if values.error is not None:
        return agent_failure(values)
    if settings.pointers.tell_answer:
        response = read_pointed(values, messages, events[0].value)
        response = _with_snapshot_warning(add_pointed(response, values), values.texts, settings)
        return with_shape(_with_cut(response, _missing_end(events, received)), "reply")
    folded = assemble_stream(events, snapshots=settings.snapshots)
    if folded is None:
        raise FormatError(_unknown(events))
    if folded.missing and not received.is_done:
        raise _cut_off_error(head, folded.missing)
    # `[DONE]` was received, so the stream is complete even without its usual last event.
    found = read_assembled_stream(replace(folded, missing=""), events, messages)
    response = _with_snapshot_warning(add_pointed(found.response, values), folded.texts, settings)
    return with_shape(_with_cut(response, _cut_reason(events, received)), found.shape)


def _cut_reason(events: list[StreamEvent], received: ReceivedEvents) -> str:
    """Return why the end of a stream is missing; empty if it is not."""
    if received.is_cut:
        return "its compressed stream ended early"
    # An event that can be read as JSON is whole.
    is_text = bool(events) and isinstance(events[-1].value, str)
    return "the stream ended in the middle of an event" if received.ended_in_line and is_text else ""


def _missing_end(events: list[StreamEvent], received: ReceivedEvents) -> str:
    """Return the same for a stream that settings point into; if it is of a known kind, its last event is known too."""
    reason = _cut_reason(events, received)
    if reason or received.is_done:
        return reason
    with suppress(FormatError):
        folded = assemble_stream(events)
        if folded is not None and folded.missing:
            return f"the stream ended before {folded.missing} came"
    return ""


def _with_cut(response: ProviderResponse, reason: str) -> ProviderResponse:
    return with_cut_end(response, reason) if reason else response


def _parse_events(received: ReceivedEvents, head: HttpResponse, kind: str) -> list[StreamEvent]:
    """Parse the data of events as JSON, unless it is a stream of plain text."""
    events: list[StreamEvent] = []
    broken: tuple[int, FormatError] | None = None
    for number, (name, data) in enumerate(received.events, start=1):
        value: Any = data
        if kind == "ndjson" or data.lstrip()[:1] in ("{", "[", '"'):
            try:
                value = parse_json(data)
            except FormatError as error:
                if kind == "ndjson" or data.lstrip()[:1] == "{":
                    broken = broken or (number, error)
        events.append(StreamEvent(value, name))
    if kind == "sse" and _holds_words(received) and not any(_is_structured(event.value) for event in events):
        return [StreamEvent(data, name) for name, data in received.events]
    if broken is not None:
        raise _unreadable(broken, received, head)
    return events


def _holds_words(received: ReceivedEvents) -> bool:
    """Return whether some event is plain text, so that none is parsed as JSON."""
    return any(data.strip() and data.lstrip()[0] not in '{["' for _, data in received.events)


def _is_structured(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))


def _unreadable(broken: tuple[int, FormatError], received: ReceivedEvents, head: HttpResponse) -> Exception:
    number, error = broken
    if number == len(received.events) and not received.is_done:
        return _cut_off_error(head, f"the rest of event {number:,}")
    return transport_error(f"event {number:,} of the stream cannot be read: {error}", kind="protocol", code="malformed")


def _error_in(event: StreamEvent, *, is_told: bool) -> Any:
    """Return the error that an event holds; only where the settings point to, if they do."""
    value = event.value
    if event.name == "error":
        return value or "no reason given"
    if not isinstance(value, dict):
        return None
    if value.get("type") == "error":
        return value.get("errorText") or value  # the AI SDK sends only a text
    if value.get("type") == "response.failed" and isinstance(value.get("response"), dict):
        return {"error": value["response"].get("error") or "no reason given"}
    error = None if is_told else value.get("error")
    return {"error": error} if error and isinstance(error, (str, dict)) and not value.get("choices") else None


def _failure(error: Any, head: HttpResponse) -> ProviderResponse:
    """Return the failure of the server if the error has a known name, else that of the agent."""
    inner = error.get("error", error) if isinstance(error, dict) else error
    if isinstance(inner, dict) and any(isinstance(inner.get(key), str) for key in ("type", "code")):
        return failure_in_stream(error, head)
    if isinstance(error, dict) and isinstance(error.get("message"), str):  # LangGraph sends the class and the message
        inner = error["message"]
    return with_shape(ProviderResponse(success=False, error=error_of(inner, None)), "error")


def _cut_off_error(head: HttpResponse, missing: str) -> Exception:
    msg = f"the stream of {head.url} ended before {missing} came: it was cut off"
    return transport_error(msg, kind="transport", retryable=True, code="cut_off")


def _with_snapshot_warning(
    response: ProviderResponse, texts: Sequence[str], settings: ReplySettings
) -> ProviderResponse:
    if settings.snapshots or not grows(texts):
        return response
    note = "each event's text begins with the one before it: if it is all of the text so far, write `snapshots: true`"
    return replace(response, warnings=(*response.warnings, note))


def _unknown(events: list[StreamEvent]) -> str:
    about = f"{len(events):,} events of no known kind: {_kinds(events)}; the first is {describe_shape(events[0].value)}"
    place = next((found for event in events if (found := longest_text(event.value)) is not None), "/path/to/text")
    named = next((event.kind for event in events if event.kind not in ("", "message")), "NAME")
    say = f"`reply: {{text: {place}}}`, and `events: [{named}]` if only some of them hold it"
    return f"the reply is a stream of {about}. Say in the target where the pieces of its text stand: {say}"


def _kinds(events: list[StreamEvent]) -> str:
    kinds = list(dict.fromkeys(event.kind or "message" for event in events))
    return ", ".join(map(repr, kinds[:_MAX_KINDS])) + (", …" if len(kinds) > _MAX_KINDS else "")
