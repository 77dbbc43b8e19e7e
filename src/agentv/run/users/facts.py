"""`facts`: a simulated user without a model, who tells facts when the agent asks for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentv.matching.matchers import pattern_of
from agentv.model.conversation import Message
from agentv.model.simulation import Say, Stop
from agentv.templating import Template

if TYPE_CHECKING:
    from agentv.model.simulation import Fact, Simulation, UserView

MAX_NUDGES = 3
"""Nudges in a row after which the conversation ends."""
OUT_OF_NUDGES = f"the agent neither asked nor finished after {MAX_NUDGES} nudges"
_ADDRESS = re.compile(r"https?://\S*[\w/]")
"""Addresses, whose question marks ask nothing."""
_QUESTION_MARKS = "?\uff1f\u061f\u037e"
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u318f\u31f0-\u31ff\u3400-\u9fff\ua960-\ua97f"
    r"\uac00-\ud7ff\uf900-\ufaff"
)
"""Letters of languages that write words, or words and their endings, without a space between them."""
_IN_WORD = rf"[^\W{_UNSPACED}]"


class FactsUser:
    """Deterministic user: the same answers of the agent always get the same messages."""

    def __init__(self, simulation: Simulation) -> None:
        self._brief = simulation
        self._nudges = 0

    async def next(self, view: UserView) -> Say | Stop:
        """Tell the facts that the agent asks for, else the fallback after a question, else a nudge."""
        if not view.turns:
            return _say(self._brief.opening or self._brief.goal or self._brief.nudge, is_simulated=False)
        answer = view.last_answer
        told = [self._tell(fact) for fact in self._brief.facts.values() if is_asked(fact, answer)]
        if told:
            self._nudges = 0
            return _say(" ".join(dict.fromkeys(told)))
        if is_question(answer):
            self._nudges = 0
            return _say(self._brief.fallback)
        if self._nudges == MAX_NUDGES:
            return Stop(OUT_OF_NUDGES, is_limit=True)
        self._nudges += 1
        return _say(self._brief.nudge)

    def _tell(self, fact: Fact) -> str:
        if fact.value is None:
            return self._brief.fallback
        return tell(fact.tell, fact.value) if fact.tell else fact.value


def is_asked(fact: Fact, text: str) -> bool:
    """Return whether a message of the agent asks for a fact: one of its patterns matches whole words."""
    return any(pattern_of(whole_words(pattern), ignore_case=True).find(text) for pattern in fact.asked)


def whole_words(pattern: str) -> str:
    """Return a pattern that matches only between the boundaries of words."""
    return rf"(?<!{_IN_WORD})(?:{pattern})(?!{_IN_WORD})"


def is_question(text: str) -> bool:
    """Return whether a message of the agent has a question mark."""
    return any(mark in _ADDRESS.sub(" ", text) for mark in _QUESTION_MARKS)


def tell(sentence: str, value: str) -> str:
    """Return the sentence with the value in place of `{{ value }}`."""
    return _TELL.compile_text(sentence, "tell")(value)


def _value(value: str, name: str, path: str) -> str:
    del name, path
    return value


_TELL = Template(_value, is_name=lambda name: name.strip() == "value")


def _say(text: str, *, is_simulated: bool = True) -> Say:
    return Say(Message(role="user", content=text), is_simulated=is_simulated)
