"""Translate HTTP statuses, bodies, exceptions and Retry-After into errors."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType

from agentv.errors import FormatError, ProviderError
from agentv.jsonio import parse_json, scrub_text
from agentv.model.response import ErrorKind, ProviderResponse, ResponseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime


_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds from now; `None` when nothing, or nothing that can be understood, is said. Names are in lower case."""
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    written = headers.get("retry-after")
    if written is not None:
        seconds = _number(written)
        return _until_date(written, now) if seconds is None else seconds
    return max(_resets(headers, now), default=None)


def _resets(headers: Mapping[str, str], now: datetime | None) -> Iterator[float]:
    """When each limit that is used up is there again, as OpenAI and Anthropic tell it."""
    for name, value in headers.items():
        if name.startswith("x-ratelimit-reset-"):
            left, pause = headers.get(name.replace("-reset-", "-remaining-")), _span(value)
        elif name.startswith("anthropic-ratelimit-") and name.endswith("-reset"):
            left, pause = headers.get(name.removesuffix("reset") + "remaining"), _until_moment(value, now)
        else:
            continue
        if left is not None and left.strip() == "0" and pause is not None:
            yield pause


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if isfinite(value) else None


def _span(text: str) -> float | None:
    """Seconds in `6m0s`, `1.5s`, `20ms` or a bare number."""
    parts = _SPAN.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return _number(text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _until_date(text: str, now: datetime | None) -> float | None:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - few servers write a date

    try:
        return _until(parsedate_to_datetime(text), now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _until_moment(text: str, now: datetime | None) -> float | None:
    from datetime import datetime  # noqa: PLC0415 - as above

    try:
        return _until(datetime.fromisoformat(text.strip()), now)
    except (ValueError, OverflowError):
        return None


def _until(moment: datetime, now: datetime | None) -> float:
    from datetime import UTC, datetime  # noqa: PLC0415 - as above

    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - (now or datetime.now(UTC))).total_seconds())


MAX_WORDS = 300
"""Characters of somebody else's text that a message quotes."""
NO_HEADERS: Mapping[str, str] = {}


class HttpResponse(Struct, frozen=True, kw_only=True):
    """A whole reply, read to its end or to the limit."""

    status: int
    headers: Mapping[str, str] = NO_HEADERS
    """By name in lower case."""
    body: bytes = b""
    truncated: bool = False
    """Whether the body was longer than the limit, and the rest was not read."""
    url: str = ""
    """Where it came from, without credentials."""
    hidden: tuple[str, ...] = ()
    """Credentials that were sent, which no message may repeat."""

    @property
    def is_ok(self) -> bool:
        """Whether the other side took the request."""
        return 200 <= self.status < 300  # noqa: PLR2004 - the success statuses of HTTP

    @property
    def content_type(self) -> str:
        """What the body says it is, in lower case and without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class TransportError(ProviderError):
    """There is no reply to work with; `response` is what the run gets instead."""

    def __init__(self, error: ResponseError) -> None:
        super().__init__(error.message, transient=error.retryable)
        self.error = error

    def __reduce__(self) -> tuple[type[TransportError], tuple[ResponseError]]:
        return type(self), (self.error,)

    @property
    def response(self) -> ProviderResponse:
        """The reply of a target that did not give one."""
        return ProviderResponse(success=False, error=self.error)


def transport_error(
    message: str, *, kind: ErrorKind = "transport", retryable: bool = False, code: str | UnsetType = UNSET
) -> TransportError:
    """An error to raise, from its words."""
    return TransportError(ResponseError(kind=kind, message=message, retryable=retryable, code=code))


class _Meaning(Struct, frozen=True):
    """What a status means."""

    kind: ErrorKind
    code: str
    retryable: bool = False
    hint: str = ""


_LOGIN = "check the key and what it may do"
_MEANINGS = {
    400: _Meaning("protocol", "bad_request"),
    401: _Meaning("transport", "unauthorized", hint=_LOGIN),
    402: _Meaning("transport", "quota_exhausted", hint="the account has nothing left to spend"),
    403: _Meaning("transport", "unauthorized", hint=_LOGIN),
    404: _Meaning("transport", "not_found", hint="check the address (`base_url` or `url`) and the `model`"),
    405: _Meaning("transport", "not_found", hint="check the address (`base_url` or `url`)"),
    408: _Meaning("transport", "timeout", retryable=True),
    409: _Meaning("transport", "conflict", retryable=True),
    413: _Meaning("protocol", "too_large"),
    425: _Meaning("transport", "unavailable", retryable=True),
    429: _Meaning("transport", "rate_limited", retryable=True),
    501: _Meaning("protocol", "bad_request"),
    503: _Meaning("transport", "unavailable", retryable=True),
    504: _Meaning("transport", "timeout", retryable=True),
    529: _Meaning("transport", "overloaded", retryable=True),
}
_SERVER_ERROR = _Meaning("transport", "server_error", retryable=True)
_QUOTA = _MEANINGS[402]
_QUOTA_NAMES = ("insufficient_quota", "billing", "credit_balance", "payment_required", "quota_exhausted")
_QUOTA_WORDS = (
    "exceeded your current quota, please check your plan and billing",
    "credit balance is too low",
    "billing hard limit",
    "insufficient credits",
    "insufficient balance",
)
_NAMED = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
    "api_error": 500,
    "server_error": 500,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
}
"""What an error object calls itself, where no status tells: inside a stream that began well."""


def failure_from(answer: HttpResponse) -> ProviderResponse:
    """The reply of a target that answered with anything but success."""
    try:
        body: Any = parse_json(answer.body) if answer.body and not answer.truncated else None
    except FormatError:
        body = None
    said = error_words(body)
    if said is None and not _is_page(answer):
        said = first_words(answer.body)
    return ProviderResponse(success=False, error=_error_of(answer, body, said or ""))


def failure_in_stream(error: Any, answer: HttpResponse, about: str = "") -> ProviderResponse:
    """The reply of a target that took the request, and then sent an error in place of its reply or of the rest."""
    told = HttpResponse(status=_status_of(error), headers=answer.headers, url=answer.url, hidden=answer.hidden)
    about = about or f"{answer.url or 'the target'} sent an error in the middle of its reply"
    return ProviderResponse(success=False, error=_error_of(told, error, error_words(error) or "", about))


def _status_of(error: Any) -> int:
    """The status that an error would have come with, by its number or by what it calls itself."""
    for item in _errors_in(error):
        number = item.get("code") if isinstance(item, dict) else None
        if isinstance(number, int) and 400 <= number < 600:  # noqa: PLR2004 - the error statuses of HTTP
            return number
    return next((_NAMED[name] for name in _names(error) if name in _NAMED), 500)


def read_json(answer: HttpResponse) -> Any:
    """The body of a reply that is JSON, or a `TransportError` that quotes its first words."""
    if answer.truncated:
        msg = f"the reply of {answer.url} is longer than {len(answer.body):,} bytes and was cut off"
        raise transport_error(msg, kind="protocol", code="too_large")
    if not answer.body.strip():
        msg = f"{answer.url} answered {answer.status} with an empty body"
        raise transport_error(msg, kind="protocol", code="malformed")
    try:
        return parse_json(answer.body)
    except FormatError as error:
        kind = answer.content_type or "no content type"
        hint = "; a proxy or a login page in between?" if _is_page(answer) else ""
        words = redact_url(first_words(answer.body), answer.hidden)
        msg = f"{answer.url} answered {answer.status} with {kind} where JSON was expected{hint} ({error}): {words}"
        raise transport_error(msg, kind="protocol", code="malformed") from None


def error_words(body: Any) -> str | None:
    """What an error in any of the usual shapes says; `None` when it says nothing."""
    for item in _errors_in(body):
        if isinstance(item, str) and item.strip():
            return _short(item)
        if not isinstance(item, dict):
            continue
        for key in ("message", "detail", "title", "error_description", "msg"):
            if isinstance(item.get(key), str) and item[key].strip():
                return _short(item[key])
    return None


def first_words(body: bytes) -> str:
    """How a body begins, on one line."""
    return _short(body[: 4 * MAX_WORDS].decode("utf-8", "replace"))


def redact_url(text: str, hidden: Iterable[str]) -> str:
    """The text without the credentials that were sent."""
    for secret in hidden:
        text = text.replace(secret, "[redacted]")
    return text


def _error_of(answer: HttpResponse, body: Any, said: str, about: str = "") -> ResponseError:
    meaning = _meaning(answer, body, said)
    about = about or f"{answer.url or 'the target'} answered {answer.status}"
    message = "; ".join(part for part in (f"{about}: {said}" if said else about, meaning.hint) if part)
    pause = retry_after_s(answer.headers) if meaning.retryable else None
    return ResponseError(
        kind=meaning.kind,
        message=redact_url(message, answer.hidden),
        retryable=meaning.retryable,
        code=meaning.code,
        retry_after_s=UNSET if pause is None else pause,
    )


def _meaning(answer: HttpResponse, body: Any, said: str) -> _Meaning:
    lowered = said.lower()
    if any(part in name for name in _names(body) for part in _QUOTA_NAMES) or any(
        words in lowered for words in _QUOTA_WORDS
    ):
        return _QUOTA
    if 300 <= answer.status < 400:  # noqa: PLR2004 - redirections
        place = redact_url(_short(answer.headers.get("location", "")), answer.hidden)
        return _Meaning("transport", "redirected", hint=f"it redirects to {place or 'nowhere'}, which is not followed")
    meaning = _MEANINGS.get(answer.status) or (_SERVER_ERROR if answer.status >= 500 else _MEANINGS[400])  # noqa: PLR2004
    should = answer.headers.get("x-should-retry", "").strip().lower()
    if should in ("true", "false"):
        return _Meaning(meaning.kind, meaning.code, should == "true", meaning.hint)
    return meaning


def _names(body: Any) -> Iterator[str]:
    """How an error object calls itself, its `code` and its `type`."""
    for item in _errors_in(body):
        if isinstance(item, dict):
            yield from (item[key].lower() for key in ("code", "type") if isinstance(item.get(key), str))


def _errors_in(body: Any) -> Iterator[Any]:
    """The error, from where it stands innermost."""
    if isinstance(body, list):
        body = body[0] if body else None
    if isinstance(body, dict):
        inner = body.get("error")
        if isinstance(inner, dict) and isinstance(inner.get("error"), dict):
            yield inner["error"]
        yield inner
        errors = body.get("errors")
        if isinstance(errors, list) and errors:
            yield errors[0]
    yield body


def _is_page(answer: HttpResponse) -> bool:
    return answer.content_type in ("text/html", "application/xhtml+xml") or answer.body[
        :200
    ].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def _short(text: str) -> str:
    words = " ".join(scrub_text(text).split())
    return words if len(words) <= MAX_WORDS else words[:MAX_WORDS] + "…"
