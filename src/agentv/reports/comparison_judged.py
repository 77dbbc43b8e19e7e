"""What a judge says of two executions: on a terminal, and on a page of Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.reports.comparison import p_value
from agentv.reports.console import judge_used
from agentv.reports.markdown import code
from agentv.reports.problems import counted
from agentv.reports.terminal import clean

if TYPE_CHECKING:
    from agentv.model.comparison import JudgedCase, JudgedSide
    from agentv.reports.terminal import Style

MAX_SHOWN = 20
MAX_REASON = 500
COLORS = {"error": "yellow", "loss": "red", "win": "green"}


def judged_lines(judged: JudgedSide, style: Style) -> list[str]:
    """The section of a terminal."""
    lines = [f"{style.paint('bold', f'judged by {clean(judged.judge)}')}: {judged_sentence(judged)}"]
    lines += [f"  {line}" for line in _about(judged)]
    shown, more = _shown(judged)
    for each in shown:
        head = style.paint(COLORS[each.result], each.result.upper())
        target = style.paint("dim", f"  {clean(each.target)}") if each.target else ""
        lines.append(f"  {head} {clean(each.case_id)}{target}  {clean(_reason(each))}")
    lines += [style.paint("dim", f"  {more:,} more; --json lists them")] if more else []
    return [*lines, ""]


def judged_page(judged: JudgedSide) -> list[str]:
    """The section of a page."""
    lines = [f"## Judged by {code(judged.judge)}", "", f"{judged_sentence(judged)}.", ""]
    lines += [f"- {line}" for line in _about(judged)]
    lines.append("")
    shown, more = _shown(judged)
    if shown:
        lines += ["| | case | why |", "|---|---|---|"]
        lines += [f"| {each.result} | {code(each.case_id)} | {_cell(_reason(each))} |" for each in shown]
        lines += ["", *([f"{more:,} more.", ""] if more else [])]
    return lines


def judged_sentence(judged: JudgedSide) -> str:
    """How often B won, and what that is worth."""
    if judged.p_value is None:
        return f"nothing was decided, {counted(judged.errors, 'error')}"
    losses = f"{judged.losses:,} {'loss' if judged.losses == 1 else 'losses'}"
    errors = f", {counted(judged.errors, 'error')}" if judged.errors else ""
    counts = f"{counted(judged.wins, 'win')}, {losses}, {counted(judged.ties, 'tie')}{errors}"
    return f"{counts} for B (exact sign test p = {p_value(judged.p_value)})"


def _about(judged: JudgedSide) -> list[str]:
    both = f"its two orders disagreed on {judged.inconsistent:,} of {counted(judged.cases, 'case')}"
    lines = [f"{both}: a tie each" if judged.inconsistent else both] if judged.cases else []
    lines.append(judge_used(judged.used))
    if judged.shortened:
        lines.append(f"{counted(judged.shortened, 'case')} seen in part: of a long text the beginning and the end")
    lines += [f"{counted(number, 'case')} not judged: {why}" for why, number in judged.not_judged.items()]
    return lines


def _shown(judged: JudgedSide) -> tuple[list[JudgedCase], int]:
    """What was not a tie, as far as there is room, and how many more there are."""
    shown = [each for each in judged.listed if each.result != "tie"][:MAX_SHOWN]
    return shown, judged.wins + judged.losses + judged.errors - len(shown)


def _reason(each: JudgedCase) -> str:
    text = " ".join(each.reason.split())
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 1]}…"


def _cell(text: str) -> str:
    return code(text) if text else ""
