"""Reports of `agentv mutate` on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.reports.console import judge_usage_text
from agentv.reports.terminal import Style, as_ascii, clean, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentv.model.mutation import KillCount, MutatedCase, MutationReport, SkippedCase, Survivor

MAX_CASES = 50
"""Cases whose survivors are listed."""
MAX_SURVIVORS = 60
"""Survivors that are listed of one case."""
MAX_SENTENCES = 12
"""Survivors that are listed with one suggestion."""
MAX_SKIPPED = 10
GOOD, POOR = 0.9, 0.5


def render_mutation(report: MutationReport, style: Style) -> str:
    """Render a report: the survivors of each case with the evaluators that would notice them, then the kill rates."""
    lines: list[str] = []
    cases = sorted(report.cases, key=lambda case: not case.survivors)
    shown = [case for case in cases if case.survivors][:MAX_CASES]
    for case in shown:
        lines += [*_case_lines(case, style), ""]
    more = sum(bool(case.survivors) for case in cases) - len(shown)
    if more:
        lines += [f"… and {pluralize(more, 'more case')} with survivors; --case or --json shows them", ""]
    lines += _case_table(report.cases, style)
    lines += _count_lines("by operator", report.operators)
    lines += _count_lines("by evaluator", report.evaluators)
    lines += _notes(report, style)
    lines.append(_total(report, style))
    text = "\n".join([*lines, ""])
    return text if style.unicode else as_ascii(text)


def _case_lines(case: MutatedCase, style: Style) -> list[str]:
    head = style.paint("bold", _name(case))
    lines = [f"{head}  {pluralize(case.survived, 'change')} of {case.mutants} not noticed"]
    for suggestion, survivors in _by_suggestion(case.survivors[:MAX_SURVIVORS]):
        sentences = [clean(survivor.sentence) for survivor in survivors]
        lines += [f"  {style.mark('miss')} {sentence}: not noticed" for sentence in sentences[:MAX_SENTENCES]]
        if len(sentences) > MAX_SENTENCES:
            lines.append(f"    … and {len(sentences) - MAX_SENTENCES:,} more")
        if suggestion is None:
            lines.append(style.paint("dim", "      no evaluator was found that would notice it"))
        else:
            lines.append(style.paint("green", f"      - {clean(suggestion)}"))
    if case.survived > MAX_SURVIVORS:
        lines.append(f"  … and {case.survived - MAX_SURVIVORS:,} more; --json lists them")
    return lines


def _name(case: MutatedCase | SkippedCase) -> str:
    return clean(case.case_id if case.persona_id is None else f"{case.case_id} [{case.persona_id}]")


def _by_suggestion(survivors: Sequence[Survivor]) -> Iterator[tuple[str | None, list[Survivor]]]:
    """Yield the survivors that one evaluator would notice together, in the order of their first ones."""
    groups: dict[str | None, list[Survivor]] = {}
    for survivor in survivors:
        groups.setdefault(survivor.suggestion, []).append(survivor)
    yield from groups.items()


def _case_table(cases: Sequence[MutatedCase], style: Style) -> list[str]:
    if not cases:
        return []
    width = min(60, max(len(_name(case)) for case in cases))
    lines = ["by case"]
    for case in cases[:MAX_CASES]:
        accepted = f", {case.accepted} accepted" if case.accepted else ""
        rate = style.paint(_color(case.kill_rate), _percent(case.kill_rate))
        measured = case.killed + case.survived
        lines.append(f"  {_name(case)[:width]:<{width}}  {rate}  {case.killed} of {measured} noticed{accepted}")
    if len(cases) > MAX_CASES:
        lines.append(f"  … and {len(cases) - MAX_CASES:,} more cases")
    return lines


def _count_lines(title: str, counts: Sequence[KillCount]) -> list[str]:
    if not counts:
        return []
    width = max(len(clean(count.name)) for count in counts)
    rows = [(clean(count.name), count.killed / count.mutants, count) for count in counts if count.mutants]
    return [
        title,
        *(f"  {name:<{width}}  {_percent(rate)}  {count.killed} of {count.mutants}" for name, rate, count in rows),
    ]


def _notes(report: MutationReport, style: Style) -> list[str]:
    lines = [
        style.paint("yellow", f"skipped: {_name(case)}: {clean(case.reason)}") for case in report.skipped[:MAX_SKIPPED]
    ]
    if len(report.skipped) > MAX_SKIPPED:
        lines.append(style.paint("yellow", f"skipped: {len(report.skipped) - MAX_SKIPPED:,} more; --json lists them"))
    lines += _left_out(report, style)
    for entry in report.unused_accepts:
        which = " ".join([entry.operator, *filter(None, [entry.tool, entry.case])])
        lines.append(style.paint("yellow", f"accept {clean(which)}: no surviving change matches it, remove it"))
    lines += [f"judge {clean(name)}: {judge_usage_text(sums)}" for name, sums in report.judges.items()]
    return [*([""] if report.cases else []), *lines]


def _left_out(report: MutationReport, style: Style) -> Iterator[str]:
    """Yield what was not changed or not measured, and why."""
    if report.not_passing:
        yield style.paint("yellow", f"left out: {pluralize(report.not_passing, 'run')} that did not pass")
    reduced = sum(case.without_judges for case in report.cases)
    if reduced:
        yield style.paint("yellow", f"left out: the judges of {pluralize(reduced, 'case')}; --judges asks them")
    for what, name in (("run", "left_out_runs"), ("change", "left_out")):
        count = sum(getattr(case, name) for case in report.cases)
        if count:
            yield style.paint("yellow", f"left out: {pluralize(count, f'further {what}')}, as there are too many")
    if report.unmeasured:
        reason = next(case.unmeasured_reason for case in report.cases if case.unmeasured)
        count = pluralize(report.unmeasured, "change")
        yield style.paint("yellow", f"not measured: {count}, which count neither way: {clean(reason or '')}")


def _total(report: MutationReport, style: Style) -> str:
    if report.kill_rate is None:
        return "there is no change that these evals could notice"
    measured = report.killed + report.survived
    accepted = f", {report.accepted:,} accepted" if report.accepted else ""
    rate = style.paint(_color(report.kill_rate), f"kill rate {_percent(report.kill_rate).strip()}")
    return f"{rate}: {report.killed:,} of {pluralize(measured, 'change')} noticed, {report.survived:,} not{accepted}"


def _percent(rate: float | None) -> str:
    return "    -" if rate is None else f"{rate * 100:3.0f} %"


def _color(rate: float | None) -> str:
    if rate is None:
        return "dim"
    return "green" if rate >= GOOD else "yellow" if rate >= POOR else "red"
