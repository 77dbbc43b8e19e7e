"""Read what a program printed, and how it ended, as a reply."""

import signal
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.reader import TEXT_SHAPE, detect_reply, looks_like_reply
from agentv.jsonio import scrub_text
from agentv.model.message import Message
from agentv.model.response import ProviderResponse, ResponseError
from agentv.process import Finished
from agentv.providers.base import failure

_MAX_LAST_LINES = 1_000
TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h


class Printed(NamedTuple):
    """What a program printed as its reply."""

    data: bytes
    truncated: bool
    place: str = "stdout"


def read_end(done: Finished, printed: Printed | FormatError, limit: int, asked: Sequence[Message]) -> ProviderResponse:
    """The reply of a program that has ended; why it could not be fetched, if it could not."""
    try:
        if isinstance(printed, FormatError):
            raise printed
        response = read_printed(printed, limit, asked)
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


def read_printed(printed: Printed, limit: int, asked: Sequence[Message]) -> ProviderResponse:
    """Read what a program printed as its reply; `FormatError` when there is none."""
    text = scrub_text(printed.data.decode("utf-8", "replace").removeprefix("\ufeff"))
    if not text.strip():
        msg = "the program printed nothing: its reply is expected on stdout"
        raise FormatError(msg)
    if printed.truncated:
        cut = f"{printed.place} was longer than {limit:,} bytes and its middle was left out: raise `max_output_bytes`"
        if looks_like_reply(text):
            msg = f"the reply is cut off: {cut}"
            raise FormatError(msg)
        return ProviderResponse(text=text.rstrip("\r\n"), warnings=(cut,))
    shape, response = detect_reply(text.rstrip("\r\n"), asked)
    overlooked = _overlooked(text, printed.place) if shape == TEXT_SHAPE else ()
    return replace(response, warnings=(*response.warnings, *overlooked)) if overlooked else response


def _overlooked(text: str, place: str) -> tuple[str, ...]:
    """A warning when the last line is a reply and something stands before it."""
    if not looks_like_reply(text.rstrip().rpartition("\n")[2]):
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
