"""Options that continue an earlier execution: `--resume`, `--retry-errors`, `--rerun-failed`."""

from __future__ import annotations

import os
import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentv.api.execution import Prepared
    from agentv.api.resume import StoreSession
    from agentv.model.stored import ActiveWorker, ExecutionRow
    from agentv.protocols import Store
    from agentv.run.options import RunOptions


UNFINISHED = ("running", "interrupted")


class ResumePlan(NamedTuple):
    """An earlier execution, and what to run so that it comes to its end."""

    store: Store
    execution: ExecutionRow
    paths: tuple[str, ...]
    targets: tuple[str, ...]
    options: RunOptions
    again: frozenset[str]
    is_same: bool
    """Whether nothing else was asked for than the first time."""
    is_complete: bool = False
    """Whether all of it is there, and nothing that it was made of has changed."""


def find_resumable(paths: tuple[str, ...], given: dict[str, Any], options: RunOptions) -> ResumePlan:
    """The execution that `--resume` names, found in the store of the paths or of this folder."""
    again = {"error"} if given["retry_errors"] else set()
    again |= {"fail"} if given["rerun_failed"] else set()
    name = given["resume"]
    if name and Path(name).exists():  # `--resume evals/`: a path after an option that may stand alone
        name, paths = "", (name, *paths)
    from agentv.api.resume import (  # noqa: PLC0415 - as above
        SELECTION,
        existing_store,
        find_begun,
        is_unchanged,
        paths_of,
        with_earlier,
    )

    store = existing_store(paths)
    execution = find_begun(store, name or "")
    earlier = execution.command
    chosen = with_earlier(options, earlier)
    usual = paths_of(earlier, store)
    same_paths = not paths or [Path(path).resolve() for path in paths] == [Path(path).resolve() for path in usual]
    same_options = all(
        getattr(chosen, name) == getattr(with_earlier(type(options)(), earlier), name) for name in SELECTION
    )
    is_same = same_paths and given["targets"] in ((), earlier.targets) and same_options
    return ResumePlan(
        store=store,
        execution=execution,
        paths=paths or usual,
        targets=given["targets"] or earlier.targets,
        options=chosen,
        again=frozenset(again),
        is_same=is_same,
        is_complete=is_same and not again and not _asks_more(given) and is_unchanged(execution, usual),
    )


def _asks_more(given: dict[str, Any]) -> bool:
    """Whether the results are wanted with something that only their cases and replies can tell."""
    from agentv.cli.outputs import STEP_SUMMARY, in_github  # noqa: PLC0415 - only a resume needs it

    wanted = given["include_messages"] or given["dump_traces"]
    return bool(wanted) or in_github() or STEP_SUMMARY in os.environ


def print_complete(recalled: ResumePlan, given: dict[str, Any]) -> int:
    """Report an execution that is complete: nothing of it has changed, and nothing is run."""
    from agentv.api.reporting import replay_execution  # noqa: PLC0415 - only a resume needs it
    from agentv.cli.exit_codes import report_abort  # noqa: PLC0415 - as above
    from agentv.cli.outputs import open_files, printer  # noqa: PLC0415 - as above
    from agentv.errors import AgentVError  # noqa: PLC0415 - as above
    from agentv.redaction import Redactor  # noqa: PLC0415 - as above

    redactor = Redactor({})  # what the store holds was redacted when it was written
    inputs = recalled.execution.inputs.split("\n")[1:]
    reporters = [*open_files(given["out"], inputs, redactor), printer(given, redactor)]
    if not given["quiet"]:
        click.echo(f"{recalled.execution.id} is complete, and no file has changed: nothing is run", err=True)
    try:
        summary = replay_execution(recalled.store, recalled.execution, reporters, recalled.options, given["out"])
    except AgentVError as error:
        return report_abort(error)
    finally:
        recalled.store.close()
    return summary.exit_code


@contextmanager
def kept(
    prepared: Prepared, paths: Sequence[str], given: dict[str, Any], recalled: ResumePlan | None
) -> Iterator[StoreSession | None]:
    """The store of an execution that is about to run; `None` when nothing is to be kept."""
    from agentv.api import resume as api  # noqa: PLC0415 - `--help` needs none of it
    from agentv.api import resume as resuming  # noqa: PLC0415 - as above

    if recalled is not None:
        execution = resuming.again(recalled.execution, prepared, is_whole=recalled.is_same)
        keeping = resuming.resume_execution(recalled.store, execution, recalled.again, is_whole=recalled.is_same)
        keeping = replace(keeping, persist=given["persist"] or keeping.persist)
        if not given["quiet"]:
            same = recalled.is_same and execution.inputs == recalled.execution.inputs
            _say_resumed(keeping, prepared, is_unchanged=same)
    else:
        path = None if given["no_store"] or not paths else api.store_path(prepared.evals)
        if path is None:
            yield None
            return
        store = api.open_store(path)
        if not given["quiet"]:
            _mention_unfinished(store)
        command = resuming.command_of(paths, given["targets"], prepared.options, store=path)
        keeping = api.begin(store, api.new_execution(prepared, command, given["persist"]))
    try:
        yield replace(keeping, wait=_say_waiting())
    finally:
        keeping.store.close()


@contextmanager
def judge_cache(prepared: Prepared, given: dict[str, Any], path: Path | None = None) -> Iterator[Prepared]:
    """The same, with what judges said before, where anybody judges: in this store, or in that of the project."""
    if not prepared.judges or given.get("no_store"):
        yield prepared
        return
    from agentv.api.judges import open_memory  # noqa: PLC0415 - only who has a judge needs it
    from agentv.api.resume import store_path  # noqa: PLC0415 - as above

    memory = open_memory(path or store_path(prepared.evals), lambda words: click.echo(words, err=True))
    try:
        yield prepared if memory is None else replace(prepared, memory=memory)
    finally:
        if memory is not None:
            memory.close()


def resume_command(keeping: StoreSession, out: tuple[str, ...]) -> str:
    """What to type to go on with an execution, and have all of it in the files that hold a part of it now."""
    from agentv.api.resume import paths_of  # noqa: PLC0415 - `--help` needs none of it

    paths = paths_of(keeping.execution.command, keeping.store)
    files = [part for name in out for part in ("--out", name)]
    return shlex.join(["agentv", "eval", *paths, "--resume", keeping.execution.id, *files])


def _say_waiting() -> Any:
    """What is said, once, while other processes finish their part."""
    said: set[int] = set()

    def say(holders: list[ActiveWorker]) -> None:
        for holder in holders:
            if holder.pid not in said:
                said.add(holder.pid)
                what = f"{holder.runs:,} run{'s' * (holder.runs > 1)} of this execution"
                click.echo(f"waiting for process {holder.pid} on {holder.machine}, which has {what}", err=True)

    return say


def _say_resumed(keeping: StoreSession, prepared: Prepared, *, is_unchanged: bool) -> None:
    done = sum(
        outcome.status in ("completed", "error") and outcome.verdict not in keeping.again and not outcome.replaced
        for outcome in keeping.known.values()
    )
    total = prepared.planned.runs
    # Which of them belong to cases that were edited since is seen case by case.
    is_part = is_unchanged and done <= total
    state = f"{done:,} of {total:,} runs are done" if is_part else f"{done:,} results are kept, {total:,} runs planned"
    click.echo(f"resuming {keeping.execution.id}: {state}", err=True)


def _mention_unfinished(store: Store) -> None:
    """Say how to go on with the last execution if it did not come to its end and nobody is at it."""
    newest = store.executions(1)
    if not newest or newest[0].status not in UNFINISHED or store.active_workers(newest[0].id):
        return
    last = newest[0]
    outcomes = store.outcomes(last.id).values()
    done = sum(outcome.status in ("completed", "error") and not outcome.replaced for outcome in outcomes)
    from agentv.api.resume import paths_of  # noqa: PLC0415 - `--help` needs none of it

    paths = shlex.join(paths_of(last.command, store))
    click.echo(
        f"the last execution, {last.id}, stopped after {done:,} of {last.planned:,} runs;"
        f" go on with it: agentv eval {paths} --resume",
        err=True,
    )
