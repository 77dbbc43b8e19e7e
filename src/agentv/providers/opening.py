"""Open and close providers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from agentv.errors import AgentVError
from agentv.model.response import NOT_STARTED
from agentv.protocols import LoadingSession, OpenProvider
from agentv.providers.base import failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentv.model.request import Request, Scope
    from agentv.model.response import ProviderResponse
    from agentv.protocols import Provider

OPEN_TIMEOUT_S = 60.0
LOAD_TIMEOUT_S = 600.0
"""Time for the import of user code: some libraries take minutes on a cold disk."""
CLOSE_TIMEOUT_S = 30.0


async def open_provider(provider: Provider, scope: Scope) -> OpenProvider | str:
    """Open a provider; return the reason if that fails."""
    try:
        async with asyncio.timeout(OPEN_TIMEOUT_S):
            session = await provider.open(scope)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        return str(error) if isinstance(error, AgentVError) else f"{type(error).__name__}: {error}"
    if session is not None and _replaces_invoke(provider):
        await close_providers([OpenProvider.of(provider, session)])
        about = f"{type(provider).__name__!r} replaces `invoke` of a provider that returns a session"
        return f"{about}: wrap the session that `super().open(scope)` returns"
    if isinstance(session, LoadingSession):
        with suppress(TimeoutError):  # the first request waits for the rest
            async with asyncio.timeout(LOAD_TIMEOUT_S):
                await session.load_code()
    return OpenProvider.of(provider, session)


def _replaces_invoke(provider: Provider) -> bool:
    """Return whether a subclass defines `invoke` and inherits `open`, whose session would be used instead."""
    defined = [name for cls in type(provider).__mro__ for name in ("open", "invoke") if name in vars(cls)]
    return defined[:1] == ["invoke"]


async def close_providers(providers: Iterable[OpenProvider]) -> None:
    """Close providers; a failure is ignored, because all results are known by then."""
    for provider in providers:
        with suppress(Exception):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await provider.session.close()


class FailedSession:
    """Session that answers every request with the reason why the provider could not be opened."""

    def __init__(self, message: str) -> None:
        self._message = message

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the failure."""
        del request
        return failure("transport", self._message, code=NOT_STARTED)

    async def close(self) -> None:
        """Do nothing."""
