"""Calls of user code: a function, a class, an object, or an agent of a known library."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import aclosing
from copy import deepcopy
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.normalize import describe_exception
from agentv.formats.objects import is_class_of
from agentv.formats.reader import is_reply_object, read_chunks, read_reply
from agentv.model.request import Request
from agentv.model.response import NOT_STARTED, PRINTED, ProviderResponse
from agentv.process.threads import call_in_thread, raised_by_user_code
from agentv.providers.base import attach_partial_reply
from agentv.providers.python.agents import find_agent
from agentv.providers.python.exits import guard_exits, release_exits
from agentv.providers.python.loading import load
from agentv.providers.python.printing import captured, redirect_output, restore_output, show_line
from agentv.providers.python.tracebacks import add_metadata, exception_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agentv.model.request import Scope

    Invoke = Callable[[Request], Awaitable[Any]]

SLOW_LOAD_S = 1.0
"""Time from which the loading of the code is reported."""
METHODS = ("__call__", "ainvoke", "invoke", "run")
"""Methods of an object; the first of these that it has is called."""
_MESSAGES = ("messages", "input_messages")
_PLAIN_TYPES = frozenset((str, dict, list, tuple, type(None), ProviderResponse))
"""Types of values that need no awaiting, checked first because this is the usual case."""


class AgentCallable:
    """Session of user code, which is loaded, and a class instantiated, with the first request."""

    def __init__(self, load: Callable[[], Any], args: Mapping[str, Any] | None = None, root: str | None = None) -> None:
        self._load = load
        self._root = root
        """Folder that the paths of files in error messages are relative to."""
        self._args = dict(args or {})
        self._lock = asyncio.Lock()
        self._call: Invoke | None = None
        self._instance: Any = None
        """Instance that was created here and must be closed here."""
        self._load_error: Exception | None = None
        """Error of loading, raised for all requests; a failed import is not repeated."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the normalized reply; an exception of user code is an error of this run."""
        try:
            return await self._invoke(request)
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            return exception_failure(error, self._root)

    async def load_code(self) -> None:
        """Load the code, and instantiate a class; an error is the reply to every request."""
        if self._call is None and self._load_error is None:
            async with self._lock:
                await self._prepare()

    @property
    def load_failure(self) -> ProviderResponse | None:
        """Reply to every request, if the code cannot be loaded."""
        return None if self._load_error is None else not_started(self._load_error, self._root)

    async def _invoke(self, request: Request) -> ProviderResponse:
        await self.load_code()
        if self._load_error is not None:
            return not_started(self._load_error, self._root)
        assert self._call is not None  # noqa: S101 - one or the other
        try:
            result = await self._call(request)
            if type(result) not in _PLAIN_TYPES:
                result = await resolve_result(result)
            read = read_chunks if type(result) is YieldedValues else read_reply
            return read(result, request.input_messages)
        except Exception:
            raise
        except BaseException as error:
            if not raised_by_user_code(error):
                raise
            return exception_failure(error, self._root)

    async def close(self) -> None:
        """Close an instance that was created here, by its `aclose` or `close`."""
        instance, self._instance = self._instance, None
        close = getattr(instance, "aclose", None) or getattr(instance, "close", None)
        if callable(close):
            await resolve_result(close() if _is_async(close) else await call_in_thread(close))

    async def _prepare(self) -> None:
        if self._call is None and self._load_error is None:
            try:
                self._call = await self._create()
            except Exception as error:  # noqa: BLE001 - raised for every run
                self._load_error = error
            except BaseException as error:
                if not raised_by_user_code(error):
                    raise
                self._load_error = RuntimeError(describe_exception(error))

    async def _create(self) -> Invoke:
        result = await call_in_thread(self._load)
        if inspect.isclass(result) and result.__module__ != "builtins":
            make = partial(result, **self._args)
            # An asynchronous class is instantiated in the event loop; others may block, so in a thread.
            self._instance = make() if _is_async(_method(result)) else await call_in_thread(make)
            return bind_agent(self._instance)
        return bind_agent(result, self._args)


def not_started(error: Exception, root: str | None) -> ProviderResponse:
    """Return the failure of every run of a target whose code could not be loaded."""
    response = exception_failure(error, root)
    assert response.error is not None  # noqa: S101 - it is a failure
    return replace(response, error=replace(response.error, retryable=False, code=NOT_STARTED))


class PythonSession(AgentCallable):
    """Code named by a target, whose output is kept with the runs and does not mix with results."""

    def __init__(self, place: str, args: Mapping[str, Any], scope: Scope, target: str = "") -> None:
        super().__init__(lambda: load(place, scope), args, scope.root)
        self._target = target
        self._place = place
        self._is_open = True
        redirect_output()
        guard_exits()

    async def load_code(self) -> None:
        """Load the code before the first request, so that this is in no latency and no time limit of a run."""
        if self._call is not None or self._load_error is not None:
            return
        start = perf_counter()
        with captured(self._place) as printed:
            try:
                await super().load_code()
            finally:
                printed.end()
        duration = perf_counter() - start
        if duration >= SLOW_LOAD_S:
            show_line(self._place, f"loaded in {duration:.1f} s, which is in no run's time")

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the normalized reply, with the text that the code printed in its metadata."""
        await self.load_code()
        with captured(run_label(request, self._target)) as printed:
            try:
                response = await super().invoke(request)
            except asyncio.CancelledError as error:
                text = printed.end()
                if text:
                    attach_partial_reply(error, ProviderResponse(metadata={PRINTED: text}))
                raise
        return add_metadata(response, PRINTED, printed.end())

    async def close(self) -> None:
        """Close an instance that was created here, and restore stdout."""
        try:
            await super().close()
        finally:
            if self._is_open:
                self._is_open = False
                restore_output()
                release_exits()


def run_label(request: Request, target: str) -> str:
    """Return the name of a run, by which the outputs of concurrent runs are told apart."""
    repeat = f" #{request.repeat + 1}" if request.repeat else ""
    return f"{request.id}{repeat}{f', {target}' if target else ''}"


def is_agent(agent: Any) -> bool:
    """Tell whether an object can be called as an agent."""
    return find_agent(agent) is not None or (not inspect.isclass(agent) and _method(agent) is not None)


def bind_agent(agent: Any, args: Mapping[str, Any] | None = None) -> Invoke:
    """Return the function that invokes an object; raise `FormatError` if there is none."""
    ask = find_agent(agent)
    if ask is None:
        method = _method(agent)
        if method is None:
            kinds = "a function, a class, or an object with " + ", ".join(f"`{name}`" for name in METHODS)
            msg = f"a {type(agent).__name__} cannot be asked: expected {kinds}"
            raise FormatError(msg)
        if method is agent or not args:
            call = partial(method, **args) if args else method
            return partial(_call_function, call, _argument_kind(call), _is_async(method))
    elif not args:
        return ask
    msg = f"`args` are for a function or a class, and this is an object of type {type(agent).__name__!r}"
    raise FormatError(msg)


async def _call_function(call: Callable[..., Any], argument_kind: str, is_async: bool, request: Request) -> Any:  # noqa: FBT001 - bound once
    if argument_kind == "request":
        argument: Any = _instance(request)
    else:
        argument = list(to_builtins(request.input_messages)) if argument_kind == "messages" else request.prompt
    if not is_async:
        return await call_in_thread(call, argument)
    result = call(argument)
    return await result if inspect.iscoroutine(result) else result


def _instance(request: Request) -> Request:
    """Copy a request if user code could modify it, because other runs use the same one."""
    plain = all(
        type(message.content) is str and not message.tool_calls and not message.metadata
        for message in request.input_messages
    )
    return request if plain and not request.vars else deepcopy(request)


class YieldedValues(list[Any]):
    """All values that a generator yielded."""


async def resolve_result(result: Any) -> Any:
    """Await a result, and collect the values of a generator."""
    if inspect.isawaitable(result):
        result = await result
        if type(result) in _PLAIN_TYPES:
            return result
    if is_class_of(result, "RunResultStreaming", "agents"):
        async for _ in result.stream_events():
            pass
        return result
    if hasattr(type(result), "__aiter__"):
        # A finished run can be iterated again, but yields nothing.
        return result if is_reply_object(result) else await _collect(result)
    if isinstance(result, Iterator):
        return YieldedValues(await call_in_thread(list, result))
    return result


async def _collect(pieces: Any) -> YieldedValues:
    if not hasattr(pieces, "aclose"):
        return YieldedValues([piece async for piece in pieces])
    async with aclosing(pieces):  # so that its `finally` blocks run now
        return YieldedValues([piece async for piece in pieces])


def _method(agent: Any) -> Any:
    """Return the method that invokes an object, or instances of a class; `None` if there is none."""
    is_class = inspect.isclass(agent) and agent.__module__ != "builtins"
    if not is_class and callable(agent):
        return agent  # its own signature is more specific than that of `__call__`
    cls = agent if is_class else type(agent)
    for name in METHODS:
        if any(name in base.__dict__ for base in cls.__mro__ if base is not object):
            return getattr(agent, name)
    return None


def _is_async(call: Any) -> bool:
    """Tell whether a callable is asynchronous, so that it is called in the event loop."""
    while isinstance(call, partial):
        call = call.func
    called = getattr(call, "__call__", None)  # noqa: B004 - an object whose call is asynchronous
    return any(inspect.iscoroutinefunction(item) or inspect.isasyncgenfunction(item) for item in (call, called))


def _argument_kind(function: Callable[..., Any]) -> str:
    """Return the argument that the first parameter of a function stands for: `request`, `messages` or `prompt`."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # functions in C have no signature
        return "prompt"
    first = next(iter(parameters.values()), None)
    if first is None:
        msg = "the function takes no argument: its first parameter is the prompt, the `messages` or the `request`"
        raise FormatError(msg)
    if first.name == "request" or first.annotation in (Request, "Request", "agentv.Request"):
        return "request"
    return "messages" if first.name in _MESSAGES else "prompt"
