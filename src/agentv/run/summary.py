"""The sum of an execution, kept in a few numbers however many runs there are."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from agentv.model.record import Reported, Spread, Summary, Tally
from agentv.model.usage import TokensUsage
from agentv.run.repeats import Cases, interval
from agentv.run.usage import JudgeTotals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentv.model.record import ResultRecord
    from agentv.run.plan import Totals as Planned

PASS, FAIL, ERROR, INTERRUPTED = 0, 1, 3, 130
"""The exit codes of the contract that an execution can have."""
COUNTS = tuple(name for name in TokensUsage.__struct_fields__ if name.endswith("_tokens"))


class Ended(NamedTuple):
    """How an execution came to its end."""

    at: str
    duration_ms: float
    interrupted: bool = False
    broken: bool = False
    """Whether it stopped because it could not go on: what was not run was not measured."""
    stopped: str | None = None
    """Which limit of what it may spend ended it."""
    warnings: tuple[str, ...] = ()


class Names(NamedTuple):
    """What is tested, in the order of the plan."""

    evals: Iterable[str]
    targets: Iterable[str]


class Counter:
    """How many runs ended how."""

    def __init__(self) -> None:
        self.passed = self.failed = self.errors = 0
        self._score = 0.0

    def add(self, record: ResultRecord) -> None:
        """One more run."""
        if record.status == "pass":
            self.passed += 1
        elif record.status == "fail":
            self.failed += 1
        else:
            self.errors += 1
        self._score += record.score or 0.0

    @property
    def runs(self) -> int:
        """How many there were."""
        return self.passed + self.failed + self.errors

    def tally(self) -> Tally:
        """The counts so far; rates are over the runs that could be measured."""
        measured = self.passed + self.failed
        return Tally(
            runs=self.runs,
            passed=self.passed,
            failed=self.failed,
            errors=self.errors,
            pass_rate=self.passed / measured if measured else None,
            pass_rate_interval=interval(self.passed, measured),
            score=self._score / measured if measured else None,
        )


class Totals:
    """Everything that the summary of an execution says."""

    def __init__(self, execution_id: str, planned: Planned, names: Names, started_at: str) -> None:
        self._execution_id = execution_id
        self._planned = planned
        self._started_at = started_at
        self._all = Counter()
        # In the order of the plan, not of finishing: two equal executions have equal summaries.
        self._evals = {name: Counter() for name in names.evals}
        self._targets = {name: Counter() for name in names.targets}
        # A summary of a plan that repeats nothing needs no case by name, and memory stays level.
        self._cases = Cases() if planned.repeats else None
        self._latencies = array("d")
        self._tokens: dict[str, Any] = {}
        self._usages = 0
        self._cost = 0.0
        self._costs = 0
        self._judges = JudgeTotals()

    def add(self, record: ResultRecord) -> None:
        """One more run, in whichever order they finish."""
        self._all.add(record)
        if self._cases is not None:
            self._cases.add(record)
        self._evals[record.eval_id].add(record)
        self._targets[record.target].add(record)
        if record.latency_ms is not None:
            self._latencies.append(record.latency_ms)
        usage = record.tokens_usage
        if usage is not None:
            self._usages += 1
            for name in COUNTS:
                count = getattr(usage, name)
                if count is not None:
                    self._tokens[name] = self._tokens.get(name, 0) + count
        if record.cost_usd is not None:
            self._costs += 1
            self._cost += record.cost_usd
        for result in record.evaluators:
            if "judge" in result.details or "inner" in result.details:
                self._judges.add(result.details)

    @property
    def runs(self) -> int:
        """How many there were."""
        return self._all.runs

    def summary(self, ended: Ended, *, out: tuple[str, ...]) -> Summary:
        """What it came to."""
        tally = self._all.tally()
        status, code = _outcome(tally, ended)
        return Summary(
            execution_id=self._execution_id,
            status=status,
            exit_code=code,
            planned=self._planned.runs,
            runs=tally.runs,
            passed=tally.passed,
            failed=tally.failed,
            errors=tally.errors,
            skipped=self._planned.skipped,
            left_out=self._planned.left_out,
            pass_rate=tally.pass_rate,
            pass_rate_interval=tally.pass_rate_interval,
            score=tally.score,
            latency_ms=_spread(self._latencies),
            tokens_usage=TokensUsage(**self._tokens) if self._usages else None,
            cost_usd=self._cost if self._costs else None,
            reported=Reported(latency_ms=len(self._latencies), tokens_usage=self._usages, cost_usd=self._costs),
            duration_ms=round(ended.duration_ms, 3),
            started_at=self._started_at,
            completed_at=ended.at,
            evals={name: counter.tally() for name, counter in self._evals.items()},
            targets={name: counter.tally() for name, counter in self._targets.items()},
            repeats=self._cases.repeats(list(self._evals), list(self._targets)) if self._cases else None,
            out=out,
            judges=self._judges.sums() or UNSET,
            stopped=UNSET if ended.stopped is None else ended.stopped,
            warnings=ended.warnings or UNSET,
        )


def _outcome(tally: Tally, ended: Ended) -> tuple[str, int]:
    if ended.interrupted:
        return "interrupted", INTERRUPTED
    if tally.errors or ended.broken or ended.stopped is not None:
        return "error", ERROR
    return ("fail", FAIL) if tally.failed else ("pass", PASS)


def _spread(values: array[float]) -> Spread | None:
    if not values:
        return None
    ordered = sorted(values)
    last = len(ordered) - 1
    return Spread(
        mean=round(sum(ordered) / len(ordered), 3),
        p50=ordered[round(0.5 * last)],
        p95=ordered[round(0.95 * last)],
        max=ordered[-1],
    )
