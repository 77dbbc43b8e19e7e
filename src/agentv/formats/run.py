"""A run as one line of JSON, seed 004's `Run`, and back again without the loss of a letter."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct, json

from agentv.errors import FormatError
from agentv.formats.json import dump_json
from agentv.model.attempt import Attempt
from agentv.model.record import ResultRecord
from agentv.model.run import ExecutionRow, RunStatus, StoredRun

RUN_SCHEMA = "agentv.run/1"
EXECUTION_SCHEMA = "agentv.execution/1"
TOP = ("latency_ms", "tokens_usage", "cost_usd", "thread_id", "error", "completed_at")
"""The fields that a run has from its result record."""
NAMES = {"run_id": "id", "target": "target_id"}
"""Fields that a record calls otherwise."""
SAME = ("execution_id", "run_id", "eval_id", "case_id", "target", "repeat", "started_at", *TOP)
"""The fields of a record that stand in a run, too: they are not written twice unless they differ, as when it is run
again."""
NULL = Raw(b"null")


class _Asked(Struct):
    input_messages: list[Raw] = []


class _Round(Struct, frozen=True):
    round: int
    attempt: Attempt


class _Line(Struct, kw_only=True):
    """What is read of an exported run; everything else in it can be told from this."""

    execution_id: str
    key: str
    position: int
    eval_id: str
    case_id: str
    persona_id: str | None = None
    target_id: str
    repeat: int
    place: str = ""
    status: RunStatus
    tries: int
    started_at: str | None = None
    created_at: str
    updated_at: str
    replaced: bool = False
    case: Raw
    evaluators: Raw
    target: Raw
    messages: list[Raw] | None = None
    output_from: int | None = None
    response: dict[str, Raw] | None = None
    result: dict[str, Raw] | None = None
    sides: Raw = NULL
    attempts: list[_Round] = []


def write_execution(execution: ExecutionRow) -> bytes:
    """The line that stands before the runs of an execution."""
    return dump_json({"schema": EXECUTION_SCHEMA, **msgspec.structs.asdict(execution), "seq": 0})


def read_execution(line: bytes) -> ExecutionRow:
    """The execution that such a line tells of."""
    return json.decode(line, type=ExecutionRow)


def write_run(run: StoredRun, execution_id: str) -> bytes:
    """One run: the fields of the contract, the snapshots, and what is needed to put it back."""
    case, evaluators = json.decode(run.content, type=tuple[Raw, Raw])
    record = {} if run.line is None else json.decode(run.line, type=dict[str, Raw])
    response = None if run.response is None else json.decode(run.response, type=dict[str, Raw])
    asked = json.decode(case, type=_Asked).input_messages
    said = response.pop("output_messages", None) if response is not None else None
    fields: dict[str, Any] = {
        "schema": RUN_SCHEMA,
        "id": f"{execution_id}-{run.key}",
        "execution_id": execution_id,
        "eval_id": run.eval_id,
        "case_id": run.case_id,
        "persona_id": run.persona_id,
        "target_id": run.target_id,
        "repeat": run.repeat,
        "status": run.status,
        "started_at": run.started_at,
        **{name: record.get(name, NULL) for name in TOP},
        "messages": None if response is None else [*asked, *(json.decode(said, type=list[Raw]) if said else ())],
        "output": NULL if response is None else _output(response),
        "result": None,
        "created_at": run.created_at,
        "updated_at": run.updated_at,
        "case": case,
        "target": Raw(run.target),
        "evaluators": evaluators,
        "key": run.key,
        "position": run.position,
        "place": run.place,
        "tries": run.tries,
        "replaced": run.replaced,
        "attempts": [_Round(number, attempt) for number, attempt in run.attempts],
        "output_from": None if said is None else len(asked),
        "response": response,
        "sides": NULL if run.sides is None else Raw(run.sides),
    }
    if record:
        fields["result"] = {name: value for name, value in record.items() if not _is_told(name, value, fields)}
    return json.encode(fields)


def _is_told(name: str, value: Raw, fields: Mapping[str, Any]) -> bool:
    """Whether a field of the record stands in the run itself, the same to the letter."""
    return name in TOP or (name in SAME and json.encode(fields[NAMES.get(name, name)]) == bytes(value))


def _output(response: Mapping[str, Raw]) -> Raw:
    """The structured output of an agent that sent one beside its messages."""
    metadata = response.get("metadata", NULL)
    return (json.decode(metadata, type=dict[str, Raw] | None) or {}).get("output", NULL)


def read_run(line: bytes) -> tuple[str, StoredRun]:
    """The execution of an exported run, and the run."""
    found = json.decode(line, type=_Line)
    response = found.response
    if response is not None and found.output_from is not None:
        said = [bytes(each) for each in (found.messages or ())[found.output_from :]]
        response = _with_messages(response, b"[" + b",".join(said) + b"]")
    record = None
    if found.result is not None:
        top = json.decode(line, type=dict[str, Raw])
        record = _joined(
            {
                name: (found.result[name] if name in found.result else top[NAMES.get(name, name)])
                for name in ResultRecord.__struct_fields__
                if name in SAME or name in found.result
            }
        )
    run = StoredRun(
        key=found.key,
        position=found.position,
        eval_id=found.eval_id,
        case_id=found.case_id,
        persona_id=found.persona_id,
        target_id=found.target_id,
        repeat=found.repeat,
        place=found.place,
        status=found.status,
        tries=found.tries,
        started_at=found.started_at,
        created_at=found.created_at,
        updated_at=found.updated_at,
        replaced=found.replaced,
        content=b"[" + bytes(found.case) + b"," + bytes(found.evaluators) + b"]",
        target=bytes(found.target),
        line=record,
        response=None if response is None else _joined(response),
        sides=None if bytes(found.sides) == bytes(NULL) else bytes(found.sides),
        attempts=tuple([(each.round, each.attempt) for each in found.attempts]),
    )
    return found.execution_id, run


def schema_of(line: bytes) -> str | None:
    """What a line says it is; raises `FormatError` when it is no JSON object."""
    try:
        found = json.decode(line, type=dict[str, Raw])
        return json.decode(found["schema"], type=str) if "schema" in found else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        msg = f"not a JSON object: {error}"
        raise FormatError(msg) from error


def _with_messages(response: Mapping[str, Raw], messages: bytes) -> dict[str, Raw]:
    """The reply with its messages where they stood: behind the text."""
    before = {name: value for name, value in response.items() if name in ("success", "text")}
    after = {name: value for name, value in response.items() if name not in before}
    return {**before, "output_messages": Raw(messages), **after}


def _joined(fields: Mapping[str, Raw]) -> bytes:
    return b"{" + b",".join(json.encode(name) + b":" + bytes(value) for name, value in fields.items()) + b"}"
