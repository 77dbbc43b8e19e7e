"""Time of mutation testing, tool coverage and the first divergence, against scoring and reading the same runs."""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import agentv
from agentv.api.evaluate import load
from agentv.api.run_diff import diff_runs
from agentv.api.runs import find, record_of, response_of
from agentv.api.tool_coverage import measure_coverage
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse
from agentv.model.stored import StoredRun
from agentv.mutation.operators import make_mutants
from agentv.stores.sqlite.store import SqliteStore
from benchmarks.clock import best_of
from benchmarks.table import Bar, Row
from benchmarks.viewer import fill_store, stored_runs

RUNS, REPEATS, CALLS, ROUNDS = 100_000, 10_000, 10, 3
CHECKS: list[dict[str, Any]] = [
    {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": f"tool_{n}"} for n in range(CALLS)]},
    {"type": "no_tool_errors"},
    {"type": "contains", "value": "done"},
]
EVAL = """cases:
{cases}
defaults: {{evaluators: [{{type: tool_trajectory, minimums: {{tool_1: 1}}}}]}}
targets: [{{name: agent, provider: mock, reply: {{text: x}}}}]
"""


def measure() -> list[Row]:
    """Mutants of one run, coverage of 100,000 runs, and the first divergence of 10,000."""
    with TemporaryDirectory() as name:
        return [*_mutants(), _coverage(Path(name)), *_divergence(Path(name))]


def _mutants() -> Iterator[Row]:
    """Compare the time of one mutant, its suggestion included, with that of `score`."""
    calls = tuple([ToolCall(tool=f"tool_{n}", input={"id": n}, output="done") for n in range(CALLS)])
    message = Message(role="assistant", content="It is done.", tool_calls=calls)
    reply = ProviderResponse(text="It is done.", output_messages=(message,))
    count = len(make_mutants(reply).made)
    for name, checks in (("three evaluators", CHECKS), ("one trajectory", CHECKS[:1])):
        ours, score = best_of(ROUNDS, partial(agentv.mutate, reply, checks), partial(agentv.score, reply, checks))
        yield Row(
            name=f"mutation: one of the {count} mutants of a run of {CALLS} calls, {name}, against `score` of the run",
            unit="seconds",
            ours=ours / count,
            other=score,
            bar=Bar("at most", 3),
            gates=checks is CHECKS,
        )


def _coverage(folder: Path) -> Row:
    store = fill_store(folder / "coverage.db", "big", stored_runs("big", RUNS), RUNS)
    cases = "\n".join(f"  - {{id: case-{number}, input: x}}" for number in range(RUNS // 2))
    path = folder / "support.eval.yaml"
    path.write_text(EVAL.format(cases=cases))
    evals = load([path])
    ours, reading = best_of(1, lambda: measure_coverage(evals, store), partial(_read_all, store, "big"))
    store.close()
    name = f"mutation: coverage of {RUNS:,} runs, against reading them"
    return Row(name=name, unit="seconds", ours=ours, other=reading, bar=Bar("at most", 5))


def _divergence(folder: Path) -> Iterator[Row]:
    for name, variety in (("", 5), (", each with other values", None)):
        runs = (_of_one_case(run, number, variety) for number, run in enumerate(stored_runs("many", REPEATS)))
        store = fill_store(folder / f"divergence-{variety}.db", "many", runs, REPEATS)
        execution = find(store, "many")
        ours, reading = best_of(
            ROUNDS, partial(diff_runs, store, "case-0", [execution]), partial(_read_all, store, "many")
        )
        store.close()
        yield Row(
            name=f"mutation: first divergence of {REPEATS:,} runs of one case{name}, against reading them",
            unit="seconds",
            ours=ours,
            other=reading,
            bar=Bar("at most", 3),
            gates=variety is not None,
        )


def _of_one_case(run: StoredRun, repeat: int, variety: int | None) -> StoredRun:
    """Return a run as a repeat of one case; its calls are those of one of a few replies, or its own."""
    reply = run.response if variety is None else _replies(variety)[repeat % variety]
    return run._replace(case_id="case-0", repeat=repeat, response=reply)


@cache
def _replies(count: int) -> list[bytes | None]:
    return [run.response for run in stored_runs("many", count)]


def _read_all(store: SqliteStore, execution: str) -> int:
    """Read the results and replies of all runs, as everything that works on stored runs has to."""
    return sum(record_of(run) is not None and response_of(run) is not None for run in _stored(store, execution))


def _stored(store: SqliteStore, execution: str) -> Iterator[StoredRun]:
    return store.stored_runs(execution)
