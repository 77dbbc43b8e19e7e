"""Base class of judges: ask a model, with one retry, and require a calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, TypeVar

from msgspec import Meta, Struct, to_builtins

from agentv.errors import EvaluationError
from agentv.evaluators.base import EvaluatorBase
from agentv.evaluators.judge.verdict import UnreadableError
from agentv.jsonio import dump_json
from agentv.matching.diff import quote
from agentv.model.conversation import Message
from agentv.model.judging import JudgeReply, JudgeUsage, sum_usage
from agentv.scoring.scorer import reaches

if TYPE_CHECKING:
    from agentv.evaluators.judge.verdict import Decision
    from agentv.model.results import EvaluatorResult, Verdict
    from agentv.protocols import Context, JudgeClient


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


class JudgeAnswer(NamedTuple, Generic[T]):
    """What a judge decided, and what it took."""

    value: T
    usage: JudgeUsage
    trouble: str | None = None
    """What was wrong with its first reply, when it was asked twice."""


def judge_client(ctx: Context) -> JudgeClient:
    """How to reach a judge, or an `EvaluationError` that says what is missing."""
    if ctx.ask is None:
        raise EvaluationError(NO_JUDGE)
    return ctx.ask


async def ask_with_retry(
    ask: JudgeClient, target: str | None, compose: Compose, read: Callable[[str], T]
) -> JudgeAnswer[T]:
    """The judge's answer as `read` understands it; `JudgeError` when it could not be had or read."""
    judged: list[JudgeReply] = []
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
        ask.remember(judged)
        return JudgeAnswer(value, sum_usage(name, judged), trouble[1] if trouble else None)
    assert trouble is not None  # noqa: S101 - every way through the loop but this one has left it
    reason = f"the reply of the judge {name!r} could not be read, {TRIES} times: {trouble[1]}"
    raise JudgeError(reason, sum_usage(name, judged), trouble[0])


MAX_CHARS = 60_000
NOT_JUDGED = frozenset((
    *("type", "name", "weight", "required", "kind", "skip", "not"),
    *("judge", "judges", "decide", "require_calibration"),
))  # fmt: skip
"""What makes no difference to what a judge is asked."""


class RequiredCalibration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How well the judge must have agreed with people, before its verdict counts."""

    kappa: Annotated[float, Meta(ge=-1, le=1)]
    """The least Cohen's kappa that `agentv calibrate` must have found."""
    n: Annotated[int, Meta(ge=1)] = 1
    """On how many decisions at least."""
    max_errors: Annotated[int, Meta(ge=0)] = 0
    """How many of the labelled replies the judge may have left undecided: they are in no kappa."""


class JudgeBase(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A check that asks a model."""

    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.7
    """The score from which it passes."""
    judge: Annotated[str, Meta(min_length=1)] | None = None
    """The target that judges; by default the `judge` of the eval, then of `agentv.yaml`."""
    max_chars: Annotated[int, Meta(ge=1_000, le=10_000_000)] = MAX_CHARS
    """How much of a long transcript the judge is shown; what does not fit is folded, and said to be."""
    require_calibration: RequiredCalibration | None = None
    """Makes it an error unless `agentv calibrate` found this judge to agree with people on this rubric."""

    @property
    def asks(self) -> tuple[str | None, ...]:
        """The targets that it asks; `None` stands for the default judge."""
        return (self.judge,)

    @property
    def rubric_key(self) -> str:
        """A hash of everything that makes a difference to what is asked and decided."""
        return rubric_key(self)

    async def evaluate(self, ctx: Context) -> EvaluatorResult:
        """What the judge decided."""
        raise NotImplementedError

    def check_calibration(self, ask: JudgeClient, judge: str | None) -> None:
        """Raise an `EvaluationError` unless this judge is known to agree with people."""
        wanted = self.require_calibration
        if wanted is None:
            return
        from shlex import quote  # noqa: PLC0415 - only this needs it

        name = judge or ask.default or "NAME"
        found = ask.calibration(judge, self.rubric_key)
        label = self.name or self.type
        run = f"run `agentv calibrate LABELS.jsonl --judge {quote(name)} --evaluator {quote(label)}`"
        if found is None:
            msg = f"the judge {name!r} is not calibrated for this rubric; {run}"
        elif found.kappa is None:
            msg = f"the calibration of {name!r} found no kappa: label cases of both kinds, and {run}"
        elif found.kappa < wanted.kappa:
            msg = (
                f"the judge {name!r} agrees with people by a kappa of {found.kappa:.2f}, and {wanted.kappa:g} is wanted"
            )
            msg = f"{msg}; improve the rubric or the judge, and {run}"
        elif found.n < wanted.n:
            msg = f"the judge {name!r} was calibrated on {found.n} decisions, and {wanted.n} are wanted; {run}"
        elif found.errors > wanted.max_errors:
            msg = f"the judge {name!r} left {found.errors} of the labelled replies undecided when it was calibrated"
            msg = f"{msg}, and kappa knows nothing of them; {run}, or allow them with `max_errors`"
        else:
            return
        raise EvaluationError(msg)

    def concluded(self, decisions: Sequence[Decision], details: dict[str, Any]) -> EvaluatorResult:
        """The finding that these decisions come to."""
        status, score = outcome(decisions, self.threshold)
        return self.result(
            status,
            score,
            [decision.sentence for decision in decisions if decision.is_met],
            [decision.sentence for decision in decisions if not decision.is_met],
            {"items": [item_details(decision) for decision in decisions], **details},
        )


def rubric_key(evaluator: EvaluatorBase) -> str:
    """A hash of all that an evaluator says about what is to be decided."""
    said = {key: value for key, value in to_builtins(evaluator).items() if key not in NOT_JUDGED}
    said["type"] = "llm_judge" if evaluator.type == "panel" else evaluator.type
    return blake2b(dump_json(dict(sorted(said.items()))), digest_size=16).hexdigest()


def outcome(decisions: Sequence[Decision], threshold: float) -> tuple[Verdict, float]:
    """The weighted mean, and whether it suffices; no score makes up for a required item that is not met."""
    weight = sum(decision.point.weight for decision in decisions)
    score = sum(decision.point.weight * decision.value for decision in decisions) / weight
    held = all(decision.is_met for decision in decisions if decision.point.required)
    return ("pass" if held and reaches(score, threshold) else "fail"), score


def item_details(decision: Decision) -> dict[str, Any]:
    """A decision as results hold it."""
    from agentv.matching.diff import MAX_QUOTED  # noqa: PLC0415 - only a verdict needs it

    scored = {} if decision.score is None else {"score": decision.score}
    return {
        "id": decision.point.id,
        "met": decision.is_met,
        **scored,
        "value": round(decision.value, 6),
        "weight": decision.point.weight,
        "required": decision.point.required,
        "quote": decision.quote[:MAX_QUOTED],
        "reason": decision.reason[:MAX_QUOTED],
    }
