"""Files that a configuration or a reply names: only ever below a given folder."""

from __future__ import annotations

from pathlib import Path

from agentv.errors import FormatError

MAX_BYTES = 64 * 1024 * 1024


def read_below(root: str | Path, name: str) -> bytes:
    """The bytes of a file below `root`; neither `..` nor a link may lead out of it."""
    base = Path(root).resolve()
    try:
        path = (base / name).resolve()
        if not path.is_relative_to(base):
            msg = f"{name!r} lies outside {base}"
            raise FormatError(msg, path="trace_ref")
        if not path.is_file():
            msg = f"{name!r} is not a file below {base}"
            raise FormatError(msg, path="trace_ref")
        if path.stat().st_size > MAX_BYTES:
            msg = f"{name!r} is larger than {MAX_BYTES // 1024 // 1024} MiB"
            raise FormatError(msg, path="trace_ref")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        msg = f"cannot read {name!r}: {error}"
        raise FormatError(msg, path="trace_ref") from error
