"""`agentv target`: which targets there are, and whether one of them answers."""

from __future__ import annotations

import sys
from typing import Any

import click

from agentv.cli.eval import PLAIN_BLOCKS
from agentv.cli.exit_codes import ERROR, exit_with_problems, fail_usage

ENV_FILE = click.option(
    "--env-file", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Read variables from FILE (.env)."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
PATH = click.argument("path", default=".", metavar="[PATH]")


@click.group()
def command() -> None:
    """List the targets there are, and ask one whether it works."""


@command.command("list")
@PATH
@JSON
@ENV_FILE
def list_all(path: str, *, as_json: bool, env_file: str | None) -> None:
    """List the targets of agentv.yaml and of the evals in PATH, with the variables that each needs."""
    from agentv.api.targets import list_targets  # noqa: PLC0415 - `--help` needs none of it
    from agentv.model.targets import TARGETS_SCHEMA  # noqa: PLC0415 - as above
    from agentv.reports.targets import render_targets  # noqa: PLC0415 - as above
    from agentv.reports.terminal import Style  # noqa: PLC0415 - as above

    targets = list_targets(_found(path, env_file, as_json=as_json))
    if as_json:
        _print_json({"schema": TARGETS_SCHEMA, "targets": targets})
    else:
        click.echo(render_targets(targets, Style.of(sys.stdout)))


@command.command("check")
@click.argument("name")
@PATH
@click.option("--prompt", default="Hello", metavar="TEXT", help="What to ask it; 'Hello' by default.")
@PLAIN_BLOCKS
@JSON
@ENV_FILE
def check_one(  # noqa: PLR0913 - one for each option
    name: str, path: str, *, prompt: str, plain_blocks: tuple[str, ...], as_json: bool, env_file: str | None
) -> None:
    """Ask the target NAME once, and show what it answers and what it does not tell.

    Exit code: 0 it answered, 2 wrong files or command line (it was not asked), 3 it did not answer.
    """
    import asyncio  # noqa: PLC0415 - `--help` needs none of it

    from agentv.api.targets import check_target, choose  # noqa: PLC0415 - as above
    from agentv.errors import SpecError  # noqa: PLC0415 - as above
    from agentv.jsonio import dump_json  # noqa: PLC0415 - as above
    from agentv.reports.targets import render_check  # noqa: PLC0415 - as above
    from agentv.reports.terminal import Style  # noqa: PLC0415 - as above

    found = _found(path, env_file, as_json=as_json)
    try:
        check, redactor = asyncio.run(check_target(choose(found, name), prompt, plain_blocks))
    except SpecError as error:
        exit_with_problems(error, as_json=as_json)
    if as_json:
        click.echo(redactor.line(dump_json(check)))
    else:
        click.echo(redactor.text(render_check(check, Style.of(sys.stdout))))
    sys.exit(0 if check.answered else ERROR)


def _found(path: str, env_file: str | None, *, as_json: bool) -> Any:
    from agentv.api.targets import find_targets  # noqa: PLC0415 - `--help` needs none of it
    from agentv.errors import AgentVError, SpecError  # noqa: PLC0415 - as above

    if env_file:
        from agentv.cli.eval import read_variables_file  # noqa: PLC0415 - as above

        read_variables_file(env_file)
    try:
        return find_targets(path)
    except SpecError as error:
        exit_with_problems(error, as_json=as_json)
    except AgentVError as error:
        fail_usage(str(error))


def _print_json(data: Any) -> None:
    from agentv.jsonio import dump_json  # noqa: PLC0415 - `--help` needs none of it

    click.echo(dump_json(data))
