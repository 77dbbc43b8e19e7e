"""HTTP client: sessions, streams, proxies, decompression, and the translation of network errors.

It imports aiohttp, which takes 0.3 s: providers load it when a session is opened.
"""

from __future__ import annotations

import os
import socket
import ssl
import zlib
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from agentv.jsonio import dump_json
from agentv.providers.transport.failures import (
    NO_HEADERS,
    HttpResponse,
    TransportError,
    redact_url,
    transport_error,
)
from agentv.providers.transport.urls import merge_headers, shown_url
from agentv.redaction.credential_patterns import credential_span, is_credential_field

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from types import TracebackType


MAX_BODY_BYTES = 10_000_000
CONNECT_S = 30.0
"""Time limit of a connection attempt."""
_MIN_SECRET = 6
_LOOPBACK_NETWORK = 127
"""First byte of the addresses of this machine."""
ACCEPTED = "gzip, deflate"
"""Value of the `Accept-Encoding` header."""
_GZIP, _ZLIB, _RAW = 31, 15, -15
"""Window sizes by which `zlib` distinguishes the formats."""
_ZLIB_METHOD = 8
_PIECE = 262_144
"""Largest number of bytes that are unpacked at once: a small body may unpack to gigabytes."""
_TEMPORARY_DNS = frozenset((socket.EAI_AGAIN,))
_MAX_ERRNO = 200


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
    """Return whether a host is this machine: localhost, a name below it, 127.0.0.0/8 or ::1."""
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    with suppress(ValueError):
        address = ip_address(name)
        mapped = getattr(address, "ipv4_mapped", None) or address
        return bool(mapped.is_loopback)
    with suppress(OSError):
        return socket.inet_aton(name)[0] == _LOOPBACK_NETWORK  # `127.1`, which resolvers read as 127.0.0.1
    return False


class Decompressor:
    """Decompressor of one body in pieces, which reports whether it ended early.

    The HTTP library could decompress bodies too, but does not report that the end of a gzip body is missing.
    """

    def __init__(self, encoding: str, url: str) -> None:
        self._encoding = encoding.strip().lower()
        self._url = url
        self._stream: zlib._Decompress | None = None
        self._is_used = False
        if self._encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            msg = f"{url} sent its reply with the encoding {encoding!r}, which was not asked for: {ACCEPTED} were"
            raise transport_error(msg, kind="protocol", code="malformed")

    @property
    def is_plain(self) -> bool:
        """True if there is nothing to decompress."""
        return self._encoding in ("", "identity")

    @property
    def is_cut(self) -> bool:
        """True if the body that was fed so far ends in the middle."""
        return self._is_used and self._stream is not None and not self._stream.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed pieces of a chunk; raise `TransportError` if it is damaged."""
        try:
            while data:
                if self._stream is None or self._stream.eof:
                    if self._stream is not None and not data.strip(b"\0"):
                        return  # padding after the end
                    self._stream = zlib.decompressobj(self._window(data))
                self._is_used = True
                piece = self._stream.decompress(data, _PIECE)
                data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
                if piece:
                    yield piece
        except zlib.error as error:
            msg = f"the {self._encoding} body of {self._url} is damaged: {error}"
            raise transport_error(msg, retryable=True, code="cut_off") from None

    def _window(self, data: bytes) -> int:
        if self._encoding != "deflate":
            return _GZIP
        # Some servers send `deflate` without the header of zlib.
        return _ZLIB if data[0] & 0x0F == _ZLIB_METHOD else _RAW


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
            translated = _to_transport_error(error, self._url, self._hidden)
            if translated is not None:
                raise translated from None


def _to_transport_error(error: Exception, url: str, hidden: tuple[str, ...]) -> TransportError | None:
    """Return the error of the run for an exception; `None` if it is no exception of the client, but a bug."""
    if not isinstance(error, (aiohttp.ClientError, OSError, ValueError)):
        return None
    translated = _tls_error(error, url) or _connection_error(error, url) or _protocol_error(error, url)
    if translated is not None:
        return translated
    message = redact_url(f"{url!r} could not be asked: {type(error).__name__}: {error}", hidden)
    if isinstance(error, ValueError):  # an invalid URL or header, which a retry does not fix
        return transport_error(message, kind="protocol", code="bad_request")
    return transport_error(message, retryable=True)


def _tls_error(error: Exception, url: str) -> TransportError | None:
    """Translate errors of TLS."""
    if isinstance(error, (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError)):
        inner = getattr(error, "certificate_error", error)
        reason = getattr(inner, "verify_message", None) or str(inner)
        return transport_error(f"the certificate of {url} cannot be trusted: {reason}", code="tls")
    if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
        inner = getattr(error, "os_error", error)
        reason = getattr(inner, "reason", None) or str(inner)
        # A closed connection may succeed on retry; a server without TLS never will.
        ended = isinstance(inner, (ssl.SSLEOFError, ssl.SSLZeroReturnError))
        return transport_error(f"no secure connection to {url}: {reason}", retryable=ended, code="tls")
    return None


def _connection_error(error: Exception, url: str) -> TransportError | None:
    """Translate errors of connecting."""
    if isinstance(error, (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)):
        return transport_error(f"{url!r} is not an address that HTTP can reach", kind="protocol", code="bad_request")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        is_retryable = error.os_error.errno in _TEMPORARY_DNS
        message = f"the host of {url} was not found: {_reason(error.os_error)}"
        return transport_error(message, retryable=is_retryable, code="unreachable")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        is_retryable = error.status >= 500  # noqa: PLR2004 - the server errors of HTTP
        return transport_error(
            f"the proxy for {url} answered {error.status}", retryable=is_retryable, code="unreachable"
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        through = " through the proxy" if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
        message = f"no connection to {url}{through}: {_reason(error.os_error)}; is it running there?"
        return transport_error(message, retryable=True, code="unreachable")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return transport_error(f"no connection to {url} in time", retryable=True, code="unreachable")
    return None


def _protocol_error(error: Exception, url: str) -> TransportError | None:
    """Translate errors of an established connection."""
    if isinstance(error, aiohttp.ClientPayloadError):
        return transport_error(f"{url} cut the connection in the middle of its reply", retryable=True, code="cut_off")
    if isinstance(error, aiohttp.ServerTimeoutError):
        return transport_error(f"{url} stopped answering", retryable=True, code="cut_off")
    if isinstance(error, aiohttp.ClientResponseError):
        message = f"{url} does not speak HTTP that can be read: {error.message}"
        return transport_error(message, kind="protocol", code="malformed")
    if isinstance(error, (aiohttp.ClientConnectionError, ConnectionError)):
        return transport_error(f"{url} closed the connection without an answer", retryable=True, code="cut_off")
    return None


def _reason(error: OSError) -> str:
    """Return the system's message for an error; that of the client repeats addresses."""
    known = error.errno is not None and 0 < error.errno < _MAX_ERRNO
    return os.strerror(error.errno) if known and error.errno is not None else error.strerror or str(error)


def _credentials(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the credentials in headers, which must not appear in messages."""
    proxy_url = []
    for name, value in headers.items():
        if is_credential_field(name):
            span = credential_span(value)
            secret = value if span is None else value[span[0] : span[1]]
            proxy_url += [each for each in (secret, value) if len(each) >= _MIN_SECRET]
    return tuple(proxy_url)
