"""One attempt at a graph: start the run, follow it, answer what it asks, and leave nothing running."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.fields import MISSING_CALLS, objects_in
from agentv.formats.langgraph_updates import UpdateCollector, message_ids, to_langgraph
from agentv.formats.sse import SseDecoder
from agentv.jsonio import MAX_BYTES, parse_json
from agentv.model.response import ResponseError, Unread
from agentv.providers.base import attach_partial_reply
from agentv.providers.langgraph.server import (
    CANCEL_S,
    Server,
    agent_error,
    interrupted_error,
    response_error,
    status_error,
)
from agentv.providers.transport.client import HttpClient
from agentv.providers.transport.failures import TransportError, read_json, transport_error
from agentv.providers.transport.urls import merge_headers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from agentv.formats.sse import ServerEvent
    from agentv.model.conversation import Message, ToolCall
    from agentv.model.request import Request
    from agentv.model.response import ProviderResponse
    from agentv.providers.langgraph import LangGraph
    from agentv.providers.transport.client import ResponseStream
    from agentv.providers.transport.failures import HttpResponse

MAX_RAW_BYTES = 100_000
"""Largest size of the raw data that a reply keeps."""
MAX_RUN_BYTES = 1024 * 1024 * 1024
"""Bytes that the server may send for one run: every task repeats its whole input, and none of that is kept."""
_INVALID = 422
_NOTHING_TO_RESUME = ResponseError(
    kind="protocol", message="this turn resumes the graph with a value, and its thread waits for none"
)
_CANCELLED = ResponseError(kind="interrupted", message="the attempt was cancelled")
_NOT_RECORDED = Unread(
    path="run",
    reason="the server has no record of the run's events, and the states of its thread hold neither the messages of"
    f" subgraphs nor those of agents inside of nodes and tools, {MISSING_CALLS}; `stream: true` reads them",
)
_ENDED_EARLY = Unread(path="run", reason=f"the stream of its events ended before the run did, {MISSING_CALLS}")
_WITHOUT_TASKS = Unread(
    path="run",
    reason="the server cannot stream the results of tasks, and the updates of a subgraph hold the keys of its output"
    f" schema alone, {MISSING_CALLS}",
)


class LangGraphSession:
    """Open provider of a graph: its settings and an HTTP client."""

    def __init__(self, settings: LangGraph, client: HttpClient) -> None:
        self._settings = settings
        self._client = client

    @classmethod
    async def open(cls, settings: LangGraph) -> Self:
        """Create the client and return the session."""
        key = {"x-api-key": settings.api_key} if settings.api_key else {}
        client = HttpClient(headers=merge_headers(key, settings.headers), max_body_bytes=MAX_RUN_BYTES)
        await client.open()
        return cls(settings, client)

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the messages that the graph added, in a new thread unless the request names one."""
        return await GraphInvocation(self._settings, self._client, request).answer()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


class GraphInvocation:
    """One invocation of a graph, with the messages received so far."""

    def __init__(self, settings: LangGraph, client: HttpClient, request: Request) -> None:
        self._settings = settings
        self._request = request
        self._key = "messages" if settings.input_text else settings.input_key
        self._thread_id = thread_of(settings, request)
        self._server = Server(client, settings.url, settings.assistant, self._thread_id, request.headers)
        self._gathered = UpdateCollector(self._key)
        self._raw = _RawEvents()
        self._unread: dict[Unread, None] = {}
        """Reasons why calls of the graph may be missing, in order and each once."""
        self._rejected: set[str] = set()
        self._is_replayed = False
        """True if the recorded events of the current run were requested."""
        self._has_start = False
        """True if the first event of the run was received."""

    async def answer(self) -> ProviderResponse:
        """Return the reply of the graph; a failure includes the messages before it."""
        try:
            error = await self._run_to_end()
        except TransportError as failure_:
            if self._server.run_id is not None:
                await self._server.cancel()
            error = failure_.error
        except asyncio.CancelledError as cancelled:
            cancelled.add_note(self._progress())
            await self._server.cancel()
            await self._read_recorded()
            attach_partial_reply(cancelled, self._response(_CANCELLED))
            raise
        return self._response(error)

    async def _run_to_end(self) -> ResponseError | None:
        """Run the graph until it is done, and return its error."""
        settings = self._settings
        body = await self._prepare()
        if body is None:
            return _NOTHING_TO_RESUME
        answers = 0 if settings.resume is UNSET else settings.max_resumes
        error = await self._run(body)
        for _ in range(answers):
            interrupts, self._gathered.interrupts = self._gathered.interrupts, None
            if error is not None or interrupts is None:
                return error
            self._rejected |= rejected_calls(
                interrupts, settings.resume, self._gathered.response().output_messages or ()
            )
            error = await self._run(resume_body(settings, settings.resume, interrupts))
        interrupts = self._gathered.interrupts
        if error is not None or interrupts is None or (self._request.is_conversation and not answers):
            return error  # in a conversation, a further turn may answer
        return interrupted_error(interrupts, answers)

    async def _prepare(self) -> dict[str, Any] | None:
        """Return the body that starts the run, or resumes its thread; `None` if the thread waits for nothing."""
        request = self._request
        messages = new_messages(request, self._thread_id)
        known = {message["id"] for message in messages}
        state = {} if self._thread_id is None else await self._server.state()
        values = state.get("values")
        known |= message_ids(values, self._key) if isinstance(values, dict) else set()
        self._gathered = UpdateCollector(self._key, known)
        if request.resume is UNSET:
            return first_body(self._settings, request, self._thread_id, messages)
        interrupts = pending_interrupts(state)
        if interrupts is None:
            return None
        self._rejected = rejected_calls(interrupts, request.resume, request.input_messages)
        return resume_body(self._settings, request.resume, interrupts)

    async def _run(self, body: dict[str, Any]) -> ResponseError | None:
        streams = self._settings.stream
        self._is_replayed = False
        async with self._server.start(body, stream=streams) as stream:
            if not stream.is_ok:
                answer = await stream.read()
                if _rejects_tasks(answer, body):
                    self._unread[_WITHOUT_TASKS] = None
                    return await self._run({**body, "stream_mode": [*UPDATES]})
                return response_error(answer, self._settings.assistant, self._thread_id)
            self._server.read_run_ids(stream.headers)
            error = await (self._follow(stream) if streams else self._wait(stream))
        if error is None and self._gathered.interrupts is None:
            error = await self._check_status()
        self._server.run_id = None  # it has ended, so there is nothing to cancel
        return error

    async def _follow(self, stream: ResponseStream) -> ResponseError | None:
        """Read the events of a run while they come."""
        if stream.head.content_type != "text/event-stream":
            kind = stream.head.content_type or "no content type"
            msg = f"{stream.url} answered with {kind} where events were expected; is `url` that of a LangGraph server?"
            raise transport_error(msg, kind="protocol", code="malformed")
        error = None
        reader = SseDecoder(MAX_BYTES)
        try:
            async for chunk in stream:
                for event in reader.feed(chunk):
                    if self._is_replayed and not self._has_start and event.event != "metadata":
                        return None  # the record is incomplete, so the order of messages is unknown
                    error = self._on_event(event) or error
        except FormatError as broken:
            msg = f"{stream.url} sent what cannot be read: {broken}"
            raise transport_error(msg, kind="protocol", code="malformed") from None
        return error

    def _on_event(self, event: ServerEvent) -> ResponseError | None:
        mode, *namespace = event.event.split("|")
        if mode == "tasks" and namespace:  # tasks of the graph itself repeat its updates
            self._gathered.take_task(parse_json(event.data), tuple(namespace))
        if mode not in ("updates", "error", "metadata"):
            return None
        data = parse_json(event.data)
        self._raw.keep({"event": event.event, "data": data}, len(event.data))
        if mode == "error":
            return agent_error(data)
        self._has_start = self._has_start or mode == "metadata"
        if mode == "updates":
            self._gathered.take_update(data, tuple(namespace))
        elif isinstance(data, dict) and isinstance(data.get("run_id"), str):
            self._server.run_id = self._server.run_id or data["run_id"]  # where a proxy dropped the header
        return None

    async def _wait(self, stream: ResponseStream) -> ResponseError | None:
        """Wait until the run is over, then read the events that the server recorded; empty lines come until then."""
        answer = await stream.read()
        state = read_json(answer)
        self._raw.keep({"state": state}, len(answer.body))
        is_recorded, error = await self._replay()
        if is_recorded:
            return error or _state_error(state)
        self._unread[_NOT_RECORDED] = None
        for values in await self._server.history():
            self._gathered.take_state(values)  # messages that later states have replaced
        return self._take_final_state(state)

    async def _replay(self) -> tuple[bool, ResponseError | None]:
        """Read the recorded events; return whether they were there from the first on, and the error among them."""
        if self._server.run_id is None:
            return False, None
        self._is_replayed, self._has_start = True, False
        try:
            async with self._server.replay() as stream:
                if not stream.is_ok or stream.head.content_type != "text/event-stream":
                    return False, None
                error = await self._follow(stream)
        except TransportError:
            return False, None
        return self._has_start, error

    async def _read_recorded(self) -> None:
        """Read what a run that was cut off has done so far, where that was to be read at its end."""
        if self._settings.stream or self._is_replayed:
            return
        try:
            async with asyncio.timeout(CANCEL_S):
                await self._replay()
        except TimeoutError:
            pass  # keep what was read until now

    def _take_final_state(self, state: Any) -> ResponseError | None:
        error = _state_error(state)
        if error is None:
            self._gathered.take_state(state)
        return error

    async def _check_status(self) -> ResponseError | None:
        """Ask how the run ended: one that was cancelled or cut off looks like one that is done."""
        if self._server.run_id is None:
            return None
        status = await self._server.status()
        if status in ("pending", "running", "error"):
            if status != "error":
                self._unread[_ENDED_EARLY] = None
            error = self._take_final_state(await self._server.join())
            if error is not None or self._gathered.interrupts is not None:
                return error
            status = await self._server.status()
        if status != "success":
            return status_error(status)
        if _NOT_RECORDED in self._unread and (await self._server.state()).get("next"):
            self._gathered.interrupts = []  # a breakpoint, which is not in the state that was sent
        return None

    def _progress(self) -> str:
        """Describe the progress, for the message of a timeout."""
        count, node = len(self._gathered), self._gathered.last_node
        sent = f"{count} message{'s' * (count != 1)}, the last from {node!r}" if node else "no message"
        return f"the graph had sent {sent}; its thread was {self._server.thread_id}"

    def _has_answer(self) -> bool:
        return self._settings.output_key in self._gathered.state

    def _response(self, error: ResponseError | None) -> ProviderResponse:
        settings = self._settings
        if error is not None:
            error = replace(error, message=self._server.shorten(error.message))
        response = with_rejected(self._gathered.response(settings.output_key), self._rejected)
        warnings = response.warnings
        is_answered = bool(response.output_messages or response.text or self._has_answer())
        if error is None and not is_answered and self._gathered.interrupts is None:
            keys = ", ".join(self._gathered.state) or "nothing"
            hint = "name the key of the answer with `output_key`"
            warnings = (*warnings, f"the graph sent no message under {self._key!r}; it wrote {keys}: {hint}")
        return replace(
            response,
            success=error is None,
            thread_id=self._server.thread_id if self._server.is_known else None,
            raw_response=self._raw.value(),
            error=error,
            warnings=warnings,
            unread=(*response.unread, *[place for place in self._unread if self._applies(place)]),
        )

    def _applies(self, place: Unread) -> bool:
        return place != _WITHOUT_TASKS or self._gathered.has_subgraphs


class _RawEvents:
    """Raw data of the server, up to a limit."""

    def __init__(self) -> None:
        self._items: list[dict[str, Any]] = []
        self._room = MAX_RAW_BYTES
        self._left_out = 0

    def keep(self, item: dict[str, Any], size: int) -> None:
        """Add an item, if there is room."""
        if self._left_out or size > self._room:
            self._left_out += 1
            return
        self._room -= size
        self._items.append(item)

    def value(self) -> dict[str, Any] | None:
        """Return all items, and the number of those that did not fit."""
        if not self._items and not self._left_out:
            return None
        return {"events": self._items, **({"left_out": self._left_out} if self._left_out else {})}


def _state_error(state: Any) -> ResponseError | None:
    return agent_error(state["__error__"]) if isinstance(state, dict) and "__error__" in state else None


def _rejects_tasks(answer: HttpResponse, body: dict[str, Any]) -> bool:
    """Return whether a server is too old for the stream mode `tasks`."""
    return answer.status == _INVALID and b"stream_mode" in answer.body and body["stream_mode"] != [*UPDATES]


UPDATES = ("updates",)
TASKS = ("tasks",)


def thread_of(settings: LangGraph, request: Request) -> str | None:
    """Return the thread to continue; `None` for a new one, in which each turn has the whole conversation."""
    is_new = request.is_conversation and settings.conversation_mode == "full" and request.resume is UNSET
    return None if is_new else request.thread_id


def new_messages(request: Request, thread_id: str | None) -> list[dict[str, Any]]:
    """Return the messages that the thread does not have yet, with ids to recognize them in the state."""
    if request.resume is not UNSET:
        return []
    if thread_id is None:
        return to_langgraph(request.input_messages)
    return to_langgraph(request.new_messages if request.is_conversation else _new_turn(request.input_messages))


def _new_turn(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages after the last one of the assistant."""
    last = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return messages[last + 1 :]


def first_body(
    settings: LangGraph, request: Request, thread_id: str | None, messages: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the body of the request that starts a run."""
    value = request.prompt if settings.input_text else messages
    return {**_common(settings, thread_id), "input": {**settings.input, settings.input_key: value}}


def resume_body(settings: LangGraph, value: Any, interrupts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the body of the request that resumes an interrupted run with a value."""
    common = {**_common(settings, None), "if_not_exists": "reject"}
    if not interrupts:
        return {**common, "input": None}  # a breakpoint needs no answer
    ids = [item.get("id") for item in interrupts]
    # Several answers, or null, need the ids of the interrupts.
    if (len(ids) > 1 or value is None) and all(isinstance(each, str) for each in ids):
        return {**common, "command": {"resume": dict.fromkeys(ids, value)}}
    return {**common, "command": {"resume": value}}


def pending_interrupts(state: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the interrupts that a thread waits at; empty at a breakpoint, `None` if it does not wait."""
    tasks = objects_in(state.get("tasks"))
    found = [dict(item) for task in tasks for item in objects_in(task.get("interrupts"))]
    return found if found or state.get("next") else None


def _common(settings: LangGraph, thread_id: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "assistant_id": settings.assistant,
        "on_disconnect": "cancel",
        # A thread that is continued must exist; a new one would lack its messages.
        "if_not_exists": "create" if thread_id is None else "reject",
        "multitask_strategy": settings.multitask_strategy,
    }
    # With subgraphs also `tasks`: the updates of a subgraph hold only the keys of its output schema.
    body["stream_mode"] = [*UPDATES, *TASKS] if settings.subgraphs else [*UPDATES]
    body["stream_subgraphs"] = settings.subgraphs
    if not settings.stream:
        body["stream_resumable"] = True  # the server records the events, and sends them when the run is over
    optional = {
        "config": settings.config,
        "context": settings.context,
        "metadata": settings.metadata,
        "durability": settings.durability,
    }
    return {**body, **{key: value for key, value in optional.items() if value}}


_REJECTIONS = frozenset(("reject", "ignore"))
"""Answers by which a call is not carried out: LangChain's middleware has the first, the agent inbox the second."""


def rejected_calls(interrupts: Sequence[Mapping[str, Any]], answer: Any, messages: Iterable[Message]) -> set[str]:
    """Return the ids of the calls without a result that an answer to these questions rejects."""
    calls = [call for message in messages for call in message.tool_calls]
    waiting = [call for call in calls if call.output is UNSET and call.id is not None]
    rejected_ids: set[str] = set()
    for interrupt in interrupts:
        for question, decision in _questions(interrupt.get("value"), answer):
            if decision.get("type") in _REJECTIONS:
                rejected_ids |= _calls_in_question(question, [call for call in waiting if call.id not in rejected_ids])
    return rejected_ids


def with_rejected(response: ProviderResponse, rejected: Collection[str]) -> ProviderResponse:
    """Return the reply with these calls `denied`, except those whose result shows that they were carried out."""
    messages = [_denied_in(message, rejected) for message in response.output_messages or ()]
    return replace(response, output_messages=tuple(messages)) if rejected and messages else response


def _denied_in(message: Message, rejected: Collection[str]) -> Message:
    metadata = message.metadata or {}
    if message.role == "tool" and message.tool_call_id in rejected and metadata.get("status") == "error":
        return replace(message, metadata={**metadata, "status": "denied"})  # its call is in an earlier turn
    return replace(message, tool_calls=tuple([_denied(call, rejected) for call in message.tool_calls]))


def _denied(call: ToolCall, rejected: Collection[str]) -> ToolCall:
    is_carried_out = call.output is not UNSET and call.status != "error"
    return call if call.id not in rejected or is_carried_out else replace(call, status="denied")


def _questions(value: Any, answer: Any) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each question about a call with its part of the answer.

    Known are the forms of LangChain's `HumanInTheLoopMiddleware` and of the agent inbox: any other interrupt says
    nothing about calls.
    """
    questions = objects_in(value) if isinstance(value, (list, tuple)) else objects_in([value])
    answers = objects_in(answer) if isinstance(answer, (list, tuple)) else objects_in([answer])
    for question, decision in zip(questions, answers, strict=False):
        if "action_requests" in question:
            yield from zip(objects_in(question["action_requests"]), objects_in(decision.get("decisions")), strict=False)
        elif question.get("type") == "tool_approval":
            yield question, decision
        else:
            yield from ((each, decision) for each in objects_in([question.get("action_request")]))


def _calls_in_question(question: Mapping[str, Any], waiting: Sequence[ToolCall]) -> set[str]:
    if isinstance(question.get("tool_call_id"), str):
        return {call.id for call in waiting if call.id is not None and call.id == question["tool_call_id"]}
    name = question.get("name", question.get("action"))
    same = [call.id for call in waiting if call.tool == name and call.input == question.get("args")]
    return {same[-1]} if same and same[-1] is not None else set()
