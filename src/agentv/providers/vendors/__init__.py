"""Models of vendors: the settings that all have, and requests whose replies are whole or streamed."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Protocol
from urllib.parse import urlsplit

from msgspec import UNSET, Meta
from msgspec.structs import replace

from agentv.errors import FormatError, Problem
from agentv.formats.reader import cut_echo
from agentv.formats.sse import ServerEvent, SseDecoder
from agentv.formats.unread import with_unread_fields
from agentv.providers.base import ProviderBase, attach_partial_reply, failure
from agentv.providers.transport.failures import (
    TransportError,
    body_excerpt,
    failure_from,
    failure_in_stream,
    read_json,
    redact_url,
    transport_error,
)
from agentv.providers.transport.urls import check_address, check_headers, merge_headers

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping

    from agentv.model.conversation import Message
    from agentv.model.request import Request
    from agentv.model.response import ProviderResponse
    from agentv.providers.transport.client import HttpClient
    from agentv.providers.transport.failures import HttpResponse


_EVENTS = "text/event-stream"
_EVENT_STARTS = (b"data:", b"event:", b"id:", b":")
_NOT_CARRIED_OUT = "This call was not carried out."
NO_HEADERS: Mapping[str, str] = {}
_REQUEST_IDS = ("x-request-id", "request-id")


class StreamDecoder(Protocol):
    """Decoder of a streamed reply."""

    error: Any

    def feed(self, event: ServerEvent) -> None:
        """Decode the next event."""
        ...

    @property
    def is_complete(self) -> bool:
        """True if the reply is complete."""
        ...

    @property
    def body(self) -> dict[str, Any]:
        """Body as it would be without streaming."""
        ...


class Dialect(NamedTuple):
    """Reply format of a vendor's endpoint."""

    decode: Callable[[Any], ProviderResponse]
    error_in: Callable[[Any], Any]
    """Returns the error that a body holds in place of a reply."""
    decoder: Callable[[], StreamDecoder]
    keys: frozenset[str] | None
    """Keys of a body that are read; all others are searched for calls."""


class ModelSession:
    """Open provider of a model: an HTTP client, and the endpoint that it sends requests to."""

    def __init__(
        self,
        client: HttpClient,
        url: str,
        make_body: Callable[[Request], dict[str, Any]],
        dialect: Dialect,
        key_hint: str = "",
    ) -> None:
        self._client = client
        self._url = url
        self._make_body = make_body
        self._dialect = dialect
        self._key_hint = key_hint

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the reply of the model."""
        if request.resume is not UNSET:
            return failure("protocol", "this turn resumes the agent with a value, and a model takes messages only")
        messages, open_calls = close_calls(request.input_messages)
        body = self._make_body(replace(request, input_messages=messages))
        response = await ask_model(self._client, self._url, body, self._dialect, request.headers)
        response = cut_echo(response, request.input_messages)
        if open_calls:
            warning = f"earlier calls without a result were sent as not carried out: {', '.join(open_calls)}"
            response = replace(response, warnings=(*response.warnings, warning))
        error = response.error
        if error is None or error.code != "unauthorized" or not self._key_hint:
            return response
        return replace(response, error=replace(error, message=f"{error.message}; {self._key_hint}"))

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


class ModelProvider(ProviderBase, kw_only=True):
    """Settings that all models of vendors have."""

    key_name: ClassVar[str]
    """Environment variable of the API key."""
    own_host: ClassVar[str]
    """Host of the vendor, the only one that this key is sent to."""
    own_fields: ClassVar[tuple[str, ...]]
    """Fields of the body that `extra_body` must not have."""

    model: Annotated[str, Meta(min_length=1)]
    """Name of the model."""
    base_url: Annotated[str, Meta(min_length=1)]
    """URL of the server, with or without `/v1` and a trailing slash."""
    api_key: str | None = None
    """API key; by default, for the vendor's own server, the value of its environment variable. Else none is sent."""
    headers: dict[str, str] = {}
    """Further headers; they replace ours of the same name."""
    temperature: float | None = None
    """Sampling temperature; the model's own default without it."""
    stream: bool = False
    """True to stream the reply."""
    extra_body: dict[str, Any] = {}
    """Further fields of the body; `null` removes one that we would send."""

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Environment variable of the key, if `api_key` is not given and the server is the vendor's own."""
        return (self.key_name,) if self.api_key is None and self.is_own_host else ()

    @property
    def urls(self) -> tuple[str, ...]:
        """URL of the server, which may be the default."""
        return (self.base_url,)

    @property
    def is_own_host(self) -> bool:
        """True if `base_url` is a server of the vendor itself: the vendor's key is sent to no other."""
        return is_host_of(self.base_url, self.own_host)

    @property
    def key(self) -> str:
        """API key that is sent; empty for none."""
        value = self.api_key
        if value is None:
            value = os.environ.get(self.key_name, "") if self.is_own_host else ""
        return value.strip()

    @property
    def key_hint(self) -> str:
        """Advice for a server that requires a key and was sent none, though the environment has the vendor's."""
        if self.api_key is not None or self.is_own_host or not os.environ.get(self.key_name):
            return ""
        return f"{self.key_name} is sent to {self.own_host} only: write `api_key: ${{{self.key_name}}}` to send it here"

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the settings as a whole."""
        return [
            *check_address(self.base_url, f"{path}.base_url"),
            *check_headers(self.headers, f"{path}.headers"),
            *_check_extra_body(self.extra_body, self.own_fields, path),
        ]


def is_host_of(url: str, host: str) -> bool:
    """Return whether a URL leads to this host, or one below it, and nowhere else, by a secure connection."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return False
    # What programs disagree on, such as a backslash or a user, leads elsewhere for some of them.
    if parts.scheme != "https" or "@" in parts.netloc or "\\" in url:
        return False
    name = parts.hostname or ""
    return name == host or name.endswith(f".{host}")


async def open_session(
    headers: Mapping[str, str],
    url: str,
    make_body: Callable[[Request], dict[str, Any]],
    dialect: Dialect,
    key_hint: str = "",
) -> ModelSession:
    """Return a session with an HTTP client; nothing is sent yet."""
    from agentv.providers.transport.client import HttpClient  # noqa: PLC0415 - checking a target needs no HTTP

    client = HttpClient(headers=headers)
    await client.open()
    return ModelSession(client, url, make_body, dialect, key_hint)


def _check_extra_body(body: Mapping[str, Any], own: Iterable[str], path: str) -> list[Problem]:
    """Return the problems of an `extra_body`: fields with a setting of their own, or set by the provider."""
    return [Problem(f"{path}.extra_body.{name}", _instead(name), "key") for name in own if name in body]


def _instead(name: str) -> str:
    if name in ("messages", "input"):
        return f"{name!r} is made of the case's input"
    return f"{name!r} has a setting of its own: write `{name}` beside `extra_body`"


def with_extra(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body with the extra fields, and without null values."""
    return {name: value for name, value in {**body, **extra}.items() if value is not None}


def close_calls(messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], list[str]]:
    """Return the messages with a result for each call, because the APIs demand one, and the tools that had none.

    Calls of a model are recorded and not carried out, so in a conversation most have no result. Those of the last
    message may still get one.
    """
    answered = {message.tool_call_id for message in messages if message.role == "tool" and message.tool_call_id}
    unnamed = Counter(message.name for message in messages if message.role == "tool" and not message.tool_call_id)
    closed: list[Message] = []
    tools: list[str] = []
    for message in messages[:-1]:
        open_ids = [
            at
            for at, call in enumerate(message.tool_calls)
            if call.output is UNSET and call.error is None and call.id not in answered
            if not (unnamed[call.tool] or unnamed[None])
        ]
        if open_ids:
            calls = [
                replace(call, output=_NOT_CARRIED_OUT, status="error") if at in open_ids else call
                for at, call in enumerate(message.tool_calls)
            ]
            tools += [message.tool_calls[at].tool for at in open_ids]
            message = replace(message, tool_calls=tuple(calls))  # noqa: PLW2901 - the one that is sent
        closed.append(message)
    return (*closed, *messages[-1:]), tools


async def ask_model(
    client: HttpClient, url: str, body: Mapping[str, Any], dialect: Dialect, headers: Mapping[str, str] = NO_HEADERS
) -> ProviderResponse:
    """Send a request and return the normalized reply with its latency; a failure is a reply, too."""
    start = perf_counter()
    try:
        if body.get("stream") is True:
            response = await _stream_reply(client, url, body, dialect, headers)
        else:
            response = _read(await client.send("POST", url, json=body, headers=headers), dialect)
    except TransportError as error:
        response = error.response
    return replace(response, latency_ms=round((perf_counter() - start) * 1000, 3))


def _read(answer: HttpResponse, dialect: Dialect) -> ProviderResponse:
    return _normalize(read_json(answer), answer, dialect) if answer.is_ok else failure_from(answer)


def _normalize(body: Any, head: HttpResponse, dialect: Dialect) -> ProviderResponse:
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


async def _stream_reply(
    client: HttpClient, url: str, body: Mapping[str, Any], dialect: Dialect, headers: Mapping[str, str]
) -> ProviderResponse:
    decoder = dialect.decoder()
    async with client.stream("POST", url, json=body, headers=merge_headers({"Accept": _EVENTS}, headers)) as stream:
        head = stream.head
        if stream.is_ok and head.content_type == _EVENTS:
            await _decode_stream(stream, decoder, head, dialect)
        else:
            answer = await stream.read()
            if not answer.is_ok or not answer.body.lstrip().startswith(_EVENT_STARTS):
                return _read(answer, dialect)  # an error, or a server that does not stream
            await _decode_stream(_once(answer.body), decoder, head, dialect)
    if decoder.error is not None:
        return failure_in_stream(decoder.error, head)
    if not decoder.is_complete:
        msg = f"{head.url} ended its reply in the middle"
        raise transport_error(msg, retryable=True, code="cut_off")
    return _normalize(decoder.body, head, dialect)


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _decode_stream(
    chunks: AsyncIterable[bytes], decoder: StreamDecoder, head: HttpResponse, dialect: Dialect
) -> None:
    """Decode all events, up to an error among them; on cancellation, the reply until then is attached."""
    reader = SseDecoder()
    event: ServerEvent | None = None
    try:
        async for chunk in chunks:
            for event in reader.feed(chunk):
                decoder.feed(event)
                if decoder.error is not None:
                    return
    except asyncio.CancelledError as cancelled:
        if event is not None:
            with suppress(Exception):  # the part that arrived may be unreadable
                attach_partial_reply(cancelled, _normalize(decoder.body, head, dialect))
        raise
    except FormatError as error:
        words = redact_url(body_excerpt(event.data.encode()), head.hidden) if event else ""
        msg = f"{head.url} sent an event that cannot be read ({error}): {words}"
        raise transport_error(msg, kind="protocol", code="malformed") from None
    for event in reader.finish():
        with suppress(FormatError):  # the reply is reported as incomplete below
            decoder.feed(event)
