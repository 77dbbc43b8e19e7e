"""What is wrong with files, as people read it: the place, the line, and a mark under the culprit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.reports.terminal import Style, clean, width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.errors import Place, Problem

MAX_LINE = 200
"""Characters that are shown of a line."""
MARGIN = 60
"""How many of them stand before the culprit, at most, where the line is longer."""


def render_problems(problems: Sequence[Problem], style: Style) -> str:
    """Every problem with its line, and how many there are."""
    lines: list[str] = []
    for problem in problems:
        lines += [_head(problem, style), *_excerpt(problem.place, style)]
    return "\n".join([*lines, f"{counted(len(problems), 'error')}, nothing was run"])


def render_warnings(warnings: Sequence[Problem], style: Style) -> str:
    """The same for what is allowed and probably not meant."""
    return "\n".join(f"{_place(each)}{style.paint('yellow', 'warning')}: {clean(each.sentence)}" for each in warnings)


def counted(number: int, noun: str) -> str:
    """`1 error`, `3 errors`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _head(problem: Problem, style: Style) -> str:
    if problem.place is None:
        return clean(str(problem))
    return f"{style.paint('bold', _place(problem))}{clean(problem.sentence)}"


def _place(problem: Problem) -> str:
    return f"{clean(str(problem.place))}: " if problem.place else ""


def _excerpt(place: Place | None, style: Style) -> list[str]:
    if place is None or not place.column or not place.text.strip():
        return []
    # Of a line that is very long, as in a file that a program wrote, the part around the culprit.
    first = 0 if place.column < MAX_LINE - MARGIN else place.column - MARGIN
    cut = "... " if first else ""
    text = place.text.expandtabs(1)[first : first + MAX_LINE]
    start = place.column - 1 - first
    before = " " * (len(cut) + width_of(clean(text[:start])))
    marks = "^" * max(1, min(place.width, len(text) - start))
    text = cut + clean(text)
    number = f"{place.line:>5}"
    return [
        style.paint("dim", f"{number} | ") + text,
        style.paint("dim", f"{' ' * len(number)} | ") + before + style.paint("red", marks),
    ]
