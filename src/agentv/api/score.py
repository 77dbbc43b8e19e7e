"""Replies that are already there, scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from msgspec.structs import replace

from agentv.errors import FormatError, Problem, SpecError
from agentv.formats.plain_blocks import check_plain_blocks, drop_plain_blocks
from agentv.formats.reader import read_any
from agentv.model.request import Case, Scope
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.results import EvaluatorResult, RunResult
from agentv.scoring.scorer import CaseScorer, Follow, Found, evaluate_readings
from agentv.spec.cases import check_expected_messages, check_messages
from agentv.spec.evaluators import NOTHING_CHECKED, can_fail, check_evaluators, with_expected_messages

if TYPE_CHECKING:
    from agentv.evaluators.trajectory.script import Script
    from agentv.model.conversation import Message
    from agentv.protocols import JudgeClient
    from agentv.reports.terminal import Style

Reply = Any
"""A text, messages, a mapping, a `ProviderResponse`, or an object that a known library gives for a run."""
JudgeLike = Callable[..., Any] | Mapping[str, Callable[..., Any]]
"""A function that is given a prompt and returns what a model would, or several by name."""

NO_CASE = Case()


class Options(TypedDict, total=False):
    """What may be said beside the evaluators."""

    expected_messages: Sequence[Any] | None
    """A golden conversation; its tool calls are compared by `expected_messages`."""
    threshold: float | None
    """Lets the case pass by its weighted mean, as long as every `required` evaluator passes."""
    root: str | None
    """The folder below which a `trace_ref` may be read, and to which names of files are relative."""
    judge: JudgeLike | None
    """A function that is asked where an evaluator asks a judge, or several by name."""
    input_messages: Sequence[Any] | None
    """What the agent was asked; a reply that begins with these messages is recognised as an echo of them."""
    plain_blocks: Sequence[str] | None
    """Types of content blocks that hold no calls, beside those that are known."""


class Scorer(CaseScorer):
    """Evaluators that were checked once, ready to score any number of replies."""

    def __init__(  # noqa: PLR0913 - one for each of `Options`
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
            follow=following(root),
            scope=None if root is None else Scope(root=root, folder=root),
            ask=None if judge is None else _ask(judge),
        )
        if not can_fail(self._checks):
            raise SpecError([Problem("evaluators", NOTHING_CHECKED)])
        is_plain = is_bare and is_read_as_usual and root is None and judge is None
        self._script = _script(evaluators) if is_plain else None
        if self._script is not None:
            self._script.settle()

    def score(self, reply: Reply) -> RunResult:
        """How one reply did."""
        if self._script is not None:
            reply, result = _short_way().score(self._script, reply)
            if result is not None:
                return result
        response = self._decoded(reply)
        known, context = self.read(response)
        if context is None:
            return self.unmeasured(response, known)
        readings = self.readings(context)
        found = [evaluate_readings(checked, readings) for checked in self._checks]
        results = [result if type(result) is EvaluatorResult else _finished(result) for result in found]
        return self.conclude(context.response, known, results)

    def score_or_error(self, reply: Reply) -> RunResult:
        """How one reply did, and an error if it is none."""
        try:
            return self.score(reply)
        except FormatError as error:
            return RunResult(status="error", score=None, error=ResponseError(kind="protocol", message=str(error)))

    async def ascore(self, reply: Reply) -> RunResult:
        """How one reply did, for code that is already in an event loop."""
        return await self.evaluate(self._decoded(reply))

    def _decoded(self, reply: Reply) -> ProviderResponse:
        response = read_any(reply, self._input_messages)
        if not (response.unread and self._plain_blocks):
            return response
        return replace(response, unread=drop_plain_blocks(response.unread, self._plain_blocks))

    def explain(self, reply: Reply, result: RunResult | None = None, style: Style | None = None) -> str:
        """The verdict as people read it: the aligned diff and the sentences; plain text unless a style says so."""
        from agentv.reports.diff import render_run  # noqa: PLC0415 - scoring draws nothing
        from agentv.reports.terminal import Style  # noqa: PLC0415 - as above

        result = result or self.score(reply)
        return render_run(result, self.sides(self._decoded(reply), result), style or Style())


def score(reply: Reply, evaluators: Sequence[Any] = (), **options: Unpack[Options]) -> RunResult:
    """How one reply did: its status, its score, and what each evaluator found.

    `reply` is a mapping in any supported shape, a `ProviderResponse`, or a list of messages.
    """
    script = None if options else _script(evaluators)
    if script is not None:
        reply, result = _short_way().score(script, reply)
        if result is not None:
            return result
    return Scorer(evaluators, **options).score(reply)


def _script(evaluators: Sequence[Any]) -> Script | None:
    """The calls that are expected where that is all there is to a configuration."""
    if type(evaluators) is not list or len(evaluators) != 1:
        return None
    config = evaluators[0]
    is_trajectory = type(config) is dict and config.get("type") == "tool_trajectory"
    return _short_way().read(config) if is_trajectory else None


class _ShortWay(NamedTuple):
    """Past everything that other configurations need."""

    read: Callable[[dict[str, Any]], Script | None]
    score: Callable[[Script, Reply], tuple[Reply, RunResult | None]]


@cache
def _short_way() -> _ShortWay:
    from agentv.evaluators.trajectory.fast_path import read_script, score_plain  # noqa: PLC0415 - loaded when it is named

    return _ShortWay(read_script, score_plain)


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


def _finished(found: Found) -> EvaluatorResult:
    if isinstance(found, EvaluatorResult):
        return found
    import asyncio  # noqa: PLC0415 - five times the cost of bare Python, and only plugins need it
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - as above

    # A thread of its own: the caller may sit in a running loop (a notebook), which cannot be entered twice.
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, found).result()


def _ask(judge: JudgeLike) -> JudgeClient:
    from agentv.api.judges import ask_functions  # noqa: PLC0415 - only who has a judge needs it

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


def following(root: str | None) -> Follow:
    """How a `trace_ref` below this folder is fetched."""
    if root is None:
        return _leave

    def follow(response: ProviderResponse) -> ProviderResponse:
        from agentv.files import read_below  # noqa: PLC0415 - only a reply that keeps its trace elsewhere
        from agentv.formats.response import follow_trace_ref  # noqa: PLC0415 - as above

        return follow_trace_ref(response, partial(read_below, root))

    return follow


def _leave(response: ProviderResponse) -> ProviderResponse:
    from agentv.formats.response import leave_trace_ref  # noqa: PLC0415 - only a reply that keeps its trace elsewhere

    return leave_trace_ref(response)
