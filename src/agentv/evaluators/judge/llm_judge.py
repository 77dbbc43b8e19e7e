"""`llm_judge`: a model decides, item by item, and says by which words."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal, get_args

from msgspec import Meta, to_builtins

from agentv.errors import Problem
from agentv.evaluators.base import Example
from agentv.evaluators.judge.asking import Answer, Compose, JudgeError, Trouble, asker, put_question
from agentv.evaluators.judge.base import JudgeBase
from agentv.evaluators.judge.fence import Fence, make_fence
from agentv.evaluators.judge.material import Material, check_steps, gather, with_trace
from agentv.evaluators.judge.prompt import default_body, judge_messages, own_body, rubric_task
from agentv.evaluators.judge.rubric import Point, RubricItem, Words, check_rubric, points_of
from agentv.evaluators.judge.template import check_template, names_in
from agentv.evaluators.judge.verdict import Decision, read_decisions
from agentv.model.message import Message
from agentv.model.result import EvaluatorResult
from agentv.protocols import Ask, Context

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
    def points(self) -> tuple[Point, ...]:
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

    def material(self, ctx: Context, ask: Ask) -> Material:
        """What the judge is shown of this run."""
        names = self.show if self.prompt is None else names_in(self.prompt) - {"trace"}
        material = gather(ctx, ask.clean, names, self.max_chars)
        if self.prompt is not None and "trace" in names_in(self.prompt):
            material = with_trace(material, ctx, ask.clean, self.max_chars)
        return material

    def question(self, material: Material, ask: Ask) -> tuple[Compose, Callable[[str], Reply]]:
        """What is said to the judge, and how its reply is read."""
        points = self.points
        words = [point.line for point in points]
        fence = make_fence(ask.word, [*material.texts, *words, self.prompt or ""])
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
        ask = asker(ctx)
        self.check_calibration(ask, self.judge)
        material = self.material(ctx, ask)
        try:
            answer = await put_question(ask, self.judge, *self.question(material, ask))
        except JudgeError as error:
            return self.result("error", None, details=error.details | folded_details(material))
        return self.concluded(answer.value, answer_details(answer) | folded_details(material))


def answer_details(answer: Answer[Any]) -> dict[str, Any]:
    """What it took, and what was wrong at first."""
    retried = {} if answer.trouble is None else {"asked_again": answer.trouble}
    return {"judge": to_builtins(answer.usage), **retried}


def folded_details(material: Material) -> dict[str, Any]:
    """What the judge was not shown in full."""
    return {"folded": material.folded} if material.folded else {}


def _compose(judge: RubricJudge, material: Material, points: Sequence[Point], fence: Fence) -> Compose:
    own = judge.prompt
    body = default_body(material, fence) if own is None else own_body(own, material, points, fence)
    task = rubric_task(points, fence)

    def compose(trouble: Trouble | None) -> Sequence[Message]:
        return judge_messages(body, task, fence, trouble)

    return compose


def _reader(fence: Fence, points: Sequence[Point], evidence: Sequence[str]) -> Callable[[str], Reply]:
    def read(reply: str) -> Reply:
        return read_decisions(reply, fence.word, points, evidence)

    return read
