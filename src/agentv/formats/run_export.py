"""Exported runs as JSON Lines, and the legacy shape of a run."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, json
from msgspec.structs import asdict, replace

from agentv.errors import FormatError
from agentv.formats.imported_turns import as_response, read_turns, restore_turns
from agentv.formats.messages import as_messages
from agentv.formats.reader import decode_response
from agentv.jsonio import dump_json
from agentv.model.conversation import Message
from agentv.model.events import Attempt
from agentv.model.request import Case
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.results import EvaluatorResult, RecordedTurn, ResultRecord
from agentv.model.stored import ExecutionRow, RunStatus, StoredRun
from agentv.redaction import shorten

RUN_SCHEMA = "agentv.run/2"
EXECUTION_SCHEMA = "agentv.execution/2"
RUN_SCHEMAS = (RUN_SCHEMA, "agentv.run/1")
"""Versions that are read, the one that is written first."""
EXECUTION_SCHEMAS = (EXECUTION_SCHEMA, "agentv.execution/1")
RECORD_FIELDS = ("attempts", "latency_ms", "tokens_usage", "cost_usd", "thread_id", "error", "completed_at")
"""The fields that a run copies from its result record."""
CONVERSATION_FIELDS = ("turns", "ended_by", "fault", "simulator")
"""The same of a conversation; other runs do not have them."""
SHARED_FIELDS = ("execution_id", "run_id", "eval_id", "case_id", "target", "repeat", "started_at", *RECORD_FIELDS)
"""Fields shared by a record and its run; the record omits them if they are equal. They differ after a rerun."""
NULL = Raw(b"null")


class _CaseInput(Struct):
    input_messages: list[Raw] = []


class _LoggedAttempt(Attempt, frozen=True, kw_only=True):
    round: int


class _ExportedRun(Struct, kw_only=True):
    """The fields that are read from an exported run; all others are derived from them."""

    id: str = ""
    execution_id: str
    key: str
    position: int
    eval_id: str
    case_id: str
    persona_id: str | None = None
    target: str
    repeat: int
    place: str = ""
    status: RunStatus
    rounds: int
    started_at: str | None = None
    created_at: str
    updated_at: str
    superseded: bool = False
    case: Raw
    evaluators: Raw
    target_settings: Raw
    messages: list[Raw] | None = None
    output_from: int | None = None
    output_to: int | None = None
    response: dict[str, Raw] | None = None
    result: dict[str, Raw] | None = None
    sides: Raw = NULL
    attempt_log: list[_LoggedAttempt] = []


def write_execution(execution: ExecutionRow) -> bytes:
    """Return the line that precedes the runs of an execution."""
    return dump_json({"schema": EXECUTION_SCHEMA, **asdict(execution), "seq": 0})


def read_execution(line: bytes) -> ExecutionRow:
    """Parse the line of an execution."""
    return json.decode(line, type=ExecutionRow)


def write_run(run: StoredRun, execution_id: str) -> bytes:
    """Return the line of a run: its public fields, the snapshots, and the data needed to import it."""
    case, evaluators = json.decode(run.content, type=tuple[Raw, Raw])
    record = {} if run.line is None else json.decode(run.line, type=dict[str, Raw])
    response = None if run.response is None else json.decode(run.response, type=dict[str, Raw])
    prompt = json.decode(case, type=_CaseInput).input_messages
    output = response.pop("output_messages", None) if response is not None else None
    sent = json.decode(output, type=list[Raw]) if output else []
    fields: dict[str, Any] = {
        "schema": RUN_SCHEMA,
        "id": run.own_id or f"{execution_id}-{run.key}",
        "execution_id": execution_id,
        "eval_id": run.eval_id,
        "case_id": run.case_id,
        "persona_id": run.persona_id,
        "target": run.target,
        "repeat": run.repeat,
        "status": run.status,
        "started_at": run.started_at,
        **{name: record.get(name, NULL) for name in RECORD_FIELDS},
        **{name: record[name] for name in CONVERSATION_FIELDS if name in record},
        "messages": None if response is None else [*prompt, *sent, *_answer(response, output)],
        "output": NULL if response is None else _output(response),
        "result": None,
        "created_at": run.created_at,
        "updated_at": run.updated_at,
        "case": case,
        "target_settings": Raw(run.target_settings),
        "evaluators": evaluators,
        "key": run.key,
        "position": run.position,
        "place": run.place,
        "rounds": run.rounds,
        "superseded": run.superseded,
        "attempt_log": [_LoggedAttempt(round=number, **asdict(attempt)) for number, attempt in run.attempt_log],
        "output_from": None if output is None else len(prompt),
        "output_to": None if output is None else len(prompt) + len(sent),
        "response": response,
        "sides": NULL if run.sides is None else Raw(run.sides),
    }
    if record:
        fields["result"] = {name: value for name, value in record.items() if not _is_in_run(name, value, fields)}
    return json.encode(fields)


def _is_in_run(name: str, value: Raw, fields: Mapping[str, Any]) -> bool:
    """Return whether the run holds a field of the record with exactly the same value."""
    if name in RECORD_FIELDS or name in CONVERSATION_FIELDS:
        return True
    return name in SHARED_FIELDS and json.encode(fields[_name_in_run(name)]) == bytes(value)


def _name_in_run(name: str) -> str:
    return "id" if name == "run_id" else name


def _output(response: Mapping[str, Raw]) -> Raw:
    """Return the structured output that an agent sent beside its messages, if it is an object."""
    metadata = response.get("metadata", NULL)
    output = (json.decode(metadata, type=dict[str, Raw] | None) or {}).get("output", NULL)
    return output if bytes(output).startswith(b"{") else NULL


def _answer(response: Mapping[str, Raw], output: Raw | None) -> list[Message]:
    """Return the answer as a message, if none of the agent's messages holds it; those of turns always do."""
    if "turns" in response:
        return []
    text = json.decode(response.get("text", b'""'), type=str)
    messages = None if output is None else json.decode(output, type=tuple[Message, ...])
    answer = ProviderResponse(text=text, output_messages=messages).answer_message()
    return [] if answer is None else [answer]


def read_run(line: bytes) -> tuple[str, StoredRun]:
    """Parse an exported run of any version; return the id of its execution and the run."""
    if schema_of(line) != RUN_SCHEMA:
        line = _from_version_1(line)
    exported = json.decode(line, type=_ExportedRun)
    response = exported.response
    if response is not None and exported.output_from is not None:
        output = [bytes(message) for message in (exported.messages or ())[exported.output_from : exported.output_to]]
        response = _with_messages(response, b"[" + b",".join(output) + b"]")
    record = None
    if exported.result is not None:
        top = json.decode(line, type=dict[str, Raw])
        record = _join_raw(
            {
                name: (exported.result[name] if name in exported.result else top[_name_in_run(name)])
                for name in ResultRecord.__struct_fields__
                if name in SHARED_FIELDS or name in exported.result or (name in CONVERSATION_FIELDS and name in top)
            }
        )
    run = StoredRun(
        key=exported.key,
        position=exported.position,
        eval_id=exported.eval_id,
        case_id=exported.case_id,
        persona_id=exported.persona_id,
        target=exported.target,
        repeat=exported.repeat,
        place=exported.place,
        status=exported.status,
        rounds=exported.rounds,
        started_at=exported.started_at,
        created_at=exported.created_at,
        updated_at=exported.updated_at,
        superseded=exported.superseded,
        content=b"[" + bytes(exported.case) + b"," + bytes(exported.evaluators) + b"]",
        target_settings=bytes(exported.target_settings),
        line=record,
        response=None if response is None else _join_raw(response),
        sides=None if bytes(exported.sides) == bytes(NULL) else bytes(exported.sides),
        attempt_log=tuple([(attempt.round, _attempt(attempt)) for attempt in exported.attempt_log]),
        own_id=None if exported.id in ("", f"{exported.execution_id}-{exported.key}") else exported.id,
    )
    return exported.execution_id, run


def _attempt(logged: _LoggedAttempt) -> Attempt:
    return Attempt(**{name: getattr(logged, name) for name in Attempt.__struct_fields__})


_VERSION_1_NAMES = {
    "target": "target_settings",
    "target_id": "target",
    "tries": "rounds",
    "replaced": "superseded",
    "attempts": "attempt_log",
}
"""Names of today by names of `agentv.run/1`."""


def _from_version_1(line: bytes) -> bytes:
    """Return a run of `agentv.run/1` with the names of today, and attempts with their rounds among their fields."""
    fields = {_VERSION_1_NAMES.get(key, key): value for key, value in json.decode(line, type=dict[str, Raw]).items()}
    rounds = json.decode(fields.get("attempt_log", b"[]"), type=list[dict[str, Any]])
    return json.encode({**fields, "attempt_log": [{"round": entry["round"], **entry["attempt"]} for entry in rounds]})


def is_openai_form(line: bytes) -> bool:
    """Return whether a line is a run of `--format openai`: it has no fields of the store."""
    return "key" not in json.decode(line, type=dict[str, Raw])


def read_openai_run(line: bytes, position: int) -> tuple[str, StoredRun]:
    """Parse a run of `--format openai`; return the id of its execution and the run."""
    fields = json.decode(line, type=dict[str, Any])
    execution_id, id_ = str(fields["execution_id"]), str(fields["id"])
    head, _, tail = id_.rpartition("-")
    key = tail if head == execution_id else blake2b(id_.encode("utf-8", "replace"), digest_size=8).hexdigest()
    result = fields.get("result")
    restored: dict[str, Any] = {
        **fields,
        "key": key,
        "position": position,
        "rounds": max([int(entry.get("round", 1)) for entry in fields.get("attempt_log") or ()], default=1),
    }
    if fields.get("messages") is not None:
        messages = as_messages(fields["messages"])
        prompt = len(fields["case"].get("input_messages") or ())
        answer = result.get("candidate", "") if isinstance(result, dict) else ""
        metadata = None if fields.get("output") is None else {"output": fields["output"]}
        response = ProviderResponse(success=fields.get("error") is None, text=answer, metadata=metadata)
        turns = msgspec.convert(fields.get("turns") or (), tuple[RecordedTurn, ...])
        found = restore_turns(messages, turns) if turns else None
        if found is not None:
            response = _restored(as_response(found, response), fields)
            messages, prompt = (*found.history, *found.output), len(found.history)
        restored |= {"messages": messages, "output_from": prompt, "response": response}
    return read_run(dump_json(restored))


def _restored(response: ProviderResponse, fields: Mapping[str, Any]) -> ProviderResponse:
    """Return the reply of a conversation without its messages, with the numbers and the end of the run."""
    names = ("tokens_usage", "cost_usd", "latency_ms", "thread_id", "error", "ended_by", "simulator")
    known = msgspec.convert({name: fields[name] for name in names if fields.get(name) is not None}, ProviderResponse)
    return replace(response, output_messages=None, **{name: getattr(known, name) for name in names})


def schema_of(line: bytes) -> str | None:
    """Return the schema that a line names; raise `FormatError` if it is not a JSON object."""
    try:
        fields = json.decode(line, type=dict[str, Raw])
        return json.decode(fields["schema"], type=str) if "schema" in fields else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        msg = f"not a JSON object: {error}"
        raise FormatError(msg) from error


def _with_messages(response: Mapping[str, Raw], messages: bytes) -> dict[str, Raw]:
    """Return the reply with its messages at their original position, after the text."""
    before = {name: value for name, value in response.items() if name in ("success", "text")}
    after = {name: value for name, value in response.items() if name not in before}
    return {**before, "output_messages": Raw(messages), **after}


def _join_raw(fields: Mapping[str, Raw]) -> bytes:
    return b"{" + b",".join(json.encode(name) + b":" + bytes(value) for name, value in fields.items()) + b"}"


_NAMES = {
    "evalId": "eval_id",
    "personaId": "persona_id",
    "scenarioId": "case_id",
    "scenario_id": "case_id",
    "caseId": "case_id",
    "connectorId": "target",
    "connector_id": "target",
    "targetId": "target",
    "target_id": "target",
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
"""Final status by legacy status; runs that were active at the time of the export count as cancelled."""
_VERDICTS = {"pass": "pass", "passed": "pass", "fail": "fail", "failed": "fail", "error": "error"}
NOT_EVALUATED = "skipped"
"""Verdict of an imported run without a result; `agentv rescore` evaluates it."""


def read_legacy_run(data: Any, position: int, default_execution: str) -> tuple[str, StoredRun]:
    """Parse a run of the legacy shape; return the id of its execution and the run, or raise `FormatError`."""
    if not isinstance(data, Mapping):
        msg = f"expected a run as an object, got {type(data).__name__}"
        raise FormatError(msg)
    fields: dict[str, Any] = {_NAMES.get(key, str(key)): value for key, value in data.items()}
    if not isinstance(fields.get("case_id"), (str, int)) or not isinstance(fields.get("messages"), list):
        msg = "a run has at least a `scenarioId` (or `case_id`) and `messages`"
        raise FormatError(msg)
    messages = as_messages(fields["messages"])
    prompt_length = next(
        (at for at, message in enumerate(messages) if message.role not in ("system", "user")), len(messages)
    )
    case = Case(id=str(fields["case_id"]), input_messages=messages[:prompt_length])
    conversation = read_turns(messages)
    if conversation is None:
        response = _response(fields, messages[prompt_length:])
    else:
        case = replace(case, input_messages=conversation.history, turns=conversation.script())
        response = as_response(conversation, _response(fields, ()))
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
        target=record.target,
        repeat=0,
        place="",
        status=status,  # type: ignore[arg-type]  # one of the statuses, from the table above
        rounds=1,
        started_at=record.started_at,
        created_at=created,
        updated_at=str(fields.get("updated_at") or created),
        superseded=False,
        content=content,
        target_settings=dump_json({"name": record.target}),
        line=dump_json(record),
        response=dump_json(response),
        sides=None,
        attempt_log=((1, last),),
        own_id=None if fields.get("id") in (None, "") else str(fields["id"]),
    )


def _response(fields: Mapping[str, Any], output: tuple[Message, ...]) -> ProviderResponse:
    """Return the reply of the agent, with the numbers of the run or of its `metadata`."""
    error = _error(fields.get("error"))
    metadata = fields.get("metadata")
    reported = ("tokens_usage", "latency_ms", "thread_id", "output")
    return decode_response(
        {
            "success": error is None,
            "output_messages": output,
            "metadata": metadata if isinstance(metadata, Mapping) else None,
            **{name: fields[name] for name in reported if fields.get(name) is not None},
            **({} if error is None else {"error": error}),
        }
    )


def _record(
    fields: Mapping[str, Any], case: Case, response: ProviderResponse, status: str, named: tuple[str, str, str]
) -> ResultRecord:
    """Return the result record; `named` holds its execution, its key and its time of creation."""
    execution_id, key, created = named
    verdict, score, evaluators = _result(fields.get("result"), status)
    return ResultRecord(
        execution_id=execution_id,
        run_id=str(fields.get("id") or f"{execution_id}-{key}"),
        persona_id=UNSET if fields.get("persona_id") is None else str(fields["persona_id"]),
        eval_id=str(fields.get("eval_id") or "imported"),
        case_id=case.id,
        target=str(fields.get("target") or "unknown"),
        repeat=0,
        attempts=1,
        status=verdict,  # type: ignore[arg-type]  # one of the verdicts, from the table above
        score=score,
        candidate=response.text,
        evaluators=evaluators,
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


def _execution_id(value: Any, default: str) -> str:
    """Return the id of an execution; legacy executions have numbers."""
    return default if value is None else f"execution-{value}" if isinstance(value, int) else str(value)


def _error(value: Any) -> ResponseError | None:
    if not value:
        return None
    message = value.get("message") if isinstance(value, Mapping) else value
    return ResponseError(kind="agent", message=message if isinstance(message, str) else dump_json(value).decode())


def _result(value: Any, status: str) -> tuple[str, float | None, tuple[EvaluatorResult, ...]]:
    """Return the verdict, the score and the evaluator results that came with the run, if any."""
    if status == "error":
        return "error", None, ()
    if status != "completed" or not isinstance(value, Mapping):
        return NOT_EVALUATED, None, ()
    word = value.get("status")
    if word is None and isinstance(value.get("success", value.get("passed")), bool):
        word = "pass" if value.get("success", value.get("passed")) else "fail"
    verdict = _VERDICTS.get(str(word), NOT_EVALUATED)
    score = value.get("score")
    known = float(score) if isinstance(score, (int, float)) and 0 <= score <= 1 else None
    if verdict in ("pass", "fail") and known is None:
        known = float(verdict == "pass")
    quoted = shorten(dump_json(dict(value)).decode(), 200)
    result = EvaluatorResult(
        name="imported",
        type="imported",
        status=verdict,  # type: ignore[arg-type]  # as above
        score=known,
        hits=(f"the imported run says: {quoted}",) if verdict == "pass" else (),
        misses=(f"the imported run says: {quoted}",) if verdict != "pass" else (),
    )
    return verdict, known, (result,) if verdict != NOT_EVALUATED else ()
