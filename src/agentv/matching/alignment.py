"""Longest common subsequences and largest assignments, plain and weighted.

Everything works on *rows*: one integer per call whose bit `i` says that the call meets expectation `i`.
A pair is (expectation, call). Among the largest alignments the earliest calls win, then the earliest
expectations.

A *worth* maps a pair to (limits kept, limits not broken): a call that reported no time breaks nothing, an
expectation without a call does. The largest alignment is taken; among those the one that keeps most limits; then
the earliest calls; then the one that breaks fewest; then the earliest expectations.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

Pair = tuple[int, int]
# Above this many bits, rows are transposed as text, which is done in C.
MANY_BITS = 50_000


def subsequence(rows: list[int], wanted: int) -> list[Pair] | None:
    """Return all expectations in order at their earliest calls; `None` if they are no subsequence."""
    pairs: list[Pair] = []
    if wanted:
        bit = 1
        for call, row in enumerate(rows):
            if row & bit:
                pairs.append((len(pairs), call))
                if len(pairs) == wanted:
                    return pairs
                bit <<= 1
        return None
    return pairs


def longest_sequence(rows: list[int], wanted: int) -> list[Pair]:
    """Return the longest common subsequence by bit-parallel rows: 1,000 by 1,000 take about a millisecond."""
    complete_sequence = subsequence(rows, wanted)
    if complete_sequence is not None:
        return complete_sequence
    # Bits are mirrored and calls processed backwards, so that the rows describe what is still possible from a
    # given call and expectation on, as needed to choose the *earliest* calls.
    mirrored = _mirror(rows, wanted)
    full = (1 << wanted) - 1
    ahead = [full] * (len(rows) + 1)
    state = full
    for call in range(len(rows) - 1, -1, -1):
        hit = state & mirrored[call]
        if hit:
            state = ((state + hit) | (state - hit)) & full
        ahead[call] = state
    pairs: list[Pair] = []
    left = wanted
    remaining = wanted - ahead[0].bit_count()
    for call, row in enumerate(mirrored):
        if not remaining:
            break
        top = (row & ((1 << left) - 1)).bit_length()
        # The number of zeros among the low bits is the longest sequence still possible after this pair.
        if top and (top - 1) - (ahead[call + 1] & ((1 << (top - 1)) - 1)).bit_count() == remaining - 1:
            pairs.append((wanted - top, call))
            left = top - 1
            remaining -= 1
    return pairs


def _mirror(rows: list[int], width: int) -> list[int]:
    known: dict[int, int] = {0: 0}
    for row in rows:
        if row not in known:
            if row & (row - 1):
                known[row] = int(f"{row:0{width}b}"[::-1], 2)
            else:
                known[row] = 1 << (width - row.bit_length())
    return [known[row] for row in rows]


def largest_assignment(rows: list[int], wanted: int) -> list[Pair]:
    """Return a maximum matching between expectations and calls, in any order."""
    if wanted == 1:
        return [(0, call) for call, row in enumerate(rows) if row][:1]
    by_call = _augment(rows, wanted)
    if len(by_call) < wanted:
        # The calls are the earliest possible; now pair them with the earliest expectations.
        calls = sorted(by_call)
        by_expectation = _augment(_columns([rows[call] for call in calls], wanted), len(calls))
        return [(expectation, calls[position]) for expectation, position in sorted(by_expectation.items())]
    return sorted((expectation, call) for call, expectation in by_call.items())


def _columns(rows: list[int], width: int) -> list[int]:
    """Return for each column the rows that have it, as bits."""
    alike: dict[int, int] = {}
    for place, row in enumerate(rows):
        alike[row] = alike.get(row, 0) | 1 << place
    if sum(map(int.bit_count, alike)) > MANY_BITS:
        texts = [f"{row:0{width}b}" for row in reversed(rows)]
        return [int("".join(column), 2) for column in zip(*texts, strict=True)][::-1]
    columns = [0] * width
    for row, places in alike.items():
        for column in bits(row):
            columns[column] |= places
    return columns


def _augment(rows: list[int], width: int) -> dict[int, int]:
    """Return a maximum matching (row -> column) that never gives up an earlier row for a later one."""
    greedy = _scarcest_first(rows, width)
    return greedy if len(greedy) == len(rows) else complete(rows, width, {})


def complete(rows: list[int], width: int, begun: dict[int, int]) -> dict[int, int]:
    """Extend a matching (row -> column) to a maximum one; matched rows stay matched, maybe to another column."""
    owner = [-1] * width
    chosen = dict(begun)
    free = (1 << width) - 1
    for row, column in begun.items():
        owner[column] = row
        free ^= 1 << column
    dead = 0
    for start, mask in enumerate(rows):
        if start in begun:
            continue
        direct = mask & free
        if direct:
            lowest = direct & -direct
            free ^= lowest
            chosen[start] = lowest.bit_length() - 1
            owner[chosen[start]] = start
            continue
        reached, end, seen = _search(rows, start, owner, free, dead)
        if end < 0:
            # Nothing that this search reached can lead to a free column later.
            dead = seen
            continue
        free ^= 1 << end
        column = end
        while column >= 0:
            row = reached[column]
            owner[column] = row
            column, chosen[row] = chosen.get(row, -1), column
    return chosen


def _scarcest_first(rows: list[int], width: int) -> dict[int, int]:
    """Match the rows with fewest columns first, which nearly always gives a maximum matching."""
    chosen: dict[int, int] = {}
    free = (1 << width) - 1
    for row in sorted(range(len(rows)), key=[row.bit_count() for row in rows].__getitem__):
        open_columns = rows[row] & free
        if not open_columns:
            break
        lowest = open_columns & -open_columns
        free ^= lowest
        chosen[row] = lowest.bit_length() - 1
    return chosen


def _search(rows: list[int], start: int, owner: list[int], free: int, seen: int) -> tuple[dict[int, int], int, int]:
    """Search breadth-first from a row to a free column: (column -> previous row, that column or -1, seen)."""
    reached: dict[int, int] = {}
    queue = [start]
    for row in queue:
        fresh = rows[row] & ~seen
        if fresh & free:
            end = next(bits(fresh & free))
            reached[end] = row
            return reached, end, seen
        seen |= fresh
        for column in bits(fresh):
            reached[column] = row
            queue.append(owner[column])
    return reached, -1, seen


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the set bits, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


Worth = dict[Pair, tuple[int, int]]

# Above this many cells, weights ignore the order of calls: they would be integers of that many bits.
MAX_EXACT_CELLS = 40_000
# Above this many steps, a component is not weighed pair by pair.
MAX_STEPS = 3_000_000
# Above this many kinds of calls, these are not weighed either.
MAX_KINDS = 100


def weigh(rows: list[int], wanted: int, worth: Worth) -> list[dict[int, int]]:
    """Return for each call expectation -> weight, such that sums of weights rank by the rules above."""
    calls = len(rows)
    limits = 1 + wanted * max((unbroken for _, unbroken in worth.values()), default=0)
    exact = calls * wanted <= MAX_EXACT_CELLS
    weights: list[dict[int, int]] = []
    for call, row in enumerate(rows):
        early = 1 << (calls - 1 - call) if exact else 0
        ranks: dict[int, int] = {}
        for expectation in bits(row):
            kept, unbroken = worth.get((expectation, call), (0, 0))
            size_and_kept = (limits + kept) << (calls if exact else 0)
            weight = (size_and_kept + early) * limits + unbroken
            ranks[expectation] = (weight << wanted) + (1 << (wanted - 1 - expectation)) if exact else weight
        weights.append(ranks)
    return weights


def heaviest_sequence(rows: list[int], wanted: int, worth: Worth) -> list[Pair]:
    """Return the in-order alignment of the greatest weight."""
    weights = weigh(rows, wanted, worth)
    best = [[0] * (wanted + 1) for _ in range(len(rows) + 1)]
    for call in range(len(rows) - 1, -1, -1):
        after, here, ranks = best[call + 1], best[call], weights[call]
        for expectation in range(wanted - 1, -1, -1):
            skip = max(after[expectation], here[expectation + 1])
            rank = ranks.get(expectation)
            here[expectation] = skip if rank is None else max(skip, rank + after[expectation + 1])
    pairs: list[Pair] = []
    expectation = 0
    for call in range(len(rows)):
        while expectation < wanted and best[call][expectation] == best[call][expectation + 1]:
            expectation += 1
        if best[call][expectation] == best[call + 1][expectation]:
            continue
        # The best value needs this call, paired with the current expectation.
        pairs.append((expectation, call))
        expectation += 1
    return pairs


def heaviest_assignment(rows: list[int], worth: Worth) -> list[Pair]:
    """Return the order-free alignment of the greatest weight, computed per connected component."""
    pairs: list[Pair] = []
    for expectations, calls in _parts(rows):
        place = {expectation: position for position, expectation in enumerate(expectations)}
        part = [sum(1 << place[expectation] for expectation in bits(rows[call])) for call in calls]
        own = {
            (place[expectation], position): worth[expectation, call]
            for position, call in enumerate(calls)
            for expectation in bits(rows[call])
            if (expectation, call) in worth
        }
        edges = sum(row.bit_count() for row in part)
        solve = _by_paths if edges * min(len(calls), len(expectations)) <= MAX_STEPS else _by_kinds
        pairs += [(expectations[e], calls[a]) for e, a in solve(part, len(expectations), own)]
    return sorted(pairs)


def _parts(rows: list[int]) -> list[tuple[list[int], list[int]]]:
    """Return the connected components: expectations and calls that can only be paired among themselves."""
    masks: list[int] = []
    for row in dict.fromkeys(rows):
        merged = row
        apart = []
        for mask in masks:
            if mask & merged:
                merged |= mask
            else:
                apart.append(mask)
        masks = [*apart, merged] if merged else apart
    part_of = {expectation: number for number, mask in enumerate(masks) for expectation in bits(mask)}
    calls: list[list[int]] = [[] for _ in masks]
    for call, row in enumerate(rows):
        if row:
            calls[part_of[next(bits(row))]].append(call)
    return [(list(bits(mask)), calls[number]) for number, mask in enumerate(masks)]


def _by_kinds(rows: list[int], wanted: int, worth: Worth) -> list[Pair]:
    """Solve a large component by kinds: calls that are alike are weighed as one, and so are expectations."""
    kinds: dict[Any, list[int]] = {}
    for call, row in enumerate(rows):
        kinds.setdefault(tuple([(row >> e & 1, worth.get((e, call))) for e in range(wanted)]), []).append(call)
        if len(kinds) > MAX_KINDS:
            return _greedy_by_limits(rows, wanted, worth)
    rows_by_kind: list[Any] = list(kinds)
    calls = list(kinds.values())
    columns: dict[Any, list[int]] = {}
    for expectation, column in enumerate(zip(*rows_by_kind, strict=True)):
        columns.setdefault(column, []).append(expectation)
    expectations = list(columns.values())
    limits = 1 + wanted * max((unbroken for _, unbroken in worth.values()), default=0)
    weights: list[dict[int, int]] = []
    for cells in rows_by_kind:
        columns_of = [(kind, cells[same[0]]) for kind, same in enumerate(expectations)]
        accepted = [(kind, value or (0, 0)) for kind, (accepts, value) in columns_of if accepts]
        weights.append({kind: (limits + kept) * limits + unbroken for kind, (kept, unbroken) in accepted})
    pairs: list[Pair] = []
    for (call, kind), times in _shares(weights, [len(c) for c in calls], [len(e) for e in expectations]).items():
        pairs += [(expectations[kind].pop(0), calls[call].pop(0)) for _ in range(times)]
    return sorted(pairs)


def _shares(weights: list[dict[int, int]], calls: list[int], room: list[int]) -> dict[Pair, int]:
    """Return how many calls of each kind are paired with each kind of expectations, at the greatest weight."""
    flow: dict[Pair, int] = {}
    while path := _best_shift(weights, calls, room, flow):
        # Each step of the path but the first frees what the step before it needs.
        back = [(call, kind) for (call, _), (_, kind) in pairwise(path)]
        times = min(calls[path[-1][0]], room[path[0][1]], *[flow[pair] for pair in back])
        for pair in back:
            flow[pair] -= times
        for pair in path:
            flow[pair] = flow.get(pair, 0) + times
        calls[path[-1][0]] -= times
        room[path[0][1]] -= times
    return flow


def _best_shift(
    weights: list[dict[int, int]], calls: list[int], room: list[int], flow: dict[Pair, int]
) -> list[Pair] | None:
    """Return the best path of kinds, as (kind of calls, kind of expectations) from end to start."""
    gain: dict[int, int] = {}
    reached: dict[int, int] = {}
    base = {call: 0 for call, left in enumerate(calls) if left}
    queue, freed = list(base), dict.fromkeys(base, -1)
    while queue:
        changed: dict[int, None] = {}
        for call in queue:
            for kind, weight in weights[call].items():
                total = base[call] + weight
                if kind in gain and total <= gain[kind]:
                    continue
                gain[kind], reached[kind] = total, call
                for holder in [holder for holder, held in flow if held == kind and flow[holder, held]]:
                    rest = total - weights[holder][kind]
                    if holder not in base or rest > base[holder]:
                        base[holder], freed[holder] = rest, kind
                        changed[holder] = None
        queue = list(changed)
    ends = [(total, kind) for kind, total in gain.items() if room[kind]]
    if not ends:
        return None
    kind = max(ends)[1]
    path: list[Pair] = []
    while kind >= 0:
        path.append((reached[kind], kind))
        kind = freed[reached[kind]]
    return path


def _greedy_by_limits(rows: list[int], wanted: int, worth: Worth) -> list[Pair]:
    """Solve a very large component greedily: as many kept limits as possible, then as many pairs as possible.

    Best whenever every expectation of the part accepts every call of it; otherwise a pair that was added may have cost
    a kept limit that another choice would have saved.
    """
    in_time = [0] * len(rows)
    for (expectation, call), (kept, _) in worth.items():
        if kept:
            in_time[call] |= 1 << expectation
    chosen = complete(rows, wanted, complete(in_time, wanted, {}))
    return sorted((expectation, call) for call, expectation in chosen.items())


def _by_paths(rows: list[int], wanted: int, worth: Worth) -> list[Pair]:
    """Solve a component by shortest augmenting paths over the heaviest pairs."""
    weights = weigh(rows, wanted, worth)
    owner: dict[int, int] = {}
    chosen: dict[int, int] = {}
    while (path := _best_path(weights, owner, chosen)) is not None:
        for call, expectation in path:
            owner[expectation] = call
            chosen[call] = expectation
    return sorted((expectation, call) for call, expectation in chosen.items())


def _best_path(weights: list[dict[int, int]], owner: dict[int, int], chosen: dict[int, int]) -> list[Pair] | None:
    """Return the alternating path that adds one pair and loses least, as (call, expectation) from end to start."""
    gain: dict[int, int] = {}
    reached: dict[int, int] = {}
    queue = [call for call in range(len(weights)) if call not in chosen]
    base = dict.fromkeys(queue, 0)
    while queue:
        changed: dict[int, None] = {}
        for call in queue:
            for expectation, weight in weights[call].items():
                total = base[call] + weight
                if total > gain.get(expectation, -1):
                    gain[expectation] = total
                    reached[expectation] = call
                    holder = owner.get(expectation)
                    if holder is not None and holder != call:
                        base[holder] = total - weights[holder][expectation]
                        changed[holder] = None
        queue = list(changed)
    ends = [(total, expectation) for expectation, total in gain.items() if expectation not in owner]
    if not ends:
        return None
    expectation = max(ends)[1]
    path: list[Pair] = []
    while True:
        call = reached[expectation]
        path.append((call, expectation))
        if call not in chosen:
            return path
        expectation = chosen[call]
