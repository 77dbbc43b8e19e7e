"""A `command` that is written as one text: split into arguments as a shell does, without a shell."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from agentv.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

SPLIT = {"cli", "code"}
"""Providers and evaluators whose `command` may be one text."""
_VARIABLE = re.compile(r"\$\$?\{[^}]*\}|\{\{[^{}]*\}\}")
_KEPT = re.compile("\ue000(\\d+)\ue001")
_OPERATOR = re.compile(r"\|\|?|&&?|;|<<?|\d?>>?.*")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=.*", re.DOTALL)
_EXPANSION = re.compile(r"`|\$\(|\$[A-Za-z_]")


def split_command(settings: Mapping[str, Any], kind: str, path: str) -> tuple[Mapping[str, Any], list[Problem]]:
    """Return the settings with `command` as a list, and the problems of a text that only a shell would understand."""
    command = settings.get("command")
    if kind not in SPLIT or not isinstance(command, str):
        return settings, []
    try:
        words = _split(command)
    except ValueError:
        return settings, [Problem(f"{path}.command", "a quote is not closed")]
    if not words:
        return settings, [Problem(f"{path}.command", "expected a program and its arguments, got an empty text")]
    problem = _needs_shell(command, words)
    return {**settings, "command": words}, [Problem(f"{path}.command", problem)] if problem else []


def _split(command: str) -> list[str]:
    """Split a command; `${NAME}` stays in one word, whatever the value or the default contains."""
    variables: list[str] = []

    def keep(match: re.Match[str]) -> str:
        variables.append(match[0])
        return f"\ue000{len(variables) - 1}\ue001"

    words = shlex.split(_VARIABLE.sub(keep, command))
    return [_KEPT.sub(lambda match: variables[int(match[1])], word) for word in words]


def _needs_shell(command: str, words: list[str]) -> str:
    """Return the problem of a command with a pipe, a redirection or the like; empty if there is none."""
    advice = "there is no shell: put it into a script, or write `command: [sh, -c, '...']`"
    operator = next((word for word in words if _OPERATOR.fullmatch(word)), None)
    if operator is not None:
        return f"{operator!r} means nothing here, {advice}"
    if _ASSIGNMENT.fullmatch(words[0]):
        return f"{words[0]!r} is no program: name the variables that the program may see in `env`"
    expansion = _EXPANSION.search(_VARIABLE.sub("", command))
    if expansion is not None:
        return f"`{expansion[0]}` is not expanded, {advice}; environment variables are written `${{NAME}}`"
    return ""


def at_command(problem: Problem, path: str) -> Problem:
    """Return a problem of one argument as a problem of the whole text, which is one value in the file."""
    is_inside = problem.path.startswith(f"{path}.command[")
    return problem._replace(path=f"{path}.command") if is_inside else problem
