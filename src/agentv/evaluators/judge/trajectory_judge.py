"""`trajectory_judge`: a model decides whether each step was reasonable and whether the goal was reached."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from agentv.errors import EvaluationError
from agentv.evaluators.base import Example
from agentv.evaluators.call_checks import NO_TURNS
from agentv.evaluators.judge.base import FailedReply, JudgeBase, JudgeError, ask_with_retry, judge_client
from agentv.evaluators.judge.evidence import make_fence
from agentv.evaluators.judge.llm_judge import answer_details, truncation_details
from agentv.evaluators.judge.prompt import default_body, judge_messages, rubric_task
from agentv.evaluators.judge.rubric import RubricPoint, Words
from agentv.evaluators.judge.transcript import LEFT_OUT, JudgeInput, build_judge_input, check_steps
from agentv.evaluators.judge.verdict import Decision, read_decisions
from agentv.model.conversation import Message
from agentv.model.results import EvaluatorResult
from agentv.protocols import Context

MAX_STEPS = 40
GOAL = "The agent reached the goal: what it was asked for is done, and its final answer is true to what it did."
STEP = "Step {number} was reasonable, given what was known by then: it served the goal and repeated nothing needlessly."
_TURN = {
    "role": "assistant",
    "tool_calls": [{"tool": "search", "input": {"query": "opening hours"}, "output": "9 to 5"}],
}


class TrajectoryJudge(JudgeBase, kw_only=True):
    """A model decides whether each step of the agent was reasonable, and whether it reached the goal."""

    type: Literal["trajectory_judge"] = "trajectory_judge"
    goal: Words | None = None
    """The goal, if the question does not say it."""
    goal_weight: Annotated[float, Meta(ge=0, le=1)] = 0.5
    """The share of the goal in the score; the steps have the rest, each an equal part."""
    max_steps: Annotated[int, Meta(ge=1, le=1_000)] = MAX_STEPS
    """The number of steps that are decided one by one: of more, the first half and the last half of these."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            {"type": "trajectory_judge"},
            [_TURN, {"role": "assistant", "content": answer}],
            passes=passes,
            judge={
                "items": [
                    {"id": "goal", "met": passes, "quote": answer, "reason": reason},
                    {"id": "step 1", "met": True, "quote": "opening hours", "reason": "It looks up what is asked."},
                    {"id": "step 2", "met": passes, "quote": answer, "reason": reason},
                ]
            },
        )
        for answer, passes, reason in (
            ("We are open from 9 to 5.", True, "It says what the search found."),
            ("We never close.", False, "The search found other hours."),
        )
    )

    async def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Ask the judge; the result is an error if there are no steps, or it could not be asked or understood."""
        check_steps(ctx, "the steps")
        ask = judge_client(ctx)
        self.check_calibration(ask, self.judge)
        judge_input = build_judge_input(ctx, ask.redact, ("trace",), self.max_chars)
        if judge_input.steps is None:
            raise EvaluationError(NO_TURNS)
        points, omitted = self._points(judge_input)
        fence = make_fence(ask.nonce, [*judge_input.texts, self.goal or ""])
        body = default_body(judge_input, fence)
        task = rubric_task(points, fence, "the step that it is about (for the goal, from anywhere)")

        def compose(failure: FailedReply | None) -> Sequence[Message]:
            return judge_messages(body, task, fence, failure)

        def read(reply: str) -> tuple[Decision, ...]:
            return read_decisions(reply, fence.word, points, judge_input.evidence)

        details = truncation_details(judge_input)
        if omitted:
            details["not_judged"] = {"steps": omitted, "rule": f"the first and the last of {self.max_steps} are"}
            judged = f"{omitted} of {judge_input.total_steps} steps were not judged (`max_steps`: {self.max_steps})"
            details["warnings"] = [*details.get("warnings", []), judged]
        try:
            answer = await ask_with_retry(ask, self.judge, compose, read)
        except JudgeError as error:
            return self.result("error", None, details=error.details | details)
        return self.to_result(answer.value, answer_details(answer) | details)

    def _points(self, judge_input: JudgeInput) -> tuple[tuple[RubricPoint, ...], int]:
        """Return the points for the goal and the steps, and the number of steps without one."""
        steps = [step for step in judge_input.steps or () if step.type != LEFT_OUT]
        head = (self.max_steps + 1) // 2
        tail = self.max_steps - head
        chosen = steps if len(steps) <= self.max_steps else [*steps[:head], *(steps[-tail:] if tail else [])]
        goal = f"{GOAL} The goal: {self.goal}" if self.goal else GOAL
        share = (1 - self.goal_weight) / len(chosen) if chosen else 0.0
        words = ("The goal was reached.", "The goal was not reached.")
        points = [RubricPoint("goal", goal, self.goal_weight, required=True, words=words)]
        for step in chosen:
            criterion = STEP.format(number=step.number)
            about = f"Step {step.number} ({step.name or step.type})"
            words = (f"{about} was reasonable.", f"{about} was not reasonable.")
            points.append(RubricPoint(f"step {step.number}", criterion, share, evidence=step.texts, words=words))
        return tuple(points), judge_input.total_steps - len(chosen)
