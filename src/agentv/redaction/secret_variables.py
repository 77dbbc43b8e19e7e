"""Decide whether an environment variable is a secret, by its name or by the shape of its value."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentv.redaction.credential_patterns import credential_finders, is_credential_field
from agentv.redaction.known_secrets import make_view

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset((
    *("key", "keys", "apikey", "apikeys", "token", "secret", "secrets", "password", "passwd", "passphrase", "pass"),
    *("pwd", "pw", "pat", "credential", "credentials", "creds", "auth", "authorization", "bearer", "jwt", "cookie"),
    *("session", "signature", "sas", "dsn", "webhook", "private", "license", "licence", "salt", "pin", "otp"),
))  # fmt: skip
_SECRET_ENDINGS = ("key", "token", "secret", "password", "passwd", "pwd", "passphrase")
_SECRET_NAMES = re.compile(r"(?i)conn(?:ection)?_?str(?:ing)?|authtoken").search
_PLAIN_NAMES = frozenset(("PWD", "OLDPWD", "KEYBOARD", "KEYMAP", "HOTKEY", "SSH_AUTH_SOCK", "XDG_SESSION_TYPE"))
"""Names of which a word is about secrets and the value is none."""
_RANDOM = re.compile(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{20,}").search
"""A run of letters and digits as in tokens; words, dates and versions are shorter."""
_VENDOR_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
_VARIABLE = re.compile(r"\$(\$)?\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}")


def is_secret_variable(name: str, value: str) -> bool:
    """Return whether a variable looks like a secret: `OPENAI_API_KEY` does, `MODEL=gpt-4o-mini` does not."""
    return _is_secret_name(name) or _RANDOM(value) is not None or _is_credential(value)


def _is_secret_name(name: str) -> bool:
    if name.upper() in _PLAIN_NAMES:
        return False
    if _SECRET_NAMES(name):
        return True
    words = [word.lower() for word in _WORDS.findall(name)]
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words)


def _is_credential(value: str) -> bool:
    view = make_view(value.encode("utf-8", "surrogatepass"))
    return any(
        finder.quick_check(view) and next(iter(finder.find_spans(value, odd=view.odd)), None) is not None
        for finder in credential_finders()
    )


def stored_secrets(settings: Any, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that a target used, by its settings as they were stored."""
    if not isinstance(settings, Mapping):
        return {}
    given = [name for key in ("env", "secrets") for name in settings.get(key) or () if isinstance(name, str)]
    marked = {*credential_variables(settings), *[name for name in settings.get("secrets") or () if name in given]}
    used = {*_variables(settings), *given, *marked, *_VENDOR_KEYS}
    return {
        name: environment[name]
        for name in used
        if name in environment and (name in marked or is_secret_variable(name, environment[name]))
    }


def _variables(settings: Any) -> Iterator[str]:
    if isinstance(settings, str):
        yield from (match[2] for match in _VARIABLE.finditer(settings) if not match[1])
    elif isinstance(settings, Mapping):
        for value in settings.values():
            yield from _variables(value)
    elif isinstance(settings, (list, tuple)):
        for value in settings:
            yield from _variables(value)


def credential_variables(settings: Any) -> Iterator[str]:
    """Yield the `${ENV}` variables in settings that hold credentials by their keys, such as `api_key`."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            if isinstance(key, str) and isinstance(value, str) and (is_credential_field(key) or _is_secret_name(key)):
                yield from _variables(value)
            else:
                yield from credential_variables(value)
    elif isinstance(settings, (list, tuple)):
        for value in settings:
            yield from credential_variables(value)
