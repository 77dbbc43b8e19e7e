"""Two answers to each of many questions, and which of the two a judge prefers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, to_builtins

from agentv.api.desk import Desk, find_judge
from agentv.api.judges import open_memory
from agentv.api.keeping import store_path
from agentv.errors import EvaluationError
from agentv.evaluators.judge.asking import JudgeError
from agentv.evaluators.judge.pairwise import BETTER, Preference, prefer
from agentv.model.judging import JudgeSums  # noqa: TC001 - fields of a struct are looked up when it runs
from agentv.run.options import DEFAULT_CONCURRENCY, RunOptions
from agentv.run.usage import JudgeTotals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.model.message import Message


class Pair(NamedTuple):
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
    pairs: Sequence[Pair],
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
            return asyncio.run(_judge(pairs, Desk(each, each.judge or "", options, memory), criterion, options))
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


async def _judge(pairs: Sequence[Pair], desk: Desk, criterion: str, options: RunOptions | None) -> Pairwise:
    turns = asyncio.Semaphore((options and options.max_concurrency) or DEFAULT_CONCURRENCY)
    totals = JudgeTotals()

    async def one(pair: Pair) -> Preference | EvaluationError:
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
    pair: Pair, found: Preference | EvaluationError, totals: JudgeTotals, clean: Callable[[str], str]
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
