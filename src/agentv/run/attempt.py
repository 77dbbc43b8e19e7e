"""One run: ask, wait, ask again if that may help, and keep count of the tries."""

from __future__ import annotations

import asyncio
from random import uniform
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from agentv.errors import AgentVError, ProviderError
from agentv.model.response import ProviderResponse, ResponseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.model.request import Request
    from agentv.protocols import Provider

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0


class Patience(NamedTuple):
    """How long and how often to try."""

    timeout_s: float
    retries: int
    retry_timeouts: bool
    gate: asyncio.Semaphore | None = None
    """How many attempts at this target may be under way."""


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
        error = response.error
        if response.success or error is None or not _may_pass(error, patience):
            return Tried(_with_failures(response, failures), request.attempt)
        if request.attempt > patience.retries:
            return Tried(_with_failures(response, failures), request.attempt)
        if is_stopping():
            return None
        failures.append(f"attempt {request.attempt} failed ({error.kind}): {error.message}; it was tried again")
        await asyncio.sleep(_pause(request.attempt))
        # A retry never lands on a dirty conversation.
        request = replace(request, attempt=request.attempt + 1, thread_id=None)


async def _attempt(provider: Provider, request: Request, timeout_s: float) -> ProviderResponse:
    start = perf_counter()
    try:
        async with asyncio.timeout(timeout_s):
            response = await provider.invoke(request)
    except TimeoutError as error:
        response = _failed("timeout", _out_of_time(error, timeout_s))
    except ProviderError as error:
        response = _failed("transport", str(error), retryable=error.transient)
    except ConnectionError as error:
        response = _failed("transport", f"{type(error).__name__}: {error}", retryable=True)
    except AgentVError as error:
        response = _failed("protocol", str(error))
    except Exception as error:  # noqa: BLE001 - whatever an agent or a provider throws is this run's error alone
        response = _failed("agent", f"{type(error).__name__}: {error}")
    if not isinstance(response, ProviderResponse):
        response = _failed("protocol", f"the provider returned a {type(response).__name__}, not a ProviderResponse")
    if response.latency_ms is None and getattr(provider, "is_live", True):
        return replace(response, latency_ms=round((perf_counter() - start) * 1000, 3))
    return response


def _out_of_time(error: TimeoutError, timeout_s: float) -> str:
    """Say what the provider noted when it was cancelled, such as the last words of a program."""
    notes = getattr(error.__cause__, "__notes__", ())
    return "\n".join([f"no reply within {timeout_s:g} s", *notes])


def _failed(kind: str, message: str, *, retryable: bool = False) -> ProviderResponse:
    error = ResponseError(kind=kind, message=message, retryable=retryable)  # type: ignore[arg-type]  # ours, above
    return ProviderResponse(success=False, error=error)


def _may_pass(error: ResponseError, patience: Patience) -> bool:
    return error.retryable or (error.kind == "timeout" and patience.retry_timeouts)


def _pause(attempt: int) -> float:
    """Twice as long each time, spread so that many runs do not come back at once."""
    return float(uniform(0.5, 1.0) * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (attempt - 1)))  # noqa: S311


def _with_failures(response: ProviderResponse, failures: list[str]) -> ProviderResponse:
    return replace(response, warnings=(*response.warnings, *failures)) if failures else response
