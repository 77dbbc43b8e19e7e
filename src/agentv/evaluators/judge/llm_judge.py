"""`llm_judge` and `panel`: models that judge an answer against a rubric."""

from collections.abc import Callable, Sequence
from itertools import combinations
from statistics import median
from typing import Annotated, Any, ClassVar, Literal, get_args

from msgspec import Meta, to_builtins

from agentv.errors import Problem
from agentv.evaluators.base import Example
from agentv.evaluators.judge.base import (
    Compose,
    FailedReply,
    JudgeAnswer,
    JudgeBase,
    JudgeError,
    ask_with_retry,
    item_details,
    judge_client,
    outcome,
)
from agentv.evaluators.judge.evidence import Fence, make_fence
from agentv.evaluators.judge.prompt import (
    check_template,
    default_body,
    judge_messages,
    names_in,
    rubric_task,
    template_body,
)
from agentv.evaluators.judge.rubric import RubricItem, RubricPoint, Words, check_rubric, points_of
from agentv.evaluators.judge.transcript import JudgeInput, build_judge_input, check_steps, with_messages, with_trace
from agentv.evaluators.judge.verdict import Decision, read_decisions
from agentv.model.conversation import Message
from agentv.model.results import EvaluatorResult, Verdict
from agentv.protocols import Context, JudgeClient

Shown = Literal["tool_calls", "trace", "trace_summary"]
Reply = tuple[Decision, ...]


class RubricJudge(JudgeBase, kw_only=True):
    """Base class of evaluators with a rubric."""

    rubric: list[Words | RubricItem] = []
    """The criteria: sentences, or mappings with `criterion`, `id`, `weight`, `required`, `scores` and `min`."""
    criterion: Words | None = None
    """A further criterion, in free words."""
    show: list[Shown] = []
    """The parts of the run that the judge is shown besides the question, the expectation and the answer."""
    prompt: Annotated[str, Meta(min_length=1, max_length=200_000)] | None = None
    """A Jinja template that shows the run in words of your own; what to decide, and how, is added after it."""

    @property
    def points(self) -> tuple[RubricPoint, ...]:
        """The points to decide."""
        return points_of(self.rubric, self.criterion)

    def check(self, path: str) -> list[Problem]:
        """Return problems of the rubric and of the template."""
        problems = list(check_rubric(self.rubric, path))
        if not self.rubric and self.criterion is None:
            problems.append(Problem(path, "checks nothing: add a `rubric` or a `criterion`", "whole"))
        if self.prompt is not None:
            problems += check_template(self.prompt, f"{path}.prompt")
            if self.show:
                problems.append(Problem(f"{path}.show", "a `prompt` of your own says itself what is shown"))
        return problems

    def check_shown(self, ctx: Context) -> None:
        """Raise an `UndecidedError` when the judge is to be shown calls and some of them may be missing."""
        names = self.show if self.prompt is None else names_in(self.prompt)
        shown = [name for name in (*get_args(Shown), "output_messages") if name in names]
        if shown:
            check_steps(ctx, " and ".join(shown))

    def judge_input(self, ctx: Context, ask: JudgeClient) -> JudgeInput:
        """Return the input of the judge for this run."""
        if self.prompt is None:
            return build_judge_input(ctx, ask.redact, self.show, self.max_chars)
        names = names_in(self.prompt)
        judge_input = build_judge_input(ctx, ask.redact, names - {"trace"}, self.max_chars)
        if "trace" in names:
            judge_input = with_trace(judge_input, ctx, ask.redact, self.max_chars)
        if "output_messages" in names:
            judge_input = with_messages(judge_input, ctx, ask.redact, self.max_chars)
        return judge_input

    def question(self, judge_input: JudgeInput, ask: JudgeClient) -> tuple[Compose, Callable[[str], Reply]]:
        """Return the messages to the judge, and the reader of its reply."""
        points = self.points
        words = [point.line for point in points]
        fence = make_fence(ask.nonce, [*judge_input.texts, *words, self.prompt or ""])
        return _compose(self, judge_input, points, fence), _reader(fence, points, judge_input.evidence)


class LlmJudge(RubricJudge, kw_only=True):
    """A model decides whether the answer meets a rubric, and quotes its evidence."""

    type: Literal["llm_judge"] = "llm_judge"

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            {"type": "llm_judge", "rubric": ["The answer names the capital of France."]},
            [{"role": "assistant", "content": answer}],
            passes=passes,
            judge={"items": [{"id": "1", "met": passes, "quote": quote, "reason": reason}]},
        )
        for answer, passes, quote, reason in (
            ("It is Paris.", True, "Paris", "Paris is the capital."),
            ("I would rather not say.", False, "rather not say", "It names no city."),
        )
    )

    async def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Ask the judge; the result is an error if it could not be asked or understood."""
        self.check_shown(ctx)
        ask = judge_client(ctx)
        self.check_calibration(ask, self.judge)
        judge_input = self.judge_input(ctx, ask)
        try:
            answer = await ask_with_retry(ask, self.judge, *self.question(judge_input, ask))
        except JudgeError as error:
            return self.result("error", None, details=error.details | truncation_details(judge_input))
        return self.to_result(answer.value, answer_details(answer) | truncation_details(judge_input))


def answer_details(answer: JudgeAnswer[Any]) -> dict[str, Any]:
    """Return the usage, and the problem with the first reply."""
    retried = {} if answer.failure is None else {"asked_again": answer.failure}
    return {"judge": to_builtins(answer.usage), **retried}


def truncation_details(judge_input: JudgeInput) -> dict[str, Any]:
    """Return the parts that the judge was not shown in full."""
    if not judge_input.truncation:
        return {}
    return {"folded": judge_input.truncation, "warnings": [judge_input.truncation_warning]}


def _compose(judge: RubricJudge, judge_input: JudgeInput, points: Sequence[RubricPoint], fence: Fence) -> Compose:
    own = judge.prompt
    body = default_body(judge_input, fence) if own is None else template_body(own, judge_input, points, fence)
    task = rubric_task(points, fence)

    def compose(failure: FailedReply | None) -> Sequence[Message]:
        return judge_messages(body, task, fence, failure)

    return compose


def _reader(fence: Fence, points: Sequence[RubricPoint], evidence: Sequence[str]) -> Callable[[str], Reply]:
    def read(reply: str) -> Reply:
        return read_decisions(reply, fence.word, points, evidence)

    return read


Name = Annotated[str, Meta(min_length=1)]


class Panel(RubricJudge, kw_only=True):
    """Several models decide whether the answer meets a rubric, by majority or by mean."""

    type: Literal["panel"] = "panel"
    judges: Annotated[list[Name], Meta(min_length=2, max_length=25)]
    """The targets that judge."""
    decide: Literal["majority", "mean"] = "majority"
    """The way to combine the decisions of one item: the majority, or the mean."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            {"type": "panel", "judges": ["one", "two", "three"], "criterion": "The answer is polite."},
            [{"role": "assistant", "content": answer}],
            passes=passes,
            judge={"items": [{"id": "criterion", "met": passes, "quote": answer, "reason": reason}]},
        )
        for answer, passes, reason in (
            ("With pleasure!", True, "It is glad to help."),
            ("Look it up yourself.", False, "It sends the user away."),
        )
    )

    @property
    def asks(self) -> tuple[str | None, ...]:
        """All of its judges."""
        return tuple(self.judges)

    def check(self, path: str) -> list[Problem]:
        """Return a problem if a judge occurs twice."""
        problems = super().check(path)
        if self.judge is not None:
            problems.append(Problem(f"{path}.judge", "a panel has several: they belong in `judges`"))
        for at, name in enumerate(self.judges):
            if name in self.judges[:at]:
                again = "the same judge twice is no second opinion"
                problems.append(Problem(f"{path}.judges[{at}]", f"{name!r} is already in the panel; {again}"))
        return problems

    async def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Ask all judges; the result is an error if those that could not be understood might change it."""
        import asyncio  # noqa: PLC0415 - a configuration is checked without it

        self.check_shown(ctx)
        ask = judge_client(ctx)
        for name in self.judges:
            self.check_calibration(ask, name)
        judge_input = self.judge_input(ctx, ask)
        answers = await asyncio.gather(*[self._ask(ask, name, judge_input) for name in self.judges])
        return self._conclude(answers, judge_input)

    async def _ask(self, ask: JudgeClient, name: str, judge_input: JudgeInput) -> JudgeAnswer[Reply] | JudgeError:
        try:
            return await ask_with_retry(ask, name, *self.question(judge_input, ask))
        except JudgeError as error:
            return error

    def _conclude(self, answers: Sequence[JudgeAnswer[Reply] | JudgeError], judge_input: JudgeInput) -> EvaluatorResult:
        readable = [answer for answer in answers if isinstance(answer, JudgeAnswer)]
        errors = [answer for answer in answers if isinstance(answer, JudgeError)]
        replies = [answer.value for answer in readable]
        details: dict[str, Any] = {
            "judge": [to_builtins(answer.usage) for answer in answers],
            "agreement": _agreement(replies),
            "verdicts": {answer.usage.target: outcome(answer.value, self.threshold)[0] for answer in readable},
            **truncation_details(judge_input),
        }
        if errors:
            details["undecided"] = [str(error) for error in errors]
        if not replies:
            return self.result("error", None, details=details)
        decisions = [self._combine([reply[at] for reply in replies]) for at in range(len(self.points))]
        status, score = outcome(decisions, self.threshold)
        possible = {self._status(replies, self.points, value, len(errors)) for value in (0.0, 1.0)}
        if len(possible) > 1:
            return self.result("error", score, details=details)
        details["items"] = [
            item_details(decision) | {"judges": [reply[at].is_met for reply in replies]}
            for at, decision in enumerate(decisions)
        ]
        hits = [decision.sentence for decision in decisions if decision.is_met]
        misses = [decision.sentence for decision in decisions if not decision.is_met]
        return self.result(possible.pop() if errors else status, score, hits, misses, details)

    def _status(self, replies: Sequence[Reply], points: Sequence[RubricPoint], value: float, errors: int) -> Verdict:
        """Return the status if every judge that was not understood had decided every item like this."""
        decisions = []
        for at, point in enumerate(points):
            assumed = [Decision(point, value, None, "", "")] * errors
            decisions.append(self._combine([*(reply[at] for reply in replies), *assumed]))
        return outcome(decisions, self.threshold)[0]

    def _combine(self, decisions: Sequence[Decision]) -> Decision:
        """Combine several decisions of one item, with the words of a judge who agrees with the outcome."""
        values = [decision.value for decision in decisions]
        mean = sum(values) / len(values)
        if self.decide == "mean":
            value = mean
        elif decisions[0].point.scale is not None:
            value = median(values)
        else:
            value = 0.5 if mean == 0.5 else float(mean > 0.5)  # noqa: PLR2004 - half of them
        spokesman = min(decisions, key=lambda decision: (abs(decision.value - value), not decision.reason))
        votes = f"{sum(decision.is_met for decision in decisions)} of {len(decisions)} judges say it is met"
        reason = f"{votes}; {spokesman.reason}" if spokesman.reason else votes
        return spokesman._replace(value=value, score=None, reason=reason)


def _agreement(replies: Sequence[Reply]) -> float | None:
    """Return the share of pairs of judges that agree, over all items; `None` with fewer than two."""
    pairs = [
        one.is_met == other.is_met
        for first, second in combinations(replies, 2)
        for one, other in zip(first, second, strict=True)
    ]
    return round(sum(pairs) / len(pairs), 6) if pairs else None
