"""The requests by which a run begins and goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.formats.langgraph_updates import to_langgraph

if TYPE_CHECKING:
    from agentv.model.conversation import Message
    from agentv.model.request import Request
    from agentv.providers.langgraph import LangGraph

UPDATES = ("updates",)
TASKS = ("tasks",)


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
    # With subgraphs, the results of tasks too: the updates of a subgraph hold the keys of its output schema alone.
    body["stream_mode"] = [*UPDATES, *TASKS] if settings.subgraphs else [*UPDATES]
    body["stream_subgraphs"] = settings.subgraphs
    if not settings.stream:
        body["stream_resumable"] = True  # the server records the events, and sends them when the run is over
    own = {
        "config": settings.config,
        "context": settings.context,
        "metadata": settings.metadata,
        "durability": settings.durability,
    }
    return {**body, **{key: value for key, value in own.items() if value}}
