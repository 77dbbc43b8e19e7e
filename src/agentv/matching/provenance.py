"""Origin of values: whether a value of a text is in other texts, or can be worked out from their values.

A value is compared after normalisation. A number may also be derived from known ones: a sum, a part, a rounding.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from agentv.matching.spoken import cents, foreign_numbers, word_numbers, word_times
from agentv.matching.values import (
    MEASURE_UNIT,
    MIN_PHONE,
    SMALL,
    TIME_UNIT,
    TextValue,
    days_of,
    digits_of,
    edges_of_months,
    fold,
    is_counted,
    is_label,
    spoken_values,
    squeeze,
    values_of,
)

_LONG_PHONE = 11
_PHONE_START = re.compile(r"[+(0]")
_DIGIT_GROUPS = re.compile(r"\+?\d(?:[\d()/. ,-]*\d)?")
_ASKS_WHEN = re.compile(
    r"\b(?:when|date|day|deadline|expir\w+|due|until|since|wann|datum|quand|cuándo|quando)\b", re.IGNORECASE
)
_ASKS_ONLY_WHEN = re.compile(
    r"^(?:and\s+|so\s+)?(?:when|where|wann|wo|quand|où|cu[áa]ndo|d[óo]nde|quando|dove|onde)\b(?!.*\b(?:number|code|id"
    r"|price|amount|much)\b)",
    re.IGNORECASE,
)
"""A question for a time or a place, whose answer is no plain number."""
_ASKED = re.compile(
    r"[?\uff1f\u061f]|\b(?:i|we)(?:'ll| would|'d| also| still| just)* need\b|\bplease\s+(?:tell|give|provide|confirm"
    r"|share|enter|state|name|specify)\b|\bplease\s*[.!]?$",
    re.IGNORECASE,
)
_ASKS_VALUE = re.compile(
    r"\b(?:know|remember|recall|what|which|who|whose|when|where|how|wann|wo|wie|wer|welche[rsnm]?|quel(?:le)?s?|quand"
    r"|combien|où|qui|cu[áa]l\w*|cu[áa]ndo|cu[áa]nt\w+|d[óo]nde|qui[ée]n|quale|quando|quanto|dove|chi|\w*number"
    r"|\w*nummer|num[ée]ro|n[úu]mero|code|ids?|date|birth\w*|address|e-?mail|phone|mobile|names?|amount|price|total"
    r"|reference|ref|serial|model|version|size|postcode|zip|account|iban|pin|passport|details?|data|\w*datum|adresse"
    r"|dirección|indirizzo|confirm|provide|specify)\b",
    re.IGNORECASE,
)
"""Words of a question that asks for a value, in contrast to one for a yes or no."""
_ASKING_PARTS = re.compile(r"[?.!,;]\s|\s(?:and|or|und|oder|et|ou|y|e|en)\s")
_ASKS_WORDS = re.compile(
    r"\bwhat\s+(?:would\s+you\s+like|can\s+(?:i|we)|do\s+you\s+(?:want|need|think)|happened|brings|else|(?:is|was"
    r"|'s)\s+(?:it|this|that)\s+about|(?:is|'s)\s+(?:wrong|up|the\s+(?:matter|problem)|going\s+on))\b|\b(?:who|whose"
    r"|why|wer|warum|pourquoi|qui\u00e9n|perch\u00e9)\b|\b(?:which|what)(?:'s|\s+is)?\s+(?:\w+\s+)?(?:doctor|dentist"
    r"|person|colou?r|brand|flavou?r|browser|language|country|material|landlord|manager|colleague|driver|reason)\b",
    re.IGNORECASE,
)
"""Words of a question whose answer is no number and no date."""
_FRAGMENT = re.compile(
    r"(?:^|[.!?]\s+)(?!(?:is|are|was|were|do|does|did|have|has|can|could|will|would|shall|should|may|ok|okay|right"
    r"|done|ready|sure|anything|something|really|and\s+now|yes|no|agreed|deal|correct"
    r"|more)\b)[^\W\d]\S*(?:\s\S+){0,3}\?\s*$",
    re.IGNORECASE,
)
"""A question without a verb, which names what it asks for: "And the weight?"."""
_NEXT = re.compile(r"\b(?:next|previous|before|after|following|one\s+(?:more|less|up|down))\b", re.IGNORECASE)
_SUPPOSED = re.compile(
    r"\b(?:so|must|right|correct|if|would|could|can|may|might|should|suppose|assuming|say|what\s+about|how\s+about"
    r"|does|do|is\s+there|wenn|falls|kann|könnte|wäre|si|puedo|podría|se|posso|potrei|est-ce|puis-je)\b",
    re.IGNORECASE,
)
"""Words of a question about a value that is no more than an idea."""
_ASKS_COUNT = re.compile(
    r"\b(?:wie\s+viele?|combien|cu[áa]nt[oa]s|quant[aei]|quant[oa]s|hoeveel)\b|\bhow\s+(?:many|old|much|big|large"
    r"|heavy|high|tall)\b|\bnumber\b",
    re.IGNORECASE,
)
_ASKS_SHARED_COUNT = re.compile(
    r"\bhow\s+many\s+(?:\w+\s+)?(?:people|persons|guests|tickets|adults|children|kids|seats|nights|rooms|bedrooms"
    r"|licen[sc]es|items|pieces|copies|units|boxes|bags|passengers|travell?ers|users|employees|players|students"
    r"|of\s+you|will|are\s+you|do\s+you\s+need)\b|\bwie\s+viele\s+(?:personen|gäste|kinder|nächte|tickets)"
    r"|\bcombien\s+de\s+(?:personnes|nuits|billets)|\bcuánt[ao]s\s+(?:personas|noches)",
    re.IGNORECASE,
)
"""A question for a number that an agent books or orders by, so that it matters also where it is small."""
_INFERRED = re.compile(
    r"\b(?:so|then|that'?s|that\s+(?:is|was|would|makes|leaves)|makes?|leaves?|total|altogether|together|sum|each"
    r"|apiece|per|every|halves|thirds|quarters|instal?lments|split|left|over|more|less|minus|plus|times|half|double"
    r"|twice|average|instead|would|could|if|saves?|cheaper|above|below|under|between|too\s+\w+|off|another|extra"
    r"|also?\b|i\.e\.|means?|technically|earlier|after|before|within|rather|donc|soit|entonces|quindi|dann|macht"
    r"|insgesamt|zusammen|jede[rns]?|je|por|par|ou|oder|or)\b|=|[?\uff1f]|\d\s*[+*/-]\s*\d"
    r"|\d\s*[x\u00d7]\s*\d(?!.*\b(?:mm|cm|m|inch|in)\b)",
    re.IGNORECASE,
)
"""Words of a sentence in which values are worked out, in contrast to one that tells them."""
_ASKS_DERIVED = re.compile(
    r"\b(?:per|each|total|altogether|together|sum|average|year(?:ly)?|month(?:ly)?|week(?:ly)?|left|remaining"
    r"|difference|pro|par|por|insgesamt|jährlich|monatlich)\b",
    re.IGNORECASE,
)
"""Words of a question for a value that has to be worked out."""
_CORRECTED = re.compile(
    r"\b(?:no,? sorry|sorry|i mean|i meant|mixed that up|correction|scratch that|wait)\b", re.IGNORECASE
)
"""Words of somebody who corrects a value in the same message."""
_SENTENCES = re.compile(
    r"(?<!\bi\.e\.)(?<!\be\.g\.)(?<=[.!?])(?!(?<=(?i:\bno)\.)\s+\d)(?!(?<=\d\.)\s+(?i:jan|feb|m[aä]r|apr|ma[iyj]|jun|jul|aug|sep|o[kc]t|nov"
    r"|de[zc]))\s+|[\n;]"
)
"""Ends of sentences: not the dot of "28. September"."""
_CLOCK = re.compile(r"(?P<hour>[0-2]?\d|3[01])(?:[.]?(?P<minute>[0-5]\d)|[.](?P<month>\d))")
FEW = 2
SMALL_ANSWER = 12
"""The same in the answer to a question for a number."""
MAX_FACTOR = 31
_FACTORS = (2, 3, 4, 7, 10, 12, 24, 30, 52, 60, 100, 365, 1000)
_TOLERANCE = 0.12
_MAX_NUMBERS = 60
_MAX_TERMS = 10
_LARGE = 100
_MAX_DERIVED_DIGITS = 7
_MIN_ID = 3
_ROUNDED = 0.51
_MIN_ROUNDED = 10
_RECORD = 1000
_RECENT = range(2023, 2031)
"""Years in which the age of somebody may be told."""
_MIN_LOOSE_ID = 5
_DAY_AND_MONTH = re.compile(r"(?<![\w./-])(\d{1,2})[./-](\d{1,2})(?![\w/-]|\.\d)")
"""A date without a year, where it is known to be no other value: "10/21" of a brief is 21 October."""
_OWN_BEFORE = re.compile(r"\b(?:my|mine|our|ours)\b[^,;]{0,40}\b(?:is|are|was|were)\s+$", re.IGNORECASE)
"""Words before a value that somebody tells of himself."""
_NUMBERED = re.compile(
    r"(?:\b(?:no|nr|ref)\.|\b(?:number|reference|ticket|complaint|case)\s+(?:no\.?\s*)?|#|\u2116)\s*$", re.IGNORECASE
)
"""Words before the number of a record."""
_PARTS = re.compile(r"[^\W_]+")
_DOTTED = re.compile(r"v?\d+(?:\.\d+){2,}(?:[/:]\d+)?")
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LAST_DAYS = frozenset((*(f"{month:02d}-{day}" for month, day in enumerate(_MONTH_DAYS, 1)), "02-28"))
_WEEKDAY = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:montag|dienstag|mittwoch|donnerstag|freitag)s?\b"
)
_MONTH_END = re.compile(r"last day|end of (?:the |each |every )?month|monatsende|fin de mois|fin de mes|fine mese")
_UNIT_FACTORS = (10, 100, 1000, 60)
_MEASURE_FACTORS = (2.2046, 0.4536, 1.6093, 0.6214, 2.54, 0.3937, 3.2808, 0.3048)
"""Pounds and kilograms, miles and kilometres, inches and centimetres, feet and metres."""
_MEASURED = 0.03
"""Share by which a measure may be rounded."""


class _TextValues(NamedTuple):
    """Values of a text in all forms in which they are compared."""

    keys: frozenset[str]
    numbers: dict[float, None]
    folded: str
    digits: tuple[str, ...]
    letters: str


@lru_cache(maxsize=1024)
def _read(text: str) -> _TextValues:
    """Return the values of a text, which is read once."""
    values = values_of(text)
    keys = {key for value in values for key in value.keys}
    dates = [key for key in keys if key.startswith("date:")]
    numbers = dict.fromkeys(value.number for value in values if value.number is not None)
    numbers |= dict.fromkeys(float(key[5:9]) for key in sorted(dates))
    numbers |= dict.fromkeys((*foreign_numbers(text), *word_numbers(text), *cents(text)))
    numbers |= dict.fromkeys(float(digits_of(value.text)) for value in days_of(text))
    keys |= {f"day:{key[-5:]}" for key in dates}
    keys |= {f"time:{time}" for time in word_times(text)}
    keys |= {f"day:{day}" for day in edges_of_months(text)}
    for match in _DAY_AND_MONTH.finditer(text):
        readings = ((int(match[1]), int(match[2])), (int(match[2]), int(match[1])))
        keys |= {f"day:{month:02d}-{day:02d}" for day, month in readings if 1 <= month <= len(_MONTH_DAYS)}
    digits = tuple(digits_of(match[0]) for match in _DIGIT_GROUPS.finditer(text))
    return _TextValues(frozenset(keys), numbers, fold(text), digits, squeeze(text))


class KnownValues:
    """Values that somebody may tell, because they are in the texts that he knows."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._keys: set[str] = set()
        self._folded = ""
        self._digits: list[str] = []
        self._letters: list[str] = []
        self._numbers: dict[float, None] = {}
        for text in texts:
            self.add(text)
        self._given = tuple(self._numbers)
        """Numbers of the first texts: few enough that a sum of two of them is no accident."""

    def add(self, text: str) -> None:
        """Add all values of a text."""
        read = _read(text)
        self._keys |= read.keys
        self._numbers |= read.numbers
        self._folded += f" {read.folded}"
        self._digits += read.digits
        self._letters.append(read.letters)

    def has_number(self, number: float) -> bool:
        """Return whether a number is known as it is."""
        return number in self._numbers

    def knows(self, value: TextValue, *, is_exact: bool = False) -> bool:
        """Return whether a value is known: in whole, as a part of a known one, or derived from known numbers.

        With `is_exact` other forms of a value are known, but not what can be worked out from several values.
        """
        if value.keys & self._keys or (value.kind in ("email", "id") and self._knows_parts(value.text)):
            return True
        if value.kind == "quotation":
            return self._knows_words(value.text)
        if value.kind == "date":
            return self._knows_date(value, self._given if is_exact else tuple(self._numbers))
        if value.kind == "time":
            is_written = squeeze(value.text) in "".join(self._letters)
            is_duration = any(_minutes(key) in self._numbers for key in value.keys)
            return (
                is_written
                or is_duration
                or self._is_shifted(value, is_exact=is_exact)
                or (not is_exact and self._is_in_range(value))
            )
        if self._is_part(value) or self._is_clock(value) or self._is_day(value.text) or self._is_between(value):
            return True
        return value.number is not None and self._is_derived(
            value.number, is_about=value.is_about, is_exact=is_exact, is_amount=value.is_amount
        )

    def _knows_date(self, value: TextValue, numbers: tuple[float, ...]) -> bool:
        """Return whether a date is known: its day, a day of a known date, or a known number of days from one."""
        if all(self._is_of_other_time(key) for key in value.keys):
            return False
        if any(f"day:{key[-5:]}" in self._keys and not self._has_year(key) for key in value.keys):
            return True
        known_days = {key[-5:] for key in self._keys if key.startswith("day:")}
        for day in (key[-5:] for key in value.keys if not self._has_year(key)):
            is_month_known = any(day[:2] == known[:2] for known in known_days)
            is_day_known = any(day[3:] == known[3:] for known in known_days)  # some months later
            if is_day_known or (is_month_known and self.has_number(float(day[3:]))):  # "8-12 July" names two days
                return True
        is_last = any(day in _LAST_DAYS for day in (key[-5:] for key in value.keys if not self._has_year(key)))
        if is_last and _MONTH_END.search(self._folded):
            return True
        days = {_ordinal(key) for key in self._keys if key.startswith("day:")}
        steps = {1.0, *(number for number in numbers if number <= MAX_FACTOR)}
        steps |= {number * 7 for number in steps}
        steps |= {*range(2, 7)} if _WEEKDAY.search(self._folded) else set()
        own = {_ordinal(key) for key in value.keys if not self._has_year(key)}
        return any(abs(day - known) in steps for day in own for known in days)

    def _is_of_other_time(self, key: str) -> bool:
        """Return whether a date has a year that is neither known nor near, so that it is not worked out."""
        return key.startswith("date:") and int(key[5:9]) not in _RECENT and float(key[5:9]) not in self._numbers

    def knows_day(self, day: str) -> bool:
        """Return whether a day of the month is known, from a date or as a number."""
        days = {int(key[-2:]) for key in self._keys if key.startswith("day:")}
        steps = {0.0, 1.0, *(number for number in self._numbers if number <= MAX_FACTOR)}
        steps |= {*range(2, 15)} if _WEEKDAY.search(self._folded) else set()
        return float(day) in self._numbers or any(abs(int(day) - known) in steps for known in days)

    def _has_year(self, key: str) -> bool:
        """Return whether a known date of the same day has a year, so that another year is another date."""
        return key.startswith("date:") and any(
            known.startswith("date:") and known[-5:] == key[-5:] for known in self._keys
        )

    def _knows_words(self, text: str) -> bool:
        if fold(text) in self._folded or squeeze(text) in "".join(self._letters):
            return True
        if any(not self.has_number(float(number)) for number in re.findall(r"\d+", text)):
            return False
        words = re.findall(r"\w{3,}", text.casefold())
        return bool(words) and sum(word in self._folded for word in words) * 2 >= len(words)

    def _knows_parts(self, text: str) -> bool:
        """Return whether a value is put together from known words: a name and the domain of its address."""
        parts = _PARTS.findall(text.casefold())
        return all(re.search(rf"(?<![^\W_]){part}(?![^\W_])", self._folded) for part in parts)

    def _is_in_range(self, value: TextValue) -> bool:
        """Return whether a time lies between known ones, so that it may be a choice."""
        known = sorted(key.removeprefix("time:") for key in self._keys if key.startswith("time:"))
        own = [key.removeprefix("time:") for key in value.keys]
        return bool(known) and any(known[0] <= time <= known[-1] for time in own)

    def _is_shifted(self, value: TextValue, *, is_exact: bool) -> bool:
        """Return whether a time is as many minutes or hours from a known one as a known number."""
        known = [_minutes(key) for key in self._keys if key.startswith("time:")]
        steps = {number * unit for number in (self._given if is_exact else self._numbers) for unit in (1, 60)}
        return any(abs(_minutes(key) - time) in steps for key in value.keys for time in known)

    def _is_between(self, value: TextValue) -> bool:
        """Return whether a number is that of the minutes, hours, days or weeks between two known times or dates."""
        if value.number is None or value.number == 0:
            return False
        times = [_minutes(key) for key in self._keys if key.startswith("time:")][:_MAX_NUMBERS]
        days = [_ordinal(key) for key in self._keys if key.startswith("day:")][:_MAX_NUMBERS]
        spans = {abs(a - b) / unit for a, b in combinations(times, 2) for unit in (1, 60)}
        spans |= {
            (abs(a - b) + more) / unit for a, b in combinations(days, 2) for unit in (1, 7) for more in (-1, 0, 1)
        }
        years = {int(key[5:9]) for key in self._keys if key.startswith("date:")}
        is_age = any(year + value.number in _RECENT for year in years)
        return value.number in spans or is_age

    def _is_part(self, value: TextValue) -> bool:
        plain, digits = squeeze(value.text), digits_of(value.text)
        if plain.isdigit():
            return len(digits) > 1 and any(
                known.startswith(digits)
                or known.endswith(digits)
                or (len(digits) >= _MIN_ID and digits in known)
                or (
                    (_PHONE_START.match(value.text) is not None or len(digits) >= _LONG_PHONE)
                    and _is_same_phone(digits, known)
                )
                for known in self._digits
            )
        return len(plain) >= _MIN_ID and any(plain in known for known in self._letters)

    def _is_clock(self, value: TextValue) -> bool:
        """Return whether a number such as 9.30 is a known time or day."""
        match = _CLOCK.fullmatch(value.text)
        if match is None:
            return False
        hour, minute = int(match["hour"]), match["minute"] or f"0{match['month']}"
        is_day = f"day:{int(minute):02d}-{hour:02d}" in self._keys
        return is_day or any(f"time:{hour + half:02d}:{minute}" in self._keys for half in (0, 12))

    def _is_day(self, text: str) -> bool:
        """Return whether eight digits are a known date."""
        return bool(re.fullmatch(r"(?:19|20)\d{6}", text)) and f"day:{text[4:6]}-{text[6:]}" in self._keys

    def _is_next(self, value: TextValue) -> bool:
        """Return whether an id is the one before or after a known id."""
        match = re.fullmatch(r"(\D*)(\d+)", squeeze(value.text))
        if match is None:
            return False
        around = (f"{match[1]}{int(match[2]) + step}" for step in (-1, 1))
        return any(other in known for other in around for known in self._letters)

    def _is_derived(self, number: float, *, is_about: bool, is_exact: bool, is_amount: bool = False) -> bool:
        """Return whether a number is another form of known ones: rounded, converted, a sum, a difference, a product."""
        numbers = [known for known in self._numbers if known > 0][-_MAX_NUMBERS:]
        if number in self._numbers or number == 0 or number >= 10**_MAX_DERIVED_DIGITS:
            return number in self._numbers or number == 0
        if is_about and any(abs(number - known) <= known * _TOLERANCE for known in numbers):
            return True
        factors = _UNIT_FACTORS if is_exact else _FACTORS
        if any(_is_converted(number, known, factors) for known in numbers):
            return True
        if is_exact:
            given = (1.0, *self._given)
            pairs = list(combinations(given, 2))
            is_share = not is_amount and any(
                abs(number - 100 * min(a, b) / max(a, b)) < _ROUNDED for a, b in combinations(self._given, 2)
            )
            is_measure = not is_amount and any(
                abs(number - known * factor) <= number * _MEASURED
                for known in self._given
                for factor in _MEASURE_FACTORS
            )
            is_count = number <= SMALL_ANSWER and any(number in (2 * known, known + 2) for known in self._given)
            sums = any(_is_equal(number, other) for a, b in pairs for other in (a + b, abs(a - b), a * b))
            return is_share or is_measure or is_count or sums
        is_next = any(len(digits) >= _MIN_ID and abs(number - float(digits)) == 1 for digits in self._digits)
        is_pair = any(self._is_pair(number, a, b) for a, b in combinations(numbers, 2))
        return is_next or is_pair or self._is_derived_twice(number, numbers)

    def _is_derived_twice(self, number: float, numbers: list[float]) -> bool:
        """Return whether a number is a sum or difference of a known one and a product, or of several known ones."""
        recent = numbers[-_MAX_TERMS:]
        products = [a * b for a, b in combinations(recent, 2) if min(a, b) <= MAX_FACTOR or max(a, b) > _LARGE]
        parts = [a * (1 - b / 100) for a in recent for b in recent if b < 100]  # noqa: PLR2004 - per cent
        differences = [abs(a - b) for a, b in combinations(recent, 2) if (a - b) % 1]
        if any(_is_equal(number, round(a * b, 2)) for a in differences for b in recent):
            return True
        terms = {*products, *parts, *recent}
        sums = [sum(some) for size in (2, 3, 4) for some in combinations(recent, size)]
        return (
            any(
                _is_same(number, other)
                for term in (*products, *parts)
                for known in recent
                for other in (term + known, abs(term - known), term * known if known <= MAX_FACTOR else term)
            )
            or any(_is_same(number - term, other) for term in products for other in terms if other < number)
            or any(
                _is_equal(number, total) or any(_is_equal(number, abs(known - total)) for known in recent)
                for total in sums
            )
        )

    @staticmethod
    def _is_pair(number: float, a: float, b: float) -> bool:
        low, high = min(a, b), max(a, b)
        results = [a + b, high - low, high * (1 - low / 100), high * low / 100, high * (1 + low / 100)]
        if low <= _LARGE:
            results += [a * b, high / low]
        is_cents = a % 1 == 0 == b % 1 and any(
            _is_equal(number, c + d / _LARGE) for c, d in ((a, b), (b, a)) if d < _LARGE
        )
        return is_cents or _is_equal(number, high / low) or any(_is_same(number, result) for result in results)

    def unknown(self, text: str, request: str = "") -> list[TextValue]:
        """Return the values that a message tells and that are not known, without manners of speaking.

        `request` is the message that it answers: a value in answer to a question is told as it is, and not worked out.
        """
        asked = _asked_values(request)
        is_asked = asked > 0
        are_numbers_asked = _FRAGMENT.search(request) is not None or any(
            _ASKS_VALUE.search(part) and not _ASKS_ONLY_WHEN.search(part) for part in _ASKING_PARTS.split(request)
        )
        found: list[TextValue] = []
        count = 0
        for number, sentence in enumerate(_SENTENCES.split(text)):
            # What follows the answer is a remark.
            is_exact = count < asked and not _INFERRED.search(sentence)
            count += sum(self.knows(value, is_exact=True) for value in values_of(sentence) if value.kind != "quotation")
            first = sentence.partition(", ")[0]
            is_plain = is_asked and not _INFERRED.search(first)
            is_idea = "?" in sentence
            least = FEW if _ASKS_SHARED_COUNT.search(request) else SMALL
            is_count = is_exact and _ASKS_COUNT.search(request) is not None
            is_count = is_count and not any(self.has_number(number) for number in word_numbers(sentence))
            found += (
                value
                for value in (
                    *values_of(sentence),
                    *days_of(sentence),
                    *(spoken_values(sentence, least) if is_count else ()),
                )
                if not (is_idea and value.kind in ("number", "date", "time"))
                and (value.kind != "quotation" or number == 0)  # only the answer itself quotes what was asked for
                and self._is_told(
                    value,
                    sentence,
                    request if is_asked else "",
                    is_exact=(is_exact and (are_numbers_asked or value.kind != "number"))
                    or (is_plain and value.kind != "number" and value.text in first),
                )
            )
        return [value for value in found if not self._is_corrected(value, text)]

    def _is_told(self, value: TextValue, sentence: str, request: str, *, is_exact: bool) -> bool:
        """Return whether a value of a sentence is told and not known."""
        if value.keys & {"day"}:
            return is_exact and _ASKS_WHEN.search(request) is not None and not self.knows_day(digits_of(value.text))
        is_marked = value.is_marked
        if value.number is not None:
            if is_counted(sentence, value.text, request):
                return False
            least = FEW if _ASKS_SHARED_COUNT.search(request) else SMALL_ANSWER
            is_count = is_exact and _ASKS_COUNT.search(request) is not None and value.number > least
            after = sentence.partition(value.text)[2]
            is_marked = is_marked or (is_count and not TIME_UNIT.match(after))
            is_marked = is_marked or (is_exact and (value.number % 1 != 0 or MEASURE_UNIT.match(after) is not None))
            # A plain number that nobody asked for is a manner of speaking: 22 stitches, 300 notes.
            is_exact = is_exact or _OWN_BEFORE.search(sentence.partition(value.text)[0]) is not None
            is_loose = (
                not is_exact
                and (value.is_about or not value.is_amount)
                and (value.number < _RECORD or _is_round(value.number))
            )
            is_spoken = value.number in set(word_numbers(sentence)) and not value.is_amount
            if is_loose or not is_marked or is_spoken:
                return False
            if value.number > SMALL and _NUMBERED.search(
                sentence.partition(value.text)[0]
            ):  # the number of a record is not worked out
                return not (self.has_number(value.number) or self._is_part(value) or self._is_next(value))
        elif value.kind == "quotation":
            is_marked = is_marked and request != ""
        elif value.kind == "time":
            is_marked = is_marked and is_exact
        elif value.kind == "id" and not is_exact and _DOTTED.fullmatch(value.text):
            return False  # an address of a network, or a version
        elif value.kind == "id":
            is_marked = (
                is_exact or len(squeeze(value.text)) >= _MIN_LOOSE_ID or is_label(sentence.partition(value.text)[0])
            )
        is_worked_out = _ASKS_DERIVED.search(request) is not None
        return is_marked and not self._knows_with(value, sentence, is_exact=is_exact and not is_worked_out)

    def _knows_with(self, value: TextValue, sentence: str, *, is_exact: bool) -> bool:
        """Return whether a value is known, or worked out with other numbers of its own sentence."""
        if self.knows(value, is_exact=is_exact):
            return True
        if value.kind == "id" and _NEXT.search(sentence):
            return self._is_next(value)
        if is_exact or value.number is None:
            return False
        own = [
            *word_numbers(sentence),
            *cents(sentence),
            *(other.number for other in values_of(sentence) if other.number is not None),
        ]
        others = [number for number in own if number > 0 and number != value.number]
        numbers = [*(number for number in self._numbers if number > 0), *others]
        is_converted = any(_is_converted(value.number, other, _FACTORS) for other in others)
        return is_converted or any(self._is_pair(value.number, a, b) for a in others for b in numbers)

    def _is_corrected(self, value: TextValue, text: str) -> bool:
        """Return whether a value is taken back: a known one of its kind follows in the same message."""
        after = text.partition(value.text)[2]
        correction = _CORRECTED.search(after)
        if correction is None:
            return False
        return any(
            other.kind == value.kind and self.knows(other, is_exact=True)
            for other in values_of(after[correction.end() :])
        )


def _asked_values(request: str) -> int:
    """Return how many values a message of the other side asks for at most."""
    if not _ASKED.search(request):
        return 0
    parts = [part for part in _ASKING_PARTS.split(request) if not _ASKS_WORDS.search(part)]
    return sum(_ASKS_VALUE.search(part) is not None for part in parts) or int(_FRAGMENT.search(request) is not None)


def _is_same_phone(digits: str, known: str) -> bool:
    """Return whether two numbers of phones end with the same digits: the code of the country may be missing."""
    return min(len(digits), len(known)) >= MIN_PHONE and digits[-MIN_PHONE:] == known[-MIN_PHONE:]


def _ordinal(key: str) -> int:
    """Return the number of a day in a leap year, for a key that ends with month and day."""
    month, day = int(key[-5:-3]), int(key[-2:])
    return sum(_MONTH_DAYS[: month - 1]) + day


def _is_round(number: float) -> bool:
    """Return whether a number has at most two digits that are not zero: it is known to everybody, and no record."""
    return number % 1 == 0 and len(f"{number:.0f}".rstrip("0")) <= 2  # noqa: PLR2004 - digits


def _minutes(key: str) -> int:
    hour, minute = key.removeprefix("time:").split(":")
    return int(hour) * 60 + int(minute)


def _is_converted(number: float, known: float, factors: Iterable[int]) -> bool:
    """Return whether a number is a known one that was rounded, or is told in another unit."""
    if known % 1 and abs(number - known) < 1:
        return True
    return any(_is_same(number, known * factor) or _is_same(number, known / factor) for factor in factors)


def _is_equal(number: float, other: float) -> bool:
    return abs(number - other) < 0.011  # noqa: PLR2004 - a hundredth


def _is_same(number: float, other: float) -> bool:
    """Compare up to a hundredth; a whole number is also the same as one that was rounded to it."""
    return _is_equal(number, other) or (number % 1 == 0 and number >= _MIN_ROUNDED and abs(number - other) < _ROUNDED)
