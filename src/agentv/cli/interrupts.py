"""Signals, and the watchdog of the event loop.

A thread receives the signals (by `signal.set_wakeup_fd`), because an agent may block the event loop: the first signal
stops the execution in order, the second one ends it at once, also if the event loop never runs again. The same thread
notices a blocked event loop and interrupts the agent that blocks it.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread, current_thread, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

import click

from agentv.exit_codes import ExitCode
from agentv.process import orphans
from agentv.providers.python.exits import exit_process, running_agents
from agentv.providers.python.printing import is_captured
from agentv.providers.python.tracebacks import BlockedLoopError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from agentv.run.engine import Engine

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
TICK_S = 0.2
FORCE_AFTER_S = 10.0
"""Time from the second signal to a forced end: programs get 2 s to end and 5 s to be killed."""
STUCK_AFTER_S = 1.0
"""Time that an agent may block the event loop after the second signal."""
WARN_AFTER_S = 5.0
"""Time after which a blocked event loop is reported."""
UNBLOCK_S = 10.0
"""Time from the first attempt to interrupt an agent that blocks the event loop to a forced end."""


@contextmanager
def handled_interrupts() -> Iterator[Callable[[Engine], None]]:
    """Handle signals and blocked event loops during an execution; yield the function that takes its engine."""
    if sys.platform == "win32" or current_thread() is not main_thread():
        yield lambda engine: None  # noqa: ARG005 - Windows and other threads keep the behaviour of Python
        return
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    interrupts = Interrupts(read)
    before = {number: signal.signal(number, interrupts.on_signal) for number in _handled()}
    before[interrupts.poke] = signal.signal(interrupts.poke, interrupts.on_poke)
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    thread = Thread(target=interrupts.watch, daemon=True, name="agentv-interrupts")
    thread.start()
    try:
        yield interrupts.start
    finally:
        interrupts.is_over = True
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(write)
        thread.join()
        os.close(read)


def _handled() -> list[int]:
    numbers = [getattr(signal, name) for name in SIGNALS]
    # `nohup` and shells ignore some signals for their children on purpose.
    return [number for number in numbers if signal.getsignal(number) not in (signal.SIG_IGN, None)]


class Interrupts:
    """State of the signals and of the event loop, for the thread that watches both."""

    def __init__(self, descriptor: int) -> None:
        self.is_over = False
        self.poke: int = getattr(signal, "SIGRTMIN", signal.SIGUSR1 - 1) + 1
        """Signal that interrupts a blocking call in the main thread; `SIGUSR1` where there is no other."""
        self._descriptor = descriptor
        self._count = 0
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ticks = 0
        self._blocked_s = 0.0
        """Time that the event loop has been blocked, as far as this thread itself was running."""
        self._force_at: float | None = None
        self._has_warned = False

    def start(self, engine: Engine) -> None:
        """Begin to watch the running event loop, and stop this engine when a signal comes."""
        self._engine, self._loop = engine, asyncio.get_running_loop()
        if self._count:  # it came before there was anything to stop
            self._stop()
        self._tick()

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal in the main thread: before the execution starts, it ends the command."""
        del number, frame
        if self._engine is None:
            raise KeyboardInterrupt
        self._interrupt_agent()

    def on_poke(self, number: int, frame: FrameType | None) -> None:
        """Interrupt the agent that the main thread is running, if the event loop is still blocked."""
        del number, frame
        self._interrupt_agent()

    def _interrupt_agent(self) -> None:
        if self.is_blocked and is_captured():
            duration, self._blocked_s = self._blocked_s, 0.0
            raise BlockedLoopError(duration)

    @property
    def is_blocked(self) -> bool:
        """True if the event loop has not run for a while."""
        return self._blocked_s >= 2 * TICK_S

    def _is_stuck(self) -> bool:
        """Return whether an agent blocks the event loop, so that nothing in it can end in order."""
        return self._blocked_s >= STUCK_AFTER_S and _agent_place() is not None

    def watch(self) -> None:
        """Receive signals and watch the event loop, until the execution is over."""
        state: tuple[int, object] = (0, None)
        last = monotonic()
        while not self.is_over:
            if select.select([self._descriptor], [], [], TICK_S)[0]:
                data = os.read(self._descriptor, 100)
                if not data:
                    return
                for number in data:
                    if number != self.poke:
                        self._receive()
            now = monotonic()
            # A process that was stopped has not blocked its loop, nor have several tasks one after the other.
            before, state = state, (self._ticks, self._current_task())
            self._blocked_s = self._blocked_s + min(now - last, 2 * TICK_S) if state == before else 0.0
            last = now
            if self._force_at is not None and (now >= self._force_at or self._is_stuck()):
                _end_now("Stopped: something did not end in time.")
            if self._loop is not None and self.is_blocked:
                self._unblock()

    def _current_task(self) -> object:
        """Return the task that the event loop is running; `None` if it waits, or if it cannot be determined."""
        if self._loop is not None:
            with suppress(Exception):  # private state of the loop, read from another thread
                return asyncio.current_task(self._loop)
        return None

    def _receive(self) -> None:
        """Take note of a signal."""
        self._count += 1
        if self._engine is None:
            return  # the handler in the main thread ends the command
        if self._count > 2 or (self._count == 2 and self.is_blocked):  # noqa: PLR2004 - the second signal
            _end_now("Stopped.")
        if self._count == 2:  # noqa: PLR2004 - as above
            self._force_at = monotonic() + FORCE_AFTER_S
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the execution is over
                self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        assert self._engine is not None  # noqa: S101 - set by `start`
        again = self._engine.interrupted
        self._engine.stop()
        message = (
            "Stopping now." if again else "Stopping: what is under way may finish (10 s at most); again to stop now."
        )
        with suppress(OSError):  # the terminal was closed
            click.echo(f"\n{message}", err=True)

    def _tick(self) -> None:
        self._ticks += 1
        if self._loop is not None and not self.is_over:
            self._loop.call_later(TICK_S, self._tick)

    def _unblock(self) -> None:
        """Tell that an agent blocks the event loop, and interrupt it once it has taken longer than a run may."""
        assert self._engine is not None  # noqa: S101 - set together with the loop
        place = _agent_place()
        if place is None:  # it is our own work that takes so long
            return
        limit = self._engine.shortest_timeout_s
        if self._blocked_s >= min(WARN_AFTER_S, limit) and not self._has_warned:
            self._has_warned = True
            advice = "other runs wait for it; use `def` instead of `async def`, or `workers`"
            _print(f"warning: the agent blocks the event loop at {place}: {advice}")
        if self._blocked_s >= limit + UNBLOCK_S:
            _end_now(f"The agent blocked the event loop at {place} and could not be interrupted.", ExitCode.ERROR)
        if self._blocked_s >= limit:
            signal.pthread_kill(main_thread().ident or 0, self.poke)


def _agent_place() -> str | None:
    """Return the innermost line of the main thread that an agent is executing; `None` if no agent is."""
    frame: Any = sys._current_frames().get(main_thread().ident or 0)  # noqa: SLF001 - the only way, and documented
    place = None
    while frame is not None:
        name = frame.f_code.co_filename
        if place is None and "agentv" not in frame.f_globals.get("__name__", "").split(".")[:1]:
            place = f"{os.path.basename(name)}:{frame.f_lineno}"  # noqa: PTH119 - in a thread that must not fail
        if frame.f_globals.get("__name__") == "agentv.providers.python.call":
            return place
        frame = frame.f_back
    return None


def _end_now(message: str, code: int = ExitCode.INTERRUPTED) -> NoReturn:
    """End the process with all programs that it has started; finished runs are in the store already."""
    agents = running_agents()
    running = f" Running: {'; '.join(agents)}." if agents else ""
    _print(f"{message}{running}")
    # Programs that this misses are ended by the watcher process.
    killer = Thread(target=partial(_quietly, orphans.kill_all), daemon=True)
    killer.start()
    killer.join(1.0)  # a lock of the blocked thread may be held
    exit_process(code)


def _print(message: str) -> None:
    with suppress(OSError):
        os.write(2, f"\n{message}\n".encode("utf-8", "replace"))


def _quietly(function: Callable[[], object]) -> None:
    with suppress(Exception):
        function()
