"""The best way to lay a list of calls along a list of expectations.

Everything works on *rows*: one integer per call whose bit `i` says that the call meets expectation `i`.
A pair is (expectation, call). Among the largest alignments the earliest calls win, then the earliest
expectations.
"""

from collections.abc import Iterator

Pair = tuple[int, int]
# Above this many bits they are turned as text, which is done in C.
MANY_BITS = 50_000


def subsequence(rows: list[int], wanted: int) -> list[Pair] | None:
    """All expectations in order at their earliest calls, or `None` when they are no subsequence."""
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
    """The longest common subsequence, by bit-parallel rows: a thousand by a thousand in about a millisecond."""
    found = subsequence(rows, wanted)
    if found is not None:
        return found
    # Bits are mirrored and calls walked backwards, so that the rows describe what is still possible
    # from a given call and expectation on: that is what choosing the *earliest* calls needs.
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
        # Zeros among the low bits count how long a sequence is still possible after this pair.
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
    """A maximum matching between expectations and calls, order free."""
    by_call = _augment(rows, wanted)
    if len(by_call) < wanted:
        # The calls are the earliest possible; now, of those calls, serve the earliest expectations.
        calls = sorted(by_call)
        by_expectation = _augment(_columns([rows[call] for call in calls], wanted), len(calls))
        return [(expectation, calls[position]) for expectation, position in sorted(by_expectation.items())]
    return sorted((expectation, call) for call, expectation in by_call.items())


def _columns(rows: list[int], width: int) -> list[int]:
    """For each column the rows that have it, as bits."""
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
    """Row -> column of a maximum matching that never gives up an earlier row for a later one."""
    greedy = _scarcest_first(rows, width)
    return greedy if len(greedy) == len(rows) else complete(rows, width, {})


def complete(rows: list[int], width: int, begun: dict[int, int]) -> dict[int, int]:
    """A matching (row -> column) made as large as possible; what is matched stays matched, maybe to another."""
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
            # Nothing that this search touched can ever lead to a free column again.
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
    """Serve the rows with fewest columns first: nearly always that completes it, and there is nothing to prove."""
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
    """Breadth-first from a row to a free column: (column -> the row it was reached from, that column or -1, seen)."""
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
    """The positions of the set bits, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
