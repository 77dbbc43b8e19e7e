"""Work that takes long, done where nobody has to wait for it."""

import sys
from collections.abc import Awaitable, Callable

from agentv.model.result import EvaluatorResult

Finding = EvaluatorResult | Awaitable[EvaluatorResult]


def away(work: Callable[[], EvaluatorResult]) -> Finding:
    """The work in a thread, so that the cases in this thread's event loop go on; without such a loop, here and now."""
    if "asyncio" not in sys.modules:  # five times the cost of bare Python, and then no loop can be running
        return work()
    import asyncio  # noqa: PLC0415 - it is there already

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    return asyncio.to_thread(work)
