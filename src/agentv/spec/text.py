"""The characters of a YAML file: decoded, free of what YAML forbids, and shown to libyaml as YAML 1.2 means them."""

from __future__ import annotations

import codecs
import re
from typing import Final, NamedTuple

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
