"""What a worker of a `python` target is told: JSON a line, and never a pickle."""

from typing import Any

from msgspec import Struct

from agentv.model.request import Request, Scope


class Job(Struct, frozen=True, kw_only=True):
    """The first line: which code, and where it would find itself in the process of agentv."""

    function: str
    args: dict[str, Any]
    scope: Scope


class Asked(Struct, frozen=True, kw_only=True):
    """Every other line."""

    id: str
    request: Request
