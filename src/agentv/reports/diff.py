"""Aligned diffs, conversations, and the reasons of a failure, as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from agentv.jsonio import dump_json
from agentv.matching.diff import quote
from agentv.redaction.shortening import shorten
from agentv.reports.terminal import Style, as_ascii, clean, clean_lines, display_width, fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agentv.model.conversation import Message, ToolCall
    from agentv.model.events import RunFinished
    from agentv.model.results import DiffLabels, EvaluatorResult, ResultRecord, RunResult


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


def case_label(record: ResultRecord) -> str:
    """Return the id of the case, with the number of the repetition from the second on."""
    return f"{record.case_id} #{record.repeat + 1}" if record.repeat else record.case_id


def failure_kind(record: ResultRecord) -> str:
    """Return the type of the failed evaluator or the kind of the error: `tool_trajectory`, `timeout`."""
    if record.error is not None:
        return record.error.kind
    types = (
        result.type for result in record.evaluators if result.kind == "assertion" and result.status == record.status
    )
    return next(types, record.status)


def failure_reasons(record: ResultRecord) -> list[str]:
    """Return the reasons why a run did not pass, one sentence each."""
    if record.error is not None:
        return [record.error.message]
    reasons: list[str] = []
    for result in record.evaluators:
        if result.kind == "assertion" and result.status in ("fail", "error"):
            reasons += [*result.misses, *map(str, result.details.get("undecided") or ())]
            reasons += [str(result.details["error"])] if "error" in result.details else []
    return reasons or [f"the score is {record.score}"]


def explain_failure(event: RunFinished) -> list[str]:
    """Return the error, and the aligned diff and sentences of each evaluator that did not pass, as lines."""
    record = event.record
    lines: list[str] = []
    if record.error is not None:
        first, *rest = clean_lines(record.error.message)
        lines += [f"! {record.error.kind}: {first}", *(f"  {line}" for line in rest)]
    sides = event.sides or (None,) * len(record.evaluators)
    for result, side in zip(record.evaluators, sides, strict=False):
        if result.status not in ("pass", "skipped"):
            lines += [line.rstrip() for line in render_evaluator(result, side, PLAIN)]
    return lines


COLORS = {
    "match": "green",
    "mismatch": "yellow",
    "out_of_order": "yellow",
    "missing": "red",
    "extra": "red",
    "allowed": "dim",
}
MIN_COLUMN = 24


class DiffRow(NamedTuple):
    """One row of an aligned diff."""

    verdict: str
    left: str
    right: str
    differences: Sequence[Mapping[str, Any]] = ()


def render_run(result: RunResult, sides: Sequence[DiffLabels | None], style: Style) -> str:
    """Render the verdict of a run, and for each evaluator the reasons."""
    score = "" if result.score is None else f"  score {result.score:.2f}"
    lines = [f"{style.verdict(result.status)}{score}"]
    if result.error is not None:
        lines.append(f"  the reply is an error ({result.error.kind}): {clean(result.error.message)}")
    for evaluator, side in zip(result.evaluators, sides, strict=True):
        lines += ["", *render_evaluator(evaluator, side, style)]
    if result.warnings:
        lines.append("")
        lines += [style.paint("yellow", f"warning: {clean(warning)}") for warning in result.warnings]
    text = "\n".join(line.rstrip() for line in lines)
    return text if style.unicode else as_ascii(text)


def render_evaluator(result: EvaluatorResult, sides: DiffLabels | None, style: Style) -> list[str]:
    """Render the verdict of one evaluator, its diff and its sentences."""
    name = result.name if result.name == result.type else f"{result.name} ({result.type})"
    score = "" if result.score is None else f"  {result.score:.2f}"
    lines = [f"{style.verdict(result.status)} {clean(name)}{score}"]
    if sides is not None and result.details.get("alignment") is not None:
        lines += [f"  {line}" for line in render_diff(_rows(result, sides), sides.unit, style)]
    lines += [f"  {style.paint('red', style.mark('miss'))} {clean(miss)}" for miss in result.misses]
    lines += [f"  {style.paint('yellow', '?')} {clean(item)}" for item in result.details.get("undecided") or ()]
    if "error" in result.details:
        lines.append(f"  {style.paint('red', '!')} {clean(str(result.details['error']))}")
    lines += [f"  {style.paint('green', style.mark('hit'))} {clean(hit)}" for hit in result.hits]
    return lines


def _rows(result: EvaluatorResult, sides: DiffLabels) -> list[DiffRow]:
    """Return expectations in their order, with unexpected calls between them in the order of calls."""
    details = result.details
    is_miss = any(miss.startswith(f"unexpected {sides.unit}") for miss in result.misses)
    extra = [(n, DiffRow("extra" if is_miss else "allowed", "", _actual(sides, n))) for n in details["extra"] or ()]
    pairs = {pair["expected"]: pair for pair in details["alignment"]}
    rows: list[DiffRow] = []
    for e, label in enumerate(sides.expected):
        pair = pairs.get(e)
        if pair is None:
            rows.append(DiffRow("missing", label, ""))
            continue
        if pair["verdict"] != "out_of_order":
            while extra and extra[0][0] < pair["actual"]:
                rows.append(extra.pop(0)[1])
        rows.append(DiffRow(pair["verdict"], label, _actual(sides, pair["actual"]), pair["differences"]))
    return rows + [row for _, row in extra]


def _actual(sides: DiffLabels, number: int) -> str:
    return f"{number}: {sides.actual.get(number, '?')}"


def render_diff(rows: Sequence[DiffRow], unit: str, style: Style) -> list[str]:
    """Render the rows in two columns that fit the width."""
    head = ("expected", f"actual ({unit} number first)")
    widest = max([display_width(head[0]), *[display_width(row.left) for row in rows]])
    left = max(MIN_COLUMN, min(widest, (style.width - 9) // 2))
    right = max(MIN_COLUMN, style.width - 9 - left)
    bar = style.mark("bar")
    lines = [style.paint("dim", f"  {fit(head[0], left)} {bar} {head[1]}")]
    for row in rows:
        color = COLORS[row.verdict]
        mark = style.mark(row.verdict)
        lines.append(style.paint(color, f"{mark} {fit(row.left, left)} {bar} {fit(row.right, right).rstrip()}"))
        for difference in row.differences:
            path = str(difference["path"])
            expected = f"  {path}: {_quote_side(difference, 'expected')}"
            actual = f"   {path}: {_quote_side(difference, 'actual')}"
            lines.append(style.paint(color, f"  {fit(expected, left)} {bar} {fit(actual, right).rstrip()}"))
    return lines


def _quote_side(difference: Mapping[str, Any], side: str) -> str:
    return quote(difference[side]) if side in difference else "nothing"


MAX_TEXT = 4000
"""Characters shown of one message; an export has all of it."""
MAX_VALUE = 400


def render_conversation(messages: Iterable[Message], style: Style) -> Iterator[str]:
    """Yield a few lines for each message, and one or two for each call."""
    for index, message in enumerate(messages):
        head = f"[{index}] {clean(message.role)}{f' ({clean(message.name)})' if message.name else ''}"
        text = _cut(message.text, MAX_TEXT)
        lines = [clean(line) for line in text.splitlines()]
        if len(lines) <= 1:
            yield f"{style.paint('bold', head)}: {lines[0] if lines else style.paint('dim', '(no text)')}".rstrip()
        else:
            yield f"{style.paint('bold', head)}:"
            yield from (f"    {line}".rstrip() for line in lines)
        for call in message.tool_calls:
            yield from _call(call, style)


def _call(call: ToolCall, style: Style) -> Iterator[str]:
    arguments = "" if call.input is UNSET else _value(call.input)
    notes = [f"{call.duration_ms:g} ms"] if call.duration_ms is not None else []
    if call.status not in (None, "ok"):
        notes.append(str(call.status))
    suffix = f"  ({', '.join(notes)})" if notes else ""
    yield f"    -> {clean(call.tool)}({arguments}){suffix}"
    if call.output is not UNSET:
        yield style.paint("dim", f"    <- {_value(call.output)}")
    if call.error:
        yield style.paint("red", f"    !! {_value(call.error)}")


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else dump_json(value).decode()
    return clean(_cut(text, MAX_VALUE))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{shorten(text, limit)} ({len(text) - limit + 1:,} more characters)"
