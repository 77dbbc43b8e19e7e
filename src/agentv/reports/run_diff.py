"""Aligned runs of one case on the terminal."""

from __future__ import annotations

from string import ascii_letters
from typing import TYPE_CHECKING

from agentv.reports.comparison import format_p_value
from agentv.reports.terminal import Style, as_ascii, clean, display_width, fit, pluralize

if TYPE_CHECKING:
    from agentv.model.comparison import DiffColumn, Divergence, RunDiff

MAX_RUNS = 60
"""Runs up to which each has a place of its own; beyond, only their numbers are shown."""
MAX_VARIANTS = 6
MAX_COLUMNS = 200
MAX_CLUSTERS = 20
MAX_LEFT_OUT = 5
NO_CALL = "."


def render_run_diff(diff: RunDiff, style: Style) -> str:
    """Render aligned runs: a line for each column, a letter for each run, then the divergences in words."""
    first, second = diff.groups
    counts = f"{diff.split} {clean(first)}, {len(diff.runs) - diff.split} {clean(second)}"
    lines = [f"{clean(diff.case_id)} of {clean(diff.eval_id)}: {pluralize(len(diff.runs), 'run')} ({counts})", ""]
    lines += _table(diff, style)
    lines += ["", *_conclusion(diff, style)]
    shown = diff.left_out[:MAX_LEFT_OUT]
    lines += [style.paint("yellow", f"left out: {clean(run.id)}: {clean(run.reason)}") for run in shown]
    if len(diff.left_out) > len(shown):
        lines.append(style.paint("yellow", f"left out: {len(diff.left_out) - len(shown):,} more; --json lists them"))
    text = "\n".join([*lines, ""])
    return text if style.unicode else as_ascii(text)


def _table(diff: RunDiff, style: Style) -> list[str]:
    if not diff.columns:
        return ["no run called a tool"]
    totals = (diff.split, len(diff.runs) - diff.split)
    shown = diff.columns[:MAX_COLUMNS]
    cells = [_cells(diff, number) for number in range(len(shown))]
    widths = [max(len(_short(name)), *(len(row[group]) for row in cells)) for group, name in enumerate(diff.groups)]
    names = [_name(column) for column in shown]
    room = max(20, style.width - sum(widths) - 32)
    name_width = min(room, max(map(display_width, names)))
    heads = [f"{_short(name):<{width}}" for name, width in zip(diff.groups, widths, strict=True)]
    lines = [f"  {'':<3}  {'':<{name_width}}  {'  '.join(heads)}".rstrip()]
    turn: int | None = None
    for number, (column, name, row) in enumerate(zip(shown, names, cells, strict=True)):
        parts = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        numbers = f"{column.first}/{totals[0]}  {column.second}/{totals[1]}"
        if column.turn is not None and column.turn != turn:
            turn = column.turn
            lines.append(f"  turn {turn}")
        line = f"  {number:>3}  {fit(name, name_width)}  {parts}  {numbers}".rstrip()
        is_first = diff.first is not None and diff.first.column == number
        lines.append(style.paint("red", f"{line}  <- first divergence") if is_first else line)
        if len(column.variants) > 1:
            lines += _variants(column, style)
    if len(diff.columns) > len(shown):
        lines.append(f"  … and {len(diff.columns) - len(shown):,} more columns; --json lists them")
    return lines


def _short(name: str) -> str:
    return fit(name, min(24, display_width(clean(name))))


def _name(column: DiffColumn) -> str:
    return column.variants[0].label if len(column.variants) == 1 else column.tool or "(unnamed)"


def _cells(diff: RunDiff, column: int) -> tuple[str, str]:
    """Return a letter for each run of both groups, which tells its variant of the call; nothing for many runs."""
    if len(diff.runs) > MAX_RUNS:
        return "", ""
    marks = [NO_CALL if cell is None else _letter(cell.variant) for cell in (run.cells[column] for run in diff.runs)]
    return "".join(marks[: diff.split]), "".join(marks[diff.split :])


def _letter(variant: int) -> str:
    return ascii_letters[variant] if variant < len(ascii_letters) else "*"


def _variants(column: DiffColumn, style: Style) -> list[str]:
    shown = column.variants[:MAX_VARIANTS]
    lines = [
        f"{'':<9}{_letter(number)}  {fit(variant.label, style.width - 30).rstrip()}  {variant.first}, {variant.second}"
        for number, variant in enumerate(shown)
    ]
    if len(column.variants) > len(shown):
        lines.append(f"{'':<9}… {len(column.variants) - len(shown):,} more")
    return [style.paint("dim", line) for line in lines]


def _conclusion(diff: RunDiff, style: Style) -> list[str]:
    if diff.first is None:
        return [_nothing_found(diff)]
    lines = [style.paint("bold", f"first divergence: {clean(diff.first.sentence)}"), f"  {_test(diff.first)}"]
    if len(diff.divergences) > 1 or diff.unexplained:
        name = "failing runs" if diff.groups[1] == "failing" else f"runs of {clean(diff.groups[1])}"
        lines += ["", f"{name} by their first divergence:"]
        clusters = sorted(diff.divergences, key=lambda each: -len(each.runs))
        lines += [
            f"  {len(each.runs):>5}  {clean(each.sentence)} (p = {format_p_value(each.p_value)})"
            for each in clusters[:MAX_CLUSTERS]
        ]
        if len(clusters) > MAX_CLUSTERS:
            lines.append(f"  … and {len(clusters) - MAX_CLUSTERS:,} more; --json lists them")
        if diff.unexplained:
            lines.append(f"  {len(diff.unexplained):>5}  no difference in calls: look at the answers")
    example = diff.runs[diff.first.runs[0]].id
    return [*lines, "", f"next: agentv runs show {clean(example)}"]


def _test(divergence: Divergence) -> str:
    test = f"Fisher's exact test: p = {format_p_value(divergence.p_value)}"
    if divergence.significant:
        return test
    return f"{test}, which may be chance with so many properties of calls compared; more runs would tell"


def _nothing_found(diff: RunDiff) -> str:
    total = len(diff.runs)
    if 0 < diff.split < total:
        return "the calls do not differ between the groups: look at the answers"
    if not total:
        return "no run can be compared"
    verdict = "failed" if diff.runs[0].status == "fail" else "passed"
    return (
        f"all {pluralize(total, 'run')} {verdict}: add an execution in which it did not,"
        f" as in `agentv runs diff {clean(diff.case_id)} last~1 last`"
    )
