"""Regular expressions of JavaScript: the same matches by Python's engine, over units of UTF-16 as there."""

from __future__ import annotations

import re
from bisect import bisect
from functools import lru_cache
from itertools import pairwise
from typing import NoReturn

LAST_UNIT = 0xFFFF
_MAX_REPEAT = 10_000
_MAX_DEPTH = 100
_ASTRAL = re.compile(r"[\U00010000-\U0010ffff]")

Ranges = list[tuple[int, int]]
_DIGITS: Ranges = [(48, 57)]
_WORDS: Ranges = [(48, 57), (65, 90), (95, 95), (97, 122)]
_SPACES: Ranges = [
    *((9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)),
    *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
]
_BREAKS: Ranges = [(10, 10), (13, 13), (0x2028, 0x2029)]
_BACKSPACE = 8
_CONTROLS = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_QUANTIFIER = re.compile(r"\*|\+|\?|\{(\d+)(?:(,)(\d*))?\}")
_GROUP = re.compile(r"\(\?(?:<(?![=!])([A-Za-z_$][\w$]*)>|(:|=|!|<=|<!))", re.ASCII)
_NAMES = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(\(\?<(?![=!])|\((?!\?))", re.DOTALL)
_SAME = r"(?:[\w\u00a1-\ud7ff \"'%&,:;<=>@~`/!^|()*+?-]|\\[.*+?^$|(){}\[\]\\/-])*"
"""Compiled at its first use: that takes a hundredth of the start of a command."""
_WITHOUT_LINES = "[^\\n\\r\\u2028\\u2029]"


class JavaScriptRegexError(ValueError):
    """A pattern that Python's engine cannot be given, with the reason."""


class InvalidPatternError(JavaScriptRegexError):
    """A pattern that JavaScript refuses, too."""


def in_units(text: str) -> str:
    """Return a text with each unit of UTF-16 as one character, as JavaScript sees it."""
    if _ASTRAL.search(text) is None:
        return text
    return "".join(map(chr, memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")))


def index_in_text(text: str, unit: int) -> int:
    """Return the index of a character by that of its unit."""
    seen = 0
    for at, letter in enumerate(text):
        if seen >= unit:
            return at
        seen += 1 + (ord(letter) > LAST_UNIT)
    return len(text)


def is_same_in_python(pattern: str) -> bool:
    """Return whether a pattern means the same in Python: plain words, groups, choices and simple repeats."""
    return re.fullmatch(_SAME, pattern, re.ASCII) is not None


@lru_cache(maxsize=256)
def translate_pattern(pattern: str, *, ignore_case: bool = False) -> str:
    """Return a pattern of JavaScript without flags in Python's syntax; raise `JavaScriptRegexError`."""
    return _Reader(in_units(pattern), ignore_case=ignore_case).read()


def without_flags(pattern: str, flags: str) -> str:
    """Return a pattern that finds the same without its flags but `i`; raise `JavaScriptRegexError`."""
    for flag in flags:
        if flag not in "dgimsy":
            msg = f"the flag {flag!r} of its pattern is not known here"
            raise JavaScriptRegexError(msg)
    replaced = {"." if "s" in flags else "": r"[\s\S]"}
    if "m" in flags:
        replaced |= {"^": f"(?<!{_WITHOUT_LINES})", "$": f"(?!{_WITHOUT_LINES})"}
    parts = re.findall(r"\\.|\[(?:\\.|[^\]\\])*\]|.", pattern, re.DOTALL)
    result = "".join(replaced.get(part, part) for part in parts)
    return f"^(?:{result})" if "y" in flags else result


class _Reader:
    """A reader of the syntax that JavaScript has without the flags `u` and `v`, old forms included."""

    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0
        self._ignore_case = ignore_case
        opened = [match[1] for match in _NAMES.finditer(pattern) if match[1]]
        self._groups = len(opened)
        self._has_names = "(?<" in opened
        self._opened = 0
        self._closed: set[int] = set()
        self._forgotten: set[int] = set()
        """Groups in a part that is repeated."""
        self._names: dict[str, int] = {}
        self._refers = self._looks_behind = False

    def read(self) -> str:
        result = self._choices()
        if self._at < len(self._text):
            self._fail_invalid("a parenthesis is closed that is not open")
        if self._refers and (self._looks_behind or self._ignore_case):
            self._fail("it refers to a group, beside a look behind or without regard to case")
        return result

    def _fail(self, reason: str) -> NoReturn:
        raise JavaScriptRegexError(reason)

    def _fail_invalid(self, reason: str) -> NoReturn:
        msg = f"at character {self._at}: {reason}"
        raise InvalidPatternError(msg)

    def _choices(self) -> str:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._fail("its groups are nested too deeply")
        choices = [self._sequence()]
        while self._take("|"):
            choices.append(self._sequence())
        self._depth -= 1
        return "|".join(choices)

    def _sequence(self) -> str:
        parts: list[str] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            before = self._opened
            part, can_repeat = self._term()
            inner = range(before + (2 if part[:2] != "(?" else 1), self._opened + 1)
            parts.append(self._repeated(part, inner, can_repeat=can_repeat))
        return "".join(parts)

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _repeated(self, part: str, inner: range, *, can_repeat: bool) -> str:
        """Return an atom with its quantifier, if one follows."""
        match = _QUANTIFIER.match(self._text, self._at)
        if match is None:
            return part
        if not can_repeat:
            self._fail_invalid("there is nothing to repeat")
        self._at = match.end()
        written = match[0]
        if match[1] is not None:
            least, most = int(match[1]), int(match[3]) if match[3] else None
            if most is not None and most < least:
                self._fail_invalid("the numbers of a repeat are out of order")
            if max(least, most or 0) > _MAX_REPEAT:
                self._fail("it repeats a part very often")
        # JavaScript forgets the groups in a part with each repeat, Python does not.
        self._forgotten.update(inner)
        if self._take("?"):
            written += "?"
        if _QUANTIFIER.match(self._text, self._at):
            self._fail_invalid("there is nothing to repeat")
        return f"(?:{part}){written}"

    def _term(self) -> tuple[str, bool]:
        letter = self._text[self._at]
        if letter == "(":
            return self._group()
        if letter == "[":
            return self._class(), True
        if letter == "\\":
            return self._escape()
        if _QUANTIFIER.match(self._text, self._at):
            self._fail_invalid("there is nothing to repeat")
        self._at += 1
        if letter == "^":
            return r"\A", False
        if letter == "$":
            return r"\Z", False
        return (self._written(_inverted(_BREAKS)) if letter == "." else self._literal(ord(letter))), True

    def _group(self) -> tuple[str, bool]:
        match = _GROUP.match(self._text, self._at)
        if match is None and self._text.startswith("(?", self._at):
            if re.match(r"\(\?(?:[ims]*(?:-[ims]*)?:|<[^=!>]+>)", self._text[self._at :]):
                self._fail("only some versions of JavaScript know its groups")
            self._fail_invalid("a group begins with a mark that JavaScript does not know")
        kind = "" if match is None else match[2] or ""
        number = 0
        if match is None or match[1]:
            self._opened += 1
            number = self._opened
        if match is not None and match[1]:
            if match[1] in self._names:
                self._fail("only some versions of JavaScript allow two groups of one name")
            self._names[match[1]] = number
        self._at += 1 if match is None else len(match[0])
        self._looks_behind |= kind in {"<=", "<!"}
        inner = self._choices()
        if not self._take(")"):
            self._fail_invalid("a parenthesis is not closed")
        if number:
            self._closed.add(number)
            return f"({inner})", True
        return f"(?{kind}{inner})", kind not in {"<=", "<!"}

    def _escape(self) -> tuple[str, bool]:
        letter = self._text[self._at + 1 : self._at + 2]
        if not letter:
            self._fail_invalid("it ends with a backslash")
        if letter in "bB":
            self._at += 2
            word = self._written(_WORDS)
            inside, outside = f"(?<={word})(?={word})", f"(?<!{word})(?!{word})"
            if letter == "B":
                return f"(?:{inside}|{outside})", False
            return f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))", False
        if letter in "123456789":
            digits = re.match(r"\d+", self._text[self._at + 1 :], re.ASCII)
            if digits is not None and int(digits[0]) <= self._groups:
                self._at += 1 + len(digits[0])
                return self._reference(int(digits[0])), True
        if letter == "k" and self._has_names:
            name = re.match(r"\\k<([\w$]+)>", self._text[self._at :], re.ASCII)
            if name is None or name[1] not in self._names:
                self._fail("it refers to a group that is not there, or is behind it")
            self._at += len(name[0])
            return self._reference(self._names[name[1]]), True
        found = self._character_escape(in_class=False)
        return (self._literal(found) if isinstance(found, int) else self._written(found)), True

    def _reference(self, number: int) -> str:
        if number not in self._closed or number in self._forgotten:
            self._fail("it refers to a group that is open, behind it, or in a part that is repeated")
        self._refers = True
        return f"(?({number})\\{number})"  # a group that took no part fits the empty text

    def _character_escape(self, *, in_class: bool) -> int | Ranges:
        """Return the unit or the class behind a backslash."""
        text, at = self._text, self._at + 1
        letter = text[at]
        self._at = at + 1
        if letter in "dDsSwW":
            ranges = {"d": _DIGITS, "s": _SPACES, "w": _WORDS}[letter.lower()]
            return ranges if letter.islower() else _inverted(ranges)
        if in_class and letter == "b":
            return _BACKSPACE
        if letter == "c":
            control = text[at + 1 : at + 2]
            is_control = bool(control) and re.fullmatch(r"[A-Za-z0-9_]" if in_class else "[A-Za-z]", control)
            self._at = at + 2 if is_control else at
            return ord(control) % 32 if is_control else ord("\\")
        match = re.match(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([0-3][0-7]{0,2}|[4-7][0-7]?)", text[at : at + 5])
        if match is None:
            return _CONTROLS.get(letter, ord(letter))
        self._at = at + len(match[0])
        return int(match[3], 8) if match[3] else int(match[1] or match[2], 16)

    def _class(self) -> str:
        self._at += 1
        is_inverted = self._take("^")
        ranges: Ranges = []
        while not self._take("]"):
            first = self._class_atom()
            if self._text.startswith("-", self._at) and self._text[self._at + 1 : self._at + 2] not in {"]", ""}:
                self._at += 1
                last = self._class_atom()
                if isinstance(first, int) and isinstance(last, int):
                    if last < first:
                        self._fail_invalid("a range of characters is out of order")
                    ranges.append((first, last))
                    continue
                for atom in (first, ord("-"), last):
                    ranges += [(atom, atom)] if isinstance(atom, int) else atom
            else:
                ranges += [(first, first)] if isinstance(first, int) else first
        return self._written(ranges, is_inverted=is_inverted)

    def _class_atom(self) -> int | Ranges:
        if self._at >= len(self._text):
            self._fail_invalid("a bracket is not closed")
        if self._text[self._at] == "\\":
            if self._at + 1 >= len(self._text):
                self._fail_invalid("it ends with a backslash")
            return self._character_escape(in_class=True)
        self._at += 1
        return ord(self._text[self._at - 1])

    def _literal(self, unit: int) -> str:
        if self._ignore_case:
            return self._written([(unit, unit)])
        letter = chr(unit)
        return letter if letter.isascii() and letter.isalnum() else f"\\u{unit:04x}"

    def _written(self, ranges: Ranges, *, is_inverted: bool = False) -> str:
        merged = _merged(_with_other_case(ranges) if self._ignore_case else ranges)
        if is_inverted:
            merged = _inverted(merged)
        if not merged:
            return "(?!)"
        return "[" + "".join(f"\\u{first:04x}-\\u{last:04x}" for first, last in merged) + "]"


def _merged(ranges: Ranges) -> Ranges:
    result: Ranges = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return result


def _inverted(ranges: Ranges) -> Ranges:
    edges = [(-1, -1), *_merged(ranges), (LAST_UNIT + 1, LAST_UNIT + 1)]
    return [(before[1] + 1, after[0] - 1) for before, after in pairwise(edges) if before[1] + 1 < after[0]]


@lru_cache(maxsize=1)
def _cases() -> dict[int, list[int]]:
    """Return the units that are the same without regard to case, as JavaScript compares them: by upper case."""
    groups: dict[int, list[int]] = {}
    for unit in range(LAST_UNIT + 1):
        upper = chr(unit).upper()
        code = ord(upper) if len(upper) == 1 else unit
        is_kept = code > LAST_UNIT or (unit > 127 and code < 128)  # noqa: PLR2004 - the end of ASCII
        groups.setdefault(unit if is_kept else code, []).append(unit)
    return {unit: group for group in groups.values() if len(group) > 1 for unit in group}


def _with_other_case(ranges: Ranges) -> Ranges:
    cases = _cases()
    merged = _merged(ranges)
    starts = [first for first, _ in merged]
    added: Ranges = []
    for unit, group in cases.items():
        at = bisect(starts, unit) - 1
        if at >= 0 and unit <= merged[at][1]:
            added += [(other, other) for other in group]
    return [*merged, *added]
