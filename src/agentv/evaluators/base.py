"""Base class of evaluators, with the fields that all of them share."""

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Any, ClassVar, NamedTuple

from msgspec import UNSET, Meta, Struct, field

from agentv.errors import Problem
from agentv.model.results import EvaluatorResult, Kind, Verdict
from agentv.protocols import Context
from agentv.scoring.scorer import reaches

Finding = EvaluatorResult | Awaitable[EvaluatorResult]


def run_in_thread(work: Callable[[], EvaluatorResult]) -> Finding:
    """The work in a thread, so that the cases in this thread's event loop go on; without such a loop, here and now."""
    if "asyncio" not in sys.modules:  # five times the cost of bare Python, and then no loop can be running
        return work()
    import asyncio  # noqa: PLC0415 - it is there already

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    return asyncio.to_thread(work)


class once:  # noqa: N801 - reads as the decorator it is
    """A property that is computed when first asked for.

    `functools.cached_property` takes a lock until Python 3.12, which costs more than most of what it would guard here.
    """

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


class Example(NamedTuple):
    """One worked example of an evaluator, for its description."""

    config: dict[str, Any]
    reply: Any
    passes: bool
    expected_messages: list[Any] | None = None
    judge: dict[str, Any] | None = None
    """What a judge says, where one is asked."""


class EvaluatorBase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One check: its fields are its YAML keys."""

    examples: ClassVar[tuple[Example, ...]] = ()
    """At least one that passes and one that does not."""
    executes: ClassVar[bool] = False
    """Whether it runs code that the eval names; `--no-exec` refuses it."""

    type: str
    """The kind of evaluator."""
    name: str | None = None
    """How results call it; by default its type."""
    weight: Annotated[float, Meta(ge=0, le=1e9)] = 1.0
    """Its share in the case's score; 0 neither scores nor gates."""
    threshold: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """The score from which it passes."""
    required: bool = False
    """Must pass even where the case passes by its own threshold."""
    kind: Kind = "assertion"
    """A metric is recorded and never gates."""
    skip: bool = False
    """Skip this evaluator: it is listed as skipped, and neither scores nor decides the case."""
    negate: bool = field(name="not", default=False)
    """Turns it round: its score is 1 minus what it would be."""

    def check(self, path: str) -> list[Problem]:
        """What is wrong with the configuration as a whole."""
        del path
        return []

    def warnings(self, path: str) -> list[str]:
        """What is allowed and probably not meant."""
        del path
        return []

    def sides(self, ctx: Context) -> tuple[str, list[str], dict[int, str]] | None:
        """For a diff: the unit, and what the indices of `details.alignment` stand for on either side."""
        del ctx
        return None

    def result(
        self,
        status: Verdict,
        score: float | None,
        hits: Iterable[str] = (),
        misses: Iterable[str] = (),
        details: dict[str, Any] | None = None,
    ) -> EvaluatorResult:
        """A finding under this evaluator's name and options."""
        return EvaluatorResult(
            name=self.name or self.type,
            type=self.type,
            kind=self.kind,
            status=status,
            score=score,
            weight=self.weight,
            required=True if self.required else UNSET,
            hits=tuple(hits),
            misses=tuple(misses),
            details=details or {},
        )


class ConstraintTally(Struct):
    """Constraints of equal weight: which held, which did not, which could not be decided."""

    hits: list[str] = []
    misses: list[str] = []
    values: list[float] = []
    undecided: list[str] = []

    def holds(self, sentence: str) -> None:
        """One constraint held."""
        self.values.append(1.0)
        self.hits.append(sentence)

    def fails(self, *sentences: str) -> None:
        """One constraint did not hold, for these reasons."""
        self.values.append(0.0)
        self.misses.extend(sentences)

    def fraction(self, value: float, sentence: str, reasons: Iterable[str]) -> None:
        """One constraint is worth part of its weight."""
        self.values.append(value)
        if value >= 1.0:
            self.hits.append(sentence)
        else:
            self.misses.append(sentence)
            self.misses.extend(reasons)

    def count(self, *, good: bool, sentence: str) -> None:
        """One constraint whose hit and miss say the same."""
        if good:
            self.holds(sentence)
        else:
            self.fails(sentence)

    def decide(self, *, good: bool | None, sentence: str, undecided: str) -> None:
        """Count one constraint, or note why it is undecided when `good` is `None`."""
        if good is None:
            self.undecided.append(undecided)
        else:
            self.count(good=good, sentence=sentence)

    def verdict(self, threshold: float, *, binary: bool = False, negate: bool = False) -> tuple[Verdict, float | None]:
        """Status and score under the rule of the contract for what could not be decided."""
        values, hoped = self.values, len(self.undecided)
        if binary:
            score = 1.0 if all(value >= 1.0 for value in values) else 0.0
        else:
            score = sum(values) / len(values) if values else 1.0
        if not hoped:
            return ("pass" if reaches(score, threshold) else "fail"), score
        if not values:
            return "error", None
        constraints = len(values) + hoped
        best = score if binary else (sum(values) + hoped) / constraints
        # `turned_round` makes it 1 minus the score, which must come to the same whatever the rest would have been.
        worst = 0.0 if binary else sum(values) / constraints
        is_open = negate and reaches(1.0 - worst, threshold) and not reaches(1.0 - best, threshold)
        return ("error" if is_open or reaches(best, threshold) else "fail"), score
