"""`agentv providers`: list providers and describe one."""

from __future__ import annotations

import click

from agentv.cli.evaluators import description_data, fail_unknown, print_list, render_keys
from agentv.cli.options import JSON
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_usage
from agentv.errors import PluginError
from agentv.registry import find_provider, provider_names
from agentv.spec.describe import describe_provider


@click.group()
def command() -> None:
    """List providers, and describe one."""


@command.command("list")
@JSON
def list_all(*, as_json: bool) -> None:
    """List every provider, including those of installed packages."""
    print_list("providers", provider_names(), describe_provider, as_json=as_json)


@command.command("describe")
@click.argument("name")
@JSON
def describe_one(name: str, *, as_json: bool) -> None:
    """Describe the keys of a target with this provider."""
    try:
        if find_provider(name) is None:
            fail_unknown("provider", name, provider_names())
        description = describe_provider(name)
    except PluginError as error:
        fail_usage(str(error))
    if as_json:
        print_json(description_data("provider", description))
    else:
        click.echo("\n".join(render_keys("provider", description)))
