"""What a store holds, found by the names people use, taken out and put back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from agentv.api.resume import find, whole
from agentv.errors import FormatError, StoreError
from agentv.formats.openai import to_openai
from agentv.formats.plain_blocks import drop_plain_blocks
from agentv.formats.reader import decode_response
from agentv.formats.run_export import (
    EXECUTION_SCHEMA,
    RUN_SCHEMA,
    read_execution,
    read_old_run,
    read_run,
    schema_of,
    write_execution,
    write_run,
)
from agentv.jsonio import parse_json
from agentv.model.request import Case
from agentv.model.results import ResultRecord
from agentv.model.stored import ExecutionRow
from agentv.run.records import new_id, now

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentv.model.conversation import Message
    from agentv.model.response import ProviderResponse
    from agentv.model.stored import StoredRun
    from agentv.protocols import Store

KEY_LENGTH = 16
_decode_record = msgspec.json.Decoder(ResultRecord).decode
_decode_content = msgspec.json.Decoder(tuple[Case, list[Any]]).decode


class NamedRuns(NamedTuple):
    """What a name stands for: an execution, or one run of it."""

    execution: ExecutionRow
    key: str | None = None


def resolve(store: Store, name: str) -> NamedRuns:
    """The execution or the run of this id; `last` or nothing for the last execution, a beginning where it is clear."""
    head, _, tail = name.rpartition("-")
    if head and "-" in head and not any(row.id == name for row in store.find_execution(name)):
        execution = find(store, head)
        keys = store.find_keys(execution.id, beginning=tail)
        if len(keys) == 1:
            return NamedRuns(execution, keys[0])
        problem = "no run begins" if not keys else f"{len(keys)} runs begin"
        msg = f"{problem} with {head}-{tail}; `agentv executions show {execution.id}` lists them"
        raise StoreError(msg)
    return NamedRuns(find(store, name))


@whole()
def record_of(run: StoredRun) -> ResultRecord | None:
    """The result of a run, if it has one."""
    return None if run.line is None else _decode_record(run.line)


@whole()
def case_of(run: StoredRun) -> tuple[Case, list[Any]]:
    """The case and its evaluators, as they were."""
    return _decode_content(run.content)


@whole()
def response_of(run: StoredRun, plain_blocks: tuple[str, ...] = ()) -> ProviderResponse | None:
    """Return the reply as far as it was stored; blocks of these types are no longer unread places of it."""
    if run.response is None:
        return None
    response = decode_response(parse_json(run.response))
    return replace(response, unread=drop_plain_blocks(response.unread, plain_blocks)) if plain_blocks else response


def conversation_of(run: StoredRun) -> tuple[Message, ...]:
    """The whole conversation, as far as it was kept."""
    response = response_of(run)
    return (*case_of(run)[0].input_messages, *((response and response.output_messages) or ()))


def export_runs(store: Store, named: NamedRuns, *, openai: bool = False) -> Iterator[bytes]:
    """Lines that `import_runs` reads again; with `openai`, each run with its messages in OpenAI's form instead."""
    execution = named.execution
    if not openai:
        yield write_execution(execution)
    for run in store.stored_runs(execution.id, named.key):
        with whole():
            line = write_run(run, execution.id)
        yield line if not openai else _in_openai_form(line, run)


def _in_openai_form(line: bytes, run: StoredRun) -> bytes:
    """Seed 004's `Run` to the letter: its messages are OpenAI's, and its arguments are texts."""
    fields = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    messages = to_openai(conversation_of(run)) if run.response is not None else None
    internal = ("response", "output_from", "sides", "key", "position", "place", "tries", "replaced")
    kept = {name: value for name, value in fields.items() if name not in internal}
    return msgspec.json.encode({**kept, "messages": messages})


def import_runs(store: Store, lines: Iterable[bytes]) -> list[tuple[ExecutionRow, int]]:
    """Put runs back that were exported, or were kept in the older shape; each execution whole or not at all."""
    executions: dict[str, ExecutionRow] = {}
    runs: dict[str, dict[str, StoredRun]] = {}
    fresh = f"imported-{new_id()}"
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            _take(line, number, fresh, executions, runs)
        except (FormatError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            msg = f"line {number}: {error}"
            raise FormatError(msg) from error
        except KeyError as error:
            msg = f"line {number}: the run has no {error}"
            raise FormatError(msg) from error
    if not executions and not runs:
        msg = "there are no runs in it"
        raise FormatError(msg)
    added = []
    for name in [*executions, *(name for name in runs if name not in executions)]:
        held = list(runs.get(name, {}).values())
        execution = executions.get(name) or _imported(name, held)
        added.append((execution, store.add(execution, held)))
    return added


def _take(
    line: bytes, number: int, fresh: str, executions: dict[str, ExecutionRow], runs: dict[str, dict[str, StoredRun]]
) -> None:
    schema = schema_of(line)
    if schema == EXECUTION_SCHEMA:
        execution = read_execution(line)
        executions[execution.id] = execution
        return
    if schema == RUN_SCHEMA:
        name, run = read_run(line)
    elif schema is None:
        name, run = read_old_run(parse_json(line), number, fresh)
    else:
        known = f"expected {EXECUTION_SCHEMA}, {RUN_SCHEMA}, or a run without a schema"
        msg = f"schema {schema!r}; {known}"
        raise FormatError(msg)
    if runs.setdefault(name, {}).setdefault(run.key, run) is not run:
        msg = f"run {name}-{run.key} is there twice"
        raise FormatError(msg)


def _imported(name: str, runs: list[StoredRun]) -> ExecutionRow:
    """An execution for runs that came without one."""
    verdicts = [record.status for run in runs if (record := record_of(run)) is not None]
    started = min((run.started_at for run in runs if run.started_at), default=now())
    execution = ExecutionRow(id=name, status="imported", planned=len(runs), runs=len(runs), started_at=started)
    return replace(
        execution,
        passed=verdicts.count("pass"),
        failed=verdicts.count("fail"),
        errors=verdicts.count("error"),
        completed_at=max((run.updated_at for run in runs if run.updated_at), default=None),
    )
