"""Faults of a simulated user, found in its messages without a model.

A conversation in which the simulated user made a mistake says nothing about the agent: it is an error of kind
`simulator`, and never a failure of the agent.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from agentv.matching.provenance import KnownValues, find_values
from agentv.matching.text import lazy_pattern
from agentv.model.users import Say, Stop
from agentv.run.users.facts import is_asked
from agentv.run.users.model import INSTRUCTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.request import Persona
    from agentv.model.simulation import Simulation
    from agentv.model.users import UserView

QUOTED_WORDS = 7
"""Words in a row that a message must not share with a text that the user has never seen."""
MIN_OPENING_WORDS = 3
SIMILAR = 0.88
"""Share of words in common from which a message repeats another one."""
MAX_QUOTED = 80
_WORD = re.compile(r"\w+")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u2018\u0060\u00b4", "'"))
_HELP = r"(?:help|assist)"
_ASSISTANTS = r"(?:ai|assistant|language model|chatbot|bot|support agent|agent|representative)"
_KINDS = r"(?:(?:virtual|ai|digital|helpful|support|customer service|customer support) )*"
_WORK = r"(?:process(?:ed)?|issued?|initiated?|cancell?(?:ed)?|refund(?:ed)?|updated?|approved?)"
_OBJECTS = r"(?:refund|order|account|request|payment|booking|subscription|return|money|address|card)"
_DATA = r"(?:order|account|customer|booking|full|e-?mail|phone|name|address|reference|card)"
_GIVE = r"(?:provide|share|confirm|give|have|tell)"
_ROLE_REVERSED = (
    rf"how (?:can|may|could) (?:i|we) (?:{_HELP}|be of)",
    r"what can (?:i|we) (?:do|help)\b.{0,20} for you",
    rf"(?:can|may|could) i {_HELP} you",
    rf"anything else (?:that )?(?:i|we) (?:can|could|may) (?:{_HELP}|do)",
    rf"(?:happy|glad|here|pleased|delighted|able) to {_HELP} (?:you|with that)",
    rf"(?:i|we)(?: will|'ll| can| would|'d| am here to|'m here to)? (?:love to |like to |gladly )?{_HELP} you",
    rf"let me {_HELP} you",
    r"let me (?:look (?:into|up)|check|pull up|process|see what i can do)\b.{0,40}\b(?:for you|your)\b",
    rf"(?:as|i am|i'm|being) (?:an?|your) {_KINDS}{_ASSISTANTS}\b",
    r"thank you for (?:(?:contacting|calling|choosing) us|reaching out(?! to the)|bringing this)",
    r"thanks for (?:contacting|reaching out to us|choosing)",
    rf"(?:i|we)(?:'ve| have|'ll| will| can)? (?:(?:now|just|already|successfully) )*{_WORK} (?:you |your {_OBJECTS})",
    rf"(?:could|can|may|would) (?:you|i) (?:please )?{_GIVE} (?:me |us )?(?:with )?your {_DATA}",
    r"i (?:understand|apologi[sz]e for) (?:your|the|any) (?:frustration|inconvenience|concern)",
    rf"your {_OBJECTS} (?:has been|is now|was) (?:processed|issued|approved|submitted|cancell?ed|initiated|refunded)",
    r"(?:wie|womit) kann ich (?:ihnen|dir) (?:weiter)?helfen",
    r"gerne helfe ich (?:ihnen|dir)",
    r"con gusto (?:le|te) ",
    r"(?:happy|glad) to help[!.]",
    rf"(?:to|here to) {_HELP} you with",
    r"to process your (?:return|refund|order|request|claim)",
    (
        r"(?:if you have any|feel free to ask|don't hesitate to (?:reach out|contact us|ask))\b.{0,40}\b"
        r"(?:questions?|ask|help|assistance|need)"
    ),
    r"let me know if you(?:'d| would) like me to",
    r"(?:is there )?anything else (?:about .{1,30} )?you (?:need|would like me to|want me to)",
    r"(?:our|the) (?:support )?team will (?:look into|get back to you|contact you)",
    r"i'm sorry you had this",
    r"would you like (?:to proceed|more tips|me to (?:explain|book|send|process))",
    r"i can offer you",
    r"(?:one of )?our most popular",
    r"on your behalf",
    r"i(?:'d| would) be (?:glad|happy) to (?:set up|arrange|book|check|look)\b.{0,40}\bfor you",
    r"(?:i can|i'll|may i) (?:format|book|look it up|look that up|arrange|reserve)\b.{0,30}\bfor you",
    r"may i book for you",
    r"we (?:sincerely )?(?:apologi[sz]e for|recommend (?:starting|our)|look forward to welcoming)",
    r"i(?:'ve| have) (?:scheduled|booked|sent you|created|arranged) (?:your|a confirmation)",
    r"your [\w -]{3,25} has been (?:created|scheduled|booked|confirmed) successfully",
    r"(?:please )?choose between .{1,30} or .{1,30}\bfor you",
    r"i recommend \w+ing your",
)
"""Sentences of somebody who offers help, or speaks for the agent."""
_INSTRUCTIONS_NAMED = (
    r"(?:according to|as per|per|given) my instructions?\b",
    r"my (?:instructions?|guidelines?|prompt) (?:say|tell|state|are|is|do|don't|forbid)",
    r"(?:system|my) prompt\b",
    (
        r"(?:my|the|this) (?:persona|brief|scenario|fact sheet|role|character) (?:only )?"
        r"(?:is|says|states|lists|marks|doesn't|does not|mentions|description)"
    ),
    r"(?:the )?persona (?:i've|i have|i was|\")",
    r"my (?:fact sheet|scenario|role-?play|rollenbeschreibung|persona|character)\b",
    r"meiner rolle(?:nbeschreibung)?\b|mes consignes\b|meine anweisungen\b",
    r"(?:facts|description of me|details) (?:that )?i (?:was given|got|have been given)",
    r"stay in character|(?:in )?this role-?play|user goal\b|guideline \d+|conversation guidelines?",
    r"(?:the goal stated in|my task (?:is|was) to|goal is reached|stated in my task)",
    r"i(?:'m| am) (?:acting as|playing) an? ",
    (
        r"i (?:was|have been|am) (?:told|asked|instructed) (?:not to (?:provide|reveal|tell)|to (?:keep my messages"
        r"|only answer|behave like|stay|act))"
    ),
    r"i(?:'m| am) not allowed to (?:give away|reveal)|must not invent|it says i should write",
    r"(?:simulated|simulating|role-?play(?:ing)? as) (?:a |the )?(?:user|customer|person)",
    r"i(?:'m| am) (?:supposed|told|instructed|meant) to (?:play|act|pretend|simulate|pursue|end the conversation)",
    r"(?:success criteri|evaluation criteri|test case|rubric)\w*",
    r"begin [0-9a-f]{12}\b",
)
"""Phrases of somebody who speaks of instructions."""
_JSON_KEYS = re.compile(r"\"(?:stop|reason|message)\"\s*:")
_CLOSING_QUESTIONS = (
    r"(?:any|some)thing (?:else|more|further)",
    r"(?:any|some) (?:other|more|further) (?:question|concern|way)",
    rf"{_HELP} you (?:with )?(?:(?:any|some)thing|today|further)",
    r"what else can i",
    r"was (?:this|that) helpful",
    r"noch (?:etwas|was)|sonst noch",
)
"""Questions that a conversation may end with."""
_DECLINED = (
    r"don'?t|do not|cannot|can'?t|can not|not sure|no idea|unknown|unsure|not know|never|haven'?t|have not",
    r"won'?t|rather not|forgot(?:ten)?|couldn'?t|didn'?t|n/a|wei\u00df (?:ich )?nicht",
)
"""Words of somebody who does not tell a value."""
_CLOSING_WORDS = frozenset(
    [
        *("thank", "thanks", "thx", "you", "very", "much", "so", "a", "lot", "many", "bye", "goodbye", "cheers"),
        *("have", "nice", "good", "great", "day", "one", "evening", "weekend", "that's", "that", "is", "was"),
        *("all", "for", "now", "your", "the", "help", "time", "and", "see", "take", "care", "danke", "tschüss"),
        *("merci", "au", "revoir", "gracias", "adiós", "vielen", "dank", "auf", "wiedersehen", "super", "für", "ihre"),
        *("hilfe", "perfect", "cool", "ok", "okay", "sounds", "wonderful", "then", "i", "appreciate", "needed", "it"),
        *("explaining", "understanding", "arranging", "information", "everything", "to", "know", "solved", "problem"),
        *("we're", "looking", "forward", "in", "right", "later", "again", "i'm", "done", "this", "schönen", "tag"),
    ]
)
"""Words of a message that only says goodbye."""
_SENTENCE = re.compile(r"[^.!?\n]*\?")


def _compile(patterns: Sequence[str]) -> re.Pattern[str]:
    """Return one pattern for whole words, in which any space stands for a blank."""
    joined = "|".join(pattern.replace(" ", r"\s+") for pattern in patterns)
    return lazy_pattern(rf"(?<!\w)(?:{joined})", re.IGNORECASE)


_role_reversed = _compile(_ROLE_REVERSED)
_instructions_named = _compile(_INSTRUCTIONS_NAMED)
_closing_question = _compile(_CLOSING_QUESTIONS)
_declined = _compile(_DECLINED)
_repeat_asked = _compile((r"(?:repeat|say (?:that|it) again|rephrase|start over|didn't (?:catch|get) that|once more)",))


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
        self._texts = [*sayable, description]
        """Texts whose values the user may tell."""
        self._sayable = [_words(text) for text in sayable]
        self._hidden = [_words(text) for text in (*hidden, *INSTRUCTIONS.splitlines(), description)]
        """Texts that the user must not quote."""

    def find(self, step: Say | Stop, view: UserView) -> str | None:
        """Return the fault of a step as a sentence; `None` if there is none."""
        if isinstance(step, Stop):
            return self._open_question(view) if step.is_simulated and not step.is_limit else None
        if not step.is_simulated or step.message is None:
            return None
        text = step.message.text
        if not any(char.isalnum() for char in text):
            return "its message is empty"
        return (
            self._role_reversed(text)
            or self._quoted(text)
            or self._opening_repeated(text, view)
            or self._unknown_told(text, view)
            or self._invented(text, view)
            or (self._open_question(view) if step.is_last and _is_closing(text) else None)
        )

    def _invented(self, text: str, view: UserView) -> str | None:
        known = KnownValues([*self._texts, *[part for turn in view.turns for part in turn]])
        unknown = known.unknown(text)
        if not unknown:
            return None
        kind = "a date" if unknown[0].kind == "date" else f"the {unknown[0].kind}"
        return f"it told {kind} {unknown[0].text!r}, which is neither in its brief nor in anything the agent said"

    def _unknown_told(self, text: str, view: UserView) -> str | None:
        """Find a value for a fact that the user does not know."""
        known = KnownValues([*self._texts, *[part for turn in view.turns for part in turn]])
        for name, fact in self._brief.facts.items():
            if fact.value is not None:
                continue
            label = " ".join(_WORD.findall(name.replace("_", " ")))
            stated = re.search(rf"(?i)\bmy\s+{_spaced(label)}\s*(?:is|=|:|was)\s+(?P<value>[^.!?]+)", _plain(text))
            if stated and not _declined.search(stated["value"]) and not _is_vague(stated["value"]):
                return f"it told {label!r}, which its brief says it does not know: {_cut(text)!r}"
            asked = is_asked(fact, view.last_answer) and "?" in view.last_answer
            if asked and not _declined.search(text) and any(not known.knows(value) for value in find_values(text)):
                return f"it told {label!r}, which its brief says it does not know: {_cut(text)!r}"
        return None

    def _opening_repeated(self, text: str, view: UserView) -> str | None:
        opening = self._brief.opening or (view.turns[0][0] if view.turns else None)
        if not view.turns or not opening:
            return None
        first, now = _words(opening), _words(text)
        if _repeat_asked.search(_plain(view.last_answer)):
            return None
        is_contained = len(first) >= MIN_OPENING_WORDS and _contains(now, first)
        is_repeated = now == first or is_contained or _is_similar(first, now)
        return f"it repeated its opening: {_cut(text)!r}" if is_repeated else None

    def _role_reversed(self, text: str) -> str | None:
        match = _role_reversed.search(_plain(text))
        return f"it spoke in the role of the agent: {_cut(' '.join(match[0].split()))!r}" if match else None

    def _open_question(self, view: UserView) -> str | None:
        """Find a question of the agent that was not answered when the user ended the conversation."""
        questions = [sentence.strip() for sentence in _SENTENCE.findall(view.last_answer)]
        still_open = [question for question in questions if not _closing_question.search(question)]
        if not still_open:
            return None
        return f"it ended the conversation while a question of the agent was open: {_cut(still_open[-1])!r}"

    def _quoted(self, text: str) -> str | None:
        """Find parts of the instructions, or of texts that no user can have seen."""
        named = _instructions_named.search(_plain(text)) or _JSON_KEYS.search(text)
        if named:
            return f"it spoke of its instructions: {_cut(named[0])!r}"
        words = _words(text)
        for at in range(len(words) - QUOTED_WORDS + 1):
            part = words[at : at + QUOTED_WORDS]
            is_hidden = any(_contains(hidden, part) for hidden in self._hidden)
            if is_hidden and not any(_contains(known, part) for known in self._sayable):
                return f"it quoted a text that is not the user's: {' '.join(part)!r}"
        return None


def _plain(text: str) -> str:
    return text.translate(_APOSTROPHES)


def _is_closing(text: str) -> bool:
    """Tell whether a message only says thanks and goodbye, so that it answers no question."""
    return all(word in _CLOSING_WORDS for word in re.findall(r"[\w']+", _plain(text).casefold()))


def _words(text: str) -> list[str]:
    return _WORD.findall(_plain(text).casefold())


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    size = len(part)
    return any(list(words[at : at + size]) == list(part) for at in range(len(words) - size + 1))


def _is_similar(first: Sequence[str], now: Sequence[str]) -> bool:
    """Tell whether two messages of some length differ in a word or two only."""
    if min(len(first), len(now)) < QUOTED_WORDS:
        return False
    return SequenceMatcher(None, first, now, autojunk=False).ratio() >= SIMILAR


def _spaced(label: str) -> str:
    return r"[\s_-]*".join(re.escape(word) for word in label.split())


def _is_vague(text: str) -> bool:
    return not _WORD.search(text) or text.strip().casefold().startswith(("not ", "unknown", "something i"))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"
