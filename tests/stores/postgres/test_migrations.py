"""Migrations of tables on a server: earlier versions, a step that fails, several processes at once."""

from pathlib import Path
from threading import Thread

import pytest

from agentv.errors import StoreError
from agentv.model.stored import ExecutionRow
from agentv.stores.postgres import PostgresStore, migrations
from tests.support.postgres import PostgresServer
from tests.support.stored_rows import NAME, claim, saved

ALL = migrations.migration_files()
COLUMNS = """
    SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
    WHERE table_schema = ? ORDER BY table_name, column_name
"""


def columns(store: PostgresStore) -> list[tuple[object, ...]]:
    return store.db.execute(COLUMNS, (store.address.schema,)).fetchall()


def test_tables_of_the_first_version_are_migrated_with_their_runs(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres_server.address()
    store = PostgresStore(address)
    store.begin(ExecutionRow(id=NAME, status="running", planned=2, started_at="x"))
    store.write(NAME, [claim("a"), claim("b")], [])
    store.write(NAME, [], [saved("a")])
    latest = columns(store)
    # The columns and indexes that later versions have added.
    store.db.execute("DROP INDEX runs_in_order")
    store.db.execute("ALTER TABLE runs DROP COLUMN turns")
    store.db.execute("ALTER TABLE attempts DROP COLUMN turn")
    store.db.execute("ALTER TABLE attempts DROP COLUMN worker")
    store.db.execute("UPDATE store_version SET version = 1")
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "migration_files", lambda: ALL[:1])
        first = PostgresStore(postgres_server.address())
    assert columns(first) == columns(store), "the first version has these columns"
    first.close()
    store.close()
    new = PostgresStore(address)
    assert columns(new) == latest
    assert [(run.key, run.damage, len(run.attempt_log)) for run in new.stored_runs(NAME)] == [
        ("a", None, 1),
        ("b", None, 0),
    ]
    new.write(NAME, [claim("c")], [])
    assert new.write(NAME, [], [saved("c")])[1] == {"c"}
    new.close()


def test_a_step_that_fails_leaves_the_tables_as_they_were(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres_server.address()
    store = PostgresStore(address)
    before = columns(store)
    broken = tmp_path / "9999_broken.sql"
    broken.write_text("ALTER TABLE runs ADD COLUMN more bigint; SELECT nothing FROM nowhere;")
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "migration_files", lambda: [*ALL, broken])
        with pytest.raises(StoreError, match="nowhere"):
            PostgresStore(address)
    assert columns(store) == before
    PostgresStore(address).close()
    store.close()


def test_several_processes_may_create_the_tables_at_once(postgres_server: PostgresServer) -> None:
    address = postgres_server.address()
    failures: list[Exception] = []

    def create() -> None:
        try:
            PostgresStore(address).close()
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
