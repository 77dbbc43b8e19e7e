"""Which rows of a dataset become cases, by what their columns hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.errors import Problem
from agentv.jsonio import dump_json
from agentv.spec.entries import NotEntry
from agentv.spec.template import MISSING, find_column, no_column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.spec.entries import Plain
    from agentv.spec.template import Columns


class _Rule(NamedTuple):
    column: str
    values: list[Plain]
    texts: list[str]
    """The same as a table would have them."""
    wanted: bool


class Where:
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
