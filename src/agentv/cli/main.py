"""Where `agentv` on the command line begins: each command's module is loaded when it is called."""

from __future__ import annotations

import gc
import sys
from typing import Any

import click

from agentv import __version__
from agentv.cli.exits import BUG, INTERRUPTED

COMMANDS = {
    "eval": "Run evals and say what held and what did not.",
    "init": "Make a small project that runs without any API key.",
    "compare": "Say whether one execution is better or worse than another.",
    "calibrate": "Say how far a judge agrees with people.",
    "runs": "Look into the run store: list, show, export, import, delete.",
    "rescore": "Evaluate kept runs again, without asking any agent.",
    "merge": "Put the results of all shards together as one execution.",
    "validate": "Check eval files without running anything.",
    "target": "List the targets there are, and ask one whether it works.",
    "evaluators": "List the evaluators there are, and describe one.",
    "schema": "Print the JSON Schema of eval files.",
    "completion": "Print the script that completes commands in a shell.",
}
REPORT = "This is a bug in agentv. Please report it with the lines above and what you ran."


class LazyGroup(click.Group):
    """Lists every command and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order in which people meet them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module  # noqa: PLC0415 - `--help` needs none of them

        command: click.Command = getattr(import_module(f"agentv.cli.{cmd_name}"), "command")  # noqa: B009
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list without importing what it names."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Say which command was probably meant."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from agentv.errors import suggest  # noqa: PLC0415 - only a mistake needs it

            hint = suggest(args[0], COMMANDS) or f"; expected one of {', '.join(COMMANDS)}"
            ctx.fail(f"no command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    no_args_is_help=True,
)
@click.version_option(__version__, prog_name="agentv", message="%(prog)s %(version)s")
def group() -> None:
    """Is your agent doing the right things? Runs it on your cases and checks its tool calls, messages and cost."""


def _open_streams() -> None:
    """Give a command that was started without stdout or stderr somewhere to write to."""
    import os  # noqa: PLC0415 - it is loaded already

    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - for the whole command


def main(prog_name: str = "agentv") -> None:
    """Run the command line; an exception of ours says so and is never taken for a verdict."""
    _open_streams()
    # What is imported lives as long as the command: looking through it for garbage, again and again and once more at
    # the end, took 25 of the 140 ms that it takes to get ready.
    gc.disable()
    try:
        sys.exit(group(prog_name=prog_name, standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except Exception:  # noqa: BLE001 - the last resort
        from traceback import print_exc  # noqa: PLC0415 - only a bug needs it

        print_exc()
        click.echo(REPORT, err=True)
        sys.exit(BUG)
    finally:
        gc.freeze()
