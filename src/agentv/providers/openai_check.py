"""What can be wrong with the settings of a target behind HTTP, before anything is sent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agentv.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch


def check_base_url(url: str, path: str) -> list[Problem]:
    """An address that HTTP can reach; one that begins with a variable is seen when it is known."""
    if url.startswith(("http://", "https://", "${")):
        return []
    return [Problem(f"{path}.base_url", f"{url!r} is no address: it must begin with http:// or https://")]


def check_headers(headers: Mapping[str, str], path: str) -> list[Problem]:
    """Names that can be sent, each of them once."""
    problems = []
    seen: dict[str, str] = {}
    for name in headers:
        place = f"{path}.headers.{name}"
        if not _NAME(name):
            problems.append(Problem(place, f"{name!r} cannot be the name of an HTTP header", "key"))
        elif name.lower() in seen:
            problems.append(Problem(place, f"{name!r} is the same header as {seen[name.lower()]!r}", "key"))
        seen[name.lower()] = name
    return problems


def check_extra_body(body: Mapping[str, Any], own: Iterable[str], path: str) -> list[Problem]:
    """Nothing that has a setting of its own, or that the provider itself must know."""
    return [Problem(f"{path}.extra_body.{name}", _instead(name), "key") for name in own if name in body]


def _instead(name: str) -> str:
    if name in ("messages", "input"):
        return f"{name!r} is made of the case's input"
    return f"{name!r} has a setting of its own: write `{name}` beside `extra_body`"


def check_limits(
    max_tokens: int | None, max_completion_tokens: int | None, seed: int | None, api: str, path: str
) -> list[Problem]:
    """One limit, and nothing that the API has no place for."""
    problems = []
    if max_tokens is not None and max_completion_tokens is not None:
        message = "the same limit as `max_tokens` under another name: keep the one that the model wants"
        problems.append(Problem(f"{path}.max_completion_tokens", message))
    if seed is not None and api == "responses":
        problems.append(Problem(f"{path}.seed", "the Responses API has no seed: leave it out, or use `api: chat`"))
    return problems
