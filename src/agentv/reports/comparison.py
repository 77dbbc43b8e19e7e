"""Two executions side by side on a terminal: the verdict, the numbers, what was lost and why, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UnsetType

from agentv.reports.diff import COLORS, MIN_COLUMN, render_evaluator
from agentv.reports.problems import counted
from agentv.reports.terminal import as_ascii, clean, fit, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.model.comparison import CallPair, CaseName, CaseSide, Change, Comparison, Measure, Named, Side
    from agentv.reports.terminal import Style

MAX_SHOWN = 20
MAX_NAMED = 200
MAX_OTHERS = 10
"""Names of cases that were won, not measured, or on one side only."""
VERDICTS = {"better": "green", "worse": "red", "no difference seen": "bold", "nothing measured": "yellow"}
_SMALL = 0.001


class Line(NamedTuple):
    """One row of the table."""

    name: str
    a: str
    b: str
    difference: str


def render_comparison(comparison: Comparison, style: Style) -> str:
    """All of it, as text."""
    lines = [
        f"{style.paint(VERDICTS[comparison.verdict], sentence(comparison))}",
        *(f"  {name}  {_about(side)}" for name, side in (("A", comparison.a), ("B", comparison.b))),
        "",
        *_table(table(comparison), comparison),
        "",
    ]
    for change in comparison.lost[:MAX_SHOWN]:
        lines += [*_lost(change, style), ""]
    rest = comparison.lost[MAX_SHOWN:MAX_NAMED]
    lines += [_lost_head(change, style) for change in rest]
    more = comparison.losses - len(comparison.lost[:MAX_NAMED])
    lines += [style.paint("dim", f"     {more:,} more were lost")] if more > 0 else []
    lines += [""] if rest or more > 0 else []
    if comparison.judged is not None:
        from agentv.reports.comparison_judged import judged_lines  # noqa: PLC0415 - only a judge needs it

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


def _about(side: Side) -> str:
    targets = ", ".join(map(clean, side.targets))
    errors = f", {counted(side.errors, 'error')}" if side.errors else ""
    left_out = f" (not compared: {', '.join(map(clean, side.targets_left_out))})" if side.targets_left_out else ""
    runs = f", {counted(side.runs, 'run')}" if side.runs != side.cases else ""
    return f"{clean(side.name)}  {targets}{left_out}  {counted(side.cases, 'case')}{runs}{errors}{torn(side)}"


def torn(side: Side) -> str:
    """What is said of a file that a crash left in the middle of a line."""
    return "; its last line is cut off, as after a crash, and left out" if side.cut_off else ""


def table(comparison: Comparison) -> list[Line]:
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


def _line(name: str, measure: Measure, shown: Callable[[float], str], *, share: bool = True) -> Line:
    a, b = (("not reported" if share else "-") if each is None else shown(each) for each in (measure.a, measure.b))
    if measure.difference is None:
        return Line(name, a, b, "")
    differing = _points if shown is _percent else shown
    text = _signed(measure.difference, differing)
    text += " pp" if shown is _percent else ""
    if measure.interval is not None:
        low, high = (_signed(end, differing) for end in measure.interval)
        text += f" ({low} to {high})"
    if share and measure.a and _signed(measure.difference, shown) != shown(0.0):
        text += f", {_signed(measure.difference / measure.a, _percent)}"
    return Line(name, a, b, text)


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


def _table(lines: Sequence[Line], comparison: Comparison) -> list[str]:
    everything = [Line("", "A", "B", heading(comparison)), *lines]
    names, ours, theirs = (max(map(len, column)) for column in list(zip(*everything, strict=True))[:3])
    return [
        f"  {line.name:<{names}}  {line.a:>{ours}}  {line.b:>{theirs}}  {line.difference}".rstrip()
        for line in everything
    ]


def _lost_head(change: Change, style: Style) -> str:
    flaky = style.paint("yellow", "  flaky") if change.flaky else ""
    target = style.paint("dim", f"  {clean(change.target)}") if change.target else ""
    return f"{style.paint('red', 'LOST')} {clean(change.case_id)}  {passed_of(change)}{flaky}{target}"


def passed_of(change: Change) -> str:
    """`3/3 -> 0/3 passed, score 1.00 -> 0.50`."""
    a, b = change.a, change.b
    scores = "" if a.score is None or b.score is None else f", score {a.score:.2f} -> {b.score:.2f}"
    return f"{_fraction(a)} -> {_fraction(b)} passed{scores}"


def _fraction(side: CaseSide) -> str:
    return f"{side.passed}/{side.passed + side.failed}"


def _lost(change: Change, style: Style) -> list[str]:
    return [_lost_head(change, style), *(f"  {line}".rstrip() for line in explained(change, style))]


def explained(change: Change, style: Style) -> list[str]:
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
    return [f"{what}: {_names(named)}" for what, named in found if named.count]


def _names(named: Named) -> str:
    names = [_name(case) for case in named.cases[:MAX_OTHERS]]
    more = named.count - len(names)
    return ", ".join([*names, *([f"{more:,} more"] if more else [])])


def _name(case: CaseName) -> str:
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
