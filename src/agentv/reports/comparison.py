"""Comparisons on the terminal and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UnsetType

from agentv.redaction import shorten
from agentv.reports.console import judge_usage_text
from agentv.reports.diff import COLORS, MIN_COLUMN, render_evaluator
from agentv.reports.markdown import MAX_BODY, MAX_PAGE, byte_size, code_span, fenced_block
from agentv.reports.terminal import Style, as_ascii, clean, display_width, fit, format_duration, pluralize
from agentv.reports.turns import case_name, group_by_turn, turn_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.model.comparison import (
        CallPair,
        CaseChange,
        CaseList,
        CasePreference,
        CaseReference,
        CaseSide,
        Comparison,
        JudgePreference,
        Measure,
        Side,
    )


MAX_SHOWN = 20
MAX_NAMED = 200
MAX_OTHERS = 10
MAX_PAIRS = 50
"""Pairs of calls that are shown of one case."""
"""Names listed of cases that were won, not measured, or on one side only."""
VERDICTS = {"better": "green", "worse": "red", "no difference seen": "bold", "nothing measured": "yellow"}
_SMALL = 0.001


class MeasureRow(NamedTuple):
    """One row of the table of measures."""

    name: str
    a: str
    b: str
    difference: str


def render_comparison(comparison: Comparison, style: Style, failures: Sequence[str] = ()) -> str:
    """Render a comparison as text; `failures` are the conditions of a gate that it does not meet."""
    color = "red" if comparison.regression else VERDICTS[comparison.verdict]
    lines = [
        *(style.paint("red", clean(failure)) for failure in failures),
        f"{style.paint(color, verdict_text(comparison))}",
        *(f"  {name}  {_side_line(side)}" for name, side in (("A", comparison.a), ("B", comparison.b))),
        "",
        *_table(measure_rows(comparison), comparison),
        "",
    ]
    for change in [*comparison.declined[:MAX_SHOWN], *comparison.lost[:MAX_SHOWN]]:
        lines += [*_lost_case(change, style), ""]
    rest = comparison.lost[MAX_SHOWN:MAX_NAMED]
    lines += [_lost_head(change, style) for change in rest]
    more = comparison.losses - len(comparison.lost[:MAX_NAMED])
    lines += [style.paint("dim", f"     {more:,} more were lost")] if more > 0 else []
    lines += [""] if rest or more > 0 else []
    if comparison.judged is not None:
        lines += judged_lines(comparison.judged, style)
    text = "\n".join([*lines, *other_cases(comparison), *closing_lines(comparison), ""])
    return text if style.unicode else as_ascii(text)


def verdict_text(comparison: Comparison) -> str:
    """Return the verdict with the counts and the test it is based on."""
    if comparison.regressed.count:
        return _regression_text(comparison)
    verdict = {
        "better": "B is better than A",
        "worse": "B is worse than A",
        "no difference seen": "no difference seen between A and B",
        "nothing measured": "nothing could be compared: no case was measured on both sides",
    }[comparison.verdict]
    if comparison.p_value is None:
        return verdict
    by = " by its scores" if comparison.decided_by == "score" else ""
    ties = comparison.both_passed + comparison.both_failed
    counts = _counts(comparison.wins, comparison.losses, ties)
    return f"{verdict}{by}: {counts} (exact p = {format_p_value(comparison.p_value)})"


def _regression_text(comparison: Comparison) -> str:
    """Return the names of the cases that B lost beyond chance, and the difference over all cases."""
    names = _list_names(comparison.regressed, clean, MAX_OTHERS)
    worse = "B is worse than A: " if comparison.verdict == "worse" else ""
    difference = comparison.measures.pass_rate.difference or 0.0
    p_value = "" if comparison.p_value is None else f" (exact p = {format_p_value(comparison.p_value)})"
    overall = f"overall {_signed(difference, _points)} points{'' if worse else ', not significant'}{p_value}"
    return f"{worse}{pluralize(comparison.regressed.count, 'regression')}: {names}; {overall}"


def format_p_value(value: float) -> str:
    """Return a p-value, never rounded to zero."""
    return f"{value:.3f}" if value >= _SMALL else f"{value:.1e}"


def _counts(wins: int, losses: int, ties: int) -> str:
    return f"{pluralize(wins, 'win')}, {pluralize(losses, 'loss', 'losses')}, {pluralize(ties, 'tie')}"


def _side_line(side: Side) -> str:
    targets = ", ".join(map(clean, side.targets))
    errors = f", {pluralize(side.errors, 'error')}" if side.errors else ""
    left_out = f" (not compared: {', '.join(map(clean, side.targets_left_out))})" if side.targets_left_out else ""
    runs = f", {pluralize(side.runs, 'run')}" if side.runs != side.cases else ""
    return f"{clean(side.name)}  {targets}{left_out}  {pluralize(side.cases, 'case')}{runs}{errors}{cut_off_note(side)}"


def cut_off_note(side: Side) -> str:
    """Return a note on a file whose last line a crash cut off."""
    return "; its last line is cut off, as after a crash, and left out" if side.cut_off else ""


def measure_rows(comparison: Comparison) -> list[MeasureRow]:
    """Return the measures of both sides with their differences."""
    measures = comparison.measures
    return [
        _measure_row("pass rate", measures.pass_rate, _percent, share=False),
        _measure_row("score", measures.score, _score, share=False),
        _measure_row("input tokens", measures.input_tokens, _tokens),
        _measure_row("output tokens", measures.output_tokens, _tokens),
        _measure_row("cost", measures.cost_usd, _dollars),
        _measure_row("latency p50", measures.latency_p50_ms, format_duration),
        _measure_row("latency p95", measures.latency_p95_ms, format_duration),
    ]


def _measure_row(name: str, measure: Measure, format_: Callable[[float], str], *, share: bool = True) -> MeasureRow:
    a, b = (("not reported" if share else "-") if value is None else format_(value) for value in (measure.a, measure.b))
    if measure.difference is None:
        return MeasureRow(name, a, b, "")
    format_difference = _points if format_ is _percent else format_
    text = _signed(measure.difference, format_difference)
    text += " pp" if format_ is _percent else ""
    if measure.interval is not None:
        low, high = (_signed(end, format_difference) for end in measure.interval)
        text += f" ({low} to {high})"
    if share and measure.a and _signed(measure.difference, format_) != format_(0.0):
        text += f", {_signed(measure.difference / measure.a, _percent)}"
    return MeasureRow(name, a, b, text)


def _signed(number: float, format_: Callable[[float], str]) -> str:
    text = format_(abs(number))
    return text if text == format_(0.0) else f"{'-' if number < 0 else '+'}{text}"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _points(share: float) -> str:
    return f"{share * 100:.1f}"


def _score(score: float) -> str:
    return f"{score:.3f}"


def _tokens(count: float) -> str:
    return f"{count:,.0f}"


def _dollars(cost: float) -> str:
    return f"${cost:.4f}" if cost >= _SMALL or not cost else f"${cost:.6f}"


def difference_heading(comparison: Comparison) -> str:
    """Return the heading of the last column."""
    return f"difference ({comparison.confidence * 100:g} % CI)"


def _table(lines: Sequence[MeasureRow], comparison: Comparison) -> list[str]:
    rows = [MeasureRow("", "A", "B", difference_heading(comparison)), *lines]
    names, a_width, b_width = (max(map(len, column)) for column in list(zip(*rows, strict=True))[:3])
    return [
        f"  {line.name:<{names}}  {line.a:>{a_width}}  {line.b:>{b_width}}  {line.difference}".rstrip() for line in rows
    ]


def _lost_head(change: CaseChange, style: Style) -> str:
    flaky = style.paint("yellow", "  flaky") if change.flaky else ""
    target = style.paint("dim", f"  {clean(change.target)}") if change.target else ""
    label = "REGRESSED" if change.regressed else "LOST"
    return f"{style.paint('red', label)} {clean(_name(change))}  {passed_change(change)}{flaky}{target}"


def passed_change(change: CaseChange) -> str:
    """Return `3/3 -> 0/3 passed, score 1.00 -> 0.50`."""
    a, b = change.a, change.b
    scores = "" if a.score is None or b.score is None else f", score {a.score:.2f} -> {b.score:.2f}"
    return f"{_fraction(a)} -> {_fraction(b)} passed{scores}"


def _name(case: CaseReference | CaseChange | CasePreference) -> str:
    return case_name(case.case_id, case.persona_id)


def _fraction(side: CaseSide) -> str:
    return f"{side.passed}/{side.passed + side.failed}"


def _lost_case(change: CaseChange, style: Style) -> list[str]:
    return [_lost_head(change, style), *(f"  {line}".rstrip() for line in explain_loss(change, style))]


def explain_loss(change: CaseChange, style: Style) -> list[str]:
    """Return what B missed in a lost case, and how its calls differ from those of A, as lines."""
    lines: list[str] = []
    evaluators = () if isinstance(change.evaluators, UnsetType) else change.evaluators
    sides = (None,) * len(evaluators) if isinstance(change.sides, UnsetType) else change.sides
    for group in group_by_turn(zip(evaluators, sides, strict=True), change.turns):
        lines += [turn_line(change.turns, group.turn, str)] if group.turn else []
        for result, side in group.results:
            lines += render_evaluator(result, side, style)
    if not isinstance(change.calls, UnsetType):
        same = all(pair.verdict == "match" for pair in change.calls)
        lines += ["  its calls are the same as in A"] if same else _side_by_side(change.calls, style)
    elif not isinstance(change.calls_by_name, UnsetType) and change.calls_by_name:
        counts = ", ".join(
            f"{clean(tool)} {before} -> {after}" for tool, (before, after) in change.calls_by_name.items()
        )
        lines.append(f"  calls: {counts}")
    if not isinstance(change.divergence, UnsetType):
        found = change.divergence
        lines.append(f"  first divergence: {clean(found.sentence)} (p = {format_p_value(found.p_value)})")
    return lines


def _side_by_side(calls: Sequence[CallPair], style: Style) -> list[str]:
    widest = max(map(display_width, [pair.a for pair in calls]), default=0)
    left = max(MIN_COLUMN, min(widest, (style.width - 11) // 2))
    right = max(MIN_COLUMN, style.width - 11 - left)
    bar = style.mark("bar")
    lines = [style.paint("dim", f"    {fit('calls of A', left)} {bar} calls of B")]
    for pair in calls[:MAX_PAIRS]:
        text = f"  {style.mark(pair.verdict)} {fit(pair.a, left)} {bar} {fit(pair.b, right).rstrip()}"
        lines.append(style.paint(COLORS[pair.verdict], text))
    more = len(calls) - MAX_PAIRS
    return (
        [*lines, f"    … {more:,} more rows; the whole is in `calls` of agentv compare --json"] if more > 0 else lines
    )


def other_cases(comparison: Comparison) -> list[str]:
    """Return lines with the names of cases that were won, or that are not in the test."""
    lists = [
        ("won", comparison.won),
        ("not measured on both sides", comparison.not_measured),
        (f"only in A ({clean(comparison.a.name)})", comparison.only_a),
        (f"only in B ({clean(comparison.b.name)})", comparison.only_b),
    ]
    return [f"{label}: {_list_names(cases, clean, MAX_OTHERS)}" for label, cases in lists if cases.count]


def _list_names(cases: CaseList, format_: Callable[[str], str], limit: int) -> str:
    names = [format_(_name(case)) for case in cases.cases[:limit]]
    more = cases.count - len(names)
    return ", ".join([*names, *([f"{more:,} more"] if more else [])])


def closing_lines(comparison: Comparison) -> list[str]:
    """Return lines on the sample size when no difference was seen, and on regressions."""
    needed = comparison.needed
    lines = []
    if needed is not None:
        difference = f"a difference of {needed.difference * 100:g} pp"
        if needed.more:
            lines.append(
                f"about {needed.more:,} more cases would be needed to see {difference} ({needed.power * 100:g} % power)"
            )
        else:
            lines.append(
                f"{difference} would probably have been seen: it takes about {pluralize(needed.cases, 'case')}"
            )
    lines += _power_lines(comparison)
    lines += [f"missing: {clean(sentence)}" for sentence in comparison.missing]
    return lines


def _power_lines(comparison: Comparison) -> list[str]:
    """Return what the comparison could have shown, where it did not name all lost cases."""
    power = comparison.power
    if power is None or comparison.regressed.count >= comparison.losses + len(comparison.declined) > 0:
        return []
    lines = []
    if comparison.losses > comparison.regressed.count:
        unclear = comparison.losses - (comparison.regressed.count - len(comparison.declined))
        lines.append(
            f"{pluralize(unclear, 'lost case')} may be chance: one that fails in every run is told from it by"
            f" {pluralize(power.runs_to_name_a_case, 'run')} on each side, and there {_are(power.runs)}"
        )
    if comparison.verdict == "no difference seen" and power.power is not None:
        lines.append(
            f"a drop of {power.difference * 100:g} points would be seen with a probability of {power.power * 100:.0f} %"
        )
    return lines


def _are(runs: int) -> str:
    return "was 1" if runs == 1 else f"were {runs:,}"


MAX_JUDGED_SHOWN = 20
MAX_REASON = 500
JUDGED_COLORS = {"error": "yellow", "loss": "red", "win": "green"}


def judged_lines(judged: JudgePreference, style: Style) -> list[str]:
    """Return the section on judged answers for a terminal."""
    lines = [f"{style.paint('bold', f'judged by {clean(judged.judge)}')}: {judged_text(judged)}"]
    lines += [f"  {line}" for line in _judge_notes(judged)]
    shown, more = _decided_cases(judged)
    for case in shown:
        head = style.paint(JUDGED_COLORS[case.result], case.result.upper())
        target = style.paint("dim", f"  {clean(case.target)}") if case.target else ""
        lines.append(f"  {head} {clean(_name(case))}{target}  {clean(_reason(case))}")
    lines += [style.paint("dim", f"  {more:,} more; --json lists them")] if more else []
    return [*lines, ""]


def judged_page(judged: JudgePreference) -> list[str]:
    """Return the section on judged answers for a page."""
    lines = [f"## Judged by {code_span(judged.judge)}", "", f"{judged_text(judged)}.", ""]
    lines += [f"- {line}" for line in _judge_notes(judged)]
    lines.append("")
    shown, more = _decided_cases(judged)
    if shown:
        lines += ["| | case | why |", "|---|---|---|"]
        lines += [f"| {case.result} | {code_span(_name(case))} | {_cell(_reason(case))} |" for case in shown]
        lines += ["", *([f"{more:,} more.", ""] if more else [])]
    return lines


def judged_text(judged: JudgePreference) -> str:
    """Return how often B won, with the test of that."""
    if judged.p_value is None:
        return f"nothing was decided, {pluralize(judged.errors, 'error')}"
    errors = f", {pluralize(judged.errors, 'error')}" if judged.errors else ""
    counts = f"{_counts(judged.wins, judged.losses, judged.ties)}{errors}"
    return f"{counts} for B (exact sign test p = {format_p_value(judged.p_value)})"


def _judge_notes(judged: JudgePreference) -> list[str]:
    both = f"its two orders disagreed on {judged.inconsistent:,} of {pluralize(judged.cases, 'case')}"
    lines = [f"{both}: a tie each" if judged.inconsistent else both] if judged.cases else []
    lines.append(judge_usage_text(judged.used))
    if judged.shortened:
        lines.append(f"{pluralize(judged.shortened, 'case')} seen in part: of a long text the beginning and the end")
    lines += [f"{pluralize(number, 'case')} not judged: {reason}" for reason, number in judged.not_judged.items()]
    return lines


def _decided_cases(judged: JudgePreference) -> tuple[list[CasePreference], int]:
    """Return the listed cases that were not a tie, and the number of further ones."""
    shown = [case for case in judged.listed if case.result != "tie"][:MAX_JUDGED_SHOWN]
    return shown, judged.wins + judged.losses + judged.errors - len(shown)


def _reason(case: CasePreference) -> str:
    text = " ".join(case.reason.split())
    return shorten(text, MAX_REASON)


def _cell(text: str) -> str:
    return code_span(text) if text else ""


MAX_PAGE_NAMES = 20
ROOM_FOR_NAMES = 20_000
PLAIN = Style()
_SIGNS = {"better": "✅", "worse": "❌", "no difference seen": "⚖️", "nothing measured": "⚠️"}


def render_page(comparison: Comparison, failures: Sequence[str] = ()) -> str:
    """Render a comparison as a Markdown page that fits a GitHub comment."""
    lines = [
        *(f"# ❌ {_capital(failure)}\n" for failure in failures),
        f"# {'❌' if comparison.regression else _SIGNS[comparison.verdict]} {_capital(verdict_text(comparison))}",
        "",
        _side_item("A", comparison.a),
        _side_item("B", comparison.b),
        "",
        f"| | A | B | {difference_heading(comparison)} |",
        "|---|---:|---:|---|",
        *(f"| {line.name} | {line.a} | {line.b} | {line.difference} |" for line in measure_rows(comparison)),
        "",
    ]
    judged = [] if comparison.judged is None else judged_page(comparison.judged)
    room = MAX_PAGE - ROOM_FOR_NAMES - byte_size(lines) - byte_size(judged)
    shown = 0
    for change in [*comparison.declined, *comparison.lost]:
        section = _lost_section(change)
        room -= byte_size(section)
        if not change.evaluators or room < 0:
            break
        lines += [*(["## Lost", ""] if not shown else []), *section]
        shown += 1
    rest = [*comparison.declined, *comparison.lost][shown : shown + MAX_PAGE_NAMES]
    if rest:
        more = comparison.losses + len(comparison.declined) - shown - len(rest)
        names = [code_span(_name(change)) for change in rest] + ([f"{more:,} more"] if more else [])
        lines += [f"Lost, too: {', '.join(names)}.", ""]
    lines += judged
    lines += _others(comparison)
    lines += [f"{_capital(line)}.\n" for line in closing_lines(comparison)]
    return "\n".join(lines)


def _side_item(letter: str, side: Side) -> str:
    targets = ", ".join(map(code_span, side.targets[:MAX_PAGE_NAMES]))
    errors = f", {pluralize(side.errors, 'error')}" if side.errors else ""
    return (
        f"- {letter}: {code_span(side.name)} · {targets} · {pluralize(side.cases, 'case')}{errors}{cut_off_note(side)}"
    )


def _lost_section(change: CaseChange) -> list[str]:
    text = "\n".join(line.rstrip() for line in explain_loss(change, PLAIN))
    more = len(text) - MAX_BODY
    body = text if more <= 0 else f"{text[:MAX_BODY]}\n… {more:,} more characters"
    flaky = " · flaky" if change.flaky else ""
    target = f" · {code_span(change.target)}" if change.target else ""
    about = f"{code_span(change.eval_id)}{target} · {passed_change(change)}{flaky}"
    return [f"### {code_span(_name(change))}", "", about, "", fenced_block(body or "(nothing more is known)"), ""]


def _others(comparison: Comparison) -> list[str]:
    lists = [
        ("Won", comparison.won),
        ("Not measured on both sides", comparison.not_measured),
        ("Only in A", comparison.only_a),
        ("Only in B", comparison.only_b),
    ]
    lines = [f"- {label}: {_list_names(cases, code_span, MAX_PAGE_NAMES)}" for label, cases in lists if cases.count]
    return [*lines, ""] if lines else []


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
