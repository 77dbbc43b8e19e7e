"""Judge cache and calibrations in a run store; the key of the user that signs replies."""

from __future__ import annotations

import hmac
import os
import sys
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from agentv.files import PRIVATE_MODE
from agentv.jsonio import dump_json
from agentv.model.judging import Calibration
from agentv.stores.database import StoreConnection, timestamp

KEY_VARIABLE = "AGENTV_CACHE_KEY"
"""Environment variable with the key of the user, for machines on which no file remains, such as those of CI."""
KEY_BYTES = 32
SECRET_BYTES = 32
SIGNATURE_BYTES = 32
MAX_REPLIES = 200_000
"""Size of the cache: beyond it, the oldest replies are deleted."""
PUT = """
    INSERT INTO judge_replies (key, reply, created_at) VALUES (?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET reply = excluded.reply, created_at = excluded.created_at
"""
TRIM = """
    DELETE FROM judge_replies WHERE key IN (
        SELECT key FROM judge_replies ORDER BY created_at DESC, key LIMIT 9223372036854775807 OFFSET ?
    )
"""
_decode = msgspec.json.Decoder(Calibration).decode


class StoredJudgeCache(StoreConnection):
    """Replies of judges and calibrations; used by one thread at a time."""

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self._written = 0

    @cached_property
    def secret(self) -> bytes:
        """Secret key of the nonces, created once for each store."""
        # Anybody who can read the store knows its secret, but not the key of the user.
        return hmac.digest(self._user_key, b"nonce" + self.in_transaction(self._stored_secret), sha256)

    def _stored_secret(self) -> bytes:
        self.db.execute(
            "INSERT INTO judge_secret (id, secret) VALUES (1, ?) ON CONFLICT (id) DO NOTHING",
            (os.urandom(SECRET_BYTES),),
        )
        return bytes(self.db.execute("SELECT secret FROM judge_secret").fetchone()[0])

    @cached_property
    def _user_key(self) -> bytes:
        return user_key()

    def get(self, key: str) -> bytes | None:
        """Return the reply that is cached under this key."""
        with self.translate_errors():
            row = self.db.execute("SELECT reply FROM judge_replies WHERE key = ?", (key,)).fetchone()
        if row is None or not isinstance(row[0], bytes):
            return None
        signature, reply = row[0][:SIGNATURE_BYTES], row[0][SIGNATURE_BYTES:]
        # A reply that this user did not cache may be in a store that came with a repository: it is asked for again.
        return reply if hmac.compare_digest(signature, self._sign(key, reply)) else None

    def _sign(self, key: str, reply: bytes) -> bytes:
        return hmac.digest(self._user_key, key.encode() + b"\0" + reply, sha256)

    def put(self, key: str, reply: bytes) -> None:
        """Cache a reply."""
        values = (key, self._sign(key, reply) + reply, timestamp())
        self.in_transaction(lambda: self.db.execute(PUT, values))
        self._written += 1

    def calibration(self, judge_key: str, rubric_key: str) -> Calibration | None:
        """Return the last calibration of this judge for this rubric."""
        with self.translate_errors():
            row = self.db.execute(
                "SELECT data FROM calibrations WHERE judge_key = ? AND rubric_key = ? ORDER BY seq DESC LIMIT 1",
                (judge_key, rubric_key),
            ).fetchone()
        return None if row is None else _decode(row[0])

    def add_calibration(self, calibration: Calibration) -> None:
        """Store a calibration; the last one counts."""
        statement = "INSERT INTO calibrations (judge_key, rubric_key, data, created_at) VALUES (?, ?, ?, ?)"
        values = (calibration.judge_key, calibration.rubric_key, dump_json(calibration), calibration.created_at)
        self.in_transaction(lambda: self.db.execute(statement, values))

    def close(self) -> None:
        """Delete the oldest replies beyond `MAX_REPLIES`, and close the store."""
        try:
            if self._written:
                self.in_transaction(lambda: self.db.execute(TRIM, (MAX_REPLIES,)))
        finally:
            super().close()


def user_key() -> bytes:
    """Return the key: of the environment, else of a file of the user; else one that lasts as long as the process."""
    value = os.environ.get(KEY_VARIABLE)
    return value.encode() if value else key_in(_key_file())


def _key_file() -> Path:
    if sys.platform == "win32":
        folder = os.environ.get("APPDATA") or "~"
    else:
        folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "agentv" / "cache.key"


@lru_cache
def key_in(path: Path) -> bytes:
    """Return the key in this file, which is made if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE)
        except FileExistsError:
            key = path.read_bytes()
            return key if len(key) >= KEY_BYTES else os.urandom(KEY_BYTES)
        with open(file, "wb") as stream:  # noqa: PTH123 - it is open already
            key = os.urandom(KEY_BYTES)
            stream.write(key)
    except (OSError, RuntimeError):  # no home, or one that cannot be written: nothing is recognised next time
        return os.urandom(KEY_BYTES)
    return key
