"""Structure of parsed JSON: what the formats look at when they recognise it, without the words of the conversation.

To find the format of a short conversation takes longer than to read it. Conversations of one file have few structures,
so that the formats of each are looked for once.
"""

import re
from typing import Any

from agentv.formats.fields import NAME_KEYS
from agentv.protocols import ReplyFormat

_Formats = tuple[ReplyFormat, ...]
_MAX_DEPTH = 12
_MAX_WORD = 64
_MAX_KNOWN = 512
_MAX_PARTS = 8_192
_MAX_MISSES = 128
"""Number of structures after which they are no longer compared, if most conversations have one of their own."""
_FEW = 3
"""Number of elements of a list whose order counts; of longer lists the first, the last and the kinds of all count."""
_SHORT_PREFIX = 4
_WORD = re.compile(r"[A-Za-z_.:/-]*")
_OPENERS = frozenset('{["<')
_INPUTS = frozenset(("arguments", "args", "tool_input", "toolInput", "tool_kwargs", "parameters"))
_TEXTS = frozenset(("content", "text", "output", "result", "value", "answer", "reasoning"))
_NAMES = frozenset(NAME_KEYS)


class _TooDeepError(Exception):
    """Data that is too deep to compare."""


class KnownStructures:
    """The formats of the conversations that were read, by structure."""

    def __init__(self) -> None:
        self._formats: dict[int, _Formats] = {}
        self._parts: dict[Any, int] = {}
        """Number of each structure, so that those that contain it are compared quickly."""
        self._hits = self._misses = 0

    def find(self, data: Any) -> tuple[int | None, _Formats]:
        """Return the structure of data, `None` if it is not remembered, and the formats that it had before."""
        if self._misses > _MAX_MISSES and self._hits < self._misses:
            return None, ()
        try:
            structure = self._number(data, 0)
        except _TooDeepError:
            return None, ()
        found = self._formats.get(structure, ())
        self._hits, self._misses = self._hits + bool(found), self._misses + (not found)
        return structure, found

    def remember(self, structure: int, formats: _Formats) -> None:
        """Remember the formats that data of a structure has."""
        if len(self._parts) > _MAX_PARTS or len(self._formats) >= _MAX_KNOWN:
            self._formats.clear()
            self._parts.clear()
        else:
            self._formats[structure] = formats

    def _number(self, value: Any, depth: int) -> int:
        part = self._part(value, depth)
        return self._parts.setdefault(part, len(self._parts))

    def _part(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return _describe_text(value)
        if kind is bool or value is None:
            return str(value)
        if kind is dict:
            if depth > _MAX_DEPTH:
                raise _TooDeepError
            return tuple([(key, self._field(key, item, depth + 1)) for key, item in value.items()])
        if kind is list:
            if depth > _MAX_DEPTH:
                raise _TooDeepError
            parts = [self._number(item, depth + 1) for item in value]
            return "list", *(parts if len(parts) <= _FEW else (parts[0], parts[-1], frozenset(parts)))
        return kind

    def _field(self, key: str, value: Any, depth: int) -> Any:
        if type(value) is str:
            if key in _TEXTS:
                return _describe_long(value)
            described = _describe_text(value)
            return "a name" if key in _NAMES and described == value else described
        if type(value) is dict and key in _INPUTS:
            return "an object" if value else "an empty object"
        return self._number(value, depth)


def _describe_text(text: str) -> str:
    """Return a word without digits as it is, of an id or time only its beginning, and of a longer text its kind."""
    if not text or len(text) > _MAX_WORD or " " in text or "\n" in text:
        return _describe_long(text)
    match = _WORD.match(text)
    end = match.end() if match else 0
    if end == len(text):
        return text
    return f"{text[:end]} and more" if end >= _SHORT_PREFIX else "an id" if text[0] not in _OPENERS else f"{text[0]} …"


def _describe_long(text: str) -> str:
    if not text:
        return ""
    first = text.lstrip()[:1]
    return f"{first} …" if first in _OPENERS else "a text" if first else "blank"
