"""Base class of evaluators, with the fields that all of them share."""

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Any, ClassVar, NamedTuple, dataclass_transform

from msgspec import UNSET, Meta, Struct, field

from agentv.errors import Problem
from agentv.matching.matchers import limit_searches
from agentv.model.request import Over
from agentv.model.results import EvaluatorResult, Kind, Verdict
from agentv.protocols import Context
from agentv.scoring.scorer import reaches

Finding = EvaluatorResult | Awaitable[EvaluatorResult]


def run_in_thread(work: Callable[[], EvaluatorResult]) -> Finding:
    """Run the work in a thread if an event loop is running in this one, so that it is not blocked; else run it here."""
    if "asyncio" not in sys.modules:  # importing it takes five times as long as starting Python, and no loop can run
        return work()
    import asyncio  # noqa: PLC0415 - already loaded

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    return asyncio.to_thread(work)


def run_searches(work: Callable[[], EvaluatorResult]) -> Finding:
    """Run work that searches for patterns off the event loop, and within a time limit for all of its searches."""

    def limited() -> EvaluatorResult:
        with limit_searches():
            return work()

    return run_in_thread(limited)


class cached:  # noqa: N801 - used as a decorator
    """A property whose value is computed once per instance.

    `functools.cached_property` takes a lock before Python 3.12, which costs more than most values computed here.
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
    """A worked example of an evaluator, shown in its description."""

    config: dict[str, Any]
    reply: Any
    passes: bool
    expected_messages: list[Any] | None = None
    judge: dict[str, Any] | None = None
    """The judge's reply, for an evaluator that asks one."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class EvaluatorBase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Base class of evaluators; the fields of a subclass are its YAML keys.

    Subclasses inherit that they are frozen and reject unknown keys. `kw_only` is the one option that msgspec does not
    pass on: a subclass with a required field needs it.
    """

    examples: ClassVar[tuple[Example, ...]] = ()
    """At least one example that passes and one that fails."""
    executes: ClassVar[bool] = False
    """True if it runs code that the eval names; `--no-exec` rejects it."""
    handles_incomplete: ClassVar[bool] = False
    """True if it decides about replies with `Context.incomplete` only what the missing text cannot change; the result
    of any other evaluator is an error there."""
    nested: ClassVar[str | None] = None
    """The field that holds the configurations of inner evaluators, for a composite."""

    type: str
    """The kind of evaluator."""
    name: str | None = None
    """The name in results; by default its type."""
    weight: Annotated[float, Meta(ge=0, le=1e9)] = 1.0
    """The share in the case's score; 0 neither scores nor gates."""
    threshold: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """The score from which it passes."""
    required: bool = False
    """Must pass even where the case passes by its own threshold."""
    kind: Kind = "assertion"
    """A metric is recorded and never gates."""
    skip: bool = False
    """Skip this evaluator: it is listed as skipped, and neither scores nor decides the case."""
    negate: bool = field(name="not", default=False)
    """Inverts the verdict: the score is 1 minus the original score."""
    over: Over = "conversation"
    """The part of a conversation that it looks at: all of it, `each_turn`, of which the worst decides, `last_turn`, or
    one turn, as `{turn: 2}`."""

    @property
    def asks(self) -> tuple[str | None, ...] | None:
        """The targets of the judges that it asks, `None` for the default judge; `None` when it asks no judge."""
        return None

    @property
    def inner(self) -> tuple[Any, ...]:
        """The `ConfiguredEvaluator`s that a composite consists of."""
        return ()

    def check(self, path: str) -> list[Problem]:
        """Return the errors of the configuration that its field types do not rule out."""
        del path
        return []

    def warnings(self, path: str) -> list[str]:
        """Return warnings about settings that are allowed but probably a mistake."""
        del path
        return []

    def sides(self, ctx: Context) -> tuple[str, list[str], dict[int, str]] | None:
        """Return the unit and the labels of both sides of `details.alignment` for a diff, if there is one."""
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
        """Return a result with this evaluator's name and options."""
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
    """The decided and undecided constraints of one evaluator, all of equal weight."""

    hits: list[str] = []
    misses: list[str] = []
    values: list[float] = []
    undecided: list[str] = []

    def add_hit(self, sentence: str) -> None:
        """Add a constraint that holds."""
        self.values.append(1.0)
        self.hits.append(sentence)

    def add_miss(self, *sentences: str) -> None:
        """Add a constraint that does not hold, for these reasons."""
        self.values.append(0.0)
        self.misses.extend(sentences)

    def add_fraction(self, value: float, sentence: str, reasons: Iterable[str]) -> None:
        """Add a constraint that holds in part."""
        self.values.append(value)
        if value >= 1.0:
            self.hits.append(sentence)
        else:
            self.misses.append(sentence)
            self.misses.extend(reasons)

    def add(self, *, good: bool, sentence: str) -> None:
        """Add a constraint whose hit and miss have the same text."""
        if good:
            self.add_hit(sentence)
        else:
            self.add_miss(sentence)

    def decide(self, *, good: bool | None, sentence: str, undecided: str) -> None:
        """Add a constraint, which is undecided for the given reason if `good` is `None`."""
        if good is None:
            self.undecided.append(undecided)
        else:
            self.add(good=good, sentence=sentence)

    def verdict(self, threshold: float, *, binary: bool = False, negate: bool = False) -> tuple[Verdict, float | None]:
        """Return status and score: `error` if the undecided constraints could still change the verdict."""
        values, undecided = self.values, len(self.undecided)
        if binary:
            score = 1.0 if all(value >= 1.0 for value in values) else 0.0
        else:
            score = sum(values) / len(values) if values else 1.0
        if not undecided:
            return ("pass" if reaches(score, threshold) else "fail"), score
        if not values:
            return "error", None
        constraints = len(values) + undecided
        best = score if binary else (sum(values) + undecided) / constraints
        # With `not: true` the score becomes 1 minus it; that verdict must not depend on the undecided ones either.
        worst = 0.0 if binary else sum(values) / constraints
        is_open = negate and reaches(1.0 - worst, threshold) and not reaches(1.0 - best, threshold)
        return ("error" if is_open or reaches(best, threshold) else "fail"), score
