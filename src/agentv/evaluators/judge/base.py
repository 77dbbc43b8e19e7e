"""Base class of judges: ask a model, with one retry, and require a calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from shlex import quote as shell_quote
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar

from msgspec import Meta, Struct, to_builtins

from agentv.errors import EvaluationError
from agentv.evaluators.base import EvaluatorBase
from agentv.evaluators.judge.verdict import UnreadableError
from agentv.jsonio import dump_json
from agentv.matching.diff import MAX_QUOTED, quote
from agentv.model.conversation import Message
from agentv.model.judging import JudgeReply, JudgeUsage, sum_usage
from agentv.redaction import shorten
from agentv.scoring.scorer import reaches

if TYPE_CHECKING:
    from agentv.evaluators.judge.verdict import Decision
    from agentv.model.results import EvaluatorResult, Verdict
    from agentv.protocols import Context, JudgeClient


T = TypeVar("T")
FailedReply = tuple[str, str]
"""A reply that could not be used, and the reason."""
Compose = Callable[[FailedReply | None], Sequence[Message]]
TRIES = 2
NO_JUDGE = (
    "there is no judge to ask here: in an eval, name a target with `judge: NAME`; "
    "in Python, pass one to `agentv.score(..., judge=function)`"
)


class JudgeError(EvaluationError):
    """Error of a judge call, with the usage that it caused."""

    def __init__(self, reason: str, usage: JudgeUsage, reply: str | None = None) -> None:
        super().__init__(reason)
        self.usage = usage
        self.reply = reply

    @property
    def details(self) -> dict[str, Any]:
        """For the result."""
        reply = {} if self.reply is None else {"reply": quote(self.reply)}
        return {"error": str(self), "judge": to_builtins(self.usage), **reply}


class JudgeAnswer(NamedTuple, Generic[T]):
    """The value read from a judge's reply, and its usage."""

    value: T
    usage: JudgeUsage
    failure: str | None = None
    """The problem with its first reply, when it was asked twice."""


def judge_client(ctx: Context) -> JudgeClient:
    """Return the judge client; raise `EvaluationError` if there is none."""
    if ctx.ask is None:
        raise EvaluationError(NO_JUDGE)
    return ctx.ask


async def ask_with_retry(
    ask: JudgeClient, target: str | None, compose: Compose, read: Callable[[str], T]
) -> JudgeAnswer[T]:
    """Ask a judge and read its reply, with one retry; raise `JudgeError` if it fails or cannot be read."""
    judged: list[JudgeReply] = []
    failure: FailedReply | None = None
    name = target or ask.default or ""
    for _ in range(TRIES):
        try:
            one = await ask.judge(target, compose(failure))
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
            failure = response.text, str(error)
            continue
        ask.remember(judged)
        return JudgeAnswer(value, sum_usage(name, judged), failure[1] if failure else None)
    assert failure is not None  # noqa: S101 - every way through the loop but this one has left it
    reason = f"the reply of the judge {name!r} could not be read, {TRIES} times: {failure[1]}"
    raise JudgeError(reason, sum_usage(name, judged), failure[0])


MAX_CHARS = 60_000
NOT_JUDGED = frozenset((
    *("type", "name", "weight", "required", "kind", "skip", "not"),
    *("judge", "judges", "decide", "require_calibration"),
))  # fmt: skip
"""Keys that do not influence what a judge is asked."""


class RequiredCalibration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Required agreement of the judge with people, before its verdict counts."""

    kappa: Annotated[float, Meta(ge=-1, le=1)]
    """The lowest Cohen's kappa that `agentv calibrate` must have found."""
    n: Annotated[int, Meta(ge=1)] = 1
    """The lowest number of decisions in that calibration."""
    max_errors: Annotated[int, Meta(ge=0)] = 0
    """The number of labelled replies that the judge may have left undecided: kappa does not include them."""


class JudgeBase(EvaluatorBase, kw_only=True):
    """Base class of evaluators that ask a model."""

    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.7
    """The score from which it passes."""
    judge: Annotated[str, Meta(min_length=1)] | None = None
    """The target that judges; by default the `judge` of the eval, then of `agentv.yaml`."""
    max_chars: Annotated[int, Meta(ge=1_000, le=10_000_000)] = MAX_CHARS
    """The size of the transcript that the judge is shown; a longer one is truncated, which the prompt says."""
    require_calibration: RequiredCalibration | None = None
    """Makes it an error unless `agentv calibrate` found this judge to agree with people on this rubric."""

    handles_incomplete: ClassVar[bool] = True
    """The judge is informed which marks stand for missing text; it never sees secrets."""

    @property
    def asks(self) -> tuple[str | None, ...]:
        """The targets that it asks; `None` stands for the default judge."""
        return (self.judge,)

    @property
    def rubric_key(self) -> str:
        """A hash of everything that makes a difference to what is asked and decided."""
        return rubric_key(self)

    async def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Ask the judge and return the result."""
        raise NotImplementedError

    def check_calibration(self, ask: JudgeClient, judge: str | None) -> None:
        """Raise an `EvaluationError` unless this judge is known to agree with people."""
        required = self.require_calibration
        if required is None:
            return
        name = judge or ask.default or "NAME"
        calibration = ask.calibration(judge, self.rubric_key)
        label = self.name or self.type
        run = f"run `agentv calibrate LABELS.jsonl --judge {shell_quote(name)} --evaluator {shell_quote(label)}`"
        if calibration is None:
            msg = f"the judge {name!r} is not calibrated for this rubric; {run}"
        elif calibration.kappa is None:
            msg = f"the calibration of {name!r} found no kappa: label cases of both kinds, and {run}"
        elif calibration.kappa < required.kappa:
            msg = f"the judge {name!r} agrees with people by a kappa of {calibration.kappa:.2f}"
            msg = f"{msg}, and {required.kappa:g} is wanted; improve the rubric or the judge, and {run}"
        elif calibration.n < required.n:
            msg = f"the judge {name!r} was calibrated on {calibration.n} decisions, and {required.n} are wanted; {run}"
        elif calibration.errors > required.max_errors:
            count = f"{calibration.errors} of the labelled replies"
            msg = f"the judge {name!r} left {count} undecided when it was calibrated, and kappa does not include them"
            msg = f"{msg}; {run}, or allow them with `max_errors`"
        else:
            return
        raise EvaluationError(msg)

    def to_result(self, decisions: Sequence[Decision], details: dict[str, Any]) -> EvaluatorResult:
        """Return the result for these decisions."""
        status, score = outcome(decisions, self.threshold)
        return self.result(
            status,
            score,
            [decision.sentence for decision in decisions if decision.is_met],
            [decision.sentence for decision in decisions if not decision.is_met],
            {"items": [item_details(decision) for decision in decisions], **details},
        )


def rubric_key(evaluator: EvaluatorBase) -> str:
    """Return a hash of the settings that influence what is asked and decided."""
    settings = {key: value for key, value in to_builtins(evaluator).items() if key not in NOT_JUDGED}
    settings["type"] = "llm_judge" if evaluator.type == "panel" else evaluator.type
    return blake2b(dump_json(dict(sorted(settings.items()))), digest_size=16).hexdigest()


def outcome(decisions: Sequence[Decision], threshold: float) -> tuple[Verdict, float]:
    """Return status and weighted mean; a required item that is not met fails whatever the score is."""
    weight = sum(decision.point.weight for decision in decisions)
    score = sum(decision.point.weight * decision.value for decision in decisions) / weight
    is_required_met = all(decision.is_met for decision in decisions if decision.point.required)
    return ("pass" if is_required_met and reaches(score, threshold) else "fail"), score


def item_details(decision: Decision) -> dict[str, Any]:
    """Return a decision as `details` of a result."""
    scored = {} if decision.score is None else {"score": decision.score}
    return {
        "id": decision.point.id,
        "met": decision.is_met,
        **scored,
        "value": round(decision.value, 6),
        "weight": decision.point.weight,
        "required": decision.point.required,
        "quote": shorten(decision.quote, MAX_QUOTED),
        "reason": shorten(decision.reason, MAX_QUOTED),
    }
