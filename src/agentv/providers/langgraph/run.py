"""One attempt at a graph: start the run, follow it, answer what it asks, and leave nothing running."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.langgraph_updates import Gathered, message_ids, to_langgraph
from agentv.formats.sse import EventReader
from agentv.jsonio import MAX_BYTES, parse_json
from agentv.providers.langgraph.server import Server, agent_error, asked, ended, refused
from agentv.providers.wire import WireError, read_json, wire_error

if TYPE_CHECKING:
    from agentv.formats.sse import ServerEvent
    from agentv.model.message import Message
    from agentv.model.request import Request
    from agentv.model.response import ProviderResponse, ResponseError
    from agentv.providers.langgraph import LangGraph
    from agentv.providers.wire import Stream, Wire


MAX_RAW_BYTES = 100_000
"""How much of what the server sent a reply keeps as it was."""


class Attempt:
    """One invocation, with what has come of it so far."""

    def __init__(self, settings: LangGraph, wire: Wire, request: Request) -> None:
        self._settings = settings
        self._request = request
        self._key = "messages" if settings.input_text else settings.input_key
        self._server = Server(wire, settings.url, settings.assistant, request.thread_id)
        self._gathered = Gathered(self._key)
        self._raw = _Raw()

    async def answer(self) -> ProviderResponse:
        """The graph's reply; when it fails, the failure with all that came before."""
        try:
            error = await self._converse()
        except WireError as trouble:
            if self._server.run_id is not None:
                await self._server.cancel()
            error = trouble.error
        except asyncio.CancelledError as cancelled:
            cancelled.add_note(self._progress())
            await self._server.cancel()
            raise
        return self._response(error)

    async def _converse(self) -> ResponseError | None:
        """Run the graph until it is done, and tell what went wrong."""
        settings, request = self._settings, self._request
        messages = wire_messages(request)
        known = {message["id"] for message in messages}
        if request.thread_id is not None:
            values = (await self._server.state()).get("values")
            known |= message_ids(values.get(self._key)) if isinstance(values, dict) else set()
        self._gathered = Gathered(self._key, known)
        body = first_body(settings, request, messages)
        answers = 0 if settings.resume is UNSET else settings.max_resumes
        error = await self._run(body)
        for _ in range(answers):
            interrupts, self._gathered.interrupts = self._gathered.interrupts, None
            if error is not None or interrupts is None:
                return error
            error = await self._run(resume_body(settings, request, interrupts))
        interrupts = self._gathered.interrupts
        return error if error is not None or interrupts is None else asked(interrupts, answers)

    async def _run(self, body: dict[str, Any]) -> ResponseError | None:
        streams = self._settings.stream
        async with self._server.start(body, stream=streams) as stream:
            if not stream.is_ok:
                return refused(await stream.read(), self._settings.assistant, self._request.thread_id)
            self._server.note_place(stream.headers)
            error = await (self._follow(stream) if streams else self._wait(stream))
        if error is None and self._gathered.interrupts is None:
            error = await self._conclude()
        self._server.run_id = None  # it is over, and there is nothing to cancel
        return error

    async def _follow(self, stream: Stream) -> ResponseError | None:
        """Read the events of a run while they come."""
        if stream.head.content_type != "text/event-stream":
            kind = stream.head.content_type or "no content type"
            msg = f"{stream.url} answered with {kind} where events were expected; is `url` that of a LangGraph server?"
            raise wire_error(msg, kind="protocol", code="malformed")
        error = None
        reader = EventReader(MAX_BYTES)
        try:
            async for chunk in stream:
                for event in reader.feed(chunk):
                    error = self._take(event) or error
        except FormatError as broken:
            msg = f"{stream.url} sent what cannot be read: {broken}"
            raise wire_error(msg, kind="protocol", code="malformed") from None
        return error

    def _take(self, event: ServerEvent) -> ResponseError | None:
        mode, *namespace = event.event.split("|")
        if mode not in ("updates", "error", "metadata"):
            return None
        data = parse_json(event.data)
        self._raw.keep({"event": event.event, "data": data}, len(event.data))
        if mode == "error":
            return agent_error(data)
        if mode == "updates":
            self._gathered.take_update(data, tuple(namespace))
        elif isinstance(data, dict) and isinstance(data.get("run_id"), str):
            self._server.run_id = self._server.run_id or data["run_id"]  # where a proxy dropped the header
        return None

    async def _wait(self, stream: Stream) -> ResponseError | None:
        """Read the state that a run ends with; until then, the server sends empty lines."""
        answer = await stream.read()
        state = read_json(answer)
        self._raw.keep({"state": state}, len(answer.body))
        return self._take_end(state)

    def _take_end(self, state: Any) -> ResponseError | None:
        if isinstance(state, dict) and "__error__" in state:
            return agent_error(state["__error__"])
        self._gathered.take_state(state)
        return None

    async def _conclude(self) -> ResponseError | None:
        """Ask how the run ended: one that was cancelled or cut off looks like one that is done."""
        if self._server.run_id is None:
            return None
        status = await self._server.status()
        if status in ("pending", "running", "error"):
            error = self._take_end(await self._server.join())
            if error is not None or self._gathered.interrupts is not None:
                return error
            status = await self._server.status()
        if status != "success":
            return ended(status)
        if not self._settings.stream and (await self._server.state()).get("next"):
            self._gathered.interrupts = []  # a breakpoint, of which the state that was sent tells nothing
        return None

    def _progress(self) -> str:
        """How far it came, for whoever ran out of patience."""
        count, node = len(self._gathered), self._gathered.last_node
        sent = f"{count} message{'s' * (count != 1)}, the last from {node!r}" if node else "no message"
        return f"the graph had sent {sent}; its thread was {self._server.thread_id}"

    def _has_answer(self) -> bool:
        return self._settings.output_key in self._gathered.state

    def _response(self, error: ResponseError | None) -> ProviderResponse:
        settings = self._settings
        if error is not None:
            error = replace(error, message=self._server.shorten(error.message))
        response = self._gathered.response(settings.output_key)
        warnings = response.warnings
        if error is None and not (response.output_messages or response.text or self._has_answer()):
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
        )


class _Raw:
    """What the server sent, as it was, up to a limit."""

    def __init__(self) -> None:
        self._items: list[dict[str, Any]] = []
        self._room = MAX_RAW_BYTES
        self._left_out = 0

    def keep(self, item: dict[str, Any], size: int) -> None:
        """Keep one more piece, if there is room."""
        if self._left_out or size > self._room:
            self._left_out += 1
            return
        self._room -= size
        self._items.append(item)

    def value(self) -> dict[str, Any] | None:
        """All pieces, and how many did not fit."""
        if not self._items and not self._left_out:
            return None
        return {"events": self._items, **({"left_out": self._left_out} if self._left_out else {})}


def wire_messages(request: Request) -> list[dict[str, Any]]:
    """The messages that the thread does not have yet, each with an id by which its echo is known."""
    messages = request.input_messages
    if request.thread_id is not None:
        messages = _new_turn(messages)
    return to_langgraph(messages)


def _new_turn(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """What was said since the agent's last word."""
    last = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return messages[last + 1 :]


def first_body(settings: LangGraph, request: Request, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The request that starts a run."""
    given = request.prompt if settings.input_text else messages
    return {**_common(settings, request), "input": {**settings.input, settings.input_key: given}}


def resume_body(settings: LangGraph, request: Request, interrupts: list[dict[str, Any]]) -> dict[str, Any]:
    """The request that lets a waiting graph go on."""
    common = {**_common(settings, request), "if_not_exists": "reject"}
    if not interrupts:
        return {**common, "input": None}  # a breakpoint asks nothing
    ids = [item.get("id") for item in interrupts]
    # Several at once, and null, are taken only with the ids of what is answered.
    if (len(ids) > 1 or settings.resume is None) and all(isinstance(each, str) for each in ids):
        return {**common, "command": {"resume": dict.fromkeys(ids, settings.resume)}}
    return {**common, "command": {"resume": settings.resume}}


def _common(settings: LangGraph, request: Request) -> dict[str, Any]:
    body: dict[str, Any] = {
        "assistant_id": settings.assistant,
        "on_disconnect": "cancel",
        # A conversation that goes on must be there; an empty one in its place would lose what was said.
        "if_not_exists": "create" if request.thread_id is None else "reject",
        "multitask_strategy": settings.multitask_strategy,
    }
    if settings.stream:
        body["stream_mode"] = ["updates"]
        body["stream_subgraphs"] = settings.subgraphs
    own = {
        "config": settings.config,
        "context": settings.context,
        "metadata": settings.metadata,
        "durability": settings.durability,
    }
    return {**body, **{key: value for key, value in own.items() if value}}
