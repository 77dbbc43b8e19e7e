"""Run store: transactions, exclusive claims, leases, and recovery after crashes."""

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.stored import ExecutionRow
from agentv.stores.processes import this_process
from agentv.stores.sqlite import SqliteStore, migrations
from agentv.stores.sqlite import leases as owners
from agentv.stores.sqlite.connection import Connection
from agentv.stores.sqlite.leases import Heartbeat, is_alive
from tests.support.examples import examples
from tests.support.stored_rows import NAME, NOBODY, claim, partly, saved, somebody

_numbers = count()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".agentv" / "runs.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(path)
    opened.begin(ExecutionRow(id=NAME, status="running", planned=3, started_at="2026-11-16T00:00:00.000Z"))
    yield opened
    opened.close()


def write_earlier(path: Path) -> None:
    """Create a file with one finished run, with the columns of the first version."""
    opened = Connection(path)
    columns = {name for _, name, *_ in opened.db.execute("PRAGMA table_info(runs)")}
    opened.close()
    renamed = "target_settings" in columns
    names = "target, rounds, target_settings" if renamed else "target_id, tries, target"
    done = saved("a")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "INSERT INTO executions (id, status, persist, command, inputs, planned, started_at)"
            " VALUES (?, 'running', 'messages', '{}', '', 1, 'x')",
            (NAME,),
        )
        db.execute(
            "INSERT INTO snapshots (id, data) VALUES (1, ?), (2, ?)", (claim("a").content, claim("a").target_settings)
        )
        statement = (
            "INSERT INTO runs ({names}, execution, key, position, eval_id, case_id, repeat, place, status, verdict,"
            " score, content, created_at, updated_at)"
            " VALUES ('target', 1, 2, 1, 'a', 0, 'eval', 'case-a', 0, '', 'completed', 'pass', 1.0, 1, 'x', 'x')"
        )
        db.execute(statement.format(names=names))
        db.execute("INSERT INTO payloads (run, record, response) VALUES (1, ?, ?)", (done.line, done.response))


class TestDamagedLeases:
    @pytest.mark.parametrize(
        "damage",
        [
            "seen_at = 'yesterday'",
            "seen_at = x'ff00'",
            "beat = 'x'",
            "beat = x'00'",
            "pid = 'x'",
            "pid = 9223372036854775807",
            "machine = x'00'",
            "machine = CAST(x'ff' AS TEXT)",
        ],
    )
    def test_a_damaged_lease_has_expired(self, store: SqliteStore, path: Path, damage: str) -> None:
        other = SqliteStore(path, somebody())
        other.heartbeat()
        other.write(NAME, [claim("a")], [])
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            assert db.execute(f"UPDATE owners SET {damage}").rowcount > 0  # noqa: S608 - one of those above
        assert store.active_workers(NAME, recover=False) == []
        assert store.active_workers(NAME) == []
        assert store.write(NAME, [claim("a")], [])[0] == {"a"}
        assert other.write(NAME, [], [saved("a")])[1] == set(), "its owner notices that it lost the run"
        other.close()


class TestLeases:
    HERE = this_process()

    def sign(self, **changed: Any) -> Heartbeat:
        return Heartbeat(somebody(**changed), owners.uptime(), time.time())

    def test_a_lease_ends_on_the_machines_own_clock(self) -> None:
        sign = self.sign()
        assert is_alive(sign, self.HERE)
        assert is_alive(sign, self.HERE, now=sign.uptime + owners.LEASE_S - 1)
        assert not is_alive(sign, self.HERE, now=sign.uptime + owners.LEASE_S + 1)

    @pytest.mark.parametrize("jump", [-1e6, -3600, 3600, 1e6])
    def test_a_clock_that_jumps_neither_ends_nor_prolongs_it(
        self, monkeypatch: pytest.MonkeyPatch, jump: float
    ) -> None:
        sign = self.sign()
        moved = time.time() + jump
        monkeypatch.setattr(time, "time", lambda: moved)
        assert is_alive(sign, self.HERE)
        assert not is_alive(sign._replace(uptime=sign.uptime - owners.LEASE_S - 1), self.HERE)

    def test_a_process_number_that_was_given_again_is_another_process(self) -> None:
        assert not is_alive(self.sign(started="1"), self.HERE)

    def test_in_another_container_numbers_mean_nothing(self) -> None:
        assert is_alive(self.sign(pid_namespace="pid:[1]", pid=2**22 + 1), self.HERE)

    def test_a_machine_that_was_started_anew_runs_nothing_of_before(self) -> None:
        host = self.HERE.machine.partition("/")[0]
        assert not is_alive(self.sign(machine=f"{host}/another-start"), self.HERE)

    def test_another_machine_is_believed_for_a_lease(self) -> None:
        sign = self.sign(machine="elsewhere/x")
        assert is_alive(sign, self.HERE)
        assert not is_alive(sign._replace(at=time.time() - owners.LEASE_S - 1), self.HERE)


class TestFile:
    def test_it_is_for_its_owner_only_and_ignored_by_git(self, store: SqliteStore, path: Path) -> None:
        store.heartbeat()
        modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
        assert modes["runs.db"] == modes["runs.db-wal"] == modes["runs.db-shm"] == 0o600
        assert (path.parent / ".gitignore").read_text() == "runs.db*\n"

    def test_a_file_that_others_could_read_is_closed_to_them(self, store: SqliteStore, path: Path) -> None:
        store.close()
        path.chmod(0o644)
        SqliteStore(path).close()
        assert path.stat().st_mode & 0o777 == 0o600

    def test_a_newer_file_is_refused(self, store: SqliteStore, path: Path) -> None:
        store.close()
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("PRAGMA user_version = 999")
        db.close()
        with pytest.raises(StoreError, match=r"written by a newer agentv .* version 999, .* update agentv"):
            SqliteStore(path)

    @pytest.mark.parametrize("version", [0, 1, 75])
    def test_a_database_of_another_program_is_left_alone(self, path: Path, version: int) -> None:
        path.parent.mkdir()
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("CREATE TABLE theirs (x)")
            db.execute(f"PRAGMA user_version = {version}")
        db.close()
        path.chmod(0o644)
        before = path.read_bytes()
        with pytest.raises(StoreError, match="a database of another program"):
            SqliteStore(path)
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (before, 0o644)
        assert [each.name for each in path.parent.iterdir()] == ["runs.db"]

    def test_a_file_that_was_cut_off_before_it_had_a_name_is_ours(self, store: SqliteStore, path: Path) -> None:
        copy = path.parent / "copy.db"
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{copy}{end}")
        assert b"agtv" not in copy.read_bytes()[:100], "all of it is in the log still"
        other = SqliteStore(copy)
        assert [row.id for row in other.executions()] == [row.id for row in store.executions()]
        other.close()

    def test_somebody_who_makes_the_same_file_at_the_same_moment_is_waited_for(self, path: Path) -> None:
        path.parent.mkdir()
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, other.execute, ["COMMIT"])
        release.start()
        SqliteStore(path).close()
        release.join()
        other.close()

    def test_a_damaged_file_is_said_to_be_one(self, path: Path) -> None:
        path.parent.mkdir()
        path.write_bytes(b"not a database at all" * 100)
        path.chmod(0o644)
        with pytest.raises(StoreError, match="it is damaged, or no run store"):
            SqliteStore(path)
        assert path.stat().st_mode & 0o777 == 0o644

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser may write anywhere")
    def test_a_folder_that_cannot_be_written_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "fixed").mkdir(mode=0o500)
        with pytest.raises(StoreError, match="cannot be written: Permission denied; name another place"):
            SqliteStore(tmp_path / "fixed" / "runs.db")


class TestMigrations:
    @pytest.mark.parametrize("version", range(1, len(migrations.migration_files()) + 1))
    def test_a_file_of_any_earlier_version_is_brought_forward_with_its_runs(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, version: int
    ) -> None:
        all_steps = migrations.migration_files()
        with monkeypatch.context() as patch:
            patch.setattr(migrations, "migration_files", lambda: all_steps[:version])
            write_earlier(path)
        new = SqliteStore(path)
        assert [each.key for each in new.results(NAME)] == ["a"]
        assert [row.unread for row in new.runs(NAME)] == [None]
        assert [row.partly_understood for row in new.executions()] == [0]
        new.write(NAME, [claim("b")], [])
        assert new.write(NAME, [], [partly("b")])[1] == {"b"}
        assert [row.partly_understood for row in new.executions()] == [1]
        assert new.db.execute("PRAGMA user_version").fetchone() == (len(all_steps),)
        fresh = SqliteStore(path.with_name("fresh.db"))
        tables = "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
        assert new.db.execute(tables).fetchall() == fresh.db.execute(tables).fetchall()
        new.close()
        fresh.close()

    def test_a_step_that_fails_leaves_the_file_as_it_was(
        self, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        SqliteStore(path).close()
        broken = tmp_path / "9999_broken.sql"
        broken.write_text("CREATE TABLE half (x);\nCREATE TABLE executions (twice);\n")
        all_steps = migrations.migration_files()
        with monkeypatch.context() as patch:
            patch.setattr(migrations, "migration_files", lambda: [*all_steps, broken])
            with pytest.raises(StoreError, match="already exists"):
                SqliteStore(path)
        store = SqliteStore(path)
        assert store.db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").fetchone() == (0,)
        store.close()


class TestDeletion:
    def test_what_is_deleted_is_gone_although_its_room_cannot_be_given_back(self, store: SqliteStore) -> None:
        def refuse(action: int, *_: object) -> int:
            return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK

        store.db.set_authorizer(refuse)  # as on a full disk: `VACUUM` writes a second file
        store.delete([NAME])
        assert store.executions() == []


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["claim", "save", "crash", "leave", "beat"]), st.integers(0, 7), st.integers(0, 1)),
    max_size=20,
)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ACTIONS)
def test_any_interleaving_of_writes_and_crashes_leaves_a_store_that_opens_lists_and_resumes(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, int, int]]
) -> None:
    """Two processes with one store; a crash leaves the files as they are and a dead owner, like `kill -9`."""
    path = tmp_path_factory.mktemp("crash") / "runs.db"
    first = SqliteStore(path)
    first.begin(ExecutionRow(id=NAME, status="running", planned=8, started_at="x"))
    processes = [first, SqliteStore(path)]
    finished: set[str] = set()
    for action, number, who in actions:
        process, key = processes[who], f"{number:x}"
        if action == "claim":
            process.write(NAME, [claim(key)], [])
        elif action == "save":
            _, kept = process.write(NAME, [], [saved(key)])
            assert not kept & finished, "a result is kept once"
            finished |= kept
        elif action == "beat":
            process.heartbeat()
        else:
            if action == "crash":
                path = crashed(path, processes, who)
            processes[who].close()
            processes[who] = SqliteStore(path)
    for process in processes:
        process.close()
    last = SqliteStore(path)
    last.resume(replace(ExecutionRow(id=NAME, status="running"), planned=8))
    assert [row.id for row in last.executions()] == [NAME]
    assert {each.key for each in last.results(NAME)} == finished
    todo = {f"{number:x}" for number in range(8)} - finished
    assert last.write(NAME, [claim(key) for key in sorted(todo)], [])[0] == todo
    assert last.write(NAME, [], [saved(key) for key in todo])[1] == todo
    assert len(list(last.results(NAME))) == 8
    last.close()


def crashed(path: Path, processes: list[SqliteStore], who: int) -> Path:
    """Return the store as a killed process leaves it: its files are copied while they are open."""
    folder = path.parent / f"after-{next(_numbers)}"
    folder.mkdir()
    for each in path.parent.glob("runs.db*"):
        shutil.copy2(each, folder / each.name)
    owner = processes[who]._owner  # noqa: SLF001 - it dies here, which nobody but a test can arrange
    copy = folder / path.name
    with closing(sqlite3.connect(copy)) as db, db:
        db.execute("UPDATE owners SET pid = ?, born = '1' WHERE id = ?", (NOBODY, owner.id))
    db.close()
    other = processes[1 - who]
    replacement = SqliteStore(copy, other._owner)  # noqa: SLF001 - as above
    replacement._claimed.update(other._claimed)  # noqa: SLF001 - as above
    replacement._is_writer = True  # noqa: SLF001 - as above
    other.db.close()
    processes[1 - who] = replacement
    replacement.active_workers(NAME)
    return copy
