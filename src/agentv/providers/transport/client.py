"""HTTP client: sessions, streams, proxies, and checks of URLs and headers."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from socket import inet_aton
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentv.errors import Problem
from agentv.jsonio import dump_json
from agentv.providers.transport.decompression import ACCEPTED, Decompressor
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
"""Headers of the connection, which settings may not set."""
_ADDRESS = re.compile(r"\s*(\$\{|https?://[^/\s?#])", re.IGNORECASE).match


def check_address(url: str, path: str) -> Iterator[Problem]:
    """Yield a problem if a URL is not one of HTTP; one that begins with a variable is checked later."""
    if not _ADDRESS(url):
        yield Problem(path, f"{url!r} is no address of a server: one begins with http://HOST or https://HOST")


def check_headers(headers: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Yield the problems of headers: invalid names or values, and duplicates."""
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
    "find_proxy",
    "is_loopback",
    "join_url",
    "merge_headers",
    "read_json",
    "redact_url",
    "shown_url",
    "transport_error",
]

MAX_BODY_BYTES = 10_000_000
CONNECT_S = 30.0
"""Time limit of a connection attempt."""
_MIN_SECRET = 6
_LOOPBACK_NETWORK = 127
"""First byte of the addresses of this machine."""
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*").fullmatch
_LOGIN = re.compile(r"(?<=://)[^/@\s]*@")


class HttpClient:
    """HTTP client: opened and closed with its provider, in the same event loop."""

    def __init__(self, *, headers: Mapping[str, str] = NO_HEADERS, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._headers = merge_headers({"User-Agent": "agentv", "Accept-Encoding": ACCEPTED}, headers)
        self._json_headers = merge_headers({"Content-Type": "application/json"}, self._headers)
        self._hidden = _credentials(self._headers)
        self._max = max_body_bytes
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[str, str | None] = {}

    async def open(self) -> None:
        """Create the aiohttp session; nothing is connected yet."""
        import aiohttp  # noqa: PLC0415 - importing it takes 0.3 s

        self._session = aiohttp.ClientSession(
            # The engine limits the concurrency.
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            auto_decompress=False,  # see `Decompressor`
            # Proxies are found by `_proxy`: with `trust_env` every request would send credentials of ~/.netrc.
            trust_env=False,
        )

    async def close(self) -> None:
        """Close all connections; harmless if it is not open."""
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
        """Send a request and return the whole response of any status; raise `TransportError` if there is none."""
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
        """Send a request and stream the response; the connection is closed if it was not read to its end."""
        if self._session is None:
            msg = "the HTTP client is not open"
            raise RuntimeError(msg)
        body = data if json is None else dump_json(json)
        ours = self._headers if json is None else self._json_headers
        sent = merge_headers(ours, headers) if headers else ours
        hidden = (*self._hidden, *_credentials(headers)) if headers else self._hidden
        with _ErrorTranslation(shown_url(url), hidden):
            response = await self._session.request(
                method, url, headers=sent, data=body, proxy=self._proxy(url), allow_redirects=False
            )
        # Exceptions of the caller's block are not translated.
        async with response:
            yield ResponseStream(response, shown_url(url), hidden, self._max)

    def _proxy(self, url: str) -> str | None:
        origin = url[: url.find("/", 8)] if "/" in url[8:] else url
        if origin not in self._proxies:
            self._proxies[origin] = find_proxy(origin)
        return self._proxies[origin]


def find_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; `None` for this machine, whatever `NO_PROXY` says."""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - once for each address

    parts = urlsplit(url)
    if is_loopback(parts.hostname or "") or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    proxies = getproxies()
    proxy_url = proxies.get(parts.scheme) or proxies.get("all")
    if proxy_url is not None and proxy_url.startswith("socks"):
        msg = f"the environment names a SOCKS proxy for {shown_url(url)}, and only HTTP proxies are supported"
        raise transport_error(msg, kind="protocol", code="unreachable")
    return proxy_url if proxy_url is None or "://" in proxy_url else f"http://{proxy_url}"


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine: localhost, a name below it, 127.0.0.0/8 or ::1."""
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    with suppress(ValueError):
        address = ip_address(name)
        mapped = getattr(address, "ipv4_mapped", None) or address
        return bool(mapped.is_loopback)
    with suppress(OSError):
        return inet_aton(name)[0] == _LOOPBACK_NETWORK  # `127.1`, which resolvers read as 127.0.0.1
    return False


class ResponseStream:
    """Response whose head has arrived: iterate over its chunks, or `read` it."""

    def __init__(self, response: aiohttp.ClientResponse, url: str, hidden: tuple[str, ...], limit: int) -> None:
        self._response = response
        self._limit = limit
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self.url = url
        self.hidden = hidden
        self._decompressor = Decompressor(self.headers.get("content-encoding", ""), url)

    @property
    def is_cut(self) -> bool:
        """True if the compressed body, read to its end, ends in the middle."""
        return self._decompressor.is_cut

    @property
    def head(self) -> HttpResponse:
        """Response without its body, for messages."""
        return HttpResponse(status=self.status, headers=self.headers, url=self.url, hidden=self.hidden)

    @property
    def is_ok(self) -> bool:
        """True if the status is a success."""
        return self.head.is_ok

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for chunk in self._chunks():
            total += len(chunk)
            if total > self._limit:
                msg = f"the reply of {self.url} is longer than {self._limit:,} bytes and was cut off"
                raise transport_error(msg, kind="protocol", code="too_large")
            yield chunk

    async def read(self) -> HttpResponse:
        """Read the rest of the body, up to the limit."""
        chunks, room, truncated = [], self._limit, False
        async for chunk in self._chunks():
            chunks.append(chunk[:room])
            truncated = len(chunk) > room
            room -= len(chunk)
            if truncated:
                break
        return HttpResponse(
            status=self.status,
            headers=self.headers,
            body=b"".join(chunks),
            truncated=truncated,
            is_cut=self.is_cut and not truncated,
            url=self.url,
            hidden=self.hidden,
        )

    async def _chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks of the body, decompressed."""
        while chunk := await self._next():
            if self._decompressor.is_plain:
                yield chunk
            else:
                for piece in self._decompressor.feed(chunk):
                    yield piece

    async def _next(self) -> bytes:
        with _ErrorTranslation(self.url, self.hidden):
            return await self._response.content.readany()


class _ErrorTranslation:
    """Context manager that translates exceptions of aiohttp into `TransportError`."""

    __slots__ = ("_hidden", "_url")

    def __init__(self, url: str, hidden: tuple[str, ...]) -> None:
        self._url = url
        self._hidden = hidden

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, Exception) and not isinstance(error, TransportError):
            from agentv.providers.transport.network_errors import to_transport_error  # noqa: PLC0415 - imports aiohttp

            translated = to_transport_error(error, self._url, self._hidden)
            if translated is not None:
                raise translated from None


def merge_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """Merge headers, case-insensitively; later ones replace earlier ones.

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
    """Return the URL of an endpoint; `base` may end with a slash, and with a part of the path or all of it.

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
    """Return a URL for messages: without a login, and without a query, which may hold a key."""
    return _LOGIN.sub("", url).partition("?")[0]


def _credentials(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the credentials in headers, which must not appear in messages."""
    proxy_url = []
    for name, value in headers.items():
        if is_credential_field(name):
            span = credential_span(value)
            secret = value if span is None else value[span[0] : span[1]]
            proxy_url += [each for each in (secret, value) if len(each) >= _MIN_SECRET]
    return tuple(proxy_url)
