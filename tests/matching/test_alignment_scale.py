"""Time limits in large alignments: the same worth as in small ones, whatever the order of the list."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentv
from agentv.matching import alignment as weighted
from agentv.matching.alignment import Pair, Worth, heaviest_assignment

WORTHS = st.sampled_from([(0, 0), (0, 1), (1, 1)])


def total(pairs: list[Pair], worth: Worth) -> tuple[int, int, int]:
    """The number of pairs, of limits that they keep, and of limits that they do not break."""
    told = [worth.get(pair, (0, 0)) for pair in pairs]
    return len(pairs), sum(kept for kept, _ in told), sum(unbroken for _, unbroken in told)


@settings(deadline=None)
@given(st.data())
def test_what_is_alike_is_weighed_as_one_to_the_same_end(data: st.DataObject) -> None:
    wanted = data.draw(st.integers(1, 6))
    row = st.integers(0, 2**wanted - 1)
    rows = data.draw(st.lists(row, min_size=1, max_size=6).flatmap(lambda some: st.permutations(some * 2)))
    pairs = [(e, call) for call, row in enumerate(rows) for e in range(wanted) if row >> e & 1]
    worth: Worth = dict(zip(pairs, data.draw(st.lists(WORTHS, min_size=len(pairs), max_size=len(pairs))), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weighted, "MAX_EXACT_CELLS", 0)
        one_by_one = heaviest_assignment(rows, worth)
        patch.setattr(weighted, "MAX_STEPS", 0)
        together = heaviest_assignment(rows, worth)
    assert set(together) <= set(pairs)
    assert len(dict(together)) == len({call for _, call in together}) == len(together)
    assert total(together, worth) == total(one_by_one, worth)


def test_the_score_of_many_limits_does_not_depend_on_the_order_of_the_list() -> None:
    choose = Random(1)  # noqa: S311 - any numbers will do
    expected = [
        {"tool": choose.choice(["t1", "t2", "t*", "t?", "*1"]), "max_duration_ms": choose.choice([10, 20, 30])}
        for _ in range(220)
    ]
    made = [
        {"tool": choose.choice(["t1", "t2", "u1", "t3"]), "duration_ms": choose.choice([5, 15, 25, 35])}
        for _ in range(220)
    ]
    scores: set[Any] = set()
    for _ in range(3):
        choose.shuffle(expected)
        config = {"type": "tool_trajectory", "mode": "any_order", "expected": expected}
        scores.add(agentv.score([{"role": "assistant", "tool_calls": made}], [config]).evaluators[0].score)
    assert len(scores) == 1
