"""Composite evaluators: `all_of`, `any_of` and `at_least`."""

from collections.abc import Awaitable, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from msgspec import Meta, to_builtins
from msgspec.structs import replace

from agentv.errors import Problem
from agentv.evals import ConfiguredEvaluator
from agentv.evaluators.base import EvaluatorBase, Example, cached
from agentv.model.results import EvaluatorResult, Verdict
from agentv.protocols import Context, Evaluator
from agentv.scoring.scorer import Outcome, ResultOrCoroutine, await_result, evaluate, is_open, reaches

_PAID = {"role": "assistant", "tool_calls": [{"tool": "lookup"}, {"tool": "pay"}]}
_LOOKED_UP = {"role": "assistant", "tool_calls": [{"tool": "lookup"}]}


def _called(*tools: str) -> list[dict[str, Any]]:
    return [{"type": "tool_trajectory", "name": f"calls {tool}", "minimums": {tool: 1}} for tool in tools]


class Composite(EvaluatorBase, kw_only=True):
    """Base class of evaluators that consist of others."""

    evaluators: Annotated[list[Any], Meta(min_length=1)]
    """The inner evaluators, in the usual notation."""

    handles_incomplete: ClassVar[bool] = True
    nested: ClassVar[str | None] = "evaluators"

    @cached
    def inner(self) -> tuple[ConfiguredEvaluator, ...]:
        """The evaluators, ready to run; empty before `with_inner`."""
        return tuple([item for item in self.evaluators if isinstance(item, ConfiguredEvaluator)])

    def with_inner(self, inner: tuple[ConfiguredEvaluator, ...]) -> Self:
        """Return a copy whose `evaluators` are these, which were made of their configurations."""
        return replace(self, evaluators=list(inner))

    def check(self, path: str) -> list[Problem]:
        """Return a problem if none of the inner evaluators counts."""
        if self.inner and not any(_counts(checked.evaluator) for checked in self.inner):
            reason = "each inner evaluator is a metric, says `skip`, or has weight 0"
            return [Problem(f"{path}.{self.nested}", f"checks nothing: {reason}")]
        return []

    def evaluate(self, ctx: Context) -> EvaluatorResult | Awaitable[EvaluatorResult]:
        """Evaluate all inner evaluators; the result is awaitable only if one of theirs is."""
        results: list[EvaluatorResult] = []
        for checked in self.inner:
            result = evaluate(checked, ctx)
            if not isinstance(result, EvaluatorResult):
                return self._continue_async(results, result, ctx)
            results.append(result)
        return self._conclude(results, ctx)

    async def _continue_async(
        self, results: list[EvaluatorResult], pending: ResultOrCoroutine, ctx: Context
    ) -> EvaluatorResult:
        results.append(await await_result(pending))
        for checked in self.inner[len(results) :]:
            results.append(await await_result(evaluate(checked, ctx)))  # noqa: PERF401 - one after the other
        return self._conclude(results, ctx)

    def _conclude(self, results: Sequence[EvaluatorResult], ctx: Context) -> EvaluatorResult:
        counted = {label: result for label, result in _labelled(results) if _gates(result)}
        status, score = self.decide(list(counted.values()))
        if self.negate and status in ("pass", "fail"):
            # With `not: true` a partial score would count as partly negated: the score has to be 0 or 1.
            score = 1.0 if status == "pass" else 0.0
        details: dict[str, Any] = {
            "inner": to_builtins(results),
            "undecided": [f"{label}: {why}" for label, result in counted.items() for why in _reasons(result)],
        }
        shown = None if status == "pass" else self._shown(ctx)
        if shown is not None:
            inside = results[shown].details
            details |= {key: inside[key] for key in ("alignment", "extra") if key in inside}
        hits, misses = self.sentences(counted, status)
        return self.result(status, score, hits, misses, details)

    def decide(self, counted: Sequence[EvaluatorResult]) -> Outcome:
        """Return status and score for the inner results that count."""
        raise NotImplementedError

    def sentences(self, counted: dict[str, EvaluatorResult], status: Verdict) -> tuple[list[str], list[str]]:
        """Return hits and misses, each with the name of its evaluator."""
        del status
        hits = [f"{label}: {hit}" for label, result in counted.items() for hit in _hits(result)]
        return hits, [f"{label}: {miss}" for label, result in counted.items() for miss in _misses(result)]

    def sides(self, ctx: Context) -> tuple[str, list[str], dict[int, str]] | None:
        """Return those of the one inner evaluator that has any."""
        shown = self._shown(ctx)
        return None if shown is None else self.inner[shown].evaluator.sides(ctx)

    def _shown(self, ctx: Context) -> int | None:
        """Return the index of the inner evaluator shown as a diff, if exactly one can be."""
        candidates = [
            at
            for at, checked in enumerate(self.inner)
            if _counts(checked.evaluator) and checked.evaluator.sides(ctx) is not None
        ]
        return candidates[0] if len(candidates) == 1 else None


class AllOf(Composite, kw_only=True):
    """All inner evaluators pass; the score is their weighted mean."""

    type: Literal["all_of"] = "all_of"

    examples: ClassVar[tuple[Example, ...]] = (
        Example({"type": "all_of", "evaluators": _called("lookup", "pay")}, [_PAID], passes=True),
        Example({"type": "all_of", "evaluators": _called("lookup", "pay")}, [_LOOKED_UP], passes=False),
    )

    def decide(self, counted: Sequence[EvaluatorResult]) -> Outcome:
        """Decide like a case; undecided results matter as long as they could change the verdict."""
        decided = [result for result in counted if result.status != "error"]
        if not counted:
            return "skipped", None
        if not decided:
            return "error", None
        weight = sum(result.weight for result in counted)
        known = sum(result.weight for result in decided)
        total = sum(result.weight * (result.score or 0.0) for result in decided)
        if self.threshold < 1.0:
            is_required_met = all(result.status == "pass" or not result.required for result in decided)
            most = sum(result.weight * _most(result) for result in counted) / weight
            least = sum(result.weight * _least(result) for result in counted) / weight
            possible, certain = is_required_met and reaches(most, self.threshold), reaches(least, self.threshold)
        else:
            possible = all(result.status == "pass" for result in decided)
            certain = True
        if not possible:
            return "fail", total / known
        return ("pass" if certain and len(decided) == len(counted) else "error"), total / known


class ThresholdComposite(Composite, kw_only=True):
    """Base class of composites that need a number of passing evaluators."""

    @property
    def wanted(self) -> int:
        """The number of evaluators that have to pass."""
        return 1

    def warnings(self, path: str) -> list[str]:
        """Return warnings about inner evaluators marked as required, which has no effect."""
        return [
            f"{path}.{self.nested}[{at}].required: means nothing inside {self.type!r}, which is content with others"
            for at, checked in enumerate(self.inner)
            if checked.evaluator.required
        ]

    def decide(self, counted: Sequence[EvaluatorResult]) -> Outcome:
        """Decide by the number that passed, whatever the other results are."""
        if not counted:
            return "skipped", None
        decided = [result for result in counted if result.status != "error"]
        open_ones = len(counted) - len(decided)
        passed = [result.status for result in decided].count("pass")
        scores = sorted([result.score or 0.0 for result in decided], reverse=True)
        wanted, by_mean = self.wanted, self.threshold < 1.0
        score = sum(scores[:wanted]) / wanted
        least, most = (sum(sorted(map(bound, counted))[-wanted:]) / wanted for bound in (_least, _most))
        if passed >= wanted or (by_mean and reaches(least, self.threshold)):
            return "pass", score
        if passed + open_ones >= wanted or (by_mean and reaches(most, self.threshold)):
            return "error", sum(scores[:wanted]) / min(wanted, len(scores)) if scores else None
        return "fail", score

    def sentences(self, counted: dict[str, EvaluatorResult], status: Verdict) -> tuple[list[str], list[str]]:
        """Return hits and misses; once enough passed, the misses of the others are only in `details.inner`."""
        if status == "pass":
            passed = {label: result for label, result in counted.items() if result.status == "pass"}
            return super().sentences(passed or counted, status)[0], []
        return super().sentences(counted, status)


class AnyOf(ThresholdComposite, kw_only=True):
    """At least one inner evaluator passes; the score is the highest of theirs."""

    type: Literal["any_of"] = "any_of"

    examples: ClassVar[tuple[Example, ...]] = (
        Example({"type": "any_of", "evaluators": _called("refund", "pay")}, [_PAID], passes=True),
        Example({"type": "any_of", "evaluators": _called("refund", "pay")}, [_LOOKED_UP], passes=False),
    )


class AtLeast(ThresholdComposite, kw_only=True):
    """At least `n` inner evaluators pass; the score is the mean of the `n` highest scores."""

    type: Literal["at_least"] = "at_least"
    n: Annotated[int, Meta(ge=1)]
    """The number of evaluators that have to pass."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "at_least", "n": 2, "evaluators": _called("lookup", "search", "pay")}, [reply], passes=passes)
        for reply, passes in ((_PAID, True), (_LOOKED_UP, False))
    )

    @property
    def wanted(self) -> int:
        """The number of evaluators that have to pass."""
        return self.n

    def check(self, path: str) -> list[Problem]:
        """Return a problem if fewer than `n` evaluators can pass."""
        results = super().check(path)
        candidates = len(self.evaluators)
        if self.inner:
            candidates = sum(_counts(checked.evaluator) for checked in self.inner)
        if not results and candidates < self.n:
            why = "" if candidates == len(self.evaluators) else "; metrics and those that say `skip` do not count"
            results.append(Problem(f"{path}.n", f"only {candidates} of the evaluators can pass, not {self.n}{why}"))
        return results


def _counts(evaluator: Evaluator) -> bool:
    return evaluator.kind == "assertion" and evaluator.weight > 0 and not evaluator.skip


def _gates(result: EvaluatorResult) -> bool:
    return result.kind == "assertion" and result.weight > 0 and result.status != "skipped"


def _least(result: EvaluatorResult) -> float:
    """Return the lowest score that a finding leaves possible."""
    return 0.0 if result.status == "error" or is_open(result) else result.score or 0.0


def _most(result: EvaluatorResult) -> float:
    """Return the highest score that a finding leaves possible."""
    return 1.0 if result.status == "error" or is_open(result) else result.score or 0.0


def _labelled(results: Sequence[EvaluatorResult]) -> list[tuple[str, EvaluatorResult]]:
    """Return each result with its name, and its index if several have the same name."""
    names = [result.name for result in results]
    return [
        (name if names.count(name) == 1 else f"{name}[{at}]", result)
        for at, (name, result) in enumerate(zip(names, results, strict=True))
    ]


def _hits(result: EvaluatorResult) -> Sequence[str]:
    return result.hits or (("passed",) if result.status == "pass" else ())


def _misses(result: EvaluatorResult) -> Sequence[str]:
    return result.misses or (("failed",) if result.status == "fail" else ())


def _reasons(result: EvaluatorResult) -> Sequence[str]:
    """Return the reasons why a result is undecided."""
    if result.status != "error":
        return ()
    if "error" in result.details:
        return (str(result.details["error"]),)
    return tuple(map(str, result.details.get("undecided") or ())) or ("could not be decided",)
