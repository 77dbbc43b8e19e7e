"""Faults of a simulated user, found in its messages without a model.

A conversation in which the simulated user made a mistake says nothing about the agent: it is an error of kind
`simulator`, and never a failure of the agent.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING
from unicodedata import category

from agentv.matching.provenance import KnownValues
from agentv.model.simulation import Say, Stop
from agentv.run.users.instructions import find_instructions, find_quotation, find_quoted_goal
from agentv.run.users.model import INSTRUCTIONS
from agentv.run.users.roles import Speakers, find_reversed_role
from agentv.run.users.speech import (
    contains,
    content_words,
    is_answered,
    is_half_answered,
    is_question,
    is_understood,
    open_requests,
    plain,
    stems,
    unanswered_part,
    word_set,
    words,
)
from agentv.run.users.unknown import find_unknown_told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.request import Persona
    from agentv.model.simulation import Simulation, UserView

MIN_OPENING_WORDS = 3
MIN_SIMILAR_WORDS = 7
SIMILAR = 0.88
"""Share of words in common from which a message repeats another one."""
MIN_CONTENT = 4
SAME_CONTENT = 0.8
"""Share of the words of content in common from which a message says the same as another one."""
MIN_PART = 0.6
"""The same for words in a row."""
_LONG_FORMS = {"n't": " not", "'d": " would", "'ll": " will", "'re": " are", "'ve": " have", "'m": " am", "'s": " is"}
_CONTRACTION = re.compile(r"(n't|'(?:d|ll|re|ve|m|s))\b", re.IGNORECASE)
_GREETINGS = word_set(
    "hi hello hey good morning afternoon evening day dear team sir madam there yes ok okay sure well please so guten "
    "tag hallo morgen bonjour hola buenos días ciao buongiorno olá"
)
SAID = "+$€£"
"""Signs that are a message without a letter, as pictures are."""
_NOTHING = re.compile(
    r"[(\[<*{\"']+\s*(?:no (?:message|reply|response|text|answer|comment|content)|empty(?: message)?|silence|silent"
    r"|says nothing|blank|null|none|nothing|leer|vide|vacío|vuoto|leeg|vazio|end|stops?)\.?\s*[)\]>*}\"']+|null|none"
    r"|undefined|nil",
    re.IGNORECASE,
)
"""Messages that say in words that there is none."""
MAX_QUOTED = 80
MAX_CHECKED = 8_000
"""Characters of a message that are checked: the first ones of the user's, the last ones of the agent's."""
_REPEAT_ASKED = re.compile(
    r"\b(?:repeat|say (?:that|it|this) again|come again|rephrase|start over|once (?:more|again)|beginning"
    r"|in other words|clarify|(?:didn't|don't|did not|do not|couldn't|can't|not sure i|not sure what) (?:quite "
    r")?(?:catch|get|understand|follow|read|you mean)|(?:what|how) (?:can|may) (?:i|we) (?:do|help)|what (?:is|was"
    r"|'s) (?:it|this|that|your (?:question|issue|concern|problem|request))|what (?:brings|seems|would you like"
    r"|do you (?:want|need))|(?:tell me|describe|explain)(?: \w+){0,3} (?:again|issue|problem|question|happened)"
    r"|wiederhol\w*|noch (?:ein)?mal|nicht (?:ganz )?verstanden|worum geht|was kann ich|répéter|reformul\w+"
    r"|pas (?:bien )?compris|repet\w+|otra vez|no (?:le |te )?(?:he )?entend\w+|ripeter\w*|non ho capito|herhal\w*"
    r"|niet begrepen|de novo)\b|\bpardon\b",
    re.IGNORECASE,
)
"""Words of an agent that asks what it is about, once more."""
_REMINDED = re.compile(
    r"\b(?:as|like) i (?:\w+ )?(?:said|wrote|mentioned|told|explained)|\bi (?:\w+ )?(?:already |just )?(?:said"
    r"|told you|asked|wrote|meant|mean)\b|^\W*(?:no|nein|non|nee|não)\b|\b(?:again|actually|still|wie gesagt|comme je"
    r"|como (?:ya )?(?:le )?dije|come (?:ho )?detto|zoals gezegd)\b",
    re.IGNORECASE,
)
"""Words of somebody who says something once more on purpose."""


class FaultFinder:
    """Checks of the messages of one simulated user."""

    def __init__(
        self, brief: Simulation, persona: Persona | None, hidden: Sequence[str] = (), scripted: Sequence[str] = ()
    ) -> None:
        self._brief = brief
        description = "" if persona is None else persona.description
        values = [] if persona is None else [str(value) for value in persona.vars.values()]
        facts = [text for fact in brief.facts.values() for text in (fact.value, fact.tell) if text]
        own = (brief.opening, brief.goal, brief.fallback, brief.nudge)
        sayable = [text for text in (*own, *facts, *values, *scripted) if text]
        self._texts = [*sayable, description, *(name.replace("_", " ") for name in brief.facts)]
        """Texts whose values the user may tell."""
        self._scripted = tuple(scripted)
        self._sayable = [words(text) for text in sayable]
        self._hidden = [words(text) for text in (*hidden, *INSTRUCTIONS.splitlines(), description)]
        """Texts that the user must not quote."""

    def find(self, step: Say | Stop, view: UserView) -> str | None:
        """Return the fault of a step as a sentence; `None` if there is none."""
        if isinstance(step, Stop):
            return self._open_question(view) if step.is_simulated and not step.is_limit else None
        if not step.is_simulated or step.message is None:
            return None
        text = step.message.text[:MAX_CHECKED]
        is_said = any(char.isalnum() or char in SAID or category(char) == "So" for char in text)
        if not is_said or _NOTHING.fullmatch(text.strip()):
            return "its message is empty"
        return (
            self._role_reversed(text, view)
            or self._quoted(text, view)
            or self._opening_repeated(text, view)
            or self._unknown_told(text, view)
            or self._invented(text, view)
            or (self._open_question(view, text) if step.is_last else None)
        )

    def _invented(self, text: str, view: UserView) -> str | None:
        known = KnownValues(self._texts)
        for part in (part for turn in view.turns for part in turn):
            known.add(part)
        unknown = known.unknown(text, view.last_answer[-MAX_CHECKED:])
        if not unknown:
            return None
        kind = "a date" if unknown[0].kind == "date" else f"the {unknown[0].kind}"
        return f"it told {kind} {unknown[0].text!r}, which is neither in its brief nor in anything the agent said"

    def _unknown_told(self, text: str, view: UserView) -> str | None:
        name = find_unknown_told(text, self._brief.facts, view, self._texts)
        if name is None:
            return None
        return f"it told {name.replace('_', ' ')!r}, which its brief says it does not know: {_cut(text)!r}"

    def _opening_repeated(self, text: str, view: UserView) -> str | None:
        opening = self._brief.opening or (view.turns[0][0] if view.turns else None)
        if not view.turns or not opening:
            return None
        first, now = (_spoken(part) for part in (opening, text))
        reminder = _REMINDED.search(plain(text))
        is_reminded = reminder is not None and not contains(words(opening), words(reminder[0]))
        if is_reminded or _REPEAT_ASKED.search(plain(view.last_answer[-MAX_CHECKED:])):
            return None
        is_contained = len(first) >= MIN_OPENING_WORDS and len(now) <= len(first) * 1.5 + 1 and contains(now, first)
        is_repeated = now == first or is_contained or _is_similar(first, now)
        return f"it repeated its opening: {_cut(text)!r}" if is_repeated else None

    def _role_reversed(self, text: str, view: UserView) -> str | None:
        brief = [part for part in (self._brief.opening, self._brief.goal) if part]
        own = (*brief, *self._scripted, *(message for message, _ in view.turns))
        values = tuple(fact.value for fact in self._brief.facts.values() if fact.value)
        said = tuple(answer[-MAX_CHECKED:] for _, answer in view.turns)
        speakers = Speakers(own, said, tuple(self._brief.facts), values)
        found = find_reversed_role(text, speakers)
        return f"it spoke in the role of the agent: {_cut(found)!r}" if found else None

    def _open_question(self, view: UserView, message: str | None = None) -> str | None:
        """Find a request of the agent that was not answered when the user ended the conversation."""
        last = view.last_answer[-MAX_CHECKED:]
        requests = [request for request in open_requests(last) if is_understood(request)]
        requests = [request for request in requests if is_question(request)] or requests
        if not requests:
            return None
        is_open = message is None or not any(is_answered(request, message, last) for request in requests)
        rest = None if is_open or message is None else unanswered_part(" ".join(requests), message, last)
        if not is_open and rest is None and not (message is not None and is_half_answered(requests, message)):
            return None
        return f"it ended the conversation while a question of the agent was open: {_cut(rest or requests[-1])!r}"

    def _quoted(self, text: str, view: UserView) -> str | None:
        """Find talk of instructions, or parts of texts that no user can have seen."""
        facts = [fact.value for fact in self._brief.facts.values() if fact.value]
        topics = [part for part in (self._brief.opening, self._brief.goal, *facts, *self._scripted) if part]
        topics += [part for turn in view.turns for part in turn]
        named = find_instructions(text, topics, tuple(self._brief.facts), self._brief.goal)
        if named:
            return f"it spoke of its instructions: {_cut(named)!r}"
        quoted = find_quoted_goal(text, self._brief.goal) or find_quotation(text, self._hidden, self._sayable)
        return f"it quoted a text that is not the user's: {quoted!r}" if quoted else None


def _is_similar(first: Sequence[str], now: Sequence[str]) -> bool:
    """Return whether two messages of some length differ in a word or two only."""
    if min(len(first), len(now)) < MIN_SIMILAR_WORDS:
        return False
    matcher = SequenceMatcher(None, first, now, autojunk=False)
    longest = matcher.find_longest_match().size
    is_part = longest >= max(MIN_SIMILAR_WORDS, len(first) * MIN_PART)
    return is_part or matcher.ratio() >= SIMILAR or _has_same_content(first, now)


def _has_same_content(first: Sequence[str], now: Sequence[str]) -> bool:
    """Return whether two messages of about the same length have the same words of content, with other words between."""
    before, after = (content_words(" ".join(part)) for part in (first, now))
    shared = len(stems(before) & stems(after))
    return (
        min(len(before), len(after)) >= MIN_CONTENT
        and max(len(first), len(now)) <= min(len(first), len(now)) * 1.5
        and shared >= SAME_CONTENT * max(len(before), len(after))
    )


def _spoken(text: str) -> list[str]:
    """Return the words of a message without its greeting and without contractions."""
    found = words(_CONTRACTION.sub(lambda match: _LONG_FORMS[match[1].casefold()], plain(text)))
    start = next((index for index, word in enumerate(found) if word not in _GREETINGS), len(found))
    return found[start:] or found


def _cut(text: str) -> str:
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"
