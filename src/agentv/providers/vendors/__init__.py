"""One question to a vendor's model: the request goes out, the reply comes back whole or in pieces."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.sse import ServerEvent, SseDecoder
from agentv.formats.unread import with_unread_fields
from agentv.providers.base import attach_partial_reply, failure
from agentv.providers.transport.client import (
    TransportError,
    failure_from,
    failure_in_stream,
    read_json,
    redact_url,
    transport_error,
)
from agentv.providers.transport.failures import first_words

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping

    from agentv.model.response import ProviderResponse
    from agentv.providers.transport.client import HttpClient, HttpResponse


_EVENTS = "text/event-stream"
_EVENT_STARTS = (b"data:", b"event:", b"id:", b":")
_REQUEST_IDS = ("x-request-id", "request-id")


class Pieces(Protocol):
    """A reply that is put together while it comes."""

    error: Any

    def feed(self, event: ServerEvent) -> None:
        """Take in the next event."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the reply has come to its end."""
        ...

    @property
    def body(self) -> dict[str, Any]:
        """What would have come without streaming."""
        ...


class Dialect(NamedTuple):
    """How one vendor's endpoint answers."""

    decode: Callable[[Any], ProviderResponse]
    error_in: Callable[[Any], Any]
    """The error that a body holds in place of a reply."""
    pieces: Callable[[], Pieces]
    keys: frozenset[str] | None
    """The keys of a body that are read; all others are searched for calls."""


async def ask_model(wire: HttpClient, url: str, body: Mapping[str, Any], dialect: Dialect) -> ProviderResponse:
    """The model's reply, normalised, with the time that it took; a failure is a reply too."""
    start = perf_counter()
    try:
        if body.get("stream") is True:
            response = await _ask_for_pieces(wire, url, body, dialect)
        else:
            response = _read(await wire.send("POST", url, json=body), dialect)
    except TransportError as error:
        response = error.response
    return replace(response, latency_ms=round((perf_counter() - start) * 1000, 3))


def _read(answer: HttpResponse, dialect: Dialect) -> ProviderResponse:
    return _normalise(read_json(answer), answer, dialect) if answer.is_ok else failure_from(answer)


def _normalise(body: Any, head: HttpResponse, dialect: Dialect) -> ProviderResponse:
    error = dialect.error_in(body)
    if error is not None:
        return failure_in_stream(error, head, f"{head.url} answered {head.status} with an error")
    try:
        response = with_unread_fields(dialect.decode(body), body, dialect.keys or ())
    except FormatError as wrong:
        return failure("protocol", f"the reply of {head.url} cannot be read: {wrong}")
    request_id = next((head.headers[name] for name in _REQUEST_IDS if name in head.headers), None)
    if request_id is None:
        return response
    return replace(response, metadata={**(response.metadata or {}), "request_id": request_id})


async def _ask_for_pieces(wire: HttpClient, url: str, body: Mapping[str, Any], dialect: Dialect) -> ProviderResponse:
    pieces = dialect.pieces()
    async with wire.stream("POST", url, json=body, headers={"Accept": _EVENTS}) as stream:
        head = stream.head
        if stream.is_ok and head.content_type == _EVENTS:
            await _gather(stream, pieces, head, dialect)
        else:
            answer = await stream.read()
            if not answer.is_ok or not answer.body.lstrip().startswith(_EVENT_STARTS):
                return _read(answer, dialect)  # an error, or a server that does not stream
            await _gather(_once(answer.body), pieces, head, dialect)
    if pieces.error is not None:
        return failure_in_stream(pieces.error, head)
    if not pieces.is_complete:
        msg = f"{head.url} ended its reply in the middle"
        raise transport_error(msg, retryable=True, code="cut_off")
    return _normalise(pieces.body, head, dialect)


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _gather(chunks: AsyncIterable[bytes], pieces: Pieces, head: HttpResponse, dialect: Dialect) -> None:
    """Feed all events, up to an error among them; when this is cancelled, the reply until then is kept."""
    reader = SseDecoder()
    event: ServerEvent | None = None
    try:
        async for chunk in chunks:
            for event in reader.feed(chunk):
                pieces.feed(event)
                if pieces.error is not None:
                    return
    except asyncio.CancelledError as cancelled:
        if event is not None:
            with suppress(Exception):  # as far as it came, it may be of no use
                attach_partial_reply(cancelled, _normalise(pieces.body, head, dialect))
        raise
    except FormatError as error:
        words = redact_url(first_words(event.data.encode()), head.hidden) if event else ""
        msg = f"{head.url} sent an event that cannot be read ({error}): {words}"
        raise transport_error(msg, kind="protocol", code="malformed") from None
    for event in reader.finish():
        with suppress(FormatError):  # it was cut off, and so is the reply
            pieces.feed(event)
