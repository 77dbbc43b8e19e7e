"""Numbered steps from an empty file to today's tables, each done once and whole."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from agentv.errors import StoreError

APPLICATION = 0x61677476
"""`agtv`: tells our files from anybody else's."""
MAGIC = b"SQLite format 3\0"
HEAD, TABLES, NAME = 100, slice(40, 44), slice(68, 72)
"""Of SQLite's header: how long it is, where it counts changes of tables, and where it says whose file it is."""
FOLDER = Path(__file__).parent / "schema"


def steps() -> list[Path]:
    """The migrations, in order; the first is number 1."""
    return sorted(FOLDER.glob("[0-9]*.sql"))


def migrate(connection: sqlite3.Connection, name: str) -> None:
    """Bring a file to today's tables; a `StoreError` when it is newer than this program, or not ours."""
    todo = steps()
    version = _version(connection)
    if version > len(todo):
        msg = (
            f"{name} was written by a newer agentv (its tables are version {version}, this one knows {len(todo)}): "
            "update agentv, or name another store"
        )
        raise StoreError(msg)
    if version == 0:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        _refuse(name, tables=bool(tables), application=connection.execute("PRAGMA application_id").fetchone()[0])
    for number in range(version + 1, len(todo) + 1):
        _step(connection, number, todo[number - 1].read_text(encoding="utf-8"))


def _step(connection: sqlite3.Connection, number: int, statements: str) -> None:
    """One step, unless another process has done it meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) == number - 1:
            for statement in _split(statements):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _split(statements: str) -> list[str]:
    """Each statement by itself: `executescript` would commit behind our back."""
    plain = "\n".join(line for line in statements.splitlines() if not line.lstrip().startswith("--"))
    return [statement for statement in map(str.strip, plain.split(";")) if statement]


def _version(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def refuse_foreign(path: Path, name: str) -> None:
    """A file of somebody else's is not ours to change, and to open it for writing would be a change already."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError:  # it is not there, or whoever opens it next says why not
        return
    if head and not head.startswith(MAGIC):
        msg = "file is not a database"
        raise sqlite3.DatabaseError(msg)
    # One without tables has no name yet; its first ones may be in the log beside it still.
    _refuse(name, tables=any(head[TABLES]), application=int.from_bytes(head[NAME], "big"))


def _refuse(name: str, *, tables: bool, application: int) -> None:
    if tables and application != APPLICATION:
        msg = f"{name} is a database of another program: name another store"
        raise StoreError(msg)
