"""What is wrong with the settings of a program, before anything runs."""

import re
from collections.abc import Iterator
from typing import Literal

from agentv.errors import Problem
from agentv.providers.cli_command import PLACEHOLDER, PLACEHOLDERS
from agentv.providers.cli_start import is_path

Mode = Literal["single", "batch", "stream"]
_NAME_IN_BRACES = re.compile(r"(?<!\$)\{([A-Za-z][A-Za-z0-9_-]*)\}")  # `${NAME}` is for the program to read
_VARIABLE = re.compile(r"[^\s=$%{}\0]+")
_REFUSED: dict[str, tuple[str, ...]] = {
    "batch": ("prompt", "case_id", "attempt"),
    "stream": ("prompt", "case_id", "attempt", "input_file", "output_file"),
}
_INSTEAD = {
    "batch": "one process gets many requests: leave it out and read them from `{input_file}` or from stdin",
    "stream": "one process gets many requests: leave it out, read them from stdin and answer on stdout",
}


def check_command(command: tuple[str, ...] | str, mode: Mode, path: str) -> Iterator[Problem]:
    """What is wrong with a command."""
    if isinstance(command, str):
        yield Problem(path, f"expected a list of arguments, got {command!r}: write {command.split()!r}")
        return
    if not command or not command[0].strip():
        yield Problem(path, "expected a program as the first item of the list")
        return
    if len(command) == 1 and " " in command[0].strip() and not is_path(command[0]):
        yield Problem(f"{path}[0]", f"expected a list with one item for each argument: write {command[0].split()!r}")
    if PLACEHOLDER.search(command[0]):
        yield Problem(f"{path}[0]", f"expected the name of a program, got {command[0]!r}: a request cannot choose it")
    for index, argument in enumerate(command):
        yield from _check_argument(argument, mode, f"{path}[{index}]")


def _check_argument(argument: str, mode: Mode, path: str) -> Iterator[Problem]:
    if "\0" in argument:
        yield Problem(path, "holds a NUL, which no argument can")
    for name in _NAME_IN_BRACES.findall(argument):
        if name in _REFUSED.get(mode, ()):
            yield Problem(path, f"`{{{name}}}` is for `mode: single`; with `mode: {mode}` {_INSTEAD[mode]}")
        meant = None if name in PLACEHOLDERS else _guess(name)
        if meant is not None:
            yield Problem(path, f"unknown placeholder `{{{name}}}`; did you mean `{{{meant}}}`?")


def _guess(name: str) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    by_letters = {known.replace("_", ""): known for known in PLACEHOLDERS}
    close = get_close_matches(re.sub("[_-]", "", name).lower(), by_letters, n=1, cutoff=0.7)
    return by_letters[close[0]] if close else None


def check_names(names: tuple[str, ...], path: str) -> Iterator[Problem]:
    """What is wrong with names of environment variables."""
    for index, name in enumerate(names):
        if not _VARIABLE.fullmatch(name):
            expected = "the name of an environment variable alone: its value comes from the environment"
            yield Problem(f"{path}[{index}]", f"expected {expected}, got {name!r}")


def check_mode(mode: Mode, key: str, belongs_to: Mode, path: str, *, is_default: bool) -> Iterator[Problem]:
    """What is wrong with a setting that only one mode has."""
    if mode != belongs_to and not is_default:
        yield Problem(f"{path}.{key}", f"has no meaning with `mode: {mode}`: remove it, or write `mode: {belongs_to}`")
