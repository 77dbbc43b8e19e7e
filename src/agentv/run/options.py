"""How to run: everything that can be said beside the evals, in one value."""

from typing import Annotated

from msgspec import Meta, Struct

DEFAULT_TIMEOUT_S = 120.0
DEFAULT_RETRIES = 2
DEFAULT_CONCURRENCY = 10
DEFAULT_BATCH = 100


Times = Annotated[int, Meta(ge=1, le=100_000)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class RunOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the caller asked for; `None` leaves it to the target, then to the eval, then to the default."""

    cases: tuple[str, ...] = ()
    """Globs of case ids; all by default."""
    tags: tuple[str, ...] = ()
    """A case with any of these is run; all by default."""
    repeat: Times | None = None
    timeout_s: Seconds | None = None
    """How long one attempt may take."""
    run_timeout_s: Seconds | None = None
    """How long a run may take with all its attempts."""
    retries: Annotated[int, Meta(ge=0, le=100)] | None = None
    max_concurrency: Times | None = None
    shard: tuple[Times, Times] | None = None
    """Run only part `i` of `n`, as `(i, n)`."""
    max_cost: Annotated[float, Meta(gt=0, le=1_000_000_000)] | None = None
    """US dollars; once they are spent, nothing more is started."""
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    """Once so many tokens are used, nothing more is started."""
    max_judge_cost: Annotated[float, Meta(gt=0, le=1_000_000_000)] | None = None
    """US dollars; once they are spent on judges, what is left to be judged is an error."""
    cache: bool = True
    """Whether a reply that a judge gave before to the same question is used again."""
    fail_fast: bool = False
    """Start nothing more once a run did not pass."""
    include_messages: bool = False
    include_trace: bool = False
    plain_blocks: tuple[str, ...] = ()
    """Block types that hold no tool calls, added to the `plain_blocks` of every target."""
