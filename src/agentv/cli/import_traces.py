"""`agentv import`: store sessions of traces as runs."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.api.export import import_runs
from agentv.api.sessions.runs import DEFAULT_TARGET, ImportedSessions, import_sessions
from agentv.api.store_files import locate_store, open_location, parse_location
from agentv.cli.options import JSON, QUIET, STORE, TRUST_PROJECT
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_error, fail_usage
from agentv.cli.trace_options import (
    Progress,
    fail_without_sessions,
    print_coverage,
    print_skipped,
    read_sessions,
    take_trace_options,
    trace_options,
)
from agentv.errors import AgentVError, FormatError, StoreConnectionError
from agentv.exit_codes import ExitCode
from agentv.formats.run_export import EXECUTION_SCHEMAS, RUN_SCHEMAS, schema_of
from agentv.model.stored import DEFAULT_PERSIST, StoredCommand
from agentv.reports.coverage import coverage_data
from agentv.reports.terminal import clean, pluralize
from agentv.spec.project import find_project, load_project

if TYPE_CHECKING:
    from agentv.model.session import TraceCoverage
    from agentv.model.stored import Persist
    from agentv.protocols import Store

SCHEMA = "agentv.imported/1"
_MAX_FIRST_LINE = 64 * 1024 * 1024


@click.command("import")
@trace_options
@click.option("--target", default=DEFAULT_TARGET, show_default=True, metavar="NAME", help="Name for the runs.")
@STORE
@TRUST_PROJECT
@QUIET
@JSON
def command(target: str, store: str | None, *, quiet: bool, as_json: bool, **params: Any) -> None:
    """Store sessions that already happened as runs, so that they can be listed, viewed, scored and compared.

    PATH is a file, a folder, a glob, or - for standard input, as with `agentv score`; a file that `agentv executions
    export` wrote is imported as it was. A session that the store has already is not added again. Exit code 3 says that
    records were skipped.
    """
    traces = take_trace_options(params)
    persist = _persist(store)
    exports = [path for path in traces.paths if _is_export(path)]
    traces = traces._replace(paths=tuple([path for path in traces.paths if path not in exports]))
    coverage: TraceCoverage | None = None
    imported: ImportedSessions | None = None
    try:
        with closing(open_location(parse_location(store) if store else locate_store())) as opened:
            restored = [added for path in exports for added in _import_export(opened, path)]
            if traces.paths:
                spool, coverage = read_sessions(traces, quiet=quiet)
                with closing(spool):
                    if not len(spool):
                        fail_without_sessions(coverage, "no sessions to import")
                    progress = Progress("imported", is_shown=not quiet)
                    stored = StoredCommand(folder=str(Path.cwd()), traces=traces.paths)
                    imported = import_sessions(
                        opened, spool, stored, target=target, persist=persist, on_progress=progress.show
                    )
                    progress.end()
    except StoreConnectionError as error:
        fail_error(str(error))
    except AgentVError as error:
        fail_usage(str(error))
    if as_json:
        print_json(_data(restored, imported, coverage))
    else:
        _print(restored, imported, coverage)
    sys.exit(print_skipped(coverage, ExitCode.OK) if coverage else ExitCode.OK)


def _persist(store: str | None) -> Persist:
    """Return the extent to which the project stores replies; fail if it stores none."""
    project = None if store else find_project(Path.cwd())
    persist = load_project(project).persist if project else None
    if persist == "summary":
        fail_usage(f"{project} says `persist: summary`, so that sessions cannot be stored: name a file with --store")
    return persist or DEFAULT_PERSIST


def _is_export(path: str) -> bool:
    """Return whether a path is a file of exported runs, by the schema of its first line."""
    try:
        with Path(path).open("rb") as stream:
            return schema_of(stream.readline(_MAX_FIRST_LINE)) in (*EXECUTION_SCHEMAS, *RUN_SCHEMAS)
    except (OSError, FormatError):
        return False


def _import_export(store: Store, path: str) -> list[dict[str, Any]]:
    """Import exported runs; an execution that is there already is left alone."""
    try:
        with Path(path).open("rb") as stream:
            found = import_runs(store, stream, skip_known=True)
    except FormatError as error:
        fail_usage(f"{path}, {error}")
    return [{"id": row.id, "runs": runs} for row, runs in found]


def _data(
    restored: list[dict[str, Any]], imported: ImportedSessions | None, coverage: TraceCoverage | None
) -> dict[str, Any]:
    executions = list(restored)
    data: dict[str, Any] = {"schema": SCHEMA, "executions": executions}
    if imported is not None:
        if imported.execution is not None:
            executions.append({"id": imported.execution.id, "runs": imported.added})
        data["sessions"] = {"added": imported.added, "kept": imported.kept, "changed": imported.changed}
    if coverage is not None:
        data["coverage"] = coverage_data(coverage)
    return data


def _print(restored: list[dict[str, Any]], imported: ImportedSessions | None, coverage: TraceCoverage | None) -> None:
    for each in restored:
        what = f"imported {clean(each['id'])}: {pluralize(each['runs'], 'run')}"
        click.echo(what if each["runs"] else f"already there {clean(each['id'])}")
    if coverage is not None:
        print_coverage(coverage, as_json=False)
    if imported is None:
        return
    if imported.kept:
        click.echo(f"already there: {pluralize(imported.kept, 'session')}")
    if imported.changed:
        click.echo(f"changed since an earlier import, and added again: {pluralize(imported.changed, 'session')}")
    if imported.execution is not None:
        name = clean(imported.execution.id)
        click.echo(f"imported {pluralize(imported.added, 'session')} as {name}")
        click.echo(f"\nnext: agentv rescore {name} --eval FILE, or agentv runs list --execution {name}")
