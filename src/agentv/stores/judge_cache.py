"""What judges said and how well they agreed with people, in the file of the run store."""

from __future__ import annotations

import os
from functools import cached_property
from time import gmtime, strftime
from typing import TYPE_CHECKING

import msgspec

from agentv.jsonio import dump_json
from agentv.model.judging import Calibration
from agentv.stores.connection import Connection

if TYPE_CHECKING:
    from pathlib import Path


SECRET_BYTES = 32
MAX_REPLIES = 200_000
"""More are forgotten, the oldest first."""
_decode = msgspec.json.Decoder(Calibration).decode


class Judgements(Connection):
    """Replies of judges and calibrations; one thread at a time may use it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with self.told():
            # A reply that is lost with the power is asked for again.
            self.db.execute("PRAGMA synchronous = NORMAL")
        self._written = 0

    @cached_property
    def secret(self) -> bytes:
        """What the words that fence data are made with; made once for each file."""
        with self.step():
            self.db.execute(
                "INSERT INTO judge_secret (id, secret) VALUES (1, ?) ON CONFLICT (id) DO NOTHING",
                (os.urandom(SECRET_BYTES),),
            )
            found: bytes = self.db.execute("SELECT secret FROM judge_secret").fetchone()[0]
        return found

    def get(self, key: str) -> bytes | None:
        """The reply that is remembered under this key."""
        with self.told():
            found = self.db.execute("SELECT reply FROM judge_replies WHERE key = ?", (key,)).fetchone()
        return None if found is None else found[0]

    def put(self, key: str, reply: bytes) -> None:
        """Remember a reply."""
        with self.step():
            self.db.execute(
                "INSERT OR REPLACE INTO judge_replies (key, reply, created_at) VALUES (?, ?, ?)", (key, reply, _now())
            )
        self._written += 1

    def calibration(self, judge_key: str, rubric_key: str) -> Calibration | None:
        """The last calibration of this judge for this rubric."""
        with self.told():
            found = self.db.execute(
                "SELECT data FROM calibrations WHERE judge_key = ? AND rubric_key = ? ORDER BY seq DESC LIMIT 1",
                (judge_key, rubric_key),
            ).fetchone()
        return None if found is None else _decode(found[0])

    def add_calibration(self, calibration: Calibration) -> None:
        """One more calibration, which counts from now on."""
        with self.step():
            self.db.execute(
                "INSERT INTO calibrations (judge_key, rubric_key, data, created_at) VALUES (?, ?, ?, ?)",
                (calibration.judge_key, calibration.rubric_key, dump_json(calibration), calibration.created_at),
            )

    def close(self) -> None:
        """Let go of it; of more replies than anybody needs, the oldest are forgotten."""
        try:
            if self._written:
                with self.step():
                    self.db.execute(
                        "DELETE FROM judge_replies WHERE key IN (SELECT key FROM judge_replies"
                        " ORDER BY created_at DESC, key LIMIT -1 OFFSET ?)",
                        (MAX_REPLIES,),
                    )
        finally:
            super().close()


def _now() -> str:
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())
