"""Mutants of replies, and the report of `agentv mutate`."""

from typing import Literal, get_args

from msgspec import Struct

from agentv.model.judging import JudgeSums
from agentv.model.response import ProviderResponse

MUTATION_SCHEMA = "agentv.mutation/1"
Operator = Literal[
    "drop_call",
    "duplicate_call",
    "swap_calls",
    "rename_call",
    "change_argument",
    "drop_argument",
    "add_argument",
    "fail_call",
    "deny_call",
    "blank_output",
    "change_output",
    "insert_foreign_call",
    "insert_destructive_call",
    "cut_answer",
    "negate_answer",
    "drop_turn",
    "double_tokens",
    "double_latency",
]
OPERATORS: tuple[Operator, ...] = get_args(Operator)


class Mutant(Struct, frozen=True):
    """Reply with one change that an eval may or may not notice."""

    operator: Operator
    """Kind of the change."""
    tool: str | None
    """Tool of the changed call; `None` for a change of the whole reply."""
    sentence: str
    """The change in words, such as `refund called twice`."""
    response: ProviderResponse
    """The changed reply."""
    call: int | None = None
    """Index of the changed call; `None` for a change of the whole reply."""
    argument: str | None = None
    """Name of the changed argument."""


class AcceptedMutants(Struct, frozen=True, kw_only=True):
    """Mutants that an eval need not notice."""

    operator: Operator
    """Kind of the change."""
    tool: str | None = None
    """Tool of the changed call, or a glob; any by default."""
    case: str | None = None
    """Id of the case, or a glob; any by default."""
    reason: str
    """Reason why the eval need not notice them."""


class Survivor(Struct, frozen=True, kw_only=True):
    """Mutant that no evaluator noticed."""

    operator: Operator
    """Kind of the change."""
    tool: str | None
    """Tool of the changed call; `None` for a change of the whole reply."""
    sentence: str
    """The change in words."""
    suggestion: str | None
    """Evaluator, as YAML, that notices the mutant and that the original passes; `None` if none was found."""
    run_id: str = ""
    """Run whose reply was changed."""
    call: int | None = None
    """Index of the changed call."""
    accepted: str | None = None
    """Reason for which the eval accepts it; `None` if it does not."""


class KillCount(Struct, frozen=True, kw_only=True):
    """Mutants that an operator made, or that an evaluator noticed."""

    name: str
    """Name of the operator or evaluator."""
    mutants: int
    """Number of mutants; those that are accepted are not counted."""
    killed: int
    """Number of these that were noticed."""


class MutatedCase(Struct, frozen=True, kw_only=True):
    """Mutants of the passing runs of one case."""

    eval_id: str
    """Id of the eval."""
    case_id: str
    """Id of the case."""
    runs: int
    """Number of different replies that were changed."""
    mutants: int
    """Number of mutants."""
    killed: int
    """Number of mutants that were noticed: the case fails, or cannot be measured."""
    survived: int
    """Number of mutants that were not noticed and are not accepted."""
    accepted: int
    """Number of mutants that were not noticed and are accepted."""
    kill_rate: float | None
    """Share of `killed` in `killed` and `survived`; `None` without any."""
    survivors: tuple[Survivor, ...] = ()
    """Mutants that were not noticed and are not accepted."""
    accepted_survivors: tuple[Survivor, ...] = ()
    """Mutants that were not noticed and are accepted."""
    left_out: int = 0
    """Number of mutants that were not made because the run has too many calls."""
    left_out_runs: int = 0
    """Number of further runs that passed and were not changed because there are too many."""
    unmeasured: int = 0
    """Number of mutants for which the evaluators gave no verdict; they count neither way."""
    unmeasured_reason: str | None = None
    """Reason why the first of them has none."""
    without_judges: bool = False
    """`True` if the case has evaluators that ask a judge, and they were left out."""
    persona_id: str | None = None
    """Id of the persona of the runs; `None` if they have none."""


class SkippedCase(Struct, frozen=True, kw_only=True):
    """Case without mutants."""

    eval_id: str
    """Id of the eval."""
    case_id: str
    """Id of the case."""
    reason: str
    """Reason why there are none."""
    measurable: bool = True
    """`False` if it could not be found out whether the eval notices mutants of this case."""
    persona_id: str | None = None
    """Id of the persona of the runs; `None` if they have none."""


class MutationReport(Struct, frozen=True, kw_only=True):
    """Result of `agentv mutate`."""

    schema: str = MUTATION_SCHEMA
    """Format and its version."""
    execution_id: str = ""
    """Execution whose runs were changed."""
    cases: tuple[MutatedCase, ...]
    """Cases with mutants."""
    mutants: int
    """Number of mutants."""
    killed: int
    """Number of mutants that were noticed."""
    survived: int
    """Number of mutants that were not noticed and are not accepted."""
    accepted: int
    """Number of mutants that were not noticed and are accepted."""
    kill_rate: float | None
    """Share of `killed` in `killed` and `survived`; `None` without any."""
    operators: tuple[KillCount, ...] = ()
    """Mutants by operator."""
    unmeasured: int = 0
    """Number of mutants for which the evaluators gave no verdict; they count neither way."""
    not_passing: int = 0
    """Number of runs of the selected cases that did not pass; they were left out."""
    evaluators: tuple[KillCount, ...] = ()
    """Mutants by the evaluators that saw them, under their names."""
    skipped: tuple[SkippedCase, ...] = ()
    """Cases without mutants."""
    unused_accepts: tuple[AcceptedMutants, ...] = ()
    """Entries of `accept` that no surviving mutant matches."""
    judges: dict[str, JudgeSums] = {}
    """Calls, tokens and costs of judges by name; only with `--judges`."""
