"""Time of the viewer: queries of its API against the bare SQL they send, one huge run, and the report."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import json

from agentv.api.runs import case_of, record_of, response_of
from agentv.jsonio import dump_json
from agentv.model.conversation import TokensUsage, TraceSummary
from agentv.model.listing import RunLabel
from agentv.model.request import Case
from agentv.model.results import EvaluatorResult, ResultRecord
from agentv.model.stored import ExecutionRow, StoredRun
from agentv.stores.sqlite.store import SqliteStore
from agentv.web.endpoints import ENDPOINTS, parse_arguments
from agentv.web.report import build_report
from agentv.web.store_view import StoreView
from benchmarks.clock import best_of
from benchmarks.table import Bar, Row

RUNS, CALLS, REPORTED, ROUNDS = 100_000, 10, 1_000, 5
EVENTS, EVENT_BYTES = 50_000, 2_600
_SQL, _TIME = Bar("at most", 5), Bar("at most", 0.3, "seconds")
_SIZE, _WRITING = Bar("at most", 1), Bar("at most", 10)
MAX_REPORT = 2_000_000
TEXT = (
    "order refund customer account payment invoice shipped approved address policy ticket agent status total item note "
    "the of and to in is was for with on at by from this that it as be or not an are have has will can may please"
)
WORDS = TEXT.split()
AT = "2026-01-01T00:00:00.000Z"
_EXECUTION = "executions/big"
_FILTERS = (
    "status=fail", "eval_id=support", "case_id=case-17", "target=agent", "persona=", "tool=tool_3", "tag=n1",
    "evaluator=calls", "failure=missing call: ask_approval", "label=fail", "flaky=true", "text=needle",
)  # fmt: skip
_SORTS = ("case", "target", "status", "score", "latency", "tokens", "cost")
QUERIES = (
    ("executions", ""),
    (_EXECUTION, ""),
    (f"{_EXECUTION}/runs", ""),
    *((f"{_EXECUTION}/runs", query) for query in _FILTERS),
    (f"{_EXECUTION}/runs", "status=fail&tag=n1&tool=tool_3&text=refund"),
    (f"{_EXECUTION}/runs", "text=needle&transcripts=true"),
    *((f"{_EXECUTION}/runs", f"sort={sort}&order=desc") for sort in _SORTS),
    (f"{_EXECUTION}/cases", ""),
    *((f"{_EXECUTION}/cases", query) for query in _FILTERS),
    (f"{_EXECUTION}/facets", ""),
    (f"{_EXECUTION}/evaluators", ""),
    (f"{_EXECUTION}/failures", ""),
    *((f"{_EXECUTION}/failures", query) for query in _FILTERS),
    (f"{_EXECUTION}/charts", ""),
    *((f"{_EXECUTION}/charts", query) for query in _FILTERS),
    (f"{_EXECUTION}/repeats", "case_id=case-17"),
    ("runs/big-r17", ""),
    ("runs/big-r17/messages", ""),
    ("runs/big-r17/messages", "call=5"),
    *(("runs/big-r17/copy", f"form={form}") for form in ("case", "pytest", "command")),
    ("runs/big-r17/record", ""),
    ("labels", ""),
    ("labels", "execution=big"),
    ("changes", ""),
)
COMPARISON = ("compare", "a=big&b=big")
LATER = (
    (f"{_EXECUTION}/runs", ""), (f"{_EXECUTION}/runs", "sort=latency&order=desc"), (f"{_EXECUTION}/cases", ""),
)  # fmt: skip
"""Lists whose page after the first is asked for, too."""
LABELLED = 1_000


def measure() -> list[Row]:
    """Queries of a store of 100,000 runs, a run of 130 MB, and a report of 1,000 runs."""
    with TemporaryDirectory() as name:
        return [*_queries(Path(name)), *_huge_run(Path(name)), *_report(Path(name))]


def fill_store(path: Path, execution: str, runs: Iterator[StoredRun], count: int) -> SqliteStore:
    """Make a store with one execution of these runs."""
    store = SqliteStore(path)
    passed = count - count // 5
    row = ExecutionRow(
        id=execution, status="completed", planned=count, runs=count, passed=passed, failed=count // 5, started_at=AT,
        completed_at=AT, summary={"evals": {"support": {"runs": count, "passed": passed, "failed": count // 5}}},
    )  # fmt: skip
    store.add(row, runs)
    return store


def stored_runs(execution: str, count: int) -> Iterator[StoredRun]:
    """Yield runs of 10 calls and 8 KB each, one in five of which fails."""
    random = Random(1)  # noqa: S311 - the same texts in every run of the benchmark
    for at in range(count):
        calls = [_call(random, number) for number in range(CALLS)]
        yield _stored(execution, at, [{"role": "assistant", "content": "One moment.", "tool_calls": calls}], random)


def _call(random: Random, number: int) -> dict[str, Any]:
    text = " ".join(random.choices(WORDS, k=100))
    value = {"order_id": f"B-{random.randrange(10**6)}", "note": text}
    return {"tool": f"tool_{number}", "input": {"id": random.randrange(10**6)}, "output": value, "duration_ms": 12.5}


def _stored(execution: str, at: int, messages: list[dict[str, Any]], random: Random) -> StoredRun:
    is_failed = at % 5 == 0
    case = Case(id=f"case-{at // 2}", input_messages=(), tags=("money", f"n{at % 3}"))
    tools = {call["tool"]: 1 for message in messages[:1] for call in message["tool_calls"]}
    miss = ("missing call: ask_approval",) if is_failed else ()
    record = ResultRecord(
        execution_id=execution, run_id=f"{execution}-r{at}", eval_id="support", case_id=case.id, target="agent",
        repeat=at % 2, attempts=1, status="fail" if is_failed else "pass", score=0.5 if is_failed else 1.0,
        candidate="needle" if at % 1_000 == 0 else "It is done.",
        evaluators=(EvaluatorResult(name="calls", type="tool_trajectory", status="fail" if is_failed else "pass",
                                    score=1.0, misses=miss),),
        trace_summary=TraceSummary(event_count=len(tools), tool_names=tuple(tools), tool_calls_by_name=tools),
        tokens_usage=TokensUsage(input_tokens=random.randrange(9_000), output_tokens=50), cost_usd=random.random() / 10,
        latency_ms=random.random() * 5_000, thread_id=None, warnings=(), error=None, started_at=AT, completed_at=AT,
        tags=case.tags,
    )  # fmt: skip
    return StoredRun(
        key=f"r{at}", position=at, eval_id="support", case_id=case.id, persona_id=None, target="agent", repeat=at % 2,
        place="support.eval.yaml:1:1", status="completed", rounds=1, started_at=AT, created_at=AT, updated_at=AT,
        superseded=False, content=dump_json([case, []]), target_settings=b"{}", line=dump_json(record),
        response=dump_json({"text": record.candidate, "output_messages": messages}), sides=None,
    )  # fmt: skip


def answer(view: StoreView, path: str, query: str) -> bytes:
    """Return the answer of the API, as the thread of its server makes it."""
    parts = path.split("/")
    for endpoint in ENDPOINTS:
        pattern = endpoint.path.removeprefix("/api/v1/").split("/")
        if len(pattern) == len(parts) and all(a == b or a[0] == "{" for a, b in zip(pattern, parts, strict=True)):
            names = {a.strip("{}"): b for a, b in zip(pattern, parts, strict=True) if a[0] == "{"}
            pairs = dict(pair.split("=", 1) for pair in query.split("&") if pair)
            return endpoint.encode_answer(view, parse_arguments(endpoint, names, pairs))
    raise LookupError(path)


def _ask(store: SqliteStore, path: str, query: str) -> bytes:
    return answer(StoreView(store), path, query)


def _queries(folder: Path) -> Iterator[Row]:
    store = fill_store(folder / "large.db", "big", stored_runs("big", RUNS), RUNS)
    for at in range(0, LABELLED * 10, 10):
        store.set_label("big", f"r{at}", RunLabel(label="fail" if at % 20 else "pass", note="looked at"))
    later = [
        (path, f"{query}&cursor={json.decode(answer(StoreView(store), path, query))['next']}") for path, query in LATER
    ]
    for path, query in (*QUERIES, *((path, query.removeprefix("&")) for path, query in later)):
        statements: list[str] = []
        store.db.set_trace_callback(statements.append)
        answer(StoreView(store), path, query)
        store.db.set_trace_callback(None)
        ours, bare = best_of(ROUNDS, partial(_ask, store, path, query), partial(_execute, store, statements))
        shown = re.sub("cursor=.*", "cursor=…", query)
        name = f"viewer: {path}{'?' if query else ''}{shown}, {RUNS:,} runs"
        # A search in transcripts stops after its time, and a statement of it reads one run; the bar is in seconds.
        bar = None if "transcripts" in query else _SQL
        yield Row(name=f"{name}, against its SQL", unit="seconds", ours=ours, other=bare, bar=bar)
        yield Row(name=name, unit="seconds", ours=ours, bar=_TIME)
    yield from _comparison(store)
    store.close()


def _comparison(store: SqliteStore) -> Iterator[Row]:
    """Compare the whole execution; the server keeps the answer as long as the store does not change."""
    path, query = COMPARISON
    view = StoreView(store)
    reading, first = best_of(
        1, lambda: [list(store.results("big", replies=False)) for _ in "ab"], lambda: _ask(store, path, query)
    )
    name = f"viewer: {path} of {RUNS:,} runs with as many"
    yield Row(name=f"{name}, first time, against reading them", unit="seconds", ours=first, other=reading, bar=_SQL)
    (again,) = best_of(ROUNDS, lambda: answer(view, path, query))
    yield Row(name=f"{name}, again", unit="seconds", ours=again, bar=_TIME)


def _execute(store: SqliteStore, statements: list[str]) -> None:
    for statement in statements:
        if statement.lstrip().upper().startswith(("SELECT", "WITH", "PRAGMA")):
            store.db.execute(statement).fetchall()


def _huge_run(folder: Path) -> Iterator[Row]:
    """Open a run of 50,000 events and 130 MB as a window; reading its bytes is the floor."""
    texts = [f"{number} " + "x y " * (EVENT_BYTES // 4) for number in range(EVENTS)]
    messages = [{"role": "assistant", "content": text, "tool_calls": [{"tool": "look"}]} for text in texts]
    store = fill_store(folder / "huge.db", "big", iter([_stored("big", 17, messages, Random(1))]), 1)  # noqa: S311 - as above
    for path, query in (("runs/big-r17", ""), ("runs/big-r17/messages", ""), ("runs/big-r17/messages", "call=49000")):
        ours, floor = best_of(1, partial(_ask, store, path, query), lambda: list(store.stored_runs("big", "r17")))
        shown = f"{path}{'?' if query else ''}{query}"
        name = f"viewer: {shown} of 50,000 messages and 130 MB, against reading it"
        yield Row(name=name, unit="seconds", ours=ours, other=floor, bar=_SQL, gates=False)
    store.close()


def _report(folder: Path) -> Iterator[Row]:
    store = fill_store(folder / "report.db", "big", stored_runs("big", REPORTED), REPORTED)
    (execution,) = store.find_execution("big")
    pages = []
    ours, reading, stored = best_of(
        ROUNDS,
        lambda: pages.append(build_report(store, execution)),
        lambda: [(record_of(run), case_of(run), response_of(run)) for run in store.stored_runs("big")],
        lambda: list(store.stored_runs("big")),
    )
    size = float(len(pages[-1]))
    store.close()
    yield Row(name=f"viewer: report of {REPORTED:,} runs, size", unit="bytes", ours=size, other=MAX_REPORT, bar=_SIZE)
    name = f"viewer: report of {REPORTED:,} runs, against reading them"
    yield Row(name=name, unit="seconds", ours=ours, other=reading, bar=_WRITING)
    name = f"viewer: report of {REPORTED:,} runs, against fetching them undecoded"
    yield Row(name=name, unit="seconds", ours=ours, other=stored, gates=False)
