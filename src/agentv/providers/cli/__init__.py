"""`cli`: any program as the target; settings, checks and `mode: single`."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from agentv.errors import FormatError, Problem, closest
from agentv.jsonio import replace_surrogates
from agentv.process import ProcessResult, run
from agentv.providers.base import ProviderBase, failure
from agentv.providers.cli.command import (
    IN_WORKSPACE,
    PLACEHOLDER,
    PLACEHOLDERS,
    CommandTemplate,
    is_path,
    not_started,
    request_json,
)
from agentv.providers.cli.output import Printed, read_end
from agentv.providers.cli.workspace import Workspace, workspace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from agentv.model.request import Request
    from agentv.model.response import ProviderResponse
    from agentv.providers.cli.batch import Batch
    from agentv.providers.cli.stream import WorkerPool


Mode = Literal["single", "batch", "stream"]
_NAME_IN_BRACES = re.compile(r"(?<!\$)\{([A-Za-z][A-Za-z0-9_-]*)\}")  # `${NAME}` is for the program to read
_VARIABLE = re.compile(r"[^\s=$%{}\0]+")
_REFUSED: dict[str, tuple[str, ...]] = {
    "batch": ("prompt", "case_id", "attempt"),
    "stream": ("prompt", "case_id", "attempt", "input_file", "output_file"),
}
_INSTEAD = {
    "batch": "one process gets many requests: leave it out and read them from `{input_file}` or from stdin",
    "stream": "one process gets many requests: leave it out, read them from stdin and answer on stdout",
}


def check_command(command: tuple[str, ...] | str, mode: Mode, path: str) -> Iterator[Problem]:
    """What is wrong with a command."""
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
    for name in _NAME_IN_BRACES.findall(argument):
        if name in _REFUSED.get(mode, ()):
            yield Problem(path, f"`{{{name}}}` is for `mode: single`; with `mode: {mode}` {_INSTEAD[mode]}")
        meant = None if name in PLACEHOLDERS else closest(name, PLACEHOLDERS, 0.7)
        if meant is not None:
            yield Problem(path, f"unknown placeholder `{{{name}}}`; did you mean `{{{meant}}}`?")


def check_names(names: tuple[str, ...], path: str) -> Iterator[Problem]:
    """What is wrong with names of environment variables."""
    for index, name in enumerate(names):
        if not _VARIABLE.fullmatch(name):
            expected = "the name of an environment variable alone: its value comes from the environment"
            yield Problem(f"{path}[{index}]", f"expected {expected}, got {name!r}")


def check_mode(mode: Mode, key: str, belongs_to: Mode, path: str, *, is_default: bool) -> Iterator[Problem]:
    """What is wrong with a setting that only one mode has."""
    if mode != belongs_to and not is_default:
        yield Problem(f"{path}.{key}", f"has no meaning with `mode: {mode}`: remove it, or write `mode: {belongs_to}`")


__all__ = ["PLACEHOLDERS", "Cli"]

_BATCH_SIZE = 100


class Cli(ProviderBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A program that reads requests and prints replies."""

    provider: Literal["cli"] = "cli"
    mode: Literal["single", "batch", "stream"] = "single"
    """`single`: one process for each attempt; `batch`: one for many cases; `stream`: one that stays up."""
    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    """The program and its arguments, a list; `{prompt}` and the like in an argument stand for the request's."""
    env: tuple[str, ...] = ()
    """Names of environment variables that the program may see, beside PATH, HOME, LANG and TMPDIR."""
    max_output_bytes: Annotated[int, Meta(ge=1, le=67_108_864)] = 10_000_000
    """How much of the program's output is kept: half from the beginning, half from the end; or of a reply's line."""
    batch_size: Annotated[int, Meta(ge=1, le=100_000)] = _BATCH_SIZE
    """With `mode: batch`, how many requests one process gets at most."""
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    """With `mode: stream`, how many processes stay up at most."""

    executes: ClassVar[bool] = True
    templates: ClassVar[tuple[str, ...]] = ("command",)

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The variables it passes on."""
        return self.env

    def check(self, path: str) -> list[Problem]:
        """What is wrong with the command, the names and the mode."""
        return [
            *check_command(self.command, self.mode, f"{path}.command"),
            *check_names(self.env, f"{path}.env"),
            *check_mode(self.mode, "batch_size", "batch", path, is_default=self.batch_size == _BATCH_SIZE),
            *check_mode(self.mode, "workers", "stream", path, is_default=self.workers == 1),
        ]

    async def invoke(self, request: Request) -> ProviderResponse:
        """The program's reply."""
        if self.mode == "batch":
            return (await self._batch.invoke([request]))[0]
        if self.mode == "stream":
            return await self._stream.invoke(request)

        return await invoke_single(self._launch, request)

    @property
    def invoke_many(self) -> Callable[[Sequence[Request]], Awaitable[Sequence[ProviderResponse]]]:
        """How to ask many times at once, which only `mode: batch` can: whoever has this attribute is asked so."""
        if self.mode != "batch":
            msg = f"`mode: {self.mode}` is asked one by one"
            raise AttributeError(msg)
        return self._batch.invoke

    async def close(self) -> None:
        """End the processes that stay up; who opens it again begins anew, in another event loop perhaps."""
        self.__dict__.pop("batch", None)
        stream: WorkerPool | None = self.__dict__.pop("stream", None)
        if stream is not None:
            await stream.close()

    @property
    def _launch(self) -> CommandTemplate:
        return CommandTemplate(
            command=self.command,
            env=self.env,
            folder=self.scope.folder or ".",
            max_output_bytes=self.max_output_bytes,
        )

    @property
    def _batch(self) -> Batch:
        if "batch" not in self.__dict__:
            from agentv.providers.cli.batch import Batch  # noqa: PLC0415 - a mode is loaded when it is used

            self.__dict__["batch"] = Batch(self._launch)
        batch: Batch = self.__dict__["batch"]
        return batch

    @property
    def _stream(self) -> WorkerPool:
        if "stream" not in self.__dict__:
            from agentv.providers.cli.stream import WorkerPool  # noqa: PLC0415 - a mode is loaded when it is used

            self.__dict__["stream"] = WorkerPool(self._launch, self.workers)
        stream: WorkerPool = self.__dict__["stream"]
        return stream


async def invoke_single(launch: CommandTemplate, request: Request) -> ProviderResponse:
    """Run the program once; when this is cancelled, the program and all it started are dead before it returns."""
    used = launch.used
    try:
        with workspace() if used & IN_WORKSPACE else nullcontext() as private:
            return await _invoke(launch, request, used, private)
    except FormatError as error:
        return failure("transport", str(error))
    except OSError as error:
        return failure("transport", f"the workspace cannot be used: {error}")


async def _invoke(
    launch: CommandTemplate, request: Request, used: frozenset[str], private: Workspace | None
) -> ProviderResponse:
    values = {"prompt": request.prompt, "case_id": request.id, "attempt": str(request.attempt)}
    values = {name: replace_surrogates(value) for name, value in values.items()}
    if private is not None:
        values |= {name: getattr(private, name) for name in IN_WORKSPACE}
    if private is not None and "input_file" in used:
        private.write_input(request_json(request))
    command = launch.make(values, b"" if used & {"prompt", "input_file"} else request_json(request))
    try:
        done = await run(command)
    except OSError as error:
        return not_started(error, command)
    printed = _printed(done, private if "output_file" in used else None, launch.max_output_bytes)
    response = read_end(done, printed, launch.max_output_bytes, request.input_messages)
    return response if private is None else private.fetch_trace(response)


def _printed(done: ProcessResult, private: Workspace | None, limit: int) -> Printed | FormatError:
    try:
        data, truncated = private.read_output(limit) if private else (b"", False)
    except FormatError as error:
        return error
    if data:
        return Printed(data, truncated, "the file at {output_file}")
    return Printed(done.stdout, done.stdout_truncated)
