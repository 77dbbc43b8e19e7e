"""Targets that cannot be reached or started are given up after a few tries, and no result is lost."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.model.request import Request
from agentv.model.response import ProviderResponse, ResponseError
from agentv.run import attempt, circuit_breaker
from agentv.run.circuit_breaker import CircuitBreaker
from tests.support.command import command_in

DOWN = ResponseError(kind="transport", message="no connection to the agent", retryable=True, code="unreachable")
MISSING = ResponseError(kind="transport", message="'agent' could not be started", code="not_started")
CHECK = {"type": "contains", "value": "hi"}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "FIRST_BACKOFF_S", 0.001)


def eval_of(count: int = 20) -> dict[str, Any]:
    return {"cases": [{"id": f"c{number}", "input": "hi", "evaluators": [CHECK]} for number in range(count)]}


def agent_of(reply: Callable[[int], ResponseError | None]) -> tuple[Callable[[Request], Any], list[str]]:
    """Return an agent whose answer to attempt i, from 0, is an error or `hi`; and the list of its requests."""
    asked: list[str] = []

    async def agent(request: Request) -> Any:
        asked.append(request.id)
        error = reply(len(asked) - 1)
        return "hi" if error is None else ProviderResponse(success=False, error=error)

    return agent, asked


# State


def test_a_target_that_never_answered_is_given_up_after_a_few_failures_in_a_row() -> None:
    breaker = CircuitBreaker()
    assert [breaker.add_failure(DOWN, now=0.0) for _ in range(2)] == [0.0, 0.0]
    assert breaker.error is None
    breaker.add_failure(DOWN, now=0.0)
    assert breaker.error == DOWN


def test_a_target_that_answered_is_paused_and_then_tried_by_one_attempt_at_a_time() -> None:
    breaker = CircuitBreaker()
    breaker.close()
    pauses = [breaker.add_failure(DOWN, now=100.0) for _ in range(12)]
    assert pauses == [0.0] * 9 + [2.0, 4.0, 8.0]
    assert breaker.is_half_open
    assert breaker.error is None
    breaker.close()
    assert not breaker.is_half_open
    assert breaker.add_failure(DOWN, now=200.0) == 0.0


def test_a_target_that_answered_is_given_up_after_a_minute_without_an_answer() -> None:
    breaker = CircuitBreaker()
    breaker.close()
    for _ in range(10):
        breaker.add_failure(DOWN, now=100.0)
    breaker.add_failure(DOWN, now=159.0)
    assert breaker.error is None
    breaker.add_failure(DOWN, now=160.0)
    assert breaker.error == DOWN


# Executions


@pytest.mark.parametrize("concurrency", [1, 10])
def test_a_target_that_cannot_be_reached_is_tried_a_few_times_and_told_once(concurrency: int) -> None:
    agent, asked = agent_of(lambda _: DOWN)
    execution = agentv.evaluate(eval_of(), target=agent, max_concurrency=concurrency)
    assert len(asked) <= max(3, concurrency)
    assert [record.status for record in execution.results] == ["error"]
    summary = execution.summary
    assert (summary.exit_code, summary.runs, summary.planned) == (3, 1, 20)
    assert summary.stopped == (
        "target 'agent' was given up after 3 failures in a row: no connection to the agent; "
        "19 of 20 runs were not started"
    )
    assert not execution.passed


def test_a_program_that_cannot_be_started_is_tried_a_few_times() -> None:
    agent, asked = agent_of(lambda _: MISSING)
    summary = agentv.evaluate(eval_of(), target=agent, max_concurrency=10).summary
    assert len(asked) < 20
    assert (summary.errors, summary.planned - summary.runs, summary.exit_code) == (3, 17, 3)


def test_other_errors_give_no_target_up() -> None:
    agent, asked = agent_of(lambda _: ResponseError(kind="agent", message="boom"))
    assert agentv.evaluate(eval_of(), target=agent).summary.errors == len(asked) == 20


def test_a_target_that_starts_slowly_is_not_given_up() -> None:
    agent, asked = agent_of(lambda number: DOWN if number < 2 else None)
    summary = agentv.evaluate(eval_of(), target=agent, max_concurrency=1).summary
    assert (summary.passed, len(asked)) == (20, 22)


def test_a_target_that_comes_back_loses_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breaker, "FIRST_COOLDOWN_S", 0.01)
    agent, _ = agent_of(lambda number: DOWN if 5 <= number < 20 else None)
    summary = agentv.evaluate(eval_of(40), target=agent, max_concurrency=10, retries=5).summary
    assert (summary.passed, summary.runs) == (40, 40)


def test_a_target_that_stays_away_leaves_its_runs_without_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breaker, "FIRST_COOLDOWN_S", 0.01)
    monkeypatch.setattr(circuit_breaker, "MAX_DOWN_S", 0.02)
    agent, _ = agent_of(lambda number: DOWN if number >= 5 else None)
    summary = agentv.evaluate(eval_of(200), target=agent, max_concurrency=10).summary
    assert summary.passed == 5
    assert summary.errors < 20
    assert summary.runs + 150 < summary.planned
    assert summary.exit_code == 3


def test_a_batch_of_a_missing_program_is_one_error() -> None:
    target = {"provider": "cli", "mode": "batch", "command": ["./missing"], "name": "batch"}
    summary = agentv.evaluate(eval_of(), target=target).summary
    assert (summary.errors, summary.runs) == (1, 1)
    assert "'./missing' could not be started" in str(summary.stopped)


@pytest.mark.parametrize(
    "settings",
    [
        {"provider": "http", "url": "http://127.0.0.1:9/run"},
        {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key": "k"},
        {"provider": "cli", "command": ["agentv-no-such-program", "{prompt}"]},
        {"provider": "cli", "command": ["agentv-no-such-program"], "mode": "stream"},
        {"provider": "cli", "command": ["true"], "cwd": "no-such-folder"},
        {"provider": "python", "function": "./no_such_agent.py:agent"},
        {"provider": "python", "function": "./no_such_agent.py:agent", "workers": 2},
    ],
    ids=["http", "openai", "cli", "stream", "cwd", "python", "workers"],
)
def test_each_provider_tells_that_it_was_not_reached(settings: dict[str, Any]) -> None:
    summary = agentv.evaluate(eval_of(), target={"name": "away", **settings}).summary
    assert summary.runs <= 3
    assert summary.exit_code == 3
    assert "17 of 20" in str(summary.stopped) or "19 of 20" in str(summary.stopped)


def test_other_targets_go_on_and_a_resume_runs_the_rest(tmp_path: Path) -> None:
    run = command_in(tmp_path)
    program = "print('hi')\n"
    targets = [
        {"name": "away", "provider": "cli", "command": [sys.executable, "./agent.py"], "cwd": "later"},
        {"name": "there", "provider": "cli", "command": ["echo", "hi"]},
    ]
    (run.folder / "a.eval.yaml").write_text(json.dumps({"targets": targets, **eval_of(6)}))
    first = run("eval", "a.eval.yaml")
    assert first.code == 3
    assert first.out.count("does not exist") <= 4
    assert "stopped: target 'away' was given up after 3 failures in a row" in first.out
    assert "3 of 12 runs were not started" in first.out
    command = first.err.rpartition("go on with it, errors included: agentv ")[2].split()
    assert "--retry-errors" in command
    (run.folder / "later").mkdir()
    (run.folder / "later" / "agent.py").write_text(program)
    second = run(*command, "--json")
    assert second.code == 0
    assert [line["status"] for line in second.lines[:-1]] == ["pass"] * 12
