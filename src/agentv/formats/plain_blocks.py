"""Block types that a target declares to hold no tool calls (`plain_blocks`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentv.model.response import Unread

CALL_TYPES = (
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "toolUse",
    "executableCode",
    "mcp_approval_request",
    "command_execution",
    "file_change",
    "web_search",
    "mcp_tool_call",
    "permission_denials",
    "tool-invocation",
    "dynamic-tool",
)
"""Types of blocks and items that are read as calls, beside those that `CALL_PATTERN` finds."""
CALL_PATTERN = r"[_-]calls?$|Calls?$|^tool-"
"""Matches a type that is read as a call by its form alone: `function_call`, `functionCall`, `tool-search`."""
GLOB_PATTERN = r"[*?]"
PLAIN_BLOCK_SCHEMA: dict[str, Any] = {
    "not": {"anyOf": [{"enum": list(CALL_TYPES)}, {"pattern": CALL_PATTERN}, {"pattern": GLOB_PATTERN}]}
}
"""What `plain_block_problem` checks, as JSON Schema for editors."""

_REASON = re.compile(r"a block of type (?P<type>'[^']+'|\"[^\"]+\") was not understood, so calls may be missing")


def check_plain_blocks(names: object) -> list[str]:
    """Return what is wrong with a list of block types, one sentence each."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        return [f"expected a list of block types, got {names!r}"]
    return [problem for name in names if (problem := plain_block_problem(name)) is not None]


def plain_block_problem(name: object) -> str | None:
    """Return why a block type cannot be declared plain; `None` when it can."""
    if not isinstance(name, str):
        return f"expected a block type as text, got {name!r}"
    if not name.strip():
        return "a block type must not be empty"
    if re.search(GLOB_PATTERN, name):
        return f"{name!r} is a glob, which is not allowed here: name each block type in full"
    if name in CALL_TYPES or re.search(CALL_PATTERN, name):
        return f"{name!r} is read as a tool call, so it cannot be declared to hold none"
    return None


def unknown_block_reason(block_type: str) -> str:
    """Return the reason of an unread place that is a block of an unknown type."""
    return f"a block of type {block_type!r} was not understood, so calls may be missing"


def unknown_block_type(reason: str) -> str | None:
    """Return the type that `unknown_block_reason` names; `None` for any other reason."""
    found = _REASON.fullmatch(reason)
    return found["type"][1:-1] if found else None


def drop_plain_blocks(unread: tuple[Unread, ...], plain_blocks: Collection[str]) -> tuple[Unread, ...]:
    """Return the unread places without those that are blocks of these types."""
    if not unread or not plain_blocks:
        return unread
    reasons = {unknown_block_reason(name) for name in plain_blocks}
    return tuple([place for place in unread if place.reason not in reasons])
