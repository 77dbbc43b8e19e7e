"""`http`: any endpoint as the target; settings and checks."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from msgspec import UNSET, Meta
from msgspec.structs import replace

from agentv.errors import FormatError, Problem
from agentv.matching.diff import bad_pointer
from agentv.providers.base import attach_partial_reply, failure
from agentv.providers.http.pointers import POINTERS, Pointers
from agentv.providers.http.request import FORM, content_type, is_json
from agentv.providers.http.template import check_template, names_in
from agentv.providers.transport import HttpProvider
from agentv.providers.transport import client as wire_check
from agentv.templating import PLACEHOLDER

if TYPE_CHECKING:
    from asyncio import CancelledError
    from collections.abc import Iterator, Mapping, Sequence

    from agentv.model.conversation import Message
    from agentv.model.request import Request, Scope
    from agentv.model.response import ProviderResponse
    from agentv.providers.http.events import Received
    from agentv.providers.http.request import HttpRequest, Writer
    from agentv.providers.http.response import ReplySettings
    from agentv.providers.transport.client import HttpResponse


_SINGLE = re.compile(r"(?<![{$])\{ ?(?:prompt|messages|id|thread_id|attempt) ?\}(?!\})")


def check_url(url: str, path: str, *, has_thread: bool) -> Iterator[Problem]:
    """What is wrong with an address; variables in it are not known yet."""
    yield from check_template(url, path)
    before = url.partition("${")[0]
    if "://" not in before:
        if before == url or before:
            yield Problem(path, f"{url!r} is no address: one begins with http:// or https://")
        return
    parts = urlsplit(PLACEHOLDER.sub("x", url))
    if parts.scheme.lower() not in ("http", "https"):
        yield Problem(path, f"{url!r} is no address: one begins with http:// or https://")
    elif not parts.netloc:
        yield Problem(path, f"{url!r} names no host")
    host = url.partition("://")[2]
    host = re.split(r"[/?#]", host, maxsplit=1)[0]
    if PLACEHOLDER.search(host):
        yield Problem(path, f"{host!r} is the host, which a request cannot choose: write it out")
    if "thread_id" in names_in(url) and not has_thread:
        yield Problem(path, "a conversation has no id before its first reply: add `new_thread_id: true` to make one")


def check_headers(headers: Mapping[str, str], path: str) -> Iterator[Problem]:
    """What is wrong with the headers that are sent."""
    yield from wire_check.check_headers(headers, path)
    for name, value in headers.items():
        yield from check_template(value, f"{path}.{name}")


def check_thread_header(name: str | None, headers: Mapping[str, str], path: str) -> Iterator[Problem]:
    """What is wrong with the header that carries the conversation's id."""
    if name is None:
        return
    if not wire_check.is_header_name(name) or name.lower() in wire_check.FRAMING:
        yield Problem(path, f"{name!r} cannot be the name of a header of yours")
    elif name.lower() in {each.lower() for each in headers}:
        yield Problem(path, f"{name!r} is in `headers`, too: `thread_header` sends it already")


def check_body(body: Any, headers: Mapping[str, str], path: str) -> Iterator[Problem]:
    """What is wrong with the body that is sent."""
    if body is UNSET or body is None:
        return
    yield from check_template(body, path)
    kind = content_type(headers)
    if not kind or is_json(kind) or "${" in kind or PLACEHOLDER.search(kind):
        return
    if not isinstance(body, str) and not (kind == FORM and isinstance(body, dict)):
        also = " or a mapping" if kind == FORM else ""
        yield Problem(path, f"the header 'Content-Type' says {kind}, so that this must be a text{also}")


def check_pointers(pointers: Pointers, path: str) -> Iterator[Problem]:
    """What is wrong with where the parts of a reply are said to stand."""
    for name in POINTERS:
        pointer = getattr(pointers, name)
        reason = None if pointer is None else bad_pointer(pointer)
        if reason is not None:
            yield Problem(f"{path}.{name}", reason)
    if pointers.messages is not None and pointers.tool_calls is not None:
        yield Problem(f"{path}.tool_calls", "`messages` hold their calls already: write one of the two", "whole")
    if pointers.sum_usage and pointers.usage is None and pointers.cost is None:
        yield Problem(f"{path}.sum_usage", "adds up what `usage` and `cost` point at: write one of these, too", "whole")


def check_braces(written: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """A request that tells nothing of the case, and looks as if it was meant to: `cli` has single braces."""
    if any(names_in(value) for value in written.values()):
        return
    for name, value in written.items():
        for place, found in _single_braces(value, f"{path}.{name}"):
            yield Problem(place, f"{found} is sent as it stands: write {{{{ {found.strip('{ }')} }}}}", "whole")


def _single_braces(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield from ((path, found[0]) for found in _SINGLE.finditer(value))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _single_braces(item, f"{path}.{key}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _single_braces(item, f"{path}[{at}]")


def check_streaming(given: Mapping[str, Any], stream: str | None, path: str) -> Iterator[Problem]:
    """Settings that mean something in a stream only."""
    if stream != "none":
        return
    for name, value in given.items():
        if value:
            yield Problem(f"{path}.{name}", f"`stream: none` reads no events: leave `{name}` out", "whole")


_Plain = str | int | float | bool


class Http(HttpProvider, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """An endpoint that is sent a request and answers with a reply, whole or as a stream."""

    templates: ClassVar[tuple[str, ...]] = ("url", "headers", "query", "body")
    provider: Literal["http"] = "http"
    url: Annotated[str, Meta(min_length=1)]
    """The address; `{{ id }}` and the like in its path or query stand for the request's, percent-encoded."""
    method: Literal["POST", "GET", "PUT", "PATCH", "DELETE"] = "POST"
    """How it is asked."""
    headers: dict[str, str] = {}
    """Headers to send; `${NAME}` in them stands for a secret of the environment, `{{ id }}` for a value."""
    query: dict[str, _Plain | list[_Plain]] = {}
    """What is added to the address behind its `?`."""
    body: Any = UNSET
    """What is sent, any JSON in which `{{ prompt }}`, `{{ messages }}` and the like stand for values."""
    message_format: Literal["openai", "compact"] = "openai"
    """How `{{ messages }}` are written."""
    reply: Pointers = Pointers()
    stream: Literal["sse", "ndjson", "none"] | None = None
    """How the reply is read: as events, as JSON lines, or in one piece; by its content type by default."""
    done: Annotated[str, Meta(min_length=1)] | None = None
    """In a stream: the data of the event that ends it; a stream without it was cut off. `[DONE]` always ends one."""
    events: tuple[str, ...] = ()
    """In a stream: the events that count, by their name or `type`; all by default."""
    snapshots: bool = False
    """In a stream: whether each event's text is all of it so far, instead of its next piece."""
    thread_header: Annotated[str, Meta(min_length=1)] | None = None
    """The header that tells the conversation's id in a reply, and that further turns send."""
    new_thread_id: bool = False
    """Whether the id of a new conversation is made here, for endpoints that expect to be told one."""
    success_status: tuple[Annotated[int, Meta(ge=100, le=599)], ...] = ()
    """The statuses of a reply that counts; by default 200 to 299."""
    max_reply_bytes: Annotated[int, Meta(ge=1, le=67_108_864)] = 10_000_000
    """How long a reply may be, unpacked."""

    def check(self, path: str) -> list[Problem]:
        """What is wrong with the address, the templates and the pointers."""
        from agentv.providers import http as check  # noqa: PLC0415 - loading the class shall cost nothing more
        from agentv.providers.http.template import check_template  # noqa: PLC0415 - as above

        written = {"url": self.url, "headers": self.headers, "query": self.query, "body": self.body}
        in_stream = {"done": self.done, "events": self.events, "snapshots": self.snapshots}
        return [
            *check.check_url(self.url, f"{path}.url", has_thread=self.new_thread_id),
            *check.check_headers(self.headers, f"{path}.headers"),
            *check_template(self.query, f"{path}.query"),
            *check.check_body(self.body, self.headers, f"{path}.body"),
            *check.check_thread_header(self.thread_header, self.headers, f"{path}.thread_header"),
            *check.check_pointers(self.reply, f"{path}.reply"),
            *check.check_streaming(in_stream, self.stream, path),
            *check.check_braces(written, path),
        ]

    async def open(self, scope: Scope) -> None:
        """Make the session; nothing is sent yet."""
        await super().open(scope)
        from agentv.providers.http.request import RequestSettings, Writer  # noqa: PLC0415 - as above
        from agentv.providers.http.response import ReplySettings  # noqa: PLC0415 - only a target that is used needs it

        asking = RequestSettings(
            url=self.url,
            method=self.method,
            headers=self.headers,
            query=self.query,
            body=self.body,
            message_format=self.message_format,
            stream=self.stream,
            thread_header=self.thread_header,
        )
        reading = ReplySettings(pointers=self.reply, done=self.done, events=self.events, snapshots=self.snapshots)
        self.__dict__.update(writer=Writer(asking), reading=reading)
        await self.connect({}, self.max_reply_bytes)

    async def invoke(self, request: Request) -> ProviderResponse:
        """The endpoint's reply; when this is cancelled, the connection is closed."""
        from agentv.providers.transport.client import TransportError  # noqa: PLC0415 - loaded when it was opened

        if self.new_thread_id and request.thread_id is None:
            from uuid import uuid4  # noqa: PLC0415 - only some targets need it

            request = replace(request, thread_id=str(uuid4()))
        writer: Writer = self.__dict__["writer"]
        try:
            outgoing = writer.write(request)
        except FormatError as error:
            return failure("transport", f"the request cannot be written: {error}")
        try:
            response, head = await self._ask(outgoing, request.input_messages)
        except FormatError as error:
            return failure("protocol", str(error))
        except TransportError as error:
            return _advised(error.response)
        told = head.headers.get(self.thread_header.lower()) if self.thread_header else None
        return replace(response, thread_id=self._thread(response, told) or request.thread_id)

    def _thread(self, response: ProviderResponse, told: str | None) -> str | None:
        """The conversation's id: where `reply.thread_id` points, else in the header, else where it usually stands."""
        if self.reply.thread_id is not None and response.thread_id:
            return response.thread_id
        return told or response.thread_id

    async def _ask(self, outgoing: HttpRequest, asked: Sequence[Message]) -> tuple[ProviderResponse, HttpResponse]:
        from agentv.providers.http.events import read_events, receive, stream_kind  # noqa: PLC0415 - as above
        from agentv.providers.http.response import read_document  # noqa: PLC0415 - as above

        wire = self.wire
        reading: ReplySettings = self.__dict__["reading"]

        def keep(cancelled: CancelledError, cut: Received) -> None:
            with suppress(Exception):  # as far as it came, it may be of no use
                attach_partial_reply(cancelled, read_events(cut, stream.head, kind, reading, asked))

        async with wire.stream(outgoing.method, outgoing.url, headers=outgoing.headers, data=outgoing.data) as stream:
            is_success = stream.status in self.success_status if self.success_status else stream.is_ok
            kind = stream_kind(stream.head.content_type, self.stream) if is_success else "none"
            received = None if kind == "none" else await receive(stream, kind, self.done, keep)
            answer = await stream.read() if received is None else stream.head
        # Outside: what is wrong with the words is not trouble with the connection.
        if not is_success:
            return self._refused(answer), answer
        if received is None:
            return read_document(answer, reading, asked), answer
        return read_events(received, answer, kind, reading, asked), answer

    def _refused(self, answer: HttpResponse) -> ProviderResponse:
        from agentv.providers.transport.client import failure_from  # noqa: PLC0415 - only a failure needs it

        if answer.is_ok:
            listed = ", ".join(map(str, self.success_status))
            return failure("protocol", f"{answer.url} answered {answer.status}, and `success_status` lists {listed}")
        return failure_from(answer)


def _advised(response: ProviderResponse) -> ProviderResponse:
    """A reply that was too long says which setting allows more."""
    error = response.error
    if error is None or error.code != "too_large" or "max_reply_bytes" in error.message:
        return response
    return replace(response, error=replace(error, message=f"{error.message}: raise `max_reply_bytes`"))
