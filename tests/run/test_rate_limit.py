"""Rate limiter: order and times of permits, and adaptation to errors of the target."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentv.model.response import ProviderResponse, ResponseError, TokensUsage
from agentv.run.rate_limit import MAX_UNAUTHORIZED, MAX_UNAUTHORIZED_LATER, Permit, RateLimiter, RateLimits
from tests.fakes.event_loop import instantly, now

OK = ProviderResponse(text="fine")


def busy(**fields: Any) -> ProviderResponse:
    words = {"kind": "transport", "message": "slow down", "retryable": True, "code": "rate_limited", **fields}
    return ProviderResponse(success=False, error=ResponseError(**words))


async def permit_of(limiter: RateLimiter, tokens: float = 0.0) -> Permit:
    found = limiter.try_acquire() or await limiter.acquire(1, tokens)
    assert isinstance(found, Permit)
    return found


def all_at_once(limiter: RateLimiter) -> list[Permit]:
    """Return all permits that are available now."""
    permits = []
    while (permit := limiter.try_acquire()) is not None:
        permits.append(permit)
    return permits


async def workers(limiter: RateLimiter, count: int, work: Callable[[int], Awaitable[ProviderResponse]]) -> list[float]:
    """Return the times at which this number of concurrent callers got their permits."""
    begun: list[float] = []

    async def one(number: int) -> None:
        permit = await permit_of(limiter)
        begun.append(now())
        limiter.release(permit, [await work(number)])

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number))
    return begun


async def at_once(number: int) -> ProviderResponse:
    del number
    return OK


async def one_second(number: int) -> ProviderResponse:
    del number
    await asyncio.sleep(1)
    return OK


class TestRates:
    def test_without_limits_nobody_waits(self) -> None:
        limiter = RateLimiter()
        permits = [limiter.try_acquire() for _ in range(10_000)]
        assert None not in permits

    def test_requests_are_spread_evenly_over_the_minute(self) -> None:
        begun = instantly(workers(RateLimiter(RateLimits(requests_per_minute=60)), 5, at_once))
        assert begun == [0, 1, 2, 3, 4]

    def test_a_minute_never_holds_more_than_allowed_whenever_it_begins(self) -> None:
        async def scene() -> list[float]:
            limiter = RateLimiter(RateLimits(requests_per_minute=120))
            begun = await workers(limiter, 150, at_once)
            await asyncio.sleep(300)  # idleness saves nothing up
            return begun + await workers(limiter, 150, at_once)

        begun = instantly(scene())
        assert max(sum(start <= other < start + 60 for other in begun) for start in begun) == 120

    def test_timers_that_are_late_do_not_slow_the_rate(self) -> None:
        async def scene() -> list[float]:
            limiter = RateLimiter(RateLimits(requests_per_minute=600))
            begun = []
            for _ in range(21):
                limiter.release(await permit_of(limiter), [OK])
                begun.append(now())
                await asyncio.sleep(0.13)  # each comes 30 ms late
            return begun

        assert instantly(scene())[-1] == pytest.approx(2.6)

    def test_at_most_so_many_are_under_way_and_the_rest_come_in_order(self) -> None:
        begun = instantly(workers(RateLimiter(RateLimits(max_concurrency=2)), 5, one_second))
        assert begun == [0, 0, 1, 1, 2]

    def test_the_rate_and_the_number_hold_together(self) -> None:
        begun = instantly(workers(RateLimiter(RateLimits(max_concurrency=1, requests_per_minute=120)), 3, one_second))
        assert begun == [0, 1, 2]

    def test_a_batch_counts_as_many_requests_as_it_holds(self) -> None:
        async def scene() -> float:
            limiter = RateLimiter(RateLimits(requests_per_minute=60))
            for _ in range(2):
                found = await limiter.acquire(10)
                assert isinstance(found, Permit)
                limiter.release(found, [OK] * 10)
            return now()

        assert instantly(scene()) == 10


class TestTokens:
    @staticmethod
    def using(tokens: int) -> ProviderResponse:
        return ProviderResponse(tokens_usage=TokensUsage(input_tokens=tokens, output_tokens=0, total_tokens=tokens))

    def test_what_was_really_used_decides_when_the_next_may_begin(self) -> None:
        async def scene() -> list[float]:
            limiter = RateLimiter(RateLimits(tokens_per_minute=600))
            begun = []
            for _ in range(3):
                permit = await permit_of(limiter, tokens=1)
                begun.append(now())
                limiter.release(permit, [self.using(50)])
            return begun

        # 10 tokens a second: 50 of them take 5 seconds.
        assert instantly(scene()) == [0, 5, 10]

    def test_replies_so_far_tell_what_the_next_one_will_use(self) -> None:
        async def scene() -> list[float]:
            limiter = RateLimiter(RateLimits(tokens_per_minute=600))
            limiter.release(await permit_of(limiter, tokens=1), [self.using(100)])
            # Two at the same time: the second waits for the tokens that the first is expected to use.
            permits = [await permit_of(limiter, tokens=1) for _ in range(2)]
            return [now(), *(permit.tokens for permit in permits)]

        assert instantly(scene()) == [20, 100, 100]

    def test_a_target_that_reports_no_usage_is_held_to_the_length_of_its_prompts(self) -> None:
        async def scene() -> float:
            limiter = RateLimiter(RateLimits(tokens_per_minute=60))
            for _ in range(3):
                limiter.release(await permit_of(limiter, tokens=10), [OK])
            return now()

        assert instantly(scene()) == 20


class TestTooFast:
    def test_one_refusal_pauses_everybody_until_then(self) -> None:
        async def work(number: int) -> ProviderResponse:
            return busy(retry_after_s=7.0) if number == 0 else OK

        begun = instantly(workers(RateLimiter(RateLimits(max_concurrency=1)), 4, work))
        assert begun == [0, 7, 7, 7]

    def test_the_longest_of_several_waits_counts(self) -> None:
        async def work(number: int) -> ProviderResponse:
            await asyncio.sleep(0.1)
            return busy(retry_after_s=[9.0, 3.0, 0.5][number]) if number < 3 else OK

        begun = instantly(workers(RateLimiter(RateLimits(max_concurrency=3)), 4, work))
        assert begun == [0, 0, 0, pytest.approx(9.1)]

    def test_any_failure_that_asks_for_a_wait_gets_it(self) -> None:
        async def work(number: int) -> ProviderResponse:
            return busy(code="overloaded", retry_after_s=2.0) if number == 0 else OK

        assert instantly(workers(RateLimiter(RateLimits(max_concurrency=1)), 2, work)) == [0, 2]

    def test_a_wait_that_comes_with_a_final_failure_concerns_nobody(self) -> None:
        async def work(number: int) -> ProviderResponse:
            del number
            return busy(code="refused", retryable=False, retry_after_s=2.0)

        assert instantly(workers(RateLimiter(RateLimits(max_concurrency=1)), 2, work)) == [0, 0]

    @pytest.mark.parametrize("wait", [float("nan"), -1.0, 0.0])
    def test_a_wait_that_is_none_is_not_waited_for(self, wait: float) -> None:
        async def work(number: int) -> ProviderResponse:
            return busy(retry_after_s=wait) if number == 0 else OK

        assert instantly(workers(RateLimiter(RateLimits(max_concurrency=1)), 2, work)) == [0, 0]

    def test_a_burst_of_refusals_halves_the_number_under_way_once(self) -> None:
        async def scene() -> int:
            limiter = RateLimiter()
            permits = [await permit_of(limiter) for _ in range(8)]
            for permit in permits:
                limiter.release(permit, [busy()])
            return len(all_at_once(limiter))

        assert instantly(scene()) == 4

    def test_refusals_of_what_was_asked_since_halve_it_again_but_never_to_nothing(self) -> None:
        async def scene() -> list[int]:
            limiter = RateLimiter()
            found = []
            permits = [await permit_of(limiter) for _ in range(8)]
            for _ in range(4):
                for permit in permits:
                    limiter.release(permit, [busy()])
                permits = all_at_once(limiter)
                found.append(len(permits))
            return found

        assert instantly(scene()) == [4, 2, 1, 1]

    def test_success_lets_one_more_in_for_each_round(self) -> None:
        async def scene() -> list[int]:
            limiter = RateLimiter(RateLimits(max_concurrency=8))
            permits = [await permit_of(limiter) for _ in range(8)]
            for permit in permits:
                limiter.release(permit, [busy()])
            found = []
            for _ in range(6):
                permits = all_at_once(limiter)
                for permit in permits:
                    limiter.release(permit, [OK])
                found.append(len(permits))
            return found

        found = instantly(scene())
        assert found[0] == 4
        assert found == sorted(found)
        assert found[-1] == 8
        assert all(after - before <= 1 for before, after in itertools.pairwise(found))

    def test_a_rate_is_halved_and_takes_half_a_minute_to_come_back(self) -> None:
        async def scene() -> list[float]:
            limiter = RateLimiter(RateLimits(requests_per_minute=60))
            limiter.release(await permit_of(limiter), [busy()])
            begun = []
            for _ in range(60):
                limiter.release(await permit_of(limiter), [OK])
                begun.append(now())
            return [after - before for before, after in itertools.pairwise(begun)]

        gaps = instantly(scene())
        assert gaps[0] == pytest.approx(2.0)
        assert gaps == sorted(gaps, reverse=True)
        assert sum(gap > 1.01 for gap in gaps) >= 29
        assert gaps[-1] == pytest.approx(1.0)


class TestRefusals:
    def test_a_wait_longer_than_allowed_refuses_everybody_at_once_and_says_why(self) -> None:
        async def scene() -> list[Any]:
            limiter = RateLimiter(RateLimits(max_concurrency=1, max_retry_after_s=60))
            permit = await permit_of(limiter)
            waiting = [asyncio.ensure_future(limiter.acquire()) for _ in range(3)]
            await asyncio.sleep(0)
            limiter.release(permit, [busy(retry_after_s=3600.0)])
            return [*await asyncio.gather(*waiting), await limiter.acquire(), now()]

        *refused, when = instantly(scene())
        assert when == 0
        words = "the target asks to wait 3,600 s, longer than `max_retry_after_s` (60 s): slow down"
        assert [error.message for error in refused] == [words] * 4
        assert refused[0].code == "rate_limited"
        assert refused[0].retryable is False

    def test_when_that_time_is_over_it_is_asked_again(self) -> None:
        async def scene() -> bool:
            limiter = RateLimiter(RateLimits(max_retry_after_s=60))
            limiter.release(await permit_of(limiter), [busy(retry_after_s=90.0)])
            assert isinstance(await limiter.acquire(), ResponseError)
            await asyncio.sleep(91)
            return isinstance(await limiter.acquire(), Permit)

        assert instantly(scene())

    def test_an_exhausted_quota_refuses_for_good_and_is_not_a_rate(self) -> None:
        async def scene() -> Any:
            limiter = RateLimiter()
            limiter.release(await permit_of(limiter), [busy(code="quota_exhausted", message="no credit left")])
            assert limiter.try_acquire() is None
            await asyncio.sleep(86_400)
            return await limiter.acquire()

        found = instantly(scene())
        assert found.message == "not asked: this target's quota is exhausted, as it said before: no credit left"
        assert (found.code, found.retryable) == ("quota_exhausted", False)

    def test_a_key_that_is_refused_from_the_start_is_not_tried_with_every_run(self) -> None:
        async def scene() -> list[Any]:
            limiter = RateLimiter()
            for _ in range(MAX_UNAUTHORIZED):
                limiter.release(
                    await permit_of(limiter), [busy(code="unauthorized", retryable=False, message="bad key")]
                )
            return [await limiter.acquire(), limiter.try_acquire()]

        found, passed = instantly(scene())
        assert passed is None
        assert found.message == "not asked: this target has refused 5 requests in a row, the last one so: bad key"
        assert (found.code, found.retryable) == ("unauthorized", False)

    def test_a_target_that_forbids_single_requests_is_asked_on(self) -> None:
        forbidden = busy(code="unauthorized", retryable=False)

        async def scene() -> None:
            limiter = RateLimiter()
            for reply in (
                [forbidden] * (MAX_UNAUTHORIZED - 1)
                + [OK]
                + [forbidden] * (MAX_UNAUTHORIZED_LATER - 1)
                + [OK, forbidden]
            ):
                limiter.release(await permit_of(limiter), [reply])
            await permit_of(limiter)

        instantly(scene())


class TestLeaving:
    def test_somebody_who_gives_up_waiting_holds_up_nobody(self) -> None:
        async def scene() -> float:
            limiter = RateLimiter(RateLimits(max_concurrency=1))
            first = await permit_of(limiter)
            impatient = asyncio.ensure_future(limiter.acquire())
            patient = asyncio.ensure_future(limiter.acquire())
            await asyncio.sleep(0)
            impatient.cancel()
            await asyncio.sleep(1)
            limiter.release(first, [OK])
            assert isinstance(await patient, Permit)
            return now()

        assert instantly(scene()) == 1

    def test_a_turn_that_was_given_to_somebody_who_is_gone_goes_to_the_next(self) -> None:
        async def scene() -> bool:
            limiter = RateLimiter(RateLimits(max_concurrency=1))
            first = await permit_of(limiter)
            gone = asyncio.ensure_future(limiter.acquire())
            following = asyncio.ensure_future(limiter.acquire())
            await asyncio.sleep(0)
            limiter.release(first, [OK])  # given, and not taken yet
            gone.cancel()
            return isinstance(await asyncio.wait_for(following, 1), Permit)

        assert instantly(scene())

    def test_when_all_is_over_nobody_waits_any_more(self) -> None:
        async def scene() -> list[Any]:
            limiter = RateLimiter(RateLimits(requests_per_minute=1))
            await permit_of(limiter)
            waiting = [asyncio.ensure_future(limiter.acquire()) for _ in range(3)]
            await asyncio.sleep(1)
            limiter.cancel_waiters()
            return [*await asyncio.gather(*waiting), await limiter.acquire(), now()]

        assert instantly(scene()) == [None, None, None, None, 1]


RUN = st.tuples(
    st.floats(0, 5),  # when it comes
    st.floats(0, 3),  # how long it takes
    st.sampled_from(["ok", "busy", "wait", "fails"]),
    st.none() | st.floats(0, 6),  # when it is given up
)


@example([(0.0, 1.0, "ok", 0.0), (0.0, 0.0, "ok", 0.0)], 1, None)  # both end in the same moment
@given(st.lists(RUN, max_size=25), st.integers(1, 4), st.none() | st.integers(1, 600))
def test_whatever_happens_the_limits_hold_and_nobody_is_forgotten(
    runs: list[tuple[float, float, str, float | None]], most: int, rate: int | None
) -> None:
    replies = {
        "ok": OK,
        "busy": busy(),
        "wait": busy(retry_after_s=2.0),
        "fails": ProviderResponse(success=False, error=ResponseError(kind="agent", message="no")),
    }

    async def scene() -> None:
        limiter = RateLimiter(RateLimits(max_concurrency=most, requests_per_minute=rate))
        under_way = 0

        async def one(come: float, take: float, end: str, give_up: float | None) -> None:
            nonlocal under_way
            await asyncio.sleep(come)
            with suppress(TimeoutError):
                async with asyncio.timeout(give_up):
                    permit = await permit_of(limiter)
                    under_way += 1
                    assert under_way <= most
                    responses = []
                    try:
                        await asyncio.sleep(take)
                        responses = [replies[end]]
                    finally:
                        under_way -= 1
                        limiter.release(permit, responses)

        async with asyncio.timeout(100_000), asyncio.TaskGroup() as group:
            for run in runs:
                group.create_task(one(*run))
        # All permits were released: as many can be issued again, one after the other if needed.
        async with asyncio.timeout(100_000):
            for _ in range(50):
                limiter.release(await permit_of(limiter), [OK])

    instantly(scene())
