"""`agentv eval --watch`: run again what a change concerns."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec.structs import replace

from agentv.cli.exit_codes import INTERRUPTED
from agentv.errors import AgentVError, SpecError
from agentv.reports.terminal import Style, clean, render_problems
from agentv.spec.discovery import PASSED_OVER
from agentv.spec.project import display

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentv.api.execution import Prepared
    from agentv.run.plan import PlannedRun

EVERY_S = 0.3
MAX_FILES = 20_000
"""Of one project; beyond that, looking at all of them would be work in itself."""

Stamp = tuple[int, int]
Snapshot = dict[str, Stamp]


class Changed(NamedTuple):
    """What was found to have changed."""

    files: set[str]

    def concerns(self, planned: PlannedRun) -> bool:
        """Whether a run may end otherwise now, though its case and its target read as before."""
        root = planned.eval.root
        written = set(planned.eval.texts)
        return any(name not in written and Path(name).is_relative_to(root) for name in self.files)


def watch(prepare: Callable[[], Prepared], run: Callable[[Prepared], int]) -> int:
    """Run all, then, whenever a file of the project changes, what that concerns; until Ctrl-C."""
    finished: set[str] = set()
    changed = Changed(set())
    roots: set[str] = {str(Path.cwd())}
    try:
        while True:
            before = _snapshot(roots)
            prepared = _prepared(prepare)
            if prepared is not None:
                roots = {each.root for each in prepared.evals} | {each.folder for each in prepared.evals}
                before = _snapshot(roots)
                if _run(prepared, run, finished, changed) == INTERRUPTED:
                    return INTERRUPTED
            changed = _wait(roots, before)
    except KeyboardInterrupt:
        return INTERRUPTED


def _prepared(prepare: Callable[[], Prepared]) -> Prepared | None:
    try:
        return prepare()
    except SpecError as error:
        click.echo(render_problems(error.problems, Style.of(sys.stderr)), err=True)
    except AgentVError as error:
        click.echo(f"agentv: {error}", err=True)
    return None


def _run(prepared: Prepared, run: Callable[[Prepared], int], finished: set[str], changed: Changed) -> int:
    """Run what is new or concerned, and remember what was done."""
    due = {each.key for each in prepared.runs() if each.key not in finished or changed.concerns(each)}
    if not due:
        click.echo("nothing to run: no case changed", err=True)
        return 0
    some = replace(prepared, keep=lambda each: each.key in due, planned=prepared.planned._replace(runs=len(due)))
    code = run(some)
    finished |= due
    return code


def _wait(roots: set[str], before: Snapshot) -> Changed:
    click.echo("watching; Ctrl-C ends it", err=True)
    while True:
        time.sleep(EVERY_S)
        now = _snapshot(roots)
        if now != before:
            names = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
            shown = sorted(display(Path(name)) for name in names)
            more = f" and {len(shown) - 1} more" if len(shown) > 1 else ""
            click.echo(f"\n{clean(shown[0])}{more} changed", err=True)
            return Changed(names)


def _snapshot(roots: set[str]) -> Snapshot:
    found: Snapshot = {}
    for root in roots:
        for name in _files(root):
            try:
                state = os.stat(name)  # noqa: PTH116 - thousands of these, three times a second
            except OSError:  # gone between the two looks
                continue
            found[name] = (state.st_mtime_ns, state.st_size)
            if len(found) >= MAX_FILES:
                return found
    return found


def _files(root: str) -> Iterator[str]:
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in PASSED_OVER]
        yield from (os.path.join(parent, name) for name in names if not name.startswith("."))  # noqa: PTH118 - as above


def refuse_files(given: dict[str, Any]) -> str | None:
    """Why these options do not go with watching."""
    if given["out"]:
        return "--watch writes no files: its rounds are parts; leave out --out"
    return "--watch runs nothing in a dry run" if given["dry_run"] else None
