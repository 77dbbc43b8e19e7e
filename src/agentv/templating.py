"""Templates with `{{ name }}` placeholders: dataset columns, `vars` in messages, and HTTP requests.

A prompt of a judge is a Jinja template instead, with loops and filters (`evaluators/judge/prompt.py`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct

from agentv.errors import Problem
from agentv.jsonio import dump_json

# Linear on any text: the braces enclose none.
PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
MISSING: Any = object()
"""The result of `lookup` for a name without a value."""
_NONCHARACTER = "\ufdd0"
"""A code point that no text uses; it is removed before anything is sent."""

Fill = Callable[[Any], Any]
"""Fills a compiled template from a context, which only `Resolve` looks into."""
Resolve = Callable[[Any, str, str], Any]
"""Returns the value of a name in a context; the last argument is the path of the text that contains the name.

For `UNSET`, a key of a mapping is left out, an item of a list is `None`, and a text gets nothing.
"""


class Template:
    """One kind of template: which names it fills, and with which values."""

    def __init__(
        self,
        resolve: Resolve,
        *,
        is_name: Callable[[str], bool] = lambda written: True,  # noqa: ARG005 - all names, by default
        unescape: Callable[[str], str] = str,
    ) -> None:
        self._resolve = resolve
        self._is_name = is_name
        self._unescape = unescape

    def compile(self, value: Any, path: str = "", encode: Callable[[str], str] = str) -> Fill:
        """Compile a JSON value; a text that is one placeholder becomes its value, of any type."""
        if isinstance(value, str):
            texts, names = self.split(value)
            if not names:
                return lambda context: texts[0]  # noqa: ARG005 - called like the others
            if len(names) == 1 and not any(texts):
                return lambda context: self._resolve(context, names[0], path)
            return self.compile_text(value, path, encode)
        if isinstance(value, list):
            items = [self.compile(item, f"{path}[{index}]", encode) for index, item in enumerate(value)]
            return lambda context: [None if (filled := fill(context)) is UNSET else filled for fill in items]
        if isinstance(value, Mapping):
            fields = {key: self.compile(item, f"{path}.{key}", encode) for key, item in value.items()}
            return lambda context: {
                key: filled for key, fill in fields.items() if (filled := fill(context)) is not UNSET
            }
        return lambda context: value  # noqa: ARG005 - called like the others

    def compile_text(self, text: str, path: str = "", encode: Callable[[str], str] = str) -> Callable[[Any], str]:
        """Compile a text that stays text; `encode` is applied to each value in it."""
        texts, names = self.split(text)

        def fill(context: Any) -> str:
            # Values are never filled again: braces in them stay braces.
            parts = [texts[0]]
            for name, rest in zip(names, texts[1:], strict=True):
                parts += [encode(to_text(self._resolve(context, name, path))), rest]
            return "".join(parts)

        return fill

    def split(self, text: str) -> tuple[list[str], list[str]]:
        """Return the texts between the placeholders, and the names; a placeholder without a name stays text."""
        texts, names = [""], []
        end = 0
        for match in PLACEHOLDER.finditer(text):
            if self._is_name(match[1]):
                texts[-1] += text[end : match.start()]
                texts.append("")
                names.append(match[1].strip())
                end = match.end()
        texts[-1] += text[end:]
        return [self._unescape(part) for part in texts], names


class Placeholder(Struct, frozen=True):
    """A placeholder in a JSON value."""

    path: str
    name: str
    written: str
    """With its braces."""


def iter_placeholders(value: Any, path: str = "") -> Iterator[Placeholder]:
    """Yield all placeholders in the texts of a JSON value."""
    if isinstance(value, str):
        for match in PLACEHOLDER.finditer(value):
            yield Placeholder(path, match[1].strip(), match[0])
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from iter_placeholders(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from iter_placeholders(item, f"{path}[{index}]")


def check_keys(value: Any, path: str) -> Iterator[Problem]:
    """Yield a problem for each key with a placeholder, since only values are filled."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if PLACEHOLDER.search(key):
                yield Problem(f"{path}.{key}", f"{key!r} is a key; only values are filled", "key")
            yield from check_keys(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from check_keys(item, f"{path}[{index}]")


def lookup(values: Any, name: str) -> Any:
    """Return the value of a dotted name such as `user.city`, or `MISSING`."""
    for part in name.split("."):
        if not isinstance(values, Mapping) or part not in values:
            return MISSING
        values = values[part]
    return values


def to_text(value: Any) -> str:
    """Return a value as it is written within a text: a string as it is, `UNSET` as nothing, others as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is UNSET else dump_json(value).decode()


def escape_placeholders(value: str) -> str:
    """Escape the braces in the value of a `${ENV}` variable, so that no template finds a placeholder in it."""
    return value.replace("{", "{" + _NONCHARACTER)


def unescape_placeholders(text: str) -> str:
    """Undo `escape_placeholders`, after the placeholders were found."""
    return text.replace(_NONCHARACTER, "") if _NONCHARACTER in text else text
