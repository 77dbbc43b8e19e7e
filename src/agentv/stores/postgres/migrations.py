"""Migrations of a PostgreSQL store: numbered scripts in `schema/`, applied in the schema of the store."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psycopg import errors, sql

from agentv.errors import StoreError

if TYPE_CHECKING:
    import psycopg

    from agentv.stores.postgres.address import ServerAddress

MIGRATIONS = Path(__file__).parent / "schema"
FIND_VERSION_TABLE = """
    SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = %s AND relname = 'store_version'
"""
"""A query of the catalog sees tables that another process has just made; `to_regclass` may not."""
MIGRATION_LOCK = 0x61677476_00000001
"""Number of the advisory lock under which one process at a time applies migrations."""


@cache
def migration_files() -> tuple[Path, ...]:
    """Return the migrations in order; the first is number 1."""
    return tuple(sorted(MIGRATIONS.glob("[0-9]*.sql")))


def migrate(connection: psycopg.Connection[Any], address: ServerAddress) -> None:
    """Apply missing migrations; raise `StoreError` if the tables are newer than this program, or of another one."""
    migrations = migration_files()
    version = find_version(connection, address.schema)
    if version == len(migrations):
        return
    check_version(version, len(migrations), address)
    try:
        with connection.transaction():
            set_search_path(connection, address)
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            version = find_version(connection, address.schema)
            check_version(version, len(migrations), address)
            if version == 0:
                _create_schema(connection, address)
            for number in range(version + 1, len(migrations) + 1):
                connection.execute(migrations[number - 1].read_bytes())
                connection.execute("UPDATE store_version SET version = %s", (number,))
    except errors.InsufficientPrivilege as error:
        raise StoreError(_explain_privileges(version, address, error)) from error


def set_search_path(connection: psycopg.Connection[Any], address: ServerAddress, *, is_local: bool = True) -> None:
    """Let names of tables refer to the schema of the store, in this transaction or in the whole session."""
    schema = '"' + address.schema.replace('"', '""') + '"'
    connection.execute("SELECT set_config('search_path', %s, %s)", (schema, is_local))


def find_version(connection: psycopg.Connection[Any], schema: str) -> int:
    """Return the version of the tables of a schema; 0 if there are none."""
    if connection.execute(FIND_VERSION_TABLE, (schema,)).fetchone() is None:
        return 0
    rows = connection.execute(sql.SQL("SELECT version FROM {}").format(sql.Identifier(schema, "store_version")))
    version: int = rows.fetchone()[0]  # type: ignore[index]  # it has one row
    return version


def _create_schema(connection: psycopg.Connection[Any], address: ServerAddress) -> None:
    """Create the schema, if it does not exist, and the table of its version."""
    found = connection.execute("SELECT oid FROM pg_namespace WHERE nspname = %s", (address.schema,)).fetchone()
    if found is None:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
    else:
        tables = connection.execute("SELECT relname FROM pg_class WHERE relnamespace = %s LIMIT 1", found).fetchone()
        if tables is not None:
            other = "name another one with ?schema="
            msg = f"{address.name}: the schema {address.schema!r} holds tables of another program; {other}"
            raise StoreError(msg)
    connection.execute("CREATE TABLE store_version (version bigint NOT NULL)")
    connection.execute("INSERT INTO store_version VALUES (0)")


def check_version(version: int, known: int, address: ServerAddress) -> None:
    """Raise `StoreError` if the tables are newer than this program."""
    if version > known:
        msg = (
            f"{address.name} was written by a newer agentv (its tables are version {version}, "
            f"this one knows {known}): update agentv, or name another schema with ?schema="
        )
        raise StoreError(msg)


def _explain_privileges(version: int, address: ServerAddress, error: Exception) -> str:
    reason = str(error).splitlines()[0]
    if version:
        fix = "let the owner of its tables run `agentv executions list` once with this version of agentv"
        return f"{address.name}: its tables are of an earlier version and may not be changed ({reason}); {fix}"
    fix = f'let the owner of the database run `CREATE SCHEMA "{address.schema}" AUTHORIZATION` with this role'
    return f"{address.name}: the tables of the store may not be created ({reason}); {fix}"
