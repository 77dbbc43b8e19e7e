"""Comparisons on the terminal and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UnsetType

from agentv.reports.console import judge_used
from agentv.reports.diff import COLORS, MIN_COLUMN, render_evaluator
from agentv.reports.markdown import MAX_BODY, MAX_PAGE, code, fenced
from agentv.reports.terminal import Style, as_ascii, clean, counted, fit, width_of

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
"""Names of cases that were won, not measured, or on one side only."""
VERDICTS = {"better": "green", "worse": "red", "no difference seen": "bold", "nothing measured": "yellow"}
_SMALL = 0.001


class TableLine(NamedTuple):
    """One row of the table."""

    name: str
    a: str
    b: str
    difference: str


def render_comparison(comparison: Comparison, style: Style) -> str:
    """All of it, as text."""
    lines = [
        f"{style.paint(VERDICTS[comparison.verdict], sentence(comparison))}",
        *(f"  {name}  {_side_line(side)}" for name, side in (("A", comparison.a), ("B", comparison.b))),
        "",
        *_table(table(comparison), comparison),
        "",
    ]
    for change in comparison.lost[:MAX_SHOWN]:
        lines += [*_lost_case(change, style), ""]
    rest = comparison.lost[MAX_SHOWN:MAX_NAMED]
    lines += [_lost_head(change, style) for change in rest]
    more = comparison.losses - len(comparison.lost[:MAX_NAMED])
    lines += [style.paint("dim", f"     {more:,} more were lost")] if more > 0 else []
    lines += [""] if rest or more > 0 else []
    if comparison.judged is not None:
        lines += judged_lines(comparison.judged, style)
    text = "\n".join([*lines, *others(comparison), *closing(comparison), ""])
    return text if style.unicode else as_ascii(text)


def sentence(comparison: Comparison) -> str:
    """The verdict with what it rests on."""
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
    counts = f"{counted(comparison.wins, 'win')}, {_plural(comparison.losses, 'loss', 'losses')}, {_ties(ties)}"
    return f"{verdict}{by}: {counts} (exact McNemar p = {p_value(comparison.p_value)})"


def p_value(value: float) -> str:
    """Never rounded down to nothing."""
    return f"{value:.3f}" if value >= _SMALL else f"{value:.1e}"


def _ties(number: int) -> str:
    return _plural(number, "tie", "ties")


def _plural(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _side_line(side: Side) -> str:
    targets = ", ".join(map(clean, side.targets))
    errors = f", {counted(side.errors, 'error')}" if side.errors else ""
    left_out = f" (not compared: {', '.join(map(clean, side.targets_left_out))})" if side.targets_left_out else ""
    runs = f", {counted(side.runs, 'run')}" if side.runs != side.cases else ""
    return f"{clean(side.name)}  {targets}{left_out}  {counted(side.cases, 'case')}{runs}{errors}{torn(side)}"


def torn(side: Side) -> str:
    """What is said of a file that a crash left in the middle of a line."""
    return "; its last line is cut off, as after a crash, and left out" if side.cut_off else ""


def table(comparison: Comparison) -> list[TableLine]:
    """The numbers of both sides, each with its difference."""
    measures = comparison.measures
    return [
        _line("pass rate", measures.pass_rate, _percent, share=False),
        _line("score", measures.score, _score, share=False),
        _line("input tokens", measures.input_tokens, _tokens),
        _line("output tokens", measures.output_tokens, _tokens),
        _line("cost", measures.cost_usd, _dollars),
        _line("latency p50", measures.latency_p50_ms, _seconds),
        _line("latency p95", measures.latency_p95_ms, _seconds),
    ]


def _line(name: str, measure: Measure, shown: Callable[[float], str], *, share: bool = True) -> TableLine:
    a, b = (("not reported" if share else "-") if each is None else shown(each) for each in (measure.a, measure.b))
    if measure.difference is None:
        return TableLine(name, a, b, "")
    differing = _points if shown is _percent else shown
    text = _signed(measure.difference, differing)
    text += " pp" if shown is _percent else ""
    if measure.interval is not None:
        low, high = (_signed(end, differing) for end in measure.interval)
        text += f" ({low} to {high})"
    if share and measure.a and _signed(measure.difference, shown) != shown(0.0):
        text += f", {_signed(measure.difference / measure.a, _percent)}"
    return TableLine(name, a, b, text)


def _signed(number: float, shown: Callable[[float], str]) -> str:
    text = shown(abs(number))
    nothing = text == shown(0.0)
    return text if nothing else f"{'-' if number < 0 else '+'}{text}"


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


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.2f} s" if milliseconds >= 100 else f"{milliseconds:.3g} ms"  # noqa: PLR2004


def heading(comparison: Comparison) -> str:
    """What the last column holds."""
    return f"difference ({comparison.confidence * 100:g} % CI)"


def _table(lines: Sequence[TableLine], comparison: Comparison) -> list[str]:
    everything = [TableLine("", "A", "B", heading(comparison)), *lines]
    names, ours, theirs = (max(map(len, column)) for column in list(zip(*everything, strict=True))[:3])
    return [
        f"  {line.name:<{names}}  {line.a:>{ours}}  {line.b:>{theirs}}  {line.difference}".rstrip()
        for line in everything
    ]


def _lost_head(change: CaseChange, style: Style) -> str:
    flaky = style.paint("yellow", "  flaky") if change.flaky else ""
    target = style.paint("dim", f"  {clean(change.target)}") if change.target else ""
    return f"{style.paint('red', 'LOST')} {clean(change.case_id)}  {passed_of(change)}{flaky}{target}"


def passed_of(change: CaseChange) -> str:
    """`3/3 -> 0/3 passed, score 1.00 -> 0.50`."""
    a, b = change.a, change.b
    scores = "" if a.score is None or b.score is None else f", score {a.score:.2f} -> {b.score:.2f}"
    return f"{_fraction(a)} -> {_fraction(b)} passed{scores}"


def _fraction(side: CaseSide) -> str:
    return f"{side.passed}/{side.passed + side.failed}"


def _lost_case(change: CaseChange, style: Style) -> list[str]:
    return [_lost_head(change, style), *(f"  {line}".rstrip() for line in explained(change, style))]


def explained(change: CaseChange, style: Style) -> list[str]:
    """What B missed in a case that it lost, and what it called otherwise than A."""
    lines: list[str] = []
    evaluators = () if isinstance(change.evaluators, UnsetType) else change.evaluators
    sides = (None,) * len(evaluators) if isinstance(change.sides, UnsetType) else change.sides
    for result, side in zip(evaluators, sides, strict=True):
        lines += render_evaluator(result, side, style)
    if not isinstance(change.calls, UnsetType):
        same = all(pair.verdict == "match" for pair in change.calls)
        lines += ["  its calls are the same as in A"] if same else _side_by_side(change.calls, style)
    elif not isinstance(change.calls_by_name, UnsetType) and change.calls_by_name:
        counts = ", ".join(
            f"{clean(tool)} {before} -> {after}" for tool, (before, after) in change.calls_by_name.items()
        )
        lines.append(f"  calls: {counts}")
    return lines


def _side_by_side(calls: Sequence[CallPair], style: Style) -> list[str]:
    widest = max(map(width_of, [pair.a for pair in calls]), default=0)
    left = max(MIN_COLUMN, min(widest, (style.width - 11) // 2))
    right = max(MIN_COLUMN, style.width - 11 - left)
    bar = style.mark("bar")
    lines = [style.paint("dim", f"    {fit('calls of A', left)} {bar} calls of B")]
    for pair in calls:
        text = f"  {style.mark(pair.verdict)} {fit(pair.a, left)} {bar} {fit(pair.b, right).rstrip()}"
        lines.append(style.paint(COLORS[pair.verdict], text))
    return lines


def others(comparison: Comparison) -> list[str]:
    """The cases that are in no test, and those that were won, by name as far as there is room."""
    found = [
        ("won", comparison.won),
        ("not measured on both sides", comparison.not_measured),
        (f"only in A ({clean(comparison.a.name)})", comparison.only_a),
        (f"only in B ({clean(comparison.b.name)})", comparison.only_b),
    ]
    return [f"{what}: {_list_names(named)}" for what, named in found if named.count]


def _list_names(named: CaseList) -> str:
    names = [_case_name(case) for case in named.cases[:MAX_OTHERS]]
    more = named.count - len(names)
    return ", ".join([*names, *([f"{more:,} more"] if more else [])])


def _case_name(case: CaseReference) -> str:
    return clean(case.case_id)


def closing(comparison: Comparison) -> list[str]:
    """What to do when nothing was seen, or what the gate would say."""
    needed = comparison.needed
    lines = []
    if needed is not None:
        asked = f"a difference of {needed.difference * 100:g} pp"
        if needed.more:
            lines.append(
                f"about {needed.more:,} more cases would be needed to see {asked} ({needed.power * 100:g} % power)"
            )
        else:
            lines.append(f"{asked} would probably have been seen: it takes about {counted(needed.cases, 'case')}")
    if comparison.clear_losses:
        number = _plural(comparison.clear_losses, "case", "cases")
        lines.append(f"regression: {number} passed in every run of A and failed in every run of B")
    return lines


MAX_JUDGED_SHOWN = 20
MAX_REASON = 500
JUDGED_COLORS = {"error": "yellow", "loss": "red", "win": "green"}


def judged_lines(judged: JudgePreference, style: Style) -> list[str]:
    """The section of a terminal."""
    lines = [f"{style.paint('bold', f'judged by {clean(judged.judge)}')}: {judged_sentence(judged)}"]
    lines += [f"  {line}" for line in _judge_notes(judged)]
    shown, more = _decided_cases(judged)
    for each in shown:
        head = style.paint(JUDGED_COLORS[each.result], each.result.upper())
        target = style.paint("dim", f"  {clean(each.target)}") if each.target else ""
        lines.append(f"  {head} {clean(each.case_id)}{target}  {clean(_reason(each))}")
    lines += [style.paint("dim", f"  {more:,} more; --json lists them")] if more else []
    return [*lines, ""]


def judged_page(judged: JudgePreference) -> list[str]:
    """The section of a page."""
    lines = [f"## Judged by {code(judged.judge)}", "", f"{judged_sentence(judged)}.", ""]
    lines += [f"- {line}" for line in _judge_notes(judged)]
    lines.append("")
    shown, more = _decided_cases(judged)
    if shown:
        lines += ["| | case | why |", "|---|---|---|"]
        lines += [f"| {each.result} | {code(each.case_id)} | {_cell(_reason(each))} |" for each in shown]
        lines += ["", *([f"{more:,} more.", ""] if more else [])]
    return lines


def judged_sentence(judged: JudgePreference) -> str:
    """How often B won, and what that is worth."""
    if judged.p_value is None:
        return f"nothing was decided, {counted(judged.errors, 'error')}"
    losses = f"{judged.losses:,} {'loss' if judged.losses == 1 else 'losses'}"
    errors = f", {counted(judged.errors, 'error')}" if judged.errors else ""
    counts = f"{counted(judged.wins, 'win')}, {losses}, {counted(judged.ties, 'tie')}{errors}"
    return f"{counts} for B (exact sign test p = {p_value(judged.p_value)})"


def _judge_notes(judged: JudgePreference) -> list[str]:
    both = f"its two orders disagreed on {judged.inconsistent:,} of {counted(judged.cases, 'case')}"
    lines = [f"{both}: a tie each" if judged.inconsistent else both] if judged.cases else []
    lines.append(judge_used(judged.used))
    if judged.shortened:
        lines.append(f"{counted(judged.shortened, 'case')} seen in part: of a long text the beginning and the end")
    lines += [f"{counted(number, 'case')} not judged: {why}" for why, number in judged.not_judged.items()]
    return lines


def _decided_cases(judged: JudgePreference) -> tuple[list[CasePreference], int]:
    """What was not a tie, as far as there is room, and how many more there are."""
    shown = [each for each in judged.listed if each.result != "tie"][:MAX_JUDGED_SHOWN]
    return shown, judged.wins + judged.losses + judged.errors - len(shown)


def _reason(each: CasePreference) -> str:
    text = " ".join(each.reason.split())
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 1]}…"


def _cell(text: str) -> str:
    return code(text) if text else ""


MAX_PAGE_NAMES = 20
ROOM_FOR_NAMES = 20_000
PLAIN = Style()
_SIGNS = {"better": "✅", "worse": "❌", "no difference seen": "⚖️", "nothing measured": "⚠️"}


def render_page(comparison: Comparison) -> str:
    """The page, which GitHub takes as a comment however many cases there are."""
    lines = [
        f"# {_SIGNS[comparison.verdict]} {_capital(sentence(comparison))}",
        "",
        _side_item("A", comparison.a),
        _side_item("B", comparison.b),
        "",
        f"| | A | B | {heading(comparison)} |",
        "|---|---:|---:|---|",
        *(f"| {line.name} | {line.a} | {line.b} | {line.difference} |" for line in table(comparison)),
        "",
    ]
    judged = [] if comparison.judged is None else judged_page(comparison.judged)
    room = MAX_PAGE - ROOM_FOR_NAMES - _size(lines) - _size(judged)
    shown = 0
    for change in comparison.lost:
        section = _lost_section(change)
        room -= _size(section)
        if not change.evaluators or room < 0:
            break
        lines += [*(["## Lost", ""] if not shown else []), *section]
        shown += 1
    rest = comparison.lost[shown : shown + MAX_PAGE_NAMES]
    if rest:
        more = comparison.losses - shown - len(rest)
        names = [code(change.case_id) for change in rest] + ([f"{more:,} more"] if more else [])
        lines += [f"Lost, too: {', '.join(names)}.", ""]
    lines += judged
    lines += _others(comparison)
    lines += [f"{_capital(line)}.\n" for line in closing(comparison)]
    return "\n".join(lines)


def _side_item(letter: str, side: Side) -> str:
    targets = ", ".join(map(code, side.targets[:MAX_PAGE_NAMES]))
    errors = f", {counted(side.errors, 'error')}" if side.errors else ""
    return f"- {letter}: {code(side.name)} · {targets} · {counted(side.cases, 'case')}{errors}{torn(side)}"


def _lost_section(change: CaseChange) -> list[str]:
    text = "\n".join(line.rstrip() for line in explained(change, PLAIN))
    more = len(text) - MAX_BODY
    body = text if more <= 0 else f"{text[:MAX_BODY]}\n… {more:,} more characters"
    flaky = " · flaky" if change.flaky else ""
    target = f" · {code(change.target)}" if change.target else ""
    about = f"{code(change.eval_id)}{target} · {passed_of(change)}{flaky}"
    return [f"### {code(change.case_id)}", "", about, "", fenced(body or "(nothing more is known)"), ""]


def _others(comparison: Comparison) -> list[str]:
    found = [
        ("Won", comparison.won),
        ("Not measured on both sides", comparison.not_measured),
        ("Only in A", comparison.only_a),
        ("Only in B", comparison.only_b),
    ]
    lines = [f"- {what}: {_code_names(named)}" for what, named in found if named.count]
    return [*lines, ""] if lines else []


def _code_names(named: CaseList) -> str:
    names = [_case_code(case) for case in named.cases[:MAX_PAGE_NAMES]]
    more = named.count - len(names)
    return ", ".join([*names, *([f"{more:,} more"] if more else [])])


def _case_code(case: CaseReference) -> str:
    return code(case.case_id)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _size(lines: list[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
