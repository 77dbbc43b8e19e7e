"""Work that is started eagerly ends like work that is awaited."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentv.run.attempt import run_eagerly

Work = Callable[[], Awaitable[Any]]


async def at_once() -> str:
    return "done"


async def after_waiting() -> str:
    for _ in range(3):
        await asyncio.sleep(0)
    return await asyncio.wait_for(asyncio.sleep(0.001, "done"), 10)


async def fails_at_once() -> str:
    raise KeyError


async def fails_later() -> str:
    await asyncio.sleep(0)
    raise KeyError


async def with_others() -> str:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(asyncio.sleep(0.001, part)) for part in ("do", "ne")]
    return "".join(task.result() for task in tasks)


@pytest.mark.parametrize("work", [at_once, after_waiting, with_others])
def test_it_gives_what_the_work_gives(work: Work) -> None:
    async def main() -> Any:
        return await run_eagerly(asyncio.timeout(10), work())

    assert asyncio.run(main()) == "done"


@pytest.mark.parametrize("work", [fails_at_once, fails_later])
def test_it_throws_what_the_work_throws(work: Work) -> None:
    async def main() -> Any:
        return await run_eagerly(asyncio.timeout(10), work())

    with pytest.raises(KeyError):
        asyncio.run(main())


def test_anything_that_can_be_awaited_will_do() -> None:
    async def main() -> Any:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, "done")
        return await run_eagerly(asyncio.timeout(10), future)

    assert asyncio.run(main()) == "done"


def test_the_deadline_ends_it_and_it_may_clean_up() -> None:
    seen: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned up")

    async def main() -> bool:
        deadline = asyncio.timeout(0.01)
        with pytest.raises(TimeoutError):
            await run_eagerly(deadline, slow())
        return deadline.expired()

    assert asyncio.run(main())
    assert seen == ["cleaned up"]


def test_whoever_is_cancelled_cancels_the_work() -> None:
    seen: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def main() -> None:
        task = asyncio.create_task(run_eagerly(asyncio.timeout(10), slow()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert seen == ["cancelled"]
