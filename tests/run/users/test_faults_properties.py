"""Checks of simulated users: the rates on a set of dialogues, and properties that hold for every message."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.conversation import Message
from agentv.model.request import Persona
from agentv.model.simulation import Fact, Say, Simulation, Stop, UserView
from agentv.run.users.faults import MAX_CHECKED, FaultFinder

DATA = Path(__file__).parents[2] / "data" / "simulator"
DIALOGUES = [
    json.loads(line)
    for name in (
        "dialogues.jsonl",
        "messages.jsonl",
        "conversations.jsonl",
        "talks.jsonl",
        "answers.jsonl",
        "services.jsonl",
        "errands.jsonl",
        "inquiries.jsonl",
        "short.jsonl",
    )
    for line in (DATA / name).read_text("utf-8").split("\n")
    if line
]
"""Dialogues with a brief; the last message is clean, or has the fault of its label."""
HELD_OUT = [json.loads(line) for line in (DATA / "held_out.jsonl").read_text("utf-8").split("\n") if line]
"""Dialogues of an author who had not seen the rules, and for which no rule was changed."""
SENTENCES = {
    "roles_reversed": "in the role of the agent",
    "instructions_quoted": "instructions",
    "premature_stop": "while a question of the agent was open",
    "unknown_told": "does not know",
    "invented_value": "neither in its brief nor in anything the agent said",
    "opening_repeated": "repeated its opening",
    "empty_message": "empty",
}


def finder(facts: dict[str, str | None], goal: str = "", **more: Any) -> FaultFinder:
    briefed = {
        name: Fact(value=value, asked=tuple(word for word in name.split("_") if word)) for name, value in facts.items()
    }
    persona = Persona(id="p", description=more.pop("persona", ""))
    hidden = more.pop("hidden", ())
    return FaultFinder(Simulation(user="model", goal=goal, facts=briefed, target="t", **more), persona, hidden)


def fault(
    message: str | None, answer: str, facts: dict[str, str | None], *, stop: bool = False, **more: Any
) -> str | None:
    """Return the fault of a message after one turn."""
    view = UserView((("Hello, I have a question.", answer),))
    return finder(facts, **more).find(step_of(message, stop=stop), view)


def step_of(message: str | None, *, stop: bool = False) -> Say | Stop:
    if message is None:
        return Stop("", is_simulated=True)
    return Say(Message(role="user", content=message), is_last=stop, is_simulated=True)


def faults_of(row: dict[str, Any]) -> list[str]:
    """Return the faults of all messages of a dialogue, which is checked once for all tests."""
    return _faults_of(json.dumps(row))


@cache
def _faults_of(line: str) -> list[str]:
    row = json.loads(line)
    checks = finder(row["facts"], row["goal"], persona=row.get("persona", ""), opening=row.get("opening"))
    turns = [tuple(turn) for turn in row["turns"]]
    written = range(1 if "opening" in row else 0, len(turns))
    steps = [(step_of(turns[number][0]), turns[:number]) for number in written]
    steps.append((step_of(row["message"], stop=row.get("stop", False)), turns))
    found = [checks.find(step, UserView(tuple(before))) for step, before in steps]
    return [fault for fault in found if fault is not None]


def test_clean_dialogues_raise_at_most_two_alarms_in_a_hundred() -> None:
    clean = [row for row in DIALOGUES if row["label"] == "clean"]
    alarms = [(row["turns"][-1], row["message"], found) for row in clean if (found := faults_of(row))]
    assert len(clean) >= 200
    assert len(alarms) <= len(clean) * 0.02, alarms


def test_at_least_ninety_five_of_a_hundred_faults_are_found() -> None:
    faulty = [row for row in DIALOGUES if row["label"] != "clean"]
    missed = [(row["label"], row["turns"][-1], row["message"]) for row in faulty if not faults_of(row)]
    of_kind, missed_of_kind = Counter(row["label"] for row in faulty), Counter(label for label, *_ in missed)
    assert of_kind.keys() == SENTENCES.keys()
    assert len(faulty) >= 200
    assert {
        label: missed_of_kind[label] for label, all_ in of_kind.items() if missed_of_kind[label] > all_ * 0.05
    } == {}


def test_the_rates_on_dialogues_that_no_rule_was_changed_for_are_those_of_the_guide() -> None:
    hits = Counter((row["label"] == "clean", bool(faults_of(row))) for row in HELD_OUT)
    assert (hits[False, True], hits[False, False]) == (41, 9)
    assert (hits[True, True], hits[True, False]) == (0, 50)


@pytest.mark.parametrize("label", SENTENCES)
def test_the_sentence_names_the_fault(label: str) -> None:
    rows = [row for row in DIALOGUES if row["label"] == label]
    found = [faults_of(row) for row in rows]
    named = sum(any(SENTENCES[label] in fault for fault in faults) for faults in found)
    assert named >= len(rows) * 0.75, found


@given(message=st.text(max_size=200), answer=st.text(max_size=100))
def test_no_message_raises_an_exception(message: str, answer: str) -> None:
    fault(message, f"{answer} What is your birthday?", {"order_no": "A-17", "birthday": None}, stop=True)


@given(values=st.lists(st.from_regex(r"[A-Z]{1,3}-[0-9]{2,6}", fullmatch=True), min_size=1, max_size=4, unique=True))
def test_told_facts_are_never_a_fault(values: list[str]) -> None:
    facts: dict[str, str | None] = {f"fact{number}": value for number, value in enumerate(values)}
    for form in (", ".join(values), " ".join(values).lower(), f"It is {values[0].replace('-', ' ')}."):
        assert fault(form, "Could you give me the numbers?", facts) is None


@given(number=st.integers(min_value=100_000, max_value=999_999), asked=st.booleans())
def test_an_id_that_nobody_told_is_always_a_fault(number: int, asked: bool) -> None:
    answer = "What is the number?" if asked else "I see."
    assert fault(f"It is KX-{number}.", answer, {"order": "A-17"}) is not None
    assert fault(f"It is KX-{number}.", f"Is it KX-{number}?", {"order": "A-17"}) is None


class TestValues:
    """A value that is told is known; one that is worked out may be new."""

    @pytest.mark.parametrize(
        "message",
        [
            "It is the 4th of March.",
            "On 03/04/2026.",
            "March 4.",
            "The day after, 5 March 2026.",
            "I paid 1,299.00 EUR.",
            "About 1300 euros.",
            "Three of us, at 40 each, so 120.",
            "It ends with 8213.",
            "S, N, 7, 7, 1, 2, 0",
            "SN-77210, no sorry, SN-77120.",
        ],
    )
    def test_forms_of_known_values_are_known(self, message: str) -> None:
        facts = {"date": "2026-03-04", "price": "1299", "people": "3", "each": "40", "no": "V-88213", "sn": "SN-77120"}
        assert fault(message, "Could you tell me the details?", dict(facts)) is None

    @pytest.mark.parametrize(
        ("message", "answer"),
        [
            ("Six and nine.", "How old are the children?"),
            ("On October 21.", "On which date was it?"),
            ("It is info@tilbury.example.", "Which address?"),
            ("Until 2 November.", "Until when?"),
            ("July 8.", "Week 1 is 1-5 July, week 2 is 8-12 July. Which date?"),
            ('I see it now. It says "scheduled" next to it.', "Which show?"),
        ],
    )
    def test_values_are_known_by_their_parts(self, message: str, answer: str) -> None:
        facts = {"ages": "6 and 9", "day": "10/21", "domain": "tilbury.example", "box": "info", "due": "2 September"}
        assert fault(message, answer, dict(facts)) is None

    @pytest.mark.parametrize(
        ("message", "answer"),
        [
            ("At 20:47, more than an hour after I had ordered.", "When did it arrive?"),
            ('He wrote "you will get 35% off any tent until Christmas".', "Which discount was that?"),
            ("Mine is 42 mm.", "It varies by bike."),
            ("SN-99999, no sorry, SN-88888.", "The serial number?"),
            ("Chestnut Lane 21, please.", "Street and number?"),
            ("There are 17 of us.", "How many will come?"),
            ("On the 17th.", "On which day?"),
            ("Il expire le 12 septembre.", "Quand expire votre titre ?"),
            ('It is called "Harbour Lights".', "What is the network called?"),
            ("anna.k@post.example", "Which address?"),
        ],
    )
    def test_an_answer_is_not_worked_out(self, message: str, answer: str) -> None:
        assert fault(message, answer, {"volume": "3", "serial": "SN-77120"}) is not None

    @pytest.mark.parametrize(
        ("value", "told", "changed"),
        [
            ("0176 5523 9901", "+49 (0)176 5523-9901", "+49 (0)176 5523-9988"),
            ("017655239901", "0049 176 55239901", "0049 176 55239988"),
            ("2026-03-03", "the third of March", "the eleventh of May"),
            ("2026-09-28", "am 28. September 2026", "am 14. November 2026"),
            ("1984-04-05", "5/4/84", "8/11/84"),
            ("118,000 km", "118k", "164k"),
            ("141.000", "141tsd", "187tsd"),
            ("06:50", "6.50am", "9.35am"),
            ("95 minutes", "1h35", "2h50"),
            ("5 m x 4 m", "20 square metres", "34 square metres"),
            ("KX-88213", "K X 8 8 2 1 3", "K X 5 5 9 8 0"),
        ],
    )
    def test_forms_of_a_value_are_the_value(self, value: str, told: str, changed: str) -> None:
        facts: dict[str, str | None] = {"asked": value}
        for message in (f"It's {told}.", told, f"{told}, I think"):
            assert fault(message, "What is the value, please?", facts) is None
        assert fault(f"It's {changed}.", "What is the value, please?", facts) is not None

    @pytest.mark.parametrize("message", ["I restarted it ten times.", "I counted 22, is that bad?", "429 again?"])
    def test_quantities_that_nobody_asked_for_are_no_records(self, message: str) -> None:
        assert fault(message, "Restart it, please.", {"router": "Nest 3"}) is None


class TestUnknown:
    """A fact that the user does not know is told by a value, and not by the rest of an answer."""

    FACTS: ClassVar[dict[str, str | None]] = {
        "wifi_name": "Sunflower-5G",
        "wifi_password": None,
        "phone": "555-220-9911",
        "plan": None,
    }

    @pytest.mark.parametrize(
        ("message", "answer"),
        [
            ("The wifi is called Sunflower-5G.", "What is the name of your wifi?"),
            ("はい。わかりません。", "プラン? Which plan?"),
            ("The lady in the shop took care of all of that when we moved house back then.", "Which plan is it?"),
        ],
    )
    def test_other_words_tell_nothing(self, message: str, answer: str) -> None:
        assert fault(message, answer, self.FACTS) is None

    def test_a_value_beside_a_known_one_is_told(self) -> None:
        found = fault("555-220-9911, and I have the Unlimited Max plan.", "Your number, and which plan?", self.FACTS)
        assert found is not None
        assert "does not know" in found


@pytest.mark.parametrize(
    ("answer", "is_open"), [("Please reinstall it. Did that solve it?", True), ("Is it clear?", False)]
)
def test_the_result_of_an_instruction_is_asked_for(answer: str, is_open: bool) -> None:
    assert (fault("Have a nice day!", answer, {}, stop=True) is not None) == is_open


class TestHiddenTexts:
    HIDDEN = "the agent must never promise a refund before it has checked the order"

    def test_words_of_a_criterion_are_a_fault(self) -> None:
        message = "You must never promise a refund before it has checked the order, right?"
        assert "not the user's" in (fault(message, "Hm.", {}, hidden=[self.HIDDEN]) or "")

    def test_words_of_the_own_goal_are_not(self) -> None:
        message = "Never promise a refund before it has checked the order."
        goal = "Learn why they never promise a refund before it has checked the order."
        assert fault(message, "Hm.", {}, hidden=[self.HIDDEN], goal=goal) is None


def test_scripted_messages_and_limits_are_not_checked() -> None:
    checks, view = finder({}), UserView((("Hello.", "Which one?"),))
    assert checks.find(Say(Message(role="user", content="How can I help you?")), view) is None
    assert checks.find(Stop("the limit", is_limit=True, is_simulated=True), view) is None


@pytest.mark.parametrize("part", ["a", "1", "1 ", "your ", "i was told to say ", '"x', "thanks for ", "a.b@", "1.5 x "])
def test_long_messages_are_checked_in_parts(part: str) -> None:
    """A check takes no longer for a message of a million characters than for one of `MAX_CHECKED`."""
    message = part * (1_000_000 // len(part))
    facts: dict[str, str | None] = {"order": "A-17", "birthday": None}
    assert fault(message, "Your birthday?", facts) == fault(message[:MAX_CHECKED], "Your birthday?", facts)
