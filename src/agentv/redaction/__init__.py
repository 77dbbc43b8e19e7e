"""How everything secret is taken out of what goes to a file or a terminal."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentv.errors import FormatError
from agentv.jsonio import dump_json, parse_json
from agentv.redaction.credential_patterns import Finder, ScanView, Span, credential_span, is_credential_field, shapes
from agentv.redaction.known_secrets import Secret, TruncatedSecret, view_of

MIN_LENGTH = 6
"""Shorter values are not looked for: with `MODE=a`, every `a` would be redacted."""
MIN_DIGITS = 8
"""Numbers with fewer digits are ports, limits and years, and stand in every result by chance."""
_COMMON = frozenset((
    *("default", "disabled", "enabled", "undefined", "unknown"),
    *("development", "localhost", "production", "sandbox", "staging", "testing"),
    *("debugging", "verbose", "warning"),
    *("anthropic", "gemini", "google", "mistral", "ollama", "openai"),
    *("changeme", "example", "password", "placeholder", "redacted", "secret"),
    *("assistant", "content", "function", "message", "system"),
))  # fmt: skip
"""Values that configure instead of authenticating, stand in for a secret, or are words of every result file."""
_NUMBER = re.compile(r"[-+]?[0-9]*[.,]?[0-9]*").fullmatch
_WHOLE_NUMBER = re.compile("[1-9][0-9]{0,99}").fullmatch
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# The first look reads JSON as we write it. Others escape `/` and letters too, and theirs is read closely.
_NEEDLESS_ESCAPE = re.compile(rb"\\(?=/|u00[2-7])")
_ANONYMOUS = "[redacted]"

_Ranked = tuple[int, Finder]
"""The smaller the rank, the better the label."""


class Redactor:
    """Replaces the values of environment variables, however written, and whatever looks like a credential."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        names: dict[str, str] = {}
        for name, value in secrets.items():
            if _is_secret(value.strip()):
                names.setdefault(value.strip(), name)
        values = sorted(names, key=lambda value: (-len(value), value))
        self._labels = [*(_label(names[value], values) for value in values), _ANONYMOUS]
        self._finders: tuple[_Ranked, ...] = (
            *enumerate(Secret(value) for value in values),
            *enumerate(TruncatedSecret(value, MIN_LENGTH) for value in values),
            *((len(values), shape) for shape in shapes()),
        )
        self._numbers = {int(value): rank for rank, value in enumerate(values) if _WHOLE_NUMBER(value)}

    def lines(self, data: Sequence[bytes]) -> Sequence[bytes]:
        """The same as `line` for many: where nothing is to be redacted in any, one look at all of them tells."""
        joined = b"\n".join(data)
        if not _NEEDLESS_ESCAPE.search(joined) and not _suspects(self._finders, view_of(joined)):
            return data
        return [self.line(each) for each in data]

    def line(self, data: bytes) -> bytes:
        """Redact one JSON text as `dump_json` writes it; what has nothing to redact is given back itself."""
        suspects = self._finders if _NEEDLESS_ESCAPE.search(data) else _suspects(self._finders, view_of(data))
        if not suspects:
            return data
        try:
            value = parse_json(data)
            clean = self._walk(value, suspects)
            if clean == value:
                return data
            return dump_json(clean) + (b"\n" if data.endswith(b"\n") else b"")
        except (FormatError, RecursionError):
            return self._piecewise(data)

    def text(self, text: str) -> str:
        """Redact a text that is no JSON, such as a message for the terminal."""
        return self._redact(text, self._finders)

    def _walk(self, item: Any, suspects: Iterable[_Ranked], *, secret: bool = False) -> Any:
        """Copy a value with all its strings redacted; `secret`: its name says that all of it is."""
        if type(item) is str:
            return self._redact(item, suspects, credential_span(item) if secret else None)
        if type(item) is list:
            return [self._walk(each, suspects, secret=secret) for each in item]
        if type(item) is dict:
            return self._walk_object(item, suspects)
        # A number that merely contains the digits of a secret does so by chance.
        if type(item) is int and item in self._numbers:
            return self._labels[self._numbers[item]]
        return item

    def _walk_object(self, item: dict[str, Any], suspects: Iterable[_Ranked]) -> dict[str, Any]:
        # Lists of headers are recorded as `{"name": "Authorization", "value": "…"}`.
        named = is_credential_field(item.get("name"))
        clean: dict[str, Any] = {}
        for key, each in item.items():
            name = self._redact(key, suspects)
            while name != key and (name in item or name in clean):  # two secrets, one label
                name += "_"
            secret = named if key == "value" else is_credential_field(key)
            clean[name] = self._walk(each, suspects, secret=secret)
        return clean

    def _piecewise(self, data: bytes) -> bytes:
        """Redact what is nested too deeply to be read, or is no JSON at all."""
        pieces = []
        done = 0
        for match in _STRING.finditer(data):
            pieces += [self._bytes(data[done : match.start()]), self._string(match[0])]
            done = match.end()
        return b"".join((*pieces, self._bytes(data[done:])))

    def _string(self, data: bytes) -> bytes:
        try:
            text = parse_json(data)
        except FormatError:
            return self._bytes(data)
        clean = self.text(text)
        return data if clean == text else dump_json(clean)

    def _bytes(self, data: bytes) -> bytes:
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def _redact(self, text: str, suspects: Iterable[_Ranked], known: Span | None = None) -> str:
        found = [(*known, len(self._labels) - 1)] if known else []
        if len(text) >= MIN_LENGTH:
            view = view_of(text.encode("utf-8", "surrogatepass"))
            for rank, finder in _suspects(suspects, view):
                found += [(*span, rank) for span in finder.spans(text, odd=view.odd)]
        return self._label(text, sorted(found)) if found else text

    def _label(self, text: str, found: list[tuple[int, int, int]]) -> str:
        """Put one label for each stretch of overlapping finds, that of the longest secret."""
        stretches = found[:1]
        for start, end, rank in found[1:]:
            begun, ended, best = stretches[-1]
            if start < ended:
                stretches[-1] = begun, max(end, ended), min(rank, best)
            else:
                stretches.append((start, end, rank))
        pieces = []
        done = 0
        for start, end, rank in stretches:
            pieces += [text[done:start], self._labels[rank]]
            done = end
        return "".join((*pieces, text[done:]))


def _suspects(finders: Iterable[_Ranked], view: ScanView) -> list[_Ranked]:
    return [ranked for ranked in finders if ranked[1].may_be_in(view)]


def _is_secret(value: str) -> bool:
    if len(value) < MIN_LENGTH or value.lower() in _COMMON:
        return False
    if _NUMBER(value) and sum(map(str.isdigit, value)) < MIN_DIGITS:
        return False
    # `------` is an ornament, and our own label must not be redacted again.
    return (value.isalnum() or len(set(value)) > 1) and value not in f"{_ANONYMOUS[:-1]}:"


def _label(name: str, values: Iterable[str]) -> str:
    label = f"[redacted:{name}]"
    return _ANONYMOUS if any(value in label for value in values) else label
