"""Progress: live on a terminal, plain lines elsewhere, and cheap."""

import io
import os
import re
from typing import Any

import pytest

import agentv
from agentv.model.events import AttemptFinished, ExecutionFinished, ExecutionStarted, RunFinished
from agentv.model.response import ResponseError
from agentv.redaction import Redactor
from agentv.reports import progress
from agentv.reports.progress import LiveProgress, PlainProgress
from tests.support.events import errored, failed

CHECK = {"type": "tool_trajectory", "minimums": {"a": 1}}
USAGE = {"tokens_usage": {"input_tokens": 90, "output_tokens": 10}, "cost_usd": 0.25}


@pytest.fixture
def events() -> list[Any]:
    """An execution of four runs, every other one failing."""
    replies = [{"output_messages": [{"role": "assistant", "tool_calls": [{"tool": name}]}], **USAGE} for name in "ab"]
    cases = [{"id": f"c{number}", "input": "x", "evaluators": [CHECK]} for number in range(4)]
    execution = agentv.evaluate({"cases": cases}, target={"provider": "mock", "reply": replies})
    started = ExecutionStarted(execution_id="e", planned=4, cases=4, skipped=0, left_out=0, targets=("mock",))
    runs = [
        RunFinished(record=record, response=agentv.ProviderResponse(), order=order)
        for order, record in enumerate(execution.results)
    ]
    return [started, *runs, ExecutionFinished(summary=execution.summary)]


def test_the_live_line_tells_counts_cost_and_failures_and_is_gone_in_the_end(
    events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LIVE_INTERVAL_S", 0.0)
    stream = io.StringIO()
    live = LiveProgress(stream, Redactor({}))
    for event in events:
        live.handle(event)
    text = stream.getvalue()
    assert "0 of 4" in text
    assert "4 of 4  2 passed  2 failed" in text
    assert "400 tokens  $1.00" in text
    assert "FAIL c1  a called 0 times (minimum: 1)\n" in text
    assert text.endswith(progress.CLEAR)


def test_a_target_that_is_too_busy_is_why_nothing_moves(events: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LIVE_INTERVAL_S", 0.0)
    stream = io.StringIO()
    live = LiveProgress(stream, Redactor({}))
    live.handle(events[0])
    live.handle_attempt(attempt(None))
    assert "waiting" not in stream.getvalue()
    limited = ResponseError(kind="transport", message="429", code="rate_limited", retry_after_s=30.0)
    for _ in range(100):
        live.handle_attempt(attempt(limited))
    live.handle(events[1])
    assert stream.getvalue().count("0 of 4  waiting: rate limited") == 1
    assert "1 of 4  waiting: rate limited  1 passed" in stream.getvalue()


def test_once_it_may_be_asked_again_nothing_is_said_of_it(events: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MIN_WAIT_S", 0.0)
    monkeypatch.setattr(progress, "LIVE_INTERVAL_S", 0.0)
    stream = io.StringIO()
    live = LiveProgress(stream, Redactor({}))
    live.handle(events[0])
    live.handle_attempt(attempt(ResponseError(kind="transport", message="429", code="rate_limited")))
    live.handle(events[1])
    assert "1 of 4  1 passed" in stream.getvalue()


def attempt(error: ResponseError | None) -> AttemptFinished:
    response = agentv.ProviderResponse(success=error is None, error=error)
    return AttemptFinished(
        execution_id="e", eval_id="a", case_id="c", target="t", repeat=0, attempt=1, response=response
    )


def test_it_is_drawn_no_more_often_than_anybody_can_read(events: list[Any]) -> None:
    stream = io.StringIO()
    live = LiveProgress(stream, Redactor({}))
    live.handle(events[0])
    for _ in range(10_000):
        live.handle(events[1])
    assert stream.getvalue().count(progress.CLEAR) < 100


def test_plain_lines_come_every_few_seconds(events: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    lines = PlainProgress(stream)
    for event in events:
        lines.handle(event)
    written = stream.getvalue().splitlines()
    assert 1 <= len(written) < 4
    assert written[0].startswith("agentv: ")
    assert "\x1b" not in stream.getvalue()


def test_the_workers_of_an_executor_are_shown(events: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    lines = PlainProgress(stream)
    lines.show_workers(lambda: "2 workers, 8 slots")
    for event in events:
        lines.handle(event)
    assert ", 2 workers, 8 slots" in stream.getvalue()


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3661, "1:01:01")])
def test_times(seconds: float, shown: str) -> None:
    assert progress._duration(seconds) == shown  # noqa: SLF001 - the form is all there is to test


class Terminal(io.StringIO):
    """A stream whose terminal has this many columns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
        super().__init__()
        monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((columns, 40)))

    def fileno(self) -> int:
        return 1


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_in_a_narrow_terminal_the_counts_stay_and_the_bar_shrinks(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LIVE_INTERVAL_S", 0.0)
    stream = Terminal(monkeypatch, columns)
    live = LiveProgress(stream, Redactor({}))
    live.handle(ExecutionStarted(execution_id="e", planned=25_000, cases=1, skipped=0, left_out=0, targets=("t",)))
    for order in range(30):
        live.handle(errored(order, f"{order}") if order % 3 else failed(order, f"{order}"))
    line = stream.getvalue().rpartition(progress.CLEAR)[2]
    assert "30 of 25,000  0 passed  10 failed  20 errors" in line
    assert len(line) < columns
    bar = len(line.split(" ")[0])
    assert bar == {60: 14, 80: 24, 120: 24}[columns]
    assert ("$7.50" in line) == (columns == 120)


def test_a_failure_equal_to_an_earlier_one_is_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LIVE_INTERVAL_S", 0.0)
    stream = io.StringIO()
    live = LiveProgress(stream, Redactor({}))
    live.handle(ExecutionStarted(execution_id="e", planned=9, cases=9, skipped=0, left_out=0, targets=("t",)))
    for run in [failed(0), failed(1), errored(2), errored(3), failed(4, "other")]:
        live.handle(run)
    assert re.findall(r"(?:FAIL|ERROR) (c\d)", stream.getvalue()) == ["c0", "c2", "c4"]
