"""Why a run did not pass and where its case stands, in plain words that files, pages and annotations share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from agentv.reports.console import clean_lines
from agentv.reports.diff import render_evaluator
from agentv.reports.terminal import Style

if TYPE_CHECKING:
    from agentv.model.event import RunFinished
    from agentv.model.record import ResultRecord

PLAIN = Style()
_PLACE = re.compile(r"(.*?):(\d+)(?::(\d+))?")


class Where(NamedTuple):
    """A place in a file; 0 where a number is not known."""

    file: str
    line: int = 0
    column: int = 0


def where(event: RunFinished) -> Where:
    """Where the case stands."""
    found = _PLACE.fullmatch(event.place)
    return Where(found[1], int(found[2]), int(found[3] or 0)) if found else Where(event.file)


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
