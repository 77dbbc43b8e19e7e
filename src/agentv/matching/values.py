"""Values in a text: numbers, dates, times, e-mail addresses, ids and quotations, each with its normalised forms."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from agentv.matching.spoken import told_numbers

ValueKind = Literal["email", "date", "time", "id", "number", "quotation"]
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FOREIGN_MONTHS = {
    "ene": 1,
    "gen": 1,
    "fév": 2,
    "fev": 2,
    "mär": 3,
    "abr": 4,
    "avr": 4,
    "mai": 5,
    "mag": 5,
    "giu": 6,
    "lug": 7,
    "aoû": 8,
    "ago": 8,
    "set": 9,
    "okt": 10,
    "out": 10,
    "ott": 10,
    "dez": 12,
    "déc": 12,
    "dic": 12,
    "juin": 6,
    "juil": 7,
}
_MONTH = (
    r"(?P<month>jan(?:uary?|uar|vier|eiro|uari)?|enero|gennaio|feb(?:ruary?|ruar|rero|braio|ruari)?|février|fevereiro"
    r"|mar(?:ch|s|zo|ço)?|märz?|apr(?:ile?)?|abril|avril|may|mai|mayo|maggio|maio|june?|juni|juin|junio|giugno|junho"
    r"|july?|juli|juillet|julio|luglio|julho|aug(?:ust(?:us)?)?|août|agosto|sept?(?:i?embre|ember)?|setembro"
    r"|settembre|o[ck]t(?:ober|ubre|obre)?|ottobre|outubro|nov(?:i?embre|ember|embro)?|de[cz](?:ember|embro)?"
    r"|décembre|dici?embre)\.?"
)
_YEAR = r"(?P<year>\d{4})"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th|\.)?"
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+", re.IGNORECASE)
_ISO_DATE = re.compile(r"(?<![\w-])(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!-?\d)")
_SHORT_DATE = re.compile(r"(?<![\w.,/-])(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?![\w/-]|\.\d)")
_EDGE = re.compile(
    rf"\b(?P<edge>end|last day|mid|middle|start|beginning|first)(?:\s+of|-)?\s*{_MONTH}(?!\w)", re.IGNORECASE
)
_MONTHS_RANGE = re.compile(
    rf"(?<!\w){_MONTH}(?!\w)\s*(?:[-\u2013]|to|through|till|until|bis)\s*"
    rf"{_MONTH.replace('?P<month>', '?P<last>')}(?!\w)",
    re.IGNORECASE,
)
_WORD_DATES = tuple(
    re.compile(rf"(?<!\w){pattern}(?!\w)", re.IGNORECASE)
    for pattern in (
        rf"{_DAY}(?:\s+(?:of|de|di))?[\s-]+{_MONTH}(?:,?[\s-]+(?:de\s+)?{_YEAR})?",
        rf"{_MONTH}\s+(?:the\s+)?{_DAY}(?![:.]?\d)(?:,?\s+{_YEAR})?",
    )
)
_ORDINAL_WORDS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"),
    *("twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"),
    "twentieth",
)
_ORDINALS = {**{word: number for number, word in enumerate(_ORDINAL_WORDS, start=1)}, "thirtieth": 30}
_ANY_MONTH = _MONTH.replace("?P<month>", "?:")
_WORD_DAY = re.compile(
    rf"\b(?P<before>{_ANY_MONTH}\s+(?:the\s+)?)?(?:(?P<tens>twenty"
    rf"|thirty)[-\s])?(?P<one>{'|'.join(_ORDINALS)})\b(?P<after>\s+(?:of\s+)?{_ANY_MONTH}(?!\w))?(?(before)|(?(after)"
    rf"|(?!)))",
    re.IGNORECASE,
)
"""A day that is written as a word, beside its month."""
_TIME = re.compile(
    r"(?<![\w.:,/-])(?P<hour>[01]?\d|2[0-4])(?:(?:[:.h](?P<minute>[0-5]\d)(?::[0-5]\d)?)?\s?(?P<half>[ap]\.?m\b\.?)"
    r"|:(?P<minute2>[0-5]\d)(?::[0-5]\d)?(?:\s?(?:h|uhr)\b)?|\s?h\s?(?P<minute3>[0-5]\d)\b|h\b"
    r"|(?:\.(?P<minute4>[0-5]\d))?\s?(?:uhr(?:\s(?P<minute5>[0-5]\d))?|o'clock)\b)(?![\w:])",
    re.IGNORECASE,
)
_QUOTATION = re.compile(r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|«([^»\n]{2,200})»|„([^“”\n]{2,200})[“”]")
_TOLD_BEFORE = re.compile(
    r"(?:\b(?:is|was|be|it's|that's|named|called|titled|password|code|reference|writes?|put|enter|wrote|written"
    r"|reads?|says?|said|shows?|states?|promised?|told\s+(?:me|us|him|her|them))|:)\s*$",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|[-_#/:.](?=[A-Za-z0-9]))*")
_NUMBER = re.compile(r"\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+(?:[.,]\d{1,2})?(?!\d)|\d{1,300}(?:[.,]\d{1,300})?")
_PHONE = re.compile(
    r"(?<![\w.])(?:\+?\(?\d{1,5}(?:[ ()/.-]{1,3}\d{1,5}){2,}|(?:\+|00)\d{1,3}(?:[ ()/.-]{1,3}\d{1,9}){1,5}"
    r"|\(?0\d{2,5}\)?[ /-]{1,2}\d{5,9})(?!\w)"
)
_SPELLED = re.compile(r"(?<![\w'])[A-Za-z0-9](?:(?:\s*[,-]\s*|\s+|\s*\.\.+\s*)(?!I\s+[a-z])[A-Za-z0-9](?!\w)){3,}")
_MEASURES = re.compile(r"(?:\d+\s?[mgl]\s?)+", re.IGNORECASE)
"""Single digits with their units: "5 m 4 m"."""
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|e|er|ème|ish|s|x)", re.IGNORECASE)
_SCALES = {"k": 1e3, "thousand": 1e3, "grand": 1e3, "m": 1e6, "mio": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9}
_SCALE = re.compile(r"\s?(?:k|thousand|grand|mio|million|bn|billion)\b|m(?=\s|$|[.,!?])", re.IGNORECASE)
_GLUED = re.compile(
    r"(?P<number>\d+(?:[.,]\d+)*)-?(?P<unit>k|m|mio|bn|kg|g|mg|lbs?|oz|km|cm|mm|ft|in|inch|mi|mph|kmh|l|ml|gb|mb|tb"
    r"|kb|gbps|mbps|ghz|mhz|hz|kwh|kw|w|v|mah|px|p|s|secs?|min|mins?|h|hrs?|d|days?|weeks?|months?|years?|yrs?|eur"
    r"|usd|gbp|chf|c|f|pcs|pm|am|x|fold)",
    re.IGNORECASE,
)
_WITH_UNIT = re.compile(r"\d+(?:[.,]\d+)*[a-zäöüµ]{1,6}")
"""A number with a unit, or an abbreviation, in small letters: 60fps, 141tsd."""
TIME_UNIT = re.compile(
    r"(?:\s|-)*(?:odd\s+|or so\s+|more\s+|full\s+|business\s+|working\s+)?(?:seconds?|secs?|s\b|minutes?|mins?|hours?"
    r"|hrs?|h\b|days?|nights?|weeks?|months?|years?(?!\s*-?old)|times?|things?|emails?|calls?|questions?|more\b"
    r"|other\b)",
    re.IGNORECASE,
)
MEASURE_UNIT = re.compile(
    r"\s?(?:[mµn]?g(?:/[dm]?l)?|kg|lbs?|pounds|ounces|oz|kilos?|tons?|[mckµ]?m[23²³]?|km/?h|mph|miles?|feet|ft"
    r"|inch(?:es)?|litres?|liters?|ml|cl|gallons?|[kmg]?bit(?:/s)?|[kmgt]b(?:it)?(?:ps|/s)?|[kmg]?hz|k?wh?|volts?|v"
    r"|amps?|bar|psi|degrees?|°\s?[cf]?|%|percent|per cent|points?|mmol(?:/l)?)(?!\w)",
    re.IGNORECASE,
)
"""Units of what is measured, in contrast to counted."""
_SURE = re.compile(r"\s?(?:%|percent|per cent)\s+(?:sure|certain|positive|of the time|confident)", re.IGNORECASE)
_CURRENCY_BEFORE = re.compile(r"(?:[$€£¥₹]|\b(?:usd|eur|gbp|chf|euros?|dollars?))\s*$", re.IGNORECASE)
_CURRENCY_AFTER = re.compile(r"\s?(?:[$€£¥₹]|(?:usd|eur|gbp|chf|euros?|dollars?|pounds?|bucks|quid)\b)", re.IGNORECASE)
_LABEL_BEFORE = re.compile(
    r"(?:#|\b(?:id|pin|code|nr|no|account|invoice|ticket|reference|ref|number(?:\s+is)?)[.:]?)\s*$", re.IGNORECASE
)
_ID_BEFORE = re.compile(
    r"\b(?:order|booking|reservation|reference|ref|ticket|invoice|account|number|nr|no|code|id|serial|policy|contract"
    r"|customer|member(?:ship)?|case|tracking|voucher|coupon|pin|password|it|that)(?:'s|\s+(?:is|was))?[:.]?\s*#?$",
    re.IGNORECASE,
)
_COUNTED_BEFORE = re.compile(
    r"\b(?:option|step|question|item|point|line|page|choice|part|attempt|try|level|row|tier|zone|gate|top"
    r"|chapter)s?\s*(?:#|number|no\.?)?\s*$",
    re.IGNORECASE,
)
_STREET_AFTER = re.compile(
    r"[a-z]?,?\s+(?:(?:[A-Z][\w']+\s+){1,3}(?:[Ss]treet|[Ss]t|[Aa]venue|[Aa]ve|[Rr]oad|[Rr]d|[Ll]ane|[Ll]n|[Dd]rive"
    r"|[Bb]oulevard|[Cc]rescent|[Cc]lose|[Cc]ourt|[Pp]lace|[Ss]quare|[Ww]ay|[Tt]errace|[Gg]ardens|[Hh]ill|[Gg]rove)\b"
    r"|(?:rue|avenue|boulevard|via|calle|rua)\s+\w)"
)
_STREET_BEFORE = re.compile(
    r"\b[\w-]*(?:stra(?:ß|ss)e|str\.|weg|allee|platz|gasse|ring|damm|ufer|straat|laan|[Rr]oad|[Ss]treet|[Aa]venue"
    r"|[Ll]ane),?\s*(?:no\.?\s*|number\s+)?$"
)
_ORDINAL_DAY = re.compile(
    r"(?<![\w.,/-])(?P<day>[0-3]?\d)(?:st|nd|rd|th)\b(?!\s+(?:time|floor|row|attempt|birthday|grade))", re.IGNORECASE
)
_HEDGE_BEFORE = re.compile(
    r"(?:\b(?:about|around|roughly|almost|nearly|approximately|approx\.?|over|under|some|like|circa|just short of"
    r"|more than|less than|close to|ca\.?|a good|not even|or|say)|~|≈)\s*(?:the\s+)?[$€£]?\s*$",
    re.IGNORECASE,
)
_HEDGE_AFTER = re.compile(r"\s?(?:-?ish\b|or so\b|\w+ or so\b|something\b|or thereabouts)", re.IGNORECASE)
_UNIT_AFTER = re.compile(r"\s?(?:mm|cm|m|km|kg|g|l|ml|metres?|meters?|litres?|kilos?)\b", re.IGNORECASE)
_IDIOM = re.compile(
    r"(?<![\w.,:/])(?:[ABC][12](?= (?:exam|level|course|certificate|test|class))"
    r"|24/7|9-5|per 100\s?(?:g|ml|km|grams?)|\d{1,2} (?:past|to the hour)|(?:get|gets|got|getting"
    r"|returns?|throws?|a|an|status|code) (?:40[013458-9]|410|413|415|422|429|50[0-4])|9 to 5|50[/-]50|1[01]0\s?%|1:1"
    r"|1-on-1|2FA|A[3-5](?!-)|[345]G|4K|MP[34]|UTF-8|Q[1-4]|B2[BC]|(?:1080|720)p|IPv[46]|101(?= (?:course|class))"
    r"|[34]0[0-9] (?:error|page)|(?:error|http) [45]\d\d|COVID-19|\d{1,2}\s?cents)(?![\w:])",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"(?<=\d)\s?/\s?(?=(?:kg|g|l|ml|h|hr|hour|d|day|wk|week|mo|month|yr|y|year|night|person|pp|head|unit|pc|pcs|piece"
    r"|user|seat|m2?|km|min|sec|s|gb|mb|ea|each|page|box|ticket|item|stück|monat|jahr|tag|nacht|person|mois|an|jour"
    r"|mes|año|noche)\b)",
    re.IGNORECASE,
)
"""The slash of a price per unit."""
_DIMENSIONS = re.compile(
    r"(?<![\w.])(\d+(?:[.,]\d+)?)\s?(mm|cm|m)?\s?[x\u00d7]\s?(?=\d+(?:[.,]\d+)?(?:\s?(?:mm|cm|m))?(?!\w))",
    re.IGNORECASE,
)
SMALL = 20
"""Numbers up to this one are counts or manners of speaking, unless they are marked as an amount or an id."""
SMALL_TIME = 100
"""The same for numbers before a unit of time: "in 45 minutes"."""
MIN_PHONE = 7


class TextValue(Struct, frozen=True):
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
    is_amount: bool = False
    """`True` if it is money, or has a label or an address around it."""

    @property
    def number(self) -> float | None:
        """The number; `None` for values of another kind."""
        return float(next(iter(self.keys)).removeprefix("number:")) if self.kind == "number" else None


def find_values(text: str) -> list[TextValue]:
    """Return the values of a text, in the order of their kinds."""
    values: list[TextValue] = []
    rest = _RATE.sub(" per ", _DIMENSIONS.sub(r"\1 \2 ", _IDIOM.sub(" ", text)))
    for match in _QUOTATION.finditer(rest):
        quoted = next(group for group in match.groups() if group is not None)
        is_told = bool(_TOLD_BEFORE.search(rest[: match.start()]))
        values.append(TextValue("quotation", quoted, frozenset((fold(quoted),)), is_told))
    rest, emails = _take(_EMAIL, rest)
    values += [TextValue("email", match[0], frozenset((match[0].casefold().rstrip("."),))) for match in emails]
    rest, dates = _take_dates(rest)
    values += dates
    rest, times = _take(_TIME, rest)
    values += [_time(match) for match in times]
    rest, spelled = _take(_SPELLED, rest)
    for match in spelled:
        if _MEASURES.fullmatch(match[0]):
            rest += f" {match[0]}"
        elif any(char.isdigit() for char in match[0]):
            values.append(_spelled(match[0]))
    rest, phones = _take(_PHONE, rest)
    for match in phones:
        digits = digits_of(match[0])
        if len(digits) >= MIN_PHONE:
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
    text = _WORD_DAY.sub(_day_of_words, text)
    text, matches = _take(_ISO_DATE, text)
    dates += [_date(match[0], [(match[1], match[2], match[3])]) for match in matches]
    text, matches = _take(_SHORT_DATE, text)
    for match in matches:
        years = (match[4],) if len(match[4]) > 2 else (f"20{match[4]}", f"19{match[4]}")  # noqa: PLR2004 - a whole year
        orders = ((match[3], match[1]), (match[1], match[3]))
        dates.append(_date(match[0], [(year, *order) for year in years for order in orders]))
    for pattern in _WORD_DATES:
        text, matches = _take(pattern, text)
        for match in matches:
            found = match.groupdict()
            dates.append(_date(match[0], [(found["year"] or "", str(_month(found["month"])), found["day"])]))
    return text, dates


def _day_of_words(match: re.Match[str]) -> str:
    """Return the day of a date in digits: "the third of March"."""
    tens, one = match["tens"], match["one"]
    day = (20 if tens and tens.casefold() == "twenty" else 30 if tens else 0) + (
        _ORDINALS[one.casefold()] if one else 0
    )
    return f"{match['before'] or ''}{day}{match['after'] or ''}"


def _month(word: str) -> int:
    start = word[:4].casefold()
    return _FOREIGN_MONTHS.get(start) or _FOREIGN_MONTHS.get(start[:3]) or _MONTHS.index(start[:3]) + 1


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
    minute = match["minute"] or match["minute2"] or match["minute3"] or match["minute4"]
    minute = minute or match["minute5"] or "00"
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
    """Return whether a token is an id: it has digits and letters, or several parts, and is no number with a unit."""
    if not any(char.isdigit() for char in token) or _ORDINAL.fullmatch(token) or _GLUED.fullmatch(token):
        return False
    if _WITH_UNIT.fullmatch(token):
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
    small = SMALL_TIME if TIME_UNIT.match(after) or _SURE.match(after) else SMALL
    is_place = bool(_STREET_AFTER.match(after) or _STREET_BEFORE.search(before))
    is_price = re.search(r"[.,]\d\d$", match[0]) is not None and not _UNIT_AFTER.match(after)
    is_marked = size > small or (is_money and size > 1) or is_labelled or is_place or is_price
    is_about = bool(scale) or bool(_HEDGE_BEFORE.search(before) or _HEDGE_AFTER.match(after))
    is_amount = is_money or is_labelled or is_place or is_price
    return TextValue("number", match[0], frozenset((f"number:{number}",)), is_marked, is_about, is_amount)


def is_counted(sentence: str, number: str, request: str) -> bool:
    """Return whether a number is the place of something in a list that was not asked for: "line 42"."""
    counted = _COUNTED_BEFORE.search(sentence.partition(number)[0])
    return counted is not None and counted[0].split()[0].casefold() not in request.casefold()


def spoken_values(text: str, least: int = SMALL) -> Iterator[TextValue]:
    """Yield the numbers that are written as words and larger than a number."""
    for number in told_numbers(text):
        if number > least and number % 100:
            key = f"number:{normalize_number(f'{number:.2f}')}"
            yield TextValue("number", key.removeprefix("number:"), frozenset((key,)), is_amount=True)


def edges_of_months(text: str) -> Iterator[str]:
    """Yield the days, as `MM-DD`, that words such as "end of March" or "January to March" may mean."""
    for match in _EDGE.finditer(text):
        month, edge = _month(match["month"]), match["edge"].casefold()
        days = (28, 29, 30, 31) if edge in ("end", "last day") else (14, 15, 16) if edge.startswith("mid") else (1,)
        yield from (f"{month:02d}-{day:02d}" for day in days)
    for match in _MONTHS_RANGE.finditer(text):
        yield f"{_month(match['month']):02d}-01"
        yield from (f"{_month(match['last']):02d}-{day:02d}" for day in (28, 29, 30, 31))


def is_label(before: str) -> bool:
    """Return whether a text ends with words that introduce an id: "my order is"."""
    return _ID_BEFORE.search(before) is not None


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


def _id_key(token: str) -> str:
    return "id:" + squeeze(token)


def squeeze(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return re.sub(r"[^a-z0-9]", "", text.casefold())


def digits_of(text: str) -> str:
    """Return the digits of a text."""
    return re.sub(r"\D", "", text)


def fold(text: str) -> str:
    """Return a text in lower case, with single spaces and without marks around it."""
    return " ".join(text.casefold().split()).strip(" .,;:!?")


def days_of(text: str) -> Iterator[TextValue]:
    """Yield the days of a month that are told without it: "on the 17th"."""
    rest, _ = _take_dates(text)
    for match in _ORDINAL_DAY.finditer(rest):
        yield TextValue("date", match[0], frozenset(("day",)))


@lru_cache(maxsize=1024)
def values_of(text: str) -> tuple[TextValue, ...]:
    """Return the values of a text, which is read once."""
    return tuple(find_values(text))
