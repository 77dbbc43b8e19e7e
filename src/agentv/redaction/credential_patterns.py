"""What looks like a credential, whoever it belongs to: tokens, logins in URLs, fields of authentication."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol

Span = tuple[int, int]


class ScanView(NamedTuple):
    """A text as the first look sees it."""

    data: bytes
    """In UTF-8; it may be JSON as written, with one level of escapes more than the strings in it."""
    lowered: bytes
    odd: bool
    """Letters are written as escapes, or base64 is broken into lines."""


class Finder(Protocol):
    """Finds one kind of secret."""

    def may_be_in(self, view: ScanView) -> bool:
        """Tell quickly whether `spans` could find something; wrong only in saying yes."""

    def spans(self, text: str, *, odd: bool) -> Iterator[Span]:
        """Where a text has it."""


# All this starts a word. `\n` of JSON inside a text, `%3D` of a URL and `ESC[32m` of a terminal end in letters too.
_STARTS = (
    *("(?<![A-Za-z0-9{more}]{start})", r"(?<=\\[bfnrt]{start})", r"(?<=\\u[0-9A-Fa-f]{{4}}{start})"),
    *("(?<=%[0-9A-Fa-f]{{2}}{start})", r"(?<=[\[;][0-9]m{start})", r"(?<=[\[;][0-9][0-9]m{start})"),
)


def _starting(*starts: str, more: str = "") -> str:
    """A pattern for any of these, each of a fixed width, at the start of a word."""
    # What is before it is looked at after it: so the search jumps from one first letter to the next.
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
"""These also begin words, such as `sk-learn-based-approach`."""
_RANDOM = re.compile(r"(?=[A-Za-z]{0,12}[0-9])[A-Za-z0-9]{12}|[A-Za-z]{20}").search
"""What a token has and hyphenated words have not."""

_SPACE = r"(?: |\+|%20)"
_PRIVATE_KEY = (
    rf"-----BEGIN{_SPACE}(?:[A-Z0-9]{{1,20}}{_SPACE}){{0,3}}PRIVATE{_SPACE}KEY(?:{_SPACE}BLOCK)?-----"
    # Up to its end; before that there are no five hyphens, so no two beginnings ever read the same text.
    rf"(?:[^-]*+(?:-(?!----)[^-]*+)*+-----END(?:{_SPACE}[A-Z0-9]{{1,20}}){{1,6}}-----"
    # Cut off: as far as it looks like a key.
    r"|(?:[ \t\r\n]|\\{1,15}+[nr]|%0[ADad]|[A-Za-z0-9+/=]{16,}+)*+)"
)
_TOKENS = (
    rf"(?P<wordlike>{_starting(*_WORDLIKE)}[A-Za-z0-9_-]{{16,}})",
    rf"{_starting(*_UNDERSCORED)}[A-Za-z0-9]{{16}}[A-Za-z0-9_]*",
    rf"{_starting(*_HYPHENED)}[A-Za-z0-9_-]{{16,}}",
    rf"{_starting(*_DOTTED)}[A-Za-z0-9_-]{{16}}[A-Za-z0-9_.-]*",
    rf"{_starting('AIza')}[A-Za-z0-9_-]{{30,}}",
    rf"{_starting('A[KS]IA')}[A-Z0-9]{{16}}(?![A-Za-z0-9])",
    # A JSON Web Token. Its start keeps a run of letters from being read again from each `eyJ` in it.
    rf"{_starting('eyJ', more='_-')}[A-Za-z0-9_-]{{8,}}+\.eyJ[A-Za-z0-9_-]{{8,}}+\.[A-Za-z0-9_-]*+",
    _PRIVATE_KEY,
)

_SLASHES = r"\\{0,15}+"
_LABEL = r"\[redacted(?::[^\[\]\s]{1,200})?\]"


def _logins(depth: int, most: int, never: str) -> tuple[str, ...]:
    slashes = rf"\\{{0,{depth}}}+"
    return (
        rf":(?:{slashes}/){{2}}(?!git@|{_LABEL}@)([^\s/?#\"'<>{never}]{{1,{most}}})@",
        rf"%3[aA]%2[fF]%2[fF](?!git%40|{_LABEL}%40)((?:[^\s/?#\"'<>%{never}]|%(?!40|2[fF]|3[fF])){{1,{most}}}+)%40",
    )


# Fields are searched in lower case.
_NAMES = ("authorization", "api-key", "cookie", "private-token", "x-auth-token", "x-access-token", "x-vault-token")
_NAMES_IN_OBJECTS = (*_NAMES, "api_key", "apikey")
"""Not in lines of text: `api_key: str` is how programs are written."""
_SCHEME = (
    r"(?>(?:(?:basic|bearer|digest|token|negotiate|ntlm|api-?key|key|jwt|oauth|hawk|dpop|ssws|aws4-hmac-sha256)"
    r"[ ]{1,4})?)"
)
_COLON = r"[ \t]{0,4}:[ \t]{0,4}"
_QUOTE = rf"{_SLASHES}[\"']"
_WORD = r"[^\s,;\"'\\]++"
_FIELDS = (
    # As a line of text.
    rf"{_starting(*(name for name in _NAMES if name != 'cookie'))}{_COLON}{_SCHEME}({_WORD}(?:[,;][ ]?{_WORD})*+)",
    rf"{_starting('cookie')}{_COLON}([^\s=;\"'\\]{{1,128}}+=[^\r\n\"'\\]*+)",
    # As JSON or Python inside a text.
    rf"{_starting(*_NAMES_IN_OBJECTS)}{_QUOTE}{_COLON}{_QUOTE}{_SCHEME}([^\"'\\\r\n]++)",
    # The value alone, as in lists of headers.
    rf"{_starting('bearer')}[ ]{{1,4}}(?P<wordlike>[a-z0-9._~+/-]{{20,}}=*)",
)
# `${NAME}`, `{{ name }}`, `<your key>`, `****` and the names of variables stand for a secret without telling it.
_REFERENCE = rf"{_LABEL}|[{{<$*]|[A-Z][A-Z0-9]{{0,40}}(?:_[A-Z0-9]{{1,40}}){{1,8}}+(?![A-Za-z0-9])"
_MAX_NAME = 64
_MAX_LOGIN = 512

# The first look. Measured on results of 13 KB, per KB: four bytes searched with `in` 0.7 µs, sixteen 0.3, a pattern
# that begins with one byte 0.4, one that begins with a choice of bytes 7 to 30. So each begins with one rare byte.
_TOKEN_LOOKS = (
    rf"_(?=[A-Za-z0-9]{{16}})(?:{'|'.join(f'(?<={start})' for start in _UNDERSCORED)})",
    rf"-(?:----BEGIN|(?=[A-Za-z0-9_-]{{16}})(?:{'|'.join(f'(?<={start})' for start in (*_HYPHENED, *_WORDLIKE))}))",
    rf"\.(?:eyJ|(?=[A-Za-z0-9_-]{{16}})(?:{'|'.join(f'(?<={start})' for start in _DOTTED)}))",
    r"A(?:Iza[A-Za-z0-9_-]{30}|(?<=A[KS]IA)[A-Z0-9]{16})",
)
_FIELD_LOOKS = (
    "z(?<=authoriz)ation",
    "k(?=ie|ey|en)(?:(?<=cook)|(?<=api[-_]k)|(?<=apik)|(?<=-tok))",
    "b(?=earer )",
)


class _Patterns:
    """Tokens."""

    def __init__(self, looks: tuple[str, ...], patterns: tuple[str, ...]) -> None:
        self._looks = tuple(re.compile(look.encode()).search for look in looks)
        self._patterns = patterns

    def may_be_in(self, view: ScanView) -> bool:
        return self._look(view.data)

    def _look(self, data: bytes) -> bool:
        # Every result passes here: a loop takes half the time of `any`.
        for look in self._looks:  # noqa: SIM110 - see above
            if look(data):
                return True
        return False

    def spans(self, text: str, *, odd: bool) -> Iterator[Span]:
        """Where a text has it: the first group, or the whole match."""
        del odd  # only a known value is recognised in every disguise
        for pattern in self._patterns:
            for match in _compiled(pattern).finditer(text):
                if match.lastgroup is None or _RANDOM(match[1]):
                    yield match.span(1 if match.lastindex else 0)


class _Logins(_Patterns):
    """Users and passwords in URLs."""

    def may_be_in(self, view: ScanView) -> bool:
        # Most texts have a URL, few an `@` or its escape.
        return (b"@" in view.data or b"%" in view.data) and self._look(view.data)


class _Fields(_Patterns):
    """Values of headers and of keys."""

    def may_be_in(self, view: ScanView) -> bool:
        return self._look(view.lowered)

    def spans(self, text: str, *, odd: bool) -> Iterator[Span]:
        # `str.lower` makes some foreign letters longer, that of bytes knows ASCII only.
        lowered = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
        refers = _compiled(_REFERENCE).match
        return (span for span in super().spans(lowered, odd=odd) if not refers(text, span[0]))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # At the first use: a command that redacts nothing should not wait for it.
    return re.compile(pattern, re.ASCII)


@cache
def shapes() -> tuple[Finder, ...]:
    """Finders for all that looks like a credential."""
    return (
        _Patterns(_TOKEN_LOOKS, _TOKENS),
        # In JSON as written a character has up to twelve bytes, and each string ends with a quote.
        _Logins(_logins(31, 12 * _MAX_LOGIN, ""), _logins(15, _MAX_LOGIN, r"\\")),
        _Fields(_FIELD_LOOKS, _FIELDS),
    )


def is_credential_field(name: Any) -> bool:
    """Tell whether a key, or the name of a header, announces a credential."""
    return type(name) is str and len(name) <= _MAX_NAME and _is_field(name)


@lru_cache  # the objects of a file have the same few keys
def _is_field(name: str) -> bool:
    pattern = _compiled(f"(?:[a-z0-9_-]*[-_])?(?:{'|'.join(_NAMES_IN_OBJECTS)})")
    return name.isascii() and pattern.fullmatch(name.lower()) is not None


def credential_span(value: str) -> Span | None:
    """What of such a field's value is secret: all but the scheme, unless it only refers to a secret."""
    scheme = _compiled(f"(?i:{_SCHEME})").match(value)
    start = scheme.end() if scheme else 0
    return None if start == len(value) or _compiled(_REFERENCE).match(value, start) else (start, len(value))
