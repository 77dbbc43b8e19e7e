"""Whether a quotation is one."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from agentv.evaluators.judge.fence import without_hidden
from agentv.jsonio import dump_json

_SAME = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u0060\u00b4", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    }
)
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_]")
_OURS = re.compile(r'"(?:type|step)":"?\w*"?|"name":"(?:assistant|user|system|developer|tool)"|"\w+":')
"""Names of fields, and what we put into some."""
GAP = re.compile(r"\[\u2026 [\d,]+ characters left out \u2026\]")
"""Our words, where a long text was shortened."""
SHORT = 2
"""So few letters stand in almost any text."""


class Fields(str):
    """Values as JSON, in which the names of the fields are ours and only the values the agent's."""

    __slots__ = ()


def fields(value: Any) -> Fields:
    """Values that a judge is shown as JSON, as something to quote from."""
    return Fields(dump_json(value).decode())


class Evidence:
    """The texts that quotations may come from."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)

    def holds(self, quote: str) -> bool:
        """Whether it stands in one of the texts; spaces, kinds of quotation marks and upper case make no difference.

        Of one or two letters, it has to be a word there.
        """
        words = _words(quote)
        plain = _SPACE.sub("", words)
        if plain.isascii() and len(_WORD.findall(plain)) <= SHORT:
            alone = re.compile(rf"(?<!\w){re.escape(words.strip())}(?!\w)")
            return any(alone.search(text) for text in self._worded)
        if any(plain in text for text in self._plain):
            return True
        # A name of a field alone is nothing that the agent said.
        valued = ":" in plain and _WORD.search(_OURS.sub("", plain)) is not None
        return valued and any(plain in text for text in self._fields)

    def __bool__(self) -> bool:
        return any(says_something(text) for text in self._texts)

    @cached_property
    def _worded(self) -> tuple[str, ...]:
        texts = (part for text in self._texts if not isinstance(text, Fields) for part in GAP.split(text))
        return tuple(_words(part) for part in texts)

    @cached_property
    def _plain(self) -> tuple[str, ...]:
        return tuple(_SPACE.sub("", text) for text in self._worded)

    @cached_property
    def _fields(self) -> tuple[str, ...]:
        return tuple(_SPACE.sub("", _words(text)) for text in self._texts if isinstance(text, Fields))


def says_something(quote: str) -> bool:
    """Whether there is a letter or a digit in it: a dot stands in every text."""
    return _WORD.search(without_hidden(quote)) is not None


def _words(text: str) -> str:
    text = unicodedata.normalize("NFKC", without_hidden(text)).translate(_SAME)
    return _SPACE.sub(" ", text).casefold()
