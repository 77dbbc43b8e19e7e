"""Which file gets which format: its name says."""

from __future__ import annotations

import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from agentv.errors import FormatError
from agentv.registry import find_reporter, reporter_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agentv.protocols import Reporter
    from agentv.redaction import Redactor

    Opens = Callable[[Path, Redactor], Reporter]


def open_output(path: Path, redactor: Redactor) -> Reporter:
    """What writes results to this file, which is open and empty from here on."""
    return format_of(path)(path, redactor)


def format_of(path: Path) -> Opens:
    """What opens a file of this name; raises `FormatError` when nothing does."""
    suffix = path.suffix.lower().removeprefix(".")
    # A pipe or a device has a name that says nothing, and whoever reads along wants lines.
    if not suffix and _is_device(path):
        suffix = "jsonl"
    found: Opens | None = find_reporter(suffix) if suffix else None
    if found is None:
        *names, last = [f".{name}" for name in reporter_names()]
        msg = f"{path}: the name says the format, and must end in {', '.join(names)} or {last}"
        raise FormatError(msg)
    return found


def _is_device(path: Path) -> bool:
    with suppress(OSError, ValueError):  # nothing of this name can be there
        mode = path.stat().st_mode
        return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    return False
