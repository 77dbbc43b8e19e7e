"""Whether a quotation is one."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property

from agentv.evaluators.judge.fence import visible

_SAME = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u0060\u00b4", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    }
)
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_]")


class Evidence:
    """The texts that quotations may come from."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)

    def holds(self, quote: str) -> bool:
        """Whether it stands in one of the texts; spaces, kinds of quotation marks and upper case make no difference."""
        plain = _plain(quote)
        return any(plain in text for text in self._plain)

    def __bool__(self) -> bool:
        return any(says_something(text) for text in self._texts)

    @cached_property
    def _plain(self) -> tuple[str, ...]:
        return tuple(_plain(text) for text in self._texts)


def says_something(quote: str) -> bool:
    """Whether there is a letter or a digit in it: a dot stands in every text."""
    return _WORD.search(quote) is not None


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", visible(text)).translate(_SAME)
    return _SPACE.sub("", text).casefold()
