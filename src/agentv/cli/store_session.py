"""Store sessions of commands, and the options `--resume`, `--retry-errors` and `--rerun-failed`."""

from __future__ import annotations

import os
import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from agentv.api import resume as api
from agentv.api.judges import open_judge_cache
from agentv.api.reporting import replay_execution
from agentv.api.runs import find_damaged
from agentv.api.store_files import existing_store, open_location, parse_location, store_path, unwritten_folder
from agentv.cli.outputs import STEP_SUMMARY, in_github, make_printer, open_files
from agentv.cli.problems import report_abort
from agentv.errors import AgentVError
from agentv.redaction import Redactor
from agentv.reports.terminal import pluralize
from agentv.run.options import RunOptions
from agentv.run.resume import count_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentv.api.execution import PreparedExecution
    from agentv.api.resume import StoreSession
    from agentv.api.store_files import StoreLocation
    from agentv.cli.options import EvalArgs
    from agentv.model.stored import ActiveWorker, ExecutionRow
    from agentv.protocols import Store

UNFINISHED = ("running", "interrupted")


class ResumePlan(Struct, frozen=True):
    """An earlier execution, and what to run to complete it."""

    store: Store
    execution: ExecutionRow
    paths: tuple[str, ...]
    targets: tuple[str, ...]
    options: RunOptions
    statuses: frozenset[str]
    """The verdicts whose runs are run again: `error`, `fail`."""
    is_same: bool
    """Paths, targets and options are those the execution was started with."""
    is_complete: bool = False
    """Every run has its result, and no input has changed since."""


def find_resumable(args: EvalArgs) -> ResumePlan:
    """Return the execution that `--resume` names, from the store of the paths or of the current folder."""
    statuses = {"error"} if args.retry_errors else set()
    statuses |= {"fail"} if args.rerun_failed else set()
    name, paths = args.resume, args.paths
    if name and Path(name).exists():  # `--resume evals/`: a path after an option whose value is optional
        name, paths = "", (name, *paths)
    location = given_location(args)
    store = existing_store(paths) if location is None else open_location(location)
    execution = api.find_execution_to_resume(store, name or "")
    earlier = execution.command
    merged = api.with_earlier(args.options, earlier)
    earlier_paths = api.paths_of(earlier, store)
    same_paths = not paths or _resolve(paths) == _resolve(earlier_paths)
    defaults = api.with_earlier(RunOptions(), earlier)
    same_options = all(getattr(merged, name) == getattr(defaults, name) for name in api.SELECTION)
    is_same = same_paths and args.targets in ((), earlier.targets) and same_options
    has_gates = args.min_pass_rate is not None or args.max_regressions is not None
    can_replay = is_same and not statuses and not has_gates and not _needs_replies(args)
    is_complete = can_replay and api.is_unchanged(execution, earlier_paths)
    return ResumePlan(
        store=store,
        execution=execution,
        paths=paths or earlier_paths,
        targets=args.targets or earlier.targets,
        options=merged,
        statuses=frozenset(statuses),
        is_same=is_same,
        is_complete=is_complete and not find_damaged(store, execution.id),
    )


def _resolve(paths: tuple[str, ...]) -> list[Path]:
    return [Path(path).resolve() for path in paths]


def _needs_replies(args: EvalArgs) -> bool:
    """Return whether the requested outputs need cases and replies, and not only the stored records."""
    return args.options.include_messages or args.dump_traces is not None or in_github() or STEP_SUMMARY in os.environ


def print_complete(plan: ResumePlan, args: EvalArgs) -> int:
    """Report a complete execution from its stored results, without running anything; return the exit code."""
    redactor = Redactor({})  # the stored results are already redacted
    inputs = plan.execution.inputs.split("\n")[1:]
    printer = make_printer(args, redactor, has_target=bool(args.targets))
    reporters = [*open_files(args.out, inputs, redactor), printer]
    if not args.quiet:
        click.echo(f"{plan.execution.id} is complete, and no file has changed: nothing is run", err=True)
    try:
        summary = replay_execution(plan.store, plan.execution, reporters, plan.options, args.out)
    except AgentVError as error:
        return report_abort(error)
    finally:
        plan.store.close()
    return summary.exit_code


def given_location(args: EvalArgs) -> StoreLocation | None:
    """Return the store that the command line names."""
    return None if args.store is None else parse_location(args.store)


@contextmanager
def open_session(prepared: PreparedExecution, args: EvalArgs, plan: ResumePlan | None) -> Iterator[StoreSession | None]:
    """Open the store session of an execution that is about to run; yield `None` when nothing is stored."""
    location = None
    if plan is None:
        location = None if args.no_store or args.watch else given_location(args) or store_path(prepared.evals)
        if location is None:
            yield None
            return
        store = open_location(location)
    else:
        store = plan.store
    try:
        session = _begin(prepared, args, store, location) if plan is None else _resume(prepared, args, plan)
        yield replace(session, on_wait=_make_wait_notice())
    finally:
        store.close()


def _begin(prepared: PreparedExecution, args: EvalArgs, store: Store, location: StoreLocation | None) -> StoreSession:
    if not args.quiet:
        _mention_unfinished(store)
    command = api.command_of(args.paths, args.targets, prepared.options, store=location)
    return api.begin(store, api.new_execution(prepared, command, args.persist))


def _resume(prepared: PreparedExecution, args: EvalArgs, plan: ResumePlan) -> StoreSession:
    execution = api.refreshed(plan.execution, prepared, is_whole=plan.is_same)
    folder = unwritten_folder(prepared.evals)
    session = api.resume_execution(plan.store, execution, plan.statuses, is_whole=plan.is_same, unwritten=folder)
    if not args.quiet:
        is_unchanged = plan.is_same and execution.inputs == plan.execution.inputs
        _print_resumed(session, prepared, is_unchanged=is_unchanged)
    return replace(session, persist=args.persist or session.persist)


@contextmanager
def with_judge_cache(
    prepared: PreparedExecution, location: StoreLocation | None = None, *, is_stored: bool = True
) -> Iterator[PreparedExecution]:
    """Yield the prepared execution with its judge cache, in this store or that of the project."""
    if not prepared.judges or not is_stored:
        yield prepared
        return
    cache = open_judge_cache(location or store_path(prepared.evals), lambda message: click.echo(message, err=True))
    try:
        yield prepared if cache is None else replace(prepared, judge_cache=cache)
    finally:
        if cache is not None:
            cache.close()


def resume_command(session: StoreSession, args: EvalArgs) -> str:
    """Return the command that resumes an execution and writes all of it to the same files; it shows no password."""
    paths = api.paths_of(session.execution.command, session.store)
    files = [part for name in args.out for part in ("--out", name)]
    store = [] if args.store is None else ["--store", session.store.name]
    engine = [] if args.executor is None else ["--executor", args.executor]
    engine += ["--no-ship"] * args.no_ship + ["--allow-unencrypted"] * args.allow_unencrypted
    return shlex.join(["agentv", "eval", *paths, "--resume", session.execution.id, *engine, *store, *files])


def _make_wait_notice() -> Callable[[list[ActiveWorker]], None]:
    """Return a function that names each process that is waited for, once."""
    announced: set[int] = set()

    def notify(workers: list[ActiveWorker]) -> None:
        for worker in workers:
            if worker.pid not in announced:
                announced.add(worker.pid)
                what = f"{pluralize(worker.runs, 'run')} of this execution"
                click.echo(f"waiting for process {worker.pid} on {worker.machine}, which has {what}", err=True)

    return notify


def _print_resumed(session: StoreSession, prepared: PreparedExecution, *, is_unchanged: bool) -> None:
    done = count_kept(session.known, session.rerun)
    total = prepared.planned.runs
    # Which results belong to cases that were edited since is found out case by case, while running.
    is_part = is_unchanged and done <= total
    verb = "is" if (total if is_part else done) == 1 else "are"
    kept, planned = pluralize(done, "result"), pluralize(total, "run")
    state = f"{done:,} of {planned} {verb} done" if is_part else f"{kept} {verb} kept, {planned} planned"
    click.echo(f"resuming {session.execution.id}: {state}", err=True)


def _mention_unfinished(store: Store) -> None:
    """Print how to resume the last execution if it is unfinished and no process works on it."""
    newest = store.executions(1)
    if not newest or newest[0].status not in UNFINISHED or store.active_workers(newest[0].id):
        return
    last = newest[0]
    done = count_kept(store.outcomes(last.id))
    paths = shlex.join(api.paths_of(last.command, store))
    click.echo(
        f"the last execution, {last.id}, stopped after {done:,} of {pluralize(last.planned, 'run')};"
        f" go on with it: agentv eval {paths} --resume",
        err=True,
    )
