"""HTTP client: sessions, streams, proxies, and checks of URLs and headers."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agentv.errors import Problem
from agentv.jsonio import dump_json
from agentv.providers.transport.failures import (
    NO_HEADERS,
    HttpResponse,
    TransportError,
    failure_from,
    failure_in_stream,
    read_json,
    redact_url,
    transport_error,
)
from agentv.redaction.credential_patterns import credential_span, is_credential_field

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from types import TracebackType

    import aiohttp


is_header_name = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch
FRAMING = ("content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade")
"""Headers that say how the connection works, and are nobody else's to set."""
_ADDRESS = re.compile(r"\s*(\$\{|https?://[^/\s?#])", re.IGNORECASE).match


def check_address(url: str, path: str) -> Iterator[Problem]:
    """That HTTP can reach it; one that begins with a variable is seen when it is known."""
    if not _ADDRESS(url):
        yield Problem(path, f"{url!r} is no address of a server: one begins with http://HOST or https://HOST")


def check_headers(headers: Mapping[str, str], path: str) -> Iterator[Problem]:
    """That each can be sent, and is there once however it is capitalised."""
    seen: dict[str, str] = {}
    for name, value in headers.items():
        place = f"{path}.{name}"
        if not is_header_name(name):
            yield Problem(place, f"{name!r} cannot be the name of a header", "key")
        elif name.lower() in FRAMING:
            yield Problem(place, f"{name!r} is set by the connection itself: leave it out", "key")
        elif name.lower() in seen:
            yield Problem(place, f"{name!r} and {seen[name.lower()]!r} are the same header: write one of them", "key")
        if any(char in value for char in "\r\n\0"):
            yield Problem(place, "a header cannot hold a line break")
        seen.setdefault(name.lower(), name)


__all__ = [
    "MAX_BODY_BYTES",
    "HttpClient",
    "HttpResponse",
    "ResponseStream",
    "TransportError",
    "failure_from",
    "failure_in_stream",
    "join_url",
    "merge_headers",
    "read_json",
    "redact_url",
    "shown_url",
    "transport_error",
]

MAX_BODY_BYTES = 10_000_000
CONNECT_S = 30.0
"""How long making a connection may take; the attempt as a whole has a time of its own."""
_MIN_SECRET = 6
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*").fullmatch
_LOGIN = re.compile(r"(?<=://)[^/@\s]*@")


class HttpClient:
    """One client session: opened and closed with its provider, in the same event loop."""

    def __init__(self, *, headers: Mapping[str, str] = NO_HEADERS, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._headers = merge_headers({"User-Agent": "agentv"}, headers)
        self._json_headers = merge_headers({"Content-Type": "application/json"}, self._headers)
        self._hidden = _credentials(self._headers)
        self._max = max_body_bytes
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[str, str | None] = {}

    async def open(self) -> None:
        """Make the session; it connects nowhere yet."""
        import aiohttp  # noqa: PLC0415 - a third of a second that only a provider that is used shall cost

        self._session = aiohttp.ClientSession(
            # The engine says how much is under way at once; a limit here would only hide behind it.
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            # Proxies are looked up here: with `trust_env` every request would read ~/.netrc, and send what is in it.
            trust_env=False,
        )

    async def close(self) -> None:
        """Close every connection; a wire that was never opened, or is closed already, is left as it is."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        json: Any = None,
        data: bytes | str | None = None,
    ) -> HttpResponse:
        """The whole reply, whatever its status; `TransportError` when there is none."""
        async with self.stream(method, url, headers=headers, json=json, data=data) as stream:
            return await stream.read()

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        json: Any = None,
        data: bytes | str | None = None,
    ) -> AsyncIterator[ResponseStream]:
        """The reply while it comes; what is not read when the block ends closes its connection."""
        if self._session is None:
            msg = "the wire is not open"
            raise RuntimeError(msg)
        body = data if json is None else dump_json(json)
        ours = self._headers if json is None else self._json_headers
        sent = merge_headers(ours, headers) if headers else ours
        hidden = (*self._hidden, *_credentials(headers)) if headers else self._hidden
        with _ErrorTranslation(shown_url(url), hidden):
            response = await self._session.request(
                method, url, headers=sent, data=body, proxy=self._proxy(url), allow_redirects=False
            )
        # What happens inside is the caller's, and passes as it is.
        async with response:
            yield ResponseStream(response, shown_url(url), hidden, self._max)

    def _proxy(self, url: str) -> str | None:
        """The proxy that the environment names for this address; none for this machine itself."""
        from urllib.parse import urlsplit  # noqa: PLC0415 - only what sends needs it

        origin = url[: url.find("/", 8)] if "/" in url[8:] else url
        if origin in self._proxies:
            return self._proxies[origin]
        from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - once for each address

        parts = urlsplit(origin)
        host = parts.hostname or ""
        local = host in _LOOPBACK or host.endswith(".localhost") or proxy_bypass(parts.netloc.rpartition("@")[2])
        proxies = getproxies()
        found = None if local else proxies.get(parts.scheme) or proxies.get("all")
        if found is not None and found.startswith("socks"):
            msg = f"the environment names a SOCKS proxy for {shown_url(origin)}, and only HTTP proxies are supported"
            raise transport_error(msg, kind="protocol", code="unreachable")
        self._proxies[origin] = found if found is None or "://" in found else f"http://{found}"
        return self._proxies[origin]


class ResponseStream:
    """A reply whose head is there: iterate for its chunks, or `read` all of it."""

    def __init__(self, response: aiohttp.ClientResponse, url: str, hidden: tuple[str, ...], limit: int) -> None:
        self._response = response
        self._limit = limit
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self.url = url
        self.hidden = hidden

    @property
    def head(self) -> HttpResponse:
        """The reply without its body, for messages about it."""
        return HttpResponse(status=self.status, headers=self.headers, url=self.url, hidden=self.hidden)

    @property
    def is_ok(self) -> bool:
        """Whether the other side took the request."""
        return self.head.is_ok

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        while chunk := await self._next():
            total += len(chunk)
            if total > self._limit:
                msg = f"the reply of {self.url} is longer than {self._limit:,} bytes and was cut off"
                raise transport_error(msg, kind="protocol", code="too_large")
            yield chunk

    async def read(self) -> HttpResponse:
        """All of the body that is left, up to the limit."""
        chunks, room, truncated = [], self._limit, False
        while not truncated and (chunk := await self._next()):
            chunks.append(chunk[:room])
            truncated = len(chunk) > room
            room -= len(chunk)
        return HttpResponse(
            status=self.status,
            headers=self.headers,
            body=b"".join(chunks),
            truncated=truncated,
            url=self.url,
            hidden=self.hidden,
        )

    async def _next(self) -> bytes:
        with _ErrorTranslation(self.url, self.hidden):
            return await self._response.content.readany()


class _ErrorTranslation:
    """Turns what the client raises inside into a `TransportError` that says what happened to whom."""

    __slots__ = ("_hidden", "_url")

    def __init__(self, url: str, hidden: tuple[str, ...]) -> None:
        self._url = url
        self._hidden = hidden

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, Exception) and not isinstance(error, TransportError):
            from agentv.providers.transport.network_errors import to_transport_error  # noqa: PLC0415 - it knows the client, and loads it

            told = to_transport_error(error, self._url, self._hidden)
            if told is not None:
                raise told from None


def merge_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """Headers of which the later ones replace the earlier ones, however either is capitalised.

    Around a value, white space is dropped: a key from a file often ends with a line break.
    """
    merged: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer.items():
            text = value.strip()
            if not _HEADER_NAME(name):
                msg = f"{name!r} cannot be the name of an HTTP header"
                raise transport_error(msg, kind="protocol", code="bad_request")
            if not _HEADER_VALUE(text):
                msg = f"the header {name!r} holds a character that HTTP does not allow, such as a line break"
                raise transport_error(msg, kind="protocol", code="bad_request")
            merged[name.lower()] = name, text
    return dict(merged.values())


def join_url(base: str, path: str, version: str = "") -> str:
    """An endpoint's address: `base` may end with a slash, and with the beginning of the path, or all of it.

    `version` comes between the two where the base is a bare host; one with a path of its own says where to go.
    """
    base, _, query = base.strip().partition("?")
    base = base.rstrip("/")
    place = base.partition("://")[2].partition("/")[2]
    wanted = [*([version] if version and not place else []), *path.strip("/").split("/")]
    there = place.split("/")
    same = next((n for n in range(len(wanted), 0, -1) if there[-n:] == wanted[:n]), 0)
    return "/".join([base, *wanted[same:]]) + (f"?{query}" if query else "")


def shown_url(url: str) -> str:
    """The address for messages: without a login, and without a query, which may hold a key."""
    return _LOGIN.sub("", url).partition("?")[0]


def _credentials(headers: Mapping[str, str]) -> tuple[str, ...]:
    """What of these headers no message may repeat."""
    found = []
    for name, value in headers.items():
        if is_credential_field(name):
            span = credential_span(value)
            secret = value if span is None else value[span[0] : span[1]]
            found += [each for each in (secret, value) if len(each) >= _MIN_SECRET]
    return tuple(found)
