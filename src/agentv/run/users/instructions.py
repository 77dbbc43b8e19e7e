"""Talk of instructions: a simulated user who speaks of its brief, its role or the test instead of its own matter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentv.run.users.speech import compile_pattern, contains, content_words, plain, without_quotations, words

if TYPE_CHECKING:
    from collections.abc import Sequence

QUOTED_WORDS = 7
"""Words in a row that a message must not share with a text that the user has never seen."""
_STRONG_NOUNS = (
    r"persona|role-?play|fact ?sheet|character sheet|system prompt|user prompt|user (?:profile|instructions?|goal"
    r"|persona|brief)"
    r"|briefing|task description|role description|scenario description|test case|test scenario|simulation|stop signal"
    r"|end signal|background story|backstory|rubric|benchmark|evaluator|passing score"
    r"|(?:met|meets?|fulfil\w+|satisf\w+|passe[sd]) (?:\w+ )?(?:success|evaluation|grading|pass(?:ing)?) criteri\w+"
    r"|rollenbeschreibung|rollenspiel|testfall"
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
_OWN_NOUNS = (
    r"(?:instructions?|guidelines?|persona|brief|briefing|scenario|prompt|character|directives?|objectives?"
    r"|fact ?sheet|role description|backstory|simulation|assigned \w+)"
)
"""Nouns that are those of a simulated user if they are called its own."""
_META = (
    (
        r"(?:goal|objective|task|role|aim|purpose) (?:in|of|for) this (?:conversation|chat|dialog\w*|exercise"
        r"|call|test"
        r"|simulation)"
    ),
    r"(?:according to|as per) (?:the|my) (?:rules|description|sheet|card),? i",
    r"i should (?:now )?(?:say goodbye|end the conv)",
    rf"(?<!you\s)(?<!ignored\s)(?<!followed\s)(?<!read\s)(?<!per\s)my (?:own )?{_OWN_NOUNS}\b(?! to you)",
    r"(?:play|tak)(?:ing|e|s)? the (?:role|part) of|playing (?:an?|the) (?:\w+ )?(?:customer|user|client|buyer)\b",
    (
        r"(?:have been|'ve been|was|been|were|am|'m) (?:given|assigned|handed) (?:\w+ ){0,3}(?:goal|objective"
        r"|role|facts?"
        r"|instructions?|scenario|persona|script|character|brief)"
    ),
    (
        r"(?:this|it)(?:'s| is| was)(?: not real,?| all)?(?: only| just| merely)? (?:an? |part of (?:an? "
        r"|the ))?(?:\w+ )?(?:test|simulat\w+"
        r"|mock|fictional|pretend|fake|role-?play|exercise|practice|evaluation|benchmark) ?(?:conversation|chat"
        r"|dialog\w*"
        r"|scenario|case|call|user|order|exercise|run|interaction|anyway)"
    ),
    r"this is (?:only |just |merely |all )?(?:a |an )?(?:simulation|role-?play|simulated \w+|evaluation|benchmark)\b",
    r"you(?:'re| are| will be) (?:being |also )?(?:evaluated|tested|graded|scored|judged|assessed)",
    (
        r"(?:the|this) (?:test|evaluation|simulation|exercise|scenario) (?:is|was|has been|should be|can be|will be) "
        r"(?:now )?(?:passed|failed|over|done|finished|complete\w*|concluded|ended|successful)"
    ),
    (
        r"rule (?:number )?\d+ (?:says|states|forbids|tells|requires)|rules? (?:says?|forbids?|tells?) (?:me|i|never"
        r"|not|to)\b"
    ),
    (
        r"the (?:user|persona|simulated \w+) (?:should|would|must|will|is (?:supposed|meant|expected)|has to) (?:now "
        r"|then )?"
        r"(?:answer|say|reply|respond|ask|give|tell|be|stay|write|provide|thank|end)"
    ),
    (
        r"(?:i was|i've been|i have been|i'm|i am|been) (?:told|instructed|asked|directed|supposed|meant|ordered)"
        r"(?: only| just| not| explicitly)* to (?:only |just |always )*(?:say (?:that|i|so|no)\b|reveal|disclose"
        r"|pretend|act (?:as|like)"
        r"|play (?:a|an|the)\b|invent|make (?:this|it) up|end (?:the|this) (?:conversation|chat)"
        r"|stay (?:\w+ )?(?:angry|polite|calm"
        r"|impatient|vague|brief|rude|in character))"
    ),
    r"(?:is|was|as|are|set to|says|says it's) (?:null|none|nil|undefined)\b(?! of)",
    (
        r"(?:mes|mon|ma|meine[rmn]?|meinen|mis|mi|le mie|il mio|minhas|meu|mijn) (?:\w+ )?(?:consignes?"
        r"|instructions?|briefing"
        r"|rôle|scénario|personnage|anweisung(?:en)?|vorgaben?|rollen?(?:beschreibung)?|auftrag|skript|drehbuch"
        r"|instrucciones"
        r"|papel|guion|guión|personaje|istruzioni|ruolo|copione|instruções|personagem|instructies|rol)\b"
    ),
    (
        r"(?:dies|das) ist (?:ja |doch )?(?:nur |bloß )?(?:eine? )?(?:test|simul|rollenspiel|übung)\w*"
        r"|c'est (?:juste |seulement )?"
        r"(?:un test|une simulation)|es (?:sólo |solo )?una (?:simulación|prueba)|è solo (?:un test|una simulazione)"
    ),
    (
        r"(?:only|just|not|merely) (?:supposed|meant|allowed|permitted|told|asked|here) to (?:answer|say|tell|give"
        r"|reveal|share|mention"
        r"|respond|reply|disclose)\b|i(?:'m| am) allowed to (?:tell|give|reveal|say|share|disclose)"
    ),
    (
        r"(?:here|sent|told|asked|paid|supposed|going|trying) to test (?:you|your|how|if|whether|the (?:agent|bot"
        r"|support|process))"
    ),
    r"(?:have|need|had|supposed|told|asked|going|meant|want(?:ed)?) to pretend\b|pretending (?:that )?(?:i|to)\b",
    r"mein\w* (?:auftrag|aufgabe|ziel|rolle) (?:lautet|ist es|besteht|hier)",
    (
        r"(?:make|making|made) (?:things|anything|something|stuff|details|data|facts|values|it|this|that) up\b"
        r"|invent(?:ing)? (?:anything|something|things|one|values?|details?|data|facts?|information|an?\b|any\b|it\b)"
    ),
    r"(?:it says here|(?:i've been|i have been|i was|been) told)(?: that)? i(?:'m| am) an? ",
    r"(?:stay|staying|remain|be|keep|speak|talk|act|answer)(?:ing)? in (?:my|the|this) (?:role|part|character)",
    (
        r"(?:fictional|fictitious|imaginary|simulated|pretend|mock|placeholder|dummy|hypothetical) (?:\w+ )?"
        r"(?:order|number|name|address|customer|person|user|data|details?|value|account|date|booking|e-?mail"
        r"|conversation)"
    ),
    r"purposes? of (?:this|the) (?:exercise|test|conversation|simulation|chat|role\w*|dialog\w*|task|scenario)",
    r"(?:no|any|the|a|another|which|these|those) facts? (?:about|on|for|regarding|says?|states?|lists?|given|i)\b",
    (
        r"(?:to |am |'m |was )?test(?:ing)? (?:whether|if|how well|that) (?:you|the (?:agent|bot|assistant))"
        r"|test(?:ing)? (?:you|your (?:answers|behaviou?r|responses))\b"
    ),
    (
        r"(?:write|send|keep|use|give)(?:ing)? (?:my |the |only |very )*(?:short|brief|polite|long|one-?\w*"
        r"|concise|realistic)"
        r" (?:\w+ )?(?:messages?|sentences?|answers?|replies|reply)|keep (?:my |the |all )?(?:\w+ )?(?:messages"
        r"|answers|replies) (?:\w+ )?(?:short|brief|concise)"
    ),
    (
        r"next message(?! (?:you|i|we) (?:get|got|send|receive))|(?:first|last|final|user|customer) (?:message|turn"
        r"|utterance|reply) (?:of the user|as the|in (?:this|the) (?:role|scenario|simulation))"
    ),
    (
        r"(?:laut|gemäß|nach) (?:\w+ )?(?:szenario|rolle|rollen\w+|briefing|anweisung\w*|vorgaben?|auftrag|skript"
        r"|drehbuch|beschreibung|persona)\b"
    ),
    r"i(?:'m| am|'ve| was|'ve been) (?:only|just) given|(?:only|just) been given (?:the|an?|this|these)",
    (
        r"(?:i|we)(?:'ve| have|'m| am)? (?:now )?(?:reached|achieved|fulfilled|completed|accomplished|met) (?:my"
        r"|the) (?:goal|objective|task|mission)"
    ),
    (
        r"(?:end|close|finish|conclude|terminate|stop)(?:ing)? (?:the|this|our) (?:conversation|dialog\w*|simulation"
        r"|role-?play|scenario)\b(?! with (?:a|the|your) (?:human|agent))"
    ),
    r"(?:the|my|this|given|current) scenario\b",
    (
        r"(?:given|provided|supplied|available|known) to me (?:in|by|as|for) |(?:is|was|were|are)(?:n't"
        r"| not)? (?:\w+ )?(?:in|part of|among) (?:my|the) (?:facts|brief|briefing|instructions|profile|scenario"
        r"|persona|prompt|script|description|role)\b"
    ),
    r"note to self|user is \w+-?\w*,|facts?: \w|\w+: (?:unknown|null|n/a)\b|not to (?:reveal|disclose|give away)",
    r"i(?:'ve been| was| have been| am|'m) (?:instructed|tasked|briefed|assigned|programmed)(?! by)",
    (
        r"(?:told|asked|instructed|supposed|meant) to (?:accept|insist|object|negotiate|play|pretend|portray|pose as"
        r"|act (?:as|like)|simulate)"
    ),
    r"ending (?:the|this) conversation|in meiner rolle|in my role as an?",
    (
        r"(?:as|i'm|i am|being|me as|pretending to be|posing as) (?:an?|the) (?:simulated|fictional|fictitious"
        r"|pretend"
        r"|virtual|fake|"
        r"mock|test|language|ai)\b"
    ),
    (
        r"(?:simulated|simulating|role-?playing|role play(?:ing)?|impersonat\w+|portray\w*|pretend(?:ing)? to be"
        r"|act(?:ing)? (?:as|like) (?:an?|the) (?:\w+ )?(?:customer|user|client|caller|buyer|person|patient|guest"
        r"|human"
        r"|tenant|passenger|member|shopper))"
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
        r"|character|persona|natural|goal|value|detail|fact|unless|user|customer|member|until you|at a time"
        r"|per message"
        r"|polite)s?\b)"
    ),
    (
        r"i(?:'m| am) not (?:allowed|permitted|supposed|meant) to (?:give away|reveal|invent|make up|mention"
        r"|(?:say|tell|share|disclose|give)\b.{0,60}\b(?:unless|until|before|asked))"
    ),
    (
        r"i(?:'m| am) (?:only |just |not |never )?to (?:state|say|tell|give|reveal|share|disclose|answer|reply|ask"
        r"|pretend|act|play|end|keep|mention|stay|provide)\b"
    ),
    (
        r"(?:must|should|may|can)(?:n't| not| never) (?:invent|reveal|make up(?! my mind)|fabricate|break character)"
        r"|it says i (?:should|must|am to) (?:write|say|reply|answer|act|be)\b"
    ),
    (
        r"what (?:the|this|my) (?:user|customer|persona|character|person) (?:would|should|might|will) (?:say"
        r"|answer|do"
        r"|reply|write)"
    ),
    (
        r"the (?:person|user|customer|persona|character|client) (?:that |who )?i(?:'m| am|'ve been)? "
        r"(?:play|act|represent|speak|simulat|impersonat|portray|asked|told|suppos|meant)\w*"
    ),
    (
        r"(?:test|simulation|exercise|experiment|evaluation|benchmark) (?:that )?i(?:'m| am) (?:part of|in|running"
        r"|doing)"
    ),
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
        r"(?:every|all|each|next) (?:\w+ )?(?:point|item|step|topic|fact)s? (?:on|of|in|from) (?:my|the) (?:list"
        r"|brief"
        r"|script|task|plan)"
    ),
    (
        rf"(?:facts|details|information|data|description(?: of me)?|setup|set-up|values|points|objective|goal|task"
        rf"|role"
        rf"|brief|script)"
        rf" (?:that )?(?:i|we|me)(?:'ve| have|'m| am)?(?: was| were| been| got| get| can use| may use| {_GIVEN})"
    ),
    rf"(?:facts|details|information|values) {_GIVEN} to me|i (?:only )?have the (?:objective|goal|task|instruction)",
    (
        r"(?:the|this|my|that) (?:\w+ )?(?:scenario|script|brief|briefing|prompt|persona|instructions?|guidelines?"
        r"|profile|setup|objective"
        r"|assignment|facts) (?:that |which )?(?:i'm|i am|i was|i've been|i have been|i got|i received)\b"
    ),
    (
        r"(?:supposed|meant|told|asked|instructed) to .{3,60} and then (?:stop|finish|end|leave|quit|conclude"
        r"|say goodbye)"
    ),
    (
        r"begin [0-9a-f]{12}\b|guideline \d+|(?:success|evaluation|grading|pass) criteri\w+ (?:require|say|state"
        r"|demand|are|is|of)\w*|evaluator\b"
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
    r"(?i:[\[<{(#*|]{1,3}\s*(?:/?\s*)(?:end|stop|done|exit|terminate|finish(?:ed)?|goal|user|task|conversation"
    r"|satisfied|transfer"
    r"|out[ _-]of[ _-]scope|persona|role|system|assistant|inst)\b[\w :,_-]*[\]>})#*|])"
    r"|\b(?:END|STOP|DONE|EXIT)[_ ](?:OF[_ ])?(?:CONVERSATION|CHAT|DIALOG(?:UE)?|TOKEN)\b|\bTERMINATE\b|###"
    r"|(?i:\byou are (?:an?|the) (?:\w+ ){0,2}(?:customer|user|client|persona|buyer|patient|tenant|guest|shopper"
    r"|caller) (?:who|that|with|of)\b)"
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
                r"(?P<b>instructions?|guidelines?|prompt|brief|scenario|script|role|persona|character|rôle|task"
                r"|objective|mission|assignment"
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
    text = without_quotations(text)
    known = {word[:6] for topic in topics for word in words(topic)}
    for pattern in (_meta, _strong_noun, _noun):
        for match in pattern.finditer(text):
            named = words(match[0])
            is_theirs = pattern is _strong_noun and _theirs.search(text[: match.start()])
            if not is_theirs and not any(word[:6] in known for word in named if _is_topic(word)):
                return " ".join(match[0].split())
    return _named_goal(text, goal, known)


_TOPIC = re.compile(
    rf"(?:{_NOUNS}|{_STRONG_NOUNS}|test|user|customer|simulat\w+|play\w*|evaluat\w+|system|fact"
    rf"|case)s?",
    re.IGNORECASE,
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
