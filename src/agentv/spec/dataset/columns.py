"""Columns of a dataset: cells, templates and `where`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentv.errors import Problem, suggest
from agentv.jsonio import dump_json
from agentv.spec.cases import CAMEL, FILE, LISTS
from agentv.spec.file_format import CaseEntry, NotEntry
from agentv.spec.validation import unknown_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.spec.file_format import Plain


FIELDS = frozenset([*CaseEntry.__struct_encode_fields__, *CAMEL])
ASKS = ("input_messages", LISTS["input_messages"], *(alias for alias in CAMEL if alias.startswith("input")))
"""Every word for what the agent is asked."""
TEXTS = frozenset(["id", "description", *LISTS, *LISTS.values(), *CAMEL])
"""Fields that take a text as it is."""
ABSENT: Any = object()
SEPARATORS = ",;\t|"


def wrong_columns(columns: Sequence[str]) -> str:
    """Why a table of these columns, without a template, is not one of cases."""
    missing = [name for name, words in (("id", ("id",)), ("input", ASKS)) if not set(words) & set(columns)]
    if missing:
        named = " and no column ".join(map(repr, missing))
        near = "".join([suggest(name, columns, ". Did") for name in missing][:1]) or "."
        odd = len(columns) == 1 and not set(SEPARATORS).isdisjoint(columns[0])
        fix = "Write `format: tsv` for tabs, or separate them by commas" if odd else "Rename one, or add a `template`"
        return f"no column {named} among {', '.join(columns)}{near} {fix}"
    for name in columns:
        # The rest become `vars`, and a misspelt name would take a check along without a word.
        if name not in FIELDS and (meant := _meant(name)):
            return f"the column {name!r} is no field of a case; did you mean {meant!r}? Rename it, or add a `template`"
    return ""


def _meant(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only a column that is no field needs it

    plain = {field.replace("_", "").lower(): field for field in sorted(FIELDS - CAMEL.keys())}
    close = get_close_matches(name.replace("_", "").replace(" ", "").lower(), plain, n=1, cutoff=0.8)
    return plain[close[0]] if close else ""


def case_of(cells: Mapping[str, str]) -> dict[str, Any]:
    """The case of a row: columns that are fields of a case are these fields, and all others are `vars`."""
    case: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, text in cells.items():
        if name not in FIELDS:
            values[name] = text
        elif text and (value := read_cell(name, text)) is not ABSENT:
            case[name] = value
    given = case.get("vars", {})
    # What is no mapping is left for the reader to refuse.
    return {**case, "vars": {**given, **values}} if values and isinstance(given, dict) else case


def read_cell(field: str, text: str) -> Any:
    """What a text means as this field; what it cannot be stays a text, and is refused as such."""
    if field in TEXTS:
        return text
    if not text.strip():
        return ABSENT
    if field == "tags":
        return [tag for each in text.split(",") if (tag := each.strip())]
    if field in ("skip", "only"):
        return {"true": True, "false": False}.get(text.strip().lower(), text)
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return text


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


class _Rule(NamedTuple):
    column: str
    values: list[Plain]
    texts: list[str]
    """The same as a table would have them."""
    wanted: bool


class RowFilter:
    """What the columns of a row must hold."""

    def __init__(self, written: Mapping[str, Any]) -> None:
        self._rules = [_rule(column, value) for column, value in written.items()]
        self._unmet = {rule.column for rule in self._rules}
        self._columns: Columns = {}
        self.kept = 0

    def keeps(self, columns: Columns, *, is_table: bool) -> bool:
        """Whether the row becomes a case."""
        kept = True
        for rule in self._rules:
            found = find_column(columns, rule.column)
            if found is MISSING:
                found = None
            else:
                self._unmet.discard(rule.column)
            kept = kept and _is_one(found, rule.texts if is_table else rule.values) == rule.wanted
        self._columns = columns
        self.kept += kept
        return kept

    def problems(self) -> list[Problem]:
        """The columns that no row had: a misspelt name would keep all, or none."""
        unmet = sorted(self._unmet) if self._columns else []
        return [Problem(f"dataset.where.{name}", no_column(repr(name), tuple(self._columns)), "key") for name in unmet]


def _rule(column: str, value: Any) -> _Rule:
    wanted = not isinstance(value, NotEntry)
    value = value.without if isinstance(value, NotEntry) else value
    values = value if isinstance(value, list) else [value]
    return _Rule(column, values, [_text(each) for each in values], wanted)


def _text(value: Plain) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else dump_json(value).decode()


def _is_one(found: Any, values: list[Any]) -> bool:
    items = found if isinstance(found, list) else [found]
    # To Python true and 1 are the same.
    return any(
        item == value and isinstance(item, bool) == isinstance(value, bool) for item in items for value in values
    )
