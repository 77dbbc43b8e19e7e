"""Calibrate a judge: compare its verdicts with the labels of people, and measure the agreement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec.structs import replace

from agentv.api.judges import StandaloneJudge, find_judge
from agentv.api.providers import scope_of
from agentv.api.targets import find_targets
from agentv.api.traces import trace_follower
from agentv.errors import Problem, SpecError
from agentv.evals import ConfiguredEvaluator, iter_evaluators
from agentv.evaluators.judge.base import JudgeBase
from agentv.evaluators.judge.llm_judge import LlmJudge, RubricJudge
from agentv.model.judging import Calibration, CalibrationReport, ItemAgreement, LabelDifference, UnreadableVerdict
from agentv.run.options import DEFAULT_CONCURRENCY, RunOptions
from agentv.run.records import now
from agentv.run.summary import JudgeTotals
from agentv.scoring.scorer import CaseScorer
from agentv.scoring.statistics import cohens_kappa
from agentv.spec.labels import parse_labels, read_labels
from agentv.spec.loader import load_evals
from agentv.spec.project import display_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentv.evals import Eval
    from agentv.model.results import EvaluatorResult
    from agentv.redaction import Redactor
    from agentv.run.judges import JudgeCache
    from agentv.spec.labels import Label

T = TypeVar("T")
NO_JUDGE = "no judge: "
STORED_LABELS = "the labels of the run store"
ANSWERS = ("pass", "fail")
ITEMS = ("met", "not met")
MAX_NAMED = 20


class CalibrationSubject(NamedTuple):
    """The evaluator that is calibrated, and the judge that it asks."""

    eval: Eval
    evaluator: JudgeBase
    judge: str


Chooser = Callable[[list[str]], str | None]
"""Returns one of several targets; `None` if the user cannot be asked."""


class UnnamedJudgeError(SpecError):
    """Error for a judge that is not named, where several targets could be it."""

    def __init__(self, problems: list[Problem], names: Iterable[str] = ()) -> None:
        super().__init__(problems)
        self.names = list(dict.fromkeys(names))


def find_subject(
    evals: Sequence[str],
    judge: str | None,
    *,
    evaluator: str | None = None,
    criterion: str | None = None,
    choose: Chooser = lambda _: None,
) -> CalibrationSubject:
    """Return the evaluator and the judge of this name; raise a `SpecError` that lists them if it is not unique.

    `choose` is asked for the judge where it is not named and not unique.
    """
    try:
        return _find_subject(evals, judge, evaluator, criterion)
    except UnnamedJudgeError as error:
        chosen = choose(error.names) if error.names else None
        if chosen is None:
            raise
    return _find_subject(evals, chosen, evaluator, criterion)


def _find_subject(
    evals: Sequence[str], judge: str | None, evaluator: str | None, criterion: str | None
) -> CalibrationSubject:
    if criterion is not None:
        eval_ = _naming_targets(partial(find_judge, judge), judge, ["."])
        return CalibrationSubject(eval_, LlmJudge(criterion=criterion), eval_.judge or "")
    subjects: dict[tuple[str, str], tuple[Eval, JudgeBase]] = {}
    judges: dict[tuple[str, str], dict[str, None]] = {}
    for eval_ in _naming_targets(partial(load_evals, evals, judge=judge), judge, evals):
        for case in eval_.cases:
            for checked in iter_evaluators(case.checks):
                candidate = checked.evaluator
                if isinstance(candidate, JudgeBase) and evaluator in (None, candidate.name or candidate.type):
                    key = (candidate.name or candidate.type, candidate.rubric_key)
                    subjects.setdefault(key, (eval_, candidate))
                    asked = [name or eval_.judge for name in candidate.asks]
                    judges.setdefault(key, {}).update(dict.fromkeys(name for name in asked if name is not None))
    if not subjects:
        named = f" called {evaluator!r}" if evaluator else ""
        message = f"no evaluator{named} in {', '.join(evals)} asks a judge; give its --evaluator, or a --criterion"
        raise SpecError([Problem("", message, "whole")])
    if len(subjects) > 1:
        names = ", ".join(repr(name) for name, _ in list(subjects)[:MAX_NAMED])
        message = f"{len(subjects)} evaluators ask a judge: {names}; give each a `name` and choose with --evaluator"
        raise SpecError([Problem("", message, "whole")])
    ((key, (eval_, subject)),) = subjects.items()
    possible = list(judges[key])
    if judge is None and len(possible) != 1:
        known = ", ".join(map(repr, possible[:MAX_NAMED]))
        message = f"the evaluator {key[0]!r} asks {len(possible)} judges: {known}; choose one with --judge"
        raise UnnamedJudgeError([Problem("", message, "whole")], possible)
    return CalibrationSubject(eval_, _for_one_judge(subject), judge or possible[0])


def _naming_targets(load: Callable[[], T], judge: str | None, evals: Sequence[str]) -> T:
    """Load; if only a judge is missing, name the targets that could be it."""
    try:
        return load()
    except SpecError as error:
        if judge is not None or not all(problem.message.startswith(NO_JUDGE) for problem in error.problems):
            raise
        names = [listed.target.name for path in evals for listed in find_targets(path)]
        known = f": {', '.join(map(repr, dict.fromkeys(names)))}" if names else ""
        message = f"no judge is named; choose a target with --judge{known}"
        raise UnnamedJudgeError([Problem("", message, "whole")], names) from error


def _for_one_judge(evaluator: JudgeBase) -> JudgeBase:
    """Return an evaluator with the same rubric for one judge, which needs no calibration yet."""
    if isinstance(evaluator, RubricJudge) and not isinstance(evaluator, LlmJudge):
        shared = {name: getattr(evaluator, name) for name in RubricJudge.__struct_fields__ if name != "type"}
        evaluator = LlmJudge(**shared)
    return replace(evaluator, judge=None, require_calibration=None, skip=False)


async def calibrate(
    labels: Path | Sequence[bytes],
    subject: CalibrationSubject,
    options: RunOptions | None = None,
    cache: JudgeCache | None = None,
) -> tuple[CalibrationReport, Redactor]:
    """Return how far this judge agrees with the labels in a file or in lines, and the redactor for the report."""
    options = options or RunOptions()
    points = subject.evaluator.points if isinstance(subject.evaluator, RubricJudge) else ()
    ids = frozenset(point.id for point in points)
    if isinstance(labels, Path):
        rows = read_labels(labels, display_path(labels), ids)
    else:
        rows = parse_labels(labels, STORED_LABELS, ids)
    judge = StandaloneJudge(subject.eval, subject.judge, options, cache)
    follow = trace_follower(subject.eval.folder, subject.eval.root)
    semaphore = asyncio.Semaphore(options.max_concurrency or DEFAULT_CONCURRENCY)

    async def evaluate(label: Label) -> EvaluatorResult:
        scorer = CaseScorer(
            [ConfiguredEvaluator(subject.evaluator, {})],
            label.case,
            follow=follow,
            scope=scope_of(subject.eval),
            ask=judge.client,
        )
        async with semaphore:
            result = await scorer.evaluate(label.response)
        if result.evaluators:
            return result.evaluators[0]
        reason = result.error.message if result.error else "it cannot be read"
        return subject.evaluator.result("error", None, details={"error": f"the reply is an error: {reason}"})

    async with judge:
        results = await asyncio.gather(*[evaluate(label) for label in rows])
    return _report(subject, judge.judge_key, list(zip(rows, results, strict=True))), judge.redactor


def _report(
    subject: CalibrationSubject, judge_key: str, results: list[tuple[Label, EvaluatorResult]]
) -> CalibrationReport:
    overall: list[tuple[str, str]] = []
    by_item: dict[str, list[tuple[str, str]]] = {}
    differences: list[LabelDifference] = []
    unreadable: list[UnreadableVerdict] = []
    usage = JudgeTotals()
    for label, result in results:
        difference = partial(LabelDifference, id=label.id, line=label.line)
        usage.add(result.details)
        if result.status not in ANSWERS:
            reason = str(result.details.get("error") or "; ".join(map(str, result.details.get("undecided") or ())))
            unreadable.append(UnreadableVerdict(id=label.id, line=label.line, error=reason))
            continue
        if label.overall is not None:
            human, judge = ANSWERS[not label.overall], str(result.status)
            overall.append((human, judge))
            if human != judge:
                sentences = tuple(result.misses or result.hits)
                differences.append(difference(human=human, judge=judge, sentences=sentences))
        decided = {str(item["id"]): item for item in result.details.get("items", ())}
        for name, met in label.items.items():
            human, judge = ITEMS[not met], ITEMS[not decided[name]["met"]]
            by_item.setdefault(name, []).append((human, judge))
            if human != judge:
                sentences = (str(decided[name]["reason"]),) if decided[name]["reason"] else ()
                differences.append(difference(item=name, human=human, judge=judge, sentences=sentences))
    pooled = [pair for pairs in by_item.values() for pair in pairs]
    over_verdicts = bool(overall) or not pooled
    main = cohens_kappa(overall, ANSWERS) if over_verdicts else cohens_kappa(pooled, ITEMS)
    numbers = {name: getattr(main, name) for name in ("kappa", "low", "high", "agreement", "n")}
    return CalibrationReport(
        calibration=Calibration(
            judge=subject.judge,
            judge_key=judge_key,
            rubric_key=subject.evaluator.rubric_key,
            evaluator=subject.evaluator.name or subject.evaluator.type,
            errors=len(unreadable),
            created_at=now(),
            **numbers,
        ),
        over="verdicts" if over_verdicts else "items",
        table=main.table,
        items={name: ItemAgreement(**cohens_kappa(pairs, ITEMS)._asdict()) for name, pairs in by_item.items()},
        differences=tuple(differences),
        unread=tuple(unreadable),
        judges=usage.sums(),
    )
