"""Runs that were written before this contract: seed 004's names in camelCase, and its older `metadata`."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from agentv.errors import FormatError
from agentv.formats.json import dump_json
from agentv.formats.messages import as_messages
from agentv.formats.response import decode_response
from agentv.model.attempt import Attempt
from agentv.model.case import Case
from agentv.model.message import Message
from agentv.model.record import ResultRecord
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.result import EvaluatorResult
from agentv.model.run import StoredRun

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
