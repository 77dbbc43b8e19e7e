"""Decoding of YAML 1.2: the text of a file, and its scalars."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

MAX_DIRECTIVES: Final = 100  # libyaml compares each with all before it: 50,000 of them took 5 s
_DIRECTIVE = re.compile(r"(?:^|[\n\r\x85\u2028\u2029])%TAG")
# Two wide characters are searched separately: a character class with them takes milliseconds to compile.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_FORBIDDEN_WIDE = ("\ufffe", "\uffff")
_LINE_BREAK = re.compile(r"\r\n?|\n")

# JSON writes an emoji as two escapes, "\ud83d\ude00", which libyaml rejects; and in YAML 1.2 U+0085, U+2028 and U+2029
# are ordinary characters, where libyaml breaks the line. Both are masked by characters of the same length while libyaml
# parses, so that all positions stay right, and unmasked in the value. A file that uses the masks itself is not masked.
_HALF = re.compile(r"(?<!\\)((?:\\\\)*)\\u[dD]([89a-fA-F])([0-9a-fA-F]{2})")
_HALF_LITERAL = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_MASKED_LITERAL = re.compile(r"\\uE[0-7][0-9a-fA-F]{2}")
_BREAKS = {"\x85": "\U0010fffb", "\u2028": "\U0010fffc", "\u2029": "\U0010fffd"}
_MASK = str.maketrans(_BREAKS)
_UNMASK = str.maketrans({disguise: character for character, disguise in _BREAKS.items()})
_TAKEN = "[\ue000-\ue7ff\U0010fffb-\U0010fffd]" + r"|\\u[eE][0-7]|\\U00(?:00[eE][0-7]|10[fF]{3})"
_MASKED_HALF = "[\ue000-\ue7ff]"
"""These two patterns are compiled when needed, which is rare."""
_NUL = re.compile(r"\\(?:0|x00|u0000|U00000000)")


class TextError(ValueError):
    """The bytes of a file are not valid text of a YAML file."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class SourceText(Struct, frozen=True):
    """The text of a file."""

    raw: str
    """The text as written."""
    masked: str
    """The text as libyaml parses it; every character has the same index."""
    needs_unmasking: bool
    """True if values have to go through `unmask`."""

    def unmask(self, value: str, style: str | None, start: int, end: int) -> str:
        """Return the text of a scalar, from the value that libyaml parsed between these indexes."""
        value = value.translate(_UNMASK) if self.masked is not self.raw else value
        if style != '"':
            if self.masked is self.raw or "\\uE" not in value:
                return value
            count = len(_MASKED_LITERAL.findall(value))
            originals = iter(_HALF_LITERAL.findall(self.raw[start:end])[-count:])
            return _MASKED_LITERAL.sub(lambda match: next(originals, match[0]), value)
        if "\0" in value:
            msg = "this text holds a NUL character, which programs and databases cut texts at; leave it out"
            raise ValueError(msg)
        if self.masked is self.raw or not re.search(_MASKED_HALF, value):
            return value
        halves = re.sub(_MASKED_HALF, lambda match: chr(ord(match[0]) - 0xE000 + 0xD800), value)
        try:
            return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            msg = "this text holds half a character (a lone surrogate such as '\\ud800'); write the whole character"
            raise ValueError(msg) from None


def decode_text(data: bytes) -> SourceText:
    """Decode a file, or raise `TextError` with the position of the first invalid character."""
    raw = _decode(data)
    forbidden = _forbidden(raw)
    if forbidden is not None:
        escape = ascii(raw[forbidden])[1:-1] if raw[forbidden] != "\0" else "\\0"
        msg = f"the control character {escape} is not allowed in YAML; remove it"
        raise TextError(*_position(raw[:forbidden]), msg)
    if raw.count("%TAG") > MAX_DIRECTIVES:
        directives = [match.end() for match in _DIRECTIVE.finditer(raw)]
        if len(directives) > MAX_DIRECTIVES:
            msg = f"more than {MAX_DIRECTIVES} '%TAG' lines; no tag but the standard ones is allowed: remove them"
            raise TextError(*_position(raw[: directives[0] - len("%TAG")]), msg)
    masked = raw
    if _HALF_LITERAL.search(raw) or any(character in raw for character in _BREAKS):
        masked = raw if re.search(_TAKEN, raw) else _HALF.sub(_mask_half, raw).translate(_MASK)
    return SourceText(raw, masked, needs_unmasking=masked is not raw or _NUL.search(raw) is not None)


def _forbidden(raw: str) -> int | None:
    """Return the index of the first character that YAML does not allow."""
    match = _FORBIDDEN.search(raw)
    places = [raw.find(character) for character in _FORBIDDEN_WIDE if character in raw]
    return min([match.start(), *places] if match else places, default=None)


def encoding_of(data: bytes) -> str:
    """Return UTF-16 if the file begins with its byte order mark, otherwise UTF-8."""
    return "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"


def _decode(data: bytes) -> str:
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


def _mask_half(match: re.Match[str]) -> str:
    return f"{match[1]}\\uE{int(match[2], 16) - 8}{match[3]}"


WORDS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
MAYBE_NOT_TEXT = frozenset(["", *"~nNtTfFyYoO+-.0123456789"])
"""First characters of plain scalars that may be something else than text."""
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
MAX_DIGITS: Final = 500  # Python may refuse to print numbers of 640 digits or more
MAX_SHOWN: Final = 40
MAX_USUAL: Final = 12  # characters of a number that is cached, since it is likely to occur again


class ScalarError(ValueError):
    """A scalar is not of the type that it has to be."""


def parse_plain(text: str) -> tuple[Any, str]:
    """Return the value of an unquoted scalar, and a warning if the value may be unexpected."""
    if text[:1] in _NUMERIC:
        return _usual_number(text) if len(text) <= MAX_USUAL else _number(text)
    if text in WORDS:
        return WORDS[text], ""
    if len(text) <= _LONGEST_SWITCH and text.lower() in _SWITCHES:
        return text, f"read as the text {text!r}; write true or false, or quote it"
    return text, ""


def parse_tagged(kind: str, text: str) -> Any:
    """Return the value of a scalar with a tag, as in `!!int 5`."""
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
    msg = f"expected {expected} after '!!{kind}', got {quote(text)}"
    raise ScalarError(msg)


def quote(text: str) -> str:
    """Return a text in quotes, truncated if it is long."""
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
        return text, f"read as the text {quote(text)}; quote it to say so, or write the number of seconds"
    elif _GROUPED.fullmatch(text):
        return text, f"read as the text {quote(text)}; write the number without '_', or quote it"
    else:
        return text, ""
    if _LEADING_ZERO.match(text):
        return value, f"read as the number {format_number(value)}; quote it to keep the zeros"
    if _LIKE_AN_ID.fullmatch(text):
        return value, f"read as the number {format_number(value)}; quote it if it is text"
    return value, ""


def format_number(value: float) -> str:
    """Return a number as text, truncated if it is long."""
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
        msg = f"the number {quote(text)} is too large; quote it if it is text"
        raise ScalarError(msg)
    return value
