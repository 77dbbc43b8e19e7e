"""Run store: transactions, exclusive claims, leases, and recovery after crashes."""

import os
import shutil
import sqlite3
import subprocess
import sys
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
from agentv.jsonio import dump_json
from agentv.model.events import Attempt
from agentv.model.response import ResponseError, TokensUsage, Unread
from agentv.model.results import EvaluatorResult, ResultRecord
from agentv.model.stored import Claim, ExecutionRow, ResultRow
from agentv.stores.processes import ProcessIdentity, this_process
from agentv.stores.sqlite import SqliteStore, migrations
from agentv.stores.sqlite import leases as owners
from agentv.stores.sqlite.connection import Connection
from agentv.stores.sqlite.leases import Heartbeat, is_alive
from tests.support.examples import examples

NOBODY = 2**22 + 1
"""No process has this id."""
NAME = "20261116T000000-abcdef"
PLACE = Unread(path="output_messages[0].content[1]", reason="a block of type 'chart' was not understood")
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


def claim(key: str, rounds: int = 0) -> Claim:
    content = dump_json([{"id": key, "input_messages": [{"role": "user", "content": "hello"}]}, []])
    return Claim(
        key,
        int(key, 16) % 1000,
        "eval",
        f"case-{key}",
        "target",
        0,
        "a.yaml:1:1",
        content,
        b'{"name":"target"}',
        rounds,
    )


def saved(key: str, status: str = "pass") -> ResultRow:
    found = EvaluatorResult(name="check", type="contains", status=status, score=1.0)  # type: ignore[arg-type]  # a verdict
    record = ResultRecord(
        execution_id=NAME,
        run_id=f"{NAME}-{key}",
        eval_id="eval",
        case_id=f"case-{key}",
        target="target",
        repeat=0,
        attempts=1,
        status=status,  # type: ignore[arg-type]  # as above
        score=None if status == "error" else 1.0,
        candidate="hi",
        evaluators=(found,),
        trace_summary=None,
        tokens_usage=None,
        cost_usd=None,
        latency_ms=1.5,
        thread_id=None,
        warnings=(),
        error=None,
        started_at="2026-11-16T00:00:00.000Z",
        completed_at="2026-11-16T00:00:01.000Z",
    )
    return ResultRow(key, record, dump_json(record), b'{"text":"hi"}', None, (Attempt(number=1, latency_ms=1.5),))


def partly(key: str, *places: Unread) -> ResultRow:
    """A result whose reply was only partly understood."""
    whole = saved(key)
    record = replace(whole.record, unread=places or (PLACE,))
    return whole._replace(record=record, line=dump_json(record))


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


def somebody(**changed: Any) -> ProcessIdentity:
    return this_process()._replace(id=f"other-{next(_numbers)}", **changed)


def after_the_lease(path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteStore:
    """Return another process, for which the lease of the first one has expired."""
    other = SqliteStore(path)
    later = owners.uptime() + owners.LEASE_S + 1
    with monkeypatch.context() as patch:
        patch.setattr(owners, "uptime", lambda: later)
        assert other.active_workers(NAME) == []
    return other


class TestClaims:
    def test_a_run_belongs_to_whoever_claims_it_first(self, store: SqliteStore, path: Path) -> None:
        other = SqliteStore(path)
        assert store.write(NAME, [claim("a"), claim("b")], [])[0] == {"a", "b"}
        assert other.write(NAME, [claim("b"), claim("c")], [])[0] == {"c"}
        other.close()

    def test_a_result_is_kept_from_its_owner_only(self, store: SqliteStore, path: Path) -> None:
        other = SqliteStore(path)
        store.write(NAME, [claim("a")], [])
        assert other.write(NAME, [], [saved("a")])[1] == set()
        assert store.write(NAME, [], [saved("a")])[1] == {"a"}
        assert store.write(NAME, [], [saved("a")])[1] == set(), "and only once"
        other.close()

    def test_a_finished_run_is_claimed_again_only_where_its_end_is_named(self, store: SqliteStore) -> None:
        store.write(NAME, [claim("a"), claim("b"), claim("c")], [])
        store.write(NAME, [], [saved("a"), saved("b", "fail"), saved("c", "error")])
        again = [claim("a", 1), claim("b", 1), claim("c", 1)]
        assert store.write(NAME, again, [])[0] == set()
        assert store.write(NAME, again, [], ["error"])[0] == {"c"}
        assert store.write(NAME, again, [], ["fail"])[0] == {"b"}

    def test_somebody_who_was_faster_is_noticed_by_the_number_of_tries(self, store: SqliteStore, path: Path) -> None:
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [saved("a", "error")])
        other = SqliteStore(path)
        assert other.write(NAME, [claim("a", 1)], [], ["error"])[0] == {"a"}
        other.write(NAME, [], [saved("a", "error")])
        assert store.write(NAME, [claim("a", 1)], [], ["error"])[0] == set(), "it was an error again, but not ours"
        other.close()

    def test_a_dead_owners_runs_come_back(self, store: SqliteStore, path: Path) -> None:
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        other = SqliteStore(path, somebody(pid=dead.pid, started="1"))
        other.heartbeat()
        assert other.write(NAME, [claim("a")], [])[0] == {"a"}
        assert store.write(NAME, [claim("a")], [])[0] == set()
        assert store.active_workers(NAME) == []
        assert store.write(NAME, [claim("a")], [])[0] == {"a"}
        assert other.write(NAME, [], [saved("a")])[1] == set(), "too late: it is somebody else's now"

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

    def test_a_living_owner_is_named(self, store: SqliteStore, path: Path) -> None:
        other = SqliteStore(path)
        other.heartbeat()
        other.write(NAME, [claim("a"), claim("b")], [])
        (holder,) = store.active_workers(NAME)
        assert (holder.pid, holder.runs) == (os.getpid(), 2)
        other.close()
        assert store.active_workers(NAME) == []
        assert store.write(NAME, [claim("a")], [])[0] == {"a"}, "whoever leaves gives up what it had"

    def test_an_owner_that_stood_still_notices(
        self, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.heartbeat()
        store.write(NAME, [claim("a"), claim("b")], [])
        other = after_the_lease(path, monkeypatch)
        assert other.write(NAME, [claim("b")], [])[0] == {"b"}
        assert store.write(NAME, [], [saved("a"), saved("b")])[1] == set()
        other.close()

    def test_an_owner_that_stood_still_and_says_that_it_lives_has_lost_what_others_took(
        self, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.write(NAME, [claim("a"), claim("b")], [])
        other = after_the_lease(path, monkeypatch)
        assert other.write(NAME, [claim("a")], [])[0] == {"a"}
        store.heartbeat()
        assert store.write(NAME, [], [saved("a", "fail")])[1] == set()
        assert other.write(NAME, [], [saved("a")])[1] == {"a"}
        assert store.write(NAME, [], [saved("a", "fail"), saved("b")])[1] == set()
        assert [(row.key, row.verdict) for row in store.runs(NAME)] == [("a", "pass"), ("b", None)]
        assert store.write(NAME, [claim("b")], [])[0] == {"b"}, "what nobody has taken may be claimed anew"
        assert store.write(NAME, [], [saved("b")])[1] == {"b"}
        other.close()

    def test_a_run_that_came_from_elsewhere_while_it_was_running_is_free(self, store: SqliteStore, path: Path) -> None:
        store.write(NAME, [claim("a")], [])
        (run,) = store.stored_runs(NAME)
        moved = SqliteStore(path.with_name("moved.db"))
        moved.add(ExecutionRow(id=NAME, status="running", planned=1, started_at="x"), [run])
        assert list(moved.stored_runs(NAME)) == [run]
        assert moved.write(NAME, [claim("a")], [])[0] == {"a"}
        moved.close()


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
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA user_version = 999")
        db.close()
        with pytest.raises(StoreError, match=r"written by a newer agentv .* version 999, .* update agentv"):
            SqliteStore(path)

    @pytest.mark.parametrize("version", [0, 1, 75])
    def test_a_database_of_another_program_is_left_alone(self, path: Path, version: int) -> None:
        path.parent.mkdir()
        with sqlite3.connect(path) as db:
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


class TestLifeCycle:
    def test_a_claimed_run_waits_until_it_starts(self, store: SqliteStore) -> None:
        store.write(NAME, [claim("a"), claim("b")], [])
        assert [(row.status, row.started_at) for row in store.runs(NAME)] == [("queued", None)] * 2
        store.write(NAME, [], [], starts=[("a", "2026-11-16T00:00:07.000Z"), ("unknown", "x")])
        found = {row.key: (row.status, row.started_at) for row in store.runs(NAME)}
        assert found == {"a": ("running", "2026-11-16T00:00:07.000Z"), "b": ("queued", None)}
        store.write(NAME, [], [saved("a")])
        assert {row.key: row.status for row in store.runs(NAME)} == {"a": "completed", "b": "queued"}

    def test_a_run_that_waits_in_one_process_is_not_taken_by_another(self, store: SqliteStore, path: Path) -> None:
        store.write(NAME, [claim("a")], [])
        other = SqliteStore(path)
        assert other.write(NAME, [claim("a", rounds=1)], [], {"error", "fail"})[0] == set()
        assert other.outcomes(NAME)["a"].claimed
        other.close()

    def test_runs_of_a_dead_process_do_not_stay_running(self, path: Path) -> None:
        dead = SqliteStore(path, somebody(pid=NOBODY, started=""))
        dead.begin(ExecutionRow(id=NAME, status="running", planned=2, started_at="x"))
        dead.write(NAME, [claim("a"), claim("b")], [])
        dead.write(NAME, [], [], starts=[("a", "x")])
        dead.db.close()
        reader = SqliteStore(path)
        reader.release_dead_claims()
        assert {row.status for row in reader.runs(NAME)} == {"queued"}
        reader.close()

    def test_runs_of_a_living_process_are_left_alone(self, store: SqliteStore, path: Path) -> None:
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [], starts=[("a", "x")])
        reader = SqliteStore(path)
        reader.release_dead_claims()
        assert [row.status for row in reader.runs(NAME)] == ["running"]
        reader.close()


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


class TestKeeping:
    def test_lists_read_no_payload(self, store: SqliteStore) -> None:
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [saved("a")])
        store.db.execute("DROP TABLE payloads")
        assert [row.case_id for row in store.runs(NAME)] == ["case-a"]
        assert [row.id for row in store.executions()] == [NAME]

    def test_the_order_of_executions_is_that_of_beginning_whatever_the_clock_says(self, store: SqliteStore) -> None:
        store.begin(ExecutionRow(id="19990101T000000-000000", status="running", started_at="1999-01-01T00:00:00.000Z"))
        assert [row.id for row in store.executions()] == ["19990101T000000-000000", NAME]

    def test_a_case_that_many_runs_share_is_kept_once(self, store: SqliteStore) -> None:
        store.write(NAME, [claim("a")._replace(key=key) for key in "abc"], [])
        assert store.db.execute("SELECT count(*) FROM snapshots").fetchone() == (2,)

    def test_a_run_that_is_run_once_more_has_no_verdict_until_it_ends(self, store: SqliteStore) -> None:
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [saved("a", "fail")])
        store.write(NAME, [claim("a", 1)], [], ["fail"])
        (row,) = store.runs(NAME)
        assert (row.status, row.verdict, row.score) == ("queued", None, None)
        store.write(NAME, [], [saved("a")])
        (row,) = store.runs(NAME)
        assert (row.status, row.verdict, row.score) == ("completed", "pass", 1.0)

    def test_every_round_of_attempts_is_kept(self, store: SqliteStore) -> None:
        error = ResponseError(kind="transport", message="down", retryable=True, code="rate_limited", retry_after_s=2.0)
        attempts = (Attempt(number=1, error=error, waited_ms=3.0), Attempt(number=2, latency_ms=4.0, thread_id="t"))
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [saved("a", "error")._replace(attempts=attempts)])
        store.write(NAME, [claim("a", 1)], [], ["error"])
        store.write(NAME, [], [saved("a")])
        (run,) = store.stored_runs(NAME)
        assert run.attempt_log == ((1, attempts[0]), (1, attempts[1]), (2, Attempt(number=1, latency_ms=1.5)))
        assert store.db.execute("SELECT count(*) FROM evaluator_results").fetchone() == (1,)

    def test_unread_places_are_in_the_list_and_counted(self, store: SqliteStore) -> None:
        store.write(NAME, [claim("a"), claim("b"), claim("c")], [])
        other = Unread(path="metadata", reason="it holds a call")
        store.write(NAME, [], [saved("a"), partly("b"), partly("c", PLACE, other)])
        assert [row.unread for row in store.runs(NAME)] == [None, (PLACE,), (PLACE, other)]
        assert store.find_execution(NAME)[0].partly_understood == 2
        store.mark_superseded(NAME, ["c"])
        assert store.executions()[0].partly_understood == 1

    def test_a_reply_that_is_understood_the_second_time_counts_no_more(self, store: SqliteStore) -> None:
        whole = partly("a")
        record = replace(whole.record, status="error", score=None)
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [whole._replace(record=record, line=dump_json(record))])
        store.write(NAME, [claim("a", 1)], [], ["error"])
        assert store.executions()[0].partly_understood == 0, "it is being run again"
        store.write(NAME, [], [saved("a")])
        assert [row.unread for row in store.runs(NAME)] == [None]

    def test_the_records_of_a_target_come_newest_first_and_no_more_than_asked_for(self, store: SqliteStore) -> None:
        store.write(NAME, [claim(key) for key in "abc"] + [claim("d")._replace(target="another")], [])
        store.write(NAME, [], [saved(key) for key in "abd"])
        assert list(store.target_records("target", 10)) == [saved("b").line, saved("a").line]
        assert list(store.target_records("target", 1)) == [saved("b").line]
        assert list(store.target_records("nobody", 10)) == []

    def test_a_number_that_no_column_can_hold_is_in_the_record_alone(self, store: SqliteStore) -> None:
        usage = TokensUsage(input_tokens=10**30, output_tokens=1, total_tokens=10**30 + 1)
        record = replace(saved("a").record, tokens_usage=usage)
        store.write(NAME, [claim("a"), claim("b")], [])
        written = saved("a")._replace(record=record, line=dump_json(record))
        assert store.write(NAME, [], [written, saved("b")])[1] == {"a", "b"}
        first = next(store.runs(NAME))
        assert (first.input_tokens, first.output_tokens, first.total_tokens) == (None, 1, None)
        assert [kept.line for kept in store.results(NAME, ["a"])] == [written.line]

    @pytest.mark.parametrize(("name", "counted"), [("one", ["b"]), ("key [redacted]", ["a", "b"])])
    def test_a_result_takes_the_place_of_one_of_the_same_case_unless_its_name_was_redacted(
        self, store: SqliteStore, name: str, counted: list[str]
    ) -> None:
        store.resume(ExecutionRow(id=NAME, status="running", planned=1))
        for key in "ab":
            store.write(NAME, [claim(key)._replace(case_id=name)], [])
            assert store.write(NAME, [], [saved(key)])[1] == {key}
        assert [row.key for row in store.runs(NAME)] == counted
        assert store.executions()[0].runs == len(counted)

    @pytest.mark.parametrize("key", ["2", "f"], ids=["the same run again", "an edited case"])
    def test_a_run_that_is_resumed_alone_keeps_its_position_in_the_whole_plan(
        self, store: SqliteStore, key: str
    ) -> None:
        store.write(NAME, [claim("1"), claim("2"), claim("3")], [])
        store.write(NAME, [], [saved("1"), saved("2", "fail"), saved("3")])
        store.resume(ExecutionRow(id=NAME, status="running", planned=3), is_whole=False)
        alone = claim(key, rounds=int(key == "2"))._replace(case_id="case-2", position=0)
        assert store.write(NAME, [alone], [], ("fail",))[0] == {key}
        store.write(NAME, [], [saved(key)])
        assert [(row.key, row.position) for row in store.runs(NAME)] == [("1", 1), (key, 2), ("3", 3)]

    def test_a_case_that_is_new_and_resumed_alone_comes_last(self, store: SqliteStore) -> None:
        store.write(NAME, [claim("1"), claim("2")], [])
        store.resume(ExecutionRow(id=NAME, status="running", planned=3), is_whole=False)
        store.write(NAME, [claim("f")._replace(position=0)], [])
        assert [row.key for row in store.runs(NAME)] == ["1", "2", "f"]

    def test_deleting_takes_everything_with_it(self, store: SqliteStore) -> None:
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [saved("a")])
        store.delete([NAME])
        for table in ("executions", "runs", "attempts", "evaluator_results", "payloads", "snapshots"):
            assert store.db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table  # noqa: S608 - ours

    def test_an_execution_that_is_deleted_while_it_runs_is_noticed(self, store: SqliteStore, path: Path) -> None:
        store.write(NAME, [claim("a")], [])
        other = SqliteStore(path)
        other.delete([NAME])
        other.close()
        with pytest.raises(StoreError, match=f"execution {NAME} was deleted while it was running"):
            store.write(NAME, [claim("b")], [])
        with pytest.raises(StoreError, match="was deleted while it was running"):
            store.write(NAME, [], [saved("a")])
        assert store.db.execute("SELECT count(*) FROM runs").fetchone() == (0,)

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
    with sqlite3.connect(copy) as db:
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
