"""Reports of `agentv coverage` on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.matching.diff import quote
from agentv.reports.terminal import Style, as_ascii, clean, display_width, pluralize

if TYPE_CHECKING:
    from agentv.model.tool_coverage import ArgumentCoverage, CoverageReport, ToolCoverage

COLORS = {"never called": "red", "called": "yellow", "asserted": "green"}
HEAD = ("tool", "status", "calls", "cases", "failing path", "arguments")
MAX_NAME = 40
MAX_ARGUMENTS = 6
MAX_VALUES = 6
MAX_NEXT = 20


def render_tool_coverage(report: CoverageReport, style: Style) -> str:
    """Render a report: a table of tools, the totals, and the cases to write next."""
    lines: list[str] = []
    if report.tools:
        lines += [*_table(report.tools, style), ""]
    lines += [_total(report), _runs(report)]
    for persona in report.personas:
        lines.append(f"persona {clean(persona.id)}: {pluralize(persona.runs, 'run') if persona.runs else 'never'}")
    if report.next_cases:
        lines += ["", "write next:", *(f"  - {clean(sentence)}" for sentence in report.next_cases[:MAX_NEXT])]
        more = len(report.next_cases) - MAX_NEXT
        lines += [f"  … and {more:,} more; --json lists them"] if more > 0 else []
    text = "\n".join([*lines, ""])
    return text if style.unicode else as_ascii(text)


def _table(tools: tuple[ToolCoverage, ...], style: Style) -> list[str]:
    rows = [_row(tool) for tool in tools]
    widths = [max(display_width(row[column]) for row in [HEAD, *rows]) for column in range(len(HEAD))]
    lines = ["  ".join(_pad(cell, width) for cell, width in zip(HEAD, widths, strict=True)).rstrip()]
    for tool, row in zip(tools, rows, strict=True):
        cells = [_pad(cell, width) for cell, width in zip(row, widths, strict=True)]
        cells[1] = style.paint(COLORS[tool.status], cells[1])
        lines.append("  ".join(cells).rstrip())
    return lines


def _pad(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))


def _row(tool: ToolCoverage) -> tuple[str, ...]:
    failing = "exercised" if tool.failing_path else "never"
    name = clean(tool.name)
    name = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
    arguments = [_argument(argument) for argument in tool.arguments[:MAX_ARGUMENTS]]
    more = ["…"] if len(tool.arguments) > MAX_ARGUMENTS else []
    return name, tool.status, f"{tool.calls:,}", f"{tool.cases:,}", failing, ", ".join([*arguments, *more])


def _argument(argument: ArgumentCoverage) -> str:
    used = [value for value in argument.values if value.calls]
    if argument.values:
        missing = [quote(value.value) for value in argument.values if not value.calls]
        shown = ", ".join([*missing[:MAX_VALUES], *(["…"] if len(missing) > MAX_VALUES else [])])
        never = f", never {clean(shown)}" if missing else ""
        return f"{clean(argument.name)} ({len(used)} of {pluralize(len(argument.values), 'value')}{never})"
    return clean(argument.name) if argument.calls else f"{clean(argument.name)} (never)"


def _total(report: CoverageReport) -> str:
    if report.coverage is None:
        return "no tools are known: declare them with `tools`, or run the evals"
    counts = f"{report.asserted} asserted, {report.called} called only, {report.never_called} never called"
    return f"{pluralize(len(report.tools), 'tool')}: {counts}; {report.coverage * 100:.0f} % asserted"


def _runs(report: CoverageReport) -> str:
    unknown = f", {report.unknown_calls:,} of them without all calls known" if report.unknown_calls else ""
    without = f"; {pluralize(report.cases_without_runs, 'case')} without runs" if report.cases_without_runs else ""
    return f"{pluralize(report.runs, 'run')} of {pluralize(report.cases, 'case')}{unknown}{without}"
