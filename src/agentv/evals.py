"""What may run: evaluators, cases, targets and evals in which nothing was found wrong."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from agentv.errors import Place
from agentv.model.request import Case
from agentv.model.response import Price
from agentv.model.stored import Persist
from agentv.protocols import Evaluator, Provider


class ConfiguredEvaluator(Struct, frozen=True):
    """An evaluator that may run."""

    evaluator: Evaluator
    config: Mapping[str, Any]
    warnings: tuple[str, ...] = ()


def iter_evaluators(checks: Iterable[ConfiguredEvaluator]) -> Iterator[ConfiguredEvaluator]:
    """These evaluators, and those that they are made of."""
    for checked in checks:
        yield checked
        yield from iter_evaluators(getattr(checked.evaluator, "inner", ()))


class CheckedCase(Struct, frozen=True, kw_only=True):
    """A case that may run."""

    case: Case
    checks: tuple[ConfiguredEvaluator, ...]
    index: int
    """Its place in the eval, from 0, whatever is selected."""
    repeat: int = 1
    skip: bool | str = False
    only: bool = False
    place: Place | None = None
    warnings: tuple[str, ...] = ()


class Target(NamedTuple):
    """A named system under test."""

    name: str
    provider: str
    settings: Mapping[str, Any]
    """As written: `${NAME}` stands for an environment variable, and only the name is ever stored."""
    place: Place | None = None
    made: Provider | None = None
    """The provider itself, when it does not come from a file."""


class Limits(NamedTuple):
    """What an eval says about time and tries, where its targets do not."""

    timeout_s: float | None = None
    retries: int | None = None
    max_concurrency: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None


class Eval(Struct, frozen=True, kw_only=True):
    """An eval that may run."""

    id: str
    cases: Iterable[CheckedCase]
    """All of them, as often as they are asked for; a dataset is read anew each time and never held."""
    targets: tuple[Target, ...] = ()
    """Those that were selected."""
    file: str | None = None
    folder: str = "."
    """Names in the eval are relative to it, and programs run in it."""
    root: str = "."
    """The project's folder: nothing outside it is read by name."""
    texts: tuple[str, ...] = ()
    """The files whose content the cases and targets themselves show: the eval, its project, its dataset."""
    inputs: tuple[str, ...] = ()
    """Every file it was read from, which no output may replace."""
    store: str | None = None
    """Where its project keeps runs; `off` for nowhere, `None` for the usual place."""
    persist: Persist | None = None
    """How much of a run its project keeps."""
    is_settled: bool = False
    """Whether `texts` hold all that its cases are made of: no folder is searched for further files."""
    limits: Limits = Limits()
    judge: str | None = None
    """The name of the target that judges where an evaluator names none."""
    judges: tuple[Target, ...] = ()
    """The targets that any of its evaluators asks."""
    prices: Mapping[str, Price] = {}
    """What models cost, where the project says so."""
    count: int = 0
    """How many cases there are."""
    skipped: int = 0
    """How many of them say `skip`."""
    repeats: int = 0
    """How often all the others together are run."""
    has_only: bool = False
    """Whether a case says `only`."""
    warnings: tuple[Any, ...] = ()
    """Surprises in the file: allowed, and probably not meant."""
