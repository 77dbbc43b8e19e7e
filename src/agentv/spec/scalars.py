"""What an unquoted word of a YAML file means: the core types of YAML 1.2, and what readers of 1.1 would take it for."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

WORDS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
SUSPECT = frozenset(["", *"~nNtTfFyYoO+-.0123456789"])
"""How a text begins that may be something else than text."""
_NUMERIC = frozenset("+-.0123456789")
_SWITCHES = frozenset({"yes", "no", "on", "off", "y", "n"})
_LONGEST_SWITCH = 3
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
_LIKE_AN_ID = re.compile(r"[0-9]+[eE][0-9]+")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?")
_GROUPED = re.compile(r"[-+]?[0-9]+(?:_[0-9]+)+")
MAX_DIGITS: Final = 500  # Python refuses to print longer numbers, from 640 digits on if it is told to
MAX_SHOWN: Final = 40
MAX_USUAL: Final = 12  # characters of a number that is likely to come again


class ScalarError(ValueError):
    """A text is not what it has to be, and why."""


def plain(text: str) -> tuple[Any, str]:
    """The value of an unquoted text, and what may surprise about it, if anything."""
    if text[:1] in _NUMERIC:
        return _usual_number(text) if len(text) <= MAX_USUAL else _number(text)
    if text in WORDS:
        return WORDS[text], ""
    if len(text) <= _LONGEST_SWITCH and text.lower() in _SWITCHES:
        return text, f"read as the text {text!r}; write true or false, or quote it"
    return text, ""


def tagged(kind: str, text: str) -> Any:
    """The value of a text whose type is written before it, as in `!!int 5`."""
    if kind == "str":
        return text
    if kind == "int" and _INT.fullmatch(text):
        return _int(text)
    if kind == "float" and (_FLOAT.fullmatch(text) or _NOT_FINITE.fullmatch(text)):
        return _float(text)
    if kind in ("bool", "null") and text in WORDS and (WORDS[text] is None) is (kind == "null"):
        return WORDS[text]
    expected = {
        "int": "a whole number",
        "float": "a number",
        "bool": "true or false",
        "null": "null",
        "seq": "a list",
        "map": "a mapping",
    }[kind]
    msg = f"expected {expected} after '!!{kind}', got {shown(text)}"
    raise ScalarError(msg)


def shown(text: str) -> str:
    """A text in quotes, cut when it is long."""
    return repr(text) if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]!r}…"


@lru_cache(maxsize=1024)
def _usual_number(text: str) -> tuple[Any, str]:
    return _number(text)


def _number(text: str) -> tuple[Any, str]:
    if _INT.fullmatch(text):
        value: int | float = _int(text)
    elif _FLOAT.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        value = _float(text)
    elif _SEXAGESIMAL.fullmatch(text):
        return text, f"read as the text {shown(text)}; quote it to say so, or write the number of seconds"
    elif _GROUPED.fullmatch(text):
        return text, f"read as the text {shown(text)}; write the number without '_', or quote it"
    else:
        return text, ""
    if _LEADING_ZERO.match(text):
        return value, f"read as the number {shown_number(value)}; quote it to keep the zeros"
    if _LIKE_AN_ID.fullmatch(text):
        return value, f"read as the number {shown_number(value)}; quote it if it is text"
    return value, ""


def shown_number(value: float) -> str:
    """A number, cut when it is long."""
    text = str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        msg = f"a number of {len(text):,} digits is too long, {MAX_DIGITS} are allowed; quote it if it is text"
        raise ScalarError(msg)
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text, base)


def _float(text: str) -> float:
    if _NOT_FINITE.fullmatch(text):
        msg = f"{text} is a number that JSON cannot hold; leave it out, or quote it if it is text"
        raise ScalarError(msg)
    value = float(text)
    if value - value != 0:  # an infinity: the digits did not fit
        msg = f"the number {shown(text)} is too large; quote it if it is text"
        raise ScalarError(msg)
    return value
