"""Conversations: several turns of one run, on one thread of the target."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from agentv.model.events import Attempt
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.users import Say, Stop, UserView
from agentv.protocols import PARTIAL_REPLY, ConversationSession
from agentv.run.attempt import LOG, RunAttempts, Slot, back_off, new_conversation_id, try_run, was_refused
from agentv.run.rate_limit import QUOTA_EXHAUSTED, RateLimiter
from agentv.scoring.turns import Exchange, combine_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.model.request import Request, Turn
    from agentv.model.response import EndedBy
    from agentv.protocols import OpenProvider, UserDriver
    from agentv.run.attempt import RetryPolicy

MAX_TURNS = 1_000
"""Turns after which every conversation ends, whatever its user side does."""
NO_THREAD = (
    "the target reported no thread id in turn 1, so further messages would reach it without their context: "
    "have it report one, or set `conversation: full`"
)


class ScriptedUser:
    """User side that says the turns of a case, one after the other."""

    def __init__(self, turns: tuple[Turn, ...]) -> None:
        self._turns = turns
        self._next = 0

    async def next(self, view: UserView) -> Say | Stop:
        """Return the next turn of the script."""
        del view
        if self._next == len(self._turns):
            return Stop("the script ended")
        turn = self._turns[self._next]
        self._next += 1
        return Say(turn.user, turn.resume)


class ConversationEnd(NamedTuple):
    """Turns of a conversation, and the side that ended it."""

    exchanges: list[Exchange]
    ended_by: EndedBy
    log: tuple[Attempt, ...] = ()
    """Failed requests."""

    def reply(self, history: int) -> ProviderResponse:
        """Return the reply of the whole conversation, after this number of earlier messages."""
        return replace(combine_turns(self.exchanges, history), ended_by=self.ended_by)


async def try_conversation(
    provider: OpenProvider,
    request: Request,
    make_user: Callable[[], UserDriver],
    policy: RetryPolicy,
    is_stopping: Callable[[], bool],
) -> RunAttempts | None:
    """Hold a conversation until it ends; return `None` if the execution stops before.

    A failed turn is sent again, and if the thread of the target may have changed meanwhile, the conversation starts
    anew on another thread.
    """
    limiter = policy.limiter or RateLimiter()
    log: list[Attempt] = []
    history = len(request.input_messages)
    number = 1
    while True:
        conversation = _Conversation(provider, replace(request, conversation_id=new_conversation_id()), policy)
        try:
            end = await conversation.run(make_user(), is_stopping)
        except asyncio.CancelledError as error:
            conversation.attach_to(error, log, history)
            raise
        finally:
            await conversation.close(limiter)
        if end is None:
            return None
        response = end.reply(history)
        log += end.log
        log.append(_attempt(response, len(log) + 1))
        if not _may_start_again(conversation, response.error, number, policy):
            return RunAttempts(response, number, numbered(log))
        number += 1
        if limiter.is_broken or is_stopping() or not await back_off(log[-1:], limiter, is_stopping):
            return None


def numbered(log: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """Return the attempts of a run, numbered in their order."""
    return tuple([replace(attempt, number=number) for number, attempt in enumerate(log, 1)])


def _attempt(response: ProviderResponse, number: int) -> Attempt:
    return Attempt(number=number, latency_ms=response.latency_ms, error=response.error, thread_id=response.thread_id)


def _may_start_again(
    conversation: _Conversation, error: ResponseError | None, number: int, policy: RetryPolicy
) -> bool:
    """Tell whether a failed conversation is held again: not if its turn was already sent as often as allowed."""
    if error is None or conversation.mode == "full" or was_refused(error) or error.code == QUOTA_EXHAUSTED:
        return False
    may_pass = error.retryable or (error.kind == "timeout" and policy.retry_timeouts)
    return may_pass and number <= policy.retries


class _Conversation:
    """One attempt at a conversation."""

    def __init__(self, provider: OpenProvider, request: Request, policy: RetryPolicy) -> None:
        self._provider = provider
        self._request = request
        self._policy = policy
        self._slot = Slot()
        self._messages = request.input_messages
        self._exchanges: list[Exchange] = []
        self._texts: list[tuple[str, str]] = []
        self._log: list[Attempt] = []
        self._thread_id: str | None = None
        self.mode = provider.settings.conversation_mode

    async def run(self, user: UserDriver, is_stopping: Callable[[], bool]) -> ConversationEnd | None:
        """Exchange messages until one side ends the conversation; return `None` if the execution stops before."""
        while len(self._exchanges) < MAX_TURNS:
            step = await user.next(UserView(tuple(self._texts)))
            if isinstance(step, Stop):
                return self._end("user")
            exchange = await self._exchange(step, is_stopping)
            if exchange is None:
                return None
            self._add(exchange)
            if not exchange.response.success:
                return self._end("error")
            if step.is_last:
                return self._end("user")
        return self._end("limit")

    def _end(self, ended_by: EndedBy) -> ConversationEnd:
        return ConversationEnd(self._exchanges, ended_by, tuple(self._log))

    async def _exchange(self, step: Say, is_stopping: Callable[[], bool]) -> Exchange | None:
        """Send one message of the user; return its turn, or `None` if the execution stops before."""
        user = () if step.message is None else (step.message,)
        turn = len(self._exchanges) + 1
        if turn > 1 and self.mode == "thread" and self._thread_id is None:
            error = ResponseError(kind="protocol", message=NO_THREAD)
            return Exchange(user, ProviderResponse(success=False, error=error), 0, step.resume)
        messages = (*self._messages, *user)
        request = replace(
            self._request,
            input_messages=messages,
            new_messages=user if turn > 1 else messages,
            turn=turn,
            thread_id=self._thread_id,
            resume=step.resume,
        )
        outcome = await try_run(
            self._provider.session,
            request,
            self._policy,
            is_stopping,
            slot=self._slot,
            scope="any" if self.mode == "full" else "refused",
        )
        if outcome is None:
            return None
        self._log += [replace(attempt, turn=turn) for attempt in outcome.log[:-1]]
        return Exchange(user, outcome.response, outcome.attempts, step.resume)

    def _add(self, exchange: Exchange) -> None:
        response = exchange.response
        self._exchanges.append(exchange)
        self._messages = (*self._messages, *exchange.messages)
        self._texts.append((exchange.user[0].text if exchange.user else "", response.text))
        self._thread_id = response.thread_id or self._thread_id
        if response.success and response.thread_id is None and self._thread_id is not None:
            self._exchanges[-1] = exchange._replace(response=replace(response, thread_id=self._thread_id))

    def attach_to(self, cancelled: asyncio.CancelledError, log: list[Attempt], history: int) -> None:
        """Attach the turns so far to the error that ends the conversation, so that they are not lost."""
        setattr(cancelled, LOG, numbered([*log, *self._log, *(getattr(cancelled, LOG, None) or ())]))
        partial = getattr(cancelled, PARTIAL_REPLY, None)
        exchanges = list(self._exchanges)
        if isinstance(partial, ProviderResponse):
            exchanges.append(Exchange((), partial))
        if exchanges:
            setattr(cancelled, PARTIAL_REPLY, replace(combine_turns(exchanges, history), ended_by="error"))

    async def close(self, limiter: RateLimiter) -> None:
        """Give back the slot, and let the provider release the state of the conversation."""
        self._slot.release(limiter)
        session = self._provider.session
        if isinstance(session, ConversationSession):
            with suppress(Exception):  # what it releases has no effect on the result
                await session.end_conversation(self._request.conversation_id)
