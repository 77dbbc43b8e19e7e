"""Arguments, input and environment of a program, and the reasons why one did not start."""

import errno
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from msgspec import UNSET, Struct

from agentv.errors import FormatError, ProviderError
from agentv.jsonio import dump_json, scrub_text
from agentv.model.request import Request, Scope
from agentv.model.response import NOT_STARTED, ProviderResponse
from agentv.process import Command
from agentv.providers.base import failure, request_fields
from agentv.templating import unescape_placeholders

PLACEHOLDERS = (
    *("prompt", "input_file", "output_file", "case_id", "attempt", "workspace"),
    *("conversation_id", "thread_id", "turn"),
)
PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")
IN_WORKSPACE = frozenset({"workspace", "input_file", "output_file"})
_ALWAYS_PASSED = ("PATH", "HOME", "LANG", "TMPDIR")
_PASSED_ON_WINDOWS = ("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA")
_MAX_ARGUMENT_BYTES = 131_071
"""Size limit of one argument on Linux."""


class CommandTemplate(Struct, frozen=True, kw_only=True):
    """Command, environment and folder of the processes of a target."""

    command: tuple[str, ...]
    env: tuple[str, ...]
    folder: str
    max_output_bytes: int

    is_user_program: ClassVar[bool] = True
    """True if the user wrote the program, so that messages may explain the protocol."""

    @property
    def used(self) -> frozenset[str]:
        """Placeholders that occur in the command."""
        return frozenset(name for argument in self.command for name in PLACEHOLDER.findall(argument))

    def make(
        self, values: Mapping[str, str | None], stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> Command:
        """Return the command with these values; raise `FormatError` if a value cannot be an argument.

        An argument with the placeholder of a value that is `None` is left out. `env` are variables beside those of the
        target, which they replace.
        """
        passed = {name: os.environ[name] for name in self._environment_names() if name in os.environ}
        return Command(
            arguments=self._arguments(values),
            folder=self.folder,
            env=passed | {name: _plain_variable(name, value) for name, value in (env or {}).items()},
            stdin=stdin,
            max_stdout_bytes=self.max_output_bytes,
        )

    def request_line(self, request: Request, wire_id: str) -> bytes:
        """Return the request as a line for a worker process."""
        return request_json(request, wire_id)

    def _arguments(self, values: Mapping[str, str | None]) -> tuple[str, ...]:
        program, others = unescape_placeholders(self.command[0]), self.command[1:]
        if sys.platform == "win32" and is_path(program):
            # On Windows a path is relative to our working directory, elsewhere to that of the program.
            program = str(Path(self.folder, program))
        missing = {name for name, value in values.items() if value is None}
        kept = [each for each in others if not missing or missing.isdisjoint(PLACEHOLDER.findall(each))]
        texts = {name: value for name, value in values.items() if value is not None}
        return (program, *[_fill(argument, texts) for argument in kept])

    def _environment_names(self) -> tuple[str, ...]:
        return (*_ALWAYS_PASSED, *self.env, *(_PASSED_ON_WINDOWS if sys.platform == "win32" else ()))


def request_json(request: Request, wire_id: str | None = None) -> bytes:
    """Return a request as one line; `wire_id` distinguishes several requests for one case."""
    return dump_json({"id": request.id if wire_id is None else wire_id, **request_fields(request)}) + b"\n"


class RequestIds:
    """Generator of request ids that are unique, among the last `memory` ones if that is given."""

    def __init__(self, memory: int | None = None) -> None:
        self._memory = memory
        self._times: dict[str, int] = {}

    def make(self, case_id: str) -> str:
        """Return the case id as a program can send it back; `#2`, `#3` and so on are appended to repeated ids."""
        plain = unique = scrub_text(case_id)
        while unique in self._times:
            self._times[plain] += 1
            unique = f"{plain}#{self._times[plain]}"
        self._times[unique] = 1
        if self._memory is not None and len(self._times) > self._memory:
            del self._times[next(iter(self._times))]
        return unique


def _plain_variable(name: str, value: str) -> str:
    if not name or "=" in name or "\0" in name + value:
        msg = (
            f"the environment variable {name!r} of the persona cannot be set: a name has no `=`, and neither has a NUL"
        )
        raise FormatError(msg)
    return value


def _fill(argument: str, values: Mapping[str, str]) -> str:
    """Fill the placeholders of an argument in one pass; placeholders in values are not expanded."""
    parts = PLACEHOLDER.split(argument)
    parts[::2] = map(unescape_placeholders, parts[::2])
    parts[1::2] = [values[name] for name in parts[1::2]]
    argument, filled = unescape_placeholders(argument), "".join(parts)
    if "\0" in filled:
        msg = f"{argument!r} would hold a NUL, which no argument can: {INSTEAD_OF_PROMPT}"
        raise FormatError(msg)
    size = len(filled.encode("utf-8", "surrogateescape"))
    if sys.platform == "linux" and size > _MAX_ARGUMENT_BYTES:
        limit = f"an argument has at most {_MAX_ARGUMENT_BYTES:,}"
        msg = f"{argument!r} would have {size:,} bytes, and {limit}: {INSTEAD_OF_PROMPT}"
        raise FormatError(msg)
    return filled


INSTEAD_OF_PROMPT = "use `{input_file}` in place of `{prompt}`, or neither and read the request from stdin"
_TOO_MANY = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""Errors that pass when other processes have ended."""


def start_failure(error: OSError, command: Command) -> ProviderResponse:
    """Return the failure of a program that could not be started."""
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
    may_pass = error.errno in (*_TOO_MANY, errno.ETXTBSY)
    # Too long arguments are those of one case; everything else is the same for all cases.
    is_for_all = not may_pass and error.errno != errno.E2BIG
    return failure("transport", message, retryable=may_pass, code=NOT_STARTED if is_for_all else UNSET)


def working_directory(scope: Scope, cwd: str | None) -> str:
    """Return the folder in which programs of a target run; raise `ProviderError` if its `cwd` is no folder."""
    folder = Path(scope.folder or ".")
    if cwd is None:
        return str(folder)
    if not (folder / cwd).is_dir():
        msg = f"the working directory `cwd: {cwd}` does not exist; it is relative to {str(folder)!r}"
        raise ProviderError(msg)
    return str(folder / cwd)


def is_path(program: str) -> bool:
    """Return whether a program is named by its path, so that it is not looked up on the PATH."""
    return "/" in program or os.sep in program


def _not_found(program: str, folder: str) -> str:
    is_there = Path(folder, program).exists()
    if not is_path(program):
        hint = f"; the one in {folder!r} is called './{program}'" if is_there else ""
        return f"there is no such program on the PATH{hint}"
    if is_there:
        return "the interpreter that its first line names was not found"
    return f"there is no such file; a path is relative to the working directory {folder!r}"
