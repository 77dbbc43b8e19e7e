"""One reply held against checked evaluators: what they receive, what they found, what it means."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from agentv.checked import Checked
from agentv.errors import EvaluationError
from agentv.model.case import Case
from agentv.model.request import Scope
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.result import EvaluatorResult, RunResult, Sides
from agentv.protocols import Ask, Context, Evaluator
from agentv.scoring.calls import Calls, resolve_calls
from agentv.scoring.outcome import decide_outcome, reaches

UNEXPLAINED = "the agent says that it failed, and not why (`success` is false, and there is no `error`)"
Found = EvaluatorResult | Awaitable[EvaluatorResult]
Follow = Callable[[ProviderResponse], ProviderResponse]
"""Fetches what a `trace_ref` names, or warns that it could not."""


class CaseScorer:
    """The evaluators of one case, ready for any number of replies."""

    def __init__(
        self,
        checks: Sequence[Checked],
        case: Case,
        *,
        follow: Follow,
        scope: Scope | None = None,
        ask: Ask | None = None,
    ) -> None:
        self._checks = checks
        self._case = case
        self._follow = follow
        self._scope = scope
        self._ask = ask
        self._warnings = tuple([warning for checked in checks for warning in checked.warnings])

    async def evaluate(self, response: ProviderResponse) -> RunResult:
        """How one reply did."""
        known, context = self.read(response)
        if context is None:
            return self.unmeasured(response, known)
        results = [await awaited(evaluate(checked, context), checked) for checked in self._checks]
        return self.conclude(context.response, known, results)

    def read(self, response: ProviderResponse) -> tuple[Calls, Context | None]:
        """What evaluators are handed; nothing when the agent gave no usable reply."""
        known = resolve_calls(response)
        if response.trace_ref is not None and not any(call.tool for call in known.calls or ()):
            response = self._follow(response)
            known = resolve_calls(response)
        if not response.success:
            return known, None
        context = Context(
            response=response,
            case=self._case,
            candidate=response.text,
            output_messages=response.output_messages,
            trace=response.trace,
            trace_summary=known.summary,
            calls=known.calls,
            calls_source=known.source,
            expected_messages=self._case.expected_messages,
            scope=self._scope,
            ask=self._ask,
        )
        return known, context

    def conclude(self, response: ProviderResponse, known: Calls, results: Sequence[EvaluatorResult]) -> RunResult:
        """What the findings mean for the case."""
        status, score = decide_outcome(results, self._case.threshold)
        return RunResult(
            status=status,
            score=score,
            evaluators=tuple(results),
            trace_summary=known.summary,
            warnings=(*self._warnings, *response.warnings, *known.warnings),
        )

    def unmeasured(self, response: ProviderResponse, known: Calls) -> RunResult:
        """The result of a reply that cannot be evaluated at all."""
        return RunResult(
            status="error",
            score=None,
            trace_summary=known.summary,
            warnings=(*self._warnings, *response.warnings, *known.warnings),
            error=response.error or ResponseError(kind="agent", message=UNEXPLAINED),
        )

    def sides(self, response: ProviderResponse, result: RunResult) -> list[Sides | None]:
        """For each finding, what the indices of its alignment stand for; `None` where there is nothing to align."""
        _, context = self.read(response)
        return [
            Sides(*found) if context is not None and (found := checked.evaluator.sides(context)) else None
            for checked in self._checks[: len(result.evaluators)]
        ]


def evaluate(checked: Checked, context: Context) -> Found:
    """One evaluator's finding; what it throws is its result, never the run's end."""
    if checked.evaluator.skip:
        return checked.evaluator.result("skipped", None)
    try:
        found = checked.evaluator.evaluate(replace(context, config=checked.config))
    except Exception as error:  # noqa: BLE001 - whatever an evaluator throws, the others must still be heard
        return _crashed(checked, error)
    if isinstance(found, EvaluatorResult) and getattr(checked.evaluator, "negate", False):
        return turned_round(found, checked.evaluator)
    return found


async def awaited(found: Found, checked: Checked) -> EvaluatorResult:
    """The finding, of an asynchronous evaluator too."""
    if isinstance(found, EvaluatorResult):
        return found
    try:
        result = await found
    except Exception as error:  # noqa: BLE001 - see `evaluate`
        return _crashed(checked, error)
    return turned_round(result, checked.evaluator) if getattr(checked.evaluator, "negate", False) else result


def turned_round(result: EvaluatorResult, evaluator: Evaluator) -> EvaluatorResult:
    """The finding of an evaluator that says `not: true`; what could not be decided stays undecided."""
    if result.score is None or result.status in ("error", "skipped"):
        return result
    score = 1.0 - result.score
    return replace(
        result,
        status="pass" if reaches(score, getattr(evaluator, "threshold", 1.0)) else "fail",
        score=score,
        hits=tuple([f"does not hold, as wanted: {miss}" for miss in result.misses]),
        misses=tuple([f"holds and should not: {hit}" for hit in result.hits]),
    )


def _crashed(checked: Checked, error: Exception) -> EvaluatorResult:
    reason = str(error) if isinstance(error, EvaluationError) else f"{type(error).__name__}: {error}"
    return checked.evaluator.result("error", None, details={"error": reason})
