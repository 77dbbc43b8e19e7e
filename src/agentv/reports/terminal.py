"""Styles, width and control characters of a terminal, and problems with an excerpt."""

from __future__ import annotations

import os
import re
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.errors import Location, Problem


COLORS = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}
MIN_WIDTH = 60
"""Columns of the narrowest layout."""
VERDICTS = {"pass": "green", "fail": "red", "error": "yellow", "skipped": "dim"}


_COLOR = re.compile(r"\x1b\[\d+m")
MARKS = {
    "match": ("=", "✓"),
    "mismatch": ("~", "≠"),
    "out_of_order": ("%", "↕"),
    "missing": ("-", "✗"),
    "extra": ("+", "+"),
    "allowed": (" ", " "),
    "left_out": (" ", " "),
    "hit": ("v", "✓"),
    "miss": ("x", "✗"),
    "bar": ("|", "│"),
}


class Style(NamedTuple):
    """Colours, width and character set of an output."""

    color: bool = False
    width: int = 100
    unicode: bool = True
    """Marks beyond ASCII can be shown."""

    @classmethod
    def of(cls, stream: IO[str]) -> Style:
        """Return the style of a stream: colours only on a terminal, and not when `NO_COLOR` is set."""
        tty = stream.isatty()
        dumb = os.environ.get("TERM") == "dumb" or bool(os.environ.get("NO_COLOR"))
        width = os.get_terminal_size(stream.fileno()).columns if tty else 100
        unicode = (getattr(stream, "encoding", None) or "").lower().startswith("utf")
        return cls(color=tty and not dumb, width=max(MIN_WIDTH, min(width, 160)), unicode=unicode)

    def mark(self, name: str) -> str:
        """Return the mark of a verdict or of a row of a diff."""
        return MARKS[name][self.unicode]

    def paint(self, color: str, text: str) -> str:
        """Return the text in this colour, if colours are on."""
        return f"\x1b[{COLORS[color]}m{text}\x1b[0m" if self.color else text

    def verdict(self, status: str) -> str:
        """Return `PASS`, `FAIL`, `ERROR` or `SKIPPED`, in its colour."""
        return self.paint(VERDICTS.get(status, "bold"), status.upper())


def clean(text: str) -> str:
    """Escape all control and direction characters of a text: it may come from an agent."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def display_width(text: str) -> int:
    """Return the number of terminal columns that a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width  # noqa: PLC0415 - 1 MB of tables, only for text beyond ASCII

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def fit(text: str, width: int) -> str:
    """Return the text in exactly this many columns, cut with an ellipsis or padded with spaces."""
    text = clean(text)
    if display_width(text) > width:
        head = ""
        for char in text:
            if display_width(head + char) > width - 1:
                break
            head += char
        text = f"{head}…"
    return text + " " * (width - display_width(text))


def as_ascii(text: str) -> str:
    """Return the text for a terminal without Unicode."""
    plain = text.replace("…", "...").replace("·", "|").replace("\N{EN DASH}", "-")
    return plain.encode("ascii", "backslashreplace").decode()


MAX_LINE = 200
"""Characters shown of a line."""
MARGIN = 60
"""Characters shown before the marked place of a longer line."""


def render_problems(problems: Sequence[Problem], style: Style) -> str:
    """Render every problem with an excerpt of its line, and their number."""
    lines: list[str] = []
    for problem in problems:
        lines += [_problem_line(problem, style), *_excerpt(problem.location, style)]
    return "\n".join([*lines, f"{pluralize(len(problems), 'error')}, nothing was run"])


def render_warnings(warnings: Sequence[Problem], style: Style) -> str:
    """Render warnings, one a line."""
    return "\n".join(
        f"{_place(warning)}{style.paint('yellow', 'warning')}: {clean(warning.sentence)}" for warning in warnings
    )


def pluralize(number: int, noun: str, plural: str | None = None) -> str:
    """Return `1 error`, `3 errors`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def wrap_parts(parts: Sequence[str], separator: str, width: int, indent: str = "  ") -> list[str]:
    """Join the parts into lines that fit the width, broken between parts only; after a colon there is a space."""
    lines: list[str] = []
    for part in parts:
        between = " " if lines and lines[-1].endswith(":") else separator
        if lines and display_width(plain_text(f"{lines[-1]}{between}{part}")) <= width:
            lines[-1] += between + part
        else:
            if lines and not lines[-1].endswith(":"):
                lines[-1] += separator.rstrip()
            lines.append(f"{indent}{part}" if lines else part)
    return lines


def plain_text(text: str) -> str:
    """Return a text without our colours."""
    return _COLOR.sub("", text)


def format_duration(milliseconds: float) -> str:
    """Return `1.25 s`, or `21.3 ms` below a tenth of a second."""
    return f"{milliseconds / 1000:.2f} s" if milliseconds >= 100 else f"{milliseconds:.3g} ms"  # noqa: PLR2004


def _problem_line(problem: Problem, style: Style) -> str:
    if problem.location is None:
        return clean(str(problem))
    return f"{style.paint('bold', _place(problem))}{clean(problem.sentence)}"


def _place(problem: Problem) -> str:
    return f"{clean(str(problem.location))}: " if problem.location else ""


def _excerpt(place: Location | None, style: Style) -> list[str]:
    if place is None or not place.column or not place.text.strip():
        return []
    # Of a very long line, as in a generated file, only the part around the marked place is shown.
    first = 0 if place.column < MAX_LINE - MARGIN else place.column - MARGIN
    cut = "... " if first else ""
    text = place.text.expandtabs(1)[first : first + MAX_LINE]
    start = place.column - 1 - first
    before = " " * (len(cut) + display_width(clean(text[:start])))
    marks = "^" * max(1, min(place.width, len(text) - start))
    text = cut + clean(text)
    number = f"{place.line:>5}"
    return [
        style.paint("dim", f"{number} | ") + text,
        style.paint("dim", f"{' ' * len(number)} | ") + before + style.paint("red", marks),
    ]


def clean_lines(text: str) -> list[str]:
    """Return the lines of a text with control characters escaped."""
    return [clean(line) for line in text.splitlines()] or [""]
