"""Why a program could not be started, and what to do about it."""

import errno
import os
from pathlib import Path

from agentv.model.response import ProviderResponse
from agentv.process import Command
from agentv.providers.base import failure

INSTEAD_OF_PROMPT = "use `{input_file}` in place of `{prompt}`, or neither and read the request from stdin"
_TOO_MANY = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""Over when others have ended."""


def not_started(error: OSError, command: Command) -> ProviderResponse:
    """The reply of a program that never ran."""
    program, folder = command.arguments[0], command.folder
    if error.errno == errno.E2BIG:
        reason = f"its arguments are too long for this system: {INSTEAD_OF_PROMPT}"
    elif error.filename == folder or not Path(folder).is_dir():
        reason = f"its working directory {folder!r} cannot be entered: {error.strerror}"
    elif error.errno in (errno.ENOENT, errno.ENOTDIR):
        reason = _not_found(program, folder)
    elif error.errno == errno.ENOEXEC:
        reason = "it is neither a program for this machine nor a script whose first line is like `#!/bin/sh`"
    elif error.errno == errno.EACCES:
        reason = f"it may not be executed: `chmod +x {program}`, or name its interpreter before it"
    elif error.errno in _TOO_MANY:
        reason = f"{error.strerror}: lower `max_concurrency`"
    else:
        reason = str(error.strerror or error)
    message = f"{program!r} could not be started: {reason}"
    return failure("transport", message, retryable=error.errno in (*_TOO_MANY, errno.ETXTBSY))


def is_path(program: str) -> bool:
    """Whether a program is named by its place, not to be looked up on the PATH."""
    return "/" in program or os.sep in program


def _not_found(program: str, folder: str) -> str:
    is_there = Path(folder, program).exists()
    if not is_path(program):
        hint = f"; the one in the eval's folder is called './{program}'" if is_there else ""
        return f"there is no such program on the PATH{hint}"
    if is_there:
        return "the interpreter that its first line names was not found"
    return f"there is no such file; a path is relative to the eval's folder {folder!r}"
