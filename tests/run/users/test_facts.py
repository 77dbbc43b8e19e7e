"""`facts`: a simulated user without a model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentv.model.simulation import Fact, Say, Simulation, Stop, UserView
from agentv.run.users.facts import FactsUser

BRIEF = Simulation(
    opening="I want my money back.",
    facts={
        "order_id": Fact(value="A-17", asked=("order", "number")),
        "email": Fact(value="a@b.de", asked=("mail",), tell="You can reach me at {{ value }}."),
        "birthday": Fact(asked=("birthday", "born")),
    },
)


def answers(*texts: str, brief: Simulation = BRIEF) -> list[Any]:
    """Return what the user does before and after each answer of the agent."""
    user = FactsUser(brief)
    turns: list[tuple[str, str]] = []
    steps: list[Any] = []
    for text in (None, *texts):
        if text is not None:
            turns.append((steps[-1], text))
        step = asyncio.run(user.next(UserView(tuple(turns))))
        steps.append(step.message.text if isinstance(step, Say) and step.message else step)
    return steps


def test_the_opening_comes_first_and_once() -> None:
    assert answers("Hello.", "Fine.") == ["I want my money back.", "Please go on.", "Please go on."]


def test_the_goal_is_the_first_message_without_an_opening() -> None:
    assert answers(brief=Simulation(goal="Get a refund.")) == ["Get a refund."]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("Which ORDER is it?", "A-17"),
        ("Your e-mail?", "You can reach me at a@b.de."),
        ("Order and mail, please.", "A-17 You can reach me at a@b.de."),
        ("Mail and order, please.", "A-17 You can reach me at a@b.de."),
        ("When were you born?", "I do not know."),
        ("What is the order, and when were you born?", "A-17 I do not know."),
        ("What colour is it?", "I do not know."),
        ("I reordered it.", "Please go on."),
        ("One moment.", "Please go on."),
    ],
)
def test_facts_are_told_when_they_are_asked_for(asked: str, told: str) -> None:
    assert answers(asked)[-1] == told


def test_a_fact_is_told_again_when_it_is_asked_for_again() -> None:
    assert answers("Which order?", "Which order?")[1:] == ["A-17", "A-17"]


def test_three_nudges_in_a_row_end_the_conversation() -> None:
    steps = answers("Hm.", "Hm.", "Hm.", "Hm.")
    assert steps[1:4] == ["Please go on."] * 3
    assert isinstance(steps[4], Stop)
    assert steps[4].is_limit


def test_a_question_starts_the_count_of_nudges_again() -> None:
    assert answers("Hm.", "Hm.", "Really?", "Hm.", "Hm.")[-1] == "Please go on."


def test_braces_in_a_value_stay_braces() -> None:
    brief = Simulation(opening="x", facts={"a": Fact(value="{{ value }}", asked=("code",), tell="It is {{ value }}.")})
    assert answers("Your code?", brief=brief)[-1] == "It is {{ value }}."
