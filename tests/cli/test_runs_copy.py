"""`agentv runs copy`: everything arrives, once, whatever cut the copy short."""

import json
import sqlite3
from contextlib import closing

import pytest

from agentv.api import export
from agentv.model.listing import RunLabel
from agentv.stores.postgres import PostgresStore
from agentv.stores.sqlite import SqliteStore
from tests.support.command import Command, calls, cases, execution_ids, minimum, mocked
from tests.support.postgres import PostgresServer

FILE = ".agentv/runs.db"


@pytest.fixture
def address(postgres_server: PostgresServer) -> str:
    return postgres_server.address()


@pytest.fixture
def filled(run: Command) -> Command:
    """A store with three executions: one passed, one failed, one was interrupted."""
    names = [f"c{number}" for number in range(20)]
    run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases(*names)})
    run.write("b.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("x", check=minimum(other=1))})
    assert run("eval", "a.eval.yaml").code == 0
    assert run("eval", "b.eval.yaml").code == 1
    assert run("eval", "a.eval.yaml", "--max-cost", "100").code == 0
    with closing(sqlite3.connect(run.folder / FILE, isolation_level=None)) as db:
        counts = "runs = 10, passed = 10, summary = NULL, checksum = NULL"
        db.execute(f"UPDATE executions SET status = 'interrupted', {counts} WHERE seq = 3")  # noqa: S608 - as above
        db.execute("UPDATE runs SET status = 'cancelled', verdict = NULL WHERE execution = 3 AND position >= 10")
        for table in ("payloads", "attempts", "evaluator_results", "run_index"):
            db.execute(f"DELETE FROM {table} WHERE run IN (SELECT seq FROM runs WHERE status = 'cancelled')")  # noqa: S608 - one of these
    return run


def exports(run: Command, store: str) -> list[str]:
    listed = json.loads(run("executions", "list", "--json", "--store", store).out)["executions"]
    return [run("executions", "export", row["id"], "--store", store).out for row in listed]


def test_a_copy_to_a_server_and_back_is_the_same(filled: Command, address: str) -> None:
    names = execution_ids(filled)
    store = SqliteStore(filled.folder / FILE)
    (key, *_) = store.find_keys(names[0], case_id="c3")
    store.set_label(names[0], key, RunLabel(label="fail", note="it is wrong", updated_at=""))
    store.close()
    there = filled("runs", "copy", FILE, address)
    assert there.code == 0, there.err
    assert f"copied {names[2]}: 20 runs" in there.out
    assert "copied 41 runs to postgresql://" in there.out
    assert filled("runs", "copy", address, "back.db").code == 0
    assert exports(filled, "back.db") == exports(filled, address) == exports(filled, FILE)
    for each in (PostgresStore(address), SqliteStore(filled.folder / "back.db")):
        assert [(found.key, found.label.note) for found in each.labelled_runs()] == [(key, "it is wrong")]
        assert [row.status for row in each.executions()] == ["interrupted", "fail", "pass"]
        assert all(run.damage is None for row in each.executions() for run in each.stored_runs(row.id))
        each.close()


def test_a_copy_that_was_cut_short_goes_on_and_nothing_is_there_twice(
    filled: Command, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "BLOCK", 6)
    add_runs, blocks = PostgresStore.add_runs, []

    def fail_later(store: PostgresStore, *arguments: object) -> int:
        blocks.append(arguments)
        if len(blocks) == 3:
            raise KeyboardInterrupt
        return add_runs(store, *arguments)  # type: ignore[arg-type] # as they came

    with monkeypatch.context() as patch:
        patch.setattr(PostgresStore, "add_runs", fail_later)
        assert filled("runs", "copy", FILE, address).code == 130
    (row,) = json.loads(filled("executions", "list", "--json", "--store", address).out)["executions"]
    assert (row["status"], row["runs"]) == ("interrupted", 12)
    again = filled("runs", "copy", FILE, address)
    assert "8 runs, 12 were already there" in again.out
    assert exports(filled, address) == exports(filled, FILE)
    third = json.loads(filled("runs", "copy", FILE, address, "--json").out)
    assert [(each["added"], each["kept"]) for each in third["executions"]] == [(0, 20), (0, 1), (0, 20)]


def test_results_that_came_later_are_copied_to_the_runs_that_had_none(filled: Command, address: str) -> None:
    name = execution_ids(filled)[0]
    assert filled("runs", "copy", FILE, address, "--execution", name).code == 0
    assert filled("eval", "--resume", name).code == 0
    again = filled("runs", "copy", FILE, address, "--execution", name)
    assert f"copied {name}: 10 runs, 20 were already there" in again.out
    shown = json.loads(filled("executions", "show", name, "--json", "--store", address).out)
    assert (shown["status"], shown["passed"]) == ("pass", 20)


def test_a_damaged_run_is_named_and_left_out(filled: Command) -> None:
    with closing(sqlite3.connect(filled.folder / FILE, isolation_level=None)) as db:
        db.execute("UPDATE payloads SET record = x'00' WHERE run = 1")
    copied = filled("runs", "copy", FILE, "other.db")
    assert copied.code == 3
    assert "is damaged" in copied.err
    listed = json.loads(filled("executions", "list", "--json", "--store", "other.db").out)["executions"]
    assert [(row["runs"], row["planned"]) for row in listed][-1] == (19, 20)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [(FILE, FILE, "the same store"), ("absent.db", "other.db", "there is no store"), (FILE, "mysql://x", "no store")],
)
def test_wrong_places_are_refused(filled: Command, source: str, target: str, message: str) -> None:
    refused = filled("runs", "copy", source, target)
    assert (refused.code, message in refused.err) == (2, True), refused.err
