"""Reversed roles: a simulated user who speaks as the agent does.

No single word tells the two sides apart, so the acts of the serving side are weighed: an offer of help, work done for
the other, a request for data that the user himself holds, advice, and things of the user that are called "your".
"""

from __future__ import annotations

import re

from msgspec import Struct

from agentv.matching.values import squeeze
from agentv.run.users.acts import STRONG, WEAK
from agentv.run.users.speech import (
    AGENT_THINGS,
    compile_pattern,
    content_words,
    is_declined,
    is_lacking,
    is_question,
    open_requests,
    plain,
    sentences,
    without_quotations,
    words,
)

REVERSED = 2.0
"""Weight of acts from which the roles are reversed."""
_YOUR = re.compile(
    r"\byour (?:own |new |old |current |first |next )*(\w+)(?=$|[.,;:!?)]|\s(?!\w)|\s\w+)", re.IGNORECASE
)
_MY = re.compile(
    r"\b(?:my|our|mein\w*|mon|ma|mes|mi|mis|meu|minha) (?:own |new |old |current |first |next )*(\w+)", re.IGNORECASE
)
_OFFERS = re.compile(r"\b(?:volunteer|donat|help out|apply|application|job|offer|sell)\w*", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i'd|i'll|i've|me|my|mine|we|us|our|ours)\b", re.IGNORECASE)
_ASKS_AGENT = re.compile(
    r"\b(?:can|could) you (?!tell|share|confirm|provide|describe|give|verify|send (?:me|us|your))\w+", re.IGNORECASE
)
_MINE = re.compile(
    r"\b(?:my\s+\w|mine\b|(?:meine?[rnms]?|mon|ma|mes|mi|mis|mio|mia|meu|minha|mijn)\s+(?!name\s+ist|nombre\s+es)\w)",
    re.IGNORECASE,
)
_WE = re.compile(r"\b(?:we|our|us|ours)\b", re.IGNORECASE)
_INSTITUTION = re.compile(
    r"\bour\b|\b(?:to|with|contact|let|joining|choosing|tell|leave|visit|see|join|call) us\b|\bwe\b(?!'re|'d|'ve| are"
    r"| were| was| had| have| need| want| would| got| get| live| can| could| don't| do| didn't| did| might| may| both"
    r"| thought| think| know| come| stay| leave| left| arrive| all| just| also| never| always| should| must| usually"
    r"| like| love| took| bought| paid| ordered| booked| went| use| make| pay|'ll (?:be|take|pick|come|do|bring|pay"
    r"|arrive|meet|stay|go|need|leave|try|wait)| will (?:be|take|pick|come|bring|pay|arrive|meet|stay|go|need|leave"
    r"|try|wait))\b",
    re.IGNORECASE,
)
_OWN_MATTER = re.compile(
    r"\bour (?:company|firm|office|house|home|flat|family|kids|children|boss|landlord|neighbou?rs?|dog|cat|car"
    r"|accounting|department|users|staff|employees)\b|(?<!let\x20)(?<!tell\x20)(?<!from )\bme\b"
    r"|\bour (?:\w+ ){1,3}(?:needs?|wants?|would like|asked)\b|\b(?:my|mine|yes|no"
    r"|yeah|nope)\b|\bi\b(?!(?:'ll|'ve|'d advise|'m sorry| am sorry|'m glad| will| can| have \w+(?:ed|set|sent)\b"
    r"| understand| see\b| recommend| suggest| advise| offer))|\b(?:i'll|i will) (?:sleep|think|read|pay|wait|ask"
    r"|pick|buy|want|come|keep|stay|use)\b|\bwe\b(?!(?:'ll|'re (?:aware|currently|working|happy|glad|sorry)"
    r"| can (?:give|offer|provide|arrange)| will| recommend| suggest| advise| offer| regret| kindly| provide| wish))",
    re.IGNORECASE,
)
"""Words of somebody who speaks of himself, other than of work for somebody else."""
_OFFERED = re.compile(
    r"\b(?:i (?:can|could|will|am going to)|i'll|let me|(?:shall|should|may|can) i|(?:want|like) me to)"
    r"(?: also| now| just)? (\w+) ([^.!?]*)",
    re.IGNORECASE,
)
_UNKNOWING = re.compile(
    r"\bi (?:don't|do not|didn't) (?:\w+ )?(?:know|remember|have)|\bi have no (?:idea|clue)", re.IGNORECASE
)
_REQUESTED = re.compile(r"\b(?:(?:could|can|would|will) you(?: please)?|please) (\w+)", re.IGNORECASE)
_CLAIMED = re.compile(
    r"\b(?:i've|i have)(?: now| just| already| also)?(?: \w+ed (?:\w+ ){1,4}and)?"
    r" (\w+ed|put|set|made|sent|found|given|taken|run|written|drawn)\b",
    re.IGNORECASE,
)
_PRESENT = {"made": "make", "sent": "send", "found": "find", "given": "give", "taken": "take", "written": "write"}
_STEM = 5
_MIN_VALUE, _SHORT, _LONG = 3, 7, 9


_strong = tuple(compile_pattern(pattern) for pattern in STRONG)
_weak = tuple(compile_pattern(pattern) for pattern in WEAK)


class Speakers(Struct, frozen=True):
    """Texts of the two sides of a conversation."""

    own: tuple[str, ...]
    """Texts of the user: brief and earlier messages."""
    other: tuple[str, ...]
    """Messages of the agent."""
    facts: tuple[str, ...] = ()
    """Names of the facts that the user holds."""
    values: tuple[str, ...] = ()
    """Values of these facts."""


def find_reversed_role(message: str, speakers: Speakers) -> str | None:
    """Return the part of a message in which its writer serves the other side; `None` if the roles are in order."""
    text = without_quotations(message)
    weight, strongest, found = 0.0, 0.0, ""
    is_asked = bool(speakers.other) and bool(open_requests(speakers.other[-1]))
    is_offering = any(_OFFERS.search(own) for own in speakers.own)
    spans: list[range] = []
    for patterns, size in ((_strong, 1.0 if is_offering else 2.0), (_weak, 1.0)):
        for pattern in patterns:
            match = pattern.search(text)
            if match and not any(match.start() in span or span.start in range(*match.span()) for span in spans):
                spans.append(range(*match.span()))
                weight, strongest = weight + size, max(strongest, size)
                found = found or match[0]
    for thing in _owned_things(text, speakers):
        weight += 1.0
        found = found or f"your {thing}"
    if _is_offered_act(text, speakers):
        weight += 2.0
        found = found or text
    if _is_institution(text, speakers):
        weight += 1.0
        found = found or "we"
    weight += 1.0 if any(_is_status(text, thing) for thing in _owned_things(text, speakers)) else 0.0
    if (is_asked or (weight and len(words(text)) > _LONG)) and not _is_own_matter(text, speakers):
        weight += 1.0
    if strongest < REVERSED:
        weight -= 1.0 if _MINE.search(text) else 0.0
        weight -= 1.0 if _UNKNOWING.search(text) or _is_requested_act(text, speakers) else 0.0
        weight -= 0.5 if _ASKS_AGENT.search(text) else 0.0
    if weight and _is_information(text):
        weight += 0.5
    return " ".join(found.split()) if weight >= REVERSED else None


def _is_requested_act(text: str, speakers: Speakers) -> bool:
    """Return whether a message claims to have done what the agent asked for."""
    asked = {verb.casefold()[:_STEM] for part in speakers.other[-1:] for verb in _REQUESTED.findall(plain(part))}
    return not asked.isdisjoint(_claimed(text))


def _claimed(text: str) -> set[str]:
    """Return the beginnings of the verbs of what a message claims to have done."""
    return {_PRESENT.get(verb.casefold(), verb.casefold())[:_STEM] for verb in _CLAIMED.findall(text)}


def _is_offered_act(text: str, speakers: Speakers) -> bool:
    """Return whether a message claims to have done what the agent offered to do."""
    offered = [
        (match[1].casefold(), content_words(match[2]))
        for part in speakers.other[-1:]
        for match in _OFFERED.finditer(plain(part))
    ]
    done = _claimed(text)
    named = content_words(text)
    return any(len(verb) >= _MIN_VALUE and verb[:_STEM] in done and about & named for verb, about in offered)


def _owned_things(text: str, speakers: Speakers) -> list[str]:
    """Return the things of the user that a message calls "your"."""
    own = {match.casefold() for part in speakers.own for match in _MY.findall(plain(part))}
    own |= {word for fact in speakers.facts for word in words(fact.replace("_", " "))}
    asked = {match.casefold() for part in speakers.other for match in _YOUR.findall(plain(part))}
    asked |= {
        word for part in speakers.other[-1:] for request in open_requests(part) for word in content_words(request)
    }
    theirs = {match.casefold() for part in speakers.own for match in _YOUR.findall(plain(part))}
    theirs |= {match.casefold() for part in speakers.other for match in _MY.findall(plain(part))}
    things = {match.casefold() for match in _YOUR.findall(text)}
    return sorted(things & (own | asked) - theirs - AGENT_THINGS)


def _is_status(text: str, thing: str) -> bool:
    """Return whether a message tells the other side how its own thing is."""
    return (
        re.search(
            rf"\byour (?:\w+ )?{re.escape(thing)} (?:\w+ )?(?:is|are|has|have|will|was|were|can|should)\b",
            text,
            re.IGNORECASE,
        )
        is not None
    )


def _is_own_matter(text: str, speakers: Speakers) -> bool:
    """Return whether a message may be a user's: it is short, asks, speaks of its writer, tells a fact, or declines."""
    is_asked = bool(open_requests(speakers.other[-1])) if speakers.other else False
    has_declined = ("n't" in text or is_lacking(text)) if is_asked else is_declined(text)
    if len(words(text)) < _SHORT or has_declined or _OWN_MATTER.search(text) is not None:
        return True
    is_telling = any(squeeze(value) in squeeze(text) for value in speakers.values if len(value) >= _MIN_VALUE)
    return is_telling or all(is_question(part) for part in sentences(text))


def _is_institution(text: str, speakers: Speakers) -> bool:
    """Return whether a message speaks for several people, though its writer was one so far."""
    if not speakers.other or not _INSTITUTION.search(text) or any(_WE.search(own) for own in speakers.own):
        return False
    ours = {match.casefold() for match in re.findall(r"\bour (\w+)", text, re.IGNORECASE)}
    yours = {match.casefold() for part in speakers.other for match in _YOUR.findall(plain(part))}
    return not ours & yours


def _is_information(text: str) -> bool:
    """Return whether a message informs at some length, and its writer speaks neither of himself nor asks."""
    first = sentences(text)[:1]
    return (
        bool(first)
        and not is_question(first[0])
        and not _FIRST_PERSON.search(first[0])
        and len(content_words(text)) >= _LONG
    )
