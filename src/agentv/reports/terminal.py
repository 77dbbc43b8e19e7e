"""Styles, width and control characters of a terminal, and problems with an excerpt."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.errors import Place, Problem


COLORS = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}
MIN_WIDTH = 60
"""Columns; less is not laid out for."""
VERDICTS = {"pass": "green", "fail": "red", "error": "yellow", "skipped": "dim"}


MARKS = {
    "match": ("=", "✓"),
    "mismatch": ("~", "≠"),
    "out_of_order": ("%", "↕"),
    "missing": ("-", "✗"),
    "extra": ("+", "+"),
    "allowed": (" ", " "),
    "hit": ("v", "✓"),
    "miss": ("x", "✗"),
    "bar": ("|", "│"),
}


class Style(NamedTuple):
    """How to draw."""

    color: bool = False
    width: int = 100
    unicode: bool = True
    """Whether marks beyond ASCII can be shown."""

    @classmethod
    def of(cls, stream: IO[str]) -> Style:
        """Colours on a terminal, unless `NO_COLOR` is set; plain text anywhere else."""
        tty = stream.isatty()
        dumb = os.environ.get("TERM") == "dumb" or bool(os.environ.get("NO_COLOR"))
        width = os.get_terminal_size(stream.fileno()).columns if tty else 100
        unicode = (getattr(stream, "encoding", None) or "").lower().startswith("utf")
        return cls(color=tty and not dumb, width=max(MIN_WIDTH, min(width, 160)), unicode=unicode)

    def mark(self, name: str) -> str:
        """The sign for a verdict."""
        return MARKS[name][self.unicode]

    def paint(self, color: str, text: str) -> str:
        """The text in this colour, if there are colours."""
        return f"\x1b[{COLORS[color]}m{text}\x1b[0m" if self.color else text

    def verdict(self, status: str) -> str:
        """`PASS`, `FAIL`, `ERROR` or `SKIPPED`."""
        return self.paint(VERDICTS.get(status, "bold"), status.upper())


def clean(text: str) -> str:
    """The text with every control and direction character made visible: it may come from an agent."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def width_of(text: str) -> int:
    """How many columns the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width  # noqa: PLC0415 - only text beyond ASCII needs it

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def fit(text: str, width: int) -> str:
    """The text in exactly so many columns, cut with an ellipsis or filled with spaces."""
    text = clean(text)
    if width_of(text) > width:
        kept = ""
        for char in text:
            if width_of(kept + char) > width - 1:
                break
            kept += char
        text = f"{kept}…"
    return text + " " * (width - width_of(text))


def as_ascii(text: str) -> str:
    """The text for a terminal that knows no other letters."""
    plain = text.replace("…", "...").replace("·", "|").replace("\N{EN DASH}", "-")
    return plain.encode("ascii", "backslashreplace").decode()


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


def clean_lines(text: str) -> list[str]:
    """The lines of a text from elsewhere, safe to print."""
    return [clean(line) for line in text.splitlines()] or [""]
