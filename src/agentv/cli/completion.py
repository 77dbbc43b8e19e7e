"""`agentv completion`: the script that a shell loads."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")
HOW = {
    "bash": 'eval "$(agentv completion bash)"',
    "zsh": 'eval "$(agentv completion zsh)"',
    "fish": "agentv completion fish | source",
}


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script that completes commands in SHELL; load it in the shell's start-up file."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - only this command needs it

    from agentv.cli.main import group  # noqa: PLC0415 - it loads this module

    found = get_completion_class(shell)
    if found is None:
        msg = f"no completion for {shell!r}"
        raise click.UsageError(msg)
    click.echo(f"# {HOW[shell]}")
    click.echo(found(group, {}, "agentv", "_AGENTV_COMPLETE").source())
