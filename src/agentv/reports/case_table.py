"""The table of cases and targets, and the pass rates of tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET, Struct

from agentv.reports.terminal import clean, display_width, fit, pluralize
from agentv.reports.turns import case_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentv.model.events import RunFinished
    from agentv.model.results import OutcomeCounts, Summary
    from agentv.reports.terminal import Style

MAX_TRACKED = 5_000
"""Cases whose outcomes are kept, so that memory does not grow with the execution."""
MAX_ALL = 20
"""Cases that are all shown; of more, only those that did not pass with every target."""
MAX_ROWS = 50
MAX_TAGS = 20
MAX_COLUMN = 24
MIN_NAME = 12


class Cell(NamedTuple):
    """Outcomes of one case with one target."""

    passed: int = 0
    failed: int = 0
    errors: int = 0

    @property
    def status(self) -> str:
        """The worst outcome: `error`, `fail` or `pass`; `skipped` if it was not run."""
        if self.errors:
            return "error"
        return "fail" if self.failed else "pass" if self.passed else "skipped"

    @property
    def text(self) -> str:
        """The outcome as a word; of repetitions, the share that passed: `3/5`, `3/4, 1 error`."""
        runs = sum(self)
        if runs <= 1:
            return "-" if not runs else "pass" if self.passed else self.status.upper()
        measured = self.passed + self.failed
        errors = [pluralize(self.errors, "error")] if self.errors else []
        return ", ".join([*([f"{self.passed}/{measured}"] if measured else []), *errors])


class TableRow(Struct, frozen=True):
    """Outcomes of one case and persona with each target."""

    name: str
    cells: tuple[Cell, ...]


_RowKey = tuple[str, str, str | None]
"""Eval, case and persona."""


class CaseTable:
    """Collects the outcomes of each case, with each of its personas, with each target."""

    def __init__(self) -> None:
        self._cases: dict[_RowKey, dict[str, Cell]] = {}
        self._orders: dict[_RowKey, int] = {}
        self.is_complete = True
        """`False` if there are more cases than are kept."""

    def add(self, event: RunFinished) -> None:
        """Add one run; runs may come in any order."""
        record = event.record
        key = (record.eval_id, record.case_id, record.persona_id or None)
        if key not in self._cases and len(self._cases) >= MAX_TRACKED:
            self.is_complete = False
            return
        cells = self._cases.setdefault(key, {})
        passed, failed, errors = cells.get(record.target, Cell())
        is_pass, is_fail = record.status == "pass", record.status == "fail"
        cells[record.target] = Cell(passed + is_pass, failed + is_fail, errors + (not is_pass and not is_fail))
        self._orders[key] = min(event.order, self._orders.get(key, event.order))

    def rows(self, summary: Summary) -> tuple[list[TableRow], str]:
        """Return the rows to show in plan order, and a sentence about the others."""
        keys = sorted(self._cases, key=self._orders.__getitem__)
        everything = [self._row(key, summary) for key in keys]
        rows = everything
        if len(rows) > MAX_ALL:
            rows = [row for row in rows if any(cell.status != "pass" for cell in row.cells)]
        passed, more = len(everything) - len(rows), len(rows) - MAX_ROWS
        notes = [f"{pluralize(passed, 'more case')} passed with every target"] if passed else []
        notes += [f"{more:,} more did not"] if more > 0 else []
        notes += [] if self.is_complete else [f"only the first {MAX_TRACKED:,} cases are counted here"]
        return rows[:MAX_ROWS], "; ".join(notes)

    def _row(self, key: _RowKey, summary: Summary) -> TableRow:
        name = case_name(*key[1:])
        name = f"{key[0]}/{name}" if len(summary.evals) > 1 else name
        cells = self._cases[key]
        return TableRow(name, tuple(cells.get(target, Cell()) for target in summary.targets))


def render_table(table: CaseTable, summary: Summary, style: Style) -> list[str]:
    """Return the table as lines: one column for each target, in several blocks if they are too many for the width."""
    rows, note = table.rows(summary)
    if not rows:
        return []
    names = [clean(name) for name in summary.targets]
    widths = [
        min(MAX_COLUMN, max(display_width(name), *(len(row.cells[at].text) for row in rows)))
        for at, name in enumerate(names)
    ]
    first = min(max(map(display_width, ["case", *(clean(row.name) for row in rows)])), max(MIN_NAME, style.width // 2))
    lines: list[str] = []
    for block in _blocks(widths, style.width - first):
        head = "".join(f"  {fit(names[at], widths[at])}" for at in block)
        lines.append(style.paint("dim", f"{fit('case', first)}{head}".rstrip()))
        lines += [f"{fit(row.name, first)}{_cells(row, block, widths, style)}" for row in rows]
    return [*lines, *([style.paint("dim", note)] if note else []), ""]


def _blocks(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Yield the columns of each block: as many as fit, at least one."""
    block: list[int] = []
    used = 0
    for at, width in enumerate(widths):
        if block and used + width + 2 > room:
            yield block
            block, used = [], 0
        block.append(at)
        used += width + 2
    if block:
        yield block


def _cells(row: TableRow, block: Sequence[int], widths: Sequence[int], style: Style) -> str:
    colors = {"pass": "green", "fail": "red", "error": "yellow", "skipped": "dim"}
    texts = [
        f"  {style.paint(colors[row.cells[at].status], row.cells[at].text)}"
        + " " * (widths[at] - len(row.cells[at].text))
        for at in block
    ]
    return "".join(texts).rstrip()


def tag_rates(summary: Summary) -> tuple[list[tuple[str, OutcomeCounts]], int]:
    """Return the outcomes by tag, and the number of tags that are left out; none if all runs have the same tags."""
    tags = {} if summary.tags is UNSET else summary.tags
    if all(counts.runs == summary.runs for counts in tags.values()):
        return [], 0
    # Of many tags, those that passed least often are worth the lines.
    worst = sorted(tags, key=lambda tag: _rank(tags[tag]))[:MAX_TAGS]
    return [(tag, tags[tag]) for tag in sorted(worst)], len(tags) - len(worst)


def persona_rates(summary: Summary) -> list[tuple[str, OutcomeCounts]]:
    """Return the outcomes by persona; none if all runs have the same one. Of many, those that passed least often."""
    personas = {} if summary.personas is UNSET else summary.personas
    if len(personas) <= 1:
        return []
    worst = sorted(personas, key=lambda name: _rank(personas[name]))[:MAX_TAGS]
    return [(name, personas[name]) for name in personas if name in worst]


def _rank(counts: OutcomeCounts) -> tuple[bool, float]:
    return counts.pass_rate is not None, counts.pass_rate or 0.0
