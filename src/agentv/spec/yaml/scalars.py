"""Decode text and scalars of YAML 1.2."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

MAX_DIRECTIVES: Final = 100  # libyaml compares each with all before it: 50,000 of them took 5 s
_DIRECTIVE = re.compile(r"(?:^|[\n\r\x85\u2028\u2029])%TAG")
# What cannot be decoded is not looked for, and two of the wide characters are not put in here: such a class takes
# Python milliseconds to compile, which every start of the command would pay.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_FORBIDDEN_WIDE = ("\ufffe", "\uffff")
_LINE_BREAK = re.compile(r"\r\n?|\n")

# JSON writes an emoji as two escapes, "\ud83d\ude00", which libyaml refuses; and YAML 1.2 takes U+0085, U+2028 and
# U+2029 for ordinary characters, where libyaml breaks the line. Both wear a disguise of the same length while libyaml
# reads, so that all positions hold, and take it off in the value. A file that uses the disguises itself wears none.
_HALF = re.compile(r"(?<!\\)((?:\\\\)*)\\u[dD]([89a-fA-F])([0-9a-fA-F]{2})")
_HALF_LITERAL = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_DISGUISED_LITERAL = re.compile(r"\\uE[0-7][0-9a-fA-F]{2}")
_BREAKS = {"\x85": "\U0010fffb", "\u2028": "\U0010fffc", "\u2029": "\U0010fffd"}
_DISGUISE = str.maketrans(_BREAKS)
_UNMASK = str.maketrans({disguise: character for character, disguise in _BREAKS.items()})
_TAKEN = "[\ue000-\ue7ff\U0010fffb-\U0010fffd]" + r"|\\u[eE][0-7]|\\U00(?:00[eE][0-7]|10[fF]{3})"
_DISGUISED_HALF = "[\ue000-\ue7ff]"
"""Patterns, not compiled: nearly no file needs these two."""
_NUL = re.compile(r"\\(?:0|x00|u0000|U00000000)")


class TextError(ValueError):
    """The bytes of a file are not the characters of a YAML file."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class Text(NamedTuple):
    """A file's characters."""

    raw: str
    """As written."""
    shown: str
    """As libyaml sees them: every character is at the same place."""
    watched: bool
    """Whether a value has to be looked at before it is taken for the text it means."""

    def meant(self, value: str, style: str | None, start: int, end: int) -> str:
        """The text that a scalar at this place means, given what libyaml made of it."""
        value = value.translate(_UNMASK) if self.shown is not self.raw else value
        if style != '"':
            if self.shown is self.raw or "\\uE" not in value:
                return value
            count = len(_DISGUISED_LITERAL.findall(value))
            originals = iter(_HALF_LITERAL.findall(self.raw[start:end])[-count:])
            return _DISGUISED_LITERAL.sub(lambda found: next(originals, found[0]), value)
        if "\0" in value:
            msg = "this text holds a NUL character, which programs and databases cut texts at; leave it out"
            raise ValueError(msg)
        if self.shown is self.raw or not re.search(_DISGUISED_HALF, value):
            return value
        halves = re.sub(_DISGUISED_HALF, lambda found: chr(ord(found[0]) - 0xE000 + 0xD800), value)
        try:
            return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            msg = "this text holds half a character (a lone surrogate such as '\\ud800'); write the whole character"
            raise ValueError(msg) from None


def read_text(data: bytes) -> Text:
    """The characters of a file, or where it stops being text."""
    raw = _decoded(data)
    forbidden = _forbidden(raw)
    if forbidden is not None:
        escape = ascii(raw[forbidden])[1:-1] if raw[forbidden] != "\0" else "\\0"
        msg = f"the control character {escape} is not allowed in YAML; remove it"
        raise TextError(*_position(raw[:forbidden]), msg)
    if raw.count("%TAG") > MAX_DIRECTIVES:
        directives = [found.end() for found in _DIRECTIVE.finditer(raw)]
        if len(directives) > MAX_DIRECTIVES:
            msg = f"more than {MAX_DIRECTIVES} '%TAG' lines; no tag but the standard ones is allowed: remove them"
            raise TextError(*_position(raw[: directives[0] - len("%TAG")]), msg)
    shown = raw
    if _HALF_LITERAL.search(raw) or any(character in raw for character in _BREAKS):
        shown = raw if re.search(_TAKEN, raw) else _HALF.sub(_disguised_half, raw).translate(_DISGUISE)
    return Text(raw, shown, watched=shown is not raw or _NUL.search(raw) is not None)


def _forbidden(raw: str) -> int | None:
    """The place of the first character that YAML does not allow."""
    found = _FORBIDDEN.search(raw)
    places = [raw.find(character) for character in _FORBIDDEN_WIDE if character in raw]
    return min([found.start(), *places] if found else places, default=None)


def encoding_of(data: bytes) -> str:
    """UTF-8, unless the first two bytes say UTF-16."""
    return "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"


def _decoded(data: bytes) -> str:
    encoding = encoding_of(data)
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(encoding, "ignore").removeprefix("\ufeff")
        what = f"the byte 0x{data[error.start]:02x} is not" if encoding == "utf-8" else "these bytes are not"
        name = encoding.upper()
        raise TextError(*_position(before), f"{what} valid {name}; save the file as UTF-8") from None


def _position(before: str) -> tuple[int, int]:
    breaks = list(_LINE_BREAK.finditer(before))
    return len(breaks) + 1, len(before) - (breaks[-1].end() if breaks else 0) + 1


def _disguised_half(found: re.Match[str]) -> str:
    return f"{found[1]}\\uE{int(found[2], 16) - 8}{found[3]}"


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
