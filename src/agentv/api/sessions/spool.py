"""Temporary store of the sessions that were read, so that any number of them can be selected, counted and scored."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b
from typing import TYPE_CHECKING
from weakref import finalize

import msgspec

from agentv.model.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

_CACHE_KB = 32_768
_INSERT = "INSERT INTO sessions (id, source_id, case_id, digest, content, data) VALUES (?, ?, ?, ?, ?, ?)"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Session).decode


class SessionSpool:
    """Sessions in the order in which they were read; in a temporary file once they are many."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", check_same_thread=False)
        # An error that ends a command may leave it open, and Python 3.13 warns of a database that nobody closed.
        finalize(self, self._db.close).atexit = False
        self._db.executescript(
            f"""
            PRAGMA journal_mode = OFF;
            PRAGMA synchronous = OFF;
            PRAGMA cache_size = -{_CACHE_KB};
            CREATE TABLE sessions (number INTEGER PRIMARY KEY, id TEXT NOT NULL, source_id TEXT NOT NULL, case_id TEXT,
                digest BLOB NOT NULL, content BLOB NOT NULL UNIQUE, data BLOB NOT NULL);
            CREATE INDEX by_id ON sessions (id);
            CREATE INDEX by_source ON sessions (source_id);
            CREATE INDEX by_case ON sessions (case_id);
            """
        )
        self.repeated = 0
        """Number of sessions that were left out because the same one is there already."""

    def add(self, session: Session) -> None:
        """Add a session; one with the same id and other content gets a number, an equal one is left out."""
        name = session.id
        content = _digest(_encode(msgspec.structs.replace(session, place="", notes=())))
        count = self._db.execute("SELECT COUNT(*) FROM sessions WHERE source_id = ?", (name,)).fetchone()[0]
        if count and self._db.execute("SELECT 1 FROM sessions WHERE content = ?", (content,)).fetchone():
            self.repeated += 1
            return
        number, own = count, name
        while self._db.execute("SELECT 1 FROM sessions WHERE id = ?", (own,)).fetchone():
            number += 1
            own = f"{name}#{number}"
        session = session if own == name else msgspec.structs.replace(session, id=own)
        row = (session.id, name, session.case_id, _digest(session.id.encode("utf-8", "replace")), content)
        self._db.execute(_INSERT, (*row, _encode(session)))

    def keep_sample(self, count: int | None, share: float | None, seed: int) -> None:
        """Keep so many sessions, or this share of them, chosen by a hash of their ids and the seed."""
        rows = self._db.execute("SELECT number, digest FROM sessions").fetchall()
        salt = str(seed).encode()
        ranked = sorted((blake2b(digest + salt, digest_size=8).digest(), number) for number, digest in rows)
        kept = len(ranked) if share is None else max(1, round(len(ranked) * share))
        kept = min(kept, len(ranked) if count is None else count)
        self._db.executemany("DELETE FROM sessions WHERE number = ?", [(number,) for _, number in ranked[kept:]])

    def __len__(self) -> int:
        return int(self._db.execute("SELECT COUNT(*) FROM sessions").fetchone()[0])

    def __iter__(self) -> Iterator[Session]:
        for (data,) in self._db.execute("SELECT data FROM sessions ORDER BY number"):
            yield _decode(data)

    def items(self) -> Iterator[tuple[str, Session]]:
        """Yield all sessions, each with the id that it has in its source."""
        for name, data in self._db.execute("SELECT source_id, data FROM sessions ORDER BY number"):
            yield name, _decode(data)

    def find(self, session_id: str) -> Session | None:
        """Return the session with this id."""
        row = self._db.execute("SELECT data FROM sessions WHERE id = ?", (session_id,)).fetchone()
        return None if row is None else _decode(row[0])

    def ids_of_case(self, case_id: str) -> list[str]:
        """Return the ids of the sessions that belong to a case: by what they say, or by their own id."""
        rows = self._db.execute(
            "SELECT id FROM sessions WHERE case_id = ? OR id = ? OR (case_id IS NULL AND id LIKE ? ESCAPE '\\')"
            " ORDER BY number",
            (case_id, case_id, _pattern(case_id)),
        )
        return [name for (name,) in rows]

    def close(self) -> None:
        """Remove the spool."""
        self._db.close()


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _pattern(case_id: str) -> str:
    escaped = case_id.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"{escaped}#%"
