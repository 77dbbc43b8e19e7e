"""Credential patterns: tokens of known vendors, logins in URLs, and fields such as `authorization`."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, Protocol

from msgspec import Struct

Span = tuple[int, int]


class ScanView(Struct, frozen=True):
    """A text prepared for the quick check."""

    data: bytes
    """The text in UTF-8; it may be JSON, with one level of escapes more than the strings in it."""
    lowered: bytes
    odd: bool
    """True if letters are written as escapes, or base64 is broken into lines."""


class Finder(Protocol):
    """Finds one kind of secret."""

    def quick_check(self, view: ScanView) -> bool:
        """Return False if `find_spans` would certainly find nothing; fast."""

    def find_spans(self, text: str, *, odd: bool) -> Iterator[Span]:
        """Yield the spans of a text that contain the secret."""


# Possible starts of a word: `\n` of JSON inside a text, `%3D` of a URL and `ESC[32m` of a terminal end in letters too.
_STARTS = (
    *("(?<![A-Za-z0-9{more}]{start})", r"(?<=\\[bfnrt]{start})", r"(?<=\\u[0-9A-Fa-f]{{4}}{start})"),
    *("(?<=%[0-9A-Fa-f]{{2}}{start})", r"(?<=[\[;][0-9]m{start})", r"(?<=[\[;][0-9][0-9]m{start})"),
)


def _at_word_start(*starts: str, more: str = "") -> str:
    """Return a pattern for any of these prefixes, each of a fixed width, at the start of a word."""
    # A lookbehind after the prefix instead of before it: so the search jumps from one first letter to the next.
    ways = (f"{start}(?:{'|'.join(way.format(start=start, more=more) for way in _STARTS)})" for start in starts)
    return f"(?:{'|'.join(ways)})"


_UNDERSCORED = (
    *("gh[pousr]_", "github_pat_"),
    *("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"),  # Stripe
    *("hf_", "npm_", "gsk_", "r8_", "lsv2_pt_", "lsv2_sk_", "glsa_", "dop_v1_", "shpat_", "pcsk_", "sbp_", "lin_api_"),
)
_HYPHENED = ("xox[a-z]-", "xapp-", "glpat-", "pplx-", "tvly-", "nvapi-", "GOCSPX-", "PMAK-", "AGE-SECRET-KEY-")
_DOTTED = (r"ya29\.", r"hvs\.", r"SG\.")
_WORDLIKE = ("sk-", "xai-", "pypi-")
"""Prefixes that also begin ordinary words, such as `sk-learn-based-approach`."""
_RANDOM = re.compile(r"(?=[A-Za-z]{0,12}[0-9])[A-Za-z0-9]{12}|[A-Za-z]{20}").search
"""Characteristic of a token that hyphenated words do not have."""

_SPACE = r"(?: |\+|%20)"
_PRIVATE_KEY = (
    rf"-----BEGIN{_SPACE}(?:[A-Z0-9]{{1,20}}{_SPACE}){{0,3}}PRIVATE{_SPACE}KEY(?:{_SPACE}BLOCK)?-----"
    # Up to its end marker; there are no five hyphens before it, so no text is scanned twice.
    rf"(?:[^-]*+(?:-(?!----)[^-]*+)*+-----END(?:{_SPACE}[A-Z0-9]{{1,20}}){{1,6}}-----"
    # Without an end marker: as far as it looks like a key.
    r"|(?:[ \t\r\n]|\\{1,15}+[nr]|%0[ADad]|[A-Za-z0-9+/=]{16,}+)*+)"
)
_TOKENS = (
    rf"(?P<wordlike>{_at_word_start(*_WORDLIKE)}[A-Za-z0-9_-]{{16,}})",
    rf"{_at_word_start(*_UNDERSCORED)}[A-Za-z0-9]{{16}}[A-Za-z0-9_]*",
    rf"{_at_word_start(*_HYPHENED)}[A-Za-z0-9_-]{{16,}}",
    rf"{_at_word_start(*_DOTTED)}[A-Za-z0-9_-]{{16}}[A-Za-z0-9_.-]*",
    rf"{_at_word_start('AIza')}[A-Za-z0-9_-]{{30,}}",
    rf"{_at_word_start('A[KS]IA')}[A-Z0-9]{{16}}(?![A-Za-z0-9])",
    # A JSON Web Token. The word start prevents a rescan from each `eyJ` within a run of letters.
    rf"{_at_word_start('eyJ', more='_-')}[A-Za-z0-9_-]{{8,}}+\.eyJ[A-Za-z0-9_-]{{8,}}+\.[A-Za-z0-9_-]*+",
    _PRIVATE_KEY,
    # Webhooks: anyone who knows the path may post.
    r"\.com/(?:services|workflows|triggers|api/webhooks)/([A-Za-z0-9_-]{6,}/[A-Za-z0-9_/-]{16,})",
)

_SLASHES = r"\\{0,15}+"
_LABEL = r"\[redacted(?::[^\[\]\s]{1,200})?\]"


_USER = r"(?:[A-Za-z_-]{1,40}|(?=[A-Za-z])[A-Za-z0-9._-]{1,12})(?![A-Za-z0-9._-])"
"""A name without a password: it is no secret unless it is as long as a token and has digits."""


def _login_patterns(depth: int, most: int, never: str) -> tuple[str, ...]:
    slashes = rf"\\{{0,{depth}}}+"
    return (
        rf":(?:{slashes}/){{2}}(?!{_LABEL}@|{_USER}@)([^\s/?#\"'<>{never}]{{1,{most}}})@",
        rf"%3[aA]%2[fF]%2[fF](?!{_LABEL}%40|{_USER}%40)((?:[^\s/?#\"'<>%{never}]|%(?!40|2[fF]|3[fF])){{1,{most}}}+)%40",
    )


# Fields are searched in lower case.
_NAMES = ("authorization", "api-key", "cookie", "private-token", "x-auth-token", "x-access-token", "x-vault-token")
_ASSIGNED = (
    *("api_key", "api-key", "apikey", "api_secret", "client_secret", "client-secret", "clientsecret", "secret_key"),
    *("access_token", "accesstoken", "refresh_token", "refreshtoken", "id_token", "auth_token", "authtoken"),
    *("session_token", "private_token", "password", "passwd", "passphrase", "private_key", "privatekey"),
    *("secret_access_key", "secretaccesskey", "account_key", "accountkey", "sharedaccesskey"),
)
_HEADERS = tuple(name for name in _NAMES if name != "cookie")
_NAMES_IN_OBJECTS = (*_NAMES, *_ASSIGNED)
"""The others are not searched before a colon in lines of text, where `api_key: str` is source code."""
_REMARK = (
    r"(?:required|optional|none|null|nil|missing|invalid|failed|denied|granted|expired|needed|true|false|yes|no|not|is|"
    r"header|headers|string|str|text|bytes|basic|bearer|undefined|unset|empty|hidden|masked|changeme|password|secret)"
    r"(?![a-z0-9_-])"
)
"""Words that say something about a credential: `Authorization: required`."""
_SOURCE_CODE = r"(?:[a-z_][a-z0-9_]*\.)*[a-z_]*(?:key|token|secret|password|passwd|passphrase)(?![a-z0-9_-])"
"""Variables of a program: `api_key=self.api_key`."""
_ASSIGNED_VALUE = r"[^\s&;,\"'\\()<>{}\[\]]{4,}+(?![(\[{])"
_SCHEME = (
    r"(?>(?:(?:basic|bearer|digest|token|negotiate|ntlm|api-?key|key|jwt|oauth|hawk|dpop|ssws|aws4-hmac-sha256)"
    r"[ ]{1,4})?)"
)
_COLON = r"[ \t]{0,4}:[ \t]{0,4}"
_QUOTE = rf"{_SLASHES}[\"']"
_WORD = r"[^\s,;\"'\\]++"
_FIELDS = (
    # In a line of text.
    rf"{_at_word_start(*_HEADERS)}{_COLON}{_SCHEME}(?!{_REMARK})({_WORD}(?:[,;][ ]?{_WORD})*+)",
    rf"{_at_word_start('cookie')}{_COLON}([^\s=;\"'\\]{{1,128}}+=[^\r\n\"'\\]*+)",
    # In JSON or Python inside a text.
    rf"{_at_word_start(*_NAMES_IN_OBJECTS)}{_QUOTE}{_COLON}{_QUOTE}{_SCHEME}([^\"'\\\r\n]++)",
    # Parameters of a URL, variables of a shell, parts of a connection string.
    rf"{_at_word_start(*_ASSIGNED)}(?:=|%3d)(?!{_REMARK}|{_SOURCE_CODE})({_ASSIGNED_VALUE})",
    rf"{_at_word_start('secret_access_key', 'secretaccesskey')}[ ]{{0,4}}[=:][ ]{{0,4}}([a-z0-9+/]{{40}})",
    r"[?&]sig=([a-z0-9+/%_-]{20,}=*)",
    # A value alone, as in lists of headers.
    rf"{_at_word_start('bearer')}[ ]{{1,4}}(?P<wordlike>[a-z0-9._~+/-]{{20,}}=*)",
)
# `${NAME}`, `{{ name }}`, `<your key>`, `****` and names of variables refer to a secret without containing it.
_REFERENCE = rf"{_LABEL}|[{{<$*]|[A-Z][A-Z0-9]{{0,40}}(?:_[A-Z0-9]{{1,40}}){{1,8}}+(?![A-Za-z0-9])"
_MAX_NAME = 64
_MAX_LOGIN = 512

# Patterns of the quick check. Measured on results of 13 KB, per KB: four bytes searched with `in` 0.7 µs, sixteen 0.3,
# a pattern that begins with one byte 0.4, one that begins with a choice of bytes 7 to 30. So each begins with one rare
# byte.
_TOKEN_QUICK = (
    rf"_(?=[A-Za-z0-9]{{16}})(?:{'|'.join(f'(?<={start})' for start in _UNDERSCORED)})",
    rf"-(?:----BEGIN|(?=[A-Za-z0-9_-]{{16}})(?:{'|'.join(f'(?<={start})' for start in (*_HYPHENED, *_WORDLIKE))}))",
    rf"\.(?:eyJ|com/[swta]|(?=[A-Za-z0-9_-]{{16}})(?:{'|'.join(f'(?<={start})' for start in _DOTTED)}))",
    r"A(?:Iza[A-Za-z0-9_-]{30}|(?<=A[KS]IA)[A-Z0-9]{16})",
)
_FIELD_QUICK = (
    "z(?<=authoriz)ation",
    "k(?=ie|ey)(?:(?<=cook)|(?<=api[-_]k)|(?<=apik)|(?<=private_k)|(?<=privatek)|(?<=accessk)|(?<=count_k)|(?<=countk))",
    "k(?=en(?!s))(?:(?<=[-_]tok)|(?<=sstok)|(?<=shtok)|(?<=thtok))",
    "b(?=earer )",
    "c(?=ret)(?<=sec)",
    "w(?=ord|d)(?<=passw)",
    "p(?=hrase)(?<=passp)",
    "g(?==)(?<=[?&]sig)",
)


class _TokenFinder:
    """Finds tokens of known vendors."""

    def __init__(self, looks: tuple[str, ...], patterns: tuple[str, ...]) -> None:
        self._quick_patterns = tuple(re.compile(look.encode()).search for look in looks)
        self._patterns = patterns

    def quick_check(self, view: ScanView) -> bool:
        return self._search_quick(view.data)

    def _search_quick(self, data: bytes) -> bool:
        # Called for every result: a loop takes half the time of `any`.
        for look in self._quick_patterns:  # noqa: SIM110 - see above
            if look(data):
                return True
        return False

    def find_spans(self, text: str, *, odd: bool) -> Iterator[Span]:
        """Yield the span of each match: its first group, or all of it."""
        del odd  # only a known value is recognised in every encoding
        for pattern in self._patterns:
            for match in _compile(pattern).finditer(text):
                if match.lastgroup is None or _RANDOM(match[1]):
                    yield match.span(1 if match.lastindex else 0)


class _LoginFinder(_TokenFinder):
    """Finds users and passwords in URLs."""

    def quick_check(self, view: ScanView) -> bool:
        # Most texts contain a URL, few contain `@` or its escape.
        return (b"@" in view.data or b"%" in view.data) and self._search_quick(view.data)


class _FieldFinder(_TokenFinder):
    """Finds values of headers and keys such as `authorization`."""

    def quick_check(self, view: ScanView) -> bool:
        return self._search_quick(view.lowered)

    def find_spans(self, text: str, *, odd: bool) -> Iterator[Span]:
        # `str.lower` makes some letters longer; `bytes.lower` changes ASCII only.
        lowered = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
        refers = _compile(_REFERENCE).match
        return (span for span in super().find_spans(lowered, odd=odd) if not refers(text, span[0]))


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    # Compiled at the first use, so that commands without redaction start faster.
    return re.compile(pattern, re.ASCII)


@cache
def credential_finders() -> tuple[Finder, ...]:
    """Return the finders for everything that looks like a credential."""
    return (
        _TokenFinder(_TOKEN_QUICK, _TOKENS),
        # In JSON a character takes up to twelve bytes, and each string ends with a quote.
        _LoginFinder(_login_patterns(31, 12 * _MAX_LOGIN, ""), _login_patterns(15, _MAX_LOGIN, r"\\")),
        _FieldFinder(_FIELD_QUICK, _FIELDS),
    )


def is_credential_field(name: Any) -> bool:
    """Return whether a key or a header of this name contains a credential."""
    return type(name) is str and len(name) <= _MAX_NAME and _is_field(name)


@lru_cache  # the objects of a file share few keys
def _is_field(name: str) -> bool:
    pattern = _compile(f"(?:[a-z0-9_-]*[-_])?(?:{'|'.join(_NAMES_IN_OBJECTS)})")
    return name.isascii() and pattern.fullmatch(name.lower()) is not None


def credential_span(value: str) -> Span | None:
    """Return the secret part of a field's value: all but the scheme, or nothing if it only refers to a secret."""
    scheme = _compile(f"(?i:{_SCHEME})").match(value)
    start = scheme.end() if scheme else 0
    if start == len(value) or _compile(_REFERENCE).match(value, start) or _is_no_secret(value[start:]):
        return None
    return start, len(value)


def _is_no_secret(value: str) -> bool:
    return _compile(f"(?i:{_REMARK})").fullmatch(value.strip()) is not None
