"""Which leftover call was probably meant to be which leftover expectation: same tool, fewest differing paths."""

from collections.abc import Hashable, Iterable, Sequence

from msgspec import UNSET

from agentv.evaluators.trajectory.plan import Expectation, Made
from agentv.matching.align import Pair, bits
from agentv.matching.equality import canonical

# Beyond this many pairs of one tool, whole arguments are counted instead of every path inside them.
MAX_COMPARED = 20_000


def pair_alike(
    expectations: Sequence[Expectation], made: Made, left_expected: list[int], left_actual: list[int]
) -> list[Pair]:
    """Pairs of one tool: fewest differing paths first, then the earliest expectation, then the earliest call."""
    by_tool: dict[str, list[int]] = {}
    for a in left_actual:
        tool = made.calls[a].tool
        if tool:
            by_tool.setdefault(tool, []).append(a)
    candidates = {e: _candidates(expectations[e], by_tool) for e in left_expected}
    rivals = sum(map(len, candidates.values()))
    if rivals <= 1:
        return [(e, a) for e, calls in candidates.items() for a in calls]
    if rivals <= MAX_COMPARED:
        ranked = sorted(
            (len(expectations[e].differences(made.calls[a])), e, a) for e, calls in candidates.items() for a in calls
        )
        return sorted(take_first((e, a) for _, e, a in ranked))
    return sorted(_pair_many(expectations, made, candidates))


def _candidates(expectation: Expectation, by_tool: dict[str, list[int]]) -> list[int]:
    if not expectation.globbed:
        return by_tool.get(expectation.tool, [])
    return sorted(a for tool, calls in by_tool.items() if expectation.names(tool) for a in calls)


def take_first(ranked: Iterable[Pair]) -> list[Pair]:
    """Each expectation and each call at most once, first come first served."""
    used_expected: set[int] = set()
    used_actual: set[int] = set()
    taken: list[Pair] = []
    for e, a in ranked:
        if e not in used_expected and a not in used_actual:
            used_expected.add(e)
            used_actual.add(a)
            taken.append((e, a))
    return taken


def _pair_many(expectations: Sequence[Expectation], made: Made, candidates: dict[int, list[int]]) -> list[Pair]:
    """The same for thousands of leftovers: all calls are counted at once, as bits of one integer."""
    # Expectations of one tool share one list of calls, so lists are told apart by identity.
    distinct = {id(calls): calls for calls in candidates.values()}
    index = _ArgumentIndex(made, sorted({a for calls in distinct.values() for a in calls}))
    buckets = {e: index.distances(expectations[e], index.mask(calls)) for e, calls in candidates.items() if calls}
    free = index.everything
    taken: list[Pair] = []
    for distance in sorted({d for by_distance in buckets.values() for d in by_distance}):
        for e in list(buckets):
            nearest = buckets[e].get(distance, 0) & free
            if nearest:
                lowest = next(bits(nearest))
                free ^= 1 << lowest
                taken.append((e, index.calls[lowest]))
                del buckets[e]
    return taken


class _ArgumentIndex:
    """Which calls have which argument, as bits."""

    def __init__(self, made: Made, calls: list[int]) -> None:
        self.calls = calls
        self.everything = (1 << len(calls)) - 1
        self._place = {a: position for position, a in enumerate(calls)}
        self._masks: dict[int, int] = {}
        self._with_key: dict[str, int] = {}
        self._with_argument: dict[Hashable, int] = {}
        self._by_size: dict[int, int] = {}
        for position, a in enumerate(calls):
            value = made.calls[a].input
            arguments = value if isinstance(value, dict) else {}
            self._by_size[len(arguments)] = self._by_size.get(len(arguments), 0) | 1 << position
            for key, item in arguments.items():
                argument = (key, canonical(item))
                self._with_key[key] = self._with_key.get(key, 0) | 1 << position
                self._with_argument[argument] = self._with_argument.get(argument, 0) | 1 << position

    def mask(self, calls: list[int]) -> int:
        """These calls as bits."""
        if id(calls) not in self._masks:
            self._masks[id(calls)] = sum(1 << self._place[a] for a in calls)
        return self._masks[id(calls)]

    def distances(self, expectation: Expectation, candidates: int) -> dict[int, int]:
        """The candidates by how many arguments differ."""
        if expectation.input is UNSET or not isinstance(expectation.input, dict):
            return {0: candidates}
        whole = expectation.default_mode == "exact"
        found = {size: mask & candidates for size, mask in self._by_size.items()} if whole else {0: candidates}
        for key, value in expectation.input.items():
            if whole:
                found = _closer(found, self._with_key.get(key, 0))
            found = _closer(found, self._with_argument.get((key, canonical(value)), 0))
        return {distance: mask for distance, mask in found.items() if mask}


def _closer(found: dict[int, int], mask: int) -> dict[int, int]:
    """The same calls with those in the mask one step nearer."""
    if not mask:
        return found
    moved: dict[int, int] = {}
    for distance, calls in found.items():
        near = calls & mask
        if near:
            moved[distance - 1] = moved.get(distance - 1, 0) | near
        if calls != near:
            moved[distance] = moved.get(distance, 0) | (calls ^ near)
    return moved
