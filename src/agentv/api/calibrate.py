"""A judge held against people: the same replies, what they say of them, and how far they agree."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from agentv.api.judges import StandaloneJudge, find_judge
from agentv.api.score import following
from agentv.errors import Problem, SpecError
from agentv.evals import ConfiguredEvaluator, iter_evaluators
from agentv.evaluators.judge.llm_judge import LlmJudge, RubricJudge
from agentv.model.judging import Calibration, CalibrationReport, ItemAgreement, LabelDifference, UnreadableVerdict
from agentv.model.request import Scope
from agentv.run.options import DEFAULT_CONCURRENCY, RunOptions
from agentv.run.records import now
from agentv.run.summary import JudgeTotals
from agentv.scoring.scorer import CaseScorer
from agentv.scoring.statistics import agree
from agentv.spec.labels import read_labels
from agentv.spec.loader import load_evals
from agentv.spec.project import display

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agentv.evals import Eval
    from agentv.evaluators.judge.base import JudgeBase
    from agentv.model.results import EvaluatorResult
    from agentv.redaction import Redactor
    from agentv.run.judges import JudgeCache
    from agentv.spec.labels import Label

ANSWERS = ("pass", "fail")
ITEMS = ("met", "not met")
MAX_NAMED = 20


class LabelledReply(NamedTuple):
    """What is calibrated: an evaluator, and the judge that it asks."""

    each: Eval
    evaluator: JudgeBase
    judge: str


def find_subject(
    evals: Sequence[str], judge: str | None, *, evaluator: str | None = None, criterion: str | None = None
) -> LabelledReply:
    """The evaluator and the judge of this name, or a `SpecError` that says which there are."""
    if criterion is not None:
        return _own_criterion(criterion, judge)
    found: dict[tuple[str, str], tuple[Eval, JudgeBase]] = {}
    for each in load_evals(evals, judge=judge):
        for case in each.cases:
            for checked in iter_evaluators(case.checks):
                made: Any = checked.evaluator
                if hasattr(made, "rubric_key") and evaluator in (None, made.name or made.type):
                    found.setdefault((made.name or made.type, made.rubric_key), (each, made))
    if not found:
        named = f" called {evaluator!r}" if evaluator else ""
        message = f"no evaluator{named} in {', '.join(evals)} asks a judge; give its --evaluator, or a --criterion"
        raise SpecError([Problem("", message, "whole")])
    if len(found) > 1:
        names = ", ".join(repr(name) for name, _ in list(found)[:MAX_NAMED])
        message = f"{len(found)} evaluators ask a judge: {names}; give each a `name` and choose with --evaluator"
        raise SpecError([Problem("", message, "whole")])
    each, made = next(iter(found.values()))
    chosen = judge or made.judge or each.judge
    if chosen is None:
        raise SpecError([Problem("", "a panel has several judges: choose one with --judge", "whole")])
    return LabelledReply(each, _alone(made), chosen)


def _alone(evaluator: JudgeBase) -> JudgeBase:
    """The same rubric before one judge, whose calibration is about to be known."""
    if isinstance(evaluator, RubricJudge) and not isinstance(evaluator, LlmJudge):
        shared = {name: getattr(evaluator, name) for name in RubricJudge.__struct_fields__ if name != "type"}
        evaluator = LlmJudge(**shared)
    return replace(evaluator, judge=None, require_calibration=None, skip=False)


def _own_criterion(criterion: str, judge: str | None) -> LabelledReply:
    """One criterion, with the targets of the project that this folder is in, and of its evals."""
    each = find_judge(judge)
    return LabelledReply(each, LlmJudge(criterion=criterion), each.judge or "")


async def calibrate(
    labels: Path, subject: LabelledReply, options: RunOptions | None = None, memory: JudgeCache | None = None
) -> tuple[CalibrationReport, Redactor]:
    """How far this judge agrees with these labels, and what its report must not show."""
    options = options or RunOptions()
    points = getattr(subject.evaluator, "points", ())
    read = read_labels(labels, display(labels), frozenset(point.id for point in points))
    desk = StandaloneJudge(subject.each, subject.judge, options, memory)
    follow = following(subject.each.folder)
    turns = asyncio.Semaphore(options.max_concurrency or DEFAULT_CONCURRENCY)

    async def judged(label: Label) -> EvaluatorResult:
        scorer = CaseScorer(
            [ConfiguredEvaluator(subject.evaluator, {})],
            label.case,
            follow=follow,
            scope=Scope(root=subject.each.root, folder=subject.each.folder),
            ask=desk.ask,
        )
        async with turns:
            result = await scorer.evaluate(label.response)
        if result.evaluators:
            return result.evaluators[0]
        why = result.error.message if result.error else "it cannot be read"
        return subject.evaluator.result("error", None, details={"error": f"the reply is an error: {why}"})

    async with desk:
        results = await asyncio.gather(*[judged(label) for label in read])
    return _report(subject, desk.judge_key, list(zip(read, results, strict=True))), desk.redactor


def _report(subject: LabelledReply, judge_key: str, judged: list[tuple[Label, EvaluatorResult]]) -> CalibrationReport:
    overall: list[tuple[str, str]] = []
    by_item: dict[str, list[tuple[str, str]]] = {}
    differences: list[LabelDifference] = []
    unread: list[UnreadableVerdict] = []
    used = JudgeTotals()
    for label, result in judged:
        used.add(result.details)
        if result.status not in ANSWERS:
            why = str(result.details.get("error") or "; ".join(map(str, result.details.get("undecided") or ())))
            unread.append(UnreadableVerdict(id=label.id, line=label.line, error=why))
            continue
        if label.overall is not None:
            human, judge = ANSWERS[not label.overall], str(result.status)
            overall.append((human, judge))
            if human != judge:
                said = tuple(result.misses or result.hits)
                differences.append(
                    LabelDifference(id=label.id, line=label.line, human=human, judge=judge, sentences=said)
                )
        decided = {str(item["id"]): item for item in result.details.get("items", ())}
        for name, met in label.items.items():
            human, judge = ITEMS[not met], ITEMS[not decided[name]["met"]]
            by_item.setdefault(name, []).append((human, judge))
            if human != judge:
                said = (str(decided[name]["reason"]),) if decided[name]["reason"] else ()
                differences.append(
                    LabelDifference(id=label.id, line=label.line, item=name, human=human, judge=judge, sentences=said)
                )
    pooled = [pair for pairs in by_item.values() for pair in pairs]
    over_verdicts = bool(overall) or not pooled
    main = agree(overall, ANSWERS) if over_verdicts else agree(pooled, ITEMS)
    numbers = {name: getattr(main, name) for name in ("kappa", "low", "high", "agreement", "n")}
    return CalibrationReport(
        calibration=Calibration(
            judge=subject.judge,
            judge_key=judge_key,
            rubric_key=subject.evaluator.rubric_key,
            evaluator=subject.evaluator.name or subject.evaluator.type,
            errors=len(unread),
            created_at=now(),
            **numbers,
        ),
        over="verdicts" if over_verdicts else "items",
        table=main.table,
        items={name: ItemAgreement(**agree(pairs, ITEMS)._asdict()) for name, pairs in by_item.items()},
        differences=tuple(differences),
        unread=tuple(unread),
        judges=used.sums(),
    )
