"""The aligned diff, conversations, and reasons of a failure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from agentv.jsonio import dump_json
from agentv.matching.diff import quote
from agentv.reports.terminal import Style, as_ascii, clean, clean_lines, fit, width_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agentv.model.conversation import Message, ToolCall
    from agentv.model.events import RunFinished
    from agentv.model.results import DiffLabels, EvaluatorResult, ResultRecord, RunResult


PLAIN = Style()
_PLACE = re.compile(r"(.*?):(\d+)(?::(\d+))?")


class CallPlace(NamedTuple):
    """A place in a file; 0 where a number is not known."""

    file: str
    line: int = 0
    column: int = 0


def where(event: RunFinished) -> CallPlace:
    """Where the case stands."""
    found = _PLACE.fullmatch(event.place)
    return CallPlace(found[1], int(found[2]), int(found[3] or 0)) if found else CallPlace(event.file)


def named(record: ResultRecord) -> str:
    """The case, and which repetition of it unless it is the first."""
    return f"{record.case_id} #{record.repeat + 1}" if record.repeat else record.case_id


def kind_of(record: ResultRecord) -> str:
    """What kind of check or error it was: `tool_trajectory`, `timeout`."""
    if record.error is not None:
        return record.error.kind
    kinds = (each.type for each in record.evaluators if each.kind == "assertion" and each.status == record.status)
    return next(kinds, record.status)


def sentences(record: ResultRecord) -> list[str]:
    """Why it did not pass, as short as it can be said."""
    if record.error is not None:
        return [record.error.message]
    found: list[str] = []
    for each in record.evaluators:
        if each.kind == "assertion" and each.status in ("fail", "error"):
            found += [*each.misses, *map(str, each.details.get("undecided") or ())]
            found += [str(each.details["error"])] if "error" in each.details else []
    return found or [f"the score is {record.score}"]


def explain(event: RunFinished) -> list[str]:
    """The same at length: the error, and of each evaluator that did not pass the aligned diff and the sentences."""
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
    """One line of the diff."""

    verdict: str
    left: str
    right: str
    differences: Sequence[Mapping[str, Any]] = ()


def render_run(result: RunResult, sides: Sequence[DiffLabels | None], style: Style) -> str:
    """The verdict of a run and, for each evaluator, why."""
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
    """One evaluator's verdict, its diff, and its sentences."""
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
    """Expectations in their order, with the calls nobody expected where they were made."""
    details = result.details
    complained = any(miss.startswith(f"unexpected {sides.unit}") for miss in result.misses)
    extra = [(n, DiffRow("extra" if complained else "allowed", "", _actual(sides, n))) for n in details["extra"] or ()]
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
    """The rows in two columns that fit the width."""
    head = ("expected", f"actual ({unit} number first)")
    widest = max([width_of(head[0]), *[width_of(row.left) for row in rows]])
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
            wanted = f"  {path}: {_shown(difference, 'expected')}"
            got = f"   {path}: {_shown(difference, 'actual')}"
            lines.append(style.paint(color, f"  {fit(wanted, left)} {bar} {fit(got, right).rstrip()}"))
    return lines


def _shown(difference: Mapping[str, Any], side: str) -> str:
    return quote(difference[side]) if side in difference else "nothing"


MAX_TEXT = 4000
"""Of one message; the whole is in the export."""
MAX_VALUE = 400


def render_conversation(messages: Iterable[Message], style: Style) -> Iterator[str]:
    """A few lines for each message, and one or two for each call."""
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
    noted = f"  ({', '.join(notes)})" if notes else ""
    yield f"    -> {clean(call.tool)}({arguments}){noted}"
    if call.output is not UNSET:
        yield style.paint("dim", f"    <- {_value(call.output)}")
    if call.error:
        yield style.paint("red", f"    !! {_value(call.error)}")


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else dump_json(value).decode()
    return clean(_cut(text, MAX_VALUE))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"
