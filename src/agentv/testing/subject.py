"""The provider that is put to the test, and what it is asked."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping

    from agentv.protocols import BatchProvider, Provider

    Make = Callable[[], Provider] | Mapping[str, Any]

T = TypeVar("T")
LONG_S = 60.0
"""No single question takes longer than this, or the check fails."""


class Subject(NamedTuple):
    """How to make the provider, and what to expect of it."""

    make: Make
    expected: Callable[[Request], str] | None
    """What must be in the text of the reply to a request; `None` when nobody can know."""
    requests: Callable[[int, str], Request]
    """A request by its number, with this text."""
    failing: Make | None = None
    slow: Make | None = None
    large: Make | None = None
    odd: Make | None = None
    folder: str = "."
    patience_s: float = 5.0

    @asynccontextmanager
    async def opened(self, make: Make | None = None) -> AsyncIterator[Provider]:
        """A new provider, ready."""
        provider = made(make or self.make)
        await finish_in_time(provider.open(self.scope), "open")
        try:
            yield provider
        finally:
            await finish_in_time(provider.close(), "close")

    @property
    def scope(self) -> Scope:
        """Where it finds itself."""
        folder = os.path.abspath(self.folder)  # noqa: PTH100 - the user's own words, and links stay as they are
        return Scope(root=folder, folder=folder)


class BrokenError(Exception):
    """What a provider did that it must not do, as a sentence."""


def made(make: Make) -> Provider:
    """A new provider, from a function or from the settings of a target."""
    if callable(make):
        return make()
    from agentv.spec.targets import check_targets, make_provider  # noqa: PLC0415 - only settings need it

    settings = {"name": str(make.get("provider", "target")), **make}
    targets, problems = check_targets([settings], None)
    if problems:
        from agentv.errors import SpecError  # noqa: PLC0415 - only a mistake needs it

        raise SpecError(problems)
    return make_provider(targets[0], os.environ)


def plain_request(number: int, text: str) -> Request:
    """One that any target can be asked."""
    return Request(id=f"conformance-{number}", input_messages=(Message(role="user", content=text),), index=number)


async def finish_in_time(work: Awaitable[T], what: str, seconds: float = LONG_S) -> T:
    """Return the result of the work; raise `BrokenError` if it does not end in time."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError as error:
        msg = f"`{what}` did not end within {seconds:g} s"
        raise BrokenError(msg) from error


async def ask(provider: Provider, request: Request) -> ProviderResponse:
    """One reply, which must be one."""
    try:
        if hasattr(provider, "invoke_many"):
            (found,) = await finish_in_time(cast("BatchProvider", provider).invoke_many([request]), "invoke_many")
        else:
            found = await finish_in_time(provider.invoke(request), "invoke")
    except BrokenError:
        raise
    except Exception as error:
        msg = f"`invoke` raised {type(error).__name__}: {error}; a failure is a reply too, with its `error`"
        raise BrokenError(msg) from error
    if not isinstance(found, ProviderResponse):
        msg = f"`invoke` returned a {type(found).__name__}, not a ProviderResponse"
        raise BrokenError(msg)
    return found


async def answered(provider: Provider, request: Request) -> ProviderResponse:
    """One reply of a target that works."""
    response = await ask(provider, request)
    if not response.success:
        words = "no reason" if response.error is None else response.error.message
        msg = f"a target that works was asked and did not answer: {words}"
        raise BrokenError(msg)
    return response


def apart(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What a coroutine returns, in an event loop of its own, wherever it is called from."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only a test that is asynchronous needs it

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(lambda: asyncio.run(work())).result()
