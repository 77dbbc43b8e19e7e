"""`cli`: any program as the target; settings, checks and `mode: single`."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

from msgspec import Meta

from agentv.errors import FormatError, Problem, ProviderError
from agentv.jsonio import replace_surrogates
from agentv.process import ProcessResult, run
from agentv.providers.base import ProviderBase, check_names, failure
from agentv.providers.cli.code_arguments import find_code_arguments
from agentv.providers.cli.command import (
    IN_WORKSPACE,
    PLACEHOLDER,
    PLACEHOLDERS,
    CommandTemplate,
    is_path,
    request_json,
    start_failure,
    working_directory,
)
from agentv.providers.cli.output import ProgramOutput, read_exit
from agentv.providers.cli.workspace import Workspace, workspace
from agentv.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.model.request import Request, Scope
    from agentv.model.response import ProviderResponse
    from agentv.providers.cli.batch import BatchRunner
    from agentv.providers.cli.stream import WorkerPool


Mode = Literal["single", "batch", "stream"]
_NAME_IN_BRACES = re.compile(r"(?<!\$)\{([A-Za-z][A-Za-z0-9_-]*)\}")  # `${NAME}` is for the program to read
_TEXT_OF_CASE = re.compile(r"\{(prompt|case_id|thread_id)\}")
"""Placeholders whose values come from the case or from a reply, and so may be anything."""
_NAME_IN_TWO_BRACES = re.compile(r"\{\{\s*([A-Za-z_][\w.-]*)\s*\}\}")
_OF_ONE_REQUEST = ("prompt", "case_id", "attempt", "conversation_id", "thread_id", "turn")
_REFUSED: dict[str, tuple[str, ...]] = {
    "batch": _OF_ONE_REQUEST,
    "stream": (*_OF_ONE_REQUEST, "input_file", "output_file"),
}
_INSTEAD = {
    "batch": "one process gets many requests: leave it out and read them from `{input_file}` or from stdin",
    "stream": "one process gets many requests: leave it out, read them from stdin and answer on stdout",
}


def check_command(command: tuple[str, ...] | str, mode: Mode, path: str) -> Iterator[Problem]:
    """Yield the problems of a command."""
    if isinstance(command, str):
        yield Problem(path, f"expected a list of arguments, got {command!r}: write {command.split()!r}")
        return
    if not command or not command[0].strip():
        yield Problem(path, "expected a program as the first item of the list")
        return
    if len(command) == 1 and " " in command[0].strip() and not is_path(command[0]):
        yield Problem(f"{path}[0]", f"expected a list with one item for each argument: write {command[0].split()!r}")
    if PLACEHOLDER.search(command[0]):
        yield Problem(f"{path}[0]", f"expected the name of a program, got {command[0]!r}: a request cannot choose it")
    for index, argument in enumerate(command):
        yield from _check_argument(argument, mode, f"{path}[{index}]")


def _check_argument(argument: str, mode: Mode, path: str) -> Iterator[Problem]:
    if "\0" in argument:
        yield Problem(path, "holds a NUL, which no argument can")
    for name in _NAME_IN_TWO_BRACES.findall(argument):
        meant = name if name in PLACEHOLDERS else closest(name, PLACEHOLDERS, 0.7)
        written = f"`{{{{ {name} }}}}` is not replaced in a command"
        others = f"the placeholders are {', '.join(f'`{{{placeholder}}}`' for placeholder in PLACEHOLDERS)}"
        yield Problem(path, f"{written}: write `{{{meant}}}`" if meant else f"{written}: {others}")
    for name in _NAME_IN_BRACES.findall(_NAME_IN_TWO_BRACES.sub("", argument)):
        if name in _REFUSED.get(mode, ()):
            yield Problem(path, f"`{{{name}}}` is for `mode: single`; with `mode: {mode}` {_INSTEAD[mode]}")
        meant = None if name in PLACEHOLDERS else closest(name, PLACEHOLDERS, 0.7)
        if meant is not None:
            yield Problem(path, f"unknown placeholder `{{{name}}}`; did you mean `{{{meant}}}`?")


def check_code_placeholders(command: tuple[str, ...], path: str) -> Iterator[Problem]:
    """Yield a problem for each argument that is run as code and contains text of the case."""
    found = {argument.at: argument for argument in find_code_arguments(command)}
    for index, code in sorted(found.items()):
        names = [] if index >= len(command) else list(dict.fromkeys(_TEXT_OF_CASE.findall(command[index])))
        if names:
            what = " and ".join(f"`{{{name}}}`" for name in names)
            danger = f"{what} would be run as code by `{code.program}`, whatever the case contains"
            fix = f"{code.fix}, or use `{{input_file}}`; `allow_code_placeholders: true` if it is meant"
            yield Problem(f"{path}[{index}]", f"{danger}: {fix}")


def check_mode(mode: Mode, key: str, belongs_to: Mode, path: str, *, is_default: bool) -> Iterator[Problem]:
    """Yield a problem if a setting is given that only another mode has."""
    if mode != belongs_to and not is_default:
        yield Problem(f"{path}.{key}", f"has no meaning with `mode: {mode}`: remove it, or write `mode: {belongs_to}`")


__all__ = ["PLACEHOLDERS", "Cli"]

_BATCH_SIZE = 100
_CONTEXT = frozenset(("input_file", "conversation_id", "thread_id"))
"""Placeholders that lead the program to the messages before the prompt."""
_NO_TURNS_IN_BATCH = (
    "`mode: batch` sends all cases at once, and a turn needs the reply to the one before it: "
    "use `mode: single`, or `mode: stream` to keep the program running"
)
_NO_CONTEXT = (
    "`{prompt}` is the last message alone, so a turn would come without those before it: use `{input_file}` or stdin "
    "for the whole conversation, or add `{conversation_id}` or `{thread_id}` if the program keeps it"
)
_NO_OWN_ENV = "one process serves several cases, so a persona cannot have its own `env` with"
_INSTEAD_OF_ENV = "use `mode: single`, or pass the values in the persona's `vars`"


class Cli(ProviderBase, kw_only=True):
    """Program that reads requests and prints replies."""

    provider: Literal["cli"] = "cli"
    mode: Literal["single", "batch", "stream"] = "single"
    """`single`: one process for each attempt; `batch`: one for many cases; `stream`: one that stays up."""
    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    """The program and its arguments: a list, or a text that is split like that of a shell, though no shell is started.
    `{prompt}` and the like in an argument stand for the request's."""
    env: tuple[str, ...] = ()
    """Names of environment variables that the program may see, beside PATH, HOME, LANG and TMPDIR."""
    secrets: tuple[str, ...] = ()
    """Names in `env` whose values must not appear in results although they do not look like secrets."""
    cwd: Annotated[str, Meta(min_length=1)] | None = None
    """Working directory, relative to the file that defines the target; by default the folder of that file."""
    max_output_bytes: Annotated[int, Meta(ge=1, le=67_108_864)] = 10_000_000
    """Largest size of the output that is kept, half from its beginning and half from its end; or of a reply's line."""
    batch_size: Annotated[int, Meta(ge=1, le=100_000)] = _BATCH_SIZE
    """With `mode: batch`, the largest number of requests for one process."""
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    """With `mode: stream`, the largest number of processes."""
    allow_code_placeholders: bool = False
    """True to allow `{prompt}`, `{case_id}` and `{thread_id}` in code, such as the script of `sh -c`: the case is then
    run as code."""

    executes: ClassVar[bool] = True
    templates: ClassVar[tuple[str, ...]] = ("command",)

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Names in `secrets`."""
        return self.secrets

    @property
    def variable_names(self) -> tuple[str, ...]:
        """Names of the environment variables that the program receives."""
        return self.env

    @property
    def conversation_problem(self) -> str | None:
        """Reason why the program cannot hold a conversation: a turn would come before the last reply, or alone."""
        if self.mode == "batch":
            return _NO_TURNS_IN_BATCH
        used = {name for argument in self.command for name in PLACEHOLDER.findall(argument)}
        if self.mode == "single" and "prompt" in used and not used & _CONTEXT:
            return _NO_CONTEXT
        return None

    @property
    def persona_env_problem(self) -> str | None:
        """Reason why the program cannot have the variables of a persona: one process serves several cases."""
        return None if self.mode == "single" else f"{_NO_OWN_ENV} `mode: {self.mode}`: {_INSTEAD_OF_ENV}"

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the command, the variable names and the mode."""
        return [
            *check_command(self.command, self.mode, f"{path}.command"),
            *self._check_code(f"{path}.command"),
            *check_names(self.env, f"{path}.env"),
            *check_names(self.secrets, f"{path}.secrets"),
            *check_mode(self.mode, "batch_size", "batch", path, is_default=self.batch_size == _BATCH_SIZE),
            *check_mode(self.mode, "workers", "stream", path, is_default=self.workers == 1),
        ]

    def _check_code(self, path: str) -> Iterator[Problem]:
        is_list = not isinstance(self.command, str) and bool(self.command)
        # In the other modes these placeholders are refused anyway.
        if self.mode == "single" and is_list and not self.allow_code_placeholders:
            yield from check_code_placeholders(self.command, path)

    async def open(self, scope: Scope) -> SingleSession | BatchRunner | WorkerPool:
        """Return the session of the mode; no program is started yet."""
        for problem in self._check_code("command"):  # variables may have named an interpreter
            raise ProviderError(str(problem))
        command = CommandTemplate(
            command=self.command,
            env=self.env,
            folder=working_directory(scope, self.cwd),
            max_output_bytes=self.max_output_bytes,
        )
        if self.mode == "single":
            return SingleSession(command)
        from agentv.providers.cli import batch, stream  # noqa: PLC0415 - a target is checked without them

        if self.mode == "batch":
            return batch.BatchRunner(command)
        return stream.WorkerPool(command, self.workers, keeps_state=self.conversation_mode == "thread")


class SingleSession(NamedTuple):
    """Session of `mode: single`, with one process for each attempt."""

    command: CommandTemplate

    async def invoke(self, request: Request) -> ProviderResponse:
        """Run the program once and return its reply."""
        return await invoke_single(self.command, request)

    async def close(self) -> None:
        """Do nothing."""


async def invoke_single(command_template: CommandTemplate, request: Request) -> ProviderResponse:
    """Run the program once; on cancellation, it and all its descendants are dead before this returns."""
    used = command_template.used
    try:
        with workspace() if used & IN_WORKSPACE else nullcontext() as folder:
            return await _invoke(command_template, request, used, folder)
    except FormatError as error:
        return failure("transport", str(error))
    except OSError as error:
        return failure("transport", f"the workspace cannot be used: {error}")


async def _invoke(
    command_template: CommandTemplate, request: Request, used: frozenset[str], folder: Workspace | None
) -> ProviderResponse:
    texts = {
        "prompt": request.prompt,
        "case_id": request.id,
        "attempt": str(request.attempt),
        "conversation_id": request.conversation_id,
        "turn": str(request.turn),
    }
    values: dict[str, str | None] = {name: replace_surrogates(value) for name, value in texts.items()}
    values["thread_id"] = None if request.thread_id is None else replace_surrogates(request.thread_id)
    if folder is not None:
        values |= {name: getattr(folder, name) for name in IN_WORKSPACE}
    if folder is not None and "input_file" in used:
        folder.write_input(request_json(request))
    stdin = b"" if used & {"prompt", "input_file"} else request_json(request)
    command = command_template.make(values, stdin, request.env)
    try:
        result = await run(command)
    except OSError as error:
        return start_failure(error, command)
    printed = _printed(result, folder if "output_file" in used else None, command_template.max_output_bytes)
    response = read_exit(result, printed, command_template.max_output_bytes, request.input_messages)
    return response if folder is None else folder.fetch_trace(response)


def _printed(result: ProcessResult, folder: Workspace | None, limit: int) -> ProgramOutput | FormatError:
    try:
        data, truncated = folder.read_output(limit) if folder else (b"", False)
    except FormatError as error:
        return error
    if data:
        return ProgramOutput(data, truncated, "the file at {output_file}")
    return ProgramOutput(result.stdout, result.stdout_truncated)
