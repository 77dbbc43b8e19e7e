"""Options of an execution, in one value."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from msgspec import Meta, Struct

DEFAULT_TIMEOUT_S = 120.0
DEFAULT_RETRIES = 2
DEFAULT_CONCURRENCY = 10
USER_MODEL = "user\0"
"""Prefix of the keys of the providers of user models."""


Times = Annotated[int, Meta(ge=1, le=100_000)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class RunOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the caller; `None` leaves the choice to the target, then to the eval, then to the default."""

    cases: tuple[str, ...] = ()
    """Globs of case ids; all by default."""
    tags: tuple[str, ...] = ()
    """Tags: a case with any of them is run; all cases by default."""
    personas: tuple[str, ...] = ()
    """Globs of persona ids, `default` for cases without a persona; all by default."""
    repeat: Times | None = None
    """Number of runs of each case with each target."""
    timeout_s: Seconds | None = None
    """Time limit of one attempt."""
    run_timeout_s: Seconds | None = None
    """Time limit of a run with all its attempts."""
    retries: Annotated[int, Meta(ge=0, le=100)] | None = None
    """Attempts after the first that a run may have."""
    max_concurrency: Times | None = None
    """Runs that may be in flight at the same time."""
    shard: tuple[Times, Times] | None = None
    """Run only part `i` of `n`, as `(i, n)`."""
    max_cost: Annotated[float, Meta(gt=0, le=1_000_000_000)] | None = None
    """US dollars; once they are spent, no more runs are started."""
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    """Tokens; once they are used, no more runs are started."""
    max_judge_cost: Annotated[float, Meta(gt=0, le=1_000_000_000)] | None = None
    """US dollars; once they are spent on judges, evaluators that ask a judge end with an error."""
    cache: bool = True
    """Use the cached reply of a judge to the same question."""
    fail_fast: bool = False
    """Start no more runs once a run did not pass."""
    include_messages: bool = False
    """Write the whole conversation into each result."""
    include_trace: bool = False
    """Write the trace into each result."""
    plain_blocks: tuple[str, ...] = ()
    """Block types that hold no tool calls, added to the `plain_blocks` of every target."""


class RunKeywords(TypedDict, total=False):
    """The fields of `RunOptions` as keyword arguments of `evaluate`; a single text stands for a list of one."""

    cases: str | Sequence[str]
    tags: str | Sequence[str]
    personas: str | Sequence[str]
    repeat: int | None
    timeout_s: float | None
    run_timeout_s: float | None
    retries: int | None
    max_concurrency: int | None
    shard: tuple[int, int] | None
    max_cost: float | None
    max_tokens: int | None
    max_judge_cost: float | None
    cache: bool
    fail_fast: bool
    include_messages: bool
    include_trace: bool
    plain_blocks: str | Sequence[str]
