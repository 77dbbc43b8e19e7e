"""URLs and headers of requests: checks of settings, joined addresses, merged headers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentv.errors import Problem
from agentv.providers.transport.failures import transport_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


is_header_name = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch
FRAMING = ("content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade")
"""Headers of the connection, which settings may not set."""
_ADDRESS = re.compile(r"\s*(\$\{|https?://[^/\s?#])", re.IGNORECASE).match
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*").fullmatch
_LOGIN = re.compile(r"(?<=://)[^/@\s]*@")


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


def merge_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """Merge headers, case-insensitively; later ones replace earlier ones.

    Around a value, white space is dropped: a key from a file often ends with a line break.
    """
    merged: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer.items():
            text = value.strip()
            if not is_header_name(name):
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
