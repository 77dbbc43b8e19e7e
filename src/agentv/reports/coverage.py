"""The coverage report of stored traces: what was read, what was not understood, and what was skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from agentv.reports.terminal import Style, clean, pluralize

if TYPE_CHECKING:
    from agentv.model.session import TraceCoverage

SCHEMA = "agentv.coverage/1"
_SHOWN = 5
"""Number of places and records that the text lists; `--json` has more."""


def coverage_data(coverage: TraceCoverage) -> dict[str, Any]:
    """Return the report as JSON data."""
    return {"schema": SCHEMA, **to_builtins(coverage)}


def render_coverage(coverage: TraceCoverage, style: Style) -> str:
    """Return the report as text."""
    formats = ", ".join(f"{clean(name)} {count:,}" for name, count in coverage.formats.items())
    read = f"{pluralize(coverage.sessions, 'session')}, {pluralize(coverage.turns, 'turn')}"
    lines = [
        f"read {pluralize(coverage.files, 'file')}: {read}, {pluralize(coverage.calls, 'tool call')}"
        + (f" ({formats})" if formats else "")
    ]
    if coverage.selected is not None:
        lines.append(f"  selected: {pluralize(coverage.selected, 'session')}")
    lines += [f"  {line}" for line in _gaps(coverage)]
    if coverage.unread_places:
        partly = pluralize(coverage.sessions_partly_understood, "session")
        what = (
            f"not understood: {pluralize(coverage.unread_places, 'place')} in {partly}, whose calls are a lower bound"
        )
        lines.append("  " + style.paint("yellow", what))
        lines += [f"    {clean(str(place))}" for place in coverage.unread[:_SHOWN]]
        lines += _more(coverage.unread_places)
    if coverage.skipped_records:
        lines.append("  " + style.paint("yellow", f"skipped: {pluralize(coverage.skipped_records, 'record')}"))
        lines += [f"    {clean(str(record))}" for record in coverage.skipped[:_SHOWN]]
        lines += _more(coverage.skipped_records)
    if coverage.ignored_files:
        lines.append(f"  ignored, no traces: {pluralize(coverage.ignored_files, 'file')}")
    lines += [f"  note: {clean(note)} ({count:,})" for note, count in coverage.notes.items()]
    return "\n".join(lines)


def _more(count: int) -> list[str]:
    return [f"    and {count - _SHOWN:,} more"] if count > _SHOWN else []


def _gaps(coverage: TraceCoverage) -> list[str]:
    calls = []
    if coverage.calls:
        calls.append(f"{pluralize(coverage.calls_without_input, 'call')} without arguments")
        calls.append(f"{coverage.calls_without_output:,} without results")
    if coverage.messages:
        lacking = f"{coverage.messages_without_usage:,} of " if coverage.messages_without_usage else ""
        number = coverage.messages if lacking else 0
        calls.append(f"{lacking}{pluralize(number, 'message')} without usage")
    if coverage.sessions_without_answer:
        calls.append(f"{pluralize(coverage.sessions_without_answer, 'session')} without an answer")
    return [" · ".join(calls)] if calls else []
