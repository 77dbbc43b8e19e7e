"""Talk of instructions: a simulated user who speaks of its brief, its role or the test instead of its own matter.

People speak of instructions, tasks, roles and tests too: those of a manual, of their job, of a doctor. So a word alone
is no evidence. A brief is the user's own, it says what he may know or how he should behave, and it comes from nobody
else in the conversation: two of these signs are needed, or words that no user has a use for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentv.run.users.speech import (
    QUOTED,
    compile_pattern,
    contains,
    content_words,
    plain,
    sentences,
    stems,
    without_quotations,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

QUOTED_WORDS = 7
"""Words in a row that a message must not share with a text that the user has never seen."""
QUOTED_GOAL = 5
"""The same for its own goal in quotation marks."""
SUFFICIENT = 2
"""Signs from which a message speaks of its instructions."""
_PLAYED = (
    r"(?:customer|user|client|caller|buyer|shopper|patient|tenant|guest|passenger|member|student|person|human|persona"
    r"|character|role|part)"
)
_MADE_UP = r"(?:simulated|simulating|fictional|fictitious|imaginary|made-up|pretend|synthetic|role-?play(?:ing)?|mock)"
_UNMISTAKABLE = (
    (
        rf"(?:portraying|impersonating|role-?playing|acting out|playing) (?:the|an?) (?:\w+ ){{0,2}}(?:well|resident"
        rf"|{_PLAYED})\b"
    ),
    (
        rf"(?:(?:my|the|this|your|assigned) (?:\w+ )?|an? )persona\b|(?:simulated|fictional|fictitious"
        rf"|imaginary) (?:\w+ )?{_PLAYED}"
    ),
    r"(?:fact|character) ?sheet|(?:system|user) prompt|(?:role|scenario|character|persona) description",
    r"user (?:profile|goal|persona|brief|instructions) (?:for|in|of|says?|states?|lists?|achieved|reached|complete)",
    (
        r"the (?:prompt|brief|persona|scenario|role description|task description) (?:only |just |also )?(?:says?"
        r"|states?|lists?|mentions?|tells? me|does(?:n't| not)|requires|wants me|gives)\b"
    ),
    (
        r"(?:in|aus) meiner rolle als (?:kund|nutzer|user|anrufer)|(?:en mi papel de|dans mon rôle de"
        r"|nel mio ruolo di) client"
    ),
    (
        r"(?:will|'ll|can|should) (?:now )?(?:end|stop|conclude|terminate) (?:the|this|our) (?:conversation|dialog\w*"
        r"|simulation)(?! with)|according to the facts,|(?:stays?|remains?|keeps?|breaks?) in character"
    ),
    (
        r"(?:^|[.!] )(?:the )?(?:task|goal|objective|mission)(?: is)? (?:complete|completed|achieved|accomplished"
        r"|fulfilled)[.!]"
    ),
    r"(?:stop|end|exit|termination) (?:signal|token|flag|marker)|rollenbeschreibung|rollenspiel|testfall",
    (
        r"(?:i'm|i am|i was|me|here) (?:only |just |merely |really )*(?:playing|acting|posing|cast|simulating"
        r"|portraying"
        rf"|impersonating|representing|role-?playing) (?:as |like |out )?(?:an?|the|this|my) (?:\w+ ){{0,3}}{_PLAYED}\b"
    ),
    rf"(?:i'm|i am|i was|me as|as|being|i) (?:only |just |actually |really )*(?:an?|the) {_MADE_UP}\b",
    (
        rf"(?:i'm|i am|as|being) (?:only |just )*an? (?:test|virtual) {_PLAYED}|(?:user|customer|person|persona"
        r"|client) (?:that |who |whom )?i(?:'m| am|'ve been| was) (?:\w+ )?(?:play|simulat|act|represent|portray"
        r"|impersonat|asked to|told to)\w*"
    ),
    (
        r"\bi(?:'m| am)? (?:only |just |merely |really )*(?:play|act|pose|simulate|portray|impersonate) (?:as |out )?"
        rf"(?:an?|the) {_PLAYED}\b"
    ),
    r"(?:play|tak)(?:ing|e|s)? the (?:role|part) of|(?:i'm|i am) role-?playing|pretending (?:that )?i\b",
    r"(?:have|need|had|supposed|told|asked|going|meant|want(?:ed)?) to (?:pretend|role-?play|simulate an?)\b",
    (
        r"(?:stay|staying|remain|break|breaking|out of|be|speak|act|answer)(?:ing)? (?:in )?(?:my |the "
        r"|this )?(?:character|role)\b"
    ),
    (
        rf"as (?:an?|the|this|my) {_PLAYED} (?:in|of|for|within) (?:this|the|my) (?:test|simulation|role-?play|scenario"
        r"|exercise|story|dialogue|conversation)"
    ),
    (
        rf"(?:this|it)(?:'s| is| was|'s all| is all)?(?: not real,?| only| just| merely)* (?:an? |part of (?:an? "
        r"|the ))?"
        rf"(?:\w+ )?(?:test|evaluation|practice|benchmark|{_MADE_UP}) (?:conversation|chat|dialog\w*|scenario"
        r"|interaction|call)\b"
    ),
    r"(?:this|it)(?:'s| is| was)(?: all| only| just| merely)* (?:an? )?(?:simulation|role-?play|simulated \w+)\b",
    r"(?:in|of|for|outside) (?:this|the) (?:simulation|role-?play|benchmark|exercise)\b",
    r"you(?:'re| are| will be| have been) (?:being |also )?(?:evaluated|tested|graded|scored|assessed)\b",
    (
        r"(?:the|this) (?:test|evaluation|simulation|benchmark|scenario) (?:is|was|has been|should be|can be"
        r"|will be) (?:now )?(?:passed|over|done|finished|complete\w*|concluded|ended|successful)"
    ),
    (
        r"(?:evaluator|grader|rubric)(?:s|'s)?\b|(?:success|passing|pass) (?:criteri\w+|score)|(?:met|meets?"
        r"|satisf\w+|pass\w*) (?:\w+ )?evaluation criteri\w+|evaluation criteri\w+ (?:require|say|state|demand)"
        r"|as expected by the (?:test|evaluat\w+)|expected (?:tool )?calls?\b"
    ),
    (
        r"(?:my|the|that|this|user|conversation) (?:goal|objective|mission) (?:is|has been|was|now"
        r"|has now been)(?: now| been| thus)* (?:reached|achieved|fulfilled|completed?|accomplished|met|done)|(?:goal"
        r"|objective|mission) (?:achieved|reached|fulfilled|completed?|accomplished)"
    ),
    (
        r"(?:reached|achieved|fulfilled|accomplished|met|completes?|concludes?|fulfil?ls?) (?:my|the) (?:goal"
        r"|objective|mission|assignment|scenario)\b"
    ),
    (
        r"(?:output|emit|send|issue|set|give)(?:ting|ing)? (?:the |a |an )?(?:stop|end|done|termination|final"
        r"|exit)[ -]?(?:signal|token|word|flag|marker|to true)"
    ),
    (
        r"(?:will|should|can|may|must|'ll) now (?:end|stop|conclude|close|terminate) (?:the|this|our) (?:conversation"
        r"|dialog\w*|simulation|chat)|ending (?:the|this) (?:conversation|dialog\w*|simulation) (?:now|here)"
    ),
    (
        r"(?:the|this) (?:conversation|dialog\w*) (?:is|can|may|should) (?:now )?(?:be )?(?:over|end(?:ed)?"
        r"|complete\w*|concluded)\b"
    ),
    (
        r"the (?:user|persona|simulated \w+) (?:should|would|must|will|is (?:supposed|meant|expected)|has to) (?:now "
        r"|then )?(?:answer|say|reply|respond|ask|give|tell|be|stay|write|provide|thank|end)"
    ),
    (
        r"what (?:the|this|my) (?:user|customer|persona|character) (?:would|should|might|will) (?:say|answer|do|reply"
        r"|write)"
    ),
    rf"you are an? (?:\w+ ){{0,2}}{_PLAYED} (?:who|that|with|of|in)\b",
    (
        r"(?:facts?|brief|goal|objective|scenario|persona|prompt|role) (?:that )?(?:i(?:'ve| have|'m| am| was"
        r"|'ve been| have been)? (?:been )?(?:given|assigned|handed|provided|supplied|briefed)|(?:given|assigned"
        r"|handed|provided) to me|i got)"
    ),
    (
        r"(?:given|assigned|handed) (?:this|these|the|an?|my|following|some) (?:\w+ )?(?:facts|persona|goal|objective"
        r"|scenario|character|set of facts|brief)\b"
    ),
    (
        r"(?:given|provided|available|known|assigned) to me (?:in|as|for) (?:my|the|this) (?:brief|instructions"
        r"|scenario|prompt|profile|facts|role|persona|task|simulation|conversation)"
    ),
    (
        r"(?:no|any|the|my|these|those|a|another|which) facts? (?:says?|states?|lists?|given|don't|do not|doesn't"
        r"|didn't|i (?:have|was|got|know))"
    ),
    (
        r"(?:in|part of|among|from) my (?:\w+ )?(?:facts|brief|briefing|prompt|scenario|persona)\b"
        r"|in my (?:instructions|guidelines)(?! to| for)"
    ),
    (
        r"begin [0-9a-f]{12}\b|guideline \d+\b|i(?:'ve been| was| have been| am|'m) (?:programmed|scripted"
        r"|configured) to\b"
    ),
    (
        r"(?:only|not|never) (?:\w+ ){0,3}(?:tell|reveal|give|say|state|share|disclose|mention|volunteer"
        r"|answer)\b[^.!?]{0,60}\b(?:when|unless|until|if) (?:\w+ )?(?:i'm |i am |you |it's |explicitly "
        r"|directly )*ask(?:s|ed)?\b|(?:tell|reveal|give|state|share|disclose|mention"
        r"|volunteer)\b[^.!?]{0,40}\b(?:only|just) (?:when|if|after) (?:\w+ ){0,3}asked\b"
    ),
    r"more than one (?:fact|detail|piece of information) (?:per|at|in)",
    (
        r"(?:allowed|supposed|meant|permitted|told|must|should|may|cannot|mustn't) (?:\w+ )?(?:to )?(?:invent"
        r"|fabricate|make (?:things|anything|something|stuff|details|data|facts|values|one|it|this"
        r"|that) up(?! to (?:me|us))|make up (?!for|my|your|our))\b"
    ),
    (
        r"(?:according to|as per|laut|gemäß) (?:the |my |this |dem |der |meine\w* )?(?:scenario|brief\b|briefing"
        r"|prompt|persona|role|szenario|rolle|drehbuch|rollen\w+)"
    ),
    (
        r"(?:task|test|user|customer) (?:description|scenario) (?:says?|states?|mentions?|does|gives?|lists?)"
        r"|my (?:fictional|fictitious|imaginary|made-up|simulated) "
    ),
    (
        r"(?:no|any) facts? (?:about|on|for|regarding)|(?:the|next|first|last|user|final) message (?:of"
        r"|from) the (?:user|customer|persona)"
    ),
    (
        r"(?:here|asked|supposed|paid|sent|told(?: me)?) to test (?:you\b|your|whether you|if you|how (?:well )?you"
        r"|the (?:agent|bot))"
    ),
    (
        r"my (?:character|persona|role) (?:\w+ )?(?:wouldn't|would|doesn't|does not|does|isn't supposed to) (?:not "
        r")?(?:know|have|say|tell)"
    ),
    r"what i(?:'m| am| was| have been|'ve been) (?:given|told) about (?:myself|me\b|this (?:person|user|role))",
    r"i(?:'m| am) (?:only|just) given|i(?:'m| am) (?:only )?allowed to (?:give|tell|reveal to) you",
    (
        r"(?:covered|stated|mentioned|listed|given|included|specified|described|provided|contained|available|found"
        r"|noted) (?:by|in) (?:my (?:brief|instructions|prompt|scenario|persona|facts|role|task)|the (?:brief|prompt"
        r"|persona|facts|scenario))\b"
    ),
    (
        r"no (?:value|information|detail|fact|data)s? (?:about that )?(?:was|were|is|has been|have been) (?:given"
        r"|provided|assigned) (?:to|for) me"
    ),
    (
        r"(?:told|asked|supposed|instructed|meant) to (?:play|act as|act like|portray|pose as|simulate"
        r"|impersonate) (?:an?|the|some\w+)\b"
    ),
    r"in (?:this|the|my) scenario,? (?:it's|it is|i'm|i am|i have|i've|my|there|we|the (?:user|customer))",
    # Other languages.
    (
        r"(?:ich|je|io|yo|eu|ik) (?:spiele|joue|interpreto|recito|finjo|represento|speel) (?:hier |nur |ici |solo "
        r"|qui |aquí )*(?:ein|den|die|le rôle|un|una|el papel|il ruolo|o papel|de rol|een)"
    ),
    (
        r"(?:dies|das|c'est|es|è|isto é|dit is)(?: ist| hier ist)?(?: ja| doch| nur| bloß| juste| seulement| sólo"
        r"| solo| apenas| slechts)* (?:eine?|une?|una|uma|een) (?:testgespräch|simulation|rollenspiel|simulación"
        r"|simulazione|simulação|simulatie|jeu de rôle|juego de rol|test(?:konversation|dialog))"
    ),
    (
        r"(?:in|dans|en|nella|nesta|in) (?:dieser|diesem|cette|esta|questa|nesta|deze|dit|ce|este|questo) (?:simul\w+"
        r"|rollenspiel|rollenspel|jeu de rôle|juego de rol|gioco di ruolo|szenario|scénario|escenario|scenario"
        r"|cenário)"
    ),
    (
        r"(?:ich darf|ich soll|je ne dois|je dois|no debo|debo|non devo|devo|não devo|ik mag"
        r"|ik moet) (?:\w+ ){0,4}(?:erfinden|verraten|vorgeben|inventer|révéler|prétendre|jouer|inventar|revelar"
        r"|fingir|actuar|inventare|rivelare|fingere|recitare|inventar|revelar|verzinnen|onthullen|doen alsof)"
    ),
)
"""Words that no user has a use for."""
_SOURCES = (
    r"(?:instructions?|guidelines?|directives?|briefing|brief|prompt|scenario|script|role|character|task|objectives?"
    r"|goal|mission|assignment|facts?|profile|set-?up|description|sheet|context|backstory|background story|rules?"
    r"|card)"
)
_FOREIGN_SOURCES = (
    r"(?:anweisung(?:en)?|vorgaben?|rolle|szenario|drehbuch|steckbrief|briefing|consignes?|instructions?|rôle"
    r"|scénario|personnage|fiche|mission|instrucciones|papel|guion|guión|personaje|escenario|istruzioni|ruolo|copione"
    r"|personaggio|instruções|personagem|instructies|rol|opdracht|aufgabe|auftrag|ziel)"
)
_FOREIGN_MY = r"(?:meine[rmnrs]?|mein|mes|mon|ma|mis|mi|le mie|il mio|la mia|minhas|meu|minha|mijn)"
_SAYS = (
    r"(?:says?|said|states?|lists?|marks?|tells?|told|mentions?|wants?|requires?|allows?|forbids?|covers?|specif(?:y"
    r"|ies)|includes?|contains?|asks? me|instructs?|dictates?|gives?|has no|have no|is silent|(?:does|do|did)(?:n't"
    r"| not))"
)
_FOREIGN_SAYS = (
    r"(?:steht|sagt|sagen|geben|gibt|enthält|nennt|lautet|disent|dit|précise\w*|indique\w*|dicen|dice|indica\w*"
    r"|dicono|dizem|diz|zeggen|staat|ist|est|es|è|é|is)"
)
_OWN_SOURCE = rf"my (?:own |user |test |given |original |current |assigned )*{_SOURCES}"
_ACCORDING = (
    r"(?:according to|as per|per|given|based on|following|from|under|by|laut|gemäß|nach|selon|d'après|según|secondo"
    r"|segundo|conforme|volgens)"
)
_SIGNS = (
    # An instruction of its own, or one that it was given.
    (
        rf"{_OWN_SOURCE}\b|{_FOREIGN_MY} {_FOREIGN_SOURCES}\b"
        r"|(?:instructions?|script|guidelines?|information|details|description|rules) (?:that )?(?:i(?:'ve| have|'m"
        r"| am| was|'ve been| have been)? (?:been )?(?:given|got|received|have|provided|told)|(?:given"
        r"|provided) to me)|(?:i was|i've been|i have been|i'm|i am|been) (?:\w+ )?(?:told|instructed|asked|briefed"
        r"|supposed|meant|required|tasked|allowed|permitted|here|expected|assigned)\b|told me to\b|as (?:instructed"
        r"|briefed|told|requested)\b|i (?:must|may|should)(?: not| never)|rules? (?:number )?(?:\d+ )?(?:says?"
        r"|states?|forbids?|tells?)|i should (?:now )?(?:say|answer|act|be|stay|behave)|(?:the|these|this) (?:prompt"
        r"|brief|instructions?|scenario|script) (?:only )?"
        rf"{_SAYS}|(?:simulation|benchmark|rubric|evaluat(?:or|ion)|briefing|backstory|scenario|script)\b"
    ),
    # The instruction says something, or is where a fact comes from.
    (
        r"(?:information|details|data) (?:\w+ ){1,4}(?:doesn't|does not|don't|do not) (?:include|say|mention|cover"
        r"|contain)|"
        rf"{_OWN_SOURCE} (?:\w+ )?{_SAYS}\b|{_FOREIGN_MY} {_FOREIGN_SOURCES} (?:\w+ )?{_FOREIGN_SAYS}\b"
        rf"|{_FOREIGN_SAYS} (?:\w+ )?(?:in |dans |en )?{_FOREIGN_MY} {_FOREIGN_SOURCES}\b|(?:{_ACCORDING}) "
        rf"(?:{_OWN_SOURCE}|{_FOREIGN_MY} {_FOREIGN_SOURCES})\b"
        r"|(?:it says here|been told|was told) (?:that )?i(?:'m| am) an? "
    ),
    # What it may know or tell, and how it should behave.
    (
        r"(?:marked|flagged|listed|given|set|specified|stated|described|shown) as [\"']?(?:unknown|null|none|n/a"
        r"|public)|\b(?:is|are|was|says|as) [\"']?(?:unknown|null|n/a)\b|unknown to me|unbekannt|nicht bekannt"
        r"|inconnue?|desconocid\w+|sconosciut\w+|(?:isn't|not|none|nothing|no \w+)(?: is| was| were"
        r"| are)? (?:specified|given|listed|provided|defined|stated|included|mentioned)|(?:reveal|disclose|invent"
        r"|make up|volunteer|pretend|fabricate)\b|(?:only|just|not) (?:to )?(?:answer|say|tell|mention|respond|reply"
        r"|share|give|state)\b|to say (?:that|no|yes|i)\b|(?:be|stay|act|sound|remain|keep|appear) (?:\w+ )?(?:angry"
        r"|impatient|polite|rude|vague|brief|short|calm|friendly|insistent|persistent|difficult|natural|realistic"
        r"|in character|cooperative|concise|confused|sceptical|skeptical)|(?:short|brief|one-?word"
        r"|concise) (?:messages?|sentences?|answers?|replies)|(?:messages?|answers|replies) short|(?:only|just) (?:on"
        r"|upon|when|if) (?:explicit\w* )?(?:request|asked)|keep(?:ing)? (?:it|this|things|everything) (?:short|brief"
        r"|curt)|(?:keep|say) it (?:short|brief)|one (?:fact|thing|question|sentence) (?:per|at a)|(?:this|the|our"
        r"|a) conversation\b|(?:insist on|object to|refuse|negotiate|complain|accept)\b.{0,40}\b(?:until|unless|offer"
        r"|agent)|the agent\b"
        rf"|(?:you are|i am|i'm|as|like|be|act|play) an? (?:\w+ ){{0,2}}{_PLAYED}\b|this (?:role|test|exercise)\b"
        r"|(?:accomplished|fulfilled|achieved)\b|(?:says?|states?|tells? me) (?:that )?(?:i (?:do not|don't|can't"
        r"|cannot) (?:know|remember)|i (?:should|must|am to) (?:say|answer|write|be|stay|act|reply|keep)|i(?:'m"
        r"| am) an?\b|my (?:\w+ ){1,3}is)|(?:only|just) (?:supposed|meant|allowed|told|permitted) to (?:answer|say"
        r"|tell|give|reveal|mention|respond|reply|disclose|know)|not (?:supposed|meant|allowed"
        r"|permitted) to (?:reveal|disclose|mention|answer|say|know)|\b(?:and|then) (?:then )?(?:stop|finish|end|quit"
        r"|conclude|say goodbye)\b"
    ),
)
"""Signs of talk about a brief; each of the three counts once."""
_ELSEWHERE = re.compile(
    r"\b(?:pin|password|passcode|courier|driver|colleague|doctor|dentist|nurse|boss|manager|teacher|bank|landlord"
    r"|seller|shop|store|manual|box|package|parcel|label|leaflet|letter|website|web\s+site|site|page|app|portal"
    r"|contract|invoice|booking|hotline|screen|display|form|desk|counter|office|job|work|company|team|manufacturer"
    r"|insurer|police|embassy|your\s+(?!instructions)\w+|by\s+(?:the|your|my|our|a)\s+\w+|someone|somebody)\b",
    re.IGNORECASE,
)
"""Words for those from whom people have instructions."""
_MARKUP = re.compile(
    r"(?i:[\[<{(#*|]{1,3}\s*(?:/?\s*)(?:end|stop|done|exit|terminate|finish(?:ed)?|goal|user|task|conversation"
    r"|satisfied|transfer|out[ _-]of[ _-]scope|persona|role|system|assistant|inst)\b[\w :,_-]*[\]>})#*|])|\b(?:END"
    r"|STOP|DONE|EXIT)[_ ](?:OF[_ ])?(?:CONVERSATION|CHAT|DIALOG(?:UE)?|TOKEN)\b|\bTERMINATE\b|###[A-Z ]"
    r"|^\s*(?:```\w*\s*)?\{\s*\"(?:stop|reason|message|role|content)\"\s*:|\"stop\"\s*:\s*(?:true|false)|\b(?:stop"
    r"|reason)\s*[:=]\s*(?:true|false)\b|<\|/?\w+\|>|(?i:^\s*(?:system prompt|user|persona|role|system|assistant"
    r"|customer)\s*:)|(?i:\byou are (?:an?|the) (?:\w+ ){0,2}(?:customer|user|client|persona|buyer|patient|tenant"
    r"|guest|shopper|caller) (?:who|that|with|of)\b)",
)
"""Marks of a protocol."""
_UNSET = re.compile(
    r".{0,30}\bnull\b|\s*[:=]\s*[\"']?(?:unknown|n/a)\b|.{0,40}\b(?:marked|flagged|listed|given|set"
    r"|specified) as [\"']?(?:unknown|n/a|none)\b"
)
"""Words after the name of a fact that a brief does not know."""
_unmistakable = compile_pattern("|".join(_UNMISTAKABLE))
_signs = tuple(compile_pattern(sign) for sign in _SIGNS)
_goal_named = re.compile(
    r"\b(?:my|the)\s+(?:goal|objective|task|mission)\s*(?:is|was|:|here\s+is)\s*(?:to\s+)?(?P<goal>[^.!?]+)",
    re.IGNORECASE,
)
_TOPIC = re.compile(
    rf"(?:{_SOURCES}|persona|simulat\w+|test|user|customer|play\w*|evaluat\w+|system|benchmark|rubric|conversation)s?",
    re.IGNORECASE,
)


def find_instructions(message: str, topics: Sequence[str], keys: Sequence[str], goal: str | None) -> str | None:
    """Return the part of a message that speaks of a brief, a role or a protocol.

    `topics` are the texts that say what the conversation is about: a word that they use is no word of instructions.
    """
    text = plain(message)
    mark = _MARKUP.search(text)
    if mark:
        return mark[0]
    named = _named_key(text, topics, keys)
    if named is not None:
        return named
    text = without_quotations(text)
    known = {word[:6] for topic in topics for word in words(topic)}
    for match in _unmistakable.finditer(text):
        if not _is_about(match[0], known):
            return " ".join(match[0].split())
    return _signs_of(text, known) or _named_goal(text, goal, known)


def _named_key(text: str, topics: Sequence[str], keys: Sequence[str]) -> str | None:
    """Return the name of a fact that a message uses as a brief does, which no user sees."""
    folded = text.casefold()
    for key in keys:
        if (
            "_" in key
            and re.search(rf"(?<!\w){re.escape(key)}(?!\w)", text)
            and not any(key in topic for topic in topics)
        ):
            return key
        word = key.casefold().partition("_")[0]
        if word not in folded:
            continue
        if re.search(rf"\bfact\W+{re.escape(key)}\b|(?<!\w){re.escape(key)}\s?=\s?\S", text, re.IGNORECASE):
            return f"fact {key}"
        if any(_UNSET.match(folded, match.end()) for match in re.finditer(rf"\b{re.escape(word)}\b", folded)):
            return f"{key} is unknown"
    return None


def _signs_of(text: str, known: set[str]) -> str | None:
    """Return the words of a text of which enough signs say that they are about a brief."""
    found = [match for match in (sign.search(text) for sign in _signs) if match and not _is_about(match[0], known)]
    if not found or found[0].re is not _signs[0]:
        return None
    sentence = next((part for part in sentences(text) if found[0][0] in part), text)
    weight = len(found) - (1 if _ELSEWHERE.search(sentence) else 0)
    return " ".join(found[0][0].split()) if weight >= SUFFICIENT else None


def _is_about(part: str, known: set[str]) -> bool:
    """Return whether the conversation is about what a part of a message names."""
    return any(word[:6] in known for word in words(part) if _TOPIC.fullmatch(word))


def _named_goal(text: str, goal: str | None, known: set[str]) -> str | None:
    """Return a goal that is named as such in the words of the brief."""
    match = _goal_named.search(text)
    if match is None or not goal or "goal" in known:
        return None
    told, own = stems(content_words(match["goal"])), stems(content_words(goal))
    return match[0] if own and len(told & own) * 3 > len(own) * 2 else None


def find_quoted_goal(message: str, goal: str | None) -> str | None:
    """Return a quotation that is a part of the goal: a user has it in mind, and not in writing."""
    aim = words(goal or "")
    quoted = (match[0] for match in QUOTED.finditer(plain(message)))
    return next((text for text in quoted if len(words(text)) >= QUOTED_GOAL and contains(aim, words(text))), None)


def find_quotation(message: str, hidden: Sequence[Sequence[str]], sayable: Sequence[Sequence[str]]) -> str | None:
    """Return words in a row that are in a hidden text and in no text that the user may repeat."""
    found = words(message)
    for at in range(len(found) - QUOTED_WORDS + 1):
        part = found[at : at + QUOTED_WORDS]
        if any(contains(text, part) for text in hidden) and not any(contains(text, part) for text in sayable):
            return " ".join(part)
    return None
