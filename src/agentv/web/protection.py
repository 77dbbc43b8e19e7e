"""Protection of the viewer: hosts, cross-site requests, tokens, and the headers of every answer."""

from __future__ import annotations

import hmac
import re
import secrets
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp.typedefs import Handler

COOKIE = "agentv_token"
WRITE_HEADER = "X-Agentv-Token"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "agentv",
}
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]+))(?::\d{1,5})?")
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Protection:
    """Checks of every request, and the tokens of one server."""

    def __init__(self, host: str, allowed_hosts: Iterable[str] = (), token: str | None = None) -> None:
        local = is_loopback(host)
        self._is_wildcard = host in ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
        self._hosts = {name.lower() for name in (*LOCAL_NAMES, host, *allowed_hosts)}
        self.access_token = None if local and token is None else token or secrets.token_urlsafe(24)
        """Token that every request needs; `None` where only this machine can ask."""
        self.write_token = secrets.token_urlsafe(24)
        """Token of requests that write, which only our own page knows."""

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer allowed requests, with protecting headers."""
        refusal = self._refusal(request)
        if refusal is not None:
            response: web.StreamResponse = web.json_response(
                {"error": {"code": "refused", "message": refusal}}, status=403
            )
        elif self.access_token is not None and "token" in request.query and request.path == "/":
            response = web.Response(status=303, headers={"Location": "/"})
            response.set_cookie(COOKIE, self.access_token, httponly=True, samesite="Strict", path="/")
        else:
            response = await handler(request)
        response.headers.update(HEADERS)
        return response

    def _refusal(self, request: web.Request) -> str | None:
        """Return the reason to refuse a request."""
        name = _host_name(request.host) if len(request.headers.getall("Host", ())) == 1 else ""
        # Another site cannot make an address lead elsewhere, as it can a name.
        if name not in self._hosts and not (self._is_wildcard and _is_address(name)):
            return "unknown Host: open the viewer by the address that it printed"
        site = request.headers.get("Sec-Fetch-Site", "none")
        is_visit = (
            request.path == "/" and request.method == "GET" and request.headers.get("Sec-Fetch-Mode") == "navigate"
        )
        if site not in ("same-origin", "none") and not is_visit:
            return "cross-site requests are not answered"
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc.lower() != request.host.lower():
            return "requests of another origin are not answered"
        if self.access_token is not None:
            # The address that was printed last counts before a cookie that an earlier server set.
            given = request.query.get("token") if request.path == "/" else None
            given = given or request.cookies.get(COOKIE) or _bearer(request)
            if given is None or not _is_equal(given, self.access_token):
                return "a token is needed: open the address that agentv view printed"
        return None

    def check_write(self, request: web.Request) -> None:
        """Refuse a request that writes unless our own page sent it."""
        given = request.headers.get(WRITE_HEADER, "")
        if not _is_equal(given, self.write_token):
            raise web.HTTPForbidden(text="labels can be set from the page of the viewer only")
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="expected application/json")


def _is_equal(given: str, token: str) -> bool:
    # A header may hold bytes that are no text.
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())


def _bearer(request: web.Request) -> str | None:
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    return value if kind == "Bearer" else None


def _host_name(host: str) -> str:
    """Return the name in a Host header, without the port; empty if it is none."""
    match = _HOST.fullmatch(host.lower())
    return "" if match is None else match[1] or match[2]


def _is_address(name: str) -> bool:
    with suppress(ValueError):
        ip_address(name)
        return True
    return False
