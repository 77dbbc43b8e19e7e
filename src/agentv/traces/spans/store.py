"""Temporary store of spans until all files are read: a session may be spread over several of them.

They stay in memory up to a limit, and are written to a temporary SQLite file beyond it.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from agentv.model.session import OtelSpan
from agentv.traces.spans.values import first_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_CACHE_KB = 32_768
_ROW_BYTES = 100
"""Memory of a row beside its data."""
MEMORY_BYTES = 32 * 1024 * 1024
"""Size of the spans that are held in memory at most."""
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
    """Temporary store of encoded spans by trace: in memory while they are few, then in a temporary SQLite file."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._limit = memory_bytes
        self._size = 0
        self._rows: list[tuple[str, bytes]] = []
        self._names: dict[tuple[str, int, str], int] = {}
        """Time at which a trace was given a name first, by trace, rank, and kind and name in one text."""
        self._db: sqlite3.Connection | None = None
        self.count = 0

    @property
    def is_spilled(self) -> bool:
        """`True` if spans are in a temporary file."""
        return self._db is not None

    def add(self, span: OtelSpan) -> None:
        """Add a span or a log record."""
        named = self._session_name(span)
        if not span.trace_id:  # a log record outside of all spans belongs to the session that it names
            span.trace_id = f"session {named[1]}" if named else "logs without a trace"
        if named is not None:
            # Two names of different kinds are two sessions, even if they are the same word.
            key = (span.trace_id, named[0], f"{named[0] // 2} {named[1]}")
            earlier = self._names.get(key)
            self._names[key] = span.start if earlier is None else min(earlier, span.start)
        data = _encode(span)
        self._rows.append((span.trace_id, data))
        self._size += len(data) + _ROW_BYTES
        self.count += 1
        if self._size >= self._limit:
            self._spill()

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

    def _spill(self) -> None:
        """Move all spans to a temporary file, which SQLite removes when it is closed."""
        if self._db is None:
            self._db = sqlite3.connect("")
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
        self._db.executemany("INSERT INTO spans VALUES (?, ?)", self._rows)
        self._rows.clear()
        names = [(trace, rank, start, name) for (trace, rank, name), start in self._names.items()]
        self._db.executemany("INSERT INTO names VALUES (?, ?, ?, ?)", names)
        self._names.clear()
        self._size = 0

    def groups(self) -> Iterator[SpanGroup]:
        """Yield the spans of each session, the session that was named first comes first."""
        if self._db is None:
            yield from self._groups_in_memory()
            return
        self._spill()
        self._db.executescript(
            """
            CREATE INDEX spans_by_trace ON spans (trace);
            CREATE TABLE sessions AS
                SELECT each.trace AS trace, each.first AS first, COALESCE(best.name, 'trace ' || each.trace) AS session
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
            yield SpanGroup(session.partition(" ")[2], [_decode(data) for (data,) in rows])

    def _groups_in_memory(self) -> Iterator[SpanGroup]:
        best: dict[str, tuple[int, int, str]] = {}
        for (trace, rank, name), start in self._names.items():
            found = best.get(trace)
            best[trace] = (rank, start, name) if found is None else min(found, (rank, start, name))
        groups: dict[str, list[bytes]] = {}
        for trace, data in self._rows:
            named = best.get(trace)
            groups.setdefault(f"trace {trace}" if named is None else named[2], []).append(data)
        self._rows.clear()
        for session in list(groups):
            yield SpanGroup(session.partition(" ")[2], [_decode(data) for data in groups.pop(session)])

    def close(self) -> None:
        """Remove the store."""
        self._rows.clear()
        if self._db is not None:
            self._db.close()
