"""`agentv eval --watch`: run affected cases again when files change."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from agentv.errors import AgentVError, SpecError
from agentv.exit_codes import ExitCode
from agentv.reports.terminal import Style, clean, render_problems
from agentv.spec.discovery import IGNORED_FOLDERS
from agentv.spec.project import display_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentv.api.execution import PreparedExecution
    from agentv.cli.options import EvalArgs
    from agentv.run.plan import PlannedRun

POLL_INTERVAL_S = 0.3
MAX_FILES = 20_000
"""Files of one project that are polled; more would take too long three times a second."""

Stamp = tuple[int, int]
Snapshot = dict[str, Stamp]


class ChangedFiles(Struct, frozen=True):
    """The files that changed since the last round."""

    files: set[str]

    def affects(self, run: PlannedRun) -> bool:
        """Return whether a file changed that a run may depend on beside its eval, such as the agent's code.

        A change of the eval itself gives the run another key.
        """
        texts = set(run.eval.texts)
        return any(name not in texts and Path(name).is_relative_to(run.eval.root) for name in self.files)


def watch(prepare: Callable[[], PreparedExecution], run: Callable[[PreparedExecution], int]) -> int:
    """Run everything, then the affected runs whenever a file of the project changes, until Ctrl-C."""
    finished: set[str] = set()
    changed = ChangedFiles(set())
    roots: set[str] = {str(Path.cwd())}
    try:
        while True:
            before = _snapshot(roots)
            prepared = _try_prepare(prepare)
            if prepared is not None:
                roots = {folder for eval_ in prepared.evals for folder in (eval_.root, eval_.folder)}
                before = _snapshot(roots)
                if _run(prepared, run, finished, changed) == ExitCode.INTERRUPTED:
                    return ExitCode.INTERRUPTED
            changed = _wait_for_change(roots, before)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _try_prepare(prepare: Callable[[], PreparedExecution]) -> PreparedExecution | None:
    try:
        return prepare()
    except SpecError as error:
        click.echo(render_problems(error.problems, Style.of(sys.stderr)), err=True)
    except AgentVError as error:
        click.echo(f"agentv: {error}", err=True)
    return None


def _run(
    prepared: PreparedExecution, run: Callable[[PreparedExecution], int], finished: set[str], changed: ChangedFiles
) -> int:
    """Run what is new or affected, and add it to `finished`."""
    due = {run.key for run in prepared.runs() if run.key not in finished or changed.affects(run)}
    if not due:
        click.echo("nothing to run: no case changed", err=True)
        return ExitCode.OK
    part = prepared.select(lambda run: run.key in due, len(due))
    code = run(part)
    finished |= due
    return code


def _wait_for_change(roots: set[str], before: Snapshot) -> ChangedFiles:
    click.echo("watching; Ctrl-C ends it", err=True)
    while True:
        time.sleep(POLL_INTERVAL_S)
        now = _snapshot(roots)
        if now != before:
            names = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
            shown = sorted(display_path(Path(name)) for name in names)
            more = f" and {len(shown) - 1} more" if len(shown) > 1 else ""
            click.echo(f"\n{clean(shown[0])}{more} changed", err=True)
            return ChangedFiles(names)


def _snapshot(roots: set[str]) -> Snapshot:
    snapshot: Snapshot = {}
    for root in roots:
        for name in _files(root):
            try:
                state = os.stat(name)  # noqa: PTH116 - thousands of these, three times a second
            except OSError:  # deleted meanwhile
                continue
            snapshot[name] = (state.st_mtime_ns, state.st_size)
            if len(snapshot) >= MAX_FILES:
                return snapshot
    return snapshot


def _files(root: str) -> Iterator[str]:
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in IGNORED_FOLDERS]
        yield from (os.path.join(parent, name) for name in names if not name.startswith("."))  # noqa: PTH118 - as above


def watch_conflict(args: EvalArgs) -> str | None:
    """Return why these options cannot be used with `--watch`; `None` if they can."""
    if args.out:
        return "--watch writes no files: its rounds are parts; leave out --out"
    return "--watch runs nothing in a dry run" if args.dry_run else None
