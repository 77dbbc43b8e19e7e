"""`agentv target`: list targets, and check that one of them answers."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from agentv.api.targets import check_target, choose, find_targets, list_targets
from agentv.cli.options import (
    ALLOW_UNENCRYPTED,
    ENV_FILE,
    EXECUTOR,
    JSON,
    NO_SHIP,
    PLAIN_BLOCKS,
    TRUST_PROJECT,
    choose_executor,
    load_env_file,
)
from agentv.cli.outputs import print_json
from agentv.cli.problems import exit_with_problems, fail_error, fail_usage
from agentv.errors import AgentVError, ExecutorError, SpecError
from agentv.exit_codes import ExitCode
from agentv.jsonio import dump_json
from agentv.model.targets import TARGETS_SCHEMA
from agentv.reports.targets import render_check, render_targets
from agentv.reports.terminal import Style

PATH = click.argument("path", default=".", metavar="[PATH]")


@click.group()
def command() -> None:
    """List targets, and check that one answers."""


@command.command("list")
@PATH
@JSON
@ENV_FILE
@TRUST_PROJECT
def list_all(path: str, *, as_json: bool, env_file: str | None) -> None:
    """List the targets of agentv.yaml and of the evals in PATH, with the variables that each needs."""
    targets = list_targets(_find_targets(path, env_file, as_json=as_json))
    if as_json:
        print_json({"schema": TARGETS_SCHEMA, "targets": targets})
    else:
        click.echo(render_targets(targets, Style.of(sys.stdout)))


@command.command("check")
@click.argument("name")
@PATH
@click.option("--prompt", default="Hello", metavar="TEXT", help="The prompt; 'Hello' by default.")
@PLAIN_BLOCKS
@EXECUTOR
@NO_SHIP
@ALLOW_UNENCRYPTED
@JSON
@ENV_FILE
@TRUST_PROJECT
def check_one(  # noqa: PLR0913 - one for each option
    name: str,
    path: str,
    *,
    prompt: str,
    plain_blocks: tuple[str, ...],
    executor: str | None,
    no_ship: bool,
    allow_unencrypted: bool,
    as_json: bool,
    env_file: str | None,
) -> None:
    """Send one request to the target NAME; print its reply and what it does not report.

    Exit code: 0 it answered, 2 wrong files or command line (nothing was sent), 3 it did not answer.
    """
    targets = _find_targets(path, env_file, as_json=as_json)
    try:
        chosen = choose(targets, name)
        choice = choose_executor(
            executor or chosen.project.executor, ship=not no_ship, allow_unencrypted=allow_unencrypted
        )
        check, redactor = asyncio.run(check_target(chosen, prompt, plain_blocks, choice))
    except SpecError as error:
        exit_with_problems(error, as_json=as_json)
    except ExecutorError as error:
        fail_error(str(error))
    if as_json:
        click.echo(redactor.line(dump_json(check)))
    else:
        click.echo(redactor.text(render_check(check, Style.of(sys.stdout))))
    sys.exit(ExitCode.OK if check.answered else ExitCode.ERROR)


def _find_targets(path: str, env_file: str | None, *, as_json: bool) -> Any:
    load_env_file(env_file)
    try:
        return find_targets(path)
    except SpecError as error:
        exit_with_problems(error, as_json=as_json)
    except AgentVError as error:
        fail_usage(str(error))
