"""Growth of the time with the length of a trajectory, in all modes, in order and in disorder."""

from collections.abc import Callable
from functools import partial
from typing import Any

import agentv
from benchmarks.clock import best_of, timed
from benchmarks.conversations import Json, compact, expect, make_calls
from benchmarks.table import Bar, Row

_FEW, _MANY = 10, 1_000
_ROUNDS = 12
_MODES = ("exact", "in_order", "any_order", "unordered", "superset", "subset")
_ORDERED = ("exact", "in_order")
_FAMILIES = ("in_order", "any_order")
"""One mode for each kind of alignment: by order, and by assignment."""
_GROWTH = Bar("at most", 150)
_MATCHERS = Bar("at most", 5, "seconds")
_PLAIN = Bar("at most", 0.05, "seconds")
_STRIDE = 377
"""Shares no divisor with a thousand, so steps of it visit every call once: disorder without chance."""

_Job = Callable[[], agentv.RunResult]


def measure() -> list[Row]:
    """A thousand calls against ten, then a thousand calls against a thousand that must be searched for."""
    return [*_grown(), *_matched(), *_plain()]


def _grown() -> list[Row]:
    rows = []
    for mode in _MODES:
        for order, arrange in {"equal": _keep, "one pair swapped": _swap, "reversed": _reverse}.items():
            lists = [make_calls(1, 1, count=count) for count in (_FEW, _MANY)]
            jobs = [_job(mode, expect(calls), arrange(calls)) for calls in lists]
            right = "fail" if mode in _ORDERED and order != "equal" else "pass"
            assert [job().status for job in jobs] == [right, right]
            few, many = best_of(_ROUNDS, *jobs)
            name = f"growth: {mode}, {order}, {_MANY:,} calls against {_FEW}"
            rows.append(Row(name=name, unit="seconds", ours=many, other=few, bar=_GROWTH))
    return rows


def _matched() -> list[Row]:
    """Nothing can be looked up here: a matcher has to be asked about each value."""
    calls = _shuffle([_parcel(number) for number in range(_MANY)])
    kinds = {
        "distinct $regex": [{"note": {"$regex": rf"\bparcel[- ]{number:04}\b"}} for number in range(_MANY)],
        "$gt, $contains, $oneof": [_mixed(number) for number in range(_MANY)],
    }
    rows = []
    for mode in _FAMILIES:
        for kind, inputs in kinds.items():
            # Once and from cold: checking a thousand patterns is part of what the author waits for.
            seconds, result = timed(_job(mode, _ship(inputs), calls, input_match="partial"))
            assert result.status == ("fail" if mode in _ORDERED else "pass")
            rows.append(Row(name=_square(mode, kind), unit="seconds", ours=seconds, bar=_MATCHERS))
    return rows


def _plain() -> list[Row]:
    calls = _shuffle([_parcel(number) for number in range(_MANY)])
    whole = [_parcel(number)["input"] for number in range(_MANY)]
    kinds: dict[str, tuple[list[Json], dict[str, str]]] = {
        "plain": (whole, {}),
        "partial": ([{"note": wanted["note"]} for wanted in whole], {"input_match": "partial"}),
        "none matches": ([{**wanted, "weight": -1} for wanted in whole], {}),
    }
    rows = []
    for mode in _FAMILIES:
        for kind, (inputs, options) in kinds.items():
            (seconds,) = best_of(_ROUNDS, _job(mode, _ship(inputs), calls, **options))
            rows.append(Row(name=_square(mode, kind), unit="seconds", ours=seconds, bar=_PLAIN, gates=False))
    return rows


def _job(mode: str, expected: list[Json], calls: list[Json], **options: Any) -> _Job:
    config = {"type": "tool_trajectory", "mode": mode, "expected": expected, **options}
    return partial(agentv.score, compact(calls), evaluators=[config])


def _square(mode: str, kind: str) -> str:
    return f"growth: {_MANY:,} x {_MANY:,}, {mode}, {kind}"


def _ship(inputs: list[Json]) -> list[Json]:
    return [{"tool": "ship", "input": wanted} for wanted in inputs]


def _parcel(number: int) -> Json:
    return {
        "tool": "ship",
        "input": {"note": f"parcel {number:04} goes north", "weight": number, "city": f"city-{number}"},
    }


def _mixed(number: int) -> Json:
    matchers: tuple[Json, ...] = (
        {"weight": {"$gt": number - 1}},
        {"note": {"$contains": f"parcel {number:04}"}},
        {"city": {"$oneof": [f"city-{number}", f"town-{number}"]}},
    )
    return matchers[number % len(matchers)]


def _keep(calls: list[Json]) -> list[Json]:
    return calls


def _swap(calls: list[Json]) -> list[Json]:
    middle = len(calls) // 2
    return [*calls[: middle - 1], calls[middle], calls[middle - 1], *calls[middle + 1 :]]


def _reverse(calls: list[Json]) -> list[Json]:
    return calls[::-1]


def _shuffle(calls: list[Json]) -> list[Json]:
    return [calls[number * _STRIDE % len(calls)] for number in range(len(calls))]
