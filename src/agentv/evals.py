"""Validated evals: evaluators, cases and targets, ready to run."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from agentv.errors import Location
from agentv.model.mutation import AcceptedMutants
from agentv.model.request import Case, Persona
from agentv.model.response import Price
from agentv.model.stored import Persist
from agentv.model.tool_coverage import DeclaredTool
from agentv.protocols import Evaluator, Provider


class ConfiguredEvaluator(Struct, frozen=True):
    """Evaluator with a valid configuration."""

    evaluator: Evaluator
    """The evaluator."""
    config: Mapping[str, Any]
    """Its configuration as written; empty if it was made in Python."""
    warnings: tuple[str, ...] = ()
    """Warnings about its configuration."""
    redacted: bool = False
    """True if it was read from a store in which secrets of its configuration are redacted."""


def iter_evaluators(checks: Iterable[ConfiguredEvaluator]) -> Iterator[ConfiguredEvaluator]:
    """Yield these evaluators, each followed by those inside it."""
    for check in checks:
        yield check
        yield from iter_evaluators(check.evaluator.inner)


class CheckedCase(Struct, frozen=True, kw_only=True):
    """Valid case of an eval."""

    case: Case
    """The case."""
    checks: tuple[ConfiguredEvaluator, ...]
    """Its evaluators."""
    index: int
    """Position in the eval, from 0, independent of the selection."""
    repeat: int = 1
    """Number of runs with each target."""
    skip: bool | str = False
    """`True`, or the reason, if it is not run."""
    only: bool = False
    """`True` if cases without `only` are not run."""
    location: Location | None = None
    """Location in a file."""
    warnings: tuple[str, ...] = ()
    """Warnings about the case."""
    goal: ConfiguredEvaluator | None = None
    """Evaluator that passes when the goal of a simulated user is reached; `None` if no calls reach it."""
    variants: "tuple[CheckedCase, ...]" = ()
    """The case with each of its personas; empty if it has one persona or none."""


class Target(Struct, frozen=True):
    """Named system under test."""

    name: str
    """Name of the target."""
    provider: str
    """Name of its provider."""
    settings: Mapping[str, Any]
    """Settings as written: `${NAME}` stands for an environment variable, and only its name is ever stored."""
    location: Location | None = None
    """Location in a file."""
    instance: Provider | None = None
    """The provider, if it was made in Python."""
    folder: str | None = None
    """Folder that its paths are relative to: that of `agentv.yaml` if it is defined there; `None` for the eval's."""


class Limits(Struct, frozen=True):
    """Limits of an eval, for targets that set none."""

    timeout_s: float | None = None
    """Time limit of one attempt."""
    retries: int | None = None
    """Attempts after the first that a run may have."""
    max_concurrency: int | None = None
    """Runs that may be in flight at the same time."""
    max_cost: float | None = None
    """US dollars that an execution may spend."""
    max_tokens: int | None = None
    """Tokens that an execution may use."""


class Eval(Struct, frozen=True, kw_only=True):
    """Valid eval."""

    id: str
    """Id of the eval."""
    cases: Iterable[CheckedCase]
    """All cases; may be iterated repeatedly: a dataset is read again each time and never held in memory."""
    targets: tuple[Target, ...] = ()
    """Selected targets."""
    file: str | None = None
    """File of the eval."""
    folder: str = "."
    """Folder of the eval: paths are relative to it, and programs run in it."""
    root: str = "."
    """Folder of the project: no file outside of it is read by name."""
    texts: tuple[str, ...] = ()
    """Files whose content cases and targets are made of: the eval, its project, its dataset."""
    inputs: tuple[str, ...] = ()
    """All files that it was read from, which no output may overwrite."""
    store: str | None = None
    """Store of its project; `off` for none, `None` for the default."""
    executor: str | None = None
    """Address of the executor that its project chooses; `None` for this process."""
    persist: Persist | None = None
    """Extent to which its project stores replies."""
    is_settled: bool = False
    """`True` if `texts` determine all cases: no folder is searched for further files."""
    limits: Limits = Limits()
    """Limits for targets that set none."""
    judge: str | None = None
    """Name of the judge of evaluators that name none."""
    judges: tuple[Target, ...] = ()
    """Targets that its evaluators ask."""
    prices: Mapping[str, Price] = {}
    """Prices of models that the project sets."""
    count: int = 0
    """Number of cases."""
    skipped: int = 0
    """Number of cases with `skip`."""
    variants: int = 0
    """Number of all other cases, each as often as it has personas."""
    repeats: int = 0
    """Number of runs of all other cases with one target."""
    has_only: bool = False
    """`True` if a case has `only`."""
    personas: tuple[Persona, ...] = ()
    """Personas of its cases."""
    user_models: tuple[Target, ...] = ()
    """Targets that write the messages of simulated users."""
    has_conversations: bool = False
    """`True` if a case is a conversation."""
    warnings: tuple[Any, ...] = ()
    """Warnings about the file."""
    tools: tuple[DeclaredTool, ...] = ()
    """Tools that the file and its project declare."""
    accepted: tuple[AcceptedMutants, ...] = ()
    """Mutants that it need not notice."""
