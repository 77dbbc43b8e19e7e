"""`agentv eval`: the options; `execute` runs the evals."""

from __future__ import annotations

import sys
from typing import Any

import click

from agentv.cli.options import (
    ALLOW_UNENCRYPTED,
    DOLLARS,
    ENV_FILE,
    EXECUTOR,
    JSON_LINES,
    MAX_JUDGE_COST,
    MAX_REGRESSIONS,
    MIN_PASS_RATE,
    NO_CACHE,
    NO_SHIP,
    OUT,
    PERSONAS,
    PLAIN_BLOCKS,
    POSITIVE,
    QUIET,
    SECONDS,
    STORE,
    TRUST_PROJECT,
    VERBOSE,
    EvalArgs,
    ShardType,
    take_run_options,
)


@click.command()
@click.argument("paths", nargs=-1, metavar="[FILE|DIR]...")
@click.option("--target", "targets", multiple=True, metavar="NAME", help="Test this target; may be repeated.")
@click.option("--case", "cases", multiple=True, metavar="GLOB", help="Run cases whose id matches; may be repeated.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Run cases with this tag; may be repeated.")
@PERSONAS
@OUT
@click.option(
    "--dump-traces", type=click.Path(file_okay=False), metavar="DIR", help="Write the trace of each attempt below DIR."
)
@JSON_LINES
@click.option("--repeat", type=click.IntRange(1, 100_000), metavar="N", help="Run every case N times.")
@click.option("--max-concurrency", type=POSITIVE, metavar="N", help="Maximum number of concurrent runs; 10 by default.")
@click.option("--timeout", "timeout_s", type=SECONDS, metavar="SECONDS", help="Time limit of an attempt; 120.")
@click.option("--run-timeout", "run_timeout_s", type=SECONDS, metavar="SECONDS", help="Time limit of a whole run.")
@click.option("--retries", type=click.IntRange(0, 100), metavar="N", help="Retries after a transient failure; 2.")
@click.option("--max-cost", type=DOLLARS, metavar="USD", help="Start no more runs once this much is spent.")
@MAX_JUDGE_COST
@NO_CACHE
@click.option("--max-tokens", type=POSITIVE, metavar="N", help="Start no more runs once this many tokens are used.")
@EXECUTOR
@NO_SHIP
@ALLOW_UNENCRYPTED
@click.option("--shard", type=ShardType(), metavar="I/N", help="Run shard I of N; `agentv merge` merges the results.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="Resume an execution, the last one by default; runs that have a result are skipped.",
)
@click.option("--retry-errors", is_flag=True, help="Resume, and run the errors again.")
@click.option("--rerun-failed", is_flag=True, help="Resume, and run the failures again.")
@click.option("--no-store", is_flag=True, help="Store nothing.")
@STORE
@TRUST_PROJECT
@click.option(
    "--persist",
    type=click.Choice(["summary", "messages", "full"]),
    help="How much of each run the store keeps; messages by default.",
)
@PLAIN_BLOCKS
@click.option("--fail-fast", is_flag=True, help="Start no more runs once one did not pass.")
@MIN_PASS_RATE
@MAX_REGRESSIONS
@click.option(
    "--baseline", metavar="FILE|ID", help="Results to compare with for --max-regressions; the last execution."
)
@click.option("--watch", is_flag=True, help="Run affected cases again when files change, until Ctrl-C.")
@click.option("--dry-run", is_flag=True, help="Print the planned runs, and run nothing.")
@click.option(
    "--no-exec",
    is_flag=True,
    help="For untrusted files: refuse code, and variables and hosts that are not allowed.",
)
@click.option(
    "--allow-env", multiple=True, metavar="NAME", help="With --no-exec, a variable that targets may use; repeatable."
)
@click.option(
    "--allow-host", multiple=True, metavar="HOST", help="With --no-exec, a host that targets may send to; repeatable."
)
@click.option("--include-messages", is_flag=True, help="Include the whole conversation in the results.")
@click.option("--include-trace", is_flag=True, help="Include the trace in the results.")
@ENV_FILE
@VERBOSE
@QUIET
def command(**params: Any) -> None:
    """Run evals and report the results.

    Without a FILE or DIR, the project of the current folder is run.

    Exit code: 0 all passed, 1 some failed, 2 wrong files or command line (nothing was run), 3 some could not be
    measured, 130 interrupted.
    """
    # 90 of 150 ms of start-up, which `--help` and the completion of options do not need.
    from agentv.cli.execute import run_command  # noqa: PLC0415

    sys.exit(run_command(EvalArgs(options=take_run_options(params), **params)))
