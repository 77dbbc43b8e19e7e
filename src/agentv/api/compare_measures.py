"""The cases of both sides joined, and everything that is set side by side."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from agentv.model.comparison import CaseName, Measure, Measures
from agentv.scoring.paired import paired_bootstrap, paired_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.api.compare_table import Half, Sheet

DIGITS = 9
_EQUAL = 12
"""Digits after which two means of the same scores may differ by rounding alone."""


class Pair(NamedTuple):
    """One case on both sides."""

    name: CaseName
    a: Half
    row_a: int
    b: Half
    row_b: int

    @property
    def is_flaky(self) -> bool:
        """Whether it both passed and failed on either side."""
        return self.a.flaky(self.row_a) or self.b.flaky(self.row_b)

    @property
    def is_clear_loss(self) -> bool:
        """Of a case that was lost: whether no run of either side says otherwise."""
        return not self.is_flaky


class Join(NamedTuple):
    """The rows of one target on either side that belong together and could be measured."""

    a: Half
    b: Half
    rows_a: array[int]
    rows_b: array[int]


class Pairs:
    """Everything that was matched, and what was not."""

    def __init__(self, targets: Sequence[tuple[str, str]]) -> None:
        self.targets = targets
        self.joins: list[Join] = []
        self.matched = self.cases = self.both_passed = self.both_failed = self.lost_to_errors = 0
        self.scores_differing = 0
        self.scores_tell_more = False
        """Whether they are more than pass and fail in other words, of which a second test would prove nothing."""
        self.won: list[Pair] = []
        self.lost: list[Pair] = []
        self.not_measured: list[CaseName] = []
        self.only_a: list[CaseName] = []
        self.only_b: list[CaseName] = []

    def add(self, eval_id: str, case_id: str, target: str | None, join: Join, rows: tuple[int, int]) -> None:
        """One case that both sides have."""
        self.matched += 1
        (a, b), (row_a, row_b) = join[:2], rows
        if not a.measured(row_a) or not b.measured(row_b):
            self.not_measured.append(CaseName(eval_id=eval_id, case_id=case_id, target=target))
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
        name = CaseName(eval_id=eval_id, case_id=case_id, target=target)
        (self.won if after else self.lost).append(Pair(name, a, row_a, b, row_b))


def gather(first: Sheet, second: Sheet, targets: Sequence[tuple[str, str]]) -> Pairs:
    """The cases of these targets, joined by eval and id."""
    pairs = Pairs(targets)
    for ours, theirs in targets:
        a, b = first.halves[ours], second.halves[theirs]
        join = Join(a, b, array("I"), array("I"))
        pairs.joins.append(join)
        target = ours if ours == theirs else None
        for eval_id, case_id, row_a in a.each():
            row_b = b.rows.get(eval_id, {}).get(case_id)
            if row_b is None:
                pairs.only_a.append(CaseName(eval_id=eval_id, case_id=case_id, target=ours))
            else:
                pairs.add(eval_id, case_id, target, join, (row_a, row_b))
        for eval_id, case_id, _ in b.each():
            if case_id not in a.rows.get(eval_id, {}):
                pairs.only_b.append(CaseName(eval_id=eval_id, case_id=case_id, target=theirs))
    return pairs


def measure(pairs: Pairs, seed: int, confidence: float) -> Measures:
    """Every number of both sides, over the cases that both could measure."""
    scores, rates = (array("d"), array("d")), (array("d"), array("d"))
    for join in pairs.joins:
        scores[0].extend(map(join.a.score, join.rows_a))
        scores[1].extend(map(join.b.score, join.rows_b))
        rates[0].extend(map(join.a.pass_rate, join.rows_a))
        rates[1].extend(map(join.b.pass_rate, join.rows_b))
    pairs.scores_differing = sum(round(b - a, _EQUAL) != 0 for a, b in zip(*scores, strict=True))
    latency = [_latencies(pairs, side) for side in ("a", "b")]
    once = all(rate in (0.0, 1.0) for side in rates for rate in side)
    pairs.scores_tell_more = not once or scores != rates
    return Measures(
        pass_rate=_pass_rate(pairs, confidence) if once else _means(*rates, seed, confidence),
        score=_means(*scores, seed, confidence),
        input_tokens=_amount(pairs, "input_tokens", seed, confidence),
        output_tokens=_amount(pairs, "output_tokens", seed, confidence),
        cost_usd=_amount(pairs, "cost_usd", seed, confidence),
        latency_p50_ms=_latency(latency, 0.5, pairs.cases),
        latency_p95_ms=_latency(latency, 0.95, pairs.cases),
    )


def _pass_rate(pairs: Pairs, confidence: float) -> Measure:
    """Of cases each of which either passed or failed: then there is a better interval than the bootstrap's."""
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
    """A number that not every run reports: over the cases of which both sides know it."""
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
    a, b = (_round(sum(each) / len(each)) if each else None for each in alone)
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
    """Of every run of the cases that are compared, in order of size."""
    found: list[float] = []
    for join in pairs.joins:
        half: Half = getattr(join, side)
        wanted = bytearray(len(half.passed))
        for row in getattr(join, f"rows_{side}"):
            wanted[row] = 1
        found += [value for value, row in zip(half.latencies, half.latency_rows, strict=True) if wanted[row]]
    return sorted(found)


def _latency(ordered: list[list[float]], share: float, cases: int) -> Measure:
    """The same quantile as in a summary."""
    a, b = (each[round(share * (len(each) - 1))] if each else None for each in ordered)
    difference = None if a is None or b is None else _round(b - a)
    return Measure(a=a, b=b, difference=difference, cases=cases)


def _round(number: float) -> float:
    return round(number, DIGITS)


def _ends(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if interval is None else (_round(interval[0]), _round(interval[1]))
