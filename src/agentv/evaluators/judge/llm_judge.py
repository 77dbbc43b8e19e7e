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
    JudgeAnswer,
    JudgeBase,
    JudgeError,
    Trouble,
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
from agentv.evaluators.judge.transcript import JudgeInput, check_steps, gather, with_trace
from agentv.evaluators.judge.verdict import Decision, read_decisions
from agentv.model.conversation import Message
from agentv.model.results import EvaluatorResult, Verdict
from agentv.protocols import Context, JudgeClient

Shown = Literal["tool_calls", "trace", "trace_summary"]
Reply = tuple[Decision, ...]


class RubricJudge(JudgeBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A check in which models decide by a rubric."""

    rubric: list[Words | RubricItem] = []
    """What has to hold: sentences, or mappings with `criterion`, `id`, `weight`, `required`, `scores` and `min`."""
    criterion: Words | None = None
    """One more thing that has to hold, in free words."""
    show: list[Shown] = []
    """What the judge is shown beside the question, the expectation and the answer."""
    prompt: Annotated[str, Meta(min_length=1, max_length=200_000)] | None = None
    """A Jinja template that shows the run in words of your own; what to decide, and how, is added after it."""

    @property
    def points(self) -> tuple[RubricPoint, ...]:
        """Everything to decide."""
        return points_of(self.rubric, self.criterion)

    def check(self, path: str) -> list[Problem]:
        """That something is decided, and that the template can be rendered."""
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
        shown = [name for name in get_args(Shown) if name in names]
        if shown:
            check_steps(ctx, " and ".join(shown))

    def material(self, ctx: Context, ask: JudgeClient) -> JudgeInput:
        """What the judge is shown of this run."""
        names = self.show if self.prompt is None else names_in(self.prompt) - {"trace"}
        material = gather(ctx, ask.redact, names, self.max_chars)
        if self.prompt is not None and "trace" in names_in(self.prompt):
            material = with_trace(material, ctx, ask.redact, self.max_chars)
        return material

    def question(self, material: JudgeInput, ask: JudgeClient) -> tuple[Compose, Callable[[str], Reply]]:
        """What is said to the judge, and how its reply is read."""
        points = self.points
        words = [point.line for point in points]
        fence = make_fence(ask.nonce, [*material.texts, *words, self.prompt or ""])
        return _compose(self, material, points, fence), _reader(fence, points, material.evidence)


class LlmJudge(RubricJudge, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A model decides whether the answer meets a rubric, and quotes what it goes by."""

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
        """What the judge decided; an error when it could not be asked or understood."""
        self.check_shown(ctx)
        ask = judge_client(ctx)
        self.check_calibration(ask, self.judge)
        material = self.material(ctx, ask)
        try:
            answer = await ask_with_retry(ask, self.judge, *self.question(material, ask))
        except JudgeError as error:
            return self.result("error", None, details=error.details | folded_details(material))
        return self.concluded(answer.value, answer_details(answer) | folded_details(material))


def answer_details(answer: JudgeAnswer[Any]) -> dict[str, Any]:
    """What it took, and what was wrong at first."""
    retried = {} if answer.trouble is None else {"asked_again": answer.trouble}
    return {"judge": to_builtins(answer.usage), **retried}


def folded_details(material: JudgeInput) -> dict[str, Any]:
    """What the judge was not shown in full."""
    return {"folded": material.folded} if material.folded else {}


def _compose(judge: RubricJudge, material: JudgeInput, points: Sequence[RubricPoint], fence: Fence) -> Compose:
    own = judge.prompt
    body = default_body(material, fence) if own is None else template_body(own, material, points, fence)
    task = rubric_task(points, fence)

    def compose(trouble: Trouble | None) -> Sequence[Message]:
        return judge_messages(body, task, fence, trouble)

    return compose


def _reader(fence: Fence, points: Sequence[RubricPoint], evidence: Sequence[str]) -> Callable[[str], Reply]:
    def read(reply: str) -> Reply:
        return read_decisions(reply, fence.word, points, evidence)

    return read


Name = Annotated[str, Meta(min_length=1)]


class Panel(RubricJudge, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Several models decide whether the answer meets a rubric, by majority or by mean."""

    type: Literal["panel"] = "panel"
    judges: Annotated[list[Name], Meta(min_length=2, max_length=25)]
    """The targets that judge."""
    decide: Literal["majority", "mean"] = "majority"
    """How several decisions of one item become one: what more than half say, or their mean."""

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
        """That each judge sits in it once."""
        problems = super().check(path)
        if self.judge is not None:
            problems.append(Problem(f"{path}.judge", "a panel has several: they belong in `judges`"))
        for at, name in enumerate(self.judges):
            if name in self.judges[:at]:
                again = "the same judge twice is no second opinion"
                problems.append(Problem(f"{path}.judges[{at}]", f"{name!r} is already in the panel; {again}"))
        return problems

    async def evaluate(self, ctx: Context) -> EvaluatorResult:
        """What they decided together; an error when those that could not be understood might change it."""
        import asyncio  # noqa: PLC0415 - a configuration is checked without it

        self.check_shown(ctx)
        ask = judge_client(ctx)
        for name in self.judges:
            self.check_calibration(ask, name)
        material = self.material(ctx, ask)
        answers = await asyncio.gather(*[self._ask(ask, name, material) for name in self.judges])
        return self._conclude(answers, material)

    async def _ask(self, ask: JudgeClient, name: str, material: JudgeInput) -> JudgeAnswer[Reply] | JudgeError:
        try:
            return await ask_with_retry(ask, name, *self.question(material, ask))
        except JudgeError as error:
            return error

    def _conclude(self, answers: Sequence[JudgeAnswer[Reply] | JudgeError], material: JudgeInput) -> EvaluatorResult:
        heard = [answer for answer in answers if isinstance(answer, JudgeAnswer)]
        silent = [answer for answer in answers if isinstance(answer, JudgeError)]
        given = [answer.value for answer in heard]
        details: dict[str, Any] = {
            "judge": [to_builtins(answer.usage) for answer in answers],
            "agreement": _agreement(given),
            "verdicts": {answer.usage.target: outcome(answer.value, self.threshold)[0] for answer in heard},
            **folded_details(material),
        }
        if silent:
            details["undecided"] = [str(error) for error in silent]
        if not given:
            return self.result("error", None, details=details)
        decisions = [self._together([reply[at] for reply in given]) for at in range(len(self.points))]
        status, score = outcome(decisions, self.threshold)
        possible = {self._status(given, self.points, value, len(silent)) for value in (0.0, 1.0)}
        if len(possible) > 1:
            return self.result("error", score, details=details)
        details["items"] = [
            item_details(decision) | {"judges": [reply[at].is_met for reply in given]}
            for at, decision in enumerate(decisions)
        ]
        hits = [decision.sentence for decision in decisions if decision.is_met]
        misses = [decision.sentence for decision in decisions if not decision.is_met]
        return self.result(possible.pop() if silent else status, score, hits, misses, details)

    def _status(self, given: Sequence[Reply], points: Sequence[RubricPoint], value: float, silent: int) -> Verdict:
        """How it would end if everybody who was not understood had said this of every item."""
        decisions = []
        for at, point in enumerate(points):
            unheard = [Decision(point, value, None, "", "")] * silent
            decisions.append(self._together([*(reply[at] for reply in given), *unheard]))
        return outcome(decisions, self.threshold)[0]

    def _together(self, decisions: Sequence[Decision]) -> Decision:
        """Several decisions of one item as one, in the words of one who is of that opinion."""
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


def _agreement(given: Sequence[Reply]) -> float | None:
    """The share of pairs of judges that say the same, over all items; `None` with fewer than two."""
    pairs = [
        one.is_met == other.is_met
        for first, second in combinations(given, 2)
        for one, other in zip(first, second, strict=True)
    ]
    return round(sum(pairs) / len(pairs), 6) if pairs else None
