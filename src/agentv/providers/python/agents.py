"""Agents of libraries that are known, asked in the way that each of them wants; none of them is imported before."""

from __future__ import annotations

import inspect
from asyncio import Lock
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.formats.objects import is_class_of
from agentv.providers.python.turns import refuse_blocks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agentv.model.request import Request


class _Kind(NamedTuple):
    """A class of agents, and how they are asked: a function, or a class that is made with the agent."""

    name: str
    home: str
    module: str
    """Where it is written how to ask it: loaded with the first such agent."""
    ask: str
    is_alone: bool = False
    """Whether the agent keeps its conversation in itself, so that requests take turns."""
    marks: tuple[str, ...] = ()
    """Attributes that tell it from a class of the same name in somebody's package of the same name."""


_HERE = "agentv.providers.python"
_KINDS = (
    _Kind("AbstractAgent", "pydantic_ai", f"{_HERE}.agents", "ask_pydantic_ai"),
    # Many a project calls a package of its own `agents`.
    _Kind("Agent", "agents", f"{_HERE}.openai_agents", "ask_openai_agents", marks=("handoffs", "model_settings")),
    _Kind("PregelProtocol", "langgraph", f"{_HERE}.langchain", "ask_graph"),
    _Kind("Runnable", "langchain_core", f"{_HERE}.langchain", "ask_runnable"),
    _Kind("BaseAgent", "google.adk", f"{_HERE}.adk", "AdkAgent"),
    _Kind("Runner", "google.adk", f"{_HERE}.adk", "AdkAgent"),
    _Kind("App", "google.adk", f"{_HERE}.adk", "AdkAgent"),
    _Kind("MultiStepAgent", "smolagents", f"{_HERE}.libraries", "SmolAgent"),
    _Kind("BaseWorkflowAgent", "llama_index", f"{_HERE}.libraries", "ask_llama_index"),
    _Kind("AgentWorkflow", "llama_index", f"{_HERE}.libraries", "ask_llama_index"),
    _Kind("Agent", "strands", f"{_HERE}.libraries", "ask_strands", is_alone=True, marks=("invoke_async",)),
    _Kind("Agent", "agno", f"{_HERE}.libraries", "ask_agno", marks=("arun",)),
    _Kind("Team", "agno", f"{_HERE}.libraries", "ask_agno", marks=("arun",)),
    _Kind("BaseChatAgent", "autogen_agentchat", f"{_HERE}.libraries", "ask_autogen", is_alone=True),
    _Kind("BaseGroupChat", "autogen_agentchat", f"{_HERE}.libraries", "ask_autogen", is_alone=True),
    _Kind("BaseAgent", "agent_framework", f"{_HERE}.libraries", "ask_agent_framework", marks=("run",)),
    _Kind("Agent", "haystack", f"{_HERE}.libraries", "ask_haystack", marks=("run",)),
    _Kind("ChatCompletionAgent", "semantic_kernel", f"{_HERE}.libraries", "ask_semantic_kernel"),
    _Kind("Module", "dspy", f"{_HERE}.libraries", "ask_dspy"),
    _Kind("Crew", "crewai", f"{_HERE}.libraries", "CrewTarget", marks=("kickoff",)),
    _Kind("Agent", "crewai", f"{_HERE}.libraries", "CrewTarget", marks=("kickoff",)),
)
"""The first that fits counts."""


def find_agent(thing: Any) -> Callable[[Request], Awaitable[Any]] | None:
    """Return how to ask an agent of a library; `None` when it is none."""
    kind = next((kind for kind in _KINDS if _fits(thing, kind)), None)
    if kind is None:
        return None
    ask: Callable[..., Any] = getattr(import_module(kind.module), kind.ask)
    if isinstance(ask, type):
        made: Callable[[Request], Awaitable[Any]] = ask(thing)
        return made
    return Alone(ask, thing) if kind.is_alone else partial(ask, thing)


def _fits(thing: Any, kind: _Kind) -> bool:
    return is_class_of(thing, kind.name, kind.home) and all(hasattr(thing, mark) for mark in kind.marks)


class Alone:
    """An agent that keeps its conversation in itself: it is asked by one request at a time."""

    def __init__(self, ask: Callable[[Any, Request], Awaitable[Any]], agent: Any) -> None:
        self._ask = ask
        self._agent = agent
        self._lock = Lock()

    async def __call__(self, request: Request) -> Any:
        """Ask it when nobody else does."""
        async with self._lock:
            return await self._ask(self._agent, request)


async def ask_pydantic_ai(agent: Any, request: Request) -> Any:
    """Run an agent with the earlier messages as its history, and system messages as instructions."""
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
