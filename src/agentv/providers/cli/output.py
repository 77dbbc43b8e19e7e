"""Read the output of a program as a reply, or as JSON Lines of replies."""

import re
import signal
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.reader import TEXT_SHAPE, detect_reply, looks_like_reply, read_reply
from agentv.formats.response import REPLY_KEYS
from agentv.jsonio import parse_json, scrub_text
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, ResponseError
from agentv.process import ProcessResult
from agentv.process.pipes import OutputLine
from agentv.providers.base import failure

_MAX_LAST_LINES = 1_000
TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h


class Printed(NamedTuple):
    """What a program printed as its reply."""

    data: bytes
    truncated: bool
    place: str = "stdout"


def read_end(
    done: ProcessResult, printed: Printed | FormatError, limit: int, asked: Sequence[Message]
) -> ProviderResponse:
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


def ending_of(done: ProcessResult) -> str:
    """How a program ended, in words."""
    return f"exit code {done.exit_code}" if done.exit_code is not None else _signal_name(done.signal or 0)


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # a realtime signal
        return f"signal {number}"


_SHOWN = 60
_ID_FIRST = re.compile(rb'\{\s*"id"\s*:\s*("(?:[^"\\]|\\.)*")')
"""An object that names its id before all else; further on, an id may be that of a call."""


class Record(NamedTuple):
    """What a line is."""

    id: str | None = None
    """Whose it is; `None` when it does not say."""
    response: ProviderResponse | None = None
    """`None` when it is no reply."""
    remark: str = ""
    """What is wrong with it, in a sentence that names the line."""
    lacks_id: bool = False
    """Whether it is a reply in all but that: nothing in it but a reply's fields, as no line of a log has."""


Asked = Callable[[str], Sequence[Message]]
"""Gives the messages of the request with this id."""


def read_record(line: OutputLine, place: str, limit: int, asked: Asked) -> Record:
    """Read a line; whatever is wrong with it stays with it."""
    where = f"line {line.number:,} of {place}"
    if line.is_cut:
        return _broken(line, f"{where} is longer than {limit:,} bytes: raise `max_output_bytes`")
    try:
        value = parse_json(line.data)
    except FormatError as error:
        if not line.data.startswith(b"{"):
            return _noise(line, where)
        if not line.is_whole:  # the program ended in the middle of it, which is not the reply's fault
            return Record(remark=f"{where} breaks off: {shown(line.data)}")
        return _broken(line, f"{where} cannot be read: {error}")
    return _read_object(value, line, where, asked) if isinstance(value, dict) else _noise(line, where)


def _read_object(value: dict[str, Any], line: OutputLine, where: str, asked: Asked) -> Record:
    found = value.pop("id", None)
    if isinstance(found, int) and not isinstance(found, bool):
        found = str(found)
    if not isinstance(found, str):
        remark = f"{where} has no `id`, so nobody can tell whose reply it is: {shown(line.data)}"
        return Record(remark=remark, lacks_id=bool(value) and value.keys() <= set(REPLY_KEYS))
    value.pop("case_id", None)  # a program may send back all it was told
    return Record(found, read_reply(value, asked(found)))


def _noise(line: OutputLine, where: str) -> Record:
    return Record(remark=f"{where} is no reply: {shown(line.data)}; print logs to stderr")


def _broken(line: OutputLine, remark: str) -> Record:
    """A line that is no JSON, with its id if that can be made out."""
    found = _ID_FIRST.match(line.data)
    if found is None:
        return Record(remark=remark)
    try:
        return Record(str(parse_json(found[1])), failure("protocol", remark))
    except FormatError:
        return Record(remark=remark)


def shown(data: bytes) -> str:
    """How a line begins, for messages about it."""
    text = scrub_text(data[: 4 * _SHOWN].decode("utf-8", "replace"))
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
