"""Runs on a PostgreSQL server: against a bare `psycopg` script, bare SQL, and the same runs in a file."""

import asyncio
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from agentv.api.evaluate import load
from agentv.api.execution import prepare
from agentv.api.resume import begin, command_of, new_execution
from agentv.api.store_files import open_location, parse_location
from agentv.run.options import RunOptions
from agentv.run.store_writer import StoreWriter
from agentv.stores.postgres import PostgresStore
from agentv.stores.postgres.address import parse_address
from benchmarks.clock import timed
from benchmarks.ours import write_eval
from benchmarks.store import BLOCK, WRITTEN, fail, finished, run_command, write_all
from benchmarks.table import Bar, Row
from tests.support.postgres import PostgresServer, temporary_server

_ROUNDS, _LISTINGS, _LOOPS = 3, 20, 3
_EXECUTIONS, _RUNS_EACH, _PAGE = 100, 1_000, 20
_CLAIMED, _RESULTS = ("snapshots", "runs"), ("payloads", "attempts", "evaluator_results", "run_index")
_WRITES, _LISTS, _LOOP = Bar("at most", 2), Bar("at most", 5), Bar("at most", 1.5)
_BARE_LIST = "SELECT * FROM executions ORDER BY seq DESC LIMIT 20"  # `_PAGE`


def measure() -> list[Row]:
    """Write runs, list the executions of a large store, and run mock cases."""
    names = (
        f"server_store: {WRITTEN:,} runs written, against a bare psycopg script",
        f"server_store: executions of {_EXECUTIONS * _RUNS_EACH:,} runs listed, against bare SQL",
        f"server_store: {WRITTEN:,} mock cases, against the store in a file",
    )
    bars = (_WRITES, _LISTS, _LOOP)
    try:
        with temporary_server(is_durable=True) as server, TemporaryDirectory() as name:
            figures = [_writing(server, Path(name)), _listing(server), _loop(server, Path(name))]
    except pytest.skip.Exception:  # no server on this machine
        return [Row(name=name, unit="seconds", ours=None, bar=bar) for name, bar in zip(names, bars, strict=True)]
    return [
        Row(name=name, unit="seconds", ours=ours, other=other, bar=bar)
        for name, (ours, other), bar in zip(names, figures, bars, strict=True)
    ]


def _writing(server: PostgresServer, folder: Path) -> tuple[float, float]:
    prepared = prepare(load([write_eval(folder / "write.eval.yaml", WRITTEN)]), RunOptions())
    runs = list(prepared.runs())
    events = [finished(planned) for planned in runs]
    ours, theirs = [], []
    for _ in range(_ROUNDS):
        address = server.address()
        store = open_location(parse_location(address))
        session = begin(store, new_execution(prepared, command_of([], (), RunOptions())))
        written: list[object] = []
        writer = StoreWriter(
            store, session.execution.id, prepared.redactor, persist="messages", on_written=written.extend, on_error=fail
        )
        ours.append(timed(partial(asyncio.run, write_all(writer, runs, events)))[0])
        assert len(written) == WRITTEN
        store.close()
        other = server.address()
        open_location(parse_location(other)).close()
        rows = _read_rows(address)
        theirs.append(timed(partial(_write_bare, other, rows))[0])
    return min(ours), min(theirs)


def _connect(address: str) -> psycopg.Connection[Any]:
    parsed = parse_address(address)
    connection = psycopg.connect(parsed.conninfo)
    connection.execute(f"SET search_path TO {parsed.schema}")
    connection.commit()
    return connection


def _read_rows(address: str) -> dict[str, list[tuple[Any, ...]]]:
    with _connect(address) as db:
        tables = ("executions", *_CLAIMED, *_RESULTS)
        return {table: db.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in tables}  # noqa: S608 - names of tables, ours


def _write_bare(address: str, rows: dict[str, list[tuple[Any, ...]]]) -> None:
    """Write the same rows with as many commits: one for the claims and one for the results of each block."""
    with _connect(address) as db:
        _insert(db, "executions", rows["executions"])
        for start in range(0, WRITTEN, BLOCK):
            for tables in (_CLAIMED, _RESULTS):
                for table in tables:
                    _insert(db, table, rows[table][start : start + BLOCK])
                db.commit()


def _insert(db: psycopg.Connection[Any], table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        places = ", ".join(["%s"] * len(rows[0]))
        db.cursor().executemany(f"INSERT INTO {table} VALUES ({places})", rows)  # noqa: S608 - names of tables, ours


def _listing(server: PostgresServer) -> tuple[float, float]:
    address = server.address()
    store = PostgresStore(address)
    with _connect(address) as db:
        db.execute(
            "INSERT INTO executions (id, status, persist, command, inputs, planned, runs, passed, started_at)"
            " SELECT 'e' || n, 'pass', 'messages', '{}', '', %(runs)s, %(runs)s, %(runs)s, '2026-01-01T00:00:00.000Z'"
            " FROM generate_series(1, %(executions)s) n",
            {"runs": _RUNS_EACH, "executions": _EXECUTIONS},
        )
        db.execute(
            "INSERT INTO runs (execution, key, position, eval_id, case_id, target, repeat, place, status, verdict,"
            " score, rounds, content, target_settings, created_at, updated_at)"
            " SELECT seq, to_hex(n), n, 'eval', 'case-' || n, 'target', 0, '', 'completed', 'pass', 1, 1, 0, 0, '', ''"
            " FROM executions, generate_series(1, %s) n",
            (_RUNS_EACH,),
        )
        db.execute("ANALYZE")
        db.commit()
        ours, theirs = [], []
        for _ in range(_LISTINGS):
            seconds, listed = timed(lambda: list(store.executions(limit=_PAGE)))
            assert len(listed) == _PAGE
            ours.append(seconds)
            theirs.append(timed(lambda: db.execute(_BARE_LIST).fetchall())[0])
    store.close()
    return min(ours), min(theirs)


def _loop(server: PostgresServer, folder: Path) -> tuple[float, float]:
    """Time of `agentv eval`, from the start of the process to its end."""
    eval_file = write_eval(folder / "loop.eval.yaml", WRITTEN)
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(_LOOPS):
        for store, times in ((str(folder / f"{number}.db"), theirs), (server.address(), ours)):
            times.append(timed(partial(run_command, folder, "eval", eval_file, "-q", "--store", store))[0])
    return min(ours), min(theirs)
