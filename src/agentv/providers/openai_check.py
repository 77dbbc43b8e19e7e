"""What can be wrong with the settings of a vendor's model, before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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
