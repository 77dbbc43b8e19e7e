"""Columns of a dataset: cells of a table, templates, and the `where` filter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from agentv.errors import Problem
from agentv.spec.cases import CAMEL_CASE, MESSAGE_FIELDS
from agentv.spec.file_format import CaseEntry, NotEntry
from agentv.spec.messages import FILE_PREFIX
from agentv.spec.validation import unknown_key_message
from agentv.suggestions import closest, suggest
from agentv.templating import MISSING, Template, check_keys, iter_placeholders, lookup, to_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.spec.file_format import Plain


FIELDS = frozenset([*CaseEntry.__struct_encode_fields__, *CAMEL_CASE])
INPUT_FIELDS = ("input_messages", "input", "inputMessages")
"""All names of the input of a case."""
CONVERSATION_FIELDS = ("turns", "simulate")
"""Fields that make a case a conversation, which needs no input."""
TEXT_FIELDS = frozenset(["id", "description", *MESSAGE_FIELDS, *MESSAGE_FIELDS.values(), *CAMEL_CASE])
"""Fields in which a cell is taken as text."""
ABSENT: Any = object()
SEPARATORS = ",;\t|"


def check_columns(columns: Sequence[str]) -> str:
    """Return the reason why a table of these columns needs a template, or an empty string."""
    needed = {"id": ("id",), "input": (*INPUT_FIELDS, *CONVERSATION_FIELDS)}
    missing = [name for name, words in needed.items() if not set(words) & set(columns)]
    if missing:
        named = " and no column ".join(map(repr, missing))
        near = "".join([suggest(name, columns, ". Did") for name in missing][:1]) or "."
        odd = len(columns) == 1 and not set(SEPARATORS).isdisjoint(columns[0])
        fix = "Write `format: tsv` for tabs, or separate them by commas" if odd else "Rename one, or add a `template`"
        return f"no column {named} among {', '.join(columns)}{near} {fix}"
    for name in columns:
        # Other columns become `vars`, so a misspelt `evaluators` would silently check nothing.
        if name not in FIELDS and (field := closest(name.replace(" ", ""), FIELDS - CAMEL_CASE.keys(), 0.8)):
            return f"the column {name!r} is no field of a case; did you mean {field!r}? Rename it, or add a `template`"
    return ""


def row_to_case(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the case of a row: columns with the name of a field are fields, all others are `vars`."""
    case: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, text in cells.items():
        if name not in FIELDS:
            values[name] = text
        elif text and (value := read_cell(name, text)) is not ABSENT:
            case[name] = value
    own = case.get("vars", {})
    # A value that is not a mapping is left for the case reader to reject.
    return {**case, "vars": {**own, **values}} if values and isinstance(own, dict) else case


def read_cell(field: str, text: str) -> Any:
    """Return the value of a cell for a field; an invalid one stays text, which the case reader rejects."""
    if field in TEXT_FIELDS:
        return text
    if not text.strip():
        return ABSENT
    if field == "tags":
        return [tag for part in text.split(",") if (tag := part.strip())]
    if field in ("skip", "only"):
        return {"true": True, "false": False}.get(text.strip().lower(), text)
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return text


MAX_NAMED = 20
MAX_COMPARED = 500
BUILT_IN_COLUMNS = ("_file", "_line", "_index")
"""Columns that every row has."""
Columns = Mapping[str, Any]


class CaseTemplate:
    """A template that turns a row into a case: `{{ column }}` in any text, at any depth."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.problems: list[Problem] = []
        """Problems of the template itself, independent of the rows."""
        for name, value in config.items():
            empty = [placeholder.path for placeholder in iter_placeholders(value, name) if not placeholder.name]
            self.problems += [Problem(path, "{{ }} names no column") for path in dict.fromkeys(empty)]
            self.problems += check_keys(value, name)
        template = Template(_resolve)
        self._fields = {name: template.compile(value, name) for name, value in config.items()}
        with_files = {name: config[name] for name in (*INPUT_FIELDS, "turns") if name in config}
        self.files = frozenset(_file_paths(with_files))
        """Paths of the texts that name a file; `file://` in a column is plain text."""
        for name in config:
            if name not in FIELDS:
                self.problems.append(
                    Problem(name, unknown_key_message(name, CaseEntry.__struct_encode_fields__), "key")
                )
        if "id" not in config:
            self.problems.append(Problem("id", 'required; without a column for it: id: "{{ _index }}"'))
        if not {*INPUT_FIELDS, *CONVERSATION_FIELDS} & config.keys():
            self.problems.append(Problem("input", "required"))

    def fill(self, columns: Columns, *, is_table: bool) -> tuple[dict[str, Any], list[Problem]]:
        """Return the case of a row, and a problem for each column that does not exist."""
        context = _Row(columns, [])
        case = {}
        for name, fill in self._fields.items():
            value = fill(context)
            if is_table and isinstance(value, str):
                value = read_cell(name, value)
            elif is_table and name in TEXT_FIELDS and not isinstance(value, (list, dict)):
                value = to_text(value)  # a typed column
            if value is not ABSENT:
                case[name] = value
        return case, context.problems


class _Row(msgspec.Struct, frozen=True):
    columns: Columns
    problems: list[Problem]


def _resolve(row: _Row, name: str, path: str) -> Any:
    value = find_column(row.columns, name)
    if value is MISSING:
        row.problems.append(Problem(path, missing_column(f"{{{{ {name} }}}}", tuple(row.columns)), "whole"))
        return ""
    return value


def find_column(columns: Columns, name: str) -> Any:
    """Return the value of a column, or of a part of it (`user.city`), or `MISSING`."""
    return columns[name] if name in columns else lookup(columns, name)


@lru_cache(maxsize=100)  # a suggestion takes a hundred times as long as a row, and is the same for most rows
def missing_column(name: str, columns: tuple[str, ...]) -> str:
    """Return the message for a column that does not exist, with a suggestion."""
    known = [column for column in columns if column not in BUILT_IN_COLUMNS]
    named = ", ".join(known[:MAX_NAMED]) + (", …" if len(known) > MAX_NAMED else "")
    near = suggest(name.strip("{} '"), columns[-MAX_COMPARED:])
    return (
        f"{name} names no column{near} There are {named}"
        if near
        else f"{name} names no column; there are {named or 'none'}"
    )


def _file_paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all texts that name a file."""
    if isinstance(value, str) and value.startswith(FILE_PREFIX):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _file_paths(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _file_paths(item, f"{path}[{at}]")


class _FilterRule(msgspec.Struct, frozen=True):
    column: str
    values: list[Plain]
    texts: list[str]
    """The values as a table contains them."""
    is_allowed: bool
    """False for `not`."""


class RowFilter:
    """The `where` filter: values that the columns of a row must have."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._rules = [_compile_rule(column, value) for column, value in config.items()]
        self._missing = {rule.column for rule in self._rules}
        self._columns: Columns = {}
        self.kept = 0

    def keeps(self, columns: Columns, *, is_table: bool) -> bool:
        """Return whether the row becomes a case."""
        kept = True
        for rule in self._rules:
            value = find_column(columns, rule.column)
            if value is MISSING:
                value = None
            else:
                self._missing.discard(rule.column)
            kept = kept and _matches_any(value, rule.texts if is_table else rule.values) == rule.is_allowed
        self._columns = columns
        self.kept += kept
        return kept

    def problems(self) -> list[Problem]:
        """Return a problem for each column that no row has, since a misspelt name would keep all rows or none."""
        names = sorted(self._missing) if self._columns else []
        columns = tuple(self._columns)
        return [Problem(f"dataset.where.{name}", missing_column(repr(name), columns), "key") for name in names]


def _compile_rule(column: str, value: Any) -> _FilterRule:
    is_allowed = not isinstance(value, NotEntry)
    value = value.without if isinstance(value, NotEntry) else value
    values = value if isinstance(value, list) else [value]
    return _FilterRule(column, values, ["" if value is None else to_text(value) for value in values], is_allowed)


def _matches_any(value: Any, values: list[Any]) -> bool:
    items = value if isinstance(value, list) else [value]
    # In Python `True == 1`.
    return any(
        item == wanted and isinstance(item, bool) == isinstance(wanted, bool) for item in items for wanted in values
    )
