"""Read whole documents as replies: by content type, by the settings, else by their format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.detect import text_pointer_hint
from agentv.formats.incomplete import with_cut_end
from agentv.formats.reader import UNKNOWN, UNKNOWN_SHAPE, detect_reply, read_reply
from agentv.jsonio import parse_json, scrub_text
from agentv.model.response import ProviderResponse
from agentv.providers.http.pointers import PointerValues, add_pointed, error_of, read_pointed
from agentv.providers.http.request import is_json
from agentv.providers.transport.failures import (
    TransportError,
    cut_body_error,
    failure_in_stream,
    read_json,
    redact_url,
    transport_error,
)
from agentv.redaction import WINDOW, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.conversation import Message
    from agentv.providers.http.pointers import Pointers
    from agentv.providers.transport.failures import HttpResponse


_UNSPECIFIED = ("", "application/octet-stream", "binary/octet-stream")
_PAGES = ("text/html", "application/xhtml+xml")


class ReplySettings(Struct, frozen=True, kw_only=True):
    """Settings of a target for its replies."""

    pointers: Pointers
    done: str | None
    events: tuple[str, ...]
    snapshots: bool


def read_document(answer: HttpResponse, settings: ReplySettings, messages: Sequence[Message]) -> ProviderResponse:
    """Read a reply in one piece; raise `FormatError` or `TransportError` if it is none."""
    if answer.truncated:
        msg = f"the reply of {answer.url} is longer than {len(answer.body):,} bytes: raise `max_reply_bytes`"
        raise transport_error(msg, kind="protocol", code="too_large")
    if not answer.body.strip():
        msg = f"{answer.url} answered {answer.status} with an empty body"
        raise transport_error(msg, kind="protocol", code="malformed")
    kind = answer.content_type
    if is_json(kind) or (kind in _UNSPECIFIED and answer.body.lstrip()[:1] in (b"{", b"[", b'"')):
        return _read_value(_parse_json(answer), settings, messages, answer)
    if kind in _UNSPECIFIED or (kind.startswith("text/") and kind not in _PAGES):
        return _read_text(answer, settings, messages)
    page = " A proxy or a login page in between?" if kind in _PAGES else ""
    words = redact_url(_text_of(answer), answer.hidden) if kind in _PAGES else ""
    begins = f" It begins: {shorten(' '.join(words[: 2 * WINDOW].split()), 200)}" if words else ""
    msg = f"{answer.url} answered {answer.status} with {kind}, where JSON or text was expected.{page}{begins}"
    raise transport_error(msg, kind="protocol", code="malformed")


def _parse_json(answer: HttpResponse) -> Any:
    if answer.body.lstrip().startswith((b"data:", b"event:")):
        kind = answer.content_type or "nothing of its type"
        msg = f"{answer.url} says {kind} and sent a stream of events: write `stream: sse`"
        raise transport_error(msg, kind="protocol", code="malformed")
    charset = _charset(answer)
    if charset not in ("utf-8", "utf8", "us-ascii"):
        return read_json(replace(answer, body=_text_of(answer).encode()))
    try:
        return read_json(answer)
    except TransportError as error:
        if b"\n" in answer.body.strip() and _is_json_line(answer.body.lstrip().partition(b"\n")[0]):
            message = f"{error.error.message}; its first line is JSON of its own: write `stream: ndjson`"
            raise transport_error(message, kind="protocol", code="malformed") from None
        raise


def _is_json_line(line: bytes) -> bool:
    try:
        return isinstance(parse_json(line), (dict, list))
    except FormatError:
        return False


def _read_value(
    value: Any, settings: ReplySettings, messages: Sequence[Message], answer: HttpResponse
) -> ProviderResponse:
    values = PointerValues(settings.pointers)
    values.add(value)
    if values.error is not None:
        return agent_failure(values)
    if settings.pointers.tell_answer:
        response = replace(read_pointed(values, messages, value), raw_response=value)
        return with_shape(add_pointed(response, values), "reply")
    detected = detect_reply(value, messages)
    if detected.response.error is not None and (known := _known_failure(value, answer)) is not None:
        return with_shape(known, detected.shape)
    response = add_pointed(detected.response, values)
    if detected.shape == UNKNOWN_SHAPE:
        response = replace(response, warnings=(f"{UNKNOWN}: {text_pointer_hint(value)}",))
    return with_shape(response, detected.shape)


def _known_failure(value: Any, answer: HttpResponse) -> ProviderResponse | None:
    """Return the failure for an error with a name that model vendors use, such as `overloaded_error`."""
    error = value.get("error") if isinstance(value, dict) else None
    names = [error.get(key) for key in ("type", "code")] if isinstance(error, dict) else []
    if not any(isinstance(name, str) for name in names):
        return None
    response = failure_in_stream({"error": error}, answer, f"{answer.url} answered {answer.status} with an error")
    # Errors without a known name are classified as `server_error`.
    is_known = response.error is not None and response.error.code != "server_error"
    return response if is_known or {"server_error", "api_error"} & {str(name) for name in names} else None


def agent_failure(values: PointerValues) -> ProviderResponse:
    """Return the failure that `reply.error` points to."""
    response = ProviderResponse(success=False, error=error_of(values.error, values.pointers.error))
    return with_shape(replace(response, thread_id=values.thread_id), "reply")


def _read_text(answer: HttpResponse, settings: ReplySettings, messages: Sequence[Message]) -> ProviderResponse:
    """Read plain text, or JSON that is declared as text."""
    text = _text_of(answer)
    value = _json_in(text)
    if answer.is_cut and value is None and text.lstrip()[:1] in ("{", "["):
        raise cut_body_error(answer)
    if value is not None:
        response = _read_value(value, settings, messages, answer)
        kind = answer.content_type or "nothing of its type"
        return replace(
            response, warnings=(*response.warnings, f"the endpoint says {kind} and sent JSON, which is read")
        )
    if settings.pointers.tell_answer:
        kind = answer.content_type or "nothing of its type"
        msg = f"`reply` points into JSON, and the endpoint sent {kind}: leave it out to take the text as the answer"
        raise FormatError(msg)
    response = with_shape(read_reply(text, messages), "text/plain")
    return with_cut_end(response, "the compressed reply ended early") if answer.is_cut else response


def _json_in(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return parse_json(text)
    except FormatError:
        return None


def with_shape(response: ProviderResponse, shape: str) -> ProviderResponse:
    """Return the reply with the detected format in its metadata."""
    metadata = dict(response.metadata or {})
    if "shape" in metadata:  # set by the agent
        metadata["shape_"] = metadata["shape"]
    return replace(response, metadata={**metadata, "shape": shape})


def _charset(answer: HttpResponse) -> str:
    for part in answer.headers.get("content-type", "").split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").lower() or "utf-8"
    return "utf-8"


def _text_of(answer: HttpResponse) -> str:
    try:
        text = answer.body.decode(_charset(answer), "replace")
    except (LookupError, ValueError):  # an unknown charset, or one that is no text encoding
        text = answer.body.decode("utf-8", "replace")
    return scrub_text(text.removeprefix("\ufeff"))
