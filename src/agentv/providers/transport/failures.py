"""Translate HTTP statuses, bodies and exceptions into errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType

from agentv.errors import FormatError, ProviderError
from agentv.jsonio import parse_json, scrub_text
from agentv.model.response import ErrorKind, ProviderResponse, ResponseError
from agentv.providers.transport.retry_after import retry_after_s
from agentv.redaction import MIN_LENGTH, WINDOW, shorten
from agentv.redaction.known_secrets import TruncatedSecret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


MAX_QUOTED = 300
"""Largest number of characters that a message quotes."""
NO_HEADERS: Mapping[str, str] = {}


class HttpResponse(Struct, frozen=True, kw_only=True):
    """HTTP response, read to its end or to the limit."""

    status: int
    headers: Mapping[str, str] = NO_HEADERS
    """Headers by name in lower case."""
    body: bytes = b""
    truncated: bool = False
    """True if the body is longer than the limit, so that the rest was not read."""
    is_cut: bool = False
    """True if the compressed body ended early, so that the rest of it is missing."""
    url: str = ""
    """URL without credentials."""
    hidden: tuple[str, ...] = ()
    """Credentials that were sent, which must not appear in messages."""

    @property
    def is_ok(self) -> bool:
        """True if the status is a success."""
        return 200 <= self.status < 300  # noqa: PLR2004 - the success statuses of HTTP

    @property
    def content_type(self) -> str:
        """Content type in lower case and without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class TransportError(ProviderError):
    """Failure of a request; `response` is the failed reply of the run."""

    def __init__(self, error: ResponseError) -> None:
        super().__init__(error.message, transient=error.retryable)
        self.error = error

    def __reduce__(self) -> tuple[type[TransportError], tuple[ResponseError]]:
        return type(self), (self.error,)

    @property
    def response(self) -> ProviderResponse:
        """Return a failed reply with this error."""
        return ProviderResponse(success=False, error=self.error)


def transport_error(
    message: str, *, kind: ErrorKind = "transport", retryable: bool = False, code: str | UnsetType = UNSET
) -> TransportError:
    """Return a `TransportError` with this message."""
    return TransportError(ResponseError(kind=kind, message=message, retryable=retryable, code=code))


class _StatusMeaning(Struct, frozen=True):
    """Error kind, code and hint of an HTTP status."""

    kind: ErrorKind
    code: str
    retryable: bool = False
    hint: str = ""


_LOGIN = "check the key and what it may do"
_MEANINGS = {
    400: _StatusMeaning("protocol", "bad_request"),
    401: _StatusMeaning("transport", "unauthorized", hint=_LOGIN),
    402: _StatusMeaning("transport", "quota_exhausted", hint="the account has nothing left to spend"),
    403: _StatusMeaning("transport", "unauthorized", hint=_LOGIN),
    404: _StatusMeaning("transport", "not_found", hint="check the address (`base_url` or `url`) and the `model`"),
    405: _StatusMeaning("transport", "not_found", hint="check the address (`base_url` or `url`)"),
    408: _StatusMeaning("transport", "timeout", retryable=True),
    409: _StatusMeaning("transport", "conflict", retryable=True),
    413: _StatusMeaning("protocol", "too_large"),
    425: _StatusMeaning("transport", "unavailable", retryable=True),
    429: _StatusMeaning("transport", "rate_limited", retryable=True),
    501: _StatusMeaning("protocol", "bad_request"),
    503: _StatusMeaning("transport", "unavailable", retryable=True),
    504: _StatusMeaning("transport", "timeout", retryable=True),
    529: _StatusMeaning("transport", "overloaded", retryable=True),
}
_SERVER_ERROR = _StatusMeaning("transport", "server_error", retryable=True)
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
"""Statuses of the error names that vendors use, for errors inside of a stream."""


def failure_from(answer: HttpResponse) -> ProviderResponse:
    """Return the failed reply for a response whose status is no success."""
    try:
        body: Any = parse_json(answer.body) if answer.body and not answer.truncated else None
    except FormatError:
        body = None
    message_text = error_message(body)
    if message_text is None and not _is_html(answer):
        message_text = body_excerpt(answer.body)
    return ProviderResponse(success=False, error=_error_of(answer, body, message_text or ""))


def failure_in_stream(error: Any, answer: HttpResponse, about: str = "") -> ProviderResponse:
    """Return the failed reply for an error in the body of a successful response."""
    equivalent = HttpResponse(status=_status_of(error), headers=answer.headers, url=answer.url, hidden=answer.hidden)
    about = about or f"{answer.url or 'the target'} sent an error in the middle of its reply"
    return ProviderResponse(success=False, error=_error_of(equivalent, error, error_message(error) or "", about))


def _status_of(error: Any) -> int:
    """Return the HTTP status of an error by its number or its name."""
    for item in _error_objects(error):
        number = item.get("code") if isinstance(item, dict) else None
        if isinstance(number, int) and 400 <= number < 600:  # noqa: PLR2004 - the error statuses of HTTP
            return number
    return next((_NAMED[name] for name in _error_names(error) if name in _NAMED), 500)


def read_json(answer: HttpResponse) -> Any:
    """Parse the body as JSON, or raise a `TransportError` that quotes its beginning."""
    if answer.truncated:
        msg = f"the reply of {answer.url} is longer than {len(answer.body):,} bytes and was cut off"
        raise transport_error(msg, kind="protocol", code="too_large")
    if not answer.body.strip():
        msg = f"{answer.url} answered {answer.status} with an empty body"
        raise transport_error(msg, kind="protocol", code="malformed")
    try:
        return parse_json(answer.body)
    except FormatError as error:
        if answer.is_cut:
            raise cut_body_error(answer) from None
        kind = answer.content_type or "no content type"
        hint = "; a proxy or a login page in between?" if _is_html(answer) else ""
        words = redact_url(body_excerpt(answer.body), answer.hidden)
        msg = f"{answer.url} answered {answer.status} with {kind} where JSON was expected{hint} ({error}): {words}"
        raise transport_error(msg, kind="protocol", code="malformed") from None


def cut_body_error(answer: HttpResponse) -> TransportError:
    """Return the error for a compressed body that ended early."""
    msg = f"the compressed reply of {answer.url} ended early: it was cut off"
    return transport_error(msg, retryable=True, code="cut_off")


def error_message(body: Any) -> str | None:
    """Return the message of an error in any usual format; `None` if it has none."""
    for item in _error_objects(body):
        if isinstance(item, str) and item.strip():
            return _shorten(item)
        if not isinstance(item, dict):
            continue
        for key in ("message", "detail", "title", "error_description", "msg"):
            if isinstance(item.get(key), str) and item[key].strip():
                return _shorten(item[key])
    return None


def body_excerpt(body: bytes) -> str:
    """Return the beginning of a body, on one line."""
    return _shorten(body[: 4 * (MAX_QUOTED + WINDOW)].decode("utf-8", "replace"))


def redact_url(text: str, hidden: Iterable[str]) -> str:
    """Return the text without the credentials that were sent, also where it was cut within one of them."""
    for secret in hidden:
        text = text.replace(secret, "[redacted]")
        for start, end in sorted(TruncatedSecret(secret, MIN_LENGTH).find_spans(text, odd=False), reverse=True):
            text = f"{text[:start]}[redacted]{text[end:]}"
    return text


def _error_of(answer: HttpResponse, body: Any, message_text: str, about: str = "") -> ResponseError:
    meaning = _meaning(answer, body, message_text)
    about = about or f"{answer.url or 'the target'} answered {answer.status}"
    message = "; ".join(part for part in (f"{about}: {message_text}" if message_text else about, meaning.hint) if part)
    wait_s = retry_after_s(answer.headers) if meaning.retryable else None
    return ResponseError(
        kind=meaning.kind,
        message=redact_url(message, answer.hidden),
        retryable=meaning.retryable,
        code=meaning.code,
        retry_after_s=UNSET if wait_s is None else wait_s,
    )


def _meaning(answer: HttpResponse, body: Any, message_text: str) -> _StatusMeaning:
    lowered = message_text.lower()
    if any(part in name for name in _error_names(body) for part in _QUOTA_NAMES) or any(
        words in lowered for words in _QUOTA_WORDS
    ):
        return _QUOTA
    if 300 <= answer.status < 400:  # noqa: PLR2004 - redirections
        place = redact_url(_shorten(answer.headers.get("location", "")), answer.hidden)
        return _StatusMeaning(
            "transport", "redirected", hint=f"it redirects to {place or 'nowhere'}, which is not followed"
        )
    meaning = _MEANINGS.get(answer.status) or (_SERVER_ERROR if answer.status >= 500 else _MEANINGS[400])  # noqa: PLR2004
    should = answer.headers.get("x-should-retry", "").strip().lower()
    if should in ("true", "false"):
        return _StatusMeaning(meaning.kind, meaning.code, should == "true", meaning.hint)
    return meaning


def _error_names(body: Any) -> Iterator[str]:
    """Yield the `code` and `type` of an error object."""
    for item in _error_objects(body):
        if isinstance(item, dict):
            yield from (item[key].lower() for key in ("code", "type") if isinstance(item.get(key), str))


def _error_objects(body: Any) -> Iterator[Any]:
    """Yield the objects that may hold the error, innermost first."""
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


def _is_html(answer: HttpResponse) -> bool:
    return answer.content_type in ("text/html", "application/xhtml+xml") or answer.body[
        :200
    ].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def _shorten(text: str) -> str:
    words = " ".join(scrub_text(text).split())
    return shorten(words, MAX_QUOTED)
