"""Trajectories per second, each against a reference of its own, compared with agentevals."""

from collections import defaultdict
from functools import partial
from itertools import product
from typing import NamedTuple

import agentv
from benchmarks.clock import timed
from benchmarks.conversations import Json, compact, expect, make_calls, openai, wrong_call
from benchmarks.peer_environment import Peer, peer
from benchmarks.table import Bar, Row

_COUNT = 20_000
_CHUNK = 1_000
"""All at once would weigh on the garbage collector as no stream of replies does."""
_SAMPLE = 50
"""Of a chunk, for the peer: it would need minutes for all."""
_MODES = {"exact": "strict", "unordered": "unordered", "subset": "subset", "superset": "superset"}
"""Our modes, and the peer's words for them."""
_SHAPES = {"OpenAI": openai, "compact": compact}
_BARS = {"OpenAI": Bar("at least", 10), "compact": Bar("at least", 20)}
_FRESH, _SHARED = "score, fresh expected", "score_many, one expected"


class _Chunk(NamedTuple):
    """Some of the trajectories, in one shape."""

    replies: list[list[Json]]
    expected: list[list[Json]]
    same_task: list[list[Json]]
    """As many replies to one and the same task."""
    right: list[bool]
    """Return the trajectories that meet their reference."""
    sample: list[tuple[list[Json], list[Json]]]
    """The first of them and their references, as the peer takes them."""


class _Tally:
    """Seconds by way, shape and mode, and how often the peer came to our verdict."""

    def __init__(self) -> None:
        self.ours: defaultdict[tuple[str, str, str], float] = defaultdict(float)
        self.peers: defaultdict[str, float] = defaultdict(float)
        self.asked = self.agreed = 0


def measure() -> list[Row]:
    """All of ours, a sample of the peer's, chunk by chunk and taking turns."""
    tally = _Tally()
    with peer() as other:
        _score_chunks(-_SAMPLE, _SAMPLE, other, _Tally())  # only to warm both up
        for start in range(0, _COUNT, _CHUNK):
            _score_chunks(start, _CHUNK, other, tally)
    return _rows(tally)


def _score_chunks(start: int, size: int, other: Peer | None, tally: _Tally) -> None:
    shared = expect(make_calls(0, 0))
    for column, (mode, shape) in enumerate(product(_MODES, _SHAPES)):
        # Numbers of its own for each column of the table: `score` remembers configurations that it has seen.
        chunk = _make_chunk((column + 1) * 2 * _COUNT + start, size, shape)
        seconds, fresh = timed(partial(_pass_fresh, chunk.replies, chunk.expected, mode))
        tally.ours[_FRESH, shape, mode] += seconds
        seconds, many = timed(partial(_pass_many, chunk.same_task, shared, mode))
        tally.ours[_SHARED, shape, mode] += seconds
        assert fresh == many == chunk.right
        if other is not None and shape == "OpenAI":
            seconds, passed = other.ask(_MODES[mode], chunk.sample)
            tally.peers[mode] += seconds
            tally.asked += len(passed)
            tally.agreed += sum(ours == theirs for ours, theirs in zip(fresh, passed, strict=False))


def _make_chunk(start: int, size: int, shape: str) -> _Chunk:
    numbers, write = range(start, start + size), _SHAPES[shape]
    made = [make_calls(number, number, wrong_call(number)) for number in numbers]
    # Made anew: nothing may be equal merely because it is the same object.
    references = [make_calls(number, number) for number in numbers]
    return _Chunk(
        replies=list(map(write, made)),
        expected=list(map(expect, references)),
        same_task=[write(make_calls(0, number, wrong_call(number))) for number in numbers],
        right=[wrong_call(number) is None for number in numbers],
        sample=[(write(made[at]), write(references[at])) for at in range(_SAMPLE)],
    )


def _pass_fresh(replies: list[list[Json]], references: list[list[Json]], mode: str) -> list[bool]:
    return [
        agentv.score(reply, evaluators=[_trajectory(mode, expected)]).status == "pass"
        for reply, expected in zip(replies, references, strict=True)
    ]


def _pass_many(replies: list[list[Json]], expected: list[Json], mode: str) -> list[bool]:
    return [result.status == "pass" for result in agentv.score_many(replies, evaluators=[_trajectory(mode, expected)])]


def _trajectory(mode: str, expected: list[Json]) -> Json:
    return {"type": "tool_trajectory", "mode": mode, "expected": expected}


def _rows(tally: _Tally) -> list[Row]:
    asked = _COUNT // _CHUNK * _SAMPLE
    rows = [
        Row(
            name=f"throughput: {shape}, {mode}, {way}",
            unit="per second",
            ours=_COUNT / tally.ours[way, shape, mode],
            other=asked / tally.peers[mode] if tally.asked else None,
            bar=_BARS[shape],
        )
        for way in (_FRESH, _SHARED)
        for shape in _SHAPES
        for mode in _MODES
    ]
    agreed = Row(
        name=f"throughput: verdicts that agree, {len(_MODES)} modes x {asked:,} trajectories",
        unit="verdicts",
        ours=tally.agreed if tally.asked else None,
        other=tally.asked or None,
        bar=Bar("at least", 1),
    )
    return [*rows, agreed]
