"""One question to a judge: asked, read, asked once more with what was wrong, and then given up as an error."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import to_builtins

from agentv.errors import EvaluationError
from agentv.evaluators.judge.verdict import UnreadableError
from agentv.matching.diff import quote
from agentv.model.judging import Judged, JudgeUsage, sum_usage
from agentv.model.message import Message
from agentv.protocols import Ask, Context

T = TypeVar("T")
Trouble = tuple[str, str]
"""A reply that could not be used, and why."""
Compose = Callable[[Trouble | None], Sequence[Message]]
TRIES = 2
NO_JUDGE = (
    "there is no judge to ask here: in an eval, name a target with `judge: NAME`; "
    "in Python, pass one to `agentv.score(..., judge=function)`"
)


class JudgeError(EvaluationError):
    """A judge that decided nothing, with what it took all the same."""

    def __init__(self, reason: str, usage: JudgeUsage, reply: str | None = None) -> None:
        super().__init__(reason)
        self.usage = usage
        self.reply = reply

    @property
    def details(self) -> dict[str, Any]:
        """For the result."""
        said = {} if self.reply is None else {"reply": quote(self.reply)}
        return {"error": str(self), "judge": to_builtins(self.usage), **said}


class Answer(NamedTuple, Generic[T]):
    """What a judge decided, and what it took."""

    value: T
    usage: JudgeUsage
    trouble: str | None = None
    """What was wrong with its first reply, when it was asked twice."""


def asker(ctx: Context) -> Ask:
    """How to reach a judge, or an `EvaluationError` that says what is missing."""
    if ctx.ask is None:
        raise EvaluationError(NO_JUDGE)
    return ctx.ask


async def put_question(ask: Ask, target: str | None, compose: Compose, read: Callable[[str], T]) -> Answer[T]:
    """The judge's answer as `read` understands it; `JudgeError` when it could not be had or read."""
    judged: list[Judged] = []
    trouble: Trouble | None = None
    name = target or ask.default or ""
    for _ in range(TRIES):
        try:
            one = await ask.judge(target, compose(trouble))
        except EvaluationError as error:
            raise JudgeError(str(error), sum_usage(name, judged)) from error
        judged.append(one)
        name = one.target
        response = one.response
        if not response.success:
            failed = response.error
            why = f"{failed.kind}: {failed.message}" if failed else "it gave no reason"
            msg = f"the judge {name!r} gave no reply: {why}"
            raise JudgeError(msg, sum_usage(name, judged))
        try:
            value = read(response.text)
        except UnreadableError as error:
            trouble = response.text, str(error)
            continue
        ask.keep(judged)
        return Answer(value, sum_usage(name, judged), trouble[1] if trouble else None)
    assert trouble is not None  # noqa: S101 - every way through the loop but this one has left it
    reason = f"the reply of the judge {name!r} could not be read, {TRIES} times: {trouble[1]}"
    raise JudgeError(reason, sum_usage(name, judged), trouble[0])
