"""Evaluate the mutants of one case, and find evaluators that would notice the surviving ones."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from agentv.api.score import evaluate_again, evaluate_reply
from agentv.api.traces import trace_follower
from agentv.errors import SpecError
from agentv.evals import ConfiguredEvaluator, iter_evaluators
from agentv.matching.text import name_match
from agentv.model.mutation import MutatedCase, SkippedCase, Survivor
from agentv.model.request import Scope
from agentv.mutation.operators import MAX_MUTANTS, make_mutants
from agentv.mutation.suggestions import Config, Original, suggest_evaluators, to_yaml
from agentv.scoring.calls import resolve_calls
from agentv.scoring.scorer import CaseScorer, decide_outcome
from agentv.spec.evaluators import can_fail, check_evaluators
from agentv.spec.yaml import YamlError, read_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.api.mutation.sources import PassingCase, PassingRun
    from agentv.evals import Eval
    from agentv.model.mutation import AcceptedMutants, Mutant, Operator
    from agentv.model.response import ProviderResponse
    from agentv.model.results import EvaluatorResult, RunResult
    from agentv.protocols import Context, JudgeClient

ONLY_JUDGES = "it is evaluated by judges only; --judges asks them"
NO_LONGER_PASSES = "it does not pass with the evaluators as they are now"
NOT_MEASURED = "its evaluators cannot measure it again"


class Scoring(Protocol):
    """Evaluation of replies: in this thread, or with judges in an event loop."""

    asks_judges: bool

    def client(self, eval_: Eval) -> JudgeClient | None:
        """Return the judges of an eval."""
        ...

    def evaluate(self, scorer: CaseScorer, responses: Sequence[ProviderResponse]) -> list[RunResult]:
        """Return the results of replies."""
        ...


class DeterministicScoring:
    """Evaluation without judges."""

    asks_judges = False

    def client(self, eval_: Eval) -> None:
        """Return `None`: no judge is asked."""
        del eval_

    def evaluate(self, scorer: CaseScorer, responses: Sequence[ProviderResponse]) -> list[RunResult]:
        """Return the results of replies."""
        return [evaluate_reply(scorer, response) for response in responses]


class Tally:
    """Counts over all cases."""

    def __init__(self) -> None:
        self.mutants: Counter[str] = Counter()
        self.killed: Counter[str] = Counter()
        self.seen_by: Counter[str] = Counter()
        self.killed_by: Counter[str] = Counter()
        self.accepts: set[AcceptedMutants] = set()
        """Entries of `accept` that were used."""


class CaseMutation:
    """Mutants of the passing runs of one case."""

    def __init__(self, passing: PassingCase, scoring: Scoring, operators: Sequence[Operator] = ()) -> None:
        self._passing = passing
        self._scoring = scoring
        self._operators = frozenset(operators)
        eval_, case = passing.eval, passing.case
        self._scope = Scope(root=eval_.root, folder=eval_.folder)
        self._follow = trace_follower(eval_.folder, eval_.root)
        checks = case.checks if scoring.asks_judges else tuple([each for each in case.checks if not asks_judge(each)])
        self._is_reduced = len(checks) < len(case.checks)
        self._scorer = self._scorer_of(checks, scoring.client(eval_))
        self._candidates: dict[str, Sequence[ConfiguredEvaluator] | None] = {}
        """Evaluators by their YAML; `None` for one that is invalid or that an original does not pass."""
        self._without_verdict: list[RunResult] = []
        """Results of mutants for which the evaluators gave no verdict."""

    def _scorer_of(self, checks: Sequence[ConfiguredEvaluator], ask: JudgeClient | None = None) -> CaseScorer:
        return CaseScorer(checks, self._passing.case.case, follow=self._follow, scope=self._scope, ask=ask)

    def run(self, tally: Tally) -> MutatedCase | SkippedCase:
        """Evaluate all mutants; the counts are added to the tally."""
        if not can_fail(self._scorer.checks):
            return self._skip(ONLY_JUDGES)
        results = self._scoring.evaluate(self._scorer, [run.response for run in self._passing.runs])
        passing = [run for run, result in zip(self._passing.runs, results, strict=True) if result.status == "pass"]
        if not passing:
            is_error = all(result.status == "error" for result in results)
            return self._skip(_not_measured(results), measurable=False) if is_error else self._skip(NO_LONGER_PASSES)
        self._originals = [_original(run) for run in passing]
        survivors: list[Survivor] = []
        mutants = killed = left_out = 0
        limit = max(1, MAX_MUTANTS // len(passing))
        for run, original in zip(passing, self._originals, strict=True):
            made = make_mutants(run.response, limit)
            chosen = [each for each in made.made if not self._operators or each.operator in self._operators]
            found = self._find_survivors(run, original, chosen, tally)
            survivors += found
            mutants += len(chosen)
            killed += len(chosen) - len(found)
            left_out += made.left_out
        killed -= len(self._without_verdict)
        accepted = [survivor for survivor in survivors if survivor.accepted is not None]
        survived = len(survivors) - len(accepted)
        return MutatedCase(
            eval_id=self._passing.eval.id,
            case_id=self._passing.case.case.id,
            runs=len(passing),
            mutants=mutants,
            killed=killed,
            survived=survived,
            accepted=len(accepted),
            kill_rate=kill_rate(killed, survived),
            survivors=tuple([survivor for survivor in survivors if survivor.accepted is None]),
            accepted_survivors=tuple(accepted),
            left_out=left_out,
            left_out_runs=self._passing.left_out,
            unmeasured=len(self._without_verdict),
            unmeasured_reason=_first_error(self._without_verdict),
            without_judges=self._is_reduced,
            persona_id=self._passing.persona_id,
        )

    def _skip(self, reason: str, *, measurable: bool = True) -> SkippedCase:
        eval_id, case_id = self._passing.eval.id, self._passing.case.case.id
        persona_id = self._passing.persona_id
        return SkippedCase(
            eval_id=eval_id, case_id=case_id, reason=reason, measurable=measurable, persona_id=persona_id
        )

    def _find_survivors(
        self, run: PassingRun, original: Original, mutants: Sequence[Mutant], tally: Tally
    ) -> list[Survivor]:
        survivors = []
        results = self._scoring.evaluate(self._scorer, [mutant.response for mutant in mutants])
        for mutant, result in zip(mutants, results, strict=True):
            is_killed = is_noticed(result, self._passing.case.case.threshold)
            if is_killed is None:
                self._without_verdict.append(result)
                continue
            accepted = None if is_killed else self._accepted(mutant, tally)
            if accepted is None:
                _count(mutant, result, tally, is_killed=is_killed)
            if is_killed:
                continue
            suggestion = None if accepted else self._suggestion(mutant, original, result)
            survivors.append(
                Survivor(
                    operator=mutant.operator,
                    tool=mutant.tool,
                    sentence=mutant.sentence,
                    suggestion=suggestion,
                    run_id=run.id,
                    call=mutant.call,
                    accepted=accepted,
                )
            )
        return survivors

    def _accepted(self, mutant: Mutant, tally: Tally) -> str | None:
        """Return the reason why the eval accepts a mutant; `None` if it does not."""
        for entry in self._passing.eval.accepted:
            if (
                entry.operator == mutant.operator
                and (entry.tool is None or name_match(entry.tool, mutant.tool or ""))
                and (entry.case is None or name_match(entry.case, self._passing.case.case.id))
            ):
                tally.accepts.add(entry)
                return entry.reason
        return None

    def _suggestion(self, mutant: Mutant, original: Original, result: RunResult) -> str | None:
        """Return the YAML of the first evaluator that notices a mutant and that all originals pass."""
        threshold = self._passing.case.case.threshold
        readings = self._read(mutant.response)
        for found in suggest_evaluators(mutant, original, self._all_originals):
            config = found if threshold is None else {**found, "required": True}
            text = to_yaml(config)
            if text not in self._candidates:
                self._candidates[text] = self._load(config, text)
            checks = self._candidates[text]
            if checks is None:
                continue
            more = evaluate_again(checks, readings) if readings else ()
            if decide_outcome((*result.evaluators, *more), threshold)[0] == "fail":
                return text
        return None

    def _read(self, response: ProviderResponse) -> Sequence[Context]:
        """Read a reply for further evaluators; return nothing if the agent gave no usable reply."""
        _, context = self._scorer.read(response)
        return () if context is None else self._scorer.readings(context)

    def _load(self, config: Config, text: str) -> Sequence[ConfiguredEvaluator] | None:
        """Load an evaluator, and return it unless it is invalid or an original does not pass it."""
        try:
            # Reading YAML takes longer than all the rest; plain texts are read as they were written.
            checks = check_evaluators([config if text.isascii() else read_yaml(text.encode()).data])
        except (SpecError, YamlError):
            return None
        threshold = self._passing.case.case.threshold
        results = (evaluate_again(checks, readings) if readings else () for readings in self._read_originals)
        return checks if all(decide_outcome(each, threshold)[0] == "pass" for each in results) else None

    @cached_property
    def _read_originals(self) -> list[Sequence[Context]]:
        return [self._read(original.response) for original in self._all_originals]

    @cached_property
    def _all_originals(self) -> list[Original]:
        """Replies that a suggested evaluator has to pass; further ones that fail by now do not count."""
        checks = tuple([each for each in self._scorer.checks if not asks_judge(each)])
        scorer = self._scorer_of(checks)
        others = [
            run
            for run in self._passing.others
            if not can_fail(checks) or evaluate_reply(scorer, run.response).status != "fail"
        ]
        return [*self._originals, *map(_original, others)]


def _original(run: PassingRun) -> Original:
    return Original(run.response, resolve_calls(run.response).calls or ())


def _first_error(results: Sequence[RunResult]) -> str | None:
    """Return the first error that an evaluator gave."""
    errors = [each.details.get("error") for result in results for each in result.evaluators if each.status == "error"]
    return next((error for error in errors if isinstance(error, str)), None)


def _not_measured(results: Sequence[RunResult]) -> str:
    reason = _first_error(results)
    return NOT_MEASURED if reason is None else f"{NOT_MEASURED}: {reason}"


def asks_judge(check: ConfiguredEvaluator) -> bool:
    """Return whether an evaluator, or one inside of it, asks a judge."""
    return any(each.evaluator.asks for each in iter_evaluators([check]))


def is_noticed(result: RunResult, threshold: float | None) -> bool | None:
    """Return whether a case fails by its evaluators; `None` if errors leave it open.

    An error decides nothing: neither that a change is noticed, nor that it is not. Another failure does, if the case
    would fail by it whatever the evaluators without a verdict had said.
    """
    if result.status != "error":
        return result.status != "pass"
    failed = [each for each in result.evaluators if _gates(each) and each.status == "fail"]
    return True if any(each.required or threshold is None for each in failed) else None


def _gates(result: EvaluatorResult) -> bool:
    """Return whether the verdict of a case depends on a result."""
    return result.kind == "assertion" and result.weight > 0 and result.status != "skipped"


def kill_rate(killed: int, survived: int) -> float | None:
    """Return the share of killed mutants; `None` without any."""
    return killed / (killed + survived) if killed + survived else None


def _count(mutant: Mutant, result: RunResult, tally: Tally, *, is_killed: bool) -> None:
    tally.mutants[mutant.operator] += 1
    tally.killed[mutant.operator] += is_killed
    for each in result.evaluators:
        if _gates(each) and each.status != "error":
            tally.seen_by[each.name] += 1
            tally.killed_by[each.name] += each.status == "fail"
