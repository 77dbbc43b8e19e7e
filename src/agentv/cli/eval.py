"""`agentv eval`: run evals, or show what would run (`--dry-run`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.exit_codes import exit_with_problems, fail_usage
from agentv.jsonio import dump_json
from agentv.reports.terminal import clean, counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.api.execution import Prepared
    from agentv.api.resume import StoreSession
    from agentv.cli.resume import ResumePlan
    from agentv.model.results import Summary
    from agentv.protocols import Reporter
    from agentv.run.engine import Engine
    from agentv.run.options import RunOptions


MAX_SHOWN = 50


def show_plan(prepared: Prepared, *, as_json: bool) -> None:
    """Every run that would be started, in order; no provider is even opened."""
    planned = prepared.planned
    for number, run in enumerate(prepared.runs()):
        if as_json:
            line = {
                "schema": "agentv.plan/1",
                "eval_id": run.eval.id,
                "case_id": run.case.case.id,
                "target": run.target.name,
                "provider": run.target.provider,
                "repeat": run.repeat,
                "key": run.key,
                "evaluators": [checked.evaluator.type for checked in run.case.checks],
            }
            click.echo(dump_json(line))
            continue
        if number >= MAX_SHOWN:
            click.echo(f"... and {planned.runs - MAX_SHOWN:,} more")
            break
        checks = ", ".join(checked.evaluator.type for checked in run.case.checks)
        repeat = f" #{run.repeat + 1}" if run.repeat else ""
        click.echo(f"{clean(run.eval.id)}  {clean(run.case.case.id)}{repeat}  {clean(run.target.name)}  [{checks}]")
    summary = f"{counted(planned.runs, 'run')} of {counted(planned.cases, 'case')}"
    if as_json:
        plan = {"schema": "agentv.plan_summary/1", "runs": planned.runs, "cases": planned.cases}
        click.echo(dump_json({**plan, "skipped": planned.skipped, "left_out": planned.left_out}))
    else:
        only = f", {planned.left_out:,} left out by `only`" if planned.left_out else ""
        click.echo(f"{summary}, {planned.skipped:,} skipped{only}; nothing was run")


MAX_SHARDS = 100_000
POSITIVE = click.IntRange(min=1)


class Seconds(click.FloatRange):
    """A time; `nan` lies in no range and is in every one."""

    unit = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, unless it is none."""
        number = super().convert(value, param, ctx)
        is_number = number == number  # noqa: PLR0124 - `nan` is not
        return number if is_number else self.fail(f"{value!r} is not a number of {self.unit}", param, ctx)


class Dollars(Seconds):
    """A sum of money, in US dollars."""

    unit = "US dollars"


class ShardType(click.ParamType):  # type: ignore[type-arg] # it is generic since click 8.4 only
    """Part `i` of `n`."""

    name = "shard"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The two numbers of `i/n`."""
        index, _, count = str(value).partition("/")
        if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count) <= MAX_SHARDS):
            self.fail(f"{value!r} is not a part such as 2/4: the second of four", param, ctx)
        return int(index), int(count)


class BlockType(click.ParamType):  # type: ignore[type-arg] # as above
    """A block type that may be declared to hold no tool calls."""

    name = "block type"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the type, or fail with the reason why it may not."""
        from agentv.formats.plain_blocks import plain_block_problem  # noqa: PLC0415 - `--help` needs none of it

        problem = plain_block_problem(value)
        return value if problem is None else self.fail(problem, param, ctx)


SECONDS = Seconds(min=0, min_open=True, max=86_400)
DOLLARS = Dollars(min=0, min_open=True, max=1_000_000_000)
PLAIN_BLOCKS = click.option(
    "--plain-block",
    "plain_blocks",
    type=BlockType(),
    multiple=True,
    metavar="TYPE",
    help="Blocks of TYPE in replies hold no tool calls; may be given again.",
)


@click.command()
@click.argument("paths", nargs=-1, metavar="FILE|DIR...")
@click.option("--target", "targets", multiple=True, metavar="NAME", help="Test this target; may be given again.")
@click.option("--case", "cases", multiple=True, metavar="GLOB", help="Run cases whose id fits; may be given again.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Run cases with this tag; may be given again.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Write results to FILE: .jsonl, .yaml, .xml (JUnit) or .md; may be given again.",
)
@click.option(
    "--dump-traces", type=click.Path(file_okay=False), metavar="DIR", help="Write the trace of each attempt below DIR."
)
@click.option("--json", "as_json", is_flag=True, help="Print result records as JSON lines, then a summary; no more.")
@click.option("--repeat", type=click.IntRange(1, 100_000), metavar="N", help="Run every case N times.")
@click.option("--max-concurrency", type=POSITIVE, metavar="N", help="Runs under way at once; 10 by default.")
@click.option("--timeout", type=SECONDS, metavar="SECONDS", help="Limit of one attempt; 120 by default.")
@click.option("--run-timeout", type=SECONDS, metavar="SECONDS", help="Limit of a run with all its attempts.")
@click.option("--retries", type=click.IntRange(0, 100), metavar="N", help="Tries after a failure that may pass; 2.")
@click.option("--max-cost", type=DOLLARS, metavar="USD", help="Start nothing more once so many dollars are spent.")
@click.option("--max-judge-cost", type=DOLLARS, metavar="USD", help="Ask no judge once so much is spent on them.")
@click.option("--no-cache", is_flag=True, help="Ask judges again, whatever they said before.")
@click.option("--max-tokens", type=POSITIVE, metavar="N", help="Start nothing more once so many tokens are used.")
@click.option("--shard", type=ShardType(), metavar="I/N", help="Run part I of N; `agentv merge` joins the results.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="Go on with an execution, the last one by default: what has a result is not run again.",
)
@click.option("--retry-errors", is_flag=True, help="With --resume (or the last one): run again what was an error.")
@click.option("--rerun-failed", is_flag=True, help="With --resume (or the last one): run again what failed.")
@click.option("--no-store", is_flag=True, help="Keep nothing in the run store.")
@click.option(
    "--persist",
    type=click.Choice(["summary", "messages", "full"]),
    help="How much of each run the store keeps; messages by default.",
)
@PLAIN_BLOCKS
@click.option("--fail-fast", is_flag=True, help="Start nothing more once a run did not pass.")
@click.option("--watch", is_flag=True, help="Run again what a change of files concerns, until Ctrl-C.")
@click.option("--dry-run", is_flag=True, help="Show what would be run, and run nothing.")
@click.option("--no-exec", is_flag=True, help="Refuse targets and evaluators that run code: for files not trusted.")
@click.option("--include-messages", is_flag=True, help="Put the whole conversation into the results.")
@click.option("--include-trace", is_flag=True, help="Put the trace into the results.")
@click.option(
    "--env-file", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Read variables from FILE (.env)."
)
@click.option("-v", "--verbose", is_flag=True, help="Show passing cases in full, too.")
@click.option("-q", "--quiet", is_flag=True, help="Show the sums only.")
def command(paths: tuple[str, ...], **given: Any) -> None:
    """Run evals and say what held and what did not.

    Exit code: 0 all passed, 1 some failed, 2 wrong files or command line (nothing was run), 3 some could not be
    measured, 130 interrupted.
    """
    from agentv.api.evaluate import load  # noqa: PLC0415 - `--help` needs none of it
    from agentv.api.execution import prepare  # noqa: PLC0415 - as above
    from agentv.errors import AgentVError, SpecError  # noqa: PLC0415 - as above
    from agentv.run.options import RunOptions  # noqa: PLC0415 - as above

    if given["env_file"]:
        read_variables_file(given["env_file"])
    options = RunOptions(
        cases=given["cases"],
        tags=given["tags"],
        repeat=given["repeat"],
        timeout_s=given["timeout"],
        run_timeout_s=given["run_timeout"],
        retries=given["retries"],
        max_concurrency=given["max_concurrency"],
        max_cost=given["max_cost"],
        max_tokens=given["max_tokens"],
        max_judge_cost=given["max_judge_cost"],
        cache=not given["no_cache"],
        shard=given["shard"],
        fail_fast=given["fail_fast"],
        include_messages=given["include_messages"],
        include_trace=given["include_trace"],
        plain_blocks=given["plain_blocks"],
    )

    def ready() -> Prepared:
        evals = load(list(paths), given["targets"] or None)
        return prepare(evals, options, no_exec=given["no_exec"], dry=given["dry_run"])

    recalled = None
    if given["resume"] is not None or given["retry_errors"] or given["rerun_failed"]:
        recalled = _recall(paths, given, options)
        paths, given["targets"], options = recalled.paths, recalled.targets, recalled.options
        if recalled.is_complete and not given["dry_run"]:
            from agentv.cli.resume import print_complete  # noqa: PLC0415 - only a resume needs it

            sys.exit(print_complete(recalled, given))
    if not paths:
        fail_usage("name an eval file or a folder of them, or resume an execution with --resume")
    if given["watch"]:
        sys.exit(_watch(ready, given))
    try:
        prepared = ready()
    except SpecError as error:
        from agentv.cli.outputs import annotate  # noqa: PLC0415 - only a mistake needs it

        annotate(error.problems)
        exit_with_problems(error, as_json=given["as_json"])
    except AgentVError as error:
        fail_usage(str(error))
    if given["dry_run"]:
        show_plan(prepared, as_json=given["as_json"])
        return
    sys.exit(_run(prepared, given, paths, recalled))


def _recall(paths: tuple[str, ...], given: dict[str, Any], options: RunOptions) -> ResumePlan:
    """The execution to go on with."""
    from agentv.cli.resume import find_resumable  # noqa: PLC0415 - only a resume needs it
    from agentv.errors import AgentVError  # noqa: PLC0415 - as above

    if given["watch"] or given["no_store"]:
        fail_usage("--resume goes on with what the run store holds: not with --watch or --no-store")
    try:
        return find_resumable(paths, given, options)
    except AgentVError as error:
        fail_usage(str(error))


def _watch(ready: Callable[[], Prepared], given: dict[str, Any]) -> int:
    from functools import partial  # noqa: PLC0415 - only watching needs it

    from agentv.cli.watch import refuse_files, watch  # noqa: PLC0415 - as above

    reason = refuse_files(given)
    if reason:
        fail_usage(reason)
    return watch(ready, partial(_run, given=given))


def read_variables_file(path: str) -> None:
    """Add what an `.env` file sets and the environment does not."""
    import os  # noqa: PLC0415 - only this needs it

    from agentv.errors import FormatError  # noqa: PLC0415 - as above
    from agentv.spec.targets import read_variables  # noqa: PLC0415 - as above

    try:
        found = read_variables(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, FormatError) as error:
        fail_usage(f"{path} cannot be read: {error}")
    for name, value in found.items():
        os.environ.setdefault(name, value)


def _warn(prepared: Prepared, *, quiet: bool) -> None:
    warnings = dict.fromkeys(warning for each in prepared.evals for warning in each.warnings)
    if quiet or not warnings:
        return
    from agentv.reports.terminal import Style, render_warnings  # noqa: PLC0415 - loaded only when there is something to say

    click.echo(render_warnings(list(warnings), Style.of(sys.stderr)), err=True)


def _run(
    prepared: Prepared, given: dict[str, Any], paths: tuple[str, ...] = (), recalled: ResumePlan | None = None
) -> int:
    """Run it and report; what is watched, and comes without paths, is not kept."""
    import asyncio  # noqa: PLC0415 - only a real run needs it
    import gc  # noqa: PLC0415 - as above

    from agentv.cli.exit_codes import report_abort  # noqa: PLC0415 - as above
    from agentv.cli.resume import judge_cache, kept, resume_command  # noqa: PLC0415 - as above
    from agentv.errors import AgentVError  # noqa: PLC0415 - as above

    _warn(prepared, quiet=given["quiet"])
    hint: str | None = None
    has_begun = False
    try:
        reporters = _reporters(prepared, given)  # which files cannot be written is known before anything is kept
        with kept(prepared, paths, given, recalled) as keeping, judge_cache(prepared, given) as ready:
            gc.freeze()
            gc.enable()
            # Results come and go by the thousand without a cycle in them; looking for one after every 700 objects
            # took 4 % of the time.
            gc.set_threshold(20_000, 20, 50)
            hint = resume_command(keeping, given["out"]) if keeping else None
            has_begun = True
            summary = asyncio.run(_execute(ready, reporters, given["out"], keeping))
    except AgentVError as error:
        return report_abort(error, hint, has_begun=has_begun)
    if hint and summary.status == "interrupted":
        click.echo(f"go on with it: {hint}", err=True)
    return summary.exit_code


async def _execute(
    prepared: Prepared, reporters: list[Reporter], out: tuple[str, ...], keeping: StoreSession | None
) -> Summary:
    from agentv.api.execution import execute  # noqa: PLC0415 - only a real run needs it

    return await execute(prepared, reporters, out=out, watch=stop_on_signals, keeping=keeping)


def stop_on_signals(engine: Engine) -> None:
    """Ctrl-C once: finish what is under way; twice: stop now."""
    import asyncio  # noqa: PLC0415 - only a real run needs it
    import signal  # noqa: PLC0415 - as above

    def stop() -> None:
        again = engine.interrupted
        engine.stop()
        word = "Stopping now." if again else "Stopping: what is under way may finish (10 s at most); again to stop now."
        click.echo(f"\n{word}", err=True)

    loop = asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM"):
        try:
            loop.add_signal_handler(getattr(signal, name), stop)
        except (NotImplementedError, ValueError, AttributeError):  # Windows, or not the main thread
            return


def _reporters(prepared: Prepared, given: dict[str, Any]) -> list[Reporter]:
    from agentv.cli.outputs import (  # noqa: PLC0415 - only a real run needs it
        for_github,
        open_outputs,
        printer,
    )
    from agentv.reports.progress import Live, PlainLines, can_redraw  # noqa: PLC0415 - as above

    redactor = prepared.redactor
    reporters = open_outputs(prepared, given["out"], given["dump_traces"])
    if not given["quiet"] and not given["as_json"]:
        reporters.append(Live(sys.stderr, redactor) if can_redraw(sys.stderr) else PlainLines(sys.stderr))
    reporters.append(printer(given, redactor))
    return reporters + for_github(prepared, as_json=given["as_json"])
