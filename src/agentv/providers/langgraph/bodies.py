"""Bodies of the requests that start and resume a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.formats.langgraph_updates import to_langgraph

if TYPE_CHECKING:
    from agentv.model.conversation import Message
    from agentv.model.request import Request
    from agentv.providers.langgraph import LangGraph

UPDATES = ("updates",)
TASKS = ("tasks",)


def new_messages(request: Request) -> list[dict[str, Any]]:
    """Return the messages that the thread does not have yet, with ids to recognize them in the state."""
    messages = request.input_messages
    if request.thread_id is not None:
        messages = _new_turn(messages)
    return to_langgraph(messages)


def _new_turn(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages after the last one of the assistant."""
    last = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return messages[last + 1 :]


def first_body(settings: LangGraph, request: Request, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the body of the request that starts a run."""
    value = request.prompt if settings.input_text else messages
    return {**_common(settings, request), "input": {**settings.input, settings.input_key: value}}


def resume_body(settings: LangGraph, request: Request, interrupts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the body of the request that resumes an interrupted run."""
    common = {**_common(settings, request), "if_not_exists": "reject"}
    if not interrupts:
        return {**common, "input": None}  # a breakpoint needs no answer
    ids = [item.get("id") for item in interrupts]
    # Several answers, or null, need the ids of the interrupts.
    if (len(ids) > 1 or settings.resume is None) and all(isinstance(each, str) for each in ids):
        return {**common, "command": {"resume": dict.fromkeys(ids, settings.resume)}}
    return {**common, "command": {"resume": settings.resume}}


def _common(settings: LangGraph, request: Request) -> dict[str, Any]:
    body: dict[str, Any] = {
        "assistant_id": settings.assistant,
        "on_disconnect": "cancel",
        # A thread that is continued must exist; a new one would lack its messages.
        "if_not_exists": "create" if request.thread_id is None else "reject",
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
