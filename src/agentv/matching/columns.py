"""Align the tool calls of several runs into common columns."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from msgspec import UNSET

from agentv.matching.alignment import longest_sequence
from agentv.matching.equality import canonical_key
from agentv.model.comparison import AlignedCalls
from agentv.model.conversation import ToolCall

MAX_PAIRS = 20_000
"""Number of pairs (call, column) up to which they are weighed; beyond, only the names of tools are aligned."""
MAX_CALLS = 2_000
"""Calls of a run that are aligned; later ones are ignored."""
SAME_CALL, SAME_TOOL = 8, 5
"""Similarity of two calls: two that are the same count more than one, and less than two, of the same tool alone."""
SUPPORT = 3
"""A tool that every run calls counts as much more, in relation to one that hardly any run calls."""


class _Key(NamedTuple):
    """Identity of a call in an alignment."""

    tool: str
    input: Hashable
    is_common: bool = True
    """`False` for a call that only one run makes: such calls differ in their tools alone, and `input` is not set."""


_Sequence = tuple[_Key, ...]
"""Calls of a run."""


class _Column:
    """Column while runs are added to it."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.keys: set[_Key] = set()
        self.runs = 0


InputKeys = Sequence[Sequence[Hashable]]
"""Keys of the inputs of all calls of each run."""


def input_keys(runs: Sequence[Sequence[ToolCall]]) -> list[list[Hashable]]:
    """Return keys of the inputs of all calls that are aligned, which are equal for equal inputs."""
    return [[UNSET if call.input is UNSET else canonical_key(call.input) for call in run[:MAX_CALLS]] for run in runs]


def align_calls(
    runs: Sequence[Sequence[ToolCall]], leading: Sequence[bool] | None = None, inputs: InputKeys | None = None
) -> AlignedCalls:
    """Align the calls of several runs: calls of one tool, and preferably with the same input, share a column.

    Runs are added one by one to the columns of those before: runs marked in `leading` first, the most frequent
    sequences of calls first. A call that no column fits gets a new one. In the end every run moves to the columns that
    most runs use.
    """
    keys = _call_keys(runs, input_keys(runs) if inputs is None else inputs)
    counts = Counter(keys)
    leaders = Counter(sequence for sequence, leads in zip(keys, leading or [True] * len(keys), strict=True) if leads)
    aligner = _Aligner(_support(counts))
    placed: dict[_Sequence, list[_Column]] = {}
    for sequence in sorted(counts, key=lambda sequence: (-leaders[sequence], -counts[sequence])):
        placed[sequence] = aligner.add(sequence, counts[sequence])
    aligner.settle(placed, counts)
    used = {id(column) for own in placed.values() for column in own}
    columns = [column for column in aligner.columns if id(column) in used]
    position = {id(column): index for index, column in enumerate(columns)}
    rows: dict[_Sequence, tuple[int | None, ...]] = {}
    for sequence, own in placed.items():
        row: list[int | None] = [None] * len(columns)
        for call, column in enumerate(own):
            row[position[id(column)]] = call
        rows[sequence] = tuple(row)
    return AlignedCalls(tuple(column.tool for column in columns), tuple(rows[sequence] for sequence in keys))


def _support(counts: Counter[_Sequence]) -> dict[str, int]:
    """Return the weight of each tool, which grows with the share of the runs that call it."""
    runs: Counter[str] = Counter()
    for sequence, times in counts.items():
        for tool in {key.tool for key in sequence}:
            runs[tool] += times
    return {tool: 10 + 10 * SUPPORT * times // counts.total() for tool, times in runs.items()}


def _call_keys(runs: Sequence[Sequence[ToolCall]], inputs: InputKeys) -> list[_Sequence]:
    keys = [
        [_Key(call.tool, key) for call, key in zip(run, own, strict=False)]
        for run, own in zip(runs, inputs, strict=True)
    ]
    counts = Counter(key for sequence in keys for key in set(sequence))
    return [
        tuple([key if counts[key] > 1 else _Key(key.tool, UNSET, is_common=False) for key in sequence])
        for sequence in keys
    ]


Candidates = list[tuple[int, int]]
"""Columns that a call fits, in order, each with a weight."""


class _Aligner:
    """Columns of the runs so far, to which the next run is added."""

    def __init__(self, support: dict[str, int]) -> None:
        self.columns: list[_Column] = []
        self._support = support
        self._by_tool: dict[str, list[tuple[int, _Column]]] = {}
        """Columns of each tool with their positions."""

    def add(self, sequence: _Sequence, times: int) -> list[_Column]:
        """Return the column of each call of a run, after adding the columns that are missing."""
        pairs = self._align(sequence)
        own: list[_Column] = []
        inserted: list[tuple[int, _Column]] = []
        following = len(self.columns)
        for call in range(len(sequence) - 1, -1, -1):
            at = pairs.get(call)
            if at is None:
                column = _Column(sequence[call].tool)
                inserted.append((following, column))
            else:
                column, following = self.columns[at], at
            column.runs += times
            column.keys.add(sequence[call])
            own.append(column)
        for at, column in inserted:  # from the last to the first
            self.columns.insert(at, column)
        if inserted:
            self._by_tool = {}
            for position, column in enumerate(self.columns):
                self._by_tool.setdefault(column.tool, []).append((position, column))
        return own[::-1]

    def settle(self, placed: dict[_Sequence, list[_Column]], counts: Counter[_Sequence]) -> None:
        """Move calls of tools with several columns to those that most runs use, without adding any."""
        total = counts.total()
        for sequence in placed:
            columns = [len(self._by_tool[key.tool]) for key in sequence]
            if sum(columns) > MAX_PAIRS or sum(columns) == len(columns):
                continue
            rows = [
                [
                    (position, _similarity(key, column) * (10 + 10 * SUPPORT * column.runs // total))
                    for position, column in self._by_tool[key.tool]
                ]
                for key in sequence
            ]
            # All calls have a column, and keep one: any match counts more than all preferences together.
            most = 1 + sum([max(weight for _, weight in row) for row in rows])
            pairs = _heaviest([[(position, most + weight) for position, weight in row] for row in rows])
            placed[sequence] = [self.columns[column] for _, column in pairs]

    def _align(self, sequence: _Sequence) -> dict[int, int]:
        """Return the columns of the calls that fit one, by the index of the call."""
        columns = [self._by_tool.get(key.tool, ()) for key in sequence]
        if sum(map(len, columns)) > MAX_PAIRS:
            return self._by_name(sequence)
        rows = [
            [(position, _similarity(key, column) * self._support[key.tool]) for position, column in fitting]
            for key, fitting in zip(sequence, columns, strict=True)
        ]
        return dict(_heaviest(rows))

    def _by_name(self, sequence: _Sequence) -> dict[int, int]:
        masks = {tool: sum(1 << position for position, _ in fitting) for tool, fitting in self._by_tool.items()}
        rows = [masks.get(key.tool, 0) for key in sequence]
        return {call: column for column, call in longest_sequence(rows, len(self.columns))}


def _similarity(key: _Key, column: _Column) -> int:
    return SAME_CALL if key.is_common and key in column.keys else SAME_TOOL


def _heaviest(rows: Sequence[Candidates]) -> list[tuple[int, int]]:
    """Return the pairs (call, column) in order with the greatest total weight, the earliest calls and columns first.

    The frontier holds, by column, the best total of pairs up to there; it only grows with the column.
    """
    columns: list[int] = []
    totals: list[int] = []
    ends: list[int] = []
    nodes: list[tuple[int, int, int]] = []
    """Pairs, each with the number of the pair before."""
    for call, row in enumerate(rows):
        found: list[tuple[int, int, int]] = []
        for column, weight in row:
            at = bisect_left(columns, column)
            found.append((column, weight + totals[at - 1], ends[at - 1]) if at else (column, weight, -1))
        for column, total, before in found:
            at = bisect_right(columns, column)
            if at and totals[at - 1] >= total:
                continue
            start = at - 1 if at and columns[at - 1] == column else at
            while at < len(totals) and totals[at] <= total:
                at += 1
            columns[start:at], totals[start:at], ends[start:at] = [column], [total], [len(nodes)]
            nodes.append((call, column, before))
    pairs: list[tuple[int, int]] = []
    node = ends[-1] if ends else -1
    while node >= 0:
        call, column, node = nodes[node]
        pairs.append((call, column))
    return pairs[::-1]
