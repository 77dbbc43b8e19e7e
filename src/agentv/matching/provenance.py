"""Values in a text, and whether they come from other texts: numbers, dates, e-mail addresses, ids and quotations."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

ValueKind = Literal["email", "date", "id", "number", "quotation"]
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_GERMAN_MONTHS = {"mär": 3, "mai": 5, "okt": 10, "dez": 12}
_MONTH = r"(?P<month{n}>(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-zä]*)\.?"
_YEAR = r"(?P<year{n}>\d{{4}})"
_DAY = r"(?P<day{n}>\d{{1,2}})(?:st|nd|rd|th|\.)?"
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_ISO_DATE = re.compile(r"(?<![\w-])(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?![\w-])")
_SHORT_DATE = re.compile(r"(?<![\w.,/-])(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?![\w/-])")
_WORD_DATES = tuple(
    re.compile(rf"(?<!\w){pattern.format(n='')}(?!\w)", re.IGNORECASE)
    for pattern in (
        rf"{_DAY}(?:\s+of)?\s+{_MONTH}(?:,?\s+{_YEAR})?",
        rf"{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?",
    )
)
_QUOTATION = re.compile(r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|«([^»\n]{2,200})»|„([^“”\n]{2,200})[“”]")
_TOKEN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|[-_#/:.](?=[A-Za-z0-9]))*")
_NUMBER = re.compile(r"\d{1,3}(?:[ ,.']\d{3})+(?:[.,]\d{1,2})?(?!\d)|\d+(?:[.,]\d+)?")
_DIGIT_GROUPS = re.compile(r"\+?\d(?:[\d()/ -]*\d)?")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|s|x)", re.IGNORECASE)
_UNIT = re.compile(
    r"(?:\s|-)*(?:%|percent|seconds?|secs?|minutes?|mins?|hours?|hrs?|h\b|days?|weeks?|months?|years?|times?|things?"
    r"|questions?|more\b|other\b|of (?:them|those|these|you|us)\b)",
    re.IGNORECASE,
)
_IDIOM = re.compile(r"24/7|9-5|50/50|100\s?%|1:1|110\s?%", re.IGNORECASE)
SMALL = 60
"""Numbers up to this one are manners of speaking when a unit follows: "in 5 minutes", "3 times"."""


class TextValue(NamedTuple):
    """A value in a text."""

    kind: ValueKind
    text: str
    """The value as written."""
    keys: frozenset[str]
    """Normalised forms; two values are the same if they share one."""


def find_values(text: str) -> list[TextValue]:
    """Return the values of a text, in the order of their kinds."""
    values: list[TextValue] = []
    rest = _IDIOM.sub(" ", text)
    for match in _QUOTATION.finditer(rest):
        quoted = next(group for group in match.groups() if group is not None)
        if len(quoted.split()) > 1 or any(char.isdigit() for char in quoted):
            values.append(TextValue("quotation", quoted, frozenset((_fold(quoted),))))
    rest, emails = _take(_EMAIL, rest)
    values += [TextValue("email", match[0], frozenset((match[0].casefold().rstrip("."),))) for match in emails]
    rest, dates = _take_dates(rest)
    values += dates
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
            month = _month(found["month"])
            if month:
                dates.append(_date(match[0], [(found["year"] or "", str(month), found["day"])]))
    return text, dates


def _month(word: str) -> int:
    start = word[:3].casefold()
    return _GERMAN_MONTHS.get(start) or (_MONTHS.index(start) + 1 if start in _MONTHS else 0)


def _date(text: str, readings: Iterable[tuple[str, str, str]]) -> TextValue:
    """Return a date; its keys are the day with the year and without, for each way to read it."""
    keys = set()
    for year, month, day in readings:
        short = f"{int(month):02d}-{int(day):02d}"
        keys |= {f"date:{year}-{short}" if year else f"day:{short}"}
    return TextValue("date", text, frozenset(keys))


def _tokens(text: str) -> Iterator[TextValue]:
    """Yield ids and numbers."""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if not any(char.isdigit() for char in token) or _ORDINAL.fullmatch(token):
            continue
        if any(char.isalpha() for char in token):
            yield TextValue("id", token, frozenset((_id_key(token),)))
    for match in _NUMBER.finditer(_TOKEN.sub(_without_ids, text)):
        yield from _number(match, text)


def _without_ids(match: re.Match[str]) -> str:
    """Return a token, or as many spaces if it is an id or an ordinal."""
    token = match[0]
    return " " * len(token) if any(char.isalpha() for char in token) else token


def _number(match: re.Match[str], text: str) -> Iterator[TextValue]:
    number = normalize_number(match[0])
    before, after = text[: match.start()], text[match.end() :]
    is_marked = re.search(r"(?:[#$€£]|\b(?:no|nr|number|order|id|usd|eur))[.:]?\s*$", before, re.IGNORECASE)
    if not is_marked and float(number) <= SMALL and _UNIT.match(after):
        return
    if not is_marked and float(number) <= 1:
        return
    yield TextValue("number", match[0], frozenset((f"number:{number}",)))


def normalize_number(text: str) -> str:
    """Return a number without separators of thousands, and without zeros after its decimal point."""
    plain = re.sub(r"[ ']", "", text)
    for mark, other in ((",", "."), (".", ",")):
        # The last of two different marks is the decimal point; a single one before three digits separates thousands.
        if mark in plain and (other in plain and plain.rfind(mark) < plain.rfind(other)):
            plain = plain.replace(mark, "")
    if re.fullmatch(r"\d{1,3}(?:[,.]\d{3})+", plain):
        plain = re.sub(r"[,.]", "", plain)
    plain = plain.replace(",", ".")
    whole, _, decimals = plain.partition(".")
    decimals = decimals.rstrip("0")
    return f"{int(whole or 0)}.{decimals}" if decimals else str(int(whole or 0))


def _id_key(token: str) -> str:
    return "id:" + re.sub(r"[^a-z0-9]", "", token.casefold())


def _fold(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .,;:!?")


class KnownValues:
    """Values that somebody may tell, because they are in the texts that he knows."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._keys: set[str] = set()
        self._folded = ""
        self._digits: list[str] = []
        self._letters: list[str] = []
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add all values of a text."""
        for value in _values_of(text):
            self._keys |= value.keys
            for key in value.keys:
                if key.startswith("date:"):
                    self._keys.add(f"day:{key[-5:]}")
        self._folded += f" {_fold(text)}"
        self._digits += [re.sub(r"\D", "", match[0]) for match in _DIGIT_GROUPS.finditer(text)]
        self._letters.append(re.sub(r"[^a-z0-9]", "", text.casefold()))

    def knows(self, value: TextValue) -> bool:
        """Tell whether a value is known, in whole or as a part of a known one, such as the last digits of a number."""
        if value.keys & self._keys or (value.kind == "quotation" and _fold(value.text) in self._folded):
            return True
        if value.kind in ("number", "id"):
            plain = re.sub(r"[^a-z0-9]", "", value.text.casefold())
            digits = re.sub(r"\D", "", value.text)
            if plain.isdigit() and len(digits) > 1 and any(digits in known for known in self._digits):
                return True
            return len(plain) > 2 and any(plain in known for known in self._letters)  # noqa: PLR2004 - A-1 is too short
        return False

    def unknown(self, text: str) -> list[TextValue]:
        """Return the values of a text that are not known."""
        return [value for value in _values_of(text) if not self.knows(value)]


@lru_cache(maxsize=1024)
def _values_of(text: str) -> tuple[TextValue, ...]:
    return tuple(find_values(text))
