"""A coroutine begun at once: one that never waits needs no clock, which would cost more than a quick reply does."""

from __future__ import annotations

from types import coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Coroutine, Generator

T = TypeVar("T")


async def within(deadline: asyncio.Timeout, work: Awaitable[T]) -> T:
    """What the work comes to; the deadline holds from the first time that it waits for something.

    Until then nothing could interrupt it anyway.
    """
    begun: Coroutine[Any, Any, T] | None = work if hasattr(work, "send") else None  # type: ignore[assignment]  # as asked
    if begun is None:  # something else that can be awaited
        async with deadline:
            return await work
    try:
        waits_for = begun.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    async with deadline:
        return await _going_on(begun, waits_for)


@coroutine
def _going_on(work: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """The rest of what was begun, as if whoever awaits this had begun it."""
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - cancellation among them; it is for the work to decide
                waits_for = work.throw(error)
            else:
                waits_for = work.send(sent)
    except StopIteration as done:
        value: T = done.value
        return value
