"""Fences around the agent's words, and the check that a judge's quotation occurs in them."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from agentv.jsonio import dump_json, scrub_text

# Characters that are invisible to people but not to models: control codes, changes of direction, zero-width spaces,
# fillers, and the tag characters and variation selectors that can hide whole sentences. Single joiners and emoji
# selectors belong to real words; several in a row do not.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<=[\u200c\u200d\ufe0e\ufe0f])[\u200c\ufe0e\ufe0f]|(?<=[\u200c\u200d])\u200d"
)
_ESCAPED = re.compile("⟨U\\+[0-9A-F]{4,6}⟩|[\u200c\u200d\ufe0e\ufe0f]")
MAX_TRIES = 100


class Fence(NamedTuple):
    """Delimiters around data, marked with the nonce of one call."""

    word: str

    def block(self, label: str, text: str) -> str:
        """Return several lines of data under a label."""
        return f"BEGIN {self.word} {label}\n{visible(text)}\nEND {self.word}"

    def inline(self, value: Any) -> str:
        """Return a value within a line, as JSON, so that nothing in it can end the line."""
        return f"«{self.word} {visible(dump_json(value).decode())} {self.word}»"


def make_fence(word: Callable[[bytes], str], texts: Sequence[str]) -> Fence:
    """Return a fence whose nonce does not occur in any of the texts."""
    content = dump_json(list(texts))
    for attempt in range(MAX_TRIES):
        candidate = word(content + b"\0%d" % attempt)
        if not any(candidate in text for text in texts):
            return Fence(candidate)
    msg = "every word that could fence the data occurs in it: the source of words is not random"
    raise AssertionError(msg)


def visible(text: str) -> str:
    """Return the text with invisible characters written out, as `⟨U+202E⟩`."""
    text = scrub_text(text).replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN.sub(_escape_hidden, text) if not text.isascii() or not text.isprintable() else text


def without_hidden(text: str) -> str:
    """Return the text without invisible characters, written out or not."""
    return _ESCAPED.sub("", visible(text))


def _escape_hidden(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match[0]):04X}⟩"


_EQUIVALENT = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u0060\u00b4", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    }
)
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_]")
_OUR_FIELDS = re.compile(r'"(?:type|step)":"?\w*"?|"name":"(?:assistant|user|system|developer|tool)"|"\w+":')
"""Field names, and the values that we fill in ourselves."""
GAP = re.compile(r"\[\u2026 [\d,]+ characters left out \u2026\]")
"""Our mark in a shortened text."""
SHORT = 2
"""Quotations of so few letters occur in almost any text."""


class FencedFields(str):
    """JSON in which the field names are ours and only the values the agent's."""

    __slots__ = ()


def fields(value: Any) -> FencedFields:
    """Return values as JSON to quote from."""
    return FencedFields(dump_json(value).decode())


class Evidence:
    """The texts that quotations may come from."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)

    def holds(self, quote: str) -> bool:
        """Return whether a quotation occurs in the texts, ignoring spaces, case and kinds of quotation marks.

        Of one or two letters, it has to be a word there.
        """
        words = _words(quote)
        plain = _SPACE.sub("", words)
        if plain.isascii() and len(_WORD.findall(plain)) <= SHORT:
            alone = re.compile(rf"(?<!\w){re.escape(words.strip())}(?!\w)")
            return any(alone.search(text) for text in self._worded)
        if any(plain in text for text in self._plain):
            return True
        # A field name alone is not a quotation of the agent.
        valued = ":" in plain and _WORD.search(_OUR_FIELDS.sub("", plain)) is not None
        return valued and any(plain in text for text in self._fields)

    def __bool__(self) -> bool:
        return any(has_letters(text) for text in self._texts)

    @cached_property
    def _worded(self) -> tuple[str, ...]:
        texts = (part for text in self._texts if not isinstance(text, FencedFields) for part in GAP.split(text))
        return tuple(_words(part) for part in texts)

    @cached_property
    def _plain(self) -> tuple[str, ...]:
        return tuple(_SPACE.sub("", text) for text in self._worded)

    @cached_property
    def _fields(self) -> tuple[str, ...]:
        return tuple(_SPACE.sub("", _words(text)) for text in self._texts if isinstance(text, FencedFields))


def has_letters(quote: str) -> bool:
    """Return whether a quotation has a letter or digit: punctuation occurs in every text."""
    return _WORD.search(without_hidden(quote)) is not None


def _words(text: str) -> str:
    text = unicodedata.normalize("NFKC", without_hidden(text)).translate(_EQUIVALENT)
    return _SPACE.sub(" ", text).casefold()
