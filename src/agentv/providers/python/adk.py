"""Agents, apps and runners of Google ADK as targets."""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.adk import to_adk
from agentv.formats.normalize import failure_from_exception
from agentv.formats.objects import is_class_of
from agentv.formats.reader import read_reply
from agentv.providers.python.agents import reject_blocks, reject_resume

if TYPE_CHECKING:
    from agentv.model.request import ConversationMode, Request

_USER = "agentv"
_events: ContextVar[list[Any] | None] = ContextVar("agentv_adk_events", default=None)


class _Library(NamedTuple):
    """The parts of ADK that are used."""

    types: Any
    Event: Any
    InMemoryRunner: Any
    BasePlugin: Any


@cache
def _library() -> _Library:
    from google.adk import events, plugins, runners  # noqa: PLC0415 - the agent's own library, loaded before
    from google.genai import types  # noqa: PLC0415 - as above

    return _Library(types, events.Event, runners.InMemoryRunner, plugins.BasePlugin)


class AdkAgent:
    """Agent with its runner: in memory, or the user's own."""

    def __init__(self, thing: Any, mode: ConversationMode = "full") -> None:
        self._thing = thing
        self._mode = mode
        self._runner: Any = None

    async def __call__(self, request: Request) -> Any:
        """Run the agent and return all events: in a new session with the earlier messages, or in that of its thread."""
        reject_resume(request)
        reject_blocks(request.input_messages)
        *earlier, last = request.messages_to_send(self._mode)
        if last.role != "user" or any(message.role in ("system", "developer") for message in earlier):
            msg = (
                "ADK takes a conversation that ends with the user's message and has no system message: write a function"
            )
            raise FormatError(msg)
        runner = self._get_runner()
        session = await self._get_session(runner, request)
        await self._add_earlier(runner, session, earlier)
        events: list[Any] = []
        token = _events.set(events)
        yielded: list[Any] = []
        error = None
        try:
            async for event in self._run(runner, session, last.text):
                yielded.append(event)  # noqa: PERF401 - the events before a failure are part of the reply
        except Exception as raised:  # noqa: BLE001 - as above
            error = failure_from_exception(raised)
        finally:
            _events.reset(token)
        seen = {event.id for event in events}
        # A plugin receives the events of agents inside of tools as well, in order.
        complete = events if seen.issuperset(event.id for event in yielded) else yielded
        if not complete:
            return error
        response = replace(read_reply(complete, request.input_messages), thread_id=session.id)
        return response if error is None else replace(response, success=False, error=error.error)

    async def _get_session(self, runner: Any, request: Request) -> Any:
        """Return the session of the thread that the request continues, or else a new one."""
        service, app = runner.session_service, runner.app_name
        if self._mode == "full" or request.turn == 1 or request.thread_id is None:
            return await service.create_session(app_name=app, user_id=_USER)
        session = await service.get_session(app_name=app, user_id=_USER, session_id=request.thread_id)
        if session is None:
            msg = f"the session {request.thread_id!r} is not there any more, and its earlier turns are lost"
            raise FormatError(msg)
        return session

    def _run(self, runner: Any, session: Any, text: str) -> Any:
        types = _library().types
        message = types.Content(role="user", parts=[types.Part(text=text)])
        return runner.run_async(user_id=_USER, session_id=session.id, new_message=message)

    async def _add_earlier(self, runner: Any, session: Any, earlier: Any) -> None:
        event = _library().Event
        name = getattr(getattr(runner, "agent", None), "name", None) or "agent"
        for written in to_adk(earlier):
            author = "user" if written["author"] == "user" else name  # it takes messages of other authors for context
            await runner.session_service.append_event(session, event.model_validate({**written, "author": author}))

    def _get_runner(self) -> Any:
        if self._runner is None:
            in_memory = _library().InMemoryRunner
            if is_class_of(self._thing, "Runner", "google.adk"):
                self._runner = self._thing
            elif is_class_of(self._thing, "App", "google.adk"):
                self._runner = in_memory(app=self._thing)
            else:
                self._runner = in_memory(agent=self._thing, app_name=_USER)
            _listen(self._runner)
        return self._runner


def _listen(runner: Any) -> None:
    """Add a plugin to a runner that receives all events, including those of agents inside of tools."""

    class EventRecorder(_library().BasePlugin):  # type: ignore[misc]  # its library is not installed for type checks
        """Plugin that records the events of the current request."""

        async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
            del invocation_context
            events = _events.get()
            if events is not None:
                events.append(event)

    if runner.plugin_manager.get_plugin(_USER) is None:
        runner.plugin_manager.register_plugin(EventRecorder(name=_USER))
