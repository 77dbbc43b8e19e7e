"""What two runs of one case called, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from agentv.evaluators.trajectory.words import call_label
from agentv.model.comparison import CallPair
from agentv.scoring.trace import calls_from_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentv.model.message import ToolCall
    from agentv.model.record import ResultRecord

MAX_CALLS = 200
"""More than these are counted, not set side by side."""


def changed_counts(a: ResultRecord, b: ResultRecord) -> dict[str, tuple[int, int]] | UnsetType:
    """The tools that were not called equally often; unset where that is not known of both."""
    if a.trace_summary is None or b.trace_summary is None or not _are_complete(a, b):
        return UNSET
    before, after = a.trace_summary.tool_calls_by_name, b.trace_summary.tool_calls_by_name
    counts = {tool: (before.get(tool, 0), after.get(tool, 0)) for tool in sorted({*before, *after})}
    return {tool: pair for tool, pair in counts.items() if pair[0] != pair[1]}


def call_pairs(a: ResultRecord, b: ResultRecord) -> tuple[CallPair, ...] | UnsetType:
    """Every call of both, aligned; unset where a record holds neither messages nor a trace, or not all calls."""
    if not _are_complete(a, b):
        return UNSET
    before, after = _calls(a), _calls(b)
    if before is None or after is None or max(len(before), len(after)) > MAX_CALLS:
        return UNSET
    return tuple(_aligned(before, after))


def _are_complete(*records: ResultRecord) -> bool:
    """Return whether all calls of these runs are known; else one that is missing would pass for a difference."""
    return all(record.calls_complete is not False for record in records)


def _calls(record: ResultRecord) -> tuple[ToolCall, ...] | None:
    if record.messages:
        return tuple(call for message in record.messages for call in message.tool_calls)
    return calls_from_trace(record.trace) if record.trace else None


def _aligned(before: Sequence[ToolCall], after: Sequence[ToolCall]) -> Iterator[CallPair]:
    from difflib import SequenceMatcher  # noqa: PLC0415 - only a loss needs it

    ours, theirs = list(map(call_label, before)), list(map(call_label, after))
    for kind, first, last, start, end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (
                CallPair(verdict="match", a=ours[at], b=theirs[at + start - first]) for at in range(first, last)
            )
        else:
            yield from _unequal(
                list(zip(before[first:last], ours[first:last], strict=True)),
                list(zip(after[start:end], theirs[start:end], strict=True)),
            )


def _unequal(before: list[tuple[ToolCall, str]], after: list[tuple[ToolCall, str]]) -> Iterator[CallPair]:
    """Calls that are not the same: those of one tool beside each other, in order, the rest alone."""
    at = 0
    for call, label in before:
        found = next((place for place in range(at, len(after)) if after[place][0].tool == call.tool), None)
        if found is None:
            yield CallPair(verdict="missing", a=label, b="")
            continue
        yield from (CallPair(verdict="extra", a="", b=other) for _, other in after[at:found])
        yield CallPair(verdict="mismatch", a=label, b=after[found][1])
        at = found + 1
    yield from (CallPair(verdict="extra", a="", b=other) for _, other in after[at:])
