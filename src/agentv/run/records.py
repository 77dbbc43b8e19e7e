"""Result records of runs, and the ids and times in them."""

from __future__ import annotations

import os
from functools import lru_cache
from time import gmtime, strftime, time
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from agentv.jsonio import dump_json
from agentv.model.results import RecordedCall, RecordedTurn, ResultRecord
from agentv.scoring.calls import resolve_calls, trace_from_messages
from agentv.scoring.turns import split_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from msgspec import UnsetType

    from agentv.model.conversation import Message, TraceEvent
    from agentv.model.request import Case
    from agentv.model.response import Fault, ProviderResponse, TurnReply
    from agentv.model.results import DiffLabels, RunResult
    from agentv.run.attempt import RunAttempts
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun
    from agentv.run.shards import ShardPlan
    from agentv.scoring.calls import Calls
    from agentv.scoring.turns import Exchange

MAX_INPUT = 1_000
"""Characters of an input in a record."""
MAX_CALLS = 100
"""Calls in a record; `trace_summary` counts all of them."""
MAX_CALL_INPUT = 200
"""Characters of the input of a call in a record."""


def make_record(  # noqa: PLR0913, PLR0917 - a record has many sources
    execution_id: str,
    planned: PlannedRun,
    outcome: RunAttempts,
    result: RunResult,
    started_at: str,
    options: RunOptions,
    shard: ShardPlan | None,
    sides: tuple[DiffLabels | None, ...] = (),
    redact: Callable[[str], str] = str,
    known: Calls | None = None,
) -> ResultRecord:
    """Return the result record of one run; `redact` is applied to texts before they are cut.

    `known` are the calls of the reply, if they were resolved already.
    """
    response, case = outcome.response, planned.case.case
    record = ResultRecord(
        execution_id=execution_id,
        run_id=f"{execution_id}-{planned.key}",
        eval_id=planned.eval.id,
        case_id=case.id,
        target=planned.target.name,
        repeat=planned.repeat,
        attempts=outcome.attempts,
        status=result.status,
        score=result.score,
        candidate=response.text,
        evaluators=result.evaluators,
        trace_summary=result.trace_summary,
        tokens_usage=response.tokens_usage,
        cost_usd=response.cost_usd,
        latency_ms=response.latency_ms,
        latency_share_of=outcome.latency_share_of or UNSET,
        thread_id=response.thread_id,
        warnings=result.warnings,
        error=result.error,
        started_at=started_at,
        completed_at=now(),
        shard=shard.shard(planned) if shard else UNSET,
        unread=response.unread or UNSET,
        calls_complete=result.calls_complete,
        tags=tuple(dict.fromkeys(case.tags)) if case.tags else UNSET,
        place=str(planned.case.location or "") or UNSET,
        input=_cut(_prompt(_asked(case, response)), MAX_INPUT, redact) or UNSET,
        calls=_recorded_calls(known or resolve_calls(response), redact),
        metadata=case.metadata or UNSET,
        persona_id=case.persona_id or UNSET,
        turns=recorded_turns(response, redact) if response.turns else UNSET,
        ended_by=response.ended_by or UNSET,
        fault=UNSET if response.ended_by is None else fault_of(result),
        simulator=response.simulator or UNSET,
        sides=sides if shard and any(sides) else UNSET,
    )
    if options.include_messages or options.include_trace:
        return with_conversation(record, case.input_messages, response, options)
    return record


def _asked(case: Case, response: ProviderResponse) -> Sequence[Message]:
    """Return the messages of the request; of a conversation, all of its messages."""
    return response.output_messages or () if response.turns else case.input_messages


def recorded_turns(response: ProviderResponse, redact: Callable[[str], str] = str) -> tuple[RecordedTurn, ...]:
    """Return the turns of a conversation with their numbers; empty if it is one reply."""
    turns = zip(response.turns, split_turns(response), strict=True)
    return tuple([_recorded_turn(turn, exchange, redact) for turn, exchange in turns])


def _recorded_turn(turn: TurnReply, exchange: Exchange, redact: Callable[[str], str]) -> RecordedTurn:
    reply, known = turn.response, resolve_calls(exchange.response)
    is_known = known.source is not None and known.complete and known.calls is not None
    return RecordedTurn(
        index=turn.index,
        first_message=turn.first_message,
        last_message=turn.last_message,
        latency_ms=reply.latency_ms,
        tokens_usage=reply.tokens_usage,
        cost_usd=reply.cost_usd,
        calls=len(known.calls or ()) if is_known else None,
        attempts=turn.attempts,
        user=_cut(_prompt(exchange.user), MAX_INPUT, redact) or UNSET,
    )


_FAULTS: dict[str, Fault] = {
    **dict.fromkeys(("agent", "protocol", "timeout"), "agent"),
    **dict.fromkeys(("transport", "interrupted"), "environment"),
    "simulator": "simulator",
}
"""Sides to blame by kinds of errors."""


def fault_of(result: RunResult) -> Fault:
    """Return the side to blame for a conversation that could not be measured; `none` if it was."""
    return "none" if result.error is None else _FAULTS[result.error.kind]


def _prompt(messages: Sequence[Message]) -> str:
    return next((message.text for message in reversed(messages) if message.role == "user"), "")


def _recorded_calls(known: Calls, redact: Callable[[str], str]) -> tuple[RecordedCall, ...] | UnsetType:
    """Return the first calls with their inputs; unset if the reply does not report its calls."""
    calls = known.calls
    if calls is None:
        return UNSET
    return tuple(
        [RecordedCall(tool=call.tool, input=_recorded_input(call.input, redact)) for call in calls[:MAX_CALLS]]
    )


def _recorded_input(value: Any, redact: Callable[[str], str]) -> Any:
    """Return an input, or the beginning of its JSON if that is long."""
    if value is UNSET or not value:
        return value
    text = dump_json(value)
    return value if len(text) <= MAX_CALL_INPUT else _cut(text.decode(), MAX_CALL_INPUT, redact)


def _cut(text: str, limit: int, redact: Callable[[str], str]) -> str:
    """Return the beginning of a long text; redacted first, since a part of a secret is not recognised as one."""
    return text if len(text) <= limit else f"{redact(text)[:limit]}…"


def with_conversation(
    record: ResultRecord, input_messages: Sequence[Message], response: ProviderResponse, options: RunOptions
) -> ResultRecord:
    """Return the record with the messages and the trace, as far as the options ask for them."""
    return replace(
        record,
        messages=response.conversation(tuple(input_messages)) if options.include_messages else UNSET,
        trace=_trace(response) if options.include_trace else UNSET,
    )


def _trace(response: ProviderResponse) -> tuple[TraceEvent, ...] | None:
    """Return the agent's own trace, else one made from its messages; of a conversation, those of all turns."""
    if response.turns:
        traces = [_trace(exchange.response) for exchange in split_turns(response)]
        return None if None in traces else tuple([event for trace in traces for event in trace or ()])
    if response.trace is not None or response.output_messages is None:
        return response.trace
    return trace_from_messages(response.output_messages)


def new_id() -> str:
    """Return the id of a new execution: its time of start and a random suffix."""
    return f"{strftime('%Y%m%dT%H%M%S', gmtime())}-{os.urandom(3).hex()}"


def now() -> str:
    """Return the current time as results have it."""
    return _format_time(int(time() * 1000))


@lru_cache(maxsize=1)
def _format_time(milliseconds: int) -> str:
    """Format a time; cached, because quick runs have several in a millisecond."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(seconds))}.{rest:03d}Z"
