"""Types of the columns of a table, whose cells are texts."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

from agentv.errors import Problem
from agentv.spec.dataset.columns import FIELDS, missing_column
from agentv.spec.validation import short_repr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.spec.dataset.files import DatasetFile

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(r"[+-]?\d+")
_BOOLEANS = {"true": True, "false": False}
_WORDS = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "json": "JSON",
}
_BAD: Any = object()
MAX_DIGITS = 300


class ColumnTypes:
    """The `types` of a dataset: cells of these columns become numbers, booleans or JSON values."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types = types
        self._missing = set(types)
        self._columns: tuple[str, ...] = ()

    def check(self, path: str, files: list[DatasetFile]) -> list[Problem]:
        """Return the problems that do not depend on the rows."""
        problems = [
            Problem(f"{path}.{name}", f"{name!r} is a field of a case, which has a type of its own", "key")
            for name in self._types
            if name in FIELDS
        ]
        others = [file.name.display for file in files if not file.is_table]
        if others:
            message = f"is about the columns of a table; the values of {others[0]} have types already"
            problems.append(Problem(path, message, "key"))
        return problems

    def convert(self, cells: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
        """Return the cells with their types, and a problem for each one that is not of its type."""
        problems: list[Problem] = []
        converted = dict(cells)
        for name, kind in self._types.items():
            if name not in cells:
                continue
            self._missing.discard(name)
            value = _convert(cells[name], kind)
            if value is _BAD:
                expected = f"column {name!r}: expected {_WORDS[kind]}, got {short_repr(cells[name])}"
                problems.append(Problem("", expected, "whole"))
            converted[name] = value
        self._columns = tuple(cells)
        return converted, problems

    def problems(self, path: str) -> list[Problem]:
        """Return a problem for each column that no row has."""
        names = sorted(self._missing) if self._columns else []
        return [Problem(f"{path}.{name}", missing_column(repr(name), self._columns), "key") for name in names]


def _convert(cell: str, kind: str) -> Any:
    """Return the value of a cell; an empty one is null, except for text."""
    text = cell.strip()
    if kind == "string":
        return cell
    if not text:
        return None
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), _BAD)
    return _decode_json(text) if kind == "json" else _number(text, is_whole=kind == "integer")


def _number(text: str, *, is_whole: bool) -> Any:
    if _INTEGER.fullmatch(text) and len(text) <= MAX_DIGITS:
        return int(text)
    if is_whole or not _NUMBER.fullmatch(text):
        return _BAD
    number = float(text)
    return number if isfinite(number) else _BAD


def _decode_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _BAD
