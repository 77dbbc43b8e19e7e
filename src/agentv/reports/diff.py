"""Aligned diffs, and the reasons of a failure, as text."""

from __future__ import annotations

import re
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agentv.matching.diff import MAX_QUOTED, quote
from agentv.redaction import shorten
from agentv.reports.terminal import Style, as_ascii, clean, display_width, fit, pluralize
from agentv.reports.turns import (
    failed_turn,
    group_by_turn,
    other_failed_turns,
    result_name,
    turn_line,
    turn_of,
    turn_prefix,
)
from agentv.scoring.turns import name_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from agentv.model.events import RunFinished
    from agentv.model.response import ResponseError
    from agentv.model.results import DiffLabels, EvaluatorResult, RecordedTurn, ResultRecord, RunResult


PLAIN = Style()
_PLACE = re.compile(r"(.*?):(\d+)(?::(\d+))?")


class CaseLocation(NamedTuple):
    """The file, line and column of a case; 0 for an unknown number."""

    file: str
    line: int = 0
    column: int = 0


def case_location(event: RunFinished) -> CaseLocation:
    """Return the location of the case of a run."""
    match = _PLACE.fullmatch(event.place)
    return CaseLocation(match[1], int(match[2]), int(match[3] or 0)) if match else CaseLocation(event.file)


def failure_kind(record: ResultRecord) -> str:
    """Return the type of the failed evaluator or the kind of the error: `tool_trajectory`, `timeout`."""
    if record.error is not None:
        return record.error.kind
    types = (
        result.type for result in record.evaluators if result.kind == "assertion" and result.status == record.status
    )
    return next(types, record.status)


def failure_reasons(record: ResultRecord, redact: Callable[[str], str]) -> list[str]:
    """Return the reasons why a run did not pass, one redacted sentence each; of very many, the first."""
    if record.error is not None:
        return [_error_reason(record, record.error, redact)]
    reasons: list[str] = []
    last = 0
    for result in record.evaluators:
        if result.kind == "assertion" and result.status in ("fail", "error"):
            turn = turn_of(result) if record.turns else 0
            prefix = turn_prefix(record.turns if turn != last else None, turn, redact)
            last = turn
            found = [*result.misses, *map(str, result.details.get("undecided") or ())]
            found += [str(result.details["error"])] if "error" in result.details else []
            reasons += [f"{prefix}{reason}" for reason in found]
    more = len(reasons) - MAX_REASONS
    shown = [cut(redact(reason), MAX_SENTENCE) for reason in reasons[:MAX_REASONS]]
    return [*shown, *([f"… {more:,} more; the whole is in {IN_RECORD}"] if more > 0 else [])] or [
        f"the score is {record.score}"
    ]


def _error_reason(record: ResultRecord, error: ResponseError, redact: Callable[[str], str]) -> str:
    """Return the message of an error, with the words of the user if it ended a conversation."""
    turn = failed_turn(record)
    return redact(f"{turn_prefix(record.turns, turn, redact)}{error.message.removeprefix(f'turn {turn}: ')}")


def explain_failure(event: RunFinished, redact: Callable[[str], str]) -> list[str]:
    """Return the error, and the aligned diff and sentences of each evaluator that did not pass, as redacted lines."""
    record, extent = event.record, Extent(redact=redact)
    lines: list[str] = []
    if record.error is not None:
        first, *rest = render_error(record.error.message, extent)
        lines += [f"! {record.error.kind}: {first}", *(f"  {line}" for line in rest)]
    return [*lines, *render_results(event, PLAIN, extent)]


def render_results(
    event: RunFinished, style: Style, extent: Extent, hidden: Collection[str] = ("pass", "skipped")
) -> list[str]:
    """Render all results but those with a hidden status; those of a turn below the words of the user."""
    record = event.record
    sides = event.sides or (None,) * len(record.evaluators)
    pairs = [
        (result, side) for result, side in zip(record.evaluators, sides, strict=False) if result.status not in hidden
    ]
    lines: list[str] = []
    if turn := failed_turn(record):
        lines.append(style.paint("bold", turn_line(record.turns, turn, extent.redact)))
    for group in group_by_turn(pairs, record.turns):
        if group.turn:
            lines.append(style.paint("bold", turn_line(record.turns, group.turn, extent.redact)))
        for result, side in group.results:
            lines += [line.rstrip() for line in render_evaluator(result, side, style, extent)]
    return lines


COLORS = {
    "match": "green",
    "mismatch": "yellow",
    "out_of_order": "yellow",
    "missing": "red",
    "extra": "red",
    "allowed": "dim",
    "left_out": "dim",
}
MIN_COLUMN = 24


MAX_CELL_LINES = 12
"""Lines that one side of a difference may take."""
MAX_TOOLS = 3
"""Names of tools in a folded row."""
CONTEXT = 2
"""Matching rows that are kept at both ends of a folded run."""
MAX_SENTENCE = 1000
"""Characters of a sentence, which may name thousands of calls."""
MAX_ERROR_LINES = 50
MAX_REASONS = 50
IN_RECORD = "the result record (--out FILE.jsonl, or agentv runs show ID --json)"


class Extent(Struct, frozen=True):
    """Bounds of an explanation: a run may have any number of calls."""

    rows: int = 50
    sentences: int = 20
    folded: bool = True
    """Fold consecutive calls that the mode allows beside the expected ones."""
    whole: str = IN_RECORD
    """The place of what is left out."""
    redact: Callable[[str], str] = str
    """Applied to every text before it is cut, as half of a secret would not be recognised any more."""

    def sentence(self, text: str) -> str:
        """Return a sentence on one line, redacted and cut."""
        return clean(cut(self.redact(text), MAX_SENTENCE))


SHORT = Extent()
LONG = Extent(rows=500, sentences=200, folded=False)


class DiffRow(Struct, frozen=True):
    """One row of an aligned diff."""

    verdict: str
    left: str
    right: str
    differences: Sequence[Mapping[str, Any]] = ()
    number: int = -1
    """Position of the actual unit; -1 if there is none."""


def render_run(
    result: RunResult,
    sides: Sequence[DiffLabels | None],
    style: Style,
    extent: Extent = SHORT,
    turns: Sequence[RecordedTurn] = (),
) -> str:
    """Render the verdict of a run, and for each evaluator the reasons; those of a turn below the user's words."""
    score = "" if result.score is None else f"  score {result.score:.2f}"
    lines = [f"{style.verdict(result.status)}{score}"]
    if result.error is not None:
        lines.append(f"  the reply is an error ({result.error.kind}): {extent.sentence(result.error.message)}")
    for group in group_by_turn(zip(result.evaluators, sides, strict=True), turns):
        lines += ["", style.paint("bold", turn_line(turns, group.turn, extent.redact))] if group.turn else []
        for evaluator, side in group.results:
            lines += ["", *render_evaluator(evaluator, side, style, extent)]
    if result.warnings:
        lines.append("")
        lines += [style.paint("yellow", f"warning: {clean(warning)}") for warning in result.warnings]
    text = "\n".join(line.rstrip() for line in lines)
    return text if style.unicode else as_ascii(text)


def render_evaluator(
    result: EvaluatorResult, sides: DiffLabels | None, style: Style, extent: Extent = SHORT
) -> list[str]:
    """Render the verdict of one evaluator, its diff and its sentences, each as far as the extent allows."""
    score = "" if result.score is None else f"  {result.score:.2f}"
    lines = [f"{style.verdict(result.status)} {clean(result_name(result))}{score}"]
    left_out = 0
    if sides is not None and result.details.get("alignment") is not None:
        rows, left_out = _bounded_rows(diff_rows(result, sides), extent, sides.unit)
        lines += [f"  {line}" for line in render_diff(rows, sides.unit, style, extent)]
    undecided = [str(item) for item in result.details.get("undecided") or ()]
    error = [str(result.details["error"])] if "error" in result.details else []
    if error and "judge" in result.details and "reply" in result.details:
        error.append(f"the judge replied: {result.details['reply']}")
    sentences = [
        (style.paint("red", style.mark("miss")), result.misses),
        (style.paint("yellow", "?"), undecided),
        (style.paint("red", "!"), error),
        (style.paint("green", style.mark("hit")), result.hits),
    ]
    for mark, items in sentences:
        lines += [f"  {mark} {extent.sentence(item)}" for item in items[: extent.sentences]]
        more = len(items) - extent.sentences
        if more > 0:
            lines.append(f"  {mark} … {more:,} more")
            left_out += more
    if turns := other_failed_turns(result):
        lines.append(style.paint("dim", f"  nor did it pass in {name_turns(turns)}"))
    if left_out:
        lines.append(style.paint("dim", f"  left out: {pluralize(left_out, 'line')}; the whole is in {extent.whole}"))
    return lines


def render_error(message: str, extent: Extent = SHORT) -> list[str]:
    """Return the lines of an error message, safe to print; of very many lines, the first and the last."""
    lines = extent.redact(message).splitlines() or [""]
    if len(lines) > MAX_ERROR_LINES:
        half = MAX_ERROR_LINES // 2
        lines = [*lines[:half], f"… {len(lines) - 2 * half:,} more lines", *lines[-half:]]
    return [clean(line) for line in lines]


def diff_rows(result: EvaluatorResult, sides: DiffLabels) -> list[DiffRow]:
    """Return expectations in their order, with unexpected calls between them in the order of calls."""
    details = result.details
    is_miss = any(miss.startswith(f"unexpected {sides.unit}") for miss in result.misses)
    verdict = "extra" if is_miss else "allowed"
    extra = [DiffRow(verdict, "", _actual(sides, number), (), number) for number in details["extra"] or ()]
    pairs = {pair["expected"]: pair for pair in details["alignment"]}
    rows: list[DiffRow] = []
    at = 0
    for e, label in enumerate(sides.expected):
        pair = pairs.get(e)
        if pair is None:
            rows.append(DiffRow("missing", label, ""))
            continue
        number = pair["actual"]
        if pair["verdict"] != "out_of_order":
            while at < len(extra) and extra[at].number < number:
                rows.append(extra[at])
                at += 1
        rows.append(DiffRow(pair["verdict"], label, _actual(sides, number), pair["differences"], number))
    return rows + extra[at:]


def _actual(sides: DiffLabels, number: int) -> str:
    return f"{number}: {sides.actual.get(number, '?')}"


def _bounded_rows(rows: list[DiffRow], extent: Extent, unit: str) -> tuple[list[DiffRow], int]:
    """Return at most about `extent.rows` rows, and the number of those that are left out."""
    if extent.folded:
        rows = _fold_runs(rows, "allowed", 0, unit)
    if len(rows) > extent.rows:
        rows = _fold_runs(rows, "match", CONTEXT, unit)
    more = len(rows) - extent.rows
    if more <= 0:
        return rows, 0
    last = extent.rows // 5
    gap = DiffRow("left_out", "", f"… {more:,} more rows")
    return [*rows[: extent.rows - last], gap, *rows[-last:]], more


def _fold_runs(rows: list[DiffRow], verdict: str, context: int, unit: str) -> list[DiffRow]:
    """Return the rows with consecutive ones of this verdict as one row, except for some at both ends."""
    folded: list[DiffRow] = []
    for kind, group in groupby(rows, key=lambda row: row.verdict):
        run = list(group)
        inner = run[context : len(run) - context]
        if kind != verdict or len(inner) < 2:  # noqa: PLR2004 - one row is as short as its fold
            folded += run
            continue
        folded += [*run[:context], _folded_row(inner, unit), *run[len(run) - context :]]
    return folded


def _folded_row(rows: list[DiffRow], unit: str) -> DiffRow:
    first, last = rows[0], rows[-1]
    numbers = f"{first.number}-{last.number}"
    if first.verdict == "match":
        return DiffRow("match", f"{first.left} to {last.left}", f"{numbers}: {pluralize(len(rows), unit)} match")
    names = list(dict.fromkeys(row.right.partition(": ")[2].partition("(")[0] for row in rows))
    more = len(names) - MAX_TOOLS
    shown = [*names[:MAX_TOOLS], *([f"{more:,} other tools"] if more > 0 else [])]
    return DiffRow("allowed", "", f"{numbers}: {', '.join(shown)} ({pluralize(len(rows), unit)})")


def render_diff(rows: Sequence[DiffRow], unit: str, style: Style, extent: Extent = SHORT) -> list[str]:
    """Render the rows in two columns that fit the width; values that differ are wrapped, not cut."""
    redact = extent.redact
    rows = [replace(row, left=redact(row.left), right=redact(row.right)) for row in rows]
    head = ("expected", f"actual ({unit} number first)")
    widest = max([display_width(head[0]), *[display_width(row.left) for row in rows]])
    left = max(MIN_COLUMN, min(widest, (style.width - 9) // 2))
    right = max(MIN_COLUMN, style.width - 9 - left)
    bar = style.mark("bar")
    lines = [style.paint("dim", f"  {fit(head[0], left)} {bar} {head[1]}")]
    for row in rows:
        color = COLORS[row.verdict]
        mark = style.mark(row.verdict)
        lines.append(style.paint(color, f"{mark} {fit(row.left, left)} {bar} {fit(row.right, right)}".rstrip()))
        for difference in row.differences:
            path = str(difference["path"])
            cells = zip_longest(
                _wrap_cell(redact(f"{path}: {_quote_side(difference, 'expected')}"), left, "  "),
                _wrap_cell(redact(f"{path}: {_quote_side(difference, 'actual')}"), right, "   "),
                fillvalue="",
            )
            lines += [
                style.paint(color, f"  {fit(expected, left)} {bar} {fit(actual, right)}".rstrip())
                for expected, actual in cells
            ]
    return lines


def _wrap_cell(text: str, width: int, indent: str) -> list[str]:
    """Return a text in lines of at most this many columns, broken after commas and spaces where possible."""
    lines: list[str] = []
    rest = clean(text)
    while rest:
        space = width - len(indent)
        end = _fitting_length(rest, space)
        if end < len(rest):
            if len(lines) == MAX_CELL_LINES - 1:
                return [*lines, indent + fit(rest, space)]
            end = max(rest.rfind(",", 0, end), rest.rfind(" ", 0, end)) + 1 or end
        lines.append(indent + rest[:end].rstrip())
        rest = rest[end:]
        indent = "    "
    return lines


def _fitting_length(text: str, width: int) -> int:
    """Return the number of characters that fit into this many columns, at least one."""
    if text.isascii():
        return max(1, min(len(text), width))
    used = 0
    for at, char in enumerate(text):
        used += display_width(char)
        if used > width:
            return max(1, at)
    return len(text)


def _quote_side(difference: Mapping[str, Any], side: str) -> str:
    if side not in difference:
        return "nothing"
    value = difference[side]
    # A value that is too long is stored as quoted already; a text that is stored as it is, is always shorter.
    is_quoted = isinstance(value, str) and len(value) == MAX_QUOTED and value.endswith("…")
    return value if is_quoted else quote(value)


def cut(text: str, limit: int) -> str:
    """Return a text, or its beginning and the number of characters that are left out."""
    return text if len(text) <= limit else f"{shorten(text, limit)} ({len(text) - limit + 1:,} more characters)"
