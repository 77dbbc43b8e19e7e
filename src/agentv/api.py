"""The library in a handful of functions: composition happens here and nowhere else."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from msgspec.structs import replace

from agentv.errors import EvaluationError, FormatError, Problem, SpecError
from agentv.formats.response import decode_response
from agentv.model.case import Case
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.result import EvaluatorResult, RunResult
from agentv.protocols import Context, Evaluator
from agentv.scoring.calls import Calls, resolve_calls
from agentv.scoring.outcome import decide_outcome
from agentv.spec.evaluators import Checked, check_evaluators
from agentv.spec.messages import check_expected_messages

if TYPE_CHECKING:
    from agentv.model.message import Message
    from agentv.reports.terminal import Style

Reply = ProviderResponse | Mapping[str, Any] | Sequence[Any]
"""A reply in any supported shape: a response, a mapping, or a list of messages."""

NO_CASE = Case()
NOTHING_CHECKED = "checks nothing: add `evaluators`, or tool calls in `expected_messages`"


class Options(TypedDict, total=False):
    """What may be said beside the evaluators."""

    expected_messages: Sequence[Any] | None
    """A golden conversation; its tool calls are compared by `expected_messages`."""
    threshold: float | None
    """Lets the case pass by its weighted mean, as long as every `required` evaluator passes."""
    root: str | None
    """The folder below which a `trace_ref` may be read."""


class Scorer:
    """Evaluators that were checked once, ready to score any number of replies."""

    def __init__(
        self,
        evaluators: Sequence[Any] = (),
        *,
        expected_messages: Sequence[Any] | None = None,
        threshold: float | None = None,
        root: str | None = None,
    ) -> None:
        self._expected = check_expected_messages(expected_messages)
        self._checked = _with_expected_messages(check_evaluators(evaluators), self._expected)
        self._threshold = _check_threshold(threshold)
        self._root = root
        self._case = NO_CASE if self._expected is None else Case(expected_messages=self._expected)
        self._warnings = tuple([warning for checked in self._checked for warning in checked.warnings])
        if not any([_gates(checked.evaluator) for checked in self._checked]):  # noqa: C419 - a list is faster
            raise SpecError([Problem("evaluators", NOTHING_CHECKED)])

    def score(self, reply: Reply) -> RunResult:
        """How one reply did."""
        response, known, context = self._read(reply)
        if context is None:
            return _unmeasured(response, known, self._warnings)
        found = [evaluate(checked, context) for checked in self._checked]
        results = [
            result if type(result) is EvaluatorResult else _finished(result, checked)
            for result, checked in zip(found, self._checked, strict=True)
        ]
        return self._conclude(response, known, results)

    def score_or_error(self, reply: Reply) -> RunResult:
        """How one reply did, and an error if it is none."""
        try:
            return self.score(reply)
        except FormatError as error:
            return RunResult(status="error", score=None, error=ResponseError(kind="protocol", message=str(error)))

    async def ascore(self, reply: Reply) -> RunResult:
        """How one reply did, for code that is already in an event loop."""
        response, known, context = self._read(reply)
        if context is None:
            return _unmeasured(response, known, self._warnings)
        results = [await _awaited(evaluate(checked, context), checked) for checked in self._checked]
        return self._conclude(response, known, results)

    def explain(self, reply: Reply, result: RunResult | None = None, style: Style | None = None) -> str:
        """The verdict as people read it: the aligned diff and the sentences; plain text unless a style says so."""
        from agentv.reports.diff import Sides, render_run  # noqa: PLC0415 - scoring draws nothing
        from agentv.reports.terminal import Style  # noqa: PLC0415 - as above

        result = result or self.score(reply)
        _, _, context = self._read(reply)
        sides = [
            Sides(*found) if context is not None and (found := checked.evaluator.sides(context)) else None
            for checked in self._checked[: len(result.evaluators)]
        ]
        return render_run(result, sides, style or Style())

    def _read(self, reply: Reply) -> tuple[ProviderResponse, Calls, Context | None]:
        response = reply if isinstance(reply, ProviderResponse) else decode_response(reply)
        known = resolve_calls(response)
        if response.trace_ref is not None and not any(call.tool for call in known.calls or ()):
            response, known = _follow_trace_ref(response, known, self._root)
        if not response.success:
            return response, known, None
        context = Context(
            response=response,
            case=self._case,
            candidate=response.text,
            output_messages=response.output_messages,
            trace=response.trace,
            trace_summary=known.summary,
            calls=known.calls,
            calls_source=known.source,
            expected_messages=self._expected,
        )
        return response, known, context

    def _conclude(self, response: ProviderResponse, known: Calls, results: list[EvaluatorResult]) -> RunResult:
        status, score = decide_outcome(results, self._threshold)
        return RunResult(
            status=status,
            score=score,
            evaluators=tuple(results),
            trace_summary=known.summary,
            warnings=(*self._warnings, *response.warnings, *known.warnings),
        )


def score(reply: Reply, evaluators: Sequence[Any] = (), **options: Unpack[Options]) -> RunResult:
    """How one reply did: its status, its score, and what each evaluator found.

    `reply` is a mapping in any supported shape, a `ProviderResponse`, or a list of messages.
    """
    return Scorer(evaluators, **options).score(reply)


async def ascore(reply: Reply, evaluators: Sequence[Any] = (), **options: Unpack[Options]) -> RunResult:
    """The same as `score`, awaiting evaluators that are asynchronous."""
    return await Scorer(evaluators, **options).ascore(reply)


def score_many(
    replies: Iterable[Reply], evaluators: Sequence[Any] = (), **options: Unpack[Options]
) -> Iterator[RunResult]:
    """How each reply did, one at a time as they come: memory does not grow with their number.

    A wrong configuration is reported here and now, not when the first result is asked for. A reply that cannot be read
    is an error of its own and stops nobody.
    """
    return map(Scorer(evaluators, **options).score_or_error, replies)


def explain(reply: Reply, evaluators: Sequence[Any] = (), **options: Unpack[Options]) -> str:
    """The verdict on one reply as people read it: expected and actual side by side, then the reasons."""
    return Scorer(evaluators, **options).explain(reply)


def assert_trajectory(
    reply: Reply, expected: Sequence[Any] | None = None, mode: str | None = None, **options: Any
) -> None:
    """Fail with the aligned diff unless `tool_trajectory` passes; for anybody's test suite."""
    __tracebackhide__ = True
    config = {"type": "tool_trajectory", **options}
    if expected is not None:
        config["expected"] = expected
    if mode is not None:
        config["mode"] = mode
    scorer = Scorer([config])
    result = scorer.score(reply)
    if result.status != "pass":
        raise AssertionError(scorer.explain(reply, result))


def evaluate(checked: Checked, context: Context) -> EvaluatorResult | Awaitable[EvaluatorResult]:
    """One evaluator's finding; what it throws is its result, never the run's end."""
    if checked.evaluator.skip:
        return checked.evaluator.result("skipped", None)
    try:
        return checked.evaluator.evaluate(replace(context, config=checked.config))
    except Exception as error:  # noqa: BLE001 - whatever an evaluator throws, the others must still be heard
        return _crashed(checked, error)


def _crashed(checked: Checked, error: Exception) -> EvaluatorResult:
    reason = str(error) if isinstance(error, EvaluationError) else f"{type(error).__name__}: {error}"
    return checked.evaluator.result("error", None, details={"error": reason})


async def _awaited(found: EvaluatorResult | Awaitable[EvaluatorResult], checked: Checked) -> EvaluatorResult:
    if isinstance(found, EvaluatorResult):
        return found
    try:
        return await found
    except Exception as error:  # noqa: BLE001 - see `evaluate`
        return _crashed(checked, error)


def _finished(found: EvaluatorResult | Awaitable[EvaluatorResult], checked: Checked) -> EvaluatorResult:
    if isinstance(found, EvaluatorResult):
        return found
    import asyncio  # noqa: PLC0415 - five times the cost of bare Python, and only plugins need it
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - as above

    # A thread of its own: the caller may sit in a running loop (a notebook), which cannot be entered twice.
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, _awaited(found, checked)).result()


def _unmeasured(response: ProviderResponse, known: Calls, warnings: tuple[str, ...]) -> RunResult:
    return RunResult(
        status="error",
        score=None,
        trace_summary=known.summary,
        warnings=(*warnings, *response.warnings, *known.warnings),
        error=response.error,
    )


def _with_expected_messages(checked: list[Checked], expected: tuple[Message, ...] | None) -> list[Checked]:
    """The golden path runs by itself when there is one, unless it was configured or switched off."""
    golden = [item.evaluator for item in checked if item.evaluator.type == "expected_messages"]
    if expected is None and not golden:
        return checked
    has_calls = any(message.tool_calls for message in expected or () if message.role == "assistant")
    if not has_calls and not all(evaluator.skip for evaluator in golden):
        raise SpecError([Problem("expected_messages", "no assistant message holds tool calls to compare")])
    if golden or not has_calls:
        return checked
    return checked + check_evaluators([{"type": "expected_messages"}])


def _gates(evaluator: Evaluator) -> bool:
    return evaluator.kind == "assertion" and evaluator.weight > 0 and not evaluator.skip


def _check_threshold(threshold: float | None) -> float | None:
    if threshold is not None and not (isinstance(threshold, (int, float)) and 0 <= threshold <= 1):
        raise SpecError([Problem("threshold", f"expected a number from 0 to 1, got {threshold!r}")])
    return threshold


def _follow_trace_ref(response: ProviderResponse, known: Calls, root: str | None) -> tuple[ProviderResponse, Calls]:
    from agentv.formats.json import parse_json  # noqa: PLC0415 - only a reply that keeps its trace elsewhere
    from agentv.spec.files import read_below  # noqa: PLC0415 - as above

    if root is None:
        warning = f"trace_ref: {response.trace_ref!r} was not read: pass `root`, the folder it lies below"
        return response, replace(known, warnings=(*known.warnings, warning))
    try:
        data = parse_json(read_below(root, response.trace_ref or ""))
        events = data.get("trace", data.get("events")) if isinstance(data, Mapping) else data
        read = decode_response({"trace": events})
    except FormatError as error:
        return response, replace(known, warnings=(*known.warnings, str(error)))
    warnings = (*response.warnings, *[warning.replace("trace", "trace_ref", 1) for warning in read.warnings])
    response = replace(response, trace=read.trace, warnings=warnings)
    return response, resolve_calls(response)
