"""Invocation of agents of further libraries; each function imports the library of its agent."""

# ruff: noqa: PLC0415 - the agent's own library, loaded before; no other is needed

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agentv.errors import FormatError
from agentv.formats.objects import plain
from agentv.formats.openai import to_openai
from agentv.process.threads import call_in_thread
from agentv.providers.python.agents import only_prompt, reject_blocks, text_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agentv.model.request import Request


class _InTurn:
    """Agent that runs in a thread and keeps state in itself, so that requests take turns."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self._lock = asyncio.Lock()

    async def _run(self, work: Callable[[], Any]) -> Any:
        """Run in a thread; the next request waits until it has ended, even if it was cancelled."""
        await self._lock.acquire()
        run = asyncio.ensure_future(call_in_thread(work))
        run.add_done_callback(self._release)
        return await asyncio.shield(run)

    def _release(self, run: asyncio.Future[Any]) -> None:
        if not run.cancelled():
            run.exception()  # retrieved even if the request was cancelled
        self._lock.release()


class SmolAgent(_InTurn):
    """Agent of smolagents, whose memory is that of its last run."""

    async def __call__(self, request: Request) -> Any:
        """Run a task."""
        prompt = only_prompt(request)
        try:
            return await self._run(lambda: self._agent.run(prompt, return_full_result=True))
        except asyncio.CancelledError:
            self._agent.interrupt()
            raise


class CrewTarget(_InTurn):
    """Crew of CrewAI, or one of its agents; models count their tokens since the start of the process."""

    async def __call__(self, request: Request) -> Any:
        """Kick it off, a crew with the prompt as the one input of its tasks."""
        prompt = only_prompt(request)
        if not hasattr(self._agent, "fetch_inputs"):
            return await self._run(lambda: self._kick_off([self._agent], prompt))
        places = sorted(self._agent.fetch_inputs())
        if len(places) != 1:
            names = ", ".join(map(repr, places)) or "none"
            msg = f"a crew is asked by the one {{placeholder}} of its tasks, and these are {names}: write a function"
            raise FormatError(msg)
        agents = [*self._agent.agents, *filter(None, [getattr(self._agent, "manager_agent", None)])]
        return await self._run(lambda: self._kick_off(agents, {places[0]: prompt}))

    def _kick_off(self, agents: Sequence[Any], inputs: Any) -> Any:
        models = {id(model): model for model in (getattr(agent, "llm", None) for agent in agents)}
        before = _tokens(models.values())
        output = plain(self._agent.copy().kickoff(inputs))
        after = _tokens(models.values())
        if not isinstance(output, dict):
            return output
        counts = None
        if before is not None and after is not None:
            counts = {name: count - before.get(name, 0) for name, count in after.items()}
        key = "usage_metrics" if "usage_metrics" in output else "token_usage"
        return {**output, key: counts}


def _tokens(models: Iterable[Any]) -> dict[str, int] | None:
    """Add up the token counts of the models so far; return `None` if one of them does not count."""
    sums: dict[str, int] = {}
    for model in models:
        summary = getattr(model, "get_token_usage_summary", None)
        if not callable(summary):
            return None
        for name, count in plain(summary()).items():
            sums[name] = sums.get(name, 0) + (count if isinstance(count, int) else 0)
    return sums


async def ask_llama_index(agent: Any, request: Request) -> Any:
    """Run an agent or a workflow of agents, and collect all of its events."""
    from llama_index.core.base.llms.types import ChatMessage

    *earlier, (_, prompt) = text_turns(request)
    history = [ChatMessage(role=role, content=text) for role, text in earlier]
    handler = agent.run(user_msg=prompt, **({"chat_history": history} if history else {}))
    events = [event async for event in handler.stream_events()]
    result = await handler
    return [*(event for event in events if type(event).__name__ != "StopEvent"), result]


async def ask_strands(agent: Any, request: Request) -> Any:
    """Invoke an agent with the messages of the request; it keeps them, and the usage of its earlier runs."""
    from strands.telemetry.metrics import EventLoopMetrics

    *earlier, (_, prompt) = text_turns(request, ("user", "assistant"))
    agent.messages = [{"role": role, "content": [{"text": text}]} for role, text in earlier]
    agent.event_loop_metrics = EventLoopMetrics()
    return await agent.invoke_async(prompt)  # its traces keep messages that the agent drops from its conversation


async def ask_agno(agent: Any, request: Request) -> Any:
    """Run an agent or a team in a new session."""
    from agno.models.message import Message

    messages = [Message(role=role, content=text) for role, text in text_turns(request)]
    input_ = messages if len(messages) > 1 else request.prompt
    return await agent.arun(input_, session_id=uuid4().hex, stream=False)


async def ask_autogen(agent: Any, request: Request) -> Any:
    """Reset and run an agent or a team."""
    from autogen_core import CancellationToken

    prompt = only_prompt(request)
    if hasattr(agent, "on_reset"):
        await agent.on_reset(CancellationToken())
    elif getattr(agent, "_initialized", True):  # a team that never ran rejects a reset
        await agent.reset()
    result = await agent.run(task=prompt)
    return {"messages": [plain(message) for message in result.messages[1:]], "stop_reason": result.stop_reason}


async def ask_agent_framework(agent: Any, request: Request) -> Any:
    """Run an agent with the conversation, and no session."""
    from agent_framework import Content, Message

    turns = text_turns(request)
    return await agent.run([Message(role=role, contents=[Content.from_text(text)]) for role, text in turns])


async def ask_haystack(agent: Any, request: Request) -> Any:
    """Run an agent with the conversation."""
    from haystack.dataclasses import ChatMessage

    reject_blocks(request.input_messages)
    messages = [ChatMessage.from_openai_dict_format(message) for message in to_openai(request.input_messages)]
    warm_up = getattr(agent, "warm_up", None)

    def run() -> Any:
        if callable(warm_up):
            warm_up()
        return agent.run(messages=messages)

    return await call_in_thread(run)


async def ask_semantic_kernel(agent: Any, request: Request) -> Any:
    """Invoke an agent, and collect the messages that its result leaves out."""
    from semantic_kernel.contents import AuthorRole, ChatMessageContent

    turns = [ChatMessageContent(role=AuthorRole(role), content=text) for role, text in text_turns(request)]
    between: list[Any] = []

    async def keep(message: Any) -> None:
        between.append(message)

    answers = [item.message async for item in agent.invoke(turns, on_intermediate_message=keep)]
    ids = {id(message) for message in between}
    return [plain(message) for message in [*between, *(answer for answer in answers if id(answer) not in ids)]]


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the required parameters."""
    parameters = inspect.signature(function).parameters.values()
    plain_kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [item.name for item in parameters if item.kind in plain_kinds and item.default is inspect.Parameter.empty]


async def ask_dspy(module: Any, request: Request) -> Any:
    """Call a module by the one input field of its signature, or the one parameter of its own `forward`."""
    fields = list(getattr(getattr(module, "signature", None), "input_fields", None) or _parameters(module.forward))
    if len(fields) != 1:
        names = ", ".join(map(repr, fields)) or "no names"
        msg = f"the input fields of this module are {names}: write a function that fills them in"
        raise FormatError(msg)
    prompt = only_prompt(request)
    return await call_in_thread(lambda: module(**{fields[0]: prompt}))
