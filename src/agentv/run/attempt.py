"""One run: ask, wait, ask again if that may help, and keep count of the tries."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from agentv.errors import AgentVError, ProviderError
from agentv.model.response import ProviderResponse, ResponseError
from agentv.protocols import REPLIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.model.request import Request
    from agentv.protocols import BatchProvider, Provider

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0


class Patience(NamedTuple):
    """How long and how often to try."""

    timeout_s: float
    retries: int
    retry_timeouts: bool
    gate: asyncio.Semaphore | None = None
    """How many attempts at this target may be under way."""
    tell: Callable[[Request, ProviderResponse], None] | None = None
    """Whom to tell of every attempt."""


class Tried(NamedTuple):
    """What came of a run's attempts."""

    response: ProviderResponse
    attempts: int


async def try_run(
    provider: Provider, request: Request, patience: Patience, is_stopping: Callable[[], bool]
) -> Tried | None:
    """The last attempt's reply; `None` when the execution stops before there is one worth keeping."""
    failures: list[str] = []
    while True:
        if patience.gate is None:
            response = await _attempt(provider, request, patience.timeout_s)
        else:
            async with patience.gate:
                response = await _attempt(provider, request, patience.timeout_s)
        if patience.tell is not None:
            patience.tell(request, response)
        error = response.error
        if response.success or error is None or not _may_pass(error, patience):
            return Tried(_with_failures(response, failures), request.attempt)
        if request.attempt > patience.retries:
            return Tried(_with_failures(response, failures), request.attempt)
        if is_stopping():
            return None
        failures.append(_told(request, error))
        await asyncio.sleep(_pause(request.attempt))
        # A retry never lands on a dirty conversation.
        request = replace(request, attempt=request.attempt + 1, thread_id=None)


async def try_many(
    provider: BatchProvider, requests: Sequence[Request], patience: Patience, is_stopping: Callable[[], bool]
) -> list[Tried | None]:
    """The same for many runs that are asked for at once; only those that failed are asked for again."""
    tried: list[Tried | None] = [None] * len(requests)
    failures: list[list[str]] = [[] for _ in requests]
    pending = dict(enumerate(requests))
    while pending:
        async with patience.gate or nullcontext():
            responses = await _attempt_many(provider, list(pending.values()), patience.timeout_s)
        again: dict[int, Request] = {}
        for (at, request), response in zip(pending.items(), responses, strict=True):
            if patience.tell is not None:
                patience.tell(request, response)
            error = response.error
            if (
                response.success
                or error is None
                or not _may_pass(error, patience)
                or request.attempt > patience.retries
            ):
                tried[at] = Tried(_with_failures(response, failures[at]), request.attempt)
            else:
                failures[at].append(_told(request, error))
                again[at] = replace(request, attempt=request.attempt + 1, thread_id=None)
        if again and is_stopping():
            break
        pending = again
        if pending:
            await asyncio.sleep(_pause(next(iter(pending.values())).attempt - 1))
    return tried


async def _attempt(provider: Provider, request: Request, timeout_s: float) -> ProviderResponse:
    start = perf_counter()
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            response = await provider.invoke(request)
    except Exception as error:  # noqa: BLE001 - whatever an agent or a provider throws is this run's error alone
        response = _failure_of(error, timeout_s if deadline.expired() else None)
    if not isinstance(response, ProviderResponse):
        response = _not_a_response(response)
    if response.latency_ms is None and getattr(provider, "is_live", True):
        return replace(response, latency_ms=round((perf_counter() - start) * 1000, 3))
    return response


async def _attempt_many(
    provider: BatchProvider, requests: Sequence[Request], timeout_s: float
) -> Sequence[ProviderResponse]:
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            responses = list(await provider.invoke_many(requests))
    except Exception as error:  # noqa: BLE001 - as above
        failed = _failure_of(error, timeout_s if deadline.expired() else None)
        come = getattr(error.__cause__, REPLIES, {})
        return [come.get(at, failed) for at in range(len(requests))]
    if len(responses) != len(requests):
        message = f"the provider was asked {len(requests)} times and answered {len(responses)} times"
        return [_failed("protocol", message)] * len(requests)
    return [each if isinstance(each, ProviderResponse) else _not_a_response(each) for each in responses]


def _failure_of(error: Exception, timeout_s: float | None) -> ProviderResponse:
    """What an exception means; a time is given when it was ours that ran out."""
    if timeout_s is not None:
        return _failed("timeout", _out_of_time(error, timeout_s))
    if isinstance(error, ProviderError):
        return _failed("transport", str(error), retryable=error.transient)
    if isinstance(error, ConnectionError):
        return _failed("transport", f"{type(error).__name__}: {error}", retryable=True)
    if isinstance(error, TimeoutError):
        return _failed("timeout", str(error) or "the agent ran out of time by its own clock")
    if isinstance(error, AgentVError):
        return _failed("protocol", str(error))
    return _failed("agent", f"{type(error).__name__}: {error}")


def _not_a_response(value: object) -> ProviderResponse:
    return _failed("protocol", f"the provider returned a {type(value).__name__}, not a ProviderResponse")


def _out_of_time(error: Exception, timeout_s: float) -> str:
    """Say what the provider noted when it was cancelled, such as the last words of a program."""
    notes = getattr(error.__cause__, "__notes__", ())
    return "\n".join([f"no reply within {timeout_s:g} s", *notes])


def _failed(kind: str, message: str, *, retryable: bool = False) -> ProviderResponse:
    error = ResponseError(kind=kind, message=message, retryable=retryable)  # type: ignore[arg-type]  # ours, above
    return ProviderResponse(success=False, error=error)


def _told(request: Request, error: ResponseError) -> str:
    return f"attempt {request.attempt} failed ({error.kind}): {error.message}; it was tried again"


def _may_pass(error: ResponseError, patience: Patience) -> bool:
    return error.retryable or (error.kind == "timeout" and patience.retry_timeouts)


def _pause(attempt: int) -> float:
    """Twice as long each time, spread so that many runs do not come back at once."""
    from random import uniform  # noqa: PLC0415 - only a failure needs it

    return float(uniform(0.5, 1.0) * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (attempt - 1)))  # noqa: S311


def _with_failures(response: ProviderResponse, failures: list[str]) -> ProviderResponse:
    return replace(response, warnings=(*response.warnings, *failures)) if failures else response
