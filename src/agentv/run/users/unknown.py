"""Unknown facts: a simulated user who tells a value that its brief says it does not know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal
from unicodedata import combining, normalize

from agentv.matching.provenance import KnownValues
from agentv.matching.spoken import told_numbers
from agentv.matching.values import find_values
from agentv.run.users.facts import is_asked
from agentv.run.users.speech import (
    contains,
    content_words,
    is_declined,
    is_lacking,
    is_question,
    plain,
    questions,
    sentences,
    word_set,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentv.model.simulation import Fact, UserView

FactType = Literal["date", "number", "person", "other"]
_DATE_KEYS = word_set(
    "date day when since expiry expires expiration deadline birthday birth born due year month time start end arrival "
    "departure until last graduation issued bought purchased installed delivered appointment datum termin einzug "
    "geburt fecha data naissance échéance"
)
_NUMBER_KEYS = word_set(
    "number no nr id code pin ref reference serial iban account phone plate zip price cost amount fee total deposit "
    "limit budget salary income length height width weight age count distance temperature reading km mileage floor "
    "row seat position grade dose speed version refund rate quantity qty points balance value rooms people guests "
    "area depth tax montant preis betrag importe precio edad alter miete einkommen"
)
_PERSON_KEYS = word_set(
    "name contact person driver doctor witness landlord manager owner merchant provider carrier company employer bank "
    "insurer sender supplier shop dealer teacher colleague supervisor"
)
_OTHER_KEYS = word_set(
    "size model brand colour color type kind make breed group language diet allergy allergies species"
)
_TYPES: tuple[tuple[frozenset[str], FactType], ...] = (
    (_OTHER_KEYS, "other"),
    (_DATE_KEYS, "date"),
    (_NUMBER_KEYS, "number"),
    (_PERSON_KEYS, "person"),
)
_ASKING = (
    r"(?:^\W*|[,;:.!?\u00bf]\s*|\b(?:and|or|but|also|so|since|until|till|by|from|for|to|at|about|exactly|please|und"
    r"|oder|bis|seit|ab|et|ou|depuis|pour|y|o|desde|hasta|e|da|per|en|sinds|tell\s+(?:me|us)|know|remember|recall|say"
    r"|need)\s+)"
)
"""Places at which a word such as `when` asks, in contrast to "text you when it is done"."""
_QUESTION_FORMS = tuple(
    (keys, re.compile(rf"{_ASKING}(?:{form})\b", re.IGNORECASE))
    for keys, form in (
        (_DATE_KEYS, r"when|since when|what (?:date|day|time|year)|which (?:date|day|year)|wann|quand|cuándo|quando"),
        (frozenset(("age", "alter", "edad")), r"how old|wie alt|quel âge|cuántos años"),
        (
            word_set(
                "price cost amount fee total deposit limit budget salary income refund rate balance value montant"
            ),
            (
                r"how much|what (?:did|do|does|have|were) (?:\w+ )?(?:charged?|pay|paid|cost)|wie viel|combien|cuánto"
                r"|quanto"
            ),
        ),
        (
            word_set("size length height width weight distance depth area mileage"),
            r"how (?:long|tall|high|big|large|heavy|far|wide|deep)|wie (?:lang|hoch|groß|schwer)",
        ),
        (
            word_set("occupation job profession employer beruf métier profession profesión professione"),
            r"for a living|what do you do\b|where do you work",
        ),
        (word_set("count quantity qty rooms people guests"), r"how many|wie viele|combien|cuánt\w+"),
        (
            word_set("place location address city town street store shop dealer seller venue site country"),
            r"where|wo|où|dónde|dove|onde",
        ),
        (
            word_set("payment paiement zahlung pago pagamento betaling"),
            (
                r"how (?:did|do|would|will) you (?:like to )?pay|comment (?:\w+[- ]){1,3}pay\w*"
                r"|wie (?:\w+ ){1,3}(?:be)?zahl\w*|cómo (?:\w+ ){0,2}pag\w*|come (?:\w+ ){0,2}pag\w*"
            ),
        ),
        (_PERSON_KEYS, r"who|whose|wer|qui|quién|chi|(?:what|how)(?:'s| is| are| was) (?:\w+ )?(?:name|called)"),
    )
)
_BIRTH = word_set("birth birthday birthdate dob geburtstag geburtsdatum naissance nacimiento nascita")
_BORN = re.compile(r"\b(?:born|birth\w*|geboren|née?|naci\w+|nat[oa])\b", re.IGNORECASE)
_TIME_WORDS = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day|\b(?:january|february|march|april|may|june|july|august|september"
    r"|october|november|december|tomorrow|yesterday|spring|summer|autumn|winter|montag|dienstag|mittwoch|donnerstag"
    r"|freitag|samstag|sonntag|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves"
    r"|viernes)\b|\b\d{1,2}(?:st|nd|rd|th)\b|\b(?:first|second|third|fourth|fifth|\w+teenth|\w+tieth|twenty-\w+"
    r"|thirty-\w+)\s+of\b|\b(?:half|quarter|twenty|ten|five)\s+(?:past|to)\b|\b(?:noon|midnight|o'clock)\b"
    r"|\b(?:christmas|easter|halloween)\b|\b(?:next|last|this)\s+(?:week|month|year|\w+day|spring|summer|autumn|fall"
    r"|winter)\b|\b(?:letzte[nrsm]?|vorige[nrsm]?)\s+\w+|\b(?:dernière?|passée?|pasad[oa]|scors[oa]|passad[oa]"
    r"|afgelopen)\b",
    re.IGNORECASE,
)
_GENERIC = word_set(
    "name names number no nr id code date day time year type kind address amount reference ref details data size "
    "status nummer datum numero nombre nom fecha data codigo codice code"
)
"""Words of a fact's name that are also words of other facts' names."""
_FILLERS = word_set(
    "yes yeah yep ok okay well sure um uh hm hmm oh ah er so then think believe actually just please it's that's he's "
    "she's i'm is was one ones thing kind sort really pretty quite bit maybe probably hello hi thanks thank right "
    "good great says said should must according must've i've got have has had use using with"
)
_EVADED = re.compile(
    r"\b(?:is|are|was|it's|that's|be)\s+(?:(?:\w+(?:ed|en|ly|where)|right|just|still|all|back|down|up|out|not)\s+)?(?:in|on|at|behind|under|with|inside|somewhere|new|old|for|too"
    r"|long|hard|difficult|impossible|personal|important|necessary|required|enough|written|printed|stored|kept"
    r"|up\s+to|a\s+(?:long|good|surprise|question))\b|(?<!\bi\s)(?<!\bwe\s)\b(?:has|have|keeps?)\s+(?:it|that|them"
    r"|the|those|all|my|our)\b|\b(?:handles|knows?|deals?|takes\s+care|entered|arranged|came\s+with|does\s+that|threw"
    r"|thrown|left)\b|\b(?:what|where|how|whether)\b|\byou(?:'d|\s+would|\s+could|\s+should|\s+can)?\s+(?:tell|see"
    r"|have|know)\b|\b(?:whichever|whatever|whoever|same\s+as|as\s+(?:last|always|usual)|the\s+usual|if\s+only"
    r"|remember|recall)\b|\b(?:(?:hard|difficult)\s+to\s+\w+|any|either|both|doesn't\s+matter|up\s+to\s+you|you\s+choose|surprise|gift|present"
    r"|impossible|blank|private|personal|decid\w+|expert|worn|faded(?!\s+\w)|scratch\w*|missing|unreadable|between|same"
    r"|standard|usual|normal|question|matter|beyond|mystery|secret|own\s+business|all\s+i\s+(?:know|have|can)"
    r"|only\s+thing)\b",
    re.IGNORECASE,
)
"""Statements of somebody who speaks of a fact and does not tell its value."""
_FOREIGN_SCRIPT = re.compile(r"[\u0370-\u1cff\u2e80-\ud7ff\uf900-\ufaff]")
"""Letters of languages in whose texts no statement is understood."""
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'-]+")
"""A name within a sentence."""
_HEDGE = re.compile(
    r"\b(?:i(?:'d|\s+would)?\s+(?:say|think|guess|believe|suppose)|if\s+i\s+remember\s+\w+|as\s+far\s+as\s+i\s+know)\b",
    re.IGNORECASE,
)
"""Words of somebody who tells a value without being sure."""
_PRONOUN = re.compile(
    r"(?:\b(?:i|me|my|we|you|it|he|she|they|ich|mir|mich|da|je|j|me|moi|yo|mi|io|ik|eu|lo|si|se|l)\b|n/a|^(?:pass"
    r"|skip|dunno|idk|tbd|tba|boh|hm+|hmm+|next|phew|wow|oops|none|sorry|well|surprise)$)",
    re.IGNORECASE,
)
"""Words of a sentence, in contrast to a name or a description without a verb, and interjections."""
_TELLING = re.compile(
    r"^(?:(?:yes|yeah|yep|sure|oh|well|and|so|ja|oui|s\u00ed|s\u00ec|sim)\s+)*(?:(?:it|that|this|he|she|they|there"
    r"|the\s+\w+|my\s+[\w\s]{2,30}?|one\s+of\s+\w+)(?:'s|'re|\s+(?:is|are|was|were|says|would\s+be))\s+(?!\w{2,}ed\b"
    r"|\w{2,}(?:tt|k|v|t|d|s)en\b)|(?:i|we|he|she|they)(?:'m|'re|\s+(?:am|are))\s+(?:with|at|on|an?|using|allergic|from|in)\b|(?:at"
    r"|from)\s+(?:the|an?)\s+\w+|(?:i'm|i\s+am|we're|we\s+are)\s+(?:moving|leaving|switching|going|changing)\b|(?:i"
    r"|we|he|she|they|it)(?:'ve|'s)?\s+(?:have|has|got|use|used|paid|bought|took|drive|own|chose)\s+|because\b|weil\b"
    r"|parce\b|porque\b|perch\u00e9\b|es\s+ist\s|das\s+ist\s|c'est\s|es\s+(?:un|una|de|el|la)\s|\u00e8\s|j'ai\s"
    r"|ich\s+habe\s|wir\s+haben\s|tengo\s|ho\s|tenho\s|.{0,30}\b(?:bought|used|got|ordered|paid|lost|left"
    r"|saw)\s+(?:\w+\s+)?(?:at|in|from|with|via|on)\s|.{0,30}\bpaid\s+by\s)",
    re.IGNORECASE,
)
"""Beginnings of sentences that tell what something is."""
_ASKS_THING = re.compile(
    r"\b(?:what|which|who)\b(?!.*\b(?:date|day|month|year|time|week|due)\b)[^?]*\?[^?]*$", re.IGNORECASE
)
"""A last question for a thing or a person."""
_TAG_QUESTION = re.compile(
    r",?\s*\b(?:right|ok|okay|correct|yes|no|eh|isn't it|doesn't it|won't it|oder|nicht wahr|non|n'est-ce pas|verdad"
    r"|vero)\s*\?",
    re.IGNORECASE,
)
"""Ends of statements that ask for nothing but consent."""
_FOR_WHOM = re.compile(r"\s+(?:for|from)\s+(?:me|us|him|her|(?:my|our)\s+\w+)$", re.IGNORECASE)
_TITLED = re.compile(r"\b(?:Dr|Mrs?|Ms|Prof|Herrn?|Frau|Mme|M|Sra?|Dra?|Sig)\.?\s+[A-Z][\w'-]+")
"""A name with a title."""
_AT_MOST = re.compile(r"\b(?:not|no|nothing)\s+(?:more|less|over|under|above|below)(?:\s+than)?\b", re.IGNORECASE)
_BUT = re.compile(r"\b(?:but|although|though|aber|mais|pero|ma|mas|maar)\b|[.!?]\s", re.IGNORECASE)
MIN_STEM = 4
MAX_BARE = 4
"""Words of an answer that is no sentence."""
MAX_PLAIN = 10
"""Words of an answer that tells a value without a name, in contrast to a remark about it."""
_CLAUSES = re.compile(r"[,;.!?]\s+|\s[-\u2013\u2014]\s|\.\.\.|\u2026")
_PARTS = re.compile(r"[?,;]\s*|\s(?:and|or|und|oder|et|ou|y|e|en|of)\s")
"""Ends of the parts of a question that ask for one thing each."""
MAX_ASKED = 8_000
"""Characters at the end of an agent's message in which questions are looked for."""
_PLACE = re.compile(
    r"^(?:in|on|at|behind|under|with|inside|next|near|written|printed|stored|kept|what|where|how|who|up\s+to|too|long"
    r"|been|because|for|about|just|really|quite|impossible|difficult|personal|important|necessary|required|needed"
    r"|enough|there|here|a\s+(?:long|bit|question)|your|whatever|something|my\s+(?:wife|husband|boss|accountant"
    r"|mother|father|son|daughter|doctor))\b",
    re.IGNORECASE,
)
"""Beginnings of statements about a fact that do not tell its value."""


def find_unknown_told(text: str, facts: dict[str, Fact], view: UserView, known_texts: Sequence[str]) -> str | None:
    """Return the name of a fact that a message tells though the user does not know it."""
    unknown = {name: fact for name, fact in facts.items() if fact.value is None}
    text = _AT_MOST.sub(" ", _TAG_QUESTION.sub(".", text))
    if is_question(text) and not is_declined(text):
        text = next(iter(sentences(text)), "")  # an answer may be followed by a question
    if not unknown or is_question(text):
        return None
    known = KnownValues(known_texts)
    said = [part for turn in view.turns for part in turn]
    for part in said:
        known.add(part)
    heard = {word for part in (*known_texts, *said) for word in words(part)}
    told = [words(fact.value) for fact in facts.values() if fact.value]
    rest = ", ".join(_without_told(part, told) for part in _CLAUSES.split(text))
    """The message without the facts that the user knows: of several things asked for, it tells the rest."""
    for name, fact in unknown.items():
        if _is_stated(text, name, heard):
            return name
        if not _is_topic(name, fact, facts, view):
            continue
        kind = _type_of(name)
        if kind == "date" and _ASKS_THING.search(plain(view.last_answer[-MAX_ASKED:])):
            kind = "other"  # "last payment" is the name of a date, or of a payment
        if _tells_value(
            text if kind in ("date", "number") else rest, kind, known, heard, view.last_answer[-MAX_ASKED:]
        ):
            return name
    return None


def _without_told(part: str, told: Sequence[Sequence[str]]) -> str:
    """Return a part of a message without the facts that the user knows; nothing is left of what only tells them."""
    found = words(part)
    values = [value for value in told if value and contains(found, value)]
    if not values:
        return part
    for value in values:
        part = re.sub(r"\W+".join(map(re.escape, value)), " ", plain(part), flags=re.IGNORECASE)
    return part if any(char.isdigit() for char in part) else ""


def _labels(name: str) -> list[str]:
    return [_bare(word) for word in words(name.replace("_", " ")) if len(word) > 1]


def _bare(word: str) -> str:
    """Return a word without accents."""
    return "".join(char for char in normalize("NFKD", word) if not combining(char))


def _type_of(name: str) -> FactType:
    """Return the type of a fact by the last word of its name that has one."""
    for label in reversed(_labels(name)):
        for keys, kind in _TYPES:
            if _is_among(label, keys):
                return kind
    return "other"


def _form_of(name: str) -> re.Pattern[str] | None:
    """Return the form of a question for a fact."""
    if any(label in _BIRTH for label in _labels(name)):
        return _BORN
    labels = [*_labels(name), *(["place"] if name.endswith("place") else [])]
    return next((form for keys, form in _QUESTION_FORMS if any(_is_among(label, keys) for label in labels)), None)


def _is_among(label: str, keys: Iterable[str]) -> bool:
    """Return whether a word is one of some words, or is put together with one as its last part: Kaufdatum."""
    return label in keys or any(len(key) > MIN_STEM and label.endswith(key) for key in keys)


def _is_topic(name: str, fact: Fact, facts: dict[str, Fact], view: UserView) -> bool:
    """Return whether the agent's last question is about a fact."""
    answers = [answer[-MAX_ASKED:] for _, answer in view.turns]
    if not answers:
        return False
    return _asks_for(answers[-1], name, fact, facts)


def _asks_for(answer: str, name: str, fact: Fact, facts: dict[str, Fact]) -> bool:
    asked = " ".join(questions(answer)) or (
        answer if re.search(r"\b(?:need|please|give|tell)\b", answer, re.IGNORECASE) else ""
    )
    if not asked:
        return False
    labels = _labels(name)
    known = [set(_labels(other)) for other, fact_ in facts.items() if fact_.value is not None]
    # "medicine" asks for the medicine that is known, and not for `other_medicine`.
    others = {label for own in known if own < set(labels) for label in own}
    specific = [label for label in labels if label not in _GENERIC and label not in others]
    is_custom = {pattern.casefold() for pattern in fact.asked} != set(words(name.replace("_", " ")))
    if _shares_stem(specific, asked) or ((is_custom or not specific) and is_asked(fact, asked)):
        return True
    form = _form_of(name)
    is_only = form is not None and not any(_form_of(other) is form for other in facts if other != name)
    for clause in _PARTS.split(asked):
        if any(is_asked(other, clause) for other in facts.values() if other.value is not None):
            continue  # "your full name" asks for the name that is known, and not for that of the dentist
        if (
            _shares_stem(labels, clause)
            or is_asked(fact, clause)
            or (is_only and form is not None and form.search(clause))
        ):
            return True
    return False


def _shares_stem(labels: Iterable[str], asked: str) -> bool:
    """Return whether a question has a form of a word of a name."""
    found = [_bare(word) for word in content_words(asked)]
    return any(
        # "no" is the beginning of many words.
        word.startswith(label[:5]) or (len(word) > 2 and label.startswith(word)) if len(label) > 3 else word == label  # noqa: PLR2004
        for word in found
        for label in labels
    )


def _tells_value(text: str, kind: FactType, known: KnownValues, heard: set[str], request: str) -> bool:
    if is_declined(text):
        return _tells_beside(text, kind, known, heard, request)
    values = [value for value in find_values(text) if value.kind != "quotation"]
    if any(not known.knows(value, is_exact=True) for value in values):
        return True
    if kind == "number":
        return any(number > 1 and not known.has_number(number) for number in told_numbers(text))
    if kind == "date":
        is_hour = any(number > 1 and not known.has_number(number) for number in told_numbers(text))
        return is_hour or any(not set(words(match[0])) <= heard for match in _TIME_WORDS.finditer(text))
    return any(_is_answer(part, heard) for part in _CLAUSES.split(_HEDGE.sub(" ", plain(text))))


def _tells_beside(text: str, kind: FactType, known: KnownValues, heard: set[str], request: str) -> bool:
    """Return whether a message tells a value though it has words of somebody who does not."""
    first = next(iter(sentences(text)), "")
    if first != text and not is_declined(first) and not is_lacking(text):  # what follows is a remark
        return _tells_value(first, kind, known, heard, request)
    parts = _BUT.split(plain(text))[1:]
    if any(_HEDGE.search(part) and _is_answer(_HEDGE.sub(" ", part), heard) for part in parts):
        return True  # somebody who is not certain, and tells what he thinks
    return any(known.unknown(part, request) for part in _CLAUSES.split(text) if not is_declined(part))


def _is_answer(part: str, heard: set[str]) -> bool:
    """Return whether a part of a message has the form of an answer that names something which was not mentioned yet."""
    part = _FOR_WHOM.sub("", part.strip(" .,;:!"))
    new = content_words(part) - heard - _FILLERS
    if new and _TITLED.search(part):
        return True
    if not new or _FOREIGN_SCRIPT.search(part) or _EVADED.search(part):
        return False
    is_named = any(word.casefold() in new for word in _NAME.findall(part))
    size = MAX_PLAIN if re.match(r"an?\s", part, re.IGNORECASE) else MAX_BARE
    is_bare = len(words(part)) <= size and not _PRONOUN.search(part) and not all(word.endswith("ly") for word in new)
    return is_named or is_bare or (len(words(part)) <= MAX_PLAIN and _TELLING.search(part) is not None)


def _is_stated(text: str, name: str, heard: Iterable[str]) -> bool:
    """Return whether a message says what the fact is, by its name."""
    label = r"[\s_-]*".join(re.escape(word) for word in words(name.replace("_", " ")))
    is_told = r"(?:\s+\w+)?\s*(?:=|:|\b(?:is|was|are|should\s+be|must\s+be))\s+(?P<value>[^.!?]+)"
    pattern = rf"\b(?:my|the|his|her|our|their|its)\s+{label}{is_told}"
    stated = re.search(pattern, plain(text), re.IGNORECASE)
    if stated is None or is_declined(text) or _PLACE.search(stated["value"]):
        return False
    return bool(content_words(stated["value"]) - set(heard) - _FILLERS)
