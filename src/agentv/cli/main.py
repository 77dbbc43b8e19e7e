"""Entry point of the command line; the module of a command is loaded when the command is called."""

from __future__ import annotations

import errno
import gc
import os
import sys
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import click

from agentv import __version__
from agentv.cli.problems import hide_passwords, print_error, print_problems, redirect_to_devnull
from agentv.errors import AgentVError
from agentv.exit_codes import ExitCode
from agentv.other_tools import command_meant
from agentv.suggestions import suggest

COMMANDS = {
    "eval": "Run evals and report the results.",
    "init": "Create a small project that runs without an API key.",
    "compare": "Compare two executions.",
    "calibrate": "Measure the agreement of a judge with people.",
    "runs": "List, show, diff, export, import and copy stored runs.",
    "executions": "List, show, export and delete stored executions.",
    "cases": "Write cases from stored runs and traces.",
    "score": "Score sessions of stored traces, without calling an agent.",
    "import": "Store sessions of traces as runs.",
    "convert": "Convert sessions of traces to another form.",
    "export": "Write stored runs as OpenTelemetry spans.",
    "view": "Show stored runs in the browser.",
    "report": "Write an execution as one HTML file.",
    "rescore": "Evaluate stored runs again, without calling an agent.",
    "mutate": "Find changes of passing runs that an eval does not notice.",
    "coverage": "Show which tools no eval checks.",
    "merge": "Merge the results of all shards into one execution.",
    "convert-eval": "Convert evals of other tools.",
    "validate": "Check eval files without running anything.",
    "target": "List targets, and check that one answers.",
    "evaluators": "List evaluators, and describe one.",
    "providers": "List providers, and describe one.",
    "schema": "Print the JSON Schema of eval files.",
    "completion": "Print the completion script of a shell.",
    "help": "Print a short text about a topic.",
    "docs": "Print the address of the documentation.",
}
COMMANDS_OF_OTHER_MODULES = {
    "import": ("import_traces", "command"),
    "providers": ("evaluators", "providers_command"),
    "docs": ("help", "docs_command"),
}
"""Commands that share a module, or whose name no module can have: the name of the module, and theirs in it."""
MEASURING_COMMANDS = ("eval", "calibrate", "score", "rescore", "merge", "mutate", "coverage")
"""Commands whose exit code 0 means that everything passed."""
BUG_REPORT = "This is a bug in agentv. Please report it with the lines above and what you ran."


class LazyGroup(click.Group):
    """A group that lists all commands and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which users meet them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of this name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS_OF_OTHER_MODULES.get(cmd_name, (cmd_name.replace("-", "_"), "command"))
        command: click.Command = getattr(import_module(f"agentv.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command; suggest one if its name is unknown."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            meant = command_meant(args[0])
            hint = f"; did you mean 'agentv {meant}'?" if meant else suggest(args[0], COMMANDS)
            names = f"one of {', '.join(COMMANDS)}"
            ctx.fail(f"no command {args[0]!r}{f'{hint} Expected' if hint else '; expected'} {names}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that closes the pipe is no failure, though `click` would exit with 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            redirect_to_devnull(sys.stdout)
            measures = ctx.invoked_subcommand in MEASURING_COMMANDS and "--dry-run" not in sys.argv
            return ExitCode.ERROR if measures else ExitCode.OK


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    no_args_is_help=True,
)
@click.version_option(__version__, prog_name="agentv", message="%(prog)s %(version)s")
def group() -> None:
    """Is your agent doing the right things? Runs it on your cases and checks its tool calls, messages and cost."""


def _open_missing_streams() -> None:
    """Open devnull as stdout or stderr of a process that was started without one."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - for the whole command


def main(prog_name: str = "agentv") -> None:
    """Run the command line; an unexpected exception has an exit code of its own, never that of a verdict."""
    _open_missing_streams()
    # Imported modules live as long as the command: scanning them for garbage, repeatedly and once more at the end,
    # took 25 of the 140 ms of start-up.
    gc.disable()
    try:
        sys.exit(group(prog_name=prog_name, standalone_mode=False) or ExitCode.OK)
    except click.ClickException as error:
        vars(error)["message"] = hide_passwords(error.message)  # `Final` for type checkers
        with error.ctx.scope(cleanup=False) if isinstance(error, click.UsageError) and error.ctx else nullcontext():
            _print_json(error.format_message(), error.exit_code)
        try:
            error.show()
        except OSError:  # the exit code still counts
            redirect_to_devnull(sys.stderr)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last resort
        if reason := _expected_failure(error):
            _print_json(*reason)
            print_error(f"agentv: {reason[0]}")
            sys.exit(reason[1])
        sys.excepthook(type(error), error, error.__traceback__)
        print_error(BUG_REPORT)
        sys.exit(ExitCode.BUG)
    finally:
        gc.freeze()


def _print_json(message: str, code: int) -> None:
    """Print the problem as JSON if `--json` was given; after a wrong option `click` has not parsed it."""
    if "--json" in sys.argv:
        print_problems([message], code)


def _expected_failure(error: Exception) -> tuple[str, ExitCode] | None:
    """Return the message and exit code of an exception that is not a bug of agentv; `None` for a bug."""
    if isinstance(error, AgentVError):
        return str(error), ExitCode.ERROR
    if isinstance(error, UnicodeEncodeError):  # the store and result files accept UTF-8 only
        odd = [arg for arg in sys.argv[1:] if arg.encode(errors="replace") != arg.encode(errors="surrogateescape")]
        return (f"{odd[0]!a} is not valid UTF-8", ExitCode.USAGE) if odd else None
    return _system_failure(error) if isinstance(error, OSError) else None


def _system_failure(error: OSError) -> tuple[str, ExitCode] | None:
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}", ExitCode.USAGE
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        redirect_to_devnull(sys.stdout)
        return f"the results cannot be written: {error.strerror}; make room and run it again", ExitCode.ERROR
    try:
        os.getcwd()  # noqa: PTH109 - pathlib is not loaded here
    except OSError:
        return "the current folder is no longer there; go to one that is", ExitCode.USAGE
    return None
