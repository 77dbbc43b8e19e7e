"""Limits that processes share: shares of concurrency and rates, new users, and pauses that all observe."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pytest

from agentv.model.response import ProviderResponse, ResponseError
from agentv.protocols.stores import SharedLimit
from agentv.run import shared_limits
from agentv.run.rate_limit import Permit, RateLimiter, RateLimits
from agentv.run.shared_limits import SharedLimiters

T = TypeVar("T")


class FakeServer:
    """Answers as its fields say, and records what it was told."""

    def __init__(self, users: int = 1, rank: int = 0) -> None:
        self.answer = SharedLimit(users, rank, 0.0)
        self.paused_until = 0.0
        """End of the pause that another process has announced, in the time of the event loop."""
        self.used: list[list[str]] = []
        self.pauses: dict[str, float] = {}

    def share_limits(self, used: Sequence[str], pauses: Mapping[str, float]) -> dict[str, SharedLimit]:
        self.used.append(list(used))
        self.pauses |= pauses
        rest = max(0.0, self.paused_until - asyncio.get_running_loop().time())
        return dict.fromkeys(used, self.answer._replace(pause_s=rest))


class FakeWriter:
    error = None

    async def call(self, function: Callable[[], T]) -> T:
        return function()


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SYNC_S", 0.05), ("NOTICED_S", 0.1), ("TICK_S", 0.005)):
        monkeypatch.setattr(shared_limits, name, value)


@pytest.mark.parametrize(
    ("limit", "users", "shares"), [(4, 2, [2, 2]), (5, 2, [3, 2]), (3, 2, [2, 1]), (1, 2, [1, 0]), (2, 3, [1, 1, 0])]
)
def test_the_shares_of_all_processes_make_up_the_limit(limit: int, users: int, shares: list[int]) -> None:
    async def count(rank: int) -> int:
        limiter = RateLimiter(RateLimits(max_concurrency=limit))
        limiter.share(users, rank)
        return len([permit for _ in range(limit + 1) if (permit := limiter.try_acquire()) is not None])

    assert [asyncio.run(count(rank)) for rank in range(users)] == shares
    assert sum(shares) == limit


def test_a_rate_is_divided() -> None:
    async def third_permit_after(users: int) -> float:
        limiter = RateLimiter(RateLimits(requests_per_minute=1200))
        limiter.share(users, 0)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(3):
            permit = await limiter.acquire()
            assert isinstance(permit, Permit)
            limiter.release(permit)
        return loop.time() - began

    assert 0.09 <= asyncio.run(third_permit_after(1)) < asyncio.run(third_permit_after(3)) >= 0.29


def test_a_share_that_grows_lets_waiting_callers_go_on() -> None:
    async def run() -> None:
        limiter = RateLimiter(RateLimits(max_concurrency=1))
        limiter.share(2, 1)
        waiting = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        limiter.share(1, 0)
        assert isinstance(await waiting, Permit)

    asyncio.run(run())


async def first_permit(server: FakeServer, limits: RateLimits) -> float:
    """Return the time until a new target gets its first permit."""
    limiters = SharedLimiters(server)
    limiter = limiters.setdefault(b"settings", RateLimiter(limits))
    sharing = asyncio.create_task(limiters.run(FakeWriter()))  # type: ignore[arg-type] # no other method is called
    loop = asyncio.get_running_loop()
    began = loop.time()
    permit = limiter.try_acquire() or await limiter.acquire()
    assert isinstance(permit, Permit)
    sharing.cancel()
    return loop.time() - began


def test_whoever_is_alone_starts_at_once_and_a_second_one_when_the_first_has_noticed() -> None:
    limits = RateLimits(max_concurrency=2)
    assert asyncio.run(first_permit(FakeServer(), limits)) < 0.05
    assert asyncio.run(first_permit(FakeServer(2, 1), limits)) >= 0.1
    assert asyncio.run(first_permit(FakeServer(2, 1), RateLimits())) < 0.05, "there is nothing to divide"


def test_a_retry_after_is_announced_and_that_of_another_process_is_observed() -> None:
    async def run() -> None:
        server = FakeServer()
        limiters = SharedLimiters(server)
        limiter = limiters.setdefault(b"settings", RateLimiter(RateLimits(max_concurrency=2)))
        sharing = asyncio.create_task(limiters.run(FakeWriter()))  # type: ignore[arg-type] # as above
        permit = await limiter.acquire()
        assert isinstance(permit, Permit)
        error = ResponseError(kind="transport", message="slow", code="rate_limited", retryable=True, retry_after_s=0.3)
        limiter.release(permit, [ProviderResponse(success=False, error=error)])
        await asyncio.sleep(0.03)
        assert 0.2 < next(iter(server.pauses.values())) <= 0.3
        loop = asyncio.get_running_loop()
        began = loop.time()
        server.paused_until = began + 0.6
        await limiter.acquire()
        assert loop.time() - began >= 0.55, "another process was asked to wait longer"
        sharing.cancel()

    asyncio.run(run())


def test_a_target_that_is_not_used_is_left_to_others() -> None:
    async def run() -> list[list[str]]:
        server = FakeServer()
        limiters = SharedLimiters(server)
        limiter = limiters.setdefault(b"settings", RateLimiter(RateLimits(max_concurrency=2)))
        sharing = asyncio.create_task(limiters.run(FakeWriter()))  # type: ignore[arg-type] # as above
        permit = await limiter.acquire()
        assert isinstance(permit, Permit)
        limiter.release(permit)
        await asyncio.sleep(0.2)
        assert server.used[-1] == []
        assert isinstance(await limiter.acquire(), Permit), "and taken up again"
        sharing.cancel()
        return server.used

    assert [] in asyncio.run(run())
