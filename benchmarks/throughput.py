"""How many trajectories a second, each against a reference of its own, and how many times as many as agentevals."""

from collections import defaultdict
from functools import partial
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
    """Some of the trajectories."""

    made: list[list[Json]]
    references: list[list[Json]]
    same_task: list[list[Json]]
    """As many runs of one and the same task."""
    right: list[bool]
    """Which of them do as they should."""


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
        _score(_make_chunk(_COUNT, _SAMPLE), other, _Tally())  # only to warm both up
        for start in range(0, _COUNT, _CHUNK):
            _score(_make_chunk(start, _CHUNK), other, tally)
    return _rows(tally)


def _make_chunk(start: int, size: int) -> _Chunk:
    numbers = range(start, start + size)
    return _Chunk(
        made=[make_calls(number, number, wrong_call(number)) for number in numbers],
        # Made anew: nothing may be equal merely because it is the same object.
        references=[make_calls(number, number) for number in numbers],
        same_task=[make_calls(0, number, wrong_call(number)) for number in numbers],
        right=[wrong_call(number) is None for number in numbers],
    )


def _score(chunk: _Chunk, other: Peer | None, tally: _Tally) -> None:
    expected, shared = list(map(expect, chunk.references)), expect(make_calls(0, 0))
    replies = {
        shape: (list(map(write, chunk.made)), list(map(write, chunk.same_task))) for shape, write in _SHAPES.items()
    }
    sample = [
        (openai(calls), openai(reference))
        for calls, reference in zip(chunk.made[:_SAMPLE], chunk.references[:_SAMPLE], strict=True)
    ]
    for mode, peers_mode in _MODES.items():
        for shape, (own_task, same_task) in replies.items():
            seconds, fresh = timed(partial(_pass_fresh, own_task, expected, mode))
            tally.ours[_FRESH, shape, mode] += seconds
            seconds, many = timed(partial(_pass_many, same_task, shared, mode))
            tally.ours[_SHARED, shape, mode] += seconds
            assert fresh == many == chunk.right
        if other is not None:
            seconds, passed = other.ask(peers_mode, sample)
            tally.peers[mode] += seconds
            tally.asked += len(sample)
            tally.agreed += [ours == theirs for ours, theirs in zip(chunk.right, passed, strict=False)].count(True)


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
            bar=_BARS[shape] if way == _FRESH else None,
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
