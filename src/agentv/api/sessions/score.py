"""Score stored sessions with an eval: a policy for all of them, or cases that are matched by id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from agentv.api.execution import prepare
from agentv.api.rescore import policy_of
from agentv.api.sessions.runs import DEFAULT_TARGET, case_of_session, location_of, reply_of_session
from agentv.api.sessions.spool import SessionSpool
from agentv.errors import FormatError
from agentv.evals import CheckedCase, Eval, Target
from agentv.formats.plain_blocks import drop_plain_blocks
from agentv.providers.replay import StoredReplies
from agentv.spec.loader import POLICY, load_evals
from agentv.traces.reading import REPEATED, TraceReading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from agentv.api.execution import PreparedExecution
    from agentv.api.sessions.selection import Condition, Sample
    from agentv.model.request import Request
    from agentv.model.response import ProviderResponse
    from agentv.model.session import TraceCoverage
    from agentv.run.options import RunOptions

NO_SESSIONS = "no sessions to score"


class TraceOptions(NamedTuple):
    """Options of reading traces, the same for all commands that do."""

    paths: tuple[str, ...]
    format: str | None = None
    where: Sequence[Condition] = ()
    sample: Sample | None = None
    seed: int = 0
    strict: bool = False


class ScorePlan(NamedTuple):
    """A prepared execution that scores sessions."""

    prepared: PreparedExecution
    unmatched: int
    """Number of sessions that belong to no case of any eval."""
    missing: list[str] = []
    """Ids of cases that no session belongs to."""


def read_spool(
    options: TraceOptions, on_session: Callable[[int], None] | None = None
) -> tuple[SessionSpool, TraceCoverage]:
    """Read all sessions, and return those that were selected, with the coverage of all that were read."""
    reading = TraceReading(options.paths, format=options.format, strict=options.strict)
    spool = SessionSpool()
    try:
        for number, session in enumerate(reading.sessions(), 1):
            if all(condition.holds(session) for condition in options.where):
                spool.add(session)
            if on_session is not None:
                on_session(number)
        if spool.repeated:
            reading.coverage.notes[REPEATED] += spool.repeated
        if options.sample is not None:
            spool.keep_sample(options.sample.number, options.sample.share, options.seed)
    except BaseException:
        spool.close()
        raise
    is_selected = bool(options.where) or options.sample is not None
    return spool, reading.coverage.build(len(spool) if is_selected else None)


def prepare_score(
    spool: SessionSpool, paths: Sequence[str | Path], options: RunOptions, target: str = DEFAULT_TARGET
) -> ScorePlan:
    """Prepare an execution that scores the sessions of a spool; raise `FormatError` if there is none."""
    if not len(spool):
        raise FormatError(NO_SESSIONS)
    settings = {"name": target, "provider": "stored"}
    placeholder = Target(target, "stored", settings, instance=_replies(spool, {}, options.plain_blocks))
    evals = load_evals(paths, lone=placeholder, policy=True)
    scored = []
    matched: set[str] = set()
    missing: list[str] = []
    for eval_ in evals:
        policy = policy_of(eval_)
        if policy is not None:
            scored.append(_policy(eval_, policy, spool))
            matched.add(POLICY)
        else:
            new, ids = _matched(eval_, spool, target, options)
            matched |= ids
            missing += [case.case.id for case in eval_.cases if not case.skip and not spool.ids_of_case(case.case.id)]
            if new is not None:
                scored.append(new)
    if not scored:
        msg = (
            "none of the sessions belongs to a case of the eval: a case has the id of its session, or the session an"
            " attribute `agentv.case_id`. An eval without `cases` applies its `defaults.evaluators` to every session"
        )
        raise FormatError(msg)
    unmatched = 0 if POLICY in matched else len(spool) - len(matched)
    return ScorePlan(prepare(scored, options), unmatched, missing)


class _SpooledCases:
    """A case for each session, with the evaluators of a policy; read again at each iteration."""

    def __init__(self, spool: SessionSpool, template: CheckedCase) -> None:
        self._spool = spool
        self._template = template

    def __iter__(self) -> Iterator[CheckedCase]:
        for index, session in enumerate(self._spool):
            case = case_of_session(session, self._template.case)
            yield replace(self._template, case=case, index=index, repeat=1, location=location_of(session))


def _policy(eval_: Eval, template: CheckedCase, spool: SessionSpool) -> Eval:
    count = len(spool)
    cases = _SpooledCases(spool, template)
    # Without a file, since no command runs these cases again.
    return replace(
        eval_,
        cases=cases,
        count=count,
        variants=count,
        repeats=count,
        skipped=0,
        has_only=False,
        is_settled=False,
        file=None,
    )


def _matched(eval_: Eval, spool: SessionSpool, target: str, options: RunOptions) -> tuple[Eval | None, set[str]]:
    """Return an eval with the cases that sessions belong to; several sessions of a case are its repetitions."""
    cases: list[CheckedCase] = []
    by_case: dict[str, list[str]] = {}
    for case in eval_.cases:
        ids = spool.ids_of_case(case.case.id)
        if ids:
            by_case[case.case.id] = ids
            cases.append(replace(case, repeat=len(ids), skip=False, only=False, variants=()))
    if not cases:
        return None, set()
    provider: Any = _replies(spool, by_case, options.plain_blocks)
    settings = {"name": target, "provider": "stored"}
    new = replace(
        eval_,
        cases=cases,
        count=len(cases),
        variants=len(cases),
        repeats=sum(case.repeat for case in cases),
        skipped=0,
        has_only=False,
        is_settled=False,
        file=None,
        targets=(Target(target, "stored", settings, instance=provider),),
    )
    return new, {name for ids in by_case.values() for name in ids}


def _replies(spool: SessionSpool, by_case: dict[str, list[str]], plain_blocks: tuple[str, ...] = ()) -> Any:
    """Return a provider whose replies are those of the sessions, found by case and repetition."""

    def find(request: Request) -> ProviderResponse | None:
        ids = by_case.get(request.id, [request.id])
        session = spool.find(ids[request.repeat]) if request.repeat < len(ids) else None
        if session is None:
            return None
        if plain_blocks:
            unread = drop_plain_blocks(session.response.unread, plain_blocks)
            session = replace(session, response=replace(session.response, unread=unread))
        is_conversation = request.is_conversation
        return reply_of_session(session, len(request.input_messages)).response if is_conversation else session.response

    return StoredReplies(find)
