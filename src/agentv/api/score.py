"""`agentv.score`: evaluate replies that already exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from msgspec.structs import replace

from agentv.api.traces import trace_follower
from agentv.errors import FormatError, Problem, SpecError
from agentv.formats.plain_blocks import check_plain_blocks, drop_plain_blocks
from agentv.formats.reader import read_any
from agentv.model.request import Case, Scope
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.results import EvaluatorResult, RunResult
from agentv.reports.terminal import Style
from agentv.scoring.scorer import CaseScorer, ResultOrCoroutine, evaluate_readings
from agentv.spec.evaluators import NOTHING_CHECKED, can_fail, check_evaluators, with_expected_messages
from agentv.spec.messages import check_expected_messages, check_messages

if TYPE_CHECKING:
    from agentv.evals import ConfiguredEvaluator
    from agentv.evaluators.trajectory.script import Script
    from agentv.model.conversation import Message
    from agentv.protocols import Context, JudgeClient

Reply = Any
"""A text, messages, a mapping, a `ProviderResponse`, or an object that a known library gives for a run."""
JudgeLike = Callable[..., Any] | Mapping[str, Callable[..., Any]]
"""A function that takes a prompt and returns the reply of a model, or several by name."""

NO_CASE = Case()


class ScoreOptions(TypedDict, total=False):
    """Keyword arguments of `score`, beside the evaluators."""

    expected_messages: Sequence[Any] | None
    """A golden conversation; its tool calls are compared by `expected_messages`."""
    threshold: float | None
    """The weighted mean score with which the case passes, if every `required` evaluator passes."""
    root: str | None
    """The folder of files that evaluators and `trace_ref` name."""
    judge: JudgeLike | None
    """A function that answers evaluators that ask a judge, or several by name."""
    input_messages: Sequence[Any] | None
    """The messages of the request; if a reply begins with them, they are removed from it."""
    plain_blocks: Sequence[str] | None
    """Further types of content blocks that hold no tool calls."""


class Scorer(CaseScorer):
    """Evaluators that are checked once, and score any number of replies."""

    def __init__(  # noqa: PLR0913 - one for each of `ScoreOptions`
        self,
        evaluators: Sequence[Any] = (),
        *,
        expected_messages: Sequence[Any] | None = None,
        threshold: float | None = None,
        root: str | None = None,
        judge: JudgeLike | None = None,
        input_messages: Sequence[Any] | None = None,
        plain_blocks: Sequence[str] | None = None,
    ) -> None:
        expected = check_expected_messages(expected_messages)
        self._input_messages = _check_input_messages(input_messages)
        self._plain_blocks = _check_plain_blocks(plain_blocks)
        is_bare = expected is None and threshold is None
        is_read_as_usual = input_messages is None and not self._plain_blocks
        super().__init__(
            with_expected_messages(check_evaluators(evaluators), expected),
            NO_CASE if is_bare else Case(expected_messages=expected, threshold=_check_threshold(threshold)),
            follow=trace_follower(root),
            scope=None if root is None else Scope(root=root, folder=root),
            ask=None if judge is None else _ask(judge),
        )
        if not can_fail(self._checks):
            raise SpecError([Problem("evaluators", NOTHING_CHECKED)])
        is_plain = is_bare and is_read_as_usual and root is None and judge is None
        self._script = _script(evaluators) if is_plain else None
        if self._script is not None:
            self._script.detach()

    def score(self, reply: Reply) -> RunResult:
        """Evaluate a reply."""
        if self._script is not None:
            reply, result = _fast_path().score(self._script, reply)
            if result is not None:
                return result
        return evaluate_reply(self, self._decoded(reply))

    def score_or_error(self, reply: Reply) -> RunResult:
        """Evaluate a reply; if it cannot be read, return a result with status `error`."""
        try:
            return self.score(reply)
        except FormatError as error:
            return RunResult(status="error", score=None, error=ResponseError(kind="protocol", message=str(error)))

    async def ascore(self, reply: Reply) -> RunResult:
        """Evaluate a reply, for code that runs in an event loop."""
        return await self.evaluate(self._decoded(reply))

    def _decoded(self, reply: Reply) -> ProviderResponse:
        response = read_any(reply, self._input_messages)
        if not (response.unread and self._plain_blocks):
            return response
        return replace(response, unread=drop_plain_blocks(response.unread, self._plain_blocks))

    def explain(self, reply: Reply, result: RunResult | None = None, style: Style | None = None) -> str:
        """Return the verdict as text: the aligned diff and the reasons, without colours unless `style` has them."""
        from agentv.reports.diff import Extent, render_run  # noqa: PLC0415 - only `explain` renders text

        result = result or self.score(reply)
        extent = Extent(whole="`details` and `misses` of the result")
        return render_run(result, self.sides(self._decoded(reply), result), style or Style(), extent)


def evaluate_reply(scorer: CaseScorer, response: ProviderResponse) -> RunResult:
    """Evaluate a reply from blocking code; only an evaluator that is asynchronous is run in an event loop."""
    known, context = scorer.read(response)
    if context is None:
        return scorer.unmeasured(response, known)
    readings = scorer.readings(context)
    return scorer.conclude(context.response, known, evaluate_again(scorer.checks, readings))


def evaluate_again(checks: Sequence[ConfiguredEvaluator], readings: Sequence[Context]) -> list[EvaluatorResult]:
    """Return the results of further evaluators for a reply that was read before."""
    pending = [evaluate_readings(checked, readings) for checked in checks]
    return [result if type(result) is EvaluatorResult else _await_result(result) for result in pending]


def score(reply: Reply, evaluators: Sequence[Any] = (), **options: Unpack[ScoreOptions]) -> RunResult:
    """Evaluate a reply, and return its status, its score and the results of its evaluators.

    `reply` is a mapping in any supported shape, a `ProviderResponse`, or a list of messages.
    """
    script = None if options else _script(evaluators)
    if script is not None:
        reply, result = _fast_path().score(script, reply)
        if result is not None:
            return result
    return Scorer(evaluators, **options).score(reply)


def _script(evaluators: Sequence[Any]) -> Script | None:
    """Return the expected calls for the fast path, if the configuration is a single `tool_trajectory`."""
    if type(evaluators) is not list or len(evaluators) != 1:
        return None
    config = evaluators[0]
    is_trajectory = type(config) is dict and config.get("type") == "tool_trajectory"
    return _fast_path().read(config) if is_trajectory else None


class _FastPath(NamedTuple):
    """The functions that score a plain `tool_trajectory` without a context."""

    read: Callable[[dict[str, Any]], Script | None]
    score: Callable[[Script, Reply], tuple[Reply, RunResult | None]]


@cache
def _fast_path() -> _FastPath:
    from agentv.evaluators.trajectory.fast_path import read_script, score_plain  # noqa: PLC0415 - loaded with the first `tool_trajectory`

    return _FastPath(read_script, score_plain)


async def ascore(reply: Reply, evaluators: Sequence[Any] = (), **options: Unpack[ScoreOptions]) -> RunResult:
    """Evaluate a reply like `score`, for code that runs in an event loop."""
    return await Scorer(evaluators, **options).ascore(reply)


def score_many(
    replies: Iterable[Reply], evaluators: Sequence[Any] = (), **options: Unpack[ScoreOptions]
) -> Iterator[RunResult]:
    """Evaluate replies one by one, in constant memory.

    An invalid configuration is an error of this call, not of the first iteration. A reply that cannot be read is a
    result with status `error`.
    """
    return map(Scorer(evaluators, **options).score_or_error, replies)


def explain(reply: Reply, evaluators: Sequence[Any] = (), **options: Unpack[ScoreOptions]) -> str:
    """Return the verdict on a reply as text: expected and actual calls side by side, then the reasons."""
    return Scorer(evaluators, **options).explain(reply)


def assert_trajectory(
    reply: Reply, expected: Sequence[Any] | None = None, mode: str | None = None, **options: Any
) -> None:
    """Raise `AssertionError` with the aligned diff unless `tool_trajectory` passes; for test suites."""
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


def _await_result(result: ResultOrCoroutine) -> EvaluatorResult:
    if isinstance(result, EvaluatorResult):
        return result
    # asyncio takes five times as long as starting Python.
    from agentv.process.threads import run_coroutine_in_thread  # noqa: PLC0415

    return run_coroutine_in_thread(result)


def _ask(judge: JudgeLike) -> JudgeClient:
    from agentv.api.judges import ask_functions  # noqa: PLC0415 - loads the run package, which only a judge needs

    return ask_functions(judge)


def _check_threshold(threshold: float | None) -> float | None:
    if threshold is not None and not (isinstance(threshold, (int, float)) and 0 <= threshold <= 1):
        raise SpecError([Problem("threshold", f"expected a number from 0 to 1, got {threshold!r}")])
    return threshold


def _check_input_messages(messages: Sequence[Any] | None) -> tuple[Message, ...] | None:
    if messages is None:
        return None
    if not isinstance(messages, (str, Mapping, Sequence)) or isinstance(messages, bytes):
        raise SpecError([Problem("input_messages", f"expected a list of messages, got {messages!r}")])
    return check_messages(messages, "input_messages")


def _check_plain_blocks(types: Sequence[str] | None) -> tuple[str, ...]:
    if types is None:
        return ()
    if problems := check_plain_blocks(types):
        raise SpecError([Problem("plain_blocks", problem) for problem in problems])
    return tuple(types)
