"""Sessions as cases with their replies, and as runs of the store."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import Location
from agentv.evals import CheckedCase, Eval, Target
from agentv.formats.conversation import last_assistant_text
from agentv.formats.imported_turns import one_message
from agentv.formats.usage import add_usage
from agentv.jsonio import dump_json
from agentv.model.events import Attempt
from agentv.model.request import Case, Turn
from agentv.model.response import ProviderResponse, Unread
from agentv.model.results import RunResult
from agentv.model.stored import DEFAULT_PERSIST, ExecutionRow, StoredRun
from agentv.redaction import CASE_NAMES, RECORD_NAMES, Redactor
from agentv.run.attempt import RunAttempts
from agentv.run.options import RunOptions
from agentv.run.plan import PlannedRun, run_key
from agentv.run.records import make_record, new_id, now
from agentv.run.store_writer import encode_response
from agentv.scoring.calls import resolve_calls
from agentv.scoring.turns import MESSAGE_PATH, Exchange, combine_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agentv.api.sessions.spool import SessionSpool
    from agentv.model.conversation import Message, TokensUsage
    from agentv.model.results import Verdict
    from agentv.model.session import Session
    from agentv.model.stored import Persist, StoredCommand
    from agentv.protocols import Store

DEFAULT_TARGET = "traces"
"""Name of the eval and of the target of sessions that name none."""
_BLOCK = 100
"""Number of runs that are added in one transaction."""
_NUMBERS = ("success", "text", "error", "tokens_usage", "cost_usd", "latency_ms", "thread_id", "metadata", "warnings")
"""Fields of the reply of a session that its turns do not have."""


class SessionReply(NamedTuple):
    """A session as a case sees it: the messages before the first turn, the words of the user, and the reply."""

    history: tuple[Message, ...]
    """Messages that are sent to the agent, or that precede the first turn of a conversation."""
    script: tuple[Turn, ...]
    """Words of the user in each turn; empty if there is one turn."""
    response: ProviderResponse
    """The reply, with `turns` if there are several."""


def reply_of_session(session: Session, history: int | None = None) -> SessionReply:
    """Return the reply of a session; several turns make it a conversation.

    `history` is the number of messages before the first turn in the case that the reply is used for; by default that of
    the session.
    """
    exchanges = split_session(session)
    if len(exchanges) <= 1:
        return SessionReply(session.input_messages, (), session.response)
    first = question_start(session.input_messages)
    whole = combine_turns(exchanges, first if history is None else history)
    response = replace(whole, **{name: getattr(session.response, name) for name in _NUMBERS})
    script = tuple([Turn(user=one_message(exchange.user)) for exchange in exchanges])
    return SessionReply(session.input_messages[:first], script, response)


def split_session(session: Session) -> list[Exchange]:
    """Return the turns of a session; one if it is not certain where others begin."""
    prompt, output = session.input_messages, session.response.output_messages or ()
    asked = question_start(prompt)
    starts = list(_turn_starts(output))
    if not starts or not any(message.role == "user" for message in prompt[asked:]):
        return [Exchange(prompt[asked:], session.response)]
    bounds = [0, *starts, len(output)]
    usages = _usages(session, bounds)
    exchanges = []
    for number, (first, end) in enumerate(pairwise(bounds)):
        sent = first
        while sent < end and output[sent].role == "user":
            sent += 1
        exchanges.append(
            Exchange(
                output[first:sent] if number else (*prompt[asked:], *output[:sent]),
                ProviderResponse(
                    text=last_assistant_text(output[sent:end]),
                    output_messages=output[sent:end] or None,
                    tokens_usage=usages[number],
                    unread=tuple(_places(session.response.unread, sent, end, is_last=True)),
                    incomplete=tuple(_places(session.response.incomplete, sent, end, is_last=end == len(output))),
                ),
            )
        )
    last = exchanges[-1]
    names = ("success", "text", "error")
    final = replace(last.response, **{name: getattr(session.response, name) for name in names})
    return [*exchanges[:-1], replace(last, response=final)]


def question_start(prompt: Sequence[Message]) -> int:
    """Return the index of the first of the messages with which the user asks; those before are history."""
    asked = len(prompt)
    while asked and prompt[asked - 1].role != "user":
        asked -= 1
    while asked and prompt[asked - 1].role == "user":
        asked -= 1
    return asked


def _turn_starts(output: Sequence[Message]) -> Iterator[int]:
    """Yield the index of each message at which the user speaks again, if the agent answers it."""
    end = len(output)
    while end and output[end - 1].role == "user":  # the session ended before the agent answered
        end -= 1
    for at in range(1, end):
        if output[at].role == "user" and output[at - 1].role != "user":
            yield at


def _usages(session: Session, bounds: Sequence[int]) -> list[TokensUsage | None]:
    """Return the token counts of each turn; unknown if those of the messages do not add up to those of the session."""
    output = session.response.output_messages or ()
    reported = [message.tokens_usage for message in output if message.tokens_usage is not None]
    parts = [
        add_usage([message.tokens_usage for message in output[first:end] if message.tokens_usage is not None])
        for first, end in pairwise(bounds)
    ]
    total = add_usage(reported)
    whole = session.response.tokens_usage
    if total is None or whole is None:
        return [None] * len(parts)
    is_same = (total.input_tokens, total.output_tokens) == (whole.input_tokens, whole.output_tokens)
    return parts if is_same else [None] * len(parts)


def _places(places: Iterable[Unread], first: int, end: int, *, is_last: bool) -> Iterator[Unread]:
    """Yield the places in these messages with their numbers in the turn, and if `is_last` those in no message."""
    for place in places:
        match = MESSAGE_PATH.match(place.path)
        if match is None:
            if is_last:
                yield place
        elif first <= int(match[1]) < end:
            path = f"output_messages[{int(match[1]) - first}]{place.path[match.end() :]}"
            yield Unread(path=path, reason=place.reason)


def case_of_session(session: Session, template: Case, reply: SessionReply | None = None) -> Case:
    """Return the case of a session, with the evaluators' settings of a template."""
    reply = reply or reply_of_session(session)
    metadata: dict[str, Any] = {"format": session.format, "place": session.place}
    for name in ("agent", "model", "started_at", "ended_at"):
        if (value := getattr(session, name)) is not None:
            metadata[name] = value
    return replace(
        template,
        id=session.id,
        input_messages=reply.history,
        turns=reply.script or UNSET,
        tags=(*template.tags, session.format),
        metadata={**template.metadata, **metadata},
    )


def location_of(session: Session) -> Location:
    """Return the place of the first record of a session."""
    file, _, line = session.place.rpartition(":")
    return Location(file, int(line)) if file and line.isdigit() else Location(session.place, 1)


class SessionRuns:
    """Builder of the runs of imported sessions, which were not evaluated."""

    def __init__(self, execution_id: str, *, target: str, persist: Persist, redactor: Redactor) -> None:
        self._execution_id = execution_id
        self._persist = persist
        self._redactor = redactor
        self._target = Target(target, "stored", {"name": target, "provider": "stored"})
        self._eval = Eval(id=DEFAULT_TARGET, cases=())

    def key(self, name: str, session: Session) -> str:
        """Return the hash of a session that recognizes it again, wherever its file is."""
        content = dump_json([name, session.input_messages, session.response])
        return run_key(self._eval.id, content, dump_json(self._target.settings), 0)

    def build(self, name: str, session: Session, position: int) -> StoredRun:
        """Return the run of a session, without secrets; its verdict is `skipped` until it is scored.

        `name` is the id that the session has in its source.
        """
        reply = reply_of_session(session)
        case = case_of_session(session, Case(), reply)
        content = dump_json([case, []])
        settings = dump_json(self._target.settings)
        checked = CheckedCase(case=case, checks=(), index=position, location=location_of(session))
        planned = PlannedRun(position, self._eval, checked, self._target, 0, self.key(name, session), content)
        response = reply.response
        started = session.started_at or ""
        record = make_record(
            self._execution_id,
            planned,
            RunAttempts(response, 1),
            self._result(response),
            started,
            RunOptions(),
            None,
            redact=self._redactor.text,
        )
        record = replace(record, completed_at=session.ended_at or started)
        encoded = encode_response(response, self._persist)
        attempt = Attempt(number=1, latency_ms=response.latency_ms, error=response.error, thread_id=response.thread_id)
        moment = now()
        return StoredRun(
            key=planned.key,
            position=position,
            eval_id=self._eval.id,
            case_id=case.id,
            persona_id=None,
            target=self._target.name,
            repeat=0,
            place=str(checked.location or ""),
            status="error" if response.error is not None else "completed",
            rounds=1,
            started_at=session.started_at,
            created_at=moment,
            updated_at=moment,
            superseded=False,
            content=self._redactor.line(content, CASE_NAMES),
            target_settings=settings,
            line=self._redactor.line(dump_json(record), RECORD_NAMES),
            response=None if encoded is None else self._redactor.line(encoded),
            sides=None,
            attempt_log=((1, attempt),),
            own_id=name,
        )

    @staticmethod
    def _result(response: ProviderResponse) -> RunResult:
        known = resolve_calls(response)
        verdict: Verdict = "error" if response.error is not None else "skipped"
        return RunResult(
            status=verdict,
            score=None,
            trace_summary=known.summary,
            calls_complete=UNSET if known.complete else False,
            warnings=(*response.warnings, *known.warnings),
            error=response.error,
        )


class ImportedSessions(NamedTuple):
    """Outcome of an import."""

    execution: ExecutionRow | None
    """The execution that holds the runs; `None` if there was nothing to add."""
    added: int
    """Number of sessions that were added."""
    kept: int
    """Number of sessions that the store had already."""
    changed: int
    """Number of sessions among those added of which the store has an earlier version."""


def import_sessions(  # noqa: PLR0913 - what may be chosen
    store: Store,
    spool: SessionSpool,
    command: StoredCommand,
    *,
    target: str = DEFAULT_TARGET,
    persist: Persist = DEFAULT_PERSIST,
    on_progress: Callable[[int], None] | None = None,
) -> ImportedSessions:
    """Add the sessions of a spool as the runs of one execution; those that the store has already are left alone."""
    execution = ExecutionRow(id=new_id(), status="imported", persist=persist, command=command, started_at=now())
    builder = SessionRuns(execution.id, target=target, persist=persist, redactor=Redactor({}))
    added = kept = changed = errors = 0
    block: list[StoredRun] = []

    def flush() -> None:
        nonlocal added, errors
        if not block:
            return
        added += store.add_runs(execution, block)
        errors += sum(run.status == "error" for run in block)
        block.clear()
        if on_progress is not None:
            on_progress(added)

    try:
        for name, session in spool.items():
            known = {key for _, key in store.find_own_id(name)}
            key = builder.key(name, session)
            if key in known:
                kept += 1
                continue
            changed += bool(known)
            block.append(builder.build(name, session, added + len(block)))
            if len(block) >= _BLOCK:
                flush()
        flush()
    except BaseException:
        _finish(store, execution, added, errors, status="interrupted")
        raise
    return ImportedSessions(_finish(store, execution, added, errors), added, kept, changed)


def _finish(
    store: Store, execution: ExecutionRow, added: int, errors: int, status: str = "imported"
) -> ExecutionRow | None:
    if not added:
        return None
    counts = {"planned": added, "runs": added, "errors": errors}
    finished = replace(execution, status=status, completed_at=now(), **counts)
    store.set_execution(finished)
    return finished
