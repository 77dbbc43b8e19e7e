"""Option types, options shared by several commands, and the typed arguments of commands."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from agentv.cli.problems import fail_usage
from agentv.errors import FormatError
from agentv.formats.plain_blocks import plain_block_problem
from agentv.run.options import RunOptions
from agentv.spec.discovery import TRUSTS_ALL
from agentv.spec.environment import parse_dotenv

if TYPE_CHECKING:
    from agentv.api.executors import ExecutorChoice
    from agentv.model.stored import Persist

MAX_SHARDS = 100_000


class NumberType(click.FloatRange):
    """A number within a range that refuses `nan`, which compares as inside every range."""

    def __init__(self, unit: str = "", **limits: Any) -> None:
        super().__init__(**limits)
        self.name = "number"
        self._unit = unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail if it is `nan` or out of range."""
        number = super().convert(value, param, ctx)
        unit = f" of {self._unit}" if self._unit else ""
        return self.fail(f"{value!r} is not a number{unit}", param, ctx) if math.isnan(number) else number


class ShardType(click.ParamType):  # type: ignore[type-arg] # it is generic since click 8.4 only
    """Shard `i` of `n`, written `i/n`."""

    name = "shard"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the two numbers of `i/n`."""
        index, _, count = str(value).partition("/")
        if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count) <= MAX_SHARDS):
            self.fail(f"{value!r} is not a part such as 2/4: the second of four", param, ctx)
        return int(index), int(count)


class BlockType(click.ParamType):  # type: ignore[type-arg] # as above
    """A block type that may be declared to hold no tool calls."""

    name = "block type"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the type, or fail with the reason why it may not."""
        problem = plain_block_problem(value)
        return value if problem is None else self.fail(problem, param, ctx)


POSITIVE = click.IntRange(min=1)
SECONDS = NumberType("seconds", min=0, min_open=True, max=86_400)
DOLLARS = NumberType("US dollars", min=0, min_open=True, max=1_000_000_000)
SHARE = NumberType(min=0, max=1, min_open=True, max_open=True)
PASS_RATE = NumberType("share of runs", min=0, max=1, min_open=True)

PLAIN_BLOCKS = click.option(
    "--plain-block",
    "plain_blocks",
    type=BlockType(),
    multiple=True,
    metavar="TYPE",
    help="Blocks of TYPE in replies hold no tool calls; may be repeated.",
)
PERSONAS = click.option(
    "--persona",
    "personas",
    multiple=True,
    metavar="GLOB",
    help="Only personas whose id matches, `default` for none; may be repeated.",
)
OUT = click.option(
    "--out",
    type=click.Path(dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Write results to FILE: .jsonl, .yaml, .csv, .xml (JUnit), .md or .html; may be repeated.",
)
ENV_FILE = click.option(
    "--env-file", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Read variables from FILE (.env)."
)


def _trust_projects(context: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - of click
    if value:
        token = TRUSTS_ALL.set(True)
        context.call_on_close(lambda: TRUSTS_ALL.reset(token))


TRUST_PROJECT = click.option(
    "--trust-project",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_trust_projects,
    help="Use an agentv.yaml that belongs to another user, too.",
)
STORE = click.option(
    "--store",
    type=click.Path(dir_okay=False),
    metavar="FILE|URL",
    help="The store: a file or postgresql://...; that of the project by default.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
JSON_LINES = click.option(
    "--json", "as_json", is_flag=True, help="Print only JSON lines: result records, then a summary."
)
VERBOSE = click.option("-v", "--verbose", is_flag=True, help="Show passing cases in full.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print only the summary.")
MAX_JUDGE_COST = click.option(
    "--max-judge-cost", type=DOLLARS, metavar="USD", help="Call no judge once this much is spent on judges."
)
NO_CACHE = click.option(
    "--no-cache",
    "cache",
    is_flag=True,
    callback=lambda _context, _option, value: not value,
    help="Do not use cached replies of judges.",
)


MIN_PASS_RATE = click.option(
    "--min-pass-rate",
    type=PASS_RATE,
    metavar="SHARE",
    help="Fail only if less than this share of the measured runs passed.",
)
MAX_REGRESSIONS = click.option(
    "--max-regressions",
    type=click.IntRange(min=0),
    metavar="N",
    help="Fail only if more than N cases fail that passed before.",
)
EXECUTOR = click.option(
    "--executor",
    metavar="ADDRESS",
    help="Run targets on `dask`, `ray` or an address such as dask://HOST:PORT; local.",
)
NO_SHIP = click.option("--no-ship", is_flag=True, help="Workers have the project at the same path: do not send it.")
ALLOW_UNENCRYPTED = click.option(
    "--allow-unencrypted", is_flag=True, help="Send variables to workers on other hosts without encryption, too."
)


def choose_executor(
    address: str | None, *, ship: bool, allow_unencrypted: bool, with_raw: bool = False
) -> ExecutorChoice | None:
    """Return the executor of this address, or `None` for this process; an unknown name is an `ExecutorError`."""
    if not address or address == "local":
        return None
    from agentv.api.executors import ExecutorChoice  # noqa: PLC0415 - for few executions

    choice = ExecutorChoice(address=address, ship=ship, allow_unencrypted=allow_unencrypted, with_raw=with_raw)
    choice.make_cluster()
    return choice


def load_env_file(path: str | None) -> None:
    """Set the variables of an `.env` file that the environment does not have."""
    if path is None:
        return
    try:
        variables = parse_dotenv(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, FormatError) as error:
        fail_usage(f"{path} cannot be read: {error}")
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def take_run_options(params: dict[str, Any]) -> RunOptions:
    """Remove the fields of `RunOptions` from parsed parameters and return them as one value."""
    return RunOptions(**{name: params.pop(name) for name in RunOptions.__struct_fields__ if name in params})


class OutputArgs(Struct, frozen=True, kw_only=True):
    """Options that say how results are printed and written."""

    out: tuple[str, ...]
    as_json: bool
    verbose: bool
    quiet: bool

    @property
    def verbosity(self) -> int:
        """Return 1 for `--verbose`, -1 for `--quiet`, else 0."""
        return 1 if self.verbose else -1 if self.quiet else 0


class EvalArgs(OutputArgs, frozen=True, kw_only=True):
    """The command line of `agentv eval`."""

    paths: tuple[str, ...]
    targets: tuple[str, ...]
    options: RunOptions
    dump_traces: str | None
    resume: str | None
    """The id that `--resume` names; empty without one, `None` without the option."""
    retry_errors: bool
    rerun_failed: bool
    no_store: bool
    persist: Persist | None
    watch: bool
    min_pass_rate: float | None
    max_regressions: int | None
    baseline: str | None
    dry_run: bool
    no_exec: bool
    store: str | None
    allow_env: tuple[str, ...]
    allow_host: tuple[str, ...]
    env_file: str | None
    executor: str | None = None
    no_ship: bool = False
    allow_unencrypted: bool = False

    @property
    def resumes(self) -> bool:
        """Return whether an earlier execution is to be continued."""
        return self.resume is not None or self.retry_errors or self.rerun_failed


class RescoreArgs(OutputArgs, frozen=True, kw_only=True):
    """The command line of `agentv rescore`."""

    name: str
    evals: tuple[str, ...]
    current: bool
    options: RunOptions
    store: str | None


class ScoreArgs(OutputArgs, frozen=True, kw_only=True):
    """The command line of `agentv score`, without the options of reading traces."""

    evals: tuple[str, ...]
    target: str
    options: RunOptions
    no_store: bool
    store: str | None
    env_file: str | None


class CalibrateArgs(Struct, frozen=True, kw_only=True):
    """The command line of `agentv calibrate`."""

    labels: str | None = None
    judge: str | None
    evals: tuple[str, ...]
    evaluator: str | None
    criterion: str | None
    options: RunOptions
    as_json: bool
    no_store: bool
    env_file: str | None


class CompareArgs(Struct, frozen=True, kw_only=True):
    """The command line of `agentv compare`."""

    a: str
    b: str
    target_a: str | None
    target_b: str | None
    personas: tuple[str, ...]
    fail_on: str | None
    max_regressions: int | None
    min_pass_rate: float | None
    allow_missing: bool
    out: str | None
    form: str | None
    as_json: bool
    confidence: float
    difference: float
    seed: int
    judge: str | None
    max_judge_cost: float | None
    cache: bool
    env_file: str | None

    @property
    def format(self) -> str:
        """Return the format to print: `text`, `markdown` or `json`."""
        return "json" if self.as_json else self.form or "text"
