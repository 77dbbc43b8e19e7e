"""Agents of known libraries; a library is imported only with its first agent."""

from __future__ import annotations

import inspect
from asyncio import Lock
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from agentv.errors import FormatError
from agentv.formats.objects import is_class_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agentv.model.conversation import Message
    from agentv.model.request import ConversationMode, Request


class _AgentClass(Struct, frozen=True):
    """Class of agents, with the function that invokes them, or the class that wraps them."""

    name: str
    package: str
    module: str
    """Module of that function, loaded with the first such agent."""
    invoke: str
    is_exclusive: bool = False
    """True if the agent keeps its conversation in itself, so that requests take turns."""
    attributes: tuple[str, ...] = ()
    """Attributes that distinguish it from another class of the same name in a package of the same name."""
    has_threads: bool = False
    """True if the library can keep conversations, so that its function takes the mode of the target."""


_PACKAGE = "agentv.providers.python"
_AGENT_CLASSES = (
    _AgentClass("AbstractAgent", "pydantic_ai", f"{_PACKAGE}.agents", "ask_pydantic_ai"),
    # Other packages may be named `agents`, too.
    _AgentClass(
        "Agent", "agents", f"{_PACKAGE}.openai_agents", "ask_openai_agents", attributes=("handoffs", "model_settings")
    ),
    _AgentClass("PregelProtocol", "langgraph", f"{_PACKAGE}.langchain", "ask_graph", has_threads=True),
    _AgentClass("Runnable", "langchain_core", f"{_PACKAGE}.langchain", "ask_runnable", has_threads=True),
    _AgentClass("BaseAgent", "google.adk", f"{_PACKAGE}.adk", "AdkAgent", has_threads=True),
    _AgentClass("Runner", "google.adk", f"{_PACKAGE}.adk", "AdkAgent", has_threads=True),
    _AgentClass("App", "google.adk", f"{_PACKAGE}.adk", "AdkAgent", has_threads=True),
    _AgentClass("MultiStepAgent", "smolagents", f"{_PACKAGE}.libraries", "SmolAgent"),
    _AgentClass("BaseWorkflowAgent", "llama_index", f"{_PACKAGE}.libraries", "ask_llama_index"),
    _AgentClass("AgentWorkflow", "llama_index", f"{_PACKAGE}.libraries", "ask_llama_index"),
    _AgentClass(
        "Agent", "strands", f"{_PACKAGE}.libraries", "ask_strands", is_exclusive=True, attributes=("invoke_async",)
    ),
    _AgentClass("Agent", "agno", f"{_PACKAGE}.libraries", "ask_agno", attributes=("arun",)),
    _AgentClass("Team", "agno", f"{_PACKAGE}.libraries", "ask_agno", attributes=("arun",)),
    _AgentClass("BaseChatAgent", "autogen_agentchat", f"{_PACKAGE}.libraries", "ask_autogen", is_exclusive=True),
    _AgentClass("BaseGroupChat", "autogen_agentchat", f"{_PACKAGE}.libraries", "ask_autogen", is_exclusive=True),
    _AgentClass("BaseAgent", "agent_framework", f"{_PACKAGE}.libraries", "ask_agent_framework", attributes=("run",)),
    _AgentClass("Agent", "haystack", f"{_PACKAGE}.libraries", "ask_haystack", attributes=("run",)),
    _AgentClass("ChatCompletionAgent", "semantic_kernel", f"{_PACKAGE}.libraries", "ask_semantic_kernel"),
    _AgentClass("Module", "dspy", f"{_PACKAGE}.libraries", "ask_dspy"),
    _AgentClass("Crew", "crewai", f"{_PACKAGE}.libraries", "CrewTarget", attributes=("kickoff",)),
    _AgentClass("Agent", "crewai", f"{_PACKAGE}.libraries", "CrewTarget", attributes=("kickoff",)),
)
"""Known classes; the first that matches is used."""


def find_agent(agent: Any, mode: ConversationMode = "full") -> Callable[[Request], Awaitable[Any]] | None:
    """Return the function that invokes an agent of a known library; `None` for other objects.

    It raises `FormatError` if the agent shall keep conversations and its library cannot.
    """
    agent_class = next((agent_class for agent_class in _AGENT_CLASSES if _matches(agent, agent_class)), None)
    if agent_class is None:
        return None
    if mode == "thread" and not agent_class.has_threads:
        instead = "leave out `conversation: thread`, and each turn sends the whole conversation"
        msg = f"an agent of {agent_class.package} keeps no thread that could be named here: {instead}"
        raise FormatError(msg)
    options = {"mode": mode} if agent_class.has_threads else {}
    invoke: Callable[..., Any] = getattr(import_module(agent_class.module), agent_class.invoke)
    if isinstance(invoke, type):
        ask: Callable[[Request], Awaitable[Any]] = invoke(agent, **options)
    elif agent_class.is_exclusive:
        ask = ExclusiveAgent(invoke, agent)
    else:
        ask = partial(invoke, agent, **options)
    return ask if agent_class.has_threads else partial(_ask_unresumed, ask)


async def _ask_unresumed(ask: Callable[[Request], Awaitable[Any]], request: Request) -> Any:
    reject_resume(request)
    return await ask(request)


def _matches(agent: Any, agent_class: _AgentClass) -> bool:
    return is_class_of(agent, agent_class.name, agent_class.package) and all(
        hasattr(agent, mark) for mark in agent_class.attributes
    )


class ExclusiveAgent:
    """Agent that keeps its conversation in itself and takes one request at a time."""

    def __init__(self, invoke: Callable[[Any, Request], Awaitable[Any]], agent: Any) -> None:
        self._ask = invoke
        self._agent = agent
        self._lock = Lock()

    async def __call__(self, request: Request) -> Any:
        """Invoke the agent once no other request is running."""
        async with self._lock:
            return await self._ask(self._agent, request)


async def ask_pydantic_ai(agent: Any, request: Request) -> Any:
    """Run an agent with the earlier messages as its history, and system messages as instructions."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415 - the agent's own library, loaded before

    from agentv.formats.pydantic_ai import to_pydantic_ai  # noqa: PLC0415 - only such an agent needs it

    reject_blocks(request.input_messages)
    messages = list(request.input_messages)
    options: dict[str, Any] = {}
    instructions = [message.text for message in messages if message.role in ("system", "developer")]
    if instructions and "instructions" in inspect.signature(agent.run).parameters:
        # In a history they would replace those of the agent.
        options["instructions"] = "\n\n".join(instructions)
        messages = [message for message in messages if message.role not in ("system", "developer")]
    prompt = messages.pop().text if messages and messages[-1].role == "user" else None
    history = ModelMessagesTypeAdapter.validate_python(to_pydantic_ai(messages)) if messages else None
    return await agent.run(prompt, message_history=history, **options)


def only_prompt(request: Request) -> str:
    """Return the prompt of a request; raise `FormatError` if it has other messages, which the agent cannot take."""
    reject_blocks(request.input_messages)
    if len(request.input_messages) != 1 or request.input_messages[0].role != "user":
        reason = f"the input has {len(request.input_messages)} messages and this agent takes one text of the user's"
        msg = f"{reason}: write a function that hands them to the agent"
        raise FormatError(msg)
    return request.prompt


def text_turns(request: Request, roles: Sequence[str] = ("system", "user", "assistant")) -> list[tuple[str, str]]:
    """Return the conversation as pairs of role and text; raise `FormatError` unless the user has the last one."""
    reject_blocks(request.input_messages)
    turns = [(message.role, message.text) for message in request.input_messages]
    unsupported = next((role for role, _ in turns if role not in roles), None)
    if unsupported is not None:
        msg = f"the input has a message of role {unsupported!r}: write a function that hands it to the agent"
        raise FormatError(msg)
    if any(message.tool_calls for message in request.input_messages):
        msg = "the input has earlier calls: write a function that hands them to the agent"
        raise FormatError(msg)
    if not turns or turns[-1][0] != "user":
        msg = "the input does not end with a message of the user's: write a function that hands it to the agent"
        raise FormatError(msg)
    return turns


def reject_resume(request: Request) -> None:
    """Raise `FormatError` for a turn that resumes an agent of a library for which this is not known."""
    if request.resume is not UNSET:
        msg = "this turn resumes the agent with a value, which it cannot be handed: write a function with `resume`"
        raise FormatError(msg)


def reject_blocks(messages: Sequence[Message]) -> None:
    """Raise `FormatError` for content that is no text, because the agent would not receive it."""
    for message in messages:
        for block in message.content if isinstance(message.content, list) else ():
            if not isinstance(block.get("text"), str):
                agent_class = block.get("type", "unknown")
                msg = f"the input has a block of type {agent_class!r}: write a function that hands it to the agent"
                raise FormatError(msg)
