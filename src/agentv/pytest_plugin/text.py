"""What a test says when its case did not pass: the reason in a line, then the diff and the sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentv.reports.console import clean_lines
from agentv.reports.diff import render_evaluator
from agentv.reports.terminal import Style, clean
from agentv.reports.unread import list_places

if TYPE_CHECKING:
    from agentv.model.event import RunFinished
    from agentv.model.record import ResultRecord
    from agentv.model.result import EvaluatorResult
    from agentv.redaction import Redactor

PLAIN = Style()
"""The text also goes to other processes and into files, so it has no colours and one width."""
MAX_ANSWER = 5


class Told(NamedTuple):
    """Why a case ended as it did."""

    reason: str
    """For a list of failures, in a line."""
    text: str


def tell(event: RunFinished, redactor: Redactor, *, verbose: bool = False) -> Told:
    """The outcome of a run as `agentv eval` shows it; verbose: with what held, and the answer."""
    record = event.record
    reason = _reason(record)
    lines = [_head(event)]
    if record.status == "error":
        kind = "evaluator" if record.error is None else record.error.kind
        lines.insert(0, f"ERROR ({kind}): {reason}")
        reason = f"{kind}: {reason}"
    if record.error is not None:
        lines += [f"  {line}" for line in clean_lines(record.error.message)[1:]]
    sides = event.sides or (None,) * len(record.evaluators)
    for result, side in zip(record.evaluators, sides, strict=False):
        if result.status != "pass" or verbose:
            lines += [f"  {line}".rstrip() for line in render_evaluator(result, side, PLAIN)]
    lines += [f"  {line}" for line in list_places(record.unread or ())]
    if verbose and record.candidate:
        lines += [f"  answer {line}" for line in clean_lines(record.candidate)[:MAX_ANSWER]]
    return Told(redactor.text(reason), redactor.text("\n".join(lines)))


def _head(event: RunFinished) -> str:
    record = event.record
    score = "" if record.score is None else f"  {record.score:.2f}"
    repeat = f" #{record.repeat + 1}" if record.repeat else ""
    attempts = f", {record.attempts} attempts" if record.attempts > 1 else ""
    about = f"  {clean(record.target)}{attempts}  {clean(event.place)}".rstrip()
    return f"{record.status.upper()} {clean(record.case_id)}{repeat}{score}{about}"


def _reason(record: ResultRecord) -> str:
    if record.error is not None:
        return clean_lines(record.error.message)[0]
    for result in record.evaluators:
        if result.status == record.status and result.kind == "assertion":
            return clean(next(iter(_sentences(result)), result.name))
    return "" if record.score is None else f"score {record.score:.2f}"


def _sentences(result: EvaluatorResult) -> list[str]:
    error = [str(result.details["error"])] if "error" in result.details else []
    undecided = map(str, result.details.get("undecided") or ()) if result.status == "error" else ()
    return [*error, *undecided, *result.misses]
