"""Two executions side by side on one page of Markdown, for a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.reports.comparison import closing, explained, heading, passed_of, sentence, table, torn
from agentv.reports.comparison_judged import judged_page
from agentv.reports.markdown import MAX_BODY, MAX_PAGE, code, fenced
from agentv.reports.problems import counted
from agentv.reports.terminal import Style

if TYPE_CHECKING:
    from agentv.model.comparison import CaseName, Change, Comparison, Named, Side

MAX_NAMED = 20
ROOM_FOR_NAMES = 20_000
PLAIN = Style()
_SIGNS = {"better": "✅", "worse": "❌", "no difference seen": "⚖️", "nothing measured": "⚠️"}


def render_page(comparison: Comparison) -> str:
    """The page, which GitHub takes as a comment however many cases there are."""
    lines = [
        f"# {_SIGNS[comparison.verdict]} {_capital(sentence(comparison))}",
        "",
        _about("A", comparison.a),
        _about("B", comparison.b),
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
        section = _lost(change)
        room -= _size(section)
        if not change.evaluators or room < 0:
            break
        lines += [*(["## Lost", ""] if not shown else []), *section]
        shown += 1
    rest = comparison.lost[shown : shown + MAX_NAMED]
    if rest:
        more = comparison.losses - shown - len(rest)
        names = [code(change.case_id) for change in rest] + ([f"{more:,} more"] if more else [])
        lines += [f"Lost, too: {', '.join(names)}.", ""]
    lines += judged
    lines += _others(comparison)
    lines += [f"{_capital(line)}.\n" for line in closing(comparison)]
    return "\n".join(lines)


def _about(letter: str, side: Side) -> str:
    targets = ", ".join(map(code, side.targets[:MAX_NAMED]))
    errors = f", {counted(side.errors, 'error')}" if side.errors else ""
    return f"- {letter}: {code(side.name)} · {targets} · {counted(side.cases, 'case')}{errors}{torn(side)}"


def _lost(change: Change) -> list[str]:
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
    lines = [f"- {what}: {_names(named)}" for what, named in found if named.count]
    return [*lines, ""] if lines else []


def _names(named: Named) -> str:
    names = [_name(case) for case in named.cases[:MAX_NAMED]]
    more = named.count - len(names)
    return ", ".join([*names, *([f"{more:,} more"] if more else [])])


def _name(case: CaseName) -> str:
    return code(case.case_id)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _size(lines: list[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
