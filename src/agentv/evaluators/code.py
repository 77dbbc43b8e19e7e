"""`code`: a check of the user's own in any language, in a process of its own."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from agentv.errors import EvaluationError, Problem
from agentv.evaluators.base import EvaluatorBase, Example
from agentv.evaluators.located import find_file
from agentv.evaluators.returned import result_of

if TYPE_CHECKING:
    from agentv.model.result import EvaluatorResult
    from agentv.protocols import Context

_VARIABLE = re.compile(r"[^\s=$%{}\0]+")
_PASSED = ("PATH", "LANG", "SYSTEMROOT", "PATHEXT")
_COUNTS_WORDS = (
    "import json, sys; words = len(json.load(sys.stdin)['candidate'].split()); "
    "print(json.dumps({'score': words <= 8, 'hits' if words <= 8 else 'misses': [f'the answer has {words} words']}))"
)


class CodeLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much the program may use; on Windows only its time and its output are limited."""

    cpu_s: Annotated[int, Meta(ge=1, le=86_400)] | None = None
    """Processor time of each process, in seconds; by default a little more than `timeout_s`."""
    memory_mb: Annotated[int, Meta(ge=16, le=1_000_000)] = 1_024
    """Memory of each process."""
    file_mb: Annotated[int, Meta(ge=1, le=1_000_000)] = 64
    """The largest file that it may write."""
    open_files: Annotated[int, Meta(ge=16, le=1_000_000)] = 256
    """How many files each process may have open."""
    processes: Annotated[int, Meta(ge=1, le=10_000)] = 64
    """How many processes there may be at once; counted on Linux, where more than these end the check."""
    output_bytes: Annotated[int, Meta(ge=1_000, le=67_108_864)] = 1_000_000
    """How much it may print on stdout, and as much on stderr."""


class Code(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A program of yours decides: it reads the run as JSON and prints its verdict."""

    type: Literal["code"] = "code"
    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    """The program and its arguments, a list; one that begins with `./` is a file in the eval's folder or project's."""
    config: dict[str, Any] = {}
    """Passed on in the JSON that the program reads."""
    env: tuple[str, ...] = ()
    """Names of environment variables that it may see, beside PATH and LANG."""
    timeout_s: Annotated[float, Meta(gt=0, le=86_400)] = 30.0
    """How long it may take; then it is ended with everything that it started."""
    limits: CodeLimits = CodeLimits()

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
        """What is wrong with the command and the names; nothing is started before it runs."""
        found: list[Problem] = []
        program = self.command[0]
        if not program.strip():
            found.append(Problem(f"{path}.command[0]", "expected a program as the first item of the list"))
        elif len(self.command) == 1 and " " in program.strip() and not _is_file(program):
            split = f"expected a list with one item for each argument: write {program.split()!r}"
            found.append(Problem(f"{path}.command[0]", split))
        nuls = [at for at, argument in enumerate(self.command) if "\0" in argument]
        found += [Problem(f"{path}.command[{at}]", "holds a NUL, which no argument can") for at in nuls]
        expected = "expected the name of an environment variable alone: its value comes from the environment"
        wrong = [(at, name) for at, name in enumerate(self.env) if not _VARIABLE.fullmatch(name)]
        found += [Problem(f"{path}.env[{at}]", f"{expected}; got {name!r}") for at, name in wrong]
        return found

    async def evaluate(self, ctx: Context) -> EvaluatorResult:
        """What the program prints, without the values of the variables that it was given."""
        from tempfile import TemporaryDirectory  # noqa: PLC0415 - a configuration is checked without it

        from agentv.evaluators.code_run import ask  # noqa: PLC0415 - as above
        from agentv.redaction import Redactor  # noqa: PLC0415 - as above

        redactor = Redactor({name: os.environ[name] for name in self.env if name in os.environ})
        command = tuple(str(find_file(word, ctx.scope)) if _is_file(word) else word for word in self.command)
        try:
            with TemporaryDirectory(prefix="agentv-check-", ignore_cleanup_errors=True) as folder:
                return result_of(redacted(await ask(self, command, folder, ctx), redactor), self)
        except EvaluationError as error:
            raise EvaluationError(redactor.text(str(error))) from None

    def variables(self, folder: str) -> dict[str, str]:
        """Its environment: a home and a place for temporary files that go away with it, unless it is given others."""
        names = [name for name in (*_PASSED, *self.env) if name in os.environ]
        homes = {"HOME": folder, "TMPDIR": folder}
        if sys.platform == "win32":
            homes |= {"USERPROFILE": folder, "TEMP": folder, "TMP": folder}
        return {**homes, **{name: os.environ[name] for name in names}}


def _is_file(argument: str) -> bool:
    return argument.startswith(("./", "../", ".\\", "..\\"))


def redacted(value: Any, redactor: Any) -> Any:
    """What the program printed, as it may be kept."""
    from agentv.jsonio import dump_json, parse_json  # noqa: PLC0415 - a configuration is checked without it

    return parse_json(redactor.line(dump_json(value)))
