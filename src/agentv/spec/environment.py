"""Environment variables: `${ENV}` in the settings of targets, and `.env` files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentv.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_VARIABLE = re.compile(r"\$(\$)?\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""`${NAME}`, `${NAME:-default}`, and `$${NAME}` for the text `${NAME}`."""


def env_variables(settings: Any) -> Iterator[str]:
    """Yield the names of the `${ENV}` variables in these settings."""
    if isinstance(settings, str):
        yield from (match[2] for match in _VARIABLE.finditer(settings) if not match[1])
    elif isinstance(settings, Mapping):
        for value in settings.values():
            yield from env_variables(value)
    elif isinstance(settings, (list, tuple)):
        for value in settings:
            yield from env_variables(value)


def resolve_env(settings: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings with `${ENV}` variables replaced; variables that are not set are empty."""
    resolved: dict[str, Any] = substitute(dict(settings), environment, [])
    return resolved


def substitute(
    value: Any, environment: Mapping[str, str], missing: list[str], escape: Callable[[str], str] = str
) -> Any:
    """Return the value with `${ENV}` variables replaced once: variables in their values are not replaced.

    The names of variables that are not set are added to `missing`.
    """

    def replace(match: re.Match[str]) -> str:
        escaped, name, default = match.groups()
        if escaped:
            return match[0][1:]
        variable = environment.get(name, default)
        if variable is None:
            missing.append(name)
        return escape(variable or "")

    if isinstance(value, str):
        return _VARIABLE.sub(replace, value)
    if isinstance(value, Mapping):
        return {key: substitute(item, environment, missing, escape) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [substitute(item, environment, missing, escape) for item in value]
    return value


_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
_QUOTES = ("'", '"')


def parse_dotenv(text: str) -> dict[str, str]:
    """Return the variables of a `.env` file; lines without a variable are ignored, and values are not expanded.

    Raises `FormatError` for an invalid value.
    """
    variables = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line.strip())
        if match is not None:
            variables[match[1]] = _parse_value(match[2], f"line {number}")
    return variables


def _parse_value(text: str, where: str) -> str:
    if "\0" in text:
        msg = "the value holds a NUL character, which no variable can"
        raise FormatError(msg, path=where)
    if not text.startswith(_QUOTES):
        return text.partition(" #")[0].rstrip()
    end = text.find(text[0], 1)
    if end < 0:
        msg = "the quote is not closed on this line; a value of several lines cannot be given here"
        raise FormatError(msg, path=where)
    return text[1:end]
