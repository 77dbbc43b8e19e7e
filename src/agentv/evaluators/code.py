"""`code`: evaluators written as programs."""

from __future__ import annotations

import asyncio
import math
import os
import re
import signal
import sys
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from agentv.errors import EvaluationError, FormatError, Problem
from agentv.evaluators.base import EvaluatorBase, Example
from agentv.evaluators.python import find_file, result_of
from agentv.jsonio import dump_json, find_duplicate_keys, parse_json, scrub_text
from agentv.process import Command, InteractivePipe, run
from agentv.process.command import ResourceLimits, with_limits
from agentv.process.pipes import BoundedOutput
from agentv.redaction import Redactor, shorten
from agentv.redaction.known_secrets import is_secret_variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.model.results import EvaluatorResult
    from agentv.process import ProcessResult
    from agentv.protocols import Context


SCHEMA = "agentv.context/1"
_MAX_LINE = 300
_MAX_KEYS = 5
_LEFT_OUT = frozenset((
    *("success", "text", "output_messages", "trace", "trace_ref", "trace_summary", "error", "warnings"),
    *("unread", "incomplete", "echo_end"),
))  # fmt: skip
"""Fields of the reply that are passed separately, or are meaningless for a successful reply."""


def context_json(ctx: Context, config: dict[str, Any]) -> bytes:
    """Return the JSON that the program reads."""
    response = ctx.response
    return dump_json(
        {
            "schema": SCHEMA,
            "case": ctx.case,
            "candidate": ctx.candidate,
            "output_messages": ctx.output_messages,
            "trace": ctx.trace,
            "trace_summary": ctx.trace_summary,
            "calls": ctx.calls,
            "calls_source": ctx.calls_source,
            "calls_complete": ctx.calls_complete,
            "unread": ctx.unread,
            "incomplete": ctx.incomplete,
            "response": {name: getattr(response, name) for name in response.__struct_fields__ if name not in _LEFT_OUT},
            "expected_messages": ctx.expected_messages,
            "config": config,
        }
    )


async def run_program(code: Code, command: tuple[str, ...], folder: str, ctx: Context) -> Any:
    """Run the program and return its output as data; raise `EvaluationError` if that is no verdict."""
    stdout = _LimitedOutput(code.limits.output_bytes)
    pipe = InteractivePipe(stdout.feed)
    pipe.stderr = stderr = _LimitedOutput(code.limits.output_bytes)
    pipe.write(context_json(ctx, code.config))
    pipe.close_stdin()
    spec = Command(
        arguments=with_limits(command, _limits(code)), folder=folder, env=code.variables(folder), grace_s=0.5
    )
    work = asyncio.create_task(run(spec, pipe))
    stdout.on_full = stderr.on_full = work.cancel
    deadline = asyncio.timeout(code.timeout_s)
    try:
        async with deadline:
            done = await work
    except TimeoutError:
        _fail(f"the program did not end within {code.timeout_s:g} s", stderr)
    except asyncio.CancelledError:
        if not (stdout.is_full or stderr.is_full):
            raise
        stream = "stdout" if stdout.is_full else "stderr"
        _fail(f"the program printed more than {code.limits.output_bytes:,} bytes on {stream}")
    except OSError as error:
        _fail(f"{command[0]!r} cannot be started: {error.strerror or error}")
    return _verdict(done, stdout, stderr)


class _LimitedOutput(BoundedOutput):
    """BoundedOutput stream that calls `on_full` when its limit is exceeded."""

    __slots__ = ("_left", "on_full")

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._left = limit
        self.on_full: Callable[[], object] = lambda: None

    def feed(self, data: bytes) -> None:
        """Add the next chunk."""
        super().feed(data)
        was_full = self.is_full
        self._left -= len(data)
        if self.is_full and not was_full:
            self.on_full()

    @property
    def is_full(self) -> bool:
        """True if there was more output than the limit."""
        return self._left < 0


def _limits(code: Code) -> ResourceLimits:
    limits = code.limits
    return ResourceLimits(
        cpu_s=limits.cpu_s or math.ceil(code.timeout_s) + 1,
        memory_mb=limits.memory_mb,
        file_mb=limits.file_mb,
        open_files=limits.open_files,
        processes=limits.processes,
    )


def _verdict(done: ProcessResult, stdout: BoundedOutput, stderr: BoundedOutput) -> Any:
    if done.signal is not None:
        _fail(f"the program was ended by {_signal_name(done.signal)}", stderr)
    if done.exit_code:
        _fail(f"the program ended with exit code {done.exit_code}", stderr)
    printed = stdout.value().strip()
    if not printed:
        _fail("the program printed nothing on stdout; expected a JSON object with a `score`", stderr)
    try:
        value = parse_json(printed)
        duplicates = find_duplicate_keys(printed)
    except FormatError as error:
        return _fail(f"what the program printed on stdout is {error}", stderr)
    if duplicates:
        keys = ", ".join(map(repr, duplicates[:_MAX_KEYS]))
        _fail(f"what the program printed on stdout has a key twice in one object ({keys})", stderr)
    return value


def _fail(message: str, stderr: BoundedOutput | None = None) -> Any:
    """Raise `EvaluationError` with this message and the last line of stderr, which says most."""
    lines = stderr.tail().splitlines() if stderr else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    raise EvaluationError(f"{message}: {shorten(scrub_text(last), _MAX_LINE)}" if last else message)


def _signal_name(number: int) -> str:
    names = {"SIGXCPU": "SIGXCPU (its processor time was over)", "SIGXFSZ": "SIGXFSZ (a file became too large)"}
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return names.get(name, name)


_VARIABLE = re.compile(r"[^\s=$%{}\0]+")
_PASSED_VARIABLES = ("PATH", "LANG", "SYSTEMROOT", "PATHEXT")
_COUNTS_WORDS = (
    "import json, sys; words = len(json.load(sys.stdin)['candidate'].split()); "
    "print(json.dumps({'score': words <= 8, 'hits' if words <= 8 else 'misses': [f'the answer has {words} words']}))"
)


class CodeLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Resource limits of the program; on Windows only its time and its output are limited."""

    cpu_s: Annotated[int, Meta(ge=1, le=86_400)] | None = None
    """Processor time of each process, in seconds; by default a little more than `timeout_s`."""
    memory_mb: Annotated[int, Meta(ge=16, le=1_000_000)] = 1_024
    """Memory of each process."""
    file_mb: Annotated[int, Meta(ge=1, le=1_000_000)] = 64
    """The largest file that it may write."""
    open_files: Annotated[int, Meta(ge=16, le=1_000_000)] = 256
    """The number of files that each process may have open."""
    processes: Annotated[int, Meta(ge=1, le=10_000)] = 64
    """The number of processes at once; counted on Linux, where more than these end the check."""
    output_bytes: Annotated[int, Meta(ge=1_000, le=67_108_864)] = 1_000_000
    """The size of its output on stdout, and as much on stderr."""


class Code(EvaluatorBase, kw_only=True):
    """Your own program decides: it reads the run as JSON and prints its verdict."""

    type: Literal["code"] = "code"
    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    """The program and its arguments, a list; one that begins with `./` is a file in the eval's folder or project's."""
    config: dict[str, Any] = {}
    """Passed on in the JSON that the program reads."""
    env: tuple[str, ...] = ()
    """Names of environment variables that it may see, beside PATH and LANG."""
    timeout_s: Annotated[float, Meta(gt=0, le=86_400)] = 30.0
    """The time limit; then it is ended with everything that it started."""
    limits: CodeLimits = CodeLimits()
    """Resource limits of the program."""
    accepts_incomplete: bool = False
    """States that it looks at `incomplete` itself; otherwise replies that were redacted or cut are undecided."""

    executes: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            {"type": "code", "command": ["python3", "-c", _COUNTS_WORDS]},
            [{"role": "assistant", "content": answer}],
            passes=passes,
        )
        for answer, passes in (
            ("It is sunny in Paris.", True),
            ("It is sunny in Paris, and since you ask, it was sunny yesterday too.", False),
        )
    )

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the command and the names; nothing is started."""
        problems: list[Problem] = []
        program = self.command[0]
        if not program.strip():
            problems.append(Problem(f"{path}.command[0]", "expected a program as the first item of the list"))
        elif len(self.command) == 1 and " " in program.strip() and not _is_file(program):
            split = f"expected a list with one item for each argument: write {program.split()!r}"
            problems.append(Problem(f"{path}.command[0]", split))
        nuls = [at for at, argument in enumerate(self.command) if "\0" in argument]
        problems += [Problem(f"{path}.command[{at}]", "holds a NUL, which no argument can") for at in nuls]
        expected = "expected the name of an environment variable alone: its value comes from the environment"
        wrong = [(at, name) for at, name in enumerate(self.env) if not _VARIABLE.fullmatch(name)]
        problems += [Problem(f"{path}.env[{at}]", f"{expected}; got {name!r}") for at, name in wrong]
        return problems

    @property
    def handles_incomplete(self) -> bool:  # type: ignore[override]  # a setting here
        """True if its author says so."""
        return self.accepts_incomplete

    async def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Return the verdict that the program prints, without the values of its environment variables."""
        given = {name: os.environ[name] for name in self.env if name in os.environ}
        redactor = Redactor({name: value for name, value in given.items() if is_secret_variable(name, value)})
        command = tuple(str(find_file(word, ctx.scope)) if _is_file(word) else word for word in self.command)
        try:
            with TemporaryDirectory(prefix="agentv-check-", ignore_cleanup_errors=True) as folder:
                return result_of(redact(await run_program(self, command, folder, ctx), redactor), self)
        except EvaluationError as error:
            raise EvaluationError(redactor.text(str(error))) from None

    def variables(self, folder: str) -> dict[str, str]:
        """Return its environment; home and folder for temporary files are removed with it, unless others are given."""
        names = [name for name in (*_PASSED_VARIABLES, *self.env) if name in os.environ]
        homes = {"HOME": folder, "TMPDIR": folder}
        if sys.platform == "win32":
            homes |= {"USERPROFILE": folder, "TEMP": folder, "TMP": folder}
        return {**homes, **{name: os.environ[name] for name in names}}


def _is_file(argument: str) -> bool:
    return argument.startswith(("./", "../", ".\\", "..\\"))


def redact(value: Any, redactor: Any) -> Any:
    """Return the program's output without secret values."""
    return parse_json(redactor.line(dump_json(value)))
