"""Join two sides case by case, and measure the differences of outcomes, numbers and calls."""

from __future__ import annotations

from array import array
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET, UnsetType

from agentv.errors import DamagedRunError, FormatError
from agentv.evaluators.trajectory.wording import call_label
from agentv.model.comparison import CallPair, CaseReference, CaseSide, Measure, Measures
from agentv.model.conversation import ToolCall
from agentv.run.plan import has_persona
from agentv.scoring.calls import calls_from_trace
from agentv.scoring.statistics import paired_bootstrap, paired_difference
from agentv.suggestions import suggest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentv.api.compare.sources import ComparisonSource
    from agentv.model.results import ResultRecord


AMOUNTS = ("input_tokens", "output_tokens", "cost_usd")
MAX_NAMED = 5
MAX_REPEATS = 100_000
"""The limit of the option `repeat`."""
MAX_AMOUNT = 1e15
"""Larger numbers of tokens, dollars or milliseconds are ignored; the squares of these can still be summed."""


class CaseName(NamedTuple):
    """A case of an eval, with its persona if there is one."""

    eval_id: str
    case_id: str
    persona_id: str | None

    def reference(self, target: str | None) -> CaseReference:
        """Return the case with a target."""
        persona_id = UNSET if self.persona_id is None else self.persona_id
        return CaseReference(eval_id=self.eval_id, case_id=self.case_id, persona_id=persona_id, target=target)

    def __str__(self) -> str:
        persona = "" if self.persona_id is None else f" with persona {self.persona_id!r}"
        return f"case {self.case_id!r}{persona} of {self.eval_id!r}"


class TargetColumns:
    """The cases of one target of one side: a row per case, in which its repetitions are summed up."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str | None], dict[str, int]] = {}
        """Row numbers by eval and persona, then by case."""
        self.passed, self.failed, self.errors = array("I"), array("I"), array("I")
        self._scores = array("d")
        self._amounts = {name: (array("d"), array("I")) for name in AMOUNTS}
        self.latencies, self.latency_rows = array("d"), array("I")
        self.passing, self.failing = array("q"), array("q")
        """The places of the first run that passed and of the first that failed; -1 if there is none."""
        self.answered = array("q")
        """The place of the first run that has an answer, whatever its verdict; -1 if there is none."""
        self.places, self.place_rows = array("q"), array("I")
        """The places of all measured runs, with their rows."""
        self._repeats: list[int] = []
        """The repetitions of each row as a bit set."""

    def add(self, record: ResultRecord, place: int) -> bool:
        """Add a run; return false if it was added before."""
        row = self._row(record)
        bit = 1 << record.repeat
        if self._repeats[row] & bit:
            return False
        self._repeats[row] |= bit
        if self.answered[row] < 0 and record.error is None and record.candidate.strip():
            self.answered[row] = place
        if record.status == "pass":
            self.passed[row] += 1
            self.passing[row] = place if self.passing[row] < 0 else self.passing[row]
        elif record.status == "fail":
            self.failed[row] += 1
            self.failing[row] = place if self.failing[row] < 0 else self.failing[row]
        else:
            self.errors[row] += 1
            return True
        self.places.append(place)
        self.place_rows.append(row)
        self._scores[row] += min(1.0, max(0.0, record.score or 0.0))
        usage = record.tokens_usage
        if usage is not None:
            self._add_amount("input_tokens", row, usage.input_tokens)
            self._add_amount("output_tokens", row, usage.output_tokens)
        self._add_amount("cost_usd", row, record.cost_usd)
        # The time until a run was given up is no latency of the agent.
        if record.latency_ms is not None and record.error is None and abs(record.latency_ms) <= MAX_AMOUNT:
            self.latencies.append(record.latency_ms)
            self.latency_rows.append(row)
        return True

    def _row(self, record: ResultRecord) -> int:
        cases = self._rows.setdefault((record.eval_id, record.persona_id or None), {})
        row = cases.get(record.case_id)
        if row is None:
            row = cases[record.case_id] = len(self.passed)
            for column in (self.passed, self.failed, self.errors):
                column.append(0)
            self._scores.append(0.0)
            for total, count in self._amounts.values():
                total.append(0.0)
                count.append(0)
            self.passing.append(-1)
            self.failing.append(-1)
            self.answered.append(-1)
            self._repeats.append(0)
        return row

    def _add_amount(self, name: str, row: int, amount: float | None) -> None:
        if amount is not None and abs(amount) <= MAX_AMOUNT:
            total, count = self._amounts[name]
            total[row] += amount
            count[row] += 1

    def measured(self, row: int) -> int:
        """Return the number of runs without an error."""
        return self.passed[row] + self.failed[row]

    def passes(self, row: int) -> bool:
        """Return whether more than half of the measured runs passed."""
        return self.passed[row] > self.failed[row]

    def flaky(self, row: int) -> bool:
        """Return whether some runs passed and others failed."""
        return bool(self.passed[row] and self.failed[row])

    def score(self, row: int) -> float:
        """Return the mean score of the measured runs, of which there must be one."""
        return self._scores[row] / self.measured(row)

    def pass_rate(self, row: int) -> float:
        """Return the share of the measured runs that passed; there must be one."""
        return self.passed[row] / self.measured(row)

    def amount(self, name: str, row: int) -> float | None:
        """Return the mean of a number over the runs that reported it."""
        total, count = self._amounts[name]
        return total[row] / count[row] if count[row] else None

    def case_side(self, row: int) -> CaseSide:
        """Return the counts and the score of a row."""
        score = round(self.score(row), 6) if self.measured(row) else None
        return CaseSide(passed=self.passed[row], failed=self.failed[row], errors=self.errors[row], score=score)

    def runs_of(self, row: int, limit: int) -> list[int]:
        """Return the places of the first measured runs of a row."""
        found = (place for place, own in zip(self.places, self.place_rows, strict=True) if own == row)
        return list(islice(found, limit))

    def iter_rows(self) -> Iterator[tuple[CaseName, int]]:
        """Yield cases with their row numbers, in the order of the source for each eval and persona."""
        for (eval_id, persona_id), cases in self._rows.items():
            for case_id, row in cases.items():
                yield CaseName(eval_id, case_id, persona_id), row

    def find(self, case: CaseName) -> int | None:
        """Return the row number of a case; `None` if there is none."""
        return self._rows.get((case.eval_id, case.persona_id), {}).get(case.case_id)


class SideTable:
    """The results of one side by target."""

    def __init__(self, source: ComparisonSource, personas: Sequence[str] = ()) -> None:
        self.source = source
        self.columns: dict[str, TargetColumns] = {}
        executions: dict[str, None] = {}
        for place, record in source.records():
            executions[record.execution_id] = None
            if personas and not has_persona(record.persona_id or None, personas):
                continue
            if not 0 <= record.repeat < MAX_REPEATS:
                msg = f"{source.name}: case {record.case_id!r} says `repeat: {record.repeat}`, which cannot be"
                raise FormatError(msg)
            columns = self.columns.get(record.target)
            if columns is None:
                columns = self.columns[record.target] = TargetColumns()
            if not columns.add(record, place):
                repetition = f" (repetition {record.repeat + 1})" if record.repeat else ""
                case = CaseName(record.eval_id, record.case_id, record.persona_id or None)
                msg = (
                    f"{source.name} holds {case} twice{repetition}, with target {record.target!r}:"
                    " give the results of one execution"
                )
                raise FormatError(msg)
        if not self.columns and source.damaged:
            raise DamagedRunError(source.damaged)
        if not self.columns:
            of_personas = f" of persona {', '.join(personas)}" if personas else ""
            msg = f"{source.name} holds no results{of_personas}"
            raise FormatError(msg)
        self.execution_ids = tuple(executions)

    def count_cases(self, targets: Sequence[str]) -> int:
        """Return the number of cases of these targets; one with two targets counts as two."""
        return sum(len(self.columns[name].passed) for name in targets)


def pair_targets(a: SideTable, b: SideTable, target_a: str | None, target_b: str | None) -> list[tuple[str, str]]:
    """Return the pairs of targets to compare: a single target on each side, else those of the same name."""
    ours, theirs = _selected_targets(a, target_a, "a"), _selected_targets(b, target_b, "b")
    if len(ours) == len(theirs) == 1:
        return [(ours[0], theirs[0])]
    common = [(name, name) for name in ours if name in theirs]
    if not common:
        msg = (
            f"no target is on both sides: {a.source.name} has {_listed(ours)}, {b.source.name} has {_listed(theirs)};"
            " choose one of each with --target-a and --target-b"
        )
        raise FormatError(msg)
    return common


def _selected_targets(table: SideTable, target: str | None, side: str) -> list[str]:
    if target is None:
        return list(table.columns)
    if target not in table.columns:
        hint = suggest(target, table.columns) or f"; it has {_listed(list(table.columns))}"
        msg = f"--target-{side}: {table.source.name} has no target {target!r}{hint}"
        raise FormatError(msg)
    return [target]


def _listed(names: list[str]) -> str:
    return ", ".join([*map(repr, names[:MAX_NAMED]), *(["…"] if len(names) > MAX_NAMED else [])])


DIGITS = 9
_EQUAL = 12
"""Decimal digits beyond which two means of the same scores differ only by rounding."""


class CasePair(NamedTuple):
    """A case on both sides."""

    name: CaseReference
    a: TargetColumns
    row_a: int
    b: TargetColumns
    row_b: int

    @property
    def is_flaky(self) -> bool:
        """True if it both passed and failed on one side."""
        return self.a.flaky(self.row_a) or self.b.flaky(self.row_b)

    @property
    def is_clear_loss(self) -> bool:
        """True if all runs of a lost case agree: it passed on side A and failed on side B every time."""
        return not self.is_flaky


class Join(NamedTuple):
    """The rows of one target on both sides that belong together and were measured."""

    a: TargetColumns
    b: TargetColumns
    rows_a: array[int]
    rows_b: array[int]


class Pairs:
    """The cases of both sides: matched and compared, not measured, or only on one side."""

    def __init__(self, targets: Sequence[tuple[str, str]]) -> None:
        self.targets = targets
        self.joins: list[Join] = []
        self.matched = self.cases = self.both_passed = self.both_failed = self.lost_to_errors = 0
        self.scores_tell_more = False
        """False if every score is the pass rate of its case: a test of the scores would prove nothing more."""
        self.won: list[CasePair] = []
        self.lost: list[CasePair] = []
        self.not_measured: list[CaseReference] = []
        self.only_a: list[CaseReference] = []
        self.only_b: list[CaseReference] = []

    def add(self, case: CaseName, target: str | None, join: Join, rows: tuple[int, int]) -> None:
        """Add a case that both sides have."""
        self.matched += 1
        (a, b), (row_a, row_b) = join[:2], rows
        if not a.measured(row_a) or not b.measured(row_b):
            self.not_measured.append(case.reference(target))
            self.lost_to_errors += bool(a.measured(row_a))
            return
        self.cases += 1
        join.rows_a.append(row_a)
        join.rows_b.append(row_b)
        before, after = a.passes(row_a), b.passes(row_b)
        if before == after:
            self.both_passed += before
            self.both_failed += not before
            return
        (self.won if after else self.lost).append(CasePair(case.reference(target), a, row_a, b, row_b))


def pair_cases(first: SideTable, second: SideTable, targets: Sequence[tuple[str, str]]) -> Pairs:
    """Join the cases of these targets by eval, id and persona."""
    pairs = Pairs(targets)
    for ours, theirs in targets:
        a, b = first.columns[ours], second.columns[theirs]
        join = Join(a, b, array("I"), array("I"))
        pairs.joins.append(join)
        target = ours if ours == theirs else None
        for case, row_a in a.iter_rows():
            row_b = b.find(case)
            if row_b is None:
                pairs.only_a.append(case.reference(ours))
            else:
                pairs.add(case, target, join, (row_a, row_b))
        pairs.only_b += [case.reference(theirs) for case, _ in b.iter_rows() if a.find(case) is None]
    return pairs


def measure(pairs: Pairs, seed: int, confidence: float) -> Measures:
    """Return all measures of both sides over the cases that were measured on both."""
    scores, rates = (array("d"), array("d")), (array("d"), array("d"))
    for join in pairs.joins:
        scores[0].extend(map(join.a.score, join.rows_a))
        scores[1].extend(map(join.b.score, join.rows_b))
        rates[0].extend(map(join.a.pass_rate, join.rows_a))
        rates[1].extend(map(join.b.pass_rate, join.rows_b))
    latency = [_latencies(pairs, side) for side in ("a", "b")]
    is_binary = all(rate in (0.0, 1.0) for side in rates for rate in side)
    pairs.scores_tell_more = scores != rates
    return Measures(
        pass_rate=_pass_rate(pairs, confidence) if is_binary else _means(*rates, seed, confidence),
        score=_means(*scores, seed, confidence),
        input_tokens=_amount(pairs, "input_tokens", seed, confidence),
        output_tokens=_amount(pairs, "output_tokens", seed, confidence),
        cost_usd=_amount(pairs, "cost_usd", seed, confidence),
        latency_p50_ms=_latency(latency, 0.5, pairs.cases),
        latency_p95_ms=_latency(latency, 0.95, pairs.cases),
    )


def _pass_rate(pairs: Pairs, confidence: float) -> Measure:
    """Return the pass rate of cases that either passed or failed, with the interval of Newcombe."""
    cases, wins, losses = pairs.cases, len(pairs.won), len(pairs.lost)
    if not cases:
        return Measure(a=None, b=None)
    return Measure(
        a=_round((pairs.both_passed + losses) / cases),
        b=_round((pairs.both_passed + wins) / cases),
        difference=_round((wins - losses) / cases),
        interval=_ends(paired_difference(pairs.both_passed, wins, losses, pairs.both_failed, confidence)),
        method="newcombe",
        cases=cases,
    )


def _amount(pairs: Pairs, name: str, seed: int, confidence: float) -> Measure:
    """Return a number that not every run reports, over the cases in which both sides reported it."""
    known = array("d"), array("d")
    alone = array("d"), array("d")
    for join in pairs.joins:
        for row_a, row_b in zip(join.rows_a, join.rows_b, strict=True):
            a, b = join.a.amount(name, row_a), join.b.amount(name, row_b)
            if a is not None and b is not None:
                known[0].append(a)
                known[1].append(b)
            elif a is not None:
                alone[0].append(a)
            elif b is not None:
                alone[1].append(b)
    if known[0]:
        return _means(*known, seed, confidence)
    a, b = (_round(sum(values) / len(values)) if values else None for values in alone)
    return Measure(a=a, b=b)


def _means(a: Sequence[float], b: Sequence[float], seed: int, confidence: float) -> Measure:
    if not a:
        return Measure(a=None, b=None)
    differences = array("d", [round(after - before, _EQUAL) for before, after in zip(a, b, strict=True)])
    return Measure(
        a=_round(sum(a) / len(a)),
        b=_round(sum(b) / len(b)),
        difference=_round(sum(differences) / len(differences)),
        interval=_ends(paired_bootstrap(differences, seed=seed, confidence=confidence)),
        method="bootstrap",
        cases=len(a),
    )


def _latencies(pairs: Pairs, side: str) -> list[float]:
    """Return the sorted latencies of all runs of the compared cases."""
    latencies: list[float] = []
    for join in pairs.joins:
        columns, rows = (join.a, join.rows_a) if side == "a" else (join.b, join.rows_b)
        is_compared = bytearray(len(columns.passed))
        for row in rows:
            is_compared[row] = 1
        values = zip(columns.latencies, columns.latency_rows, strict=True)
        latencies += [value for value, row in values if is_compared[row]]
    return sorted(latencies)


def _latency(ordered: list[list[float]], share: float, cases: int) -> Measure:
    """Return a quantile of the latencies, computed as in a summary."""
    a, b = (values[round(share * (len(values) - 1))] if values else None for values in ordered)
    difference = None if a is None or b is None else _round(b - a)
    return Measure(a=a, b=b, difference=difference, cases=cases)


def _round(number: float) -> float:
    return round(number, DIGITS)


def _ends(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if interval is None else (_round(interval[0]), _round(interval[1]))


MAX_CALLS = 200
"""More calls than this are pluralize, but not listed."""


def changed_counts(a: ResultRecord, b: ResultRecord) -> dict[str, tuple[int, int]] | UnsetType:
    """Return the tools with different numbers of calls; unset if the calls of a side are not all known."""
    if a.trace_summary is None or b.trace_summary is None or not _are_complete(a, b):
        return UNSET
    before, after = a.trace_summary.tool_calls_by_name, b.trace_summary.tool_calls_by_name
    counts = {tool: (before.get(tool, 0), after.get(tool, 0)) for tool in sorted({*before, *after})}
    return {tool: pair for tool, pair in counts.items() if pair[0] != pair[1]}


def call_pairs(a: ResultRecord, b: ResultRecord) -> tuple[CallPair, ...] | UnsetType:
    """Return the aligned calls of both sides; unset if a record has neither messages nor a trace, or not all calls."""
    if not _are_complete(a, b):
        return UNSET
    before, after = recorded_calls(a), recorded_calls(b)
    if before is None or after is None or max(len(before), len(after)) > MAX_CALLS:
        return UNSET
    return tuple(_aligned(before, after))


def _are_complete(*records: ResultRecord) -> bool:
    """Return whether all calls of these runs are known: a missing one would look like a difference."""
    return all(record.calls_complete is not False for record in records)


def recorded_calls(record: ResultRecord) -> tuple[ToolCall, ...] | None:
    """Return the calls of a run; `None` if the record does not hold all of them."""
    if not _are_complete(record):
        return None
    if record.messages:
        return tuple(call for message in record.messages for call in message.tool_calls)
    if record.trace:
        return calls_from_trace(record.trace)
    if not record.calls or record.trace_summary is None or len(record.calls) < record.trace_summary.event_count:
        return None
    return tuple(ToolCall(tool=call.tool, input=call.input) for call in record.calls)


def _aligned(before: Sequence[ToolCall], after: Sequence[ToolCall]) -> Iterator[CallPair]:
    ours, theirs = list(map(call_label, before)), list(map(call_label, after))
    for kind, first, last, start, end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (
                CallPair(verdict="match", a=ours[at], b=theirs[at + start - first]) for at in range(first, last)
            )
        else:
            yield from _unequal(
                list(zip(before[first:last], ours[first:last], strict=True)),
                list(zip(after[start:end], theirs[start:end], strict=True)),
            )


def _unequal(before: list[tuple[ToolCall, str]], after: list[tuple[ToolCall, str]]) -> Iterator[CallPair]:
    """Yield pairs of calls that differ: calls of the same tool beside each other in order, others alone."""
    at = 0
    for call, label in before:
        match = next((index for index in range(at, len(after)) if after[index][0].tool == call.tool), None)
        if match is None:
            yield CallPair(verdict="missing", a=label, b="")
            continue
        yield from (CallPair(verdict="extra", a="", b=other) for _, other in after[at:match])
        yield CallPair(verdict="mismatch", a=label, b=after[match][1])
        at = match + 1
    yield from (CallPair(verdict="extra", a="", b=other) for _, other in after[at:])
