"""Where `agentv` on the command line begins: each command's module is loaded when it is called."""

from __future__ import annotations

import gc
import sys
from typing import Any

import click

from agentv import __version__
from agentv.cli.exit_codes import BUG, ERROR, INTERRUPTED, USAGE, print_error, print_problems

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
MEASURES = ("eval", "calibrate", "rescore", "merge")
"""Commands of which 0 would say that all is well."""
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

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whoever closes the pipe has seen enough, which `click` would take for an exit code of 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            from agentv.cli.exit_codes import redirect_stdout_to_devnull  # noqa: PLC0415 - only a broken pipe needs it

            redirect_stdout_to_devnull()
            measures = ctx.invoked_subcommand in MEASURES and "--dry-run" not in sys.argv
            return ERROR if measures else 0


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
        _say_json(error.format_message(), error.exit_code)
        try:
            error.show()
        except OSError:  # where nobody can be told, the exit code still counts
            from agentv.cli.exit_codes import silence  # noqa: PLC0415 - only a broken stream needs it

            silence(sys.stderr)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last resort
        if known := _known(error):
            _say_json(*known)
            print_error(f"agentv: {known[0]}")
            sys.exit(known[1])
        from traceback import print_exc  # noqa: PLC0415 - only a bug needs it

        print_exc()
        print_error(REPORT)
        sys.exit(BUG)
    finally:
        gc.freeze()


def _say_json(message: str, code: int) -> None:
    """Tell a program, too, where it asked for JSON; options that are wrong leave nothing but the words themselves."""
    if "--json" in sys.argv:
        print_problems([message], code)


def _known(error: Exception) -> tuple[str, int] | None:
    """What to say, and how to end, where the reason is no mistake of ours."""
    from agentv.errors import AgentVError  # noqa: PLC0415 - only a failure needs it

    if isinstance(error, AgentVError):
        return str(error), ERROR
    if isinstance(error, UnicodeEncodeError):  # a store and a file of results take nothing else
        odd = [each for each in sys.argv[1:] if each.encode(errors="replace") != each.encode(errors="surrogateescape")]
        return (f"{odd[0]!a} is not valid UTF-8", USAGE) if odd else None
    return _of_the_system(error) if isinstance(error, OSError) else None


def _of_the_system(error: OSError) -> tuple[str, int] | None:
    import errno  # noqa: PLC0415 - only a failure needs it
    from pathlib import Path  # noqa: PLC0415 - as above

    from agentv.cli.exit_codes import redirect_stdout_to_devnull  # noqa: PLC0415 - as above

    if error.filename is not None:
        return f"{error.filename}: {error.strerror}", USAGE
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        redirect_stdout_to_devnull()
        return f"the results cannot be written: {error.strerror}; make room and run it again", ERROR
    try:
        Path.cwd()
    except OSError:
        return "the current folder is no longer there; go to one that is", USAGE
    return None
