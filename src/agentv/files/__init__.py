"""Files that a configuration or a reply names: only ever below a given folder."""

from __future__ import annotations

from pathlib import Path

from agentv.errors import FormatError

MAX_BYTES = 64 * 1024 * 1024


def find_below(root: str | Path, name: str, folder: str | Path | None = None) -> Path:
    """The file of this name, relative to `folder`; neither `..` nor a link may lead out of `root`."""
    base = Path(root).resolve()
    try:
        path = (Path(folder).resolve() / name if folder is not None else base / name).resolve()
        if not path.is_relative_to(base):
            msg = f"{name!r} lies outside {base}"
            raise FormatError(msg)
        if not path.is_file():
            msg = f"{name!r} is not a file below {base}"
            raise FormatError(msg)
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, FormatError):
            raise
        msg = f"cannot read {name!r}: {error}"
        raise FormatError(msg) from error
    return path


def read_below(root: str | Path, name: str, folder: str | Path | None = None) -> bytes:
    """The bytes of such a file, unless it is too large to be meant."""
    path = find_below(root, name, folder)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        msg = f"cannot read {name!r}: {error.strerror}"
        raise FormatError(msg) from error
    if len(data) > MAX_BYTES:
        msg = f"{name!r} is larger than {MAX_BYTES // 1024 // 1024} MiB"
        raise FormatError(msg)
    return data
