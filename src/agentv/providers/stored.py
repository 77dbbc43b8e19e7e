"""Replies that a run store holds: what `agentv rescore` asks instead of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.providers.base import failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.model.request import Request, Scope
    from agentv.model.response import ProviderResponse


class Stored:
    """Answers with the reply that was kept for this case and repetition."""

    is_live = False
    executes = False
    retries = 0
    """What failed then fails now: it would not pass by being read again."""

    def __init__(self, find: Callable[[str, int], ProviderResponse | None]) -> None:
        self._find = find

    async def open(self, scope: Scope) -> None:
        """Nothing to do."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """The reply as it was kept."""
        found = self._find(request.id, request.repeat)
        if found is None:
            return failure("protocol", f"no reply to case {request.id!r}, repetition {request.repeat + 1}, was kept")
        return found

    async def close(self) -> None:
        """Nothing to do."""
