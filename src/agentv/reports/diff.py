"""The aligned diff: expected on the left, actual on the right, one line a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.matching.diff import quote
from agentv.reports.terminal import Style, as_ascii, clean, fit, width_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentv.model.result import EvaluatorResult, RunResult, Sides

COLORS = {
    "match": "green",
    "mismatch": "yellow",
    "out_of_order": "yellow",
    "missing": "red",
    "extra": "red",
    "allowed": "dim",
}
MIN_COLUMN = 24


class Row(NamedTuple):
    """One line of the diff."""

    verdict: str
    left: str
    right: str
    differences: Sequence[Mapping[str, Any]] = ()


def render_run(result: RunResult, sides: Sequence[Sides | None], style: Style) -> str:
    """The verdict of a run and, for each evaluator, why."""
    score = "" if result.score is None else f"  score {result.score:.2f}"
    lines = [f"{style.verdict(result.status)}{score}"]
    if result.error is not None:
        lines.append(f"  the reply is an error ({result.error.kind}): {clean(result.error.message)}")
    for evaluator, side in zip(result.evaluators, sides, strict=True):
        lines += ["", *render_evaluator(evaluator, side, style)]
    if result.warnings:
        lines.append("")
        lines += [style.paint("yellow", f"warning: {clean(warning)}") for warning in result.warnings]
    text = "\n".join(line.rstrip() for line in lines)
    return text if style.unicode else as_ascii(text)


def render_evaluator(result: EvaluatorResult, sides: Sides | None, style: Style) -> list[str]:
    """One evaluator's verdict, its diff, and its sentences."""
    name = result.name if result.name == result.type else f"{result.name} ({result.type})"
    score = "" if result.score is None else f"  {result.score:.2f}"
    lines = [f"{style.verdict(result.status)} {clean(name)}{score}"]
    if sides is not None and result.details.get("alignment") is not None:
        lines += [f"  {line}" for line in render_diff(_rows(result, sides), sides.unit, style)]
    lines += [f"  {style.paint('red', style.mark('miss'))} {clean(miss)}" for miss in result.misses]
    lines += [f"  {style.paint('yellow', '?')} {clean(item)}" for item in result.details.get("undecided") or ()]
    if "error" in result.details:
        lines.append(f"  {style.paint('red', '!')} {clean(str(result.details['error']))}")
    lines += [f"  {style.paint('green', style.mark('hit'))} {clean(hit)}" for hit in result.hits]
    return lines


def _rows(result: EvaluatorResult, sides: Sides) -> list[Row]:
    """Expectations in their order, with the calls nobody expected where they were made."""
    details = result.details
    complained = any(miss.startswith(f"unexpected {sides.unit}") for miss in result.misses)
    extra = [(n, Row("extra" if complained else "allowed", "", _actual(sides, n))) for n in details["extra"] or ()]
    pairs = {pair["expected"]: pair for pair in details["alignment"]}
    rows: list[Row] = []
    for e, label in enumerate(sides.expected):
        pair = pairs.get(e)
        if pair is None:
            rows.append(Row("missing", label, ""))
            continue
        if pair["verdict"] != "out_of_order":
            while extra and extra[0][0] < pair["actual"]:
                rows.append(extra.pop(0)[1])
        rows.append(Row(pair["verdict"], label, _actual(sides, pair["actual"]), pair["differences"]))
    return rows + [row for _, row in extra]


def _actual(sides: Sides, number: int) -> str:
    return f"{number}: {sides.actual.get(number, '?')}"


def render_diff(rows: Sequence[Row], unit: str, style: Style) -> list[str]:
    """The rows in two columns that fit the width."""
    head = ("expected", f"actual ({unit} number first)")
    widest = max([width_of(head[0]), *[width_of(row.left) for row in rows]])
    left = max(MIN_COLUMN, min(widest, (style.width - 9) // 2))
    right = max(MIN_COLUMN, style.width - 9 - left)
    bar = style.mark("bar")
    lines = [style.paint("dim", f"  {fit(head[0], left)} {bar} {head[1]}")]
    for row in rows:
        color = COLORS[row.verdict]
        mark = style.mark(row.verdict)
        lines.append(style.paint(color, f"{mark} {fit(row.left, left)} {bar} {fit(row.right, right).rstrip()}"))
        for difference in row.differences:
            path = str(difference["path"])
            wanted = f"  {path}: {_shown(difference, 'expected')}"
            got = f"   {path}: {_shown(difference, 'actual')}"
            lines.append(style.paint(color, f"  {fit(wanted, left)} {bar} {fit(got, right).rstrip()}"))
    return lines


def _shown(difference: Mapping[str, Any], side: str) -> str:
    return quote(difference[side]) if side in difference else "nothing"
