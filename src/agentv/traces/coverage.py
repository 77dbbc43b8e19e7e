"""Counting of what was read from traces, for the coverage report."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import UNSET

from agentv.model.session import SessionUnread, SkippedRecord, TraceCoverage
from agentv.scoring.calls import calls_from_trace

if TYPE_CHECKING:
    from agentv.model.conversation import ToolCall
    from agentv.model.response import ProviderResponse
    from agentv.model.session import Session

MAX_LISTED = 20
"""Number of places and records that a report lists."""
_COUNT = re.compile(r"(\d+) (.+)\Z", re.DOTALL)


def _calls(response: ProviderResponse) -> list[ToolCall]:
    """Return the calls of the messages; without any, those of the trace."""
    calls = [call for message in response.output_messages or () for call in message.tool_calls]
    return calls or list(calls_from_trace(response.trace or ()))


class CoverageCounter:
    """Counts of the sessions of an import."""

    def __init__(self) -> None:
        self.files = 0
        self.ignored_files = 0
        self.sessions = 0
        self.formats: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self.unread: list[SessionUnread] = []
        self.skipped: list[SkippedRecord] = []
        self.skipped_records = 0

    def add(self, session: Session) -> None:
        """Count a session."""
        self.sessions += 1
        self.formats[session.format] += 1
        counts, response = self.counts, session.response
        counts["turns"] += session.turns
        for message in response.output_messages or ():
            if message.role != "assistant":
                continue
            counts["messages"] += 1
            counts["messages_without_usage"] += message.tokens_usage is None and response.tokens_usage is None
        for call in _calls(response):
            counts["calls"] += 1
            counts["calls_without_input"] += call.input is UNSET
            counts["calls_without_output"] += call.output is UNSET
        counts["sessions_partly_understood"] += bool(response.unread)
        counts["sessions_without_answer"] += response.error is None and any(
            place.path == "text" for place in response.incomplete
        )
        counts["unread_places"] += len(response.unread)
        for place in response.unread:
            if len(self.unread) < MAX_LISTED:
                self.unread.append(SessionUnread(session.id, session.place, place))
        for note in session.notes:
            match = _COUNT.match(note)
            self.notes[match[2] if match else note] += int(match[1]) if match else 1

    def skip(self, place: str, reason: str) -> None:
        """Count a record that could not be read."""
        self.skipped_records += 1
        if len(self.skipped) < MAX_LISTED:
            self.skipped.append(SkippedRecord(place, reason))

    def build(self, selected: int | None = None) -> TraceCoverage:
        """Return the counts."""
        return TraceCoverage(
            files=self.files,
            sessions=self.sessions,
            selected=selected,
            formats=dict(self.formats.most_common()),
            unread=tuple(self.unread),
            skipped=tuple(self.skipped),
            skipped_records=self.skipped_records,
            ignored_files=self.ignored_files,
            notes=dict(sorted(self.notes.items())),
            **{name: int(count) for name, count in self.counts.items()},
        )
