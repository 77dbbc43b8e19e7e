"""How something of the user's is called: a function, a class, an object, or an agent of a library that is known."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import aclosing
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from agentv.errors import FormatError
from agentv.formats.normalize import describe_exception
from agentv.formats.objects import is_class_of
from agentv.formats.reader import is_reply_object, read_chunks, read_reply
from agentv.model.request import Request
from agentv.model.response import ProviderResponse
from agentv.process.threads import call_in_thread, raised_by_user_code
from agentv.providers.base import failure
from agentv.providers.python.agents import find_agent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Ask = Callable[[Request], Awaitable[Any]]

METHODS = ("__call__", "ainvoke", "invoke", "run")
"""What an object is asked by: the first of these that it has."""
_MESSAGES = ("messages", "input_messages")
_WHOLE = frozenset((str, dict, list, tuple, type(None), ProviderResponse))
"""What is surely there: a look at anything else takes longer than most agents' plain replies are worth."""


class Callee:
    """What is asked, once it is ready: it is loaded, and a class instantiated, when the first request comes."""

    def __init__(self, load: Callable[[], Any], args: Mapping[str, Any] | None = None) -> None:
        self._load = load
        self._args = dict(args or {})
        self._lock = asyncio.Lock()
        self._ask: Ask | None = None
        self._own: Any = None
        """What was made here, and nobody else will close."""
        self._broken: Exception | None = None
        """Why it can never be asked: nothing is imported twice only to fail again."""

    async def ask(self, request: Request) -> ProviderResponse:
        """What it returns, normalised; what it throws, unless that would end more than this run."""
        if self._ask is None and self._broken is None:
            async with self._lock:
                await self._prepare()
        if self._broken is not None:
            raise self._broken.with_traceback(None)
        assert self._ask is not None  # noqa: S101 - one or the other
        try:
            found = await self._ask(request)
            if type(found) not in _WHOLE:
                found = await settle(found)
            read = read_chunks if type(found) is Pieces else read_reply
            return read(found, request.input_messages)
        except Exception:
            raise
        except BaseException as error:
            if not raised_by_user_code(error):
                raise
            return failure("agent", describe_exception(error))

    async def close(self) -> None:
        """Let go of an instance that was made here: by its `aclose`, else by its `close`."""
        own, self._own = self._own, None
        close = getattr(own, "aclose", None) or getattr(own, "close", None)
        if callable(close):
            await settle(close() if _is_async(close) else await call_in_thread(close))

    async def _prepare(self) -> None:
        if self._ask is None and self._broken is None:
            try:
                self._ask = await self._made()
            except Exception as error:  # noqa: BLE001 - whatever its code throws, every run is told
                self._broken = error
            except BaseException as error:
                if not raised_by_user_code(error):
                    raise
                self._broken = RuntimeError(describe_exception(error))

    async def _made(self) -> Ask:
        found = await call_in_thread(self._load)
        if inspect.isclass(found) and found.__module__ != "builtins":
            make = partial(found, **self._args)
            # What belongs to an event loop is made in it; whatever else may take its time.
            self._own = make() if _is_async(_method(found)) else await call_in_thread(make)
            return bind(self._own)
        return bind(found, self._args)


def can_be_asked(thing: Any) -> bool:
    """Whether there is a way to ask a thing that is there already."""
    return find_agent(thing) is not None or (not inspect.isclass(thing) and _method(thing) is not None)


def bind(thing: Any, args: Mapping[str, Any] | None = None) -> Ask:
    """How to ask a thing; `FormatError` when there is no way."""
    ask = find_agent(thing)
    if ask is None:
        method = _method(thing)
        if method is None:
            kinds = "a function, a class, or an object with " + ", ".join(f"`{name}`" for name in METHODS)
            msg = f"a {type(thing).__name__} cannot be asked: expected {kinds}"
            raise FormatError(msg)
        if method is thing or not args:
            call = partial(method, **args) if args else method
            return partial(_ask_function, call, _wanted(call), _is_async(method))
    elif not args:
        return ask
    msg = f"`args` are for a function or a class, and this is an object of type {type(thing).__name__!r}"
    raise FormatError(msg)


async def _ask_function(call: Callable[..., Any], wanted: str, is_async: bool, request: Request) -> Any:  # noqa: FBT001 - bound once
    if wanted == "request":
        argument: Any = _own(request)
    else:
        argument = list(to_builtins(request.input_messages)) if wanted == "messages" else request.prompt
    if not is_async:
        return await call_in_thread(call, argument)
    found = call(argument)
    return await found if inspect.iscoroutine(found) else found


def _own(request: Request) -> Request:
    """The request as somebody may have it who writes into it: other repetitions and targets are asked the same."""
    plain = all(
        type(each.content) is str and not each.tool_calls and not each.metadata for each in request.input_messages
    )
    return request if plain and not request.vars else deepcopy(request)


class Pieces(list[Any]):
    """All that was yielded, once it has come to its end."""


async def settle(found: Any) -> Any:
    """Return what was returned once all of it is there: awaited, or taken piece by piece."""
    if inspect.isawaitable(found):
        found = await found
        if type(found) in _WHOLE:
            return found
    if is_class_of(found, "RunResultStreaming", "agents"):
        async for _ in found.stream_events():
            pass
        return found
    if hasattr(type(found), "__aiter__"):
        # A run that is over may be walked again, and yields nothing then.
        return found if is_reply_object(found) else await _collect(found)
    if isinstance(found, Iterator):
        return Pieces(await call_in_thread(list, found))
    return found


async def _collect(pieces: Any) -> Pieces:
    if not hasattr(pieces, "aclose"):
        return Pieces([piece async for piece in pieces])
    async with aclosing(pieces):  # whatever happens, its own `finally` comes now and not some day
        return Pieces([piece async for piece in pieces])


def _method(thing: Any) -> Any:
    """What an object, or one of this class, is asked by; `None` when it has nothing of the kind."""
    is_class = inspect.isclass(thing) and thing.__module__ != "builtins"
    if not is_class and callable(thing):
        return thing  # itself, for its signature says more than that of its `__call__`
    cls = thing if is_class else type(thing)
    for name in METHODS:
        if any(name in each.__dict__ for each in cls.__mro__ if each is not object):
            return getattr(thing, name)
    return None


def _is_async(call: Any) -> bool:
    """Whether calling it only begins: it is trusted not to block the event loop."""
    while isinstance(call, partial):
        call = call.func
    called = getattr(call, "__call__", None)  # noqa: B004 - an object whose call is asynchronous
    return any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in (call, called))


def _wanted(function: Callable[..., Any]) -> str:
    """What it is given, by its first parameter: the whole request, the messages, or the prompt."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C: it does not say
        return "prompt"
    first = next(iter(parameters.values()), None)
    if first is None:
        msg = "the function takes no argument: its first parameter is the prompt, the `messages` or the `request`"
        raise FormatError(msg)
    if first.name == "request" or first.annotation in (Request, "Request", "agentv.Request"):
        return "request"
    return "messages" if first.name in _MESSAGES else "prompt"
