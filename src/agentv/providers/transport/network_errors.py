"""What an exception of the HTTP client means for a run."""

from __future__ import annotations

import os
import socket
import ssl

import aiohttp

from agentv.providers.transport.failures import TransportError, redact_url, transport_error

_TEMPORARY_DNS = frozenset((socket.EAI_AGAIN,))
_MAX_ERRNO = 200


def to_transport_error(error: Exception, url: str, hidden: tuple[str, ...]) -> TransportError | None:
    """The error that a run gets for this one; `None` when it is not the client's, but a bug."""
    if not isinstance(error, (aiohttp.ClientError, OSError, ValueError)):
        return None
    told = _securing(error, url) or _connecting(error, url) or _talking(error, url)
    if told is not None:
        return told
    message = redact_url(f"{url!r} could not be asked: {type(error).__name__}: {error}", hidden)
    if isinstance(error, ValueError):  # an address or a header that the client refuses, and will refuse again
        return transport_error(message, kind="protocol", code="bad_request")
    return transport_error(message, retryable=True)


def _securing(error: Exception, url: str) -> TransportError | None:
    """Trouble with TLS."""
    if isinstance(error, (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError)):
        inner = getattr(error, "certificate_error", error)
        reason = getattr(inner, "verify_message", None) or str(inner)
        return transport_error(f"the certificate of {url} cannot be trusted: {reason}", code="tls")
    if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
        inner = getattr(error, "os_error", error)
        reason = getattr(inner, "reason", None) or str(inner)
        # Somebody who hangs up may pick up next time; somebody who speaks no TLS never will.
        ended = isinstance(inner, (ssl.SSLEOFError, ssl.SSLZeroReturnError))
        return transport_error(f"no secure connection to {url}: {reason}", retryable=ended, code="tls")
    return None


def _connecting(error: Exception, url: str) -> TransportError | None:
    """Trouble before anything was sent."""
    if isinstance(error, (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)):
        return transport_error(f"{url!r} is not an address that HTTP can reach", kind="protocol", code="bad_request")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        may_pass = error.os_error.errno in _TEMPORARY_DNS
        message = f"the host of {url} was not found: {_reason(error.os_error)}"
        return transport_error(message, retryable=may_pass, code="unreachable")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        may_pass = error.status >= 500  # noqa: PLR2004 - the server errors of HTTP
        return transport_error(f"the proxy for {url} answered {error.status}", retryable=may_pass, code="unreachable")
    if isinstance(error, aiohttp.ClientConnectorError):
        through = " through the proxy" if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
        message = f"no connection to {url}{through}: {_reason(error.os_error)}; is it running there?"
        return transport_error(message, retryable=True, code="unreachable")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return transport_error(f"no connection to {url} in time", retryable=True, code="unreachable")
    return None


def _talking(error: Exception, url: str) -> TransportError | None:
    """Trouble after the connection was made."""
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
    """Why, in the system's words; the client's own name addresses again."""
    known = error.errno is not None and 0 < error.errno < _MAX_ERRNO
    return os.strerror(error.errno) if known and error.errno is not None else error.strerror or str(error)
