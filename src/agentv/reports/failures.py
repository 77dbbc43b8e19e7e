"""Runs that did not pass, grouped by equal reasons."""

from __future__ import annotations

from bisect import bisect, insort
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from agentv.reports.turns import case_name
from agentv.scoring.scorer import TURN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agentv.model.events import RunFinished
    from agentv.model.results import ResultRecord

MAX_GROUPS = 200
"""Groups that are kept, so that memory does not grow with the execution."""
MAX_RUNS = 200
"""Runs of one group that are kept by name."""
MAX_LISTED = 10
"""Cases that the line of a group lists."""
ALL = 1_000_000_000
CaseKey = tuple[str, str, str | None, str]
"""Eval, case, persona and target, which repetitions share."""


def case_key(record: ResultRecord) -> CaseKey:
    """Return the case, persona and target of a run."""
    return record.eval_id, record.case_id, record.persona_id or None, record.target


_REASONS = ("undecided", "error", TURN)
"""Details of a result that tell failures apart."""


def failure_key(record: ResultRecord) -> bytes:
    """Return a digest of the reasons why a run did not pass: equal for runs that failed in the same way."""
    error = record.error and (record.error.kind, record.error.message)
    reasons = [
        (result.name, result.type, result.status, result.misses, *map(result.details.get, _REASONS))
        for result in record.evaluators
        if result.status not in ("pass", "skipped")
    ]
    text = repr((record.status, error, reasons))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class FailedRun(NamedTuple):
    """A run that did not pass, by name."""

    order: int
    eval_id: str
    case_id: str
    target: str
    repeat: int
    status: str
    score: float | None
    attempts: int
    place: str
    persona_id: str | None = None

    @classmethod
    def of(cls, event: RunFinished) -> FailedRun:
        """Return the name of a run."""
        record = event.record
        return cls(
            event.order,
            record.eval_id,
            record.case_id,
            record.target,
            record.repeat,
            record.status,
            record.score,
            record.attempts,
            event.place,
            record.persona_id or None,
        )

    @property
    def case(self) -> CaseKey:
        """The case, persona and target, which repetitions share."""
        return self.eval_id, self.case_id, self.persona_id, self.target

    @property
    def name(self) -> str:
        """The id of the case, with its persona."""
        return case_name(self.case_id, self.persona_id)


class FailureGroup:
    """Runs that did not pass for the same reasons."""

    def __init__(self, key: bytes, run: FailedRun) -> None:
        self.key = key
        self.runs = [run]
        """The first runs in plan order."""
        self.count = 1
        self.body: tuple[str, ...] | None = None
        """The reasons of the first run as lines; `None` if only names are shown."""

    @property
    def first(self) -> FailedRun:
        """The first run in plan order."""
        return self.runs[0]

    @property
    def rank(self) -> tuple[int, int]:
        """Sort key of what is kept: failures before errors, each in plan order."""
        return int(self.first.status != "fail"), self.first.order

    def add(self, run: FailedRun) -> None:
        """Add a run."""
        insort(self.runs, run)
        del self.runs[MAX_RUNS:]
        self.count += 1

    def cases(self) -> list[list[FailedRun]]:
        """Return the runs by case and target, in plan order."""
        return [list(runs) for _, runs in groupby(self.runs, key=lambda run: run.case)]

    def others(self, format_: Callable[[list[FailedRun]], str]) -> list[str]:
        """Return the cases after the first, formatted, and the number of those that are not listed."""
        first, *others = self.cases()
        shown = others[:MAX_LISTED]
        more = self.count - len(first) - sum(map(len, shown))
        return [*map(format_, shown), *([f"{more:,} more"] if more else [])]


class FailureGroups:
    """Collects the runs of an execution that did not pass."""

    def __init__(
        self, render: Callable[[RunFinished], Iterable[str]], max_shown: int, *, is_grouped: bool = True
    ) -> None:
        self._render = render
        self._max_shown = max_shown
        """Groups whose reasons are shown."""
        self._max_kept = MAX_GROUPS if is_grouped else ALL
        self._is_grouped = is_grouped
        """`False` if every run is shown by itself."""
        self._by_key: dict[bytes, FailureGroup] = {}
        self._sorted: list[FailureGroup] = []
        self.dropped = 0
        """Number of runs in groups that are not kept."""

    def add(self, event: RunFinished) -> None:
        """Add a run that did not pass; runs may come in any order."""
        key = failure_key(event.record) if self._is_grouped else str(event.order).encode()
        run = FailedRun.of(event)
        group = self._by_key.get(key)
        if group is None:
            group = self._by_key[key] = FailureGroup(key, run)
        else:
            is_first = run < group.first
            if is_first:
                self._sorted.remove(group)
            group.add(run)
            if not is_first:
                return
        self._insert(group, event)

    def _insert(self, group: FailureGroup, event: RunFinished) -> None:
        """Insert a group by its first run, which is this one; render its reasons if it is one of those shown."""
        index = bisect(self._sorted, group.rank, key=lambda other: other.rank)
        group.body = tuple(self._render(event)) if index < self._max_shown else None
        self._sorted.insert(index, group)
        for hidden in self._sorted[self._max_shown : self._max_shown + 1]:
            hidden.body = None
        if len(self._sorted) > self._max_kept:
            last = self._sorted.pop()
            del self._by_key[last.key]
            self.dropped += last.count

    def __iter__(self) -> Iterator[FailureGroup]:
        """Return errors, then failures, which so stand next to the summary."""
        return iter(sorted(self._sorted, key=lambda group: (-group.rank[0], group.rank[1])))


def which_runs(runs: Sequence[FailedRun]) -> str:
    """Return the numbers of repetitions, from 1: `runs 1 to 5, 8`."""
    spans: list[list[int]] = []
    for run in runs:
        number = run.repeat + 1
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    numbers = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in spans)
    return f"{'run' if len(runs) == 1 else 'runs'} {numbers}"
