"""Attempts: retries, backoff, timeouts, and the log of attempts."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from msgspec.structs import replace

import agentv
from agentv.api.evaluate import function_target
from agentv.evals import Target
from agentv.formats.plain_blocks import unknown_block_reasons
from agentv.model.conversation import Message, ToolCall
from agentv.model.events import Attempt
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse, ResponseError, TokensUsage, Unread
from agentv.providers.base import ProviderBase, attach_partial_reply, failure
from agentv.run import attempt
from agentv.run.attempt import RetryPolicy, RunAttempts, try_many, try_run
from agentv.run.rate_limit import RateLimiter, RateLimits
from tests.fakes.event_loop import instantly, now
from tests.fakes.model_server.server import Server, running

OK = ProviderResponse(text="fine", thread_id="t-ok")
GOOD = {"output_messages": [{"role": "assistant", "content": "done"}]}


def error(**fields: Any) -> ProviderResponse:
    words = {"kind": "transport", "message": "down", "retryable": True, **fields}
    return ProviderResponse(success=False, error=ResponseError(**words), thread_id=fields.get("message"))


def busy(**fields: Any) -> ProviderResponse:
    return error(**{"message": "slow down", "code": "rate_limited", **fields})


class Script:
    """Provider with scripted replies; the last one is repeated."""

    def __init__(self, *replies: ProviderResponse, seconds: float = 0.0) -> None:
        self._replies = list(replies)
        self._seconds = seconds
        self.asked: list[tuple[float, Request]] = []

    async def open(self, scope: Scope) -> None:
        del scope

    async def invoke(self, request: Request) -> ProviderResponse:
        self.asked.append((now(), request))
        await asyncio.sleep(self._seconds)
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]

    async def close(self) -> None:
        pass


def tried(provider: Any, *, limits: RateLimits | None = None, **policy: Any) -> RunAttempts:
    """Return the attempts of one run."""
    settings = {"timeout_s": 60.0, "retries": 2, "retry_timeouts": False, **policy}

    async def scene() -> RunAttempts | None:
        limiter = RateLimiter(limits or RateLimits())
        request = Request(id="c", thread_id="given")
        return await try_run(provider, request, RetryPolicy(**settings, limiter=limiter), lambda: False)

    found = instantly(scene())
    assert found is not None
    return found


def test_each_attempt_is_recorded_with_its_failure_its_thread_and_its_wait() -> None:
    provider = Script(error(), error(message="again"), OK)
    found = tried(provider)
    assert (found.response.text, found.attempts) == ("fine", 3)
    assert [each.number for each in found.log] == [1, 2, 3]
    assert [each.error.message if each.error else None for each in found.log] == ["down", "again", None]
    assert [each.thread_id for each in found.log] == [None, "again", "t-ok"]
    first, second, third = [each.waited_ms for each in found.log]
    assert first == 0
    assert 250 <= second <= 500
    assert 500 <= third <= 1000
    assert all(each.latency_ms is not None for each in found.log)


def test_a_retry_starts_a_conversation_of_its_own() -> None:
    provider = Script(error(), OK)
    tried(provider)
    assert [request.thread_id for _, request in provider.asked] == ["given", None]


@pytest.mark.parametrize(
    ("reply", "attempts"),
    [
        (error(kind="transport"), 3),
        (error(kind="timeout"), 3),
        (error(retryable=False), 1),
        (error(kind="timeout", retryable=False), 1),
        (error(kind="agent", retryable=False), 1),
        (error(kind="protocol", retryable=False), 1),
        (error(code="quota_exhausted"), 1),
        (error(code="unauthorized", retryable=False), 1),
        (error(code="overloaded"), 3),
    ],
)
def test_only_what_may_pass_is_tried_again(reply: ProviderResponse, attempts: int) -> None:
    assert tried(Script(reply)).attempts == attempts


def test_a_timeout_is_tried_again_if_asked() -> None:
    assert tried(Script(OK, seconds=100), retry_timeouts=True, timeout_s=1).attempts == 3
    assert tried(Script(OK, seconds=100), timeout_s=1).attempts == 1


class TestBusy:
    def test_the_time_that_the_target_names_is_waited_for(self) -> None:
        provider = Script(busy(retry_after_s=12.0), OK)
        found = tried(provider)
        assert [when for when, _ in provider.asked] == [0, 12]
        assert found.log[1].waited_ms == pytest.approx(12_000)

    def test_waiting_is_neither_latency_nor_part_of_the_attempts_time(self) -> None:
        found = tried(Script(busy(retry_after_s=50.0), OK), timeout_s=1)
        assert found.response.success
        assert found.response.latency_ms is not None
        assert found.response.latency_ms < 1000

    def test_being_told_to_wait_uses_up_no_retry(self) -> None:
        found = tried(Script(*[busy()] * 5, error(), OK), retries=1)
        assert found.response.success
        assert found.attempts == 7

    def test_it_ends_all_the_same(self) -> None:
        found = tried(Script(busy()))
        assert found.attempts == 1 + attempt.MAX_RATE_LIMITED
        assert found.response.error is not None
        assert found.response.error.code == "rate_limited"

    def test_whoever_wants_no_retries_gets_none(self) -> None:
        assert tried(Script(busy(), OK), retries=0).attempts == 1

    def test_a_wait_that_is_too_long_is_the_error_and_nothing_hangs(self) -> None:
        provider = Script(busy(retry_after_s=3600.0), OK)
        found = tried(provider, limits=RateLimits(max_retry_after_s=30))
        assert found.response.error is not None
        assert "asks to wait 3,600 s, longer than `max_retry_after_s` (30 s)" in found.response.error.message
        assert (found.attempts, len(provider.asked)) == (1, 1)

    def test_a_target_that_names_no_time_is_given_some_all_the_same(self) -> None:
        provider = Script(busy(), busy(), OK)
        tried(provider)
        first, second, third = [when for when, _ in provider.asked]
        assert 0.25 <= second - first <= 0.5
        assert 0.5 <= third - second <= 1.0


class Many(Script):
    """The same for a batch provider."""

    batch_size = 10

    async def invoke_many(self, requests: Sequence[Request]) -> list[ProviderResponse]:
        return [await self.invoke(request) for request in requests]


def many(provider: Many, count: int, limiter: RateLimiter | None = None) -> list[RunAttempts | None]:
    async def scene() -> list[RunAttempts | None]:
        policy = RetryPolicy(60.0, 2, retry_timeouts=False, limiter=limiter or RateLimiter())
        return await try_many(provider, [Request(id=str(at)) for at in range(count)], policy, lambda: False)

    return instantly(scene())


def test_the_attempts_of_a_batch_are_recorded_for_each_run() -> None:
    found = many(Many(OK, busy(retry_after_s=5.0), error(), OK), 3)
    assert [each.attempts for each in found if each] == [1, 2, 2]
    assert [[one.number for one in each.log] for each in found if each] == [[1], [1, 2], [1, 2]]
    waits = [each.log[-1].waited_ms for each in found if each]
    assert waits == [0, pytest.approx(5000), pytest.approx(5000)]


def test_a_quota_that_ends_within_a_batch_ends_what_would_be_tried_again() -> None:
    provider = Many(OK, error(), error(code="quota_exhausted", message="no credit"))
    found = many(provider, 3)
    assert [each.response.success for each in found if each] == [True, False, False]
    assert len(provider.asked) == 3
    said = [each.response.error.message for each in found if each and each.response.error]
    assert said == ["not asked: this target's quota is exhausted, as it said before: no credit", "no credit"]


def evaluate(agent: Any, count: int, **options: Any) -> agentv.Execution:
    check = {"type": "contains", "value": "done"}
    cases = [{"id": f"c{at}", "input": f"question {at}", "evaluators": [check]} for at in range(count)]
    return agentv.evaluate({"cases": cases}, target=agent, **options)


def test_when_the_quota_is_gone_the_remaining_runs_are_errors_without_a_call() -> None:
    asked = []

    async def agent(request: Request) -> Any:
        asked.append(request.id)
        if len(asked) > 5:
            return ProviderResponse(
                success=False,
                error=ResponseError(kind="transport", message="You exceeded your quota", code="quota_exhausted"),
            )
        return GOOD

    execution = evaluate(agent, 1000, max_concurrency=4)
    assert (execution.summary.passed, execution.summary.errors) == (5, 995)
    assert len(asked) <= 5 + 4
    last = execution.results[-1]
    assert last.error is not None
    assert last.error.message.startswith("not asked: this target's quota is exhausted")
    assert (last.attempts, last.latency_ms) == (0, None)
    assert execution.summary.exit_code == 3


def test_the_runs_time_limit_counts_waiting_and_keeps_the_story() -> None:
    target = function_target(lambda _: GOOD, requests_per_minute=1)
    execution = evaluate(target, 2, run_timeout_s=1)
    assert [record.status for record in execution.results] == ["pass", "error"]
    late = execution.results[1]
    assert late.error == ResponseError(kind="timeout", message="the run did not end within 1 s")
    assert late.attempts == 0


def test_a_run_that_is_cut_off_in_an_attempt_says_which() -> None:
    async def agent(request: Request) -> Any:
        if request.attempt == 1:
            return failure("transport", "down", retryable=True)
        await asyncio.sleep(60)
        return GOOD

    (record,) = evaluate(agent, 1, run_timeout_s=1).results
    assert (record.status, record.attempts) == ("error", 2)


class Cut(Script):
    """A provider that hands over, when it is cancelled, what it has of its reply."""

    def __init__(self, partial: Any) -> None:
        super().__init__(OK, seconds=100)
        self._partial = partial

    async def invoke(self, request: Request) -> ProviderResponse:
        try:
            return await super().invoke(request)
        except asyncio.CancelledError as cancelled:
            attach_partial_reply(cancelled, self._partial)
            raise


class TestAReplyThatIsCut:
    BEGUN = ProviderResponse(
        text="One moment.",
        output_messages=(Message(role="assistant", content="One moment.", tool_calls=(ToolCall(tool="search"),)),),
        tokens_usage=TokensUsage(input_tokens=3, output_tokens=2, total_tokens=5),
        thread_id="t-1",
    )

    def test_is_kept_as_a_failure_that_is_partly_understood(self) -> None:
        found = tried(Cut(self.BEGUN), timeout_s=1)
        response = found.response
        assert not response.success
        assert response.error == ResponseError(kind="timeout", message="no reply within 1 s")
        assert response.output_messages == self.BEGUN.output_messages
        assert response.tokens_usage == self.BEGUN.tokens_usage
        assert response.thread_id == found.log[0].thread_id == "t-1"
        (place,) = response.unread
        assert str(place) == "reply: the time was over before the reply was complete, so calls may be missing"

    @pytest.mark.parametrize("partial", [None, "words", {"text": "x"}])
    def test_that_is_none_is_left_out(self, partial: Any) -> None:
        response = tried(Cut(partial), timeout_s=1).response
        error = ResponseError(kind="timeout", message="no reply within 1 s")
        assert replace(response, latency_ms=None) == ProviderResponse(success=False, error=error)

    def test_is_kept_when_the_time_of_the_run_is_over(self) -> None:
        async def agent(_: Request) -> None:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError as cancelled:
                attach_partial_reply(cancelled, self.BEGUN)
                raise

        (record,) = evaluate(agent, 1, run_timeout_s=1).results
        assert record.error == ResponseError(kind="timeout", message="the run did not end within 1 s")
        assert record.thread_id == "t-1"
        assert record.unread


def test_what_cancels_a_run_takes_its_story_along() -> None:
    async def scene() -> tuple[Attempt, ...]:
        policy = RetryPolicy(60.0, 2, retry_timeouts=False, limiter=RateLimiter())
        run = asyncio.ensure_future(try_run(Script(error(), OK, seconds=2), Request(id="c"), policy, lambda: False))
        await asyncio.sleep(3.5)
        run.cancel()
        with pytest.raises(asyncio.CancelledError) as cut:
            await run
        log: tuple[Attempt, ...] = getattr(cut.value, attempt.LOG)
        return log

    first, second = instantly(scene())
    assert first.error is not None
    assert (first.number, first.error.message) == (1, "down")
    assert second.error is not None
    assert (second.number, second.error.kind) == (2, "interrupted")


class Throws(ProviderBase, frozen=True, kw_only=True, dict=True):
    """Provider that raises exceptions which would end a task or the program."""

    provider: str = "throws"
    thrown: type[BaseException]

    async def invoke(self, request: Request) -> ProviderResponse:
        if request.id == "c0":
            msg = "mine"
            raise self.thrown(msg)
        return ProviderResponse(text="done")


@pytest.mark.parametrize("thrown", [SystemExit, asyncio.CancelledError, pytest.fail.Exception, ValueError])
def test_whatever_a_provider_throws_ends_its_run_alone(thrown: type[BaseException]) -> None:
    execution = evaluate(Target("throws", "throws", {}, instance=Throws(thrown=thrown)), 3)
    assert [record.status for record in execution.results] == ["error", "pass", "pass"]
    assert execution.results[0].error == ResponseError(kind="agent", message=f"{thrown.__name__}: mine")


def test_stopping_sends_away_those_who_wait_for_their_turn() -> None:
    asked = []

    async def agent(prompt: str) -> Any:
        asked.append(prompt)
        return {"output_messages": [{"role": "assistant", "content": "wrong"}]}

    target = function_target(agent, requests_per_minute=1)
    execution = evaluate(target, 20, fail_fast=True, max_concurrency=5)
    assert len(asked) == 1
    assert (execution.summary.runs, execution.summary.planned) == (1, 20)


class Wire(ProviderBase, frozen=True, kw_only=True, dict=True):
    """Provider of a real server."""

    provider: str = "wire"
    url: str

    async def open(self, scope: Scope) -> None:
        await super().open(scope)
        self.__dict__["session"] = aiohttp.ClientSession()

    async def close(self) -> None:
        await self.__dict__["session"].close()

    async def invoke(self, request: Request) -> ProviderResponse:
        async with self.__dict__["session"].post(self.url, json={"id": request.id}) as answer:
            if answer.status == 429:
                wait = answer.headers.get("Retry-After")
                words = ResponseError(
                    kind="transport",
                    message="too many requests",
                    retryable=True,
                    code="rate_limited",
                    **({} if wait is None else {"retry_after_s": float(wait)}),
                )
                return ProviderResponse(success=False, error=words)
            if answer.status >= 500:
                return failure("transport", f"status {answer.status}", retryable=True)
            body = await answer.json()
            usage = TokensUsage(input_tokens=7, output_tokens=3, total_tokens=10)
            return ProviderResponse(text=body["text"], tokens_usage=usage)


@asynccontextmanager
async def server(answer: Callable[[int], web.Response]) -> AsyncIterator[tuple[str, list[float]]]:
    """Local server that records the times of requests."""
    times: list[float] = []

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        times.append(asyncio.get_running_loop().time())
        return answer(len(times))

    app = web.Application()
    app.router.add_post("/", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}/", times
    finally:
        await runner.cleanup()


async def ask_server(
    answer: Callable[[int], web.Response], count: int, options: dict[str, Any], **settings: Any
) -> tuple[agentv.Execution, list[float]]:
    check = {"type": "contains", "value": "done"}
    cases = [{"id": f"c{at}", "input": "x", "evaluators": [check]} for at in range(count)]
    async with server(answer) as (url, times):
        target = Target("wire", "wire", {"url": url}, instance=Wire(url=url, **settings))
        return await agentv.aevaluate({"cases": cases}, target=target, **options), times


def answers(times: int, status: int, **headers: str) -> Callable[[int], web.Response]:
    """Server that fails this number of times, and then answers."""

    def answer(number: int) -> web.Response:
        return web.Response(status=status, headers=headers) if number <= times else web.json_response({"text": "done"})

    return answer


class TestARealServer:
    def test_that_fails_and_then_answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(attempt, "FIRST_BACKOFF_S", 0.01)
        execution, times = asyncio.run(ask_server(answers(2, 503), 1, {}))
        assert execution.passed
        assert execution.results[0].attempts == len(times) == 3

    def test_that_says_when_to_come_back(self) -> None:
        execution, times = asyncio.run(ask_server(answers(1, 429, **{"Retry-After": "0.4"}), 6, {"max_concurrency": 1}))
        assert execution.passed
        assert times[1] - times[0] >= 0.4
        assert len(times) == 7
        latency = execution.results[0].latency_ms
        assert latency is not None
        assert latency < 400

    def test_that_says_so_to_several_at_once_pauses_them_all(self) -> None:
        execution, times = asyncio.run(ask_server(answers(4, 429, **{"Retry-After": "0.4"}), 8, {"max_concurrency": 4}))
        assert execution.passed
        assert len(times) == 12
        # Four requests came before the pause was known, and none during it.
        assert times[4] - times[3] >= 0.39

    def test_is_asked_no_faster_than_allowed(self) -> None:
        started = time.monotonic()
        execution, times = asyncio.run(ask_server(answers(0, 200), 8, {"max_concurrency": 8}, requests_per_minute=1200))
        assert execution.passed
        # 50 ms apart from the start on; the first one may arrive late, and so close to the second.
        assert times[-1] - started >= 7 * 0.05 - 0.04

    def test_that_never_stops_refusing_ends_in_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(attempt, "FIRST_BACKOFF_S", 0.001)
        execution, times = asyncio.run(ask_server(answers(math.inf, 429), 1, {}))  # type: ignore[arg-type]
        (record,) = execution.results
        assert record.error is not None
        assert (record.error.message, record.attempts) == ("too many requests", 1 + attempt.MAX_RATE_LIMITED)
        assert len(times) == record.attempts


@pytest.fixture(scope="module")
def wires() -> Iterator[Server]:
    with running() as started:
        yield started


class TestAModelBehindAWire:
    """The same with the `openai` provider, which reads headers and bodies of the server."""

    def evaluate(self, wires: Server, model: str, count: int, **settings: Any) -> agentv.Execution:
        target = {"provider": "openai", "model": model, "base_url": wires.url, **settings}
        cases = [
            {"id": f"c{at}", "input": f"{at}", "evaluators": [{"type": "contains", "value": "said"}]}
            for at in range(count)
        ]
        return agentv.evaluate({"cases": cases}, target=target, max_concurrency=2)

    def test_that_is_unavailable_twice(self, wires: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(attempt, "FIRST_BACKOFF_S", 0.001)
        (record,) = self.evaluate(wires, "flaky-2", 1).results
        assert (record.status, record.attempts) == ("pass", 3)

    def test_whose_quota_is_gone_though_it_says_429_and_retry_after(self, wires: Server) -> None:
        before = len(wires.seen)
        execution = self.evaluate(wires, "quota", 20)
        assert len(wires.seen) - before <= 2
        assert {record.error.code for record in execution.results if record.error} == {"quota_exhausted"}

    def test_that_asks_for_a_longer_wait_than_is_allowed(self, wires: Server) -> None:
        before = len(wires.seen)
        execution = self.evaluate(wires, "limited-seconds", 20, max_retry_after_s=2)
        assert len(wires.seen) - before <= 2
        assert all(record.error and "asks to wait 7 s" in record.error.message for record in execution.results)

    def test_what_it_cost_is_known_by_the_target_s_model(self, wires: Server) -> None:
        (record,) = self.evaluate(wires, "gpt-4o", 1).results
        assert record.tokens_usage is not None
        assert record.tokens_usage.input_tokens is not None
        assert record.tokens_usage.output_tokens is not None
        expected = record.tokens_usage.input_tokens * 2.5e-6 + record.tokens_usage.output_tokens * 10e-6
        assert record.cost_usd == pytest.approx(expected)


class TestPlainBlocks:
    """Unread places that are blocks of a declared type are dropped, also from replies that user code built."""

    CHART = Unread(path="a[0]", reason=unknown_block_reasons("chart")[0])
    MAP = Unread(path="a[1]", reason=unknown_block_reasons("map")[1])

    def script(self) -> Any:
        return Script(ProviderResponse(text="fine", unread=(self.CHART, self.MAP)))

    def test_of_one_reply(self) -> None:
        assert tried(self.script(), plain_blocks=("chart",)).response.unread == (self.MAP,)
        assert tried(self.script()).response.unread == (self.CHART, self.MAP)

    def test_a_provider_need_not_know_the_setting(self) -> None:
        assert len(tried(Script(ProviderResponse(unread=(self.CHART,)))).response.unread) == 1

    def test_of_a_batch(self) -> None:
        provider = self.script()

        async def invoke_many(requests: Sequence[Request]) -> list[ProviderResponse]:
            return [await provider.invoke(request) for request in requests]

        provider.invoke_many = invoke_many
        policy = RetryPolicy(timeout_s=60.0, retries=0, retry_timeouts=False, plain_blocks=("chart", "map"))
        work = try_many(provider, [Request(id="a"), Request(id="b")], policy, lambda: False)
        assert [one and one.response.unread for one in asyncio.run(work)] == [(), ()]
