"""Storage folder of opencode, in which each session, message and part is a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from agentv.errors import FormatError
from agentv.jsonio import parse_json
from agentv.traces.files import MAX_DOCUMENT
from agentv.traces.records import PARSE_ERRORS, describe_error

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.protocols.traces import TraceSink

_MESSAGES, _PARTS, _SESSIONS = "message", "part", "session"


def storage_kind(value: Any) -> Literal["session", "message", "part"] | None:
    """Return what a file of the storage holds; `None` if it is no such file."""
    if not isinstance(value, dict) or not isinstance(value.get("id"), str) or "parts" in value or "info" in value:
        return None
    if isinstance(value.get("sessionID"), str):
        if isinstance(value.get("messageID"), str) and isinstance(value.get("type"), str):
            return "part"
        return "message" if isinstance(value.get("role"), str) and isinstance(value.get("time"), dict) else None
    is_session = isinstance(value.get("projectID"), str) and isinstance(value.get("time"), dict)
    return "session" if is_session and ("directory" in value or "title" in value) else None


def has_session_file(path: Path | None, kind: str) -> bool:
    """Return whether the session of a message or part is in the same storage, so that it is read with that."""
    if path is None or len(path.parents) < 3 or path.parent.parent.name != kind:  # noqa: PLR2004 - of the layout
        return False
    root = path.parent.parent.parent
    if kind == _MESSAGES:
        return any((root / _SESSIONS).glob(f"*/{path.parent.name}.json"))
    return any((root / _MESSAGES).glob(f"*/{path.parent.name}.json"))


def read_storage(path: Path | None, sink: TraceSink, lost: list[str]) -> list[dict[str, Any]] | None:
    """Return the messages of a session with their parts, as an export has them; `None` without their folder."""
    if path is None or len(path.parents) < 3:  # noqa: PLR2004 - of the layout
        return None
    root = path.parent.parent.parent
    folder = root / _MESSAGES / path.stem
    if not folder.is_dir():
        return None
    found = []
    for file in sorted(folder.glob("*.json")):
        info = _read(file, sink, lost)
        if info is None:
            continue
        parts = [_read(part, sink, lost) for part in sorted((root / _PARTS / file.stem).glob("*.json"))]
        found.append({"info": info, "parts": [part for part in parts if part is not None]})
    return found


def _read(file: Path, sink: TraceSink, lost: list[str]) -> dict[str, Any] | None:
    try:
        if not file.is_file() or file.stat().st_size > MAX_DOCUMENT:
            msg = "no file, or too large"
            raise FormatError(msg)
        value = parse_json(file.read_bytes())
        if not isinstance(value, dict):
            msg = "no object"
            raise FormatError(msg)
    except (OSError, *PARSE_ERRORS) as error:
        sink.skip(str(file), describe_error(error))
        lost.append(str(file))
        return None
    return value
