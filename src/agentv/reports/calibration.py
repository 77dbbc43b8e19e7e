"""A calibration as people read it: how far judge and people agree, and where they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.reports.terminal import Style, as_ascii, clean, counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.model.judging import CalibrationReport, ItemAgreement

MAX_SHOWN = 30
FEW = 30
"""With fewer decisions the interval is too wide to lean on."""


def render_calibration(report: CalibrationReport, style: Style) -> str:
    """The numbers, the table, and the cases they differ on."""
    found = report.calibration
    lines = [f"{clean(found.judge)} on {clean(found.evaluator)}: {counted(found.n, 'decision')} compared"]
    lines += ["", f"agreement  {_share(found.agreement)}"]
    lines.append(f"kappa      {_kappa(found.kappa, found.low, found.high)}")
    lines += ["", *_table(report.table, style)]
    if report.over == "verdicts" or len(report.items) > 1:
        lines += _items(report.items)
    if report.differences:
        lines += ["", f"they differ on {counted(len(report.differences), 'decision')}:"]
    for each in report.differences[:MAX_SHOWN]:
        item = f", item {clean(each.item)}" if each.item else ""
        head = f"  {_named(each.id, each.line)}{item}: people say {each.human}, the judge says {each.judge}"
        lines += [head, *(f"    {clean(sentence)}" for sentence in each.sentences)]
    if len(report.differences) > MAX_SHOWN:
        lines.append(f"  … and {len(report.differences) - MAX_SHOWN:,} more; --json has them all")
    if report.unread:
        number = len(report.unread)
        what = "1 reply" if number == 1 else f"{number:,} replies"
        lines += ["", style.paint("yellow", f"{what} could not be judged:")]
        lines += [f"  {_named(each.id, each.line)}: {clean(each.error)}" for each in report.unread[:MAX_SHOWN]]
    lines += ["", *_notes(report, style)]
    text = "\n".join(lines) + "\n"
    return text if style.unicode else as_ascii(text)


def _table(table: Mapping[str, Mapping[str, int]], style: Style) -> list[str]:
    names = list(table)
    width = max(len("people say"), *(len(name) for name in names))
    wide = max(6, *(len(name) for name in names))
    head = f"{'people say':<{width}}  the judge says " + "  ".join(f"{name:>{wide}}" for name in names)
    return [
        style.paint("dim", head),
        *(
            f"{name:<{width}}  {'':>{len('the judge says')}} " + "  ".join(f"{table[name][to]:>{wide}}" for to in names)
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
    found = report.calibration
    notes = []
    if found.kappa is None and found.n:
        notes.append("Kappa needs both kinds: label replies that pass and replies that fail.")
    elif 0 < found.n < FEW:
        notes.append(f"{counted(found.n, 'decision')} say little: the interval is wide. Label {FEW} or more.")
    for name, used in report.judges.items():
        cost = "cost not reported" if used.cost_usd is None else f"${used.cost_usd:.4f}"
        known = f", {used.cached:,} of them known already" if used.cached else ""
        notes.append(style.paint("dim", f"{clean(name)} was asked {counted(used.calls, 'time')}{known} · {cost}"))
    kept = "stored: `require_calibration` of this judge and rubric goes by it" if report.stored else "not stored"
    if report.stored and found.errors:
        kept = f"stored: `require_calibration` goes by it only where `max_errors` is {found.errors:,} or more"
    return [*notes, style.paint("dim", kept)]


def _named(name: str, line: int) -> str:
    return clean(name) if name == f"line {line}" else f"{clean(name)} (line {line})"


def _kappa(kappa: float | None, low: float | None, high: float | None) -> str:
    if kappa is None:
        return "not defined"
    return f"{kappa:.2f} (95 % from {low:.2f} to {high:.2f})"


def _share(share: float | None) -> str:
    return "none" if share is None else f"{share * 100:.3g} %"
