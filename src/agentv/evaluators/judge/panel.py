"""`panel`: several models decide the same rubric, and how far they agree is part of the result."""

from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, to_builtins

from agentv.errors import Problem
from agentv.evaluators.base import Example
from agentv.evaluators.judge.asking import Answer, JudgeError, asker, put_question
from agentv.evaluators.judge.base import item_details, outcome
from agentv.evaluators.judge.llm_judge import Reply, RubricJudge, folded_details
from agentv.evaluators.judge.material import Material
from agentv.evaluators.judge.rubric import Point
from agentv.evaluators.judge.verdict import Decision
from agentv.model.result import EvaluatorResult, Verdict
from agentv.protocols import Ask, Context

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
        ask = asker(ctx)
        for name in self.judges:
            self.check_calibration(ask, name)
        material = self.material(ctx, ask)
        answers = await asyncio.gather(*[self._ask(ask, name, material) for name in self.judges])
        return self._conclude(answers, material)

    async def _ask(self, ask: Ask, name: str, material: Material) -> Answer[Reply] | JudgeError:
        try:
            return await put_question(ask, name, *self.question(material, ask))
        except JudgeError as error:
            return error

    def _conclude(self, answers: Sequence[Answer[Reply] | JudgeError], material: Material) -> EvaluatorResult:
        heard = [answer for answer in answers if isinstance(answer, Answer)]
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

    def _status(self, given: Sequence[Reply], points: Sequence[Point], value: float, silent: int) -> Verdict:
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
