"""The redactor of one execution: values of variables in any encoding, and everything that looks like a credential."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from agentv.errors import FormatError
from agentv.jsonio import dump_json, parse_json
from agentv.redaction.credential_patterns import (
    Finder,
    ScanView,
    Span,
    credential_finders,
    credential_span,
    is_credential_field,
)
from agentv.redaction.known_secrets import Secret, TruncatedSecret, make_view

MIN_LENGTH = 6
"""Shorter values are not redacted: with `MODE=a`, every `a` would be."""
MIN_DIGITS = 8
"""Numbers with fewer digits are not redacted: they are ports, limits and years, and occur in results by chance."""
_COMMON = frozenset((
    *("default", "disabled", "enabled", "undefined", "unknown"),
    *("development", "localhost", "production", "sandbox", "staging", "testing"),
    *("debugging", "verbose", "warning"),
    *("anthropic", "gemini", "google", "mistral", "ollama", "openai"),
    *("changeme", "example", "password", "placeholder", "redacted", "secret"),
    *("assistant", "content", "function", "message", "system"),
))  # fmt: skip
"""Values that are no secrets: settings, placeholders for a secret, and words of every result file."""
_NUMBER = re.compile(r"[-+]?[0-9]*[.,]?[0-9]*").fullmatch
_WHOLE_NUMBER = re.compile("[1-9][0-9]{0,99}").fullmatch
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# The quick check reads JSON as `dump_json` writes it. JSON that also escapes `/` and letters is searched completely.
_NEEDLESS_ESCAPE = re.compile(rb"\\(?=/|u00[2-7])")
_ANONYMOUS = "[redacted]"

Keep = Mapping[str, Any]
"""Keys of an object whose values are not redacted, with `None`; or with the same for the objects inside of them."""
NOTHING: Keep = {}
RECORD_NAMES: Keep = {
    **dict.fromkeys(("execution_id", "run_id", "eval_id", "case_id", "persona_id", "target", "place", "tags")),
    "evaluators": dict.fromkeys(("name", "type")),
}
"""Identifiers in a result record: the author wrote them in files, and runs are found by them."""
CASE_NAMES: Keep = dict.fromkeys(("id", "tags", "name", "type"))
"""The same in a stored case with its evaluators."""
TARGET_NAMES: Keep = dict.fromkeys(("name", "provider", "model"))
"""The same in the settings of a target, as they are written."""

_RankedFinder = tuple[int, Finder]
"""A finder with its rank: of overlapping matches, the label of the smallest rank is used."""


class Redactor:
    """Replaces the values of environment variables, in any encoding, and everything that looks like a credential."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = dict(secrets)
        names: dict[str, str] = {}
        for name, value in secrets.items():
            if _is_secret(value.strip()):
                names.setdefault(value.strip(), name)
        values = sorted(names, key=lambda value: (-len(value), value))
        self._labels = [*(_label(names[value], values) for value in values), _ANONYMOUS]
        self._finders: tuple[_RankedFinder, ...] = (
            *enumerate(Secret(value) for value in values),
            *enumerate(TruncatedSecret(value, MIN_LENGTH) for value in values),
            *((len(values), finder) for finder in credential_finders()),
        )
        self._numbers = {int(value): rank for rank, value in enumerate(values) if _WHOLE_NUMBER(value)}

    def with_secrets(self, secrets: Mapping[str, str]) -> Self:
        """Return a redactor that replaces these values, too."""
        return type(self)({**secrets, **self._secrets}) if secrets else self

    def lines(self, data: Sequence[bytes], keep: Keep = NOTHING) -> Sequence[bytes]:
        """Redact many JSON texts as `line` does; one quick check covers all of them."""
        joined = b"\n".join(data)
        if not _NEEDLESS_ESCAPE.search(joined) and not _suspects(self._finders, make_view(joined)):
            return data
        return [self.line(item, keep) for item in data]

    def line(self, data: bytes, keep: Keep = NOTHING) -> bytes:
        """Redact one JSON text as `dump_json` writes it; return the same object if there is nothing to redact.

        `keep` maps keys of its object to `None` if their values stay as they are, else to the keys inside of them.
        """
        suspects = self._finders if _NEEDLESS_ESCAPE.search(data) else _suspects(self._finders, make_view(data))
        if not suspects:
            return data
        try:
            value = parse_json(data)
            clean = self._redact_value(value, suspects, keep=keep)
            if clean == value:
                return data
            return dump_json(clean) + (b"\n" if data.endswith(b"\n") else b"")
        except (FormatError, RecursionError):
            return self._redact_invalid_json(data)

    def text(self, text: str) -> str:
        """Redact plain text, such as a message for the terminal."""
        return self._redact(text, self._finders)

    def _redact_value(
        self, value: Any, suspects: Iterable[_RankedFinder], *, secret: bool = False, keep: Keep = NOTHING
    ) -> Any:
        """Copy a value with all its strings redacted; with `secret`, its key says that all of it is secret."""
        if type(value) is str:
            return self._redact(value, suspects, credential_span(value) if secret else None)
        if type(value) is list:
            return [self._redact_value(item, suspects, secret=secret, keep=keep) for item in value]
        if type(value) is dict:
            return self._redact_object(value, suspects, keep)
        # Only the whole number counts: one that contains the digits of a secret does so by chance.
        if type(value) is int and value in self._numbers:
            return self._labels[self._numbers[value]]
        return value

    def _redact_object(self, value: dict[str, Any], suspects: Iterable[_RankedFinder], keep: Keep) -> dict[str, Any]:
        # Lists of headers are recorded as `{"name": "Authorization", "value": "…"}`.
        is_header = is_credential_field(value.get("name"))
        clean: dict[str, Any] = {}
        for key, item in value.items():
            name = self._redact(key, suspects)
            while name != key and (name in value or name in clean):  # two secrets, one label
                name += "_"
            inside = keep.get(key, NOTHING)
            if inside is None:
                clean[key] = item
                continue
            secret = is_header if key == "value" else is_credential_field(key)
            clean[name] = self._redact_value(item, suspects, secret=secret, keep=inside)
        return clean

    def _redact_invalid_json(self, data: bytes) -> bytes:
        """Redact each string of data that is nested too deeply to be parsed, or is not JSON."""
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

    def _redact(self, text: str, suspects: Iterable[_RankedFinder], known: Span | None = None) -> str:
        matches = [(*known, len(self._labels) - 1)] if known else []
        if len(text) >= MIN_LENGTH:
            view = make_view(text.encode("utf-8", "surrogatepass"))
            for rank, finder in _suspects(suspects, view):
                matches += [(*span, rank) for span in finder.find_spans(text, odd=view.odd)]
        return self._replace(text, sorted(matches)) if matches else text

    def _replace(self, text: str, matches: list[tuple[int, int, int]]) -> str:
        """Replace overlapping matches by one label, that of the longest secret."""
        merged = matches[:1]
        for start, end, rank in matches[1:]:
            first, last, best = merged[-1]
            if start < last:
                merged[-1] = first, max(end, last), min(rank, best)
            else:
                merged.append((start, end, rank))
        pieces = []
        done = 0
        for start, end, rank in merged:
            pieces += [text[done:start], self._labels[rank]]
            done = end
        return "".join((*pieces, text[done:]))


def _suspects(finders: Iterable[_RankedFinder], view: ScanView) -> list[_RankedFinder]:
    return [ranked for ranked in finders if ranked[1].quick_check(view)]


def _is_secret(value: str) -> bool:
    if len(value) < MIN_LENGTH or value.lower() in _COMMON:
        return False
    if _NUMBER(value) and sum(map(str.isdigit, value)) < MIN_DIGITS:
        return False
    # `------` is decoration, and a label must not be redacted again.
    return (value.isalnum() or len(set(value)) > 1) and value not in f"{_ANONYMOUS[:-1]}:"


def _label(name: str, values: Iterable[str]) -> str:
    label = f"[redacted:{name}]"
    return _ANONYMOUS if any(value in label for value in values) else label
