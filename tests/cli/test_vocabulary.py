"""One vocabulary for a run in records, exports, lists and stores; files of earlier versions are still read."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import agentv
from agentv.api.export import export_runs, import_runs
from agentv.api.runs import resolve
from agentv.stores.sqlite import SqliteStore
from tests.support.command import Command, Json, cases, mocked

STORES = Path(__file__).parents[1] / "data" / "stores"
FORMER_WORDS = {"target_id", "tries", "replaced", "holders", "verdict"}


def key_names(value: object) -> set[str]:
    """The names of all fields in JSON data."""
    if isinstance(value, dict):
        return set(value) | {name for each in value.values() for name in key_names(each)}
    return {name for each in value for name in key_names(each)} if isinstance(value, list) else set()


@pytest.fixture(scope="module")
def outputs(module_run: Command) -> dict[str, Json]:
    """One run as every output writes it."""
    run = module_run
    check = {"type": "contains", "value": "hello"}
    run.write("a.eval.yaml", {"targets": [mocked("hello")], "cases": cases("a", check=check)})
    run("eval", "a.eval.yaml", "--out", "results.jsonl")
    execution = json.loads(run("executions", "show", "--json").out)
    return {
        "record": json.loads((run.folder / "results.jsonl").read_text()),
        "export": run("executions", "export").lines[1],
        "openai": run("executions", "export", "--format", "openai").lines[0],
        "list": json.loads(run("runs", "list", "--json").out)["runs"][0],
        "show": execution["runs"][0],
        "execution": execution,
    }


class TestWords:
    def test_no_output_has_a_former_word(self, outputs: dict[str, Json]) -> None:
        assert {name: key_names(value) & FORMER_WORDS for name, value in outputs.items()} == {
            name: set() for name in outputs
        }

    def test_what_means_the_same_has_the_same_name_and_value(self, outputs: dict[str, Json]) -> None:
        record = outputs["record"]
        for name in ("export", "openai"):
            run = outputs[name]
            for field in ("execution_id", "eval_id", "case_id", "target", "repeat", "attempts", "started_at"):
                assert (field, run[field]) == (field, record[field])
            assert run["id"] == record["run_id"]
        for name in ("list", "show"):
            listed = outputs[name]
            assert listed.keys() <= outputs["export"].keys() | {"unread", "failure", "calls", "label"}
            for field in ("execution_id", "case_id", "target", "repeat", "rounds", "place", "latency_ms"):
                assert (field, listed[field]) == (field, outputs["export"][field])

    def test_the_status_of_a_run_is_its_life_cycle_and_that_of_its_result_the_verdict(
        self, outputs: dict[str, Json]
    ) -> None:
        assert outputs["record"]["status"] == "pass"
        for name in ("export", "openai", "list", "show"):
            assert (outputs[name]["status"], outputs[name]["result"]["status"]) == ("completed", "pass")

    def test_a_changed_shape_has_a_new_version(self, outputs: dict[str, Json]) -> None:
        schemas = {name: outputs[name]["schema"] for name in ("record", "export", "execution")}
        assert schemas == {"record": "agentv.result/1", "export": "agentv.run/2", "execution": "agentv.execution/2"}

    def test_runs_from_python_have_the_names_of_the_export(self, outputs: dict[str, Json]) -> None:
        of_a_conversation = {"turns", "ended_by", "fault", "simulator"}
        assert set(agentv.Run.__struct_fields__) <= outputs["export"].keys() | of_a_conversation | {"unread"}


def restore(path: Path) -> None:
    """Make a store file as agentv wrote it before tables had the words of the glossary."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript((STORES / "version-3.sql").read_text(encoding="utf-8"))


def lines_of(path: Path) -> list[Json]:
    store = SqliteStore(path)
    lines = [json.loads(line) for line in export_runs(store, resolve(store, "last"))]
    store.close()
    return lines


class TestEarlierVersions:
    def test_an_earlier_store_is_brought_forward_with_all_of_its_runs(self, tmp_path: Path) -> None:
        restore(tmp_path / "runs.db")
        _, *runs = lines_of(tmp_path / "runs.db")
        found = [(run["case_id"], run["target"], run["rounds"], run["superseded"]) for run in runs]
        assert sorted(found) == [
            ("deactivate", "down", 2, False),
            ("deactivate", "down", 2, False),
            ("deactivate", "scripted", 1, False),
            ("deactivate", "scripted", 1, False),
            ("greets", "down", 1, False),
            ("greets", "down", 2, True),
            ("greets", "scripted", 1, False),
            ("greets", "scripted", 1, True),
        ]
        down = next(run for run in runs if run["target"] == "down" and run["rounds"] == 2)
        assert down["target_settings"]["url"] == "http://127.0.0.1:9/agent"
        assert [(each["round"], each["number"]) for each in down["attempt_log"]] == [(1, 1), (1, 2), (2, 1), (2, 2)]
        assert down["attempts"] == 2

    def test_an_earlier_export_is_imported_as_what_the_store_of_its_time_holds(self, tmp_path: Path) -> None:
        restore(tmp_path / "old.db")
        store = SqliteStore(tmp_path / "new.db")
        with (STORES / "export-run-1.jsonl").open("rb") as lines:
            ((row, count),) = import_runs(store, lines)
        store.close()
        assert (row.id, count) == ("20261118T030107-c13bb8", 8)
        assert lines_of(tmp_path / "new.db") == lines_of(tmp_path / "old.db")

    def test_an_earlier_store_is_listed_shown_and_resumed(self, run: Command) -> None:
        (run.folder / ".agentv").mkdir()
        restore(run.folder / ".agentv" / "runs.db")
        assert "6 runs: 1 passed, 2 failed, 3 errors" in run("executions", "list").out
        shown = run("runs", "show", "last", "--case", "deactivate").out
        assert "case deactivate of support, target scripted" in shown
        assert "attempt 2 of round 2 failed (transport)" in shown
        assert run("rescore", "--quiet").code == 3
