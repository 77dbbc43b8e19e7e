"""Damaged run stores: every command names the damaged runs, goes on with the others, and exits with 3."""

import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import agentv
from agentv.errors import DamagedRunError
from tests.support.command import Command, calls, cases, command_in, execution_ids, mocked

VERDICTS = {"a": "pass", "b": "fail", "c": "pass"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one complete execution: `a` and `c` pass, `b` fails."""
    run = command_in(tmp_path_factory.mktemp("template"))
    replies = [calls("search"), calls("other"), calls("search")]
    run.write("a.eval.yaml", {"targets": [mocked(*replies)], "cases": cases("a", "b", "c")})
    assert run("eval", "a.eval.yaml", "-q").code == 1
    with closing(sqlite3.connect(run.folder / ".agentv" / "runs.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return run.folder


@pytest.fixture
def run(template: Path, tmp_path: Path) -> Command:
    """A copy of the project."""
    run = command_in(tmp_path)
    shutil.copytree(template, run.folder, dirs_exist_ok=True)
    return run


def change(run: Command, statement: str) -> None:
    with closing(sqlite3.connect(run.folder / ".agentv" / "runs.db", isolation_level=None)) as db:
        assert db.execute(statement).rowcount > 0


def run_id(run: Command, case_id: str) -> str:
    with closing(sqlite3.connect(run.folder / ".agentv" / "runs.db")) as db:
        query = "SELECT executions.id, key FROM runs JOIN executions ON executions.seq = execution WHERE case_id = ?"
        execution, key = db.execute(query, (case_id,)).fetchone()
    return f"{execution}-{key}"


B = "run = (SELECT seq FROM runs WHERE case_id = 'b')"
PAYLOADS = [
    f"{change} WHERE {B}"
    for change in (
        "UPDATE payloads SET record = replace(CAST(record AS TEXT), 'fail', 'pass')",
        "UPDATE payloads SET record = CAST(replace(CAST(record AS TEXT), 'fail', 'pass') AS BLOB)",
        "UPDATE payloads SET response = CAST(replace(CAST(response AS TEXT), 'other', 'search') AS BLOB)",
        "UPDATE payloads SET response = NULL",
        "UPDATE payloads SET sides = x'5b5d'",
        "UPDATE payloads SET checksum = 1",
        "DELETE FROM payloads",
        "UPDATE payloads SET record = 5",
    )
]
"""Changes of the result of `b` that SQLite does not notice; some of them would turn its verdict."""
CONTENTS = [
    "UPDATE snapshots SET data = CAST('x' || data AS BLOB) WHERE CAST(data AS TEXT) LIKE '%question b%'",
    "DELETE FROM snapshots WHERE CAST(data AS TEXT) LIKE '%question b%'",
    "UPDATE runs SET content = 5 WHERE case_id = 'b'",
]
COLUMNS = [
    "UPDATE runs SET verdict = 'pass' WHERE case_id = 'b'",
    "UPDATE runs SET verdict = NULL WHERE case_id = 'b'",
    "UPDATE runs SET score = 1.0 WHERE case_id = 'b'",
    "UPDATE runs SET score = x'00ff' WHERE case_id = 'b'",
    "UPDATE runs SET latency_ms = 'slow' WHERE case_id = 'b'",
    "UPDATE runs SET repeat = x'01' WHERE case_id = 'b'",
    "UPDATE runs SET repeat = -1 WHERE case_id = 'b'",
    "UPDATE runs SET total_tokens = 9223372036854775807 WHERE case_id = 'b'",
    "UPDATE runs SET unread = 'garbage' WHERE case_id = 'b'",
    "UPDATE runs SET thread_id = CAST(x'ff' AS TEXT) WHERE case_id = 'b'",
]
IDENTITY = [
    "UPDATE runs SET case_id = 'z' WHERE case_id = 'b'",
    "UPDATE runs SET eval_id = 'z' WHERE case_id = 'b'",
    "UPDATE runs SET target = 'z' WHERE case_id = 'b'",
    "UPDATE runs SET target_settings = 5 WHERE case_id = 'b'",
]


@pytest.mark.parametrize("statement", [*PAYLOADS, *CONTENTS, *COLUMNS])
def test_a_damaged_run_is_named_and_the_others_are_exported(run: Command, statement: str) -> None:
    name = run_id(run, "b")
    change(run, statement)
    result = run("executions", "export")
    assert result.code == 3
    assert [line["case_id"] for line in result.lines[1:]] == ["a", "c"]
    assert f"run {name} is damaged (" in result.err
    assert f"agentv eval --resume {name.rpartition('-')[0]} --retry-errors" in result.err
    written = run("executions", "export", "--out", "out.jsonl")
    assert (written.code, "wrote 3 lines to out.jsonl" in written.err, name in written.err) == (3, True, True)
    assert run("executions", "export", "--format", "openai").code == 3


@pytest.mark.parametrize("statement", [*PAYLOADS, *CONTENTS, *COLUMNS])
def test_a_damaged_run_is_not_shown_as_if_it_were_whole(run: Command, statement: str) -> None:
    name = run_id(run, "b")
    change(run, statement)
    for options in ([], ["--json"]):
        result = run("runs", "show", name, *options)
        assert (result.code, f"run {name} is damaged" in result.err) == (3, True)
        assert "PASS" not in result.out
    assert run("runs", "show", run_id(run, "a")).code == 0


@pytest.mark.parametrize("statement", COLUMNS)
def test_lists_name_damaged_runs_among_the_others(run: Command, statement: str) -> None:
    name = run_id(run, "b")
    change(run, statement)
    for command in (["runs", "list"], ["executions", "show"], ["executions", "show", "--status", "pass"]):
        result = run(*command)
        assert (result.code, result.out.count("PASS")) == (3, 2)
        assert "DAMAGED b" in result.out
        assert f"run {name} is damaged" in result.err
        (row,) = [row for row in json.loads(run(*command, "--json").out)["runs"] if row["case_id"] == "b"]
        assert row["damage"]


@pytest.mark.parametrize("statement", [*PAYLOADS, *CONTENTS, *COLUMNS])
def test_python_reads_the_others_and_is_told_in_the_end(run: Command, statement: str) -> None:
    name = run_id(run, "b")
    change(run, statement)
    read: list[str] = []
    with agentv.open_store(run.folder / ".agentv" / "runs.db") as store, pytest.raises(DamagedRunError) as raised:
        read.extend(each.case_id for each in store.runs())
    assert read == ["a", "c"]
    assert list(raised.value.runs) == [name]


@pytest.mark.parametrize("statement", PAYLOADS)
def test_a_damaged_run_is_an_error_where_it_is_resumed_and_is_run_again_with_the_errors(
    run: Command, statement: str
) -> None:
    name = run_id(run, "b")
    change(run, statement)
    result = run("eval", "--resume", "--out", "results.jsonl")
    assert result.code == 3
    assert {record["case_id"]: record["status"] for record in run.records()} == {**VERDICTS, "b": "error"}
    assert f"run {name} is damaged" in result.out + result.err
    again = run("eval", "--resume", "--retry-errors", "--out", "again.jsonl")
    assert again.code == 1, again.err
    assert {record["case_id"]: record["status"] for record in run.records("again.jsonl")} == VERDICTS
    assert run("executions", "export").code == 0


@pytest.mark.parametrize("statement", [*CONTENTS, *COLUMNS, *IDENTITY])
def test_a_run_whose_result_is_intact_keeps_it_and_is_repaired_by_running_it_again(
    run: Command, statement: str
) -> None:
    change(run, statement)
    assert run("eval", "--resume", "--out", "results.jsonl").code == 1
    assert {record["case_id"]: record["status"] for record in run.records()} == VERDICTS
    assert run("executions", "export").code == 3
    assert run("eval", "--resume", "--retry-errors", "--out", "again.jsonl").code == 1
    assert {record["case_id"]: record["status"] for record in run.records("again.jsonl")} == VERDICTS
    exported = run("executions", "export")
    assert (exported.code, [line["case_id"] for line in exported.lines[1:]]) == (0, ["a", "b", "c"])


@pytest.mark.parametrize("statement", [*PAYLOADS, *CONTENTS, *COLUMNS])
def test_a_damaged_run_is_not_rescored_and_named(run: Command, statement: str) -> None:
    name = run_id(run, "b")
    change(run, statement)
    result = run("rescore", "--out", "results.jsonl")
    assert (result.code, f"run {name} is damaged" in result.err) == (3, True)
    assert {record["case_id"]: record["status"] for record in run.records()} == {"a": "pass", "c": "pass"}


def test_a_damaged_reply_is_an_error_with_other_evaluators(run: Command) -> None:
    name = run_id(run, "b")
    change(run, PAYLOADS[2])
    result = run("rescore", "--eval", "a.eval.yaml", "--out", "results.jsonl")
    assert result.code == 3
    by_case = {record["case_id"]: record for record in run.records()}
    assert {case_id: record["status"] for case_id, record in by_case.items()} == {**VERDICTS, "b": "error"}
    assert f"run {name} is damaged" in by_case["b"]["error"]["message"]


@pytest.mark.parametrize("statement", [*PAYLOADS[:2], *PAYLOADS[4:]])
def test_a_comparison_leaves_it_out_and_says_so(run: Command, statement: str) -> None:
    assert run("eval", "a.eval.yaml", "-q").code == 1
    second, first = execution_ids(run)
    with closing(sqlite3.connect(run.folder / ".agentv" / "runs.db", isolation_level=None)) as db:
        db.execute(statement.replace("case_id = 'b'", "case_id = 'b' AND execution = 2"))
    for options in ([], ["--fail-on", "regression"]):
        result = run("compare", first, second, *options)
        assert (result.code, "is damaged" in result.out + result.err) == (3, True)
    assert run("compare", first, second, "--allow-missing").code == 0


def test_a_comparison_with_nothing_but_damaged_runs_says_so(run: Command) -> None:
    change(run, "UPDATE payloads SET checksum = 1")
    result = run("compare", "last", "last")
    assert (result.code, f"run {run_id(run, 'a')} is damaged" in result.err) == (3, True)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE executions SET passed = 3, failed = 0",
        "UPDATE executions SET summary = CAST(replace(CAST(summary AS TEXT), 'exit_code\":1', 'exit_code\":0') AS BLOB)",  # noqa: E501
        "UPDATE executions SET summary = 'garbage'",
        "UPDATE executions SET command = 'garbage'",
        "UPDATE executions SET planned = x'00'",
        "UPDATE executions SET runs = -1",
        "UPDATE executions SET status = 'pass'",
        "UPDATE executions SET persist = 'everything'",
    ],
)
def test_a_damaged_execution_is_named_and_its_runs_are_exported(run: Command, statement: str) -> None:
    (name,) = execution_ids(run)
    change(run, statement)
    for command in (["executions", "list"], ["executions", "show"], ["executions", "export"]):
        result = run(*command)
        assert (result.code, f"execution {name} is damaged" in result.err) == (3, True), command
    assert "damaged 3 runs: 2 passed, 1 failed" in " ".join(run("executions", "list").out.split())
    exported = run("executions", "export").lines
    assert [line["case_id"] for line in exported[1:]] == ["a", "b", "c"]
    resumed = run("eval", "--resume")
    assert (resumed.code, f"execution {name} is damaged" in resumed.err) == (2, True)


def test_what_an_earlier_version_wrote_counts_as_unchecked(run: Command) -> None:
    for table in ("executions", "runs", "payloads"):
        change(run, f"UPDATE {table} SET checksum = NULL")  # noqa: S608
    change(run, "UPDATE payloads SET response_checksum = NULL")
    assert run("executions", "export").code == 0
    assert run("eval", "--resume").code == 1
    change(run, "UPDATE payloads SET record = x'7b' WHERE run = 2")
    assert run("executions", "export").code == 3


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["case", "input_messages"], 5),
        (["messages"], 5),
        (["response"], 7),
        (["result", "evaluators"], 7),
        (["result", "candidate"], 7),
        (["sides"], [5]),
        (["target_settings"], [1]),
        (["evaluators"], 5),
        (["result"], None),
    ],
)
def test_an_import_refuses_what_an_export_would_call_damaged(run: Command, path: list[str], value: object) -> None:
    head, *lines = run("executions", "export").lines
    head["id"] = "copy"
    inner = lines[1]
    for line in lines:
        line["execution_id"] = "copy"
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    run.write("moved.jsonl", "".join(json.dumps(line) + "\n" for line in (head, *lines)))
    result = run("runs", "import", "moved.jsonl")
    assert (result.code, result.err.startswith("moved.jsonl, line 3: ")) == (2, True), result
    assert len(execution_ids(run)) == 1


COMMANDS = (
    ["runs", "list"],
    ["executions", "list"],
    ["executions", "show"],
    ["runs", "show", "last", "--case", "b"],
    ["executions", "export"],
    ["eval", "--resume"],
    ["rescore"],
    ["compare", "last", "last"],
)


def test_changed_bytes_never_crash_and_never_turn_a_verdict(template: Path, tmp_path: Path) -> None:
    rng = random.Random(20261118)  # noqa: S311 - the same places each time
    whole = (template / ".agentv" / "runs.db").read_bytes()
    for number in range(12):
        (tmp_path / str(number)).mkdir()
        run = command_in(tmp_path / str(number))
        shutil.copytree(template, run.folder, dirs_exist_ok=True)
        check_changed_store(run, change_bytes(whole, rng), COMMANDS[number % len(COMMANDS)])


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 4))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def check_changed_store(run: Command, data: bytes, command: list[str]) -> None:
    """Run a command on a store with this content: it says so, or does what it does on an intact store."""
    (run.folder / ".agentv" / "runs.db").write_bytes(data)
    result = run(*command)
    assert result.code in {0, 1, 2, 3}, (command, result.err)
    assert "Traceback" not in result.err
    shown = [line.split()[:2] for line in result.out.splitlines() if line.startswith(("PASS", "FAIL"))]
    assert all(VERDICTS.get(name, verdict.lower()) == verdict.lower() for verdict, name in shown), result.out
    if command[0] == "eval" and result.code != 2:
        assert result.code in {1, 3}, "one case fails"
