"""The targets of an execution, ready for as long as it lasts."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from agentv.errors import AgentVError
from agentv.model.request import Request, Scope
from agentv.providers.base import failure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agentv.api.prepare import Prepared
    from agentv.model.response import ProviderResponse

OPEN_S = 60.0
CLOSE_S = 30.0
"""Nothing may wait for ever, getting ready and letting go included."""


@asynccontextmanager
async def opened(prepared: Prepared) -> AsyncIterator[None]:
    """The providers, ready; one that cannot get ready fails its own runs and nobody else's."""
    folders = {each.id: Scope(root=each.root, folder=each.folder) for each in prepared.evals}
    for key, provider in prepared.providers.items():
        try:
            async with asyncio.timeout(OPEN_S):
                await provider.open(folders[key[0]])
        except Exception as error:  # noqa: BLE001 - a provider may be anybody's
            reason = str(error) if isinstance(error, AgentVError) else f"{type(error).__name__}: {error}"
            prepared.providers[key] = _Unready(f"the target could not be opened: {reason}")
    try:
        yield
    finally:
        for provider in prepared.providers.values():
            with suppress(Exception):  # the results are there, and nobody is left to be told
                async with asyncio.timeout(CLOSE_S):
                    await provider.close()


class _Unready:
    """Stands in for a provider that could not be opened."""

    def __init__(self, message: str) -> None:
        self._message = message

    async def open(self, scope: Scope) -> None:
        """Nothing to do."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """The reason, again for each run."""
        del request
        return failure("transport", self._message)

    async def close(self) -> None:
        """Nothing to do."""
