"""Find and decode stored executions and runs."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from agentv.api.traces import trace_follower
from agentv.errors import DamagedRunError, FormatError, StoreError
from agentv.formats.incomplete import mark_incomplete
from agentv.formats.plain_blocks import drop_plain_blocks
from agentv.formats.reader import decode_response
from agentv.jsonio import parse_json
from agentv.model.conversation import Message, may_have_gap
from agentv.model.events import RunFinished
from agentv.model.request import Case
from agentv.model.response import TRACE_REF, EndedBy, ProviderResponse, ResponseError, TurnReply
from agentv.model.results import DiffLabels, ResultRecord, RunResult
from agentv.model.simulation import SimulatorUse
from agentv.run.attempt import RunAttempts
from agentv.run.options import RunOptions
from agentv.run.records import make_record, now, with_conversation
from agentv.scoring.scorer import needs_trace_file
from agentv.scoring.turns import combine_turns, split_turns
from agentv.spec.environment import resolve_env

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from agentv.model.stored import ExecutionRow, StoredResult, StoredRun
    from agentv.protocols import Store
    from agentv.run.plan import PlannedRun
    from agentv.scoring.scorer import TraceLoader

CONVERSATION_FIELDS = ("turns", "ended_by", "simulator")
"""Fields of a stored reply that the reply of an agent does not have."""
MAX_NAMED = 5
"""Number of executions that a message names."""
_LAST = re.compile(r"(?:last(?:~([0-9]{1,9}))?)?")
decode_record = msgspec.json.Decoder(ResultRecord).decode
_decode_sides = msgspec.json.Decoder(list[tuple[str, list[str], dict[int, str]] | None]).decode
_decode_content = msgspec.json.Decoder(tuple[Case, list[Any]]).decode


class NamedRuns(msgspec.Struct, frozen=True):
    """An execution, or one run of it, found by name."""

    execution: ExecutionRow
    key: str | None = None


def find(store: Store, name: str, noun: str = "execution") -> ExecutionRow:
    """Return the execution with this id or unique beginning of an id.

    `last` or an empty name is the newest one, `last~1` the one before it, and so on.
    """
    if back := _LAST.fullmatch(name):
        wanted = int(back[1] or 0) + 1
        newest = store.executions(wanted)
        if len(newest) < wanted:
            held = f"only {len(newest)} of them" if newest else "no execution"
            msg = f"{store.name} holds {held} yet; `agentv eval` makes one"
            raise StoreError(msg)
        return store.find_execution(newest[-1].id)[0]
    executions = store.find_execution(name)
    if not executions:
        msg = f"{store.name} holds no {noun} {name!r}; `agentv executions list` shows those there are"
        raise StoreError(msg)
    if len(executions) > 1:
        more = ["…"] if len(executions) > MAX_NAMED else []
        ids = ", ".join([*(execution.id for execution in executions[:MAX_NAMED]), *more])
        msg = f"{name!r} could be any of {len(executions)} executions: {ids}"
        raise StoreError(msg)
    return executions[0]


def resolve(store: Store, name: str) -> NamedRuns:
    """Return the execution or run with this id or unique beginning of an id; the newest execution for `last`."""
    own = store.find_own_id(name)
    if len(own) == 1:
        return NamedRuns(find(store, own[0][0]), own[0][1])
    if own:
        msg = f"{len(own)} runs had the id {name!r}: name one by its execution and key, as `agentv runs list` does"
        raise StoreError(msg)
    head, _, tail = name.rpartition("-")
    if head and "-" in head and not any(row.id == name for row in store.find_execution(name)):
        execution = find(store, head)
        keys = store.find_keys(execution.id, beginning=tail)
        if len(keys) == 1:
            return NamedRuns(execution, keys[0])
        problem = "no run begins" if not keys else f"{len(keys)} runs begin"
        msg = f"{problem} with {head}-{tail}; `agentv runs show {execution.id}` lists them"
        raise StoreError(msg)
    return NamedRuns(find(store, name, "execution or run"))


def replay_result(
    stored: StoredResult, options: RunOptions, planned: PlannedRun | None = None, follow: TraceLoader | None = None
) -> RunFinished:
    """Return the event of a stored result; if the reply was not stored, it has only the text of the record.

    `follow` reads its trace file; by default, that is done with the folders of the planned run.
    """
    with translate_damage(stored):
        record = decode_record(stored.line)
        response = ProviderResponse(text=record.candidate, unread=record.unread or ())
        if stored.response is not None:
            response = _read_reply(stored.response)
        sides = _read_sides(stored.sides)
    line: bytes | None = stored.line
    if (options.include_messages or options.include_trace) and stored.response is not None:
        input_messages = () if planned is None else planned.case.case.input_messages
        if follow is None and planned is not None:
            follow = _trace_follower(planned)
        if follow is not None and options.include_trace and needs_trace_file(response):
            response = follow(response)
            unread = [str(place) for place in response.unread if place.path == TRACE_REF]
            record = replace(record, warnings=(*record.warnings, *unread))
        record, line = with_conversation(record, input_messages, response, options), None
    place = stored.place if planned is None else str(planned.case.location or "")
    return RunFinished(
        record=record,
        response=response,
        sides=sides,
        order=stored.position if planned is None else planned.order,
        file=(planned.eval.file or "") if planned else place.rsplit(":", 2)[0],
        place=place,
        line=line,
    )


def damaged_result(planned: PlannedRun, execution_id: str, reason: DamagedRunError) -> RunFinished:
    """Return the event of a run whose stored result is damaged: an error, since its verdict is not known."""
    response = ProviderResponse(success=False, error=ResponseError(kind="protocol", message=str(reason)))
    result = RunResult(status="error", score=None, error=response.error)
    record = make_record(execution_id, planned, RunAttempts(response, 0), result, now(), RunOptions(), None)
    place = str(planned.case.location or "")
    return RunFinished(record=record, response=response, order=planned.order, file=planned.eval.file or "", place=place)


def _trace_follower(planned: PlannedRun) -> TraceLoader:
    eval_, target = planned.eval, planned.target
    store = resolve_env({"trace_store": target.settings.get("trace_store")}, os.environ)["trace_store"]
    return trace_follower(target.folder or eval_.folder, eval_.root, store, (eval_.folder,))


@contextmanager
def translate_damage(run: StoredRun | StoredResult | None = None) -> Iterator[None]:
    """Raise an error for stored data that is damaged or cannot be decoded: `DamagedRunError` if the run is known."""
    if run is not None and run.damage is not None:
        raise DamagedRunError({run.run_id: run.damage})
    try:
        yield
    except (msgspec.MsgspecError, FormatError, UnicodeDecodeError, RecursionError) as error:
        if run is not None and run.run_id:
            raise DamagedRunError({run.run_id: str(error)}) from error
        msg = f"the run store is damaged, a run in it cannot be read ({error}); delete that execution, or move the file"
        raise StoreError(msg) from error


def damaged_execution(execution: ExecutionRow) -> str:
    """Return the message about an execution whose row in the store is damaged."""
    fix = f"`agentv executions export {execution.id}` writes those of its runs that are intact; run it anew"
    return f"execution {execution.id} is damaged: its command, counts and summary cannot be trusted. {fix}"


def find_damaged(store: Store, execution_id: str) -> dict[str, str]:
    """Return the reasons why results of an execution cannot be trusted, by the keys of their runs."""
    damaged = {row.key: row.damage for row in store.runs(execution_id) if row.damage is not None}
    results = {stored.key: stored.damage for stored in store.results(execution_id) if stored.damage is not None}
    return store.damaged_snapshots(execution_id) | damaged | results


def _read_sides(data: bytes | None) -> tuple[DiffLabels | None, ...]:
    return () if data is None else tuple([labels and DiffLabels(*labels) for labels in _decode_sides(data)])


def sides_of(run: StoredRun | StoredResult) -> tuple[DiffLabels | None, ...]:
    """Return the stored labels of both sides of each diff."""
    with translate_damage(run):
        return _read_sides(run.sides)


def read_runs(store: Store, execution: ExecutionRow, keys: Collection[str]) -> Iterator[StoredRun]:
    """Yield the runs of an execution with these keys; all of its runs are read at once if these are most of them."""
    if 2 * len(keys) >= execution.runs:
        yield from (run for run in store.stored_runs(execution.id) if run.key in keys)
        return
    for key in keys:
        yield from store.stored_runs(execution.id, key)


def record_of(run: StoredRun) -> ResultRecord | None:
    """Return the result record of a run, if it has one."""
    with translate_damage(run):
        return None if run.line is None else decode_record(run.line)


def case_of(run: StoredRun) -> tuple[Case, list[Any]]:
    """Return the case of a run and the configurations of its evaluators."""
    with translate_damage(run):
        return _decode_content(run.content)


def response_of(run: StoredRun, plain_blocks: tuple[str, ...] = ()) -> ProviderResponse | None:
    """Return the stored part of the reply; blocks of these types are removed from its unread places."""
    with translate_damage(run):
        if run.response is None:
            return None
        return _read_reply(run.response, plain_blocks)


def _read_reply(data: bytes, plain_blocks: tuple[str, ...] = ()) -> ProviderResponse:
    """Decode a stored reply; each turn of a conversation is read as a reply of its own."""
    fields = parse_json(data)
    # It is not known how an imported conversation ended, and one that failed at once has no turns.
    if not isinstance(fields, dict) or not (fields.get("ended_by") or fields.get("turns")):
        return _with_marks(decode_response(fields), data, plain_blocks)
    turns = msgspec.convert(fields.get("turns") or (), tuple[TurnReply, ...])
    whole = decode_response({name: value for name, value in fields.items() if name not in CONVERSATION_FIELDS})
    written = fields.get("output_messages")
    if turns and written and len(written) != len(whole.output_messages or ()):
        # The result of a call may stand in a later turn than the call: read as one reply, it would join the call.
        whole = replace(whole, output_messages=msgspec.convert(written, tuple[Message, ...]))
    exchanges = [
        replace(exchange, response=_with_marks(exchange.response, data, plain_blocks))
        for exchange in split_turns(replace(whole, turns=turns))
    ]
    ended_by = msgspec.convert(fields.get("ended_by"), EndedBy | None)
    simulator = msgspec.convert(fields.get("simulator"), SimulatorUse | None)
    combined = combine_turns(exchanges, turns[0].first_message) if turns else whole
    # An imported conversation has numbers of the whole only.
    names = ("success", "error", "tokens_usage", "cost_usd", "latency_ms", "thread_id", "metadata")
    numbers = {name: getattr(whole, name) for name in names}
    return replace(combined, ended_by=ended_by, simulator=simulator, **numbers)


def _with_marks(response: ProviderResponse, data: bytes, plain_blocks: tuple[str, ...]) -> ProviderResponse:
    if may_have_gap(data):
        response = mark_incomplete(response)
    return replace(response, unread=drop_plain_blocks(response.unread, plain_blocks)) if plain_blocks else response


def replies_of(run: StoredRun) -> tuple[TurnReply, ...]:
    """Return the turns of a stored conversation; none if it is one reply or was not stored."""
    response = response_of(run)
    return () if response is None else response.turns


def conversation_of(run: StoredRun) -> tuple[Message, ...]:
    """Return the conversation, as far as it was stored."""
    response = response_of(run)
    input_messages = case_of(run)[0].input_messages
    return input_messages if response is None else response.conversation(input_messages)
