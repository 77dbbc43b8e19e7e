"""Where results go beside the terminal: files by their suffix, a folder of traces, and what GitHub shows."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import click

from agentv.cli.exit_codes import fail_usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agentv.api.execution import Prepared
    from agentv.errors import Problem
    from agentv.model.events import Event
    from agentv.protocols import Reporter
    from agentv.redaction import Redactor

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def open_outputs(prepared: Prepared, out: Sequence[str], traces: str | None) -> list[Reporter]:
    """Everything that is written to; nothing is touched unless all of it is right."""
    inputs = sorted({name for each in prepared.evals for name in each.inputs})
    if traces is not None:
        _refuse_inputs_below(inputs, traces)
    reporters = open_files(out, inputs, prepared.redactor)
    if traces is not None:
        from agentv.reports.traces import TraceFolder  # noqa: PLC0415 - only who asks for it needs it

        reporters.append(_opened(traces, lambda path: TraceFolder(path, prepared.redactor)))
    return reporters


def open_files(out: Sequence[str], inputs: Sequence[str], redactor: Redactor) -> list[Reporter]:
    """The files of `--out`, unless one of them is read from or says no format."""
    from agentv.errors import AgentVError  # noqa: PLC0415 - `--help` needs none of it
    from agentv.reports.files import format_of, open_output  # noqa: PLC0415 - as above

    _reject_duplicates(out)
    for name in out:
        _refuse_inputs(inputs, name)
        try:
            format_of(Path(name))
        except AgentVError as error:
            fail_usage(f"--out {error}")
    return [_opened(name, lambda path: open_output(path, redactor)) for name in out]


def for_github(prepared: Prepared, *, as_json: bool) -> list[Reporter]:
    """What a job of GitHub Actions gets without asking: annotations, and a page in its summary."""
    reporters: list[Reporter] = []
    if in_github():
        from agentv.reports.github import Annotations  # noqa: PLC0415 - only there

        warnings = list(dict.fromkeys(warning for each in prepared.evals for warning in each.warnings))
        # The runner reads commands from either stream, and with `--json` one of them is for JSON alone.
        stream = sys.stderr if as_json else sys.stdout
        reporters.append(Annotations(stream, prepared.redactor, warnings))
    if summary := os.environ.get(STEP_SUMMARY):
        reporters.append(StepSummary(Path(summary), prepared.redactor))
    return reporters


class StepSummary:
    """The page for the summary of a job: nobody asked for it by name, so that its absence is no failure."""

    name = STEP_SUMMARY

    def __init__(self, path: Path, redactor: Redactor) -> None:
        from agentv.reports.markdown import MarkdownFile  # noqa: PLC0415 - only there

        self._page: Reporter | None = None
        with self._warned():
            self._page = MarkdownFile(path, redactor, append=True)

    def handle(self, event: Event) -> None:
        """Add to the page, and write it in the end."""
        if self._page is not None:
            with self._warned():
                self._page.handle(event)

    @contextmanager
    def _warned(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._page = None
            click.echo(f"warning: the page for ${STEP_SUMMARY} cannot be written: {error.strerror}", err=True)


def annotate(problems: Iterable[Problem]) -> None:
    """Show on GitHub what is wrong with files, at its line; on standard error, which no program reads."""
    if in_github():
        from agentv.reports.github import of_problems  # noqa: PLC0415 - only there

        for annotation in of_problems(list(problems)):
            click.echo(str(annotation), err=True)


def printer(given: dict[str, Any], redactor: Redactor) -> Reporter:
    """What prints the results, as the options `--json`, `--verbose`, `--quiet` and `--target` ask for."""
    from agentv.reports.console import Console  # noqa: PLC0415 - only a real run needs it
    from agentv.reports.files import JsonStream  # noqa: PLC0415 - as above

    if given["as_json"]:
        return JsonStream(sys.stdout.buffer, redactor)
    verbosity = 1 if given["verbose"] else -1 if given["quiet"] else 0
    return Console(
        escape_workflow_commands(sys.stdout), redactor, verbosity=verbosity, asked_target=bool(given.get("targets"))
    )


def escape_workflow_commands(stream: IO[str]) -> IO[str]:
    """The stream; on GitHub, one through which an agent's words cannot command the runner."""
    if not in_github():
        return stream
    from agentv.reports.github import Guarded  # noqa: PLC0415 - only there

    return cast("IO[str]", Guarded(stream))


def in_github() -> bool:
    """Whether this is a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def _opened(name: str, make: Callable[[Path], Reporter]) -> Reporter:
    try:
        return make(Path(name))
    except OSError as error:
        fail_usage(f"{name} cannot be written: {error.strerror}")


def _reject_duplicates(out: Sequence[str]) -> None:
    """One file cannot hold two formats, nor one format twice."""
    for at, name in enumerate(out):
        for other in out[:at]:
            # Where `A` and `a` are one file, two writers would spoil each other's lines.
            same = str(Path(name).resolve()).casefold() == str(Path(other).resolve()).casefold()
            with suppress(OSError):
                same = same or Path(name).samefile(other)
            if same:
                fail_usage(f"--out {name} is the same file as --out {other}")


def _refuse_inputs(inputs: Iterable[str], out: str) -> None:
    """An eval must not be overwritten by its own results."""
    for name in inputs:
        with suppress(OSError):  # one that is not there cannot be overwritten
            if Path(out).samefile(name):
                fail_usage(f"--out {out} would overwrite a file that the eval is read from; choose another name")


def _refuse_inputs_below(inputs: Iterable[str], folder: str) -> None:
    """Nor must recorded replies, by the traces of their replay."""
    for name in inputs:
        if Path(name).resolve().is_relative_to(Path(folder).resolve()):
            fail_usage(f"--dump-traces {folder} holds files that the eval is read from; choose a folder of its own")
