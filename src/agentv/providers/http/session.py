"""Open `http` provider: send a request and read the reply, whole or as a stream."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.providers.base import attach_partial_reply, failure
from agentv.providers.http.events import read_events, receive, stream_kind
from agentv.providers.http.request import RequestSettings, RequestWriter
from agentv.providers.http.response import ReplySettings, read_document
from agentv.providers.transport.client import HttpClient
from agentv.providers.transport.failures import TransportError, failure_from

if TYPE_CHECKING:
    from asyncio import CancelledError
    from collections.abc import Sequence

    from agentv.model.conversation import Message
    from agentv.model.request import Request
    from agentv.model.response import ProviderResponse
    from agentv.providers.http import Http
    from agentv.providers.http.events import ReceivedEvents
    from agentv.providers.http.request import HttpRequest
    from agentv.providers.transport.failures import HttpResponse


class HttpSession:
    """HTTP client of a target, with its settings prepared for use."""

    def __init__(self, settings: Http, client: HttpClient) -> None:
        self._settings = settings
        self._client = client
        self._writer = RequestWriter(
            RequestSettings(
                url=settings.url,
                method=settings.method,
                headers=settings.headers,
                query=settings.query,
                body=settings.body,
                message_format=settings.message_format,
                stream=settings.stream,
                thread_header=settings.thread_header,
                mode=settings.conversation_mode,
            )
        )
        self._reply = ReplySettings(
            pointers=settings.reply, done=settings.done, events=settings.events, snapshots=settings.snapshots
        )

    @classmethod
    async def open(cls, settings: Http) -> HttpSession:
        """Create the client and return the session."""
        client = HttpClient(max_body_bytes=settings.max_reply_bytes)
        session = cls(settings, client)
        await client.open()
        return session

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the reply of the endpoint; on cancellation, the connection is closed."""
        if request.is_conversation and self._settings.conversation_mode == "full":
            request = replace(
                request, thread_id=None
            )  # each turn has the whole conversation, so it starts a new thread
        if self._settings.new_thread_id and request.thread_id is None:
            request = replace(request, thread_id=str(uuid4()))
        try:
            http_request = self._writer.write(request)
        except FormatError as error:
            return failure("transport", f"the request cannot be written: {error}")
        try:
            response, head = await self._send(http_request, request.input_messages)
        except FormatError as error:
            return failure("protocol", str(error))
        except TransportError as error:
            return _with_advice(error.response)
        if head.status in _GONE and request.turn > 1 and request.thread_id:
            return _with_thread(response, request.thread_id)
        name = self._settings.thread_header
        thread_id = self._thread_id(response, head.headers.get(name.lower()) if name else None)
        return replace(response, thread_id=thread_id or request.thread_id)

    def _thread_id(self, response: ProviderResponse, in_header: str | None) -> str | None:
        """Return the thread id: where `reply.thread_id` points, else of the header, else at a usual place."""
        if self._settings.reply.thread_id is not None and response.thread_id:
            return response.thread_id
        return in_header or response.thread_id

    async def _send(
        self, http_request: HttpRequest, messages: Sequence[Message]
    ) -> tuple[ProviderResponse, HttpResponse]:
        settings = self._settings

        def attach_received(cancelled: CancelledError, received: ReceivedEvents) -> None:
            with suppress(Exception):  # the part that arrived may be unreadable
                attach_partial_reply(cancelled, read_events(received, stream.head, kind, self._reply, messages))

        async with self._client.stream(
            http_request.method, http_request.url, headers=http_request.headers, data=http_request.data
        ) as stream:
            is_success = stream.status in settings.success_status if settings.success_status else stream.is_ok
            kind = stream_kind(stream.head.content_type, settings.stream) if is_success else "none"
            received = None if kind == "none" else await receive(stream, kind, settings.done, attach_received)
            answer = await stream.read() if received is None else stream.head
        # After the stream is closed, because an unreadable reply is no failure of the connection.
        if not is_success:
            return self._to_failure(answer), answer
        if received is None:
            return read_document(answer, self._reply, messages), answer
        return read_events(received, answer, kind, self._reply, messages), answer

    def _to_failure(self, answer: HttpResponse) -> ProviderResponse:
        if answer.is_ok:
            listed = ", ".join(map(str, self._settings.success_status))
            return failure("protocol", f"{answer.url} answered {answer.status}, and `success_status` lists {listed}")
        return failure_from(answer)


_GONE = (404, 410)


def _with_thread(response: ProviderResponse, thread_id: str) -> ProviderResponse:
    """Add to the error of a turn that its thread may be gone, since an earlier turn found the address."""
    if response.error is None:
        return response
    message = response.error.message.partition("; check the address")[0].rstrip(".")
    hint = f"check that its thread {thread_id!r} is still there, and the `url`"
    return replace(response, error=replace(response.error, message=f"{message}; {hint}"), thread_id=thread_id)


def _with_advice(response: ProviderResponse) -> ProviderResponse:
    """Add to the error of a reply that was too long which setting allows more."""
    error = response.error
    if error is None or error.code != "too_large" or "max_reply_bytes" in error.message:
        return response
    return replace(response, error=replace(error, message=f"{error.message}: raise `max_reply_bytes`"))
