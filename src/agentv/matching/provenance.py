"""Values in a text, and their origin in other texts: numbers, dates, times, e-mail addresses, ids and quotations.

A value is compared after normalisation. A number may also be derived from known ones: a sum, a part, a rounding.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations
from typing import Literal, NamedTuple

from agentv.matching.text import lazy_pattern

ValueKind = Literal["email", "date", "time", "id", "number", "quotation"]
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FOREIGN_MONTHS = {"mär": 3, "mai": 5, "okt": 10, "dez": 12}
_MONTH = (
    r"(?P<month>jan(?:uary?|uar)?|feb(?:ruary?|ruar)?|mar(?:ch)?|märz?|apr(?:il)?|may|mai|june?|juni|july?|juli"
    r"|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\.?"
)
_YEAR = r"(?P<year>\d{4})"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th|\.)?"
_EMAIL = lazy_pattern(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_ISO_DATE = lazy_pattern(r"(?<![\w-])(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!-?\d)")
_SHORT_DATE = lazy_pattern(r"(?<![\w.,/-])(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?![\w/-]|\.\d)")
_WORD_DATES = tuple(
    lazy_pattern(rf"(?<!\w){pattern}(?!\w)", re.IGNORECASE)
    for pattern in (
        rf"{_DAY}(?:\s+of)?[\s-]+{_MONTH}(?:,?[\s-]+{_YEAR})?",
        rf"{_MONTH}\s+(?:the\s+)?{_DAY}(?![:.]?\d)(?:,?\s+{_YEAR})?",
    )
)
_TIME = lazy_pattern(
    r"(?<![\w.:,/-])(?P<hour>[01]?\d|2[0-4])"
    r"(?:(?:[:.h](?P<minute>[0-5]\d)(?::[0-5]\d)?)?\s?(?P<half>[ap]\.?m\b\.?)"
    r"|:(?P<minute2>[0-5]\d)(?::[0-5]\d)?(?:\s?(?:h|uhr)\b)?|h(?P<minute3>[0-5]\d)?\b"
    r"|(?:\.(?P<minute4>[0-5]\d))?\s?(?:uhr|o'clock)\b)(?![\w:])",
    re.IGNORECASE,
)
_QUOTATION = lazy_pattern(r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|«([^»\n]{2,200})»|„([^“”\n]{2,200})[“”]")
_TOLD_BEFORE = lazy_pattern(r"(?:\b(?:is|was|named|called|titled|password|code|reference)|:)\s*$", re.IGNORECASE)
_TOKEN = lazy_pattern(r"[A-Za-z0-9](?:[A-Za-z0-9]|[-_#/:.](?=[A-Za-z0-9]))*")
_NUMBER = lazy_pattern(r"\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+(?:[.,]\d{1,2})?(?!\d)|\d+(?:[.,]\d+)?")
_DIGIT_GROUPS = lazy_pattern(r"\+?\d(?:[\d()/. ,-]*\d)?")
_PHONE = lazy_pattern(r"(?<![\w.])\+?\(?\d{1,5}(?:[ ()/.-]{1,3}\d{1,5}){2,}(?!\w)")
_SPELLED = lazy_pattern(r"(?<!\w)[A-Za-z0-9](?:(?:\s*[,-]\s*|\s+|\s*\.\.+\s*)[A-Za-z0-9](?!\w)){3,}")
_ORDINAL = lazy_pattern(r"\d+(?:st|nd|rd|th|e|er|ème|ish|s|x)", re.IGNORECASE)
_SCALES = {"k": 1e3, "thousand": 1e3, "grand": 1e3, "m": 1e6, "mio": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9}
_SCALE = lazy_pattern(r"\s?(?:k|thousand|grand|mio|million|bn|billion)\b|m(?=\s|$|[.,!?])", re.IGNORECASE)
_GLUED = lazy_pattern(
    r"(?P<number>\d+(?:[.,]\d+)*)-?(?P<unit>k|m|mio|bn|kg|g|mg|lbs?|oz|km|cm|mm|ft|in|inch|mi|mph|kmh|l|ml|gb|mb|tb|kb"
    r"|gbps|mbps|ghz|mhz|hz|kwh|kw|w|v|mah|px|p|s|secs?|min|mins?|h|hrs?|d|days?|weeks?|months?|years?|yrs?|eur|usd"
    r"|gbp|chf|c|f|pcs|pm|am|x|fold)",
    re.IGNORECASE,
)
_TIME_UNIT = lazy_pattern(
    r"(?:\s|-)*(?:odd\s+|or so\s+|more\s+|full\s+|business\s+|working\s+)?"
    r"(?:seconds?|secs?|s\b|minutes?|mins?|hours?|hrs?|h\b|days?|nights?|weeks?|months?|years?(?!\s*-?old)|times?|things?|emails?|calls?"
    r"|questions?|more\b|other\b|of (?:them|those|these|you|us)\b)",
    re.IGNORECASE,
)
_SURE = lazy_pattern(r"\s?(?:%|percent|per cent)\s+(?:sure|certain|positive|of the time|confident)", re.IGNORECASE)
_CURRENCY_BEFORE = lazy_pattern(r"(?:[$€£¥₹]|\b(?:usd|eur|gbp|chf|euros?|dollars?))\s*$", re.IGNORECASE)
_CURRENCY_AFTER = lazy_pattern(
    r"\s?(?:[$€£¥₹]|(?:usd|eur|gbp|chf|euros?|dollars?|pounds?|bucks|quid)\b)", re.IGNORECASE
)
_LABEL_BEFORE = lazy_pattern(
    r"(?:#|\b(?:id|pin|code|nr|no|account|invoice|ticket|reference|ref|number(?:\s+is)?)[.:]?)\s*$", re.IGNORECASE
)
_COUNTED_BEFORE = lazy_pattern(
    r"\b(?:option|step|question|item|point|line|page|choice|part|attempt|try|level|row|tier|zone|gate|top|chapter)s?"
    r"\s*(?:#|number|no\.?)?\s*$",
    re.IGNORECASE,
)
_STREET_AFTER = lazy_pattern(
    r"[a-z]?,?\s+(?:[A-Z][\w']+\s+){1,3}(?:street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd)\b"
)
_HEDGE_BEFORE = lazy_pattern(
    r"(?:\b(?:about|around|roughly|almost|nearly|approximately|approx\.?|over|under|some|like|circa|just short of"
    r"|more than|less than|close to|ca\.?|a good|not even|or|say)|~|≈)\s*(?:the\s+)?[$€£]?\s*$",
    re.IGNORECASE,
)
_HEDGE_AFTER = lazy_pattern(r"\s?(?:-?ish\b|or so\b|\w+ or so\b|something\b|or thereabouts)", re.IGNORECASE)
_IDIOM = lazy_pattern(
    r"24/7|9-5|\b9 to 5\b|50[/-]50|1[01]0\s?%|1:1|1-on-1|\b2FA\b|\bA[3-5]\b(?!-)|\b[345]G\b|\b4K\b|\bMP[34]\b|\bUTF-8\b"
    r"|\bQ[1-4]\b|\bB2[BC]\b|\b(?:1080|720)p\b|\bIPv[46]\b|\b101\b(?= (?:course|class))|\b[34]0[0-9] (?:error|page)"
    r"|\b(?:error|http) [45]\d\d\b|\bCOVID-19\b|\b\d{1,2}\s?cents\b",
    re.IGNORECASE,
)
_CORRECTED = lazy_pattern(r"\b(?:no,? sorry|i mean|i meant|mixed that up|correction|scratch that)\b", re.IGNORECASE)
"""Words of somebody who corrects a value in the same message."""
_UNITS_OF_TEN = dict(
    zip(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), range(20, 100, 10), strict=True)
)
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_WORDS = {**{word: number for number, word in enumerate(_ONES)}, **_UNITS_OF_TEN}
_WORDS |= {"dozen": 12, "couple": 2, "both": 2, "pair": 2, "single": 1, "once": 1, "twice": 2, "half": 2, "quarter": 4}
_WORD_NUMBER = lazy_pattern(rf"\b(?:{'|'.join([*_WORDS, 'hundred', 'thousand', 'million', 'and', 'oh', 'double'])})\b")
SMALL = 20
"""Numbers up to this one are counts or manners of speaking, unless they are marked as an amount or an id."""
SMALL_TIME = 100
"""The same for numbers before a unit of time: "in 45 minutes"."""
MAX_FACTOR = 31
_FACTORS = (2, 3, 4, 7, 10, 12, 24, 30, 52, 60, 100, 365, 1000)
_TOLERANCE = 0.12
_MAX_NUMBERS = 60
_MAX_TERMS = 10
_LARGE = 100
_MAX_DERIVED_DIGITS = 7
_MIN_PHONE = 7
_MIN_SPELLED = 4


class TextValue(NamedTuple):
    """A value in a text."""

    kind: ValueKind
    text: str
    """The value as written."""
    keys: frozenset[str]
    """Normalised forms; two values are the same if they share one."""
    is_marked: bool = True
    """`True` if it is an amount or an id, or too large for a count; the others are manners of speaking."""
    is_about: bool = False
    """`True` if it is said to be approximate."""

    @property
    def number(self) -> float | None:
        """The number; `None` for values of another kind."""
        return float(next(iter(self.keys)).removeprefix("number:")) if self.kind == "number" else None


def find_values(text: str) -> list[TextValue]:
    """Return the values of a text, in the order of their kinds."""
    values: list[TextValue] = []
    rest = _IDIOM.sub(" ", text)
    for match in _QUOTATION.finditer(rest):
        quoted = next(group for group in match.groups() if group is not None)
        if len(quoted.split()) > 1 and _TOLD_BEFORE.search(rest[: match.start()]):
            values.append(TextValue("quotation", quoted, frozenset((_fold(quoted),))))
    rest, emails = _take(_EMAIL, rest)
    values += [TextValue("email", match[0], frozenset((match[0].casefold().rstrip("."),))) for match in emails]
    rest, dates = _take_dates(rest)
    values += dates
    rest, times = _take(_TIME, rest)
    values += [_time(match) for match in times]
    rest, spelled = _take(_SPELLED, rest)
    values += [_spelled(match[0]) for match in spelled if any(char.isdigit() for char in match[0])]
    rest, phones = _take(_PHONE, rest)
    for match in phones:
        digits = _digits(match[0])
        if len(digits) >= _MIN_PHONE:
            values.append(TextValue("id", match[0], frozenset((f"id:{digits}",))))
        else:
            rest += f" {match[0]}"
    values += _tokens(rest)
    return values


def _take(pattern: re.Pattern[str], text: str) -> tuple[str, list[re.Match[str]]]:
    """Return the text without the matches, and the matches."""
    matches = list(pattern.finditer(text))
    return (pattern.sub(" ", text) if matches else text), matches


def _take_dates(text: str) -> tuple[str, list[TextValue]]:
    dates = []
    text, matches = _take(_ISO_DATE, text)
    dates += [_date(match[0], [(match[1], match[2], match[3])]) for match in matches]
    text, matches = _take(_SHORT_DATE, text)
    for match in matches:
        year = match[4] if len(match[4]) > 2 else f"20{match[4]}"  # noqa: PLR2004 - digits of a year
        dates.append(_date(match[0], [(year, match[3], match[1]), (year, match[1], match[3])]))
    for pattern in _WORD_DATES:
        text, matches = _take(pattern, text)
        for match in matches:
            found = match.groupdict()
            dates.append(_date(match[0], [(found["year"] or "", str(_month(found["month"])), found["day"])]))
    return text, dates


def _month(word: str) -> int:
    start = word[:3].casefold()
    return _FOREIGN_MONTHS.get(start) or _MONTHS.index(start) + 1


def _date(text: str, readings: Iterable[tuple[str, str, str]]) -> TextValue:
    """Return a date; its keys are the days that it may mean, with the year if it has one."""
    keys = set()
    for year, month, day in readings:
        short = f"{int(month):02d}-{int(day):02d}"
        keys |= {f"date:{year}-{short}" if year else f"day:{short}"}
    return TextValue("date", text, frozenset(keys))


def _time(match: re.Match[str]) -> TextValue:
    """Return a time of day; one of the first half of the day without `am` may also be meant in the second."""
    hour = int(match["hour"]) % 24
    minute = match["minute"] or match["minute2"] or match["minute3"] or match["minute4"] or "00"
    half = (match["half"] or "").casefold()[:1]
    hours = [hour % 12 + 12 * (half == "p")] if half else [hour, *([hour + 12] if hour < 12 else [])]  # noqa: PLR2004
    return TextValue("time", match[0], frozenset(f"time:{hour:02d}:{minute}" for hour in hours), minute != "00")


def _spelled(text: str) -> TextValue:
    return TextValue("id", text, frozenset((_id_key(text),)))


def _tokens(text: str) -> Iterator[TextValue]:
    """Yield ids and numbers."""
    for match in _TOKEN.finditer(text):
        if _is_id(match[0]):
            yield TextValue("id", match[0], frozenset((_id_key(match[0]),)))
    for match in _NUMBER.finditer(_TOKEN.sub(_without_ids, text)):
        yield _number(match, text)


def _is_id(token: str) -> bool:
    """Tell whether a token is an id: it has digits and letters, or several parts, and is no number with a unit."""
    if not any(char.isdigit() for char in token) or _ORDINAL.fullmatch(token) or _GLUED.fullmatch(token):
        return False
    if any(char.isalpha() for char in token):
        return re.fullmatch(r"\d+(?:-[A-Za-z]{3,})+", token) is None  # a 5-day trip
    return token.count(".") > 1 and re.fullmatch(r"\d{1,3}(?:\.\d{3})+", token) is None


def _without_ids(match: re.Match[str]) -> str:
    """Return a token, or as many spaces if it is an id or an ordinal."""
    token = match[0]
    if (_is_id(token) and re.fullmatch(r"\d+(?:-[A-Za-z]{3,})+", token) is None) or _ORDINAL.fullmatch(token):
        return " " * len(token)
    return token


def _number(match: re.Match[str], text: str) -> TextValue:
    before, after = text[max(0, match.start() - 30) : match.start()], text[match.end() : match.end() + 60]
    number = normalize_number(match[0])
    scale = _SCALE.match(after)
    if scale:
        number = normalize_number(f"{float(number) * _SCALES[scale[0].strip().casefold()]:.2f}")
        after = after[scale.end() :]
    is_money = bool(_CURRENCY_BEFORE.search(before) or _CURRENCY_AFTER.match(after))
    is_labelled = bool(_LABEL_BEFORE.search(before)) and not _COUNTED_BEFORE.search(before)
    size = float(number)
    small = SMALL_TIME if _TIME_UNIT.match(after) or _SURE.match(after) else SMALL
    is_marked = size > small or (is_money and size > 1) or is_labelled or bool(_STREET_AFTER.match(after))
    is_about = bool(_HEDGE_BEFORE.search(before) or _HEDGE_AFTER.match(after))
    return TextValue("number", match[0], frozenset((f"number:{number}",)), is_marked, is_about)


def normalize_number(text: str) -> str:
    """Return a number without separators of thousands, and without zeros after its decimal point."""
    plain = re.sub(r"[ '\u00a0\u202f]", "", text)
    for mark, other in ((",", "."), (".", ",")):
        # The last of two different marks is the decimal point; a single one before three digits separates thousands.
        if mark in plain and (other in plain and plain.rfind(mark) < plain.rfind(other)):
            plain = plain.replace(mark, "")
    if re.fullmatch(r"\d{1,3}(?:[,.]\d{3})+", plain):
        plain = re.sub(r"[,.]", "", plain)
    plain = plain.replace(",", ".")
    if plain.count(".") > 1:
        whole, _, decimals = plain.rpartition(".")
        plain = f"{whole.replace('.', '')}.{decimals}"
    whole, _, decimals = plain.partition(".")
    decimals = decimals.rstrip("0")
    return f"{int(whole or 0)}.{decimals}" if decimals else str(int(whole or 0))


def _word_numbers(text: str) -> Iterator[float]:
    """Yield the numbers of a text that are written as words, and the digits that are spelled as words."""
    total, part, digits, end = 0.0, 0.0, "", -9
    for match in _WORD_NUMBER.finditer(text.casefold()):
        word = match[0]
        if match.start() - end > 2:  # noqa: PLR2004 - a comma and a space
            yield from _finished(total, part, digits)
            total, part, digits = 0.0, 0.0, ""
        end = match.end()
        if word in ("hundred", "thousand", "million"):
            size = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}[word]
            part = (part or 1) * size
            if size > 100:  # noqa: PLR2004 - hundreds are followed by tens
                total, part = total + part, 0.0
        elif word == "oh":
            digits += "0"
        elif word in _WORDS:
            part += _WORDS[word]
            digits += str(_WORDS[word])
    yield from _finished(total, part, digits)


def _finished(total: float, part: float, digits: str) -> Iterator[float]:
    if total + part:
        yield total + part
    if len(digits) > 1:
        yield float(digits)


def _id_key(token: str) -> str:
    return "id:" + _plain(token)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.casefold())


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _fold(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .,;:!?")


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

    def add(self, text: str) -> None:
        """Add all values of a text."""
        for value in _values_of(text):
            self._keys |= value.keys
            for key in value.keys:
                if key.startswith("date:"):
                    self._keys.add(f"day:{key[-5:]}")
            if value.number is not None:
                self._numbers[value.number] = None
        self._numbers |= dict.fromkeys(_word_numbers(text))
        self._folded += f" {_fold(text)}"
        self._digits += [_digits(match[0]) for match in _DIGIT_GROUPS.finditer(text)]
        self._letters.append(_plain(text))

    def knows(self, value: TextValue) -> bool:
        """Tell whether a value is known: in whole, as a part of a known one, or derived from known numbers."""
        if value.keys & self._keys:
            return True
        if value.kind == "quotation":
            return self._knows_words(value.text)
        if value.kind == "date":
            return any(f"day:{key[-5:]}" in self._keys and not self._has_year(key) for key in value.keys)
        if value.kind == "time":
            return _plain(value.text) in "".join(self._letters) or self._is_in_range(value)
        if value.kind in ("number", "id") and self._is_part(value):
            return True
        return value.number is not None and self._is_derived(value.number, is_about=value.is_about)

    def _has_year(self, key: str) -> bool:
        """Tell whether a known date of the same day has a year, so that another year is another date."""
        return key.startswith("date:") and any(
            known.startswith("date:") and known[-5:] == key[-5:] for known in self._keys
        )

    def _knows_words(self, text: str) -> bool:
        if _fold(text) in self._folded:
            return True
        words = re.findall(r"\w{3,}", text.casefold())
        return sum(word in self._folded for word in words) * 2 >= len(words)

    def _is_in_range(self, value: TextValue) -> bool:
        """Tell whether a time lies between known ones, so that it may be a choice."""
        known = sorted(key.removeprefix("time:") for key in self._keys if key.startswith("time:"))
        own = [key.removeprefix("time:") for key in value.keys]
        return bool(known) and any(known[0] <= time <= known[-1] for time in own)

    def _is_part(self, value: TextValue) -> bool:
        plain, digits = _plain(value.text), _digits(value.text)
        if plain.isdigit() and len(digits) > 1:
            if any(digits in known for known in self._digits):
                return True
            tail = digits[-9:]
            if len(tail) >= _MIN_PHONE and any(known.endswith(digits.lstrip("0")) for known in self._digits):
                return True
        return len(plain) > 2 and any(plain in known for known in self._letters)  # noqa: PLR2004 - A-1 is too short

    def _is_derived(self, number: float, *, is_about: bool) -> bool:
        """Tell whether a number is another form of known ones: rounded, converted, a sum, a difference, a product."""
        numbers = [known for known in self._numbers if known > 0][-_MAX_NUMBERS:]
        if number in self._numbers or number == 0 or number >= 10**_MAX_DERIVED_DIGITS:
            return number in self._numbers or number == 0
        if is_about and any(abs(number - known) <= known * _TOLERANCE for known in numbers):
            return True
        if any(abs(number - known) < 1 for known in numbers if known % 1):
            return True
        if any(
            _is_same(number, known * factor) or _is_same(number, known / factor)
            for known in numbers
            for factor in _FACTORS
        ):
            return True
        if any(self._is_pair(number, a, b) for a, b in combinations(numbers, 2)):
            return True
        return self._is_derived_twice(number, numbers)

    def _is_derived_twice(self, number: float, numbers: list[float]) -> bool:
        """Tell whether a number is a sum or difference of a known one and a product of two known ones."""
        recent = numbers[-_MAX_TERMS:]
        products = [a * b for a, b in combinations(recent, 2) if min(a, b) <= MAX_FACTOR or max(a, b) > _LARGE]
        parts = [a * (1 - b / 100) for a in recent for b in recent if b < 100]  # noqa: PLR2004 - per cent
        terms = {*products, *parts, *recent}
        return any(
            _is_same(number, other)
            for term in (*products, *parts)
            for known in recent
            for other in (term + known, abs(term - known), term * known if known <= MAX_FACTOR else term)
        ) or any(_is_same(number - term, other) for term in products for other in terms if other < number)

    @staticmethod
    def _is_pair(number: float, a: float, b: float) -> bool:
        low, high = min(a, b), max(a, b)
        results = [a + b, high - low, high * (1 - low / 100), high * low / 100, high * (1 + low / 100)]
        if low <= _LARGE:
            results += [a * b, high / low]
        return any(_is_same(number, result) for result in results)

    def unknown(self, text: str) -> list[TextValue]:
        """Return the values of a text that are not known, without manners of speaking."""
        values = [value for value in _values_of(text) if value.is_marked and not self.knows(value)]
        if len(values) == 1 and _CORRECTED.search(text):
            return []
        return [value for value in values if value.number is None or value.number not in set(_word_numbers(text))]


def _is_same(number: float, other: float) -> bool:
    """Compare up to a hundredth; a whole number is also the same as one that was rounded to it."""
    return abs(number - other) < 0.011 or (number % 1 == 0 and number > SMALL and abs(number - other) < 0.51)  # noqa: PLR2004


@lru_cache(maxsize=1024)
def _values_of(text: str) -> tuple[TextValue, ...]:
    return tuple(find_values(text))
