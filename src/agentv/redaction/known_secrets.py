"""The ways to write a known secret: raw, escaped, percent-encoded, as base64 or as hexadecimal."""

import re
from binascii import b2a_base64
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from agentv.redaction.credential_patterns import ScanView, Span

_DEPTH = 15
"""Backslashes before an escaped character: JSON inside JSON, four levels deep."""
_DEPTH_IN_LINES = 2 * _DEPTH + 1
"""JSON as a line of a file has one level of escapes more than the strings in it."""
_SHORT_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
"""What no encoder has a reason to escape; where one did, the text is odd."""
_CUT = "…"
_CUT_BYTES = _CUT.encode()
_ANCHOR = (4, 32)
"""Lengths of pieces to look for first: a shorter one is found everywhere, a longer one is not found any faster."""

_BASE64 = "[A-Za-z0-9+/_-]"
# `base64` breaks lines at 76 characters, PEM at 64; both are between groups of four.
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
"""Each with its first byte, as searching for a single byte costs next to nothing."""


def view_of(data: bytes) -> ScanView:
    """Prepare a text for the first look."""
    for byte, pattern in _ODD:  # a loop takes half the time of `any`
        if byte in data and pattern.search(data):
            return ScanView(data, data.lower(), odd=True)
    return ScanView(data, data.lower(), odd=False)


class TruncatedSecret:
    """The first part of a value, where it was cut off: what results quote ends after 200 characters."""

    def __init__(self, value: str, shortest: int) -> None:
        self._value = value
        self._shortest = shortest
        plain = next((at for at, char in enumerate(value) if char not in _PLAIN), len(value))
        self._start = value[: min(plain, shortest)].encode()

    def may_be_in(self, view: ScanView) -> bool:
        """Tell quickly whether `spans` could find something; wrong only in saying yes."""
        return _CUT_BYTES in view.data and (view.odd or self._start in view.data)

    def spans(self, text: str, *, odd: bool) -> Iterator[Span]:
        """Where a text is cut within the value."""
        del odd
        end = text.find(_CUT)
        while end >= 0:
            longest = min(end, len(self._value))
            for length in range(longest, self._shortest - 1, -1):
                if text.endswith(self._value[:length], 0, end):
                    yield end - length, end
                    break
            end = text.find(_CUT, end + 1)


class Secret:
    """A value with all that finds it; what a run without leaks never needs is made at its first use."""

    def __init__(self, value: str) -> None:
        self.value = value
        hexadecimal = _hexadecimal(value)
        self._lowered_anchor = hexadecimal.anchor()
        self._anchors = []
        self._unanchored = []
        for form in (_written(value, _DEPTH_IN_LINES, odd=False), *_base64(value, _DEPTH_IN_LINES)):
            if anchor := form.anchor():
                self._anchors.append(anchor)
            else:
                self._unanchored.append(re.compile(form.pattern.encode("utf-8", "surrogatepass")))

    def may_be_in(self, view: ScanView) -> bool:
        """Tell quickly whether `spans` could find something; wrong only in saying yes."""
        for anchor in self._anchors:
            if anchor in view.data:
                return True
        if view.odd or self._lowered_anchor in view.lowered:
            return True
        return any(look.search(view.data) for look in self._unanchored)

    def spans(self, text: str, *, odd: bool) -> Iterator[Span]:
        """Where it stands in a text."""
        for match in (self._oddly_written if odd else self._usually_written).finditer(text):
            yield match.span()
        for lead, pattern in self._encodings:
            for match in pattern.finditer(text):
                yield max(match.start() - lead, 0), match.end()

    @cached_property
    def _usually_written(self) -> re.Pattern[str]:
        return re.compile(_written(self.value, _DEPTH, odd=False).pattern)

    @cached_property
    def _oddly_written(self) -> re.Pattern[str]:
        return re.compile(_written(self.value, _DEPTH, odd=True).pattern)

    @cached_property
    def _encodings(self) -> list[tuple[int, re.Pattern[str]]]:
        forms = (*_base64(self.value, _DEPTH), _hexadecimal(self.value))
        return [(form.lead, re.compile(form.pattern)) for form in forms]


class _EncodedChar(NamedTuple):
    """One character of an encoded secret."""

    pattern: str
    plain: str = ""
    """The character, if it stands for itself in a text that is not odd."""


class _EncodedSecret(NamedTuple):
    """One way to write a secret."""

    units: list[_EncodedChar]
    tail: str = ""
    lead: int = 0
    """How many characters before it hold some of its bits too."""

    @property
    def pattern(self) -> str:
        """A linear regular expression: every unit is bounded, and begins in one way only."""
        return "".join(unit.pattern for unit in self.units) + self.tail

    def anchor(self) -> bytes:
        """A piece that a text with this form contains; rare characters are found faster."""
        shortest, longest = _ANCHOR
        runs = "".join(unit.plain or " " for unit in self.units).split(" ")
        pieces = (run[:longest] for run in runs if len(run) >= shortest)
        return max(pieces, key=lambda piece: (len(piece), sum(map(str.isupper, piece))), default="").encode()


def _written(value: str, depth: int, *, odd: bool) -> _EncodedSecret:
    units = []
    for run in re.findall(r"\\+|[^\\]", value):
        if run[0] == "\\":
            # Each of them is doubled at each level. Not possessive: the next character may need some of them.
            encoded = rf"(?:{_slashes(depth)}u005[cC]|{_percent(run[0])}){{{len(run)}}}"
            units.append(_EncodedChar(rf"(?:{encoded}|\\{{{len(run)},{len(run) * (depth + 1)}}})"))
        elif run in _PLAIN:
            units.append(_EncodedChar(_character(run, depth) if odd else re.escape(run), run))
        else:
            units.append(_EncodedChar(_character(run, depth)))
    return _EncodedSecret(units)


def _slashes(depth: int) -> str:
    # The first one stands alone: where all alternatives begin with a plain character, searching is ten times faster.
    return rf"\\\\{{0,{depth - 1}}}+"


def _character(char: str, depth: int) -> str:
    slashes = _slashes(depth)
    utf16 = char.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(f"{slashes}u{_digits(utf16[at : at + 4])}" for at in range(0, len(utf16), 4))
    ways = [escaped, _percent(char)]
    if char in _SHORT_ESCAPES:
        ways.append(slashes + _SHORT_ESCAPES[char])
    if char in "\"'/":
        ways.append(slashes + char)
    if char == " ":
        ways.append(r"\+")
    if char != "%":  # of which `_percent` is a pattern already
        ways.append(re.escape(char))
    return f"(?:{'|'.join(ways)})"


def _percent(char: str) -> str:
    if char == "%":
        return "%(?:25){0,4}?"
    # Encoded several times over, `%2F` is `%252F`.
    return "".join(f"%(?:25){{0,3}}{_digits(f'{byte:02x}')}" for byte in char.encode("utf-8", "surrogatepass"))


def _digits(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def _base64(value: str, depth: int) -> list[_EncodedSecret]:
    """The characters that the value alone decides, for each place in a group of three bytes where it may begin."""
    data = value.encode("utf-8", "surrogatepass")
    line_break = rf"(?:(?<={_LINE})(?:[\r\n]|{_slashes(depth)}[nr]){{1,2}}+)?"
    padded = rf"(?:{_BASE64}(?:=|%3[dD]|{_slashes(depth)}u003[dD]){{0,2}})?"
    forms = []
    for before in range(3):
        text = b2a_base64(bytes(before) + data, newline=False).decode()
        first, end = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        units = []
        for at in range(first, end):
            unit = _base64_unit(text[at], depth)
            units.append(unit._replace(pattern=line_break + unit.pattern) if at % 4 == 0 and at > first else unit)
        forms.append(_EncodedSecret(units, tail=padded if (before + len(data)) % 3 else "", lead=1 if before else 0))
    return forms


def _base64_unit(char: str, depth: int) -> _EncodedChar:
    if char in "+/":
        return _EncodedChar(f"(?:{'-' if char == '+' else '_'}|{_character(char, depth)})")
    return _EncodedChar(char, char)


def _hexadecimal(value: str) -> _EncodedSecret:
    return _EncodedSecret(
        [_EncodedChar(_digits(digit), digit) for digit in value.encode("utf-8", "surrogatepass").hex()]
    )
