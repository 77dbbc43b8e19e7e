"""`http`: any endpoint as the target; settings and checks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from msgspec import UNSET, Meta

from agentv.errors import Problem
from agentv.matching.json_pointer import bad_pointer
from agentv.providers.base import ProviderBase
from agentv.providers.http.pointers import POINTERS, Pointers
from agentv.providers.http.request import FORM, check_template, content_type, is_json, names_in
from agentv.providers.transport import urls
from agentv.templating import PLACEHOLDER, iter_placeholders

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentv.model.request import ConversationMode, Scope
    from agentv.providers.http.session import HttpSession


_SINGLE = re.compile(
    r"(?<![{$])\{ ?(?:prompt|messages|new_messages|id|thread_id|conversation_id|turn|resume|attempt) ?\}(?!\})"
)
_NO_CONTEXT = (
    "a turn would be sent without those before it: write {{ messages }} into the `body` for the whole conversation, or "
    "for an endpoint that keeps it `thread_header`, or `reply.thread_id` and {{ thread_id }}"
)
_NO_THREAD = (
    "sends the id of the thread, and no place is named for it: write `thread_header`, or {{ thread_id }} in the `body`,"
    " the `url`, the `query` or the `headers`"
)


def check_url(url: str, path: str, *, has_thread: bool) -> Iterator[Problem]:
    """Yield the problems of a URL, in which variables are not resolved yet."""
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
    """Yield the problems of headers."""
    yield from urls.check_headers(headers, path)
    for name, value in headers.items():
        yield from check_template(value, f"{path}.{name}")


def check_thread_header(name: str | None, headers: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Yield the problems of the header with the thread id."""
    if name is None:
        return
    if not urls.is_header_name(name) or name.lower() in urls.FRAMING:
        yield Problem(path, f"{name!r} cannot be the name of a header of yours")
    elif name.lower() in {header.lower() for header in headers}:
        yield Problem(path, f"{name!r} is in `headers`, too: `thread_header` sends it already")


def check_body(body: Any, headers: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Yield the problems of a body."""
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
    """Yield the problems of the pointers into a reply."""
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
    """Yield a problem for single braces, as `cli` has them, in a request that has no placeholder."""
    if any(names_in(value) for value in written.values()):
        return
    for name, value in written.items():
        for place, text in _single_braces(value, f"{path}.{name}"):
            yield Problem(place, f"{text} is sent unchanged: write {{{{ {text.strip('{ }')} }}}}", "whole")


def _single_braces(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield from ((path, match[0]) for match in _SINGLE.finditer(value))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _single_braces(item, f"{path}.{key}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _single_braces(item, f"{path}[{at}]")


def check_streaming(settings: Mapping[str, Any], stream: str | None, path: str) -> Iterator[Problem]:
    """Yield the settings that have no meaning without a stream."""
    if stream != "none":
        return
    for name, value in settings.items():
        if value:
            yield Problem(f"{path}.{name}", f"`stream: none` reads no events: leave `{name}` out", "whole")


_CONTEXT = ("messages", "conversation_id")
_REPLY_BEFORE = ("previous", "parent")
"""Words in names of fields that hold the id of a reply, and not that of a thread."""
"""Values that lead an endpoint to the messages before the last one."""
_Plain = str | int | float | bool


class Http(ProviderBase, kw_only=True):
    """Endpoint that replies to a request, in one piece or as a stream."""

    templates: ClassVar[tuple[str, ...]] = ("url", "headers", "query", "body")
    provider: Literal["http"] = "http"
    url: Annotated[str, Meta(min_length=1)]
    """URL; placeholders such as `{{ id }}` in its path or query are filled with percent-encoded values."""
    method: Literal["POST", "GET", "PUT", "PATCH", "DELETE"] = "POST"
    """HTTP method."""
    headers: dict[str, str] = {}
    """Headers to send; `${NAME}` in them stands for an environment variable, `{{ id }}` for a value of the request."""
    query: dict[str, _Plain | list[_Plain]] = {}
    """Parameters that are added to the query of the URL."""
    body: Any = UNSET
    """Body to send, any JSON; placeholders such as `{{ prompt }}` and `{{ messages }}` stand for values."""
    message_format: Literal["openai", "compact"] = "openai"
    """Format of `{{ messages }}`."""
    reply: Pointers = Pointers()
    stream: Literal["sse", "ndjson", "none"] | None = None
    """Format of the reply: events, JSON lines, or one document; by its content type by default."""
    done: Annotated[str, Meta(min_length=1)] | None = None
    """In a stream: the data of the event that ends it; a stream without it was cut off. `[DONE]` always ends one."""
    events: tuple[str, ...] = ()
    """In a stream: the events that are read, by their name or `type`; all by default."""
    snapshots: bool = False
    """In a stream: true if each event has the whole text so far, instead of its next piece."""
    thread_header: Annotated[str, Meta(min_length=1)] | None = None
    """Header with the thread id, in replies and in requests of further turns."""
    new_thread_id: bool = False
    """True to generate the id of a new thread, for endpoints that expect one."""
    success_status: tuple[Annotated[int, Meta(ge=100, le=599)], ...] = ()
    """Statuses of a successful reply; 200 to 299 by default."""
    max_reply_bytes: Annotated[int, Meta(ge=1, le=67_108_864)] = 10_000_000
    """Largest size of a reply, decompressed."""

    @property
    def conversation_mode(self) -> ConversationMode:
        """`thread` if requests have a place for its id, and in the default body if replies have one, or it is made."""
        is_named = self.thread_header is not None or "thread_id" in self._names
        has_thread = is_named or self.new_thread_id or self.reply.thread_id is not None
        return self.conversation or ("thread" if has_thread and self._sends("thread_id") else "full")

    @property
    def _names(self) -> set[str]:
        """Names of the values that are filled in."""
        return names_in([self.url, self.headers, self.query, self.body])

    @property
    def conversation_problem(self) -> str | None:
        """Reason why it cannot hold conversations: its requests have neither the messages nor a thread."""
        context = ("thread_id", "conversation_id") if self.conversation_mode == "thread" else _CONTEXT
        return None if any(map(self._sends, context)) else _NO_CONTEXT

    def _sends(self, name: str) -> bool:
        """Return whether requests have this value."""
        if name == "thread_id" and self.thread_header is not None:
            return True
        if self.body is UNSET and self.method != "GET":
            return True  # the default body has them all
        return name in self._names

    @property
    def threads_change(self) -> bool:
        """`True` if a turn names the reply before it instead of a thread: `previous_response_id: "{{ thread_id }}"`."""
        placeholders = iter_placeholders({"query": self.query, "headers": self.headers, "body": self.body})
        places = [placeholder.path.lower() for placeholder in placeholders if placeholder.name == "thread_id"]
        return any(word in place for place in places for word in _REPLY_BEFORE)

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the URL, the templates and the pointers."""
        written = {"url": self.url, "headers": self.headers, "query": self.query, "body": self.body}
        in_stream = {"done": self.done, "events": self.events, "snapshots": self.snapshots}
        return [
            *check_url(self.url, f"{path}.url", has_thread=self.new_thread_id),
            *check_headers(self.headers, f"{path}.headers"),
            *check_template(self.query, f"{path}.query"),
            *check_body(self.body, self.headers, f"{path}.body"),
            *check_thread_header(self.thread_header, self.headers, f"{path}.thread_header"),
            *check_pointers(self.reply, f"{path}.reply"),
            *check_streaming(in_stream, self.stream, path),
            *check_braces(written, path),
            *self._check_conversation(f"{path}.conversation"),
        ]

    def _check_conversation(self, path: str) -> Iterator[Problem]:
        if self.conversation == "thread" and not (self._sends("thread_id") or self._sends("conversation_id")):
            yield Problem(path, f"`conversation: thread` {_NO_THREAD}")

    async def open(self, scope: Scope) -> HttpSession:
        """Create the HTTP client; nothing is sent yet."""
        del scope
        from agentv.providers.http.session import HttpSession  # noqa: PLC0415 - checking a target needs no HTTP

        return await HttpSession.open(self)
