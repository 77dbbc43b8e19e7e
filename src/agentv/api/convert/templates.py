"""Templates of other tools (`{{ name }}` of nunjucks): kept where ours mean the same, rendered otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jinja2 import ChainableUndefined, Template, TemplateError
from jinja2.sandbox import SandboxedEnvironment

_TAG = re.compile(r"\{%|\{#")
_PLACEHOLDER = re.compile(r"\{\{-?(.*?)-?\}\}", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*")
_PLAIN_NAME = re.compile(
    r"(?!(?:true|false|none|not|and|or|in|is|if|else|loop|self|range|dict|lipsum|cycler|joiner|namespace)\b)"
    r"[A-Za-z_]\w*",
    re.IGNORECASE | re.ASCII,
)
_MARGIN = re.compile(r"\{\{-|-\}\}")


class RenderError(ValueError):
    """A template that cannot be rendered here, with the reason."""


def has_template(value: Any) -> bool:
    """Return whether a value holds a template at any depth."""
    if isinstance(value, str):
        return "{{" in value or "{%" in value
    if isinstance(value, Mapping):
        return any(map(has_template, value.values()))
    return isinstance(value, list) and any(map(has_template, value))


def names_in(text: str) -> list[str] | None:
    """Return the names of a template of plain names; `None` if it has filters, tags or expressions."""
    if _TAG.search(text) or _MARGIN.search(text):
        return None
    names = [match[1].strip() for match in _PLACEHOLDER.finditer(text)]
    return names if all(_NAME.fullmatch(name) for name in names) else None


def is_plain(text: str, values: Mapping[str, Any]) -> bool:
    """Return whether our own templates give the same text: plain names only, each with a value."""
    names = names_in(text)
    return names is not None and all(_lookup(values, name) is not None for name in names)


def _lookup(values: Any, name: str) -> Any:
    for key in name.split("."):
        if not isinstance(values, Mapping) or key not in values:
            return None
        values = values[key]
    return values


def _dump(value: Any, indent: int | None = None) -> str:
    if indent is None:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _finalize(value: Any) -> Any:
    """Print values as JavaScript does."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return _dump(value)
    return js_text(value)


_ENVIRONMENT = SandboxedEnvironment(undefined=ChainableUndefined, finalize=_finalize, keep_trailing_newline=True)
_ENVIRONMENT.filters["dump"] = _dump
_BUILTIN_NAMES = re.compile(r"\b(?:env|process|_conversation)\b")


@lru_cache(maxsize=512)
def _compiled(text: str) -> Template:
    return _ENVIRONMENT.from_string(text)


def _fill_plain(text: str, values: Mapping[str, Any]) -> str | None:
    """Return a template of names alone with their values; `None` if it has to be compiled."""
    if "{%" in text or "{#" in text or _MARGIN.search(text):
        return None
    parts = _PLACEHOLDER.split(text)
    for at in range(1, len(parts), 2):
        name = parts[at].strip()
        if name not in values or not _PLAIN_NAME.fullmatch(name):
            return None
        parts[at] = str(_finalize(values[name]))
    return "".join(parts) if "{{" not in "".join(parts[::2]) else None


def render(text: str, values: Mapping[str, Any]) -> str:
    """Return a template with its values filled in; raise `RenderError`."""
    if "{{" not in text and "{%" not in text:
        return text
    for match in _PLACEHOLDER.finditer(text):
        own = _BUILTIN_NAMES.match(match[1].strip())
        if own and own[0] not in values:
            msg = f"its template uses `{own[0]}`"
            raise RenderError(msg)
    if "_conversation" in text and "_conversation" not in values:
        msg = "its template uses `_conversation`"
        raise RenderError(msg)
    plain = _fill_plain(text, values)
    if plain is not None:
        return plain
    try:
        return _compiled(text).render(dict(values))
    except (TemplateError, ValueError, TypeError, ArithmeticError, AttributeError, LookupError) as error:
        msg = f"its template cannot be rendered: {error}"
        raise RenderError(msg) from error


def render_deep(value: Any, values: Mapping[str, Any]) -> Any:
    """Return a value with all templates in it rendered; raise `RenderError`."""
    if isinstance(value, str):
        return render(value, values)
    if isinstance(value, Mapping):
        return {key: render_deep(item, values) for key, item in value.items()}
    return [render_deep(item, values) for item in value] if isinstance(value, list) else value


def js_text(value: Any) -> str:
    """Return a scalar as JavaScript's `String(value)` does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


class KeptName:
    """A name whose placeholders stay as they are."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> KeptName:
        if name.startswith("__"):
            raise AttributeError(name)
        return KeptName(f"{self._path}.{name}")

    def __str__(self) -> str:
        return f"{{{{ {self._path} }}}}"
