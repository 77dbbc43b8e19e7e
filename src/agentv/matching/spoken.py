"""Numbers and times of day that are written as words."""

import re
from collections.abc import Iterator

_UNITS_OF_TEN = dict(
    zip(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), range(20, 100, 10), strict=True)
)
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_WORDS = {**{word: number for number, word in enumerate(_ONES)}, **_UNITS_OF_TEN}
_WORDS |= {"couple": 2, "both": 2, "pair": 2, "single": 1, "once": 1, "twice": 2, "half": 2, "quarter": 4}
_SIZES = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 1_000_000}
_WORD_NUMBER = re.compile(rf"\b(?:{'|'.join([*_WORDS, *_SIZES, 'and', 'oh', 'double'])})\b")
_FOREIGN = {
    word: float(number)
    for word, number in re.findall(
        r"(\w+)=(\d+)",
        "null=0 eins=1 zwei=2 drei=3 vier=4 fünf=5 sechs=6 sieben=7 acht=8 neun=9 zehn=10 elf=11 zwölf=12 "
        "dreizehn=13 vierzehn=14 fünfzehn=15 sechzehn=16 siebzehn=17 achtzehn=18 neunzehn=19 zwanzig=20 dreißig=30 "
        "vierzig=40 fünfzig=50 sechzig=60 siebzig=70 achtzig=80 neunzig=90 hundert=100 tausend=1000 dutzend=12 "
        "halb=30 deux=2 trois=3 quatre=4 cinq=5 sept=7 huit=8 neuf=9 dix=10 onze=11 douze=12 treize=13 quatorze=14 "
        "quinze=15 seize=16 vingt=20 trente=30 quarante=40 cinquante=50 soixante=60 cent=100 mille=1000 "
        "douzaine=12 quinzaine=15 uno=1 dos=2 tres=3 cuatro=4 cinco=5 seis=6 siete=7 ocho=8 nueve=9 diez=10 "
        "doce=12 trece=13 catorce=14 quince=15 veinte=20 treinta=30 cuarenta=40 cincuenta=50 sesenta=60 setenta=70 "
        "ochenta=80 noventa=90 cien=100 mil=1000 docena=12 tre=3 quattro=4 cinque=5 sette=7 otto=8 nove=9 dieci=10 "
        "undici=11 dodici=12 quindici=15 venti=20 trenta=30 quaranta=40 cinquanta=50 sessanta=60 cento=100 dois=2 "
        "três=3 oito=8 dez=10 vinte=20 trinta=30 quarenta=40 cinquenta=50 twee=2 drie=3 vijf=5 zes=6 zeven=7 "
        "negen=9 tien=10 ",
    )
}
"""Words of German, French, Spanish, Italian, Portuguese and Dutch that stand for one number."""
_LETTERS = re.compile(r"[^\W\d_]+")
_CLOCK = re.compile(
    rf"\b(?:(?P<minutes>half|quarter|five|ten|twenty|twenty-five|\d{{1,2}})(?:\s+minutes)?\s+(?P<side>past|after|to"
    rf"|before)\s+)(?P<hour>{'|'.join(_ONES[1:13])}|\d{{1,2}})\b|\b(?P<name>noon|midday|midnight)\b"
    rf"|\bhalf\s+(?P<bare>{'|'.join(_ONES[1:13])}|\d{{1,2}})\b",
    re.IGNORECASE,
)
_MINUTES = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25}
_HOURS = 12
_JOINTS = ("", " ", "-", ", ", ",")
"""Texts between the words of a number."""
_CENTS = re.compile(r"\b(?P<number>\d{1,3}(?:[.,]\d)?)\s?(?:cents?|ct|pence|centimes|céntimos)\b", re.IGNORECASE)
_ALONE = ("both", "couple", "pair", "single", "once", "twice", "half", "quarter")
"""Words that are no part of another number."""


def word_numbers(text: str) -> Iterator[float]:
    """Yield the numbers of a text that are written as words, and the digits that are spelled as words."""
    for phrase in _phrases(text.casefold()):
        size, spelled = _sum_of(phrase), _digits_of(phrase)
        yield from (number for number in (size, spelled) if number)


def told_numbers(text: str) -> Iterator[float]:
    """Yield the one number that each phrase of words stands for."""
    for phrase in _phrases(text.casefold()):
        spelled = _digits_of(phrase)
        yield _sum_of(phrase) if spelled is None else spelled


def _phrases(text: str) -> Iterator[list[str]]:
    """Yield the words of each number of a text."""
    phrase: list[str] = []
    end = -9
    for match in _WORD_NUMBER.finditer(text):
        word, is_joined = match[0], end >= 0 and text[end : match.start()] in _JOINTS
        end = match.end()
        # "six and nine" are two numbers, "a hundred and nine" is one.
        is_new = word in _ALONE or (word == "and" and _SIZES.keys().isdisjoint(phrase))
        if phrase and (is_new or not is_joined or phrase[-1] in _ALONE):
            yield phrase
            phrase = []
        if word != "and" or phrase:
            phrase.append(word)
    if phrase:
        yield phrase


def _sum_of(phrase: list[str]) -> float:
    """Return the number of a phrase, in which a word of size multiplies what stands before it."""
    total = part = 0.0
    for word in phrase:
        if word not in _SIZES:
            part += _WORDS.get(word, 0)
            continue
        part = (part or 1) * _SIZES[word]
        if _SIZES[word] > 100:  # noqa: PLR2004 - hundreds are followed by tens
            total, part = total + part, 0.0
    return total + part


def _digits_of(phrase: list[str]) -> float | None:
    """Return the number of a phrase whose words are its digits: "four oh two", "nineteen eighty-four"."""
    numbers = [0 if word == "oh" else _WORDS.get(word, -1) for word in phrase if word != "double"]
    if len(numbers) < 2 or min(numbers) < 0 or not set(phrase).isdisjoint(_ALONE):  # noqa: PLR2004 - several words
        return None
    if max(numbers) < 10:  # noqa: PLR2004 - each word is a digit
        return float("".join(str(number) for number in numbers))
    first, second = numbers[0], sum(numbers[1:])
    if (first % 10 == 0 and second < 10) or not 10 <= second < 100:  # noqa: PLR2004 - "forty-two" is a sum
        return None
    return float(f"{first}{second}")


def cents(text: str) -> Iterator[float]:
    """Yield amounts in hundredths of a currency: 0.08 for "8 cents"."""
    for match in _CENTS.finditer(text):
        yield float(match["number"].replace(",", ".")) / 100


def foreign_numbers(text: str) -> Iterator[float]:
    """Yield the numbers that single words of other languages stand for."""
    for match in _LETTERS.finditer(text.casefold()):
        number = _FOREIGN.get(match[0])
        if number is not None:
            yield number


def word_times(text: str) -> Iterator[str]:
    """Yield the times of day, as `HH:MM`, that are written as words: each in both halves of the day."""
    for match in _CLOCK.finditer(text):
        if match["name"]:
            yield "00:00" if match["name"].casefold() == "midnight" else "12:00"
            continue
        hour, shift = _number_of(match["hour"] or match["bare"]), 30
        if match["minutes"]:
            minutes = _MINUTES.get(match["minutes"].casefold()) or _number_of(match["minutes"])
            shift = minutes if match["side"].casefold() in ("past", "after") else -minutes
        for half in (hour, hour + _HOURS):
            total = (half * 60 + shift) % (24 * 60)
            yield f"{total // 60:02d}:{total % 60:02d}"


def _number_of(word: str) -> int:
    return int(word) if word.isdigit() else _WORDS.get(word.casefold(), 0)
