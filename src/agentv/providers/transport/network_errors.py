"""Translate exceptions of aiohttp into errors of a run."""

from __future__ import annotations

import os
import socket
import ssl

import aiohttp

from agentv.providers.transport.failures import TransportError, redact_url, transport_error

_TEMPORARY_DNS = frozenset((socket.EAI_AGAIN,))
_MAX_ERRNO = 200


def to_transport_error(error: Exception, url: str, hidden: tuple[str, ...]) -> TransportError | None:
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
