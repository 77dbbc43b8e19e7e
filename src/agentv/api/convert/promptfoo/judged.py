"""promptfoo's assertions that a model decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentv.api.convert.base import UntranslatableError

if TYPE_CHECKING:
    from agentv.api.convert.promptfoo.assertions import Assertion

_CONTEXT = "All that the answer says stands in what the tools returned."


def _criterion(assertion: Assertion) -> str:
    value = assertion.value
    if isinstance(value, str) and value.strip():
        return value.strip()
    msg = "it has no criterion in words"
    raise UntranslatableError(msg)


def judge(assertion: Assertion, evaluator: dict[str, Any]) -> dict[str, Any]:
    """Return an evaluator with the judge and the threshold of the assertion."""
    provider = assertion.entry.get("provider", assertion.scope.judge)
    own = assertion.place if "provider" in assertion.entry else assertion.scope.judge_place
    name = assertion.scope.judges(provider, own or assertion.place) if assertion.scope.judges else None
    result = dict(evaluator)
    if name is not None:
        result["judge"] = name
    if assertion.threshold is not None and 0 <= assertion.threshold <= 1:
        result["threshold"] = assertion.threshold
    for key, used in (("rubricPrompt", assertion.entry.get("rubricPrompt", assertion.scope.rubric_prompt)),):
        if used is not None:
            is_own = key in assertion.entry
            where = assertion.scope.judge_place
            (assertion.place.at(key) if is_own or where is None else where.sibling(key)).leave_out(
                f"{assertion.type}.{key}", "a prompt of your own is `prompt` of `llm_judge`, with other variables"
            )
    if assertion.entry.get("contextTransform") is not None:
        assertion.place.leave_out(f"{assertion.type}.contextTransform", "the context is what the tools returned")
    if assertion.transform is not None:
        msg = "the output is transformed before it is judged"
        raise UntranslatableError(msg)
    if not assertion.negated:
        return result
    return {"type": "all_of", "not": True, "evaluators": [result]}


def _rubric(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if isinstance(value, Mapping):
        criterion = value.get("criterion") or value.get("criteria")
        if not isinstance(criterion, str):
            msg = "its value is a mapping of its own"
            raise UntranslatableError(msg)
        value = criterion
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return judge(assertion, {"type": "llm_judge", "rubric": list(value)})
    return judge(assertion, {"type": "llm_judge", "criterion": _criterion(assertion)})


def _factuality(assertion: Assertion) -> dict[str, Any]:
    facts = _criterion(assertion)
    criterion = f"The answer does not contradict this expert answer: {facts}"
    return judge(assertion, {"type": "llm_judge", "criterion": criterion})


def _fixed(criterion: str, *, show: bool = False) -> Callable[[Assertion], dict[str, Any]]:
    def convert(assertion: Assertion) -> dict[str, Any]:
        evaluator: dict[str, Any] = {"type": "llm_judge", "criterion": criterion}
        if show and "context" in assertion.scope.vars:  # the prompt holds it, and the judge sees the prompt
            given = criterion.replace("what the tools returned", "the context that the question gives")
            evaluator["criterion"] = given.replace("What the tools returned", "The context that the question gives")
        elif show:
            evaluator["show"] = ["tool_calls"]
        return judge(assertion, evaluator)

    return convert


def _context_recall(assertion: Assertion) -> dict[str, Any]:
    criterion = f"What the tools returned contains this: {_criterion(assertion)}"
    return judge(assertion, {"type": "llm_judge", "criterion": criterion, "show": ["tool_calls"]})


def _goal(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    goal = value.get("goal") if isinstance(value, Mapping) else value
    if not isinstance(goal, str) or not goal.strip():
        msg = "it has no goal"
        raise UntranslatableError(msg)
    return judge(assertion, {"type": "trajectory_judge", "goal": goal.strip(), "goal_weight": 1})


CONVERTERS: dict[str, Callable[[Assertion], dict[str, Any]]] = {
    **dict.fromkeys(("llm-rubric", "g-eval", "model-graded-closedqa", "search-rubric", "agent-rubric"), _rubric),
    **dict.fromkeys(("factuality", "model-graded-factuality"), _factuality),
    **dict.fromkeys(("answer-relevance", "conversation-relevance"), _fixed("The answer is about what was asked.")),
    "context-faithfulness": _fixed(_CONTEXT, show=True),
    "context-relevance": _fixed("What the tools returned is about what was asked.", show=True),
    "context-recall": _context_recall,
    "trajectory:goal-success": _goal,
}
