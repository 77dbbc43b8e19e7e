"""Tables of the stores of all kinds: the same columns, of the same types."""

from pathlib import Path

from agentv.stores.postgres import PostgresStore
from agentv.stores.sqlite import SqliteStore
from tests.support.postgres import PostgresServer

TYPES = {"INTEGER": "bigint", "REAL": "double precision", "TEXT": "text", "BLOB": "bytea"}
"""Types of PostgreSQL by those of SQLite."""
OWN_TABLES = {"store_version", "target_users", "target_pauses"}
"""Tables that only a server has: SQLite has its version in the header, and limits are shared on a server only."""
OWN_INDEXES = {"runs_of_cases"}
"""Indexes that only a file has: names of cases may be longer than an entry of the server, which groups in memory."""
LEASES = "owners"
"""Leases are measured by the uptime of a machine in a file, and by the clock of a server."""


def sqlite_columns(path: Path) -> dict[str, dict[str, tuple[str, bool]]]:
    store = SqliteStore(path)
    tables = [name for (name,) in store.db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = {
        table: {
            name: (TYPES[kind], bool(not_null) or bool(key))
            for _, name, kind, not_null, _, key in store.db.execute(f"PRAGMA table_info({table})")
        }
        for table in tables
        if not table.startswith("sqlite_")
    }
    store.close()
    return found


def server_columns(server: PostgresServer) -> dict[str, dict[str, tuple[str, bool]]]:
    store = PostgresStore(server.address())
    columns = "table_name, column_name, data_type, is_nullable"
    query = f"SELECT {columns} FROM information_schema.columns WHERE table_schema = ?"  # noqa: S608 - names, ours
    found: dict[str, dict[str, tuple[str, bool]]] = {}
    for table, name, kind, nullable in store.db.execute(query, (store.address.schema,)):
        found.setdefault(table, {})[name] = (kind, nullable == "NO")
    store.close()
    return found


def test_every_store_has_the_same_tables_and_columns(tmp_path: Path, postgres_server: PostgresServer) -> None:
    ours, theirs = sqlite_columns(tmp_path / "runs.db"), server_columns(postgres_server)
    assert theirs.keys() - ours.keys() == OWN_TABLES
    assert ours.keys() - theirs.keys() == set()
    for table in ours.keys() - {LEASES}:
        assert theirs[table] == ours[table], table


def test_every_store_has_the_same_indexes(tmp_path: Path, postgres_server: PostgresServer) -> None:
    file = SqliteStore(tmp_path / "runs.db")
    ours = {name for (name,) in file.db.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql <> ''")}
    file.close()
    store = PostgresStore(postgres_server.address())
    query = "SELECT indexname FROM pg_indexes WHERE schemaname = ?"
    theirs = {name for (name,) in store.db.execute(query, (store.address.schema,))}
    store.close()
    assert ours - theirs == OWN_INDEXES
