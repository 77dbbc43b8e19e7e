"""Rows of figures with their bars, and their table."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple

import agentv

RESULTS = Path(__file__).parent / "results"
Unit = Literal["seconds", "per second", "bytes", "verdicts"]
_HEAD = ("name", "ours", "floor or peer", "ratio", "bar", "met")
_RUNS_HEAD = ("name", "runs", "best", "median", "spread", "runs of the other", "best", "median", "spread")
_MILLI, _MICRO, _MEGA = 1e-3, 1e-6, 1e6


class Bar(NamedTuple):
    """The bar of a row."""

    word: Literal["at most", "at least"]
    limit: float
    of: Literal["ratio", "seconds"] = "ratio"

    def allows(self, value: float) -> bool:
        """Return whether a value is on the right side."""
        return value <= self.limit if self.word == "at most" else value >= self.limit

    def __str__(self) -> str:
        return f"{self.word} {self.limit:g} x" if self.of == "ratio" else f"{self.word} {_shown(self.limit, self.of)}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measurement."""

    name: str
    unit: Unit
    ours: float | None
    """`None` when it could not be measured here."""
    other: float | None = None
    """The floor's or the peer's, in the same unit."""
    bar: Bar | None = None
    gates: bool = True
    """True if a missed bar fails the run; otherwise the bar is informational."""
    runs: tuple[float, ...] = ()
    """Ours of each run, in the unit of the row; empty where the runs are not listed."""
    other_runs: tuple[float, ...] = ()
    """The floor's or the peer's of each run."""

    @property
    def ratio(self) -> float | None:
        """Ours over the other's."""
        return None if self.ours is None or not self.other else self.ours / self.other

    @property
    def met(self) -> bool | None:
        """Return True if the bar was reached; `None` without a bar, and without the figures to tell."""
        value = self.ratio if self.bar is None or self.bar.of == "ratio" else self.ours
        return None if self.bar is None or value is None else self.bar.allows(value)

    @property
    def failed(self) -> bool:
        """Return True if a bar that counts was missed."""
        return self.gates and self.met is False

    @property
    def unmeasured(self) -> bool:
        """Return True if a bar that counts could not be decided: that is not a pass."""
        return self.gates and self.bar is not None and self.met is None


def render(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table that also reads well in a terminal."""
    return _table([_HEAD, *map(_cells, rows)], figures=range(1, 4))


def render_runs(rows: Sequence[Row]) -> str:
    """Best, median and spread of the rows whose runs are listed; empty if there are none."""
    cells = [
        (row.name, *_distribution(row.runs, row.unit), *_distribution(row.other_runs, row.unit))
        for row in rows
        if row.runs
    ]
    return _table([_RUNS_HEAD, *cells], figures=range(1, len(_RUNS_HEAD))) if cells else ""


def _distribution(runs: Sequence[float], unit: Unit) -> tuple[str, ...]:
    """The number of runs, and the best, the median and the distance from the best to the worst of them."""
    if not runs:
        return ("",) * 4
    best = max(runs) if unit == "per second" else min(runs)
    return str(len(runs)), *[_shown(value, unit) for value in (best, median(runs), max(runs) - min(runs))]


def _table(cells: Sequence[tuple[str, ...]], figures: range) -> str:
    """The lines of a table; the columns of figures are aligned to the right."""
    columns = range(len(cells[0]))
    widths = [max(len(line[column]) for line in cells) for column in columns]
    rule = ["-" * (widths[column] - 1) + ":" if column in figures else "-" * widths[column] for column in columns]
    return "\n".join(_line(line, widths, figures) for line in (cells[0], rule, *cells[1:]))


def verdict(rows: Sequence[Row]) -> str:
    """Return the numbers of bars that were met, missed and not measured, as a sentence."""
    counted = [row for row in rows if row.gates and row.bar is not None]
    missed, unmeasured = sum(row.failed for row in counted), sum(row.unmeasured for row in counted)
    return f"Bars: {len(counted) - missed - unmeasured} met, {missed} missed, {unmeasured} not measured."


def report(rows: Sequence[Row]) -> list[str]:
    """The parts of a report: the table, the runs behind some of its rows, and the verdict."""
    return [part for part in (render(rows), render_runs(rows), verdict(rows)) if part]


def keep(rows: Sequence[Row]) -> None:
    """Write the results where they are committed; they say what machine this is, but not which."""
    facts = {
        "agentv": agentv.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "date": datetime.now(UTC).date().isoformat(),
    }
    listed = ", ".join(f"{name} {value}" for name, value in facts.items())
    head = f"# Latest results\n\n{listed}. How to read this: [README](../README.md)."
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.md").write_text("\n\n".join([head, *report(rows)]) + "\n")
    data = {**facts, "rows": [_plain(row) for row in rows]}
    (RESULTS / "latest.json").write_text(json.dumps(data, indent=2) + "\n")


def _plain(row: Row) -> dict[str, Any]:
    bar = None if row.bar is None else {"word": row.bar.word, "limit": row.bar.limit, "of": row.bar.of}
    return {**asdict(row), "bar": bar, "ratio": row.ratio, "met": row.met}


def _cells(row: Row) -> tuple[str, ...]:
    if row.bar is None:
        met = ""
    elif row.met is None:
        met = "not measured"
    else:
        met = ("yes" if row.met else "no") + ("" if row.gates else " (informational)")
    ratio = "" if row.ratio is None else f"{row.ratio:,.2f}"
    return row.name, _shown(row.ours, row.unit), _shown(row.other, row.unit), ratio, str(row.bar or ""), met


def _line(cells: Sequence[str], widths: Sequence[int], figures: range) -> str:
    padded = [
        cell.rjust(width) if column in figures else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "per second":
        return f"{value:,.0f}/s"
    if unit == "bytes":
        return f"{value / _MEGA:,.1f} MB"
    if unit == "verdicts":
        return f"{value:,.0f}"
    if value < _MILLI:
        return f"{value / _MICRO:,.1f} µs"
    return f"{value:.2f} s" if value >= 1 else f"{value / _MILLI:.1f} ms"
