"""How a provider must begin, stop and end."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv.testing.replies import fail, needs
from agentv.testing.subject import Subject, answered, apart, ask, made, within

if TYPE_CHECKING:
    from agentv.protocols import Provider
    from agentv.testing.replies import Look

A_WHILE_S = 0.3
POLL_S = 0.02


async def closing_twice_is_harmless(subject: Subject) -> str | None:
    """`close` may be called again, and before anything was opened."""
    unopened = made(subject.make)
    await within(unopened.close(), "close")
    provider = made(subject.make)
    await within(provider.open(subject.scope), "open")
    await answered(provider, subject.requests(0, "Hello"))
    await within(provider.close(), "close")
    await within(provider.close(), "close")
    return None


async def it_can_be_opened_again_in_another_loop(subject: Subject) -> str | None:
    """The same provider works again when it is opened in another event loop, as two evaluations after another do."""
    provider = made(subject.make)

    async def once() -> None:
        await within(provider.open(subject.scope), "open")
        try:
            await answered(provider, subject.requests(0, "Hello"))
        finally:
            await within(provider.close(), "close")

    for _ in range(2):
        await asyncio.to_thread(apart, once)
    return None


async def nothing_is_left_when_it_is_closed(subject: Subject) -> str | None:
    """After `close` no task and no program of its own is running."""
    tasks, programs = asyncio.all_tasks(), _programs()
    async with subject.opened() as provider:
        await answered(provider, subject.requests(0, "Hello"))
    await _look_for_leftovers(tasks, programs, subject.patience_s)
    return None


@needs("slow")
async def cancelling_ends_it_at_once(subject: Subject) -> str | None:
    """An `invoke` that is cancelled ends in time, is cancelled indeed, and leaves nothing running."""
    tasks, programs = asyncio.all_tasks(), _programs()
    async with subject.opened(subject.slow) as provider:
        invoked = asyncio.ensure_future(_bare(provider, subject))
        done, _ = await asyncio.wait({invoked}, timeout=A_WHILE_S)
        if done:
            return "not looked at: the slow target answered at once"
        invoked.cancel()
        done, _ = await asyncio.wait({invoked}, timeout=subject.patience_s)
        if not done:
            fail(f"`invoke` was cancelled and did not end within {subject.patience_s:g} s")
        if not invoked.cancelled():
            fail("`invoke` was cancelled and went on as if nothing had happened: let `CancelledError` pass")
    await _look_for_leftovers(tasks, programs, subject.patience_s)
    return None


async def _bare(provider: Provider, subject: Subject) -> None:
    request = subject.requests(0, "Hello")
    if hasattr(provider, "invoke_many"):
        await provider.invoke_many([request])
    else:
        await provider.invoke(request)


@needs("slow")
async def closing_under_way_is_harmless(subject: Subject) -> str | None:
    """`close` ends in time even while it is being asked, as when an execution is stopped."""
    provider = made(subject.slow)  # type: ignore[arg-type]  # it is there, or this would not be looked at
    await within(provider.open(subject.scope), "open")
    invoked = asyncio.ensure_future(_bare(provider, subject))
    await asyncio.sleep(A_WHILE_S)
    invoked.cancel()
    await within(provider.close(), "close", subject.patience_s)
    with suppress(asyncio.CancelledError, Exception):
        await within(invoked, "invoke", subject.patience_s)
    return None


async def every_attempt_has_a_thread_of_its_own(subject: Subject) -> str | None:
    """Two attempts without a `thread_id` are two conversations, and one that is given can be gone on with."""
    request = subject.requests(0, "Hello")
    async with subject.opened() as provider:
        first = await answered(provider, request)
        if first.thread_id is None:
            return "not looked at: this reply has no `thread_id`"
        second = await answered(provider, replace(request, attempt=2))
        if second.thread_id == first.thread_id:
            fail(f"two attempts without a `thread_id` were both answered in {first.thread_id!r}")
        # Which thread a reply names that goes on in this one is its own affair: some name each turn anew.
        await answered(provider, replace(request, thread_id=first.thread_id))
    return None


@needs("failing")
async def a_failure_leaves_it_usable(subject: Subject) -> str | None:
    """After a failure it can be asked again, and closed."""
    async with subject.opened(subject.failing) as provider:
        for _ in range(2):
            await ask(provider, subject.requests(0, "Hello"))
    return None


async def _look_for_leftovers(tasks: set[asyncio.Task[object]], programs: set[int], patience_s: float) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + patience_s
    while (left := asyncio.all_tasks() - tasks) or _programs() - programs:
        if loop.time() > until:
            names = ", ".join(sorted(repr(task.get_coro()) for task in left)) or f"programs {_programs() - programs}"
            fail(f"still running after it was closed: {names}")
        await asyncio.sleep(POLL_S)


def _programs() -> set[int]:
    """The programs that this process has started and that run; where the system does not tell, none."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            state, parent, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(parent) == os.getpid() and state != "Z":
                found.add(int(stat.parent.name))
    return found


LIFE: tuple[Look, ...] = (
    closing_twice_is_harmless,
    it_can_be_opened_again_in_another_loop,
    nothing_is_left_when_it_is_closed,
    cancelling_ends_it_at_once,
    closing_under_way_is_harmless,
    every_attempt_has_a_thread_of_its_own,
    a_failure_leaves_it_usable,
)
