"""Known secrets in every encoding: raw, escaped, percent-encoded, base64 and hexadecimal; secret variables."""

import re
from binascii import b2a_base64
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.redaction.credential_patterns import ScanView, Span, credential_finders, is_credential_field

_DEPTH = 15
"""Most backslashes before an escaped character: JSON inside JSON, four levels deep."""
_DEPTH_IN_LINES = 2 * _DEPTH + 1
"""The same in a line of JSON, which has one level of escapes more than the strings in it."""
_SHORT_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
"""Characters that no encoder needs to escape; a text in which they are escaped is called odd."""
_CUT = "…"
_CUT_BYTES = _CUT.encode()
_ANCHOR = (4, 32)
"""Shortest and longest anchor: a shorter one occurs everywhere, a longer one is not found any faster."""

_BASE64 = "[A-Za-z0-9+/_-]"
# `base64` breaks lines after 76 characters, PEM after 64: both between groups of four.
_LINE = f"{_BASE64}{{60}}"

_LETTER = "(?:2[deDE]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF])"
_ODD = tuple(
    (pattern[:1].encode(), re.compile(pattern.encode()))
    for pattern in (
        rf"\\(?:u00{_LETTER}|(?<={_LINE}\\)\\{{0,{_DEPTH_IN_LINES}}}+[nr])",
        rf"%(?:25){{0,3}}{_LETTER}",
        f"\n(?<={_LINE}\n)",
        f"\r(?<={_LINE}\r)",
    )
)
"""Patterns of odd texts, each with its first byte, since searching for a single byte is very fast."""


def make_view(data: bytes) -> ScanView:
    """Prepare a text for the quick check."""
    for byte, pattern in _ODD:  # a loop takes half the time of `any`
        if byte in data and pattern.search(data):
            return ScanView(data, data.lower(), odd=True)
    return ScanView(data, data.lower(), odd=False)


class TruncatedSecret:
    """Finds the beginning of a value before `…` and its end after it: long texts are cut where they are quoted."""

    def __init__(self, value: str, shortest: int) -> None:
        self._value = value
        self._shortest = shortest
        plain = next((at for at, char in enumerate(value) if char not in _PLAIN), len(value))
        self._start = value[: min(plain, shortest)].encode()
        plain = next((at for at, char in enumerate(reversed(value)) if char not in _PLAIN), len(value))
        self._end = value[len(value) - min(plain, shortest) :].encode()

    def quick_check(self, view: ScanView) -> bool:
        """Return False if `find_spans` would certainly find nothing; fast."""
        return _CUT_BYTES in view.data and (view.odd or self._start in view.data or self._end in view.data)

    def find_spans(self, text: str, *, odd: bool) -> Iterator[Span]:
        """Yield the spans at which a text was truncated within the value."""
        del odd
        at = text.find(_CUT)
        while at >= 0:
            yield from self._find_before(text, at)
            yield from self._find_after(text, at + 1)
            at = text.find(_CUT, at + 1)

    def _find_before(self, text: str, end: int) -> Iterator[Span]:
        # `[… 12 characters left out …]` may stand on a line of its own.
        end -= text.endswith("[", 0, end)
        end -= text.endswith("\n", 0, end)
        for length in range(min(end, len(self._value)), self._shortest - 1, -1):
            if text.endswith(self._value[:length], 0, end):
                yield end - length, end
                return

    def _find_after(self, text: str, start: int) -> Iterator[Span]:
        start += text.startswith("]", start)
        start += text.startswith("\n", start)
        for length in range(min(len(text) - start, len(self._value)), self._shortest - 1, -1):
            if text.startswith(self._value[-length:], start):
                yield start, start + length
                return


class Secret:
    """Finds a known value in every encoding; patterns that are needed only for a leak are compiled at first use."""

    def __init__(self, value: str) -> None:
        self.value = value
        hexadecimal = _encode_hex(value)
        self._lowered_anchor = hexadecimal.anchor()
        self._anchors = []
        self._unanchored = []
        for form in (_encode_text(value, _DEPTH_IN_LINES, odd=False), *_encode_base64(value, _DEPTH_IN_LINES)):
            if anchor := form.anchor():
                self._anchors.append(anchor)
            else:
                self._unanchored.append(re.compile(form.pattern.encode("utf-8", "surrogatepass")))

    def quick_check(self, view: ScanView) -> bool:
        """Return False if `find_spans` would certainly find nothing; fast."""
        for anchor in self._anchors:
            if anchor in view.data:
                return True
        if view.odd or self._lowered_anchor in view.lowered:
            return True
        return any(look.search(view.data) for look in self._unanchored)

    def find_spans(self, text: str, *, odd: bool) -> Iterator[Span]:
        """Yield the spans of a text that contain the value."""
        for match in (self._odd_pattern if odd else self._usual_pattern).finditer(text):
            yield match.span()
        for lead, pattern in self._encodings:
            for match in pattern.finditer(text):
                yield max(match.start() - lead, 0), match.end()

    @cached_property
    def _usual_pattern(self) -> re.Pattern[str]:
        return re.compile(_encode_text(self.value, _DEPTH, odd=False).pattern)

    @cached_property
    def _odd_pattern(self) -> re.Pattern[str]:
        return re.compile(_encode_text(self.value, _DEPTH, odd=True).pattern)

    @cached_property
    def _encodings(self) -> list[tuple[int, re.Pattern[str]]]:
        forms = (*_encode_base64(self.value, _DEPTH), _encode_hex(self.value))
        return [(form.lead, re.compile(form.pattern)) for form in forms]


class _EncodedChar(Struct, frozen=True):
    """One character of an encoded secret."""

    pattern: str
    plain: str = ""
    """The character, if it is written as itself in a text that is not odd."""


class _EncodedSecret(Struct, frozen=True):
    """One encoding of a secret."""

    units: list[_EncodedChar]
    tail: str = ""
    lead: int = 0
    """Number of characters before it that contain some of its bits."""

    @property
    def pattern(self) -> str:
        """A regular expression that runs in linear time: units are bounded, their alternatives begin differently."""
        return "".join(unit.pattern for unit in self.units) + self.tail

    def anchor(self) -> bytes:
        """Return bytes that every text with this encoding contains; rare characters are found faster."""
        shortest, longest = _ANCHOR
        runs = "".join(unit.plain or " " for unit in self.units).split(" ")
        pieces = (run[:longest] for run in runs if len(run) >= shortest)
        return max(pieces, key=lambda piece: (len(piece), sum(map(str.isupper, piece))), default="").encode()


def _encode_text(value: str, depth: int, *, odd: bool) -> _EncodedSecret:
    units = []
    for run in re.findall(r"\\+|[^\\]", value):
        if run[0] == "\\":
            # Each backslash is doubled at each level. Not possessive: the next character may need some of them.
            encoded = rf"(?:{_slash_pattern(depth)}u005[cC]|{_percent_pattern(run[0])}){{{len(run)}}}"
            units.append(_EncodedChar(rf"(?:{encoded}|\\{{{len(run)},{len(run) * (depth + 1)}}})"))
        elif run in _PLAIN:
            units.append(_EncodedChar(_char_pattern(run, depth) if odd else re.escape(run), run))
        else:
            units.append(_EncodedChar(_char_pattern(run, depth)))
    return _EncodedSecret(units)


def _slash_pattern(depth: int) -> str:
    # The first one is separate: if all alternatives begin with a plain character, searching is ten times faster.
    return rf"\\\\{{0,{depth - 1}}}+"


def _char_pattern(char: str, depth: int) -> str:
    slashes = _slash_pattern(depth)
    utf16 = char.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(f"{slashes}u{_digit_pattern(utf16[at : at + 4])}" for at in range(0, len(utf16), 4))
    ways = [escaped, _percent_pattern(char)]
    if char in _SHORT_ESCAPES:
        ways.append(slashes + _SHORT_ESCAPES[char])
    if char in "\"'/":
        ways.append(slashes + char)
    if char == " ":
        ways.append(r"\+")
    if char != "%":  # `_percent_pattern` already matches it
        ways.append(re.escape(char))
    return f"(?:{'|'.join(ways)})"


def _percent_pattern(char: str) -> str:
    if char == "%":
        return "%(?:25){0,4}?"
    # Encoded twice, `%2F` is `%252F`.
    return "".join(f"%(?:25){{0,3}}{_digit_pattern(f'{byte:02x}')}" for byte in char.encode("utf-8", "surrogatepass"))


def _digit_pattern(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def _encode_base64(value: str, depth: int) -> list[_EncodedSecret]:
    """Return the characters that depend on the value alone, for each offset in a group of three bytes."""
    data = value.encode("utf-8", "surrogatepass")
    line_break = rf"(?:(?<={_LINE})(?:[\r\n]|{_slash_pattern(depth)}[nr]){{1,2}}+)?"
    padded = rf"(?:{_BASE64}(?:=|%3[dD]|{_slash_pattern(depth)}u003[dD]){{0,2}})?"
    forms = []
    for before in range(3):
        text = b2a_base64(bytes(before) + data, newline=False).decode()
        first, end = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        units = []
        for at in range(first, end):
            unit = _encode_base64_char(text[at], depth)
            units.append(replace(unit, pattern=line_break + unit.pattern) if at % 4 == 0 and at > first else unit)
        forms.append(_EncodedSecret(units, tail=padded if (before + len(data)) % 3 else "", lead=1 if before else 0))
    return forms


def _encode_base64_char(char: str, depth: int) -> _EncodedChar:
    if char in "+/":
        return _EncodedChar(f"(?:{'-' if char == '+' else '_'}|{_char_pattern(char, depth)})")
    return _EncodedChar(char, char)


def _encode_hex(value: str) -> _EncodedSecret:
    return _EncodedSecret(
        [_EncodedChar(_digit_pattern(digit), digit) for digit in value.encode("utf-8", "surrogatepass").hex()]
    )


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset((
    *("key", "keys", "apikey", "apikeys", "token", "secret", "secrets", "password", "passwd", "passphrase", "pass"),
    *("pwd", "pw", "pat", "credential", "credentials", "creds", "auth", "authorization", "bearer", "jwt", "cookie"),
    *("session", "signature", "sas", "dsn", "webhook", "private", "license", "licence", "salt", "pin", "otp"),
))  # fmt: skip
_SECRET_ENDINGS = ("key", "token", "secret", "password", "passwd", "pwd", "passphrase")
_SECRET_NAMES = re.compile(r"(?i)conn(?:ection)?_?str(?:ing)?|authtoken").search
_PLAIN_NAMES = frozenset(("PWD", "OLDPWD", "KEYBOARD", "KEYMAP", "HOTKEY", "SSH_AUTH_SOCK", "XDG_SESSION_TYPE"))
"""Names of which a word is about secrets and the value is none."""
_RANDOM = re.compile(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{20,}").search
"""A run of letters and digits as in tokens; words, dates and versions are shorter."""
_VENDOR_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
_VARIABLE = re.compile(r"\$(\$)?\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}")


def is_secret_variable(name: str, value: str) -> bool:
    """Return whether a variable looks like a secret: `OPENAI_API_KEY` does, `MODEL=gpt-4o-mini` does not."""
    return _is_secret_name(name) or _RANDOM(value) is not None or _is_credential(value)


def _is_secret_name(name: str) -> bool:
    if name.upper() in _PLAIN_NAMES:
        return False
    if _SECRET_NAMES(name):
        return True
    words = [word.lower() for word in _WORDS.findall(name)]
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words)


def _is_credential(value: str) -> bool:
    view = make_view(value.encode("utf-8", "surrogatepass"))
    return any(
        finder.quick_check(view) and next(iter(finder.find_spans(value, odd=view.odd)), None) is not None
        for finder in credential_finders()
    )


def stored_secrets(settings: Any, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that a target used, by its settings as they were stored."""
    if not isinstance(settings, Mapping):
        return {}
    given = [name for key in ("env", "secrets") for name in settings.get(key) or () if isinstance(name, str)]
    marked = {*credential_variables(settings), *[name for name in settings.get("secrets") or () if name in given]}
    used = {*_variables(settings), *given, *marked, *_VENDOR_KEYS}
    return {
        name: environment[name]
        for name in used
        if name in environment and (name in marked or is_secret_variable(name, environment[name]))
    }


def _variables(settings: Any) -> Iterator[str]:
    if isinstance(settings, str):
        yield from (match[2] for match in _VARIABLE.finditer(settings) if not match[1])
    elif isinstance(settings, Mapping):
        for value in settings.values():
            yield from _variables(value)
    elif isinstance(settings, (list, tuple)):
        for value in settings:
            yield from _variables(value)


def credential_variables(settings: Any) -> Iterator[str]:
    """Yield the `${ENV}` variables in settings that hold credentials by their keys, such as `api_key`."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            if isinstance(key, str) and isinstance(value, str) and (is_credential_field(key) or _is_secret_name(key)):
                yield from _variables(value)
            else:
                yield from credential_variables(value)
    elif isinstance(settings, (list, tuple)):
        for value in settings:
            yield from credential_variables(value)
