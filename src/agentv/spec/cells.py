"""Cells of a table, which are all text, made into the fields of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agentv.errors import suggest
from agentv.spec.cases import CAMEL, LISTS
from agentv.spec.entries import CaseEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
