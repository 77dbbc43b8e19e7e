"""`agentv completion`: print the completion script of a shell."""

from __future__ import annotations

import json

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
LOAD_COMMANDS = {
    "bash": 'eval "$(agentv completion bash)"',
    "zsh": 'eval "$(agentv completion zsh)"',
    "fish": "agentv completion fish | source",
}


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(context: click.Context, shell: str, *, as_json: bool) -> None:
    """Print the completion script of SHELL; load it in the shell's start-up file."""
    completion_class = get_completion_class(shell)
    if completion_class is None:
        msg = f"no completion for {shell!r}"
        raise click.UsageError(msg)
    script = completion_class(context.find_root().command, {}, "agentv", "_AGENTV_COMPLETE").source()
    if as_json:
        # Not `print_json`: a shell that starts waits for this command, and need not wait for the result files' modules.
        data = {"schema": "agentv.completion/1", "shell": shell, "load": LOAD_COMMANDS[shell], "script": script}
        click.echo(json.dumps(data))
        return
    click.echo(f"# {LOAD_COMMANDS[shell]}")
    click.echo(script)
