"""Turns of a conversation: their names, and the warnings of several turns."""

import pytest

from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse
from agentv.scoring.turns import MAX_LISTED, Exchange, combine_turns, name_turns

USER = (Message(role="user", content="hi"),)


def reply(*warnings: str) -> Exchange:
    return Exchange(USER, ProviderResponse(text="ok", warnings=warnings))


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ([2], "turn 2"),
        ([2, 3], "turns 2, 3"),
        ([2, 3, 4, 5], "turns 2 to 5"),
        ([1, 4, 5], "turns 1, 4, 5"),
        (range(1, 1_001), "turns 1 to 1000"),
    ],
)
def test_turns_are_named_by_their_numbers(numbers: list[int], name: str) -> None:
    assert name_turns(numbers) == name


def test_of_many_turns_the_first_are_named() -> None:
    name = name_turns(range(1, 1_000, 2))
    assert name.count(",") == MAX_LISTED
    assert name.endswith(", 39, …")


def test_equal_warnings_of_several_turns_are_one() -> None:
    whole = combine_turns([reply("slow"), reply(), reply("slow", "odd"), reply("slow")])
    assert whole.warnings == ("turns 1, 3, 4: slow", "turn 3: odd")
    assert [turn.response.warnings for turn in whole.turns] == [("slow",), (), ("slow", "odd"), ("slow",)]


def test_a_sum_of_costs_has_no_digits_of_its_own() -> None:
    exchange = Exchange(USER, ProviderResponse(text="ok", cost_usd=0.01))
    assert combine_turns([exchange] * 10).cost_usd == 0.1
