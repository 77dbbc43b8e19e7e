"""What can be wrong with an address or with headers, before anything is sent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentv.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
