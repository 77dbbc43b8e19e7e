"""The cost of the run store, against a bare `sqlite3` script, a bare interpreter, and running the cases."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from agentv.api.evaluate import load
from agentv.api.execution import prepare
from agentv.api.resume import begin, command_of, new_execution
from agentv.api.store_files import open_location, parse_location
from agentv.model.events import Attempt, RunFinished
from agentv.model.response import ProviderResponse
from agentv.model.results import ResultRecord
from agentv.run.options import RunOptions
from agentv.run.plan import PlannedRun
from agentv.run.store_writer import StoreWriter
from agentv.stores.sqlite.migrations import migration_files
from benchmarks.clock import child_environment, process_starts, timed
from benchmarks.ours import SCRIPT, write_eval
from benchmarks.table import Bar, Row

WRITTEN, BLOCK, _ROUNDS = 10_000, 500, 5
_MANY = 100_000
_WRITES, _LOOKS, _RESUMES = Bar("at most", 2), Bar("at most", 15), Bar("at most", 0.1)
_TABLES = ("snapshots", "runs", "payloads", "attempts", "evaluator_results", "run_index")


def measure() -> list[Row]:
    """Writing, then looking into a store of 100,000 runs, then resuming it."""
    with TemporaryDirectory() as name:
        return [_writing(Path(name)), *_large(Path(name) / "large")]


def _writing(folder: Path) -> Row:
    """The ledger, thread and redaction and claims included, against the same rows written by hand in equal blocks."""
    prepared = prepare(load([write_eval(folder / "write.eval.yaml", WRITTEN)]), RunOptions())
    runs = list(prepared.runs())
    events = [finished(planned) for planned in runs]
    ours, theirs = [], []
    for at in range(_ROUNDS):
        path = folder / f"ours-{at}.db"
        store = open_location(parse_location(path))
        keeping = begin(store, new_execution(prepared, command_of([], (), RunOptions())))
        told: list[RunFinished] = []
        ledger = StoreWriter(
            store, keeping.execution.id, prepared.redactor, persist="messages", on_written=told.extend, on_error=fail
        )
        ours.append(timed(partial(asyncio.run, write_all(ledger, runs, events)))[0])
        assert len(told) == WRITTEN
        store.close()
        rows = _rows(path)
        theirs.append(timed(partial(_write_bare, folder / f"bare-{at}.db", rows))[0])
    return Row(
        name=f"store: {WRITTEN:,} runs written durably, against a bare sqlite3 script",
        unit="seconds",
        ours=min(ours),
        other=min(theirs),
        bar=_WRITES,
        runs=tuple(ours),
        other_runs=tuple(theirs),
    )


async def write_all(ledger: StoreWriter, runs: list[PlannedRun], events: list[RunFinished]) -> None:
    """Claim the runs and write their results, in blocks."""
    async with ledger:
        for start in range(0, len(runs), BLOCK):
            block = runs[start : start + BLOCK]
            assert len(await ledger.claim(block, lambda _: 0)) == len(block)
            for event in events[start : start + BLOCK]:
                room = ledger.enqueue(event, (Attempt(number=1, latency_ms=1.0),))
                if room is not None:
                    await room.wait()


def finished(planned: PlannedRun) -> RunFinished:
    """Return the result of a run."""
    response = ProviderResponse(text="It is done." * 10)
    record = ResultRecord(
        execution_id="e",
        run_id=f"e-{planned.key}",
        eval_id=planned.eval.id,
        case_id=planned.case.case.id,
        target=planned.target.name,
        repeat=0,
        attempts=1,
        status="pass",
        score=1.0,
        candidate=response.text,
        evaluators=(),
        trace_summary=None,
        tokens_usage=None,
        cost_usd=None,
        latency_ms=1.0,
        thread_id=None,
        warnings=(),
        error=None,
        started_at="2026-01-01T00:00:00.000Z",
        completed_at="2026-01-01T00:00:00.001Z",
    )
    return RunFinished(record=record, response=response, order=planned.order)


def fail(error: Exception) -> None:
    """Raise an error of the store."""
    raise error


def _rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    db = sqlite3.connect(path)
    found = {table: db.execute(f"SELECT * FROM {table}").fetchall() for table in ("executions", *_TABLES)}  # noqa: S608 - names of tables, ours
    db.close()
    return found


def _write_bare(path: Path, rows: dict[str, list[tuple[object, ...]]]) -> None:
    """The same rows in the same tables, each block claimed and finished with one commit."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    for step in migration_files():
        db.executescript(step.read_text())
    _insert(db, "executions", rows["executions"])
    for start in range(0, WRITTEN, BLOCK):
        db.execute("BEGIN IMMEDIATE")
        for table in _TABLES:
            _insert(db, table, rows[table][start : start + BLOCK])
        db.execute("COMMIT")
    db.close()


def _insert(db: sqlite3.Connection, table: str, rows: list[tuple[object, ...]]) -> None:
    if rows:
        places = ", ".join("?" * len(rows[0]))
        db.executemany(f"INSERT INTO {table} VALUES ({places})", rows)  # noqa: S608 - names of tables, ours


def _large(folder: Path) -> Iterator[Row]:
    """Looking into a store of 100,000 runs, and resuming an execution that has them all."""
    folder.mkdir()
    eval_file = write_eval(folder / "large.eval.yaml", _MANY)
    run = partial(run_command, folder)
    began, _ = timed(partial(run, "eval", eval_file, "--out", "first.jsonl", "-q"))
    again, _ = timed(partial(run, "eval", "--resume", "--out", "again.jsonl", "-q"))
    assert (folder / "first.jsonl").read_bytes() == (folder / "again.jsonl").read_bytes()
    store = str(folder / ".agentv" / "runs.db")
    name = json.loads((folder / "first.jsonl").read_bytes().partition(b"\n")[0])["run_id"]
    bare, listed, shown = process_starts(
        30,
        [sys.executable, "-c", "pass"],
        [SCRIPT, "runs", "list", "--store", store],
        [SCRIPT, "runs", "show", name, "--store", store],
    )
    yield Row(name=f"store: runs list, {_MANY:,} runs", unit="seconds", ours=listed, other=bare, bar=_LOOKS)
    yield Row(name=f"store: runs show, one of {_MANY:,}", unit="seconds", ours=shown, other=bare, bar=_LOOKS)
    yield Row(
        name=f"store: resume of {_MANY:,} finished runs, against running them",
        unit="seconds",
        ours=again,
        other=began,
        bar=_RESUMES,
    )


def run_command(folder: Path, *arguments: str) -> None:
    """Run `agentv` in a folder."""
    subprocess.run([SCRIPT, *arguments], cwd=folder, env=child_environment(), check=True, stdout=subprocess.DEVNULL)
