"""Evaluators made of evaluators: all of them, any of them, at least so many of them."""

from collections.abc import Awaitable, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from msgspec import Meta, to_builtins
from msgspec.structs import replace

from agentv.errors import Problem
from agentv.evals import ConfiguredEvaluator
from agentv.evaluators.base import EvaluatorBase, Example
from agentv.model.results import EvaluatorResult, Verdict
from agentv.protocols import Context, Evaluator
from agentv.scoring.scorer import Found, evaluate, finished, is_open, reaches

Outcome = tuple[Verdict, float | None]

_PAID = {"role": "assistant", "tool_calls": [{"tool": "lookup"}, {"tool": "pay"}]}
_LOOKED_UP = {"role": "assistant", "tool_calls": [{"tool": "lookup"}]}


def _called(*tools: str) -> list[dict[str, Any]]:
    return [{"type": "tool_trajectory", "name": f"calls {tool}", "minimums": {tool: 1}} for tool in tools]


class Composite(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A check that is made of others."""

    evaluators: Annotated[list[Any], Meta(min_length=1)]
    """The evaluators it is made of, written as everywhere."""

    nested: ClassVar[str] = "evaluators"
    """Where the configurations stand that are checked with this one, and handed back as `with_inner`."""

    @property
    def inner(self) -> tuple[ConfiguredEvaluator, ...]:
        """The evaluators, ready to run."""
        inner: tuple[ConfiguredEvaluator, ...] = self.__dict__.get("inner_checks", ())
        return inner

    def with_inner(self, inner: tuple[ConfiguredEvaluator, ...]) -> Self:
        """The same with these evaluators, which were made of `evaluators`."""
        made = replace(self)
        made.__dict__["inner_checks"] = inner
        return made

    def check(self, path: str) -> list[Problem]:
        """That something is decided."""
        if self.inner and not any(_counts(checked.evaluator) for checked in self.inner):
            reason = "each inner evaluator is a metric, says `skip`, or has weight 0"
            return [Problem(f"{path}.{self.nested}", f"checks nothing: {reason}")]
        return []

    def evaluate(self, ctx: Context) -> EvaluatorResult | Awaitable[EvaluatorResult]:
        """What all the inner ones found, each of them heard; it is awaited only if one of them has to be."""
        found: list[EvaluatorResult] = []
        for checked in self.inner:
            result = evaluate(checked, ctx)
            if not isinstance(result, EvaluatorResult):
                return self._go_on(found, result, ctx)
            found.append(result)
        return self._conclude(found, ctx)

    async def _go_on(self, found: list[EvaluatorResult], pending: Found, ctx: Context) -> EvaluatorResult:
        found.append(await finished(pending))
        for checked in self.inner[len(found) :]:
            found.append(await finished(evaluate(checked, ctx)))  # noqa: PERF401 - one after the other
        return self._conclude(found, ctx)

    def _conclude(self, found: Sequence[EvaluatorResult], ctx: Context) -> EvaluatorResult:
        counted = {label: result for label, result in _labelled(found) if _gates(result)}
        status, score = self.decide(list(counted.values()))
        if self.negate and status in ("pass", "fail"):
            # What holds in part does not hold: turned round, this has to be all or nothing.
            score = 1.0 if status == "pass" else 0.0
        details: dict[str, Any] = {
            "inner": to_builtins(found),
            "undecided": [f"{label}: {why}" for label, result in counted.items() for why in _reasons(result)],
        }
        drawn = None if status == "pass" else self._drawn(ctx)
        if drawn is not None:
            inside = found[drawn].details
            details |= {key: inside[key] for key in ("alignment", "extra") if key in inside}
        hits, misses = self.sentences(counted, status)
        return self.result(status, score, hits, misses, details)

    def decide(self, counted: Sequence[EvaluatorResult]) -> Outcome:
        """What the findings that count mean together."""
        raise NotImplementedError

    def sentences(self, counted: dict[str, EvaluatorResult], status: Verdict) -> tuple[list[str], list[str]]:
        """Hits and misses, each with the name of whoever says so."""
        del status
        hits = [f"{label}: {hit}" for label, result in counted.items() for hit in _hits(result)]
        return hits, [f"{label}: {miss}" for label, result in counted.items() for miss in _misses(result)]

    def sides(self, ctx: Context) -> tuple[str, list[str], dict[int, str]] | None:
        """For a diff: those of the one inner evaluator that has any."""
        drawn = self._drawn(ctx)
        return None if drawn is None else self.inner[drawn].evaluator.sides(ctx)

    def _drawn(self, ctx: Context) -> int | None:
        """Which inner evaluator can be shown as a diff, if just one can."""
        able = [
            at
            for at, checked in enumerate(self.inner)
            if _counts(checked.evaluator) and checked.evaluator.sides(ctx) is not None
        ]
        return able[0] if len(able) == 1 else None


class AllOf(Composite, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """All of these hold; its score is their weighted mean."""

    type: Literal["all_of"] = "all_of"

    examples: ClassVar[tuple[Example, ...]] = (
        Example({"type": "all_of", "evaluators": _called("lookup", "pay")}, [_PAID], passes=True),
        Example({"type": "all_of", "evaluators": _called("lookup", "pay")}, [_LOOKED_UP], passes=False),
    )

    def decide(self, counted: Sequence[EvaluatorResult]) -> Outcome:
        """The rule of a case, and what could not be decided matters as long as it could change the verdict."""
        decided = [result for result in counted if result.status != "error"]
        if not counted:
            return "skipped", None
        if not decided:
            return "error", None
        weight = sum(result.weight for result in counted)
        known = sum(result.weight for result in decided)
        total = sum(result.weight * (result.score or 0.0) for result in decided)
        if self.threshold < 1.0:
            held = all(result.status == "pass" or not result.required for result in decided)
            most = sum(result.weight * _most(result) for result in counted) / weight
            least = sum(result.weight * _least(result) for result in counted) / weight
            possible, certain = held and reaches(most, self.threshold), reaches(least, self.threshold)
        else:
            possible = all(result.status == "pass" for result in decided)
            certain = True
        if not possible:
            return "fail", total / known
        return ("pass" if certain and len(decided) == len(counted) else "error"), total / known


class ThresholdComposite(Composite, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A check that is content when enough of its evaluators are."""

    @property
    def wanted(self) -> int:
        """How many have to pass."""
        return 1

    def warnings(self, path: str) -> list[str]:
        """That nobody in here is required."""
        return [
            f"{path}.{self.nested}[{at}].required: means nothing inside {self.type!r}, which is content with others"
            for at, checked in enumerate(self.inner)
            if getattr(checked.evaluator, "required", False)
        ]

    def decide(self, counted: Sequence[EvaluatorResult]) -> Outcome:
        """Enough that passed is a pass, whatever became of the others."""
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
        """Once enough passed, what the others miss is no miss of the whole; `details.inner` has it."""
        if status == "pass":
            passed = {label: result for label, result in counted.items() if result.status == "pass"}
            return super().sentences(passed or counted, status)[0], []
        return super().sentences(counted, status)


class AnyOf(ThresholdComposite, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Any of these holds; its score is the best of theirs."""

    type: Literal["any_of"] = "any_of"

    examples: ClassVar[tuple[Example, ...]] = (
        Example({"type": "any_of", "evaluators": _called("refund", "pay")}, [_PAID], passes=True),
        Example({"type": "any_of", "evaluators": _called("refund", "pay")}, [_LOOKED_UP], passes=False),
    )


class AtLeast(ThresholdComposite, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """At least `n` of these hold; its score is the mean of the `n` best."""

    type: Literal["at_least"] = "at_least"
    n: Annotated[int, Meta(ge=1)]
    """How many of the evaluators have to pass."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "at_least", "n": 2, "evaluators": _called("lookup", "search", "pay")}, [reply], passes=passes)
        for reply, passes in ((_PAID, True), (_LOOKED_UP, False))
    )

    @property
    def wanted(self) -> int:
        """How many have to pass."""
        return self.n

    def check(self, path: str) -> list[Problem]:
        """That so many can pass."""
        found = super().check(path)
        able = len(self.evaluators)
        if self.inner:
            able = sum(_counts(checked.evaluator) for checked in self.inner)
        if not found and able < self.n:
            why = "" if able == len(self.evaluators) else "; metrics and those that say `skip` do not count"
            found.append(Problem(f"{path}.n", f"only {able} of the evaluators can pass, not {self.n}{why}"))
        return found


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


def _labelled(found: Sequence[EvaluatorResult]) -> list[tuple[str, EvaluatorResult]]:
    """Each with its name, and with its place too where several have the same."""
    names = [result.name for result in found]
    return [
        (name if names.count(name) == 1 else f"{name}[{at}]", result)
        for at, (name, result) in enumerate(zip(names, found, strict=True))
    ]


def _hits(result: EvaluatorResult) -> Sequence[str]:
    return result.hits or (("passed",) if result.status == "pass" else ())


def _misses(result: EvaluatorResult) -> Sequence[str]:
    return result.misses or (("failed",) if result.status == "fail" else ())


def _reasons(result: EvaluatorResult) -> Sequence[str]:
    """Why it could not be decided."""
    if result.status != "error":
        return ()
    if "error" in result.details:
        return (str(result.details["error"]),)
    return tuple(map(str, result.details.get("undecided") or ())) or ("could not be decided",)
