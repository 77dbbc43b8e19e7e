"""`facts`: a simulated user without a model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentv.model.simulation import Fact, Say, Simulation, Stop, UserView
from agentv.run.users.facts import FactsUser
from agentv.spec.simulation import check_simulation

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


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("Quel est votre prénom ?", "Ann"),
        ("お名前を教えてください。", "花子"),
        ("주소가 어떻게 되나요", "Seoul"),
        ("あなたのIDは", "A-17"),
        ("Das ist noch keine Nummer.", "Please go on."),
        ("生日是哪天\uff1f", "I do not know."),
        ("ما هو لونه؟", "I do not know."),
        ("See https://shop.example/find?page=1 for that.", "Please go on."),
        ("Did you read https://shop.example/find?", "I do not know."),
    ],
)
def test_facts_and_questions_of_other_alphabets(asked: str, told: str) -> None:
    facts = {"prénom": "Ann", "名前": "花子", "주소": "Seoul", "orderID": "A-17"}
    checked = check_simulation({"opening": "x", "facts": facts})
    assert checked.simulation is not None
    assert answers(asked, brief=checked.simulation)[-1] == told


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("order_id", ("order", "id")),
        ("orderId", ("order", "Id")),
        ("HTTPCode", ("HTTP", "Code")),
        ("prénom", ("prénom",)),
        ("geburtsTag2", ("geburts", "Tag", "2")),
        ("дата_рождения", ("дата", "рождения")),
        ("StraßeÜber", ("Straße", "Über")),
    ],
)
def test_the_words_of_a_key_ask_for_it(name: str, words: tuple[str, ...]) -> None:
    checked = check_simulation({"opening": "x", "facts": {name: "v"}})
    assert checked.simulation is not None
    assert checked.simulation.facts[name].asked == words


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
