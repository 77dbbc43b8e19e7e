"""Exported runs as JSON Lines, and the legacy shape of a run."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, json

from agentv.errors import FormatError
from agentv.formats.messages import as_messages
from agentv.formats.reader import decode_response
from agentv.jsonio import dump_json
from agentv.model.conversation import Message
from agentv.model.events import Attempt
from agentv.model.request import Case
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.results import EvaluatorResult, ResultRecord
from agentv.model.stored import ExecutionRow, RunStatus, StoredRun

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


_NAMES = {
    "evalId": "eval_id",
    "personaId": "persona_id",
    "scenarioId": "case_id",
    "scenario_id": "case_id",
    "caseId": "case_id",
    "connectorId": "target_id",
    "connector_id": "target_id",
    "targetId": "target_id",
    "executionId": "execution_id",
    "startedAt": "started_at",
    "completedAt": "completed_at",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "latencyMs": "latency_ms",
    "tokensUsage": "tokens_usage",
    "threadId": "thread_id",
}
_STATUSES = {"error": "error", "failed": "error", "cancelled": "cancelled"}
_STATUSES.update(dict.fromkeys(("queued", "pending", "running"), "cancelled"))
"""What was under way when the runs were written is so no longer; everything else has ended."""
_VERDICTS = {"pass": "pass", "passed": "pass", "fail": "fail", "failed": "fail", "error": "error"}
NOT_EVALUATED = "skipped"
"""The verdict of a run that came without one; `agentv rescore` gives it one."""


def read_old_run(data: Any, position: int, default_execution: str) -> tuple[str, StoredRun]:
    """A run of the older shape, and the execution it belongs to; raises `FormatError` when it is none."""
    if not isinstance(data, Mapping):
        msg = f"expected a run as an object, got {type(data).__name__}"
        raise FormatError(msg)
    fields: dict[str, Any] = {_NAMES.get(key, str(key)): value for key, value in data.items()}
    if not isinstance(fields.get("case_id"), (str, int)) or not isinstance(fields.get("messages"), list):
        msg = "a run has at least a `scenarioId` (or `case_id`) and `messages`"
        raise FormatError(msg)
    messages = as_messages(fields["messages"])
    asked = next((at for at, message in enumerate(messages) if message.role not in ("system", "user")), len(messages))
    case = Case(id=str(fields["case_id"]), input_messages=messages[:asked])
    response = _response(fields, messages[asked:])
    execution_id = _execution_id(fields.get("execution_id"), default_execution)
    content = dump_json([case, []])
    key = blake2b(content + repr((fields.get("id"), position)).encode("utf-8", "replace"), digest_size=8).hexdigest()
    created = str(fields.get("created_at") or fields.get("started_at") or "")
    status = _STATUSES.get(str(fields.get("status")), "completed")
    record = _record(fields, case, response, status, (execution_id, key, created))
    last = Attempt(number=1, latency_ms=response.latency_ms, error=response.error, thread_id=response.thread_id)
    return execution_id, StoredRun(
        key=key,
        position=position,
        eval_id=record.eval_id,
        case_id=case.id,
        persona_id=None if fields.get("persona_id") is None else str(fields["persona_id"]),
        target_id=record.target,
        repeat=0,
        place="",
        status=status,  # type: ignore[arg-type]  # one of the statuses, from the table above
        tries=1,
        started_at=record.started_at,
        created_at=created,
        updated_at=str(fields.get("updated_at") or created),
        replaced=False,
        content=content,
        target=dump_json({"name": record.target}),
        line=dump_json(record),
        response=dump_json(response),
        sides=None,
        attempts=((1, last),),
    )


def _response(fields: Mapping[str, Any], said: tuple[Message, ...]) -> ProviderResponse:
    """What the agent said, with the numbers that stood beside it or in `metadata`."""
    error = _error(fields.get("error"))
    metadata = fields.get("metadata")
    reported = ("tokens_usage", "latency_ms", "thread_id", "output")
    return decode_response(
        {
            "success": error is None,
            "output_messages": said,
            "metadata": metadata if isinstance(metadata, Mapping) else None,
            **{name: fields[name] for name in reported if fields.get(name) is not None},
            **({} if error is None else {"error": error}),
        }
    )


def _record(
    fields: Mapping[str, Any], case: Case, response: ProviderResponse, status: str, named: tuple[str, str, str]
) -> ResultRecord:
    """The result as a line of today's; `named` are its execution, its key, and when it was made."""
    execution_id, key, created = named
    verdict, score, found = _result(fields.get("result"), status)
    return ResultRecord(
        execution_id=execution_id,
        run_id=f"{execution_id}-{key}",
        eval_id=str(fields.get("eval_id") or "imported"),
        case_id=case.id,
        target=str(fields.get("target_id") or "unknown"),
        repeat=0,
        attempts=1,
        status=verdict,  # type: ignore[arg-type]  # one of the verdicts, from the table above
        score=score,
        candidate=response.text,
        evaluators=found,
        trace_summary=None,
        tokens_usage=response.tokens_usage,
        cost_usd=response.cost_usd,
        latency_ms=response.latency_ms,
        thread_id=response.thread_id,
        warnings=response.warnings,
        error=response.error,
        started_at=str(fields.get("started_at") or created),
        completed_at=str(fields.get("completed_at") or fields.get("updated_at") or created),
        unread=response.unread or UNSET,
    )


def _execution_id(given: Any, default: str) -> str:
    """Older executions have numbers."""
    return default if given is None else f"execution-{given}" if isinstance(given, int) else str(given)


def _error(given: Any) -> ResponseError | None:
    if not given:
        return None
    message = given.get("message") if isinstance(given, Mapping) else given
    return ResponseError(kind="agent", message=message if isinstance(message, str) else dump_json(given).decode())


def _result(given: Any, status: str) -> tuple[str, float | None, tuple[EvaluatorResult, ...]]:
    """The verdict that came with the run, if any did."""
    if status == "error":
        return "error", None, ()
    if status != "completed" or not isinstance(given, Mapping):
        return NOT_EVALUATED, None, ()
    word = given.get("status")
    if word is None and isinstance(given.get("success", given.get("passed")), bool):
        word = "pass" if given.get("success", given.get("passed")) else "fail"
    verdict = _VERDICTS.get(str(word), NOT_EVALUATED)
    score = given.get("score")
    known = float(score) if isinstance(score, (int, float)) and 0 <= score <= 1 else None
    if verdict in ("pass", "fail") and known is None:
        known = float(verdict == "pass")
    told = dump_json(dict(given))[:200].decode("utf-8", "ignore")
    found = EvaluatorResult(
        name="imported",
        type="imported",
        status=verdict,  # type: ignore[arg-type]  # as above
        score=known,
        hits=(f"the imported run says: {told}",) if verdict == "pass" else (),
        misses=(f"the imported run says: {told}",) if verdict != "pass" else (),
    )
    return verdict, known, (found,) if verdict != NOT_EVALUATED else ()
