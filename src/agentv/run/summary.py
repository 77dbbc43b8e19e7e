"""Summary of an execution: outcomes, pass@k of repeats, usage."""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET

from agentv.model.judging import JudgeSums, JudgeUsage, add_tokens
from agentv.model.response import TokensUsage
from agentv.model.results import Coverage, Distribution, OutcomeCounts, RepeatedCase, RepeatedTarget, Repeats, Summary
from agentv.scoring.statistics import pass_at_k, pass_hat_k, wilson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agentv.model.results import ResultRecord

    Times = dict["Ends", int]
    """How many cases ended so."""
    from collections.abc import Iterable

    from agentv.run.plan import PlanCounts as Planned


class _Sum:
    """One judge's numbers so far."""

    def __init__(self) -> None:
        self.calls = self.cached = self.findings = self.reported = 0
        self.cost = 0.0
        self.tokens: TokensUsage | None = None


class JudgeTotals:
    """The judges of an execution, by name."""

    def __init__(self) -> None:
        self._sums: dict[str, _Sum] = {}

    def add(self, details: Mapping[str, Any]) -> None:
        """One finding, and those that it is made of."""
        for usage in _usages(details):
            total = self._sums.setdefault(usage.target, _Sum())
            total.findings += 1
            total.calls += usage.calls
            total.cached += usage.cached
            total.tokens = add_tokens([total.tokens, usage.tokens_usage])
            if usage.cost_usd is not None:
                total.reported += 1
                total.cost += usage.cost_usd

    def sums(self) -> dict[str, JudgeSums]:
        """What each of them came to, in the order of their names."""
        return {
            name: JudgeSums(
                calls=total.calls,
                cached=total.cached,
                tokens_usage=total.tokens,
                cost_usd=total.cost if total.reported else None,
                findings=total.findings,
                reported_cost=total.reported,
            )
            for name, total in sorted(self._sums.items())
        }


def _usages(details: Mapping[str, Any]) -> Iterator[JudgeUsage]:
    """Those of one finding: a panel has several, and a finding made of others has theirs."""
    told = details.get("judge")
    for each in told if isinstance(told, list) else [told]:
        if isinstance(each, dict):
            try:
                yield msgspec.convert(each, JudgeUsage)
            except msgspec.ValidationError:  # somebody else's evaluator has a word of its own there
                continue
    inner = details.get("inner")
    for result in inner if isinstance(inner, list) else ():
        if isinstance(result, dict) and isinstance(result.get("details"), dict):
            yield from _usages(result["details"])


MAX_LISTED = 100
"""Cases that a summary lists one by one."""
DIGITS = 6
_DIGITS = re.compile(r"0*(\d+)")


class Ends(NamedTuple):
    """How the runs of one case ended."""

    passed: int = 0
    failed: int = 0
    errors: int = 0

    @property
    def runs(self) -> int:
        """How many there were."""
        return self.passed + self.failed + self.errors

    @property
    def measured(self) -> int:
        """How many could be measured."""
        return self.passed + self.failed

    @property
    def flaky(self) -> bool:
        """Whether it both passed and failed."""
        return bool(self.passed and self.failed)

    @property
    def rank(self) -> int:
        """What is most worth knowing first: flaky, failed, not measured, passed."""
        return 0 if self.flaky else 1 if self.failed else 2 if self.errors else 3


class Cases:
    """The ends of every case, whichever order its runs finish in."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], dict[str, Ends]] = {}
        # Few ends differ and many cases share them, so that a case costs its name and a place in a table.
        self._known: dict[Ends, Ends] = {}

    def add(self, record: ResultRecord) -> None:
        """One more run."""
        group = self._groups.setdefault((record.eval_id, record.target), {})
        passed, failed, errors = group.get(record.case_id) or (0, 0, 0)
        if record.status == "pass":
            passed += 1
        elif record.status == "fail":
            failed += 1
        else:
            errors += 1
        ends = Ends(passed, failed, errors)
        group[record.case_id] = self._known.setdefault(ends, ends)

    def repeats(self, evals: list[str], targets: list[str]) -> Repeats | None:
        """What they say together; `None` when no case was run more than once. The names are in plan order."""
        # Sums over how often each end was met: there are few of them, however many cases there are.
        times: Times = {}
        by_target: dict[str, Times] = {}
        for (_, target), _, ends in self._repeated():
            of_target = by_target.setdefault(target, {})
            times[ends] = times.get(ends, 0) + 1
            of_target[ends] = of_target.get(ends, 0) + 1
        if not times:
            return None
        k = min(ends.runs for ends in times)
        rate = _mean(times, pass_at_k, 1)
        able = sum(often for ends, often in times.items() if ends.measured)
        listed = self._listed(evals, targets)
        told = _told(times, k)
        return Repeats(
            k=k,
            always_passed=sum(often for ends, often in times.items() if ends.passed and not ends.failed),
            always_failed=sum(often for ends, often in times.items() if ends.failed and not ends.passed),
            unmeasured=told["cases"] - able,
            pass_rate=rate,
            pass_rate_interval=_around(rate, able),
            targets={name: RepeatedTarget(**_told(by_target[name], k)) for name in targets if name in by_target},
            per_case=listed,
            not_listed=told["cases"] - len(listed),
            **told,
        )

    def _repeated(self) -> Iterator[tuple[tuple[str, str], str, Ends]]:
        for key, group in self._groups.items():
            for case_id, ends in group.items():
                if ends.runs > 1:
                    yield key, case_id, ends

    def _listed(self, evals: list[str], targets: list[str]) -> tuple[RepeatedCase, ...]:
        """Those that are most worth knowing, in an order that does not depend on which run finished first."""
        from heapq import nsmallest  # noqa: PLC0415 - only repetitions need it

        evals_at = {name: at for at, name in enumerate(evals)}
        targets_at = {name: at for at, name in enumerate(targets)}

        def place(found: tuple[tuple[str, str], str, Ends]) -> tuple[int, int, list[tuple[int, str]], str, int]:
            (eval_id, target), case_id, ends = found
            return ends.rank, evals_at.get(eval_id, 0), _by_number(case_id), case_id, targets_at.get(target, 0)

        return tuple(
            RepeatedCase(
                eval_id=eval_id,
                case_id=case_id,
                target=target,
                passed=ends.passed,
                failed=ends.failed,
                errors=ends.errors,
                flaky=ends.flaky,
                pass_rate=round(ends.passed / ends.measured, DIGITS) if ends.measured else None,
                pass_rate_interval=interval(ends.passed, ends.measured),
            )
            for (eval_id, target), case_id, ends in nsmallest(MAX_LISTED, self._repeated(), key=place)
        )


def _by_number(name: str) -> list[tuple[int, str]]:
    """Sorts `case-2` before `case-10`: numbers by their length first, and only then digit by digit."""
    parts = _DIGITS.split(name)
    return [(len(part) if at % 2 else 0, part) for at, part in enumerate(parts)]


def interval(passed: float, measured: int) -> tuple[float, float] | None:
    """Wilson's interval, in as many digits as anybody reads."""
    found = wilson(passed, measured)
    return None if found is None else (round(found[0], DIGITS), round(found[1], DIGITS))


def _around(mean: float | None, cases: int) -> tuple[float, float] | None:
    return None if mean is None else interval(mean * cases, cases)


def _told(times: Times, k: int) -> dict[str, Any]:
    """What is said of all, and of each target."""
    measured = sum(often for ends, often in times.items() if ends.measured >= k)
    at_k, hat_k = _mean(times, pass_at_k, k), _mean(times, pass_hat_k, k)
    return {
        "cases": sum(times.values()),
        "flaky": sum(often for ends, often in times.items() if ends.flaky),
        "measured": measured,
        "pass_at_k": at_k,
        "pass_at_k_interval": _around(at_k, measured),
        "pass_hat_k": hat_k,
        "pass_hat_k_interval": _around(hat_k, measured),
    }


def _mean(times: Times, estimate: Callable[[int, int, int], float | None], k: int) -> float | None:
    """Over the cases that were measured so often."""
    known = [(estimate(ends.measured, ends.passed, k), often) for ends, often in times.items()]
    cases = sum(often for value, often in known if value is not None)
    return round(sum(value * often for value, often in known if value is not None) / cases, DIGITS) if cases else None


PASS, FAIL, ERROR, INTERRUPTED = 0, 1, 3, 130
"""The exit codes of the contract that an execution can have."""
COUNTS = tuple(name for name in TokensUsage.__struct_fields__ if name.endswith("_tokens"))


class CaseOutcomes(NamedTuple):
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

    def tally(self) -> OutcomeCounts:
        """The counts so far; rates are over the runs that could be measured."""
        measured = self.passed + self.failed
        return OutcomeCounts(
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

    def summary(self, ended: CaseOutcomes, *, out: tuple[str, ...]) -> Summary:
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
            reported=Coverage(latency_ms=len(self._latencies), tokens_usage=self._usages, cost_usd=self._costs),
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


def _outcome(tally: OutcomeCounts, ended: CaseOutcomes) -> tuple[str, int]:
    if ended.interrupted:
        return "interrupted", INTERRUPTED
    if tally.errors or ended.broken or ended.stopped is not None:
        return "error", ERROR
    return ("fail", FAIL) if tally.failed else ("pass", PASS)


def _spread(values: array[float]) -> Distribution | None:
    if not values:
        return None
    ordered = sorted(values)
    last = len(ordered) - 1
    return Distribution(
        mean=round(sum(ordered) / len(ordered), 3),
        p50=ordered[round(0.5 * last)],
        p95=ordered[round(0.95 * last)],
        max=ordered[-1],
    )
