"""A case with `{{ column }}` in its texts, filled from one row after the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from agentv.errors import Problem, suggest
from agentv.jsonio import dump_json
from agentv.spec.cells import ABSENT, ASKS, FIELDS, read_cell
from agentv.spec.check import unknown_key
from agentv.spec.content import FILE
from agentv.spec.entries import CaseEntry

# Linear on any text: what is between the braces holds none. Columns may be called anything.
_NAME = re.compile(r"\{\{([^{}]*)\}\}")
_WHOLE = 3
"""Parts of a text that is one name: nothing, the name, nothing."""
MAX_NAMED = 20
MAX_COMPARED = 500
OURS = ("_file", "_line", "_index")
"""Columns that every row has."""
MISSING: Any = object()
Columns = Mapping[str, Any]
Fill = Callable[[Columns, list[Problem]], Any]


class Template:
    """What a row is made into."""

    def __init__(self, written: Mapping[str, Any]) -> None:
        self.problems: list[Problem] = []
        """Of the template itself, whatever the rows hold."""
        self._fields = {name: self._compile(value, name) for name, value in written.items()}
        self.files = frozenset(_files({name: written[name] for name in ASKS if name in written}))
        """The texts that name a file: `file://` in a column is just text."""
        for name in written:
            if name not in FIELDS:
                self.problems.append(Problem(name, unknown_key(name, CaseEntry.__struct_encode_fields__), "key"))
        if "id" not in written:
            self.problems.append(Problem("id", 'required; without a column for it: id: "{{ _index }}"'))
        if not set(ASKS) & written.keys():
            self.problems.append(Problem("input", "required"))

    def fill(self, columns: Columns, *, is_table: bool) -> tuple[dict[str, Any], list[Problem]]:
        """The case of this row, and the columns that it names in vain."""
        problems: list[Problem] = []
        case = {}
        for name, fill in self._fields.items():
            value = fill(columns, problems)
            if is_table and isinstance(value, str):
                value = read_cell(name, value)
            if value is not ABSENT:
                case[name] = value
        return case, problems

    def _compile(self, value: Any, path: str) -> Fill:
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, list):
            items = [self._compile(item, f"{path}[{at}]") for at, item in enumerate(value)]
            return lambda columns, problems: [fill(columns, problems) for fill in items]
        if isinstance(value, dict):
            fields = {key: self._compile(item, f"{path}.{key}") for key, item in value.items()}
            for key in fields:
                if _NAME.search(key):
                    self.problems.append(Problem(f"{path}.{key}", f"{key!r} is a key; only values are filled", "key"))
            return lambda columns, problems: {key: fill(columns, problems) for key, fill in fields.items()}
        return lambda columns, problems: value  # noqa: ARG005 - one of several that are called alike

    def _text(self, text: str, path: str) -> Fill:
        parts = _NAME.split(text)
        if len(parts) == 1:
            return lambda columns, problems: text  # noqa: ARG005 - one of several that are called alike
        names = [name.strip() for name in parts[1::2]]
        if not all(names):
            self.problems.append(Problem(path, "{{ }} names no column"))
        if len(parts) == _WHOLE and not parts[0] and not parts[2]:
            return lambda columns, problems: _value(columns, names[0], path, problems)
        between = parts[::2]

        def fill(columns: Columns, problems: list[Problem]) -> str:
            # Once and never again: braces in a value stay braces.
            made = [between[0]]
            for name, rest in zip(names, between[1:], strict=True):
                made += [_as_text(_value(columns, name, path, problems)), rest]
            return "".join(made)

        return fill


def find_column(columns: Columns, name: str) -> Any:
    """The value of this column, or of a part of one: `user.city`."""
    if name in columns:
        return columns[name]
    value: Any = columns
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return MISSING
        value = value[part]
    return value


@lru_cache(maxsize=100)  # a guess takes a hundred times as long as a row, and is the same for most
def no_column(name: str, columns: tuple[str, ...]) -> str:
    """That there is no such column, and which one was probably meant."""
    known = [column for column in columns if column not in OURS]
    named = ", ".join(known[:MAX_NAMED]) + (", …" if len(known) > MAX_NAMED else "")
    near = suggest(name.strip("{} '"), columns[-MAX_COMPARED:], ". Did")
    return f"{name} names no column; there are {named or 'none'}{near}"


def _value(columns: Columns, name: str, path: str, problems: list[Problem]) -> Any:
    value = find_column(columns, name)
    if value is not MISSING:
        return value
    problems.append(Problem(path, no_column(f"{{{{ {name} }}}}", tuple(columns)), "whole"))
    return ""


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else dump_json(value).decode()


def _files(value: Any, path: str = "") -> Iterator[str]:
    """The paths of all texts that name a file."""
    if isinstance(value, str) and value.startswith(FILE):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _files(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _files(item, f"{path}[{at}]")
