"""Failures of Python agents: the frames of the user's code in the message, the whole traceback in the metadata."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from pathlib import Path
from traceback import FrameSummary, extract_tb, format_exception
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.errors import AgentVError
from agentv.formats.normalize import describe_exception, failed_response, failure_from_exception
from agentv.model.response import TRACEBACK
from agentv.providers.python.exits import AgentExit

if TYPE_CHECKING:
    from agentv.model.response import ProviderResponse

MAX_FRAMES = 3
MAX_TRACEBACK = 20_000
_PACKAGE = Path(__file__).resolve().parents[2]


@cache
def _library_folders() -> tuple[Path, ...]:
    """Return the folders of installed packages and of the standard library."""
    paths = sysconfig.get_paths()
    return tuple({Path(paths[name]).resolve() for name in ("stdlib", "platstdlib", "purelib") if name in paths})


class BlockedLoopError(BaseException):
    """Interruption of an agent that blocks the event loop; no `except Exception` of the agent catches it."""

    def __init__(self, duration_s: float) -> None:
        blocked = f"the agent blocked the event loop for {duration_s:.1f} s, so that no other run could go on"
        super().__init__(f"{blocked}; use `def` instead of `async def`, or `workers`")


def exception_failure(error: BaseException, root: str | None = None) -> ProviderResponse:
    """Return the failed reply of an agent that raised an exception, with file, line and frames of the user's code."""
    response = failure_from_exception(error)
    if isinstance(error, BlockedLoopError):
        response = failed_response("timeout", str(error))
    elif isinstance(error, AgentExit):
        response = failed_response("agent", str(error))
    elif not isinstance(error, Exception):
        response = failed_response("agent", describe_exception(error))
    assert response.error is not None  # noqa: S101 - it is a failure
    if not isinstance(error, AgentVError):
        message = "\n".join([response.error.message, *user_frames(error, root)])
        response = replace(response, error=replace(response.error, message=message))
    return add_metadata(response, TRACEBACK, format_traceback(error))


def format_traceback(error: BaseException) -> str:
    """Return the traceback of an exception and its causes, without the frames of agentv; the end of a long one."""
    cause = error.__cause__ if isinstance(error, AgentVError) else error
    if cause is None:
        return ""
    first = cause.__traceback__
    while first is not None and first.tb_next is not None and _is_below(first.tb_frame.f_code.co_filename, _PACKAGE):
        first = first.tb_next
    try:
        text = "".join(format_exception(type(cause), cause, first))
    except Exception as nested:  # noqa: BLE001 - the text of an exception may itself raise
        return f"the traceback cannot be shown: {type(nested).__name__}"
    return text if len(text) <= MAX_TRACEBACK else f"…{text[-MAX_TRACEBACK:]}"


def user_frames(error: BaseException, root: str | None) -> list[str]:
    """Return the last frames of the user's code, one line each, and the place in a library that raised the error."""
    frames = [frame for frame in extract_tb(error.__traceback__) if not _is_below(frame.filename, _PACKAGE)]
    own = [frame for frame in frames if _is_user_code(frame)]
    lines = [f"at {_format(frame, root)}" for frame in own[-MAX_FRAMES:]]
    if len(own) > MAX_FRAMES:
        lines.insert(0, f"… {len(own) - MAX_FRAMES} more frames")
    if frames and (not own or frames[-1] is not own[-1]):
        lines.append(f"raised at {_format(frames[-1], root)}")
    return lines


def _is_user_code(frame: FrameSummary) -> bool:
    path = Path(frame.filename)
    if frame.filename.startswith("<frozen") or {"site-packages", "dist-packages"} & set(path.parts):
        return False
    return not any(_is_below(frame.filename, folder) for folder in _library_folders())


def _is_below(file: str, folder: Path) -> bool:
    return Path(file).is_relative_to(folder)


def _format(frame: FrameSummary, root: str | None) -> str:
    path = Path(frame.filename)
    base = Path(root or Path.cwd()).resolve()
    name = path.relative_to(base) if path.is_relative_to(base) else path
    if not _is_user_code(frame):
        folders = [*_library_folders(), *map(Path, filter(None, sys.path))]
        folders = [folder for folder in folders if path.is_relative_to(folder)]
        name = path.relative_to(max(folders, key=lambda folder: len(folder.parts))) if folders else path
    source = f": {frame.line}" if frame.line else ""
    return f"{name.as_posix()}:{frame.lineno} in {frame.name}{source}"


def add_metadata(response: ProviderResponse, key: str, value: Any) -> ProviderResponse:
    """Return the reply with an entry in its metadata, unless the value is empty or the agent has set the key."""
    metadata = response.metadata or {}
    return replace(response, metadata={**metadata, key: value}) if value and key not in metadata else response
