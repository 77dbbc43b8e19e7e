"""Summary of an execution: outcome counts, pass@k and pass^k of repeated cases, usage of judges, gates."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET

from agentv.exit_codes import decide_exit_code
from agentv.model.judging import JudgeSums, JudgeUsage, add_tokens
from agentv.model.request import DEFAULT_PERSONA
from agentv.model.response import TokensUsage
from agentv.model.results import Coverage, Distribution, OutcomeCounts, RepeatedCase, RepeatedTarget, Repeats, Summary
from agentv.scoring.statistics import pass_at_k, pass_hat_k, wilson

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from agentv.model.results import ResultRecord
    from agentv.run.plan import PlanCounts

    OutcomeTable = dict["CaseOutcomes", int]
    """Number of cases with each combination of outcomes."""

MAX_LISTED = 100
"""Repeated cases that a summary lists one by one."""
MAX_TAGS = 1_000
"""Tags that are counted; one for each case would take memory without an end."""
CaseKey = tuple[str, str, str, str | None]
"""Eval, target, case and persona."""
MAX_LOST = 10
_ROUNDING = 1e-9
DIGITS = 6
_DIGITS = re.compile(r"0*(\d+)")
TOKEN_COUNTS = tuple(name for name in TokensUsage.__struct_fields__ if name.endswith("_tokens"))


class Gates(msgspec.Struct, frozen=True):
    """Conditions on an execution that replace the rule that every run has to pass."""

    min_pass_rate: float | None = None
    """Share of the measured runs that has to pass."""
    max_regressions: int | None = None
    """Number of cases that passed in the baseline and may fail now."""
    baseline: str = ""
    """Name of the baseline."""
    passed_before: frozenset[CaseKey] = frozenset()
    """Cases that passed in the baseline."""

    def judge(self, counts: OutcomeCounts, failed: Collection[CaseKey]) -> list[GateOutcome]:
        """Return the outcome of each condition; `failed` are the cases that do not pass now."""
        outcomes = []
        if self.min_pass_rate is not None:
            rate = counts.pass_rate or 0.0
            text = f"--min-pass-rate {self.min_pass_rate:g}: {rate * 100:.1f} % of the measured runs passed"
            outcomes.append(GateOutcome(rate >= self.min_pass_rate - _ROUNDING, text))
        if self.max_regressions is not None:
            lost = [key for key in failed if key in self.passed_before]
            names = ", ".join([*map(_case_name, lost[:MAX_LOST]), *(["…"] if lost[MAX_LOST:] else [])])
            cases = f"{len(lost):,} of the {len(self.passed_before):,} cases that passed in {self.baseline} fail now"
            text = f"--max-regressions {self.max_regressions}: {cases}{f': {names}' if names else ''}"
            outcomes.append(GateOutcome(len(lost) <= self.max_regressions, text))
        return outcomes


def _case_name(key: CaseKey) -> str:
    """Return the id of a case, with its persona."""
    _, _, case_id, persona_id = key
    return case_id if persona_id is None else f"{case_id} [{persona_id}]"


class GateOutcome(msgspec.Struct, frozen=True):
    """Outcome of one condition."""

    is_met: bool
    text: str


class _JudgeCounter:
    """Sums of one judge."""

    def __init__(self) -> None:
        self.calls = self.cached = self.findings = self.reported = 0
        self.cost = 0.0
        self.tokens: TokensUsage | None = None


class JudgeTotals:
    """Usage of the judges of an execution, by name."""

    def __init__(self) -> None:
        self._counters: dict[str, _JudgeCounter] = {}

    def add(self, details: Mapping[str, Any]) -> None:
        """Add the details of an evaluator result, nested results included."""
        for usage in _judge_usages(details):
            counter = self._counters.setdefault(usage.target, _JudgeCounter())
            counter.findings += 1
            counter.calls += usage.calls
            counter.cached += usage.cached
            counter.tokens = add_tokens([counter.tokens, usage.tokens_usage])
            if usage.cost_usd is not None:
                counter.reported += 1
                counter.cost += usage.cost_usd

    def sums(self) -> dict[str, JudgeSums]:
        """Return the sums of each judge, ordered by name."""
        return {
            name: JudgeSums(
                calls=counter.calls,
                cached=counter.cached,
                tokens_usage=counter.tokens,
                cost_usd=counter.cost if counter.reported else None,
                findings=counter.findings,
                reported_cost=counter.reported,
            )
            for name, counter in sorted(self._counters.items())
        }


def _judge_usages(details: Mapping[str, Any]) -> Iterator[JudgeUsage]:
    """Yield the judge usages of a result: a panel has several, and a composite those of its inner results."""
    judge = details.get("judge")
    for usage in judge if isinstance(judge, list) else [judge]:
        if isinstance(usage, dict):
            try:
                yield msgspec.convert(usage, JudgeUsage)
            except msgspec.ValidationError:  # an evaluator of a plugin may use the key for something else
                continue
    inner = details.get("inner")
    for result in inner if isinstance(inner, list) else ():
        if isinstance(result, dict) and isinstance(result.get("details"), dict):
            yield from _judge_usages(result["details"])


class CaseOutcomes(NamedTuple):
    """Outcomes of the runs of one case."""

    passed: int = 0
    failed: int = 0
    errors: int = 0

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self.passed + self.failed + self.errors

    @property
    def measured(self) -> int:
        """Number of runs that passed or failed."""
        return self.passed + self.failed

    @property
    def flaky(self) -> bool:
        """`True` if it both passed and failed."""
        return bool(self.passed and self.failed)

    @property
    def rank(self) -> int:
        """Sort key of lists: flaky first, then failed, errors and passed."""
        return 0 if self.flaky else 1 if self.failed else 2 if self.errors else 3


_GroupKey = tuple[str, str, str | None]
"""Eval, target and persona."""


class RepeatCounter:
    """Outcomes of every case, independent of the order in which runs finish."""

    def __init__(self) -> None:
        self._groups: dict[_GroupKey, dict[str, CaseOutcomes]] = {}
        # Many cases share few distinct values, so that a case costs its name and one reference.
        self._shared: dict[CaseOutcomes, CaseOutcomes] = {}

    def add(self, record: ResultRecord) -> None:
        """Add one run."""
        group = self._groups.setdefault((record.eval_id, record.target, record.persona_id or None), {})
        passed, failed, errors = group.get(record.case_id) or (0, 0, 0)
        is_pass, is_fail = record.status == "pass", record.status == "fail"
        outcomes = CaseOutcomes(passed + is_pass, failed + is_fail, errors + (not is_pass and not is_fail))
        group[record.case_id] = self._shared.setdefault(outcomes, outcomes)

    def failed(self) -> list[CaseKey]:
        """Return the cases of which not more than half of the measured runs passed."""
        return [
            (*key[:2], case_id, key[2])
            for key, group in self._groups.items()
            for case_id, outcomes in group.items()
            if outcomes.measured and outcomes.passed <= outcomes.failed
        ]

    def repeats(self, evals: list[str], targets: list[str]) -> Repeats | None:
        """Return the statistics of repeated cases; `None` if there are none. The names are in plan order."""
        # Sums over distinct outcomes: there are few of them, however many cases there are.
        table: OutcomeTable = {}
        by_target: dict[str, OutcomeTable] = {}
        for (_, target, _), _, outcomes in self._repeated():
            of_target = by_target.setdefault(target, {})
            table[outcomes] = table.get(outcomes, 0) + 1
            of_target[outcomes] = of_target.get(outcomes, 0) + 1
        if not table:
            return None
        k = min(outcomes.runs for outcomes in table)
        rate = _mean(table, pass_at_k, 1)
        measured = sum(count for outcomes, count in table.items() if outcomes.measured)
        listed = self._listed(evals, targets)
        statistics = _statistics(table, k)
        return Repeats(
            k=k,
            always_passed=sum(count for outcomes, count in table.items() if outcomes.passed and not outcomes.failed),
            always_failed=sum(count for outcomes, count in table.items() if outcomes.failed and not outcomes.passed),
            unmeasured=statistics["cases"] - measured,
            pass_rate=rate,
            pass_rate_interval=_mean_interval(rate, measured),
            targets={name: RepeatedTarget(**_statistics(by_target[name], k)) for name in targets if name in by_target},
            per_case=listed,
            not_listed=statistics["cases"] - len(listed),
            **statistics,
        )

    def _repeated(self) -> Iterator[tuple[_GroupKey, str, CaseOutcomes]]:
        for key, group in self._groups.items():
            for case_id, outcomes in group.items():
                if outcomes.runs > 1:
                    yield key, case_id, outcomes

    def _listed(self, evals: list[str], targets: list[str]) -> tuple[RepeatedCase, ...]:
        """Return the first cases by rank, in an order that does not depend on which run finished first."""
        evals_at = {name: at for at, name in enumerate(evals)}
        targets_at = {name: at for at, name in enumerate(targets)}

        def sort_key(item: tuple[_GroupKey, str, CaseOutcomes]) -> tuple[Any, ...]:
            (eval_id, target, persona_id), case_id, outcomes = item
            place = (evals_at.get(eval_id, 0), _natural_key(case_id), case_id, persona_id or "")
            return outcomes.rank, *place, targets_at.get(target, 0)

        return tuple(
            RepeatedCase(
                eval_id=eval_id,
                case_id=case_id,
                persona_id=persona_id or UNSET,
                target=target,
                passed=outcomes.passed,
                failed=outcomes.failed,
                errors=outcomes.errors,
                flaky=outcomes.flaky,
                pass_rate=round(outcomes.passed / outcomes.measured, DIGITS) if outcomes.measured else None,
                pass_rate_interval=interval(outcomes.passed, outcomes.measured),
            )
            for (eval_id, target, persona_id), case_id, outcomes in nsmallest(
                MAX_LISTED, self._repeated(), key=sort_key
            )
        )


def _natural_key(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts `case-2` before `case-10`: numbers by length first, then digit by digit."""
    parts = _DIGITS.split(name)
    return [(len(part) if at % 2 else 0, part) for at, part in enumerate(parts)]


def interval(passed: float, measured: int) -> tuple[float, float] | None:
    """Return the rounded Wilson interval."""
    bounds = wilson(passed, measured)
    return None if bounds is None else (round(bounds[0], DIGITS), round(bounds[1], DIGITS))


def _mean_interval(mean: float | None, cases: int) -> tuple[float, float] | None:
    return None if mean is None else interval(mean * cases, cases)


def _statistics(table: OutcomeTable, k: int) -> dict[str, Any]:
    """Return the fields that `Repeats` and `RepeatedTarget` share."""
    measured = sum(count for outcomes, count in table.items() if outcomes.measured >= k)
    at_k, hat_k = _mean(table, pass_at_k, k), _mean(table, pass_hat_k, k)
    return {
        "cases": sum(table.values()),
        "flaky": sum(count for outcomes, count in table.items() if outcomes.flaky),
        "measured": measured,
        "pass_at_k": at_k,
        "pass_at_k_interval": _mean_interval(at_k, measured),
        "pass_hat_k": hat_k,
        "pass_hat_k_interval": _mean_interval(hat_k, measured),
    }


def _mean(table: OutcomeTable, estimate: Callable[[int, int, int], float | None], k: int) -> float | None:
    """Return the mean of an estimate over the cases that have one."""
    values = [(estimate(outcomes.measured, outcomes.passed, k), count) for outcomes, count in table.items()]
    cases = sum(count for value, count in values if value is not None)
    total = sum(value * count for value, count in values if value is not None)
    return round(total / cases, DIGITS) if cases else None


class ExecutionEnd(msgspec.Struct, frozen=True):
    """End of an execution: time, and reasons for ending early."""

    at: str
    duration_ms: float
    interrupted: bool = False
    broken: bool = False
    """`True` if an error ended it early: the missing runs were not measured."""
    stopped: str | None = None
    """The limit of costs or tokens that ended it early."""
    warnings: tuple[str, ...] = ()


class PlanNames(msgspec.Struct, frozen=True):
    """Names of evals and targets, in plan order."""

    evals: Iterable[str]
    targets: Iterable[str]


class OutcomeCounter:
    """Numbers of runs by outcome."""

    def __init__(self) -> None:
        self.passed = self.failed = self.errors = 0
        self._score = 0.0

    def add(self, record: ResultRecord) -> None:
        """Add one run."""
        if record.status == "pass":
            self.passed += 1
        elif record.status == "fail":
            self.failed += 1
        else:
            self.errors += 1
        self._score += record.score or 0.0

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self.passed + self.failed + self.errors

    def counts(self) -> OutcomeCounts:
        """Return the counts so far; rates are over the runs that passed or failed."""
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
    """Sums over the runs of an execution, from which its summary is made."""

    def __init__(
        self, execution_id: str, planned: PlanCounts, names: PlanNames, started_at: str, gates: Gates | None = None
    ) -> None:
        self._execution_id = execution_id
        self._gates = gates
        self._planned = planned
        self._started_at = started_at
        self._all = OutcomeCounter()
        # In plan order, not in the order of finishing: equal executions have equal summaries.
        self._evals = {name: OutcomeCounter() for name in names.evals}
        self._targets = {name: OutcomeCounter() for name in names.targets}
        self._tags: dict[str, OutcomeCounter] = {}
        self._personas: defaultdict[str, OutcomeCounter] = defaultdict(OutcomeCounter)
        # Without repetitions and a baseline no case is needed by name: memory does not grow with the number of cases.
        has_baseline = gates is not None and gates.max_regressions is not None
        self._repeats = RepeatCounter() if planned.repeats or has_baseline else None
        self._latencies = array("d")
        self._tokens: dict[str, Any] = {}
        self._usages = 0
        self._cost = 0.0
        self._costs = 0
        self._judges = JudgeTotals()
        self._conversations = 0
        self._simulator_faults = 0
        """Conversations that could not be measured because of the simulated user."""

    def _simulator_warnings(self) -> list[str]:
        faults, all_ = self._simulator_faults, self._conversations
        return [f"{faults:,} of {all_:,} conversations could not be measured: simulator"] if faults else []

    def add(self, record: ResultRecord) -> None:
        """Add one run; the order does not matter."""
        self._all.add(record)
        if self._repeats is not None:
            self._repeats.add(record)
        self._evals[record.eval_id].add(record)
        self._targets[record.target].add(record)
        if record.tags:
            self._add_tags(record, record.tags)
        self._personas[record.persona_id or DEFAULT_PERSONA].add(record)
        self._conversations += record.ended_by is not UNSET
        self._simulator_faults += record.fault == "simulator"
        # The time until a run was given up is a limit of ours, not a latency of the agent.
        if record.latency_ms is not None and record.error is None:
            self._latencies.append(record.latency_ms)
        usage = record.tokens_usage
        if usage is not None:
            self._usages += 1
            for name in TOKEN_COUNTS:
                count = getattr(usage, name)
                if count is not None:
                    self._tokens[name] = self._tokens.get(name, 0) + count
        if record.cost_usd is not None:
            self._costs += 1
            self._cost += record.cost_usd
        for result in record.evaluators:
            if "judge" in result.details or "inner" in result.details:
                self._judges.add(result.details)

    def _add_tags(self, record: ResultRecord, tags: tuple[str, ...]) -> None:
        for tag in tags:
            if tag in self._tags or len(self._tags) < MAX_TAGS:
                self._tags.setdefault(tag, OutcomeCounter()).add(record)

    def _persona_counts(self) -> dict[str, OutcomeCounts]:
        """Return the outcomes by persona, those without one at the end; none if no run has one."""
        names = sorted(self._personas, key=lambda name: (name == DEFAULT_PERSONA, name))
        return {name: self._personas[name].counts() for name in names} if names != [DEFAULT_PERSONA] else {}

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self._all.runs

    def summary(self, end: ExecutionEnd, *, out: tuple[str, ...]) -> Summary:
        """Return the summary of the execution."""
        counts = self._all.counts()
        failed = self._repeats.failed() if self._gates is not None and self._repeats is not None else ()
        outcomes = [] if self._gates is None else self._gates.judge(counts, failed)
        status, exit_code = _outcome(counts, end, outcomes)
        return Summary(
            execution_id=self._execution_id,
            status=status,
            exit_code=exit_code,
            planned=self._planned.runs,
            runs=counts.runs,
            passed=counts.passed,
            failed=counts.failed,
            errors=counts.errors,
            skipped=self._planned.skipped,
            left_out=self._planned.left_out,
            pass_rate=counts.pass_rate,
            pass_rate_interval=counts.pass_rate_interval,
            score=counts.score,
            latency_ms=_distribution(self._latencies),
            tokens_usage=TokensUsage(**self._tokens) if self._usages else None,
            cost_usd=self._cost if self._costs else None,
            reported=Coverage(latency_ms=len(self._latencies), tokens_usage=self._usages, cost_usd=self._costs),
            duration_ms=round(end.duration_ms, 3),
            started_at=self._started_at,
            completed_at=end.at,
            evals={name: counter.counts() for name, counter in self._evals.items()},
            targets={name: counter.counts() for name, counter in self._targets.items()},
            tags={name: counter.counts() for name, counter in sorted(self._tags.items())} or UNSET,
            personas=self._persona_counts() or UNSET,
            repeats=self._repeats.repeats(list(self._evals), list(self._targets)) if self._repeats else None,
            out=out,
            judges=self._judges.sums() or UNSET,
            stopped=UNSET if end.stopped is None else end.stopped,
            warnings=(*end.warnings, *self._simulator_warnings()) or UNSET,
            gates=tuple([f"{each.text}: {'met' if each.is_met else 'not met'}" for each in outcomes]) or UNSET,
        )


def _outcome(counts: OutcomeCounts, end: ExecutionEnd, gates: list[GateOutcome]) -> tuple[str, int]:
    """Return the status and the exit code of an execution; conditions replace the rule that every run has to pass."""
    has_failed = not all(gate.is_met for gate in gates) if gates else counts.failed > 0
    has_errors = counts.errors > 0 or end.broken or end.stopped is not None
    status, code = decide_exit_code(failed=has_failed, errors=has_errors, interrupted=end.interrupted)
    return status, int(code)


def _distribution(values: array[float]) -> Distribution | None:
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
