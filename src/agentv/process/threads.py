"""Threads between blocking and asynchronous code."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


async def call_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a daemon thread and return its result; if this is cancelled, the thread is abandoned.

    The event loop waits at its end for threads of `asyncio.to_thread`, so a function that hangs would hang it too.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def set_done(result: Any, error: BaseException | None) -> None:
        if done.done():  # cancelled meanwhile
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def call() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = context.run(function, *arguments)
        except StopIteration as stop:  # a future cannot hold one
            error = RuntimeError(f"StopIteration: {stop.value}")
        except GeneratorExit:  # it would end the coroutine that awaits the future
            error = RuntimeError("GeneratorExit")
        except BaseException as caught:  # noqa: BLE001 - it belongs to the caller
            error = caught
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(set_done, result, error)

    context = copy_context()
    Thread(target=call, daemon=True).start()
    return await done


def run_coroutine_in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from blocking code, and return its result.

    In a thread: the event loop of the caller may be running, as in a notebook, and cannot be entered twice.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from blocking code, in another thread only if an event loop is running in this one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return run_coroutine_in_thread(work)


def raised_by_user_code(error: BaseException) -> bool:
    """Return whether user code raised this `SystemExit` or `CancelledError`, so that it ends only its own work."""
    if isinstance(error, SystemExit):
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # the loop is closed and its generators are being finalised
        return False
    return task is not None and not task.cancelling()
