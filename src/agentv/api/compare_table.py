"""One side of a comparison in columns of numbers: a few dozen bytes a case, beside its name."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from agentv.errors import FormatError, suggest
from agentv.model.comparison import CaseSide

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.api.compare_source import Source
    from agentv.model.record import ResultRecord

AMOUNTS = ("input_tokens", "output_tokens", "cost_usd")
MAX_NAMED = 5
MAX_REPEATS = 100_000
"""As many as can be asked for."""
MAX_AMOUNT = 1e15
"""No number of tokens, dollars or milliseconds is larger, and the squares of these can still be summed."""


class Half:
    """The cases of one target of one side, repetitions put together."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, int]] = {}
        """By eval and case."""
        self.passed, self.failed, self.errors = array("I"), array("I"), array("I")
        self._scores = array("d")
        self._amounts = {name: (array("d"), array("I")) for name in AMOUNTS}
        self.latencies, self.latency_rows = array("d"), array("I")
        self.passing, self.failing = array("q"), array("q")
        """Where the first run that passed, and the first that failed, is found again."""
        self.answered = array("q")
        """Where the first run that has an answer is, whatever the evaluators made of it."""
        self._seen: list[int] = []
        """Which repetitions there were, a bit each."""

    def add(self, record: ResultRecord, place: int) -> bool:
        """One more run; false when it was there before."""
        row = self._row(record)
        bit = 1 << record.repeat
        if self._seen[row] & bit:
            return False
        self._seen[row] |= bit
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
        self._scores[row] += min(1.0, max(0.0, record.score or 0.0))
        usage = record.tokens_usage
        if usage is not None:
            self._add_amount("input_tokens", row, usage.input_tokens)
            self._add_amount("output_tokens", row, usage.output_tokens)
        self._add_amount("cost_usd", row, record.cost_usd)
        if record.latency_ms is not None and abs(record.latency_ms) <= MAX_AMOUNT:
            self.latencies.append(record.latency_ms)
            self.latency_rows.append(row)
        return True

    def _row(self, record: ResultRecord) -> int:
        cases = self.rows.setdefault(record.eval_id, {})
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
            self._seen.append(0)
        return row

    def _add_amount(self, name: str, row: int, amount: float | None) -> None:
        if amount is not None and abs(amount) <= MAX_AMOUNT:
            total, count = self._amounts[name]
            total[row] += amount
            count[row] += 1

    def measured(self, row: int) -> int:
        """How many runs could be measured."""
        return self.passed[row] + self.failed[row]

    def passes(self, row: int) -> bool:
        """Whether more than half of them passed."""
        return self.passed[row] > self.failed[row]

    def flaky(self, row: int) -> bool:
        """Whether it both passed and failed."""
        return bool(self.passed[row] and self.failed[row])

    def score(self, row: int) -> float:
        """The mean over the runs that could be measured, of which there must be one."""
        return self._scores[row] / self.measured(row)

    def pass_rate(self, row: int) -> float:
        """The share of the runs that could be measured, of which there must be one."""
        return self.passed[row] / self.measured(row)

    def amount(self, name: str, row: int) -> float | None:
        """The mean over the runs that reported it."""
        total, count = self._amounts[name]
        return total[row] / count[row] if count[row] else None

    def case_side(self, row: int) -> CaseSide:
        """The row as a value."""
        score = round(self.score(row), 6) if self.measured(row) else None
        return CaseSide(passed=self.passed[row], failed=self.failed[row], errors=self.errors[row], score=score)

    def each(self) -> Iterator[tuple[str, str, int]]:
        """Eval, case and row, as they came."""
        for eval_id, cases in self.rows.items():
            for case_id, row in cases.items():
                yield eval_id, case_id, row


class Sheet:
    """Everything that one side holds, target by target."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.halves: dict[str, Half] = {}
        executions: dict[str, None] = {}
        for place, record in source.records():
            executions[record.execution_id] = None
            if not 0 <= record.repeat < MAX_REPEATS:
                msg = f"{source.name}: case {record.case_id!r} says `repeat: {record.repeat}`, which cannot be"
                raise FormatError(msg)
            if not self.halves.setdefault(record.target, Half()).add(record, place):
                again = f" (repetition {record.repeat + 1})" if record.repeat else ""
                msg = (
                    f"{source.name} holds case {record.case_id!r} of {record.eval_id!r} twice{again}, with target"
                    f" {record.target!r}: give the results of one execution"
                )
                raise FormatError(msg)
        if not self.halves:
            msg = f"{source.name} holds no results"
            raise FormatError(msg)
        self.execution_ids = tuple(executions)


def pair_targets(a: Sheet, b: Sheet, target_a: str | None, target_b: str | None) -> list[tuple[str, str]]:
    """Which target of A is held against which of B: one against one whatever they are called, else by name."""
    ours, theirs = _chosen(a, target_a, "a"), _chosen(b, target_b, "b")
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


def _chosen(sheet: Sheet, target: str | None, side: str) -> list[str]:
    if target is None:
        return list(sheet.halves)
    if target not in sheet.halves:
        hint = suggest(target, sheet.halves) or f"; it has {_listed(list(sheet.halves))}"
        msg = f"--target-{side}: {sheet.source.name} has no target {target!r}{hint}"
        raise FormatError(msg)
    return [target]


def _listed(names: list[str]) -> str:
    return ", ".join([*map(repr, names[:MAX_NAMED]), *(["…"] if len(names) > MAX_NAMED else [])])
