"""What a reply has to tell before a check of the calls can be decided, and the words when it does not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, UnsetType

from agentv.errors import Problem
from agentv.evaluators.base import EvaluatorBase, Tally
from agentv.evaluators.trajectory.config import CallFilter
from agentv.evaluators.trajectory.unseen import ONLY_COUNTS
from agentv.matching.glob import name_match
from agentv.model.message import Message
from agentv.model.result import EvaluatorResult
from agentv.protocols import Context

Name = Annotated[str, Meta(min_length=1)]
Names = Annotated[list[Name], Meta(min_length=1)]
"""Tools by name or glob; a list of none would leave nothing to check."""

NO_CALLS = "the reply does not tell what was called; have the agent send `output_messages` with its `tool_calls`"
NO_TURNS = "the reply has no assistant messages; have the agent send `output_messages`"
MAX_TOLD = 100
DEFAULT_EXCLUDED = CallFilter().excluded


def why_unseen(ctx: Context) -> str:
    """What is missing when the calls themselves cannot be seen."""
    return NO_CALLS if ctx.calls_source is None else ONLY_COUNTS


def counts_told(ctx: Context) -> Mapping[str, int] | None:
    """How often each tool was called, from an agent that keeps its calls to itself; `None` when it tells nothing."""
    if ctx.calls_source is None or ctx.trace_summary is None:
        return None
    return ctx.trace_summary.tool_calls_by_name


def turns_told(ctx: Context) -> list[tuple[int, Message]]:
    """The assistant's messages with their places in `output_messages`; none when the agent sent none."""
    return [(place, message) for place, message in enumerate(ctx.output_messages or ()) if message.role == "assistant"]


def meant_by(patterns: list[str] | UnsetType, names: Iterable[str]) -> set[str]:
    """Those of these names that are meant, each asked about once; without patterns every named tool is."""
    known = set(names) - {""}
    if isinstance(patterns, UnsetType):
        return known
    return {name for name in known if any(name_match(pattern, name) for pattern in patterns)}


def excluded_by(calls: CallFilter | None) -> frozenset[str]:
    """The statuses that do not count: by default those that `tool_trajectory` does not count either."""
    return DEFAULT_EXCLUDED if calls is None else calls.excluded


def check_filter(calls: CallFilter | None, path: str) -> Iterator[Problem]:
    """Two words for the same status."""
    if calls is not None and calls.error and calls.failed:
        yield Problem(f"{path}.calls.failed", "`failed` is another word for `error`; give one of them")


def check_bounds(least: int | UnsetType, most: int | UnsetType, path: str) -> Iterator[Problem]:
    """A minimum that nothing can reach."""
    if isinstance(least, int) and isinstance(most, int) and least > most:
        yield Problem(f"{path}.min", f"{least} is above the `max` of {most}")


def first_of(sentences: Sequence[str]) -> list[str]:
    """The sentences; of more than anybody reads, the first."""
    more = len(sentences) - MAX_TOLD
    return [*sentences[:MAX_TOLD], f"and {more} more"] if more > 0 else list(sentences)


def listed(unit: str, numbers: Sequence[int], most: int = 10) -> str:
    """`call 3`, `calls 1, 2, 4`; of more than anybody reads, the first."""
    shown = ", ".join(map(str, numbers[:most]))
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return f"{unit}{'' if len(numbers) == 1 else 's'} {shown}{more}"


def n_times(number: int) -> str:
    """`1 time`, `2 times`."""
    return f"{number} {'time' if number == 1 else 'times'}"


def concluded(evaluator: EvaluatorBase, tally: Tally, **details: Any) -> EvaluatorResult:
    """The finding of an evaluator whose constraints have been decided as far as the reply tells."""
    status, score = tally.verdict(evaluator.threshold, negate=evaluator.negate)
    return evaluator.result(status, score, tally.hits, tally.misses, {**details, "undecided": tally.undecided})
