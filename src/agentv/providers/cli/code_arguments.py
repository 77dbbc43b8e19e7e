"""Arguments of a command that a shell or an interpreter runs as code, in which text of a request must not occur."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class CodeArgument(NamedTuple):
    """Argument that is run as code."""

    at: int
    """Index in the command."""
    program: str
    """Program that runs it, such as `sh -c`."""
    fix: str
    """Way to pass a text to that program as data."""


class _Interpreter(NamedTuple):
    """Command line of a program that runs code."""

    code: str = ""
    """Letters of options whose value is code."""
    values: str = ""
    """Letters of options with another value."""
    long_code: tuple[str, ...] = ()
    """Long options whose value is code."""
    long_values: tuple[str, ...] = ()
    """Long options with another value, in the next argument."""
    pairs: tuple[str, ...] = ()
    """Long options with two values."""
    stops: str = ""
    """Letters of options that name a file or a module to run: the rest are its arguments."""
    code_operands: tuple[int, ...] = ()
    """Positions of operands that are code, unless an option brought code."""
    is_all_code: bool = False
    """True if every argument is code."""
    has_operands: bool = False
    """True if operands may stand before the options; otherwise the first one is a script file."""
    fix: str = "pass it as an argument of its own"


_SHELL_FIX = """pass it as an argument of its own, as in [sh, -c, 'agent "$1"', sh, "{prompt}"]"""
_SQL_FIX = "pass it as a parameter of the statement"
_SHELL = _Interpreter(fix=_SHELL_FIX)
_PYTHON = _Interpreter("c", "WX", stops="m", fix="pass it as an argument and read sys.argv[1]")
_NODE = _Interpreter(
    "ep",
    "rC",
    ("--eval", "--print"),
    ("--require", "--import", "--loader", "--conditions"),
    fix="pass it as an argument and read process.argv[1]",
)
_DENO_EVAL = _Interpreter(is_all_code=True, fix="write a script that reads Deno.args[0]")
_AWK = _Interpreter("e", "vFi", ("--source",), ("--assign",), stops="f", code_operands=(0,), fix="pass it with -v")
_JQ = _Interpreter(
    values="L",
    long_values=("--indent",),
    pairs=("--arg", "--argjson", "--slurpfile", "--rawfile"),
    stops="f",
    code_operands=(0,),
    fix="pass it with --arg",
)
_ALL = _Interpreter(is_all_code=True, fix="let the program read it from a file or from stdin")
_SSH = _Interpreter(is_all_code=True, fix="let the program on the other side read it from stdin")
_RUNS_SHELL = _Interpreter("c", long_code=("--command", "--run"), has_operands=True, fix=_SHELL_FIX)

_SHELLS = ("sh", "bash", "zsh", "dash", "ksh", "mksh", "pdksh", "ash", "rbash", "yash", "fish", "csh", "tcsh", "nu")
_INTERPRETERS: dict[str, _Interpreter] = {
    **dict.fromkeys(_SHELLS, _SHELL),
    **dict.fromkeys(("python", "pythonw", "pypy", "ipython", "py", "xonsh", "micropython"), _PYTHON),
    **dict.fromkeys(("node", "nodejs", "bun", "tsx", "ts-node"), _NODE),
    "perl": _Interpreter("eE", "IMm", fix="pass it as an argument and read $ARGV[0]"),
    "ruby": _Interpreter("e", "ICrEx", fix="pass it as an argument and read ARGV[0]"),
    "php": _Interpreter("rBRE", "cdz", ("--run",), stops="fF", fix="pass it as an argument and read $argv[1]"),
    **dict.fromkeys(("lua", "luajit"), _Interpreter("e", "l", fix="pass it as an argument and read arg[1]")),
    **dict.fromkeys(("r", "rscript"), _Interpreter("e", "g", fix="pass it as an argument and read commandArgs(TRUE)")),
    "julia": _Interpreter("eE", "LCtp", ("--eval", "--print"), fix="pass it as an argument and read ARGS[1]"),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _AWK),
    "sed": _Interpreter("e", "l", ("--expression",), stops="f", code_operands=(0,)),
    "jq": _JQ,
    "osascript": _Interpreter("e", "ls", fix="pass it as an argument of `on run argv`"),
    "expect": _Interpreter("c", fix="pass it as an argument and read [lindex $argv 0]"),
    **dict.fromkeys(
        ("psql", "duckdb"), _Interpreter("c", "dhpUfoFPRTvL", ("--command",), has_operands=True, fix=_SQL_FIX)
    ),
    **dict.fromkeys(("mysql", "mariadb"), _Interpreter("e", "hPuDS", ("--execute",), has_operands=True, fix=_SQL_FIX)),
    "sqlite3": _Interpreter(code_operands=(1, 2, 3, 4), fix=_SQL_FIX),
    **dict.fromkeys(("su", "runuser", "script", "flock", "nix-shell"), _RUNS_SHELL),
    **dict.fromkeys(("ssh", "autossh", "slogin", "rsh", "plink", "mosh"), _SSH),
    # They pass all their arguments to a shell; `make` does it in its recipes.
    **dict.fromkeys(("eval", "watch", "parallel", "make", "gmake", "cmd"), _ALL),
}
_POWERSHELL_FIX = """pass it as an argument of a script, as in [pwsh, -File, agent.ps1, "{prompt}"]"""
_VERSION = re.compile(r"[-_]?[0-9][0-9.]*$")
_EVALUATES = re.compile(r"\beval\b|\b(?:ba|da|z|k|a)?sh\s+-\w*c\b|(?<![.\w$])exec\s*\(")
"""Script that runs its arguments as code."""
_POWERSHELL_FILE = re.compile(r"[-/]f(i(l(e)?)?)?$", re.IGNORECASE)
_POWERSHELL_COMMAND = re.compile(r"[-/](c(o(m(m(a(n(d)?)?)?)?)?)?|e(c|n\w*)?)$", re.IGNORECASE)
_ANY_CODE_OPTION = re.compile(r"-[a-zA-Z]*[ce]$|--(eval|command|execute|run)$")
_WRAPPERS = frozenset((
    *("env", "nice", "ionice", "nohup", "setsid", "stdbuf", "timeout", "gtimeout", "time", "sudo", "doas", "command"),
    *("exec", "chroot", "unshare", "taskset", "xargs", "find", "busybox", "uv", "uvx", "poetry", "pipenv", "pdm"),
    *("rye", "hatch", "conda", "mamba", "micromamba", "npx", "pnpm", "npm", "yarn", "bunx", "docker", "podman"),
    *("nerdctl", "kubectl", "oc", "bwrap", "firejail", "strace", "ltrace", "gosu", "tini", "dumb-init"),
    *("direnv", "mise", "sshpass", "flock", "watch", "parallel"),
))  # fmt: skip
"""Programs that start the program that their arguments name."""


def find_code_arguments(command: Sequence[str]) -> Iterator[CodeArgument]:
    """Yield the arguments that are run as code: scripts of `sh -c`, `python -c` and the like, also behind `env`.

    The arguments after a script file or a module belong to a program that is not known, and are data.
    """
    if "${" in command[0]:
        yield from _unknown_program_code(command)
    for start, argument in enumerate(command):
        name = _program_name(argument)
        if name == "env":
            yield from _split_by_env(command, start)
        if start > 0 and not _is_started(command, start, name):
            continue
        found = list(_code_of(command, start, name))
        yield from found
        interpreter = _INTERPRETERS.get(name)
        if found or (start == 0 and interpreter is not None and not interpreter.has_operands):
            return


def _code_of(command: Sequence[str], start: int, name: str) -> Iterator[CodeArgument]:
    """Yield the code among the arguments of one program."""
    if name in ("pwsh", "powershell"):
        return _powershell_code(command, start, name)
    interpreter = _DENO_EVAL if name == "deno" and "eval" in command[start + 1 :] else _INTERPRETERS.get(name)
    if interpreter is None:
        return iter(())
    if interpreter is _SHELL:
        return _shell_code(command, start, name)
    if interpreter.is_all_code:
        return (CodeArgument(index, name, interpreter.fix) for index in range(start + 1, len(command)))
    return _interpreter_code(command, start, name, interpreter)


def _program_name(argument: str) -> str:
    """Return the name of a program without its folder, its version and the suffix of Windows."""
    name = re.split(r"[/\\]", argument)[-1].lower().removesuffix(".exe")
    return name if name in _INTERPRETERS else _VERSION.sub("", name)


def _is_started(command: Sequence[str], start: int, name: str) -> bool:
    """Return whether an argument is a program that the one before it starts, and not a value as in `--lang python`."""
    interpreter = _INTERPRETERS.get(name)
    is_wrapped = _program_name(command[0]) in _WRAPPERS
    if interpreter is _ALL:  # these names are words of many programs
        return is_wrapped and start == 1
    before = command[start - 1]
    following = command[start + 1] if start + 1 < len(command) else ""
    is_direct = following.startswith(("-", "/")) and not before.startswith("-")
    return is_wrapped or before in ("--", "-exec", "-execdir") or is_direct


def _shell_code(command: Sequence[str], start: int, name: str) -> Iterator[CodeArgument]:
    """Yield the script of a shell: the first operand if an option contains `c`, and its arguments if it runs them."""
    runs_script = False
    index = start + 1
    while index < len(command):
        argument = command[index]
        option, equals, _ = argument.partition("=")
        if option in ("--command", "--init-command"):
            runs_script = runs_script or not equals
            if equals:
                yield CodeArgument(index, f"{name} {option}", _SHELL_FIX)
        elif argument in ("--rcfile", "--init-file"):
            index += 1
        elif argument[:1] in ("-", "+") and not argument.startswith("--"):
            runs_script = runs_script or "c" in argument.lower()
            index += argument.count("o") + argument.count("O")
        elif not argument.startswith("--"):
            break
        index += 1
    if runs_script and index < len(command):
        yield CodeArgument(index, f"{name} -c", _SHELL_FIX)
        yield from _evaluated(command, index, f"{name} -c")


def _interpreter_code(
    command: Sequence[str], start: int, name: str, interpreter: _Interpreter
) -> Iterator[CodeArgument]:
    """Yield the code in options and operands of an interpreter."""
    operands, code_at = 0, None
    index = start + 1
    while index < len(command):
        if command[index].startswith("-"):
            option = _read_option(command, index, interpreter)
            if option.stops:
                return
            if option.code_at is not None:
                code_at = option.code_at
                yield CodeArgument(code_at, f"{name} {option.name}", interpreter.fix)
            index += option.size
            continue
        if code_at is not None and not interpreter.has_operands:
            yield from _evaluated(command, code_at, name)
            return
        if operands in interpreter.code_operands:
            yield CodeArgument(index, name, interpreter.fix)
        elif not interpreter.code_operands and not interpreter.has_operands:
            return  # a script file: the rest are its arguments
        operands += 1
        index += 1


class _Option(NamedTuple):
    """Option in a command line."""

    name: str
    size: int = 1
    """Number of arguments that it takes, its own included."""
    code_at: int | None = None
    """Index of the argument with its code."""
    stops: bool = False
    """True if it names a file or a module to run."""


def _read_option(command: Sequence[str], index: int, interpreter: _Interpreter) -> _Option:
    argument = command[index]
    if argument.startswith("--"):
        return _read_long_option(command, index, interpreter)
    for position, letter in enumerate(argument[1:], 2):
        value = argument[position:]
        if letter in interpreter.stops:
            return _Option(f"-{letter}", stops=True)
        if letter in interpreter.code:
            if value.strip(interpreter.code):
                return _Option(f"-{letter}", 1, index)
            return _Option(f"-{letter}", 2, min(index + 1, len(command) - 1))  # also `node -pe CODE`
        if letter in interpreter.values:
            return _Option(f"-{letter}", 1 if value else 2)
    return _Option(argument)


def _read_long_option(command: Sequence[str], index: int, interpreter: _Interpreter) -> _Option:
    argument = command[index]
    name, equals, _ = argument.partition("=")
    if name in interpreter.long_code:
        return _Option(name, 1, index) if equals else _Option(name, 2, min(index + 1, len(command) - 1))
    size = 3 if argument in interpreter.pairs else 2 if argument in interpreter.long_values else 1
    return _Option(name, size, stops=argument == "--from-file")


def _evaluated(command: Sequence[str], script_at: int, program: str) -> Iterator[CodeArgument]:
    """Yield the arguments of a script that runs them as code."""
    if _EVALUATES.search(command[script_at]):
        fix = "this script runs its arguments as code; let it use them as data"
        yield from (CodeArgument(index, program, fix) for index in range(script_at + 1, len(command)))


def _powershell_code(command: Sequence[str], start: int, name: str) -> Iterator[CodeArgument]:
    """Yield the arguments after `-Command`, which PowerShell joins to one script; none if it runs a file."""
    arguments = range(start + 1, len(command))
    first = next((at for at in arguments if _POWERSHELL_COMMAND.match(command[at])), None)
    file = next((at for at in arguments if _POWERSHELL_FILE.match(command[at])), None)
    if first is None and (file is not None or name == "pwsh"):
        return
    if first is not None and file is not None and file < first:
        return
    begin = start if first is None else first
    yield from (CodeArgument(index, name, _POWERSHELL_FIX) for index in range(begin + 1, len(command)))


def _split_by_env(command: Sequence[str], start: int) -> Iterator[CodeArgument]:
    """Yield the argument of `env -S`, which is split into a command."""
    for index in range(start + 1, len(command)):
        argument = command[index]
        if argument in ("-S", "-vS", "-iS", "--split-string"):
            yield CodeArgument(index + 1, "env -S", "write its words as items of the list")
        elif argument.startswith(("-S", "-vS", "-iS", "--split-string=")):
            yield CodeArgument(index, "env -S", "write its words as items of the list")
        elif not argument.startswith("-"):
            return


def _unknown_program_code(command: Sequence[str]) -> Iterator[CodeArgument]:
    """Yield the arguments after an option such as `-c`: the program that a variable names may be an interpreter."""
    for index, option in enumerate(command[1:-1], 1):
        if _ANY_CODE_OPTION.match(option):
            yield CodeArgument(index + 1, f"{command[0]} {option}", "pass it as an argument of its own")
