"""Arguments of user code: the parameters of a function, or of a method of an object, decide what it is called with."""

from __future__ import annotations

import inspect
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, to_builtins

from agentv.errors import FormatError
from agentv.model.request import Request
from agentv.process.threads import call_in_thread
from agentv.providers.python.agents import find_agent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agentv.model.request import ConversationMode

    Invoke = Callable[[Request], Awaitable[Any]]

METHODS = ("__call__", "ainvoke", "invoke", "run")
"""Methods of an object; the first of these that it has is called."""
_MESSAGES = ("messages", "input_messages")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_EXTRAS = ("conversation_id", "thread_id", "resume")
"""Parameters beside the first that stand for fields of the request."""
_ALONE = (
    "it takes the prompt alone, so this turn came without those before it: take the `messages` or the `request`, or "
    "write `conversation: thread` and name a class, or take the `conversation_id`"
)
_NO_OWNER = (
    "with `conversation: thread` a call gets only what is new, and this one could not tell whose it is: take the "
    "`conversation_id`, the `thread_id` or the `request`, or name a class, which is then made for each conversation"
)


class BoundAgent(Struct, frozen=True):
    """Function that invokes an agent, with what a session has to know of it."""

    invoke: Invoke
    knows_conversation: bool = False
    """True if it receives the id of the conversation, so that it can keep one."""
    warning: str = ""
    """Warning about every turn but the first."""


class _Parameters(Struct, frozen=True):
    """Parameters of a function that stand for parts of a request."""

    first: str
    """Part that the first one stands for: `request`, `messages` or `prompt`."""
    extras: tuple[str, ...] = ()
    """Names of further ones."""
    needs_resume: bool = False
    """True if it cannot be called without `resume`."""


def is_agent(agent: Any) -> bool:
    """Return whether an object can be called as an agent."""
    return find_agent(agent) is not None or (not inspect.isclass(agent) and method_of(agent) is not None)


def bind_agent(
    agent: Any, args: Mapping[str, Any] | None = None, mode: ConversationMode = "full", *, is_own: bool = False
) -> BoundAgent:
    """Return the function that invokes an object; raise `FormatError` if there is none.

    `is_own` says that the object belongs to one conversation.
    """
    ask = find_agent(agent, mode)
    if ask is None:
        method = method_of(agent)
        if method is None:
            kinds = "a function, a class, or an object with " + ", ".join(f"`{name}`" for name in METHODS)
            msg = f"a {type(agent).__name__} cannot be asked: expected {kinds}"
            raise FormatError(msg)
        if method is agent or not args:
            return _bind_function(method, args or {}, mode, is_own=is_own)
    elif not args:
        return BoundAgent(ask, knows_conversation=True)
    msg = f"`args` are for a function or a class, and this is an object of type {type(agent).__name__!r}"
    raise FormatError(msg)


def _bind_function(
    method: Callable[..., Any], args: Mapping[str, Any], mode: ConversationMode, *, is_own: bool
) -> BoundAgent:
    call = partial(method, **args) if args else method
    parameters = _read_parameters(call, args)
    knows_conversation = is_own or parameters.first == "request" or "conversation_id" in parameters.extras
    has_thread = knows_conversation or "thread_id" in parameters.extras
    if mode == "thread" and not has_thread:
        raise FormatError(_NO_OWNER)
    invoke = partial(_call_function, call, parameters, is_async(method), mode)
    is_alone = mode == "full" and parameters.first == "prompt" and not has_thread
    return BoundAgent(invoke, knows_conversation, _ALONE if is_alone else "")


async def _call_function(
    call: Callable[..., Any],
    parameters: _Parameters,
    is_async: bool,  # noqa: FBT001 - bound once
    mode: ConversationMode,
    request: Request,
) -> Any:
    argument = _first_argument(parameters, mode, request)
    extras: dict[str, Any] = {name: getattr(request, name) for name in parameters.extras}
    if extras.get("resume") is UNSET:
        del extras["resume"]
        extras |= {"resume": None} if parameters.needs_resume else {}
    if not is_async:
        return await call_in_thread(
            partial(call, argument, **extras) if extras else call, *([] if extras else [argument])
        )
    result = call(argument, **extras)
    return await result if inspect.iscoroutine(result) else result


def _first_argument(parameters: _Parameters, mode: ConversationMode, request: Request) -> Any:
    if parameters.first == "request":
        return _instance(request)
    is_resumed = request.resume is not UNSET
    if is_resumed and "resume" not in parameters.extras:
        msg = "this turn resumes the agent with a value, and the function takes neither `resume` nor the `request`"
        raise FormatError(msg)
    if parameters.first == "messages":
        return list(to_builtins(request.messages_to_send(mode)))
    return "" if is_resumed else request.prompt


def _instance(request: Request) -> Request:
    """Copy a request if user code could modify it, because other runs use the same one."""
    plain = all(
        type(message.content) is str and not message.tool_calls and not message.metadata
        for message in request.input_messages
    )
    return request if plain and not (request.vars or request.headers or request.env) else deepcopy(request)


def method_of(agent: Any) -> Any:
    """Return the method that invokes an object, or instances of a class; `None` if there is none."""
    is_class = inspect.isclass(agent) and agent.__module__ != "builtins"
    if not is_class and callable(agent):
        return agent  # its own signature is more specific than that of `__call__`
    cls = agent if is_class else type(agent)
    for name in METHODS:
        if any(name in base.__dict__ for base in cls.__mro__ if base is not object):
            return getattr(agent, name)
    return None


def is_async(call: Any) -> bool:
    """Return whether a callable is asynchronous, so that it is called in the event loop."""
    while isinstance(call, partial):
        call = call.func
    called = getattr(call, "__call__", None)  # noqa: B004 - an object whose call is asynchronous
    return any(inspect.iscoroutinefunction(item) or inspect.isasyncgenfunction(item) for item in (call, called))


def takes(function: Callable[..., Any], name: str) -> bool:
    """Return whether a function or a class has a parameter of this name."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):  # functions in C have no signature
        return False


def _read_parameters(function: Callable[..., Any], args: Mapping[str, Any]) -> _Parameters:
    """Read which parts of a request the parameters of a function stand for."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # functions in C have no signature
        return _Parameters("prompt")
    if not parameters:
        msg = "the function takes no argument: its first parameter is the prompt, the `messages` or the `request`"
        raise FormatError(msg)
    first, *others = parameters.values()
    if first.name == "self" and inspect.isfunction(function):
        msg = "it is a method without its object: name the class, or the method of an object, such as `agent.run`"
        raise FormatError(msg)
    by_name = {each.name: each for each in others if each.kind in _NAMED and each.name not in args}
    extras = tuple(name for name in _EXTRAS if name in by_name)
    needs_resume = "resume" in extras and by_name["resume"].default is inspect.Parameter.empty
    if first.name == "request" or first.annotation in (Request, "Request", "agentv.Request"):
        return _Parameters("request", extras, needs_resume)
    return _Parameters("messages" if first.name in _MESSAGES else "prompt", extras, needs_resume)
