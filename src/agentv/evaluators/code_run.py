"""A check's program run to its end: what it reads, what contains it, and what its end means."""

from __future__ import annotations

import asyncio
import math
import signal
from typing import TYPE_CHECKING, Any

from agentv.errors import EvaluationError, FormatError
from agentv.jsonio import dump_json, parse_json, scrub_text
from agentv.process import Command, Dialogue, run
from agentv.process.limits import Limits, limited
from agentv.process.output import Output

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.evaluators.code import Code
    from agentv.process import Finished
    from agentv.protocols import Context

SCHEMA = "agentv.context/1"
_MAX_LINE = 300
_LEFT_OUT = frozenset((
    *("success", "text", "output_messages", "trace", "trace_ref", "trace_summary", "error", "warnings"),
    *("unread", "echo_end"),
))  # fmt: skip
"""Fields of the reply that stand beside it, or mean nothing where there is a usable one."""


def context_json(ctx: Context, config: dict[str, Any]) -> bytes:
    """What the program reads."""
    response = ctx.response
    return dump_json(
        {
            "schema": SCHEMA,
            "case": ctx.case,
            "candidate": ctx.candidate,
            "output_messages": ctx.output_messages,
            "trace": ctx.trace,
            "trace_summary": ctx.trace_summary,
            "calls": ctx.calls,
            "calls_source": ctx.calls_source,
            "calls_complete": ctx.calls_complete,
            "unread": ctx.unread,
            "response": {name: getattr(response, name) for name in response.__struct_fields__ if name not in _LEFT_OUT},
            "expected_messages": ctx.expected_messages,
            "config": config,
        }
    )


async def ask(code: Code, command: tuple[str, ...], folder: str, ctx: Context) -> Any:
    """What the program printed, as data; `EvaluationError` when that is no verdict."""
    heard = _Capped(code.limits.output_bytes)
    dialogue = Dialogue(heard.feed)
    dialogue.stderr = complained = _Capped(code.limits.output_bytes)
    dialogue.say(context_json(ctx, code.config))
    dialogue.hang_up()
    started = Command(arguments=limited(command, _limits(code)), folder=folder, env=code.variables(folder), grace_s=0.5)
    work = asyncio.create_task(run(started, dialogue))
    heard.on_full = complained.on_full = work.cancel
    deadline = asyncio.timeout(code.timeout_s)
    try:
        async with deadline:
            done = await work
    except TimeoutError:
        _fail(f"the program did not end within {code.timeout_s:g} s", complained)
    except asyncio.CancelledError:
        if not (heard.is_full or complained.is_full):
            raise
        stream = "stdout" if heard.is_full else "stderr"
        _fail(f"the program printed more than {code.limits.output_bytes:,} bytes on {stream}")
    except OSError as error:
        _fail(f"{command[0]!r} cannot be started: {error.strerror or error}")
    return _verdict(done, heard, complained)


class _Capped(Output):
    """A stream that has somebody called when there is more than it should hold."""

    __slots__ = ("_left", "on_full")

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._left = limit
        self.on_full: Callable[[], object] = lambda: None

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        super().feed(data)
        was_full = self.is_full
        self._left -= len(data)
        if self.is_full and not was_full:
            self.on_full()

    @property
    def is_full(self) -> bool:
        """Whether there was more than the limit."""
        return self._left < 0


def _limits(code: Code) -> Limits:
    limits = code.limits
    return Limits(
        cpu_s=limits.cpu_s or math.ceil(code.timeout_s) + 1,
        memory_mb=limits.memory_mb,
        file_mb=limits.file_mb,
        open_files=limits.open_files,
        processes=limits.processes,
    )


def _verdict(done: Finished, heard: Output, complained: Output) -> Any:
    if done.signal is not None:
        _fail(f"the program was ended by {_signal_name(done.signal)}", complained)
    if done.exit_code:
        _fail(f"the program ended with exit code {done.exit_code}", complained)
    printed = heard.value().strip()
    if not printed:
        _fail("the program printed nothing on stdout; expected a JSON object with a `score`", complained)
    try:
        return parse_json(printed)
    except FormatError as error:
        _fail(f"what the program printed on stdout is {error}", complained)


def _fail(message: str, complained: Output | None = None) -> Any:
    """End with this message and the last line of stderr, which says most."""
    lines = complained.last_words().splitlines() if complained else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    cut = last if len(last) <= _MAX_LINE else f"{last[:_MAX_LINE]}…"
    raise EvaluationError(f"{message}: {scrub_text(cut)}" if cut else message)


def _signal_name(number: int) -> str:
    names = {"SIGXCPU": "SIGXCPU (its processor time was over)", "SIGXFSZ": "SIGXFSZ (a file became too large)"}
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return names.get(name, name)
