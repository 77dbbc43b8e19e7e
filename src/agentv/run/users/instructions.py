"""Talk of instructions: a simulated user who speaks of its brief, its role or the test instead of its own matter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentv.run.users.speech import compile_pattern, contains, content_words, plain, words

if TYPE_CHECKING:
    from collections.abc import Sequence

QUOTED_WORDS = 7
"""Words in a row that a message must not share with a text that the user has never seen."""
_STRONG_NOUNS = (
    r"persona|role-?play|fact ?sheet|character sheet|system prompt|user prompt|user (?:profile|instructions?|goal"
    r"|persona|brief)"
    r"|briefing|task description|role description|scenario description|test case|test scenario|simulation|stop signal"
    r"|end signal|background story|backstory|rubric|rollenbeschreibung|rollenspiel|testfall"
)
"""Nouns that no user has a use for, unless the conversation is about them."""
_NOUNS = (
    r"instructions?|guidelines?|prompt|brief|scenario|script|role|character|task|objective|mission|assignment|goal"
    r"|facts?"
    r"|profile|setup|set-up|description|directives?|list of facts|sheet|data ?set|parameters|context|backstory"
    r"|rules?|card"
    r"|information|details|data|notes|setting|constraints|anweisung(?:en)?|auftrag|aufgabe|rolle|vorgaben?|ziel"
    r"|consignes?"
    r"|instrucciones|papel|guion|objetivo|tarea|istruzioni|ruolo|compito|instruções|instructies|opdracht|rôle|mission"
)
_OWNERS = r"(?:my|the|these|this|meine[rmn]?|den|die|der|mes|mon|mis|mi|mie|il mio|le mie|mijn|minhas)"
_SAYS = (
    r"(?:says?|said|states?|lists?|listed|marks?|tells?|told|does(?:n't| not)|do(?:n't| not)|did(?:n't| not)"
    r"|mentions?|wants?"
    r"|requires?|allows?|forbids?|covers?|specif(?:y|ies)|includes?|contains?|asks? me|instructs?|stipulates?"
    r"|dictates?|only"
    r"|has no|have no|is silent|gives?|gave|are to|is to|steht|sagt|sagen|disent|dit|dicen)"
)
_GIVEN = r"(?:given|assigned|handed|provided|supplied|told|briefed|set|specified|defined|listed|described)"
_STYLE = (
    r"(?:provide|reveal|give|share|disclose|say|answer|repl(?:y|ies)|respond|write|keep|end|finish|act|play|pretend"
    r"|behave|sound|only|pose|portray|represent"
    r"|simulate|insist|push|state|mention|find out|accept|object|stay|be (?:a|an|polite|rude|brief|short|impatient"
    r"|vague)"
    r"|not (?:to )?(?:reveal|provide|give|share|mention|invent|make|tell|disclose|say)|never (?:to )?\w+|avoid|use"
    r"|pursue"
    r"|take the (?:role|part)|make up|confirm|ask (?:about|for|you)|wrap|stop|conclude|remain|speak|talk|complain"
    r"|close|refuse"
    r"|wait (?:for|until) you|limit|hold back|withhold|request|report|get|obtain|continue|come across|be)"
)
_META = (
    (
        r"(?:goal|objective|task|role|aim|purpose) (?:in|of|for) this (?:conversation|chat|dialog\w*|exercise|call|test"
        r"|simulation)"
    ),
    r"(?:according to|as per) (?:the|my) (?:rules|description|sheet|card),? i",
    r"i should (?:now )?(?:say goodbye|end the conv)",
    r"note to self|user is \w+-?\w*,|facts?: \w|\w+: (?:unknown|null|n/a)\b|not to (?:reveal|disclose|give away)",
    r"i(?:'ve been| was| have been| am|'m) (?:instructed|tasked|briefed|assigned|programmed)(?! by)",
    (
        r"(?:told|asked|instructed|supposed|meant) to (?:accept|insist|object|negotiate|play|pretend|portray|pose as"
        r"|act (?:as|like)|simulate)"
    ),
    r"ending (?:the|this) conversation|in meiner rolle|in my role as an?",
    (
        r"(?:as|i'm|i am|being|me as|pretending to be|posing as) (?:an?|the) (?:simulated|fictional|fictitious|pretend"
        r"|virtual|fake|"
        r"mock|test|language|ai)\b"
    ),
    (
        r"(?:simulated|simulating|role-?playing|role play(?:ing)?|impersonat\w+|portray\w*|pretend(?:ing)? to be"
        r"|acting as|act as)"
    ),
    (
        r"(?:i'm|i am|i was|i've been) (?:playing|supposed to play|meant to play|cast as|set up (?:as|to)|configured"
        r"|programmed"
        r"|designed|scripted|prompted|tasked|simulat\w+)\b"
    ),
    (
        r"stay(?:ing)? in character|out of character|break(?:ing)? character|my character\b|in this (?:role|scenario"
        r"|simulation|test)|(?:consistent|true|faithful) (?:with|to) my (?:role|character|persona)"
    ),
    (
        rf"(?:i was|i've been|i have been|i'm|i am|been) (?:told|instructed|asked|briefed|directed|supposed|meant"
        rf"|required|tasked"
        r"|allowed|permitted|here|expected)(?: only| just| not| explicitly| merely)* to (?:only |just |always )*"
        rf"{_STYLE}\b"
        r"(?=.*\b(?:message|sentence|answer|question|information|word|reply|replies|conversation|once|short|brief"
        r"|brevity|honest"
        r"|character|persona|natural|goal|value|detail|fact|unless|user|customer|member|until you|at a time|per message"
        r"|polite)s?\b)"
    ),
    (
        r"i(?:'m| am) not (?:allowed|permitted|supposed|meant) to (?:give away|reveal|say|tell|share|disclose|invent"
        r"|make|mention)"
    ),
    r"i(?:'m| am) to (?:state|say|answer|reply|ask|pretend|act|be|play|end|keep|mention)\b",
    (
        r"(?:must|should|may|can)(?:n't| not| never) (?:invent|make up(?! my mind)|fabricate|break character)"
        r"|it says i (?:should|must|am to) (?:write|say|reply|answer|act|be)\b"
    ),
    (
        r"what (?:the|this|my) (?:user|customer|persona|character|person) (?:would|should|might|will) (?:say|answer|do"
        r"|reply|write)"
    ),
    (
        r"the (?:person|user|customer|persona|character|client) (?:that |who )?i(?:'m| am|'ve been)? "
        r"(?:play|act|represent|speak|simulat|impersonat|portray|asked|told|suppos|meant)\w*"
    ),
    r"(?:test|simulation|exercise|experiment|evaluation|benchmark) (?:that )?i(?:'m| am) (?:part of|in|running|doing)",
    (
        r"(?:marked|flagged|listed|given|set) as (?:unknown|null|none|n/a)|(?:goal|objective|task|mission) (?:is"
        r"|has been|was|now|has now been)"
        r"(?: now| been)? (?:reached|achieved|fulfilled|completed?|accomplished|met|done)"
    ),
    r"(?:user )?(?:goal|objective|task) (?:achieved|reached|fulfilled|completed?|accomplished)",
    (
        r"(?:completes?|concludes?|finishes|fulfil?ls?|reaches|achieves?|meets) (?:the|my) (?:goal|objective|task"
        r"|mission|scenario|assignment)"
    ),
    (
        r"(?:none|nothing|no \w+|not|isn't|wasn't|aren't|weren't)(?: is| was| were| are)? (?:specified|given|listed"
        r"|provided|defined"
        r"|included|stated|described|assigned)(?: to me| for me| about (?:me|that|this)| in (?:my|the)| here)"
    ),
    (
        r"(?:every|all|each|next) (?:\w+ )?(?:point|item|step|topic|fact)s? (?:on|of|in|from) (?:my|the) (?:list|brief"
        r"|script|task|plan)"
    ),
    (
        rf"(?:facts|details|information|data|description(?: of me)?|setup|set-up|values|points|objective|goal|task|role"
        rf"|brief|script)"
        rf" (?:that )?(?:i|we|me)(?:'ve| have|'m| am)?(?: was| were| been| got| get| can use| may use| {_GIVEN})"
    ),
    rf"(?:facts|details|information|values) {_GIVEN} to me|i (?:only )?have the (?:objective|goal|task|instruction)",
    (
        r"(?:the|this|my|that) (?:\w+ )?(?:scenario|script|brief|briefing|prompt|persona|instructions?|guidelines?"
        r"|profile|setup|objective"
        r"|assignment|facts) (?:that |which )?(?:i'm|i am|i was|i've been|i have been|i got|i received)\b"
    ),
    r"(?:supposed|meant|told|asked|instructed) to .{3,60} and then (?:stop|finish|end|leave|quit|conclude|say goodbye)",
    (
        r"begin [0-9a-f]{12}\b|guideline \d+|(?:success|evaluation|grading|pass) criteri\w+|evaluator\b"
        r"|expected (?:tool )?calls?\b"
    ),
    (
        r"(?:output|emit|send|issue|set|give)(?:ting|ing)? (?:the |a |an )?(?:stop|end|done|termination|final"
        r"|exit)[ -]?(?:signal|token"
        r"|word|flag|marker|to true)"
    ),
    (
        r"ich soll (?:nur|nicht|mich|als|so tun)|ich darf (?:\w+ )?nichts? (?:erfinden|verraten|sagen)"
        r"|ich spiele (?:hier |nur )?(?:ein|den)"
    ),
    (
        r"je (?:dois|suis censé\w*) (?:seulement|jouer|uniquement)|je joue (?:le rôle|un)|debo (?:solo|fingir|actuar)"
        r"|devo (?:solo|fingere)"
    ),
)
_MARKUP = re.compile(
    r"[\[<{(#*|]{1,3}\s*(?:/?\s*)(?:end|stop|done|exit|terminate|finish(?:ed)?|goal|user|task|conversation"
    r"|satisfied|transfer"
    r"|out[ _-]of[ _-]scope|persona|role|system|assistant|inst)\b[\w :,_-]*[\]>})#*|]"
    r"|\b(?:END|STOP|DONE|EXIT)[_ ](?:OF[_ ])?(?:CONVERSATION|CHAT|DIALOG(?:UE)?|TOKEN)\b|\bTERMINATE\b|###"
    r"|\"(?:stop|reason|message|role|content)\"\s*:|\b(?:stop|reason)\s*[:=]\s*(?:true|false)\b|<\|?/?\w+\|>",
)
"""Marks of a protocol."""
_PARAGRAPH = (
    r"(?:according to|as per|per|given|based on|following|in|from|on|under|by|laut|gemäß|selon|d'après|según|secondo"
    r"|volgens)"
)


_meta = compile_pattern("|".join(_META))
_strong_noun = compile_pattern(rf"(?:{_STRONG_NOUNS})\b")
_theirs = re.compile(r"(?:\b(?:its|your|their|his|her|an?|each|any|every)|'s)(?:\s+\w+)?\s*$", re.IGNORECASE)
"""Words before a noun that belongs to somebody else."""
_noun = compile_pattern(
    "|".join(
        (
            rf"{_OWNERS} (?:\w+ )?(?P<a>{_NOUNS}) (?:\w+ )?{_SAYS}\b",
            (
                rf"{_PARAGRAPH} (?:all )?(?:of )?{_OWNERS} (?:own |user |test |given |original |current |list of )*"
                r"(?P<b>instructions?|guidelines?|prompt|brief|scenario|script|task|objective|mission|assignment"
                r"|facts|profile|setup|directives?|backstory|anweisung(?:en)?|auftrag|aufgabe|rolle|vorgaben?"
                r"|consignes?"
                r"|instrucciones|papel|guion|istruzioni|ruolo|instruções|instructies|opdracht)\b"
            ),
        )
    )
)
_goal_named = re.compile(
    r"\bmy\s+(?:goal|objective|task|mission)\s*(?:is|was|:|here\s+is)\s*(?:to\s+)?(?P<goal>[^.!?]+)", re.IGNORECASE
)


def find_instructions(message: str, topics: Sequence[str], keys: Sequence[str], goal: str | None) -> str | None:
    """Return the part of a message that speaks of a brief, a role or a protocol.

    `topics` are the texts that say what the conversation is about: a word that they use is no word of instructions.
    """
    text = plain(message)
    mark = _MARKUP.search(text)
    if mark:
        return mark[0]
    key = next((key for key in keys if "_" in key and re.search(rf"(?<!\w){re.escape(key)}(?!\w)", text)), None)
    if key is not None and not any(key in topic for topic in topics):
        return key
    cited = next((key for key in keys if re.search(rf"\bfact\W+{re.escape(key)}\b", text, re.IGNORECASE)), None)
    if cited is not None:
        return f"fact {cited}"
    known = {word[:6] for topic in topics for word in words(topic)}
    for pattern in (_meta, _strong_noun, _noun):
        for match in pattern.finditer(text):
            named = words(match[0])
            is_theirs = pattern is _strong_noun and _theirs.search(text[: match.start()])
            if not is_theirs and not any(word[:6] in known for word in named if _is_topic(word)):
                return " ".join(match[0].split())
    return _named_goal(text, goal, known)


_TOPIC = re.compile(
    rf"(?:{_NOUNS}|{_STRONG_NOUNS}|test|user|customer|simulat\w+|play\w*|evaluat\w+|system|fact|case)s?", re.IGNORECASE
)


def _is_topic(word: str) -> bool:
    """Tell whether a word may be what a conversation is about."""
    return _TOPIC.fullmatch(word) is not None


def _named_goal(text: str, goal: str | None, known: set[str]) -> str | None:
    """Return a goal that is named as such in the words of the brief."""
    match = _goal_named.search(text)
    if match is None or not goal or "goal" in known:
        return None
    told, own = content_words(match["goal"]), content_words(goal)
    return match[0] if own and len(told & own) * 2 > len(own) else None


def find_quotation(message: str, hidden: Sequence[Sequence[str]], sayable: Sequence[Sequence[str]]) -> str | None:
    """Return words in a row that are in a hidden text and in no text that the user may repeat."""
    found = words(message)
    for at in range(len(found) - QUOTED_WORDS + 1):
        part = found[at : at + QUOTED_WORDS]
        if any(contains(text, part) for text in hidden) and not any(contains(text, part) for text in sayable):
            return " ".join(part)
    return None
