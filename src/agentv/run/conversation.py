"""Conversations: several turns of one run, on one thread of the target."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from agentv.errors import AgentVError
from agentv.model.conversation import Message
from agentv.model.events import Attempt
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.simulation import Say, Stop, UserView
from agentv.protocols import PARTIAL_REPLY, ConversationSession
from agentv.run.attempt import (
    LOG,
    RunAttempts,
    Slot,
    back_off,
    new_conversation_id,
    try_run,
    was_refused,
    with_failures,
)
from agentv.run.rate_limit import QUOTA_EXHAUSTED, RateLimiter
from agentv.run.users.model import UserModelError
from agentv.scoring.turns import Exchange, combine_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.model.request import Request
    from agentv.model.response import EndedBy
    from agentv.model.simulation import SimulatorUse
    from agentv.protocols import OpenProvider, UserDriver
    from agentv.run.attempt import RetryPolicy
    from agentv.run.users.faults import FaultFinder
    from agentv.run.users.stop import StopCheck

MAX_TURNS = 1_000
"""Turns after which every conversation ends, whatever its user side does."""
SPEAKERS = {"user": "you", "assistant": "agent"}
"""Names of the speakers whose messages a user sees, by the roles of the messages."""
LOST_THREAD = (
    "the target answered with another thread id than the one that it was sent: unless each of its replies has an id of "
    "its own, the agent did not see the turns before"
)
NO_THREAD = (
    "the target reported no thread id in turn 1, so further messages would reach it without their context: "
    "have it report one, or set `conversation: full`"
)


class ConversationPlan(Struct, frozen=True):
    """User side of the conversations of one run, and the rules that end them."""

    make_user: Callable[[int], UserDriver]
    """Returns the user side of a conversation, given the number of the conversation from 0."""
    stop: StopCheck | None = None
    """Stop rules of a simulated user; `None` if all turns are scripted."""
    faults: FaultFinder | None = None
    """Checks of the messages of a simulated user."""
    nudge: str = ""
    """Message of a simulated user who ends the conversation too early."""
    retries: int = 0
    """Number of new conversations after a fault of the simulator."""
    use: Callable[[int, Sequence[str]], SimulatorUse] | None = None
    """Returns the use of the simulator, given the number of conversations and the faults."""


class ConversationEnd(Struct, frozen=True):
    """Turns of a conversation, and the side that ended it."""

    exchanges: list[Exchange]
    ended_by: EndedBy
    log: tuple[Attempt, ...] = ()
    """Failed requests."""
    error: ResponseError | None = None
    """Failure of the user side; that of the agent is in its last turn."""

    def reply(self, history: int) -> ProviderResponse:
        """Return the reply of the whole conversation, after this number of earlier messages."""
        response = combine_turns(self.exchanges, history) if self.exchanges else ProviderResponse()
        if self.error is not None:
            response = replace(response, success=False, error=self.error)
        return replace(response, ended_by=self.ended_by)


async def try_conversation(
    provider: OpenProvider,
    request: Request,
    plan: ConversationPlan,
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
    failed: list[Attempt] = []
    faults: list[str] = []
    while True:
        conversation = _Conversation(provider, replace(request, conversation_id=new_conversation_id()), policy, plan)
        try:
            end = await conversation.run(plan.make_user(number - 1), is_stopping)
        except asyncio.CancelledError as error:
            conversation.attach_to(error, log, history)
            raise
        finally:
            await conversation.close(limiter)
        if end is None:
            return None
        response = end.reply(history)
        log += end.log
        log.append(_attempt(response, len(log) + 1, conversation.worker))
        if response.error is not None and response.error.kind == "simulator":
            faults.append(response.error.message)
            if len(faults) <= plan.retries:
                number += 1
                continue
        if not _may_start_again(conversation, response.error, number - len(faults), policy):
            response = response if plan.use is None else replace(response, simulator=plan.use(number, faults))
            return RunAttempts(with_failures(response, failed), number, numbered(log))
        failed.append(_attempt(response, number))
        number += 1
        if limiter.is_broken or is_stopping() or not await back_off(log[-1:], limiter, is_stopping):
            return None


def numbered(log: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """Return the attempts of a run, numbered in their order."""
    return tuple([replace(attempt, number=number) for number, attempt in enumerate(log, 1)])


def _attempt(response: ProviderResponse, number: int, worker: str | UnsetType = UNSET) -> Attempt:
    return Attempt(
        number=number,
        latency_ms=response.latency_ms,
        error=response.error,
        thread_id=response.thread_id,
        worker=worker,
    )


def _may_start_again(
    conversation: _Conversation, error: ResponseError | None, number: int, policy: RetryPolicy
) -> bool:
    """Return whether a failed conversation is held again: not if its turn was already sent as often as allowed."""
    if error is None or conversation.mode == "full" or was_refused(error) or error.code == QUOTA_EXHAUSTED:
        return False
    may_pass = error.retryable or (error.kind == "timeout" and policy.retry_timeouts)
    return may_pass and number <= policy.retries


class _Conversation:
    """One attempt at a conversation."""

    def __init__(self, provider: OpenProvider, request: Request, policy: RetryPolicy, plan: ConversationPlan) -> None:
        self._plan = plan
        self._history = len(request.input_messages)
        self._before = tuple(
            [
                (SPEAKERS[message.role], message.text)
                for message in request.input_messages
                if message.role in SPEAKERS and message.text
            ]
        )
        self._provider = provider
        self._request = request
        self._policy = policy
        self._slot = Slot()
        self._messages = request.input_messages
        self._exchanges: list[Exchange] = []
        self._texts: list[tuple[str, str]] = []
        self._user: tuple[Message, ...] = ()
        """Message of the user in the turn that was sent last."""
        self._log: list[Attempt] = []
        self.worker: str | UnsetType = UNSET
        """Worker of the last turn; only with an executor."""
        self._thread_id: str | None = None
        self.mode = provider.settings.conversation_mode
        self._keeps_thread = self.mode == "thread" and not provider.settings.threads_change

    async def run(self, user: UserDriver, is_stopping: Callable[[], bool]) -> ConversationEnd | None:
        """Exchange messages until one side ends the conversation; return `None` if the execution stops before."""
        while True:
            step = await self._next(user)
            if isinstance(step, ConversationEnd):
                return step
            exchange = await self._exchange(step, is_stopping)
            if exchange is None:
                return None
            self._add(exchange)
            if not exchange.response.success:
                return self._end("error")
            stop = self._plan.stop
            if stop is not None and not user.is_scripted and (ended_by := await stop.after_turn(self._reply())):
                return self._end(ended_by)
            if step.is_last and (stop is None or len(self._exchanges) >= stop.rules.min_turns):
                return self._end("user")

    async def _next(self, user: UserDriver) -> Say | ConversationEnd:
        """Return the next message of the user, or the end of the conversation."""
        view = UserView(tuple(self._texts), self._before)
        is_scripted = user.is_scripted
        try:
            step = await user.next(view)
        except UserModelError as error:
            return self._end("error", error.error)
        except AgentVError as error:
            return self._end("error", ResponseError(kind="simulator", message=str(error)))
        stop, turns = self._plan.stop, len(self._exchanges)
        if isinstance(step, Stop) and step.is_simulated and stop is not None and turns < stop.rules.min_turns:
            step = Say(Message(role="user", content=self._plan.nudge))
        if isinstance(step, Say) and self._is_limit_reached(None if is_scripted else stop):
            return self._end("limit")
        fault = None if self._plan.faults is None else self._plan.faults.find(step, view)
        if fault is not None:
            message = f"turn {turns + 1}: the simulated user made a mistake: {fault}"
            return self._end("error", ResponseError(kind="simulator", message=message))
        if isinstance(step, Stop):
            return self._end("limit" if step.is_limit else "user")
        return step

    def _is_limit_reached(self, stop: StopCheck | None) -> bool:
        if len(self._exchanges) >= MAX_TURNS:
            return True
        return stop is not None and bool(self._exchanges) and stop.is_limit_reached(self._reply())

    def _reply(self) -> ProviderResponse:
        return combine_turns(self._exchanges, self._history)

    def _end(self, ended_by: EndedBy, error: ResponseError | None = None) -> ConversationEnd:
        return ConversationEnd(self._exchanges, ended_by, tuple(self._log), error)

    async def _exchange(self, step: Say, is_stopping: Callable[[], bool]) -> Exchange | None:
        """Send one message of the user; return its turn, or `None` if the execution stops before."""
        self._user = user = () if step.message is None else (step.message,)
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
        self.worker = outcome.log[-1].worker if outcome.log else UNSET
        self._log += [replace(attempt, turn=turn) for attempt in outcome.log[:-1]]
        return Exchange(user, outcome.response, outcome.attempts, step.resume)

    def _add(self, exchange: Exchange) -> None:
        response = exchange.response
        self._exchanges.append(exchange)
        self._messages = (*self._messages, *exchange.messages)
        self._texts.append((exchange.user[0].text if exchange.user else "", response.text))
        before, self._thread_id = self._thread_id, response.thread_id or self._thread_id
        if response.success and response.thread_id is None and self._thread_id is not None:
            self._exchanges[-1] = replace(exchange, response=replace(response, thread_id=self._thread_id))
        elif response.success and before not in (None, response.thread_id) and self._keeps_thread:
            warned = replace(response, warnings=(*response.warnings, LOST_THREAD))
            self._exchanges[-1] = replace(exchange, response=warned)

    def attach_to(self, cancelled: asyncio.CancelledError, log: list[Attempt], history: int) -> None:
        """Attach the turns so far to the error that ends the conversation, so that they are not lost."""
        setattr(cancelled, LOG, numbered([*log, *self._log, *(getattr(cancelled, LOG, None) or ())]))
        partial = getattr(cancelled, PARTIAL_REPLY, None)
        exchanges = list(self._exchanges)
        if isinstance(partial, ProviderResponse):
            exchanges.append(Exchange(self._user, partial))
        whole = combine_turns(exchanges, history) if exchanges else ProviderResponse()
        setattr(cancelled, PARTIAL_REPLY, replace(whole, ended_by="error"))

    async def close(self, limiter: RateLimiter) -> None:
        """Give back the slot, and let the provider release the state of the conversation."""
        self._slot.release(limiter)
        session = self._provider.session
        if isinstance(session, ConversationSession):
            with suppress(Exception):  # what it releases has no effect on the result
                await session.end_conversation(self._request.conversation_id)
