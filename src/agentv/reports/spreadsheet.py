"""Results as CSV, one row for each run, for spreadsheets and data frames."""

from __future__ import annotations

from csv import writer
from io import StringIO
from typing import TYPE_CHECKING, Any

from agentv.jsonio import parse_json
from agentv.reports.files import RecordFile

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS = (
    *("run_id", "execution_id", "eval_id", "case_id", "persona_id", "target", "repeat", "status", "score", "attempts"),
    *("latency_ms", "input_tokens", "output_tokens", "total_tokens", "cost_usd", "calls", "tools", "tags", "input"),
    *("candidate", "misses", "error_kind", "error", "started_at", "completed_at", "place"),
)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""Characters with which a spreadsheet recognises a formula."""


def _row(cells: Any) -> bytes:
    text = StringIO()
    writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().encode()


class CsvFile(RecordFile):
    """A result file with a header and one row for each run; lists are joined by line feeds."""

    header = _row(COLUMNS)

    def encode(self, line: bytes) -> bytes:
        """Return the row of a record."""
        record = parse_json(line)
        values = {**record, **_flattened(record)}
        return _row([_cell(values.get(name)) for name in COLUMNS])


def _flattened(record: Mapping[str, Any]) -> dict[str, Any]:
    usage = record.get("tokens_usage") or {}
    error = record.get("error") or {}
    counts = (record.get("trace_summary") or {}).get("tool_calls_by_name")
    misses = [f"{each['name']}: {miss}" for each in record["evaluators"] for miss in each["misses"]]
    return {
        **{name: usage.get(name) for name in ("input_tokens", "output_tokens", "total_tokens")},
        "calls": None if counts is None else sum(counts.values()),
        "tools": None if counts is None else list(counts),
        "misses": misses,
        "error_kind": error.get("kind"),
        "error": error.get("message"),
    }


def _cell(value: Any) -> Any:
    """Return a value as a cell; an agent's text is never a formula."""
    if value is None:
        return ""
    if isinstance(value, list):
        value = "\n".join(map(str, value))
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA_STARTS) else value
    return value
