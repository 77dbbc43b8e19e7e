"""Ask a judge which of two answers is better, in both orders."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import UNSET, Struct, to_builtins

from agentv.api.judges import StandaloneJudge, find_judge, open_judge_cache
from agentv.api.store_files import store_path
from agentv.errors import EvaluationError, FormatError
from agentv.evaluators.judge.base import JudgeError
from agentv.evaluators.judge.pairwise import BETTER, Preference, prefer
from agentv.model.comparison import CasePreference, CaseReference, JudgePreference
from agentv.model.judging import JudgeSums
from agentv.process.threads import run_coroutine
from agentv.run.options import DEFAULT_CONCURRENCY, RunOptions
from agentv.run.summary import JudgeTotals
from agentv.scoring.statistics import mcnemar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agentv.api.compare.measures import Pairs, SideTable
    from agentv.api.compare.sources import ComparisonSource
    from agentv.model.conversation import Message
    from agentv.model.results import RecordedTurn, ResultRecord


class AnswerPair(NamedTuple):
    """One question, and what A and B answered."""

    id: str
    input_messages: tuple[Message, ...]
    a: str
    b: str


class JudgedPair(Struct, frozen=True, kw_only=True):
    """The verdict of the judge on one pair."""

    id: str
    winner: str | None
    """`a`, `b` or `tie`; `None` on an error."""
    consistent: bool = True
    """False if the two orders led to different verdicts, which is a tie."""
    reason: str = ""
    shortened: bool = False
    """True if the judge saw only the beginning and the end of a long text."""
    error: str | None = None


class Pairwise(Struct, frozen=True, kw_only=True):
    """The verdicts of the judge on all pairs."""

    judge: str
    a_wins: int
    b_wins: int
    ties: int
    inconsistent: int
    """Ties because the verdict depended on the order."""
    errors: int
    pairs: tuple[JudgedPair, ...]
    judges: dict[str, JudgeSums] = {}
    """Calls, tokens and cost of the judge."""


def judge_pairs(
    pairs: Sequence[AnswerPair],
    judge: str | None = None,
    *,
    criterion: str = BETTER,
    options: RunOptions | None = None,
    keep: bool = True,
) -> Pairwise:
    """Ask a target of this project or of its evals which answer of each pair is better.

    With `keep`, its replies are cached in the run store. Raise `SpecError` if there is no such target.
    """
    eval_ = find_judge(judge)

    async def ask() -> Pairwise:
        # The cache is opened here because SQLite binds a connection to its thread.
        cache = open_judge_cache(store_path([eval_])) if keep else None
        try:
            standalone = StandaloneJudge(eval_, eval_.judge or "", options, cache)
            return await _judge(pairs, standalone, criterion, options)
        finally:
            if cache is not None:
                cache.close()

    return run_coroutine(ask())


async def _judge(
    pairs: Sequence[AnswerPair], judge: StandaloneJudge, criterion: str, options: RunOptions | None
) -> Pairwise:
    semaphore = asyncio.Semaphore((options and options.max_concurrency) or DEFAULT_CONCURRENCY)
    totals = JudgeTotals()

    async def ask(pair: AnswerPair) -> Preference | EvaluationError:
        async with semaphore:
            try:
                return await prefer(
                    judge.client, None, input_messages=pair.input_messages, a=pair.a, b=pair.b, criterion=criterion
                )
            except EvaluationError as error:
                return error

    async with judge:
        verdicts = await asyncio.gather(*[ask(pair) for pair in pairs])
    redact = judge.redactor.text
    judged = [_judged_pair(pair, verdict, totals, redact) for pair, verdict in zip(pairs, verdicts, strict=True)]
    winners = [pair.winner for pair in judged]
    return Pairwise(
        judge=judge.client.default or "",
        a_wins=winners.count("a"),
        b_wins=winners.count("b"),
        ties=winners.count("tie"),
        inconsistent=sum(not pair.consistent for pair in judged),
        errors=winners.count(None),
        pairs=tuple(judged),
        judges=totals.sums(),
    )


def _judged_pair(
    pair: AnswerPair, verdict: Preference | EvaluationError, totals: JudgeTotals, redact: Callable[[str], str]
) -> JudgedPair:
    if isinstance(verdict, Preference):
        totals.add({"judge": to_builtins(verdict.usage)})
        return JudgedPair(
            id=pair.id,
            winner=verdict.winner,
            consistent=verdict.consistent,
            reason=redact(verdict.sentence),
            shortened=verdict.shortened,
        )
    if isinstance(verdict, JudgeError):
        totals.add(verdict.details)
    return JudgedPair(id=pair.id, winner=None, error=redact(str(verdict)))


Result = Literal["win", "loss", "tie", "error"]
MAX_LISTED = 1_000
ORDER: tuple[Result, ...] = ("error", "loss", "win", "tie")
"""The order of the listed cases: the most interesting first."""
RESULTS: dict[str | None, Result] = {"b": "win", "a": "loss", "tie": "tie", None: "error"}
NO_ANSWER = "no answer on one side"
NO_INPUT = "the question is not in the results: run with `--include-messages`, or compare executions of the run store"
OTHER_INPUT = "the two sides were asked different things"
OPENING = ("user", "system", "developer")
"""Roles of messages that belong to the question."""


class _SideAnswer(NamedTuple):
    """The answer of one side, and the question as far as it is known."""

    text: str
    question: tuple[Message, ...] | None
    """The question, if the source has it."""
    messages: tuple[Message, ...] | None
    """The whole conversation, if the result has it."""


def judge_sides(first: SideTable, second: SideTable, pairs: Pairs, judge: str, options: RunOptions) -> JudgePreference:
    """Ask the judge which answer to each case is better; raise `FormatError` if no case can be judged."""
    questions: list[tuple[CaseReference, AnswerPair]] = []
    missing: Counter[str] = Counter()
    for name, at_a, at_b in _answered(pairs):
        if at_a < 0 or at_b < 0:
            missing[NO_ANSWER] += 1
            continue
        a, b = _answer(first.source, at_a), _answer(second.source, at_b)
        question = _question(a, b)
        if isinstance(question, str):
            missing[question] += 1
        else:
            questions.append((name, AnswerPair(name.case_id, question, a.text, b.text)))
    if not questions:
        msg = f"--judge: nothing can be judged: {'; '.join(missing)}"
        raise FormatError(msg)
    verdicts = judge_pairs([pair for _, pair in questions], judge, options=options)
    wins, losses = verdicts.b_wins, verdicts.a_wins
    decided = wins + losses + verdicts.ties
    listed = [_case(name, pair) for (name, _), pair in zip(questions, verdicts.pairs, strict=True)]
    listed.sort(key=lambda case: ORDER.index(case.result))
    return JudgePreference(
        judge=verdicts.judge,
        cases=decided,
        wins=wins,
        losses=losses,
        ties=verdicts.ties,
        inconsistent=verdicts.inconsistent,
        errors=verdicts.errors,
        # Without ties this is the sign test, which equals McNemar's test.
        p_value=mcnemar(wins, losses) if decided else None,
        not_judged=dict(missing),
        shortened=sum(pair.shortened for pair in verdicts.pairs),
        used=verdicts.judges.get(verdicts.judge, JudgeSums()),
        listed=tuple(listed[:MAX_LISTED]),
        not_listed=max(0, len(listed) - MAX_LISTED),
    )


def _answered(pairs: Pairs) -> Iterator[tuple[CaseReference, int, int]]:
    """Yield every case of both sides, with the places of the first answers; -1 if there is none."""
    for (ours, theirs), join in zip(pairs.targets, pairs.joins, strict=True):
        target = ours if ours == theirs else None
        for case, row_a in join.a.iter_rows():
            row_b = join.b.find(case)
            if row_b is not None:
                yield case.reference(target), join.a.answered[row_a], join.b.answered[row_b]


def _answer(source: ComparisonSource, place: int) -> _SideAnswer:
    record = source.read(place)
    messages = None if record.messages is UNSET or not record.messages else record.messages
    if record.turns:
        return _conversation(record, record.turns, messages)
    return _SideAnswer(record.candidate, source.question(place), messages)


def _conversation(
    record: ResultRecord, turns: Sequence[RecordedTurn], messages: tuple[Message, ...] | None
) -> _SideAnswer:
    """Return the texts of the agent in all turns as the answer, and what the user said in them as the question."""
    if messages is None:
        return _SideAnswer(record.candidate, None, None)
    start = turns[-1].last_message + 1 - len(messages)  # the history may not be among them
    exchanged = messages[turns[0].first_message - start :]
    texts = [
        f"turn {turn.index}: {message.text}"
        for turn in turns
        for message in messages[turn.first_message - start : turn.last_message + 1 - start]
        if message.role == "assistant" and message.text.strip()
    ]
    asked = tuple([message for message in exchanged if message.role == "user"])
    return _SideAnswer("\n\n".join(texts) or record.candidate, asked, messages)


def _question(a: _SideAnswer, b: _SideAnswer) -> tuple[Message, ...] | str:
    """Return the question that both sides were asked, or the reason why it is not known."""
    known = a.question if a.question is not None else b.question
    if known is not None:
        same = all(_was_asked(side, known) for side in (a, b))
        return known if same else OTHER_INPUT
    if a.messages is None or b.messages is None:
        return NO_INPUT
    # The question is the common beginning of both conversations, up to its last message that asks something.
    common = 0
    for one, other in zip(a.messages, b.messages, strict=False):
        if not _same(one, other):
            break
        common += 1
    asking = [at for at in range(common) if a.messages[at].role in OPENING]
    if asking:
        return a.messages[: asking[-1] + 1]
    has_any = any(message.role in OPENING for side in (a.messages, b.messages) for message in side)
    return OTHER_INPUT if has_any else NO_INPUT


def _was_asked(side: _SideAnswer, question: Sequence[Message]) -> bool:
    """Return whether this side was asked this question; true if that is not known."""
    messages = side.question if side.question is not None else (side.messages or ())[: len(question)]
    if side.question is None and side.messages is None:
        return True
    return len(messages) == len(question) and all(map(_same, messages, question))


def _same(one: Message, other: Message) -> bool:
    return (one.role, one.text, one.tool_calls) == (other.role, other.text, other.tool_calls)


def _case(name: CaseReference, pair: JudgedPair) -> CasePreference:
    return CasePreference(
        eval_id=name.eval_id,
        case_id=name.case_id,
        persona_id=name.persona_id,
        target=name.target,
        result=RESULTS[pair.winner],
        consistent=pair.consistent,
        reason=pair.error or pair.reason,
    )
