"""Bodies of the requests that start and resume a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from agentv.formats.fields import objects_in
from agentv.formats.langgraph_updates import to_langgraph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.model.conversation import Message
    from agentv.model.request import Request
    from agentv.providers.langgraph import LangGraph

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
