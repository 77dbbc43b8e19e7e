"""First divergence: the call at which two groups of runs of one case part, with an exact test.

The calls of all runs are aligned into columns. Every property of the calls in a column (whether the call is there at
all, a value of its input, its status, a value of its output) is counted in both groups, and Fisher's exact test tells
whether it is more frequent in the second group. The first property that is, beyond chance, is the first divergence.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import count
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from agentv.matching.columns import InputKeys, align_calls, input_keys
from agentv.matching.diff import quote
from agentv.matching.equality import canonical_key, sorted_json
from agentv.model.comparison import AlignedCalls, Divergence, DivergenceKind, Divergences
from agentv.model.conversation import ToolCall
from agentv.scoring.statistics import fisher_exact

ALPHA = 0.05
"""Probability of calling any difference significant if the two groups do not differ."""
CLEAR = 0.01
"""The same for the search, which goes back to the first clear difference: an earlier one by chance would hide it."""
PASSING, FAILING = "passing", "failing"
MAX_LEAVES = 50
"""Values of one input or output that are looked at one by one; a larger one is looked at as a whole."""
MAX_DEPTH = 4
TOOL, INPUT, STATUS, OUTPUT = range(4)
"""Kinds of properties in the order in which they come about."""


_PLAIN = {str, int, float}
"""Types whose values are equal in JSON when they are equal in Python; `True` is not 1."""


class _Mark:
    """Value that no call has."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


_PRESENT, _ABSENT, _MOVED = _Mark("present"), _Mark("absent"), _Mark("moved")
_OTHER, _NOTHING = _Mark("other"), _Mark("nothing")


_ELSEWHERE = -1
"""Number in place of a call that a run makes in another column, where others do not make it."""


class _Property(NamedTuple):
    """Property of the calls in a column: a kind, a path, and the key of a value."""

    rank: int
    path: str
    key: Hashable


class _Finding(NamedTuple):
    """Property that is more frequent in the second group."""

    column: int
    what: _Property
    first: int
    second: int
    p_value: float

    @property
    def order(self) -> tuple[int, int, float, bool, str]:
        """Sort key: the earliest call, the earliest kind, the strongest association, a value before any other."""
        mark = self.what.key is _OTHER
        return self.column, self.what.rank, self.p_value, mark, self.what.path


Groups = tuple[int, int]
"""Number of runs in the first and in the second group."""


class _CountedColumn:
    """Calls of one column, counted."""

    def __init__(self, calls: dict[int | None, list[int]], known: Sequence["_Call"], totals: Groups) -> None:
        self._known = known
        self._paths: dict[tuple[int, str], dict[Hashable, list[int]]] = {}
        present = [0, 0]
        self._moved = calls.get(_ELSEWHERE, [0, 0])
        for number, counts in calls.items():
            if number is None or number == _ELSEWHERE:
                continue
            present = [present[0] + counts[0], present[1] + counts[1]]
            for rank, path, key in known[number].properties:
                cell = self._paths.setdefault((rank, path), {}).setdefault(key, [0, 0])
                cell[0] += counts[0]
                cell[1] += counts[1]
        self.present: Groups = (present[0], present[1])
        self.usual: dict[tuple[int, str], Hashable] = {}
        """Most common value in the first group at each path."""
        for place, values in self._paths.items():
            rest = [present[at] - sum(cell[at] for cell in values.values()) for at in (0, 1)]
            if any(rest):
                values[_NOTHING] = rest
            self.usual[place] = max(values.items(), key=_first_count)[0]
        self._totals = totals

    def counts(self) -> Iterator[tuple[tuple[int, str], Hashable, int, int]]:
        """Yield the kind and path, and the key of every property with its numbers of runs in both groups."""
        first, second = self.present
        yield (TOOL, ""), _PRESENT, first, second
        yield (TOOL, ""), _ABSENT, self._totals[0] - first - self._moved[0], self._totals[1] - second - self._moved[1]
        if any(self._moved):
            yield (TOOL, ""), _MOVED, self._moved[0], self._moved[1]
        for place, values in self._paths.items():
            usual = values[self.usual[place]]
            if not usual[0]:
                continue  # no run of the first group makes this call
            yield place, _OTHER, first - usual[0], second - usual[1]
            for key, cell in values.items():
                yield place, key, cell[0], cell[1]

    def properties(self, number: int | None) -> Iterator[_Property]:
        """Yield the properties that a call has in this column."""
        if number is None or number == _ELSEWHERE:
            yield _Property(TOOL, "", _ABSENT if number is None else _MOVED)
            return
        yield _Property(TOOL, "", _PRESENT)
        own = {(rank, path): key for rank, path, key in self._known[number].properties}
        for place in self._paths:
            key = own.get(place, _NOTHING)
            yield _Property(*place, key)
            if key != self.usual[place]:
                yield _Property(*place, _OTHER)


def _first_count(item: tuple[Hashable, list[int]]) -> int:
    return item[1][0]


class _Call:
    """Call with the keys of its values; equal calls are counted as one."""

    def __init__(self, call: ToolCall) -> None:
        self.values: dict[tuple[str, Hashable], Any] = {}
        self.properties: list[_Property] = []
        for rank, name, value in ((INPUT, "input", call.input), (OUTPUT, "output", call.output)):
            for path, leaf in _leaves(value, name):
                key = leaf if type(leaf) in _PLAIN else canonical_key(leaf)
                self.values[path, key] = leaf
                self.properties.append(_Property(rank, path, key))
        status = call.effective_status
        self.values["status", status] = status
        self.properties.append(_Property(STATUS, "status", status))


def _leaves(value: Any, path: str) -> list[tuple[str, Any]]:
    """Return the values inside of an object with their paths; of a large object, the whole."""
    if value is UNSET:
        return []
    found: list[tuple[str, Any]] = []
    todo = [(path, value, 0)]
    while todo:
        here, part, depth = todo.pop()
        if isinstance(part, dict) and part and depth < MAX_DEPTH:
            todo += [(f"{here}.{key}", item, depth + 1) for key, item in reversed(part.items())]
        else:
            found.append((here, part))
        if len(found) + len(todo) > MAX_LEAVES:
            return [(path, value)]
    return found


def find_divergences(
    runs: Sequence[Sequence[ToolCall]],
    second: Sequence[bool],
    aligned: AlignedCalls | None = None,
    names: tuple[str, str] = (PASSING, FAILING),
    inputs: InputKeys | None = None,
) -> Divergences:
    """Return the calls at which runs of the second group part from those of the first.

    `second` marks the runs of the second group, such as those that failed; `aligned` is the result of `align_calls`,
    and `inputs` that of `input_keys`.
    """
    if inputs is None:
        inputs = input_keys(runs)
    if aligned is None:
        aligned = align_calls(runs, [not each for each in second], inputs)
    if len(set(second)) < 2:  # noqa: PLR2004 - both groups
        return Divergences(None, (), tuple([index for index, each in enumerate(second) if each]))
    return _Search(runs, second, aligned, names, inputs).run()


class _Search:
    """Search for the divergences of two groups."""

    def __init__(
        self,
        runs: Sequence[Sequence[ToolCall]],
        second: Sequence[bool],
        aligned: AlignedCalls,
        names: tuple[str, str],
        inputs: InputKeys,
    ) -> None:
        self._second, self._aligned, self._names = second, aligned, names
        totals = self._totals = (len(second) - sum(second), sum(second))
        self._calls: list[_Call] = []
        self._rows = self._mark_moved(self._number_calls(runs, inputs))
        self._columns = self._count()
        self._findings = self._test()
        self._limit = _significance_limit(self._tested, totals, ALPHA)
        self._clear = _significance_limit(self._tested, totals, CLEAR)
        self._best: dict[tuple[int, int | None], _Finding | None] = {}
        self._values: dict[int, dict[tuple[str, Hashable], Any]] = {}
        """Values of the calls of each column by path and key."""

    def _number_calls(self, runs: Sequence[Sequence[ToolCall]], inputs: InputKeys) -> list[tuple[int | None, ...]]:
        """Return for each run the numbers of its calls by column; equal calls have the same number."""
        numbers: dict[Hashable, int] = {}
        rows: list[tuple[int | None, ...]] = []
        for run, own, cells in zip(runs, inputs, self._aligned.cells, strict=True):
            row: list[int | None] = []
            for cell in cells:
                if cell is None:
                    row.append(None)
                    continue
                call = run[cell]
                identity = (own[cell], _identity(call.output), call.effective_status)
                number = numbers.setdefault(identity, len(numbers))
                if number == len(self._calls):
                    self._calls.append(_Call(call))
                row.append(number)
            rows.append(tuple(row))
        return rows

    def _mark_moved(self, rows: list[tuple[int | None, ...]]) -> list[tuple[int | None, ...]]:
        """Mark the calls that a run lacks in their usual column and makes in another one: they are not missing."""
        present = [0] * len(self._aligned.tools)
        for row, is_second in zip(rows, self._second, strict=True):
            if not is_second:
                present = [count + (number is not None) for count, number in zip(present, row, strict=True)]
        columns: dict[str, tuple[list[int], list[int]]] = {}
        for column, tool in enumerate(self._aligned.tools):
            is_usual = 2 * present[column] > self._totals[0]
            columns.setdefault(tool, ([], []))[not is_usual].append(column)
        places = [(usual, other) for usual, other in columns.values() if usual and other]

        @cache
        def marked(row: tuple[int | None, ...]) -> tuple[int | None, ...]:
            cells = list(row)
            for usual, other in places:
                extra = sum(row[column] is not None for column in other)
                for column in [column for column in usual if row[column] is None][:extra]:
                    cells[column] = _ELSEWHERE
            return tuple(cells)

        return [marked(row) for row in rows] if places else rows

    def _count(self) -> list[_CountedColumn]:
        counted: list[dict[int | None, list[int]]] = [{} for _ in self._aligned.tools]
        distinct: tuple[Counter[tuple[int | None, ...]], ...] = (Counter(), Counter())
        for row, is_second in zip(self._rows, self._second, strict=True):
            distinct[is_second][row] += 1
        for group, rows in enumerate(distinct):
            for row, times in rows.items():
                for calls, number in zip(counted, row, strict=True):
                    calls.setdefault(number, [0, 0])[group] += times
        return [_CountedColumn(calls, self._calls, self._totals) for calls in counted]

    def _test(self) -> dict[tuple[int, _Property], _Finding]:
        """Return the properties that are more frequent in the second group, each with its p-value."""
        first_total, second_total = self._totals
        findings: dict[tuple[int, _Property], _Finding] = {}
        self._tested: Counter[int] = Counter()
        """Number of tested properties by the number of runs that have them."""
        p_value = lru_cache(maxsize=None)(lambda a, b: fisher_exact(a, first_total, b, second_total))
        for index, column in enumerate(self._columns):
            for place, key, first, second in column.counts():
                self._tested[first + second] += 1
                if second * first_total > first * second_total:
                    each = _Property(*place, key)
                    findings[index, each] = _Finding(index, each, first, second, p_value(first, second))
        return findings

    def run(self) -> Divergences:
        """Return the first divergence, and that of each run of the second group."""
        clusters: dict[_Finding, list[int]] = {}
        unexplained: list[int] = []
        known: dict[tuple[int | None, ...], _Finding | None] = {}
        for index, (row, is_second) in enumerate(zip(self._rows, self._second, strict=True)):
            if not is_second:
                continue
            if row not in known:
                known[row] = self._first_of(row)
            finding = known[row]
            if finding is None:
                unexplained.append(index)
            else:
                clusters.setdefault(finding, []).append(index)
        ordered = sorted(clusters.items(), key=lambda item: item[0].order)
        divergences = [self._divergence(finding, runs) for finding, runs in ordered]
        clear = [each for each in divergences if each.p_value <= self._clear]
        first = clear[0] if clear else min(divergences, key=lambda each: each.p_value, default=None)
        return Divergences(first, tuple(divergences), tuple(unexplained))

    def _first_of(self, row: tuple[int | None, ...]) -> _Finding | None:
        """Return the first clear property of a run; without one, that with the smallest p-value."""
        weakest: _Finding | None = None
        for cell in enumerate(row):
            if cell not in self._best:
                self._best[cell] = self._best_of(*cell)
            best = self._best[cell]
            if best is None:
                continue
            if best.p_value <= self._clear:
                return best
            weakest = best if weakest is None or best.p_value < weakest.p_value else weakest
        return weakest

    def _best_of(self, column: int, number: int | None) -> _Finding | None:
        """Return the first clear property of a call; without one, that with the smallest p-value."""
        found = [
            finding
            for each in self._columns[column].properties(number)
            if (finding := self._findings.get((column, each))) is not None
        ]
        clear = [finding for finding in found if finding.p_value <= self._clear]
        if clear:
            return min(clear, key=lambda finding: finding.order)
        return min(found, key=lambda finding: (finding.p_value, finding.order), default=None)

    def _divergence(self, finding: _Finding, runs: list[int]) -> Divergence:
        column, (rank, path, key) = finding.column, finding.what
        usual_key = self._columns[column].usual.get((rank, path), _NOTHING)
        divergence = Divergence(
            column=column,
            tool=self._aligned.tools[column],
            kind=self._kind(finding, runs),
            path=path if rank in (INPUT, OUTPUT) else UNSET,
            value=self._value(column, path, key),
            usual=self._value(column, path, usual_key) if rank != TOOL else UNSET,
            sentence="",
            first=finding.first,
            first_total=self._totals[0],
            second=finding.second,
            second_total=self._totals[1],
            p_value=finding.p_value,
            significant=finding.p_value <= self._limit,
            runs=tuple(runs),
        )
        return replace(divergence, sentence=self._sentence(divergence, is_any_other=key is _OTHER))

    def _value(self, column: int, path: str, key: Hashable) -> Any:
        """Return the value of a key in a column; unset for one of the marks."""
        if column not in self._values:
            numbers = dict.fromkeys([None if row[column] == _ELSEWHERE else row[column] for row in self._rows])
            values = self._values[column] = {}
            for number in reversed(numbers):  # the first of equal values stands
                values |= {} if number is None else self._calls[number].values
        return UNSET if isinstance(key, _Mark) else self._values[column].get((path, key), UNSET)

    def _kind(self, finding: _Finding, runs: list[int]) -> DivergenceKind:
        rank, _, key = finding.what
        if rank != TOOL:
            return ("input", "status", "output")[rank - 1]
        if key is _PRESENT and self._is_from_elsewhere(finding.column, runs):
            return "order"
        return _TOOL_KINDS[key]

    def _is_from_elsewhere(self, column: int, runs: list[int]) -> bool:
        """Return whether most of these runs lack the extra call in its usual column."""
        same = [other for other, tool in enumerate(self._aligned.tools) if tool == self._aligned.tools[column]]
        moved = sum(any(self._rows[run][other] == _ELSEWHERE for other in same) for run in runs)
        return 2 * moved > len(runs)

    def _sentence(self, divergence: Divergence, *, is_any_other: bool) -> str:
        first, second = (_phrase(name) for name in self._names)
        counts = (
            f"{divergence.second} of {divergence.second_total} {second},"
            f" {divergence.first} of {divergence.first_total} {first}"
        )
        return f"{self._words(divergence, is_any_other=is_any_other)}: {counts}"

    def _words(self, divergence: Divergence, *, is_any_other: bool) -> str:
        tool, kind = divergence.tool or "a call without a name", divergence.kind
        if kind in ("missing", "extra", "order"):
            before = self._before(divergence.column)
            place = f"after {before}" if before else "as the first call"
            missing = f"{tool} {place} is missing"
            words = {"missing": missing, "extra": f"{tool} is called {place}", "order": f"{tool} is out of order"}
            return words[kind]
        path = "status" if divergence.path is UNSET else divergence.path
        usual = "" if divergence.usual is UNSET else f"{quote(divergence.usual)}"
        if is_any_other:
            return f"{tool} has another {path} than {usual}" if usual else f"{tool} has {path}"
        if divergence.value is UNSET:
            return f"{tool} has no {path} (usually {usual})" if usual else f"{tool} has no {path}"
        common = f" (usually {usual})" if usual and divergence.usual != divergence.value else ""
        return f"{tool} has {path} {quote(divergence.value)}{common}"

    def _before(self, column: int) -> str:
        """Return the tool of the nearest column before, if most runs have a call in it."""
        for other in range(column - 1, -1, -1):
            if 2 * sum(self._columns[other].present) > sum(self._totals):
                return self._aligned.tools[other]
        return ""


_TOOL_KINDS: dict[Hashable, DivergenceKind] = {_ABSENT: "missing", _PRESENT: "extra", _MOVED: "order"}


def _identity(value: Any) -> Hashable:
    """Return a key that differs for different values; equal values may have two, which costs only time."""
    text = None if value is UNSET else sorted_json(value)
    return canonical_key(value) if text is None else text


def _phrase(name: str) -> str:
    return f"{name} runs" if name in (PASSING, FAILING) else f"runs of {name}"


def _significance_limit(tested: Counter[int], totals: Groups, alpha: float) -> float:
    """Return the largest p-value that is significant, corrected for the number of tests by Tarone's method.

    Properties of so few runs that no p-value could reach the limit do not count as tests.
    """
    first_total, second_total = totals
    smallest = sorted(
        (fisher_exact(number - min(number, second_total), first_total, min(number, second_total), second_total), times)
        for number, times in tested.items()
    )
    values = [value for value, times in smallest for _ in range(times)]
    divisor = next(number for number in count(1) if bisect_right(values, alpha / number) <= number)
    return alpha / divisor
