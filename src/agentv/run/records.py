"""What came of a run, as a line of a result file says it."""

from __future__ import annotations

import os
from time import gmtime, strftime, time
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from agentv.model.results import ResultRecord
from agentv.scoring.calls import trace_from_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.conversation import Message, TraceEvent
    from agentv.model.response import ProviderResponse
    from agentv.model.results import RunResult
    from agentv.run.attempt import RunAttempts
    from agentv.run.options import RunOptions
    from agentv.run.plan import Part, PlannedRun


def make_record(  # noqa: PLR0913, PLR0917 - a record has many sources
    execution_id: str,
    planned: PlannedRun,
    tried: RunAttempts,
    result: RunResult,
    started_at: str,
    options: RunOptions,
    part: Part | None,
) -> ResultRecord:
    """The result of one run."""
    response, case = tried.response, planned.case.case
    record = ResultRecord(
        execution_id=execution_id,
        run_id=f"{execution_id}-{planned.key}",
        eval_id=planned.eval.id,
        case_id=case.id,
        target=planned.target.name,
        repeat=planned.repeat,
        attempts=tried.attempts,
        status=result.status,
        score=result.score,
        candidate=response.text,
        evaluators=result.evaluators,
        trace_summary=result.trace_summary,
        tokens_usage=response.tokens_usage,
        cost_usd=response.cost_usd,
        latency_ms=response.latency_ms,
        thread_id=response.thread_id,
        warnings=result.warnings,
        error=result.error,
        started_at=started_at,
        completed_at=now(),
        shard=part.shard(planned) if part else UNSET,
        unread=response.unread or UNSET,
        calls_complete=result.calls_complete,
    )
    if options.include_messages or options.include_trace:
        return with_conversation(record, case.input_messages, response, options)
    return record


def with_conversation(
    record: ResultRecord, asked: Sequence[Message], response: ProviderResponse, options: RunOptions
) -> ResultRecord:
    """The record with the messages and the trace, as far as they are wanted."""
    return replace(
        record,
        messages=(*asked, *(response.output_messages or ())) if options.include_messages else UNSET,
        trace=_trace(response) if options.include_trace else UNSET,
    )


def _trace(response: ProviderResponse) -> tuple[TraceEvent, ...] | None:
    """The agent's own, else one made of its messages."""
    if response.trace is not None or response.output_messages is None:
        return response.trace
    return trace_from_messages(response.output_messages)


def new_id() -> str:
    """A name for an execution: when it began, and something that no other has."""
    return f"{strftime('%Y%m%dT%H%M%S', gmtime())}-{os.urandom(3).hex()}"


def now() -> str:
    """The time, as results tell it."""
    moment = time()
    second = int(moment)
    if second != _clock.second:
        _clock.second, _clock.text = second, strftime("%Y-%m-%dT%H:%M:%S", gmtime(second))
    return f"{_clock.text}.{int((moment - second) * 1000):03d}Z"


class _Clock:
    """The current second in words: they change less often than results come."""

    second = -1
    text = ""


_clock = _Clock()
