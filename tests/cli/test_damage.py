"""Damaged stores and files: a sentence that says what is wrong and where, never a traceback, and the rest is kept."""

import json
import os
import sqlite3
from contextlib import closing

import pytest

from tests.support.command import Command, calls, cases, mocked


@pytest.fixture
def stored(run: Command) -> Command:
    """A store with one execution of three runs."""
    run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a", "b", "c")})
    assert run("eval", "a.eval.yaml").code == 0
    return run


def change(run: Command, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(run.folder / ".agentv" / "runs.db")) as db, db:
        db.execute(statement, values)


def test_a_negative_version_is_told(stored: Command) -> None:
    change(stored, "PRAGMA user_version = -3")
    result = stored("executions", "list")
    assert (result.code, "it is damaged (its tables claim to be version -3)" in result.err) == (2, True)


@pytest.mark.parametrize("column", ["latency_ms", "position", "repeat", "rounds", "cost_usd", "total_tokens"])
def test_bytes_in_a_column_of_numbers_are_told(stored: Command, column: str) -> None:
    change(stored, f"UPDATE runs SET {column} = x'ff00' WHERE case_id = 'b'")  # noqa: S608 - a column of ours
    commands = (["runs", "list"], ["executions", "show"], ["runs", "show", "last", "--case", "b"], ["eval", "--resume"])
    for arguments in (*commands, ["executions", "export"], ["rescore"], ["compare", "last", "last"]):
        result = stored(*arguments)
        assert result.code != 4, (arguments, result.err)
        assert "Traceback" not in result.err


@pytest.mark.parametrize("column", ["planned", "passed", "started_at", "persist", "command"])
def test_bytes_in_an_execution_are_told(stored: Command, column: str) -> None:
    change(stored, f"UPDATE executions SET {column} = x'ff00'")  # noqa: S608 - as above
    for arguments in (["executions", "list"], ["runs", "list"], ["compare", "last", "last"]):
        result = stored(*arguments)
        assert result.code in (0, 2), (arguments, result.err)
    assert "it is damaged" in stored("executions", "list").err


class TestChecksums:
    def test_a_changed_run_is_named_and_the_others_are_exported(self, stored: Command) -> None:
        # Still valid JSON: only the checksum tells.
        changed = "CAST(replace(CAST(record AS TEXT), 'pass', 'fail') AS BLOB)"
        change(stored, f"UPDATE payloads SET record = {changed} WHERE run = 2")  # noqa: S608 - ours
        result = stored("executions", "export", "--out", "e.jsonl")
        assert result.code == 3
        assert "1 runs cannot be read and were left out: " in result.err
        lines = [json.loads(line) for line in (stored.folder / "e.jsonl").read_text().splitlines()]
        assert [line["case_id"] for line in lines[1:]] == ["a", "c"]
        for arguments in (["rescore"], ["compare", "last", "last"], ["runs", "show", "last", "--case", "b"]):
            result = stored(*arguments)
            assert result.code == 2, arguments
            assert "is damaged: its bytes are not those that were written" in result.err

    def test_runs_of_earlier_versions_have_no_checksum_and_are_read(self, stored: Command) -> None:
        change(stored, "UPDATE payloads SET checksum = NULL")
        assert stored("executions", "export").code == 0
        assert stored("rescore", "-q").code == 0


class TestImport:
    @pytest.mark.parametrize(
        "changed",
        [
            {"case": {"id": 7}},
            {"result": {"status": "perhaps"}},
            {"sides": "none"},
        ],
    )
    def test_what_an_export_would_call_damaged_is_refused(self, stored: Command, changed: dict[str, object]) -> None:
        execution, *runs = stored("executions", "export").lines
        runs[1] |= {**changed, "result": {**runs[1]["result"], **changed["result"]}} if "result" in changed else changed  # type: ignore[dict-item]  # JSON
        stored.write("e.jsonl", "\n".join(json.dumps(line) for line in (execution, *runs)))
        result = stored("runs", "import", "e.jsonl", "--store", "other.db")
        assert result.code == 2, result.out
        assert "e.jsonl, line 3: " in result.err
        assert json.loads(stored("executions", "list", "--json", "--store", "other.db").out)["executions"] == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser may read anything")
class TestPermissions:
    def test_a_folder_that_cannot_be_read_is_no_empty_one(self, stored: Command) -> None:
        (stored.folder / "more").mkdir(mode=0o000)
        result = stored("eval", ".")
        assert (result.code, "more' cannot be read: Permission denied" in result.err) == (2, True)

    def test_a_store_that_cannot_be_read_is_said_to_be_that(self, stored: Command) -> None:
        (stored.folder / ".agentv" / "runs.db").chmod(0o000)
        result = stored("executions", "list")
        assert (result.code, "cannot be read: Permission denied" in result.err) == (2, True)


def test_a_folder_that_cannot_be_walked_is_named(stored: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("more"):
            raise PermissionError(13, "Permission denied", str(path))
        return walk(path)

    (stored.folder / "more").mkdir()
    monkeypatch.setattr(os, "scandir", refuse)
    result = stored("eval", ".")
    assert result.code == 2
    assert "more' cannot be read: Permission denied" in result.err
