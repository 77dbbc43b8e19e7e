"""The engine: attempts, timeouts, concurrency, and isolation of failures."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.api.evaluate import function_target
from agentv.evals import Target
from agentv.formats.reader import decode_response
from agentv.model.request import Request
from agentv.model.response import ProviderResponse, ResponseError
from agentv.providers.base import ProviderBase
from agentv.run import attempt

CHECK = {"type": "tool_trajectory", "minimums": {"search": 1}}
GOOD = {"output_messages": [{"role": "assistant", "content": "done", "tool_calls": [{"tool": "search"}]}]}


def eval_of(count: int = 1, **case: Any) -> dict[str, Any]:
    cases = [
        {"id": f"c{number}", "input": f"question {number}", "evaluators": [CHECK], **case} for number in range(count)
    ]
    return {"cases": cases}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "FIRST_BACKOFF_S", 0.001)


def failing(times: int, **error: Any) -> tuple[Callable[..., Any], list[Request]]:
    """Agent that fails this number of times, and then answers."""
    asked: list[Request] = []

    async def agent(request: Request) -> Any:
        asked.append(request)
        if len(asked) <= times:
            return ProviderResponse(
                success=False, error=ResponseError(**{"kind": "transport", "message": "down", **error})
            )
        return GOOD

    return agent, asked


class TestAttempts:
    def test_a_failure_that_may_pass_is_tried_again(self) -> None:
        agent, asked = failing(2, retryable=True)
        (record,) = agentv.evaluate(eval_of(), target=agent).results
        assert (record.status, record.attempts) == ("pass", 3)
        assert [request.attempt for request in asked] == [1, 2, 3]
        assert [warning for warning in record.warnings if "attempt" in warning] == [
            "attempt 1 failed (transport): down; it was tried again",
            "attempt 2 failed (transport): down; it was tried again",
        ]

    def test_two_retries_are_the_default_and_the_last_failure_is_the_result(self) -> None:
        agent, asked = failing(9, retryable=True)
        (record,) = agentv.evaluate(eval_of(), target=agent).results
        assert (record.status, record.score, record.attempts, len(asked)) == ("error", None, 3, 3)
        assert record.error == ResponseError(kind="transport", message="down", retryable=True)

    def test_any_other_failure_is_final(self) -> None:
        agent, asked = failing(1, retryable=False)
        (record,) = agentv.evaluate(eval_of(), target=agent).results
        assert (record.status, record.attempts, len(asked)) == ("error", 1, 1)

    def test_retries_can_be_set(self) -> None:
        agent, asked = failing(9, retryable=True)
        agentv.evaluate(eval_of(), target=agent, retries=0)
        assert len(asked) == 1

    def test_an_attempt_that_runs_out_of_time_is_a_timeout_and_not_tried_again(self) -> None:
        async def agent(prompt: str) -> str:
            await asyncio.sleep(60)
            return prompt

        started = time.monotonic()
        (record,) = agentv.evaluate(eval_of(), target=agent, timeout_s=0.05).results
        assert time.monotonic() - started < 30
        assert (record.status, record.attempts) == ("error", 1)
        assert record.error == ResponseError(kind="timeout", message="no reply within 0.05 s")

    def test_a_run_has_a_limit_of_its_own(self) -> None:
        agent, _ = failing(99, retryable=True)

        async def slow(request: Request) -> Any:
            await asyncio.sleep(0.05)
            return await agent(request)

        (record,) = agentv.evaluate(eval_of(), target=slow, retries=99, run_timeout_s=0.2).results
        assert record.error == ResponseError(kind="timeout", message="the run did not end within 0.2 s")

    def test_latency_is_the_last_attempts_time_without_waiting(self) -> None:
        agent, _ = failing(1, retryable=True)
        (record,) = agentv.evaluate(eval_of(), target=agent).results
        assert record.latency_ms is not None
        assert record.latency_ms < 1000


class TestOthersAreNotStopped:
    def test_one_poison_case_among_a_thousand(self) -> None:
        def agent(prompt: str) -> Any:
            if prompt == "question 500":
                msg = "poison"
                raise RuntimeError(msg)
            return GOOD

        execution = agentv.evaluate(eval_of(1000), target=agent)
        assert (execution.summary.passed, execution.summary.errors) == (999, 1)
        assert (execution.summary.status, execution.summary.exit_code) == ("error", 3)
        assert execution.summary.pass_rate == 1.0
        bad = execution.results[500]
        assert (bad.status, bad.score) == ("error", None)
        assert bad.error is not None
        assert (bad.error.kind, bad.error.message.splitlines()[0]) == ("agent", "RuntimeError: poison")

    @pytest.mark.parametrize(
        "reply", [None, 3, object(), b"bytes", {"output_messages": 3}, [], {}, [[]], "", {"a": {1, 2}}]
    )
    def test_whatever_an_agent_returns_ends_in_its_own_run(self, reply: Any) -> None:
        execution = agentv.evaluate(eval_of(2), target=lambda prompt: GOOD if prompt == "question 1" else reply)
        assert [record.status for record in execution.results][1] == "pass"
        assert execution.results[0].status in ("error", "fail")

    def test_results_are_in_the_order_of_the_plan(self) -> None:
        async def agent(request: Request) -> Any:
            await asyncio.sleep(0.001 * (20 - request.index))
            return GOOD

        execution = agentv.evaluate(eval_of(20), target=agent)
        assert [record.case_id for record in execution.results] == [f"c{number}" for number in range(20)]


class TestConcurrency:
    @pytest.mark.parametrize(("of_execution", "of_target", "most"), [(3, None, 3), (8, 2, 2), (1, 5, 1)])
    def test_never_more_at_once_than_allowed(self, of_execution: int, of_target: int | None, most: int) -> None:
        running = highest = 0

        async def agent(prompt: str) -> Any:
            nonlocal running, highest
            running += 1
            highest = max(highest, running)
            await asyncio.sleep(0.002)
            running -= 1
            return GOOD if prompt else None

        source = eval_of(30)
        target = function_target(agent, max_concurrency=of_target)
        execution = agentv.evaluate(source, target=target, max_concurrency=of_execution)
        assert execution.passed
        assert highest == most

    def test_fail_fast_starts_nothing_more(self) -> None:
        asked = []

        def agent(prompt: str) -> str:
            asked.append(prompt)
            return "no calls"

        execution = agentv.evaluate(eval_of(50), target=agent, fail_fast=True, max_concurrency=2)
        assert execution.summary.failed >= 1
        assert len(asked) <= 4
        assert execution.summary.exit_code == 1
        assert execution.summary.planned == 50


class TestSelection:
    def test_by_case_tag_skip_and_only(self) -> None:
        cases = [
            {"id": "a1", "input": "x", "evaluators": [CHECK], "tags": ["slow"]},
            {"id": "a2", "input": "x", "evaluators": [CHECK], "skip": "not yet"},
            {"id": "b1", "input": "x", "evaluators": [CHECK], "tags": ["slow", "new"]},
        ]

        def ids(listed: list[dict[str, Any]], **options: Any) -> list[str]:
            results = agentv.evaluate({"cases": listed}, target=lambda _: GOOD, **options).results
            return [record.case_id for record in results]

        assert ids(cases) == ["a1", "b1"]
        assert ids(cases, cases="a*") == ["a1"]
        assert ids(cases, tags=["new", "other"]) == ["b1"]
        assert ids([*cases, {"id": "c", "input": "x", "evaluators": [CHECK], "only": True}]) == ["c"]
        with pytest.raises(agentv.SpecError, match="no case selected by --case z"):
            ids(cases, cases=["z"])
        with pytest.raises(agentv.SpecError, match="all 1 selected say `skip`"):
            ids(cases, cases=["a2"])

    def test_repeats_count_from_zero_and_have_keys_of_their_own(self) -> None:
        execution = agentv.evaluate(eval_of(2, repeat=2), target=lambda _: GOOD)
        assert [(record.case_id, record.repeat) for record in execution.results] == [
            ("c0", 0),
            ("c0", 1),
            ("c1", 0),
            ("c1", 1),
        ]
        assert len({record.run_id for record in execution.results}) == 4
        again = agentv.evaluate(eval_of(2, repeat=2), target=lambda _: GOOD)
        keys = [record.run_id.rpartition("-")[2] for record in execution.results]
        assert keys == [record.run_id.rpartition("-")[2] for record in again.results]


class TestFromPython:
    def test_what_a_function_receives(self) -> None:
        seen: list[Any] = []

        def by_request(request: Request) -> Any:
            seen.append((request.id, request.prompt, request.vars))
            return GOOD

        def by_messages(messages: list[dict[str, Any]]) -> Any:
            seen.append(messages)
            return GOOD

        class Agent:
            async def __call__(self, question: str) -> Any:
                seen.append(question)
                return GOOD

        source = eval_of(1, vars={"a": 1})
        for agent in (by_request, by_messages, Agent()):
            assert agentv.evaluate(source, target=agent).passed
        assert seen == [("c0", "question 0", {"a": 1}), [{"role": "user", "content": "question 0"}], "question 0"]

    def test_inside_a_running_loop(self) -> None:
        async def notebook() -> tuple[bool, bool]:
            inner = await agentv.aevaluate(eval_of(), target=lambda _: GOOD)
            return agentv.evaluate(eval_of(), target=lambda _: GOOD).passed, inner.passed

        assert asyncio.run(notebook()) == (True, True)

    def test_a_target_in_words(self) -> None:
        assert agentv.evaluate(eval_of(), target={"provider": "mock", "reply": GOOD}).passed
        with pytest.raises(agentv.SpecError, match="did you mean 'reply'"):
            agentv.evaluate(eval_of(), target={"provider": "mock", "repply": GOOD})

    def test_evaluators_as_objects(self) -> None:
        from agentv.evaluators.trajectory import ToolTrajectory  # noqa: PLC0415 - what a plugin's author would do

        source = {"cases": [{"id": "a", "input": "x", "evaluators": [ToolTrajectory(minimums={"search": 2})]}]}
        (record,) = agentv.evaluate(source, target=lambda _: GOOD).results
        assert (record.status, record.score) == ("fail", 0.0)

    def test_the_sums(self) -> None:
        replies = [
            {**GOOD, "tokens_usage": {"input_tokens": 10, "output_tokens": 2}, "cost_usd": 0.5, "latency_ms": 10},
            {**GOOD, "latency_ms": 30},
        ]
        summary = agentv.evaluate(eval_of(2), target={"provider": "mock", "reply": replies}).summary
        assert summary.tokens_usage == agentv.TokensUsage(input_tokens=10, output_tokens=2, total_tokens=12)
        assert (summary.cost_usd, summary.reported.cost_usd, summary.reported.tokens_usage) == (0.5, 1, 1)
        assert summary.latency_ms is not None
        assert (summary.latency_ms.mean, summary.latency_ms.max) == (20, 30)
        assert summary.targets["mock"].pass_rate == 1.0


def test_a_dataset_that_changes_under_way_is_an_error_and_not_a_smaller_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dataset = tmp_path / "cases.jsonl"
    dataset.write_text("".join(f'{{"id": "c{n}", "input": "x", "repeat": 1}}\n' for n in range(5000)))

    async def agent(prompt: str) -> Any:
        dataset.write_text("{}\n" * 5000)
        return GOOD if prompt else None

    with pytest.raises(agentv.SpecError, match=r"cases\.jsonl:\d+: "):
        agentv.evaluate({"dataset": "cases.jsonl", "defaults": {"evaluators": [CHECK]}}, target=agent)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", "\ud800"),
        ("description", object()),
        ("targets", [{"name": "\ud800", "provider": "mock"}]),
        ("cases", [{"id": "a", "input": object()}]),
        ("defaults", {"vars": {"a": object()}}),
    ],
)
def test_what_no_file_could_hold_is_refused_in_python_too(key: str, value: Any) -> None:
    with pytest.raises(agentv.SpecError, match="JSON"):
        agentv.evaluate({**eval_of(), key: value}, target=lambda _: GOOD)


def test_tuples_are_lists() -> None:
    source = {
        "targets": ({"name": "t", "provider": "mock", "reply": GOOD},),
        "defaults": {"evaluators": (CHECK,)},
        "cases": ({"id": "a", "input": "x"},),
    }
    assert agentv.evaluate(source).passed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"repeat": "x"}, "repeat: expected a whole number"),
        ({"repeat": 0}, "repeat: "),
        ({"timeout": 3}, "did you mean 'timeout_s'?"),
        ({"target": 3}, "target: expected a target's name"),
    ],
)
def test_wrong_options_are_said_before_anything_runs(options: dict[str, Any], said: str) -> None:
    with pytest.raises(agentv.SpecError, match=said.replace("?", r"\?")):
        agentv.evaluate(eval_of(), **{"target": lambda _: GOOD, **options})


def test_a_function_that_blocks_is_given_up_in_time() -> None:
    release = threading.Event()
    started = time.monotonic()
    (record,) = agentv.evaluate(eval_of(), target=lambda _: release.wait(60), timeout_s=0.1).results
    assert time.monotonic() - started < 30
    assert record.error is not None
    assert record.error.kind == "timeout"
    release.set()


def test_what_only_leaves_out_is_counted() -> None:
    cases = [{**case, "only": number == 1} for number, case in enumerate(eval_of(3)["cases"])]
    summary = agentv.evaluate({"cases": cases}, target=lambda _: GOOD).summary
    assert (summary.runs, summary.left_out) == (1, 2)
    with pytest.raises(agentv.SpecError, match="others say `only`"):
        agentv.evaluate({"cases": cases}, target=lambda _: GOOD, cases="c0")


def test_summaries_are_in_the_order_of_the_plan() -> None:
    slow = {"name": "slow", "provider": "mock", "reply": GOOD, "delay_ms": 30}
    targets = [slow, {"name": "fast", "provider": "mock", "reply": GOOD}]
    assert list(agentv.evaluate({**eval_of(), "targets": targets}).summary.targets) == ["slow", "fast"]


class Batch(ProviderBase, frozen=True, kw_only=True, dict=True):
    """Batch provider; the first time, every third request fails."""

    provider: str = "batch"
    batch_size: int = 4
    asked: list[list[tuple[str, int]]]
    wrong: Any = None

    async def invoke_many(self, requests: Sequence[Request]) -> Any:
        self.asked.append([(request.id, request.attempt) for request in requests])
        if self.wrong is not None:
            return self.wrong(requests)
        down = ProviderResponse(success=False, error=ResponseError(kind="transport", message="down", retryable=True))
        return [
            down if request.index % 3 == 0 and request.attempt == 1 else decode_response(GOOD) for request in requests
        ]


class TestMany:
    def evaluate(self, count: int, wrong: Any = None, **options: Any) -> tuple[agentv.Execution, list[Any]]:
        provider = Batch(asked=[], wrong=wrong)
        target = Target("batch", "batch", {}, instance=provider)
        return agentv.evaluate(eval_of(count), target=target, **options), provider.asked

    def test_runs_are_gathered_and_only_what_failed_is_asked_again(self) -> None:
        execution, asked = self.evaluate(10, max_concurrency=1)
        assert asked == [
            [("c0", 1), ("c1", 1), ("c2", 1), ("c3", 1)],
            [("c0", 2), ("c3", 2)],
            [("c4", 1), ("c5", 1), ("c6", 1), ("c7", 1)],
            [("c6", 2)],
            [("c8", 1), ("c9", 1)],
            [("c9", 2)],
        ]
        assert execution.passed
        assert [record.attempts for record in execution.results] == [2, 1, 1, 2, 1, 1, 2, 1, 1, 2]
        assert [record.latency_share_of for record in execution.results] == [2, 4, 4, 2, 4, 4, 1, 4, 2, 1]
        assert all(record.latency_ms is not None for record in execution.results)

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            (lambda _: [], "asked 2 times and answered 0 times"),
            (lambda requests: ["text" for _ in requests], "returned a str"),
            (lambda _: 1 / 0, "ZeroDivisionError"),
        ],
    )
    def test_a_provider_that_breaks_its_word_fails_its_runs(self, wrong: Any, said: str) -> None:
        execution, _ = self.evaluate(2, wrong)
        assert all(record.error is not None and said in record.error.message for record in execution.results)
        assert execution.summary.errors == 2


def test_a_timeout_of_the_agents_own_is_not_taken_for_ours() -> None:
    def agent(prompt: str) -> str:
        msg = f"no answer to {prompt!r}"
        raise TimeoutError(msg)

    (record,) = agentv.evaluate(eval_of(), target=agent).results
    assert record.error is not None
    assert (record.error.kind, record.error.message.splitlines()[0]) == ("timeout", "no answer to 'question 0'")


def test_replies_that_came_in_time_are_kept_when_a_batch_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = "import json, sys, time\nfor line in list(sys.stdin)[:2]:\n    reply = " + repr(GOOD)
    program += "\n    print(json.dumps({'id': json.loads(line)['id'], **reply}), flush=True)\ntime.sleep(600)"
    command = [sys.executable, "-c", program]
    target = {"provider": "cli", "mode": "batch", "command": command, "timeout_s": 3}
    results = agentv.evaluate(eval_of(3), target=target).results
    assert [record.status for record in results] == ["pass", "pass", "error"]
    assert results[2].error is not None
    assert results[2].error.kind == "timeout"
