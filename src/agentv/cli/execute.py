"""Load, plan and run the evals of `agentv eval`."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from agentv.api.evaluate import load
from agentv.api.execution import execute, prepare
from agentv.api.store_files import address_secrets, store_path
from agentv.api.untrusted import Permissions, check_untrusted_store
from agentv.cli.interrupts import handled_interrupts
from agentv.cli.options import choose_executor, load_env_file
from agentv.cli.outputs import annotate, make_printer, open_github_reporters, open_outputs, print_json
from agentv.cli.problems import exit_with_problems, fail_error, fail_usage, report_abort
from agentv.cli.store_session import (
    find_resumable,
    given_location,
    open_session,
    print_complete,
    resume_command,
    with_judge_cache,
)
from agentv.cli.watch import watch, watch_conflict
from agentv.errors import AgentVError, SpecError, StoreConnectionError
from agentv.exit_codes import ExitCode
from agentv.process.orphans import end_own_children, mark_own_children
from agentv.providers.python.printing import set_display
from agentv.reports.progress import LiveProgress, PlainProgress, PlainTurnProgress, can_redraw
from agentv.reports.terminal import Style, clean, pluralize, render_warnings
from agentv.reports.turns import case_name
from agentv.spec.project import evals_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from agentv.api.execution import PreparedExecution
    from agentv.api.store_files import StoreLocation
    from agentv.cli.options import EvalArgs
    from agentv.cli.store_session import ResumePlan
    from agentv.evals import Eval
    from agentv.model.request import Case
    from agentv.model.results import Summary
    from agentv.protocols import Reporter
    from agentv.redaction import Redactor
    from agentv.run.engine import Engine

MAX_SHOWN = 50
GC_THRESHOLDS = (20_000, 20, 50)
"""Results are short-lived and without reference cycles: a collection every 700 objects took 4 % of the time."""


def run_command(args: EvalArgs) -> int:
    """Run `agentv eval` and return its exit code."""
    load_env_file(args.env_file)
    plan = None
    if args.resumes:
        plan = _find_resumable(args)
        args = replace(args, paths=plan.paths, targets=plan.targets, options=plan.options)
        if plan.is_complete and not args.dry_run:
            return print_complete(plan, args)
    if not args.paths:
        args = replace(args, paths=(_default_path(),))
    if args.watch:
        if conflict := watch_conflict(args):
            fail_usage(conflict)
        return watch(partial(_prepare, args), partial(_run, args=args))
    try:
        prepared = _prepare(args)
    except SpecError as error:
        annotate(error.problems)
        exit_with_problems(error, as_json=args.as_json)
    except AgentVError as error:
        fail_usage(str(error))
    if args.dry_run:
        show_plan(prepared, as_json=args.as_json)
        return ExitCode.OK
    return _run(prepared, args, plan)


def _default_path() -> str:
    """Return the path of a command without one: the project that the current folder belongs to."""
    path = evals_here(Path.cwd())
    if path is None:
        fail_usage(
            "no evals here: name an eval file or a folder of them, resume an execution with --resume,"
            " or begin with `agentv init`"
        )
    return path


def _find_resumable(args: EvalArgs) -> ResumePlan:
    if args.watch or args.no_store:
        fail_usage("--resume continues an execution of the run store: it cannot be combined with --watch or --no-store")
    try:
        return find_resumable(args)
    except StoreConnectionError as error:
        fail_error(str(error))
    except AgentVError as error:
        fail_usage(str(error))


def _prepare(args: EvalArgs) -> PreparedExecution:
    evals = load(list(args.paths), args.targets or None)
    untrusted = Permissions.of(args.allow_env, args.allow_host) if args.no_exec else None
    location = _find_location(evals, args, untrusted)
    secrets = address_secrets(location)
    prepared = prepare(evals, args.options, untrusted=untrusted, dry=args.dry_run, secrets=secrets)
    address = args.executor or (None if args.no_exec else evals[0].executor)
    if not args.dry_run:
        choice = choose_executor(
            address,
            ship=not args.no_ship,
            allow_unencrypted=args.allow_unencrypted,
            with_raw=(args.persist or evals[0].persist) == "full",
        )
        prepared = replace(prepared, executor=choice)
    if args.min_pass_rate is None and args.max_regressions is None:
        return prepared
    if args.resumes and args.max_regressions is not None and args.baseline is None:
        fail_usage("--max-regressions of a resumed execution needs a --baseline: the last execution is this one")
    from agentv.api.compare import load_gates  # noqa: PLC0415 - it loads all of `compare`, for rare options

    gates = load_gates(args.paths, args.min_pass_rate, args.max_regressions, args.baseline)
    return replace(prepared, gates=gates)


def _find_location(evals: Sequence[Eval], args: EvalArgs, untrusted: Permissions | None) -> StoreLocation | None:
    """Return the store of an execution, if it is used; with `untrusted`, a project may not choose any server."""
    if args.no_store or args.watch or args.dry_run:
        return None
    if args.store is not None:
        return given_location(args)
    setting = evals[0].store
    location = store_path(evals)
    if untrusted is not None and setting is not None and location is not None and location.path is None:
        problems = check_untrusted_store(setting, location, untrusted)
        if problems:
            raise SpecError(problems)
    return location


def show_plan(prepared: PreparedExecution, *, as_json: bool) -> None:
    """Print every run that would be started, in order, without opening any provider."""
    counts = prepared.planned
    for number, run in enumerate(prepared.runs()):
        evaluators = [checked.evaluator.type for checked in run.case.checks]
        if as_json:
            entry = {
                "schema": "agentv.plan/1",
                "eval_id": run.eval.id,
                "case_id": run.case.case.id,
                **_conversation_data(run.case.case),
                "target": run.target.name,
                "provider": run.target.provider,
                "repeat": run.repeat,
                "key": run.key,
                "evaluators": evaluators,
            }
            print_json(entry)
            continue
        if number >= MAX_SHOWN:
            click.echo(f"... and {counts.runs - MAX_SHOWN:,} more")
            break
        repeat = f" #{run.repeat + 1}" if run.repeat else ""
        case = run.case.case
        label = f"{case_name(case.id, case.persona_id)}{repeat}"
        turns = f"  {pluralize(len(case.turns), 'turn')}" if case.turns else ""
        name = f"{clean(run.eval.id)}  {clean(label)}{turns}  {clean(run.target.name)}"
        click.echo(f"{name}  [{', '.join(evaluators)}]")
    if as_json:
        summary = {"schema": "agentv.plan_summary/1", "runs": counts.runs, "cases": counts.cases}
        print_json({**summary, "skipped": counts.skipped, "left_out": counts.left_out})
    else:
        only = f", {counts.left_out:,} left out by `only`" if counts.left_out else ""
        runs = f"{pluralize(counts.runs, 'run')} of {pluralize(counts.cases, 'case')}"
        click.echo(f"{runs}, {counts.skipped:,} skipped{only}; nothing was run")


def _conversation_data(case: Case) -> dict[str, Any]:
    """Return the persona and the number of turns of a planned run, if it has them."""
    data: dict[str, Any] = {"persona_id": case.persona_id} if case.persona_id else {}
    return {**data, "turns": len(case.turns)} if case.turns else data


def _run(prepared: PreparedExecution, args: EvalArgs, plan: ResumePlan | None = None) -> int:
    """Run and report an execution; return its exit code."""
    _print_warnings(prepared, args)
    state = _CommandState()
    try:
        reporters = _open_reporters(prepared, args)  # first: a file that cannot be written must leave no execution
        cache = with_judge_cache(prepared, given_location(args), is_stored=not args.no_store)
        with cache as ready, handled_interrupts() as on_start:
            summary = asyncio.run(_execute(ready, args, plan, reporters, on_start, state))
    except AgentVError as error:
        return report_abort(error, state.hint, has_begun=state.has_begun)
    finally:
        set_display(None)
    hint = state.hint
    if summary.status == "interrupted":
        end_own_children()  # threads of Python agents that are still running may have started some
    for gate in summary.gates or ():
        click.echo(gate, err=True)
    if hint and summary.status == "interrupted":
        click.echo(f"go on with it: {hint}", err=True)
    elif hint and isinstance(summary.stopped, str):
        click.echo(f"go on with it, errors included: {hint} --retry-errors", err=True)
    return summary.exit_code


class _CommandState:
    """State of a command: whether its execution has begun, and how to resume it."""

    has_begun = False
    hint: str | None = None


async def _execute(  # noqa: PLR0913, PLR0917 - the parts of a run
    prepared: PreparedExecution,
    args: EvalArgs,
    plan: ResumePlan | None,
    reporters: list[Reporter],
    on_start: Callable[[Engine], None],
    state: _CommandState,
) -> Summary:
    """Open the executor, then the store session, and run the execution."""
    async with _opened_executor(prepared, reporters) as ready:
        with open_session(ready, args, plan) as session:
            gc.freeze()
            gc.enable()
            gc.set_threshold(*GC_THRESHOLDS)
            state.hint = resume_command(session, args) if session else None
            state.has_begun = True
            _protect_from_agents(prepared)
            return await execute(ready, reporters, out=args.out, on_start=on_start, session=session)


@asynccontextmanager
async def _opened_executor(
    prepared: PreparedExecution, reporters: Sequence[Reporter]
) -> AsyncIterator[PreparedExecution]:
    if prepared.executor is None:
        yield prepared
        return
    from agentv.api.executors import open_executor  # noqa: PLC0415 - for few executions

    async with open_executor(prepared, prepared.executor) as ready:
        for reporter in reporters:
            if ready.remote is not None and isinstance(reporter, (LiveProgress, PlainProgress)):
                reporter.show_workers(ready.remote.describe)
        yield ready


def _print_warnings(prepared: PreparedExecution, args: EvalArgs) -> None:
    warnings = list(dict.fromkeys(warning for eval_ in prepared.evals for warning in eval_.warnings))
    if warnings and not args.quiet:
        click.echo(render_warnings(warnings, Style.of(sys.stderr)), err=True)


def _open_reporters(prepared: PreparedExecution, args: EvalArgs) -> list[Reporter]:
    redactor = prepared.redactor
    reporters = open_outputs(prepared, args.out, args.dump_traces)
    if not args.quiet and not args.as_json:
        plain = PlainTurnProgress if any(eval_.has_conversations for eval_ in prepared.evals) else PlainProgress
        reporters.append(LiveProgress(sys.stderr, redactor) if can_redraw(sys.stderr) else plain(sys.stderr))
    show_agent_output(reporters, redactor, is_quiet=args.quiet)
    reporters.append(make_printer(args, redactor, has_target=bool(args.targets)))
    return reporters + open_github_reporters(prepared.evals, redactor, as_json=args.as_json)


def _protect_from_agents(prepared: PreparedExecution) -> None:
    """Prepare for code of Python agents in this process: it may start processes, and it may crash."""
    if any(target.provider == "python" for eval_ in prepared.evals for target in eval_.targets):
        mark_own_children()
        with suppress(OSError, ValueError, RuntimeError):  # stderr is no file
            faulthandler.enable()


def show_agent_output(reporters: list[Reporter], redactor: Redactor, *, is_quiet: bool) -> None:
    """Show what Python agents print on standard error, above the progress bar if there is one."""
    bar = next((reporter for reporter in reporters if isinstance(reporter, LiveProgress)), None)
    stream = sys.stderr  # it is replaced while targets are open

    def show(label: str, line: str) -> None:
        text = clean(redactor.text(f"[{label}] {line}" if label else line))
        if bar is not None:
            bar.print_above(text)
        elif not is_quiet:
            with suppress(OSError, ValueError):  # closed: the output is kept with its run
                stream.write(f"{text}\n")
                stream.flush()

    set_display(show)
