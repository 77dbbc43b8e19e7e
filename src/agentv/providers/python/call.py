"""Sessions of user code: a function, a class, an object, or an agent of a known library."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.errors import AgentVError, FormatError, ProviderError
from agentv.files import load_object
from agentv.formats.normalize import describe_exception
from agentv.formats.objects import is_class_of
from agentv.formats.reader import is_reply_object, read_chunks, read_reply
from agentv.model.response import NOT_STARTED, PRINTED, ProviderResponse
from agentv.process.threads import call_in_thread, raised_by_user_code
from agentv.providers.base import attach_partial_reply
from agentv.providers.python.binding import BoundAgent, bind_agent, is_async, method_of, takes
from agentv.providers.python.exits import guard_exits, release_exits
from agentv.providers.python.printing import captured, redirect_output, restore_output, show_line
from agentv.providers.python.tracebacks import add_metadata, exception_failure
from agentv.redaction import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentv.model.request import ConversationMode, Request, Scope

SLOW_LOAD_S = 1.0
"""Time from which the loading of the code is reported."""
_PLAIN_TYPES = frozenset((str, dict, list, tuple, type(None), ProviderResponse))
"""Types of values that need no awaiting, checked first because this is the usual case."""


class AgentCallable:
    """Session of user code, which is loaded, and a class instantiated, with the first request."""

    def __init__(
        self,
        load: Callable[[], Any],
        args: Mapping[str, Any] | None = None,
        root: str | None = None,
        mode: ConversationMode = "full",
    ) -> None:
        self._load = load
        self._root = root
        """Folder that the paths of files in error messages are relative to."""
        self._args = dict(args or {})
        self._mode = mode
        self._lock = asyncio.Lock()
        self._bound: BoundAgent | None = None
        self._instance: Any = None
        """Instance that was created here and must be closed here."""
        self._conversations: dict[str, tuple[Any, BoundAgent]] = {}
        """Instance of each conversation, if each has its own."""
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
        if self._bound is None and self._load_error is None:
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
        assert self._bound is not None  # noqa: S101 - one or the other
        try:
            result = await self._bound.invoke(request)
            if type(result) not in _PLAIN_TYPES:
                result = await resolve_result(result)
            read = read_chunks if type(result) is YieldedValues else read_reply
            return self._with_thread(read(result, request.input_messages), request)
        except Exception:
            raise
        except BaseException as error:
            if not raised_by_user_code(error):
                raise
            return exception_failure(error, self._root)

    async def end_conversation(self, conversation_id: str) -> None:
        """Close the instance of a conversation, if it has its own."""
        instance, _ = self._conversations.pop(conversation_id, (None, None))
        await _close_instance(instance)

    async def close(self) -> None:
        """Close the instances that were created here, by their `aclose` or `close`."""
        instances = [self._instance, *(instance for instance, _ in self._conversations.values())]
        self._instance = None
        self._conversations.clear()
        for instance in instances:
            await _close_instance(instance)

    def _with_thread(self, response: ProviderResponse, request: Request) -> ProviderResponse:
        """Add the thread that a conversation is kept in, and the warning about a turn that came alone."""
        bound = self._bound
        if bound is None or not request.is_conversation:
            return response
        if self._mode == "thread" and bound.knows_conversation and response.thread_id is None:
            return replace(response, thread_id=request.conversation_id)
        if bound.warning and request.turn > 1:
            return replace(response, warnings=(*response.warnings, bound.warning))
        return response

    async def _prepare(self) -> None:
        if self._bound is None and self._load_error is None:
            try:
                self._bound = await self._create()
            except Exception as error:  # noqa: BLE001 - raised for every run
                self._load_error = error
            except BaseException as error:
                if not raised_by_user_code(error):
                    raise
                self._load_error = RuntimeError(describe_exception(error))

    async def _create(self) -> BoundAgent:
        result = await call_in_thread(self._load)
        if not inspect.isclass(result) or result.__module__ == "builtins":
            return bind_agent(result, self._args, self._mode)
        if self._mode == "thread":
            return BoundAgent(partial(self._call_instance, result), knows_conversation=True)
        self._instance = await _instantiate(partial(result, **self._args))
        return bind_agent(self._instance)

    async def _call_instance(self, make: type, request: Request) -> Any:
        """Call the instance of the conversation, which is made with its first turn."""
        conversation = self._conversations.get(request.conversation_id) if request.is_conversation else None
        if conversation is None:
            if request.turn > 1:
                msg = "the object that had this conversation is not there any more, and its earlier turns are lost"
                raise FormatError(msg)
            has_id = "conversation_id" not in self._args and takes(make, "conversation_id")
            own = {"conversation_id": request.conversation_id} if has_id else {}
            instance = await _instantiate(partial(make, **self._args, **own))
            conversation = instance, bind_agent(instance, mode="thread", is_own=True)
            if request.is_conversation:
                self._conversations[request.conversation_id] = conversation
        try:
            return await resolve_result(await conversation[1].invoke(request))
        finally:
            if not request.is_conversation:
                await _close_instance(conversation[0])


async def _instantiate(make: partial[Any]) -> Any:
    """Instantiate a class: an asynchronous one in the event loop, others in a thread, because they may block."""
    return make() if is_async(method_of(make.func)) else await call_in_thread(make)


async def _close_instance(instance: Any) -> None:
    close = getattr(instance, "aclose", None) or getattr(instance, "close", None)
    if callable(close):
        await resolve_result(close() if is_async(close) else await call_in_thread(close))


def not_started(error: Exception, root: str | None) -> ProviderResponse:
    """Return the failure of every run of a target whose code could not be loaded."""
    response = exception_failure(error, root)
    assert response.error is not None  # noqa: S101 - it is a failure
    return replace(response, error=replace(response.error, retryable=False, code=NOT_STARTED))


class PythonSession(AgentCallable):
    """Code named by a target, whose output is kept with the runs and does not mix with results."""

    def __init__(
        self,
        place: str,
        args: Mapping[str, Any],
        scope: Scope,
        target: str = "",
        mode: ConversationMode = "full",
    ) -> None:
        super().__init__(lambda: load(place, scope), args, scope.root, mode)
        self._target = target
        self._place = place
        self._is_open = True
        redirect_output()
        guard_exits()

    async def load_code(self) -> None:
        """Load the code before the first request, so that this is in no latency and no time limit of a run."""
        if self._bound is not None or self._load_error is not None:
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
    """Return the name of a run, which distinguishes the outputs of concurrent runs."""
    repeat = f" #{request.repeat + 1}" if request.repeat else ""
    return f"{request.id}{repeat}{f', {target}' if target else ''}"


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


_MAX_WORDS = 500


def load(place: str, scope: Scope) -> Any:
    """Import an object; raise `ProviderError` if it does not exist or its module fails."""
    try:
        return load_object(place, scope)
    except AgentVError as error:
        msg = f"{place!r} cannot be loaded: {error}"
        raise ProviderError(msg) from None
    except BaseException as error:
        msg = f"{place!r} cannot be loaded: {_error_text(error)}{_location(error, scope)}"
        raise ProviderError(msg) from error


def _error_text(error: BaseException) -> str:
    text = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    text = shorten(text, _MAX_WORDS)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _location(error: BaseException, scope: Scope) -> str:
    """Return the line that failed: the last one in the user's folder, else the last of all."""
    root = Path(scope.root).resolve()
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return _format_location(error.filename, error.lineno, (error.text or "").strip(), root)
    frames = [frame for frame in extract_tb(error.__traceback__) if Path(frame.filename).is_file()]
    own_frames = [frame for frame in frames if _is_below(frame.filename, root)] or frames[-1:]
    return (
        _format_location(own_frames[-1].filename, own_frames[-1].lineno or 0, own_frames[-1].line or "", root)
        if own_frames
        else ""
    )


def _is_below(file: str, root: Path) -> bool:
    parts = Path(file).resolve()
    return (
        parts.is_relative_to(root) and "site-packages" not in parts.parts and Path(__file__).parent not in parts.parents
    )


def _format_location(file: str, line: int, text: str, root: Path) -> str:
    path = Path(file).resolve()
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    return f" ({name}, line {line}{f': {text}' if text else ''})"
