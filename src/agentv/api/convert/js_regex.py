"""Regular expressions of JavaScript in Python's syntax."""

from __future__ import annotations

import re

from agentv.matching.matchers import bad_pattern

_FLAGS = {"i": "i", "m": "m", "s": "s", "g": "", "y": "", "u": "", "d": "", "v": ""}
_ASCII_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_"}
_WORD_TOKEN = re.compile(r"\\[dDwWbB]")
_SPACE_TOKEN = re.compile(r"\\[sS]")
_QUANTIFIER = re.compile(r"\{\d+(?:,\d*)?\}")
_NAMED = re.compile(r"\(\?<(?![=!])")


class RegexError(ValueError):
    """A pattern that has no counterpart in Python, with the reason."""


def translate_regex(pattern: str, flags: str = "") -> str:
    r"""Return a JavaScript pattern in Python's syntax, with the same meaning; raise `RegexError`.

    JavaScript's `\\d`, `\\w` and `\\b` know ASCII only, and its `$` does not match before a line break at the end.
    """
    unknown = [flag for flag in flags if flag not in _FLAGS]
    if unknown:
        msg = f"the flag {unknown[0]!r} of the pattern is unknown"
        raise RegexError(msg)
    has_words = _WORD_TOKEN.search(pattern) is not None
    # The flag `a` restricts `\s` as well, where JavaScript does not: then the classes are written out.
    written_out = has_words and _SPACE_TOKEN.search(pattern) is not None
    inline = "".join(sorted({_FLAGS[flag] for flag in flags} | ({"a"} if has_words and not written_out else set())))
    translated = "".join(_tokens(pattern, multiline="m" in flags, written_out=written_out))
    translated = f"(?{inline}){translated}" if inline else translated
    reason = bad_pattern(translated)
    if reason is not None:
        raise RegexError(reason)
    return translated


def _tokens(pattern: str, *, multiline: bool, written_out: bool) -> list[str]:
    result: list[str] = []
    at = 0
    in_class = False
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\" and at + 1 < len(pattern):
            text, at = _escape(pattern, at, in_class=in_class, written_out=written_out)
            result.append(text)
            continue
        if in_class:
            in_class = letter != "]"
            result.append("\\[" if letter == "[" else letter)
        elif pattern.startswith(("[^]", "[]"), at):
            text = "[^]" if pattern.startswith("[^]", at) else "[]"
            result.append(r"[\s\S]" if text == "[^]" else r"(?!)")
            at += len(text)
            continue
        elif letter == "[":
            in_class = True
            result.append(letter)
        elif letter == "{" and not _QUANTIFIER.match(pattern, at):
            result.append(
                r"\{"
            )  # a brace of its own, which the regex package reads as a quantifier in `{,2}` and `{e}`
        elif letter == "$" and not multiline:
            result.append(r"\Z")
        elif letter == "(" and _NAMED.match(pattern, at):
            result.append("(?P<")
            at += len("(?<")
            continue
        else:
            result.append(letter)
        at += 1
    return result


def _escape(pattern: str, at: int, *, in_class: bool, written_out: bool) -> tuple[str, int]:
    """Return the translation of an escape, and the index behind it."""
    letter = pattern[at + 1]
    if letter == "k" and (name := re.match(r"<(\w+)>", pattern[at + 2 :])):
        return f"(?P={name[1]})", at + 2 + name.end()
    if letter == "u" and (wide := re.match(r"\{([0-9a-fA-F]{1,6})\}", pattern[at + 2 :])):
        return f"\\U{int(wide[1], 16):08x}", at + 2 + wide.end()
    if letter in "pP" and pattern[at + 2 : at + 3] == "{":
        msg = f"\\{letter}{{...}} is a class of Unicode"
        raise RegexError(msg)
    if letter == "c":
        msg = "\\c names a control character"
        raise RegexError(msg)
    if written_out and letter in "dwDWbB":
        return _written_out(letter, in_class=in_class), at + 2
    if letter == "/" or (letter.isascii() and letter.isalpha() and letter not in "dDwWsSbBnrtfvxu"):
        return letter, at + 2  # JavaScript ignores the backslash
    return ("\\x00" if letter == "0" else f"\\{letter}"), at + 2


def _written_out(letter: str, *, in_class: bool) -> str:
    """Return a class of ASCII letters written out."""
    if letter in "bB":
        return f"\\{letter}" if in_class else f"(?a:\\{letter})"
    inside = _ASCII_CLASSES[letter.lower()]
    if not in_class:
        return f"[^{inside}]" if letter.isupper() else f"[{inside}]"
    if letter.isupper():
        msg = f"\\{letter} stands in a class beside \\s"
        raise RegexError(msg)
    return inside
