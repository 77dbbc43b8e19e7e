"""A reply that comes as a stream of events: how they are received, and what they amount to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.detect import describe_shape, longest_text
from agentv.formats.reader import read_assembled_stream
from agentv.formats.sse import LineBuffer, SseDecoder
from agentv.formats.streams import StreamEvent, assemble_stream
from agentv.jsonio import parse_json
from agentv.model.response import ProviderResponse
from agentv.providers.http.pointers import PointerValues, add_pointed, error_of, grows, read_pointed
from agentv.providers.http.response import ReplySettings, failed, with_shape
from agentv.providers.transport.client import failure_in_stream, transport_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentv.model.conversation import Message
    from agentv.providers.transport.client import HttpResponse, ResponseStream


DONE = "[DONE]"
"""What ends a stream wherever it stands; none needs it."""
_JSON_LINES = ("ndjson", "jsonl", "jsonlines", "x-ndjson", "x-jsonl", "x-jsonlines", "stream+json", "json-lines")
_DRAIN_S = 0.1
_MAX_KINDS = 8


class Received(NamedTuple):
    """Everything that came, as it came."""

    events: list[tuple[str, str]]
    """Name and data of each."""
    is_done: bool
    """Whether the mark was seen that ends it."""
    trouble: FormatError | None = None


def stream_kind(content_type: str, setting: str | None) -> str:
    """Whether a reply is read as `sse`, as `ndjson`, or as one document (`none`)."""
    main, _, sub = content_type.partition("/")
    if setting == "none" or (setting == "sse" and sub in ("json", "problem+json")):
        return "none"
    if setting is not None:
        return setting
    if content_type == "text/event-stream":
        return "sse"
    return "ndjson" if main in ("application", "text") and sub in _JSON_LINES else "none"


Keep = Callable[[asyncio.CancelledError, Received], None]


async def receive(stream: ResponseStream, kind: str, done: str | None, keep: Keep | None = None) -> Received:
    """Return every event up to the mark that ends them, or to the end of the stream; `keep` those until it is cut."""
    reader = _Reader(kind)
    marks = (DONE, done)
    events: list[tuple[str, str]] = []
    try:
        async for chunk in stream:
            for event in reader.feed(chunk):
                if event[1].strip() in marks:
                    await _drain(stream)
                    return Received(events, is_done=True)
                events.append(event)
        for event in reader.finish():
            if event[1].strip() in marks:
                return Received(events, is_done=True)
            events.append(event)
    except asyncio.CancelledError as error:
        if events:
            error.add_note(f"events of its stream that had come: {len(events):,}")
        if events and keep is not None:
            keep(error, Received(events, is_done=True))
        raise
    except FormatError as error:  # told outside, where it is not taken for trouble with the connection
        return Received(events, is_done=False, trouble=error)
    return Received(events, is_done=False)


async def _drain(stream: ResponseStream) -> None:
    """Read to the end what is about to end, so that the connection can be used again."""
    with suppress(Exception):  # the reply is whole: whatever happens now is not its fault
        async with asyncio.timeout(_DRAIN_S):
            async for _ in stream:
                pass


class _Reader:
    """Events of either kind, each as its name and its data."""

    def __init__(self, kind: str) -> None:
        self._events = SseDecoder() if kind == "sse" else None
        self._lines = LineBuffer()

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
    received: Received, head: HttpResponse, kind: str, reading: ReplySettings, asked: Sequence[Message]
) -> ProviderResponse:
    """The reply that the events amount to; `FormatError` or `WireError` when they do not."""
    if received.trouble is not None:
        raise received.trouble
    events = _parsed(received, head, kind)
    is_told = reading.pointers.error is not None
    error = next((found for event in events if (found := _error_in(event, is_told=is_told)) is not None), None)
    if error is not None:
        return _failure(error, head)
    if reading.done is not None and not received.is_done:
        raise _cut_off(head, repr(reading.done))
    if not events:
        msg = f"{head.url} sent a stream without any event"
        raise transport_error(msg, kind="protocol", code="malformed")
    wanted = [event for event in events if not reading.events or {event.name, event.kind} & set(reading.events)]
    if not wanted:
        msg = f"none of the {len(events):,} events is one of {', '.join(reading.events)}; there are {_kinds(events)}"
        raise FormatError(msg)
    return _read(wanted, received, head, reading, asked)


def _read(
    events: list[StreamEvent], received: Received, head: HttpResponse, reading: ReplySettings, asked: Sequence[Message]
) -> ProviderResponse:
    pointed = PointerValues(reading.pointers, snapshots=reading.snapshots)
    for event in events:
        pointed.add(event.value)
    if pointed.error is not None:
        return failed(pointed)
    if reading.pointers.tell_answer:
        response = read_pointed(pointed, asked, events[0].value)
        return with_shape(_noted(add_pointed(response, pointed), pointed.texts, reading), "reply")
    folded = assemble_stream(events, snapshots=reading.snapshots)
    if folded is None:
        raise FormatError(_unknown(events))
    if folded.missing and not received.is_done:
        raise _cut_off(head, folded.missing)
    # The mark that ends every stream came: nothing is missing, whatever this kind of stream usually ends with.
    found = read_assembled_stream(folded._replace(missing=""), asked)
    response = _noted(add_pointed(found.response, pointed), folded.texts, reading)
    return with_shape(response, found.shape)


def _parsed(received: Received, head: HttpResponse, kind: str) -> list[StreamEvent]:
    """The events with their data read; of a stream of plain words, the words."""
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


def _holds_words(received: Received) -> bool:
    """Whether some event is no JSON and never was meant to be: then a brace is a word, too."""
    return any(data.strip() and data.lstrip()[0] not in '{["' for _, data in received.events)


def _is_structured(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))


def _unreadable(broken: tuple[int, FormatError], received: Received, head: HttpResponse) -> Exception:
    number, error = broken
    if number == len(received.events) and not received.is_done:
        return _cut_off(head, f"the rest of event {number:,}")
    return transport_error(f"event {number:,} of the stream cannot be read: {error}", kind="protocol", code="malformed")


def _error_in(event: StreamEvent, *, is_told: bool) -> Any:
    """What an event says went wrong, if it says so; where the settings tell where to look, not just anywhere."""
    value = event.value
    if event.name == "error":
        return value or "no reason given"
    if not isinstance(value, dict):
        return None
    if value.get("type") == "error":
        return value.get("errorText") or value  # the AI SDK has no more to say than that
    if value.get("type") == "response.failed" and isinstance(value.get("response"), dict):
        return {"error": value["response"].get("error") or "no reason given"}
    error = None if is_told else value.get("error")
    return {"error": error} if error and isinstance(error, (str, dict)) and not value.get("choices") else None


def _failure(error: Any, head: HttpResponse) -> ProviderResponse:
    """What the server says of itself by a name that is known, or else what the agent says."""
    inner = error.get("error", error) if isinstance(error, dict) else error
    if isinstance(inner, dict) and any(isinstance(inner.get(key), str) for key in ("type", "code")):
        return failure_in_stream(error, head)
    if isinstance(error, dict) and isinstance(error.get("message"), str):  # LangGraph's: the class, and the words
        inner = error["message"]
    return with_shape(ProviderResponse(success=False, error=error_of(inner, None)), "error")


def _cut_off(head: HttpResponse, missing: str) -> Exception:
    msg = f"the stream of {head.url} ended before {missing} came: it was cut off"
    return transport_error(msg, kind="transport", retryable=True, code="cut_off")


def _noted(response: ProviderResponse, texts: Sequence[str], reading: ReplySettings) -> ProviderResponse:
    if reading.snapshots or not grows(texts):
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
