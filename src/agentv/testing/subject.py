"""Provider under test, and the requests to it."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from agentv.errors import SpecError
from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.protocols import OpenProvider
from agentv.spec import targets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping

    from agentv.protocols import Provider

    Make = Callable[[], Provider] | Mapping[str, Any]

T = TypeVar("T")
REQUEST_TIMEOUT_S = 60.0
"""Time limit of a single request."""


class Check(NamedTuple):
    """Result of one check."""

    name: str
    status: Literal["pass", "fail", "skipped"]
    sentence: str
    """Property that holds or does not, or the reason why it was not checked."""


class Subject(NamedTuple):
    """Provider under test, with its variants and the expected replies."""

    make: Make
    expected: Callable[[Request], str] | None
    """Returns the text that the reply to a request must contain; `None` if it is unknown."""
    requests: Callable[[int, str], Request]
    """Creates a request from a number and a text."""
    failing: Make | None = None
    slow: Make | None = None
    large: Make | None = None
    odd: Make | None = None
    remembering: Make | None = None
    folder: str = "."
    patience_s: float = 5.0

    @asynccontextmanager
    async def opened(self, make: Make | None = None) -> AsyncIterator[OpenProvider]:
        """Create a provider and keep it open."""
        provider = await self.open(make_provider(make or self.make))
        try:
            yield provider
        finally:
            await finish_in_time(provider.session.close(), "close")

    async def open(self, provider: Provider) -> OpenProvider:
        """Open a provider."""
        return OpenProvider.of(provider, await finish_in_time(provider.open(self.scope), "open"))

    @property
    def scope(self) -> Scope:
        """Folders that the provider is opened with."""
        folder = os.path.abspath(self.folder)  # noqa: PTH100 - links are not resolved
        return Scope(root=folder, folder=folder)


class ConformanceError(Exception):
    """Failure of a check, as a sentence."""


def make_provider(make: Make) -> Provider:
    """Create a provider, by a function or from the settings of a target."""
    if callable(make):
        return make()
    settings = {"name": str(make.get("provider", "target")), **make}
    checked, problems = targets.check_targets([settings], None)
    if problems:
        raise SpecError(problems)
    return targets.make_provider(checked[0], os.environ)


def plain_request(number: int, text: str) -> Request:
    """Return a request with a single user message."""
    return Request(id=f"conformance-{number}", input_messages=(Message(role="user", content=text),), index=number)


async def finish_in_time(work: Awaitable[T], what: str, seconds: float = REQUEST_TIMEOUT_S) -> T:
    """Return the result of the work; raise `ConformanceError` if it does not end in time."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError as error:
        msg = f"`{what}` did not end within {seconds:g} s"
        raise ConformanceError(msg) from error


async def ask(provider: OpenProvider, request: Request) -> ProviderResponse:
    """Return the reply to a request; raise `ConformanceError` if there is none."""
    try:
        if provider.batch is not None:
            (response,) = await finish_in_time(provider.batch.invoke_many([request]), "invoke_many")
        else:
            response = await finish_in_time(provider.session.invoke(request), "invoke")
    except ConformanceError:
        raise
    except Exception as error:
        msg = f"`invoke` raised {type(error).__name__}: {error}; a failure is a reply too, with its `error`"
        raise ConformanceError(msg) from error
    if not isinstance(response, ProviderResponse):
        msg = f"`invoke` returned a {type(response).__name__}, not a ProviderResponse"
        raise ConformanceError(msg)
    return response


async def ask_successfully(provider: OpenProvider, request: Request) -> ProviderResponse:
    """Return the reply to a request; raise `ConformanceError` if it is a failure."""
    response = await ask(provider, request)
    if not response.success:
        words = "no reason" if response.error is None else response.error.message
        msg = f"a target that works was asked and did not answer: {words}"
        raise ConformanceError(msg)
    return response


def run_in_new_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a new event loop, in a thread if a loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(lambda: asyncio.run(work())).result()


async def run_check(check: Callable[[Any], Coroutine[Any, Any, str | None]], subject: object) -> Check:
    """Run a check on a subject; its docstring is what holds if it passes."""
    name = check.__name__.replace("_", " ")
    try:
        reason = await check(subject)
    except ConformanceError as error:
        return Check(name, "fail", str(error))
    except Exception as error:  # noqa: BLE001 - a provider may raise anything
        return Check(name, "fail", f"{type(error).__name__}: {error}")
    if reason:
        return Check(name, "skipped", reason)
    return Check(name, "pass", (check.__doc__ or "").strip())
