"""Migrations of a SQLite store: numbered scripts in `schema/`, and the check that the file is ours."""

from __future__ import annotations

import re
import sqlite3
from functools import cache
from pathlib import Path

from agentv.errors import StoreError
from agentv.stores.run_index import INDEX, index_rows

APPLICATION_ID = 0x61677476
"""`agtv`: marks our files in the header of SQLite."""
MAGIC = b"SQLite format 3\0"
HEADER_BYTES, SCHEMA_COOKIE, HEADER_APPLICATION_ID = 100, slice(40, 44), slice(68, 72)
"""Header of a SQLite file: its length, and the places of the schema cookie and of the application id."""
REPLACE_IT = "move it away, and a new one is made"
"""Remedy for a damaged file."""
MIGRATIONS = Path(__file__).parent / "schema"
_CREATE = re.compile(r"^CREATE (?:UNIQUE )?(TABLE|INDEX) (\w+)", re.MULTILINE)
MAX_NAME = 60
RUN_INDEX = "0008_run_index"
"""Migration after which the runs of earlier versions are indexed."""
BLOCK = 500


@cache
def migration_files() -> tuple[Path, ...]:
    """Return the migrations in order; the first is number 1."""
    return tuple(sorted(MIGRATIONS.glob("[0-9]*.sql")))


def migrate(connection: sqlite3.Connection, name: str) -> None:
    """Apply missing migrations; raise `StoreError` if the file is newer than this program or foreign."""
    connection.execute("PRAGMA trusted_schema = OFF")
    _check_schema(connection, name)
    migrations = migration_files()
    version = _version(connection)
    if version < 0:
        msg = f"{name}: it is damaged (its tables claim to be version {version}); {REPLACE_IT}"
        raise StoreError(msg)
    if version > len(migrations):
        msg = (
            f"{name} was written by a newer agentv (its tables are version {version}, "
            f"this one knows {len(migrations)}): update agentv, or name another store"
        )
        raise StoreError(msg)
    if version == 0:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        application_id = connection.execute("PRAGMA application_id").fetchone()[0]
        _check_application(name, has_tables=bool(tables), application_id=application_id)
    for number in range(version + 1, len(migrations) + 1):
        _apply_migration(connection, number, migrations[number - 1])


def is_outdated(connection: sqlite3.Connection) -> bool:
    """Return whether the tables of a store are of an earlier version."""
    return 0 < _version(connection) < len(migration_files())


def known_names() -> frozenset[tuple[str, str]]:
    """Return the tables and indexes that the migrations make, each as its kind and its name."""
    return _names_in(tuple(migration_files()))


@cache
def _names_in(migrations: tuple[Path, ...]) -> frozenset[tuple[str, str]]:
    scripts = [path.read_text(encoding="utf-8") for path in migrations]
    return frozenset((kind.lower(), name) for script in scripts for kind, name in _CREATE.findall(script))


def _check_schema(connection: sqlite3.Connection, name: str) -> None:
    """Raise `StoreError` if a store holds anything beside our tables: a trigger or a view could change results."""
    for kind, entry in connection.execute("SELECT type, name FROM sqlite_schema"):
        is_own = kind in ("table", "index") and str(entry).startswith("sqlite_")
        if not is_own and (kind, entry) not in known_names():
            msg = (
                f"{name} holds the {kind} {str(entry)[:MAX_NAME]!r}, which agentv did not make: it may come from "
                "somebody else and is not used; move it away, and a new one is made"
            )
            raise StoreError(msg)


def _apply_migration(connection: sqlite3.Connection, number: int, script: Path) -> None:
    """Apply one migration, unless another process has done it meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) == number - 1:
            for statement in _split_statements(script.read_text(encoding="utf-8")):
                connection.execute(statement)
            if script.stem == RUN_INDEX:
                _index_runs(connection)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _index_runs(connection: sqlite3.Connection) -> None:
    """Add the search columns of runs that earlier versions stored."""
    places = ", ".join("?" * len(INDEX.columns))
    statement = f"INSERT INTO {INDEX.table} ({', '.join(INDEX.columns)}) VALUES ({places})"  # noqa: S608 - names, ours
    cursor = connection.execute("SELECT run, record FROM payloads")
    while block := cursor.fetchmany(BLOCK):
        connection.executemany(statement, index_rows(block))


def _split_statements(statements: str) -> list[str]:
    """Split a script into statements: `executescript` would commit the transaction."""
    plain = "\n".join(line for line in statements.splitlines() if not line.lstrip().startswith("--"))
    return [statement for statement in map(str.strip, plain.split(";")) if statement]


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def check_header(path: Path, name: str) -> None:
    """Raise an error if the file is another program's; opening it for writing would already change it."""
    try:
        with path.open("rb") as file:
            header = file.read(HEADER_BYTES)
    except (FileNotFoundError, NotADirectoryError):  # it does not exist yet, or creating it reports the reason
        return
    except IsADirectoryError as error:
        msg = f"{name} is a folder, and no run store: name a file in it"
        raise StoreError(msg) from error
    except OSError as error:
        fix = "ask its owner for the permission to read it, or name another store"
        msg = f"{name} cannot be read: {error.strerror}; {fix}"
        raise StoreError(msg) from error
    if header and not header.startswith(MAGIC):
        msg = "file is not a database"
        raise sqlite3.DatabaseError(msg)
    # A file without tables has no application id yet: its first tables may still be in the write-ahead log.
    application_id = int.from_bytes(header[HEADER_APPLICATION_ID], "big")
    _check_application(name, has_tables=any(header[SCHEMA_COOKIE]), application_id=application_id)


def _check_application(name: str, *, has_tables: bool, application_id: int) -> None:
    if has_tables and application_id != APPLICATION_ID:
        msg = f"{name} is a database of another program: name another store"
        raise StoreError(msg)
