"""Serve a Python function as a program for the `cli` provider.

from agentv.agent import serve

def agent(prompt: str) -> str:
    return f"You said {prompt}"

serve(agent)
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from math import inf
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any

import msgspec

from agentv.errors import FormatError
from agentv.formats.reader import decode_response
from agentv.jsonio import dump_json, parse_json
from agentv.model.request import Request
from agentv.model.response import ProviderResponse
from agentv.process.pipes import StandardPipes, take_standard_pipes, write_all
from agentv.protocols import ConversationSession, FailedLoadSession, LoadingSession
from agentv.providers.base import failure
from agentv.providers.python import Function, PythonAgent
from agentv.providers.python.exits import exit_process
from agentv.providers.python.workers import END_ATTEMPT, LOAD_ATTEMPT, Job, WorkerRequest
from agentv.run.attempt import RetryPolicy, try_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.model.conversation import Message
    from agentv.model.request import Scope
    from agentv.protocols import ProviderSession

    _Decode = Callable[[bytes], tuple[Any, Request]]

_CHUNK = 1 << 16
_EXIT_TIMEOUT_S = 2.0
"""Time in seconds that a worker gets to exit after its stdin was closed."""
_NO_RETRIES = RetryPolicy(timeout_s=inf, retries=0, retry_timeouts=False)
"""Timeout and retries are applied by the agentv process that sends the requests."""


def serve(function: Callable[..., Any], *, max_concurrency: int = 100) -> None:
    """Answer requests from stdin on stdout, one per line, concurrently, until stdin is closed.

    The function has the same signature as one passed to `agentv.evaluate`. If it is not a coroutine function, it is
    called in threads. Its own output and that of programs it starts goes to stderr.
    """
    pipes = take_standard_pipes()
    try:
        asyncio.run(_serve(Function(function=function).session(), max_concurrency, pipes, _decode_request))
    finally:
        os.close(pipes.requests)
        os.close(pipes.replies)


def work() -> None:
    """Run as one of the `workers` of a `python` target: the first line is the job, each other line a request."""
    pipes = take_standard_pipes()
    buffer = b""
    while b"\n" not in buffer and (data := os.read(pipes.requests, _CHUNK)):
        buffer += data
    line, _, buffer = buffer.partition(b"\n")
    if not line:
        return  # stdin was closed before a job came
    job = msgspec.json.decode(line, type=Job)
    target = PythonAgent(function=job.function, args=job.args, conversation=job.conversation)
    asyncio.run(_work(target, job.scope, pipes, buffer))


async def _work(target: PythonAgent, scope: Scope, pipes: StandardPipes, buffer: bytes) -> None:
    session = await target.open(scope)
    if isinstance(session, LoadingSession):
        await session.load_code()
    await _serve(session, 1, pipes, _decode_pending_request, buffer, finish_requests=False)
    await session.close()


async def _serve(  # noqa: PLR0913 - shared by `serve` and `work`
    session: ProviderSession,
    max_concurrency: int,
    pipes: StandardPipes,
    decode: _Decode,
    buffer: bytes = b"",
    *,
    finish_requests: bool = True,
) -> None:
    loop = asyncio.get_running_loop()
    semaphore = asyncio.Semaphore(max_concurrency)
    stdin_closed: asyncio.Future[None] = loop.create_future()
    running: set[asyncio.Task[None]] = set()

    def start(lines: list[bytes]) -> None:
        for line in lines:
            if line.strip():
                task = loop.create_task(_answer(session, line, decode, semaphore, pipes.replies))
                running.add(task)
                task.add_done_callback(running.discard)

    def read() -> None:
        *lines, rest = buffer.split(b"\n")
        loop.call_soon_threadsafe(start, lines)
        while data := os.read(pipes.requests, _CHUNK):
            *lines, rest = (rest + data).split(b"\n")
            loop.call_soon_threadsafe(start, lines)
        loop.call_soon_threadsafe(start, [rest])
        loop.call_soon_threadsafe(stdin_closed.set_result, None)
        if not finish_requests:
            sleep(_EXIT_TIMEOUT_S)
            exit_process(0)  # user code may block the event loop forever

    Thread(target=read, daemon=True).start()
    await stdin_closed
    if running and not finish_requests:
        exit_process(0)  # no process reads the replies any more, and user code may never end
    if running:
        await asyncio.wait(running)


async def _answer(
    session: ProviderSession, line: bytes, decode: _Decode, semaphore: asyncio.Semaphore, replies: int
) -> None:
    try:
        wire_id, request = decode(line)
    except FormatError as error:
        wire_id, response = None, failure("protocol", f"this is no request: {error}")
    else:
        async with semaphore:
            response = await _invoke(session, request)
    with suppress(BrokenPipeError):  # the reader has exited, and stdin is about to be closed too
        write_all(replies, _reply_json(wire_id, response))


async def _invoke(session: ProviderSession, request: Request) -> ProviderResponse:
    if request.attempt == LOAD_ATTEMPT:
        load_failure = session.load_failure if isinstance(session, FailedLoadSession) else None
        return load_failure or ProviderResponse()
    if request.attempt == END_ATTEMPT:
        if isinstance(session, ConversationSession):
            await session.end_conversation(request.conversation_id)
        return ProviderResponse()
    try:
        attempts = await try_run(session, request, _NO_RETRIES, lambda: False)
    except SystemExit as error:  # exiting here would also end all other requests
        return failure("agent", f"SystemExit: {error}")
    return failure("interrupted", "stopped") if attempts is None else attempts.response


def _decode_request(line: bytes) -> tuple[Any, Request]:
    value = parse_json(line)
    if not isinstance(value, dict):
        msg = "expected an object with `id` and `input_messages`"
        raise FormatError(msg)
    wire_id, attempt, turn = value.get("id"), value.get("attempt"), value.get("turn")
    messages = _decode_messages(value.get("input_messages"))
    turn = turn if isinstance(turn, int) else 1
    conversation_id = value.get("conversation_id")
    return wire_id, Request(
        id=str(value.get("case_id") or wire_id or ""),
        input_messages=messages,
        new_messages=_decode_messages(value["new_messages"]) if "new_messages" in value else messages,
        vars=value.get("vars") or {},
        attempt=attempt if isinstance(attempt, int) else 1,
        thread_id=thread if isinstance(thread := value.get("thread_id"), str) else None,
        turn=turn,
        conversation_id=conversation_id if isinstance(conversation_id, str) else "",
        is_conversation=turn > 1,
        resume=value.get("resume", msgspec.UNSET),
    )


def _decode_messages(value: Any) -> tuple[Message, ...]:
    return decode_response({"output_messages": value or []}).output_messages or ()


def _decode_pending_request(line: bytes) -> tuple[Any, Request]:
    pending = msgspec.json.decode(line, type=WorkerRequest)
    return pending.id, pending.request


def _reply_json(wire_id: Any, response: ProviderResponse) -> bytes:
    # An empty `text` is left out by the encoder, but an empty answer is an answer.
    head = {"id": wire_id} if response.text or not response.success else {"id": wire_id, "text": ""}
    head_json, body = dump_json(head), dump_json(response)
    return head_json[:-1] + (b"," + body[1:] if body != b"{}" else b"}") + b"\n"
