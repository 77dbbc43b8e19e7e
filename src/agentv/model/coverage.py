"""Declared tools, and the report of `agentv coverage`."""

from typing import Any

from msgspec import Struct


class ToolArgument(Struct, frozen=True, kw_only=True):
    """Argument of a declared tool."""

    name: str
    """Name of the argument."""
    values: tuple[Any, ...] = ()
    """All values that it may have; empty if they are not enumerated."""
    required: bool = False
    """`True` if every call needs it."""


class DeclaredTool(Struct, frozen=True, kw_only=True):
    """Tool that an eval or a project declares."""

    name: str
    """Name of the tool."""
    arguments: tuple[ToolArgument, ...] = ()
    """Arguments of the tool, as far as they are declared."""
