"""What a program printed, read as a reply.

- An object with one of the reply's keys is a reply, a list of objects with a `role` is its messages.
- Any other JSON is the answer: its text as it stands, and the value as `raw_response`.
- What begins like a reply and is not JSON is an error: half a reply must not pass for an answer.
- Everything else is plain text. Markdown that begins with `[` is, too.
"""

import re
import signal
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.response import decode_response
from agentv.jsonio import parse_json, scrub_text
from agentv.model.response import ProviderResponse, ResponseError
from agentv.process import Finished
from agentv.providers.base import failure

REPLY_ONLY = (
    *(name for name in ProviderResponse.__struct_fields__ if name not in ("metadata", "warnings")),
    *("messages", "outputMessages", "usage", "tokensUsage", "raw", "rawResponse"),
    *("traceRef", "traceSummary", "threadId", "latencyMs", "costUsd"),
)
"""What only a reply has; things of any kind have metadata and warnings."""
_ROLES = ("assistant", "user", "system", "tool", "developer", "function", "model", "ai", "human")
_REPLY = re.compile(rf'\{{\s*"(?:[^{{]*?")?(?:{"|".join(REPLY_ONLY)})"\s*:')
_MESSAGES = re.compile(rf'\[\s*\{{[^{{]*?"(?:role|type)"\s*:\s*"(?:{"|".join(_ROLES)})"')
_LOOKED_AT = 10_000
"""Characters from the beginning in which a reply shows its first keys."""
_MAX_LAST_LINES = 1_000
TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h


class Printed(NamedTuple):
    """What a program printed as its reply."""

    data: bytes
    truncated: bool
    place: str = "stdout"


def read_end(done: Finished, printed: Printed | FormatError, limit: int) -> ProviderResponse:
    """The reply of a program that has ended; why it could not be fetched, if it could not."""
    try:
        if isinstance(printed, FormatError):
            raise printed
        response = read_reply(printed, limit)
        own = response.error
    except FormatError as error:
        response, own = failure("protocol", str(error)), None
    if response.latency_ms is None:
        response = replace(response, latency_ms=round(done.duration_s * 1000, 3))
    if done.exit_code == 0:
        return response
    ending = ending_of(done)
    if own is not None:
        return replace(response, success=False, error=replace(own, message=f"{own.message} ({ending})"))
    words = last_lines(done.stderr) or last_lines(done.stdout)
    message = f"the program ended with {ending}" + (f": {words}" if words else " and printed nothing")
    why = ResponseError(kind="agent", message=message, retryable=done.exit_code == TRY_AGAIN)
    return replace(response, success=False, error=why)


def read_reply(printed: Printed, limit: int) -> ProviderResponse:
    """The reply in what a program printed, or `FormatError` when there is none."""
    text = scrub_text(printed.data.decode("utf-8", "replace").removeprefix("\ufeff"))
    if not text.strip():
        msg = "the program printed nothing: its reply is expected on stdout"
        raise FormatError(msg)
    if not printed.truncated:
        return _read(text, printed.place)
    cut = f"{printed.place} was longer than {limit:,} bytes and its middle was left out: raise `max_output_bytes`"
    if _looks_like_reply(text):
        msg = f"the reply is cut off: {cut}"
        raise FormatError(msg)
    return ProviderResponse(text=text.rstrip("\r\n"), warnings=(cut,))


def _read(text: str, place: str) -> ProviderResponse:
    if text.lstrip()[0] in "{[":
        try:
            value = parse_json(text)
        except FormatError as error:
            if _looks_like_reply(text):
                msg = f"the reply on {place} cannot be read: {error}; it must be one JSON value and nothing else"
                raise FormatError(msg) from None
        else:
            return _read_json(value, text)
    return ProviderResponse(text=text.rstrip("\r\n"), warnings=_overlooked(text, place))


def _read_json(value: Any, text: str) -> ProviderResponse:
    if isinstance(value, dict) and not value.keys().isdisjoint(REPLY_ONLY):
        return read_fields(value)
    if isinstance(value, list) and any(map(_is_message, value)):
        return decode_response(value)
    return ProviderResponse(text=text.strip(), raw_response=value)


def read_fields(value: dict[str, Any]) -> ProviderResponse:
    """A reply from its fields, with a warning when it says nothing."""
    response = decode_response(value)
    if response.success and not (response.text or response.output_messages or response.trace or response.trace_ref):
        warning = "the reply has neither `text` nor `output_messages`"
        return replace(response, warnings=(*response.warnings, warning))
    return response


def _is_message(item: Any) -> bool:
    return isinstance(item, dict) and (item.get("role") in _ROLES or item.get("type") in _ROLES)


def _looks_like_reply(text: str) -> bool:
    beginning = text.lstrip()[:_LOOKED_AT]
    return bool(_REPLY.match(beginning) or _MESSAGES.match(beginning))


def _overlooked(text: str, place: str) -> tuple[str, ...]:
    """A warning when the last line is a reply and something stands before it."""
    if not _looks_like_reply(text.rstrip().rpartition("\n")[2]):
        return ()
    return (f"the last line on {place} looks like a reply, but more stands before it: print logs to stderr",)


def last_lines(printed: bytes) -> str:
    """The end of what a program printed, from the beginning of a line if it can be."""
    text = scrub_text(printed[-4 * _MAX_LAST_LINES :].decode("utf-8", "replace")).strip()
    if len(text) <= _MAX_LAST_LINES:
        return text
    end = text[-_MAX_LAST_LINES:]
    return "…" + (end.partition("\n")[2] or end)


def ending_of(done: Finished) -> str:
    """How a program ended, in words."""
    return f"exit code {done.exit_code}" if done.exit_code is not None else _signal_name(done.signal or 0)


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # a realtime signal
        return f"signal {number}"
