"""Agents of libraries that are known, asked in the way that each of them wants; none of them is imported before."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from agentv.formats.objects import is_class_of
from agentv.providers.python.turns import refuse_blocks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agentv.model.request import Request


def find_agent(thing: Any) -> Callable[[Request], Awaitable[Any]] | None:
    """How to ask an agent of a library; `None` when it is none."""
    if is_class_of(thing, "AbstractAgent", "pydantic_ai"):
        return partial(_ask_pydantic_ai, thing)
    # Many a project calls a package of its own `agents`.
    if is_class_of(thing, "Agent", "agents") and hasattr(thing, "handoffs") and hasattr(thing, "model_settings"):
        return partial(_ask_openai_agents, thing)
    if is_class_of(thing, "Runnable", "langchain_core"):
        from agentv.providers.python import langchain  # noqa: PLC0415 - only such an agent needs it

        is_graph = is_class_of(thing, "PregelProtocol", "langgraph")
        return partial(langchain.ask_graph if is_graph else langchain.ask_runnable, thing)
    return None


async def _ask_pydantic_ai(agent: Any, request: Request) -> Any:
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415 - the agent's own library, loaded before

    from agentv.formats.pydantic_ai import to_pydantic_ai  # noqa: PLC0415 - only such an agent needs it

    refuse_blocks(request.input_messages)
    messages = list(request.input_messages)
    options: dict[str, Any] = {}
    told = [message.text for message in messages if message.role in ("system", "developer")]
    if told and "instructions" in inspect.signature(agent.run).parameters:
        # In a history they would take the place of the agent's own.
        options["instructions"] = "\n\n".join(told)
        messages = [message for message in messages if message.role not in ("system", "developer")]
    prompt = messages.pop().text if messages and messages[-1].role == "user" else None
    history = ModelMessagesTypeAdapter.validate_python(to_pydantic_ai(messages)) if messages else None
    return await agent.run(prompt, message_history=history, **options)


async def _ask_openai_agents(agent: Any, request: Request) -> Any:
    from agents import Runner  # noqa: PLC0415 - the agent's own library, loaded before

    from agentv.formats.openai_agents import to_openai_items  # noqa: PLC0415 - only such an agent needs it

    refuse_blocks(request.input_messages)
    return await Runner.run(agent, to_openai_items(request.input_messages))  # type: ignore[arg-type]  # as dicts
