"""The other side of the `cli` provider: a Python function as a program that agentv can ask.

from agentv.agent import serve

def agent(prompt: str) -> str:
    return f"You said {prompt}"

serve(agent)
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from math import inf
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentv.errors import FormatError
from agentv.formats.reader import decode_response
from agentv.jsonio import dump_json, parse_json
from agentv.model.request import Request
from agentv.providers.base import failure
from agentv.providers.python import Function, PythonAgent
from agentv.providers.python.workers import Asked, Job
from agentv.run.attempt import RetryPolicy, try_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.model.request import Scope
    from agentv.model.response import ProviderResponse
    from agentv.protocols import Provider

    _Read = Callable[[bytes], tuple[Any, Request]]

_CHUNK = 1 << 16
_LAST_S = 2.0
"""How long a worker may take to end when nobody asks it any more."""
_ONCE = RetryPolicy(timeout_s=inf, retries=0, retry_timeouts=False)
"""How long and how often to try is for agentv to say, on the other side."""


def serve(function: Callable[..., Any], *, max_concurrency: int = 100) -> None:
    """Answer requests from stdin on stdout, a line each, several at a time, until there are no more.

    The function takes and returns what a function handed to `agentv.evaluate` does. One that is not a coroutine
    function is called in threads. What it prints goes to stderr, and so does the output of programs it starts.
    """
    pipes = _take_pipes()
    try:
        asyncio.run(_serve(Function(function=function), max_concurrency, pipes, _read_request))
    finally:
        os.close(pipes.requests)
        os.close(pipes.replies)


def work() -> None:
    """Be one of the `workers` of a `python` target: told on the first line what to run, then a request a line."""
    pipes = _take_pipes()
    held = b""
    while b"\n" not in held and (data := os.read(pipes.requests, _CHUNK)):
        held += data
    line, _, held = held.partition(b"\n")
    if not line:
        return  # it is over before it began
    job = msgspec.json.decode(line, type=Job)
    asyncio.run(_work(PythonAgent(function=job.function, args=job.args), job.scope, pipes, held))


async def _work(target: PythonAgent, scope: Scope, pipes: _Pipes, held: bytes) -> None:
    await target.open(scope)
    await _serve(target, 1, pipes, _read_asked, held, is_patient=False)
    await target.close()


class _Pipes(NamedTuple):
    """The protocol's own file descriptors, which nobody else can reach by accident."""

    requests: int
    replies: int


def _take_pipes() -> _Pipes:
    """Keep stdin and stdout to ourselves, and leave an empty stdin and stderr in their places."""
    pipes = _Pipes(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    # Only now: what was printed while modules were loaded is no reply either.
    with suppress(AttributeError, OSError, ValueError):  # somebody has put another object in its place, or closed it
        sys.stdout.flush()
    sys.stdout = sys.stderr
    return pipes


async def _serve(  # noqa: PLR0913 - what it is asked and how it reads differ
    target: Provider,
    max_concurrency: int,
    pipes: _Pipes,
    read_request: _Read,
    held: bytes = b"",
    *,
    is_patient: bool = True,
) -> None:
    loop = asyncio.get_running_loop()
    gate = asyncio.Semaphore(max_concurrency)
    ended: asyncio.Future[None] = loop.create_future()
    running: set[asyncio.Task[None]] = set()

    def take(lines: list[bytes]) -> None:
        for line in lines:
            if line.strip():
                task = loop.create_task(_answer(target, line, read_request, gate, pipes.replies))
                running.add(task)
                task.add_done_callback(running.discard)

    def read() -> None:
        *lines, rest = held.split(b"\n")
        loop.call_soon_threadsafe(take, lines)
        while data := os.read(pipes.requests, _CHUNK):
            *lines, rest = (rest + data).split(b"\n")
            loop.call_soon_threadsafe(take, lines)
        loop.call_soon_threadsafe(take, [rest])
        loop.call_soon_threadsafe(ended.set_result, None)
        if not is_patient:
            sleep(_LAST_S)
            os._exit(0)  # code that never lets the loop have its turn would go on for ever, for nobody

    Thread(target=read, daemon=True).start()
    await ended
    if running and not is_patient:
        os._exit(0)  # nobody is left to be answered, and what runs may never end
    if running:
        await asyncio.wait(running)


async def _answer(target: Provider, line: bytes, read: _Read, gate: asyncio.Semaphore, replies: int) -> None:
    try:
        wire_id, request = read(line)
    except FormatError as error:
        wire_id, response = None, failure("protocol", f"this is no request: {error}")
    else:
        async with gate:
            response = await _ask(target, request)
    with suppress(BrokenPipeError):  # nobody listens any more, and stdin is about to end too
        _write(replies, _reply_json(wire_id, response))


async def _ask(target: Provider, request: Request) -> ProviderResponse:
    try:
        tried = await try_run(target, request, _ONCE, lambda: False)
    except SystemExit as error:  # a function that ends the program would take everybody else's requests with it
        return failure("agent", f"SystemExit: {error}")
    return failure("interrupted", "stopped") if tried is None else tried.response


def _read_request(line: bytes) -> tuple[Any, Request]:
    value = parse_json(line)
    if not isinstance(value, dict):
        msg = "expected an object with `id` and `input_messages`"
        raise FormatError(msg)
    messages = decode_response({"output_messages": value.get("input_messages") or []}).output_messages or ()
    wire_id, attempt, thread = value.get("id"), value.get("attempt"), value.get("thread_id")
    return wire_id, Request(
        id=str(value.get("case_id") or wire_id or ""),
        input_messages=messages,
        vars=value.get("vars") or {},
        attempt=attempt if isinstance(attempt, int) else 1,
        thread_id=thread if isinstance(thread, str) else None,
    )


def _read_asked(line: bytes) -> tuple[Any, Request]:
    asked = msgspec.json.decode(line, type=Asked)
    return asked.id, asked.request


def _reply_json(wire_id: Any, response: ProviderResponse) -> bytes:
    # `text` is left out where it is empty, but an empty answer is an answer.
    head = {"id": wire_id} if response.text or not response.success else {"id": wire_id, "text": ""}
    head_json, body = dump_json(head), dump_json(response)
    return head_json[:-1] + (b"," + body[1:] if body != b"{}" else b"}") + b"\n"


def _write(descriptor: int, data: bytes) -> None:
    """Write all of it, in one piece if the pipe takes it."""
    while data:
        data = data[os.write(descriptor, data) :]
