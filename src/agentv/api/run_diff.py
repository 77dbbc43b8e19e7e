"""Align all runs of a case, and find the call at which passing and failing ones part: `agentv runs diff`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from agentv.api.runs import read_runs, record_of, response_of
from agentv.api.stored_traces import StoredTraces
from agentv.divergence import FAILING, PASSING, find_divergences
from agentv.errors import DamagedRunError, StoreError
from agentv.evaluators.trajectory.wording import call_label
from agentv.matching.columns import InputKeys, align_calls, input_keys
from agentv.model.comparison import CallVariant, DiffCell, DiffColumn, DiffRun, LeftOutRun, RunDiff
from agentv.run.plan import has_persona
from agentv.scoring.calls import resolve_calls
from agentv.scoring.scorer import needs_trace_file
from agentv.scoring.turns import split_turns
from agentv.suggestions import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from agentv.model.comparison import AlignedCalls, Divergence
    from agentv.model.conversation import ToolCall
    from agentv.model.response import ProviderResponse
    from agentv.model.stored import ExecutionRow, StoredRun
    from agentv.protocols import Store

    FollowTrace = Callable[[ProviderResponse, StoredRun], ProviderResponse]

NOT_MEASURED = "it could not be measured"
NO_RESULT = "it has no result yet"
NO_MESSAGES = "its messages were not stored (persist: summary)"
NO_CALLS = "its reply does not report its tool calls"
TRACE_FILE = "its calls are in a file, which is not read here"
PARTLY_UNDERSTOOD = "its reply was only partly understood, so calls may be missing"


class MeasuredRun(NamedTuple):
    """Run with a verdict and known calls."""

    run: DiffRun
    calls: tuple[ToolCall, ...]
    turns: tuple[int, ...] = ()
    """Turn of each call, from 1; empty if the run is no conversation."""


def diff_runs(  # noqa: PLR0913 - one for each filter
    store: Store,
    case_id: str,
    executions: Sequence[ExecutionRow],
    *,
    eval_id: str | None = None,
    target: str | None = None,
    personas: Sequence[str] = (),
) -> RunDiff:
    """Align the runs of a case in these executions, and find the first divergence of passing and failing ones.

    If all of them have the same verdict and there are two executions, these are compared instead.
    """
    found: list[MeasuredRun | LeftOutRun] = []
    evals: dict[str, None] = {}
    for execution in executions:
        traces = StoredTraces(store, execution)
        for stored in _runs_of(store, execution, case_id, eval_id, target):
            if personas and not has_persona(stored.persona_id, personas):
                continue
            evals[stored.eval_id] = None
            found.append(measure_run(stored, execution.id, traces.follow))
    if len(evals) > 1:
        msg = f"case {case_id!r} is in several evals: {', '.join(evals)}; choose one with --eval"
        raise StoreError(msg)
    if not evals:
        known = {row.case_id for execution in executions for row in store.runs(execution.id)}
        where = f" of target {target!r}" if target else ""
        where += f" with persona {', '.join(personas)}" if personas else ""
        hint = "" if case_id in known else suggest(case_id, known)
        msg = f"{' and '.join(row.id for row in executions)}: no run of case {case_id!r}{where}{hint}"
        raise StoreError(msg)
    return diff_measured(found, (next(iter(evals)), case_id), [row.id for row in executions])


def _runs_of(
    store: Store, execution: ExecutionRow, case_id: str, eval_id: str | None, target: str | None
) -> Iterator[StoredRun]:
    keys = dict.fromkeys(store.find_keys(execution.id, case_id=case_id))
    for stored in read_runs(store, execution, keys):
        if eval_id in (None, stored.eval_id) and target in (None, stored.target):
            yield stored


def _run_id(stored: StoredRun, execution_id: str) -> str:
    return stored.own_id or f"{execution_id}-{stored.key}"


def measure_run(stored: StoredRun, execution_id: str, follow: FollowTrace | None) -> MeasuredRun | LeftOutRun:
    """Return a run with its calls, or the reason why it cannot be compared; `follow` reads the file of its trace."""
    found = _measured_run(stored, execution_id, follow)
    return LeftOutRun(id=_run_id(stored, execution_id), reason=found) if isinstance(found, str) else found


def _measured_run(stored: StoredRun, execution_id: str, follow: FollowTrace | None) -> MeasuredRun | str:
    try:
        record, response = record_of(stored), response_of(stored)
    except DamagedRunError as error:
        return str(error)
    if record is None or record.status not in ("pass", "fail"):
        return NO_RESULT if record is None else NOT_MEASURED
    if response is None:
        return NO_MESSAGES
    if needs_trace_file(response):
        if follow is None:
            return TRACE_FILE
        response = follow(response, stored)
    known = resolve_calls(response)
    if known.calls is None or not known.complete:
        return NO_CALLS if known.calls is None else PARTLY_UNDERSTOOD
    run = DiffRun(
        id=_run_id(stored, execution_id),
        execution_id=execution_id,
        target=stored.target,
        repeat=stored.repeat,
        status=record.status,
    )
    return MeasuredRun(run, known.calls, _turns_of_calls(response))


def _turns_of_calls(response: ProviderResponse) -> tuple[int, ...]:
    turns: list[int] = []
    for number, exchange in enumerate(split_turns(response) if response.turns else (), 1):
        turns += [number] * len(resolve_calls(exchange.response).calls or ())
    return tuple(turns)


def diff_measured(
    runs: Iterable[MeasuredRun | LeftOutRun], case: tuple[str, str], executions: Sequence[str]
) -> RunDiff:
    """Align runs of a case, which is named by its eval and its id, and find where they part."""
    measured: list[MeasuredRun] = []
    left_out: list[LeftOutRun] = []
    for each in runs:
        if isinstance(each, LeftOutRun):
            left_out.append(each)
        else:
            measured.append(each)
    is_second = [each.run.status == "fail" for each in measured]
    groups = (PASSING, FAILING)
    last = executions[-1]
    if len(set(is_second)) == 1 and len({each.run.execution_id for each in measured}) == 2:  # noqa: PLR2004 - a pair
        groups = (next(each.run.execution_id for each in measured if each.run.execution_id != last), last)
        is_second = [each.run.execution_id == last for each in measured]
    order = sorted(range(len(measured)), key=lambda index: is_second[index])
    measured, is_second = [measured[index] for index in order], [is_second[index] for index in order]
    calls = [each.calls for each in measured]
    inputs = input_keys(calls)
    aligned = align_calls(calls, [not each for each in is_second], inputs)
    found = find_divergences(calls, is_second, aligned, groups, inputs)
    columns, cells = _columns(calls, inputs, aligned, is_second)
    turns = _turns_of_columns(measured, aligned)
    columns = tuple([replace(column, turn=turn) for column, turn in zip(columns, turns, strict=True)])
    return RunDiff(
        eval_id=case[0],
        case_id=case[1],
        groups=groups,
        runs=tuple(
            [
                DiffRun(
                    id=each.run.id,
                    execution_id=each.run.execution_id,
                    target=each.run.target,
                    repeat=each.run.repeat,
                    status=each.run.status,
                    cells=row,
                )
                for each, row in zip(measured, cells, strict=True)
            ]
        ),
        split=is_second.count(False),
        columns=columns,
        first=None if found.first is None else _with_turn(found.first, turns),
        divergences=tuple([_with_turn(each, turns) for each in found.clusters]),
        unexplained=found.unexplained if found.clusters else (),
        left_out=tuple(left_out),
    )


def _turns_of_columns(measured: Sequence[MeasuredRun], aligned: AlignedCalls) -> list[int | None]:
    """Return for each column the turn in which most runs make its call; `None` if no run is a conversation."""
    counts: list[Counter[int]] = [Counter() for _ in aligned.tools]
    for run, cells in zip(measured, aligned.cells, strict=True):
        for count, call in zip(counts, cells, strict=True):
            if call is not None and run.turns:
                count[run.turns[call]] += 1
    return [count.most_common(1)[0][0] if count else None for count in counts]


def _with_turn(divergence: Divergence, turns: Sequence[int | None]) -> Divergence:
    turn = turns[divergence.column]
    return divergence if turn is None else replace(divergence, sentence=f"turn {turn}: {divergence.sentence}")


def _columns(
    runs: Sequence[Sequence[ToolCall]], inputs: InputKeys, aligned: AlignedCalls, is_second: Sequence[bool]
) -> tuple[tuple[DiffColumn, ...], list[tuple[DiffCell | None, ...]]]:
    """Return the columns with their variants, and the cells of each run."""
    variants: list[dict[Hashable, list[int]]] = [{} for _ in aligned.tools]
    labels: list[dict[Hashable, str]] = [{} for _ in aligned.tools]
    keyed: list[list[Hashable]] = []
    for run, own, cells, second in zip(runs, inputs, aligned.cells, is_second, strict=True):
        row: list[Hashable] = []
        for column, cell in enumerate(cells):
            if cell is None:
                row.append(None)
                continue
            call = run[cell]
            key = (own[cell], call.effective_status)
            if key not in variants[column]:
                variants[column][key] = [0, 0]
                labels[column][key] = _label(call)
            variants[column][key][second] += 1
            row.append(key)
        keyed.append(row)
    columns = []
    numbers: list[dict[Hashable, int]] = []
    for tool, counts, names in zip(aligned.tools, variants, labels, strict=True):
        order = [key for key, _ in sorted(counts.items(), key=_frequency)]
        numbers.append({key: number for number, key in enumerate(order)})
        columns.append(
            DiffColumn(
                tool=tool,
                first=sum(first for first, _ in counts.values()),
                second=sum(second for _, second in counts.values()),
                variants=tuple(
                    [CallVariant(label=names[key], first=counts[key][0], second=counts[key][1]) for key in order]
                ),
            )
        )
    rows = [
        tuple(
            [
                None if call is None else DiffCell(call=call, variant=numbers[column][key])
                for column, (call, key) in enumerate(zip(calls, row, strict=True))
            ]
        )
        for calls, row in zip(aligned.cells, keyed, strict=True)
    ]
    return tuple(columns), rows


def _frequency(item: tuple[Hashable, list[int]]) -> tuple[int, int]:
    first, second = item[1]
    return -first, -second


def _label(call: ToolCall) -> str:
    status = call.effective_status
    return call_label(call) if status == "ok" else f"{call_label(call)} {status}"
