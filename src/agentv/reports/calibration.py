"""The calibration of a judge as text: agreement with people, and differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.reports.terminal import Style, as_ascii, clean, pluralize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.model.judging import CalibrationReport, ItemAgreement

MAX_SHOWN = 30
MIN_DECISIONS = 30
"""Decisions below which the interval is too wide to rely on."""


def render_calibration(report: CalibrationReport, style: Style) -> str:
    """Render the numbers, the table, and the decisions on which judge and people differ."""
    calibration = report.calibration
    lines = [
        f"{clean(calibration.judge)} on {clean(calibration.evaluator)}: {pluralize(calibration.n, 'decision')} compared"
    ]
    lines += ["", f"agreement  {_share(calibration.agreement)}"]
    lines.append(f"kappa      {_kappa(calibration.kappa, calibration.low, calibration.high)}")
    lines += ["", *_table(report.table, style)]
    if report.over == "verdicts" or len(report.items) > 1:
        lines += _items(report.items)
    if report.differences:
        lines += ["", f"they differ on {pluralize(len(report.differences), 'decision')}:"]
    for difference in report.differences[:MAX_SHOWN]:
        item = f", item {clean(difference.item)}" if difference.item else ""
        said = f"people say {difference.human}, the judge says {difference.judge}"
        lines.append(f"  {_label(difference.id, difference.line)}{item}: {said}")
        lines += [f"    {clean(sentence)}" for sentence in difference.sentences]
    if len(report.differences) > MAX_SHOWN:
        lines.append(f"  … and {len(report.differences) - MAX_SHOWN:,} more; --json has them all")
    if report.unread:
        replies = pluralize(len(report.unread), "reply", "replies")
        lines += ["", style.paint("yellow", f"{replies} could not be judged:")]
        lines += [f"  {_label(reply.id, reply.line)}: {clean(reply.error)}" for reply in report.unread[:MAX_SHOWN]]
    lines += ["", *_notes(report, style)]
    text = "\n".join(lines) + "\n"
    return text if style.unicode else as_ascii(text)


def _table(table: Mapping[str, Mapping[str, int]], style: Style) -> list[str]:
    names = list(table)
    width = max(len("people say"), *(len(name) for name in names))
    column = max(6, *(len(name) for name in names))
    head = f"{'people say':<{width}}  the judge says " + "  ".join(f"{name:>{column}}" for name in names)
    return [
        style.paint("dim", head),
        *(
            f"{name:<{width}}  {'':>{len('the judge says')}} "
            + "  ".join(f"{table[name][other]:>{column}}" for other in names)
            for name in names
        ),
    ]


def _items(items: Mapping[str, ItemAgreement]) -> list[str]:
    if not items:
        return []
    width = max(len(name) for name in items)
    rows = []
    for name, item in items.items():
        kappa = _kappa(item.kappa, item.low, item.high)
        rows.append(f"  {clean(name):<{width}}  {_share(item.agreement):>6} of {item.n}, kappa {kappa}")
    return ["", "item by item:", *rows]


def _notes(report: CalibrationReport, style: Style) -> list[str]:
    calibration = report.calibration
    notes = []
    if calibration.kappa is None and calibration.n:
        notes.append("Kappa needs both kinds: label replies that pass and replies that fail.")
    elif 0 < calibration.n < MIN_DECISIONS:
        notes.append(
            f"{pluralize(calibration.n, 'decision')} say little: the interval is wide. Label {MIN_DECISIONS} or more."
        )
    for name, sums in report.judges.items():
        cost = "cost not reported" if sums.cost_usd is None else f"${sums.cost_usd:.4f}"
        known = f", {sums.cached:,} of them known already" if sums.cached else ""
        notes.append(style.paint("dim", f"{clean(name)} was asked {pluralize(sums.calls, 'time')}{known} · {cost}"))
    stored = "stored: `require_calibration` of this judge and rubric uses it" if report.stored else "not stored"
    if report.stored and calibration.errors:
        stored = f"stored: `require_calibration` uses it only where `max_errors` is {calibration.errors:,} or more"
    return [*notes, style.paint("dim", stored)]


def _label(name: str, line: int) -> str:
    return clean(name) if name == f"line {line}" else f"{clean(name)} (line {line})"


def _kappa(kappa: float | None, low: float | None, high: float | None) -> str:
    if kappa is None:
        return "not defined"
    return f"{kappa:.2f} (95 % from {low:.2f} to {high:.2f})"


def _share(share: float | None) -> str:
    return "none" if share is None else f"{share * 100:.3g} %"
