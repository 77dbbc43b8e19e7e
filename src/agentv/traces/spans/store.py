"""Temporary store of spans until all files are read: a session may be spread over several of them.

SQLite keeps it in memory while it is small, and in a temporary file when it is not.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from agentv.model.span import OtelSpan
from agentv.traces.spans.values import first_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_CACHE_KB = 32_768
_BATCH = 500
_SESSION_KEYS = (
    ("agentv.run_id",),
    (
        *("session.id", "langfuse.session.id", "traceloop.association.properties.session_id"),
        *("mlflow.trace.session", "ai.telemetry.metadata.sessionId", "langsmith.metadata.session_id"),
        *("langsmith.trace.session_id", "session_id", "thread.id"),
    ),
    (
        *("gen_ai.conversation.id", "traceloop.association.properties.thread_id"),
        *("ai.telemetry.metadata.threadId", "langsmith.metadata.thread_id", "gcp.vertex.agent.session_id"),
    ),
)
"""Attributes that name the session of a span, the strongest first."""
_ALL_SESSION_KEYS = frozenset(key for keys in _SESSION_KEYS for key in keys)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(OtelSpan).decode


class SpanGroup(NamedTuple):
    """The spans of one session."""

    key: str
    """Id of the session, or of its only trace."""
    spans: list[OtelSpan]
    """Its spans, in no particular order."""


class SpanStore:
    """Temporary store of spans by trace."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("")  # a temporary file that exists only when the cache is full
        self._db.executescript(
            f"""
            PRAGMA journal_mode = OFF;
            PRAGMA synchronous = OFF;
            PRAGMA cache_size = -{_CACHE_KB};
            CREATE TABLE spans (trace TEXT NOT NULL, data BLOB NOT NULL);
            CREATE TABLE names (trace TEXT NOT NULL, rank INTEGER NOT NULL, start INTEGER NOT NULL,
                name TEXT NOT NULL);
            """
        )
        self._rows: list[tuple[str, bytes]] = []
        self._names: dict[tuple[str, int, str], int] = {}
        self.count = 0

    def add(self, span: OtelSpan) -> None:
        """Add a span or a log record."""
        trace = span.trace_id
        named = self._session_name(span)
        if not trace:  # a log record outside of all spans belongs to the session that it names
            trace = f"session {named[1]}" if named else "logs without a trace"
            span.trace_id = trace
        if named is not None:
            key = (trace, *named)
            earlier = self._names.get(key)
            self._names[key] = span.start if earlier is None else min(earlier, span.start)
        self._rows.append((trace, _encode(span)))
        self.count += 1
        if len(self._rows) >= _BATCH:
            self._flush()

    @staticmethod
    def _session_name(span: OtelSpan) -> tuple[int, str] | None:
        places = [span.attributes, *(event.attributes for event in span.events if span.is_log), span.resource]
        places = [place for place in places if not _ALL_SESSION_KEYS.isdisjoint(place)]
        if not places:
            return None
        for rank, keys in enumerate(_SESSION_KEYS):
            for place in places:
                if (name := text_of(first_of(place, *keys))) is not None:
                    # A name that a root has counts more than one that only a part of the trace has.
                    return 2 * rank + bool(span.parent_id or span.is_log), name
        return None

    def _flush(self) -> None:
        self._db.executemany("INSERT INTO spans VALUES (?, ?)", self._rows)
        self._rows.clear()
        names = [(trace, rank, start, name) for (trace, rank, name), start in self._names.items()]
        self._db.executemany("INSERT INTO names VALUES (?, ?, ?, ?)", names)
        self._names.clear()

    def groups(self) -> Iterator[SpanGroup]:
        """Yield the spans of each session, the session that was named first comes first."""
        self._flush()
        self._db.executescript(
            """
            CREATE INDEX spans_by_trace ON spans (trace);
            CREATE TABLE sessions AS
                SELECT each.trace AS trace, each.first AS first, COALESCE(best.name, each.trace) AS session
                FROM (SELECT trace, MIN(rowid) AS first FROM spans GROUP BY trace) AS each
                LEFT JOIN (
                    SELECT trace, name, ROW_NUMBER() OVER (PARTITION BY trace ORDER BY rank, start, name) AS number
                    FROM names
                ) AS best ON best.trace = each.trace AND best.number = 1;
            CREATE INDEX traces_by_session ON sessions (session);
            """
        )
        sessions = self._db.execute("SELECT session FROM sessions GROUP BY session ORDER BY MIN(first)")
        for (session,) in sessions:
            rows = self._db.execute(
                "SELECT data FROM spans JOIN sessions ON spans.trace = sessions.trace WHERE session = ?", (session,)
            )
            yield SpanGroup(session, [_decode(data) for (data,) in rows])

    def close(self) -> None:
        """Remove the store."""
        self._db.close()
