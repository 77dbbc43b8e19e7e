"""Where `agentv` on the command line begins."""

import click

from agentv import __version__


@click.command(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True)
@click.version_option(__version__, prog_name="agentv", message="%(prog)s %(version)s")
def main() -> None:
    """Score what an AI agent did: its tool calls, its messages, its cost."""
