"""A function of somebody's, called where it can neither hold up the event loop nor be waited for in vain."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import Any


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns; when this is cancelled, its thread is left to itself.

    `asyncio.to_thread` would be waited for at the end: a function that hangs could then never be given up.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.done():  # given up meanwhile
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
        except StopIteration as stop:  # a future refuses to carry one
            error = RuntimeError(f"StopIteration: {stop.value}")
        except GeneratorExit:  # whoever awaits one is not told but ended
            error = RuntimeError("GeneratorExit")
        except BaseException as caught:  # noqa: BLE001 - whatever it is, it belongs to whoever asked for the result
            error = caught
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop.call_soon_threadsafe(settle, result, error)

    context = copy_context()
    Thread(target=call, daemon=True).start()
    return await done


def is_its_own(error: BaseException) -> bool:
    """Whether code of somebody's itself threw what ends a program or a task, and so ended nothing but its own work."""
    if isinstance(error, SystemExit):
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # there is no loop any more: what is left of it is being cleared away
        return False
    return task is not None and not task.cancelling()
