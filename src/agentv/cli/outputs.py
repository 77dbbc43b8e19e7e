"""Outputs of results: the terminal, files by suffix, a folder of traces, and GitHub Actions."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import click

from agentv.cli.problems import fail_usage
from agentv.errors import AgentVError
from agentv.jsonio import dump_json
from agentv.reports.console import Console
from agentv.reports.files import JsonStream, find_format, open_output
from agentv.reports.github import Annotations, CommandEscapingStream, annotate_problems
from agentv.reports.markdown import MarkdownFile
from agentv.reports.traces import TraceFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agentv.api.execution import PreparedExecution
    from agentv.cli.options import OutputArgs
    from agentv.errors import Problem
    from agentv.evals import Eval
    from agentv.model.events import Event
    from agentv.protocols import Reporter
    from agentv.redaction import Redactor

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def print_json(value: Any) -> None:
    """Print one JSON value on a line."""
    click.echo(dump_json(value))


def make_printer(args: OutputArgs, redactor: Redactor, *, has_target: bool = False) -> Reporter:
    """Return the reporter that prints results on standard output, as text or JSON."""
    if args.as_json:
        return JsonStream(sys.stdout.buffer, redactor)
    stream = escape_workflow_commands(sys.stdout)
    return Console(stream, redactor, verbosity=args.verbosity, has_target_option=has_target)


def open_outputs(prepared: PreparedExecution, out: Sequence[str], traces: str | None) -> list[Reporter]:
    """Open the files of `--out` and the folder of `--dump-traces`; open none of them if one is refused."""
    inputs = input_files(prepared.evals)
    if traces is not None:
        _refuse_inputs_below(inputs, traces)
    reporters = open_files(out, inputs, prepared.redactor)
    if traces is not None:
        reporters.append(_open(traces, lambda path: TraceFolder(path, prepared.redactor)))
    return reporters


def input_files(evals: Iterable[Eval]) -> list[str]:
    """Return the files that the evals are read from."""
    return sorted({name for eval_ in evals for name in eval_.inputs})


def open_files(out: Sequence[str], inputs: Sequence[str], redactor: Redactor) -> list[Reporter]:
    """Open the files of `--out`; fail if one of them is an input or its suffix names no format."""
    _reject_duplicates(out)
    for name in out:
        _refuse_inputs(inputs, name)
        try:
            find_format(Path(name))
        except AgentVError as error:
            fail_usage(f"--out {error}")
    return [_open(name, lambda path: open_output(path, redactor)) for name in out]


def open_github_reporters(evals: Iterable[Eval], redactor: Redactor, *, as_json: bool) -> list[Reporter]:
    """Return the reporters of a GitHub Actions job: annotations, and a page in the job summary."""
    reporters: list[Reporter] = []
    if in_github():
        warnings = list(dict.fromkeys(warning for eval_ in evals for warning in eval_.warnings))
        # The runner reads commands from both streams; with `--json`, stdout is for JSON only.
        stream = sys.stderr if as_json else sys.stdout
        reporters.append(Annotations(stream, redactor, warnings))
    if summary := os.environ.get(STEP_SUMMARY):
        reporters.append(StepSummary(Path(summary), redactor))
    return reporters


class StepSummary:
    """The page in the summary of a GitHub job; it was not asked for, so a failure to write it is only a warning."""

    name = STEP_SUMMARY

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._page: Reporter | None = None
        with self._errors_as_warnings():
            self._page = MarkdownFile(path, redactor, append=True)

    def handle(self, event: Event) -> None:
        """Add the event to the page, which is written at the end."""
        if self._page is not None:
            with self._errors_as_warnings():
                self._page.handle(event)

    @contextmanager
    def _errors_as_warnings(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._page = None
            click.echo(f"warning: the page for ${STEP_SUMMARY} cannot be written: {error.strerror}", err=True)


def annotate(problems: Iterable[Problem]) -> None:
    """Annotate problems of files on GitHub, at their lines; on standard error, which no program reads."""
    if in_github():
        for annotation in annotate_problems(list(problems)):
            click.echo(str(annotation), err=True)


def escape_workflow_commands(stream: IO[str]) -> IO[str]:
    """Return the stream; on GitHub, one that escapes workflow commands in an agent's words."""
    return cast("IO[str]", CommandEscapingStream(stream)) if in_github() else stream


def in_github() -> bool:
    """Return whether this is a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def _open(name: str, make: Callable[[Path], Reporter]) -> Reporter:
    try:
        return make(Path(name))
    except OSError as error:
        fail_usage(f"{name} cannot be written: {error.strerror}")


def _reject_duplicates(out: Sequence[str]) -> None:
    """Fail if two `--out` options name the same file."""
    for index, name in enumerate(out):
        for other in out[:index]:
            # On a case-insensitive file system `A` and `a` are one file, and two writers would corrupt it.
            same = str(Path(name).resolve()).casefold() == str(Path(other).resolve()).casefold()
            with suppress(OSError):
                same = same or Path(name).samefile(other)
            if same:
                fail_usage(f"--out {name} is the same file as --out {other}")


def _refuse_inputs(inputs: Iterable[str], out: str) -> None:
    """Fail if an output file is one that the eval is read from."""
    for name in inputs:
        with suppress(OSError):  # a file that does not exist cannot be overwritten
            if Path(out).samefile(name):
                fail_usage(f"--out {out} would overwrite a file that the eval is read from; choose another name")


def _refuse_inputs_below(inputs: Iterable[str], folder: str) -> None:
    """Fail if the folder of traces contains input files, such as recorded replies."""
    for name in inputs:
        if Path(name).resolve().is_relative_to(Path(folder).resolve()):
            fail_usage(f"--dump-traces {folder} holds files that the eval is read from; choose a folder of its own")
