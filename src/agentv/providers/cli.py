"""A program of the user's as the system under test: one process for each attempt."""

from __future__ import annotations

import os
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from agentv.errors import FormatError, Problem
from agentv.formats.json import dump_json, replace_surrogates
from agentv.process import Command, Finished, run
from agentv.providers.base import ProviderBase, failure
from agentv.providers.cli_reply import Printed, read_end
from agentv.providers.cli_start import INSTEAD_OF_PROMPT, is_path, not_started
from agentv.providers.workspace import Workspace, workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.model.request import Request
    from agentv.model.response import ProviderResponse

PLACEHOLDERS = ("prompt", "input_file", "output_file", "case_id", "attempt", "workspace")
_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")
_NAME_IN_BRACES = re.compile(r"(?<!\$)\{([A-Za-z][A-Za-z0-9_-]*)\}")  # `${NAME}` is for the program to read
_VARIABLE = re.compile(r"[^\s=$%{}\0]+")
_ALWAYS_PASSED = ("PATH", "HOME", "LANG", "TMPDIR")
_PASSED_ON_WINDOWS = ("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA")
_MAX_ARGUMENT_BYTES = 131_071
"""What Linux lets one argument hold."""
_IN_WORKSPACE = {"workspace", "input_file", "output_file"}


class Cli(ProviderBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A program that reads a request and prints a reply."""

    provider: Literal["cli"] = "cli"
    mode: Literal["single"] = "single"
    """`single`: one process for each attempt."""
    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    """The program and its arguments, a list; `{prompt}` and the like in an argument stand for the request's."""
    env: tuple[str, ...] = ()
    """Names of environment variables that the program may see, beside PATH, HOME, LANG and TMPDIR."""
    max_output_bytes: Annotated[int, Meta(ge=1, le=67_108_864)] = 10_000_000
    """How much of the program's output is kept: half from the beginning, half from the end."""

    executes: ClassVar[bool] = True

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The variables it passes on."""
        return self.env

    def check(self, path: str) -> list[Problem]:
        """What is wrong with the command and the names."""
        return [*_check_command(self.command, f"{path}.command"), *_check_names(self.env, f"{path}.env")]

    async def invoke(self, request: Request) -> ProviderResponse:
        """Run the program once; when this is cancelled, the program and all it started are dead before it returns."""
        used = {name for argument in self.command for name in _PLACEHOLDER.findall(argument)}
        try:
            with workspace() if used & _IN_WORKSPACE else nullcontext() as private:
                return await self._invoke(request, used, private)
        except FormatError as error:
            return failure("transport", str(error))
        except OSError as error:
            return failure("transport", f"the workspace cannot be used: {error}")

    async def _invoke(self, request: Request, used: set[str], private: Workspace | None) -> ProviderResponse:
        values = {"prompt": request.prompt, "case_id": request.id, "attempt": str(request.attempt)}
        values = {name: replace_surrogates(value) for name, value in values.items()}
        if private is not None:
            values |= {name: getattr(private, name) for name in _IN_WORKSPACE}
        if private is not None and "input_file" in used:
            private.write_input(_request_json(request))
        command = Command(
            arguments=self._arguments(values),
            folder=self.scope.folder or ".",
            env={name: os.environ[name] for name in self._passed() if name in os.environ},
            stdin=b"" if used & {"prompt", "input_file"} else _request_json(request),
            max_stdout_bytes=self.max_output_bytes,
        )
        try:
            done = await run(command)
        except OSError as error:
            return not_started(error, command)
        printed = self._printed(done, private if "output_file" in used else None)
        response = read_end(done, printed, self.max_output_bytes)
        return response if private is None else private.fetch_trace(response)

    def _arguments(self, values: dict[str, str]) -> tuple[str, ...]:
        program, *others = self.command
        if sys.platform == "win32" and is_path(program):
            # Elsewhere a program's path is relative to its working directory, there it is to ours.
            program = str(Path(self.scope.folder, program))
        return (program, *[_fill(argument, values) for argument in others])

    def _passed(self) -> tuple[str, ...]:
        return (*_ALWAYS_PASSED, *self.env, *(_PASSED_ON_WINDOWS if sys.platform == "win32" else ()))

    def _printed(self, done: Finished, private: Workspace | None) -> Printed | FormatError:
        try:
            data, truncated = private.read_output(self.max_output_bytes) if private else (b"", False)
        except FormatError as error:
            return error
        if data:
            return Printed(data, truncated, "the file at {output_file}")
        return Printed(done.stdout, done.stdout_truncated)


def _request_json(request: Request) -> bytes:
    wire = {
        "id": request.id,
        "input_messages": request.input_messages,
        "vars": request.vars,
        "attempt": request.attempt,
    }
    if request.thread_id is not None:
        wire["thread_id"] = request.thread_id
    return dump_json(wire) + b"\n"


def _fill(argument: str, values: dict[str, str]) -> str:
    """The argument with its placeholders replaced, in one pass: what a value holds is never looked at again."""
    filled = _PLACEHOLDER.sub(lambda found: values[found[1]], argument)
    if "\0" in filled:
        msg = f"{argument!r} would hold a NUL, which no argument can: {INSTEAD_OF_PROMPT}"
        raise FormatError(msg)
    size = len(filled.encode("utf-8", "surrogateescape"))
    if sys.platform == "linux" and size > _MAX_ARGUMENT_BYTES:
        limit = f"an argument has at most {_MAX_ARGUMENT_BYTES:,}"
        msg = f"{argument!r} would have {size:,} bytes, and {limit}: {INSTEAD_OF_PROMPT}"
        raise FormatError(msg)
    return filled


def _check_command(command: tuple[str, ...] | str, path: str) -> Iterator[Problem]:
    if isinstance(command, str):
        yield Problem(path, f"expected a list of arguments, got {command!r}: write {command.split()!r}")
        return
    if not command or not command[0].strip():
        yield Problem(path, "expected a program as the first item of the list")
        return
    if len(command) == 1 and " " in command[0].strip() and not is_path(command[0]):
        yield Problem(f"{path}[0]", f"expected a list with one item for each argument: write {command[0].split()!r}")
    if _PLACEHOLDER.search(command[0]):
        yield Problem(f"{path}[0]", f"expected the name of a program, got {command[0]!r}: a request cannot choose it")
    for index, argument in enumerate(command):
        if "\0" in argument:
            yield Problem(f"{path}[{index}]", "holds a NUL, which no argument can")
        for name in _NAME_IN_BRACES.findall(argument):
            meant = None if name in PLACEHOLDERS else _guess(name)
            if meant is not None:
                yield Problem(f"{path}[{index}]", f"unknown placeholder `{{{name}}}`; did you mean `{{{meant}}}`?")


def _guess(name: str) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    by_letters = {known.replace("_", ""): known for known in PLACEHOLDERS}
    close = get_close_matches(re.sub("[_-]", "", name).lower(), by_letters, n=1, cutoff=0.7)
    return by_letters[close[0]] if close else None


def _check_names(names: tuple[str, ...], path: str) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if not _VARIABLE.fullmatch(name):
            expected = "the name of an environment variable alone: its value comes from the environment"
            yield Problem(f"{path}[{index}]", f"expected {expected}, got {name!r}")
