"""What is wrong with the settings of an endpoint, before anything is sent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import UNSET

from agentv.errors import Problem
from agentv.matching.pointer import bad_pointer
from agentv.providers import wire_check
from agentv.providers.http_pointers import POINTERS
from agentv.providers.http_request import FORM, content_type, is_json
from agentv.providers.http_template import PLACEHOLDER, check_template, names_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentv.providers.http_pointers import Pointers

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
