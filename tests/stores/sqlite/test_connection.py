"""Connections to files that are no store, that are damaged, or that cannot be read, written or locked."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentv.errors import StoreError
from agentv.stores.sqlite import connection as connections
from agentv.stores.sqlite import migrations
from agentv.stores.sqlite.connection import Connection, _explain
from agentv.stores.sqlite.migrations import migration_files


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store without executions."""
    file = tmp_path / ".agentv" / "runs.db"
    Connection(file).close()
    return file


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement)


def refuse_to_write(path: Path) -> None:
    raise PermissionError(13, "Permission denied", str(path))


@pytest.mark.parametrize("version", [-1, -(2**31)])
def test_a_negative_version_is_damage(path: Path, version: int) -> None:
    change(path, f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError, match=rf"it is damaged \(its tables claim to be version {version}\); move it away"):
        Connection(path)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_version_that_the_tables_do_not_have_is_damage(path: Path, version: int) -> None:
    change(path, f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError, match="it is damaged, or no run store"):
        Connection(path)


def test_a_file_that_was_cut_off_is_damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(StoreError, match="it is damaged, or no run store"):
        Connection(path).db.execute("PRAGMA integrity_check")


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder, and no run store: name a file in it"):
        Connection(tmp_path)


class TestPermissions:
    def test_a_file_that_nobody_can_read_is_not_said_to_be_unwritable(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise PermissionError(13, "Permission denied", str(path))

        # The superuser may read any file.
        monkeypatch.setattr(Path, "open", refuse)
        with pytest.raises(StoreError, match="cannot be read: Permission denied; ask its owner") as raised:
            Connection(path)
        assert "written" not in str(raised.value)

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser may read any file")
    def test_a_file_without_permissions_cannot_be_read(self, path: Path) -> None:
        path.chmod(0)
        with pytest.raises(StoreError, match="cannot be read: Permission denied"):
            Connection(path)

    def test_a_file_that_may_only_be_read_is_read(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connections, "ensure_private_file", refuse_to_write)
        with closing(Connection(path)) as opened:
            assert opened.db.execute("SELECT count(*) FROM runs").fetchone() == (0,)
            with pytest.raises(StoreError, match="it cannot be written; name another place"), opened.transaction():
                opened.db.execute("DELETE FROM runs")

    def test_a_file_in_a_folder_that_may_only_be_read_is_read(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        error = coded("SQLITE_READONLY_DIRECTORY", "attempt to write a readonly database")

        def refuse(_: sqlite3.Connection) -> None:
            raise error

        # The superuser may write into any folder.
        monkeypatch.setattr(os, "access", lambda *_: False)
        monkeypatch.setattr(connections, "_enable_wal", refuse)
        with closing(Connection(path)) as opened:
            assert opened.db.execute("SELECT count(*) FROM runs").fetchone() == (0,)
            with pytest.raises(StoreError, match="it cannot be written; name another place"), opened.transaction():
                opened.db.execute("DELETE FROM runs")

    @pytest.mark.parametrize("version", range(1, len(migration_files())))
    def test_one_of_an_earlier_version_is_read_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
    ) -> None:
        path = tmp_path / "runs.db"
        with monkeypatch.context() as patch:
            patch.setattr(migrations, "migration_files", lambda: migration_files()[:version])
            Connection(path).close()
        before = path.read_bytes()
        monkeypatch.setattr(connections, "ensure_private_file", refuse_to_write)
        with closing(Connection(path)) as opened:
            assert opened.db.execute("SELECT count(*) FROM runs WHERE checksum IS NULL").fetchone() == (0,)
            with pytest.raises(StoreError, match="it cannot be written; name another place"), opened.transaction():
                opened.db.execute("DELETE FROM runs")
        assert path.read_bytes() == before


def test_a_file_that_another_process_locks_is_said_to_be_locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(
            StoreError, match=r"another process has held it for 0.05 s; try again when that one is done"
        ):
            Connection(path)


def coded(name: str, text: str) -> sqlite3.Error:
    """Return an error as `sqlite3` raises it for this result code."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = getattr(sqlite3, name)
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (coded("SQLITE_IOERR_READ", "disk I/O error"), "the system could not read or write it (SQLITE_IOERR_READ)"),
        (coded("SQLITE_IOERR_WRITE", "disk I/O error"), "check the disk, its free space and its limits"),
        (coded("SQLITE_IOERR_LOCK", "disk I/O error"), "it cannot be locked (SQLITE_IOERR_LOCK), as in some network"),
        (coded("SQLITE_PROTOCOL", "locking protocol"), "does not lock files as a database needs it"),
        (coded("SQLITE_BUSY_SNAPSHOT", "database is locked"), "another process has held it for 30 s"),
        (coded("SQLITE_FULL", "database or disk is full"), "the disk is full"),
        (coded("SQLITE_CANTOPEN", "unable to open database file"), "it cannot be opened: is its folder there"),
        (coded("SQLITE_READONLY_DBMOVED", "attempt to write a readonly database"), "it cannot be written"),
        (coded("SQLITE_CORRUPT_INDEX", "database disk image is malformed"), "it is damaged"),
        (sqlite3.OperationalError("Could not decode to UTF-8 column 'id' with text 'x'"), "it is damaged"),
    ],
)
def test_an_error_says_what_it_is(error: sqlite3.Error, words: str) -> None:
    assert words in _explain(error)


@pytest.mark.skipif(os.name == "nt", reason="there are no such limits")
def test_a_file_that_may_not_grow_is_an_error_of_the_system(path: Path, limit_file_size: Callable[[int], None]) -> None:
    with closing(Connection(path)) as opened:
        limit_file_size(path.stat().st_size)
        with pytest.raises(StoreError, match=r"could not read or write it|the disk is full"), opened.transaction():
            opened.db.execute("INSERT INTO judge_secret (id, secret) VALUES (1, zeroblob(1000000))")
        limit_file_size(-1)
        with opened.transaction():
            opened.db.execute("INSERT INTO judge_secret (id, secret) VALUES (1, zeroblob(10))")


@pytest.fixture
def limit_file_size() -> Iterator[Callable[[int], None]]:
    """Return a function that limits the size of files this process writes; -1 removes the limit."""
    import resource  # noqa: PLC0415 - there is none on Windows

    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before[0] if size < 0 else size, before[1]))

    yield limit
    limit(-1)
