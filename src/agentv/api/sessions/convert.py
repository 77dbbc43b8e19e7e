"""Convert sessions of stored traces: to our own form, messages of OpenAI, events of ADK, or spans of OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import to_builtins
from msgspec.structs import replace

from agentv.api.runs import case_of, record_of, response_of
from agentv.api.sessions.runs import question_start, split_session
from agentv.formats.fields import MISSING_CALLS
from agentv.jsonio import dump_json
from agentv.model.response import Unread
from agentv.scoring.calls import resolve_calls
from agentv.traces.session_files import session_of_run, write_session
from agentv.traces.spans.writer import EvaluationResult, SpanSession, SpanTurn, write_evaluations, write_spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.model.response import ProviderResponse
    from agentv.model.results import EvaluatorResult
    from agentv.model.session import Session
    from agentv.model.stored import StoredRun

ConvertForm = Literal["compact", "openai", "adk", "otlp"]
FORMS: tuple[ConvertForm, ...] = ("compact", "openai", "adk", "otlp")
_REST = ("unread", "incomplete", "tokens_usage", "cost_usd", "latency_ms")
"""Fields of a reply that spans have no names for, or have only for each message."""
_NO_MESSAGES = Unread(path="reply", reason=f"the session has no messages, {MISSING_CALLS}")


def convert_session(session: Session, form: ConvertForm) -> bytes:
    """Return a session as one line of JSON."""
    if form != "otlp":
        return dump_json(write_session(session, form))
    return dump_json(write_spans(spans_of_session(session)).spans)


def spans_of_session(session: Session, resource: dict[str, Any] | None = None) -> SpanSession:
    """Return what is written of a session as spans."""
    exchanges = split_session(session)
    history = session.input_messages[: question_start(session.input_messages)]
    turns = [
        SpanTurn((*history, *each.user) if not number else each.user, _sent(each.response), each.response.error)
        for number, each in enumerate(exchanges)
    ]
    known = resolve_calls(session.response)
    own = {"service.name": session.agent} if session.agent else {}
    own |= {"agentv.case_id": session.case_id} if session.case_id else {}
    return SpanSession(
        id=session.id,
        turns=turns,
        agent=session.agent,
        model=session.model,
        started=session.started_at,
        resource={**own, **(resource or {})},
        rest=_rest(session.response),
        calls=tuple(known.calls or ()) if known.source == "trace" else (),
    )


def _sent(response: ProviderResponse) -> tuple[Any, ...]:
    answer = response.answer_message()
    is_told = bool(response.output_messages) or answer is None
    return response.output_messages or () if is_told else (answer,)


def _rest(response: ProviderResponse) -> dict[str, Any]:
    if not response.output_messages:
        response = replace(response, unread=(*response.unread, _NO_MESSAGES))
    rest = {name: to_builtins(value) for name in _REST if (value := getattr(response, name))}
    return {"schema": "agentv.spans/1", **rest}


def lines_of_run(run: StoredRun, execution_id: str) -> Iterator[bytes]:
    """Yield a stored run as a line with its spans, and one with the results of its evaluators as log records."""
    record, response = record_of(run), response_of(run)
    if record is None or response is None:
        return
    session = session_of_run(run, run.own_id or f"{execution_id}-{run.key}", case_of(run)[0], response)
    resource = {
        "service.name": run.target,
        "agentv.run_id": session.id,
        "agentv.case_id": run.case_id,
        "agentv.eval_id": run.eval_id,
        "agentv.execution_id": execution_id,
    }
    spans = spans_of_session(session, resource)
    written = write_spans(spans)
    yield dump_json(written.spans)
    logs = write_evaluations(written, spans, [_evaluation(result) for result in record.evaluators])
    if logs is not None:
        yield dump_json(logs)


def _evaluation(result: EvaluatorResult) -> EvaluationResult:
    sentences = result.hits if result.status == "pass" else result.misses
    error = result.details.get("error") if result.status == "error" else None
    explanation = "; ".join([*sentences, *([str(error)] if error else [])])
    kind = "evaluation_error" if result.status == "error" else None
    return EvaluationResult(result.name, result.score, result.status, explanation, kind)
