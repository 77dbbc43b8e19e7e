"""Conversations with an open provider, turn by turn, as the engine holds them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from msgspec import UNSET

from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse, ResponseError
from agentv.protocols import ConversationSession, OpenProvider, Provider

T = TypeVar("T")
_numbers = count(1)


class Talk:
    """One conversation: each turn sends what was said so far, and the thread that the target reported."""

    def __init__(self, provider: OpenProvider, case_id: str = "case", **fields: Any) -> None:
        self._session = provider.session
        self._fields = fields
        self._thread_id: str | None = None
        self._turn = 0
        self.case_id = case_id
        self.id = f"conversation-{next(_numbers)}"
        self.messages: tuple[Message, ...] = ()
        self.replies: list[ProviderResponse] = []

    async def say(self, text: str) -> ProviderResponse:
        """Say something and return the reply; a turn that failed is tried again by the next call."""
        return await self._take_turn((Message(role="user", content=text),), UNSET)

    async def resume(self, value: Any) -> ProviderResponse:
        """Resume a pending agent and return the reply."""
        return await self._take_turn((), value)

    async def end(self) -> None:
        """Release what the session keeps of the conversation."""
        if isinstance(self._session, ConversationSession):
            await self._session.end_conversation(self.id)

    async def _take_turn(self, new: tuple[Message, ...], resume: Any) -> ProviderResponse:
        request = Request(
            **{
                "id": self.case_id,
                "input_messages": (*self.messages, *new),
                "new_messages": new,
                "turn": self._turn + 1,
                "is_conversation": True,
                "conversation_id": self.id,
                "thread_id": self._thread_id,
                "resume": resume,
                **self._fields,
            }
        )
        response = await self._session.invoke(request)
        if response.success:
            self._turn += 1
            self.messages = response.conversation(request.input_messages)
            self._thread_id = response.thread_id or self._thread_id
            self.replies.append(response)
        return response


@asynccontextmanager
async def opened(provider: Provider, folder: Path | str = ".") -> AsyncIterator[OpenProvider]:
    """Open a provider for a while."""
    found = OpenProvider.of(provider, await provider.open(Scope(root=str(folder), folder=str(folder))))
    try:
        yield found
    finally:
        await found.session.close()


def talk(provider: Provider, *texts: str, folder: Path | str = ".", **fields: Any) -> Talk:
    """Hold a conversation with these messages of the user."""

    async def hold(found: OpenProvider) -> Talk:
        held = Talk(found, **fields)
        for text in texts:
            reply = await held.say(text)
            assert reply.success, reply.error
        await held.end()
        return held

    return with_open(provider, hold, folder)


def with_open(provider: Provider, use: Callable[[OpenProvider], Coroutine[Any, Any, T]], folder: Path | str = ".") -> T:
    """Run a coroutine function with an open provider."""

    async def run() -> T:
        async with opened(provider, folder) as found:
            return await use(found)

    return asyncio.run(run())


def texts_of(held: Talk) -> list[str]:
    """Return the answers of a conversation."""
    return [reply.text for reply in held.replies]


def error_of(response: ProviderResponse) -> ResponseError:
    """Return the error of a reply that failed."""
    assert not response.success, response
    assert response.error is not None
    return response.error
