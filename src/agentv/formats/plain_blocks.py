"""Block types that a target declares to hold no tool calls (`plain_blocks`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
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
"""Types of blocks and items that are read as calls, besides those that match `CALL_PATTERN`."""
CALL_PATTERN = r"[_-]calls?$|Calls?$|^tool-"
"""Pattern of types that are read as calls: `function_call`, `functionCall`, `tool-search`."""
GLOB_PATTERN = r"[*?]"
PLAIN_BLOCK_SCHEMA: dict[str, Any] = {
    "not": {"anyOf": [{"enum": list(CALL_TYPES)}, {"pattern": CALL_PATTERN}, {"pattern": GLOB_PATTERN}]}
}
"""JSON Schema of the rules of `plain_block_problem`, for editors."""

MAX_NAME = 60
"""Maximum number of characters of a type that a reason quotes."""
_REASON = re.compile(
    r"a block (?:of type|with the sole key) (?P<name>'[^']+'|\"[^\"]+\") was not understood, so calls may be missing"
)


def check_plain_blocks(names: object) -> list[str]:
    """Return the problems of a list of block types, one sentence each."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Sequence):
        return [f"expected a list of block types, got {names!r}"]
    return [problem for name in names if (problem := plain_block_problem(name)) is not None]


def plain_block_problem(name: object) -> str | None:
    """Return the reason why a block type cannot be declared plain; `None` if it can."""
    if not isinstance(name, str):
        return f"expected a block type as text, got {name!r}"
    if not name.strip():
        return "a block type must not be empty"
    if re.search(GLOB_PATTERN, name):
        return f"{name!r} is a glob, which is not allowed here: name each block type in full"
    if name in CALL_TYPES or re.search(CALL_PATTERN, name):
        return f"{name!r} is read as a tool call, so it cannot be declared to hold none"
    return None


def unknown_block_reasons(name: str) -> tuple[str, str]:
    """Return the unread reasons for blocks of this type, or for untyped blocks with only this key."""
    short = name[:MAX_NAME]
    return (
        f"a block of type {short!r} was not understood, so calls may be missing",
        f"a block with the sole key {short!r} was not understood, so calls may be missing",
    )


def unknown_block_name(reason: str) -> str | None:
    """Return the type or the key that such a reason names; `None` for other reasons."""
    match = _REASON.fullmatch(reason)
    return match["name"][1:-1] if match else None


def drop_plain_blocks(unread: tuple[Unread, ...], plain_blocks: Collection[str]) -> tuple[Unread, ...]:
    """Return the unread places without blocks of these types."""
    if not unread or not plain_blocks:
        return unread
    reasons = {reason for name in plain_blocks for reason in unknown_block_reasons(name)}
    return tuple([place for place in unread if place.reason not in reasons])
