"""Ask a judge which of two answers is better, in both orders."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import UNSET, Struct, to_builtins

from agentv.api.judges import StandaloneJudge, find_judge, open_memory
from agentv.api.resume import store_path
from agentv.errors import EvaluationError, FormatError
from agentv.evaluators.judge.base import JudgeError
from agentv.evaluators.judge.pairwise import BETTER, Preference, prefer
from agentv.model.comparison import CasePreference, CaseReference, JudgePreference
from agentv.model.judging import JudgeSums
from agentv.run.options import DEFAULT_CONCURRENCY, RunOptions
from agentv.run.summary import JudgeTotals
from agentv.scoring.statistics import mcnemar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agentv.api.compare.measures import Pairs, SideTable
    from agentv.api.compare.sources import ComparisonSource
    from agentv.model.conversation import Message


class AnswerPair(NamedTuple):
    """One question, and what A and B answered."""

    id: str
    input_messages: tuple[Message, ...]
    a: str
    b: str


class Preferred(Struct, frozen=True, kw_only=True):
    """What the judge said of one pair."""

    id: str
    winner: str | None
    """`a`, `b` or `tie`; `None` when it could not say."""
    consistent: bool = True
    """Whether both orders came to the same; what does not is a tie."""
    reason: str = ""
    shortened: bool = False
    """Whether the judge saw only the beginning and the end of a long text."""
    error: str | None = None


class Pairwise(Struct, frozen=True, kw_only=True):
    """What the judge said of all pairs."""

    judge: str
    a_wins: int
    b_wins: int
    ties: int
    inconsistent: int
    """How many of the ties are such because the order decided."""
    errors: int
    pairs: tuple[Preferred, ...]
    judges: dict[str, JudgeSums] = {}
    """What it took."""


def judge_pairs(
    pairs: Sequence[AnswerPair],
    judge: str | None = None,
    *,
    criterion: str = BETTER,
    options: RunOptions | None = None,
    keep: bool = True,
) -> Pairwise:
    """Which answer of each pair a target of this folder's project or evals prefers; `SpecError` without one."""
    each = find_judge(judge)

    def work() -> Pairwise:
        memory = open_memory(store_path([each])) if keep else None
        try:
            return asyncio.run(
                _judge(pairs, StandaloneJudge(each, each.judge or "", options, memory), criterion, options)
            )
        finally:
            if memory is not None:
                memory.close()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only a notebook needs it

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(work).result()


async def _judge(
    pairs: Sequence[AnswerPair], desk: StandaloneJudge, criterion: str, options: RunOptions | None
) -> Pairwise:
    turns = asyncio.Semaphore((options and options.max_concurrency) or DEFAULT_CONCURRENCY)
    totals = JudgeTotals()

    async def one(pair: AnswerPair) -> Preference | EvaluationError:
        async with turns:
            try:
                return await prefer(
                    desk.ask, None, input_messages=pair.input_messages, a=pair.a, b=pair.b, criterion=criterion
                )
            except EvaluationError as error:
                return error

    async with desk:
        found = await asyncio.gather(*[one(pair) for pair in pairs])
    clean = desk.redactor.text
    said = [_preferred(pair, each, totals, clean) for pair, each in zip(pairs, found, strict=True)]
    winners = [each.winner for each in said]
    return Pairwise(
        judge=desk.ask.default or "",
        a_wins=winners.count("a"),
        b_wins=winners.count("b"),
        ties=winners.count("tie"),
        inconsistent=sum(not each.consistent for each in said),
        errors=winners.count(None),
        pairs=tuple(said),
        judges=totals.sums(),
    )


def _preferred(
    pair: AnswerPair, found: Preference | EvaluationError, totals: JudgeTotals, clean: Callable[[str], str]
) -> Preferred:
    if isinstance(found, Preference):
        totals.add({"judge": to_builtins(found.usage)})
        return Preferred(
            id=pair.id,
            winner=found.winner,
            consistent=found.consistent,
            reason=clean(found.sentence),
            shortened=found.shortened,
        )
    if isinstance(found, JudgeError):
        totals.add(found.details)
    return Preferred(id=pair.id, winner=None, error=clean(str(found)))


Result = Literal["win", "loss", "tie", "error"]
MAX_LISTED = 1_000
ORDER: tuple[Result, ...] = ("error", "loss", "win", "tie")
"""What somebody wants to read first."""
RESULTS: dict[str | None, Result] = {"b": "win", "a": "loss", "tie": "tie", None: "error"}
NO_ANSWER = "no answer on one side"
NO_INPUT = "the question is not in the results: run with `--include-messages`, or compare executions of the run store"
OTHER_INPUT = "the two sides were asked different things"
OPENING = ("user", "system", "developer")
"""Roles of messages that ask."""


class _Answer(NamedTuple):
    """What one side said, and what is known of what it was asked."""

    text: str
    asked: tuple[Message, ...] | None
    """The question, where the source knows it."""
    messages: tuple[Message, ...] | None
    """The whole conversation, where the result holds it."""


def judge_sides(first: SideTable, second: SideTable, pairs: Pairs, judge: str, options: RunOptions) -> JudgePreference:
    """Which answers the judge prefers; `FormatError` when there is no case that it could be asked about."""
    found: list[tuple[CaseReference, AnswerPair]] = []
    missing: Counter[str] = Counter()
    for name, at_a, at_b in _answered(pairs):
        if at_a < 0 or at_b < 0:
            missing[NO_ANSWER] += 1
            continue
        a, b = _answer(first.source, at_a), _answer(second.source, at_b)
        asked = _question(a, b)
        if isinstance(asked, str):
            missing[asked] += 1
        else:
            found.append((name, AnswerPair(name.case_id, asked, a.text, b.text)))
    if not found:
        msg = f"--judge: nothing can be judged: {'; '.join(missing)}"
        raise FormatError(msg)
    told = judge_pairs([pair for _, pair in found], judge, options=options)
    wins, losses = told.b_wins, told.a_wins
    decided = wins + losses + told.ties
    listed = [_case(name, said) for (name, _), said in zip(found, told.pairs, strict=True)]
    listed.sort(key=lambda each: ORDER.index(each.result))
    return JudgePreference(
        judge=told.judge,
        cases=decided,
        wins=wins,
        losses=losses,
        ties=told.ties,
        inconsistent=told.inconsistent,
        errors=told.errors,
        # Ties say nothing of either side: what is left is the sign test, which is McNemar's.
        p_value=mcnemar(wins, losses) if decided else None,
        not_judged=dict(missing),
        shortened=sum(each.shortened for each in told.pairs),
        used=told.judges.get(told.judge, JudgeSums()),
        listed=tuple(listed[:MAX_LISTED]),
        not_listed=max(0, len(listed) - MAX_LISTED),
    )


def _answered(pairs: Pairs) -> Iterator[tuple[CaseReference, int, int]]:
    """Every case that both sides have, with the places of their first answers; -1 where there is none."""
    for (ours, theirs), join in zip(pairs.targets, pairs.joins, strict=True):
        target = ours if ours == theirs else None
        for eval_id, case_id, row_a in join.a.each():
            row_b = join.b.rows.get(eval_id, {}).get(case_id)
            if row_b is not None:
                name = CaseReference(eval_id=eval_id, case_id=case_id, target=target)
                yield name, join.a.answered[row_a], join.b.answered[row_b]


def _answer(source: ComparisonSource, place: int) -> _Answer:
    record = source.read(place)
    messages = None if record.messages is UNSET or not record.messages else record.messages
    return _Answer(record.candidate, source.asked(place), messages)


def _question(a: _Answer, b: _Answer) -> tuple[Message, ...] | str:
    """What both were asked, or why that is not known."""
    known = a.asked if a.asked is not None else b.asked
    if known is not None:
        same = all(_begins(side, known) for side in (a, b))
        return known if same else OTHER_INPUT
    if a.messages is None or b.messages is None:
        return NO_INPUT
    # A conversation begins with the question, and both begin alike: up to where the last of them asks something.
    alike = 0
    for one, other in zip(a.messages, b.messages, strict=False):
        if not _same(one, other):
            break
        alike += 1
    asking = [at for at in range(alike) if a.messages[at].role in OPENING]
    if asking:
        return a.messages[: asking[-1] + 1]
    has_any = any(message.role in OPENING for side in (a.messages, b.messages) for message in side)
    return OTHER_INPUT if has_any else NO_INPUT


def _begins(side: _Answer, asked: Sequence[Message]) -> bool:
    """Whether this side was asked so, as far as is known."""
    told = side.asked if side.asked is not None else side.messages
    if told is None:
        return True
    begins = told[: len(asked)] if side.asked is None else told
    return len(begins) == len(asked) and all(_same(one, other) for one, other in zip(begins, asked, strict=True))


def _same(one: Message, other: Message) -> bool:
    return (one.role, one.text, one.tool_calls) == (other.role, other.text, other.tool_calls)


def _case(name: CaseReference, said: Preferred) -> CasePreference:
    return CasePreference(
        eval_id=name.eval_id,
        case_id=name.case_id,
        target=name.target,
        result=RESULTS[said.winner],
        consistent=said.consistent,
        reason=said.error or said.reason,
    )
