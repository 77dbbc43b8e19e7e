"""Read the output of a program as a reply, or as JSON LineBuffer of replies."""

import re
import signal
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.incomplete import NOT_FOUND
from agentv.formats.reader import TEXT_SHAPE, detect_reply, looks_like_reply, read_reply
from agentv.formats.response import REPLY_KEYS
from agentv.jsonio import parse_json, scrub_text
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, ResponseError, Unread
from agentv.process import ProcessResult
from agentv.process.pipes import OutputLine
from agentv.providers.base import failure
from agentv.redaction import WINDOW, shorten, shorten_start

_MAX_LAST_LINES = 1_000
_REQUEST = frozenset(("input_messages", "new_messages", "turn", "conversation_id"))
"""Fields of a request that distinguish it from a reply of any other program."""
TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h


class ProgramOutput(NamedTuple):
    """Output of a program."""

    data: bytes
    truncated: bool
    place: str = "stdout"


def read_exit(
    done: ProcessResult, printed: ProgramOutput | FormatError, limit: int, messages: Sequence[Message]
) -> ProviderResponse:
    """Return the reply of a program that has ended; `printed` is an error if its output could not be read."""
    try:
        if isinstance(printed, FormatError):
            raise printed
        response = read_printed(printed, limit, messages)
        own_error = response.error
    except FormatError as error:
        response, own_error = failure("protocol", str(error)), None
    if response.latency_ms is None:
        response = replace(response, latency_ms=round(done.duration_s * 1000, 3))
    if done.exit_code == 0:
        return response
    ending = describe_exit(done)
    if own_error is not None:
        return replace(response, success=False, error=replace(own_error, message=f"{own_error.message} ({ending})"))
    words = last_lines(done.stderr) or last_lines(done.stdout)
    message = f"the program ended with {ending}" + (f": {words}" if words else " and printed nothing")
    exit_error = ResponseError(kind="agent", message=message, retryable=done.exit_code == TRY_AGAIN)
    return replace(response, success=False, error=exit_error)


def read_printed(printed: ProgramOutput, limit: int, messages: Sequence[Message]) -> ProviderResponse:
    """Read the output of a program as a reply; raise `FormatError` if it is empty or incomplete."""
    text = scrub_text(printed.data.decode("utf-8", "replace").removeprefix("\ufeff"))
    if not text.strip():
        msg = "the program printed nothing: its reply is expected on stdout"
        raise FormatError(msg)
    if printed.truncated:
        cut = f"{printed.place} was longer than {limit:,} bytes and its middle was left out: raise `max_output_bytes`"
        if looks_like_reply(text):
            msg = f"the reply is cut off: {cut}"
            raise FormatError(msg)
        place = Unread(path="text", reason=f"{cut}, {NOT_FOUND}")
        return ProviderResponse(text=text.rstrip("\r\n"), warnings=(cut,), incomplete=(place,))
    shape, response = detect_reply(_without_request(text.rstrip("\r\n")), messages)
    overlooked = _overlooked_reply(text, printed.place) if shape == TEXT_SHAPE else ()
    return replace(response, warnings=(*response.warnings, *overlooked)) if overlooked else response


def _without_request(text: str) -> Any:
    """Return the output, parsed if it is a reply that contains the request, too."""
    if '"conversation_id"' not in text or '"new_messages"' not in text or not text.lstrip().startswith("{"):
        return text
    try:
        value = parse_json(text)
    except FormatError:
        return text
    return _drop_request(value) if isinstance(value, dict) and _REQUEST.issubset(value) else text


def _drop_request(value: dict[str, Any]) -> dict[str, Any]:
    """Return a reply without the request that a program sent back with it: the messages there are not new."""
    if not _REQUEST.issubset(value):
        return value
    return {
        key: field for key, field in value.items() if key not in (*_REQUEST, "case_id", "vars", "attempt", "resume")
    }


def _overlooked_reply(text: str, place: str) -> tuple[str, ...]:
    """Return a warning if the last line is a reply and other output precedes it."""
    if not looks_like_reply(text.rstrip().rpartition("\n")[2]):
        return ()
    return (f"the last line on {place} looks like a reply, but more stands before it: print logs to stderr",)


def last_lines(printed: bytes) -> str:
    """Return the end of the output of a program, from the beginning of a line if possible."""
    text = scrub_text(printed[-4 * (_MAX_LAST_LINES + WINDOW) :].decode("utf-8", "replace")).strip()
    end = shorten_start(text, _MAX_LAST_LINES)
    return end if end is text else "…" + (end.partition("\n")[2] or end[1:])


def describe_exit(done: ProcessResult) -> str:
    """Describe the exit status of a program."""
    return f"exit code {done.exit_code}" if done.exit_code is not None else _signal_name(done.signal or 0)


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # a realtime signal
        return f"signal {number}"


_MAX_QUOTED = 60
_ID_FIRST = re.compile(rb'\{\s*"id"\s*:\s*("(?:[^"\\]|\\.)*")')
"""Object whose first key is `id`; an `id` further on may be that of a call."""


class Record(NamedTuple):
    """Content of a line of output."""

    id: str | None = None
    """Id of the request; `None` if the line has none."""
    response: ProviderResponse | None = None
    """Reply; `None` if the line is none."""
    remark: str = ""
    """Problem with the line, as a sentence that names it."""
    lacks_id: bool = False
    """True if it has only fields of a reply, unlike a line of a log, but no id."""


MessagesOf = Callable[[str], Sequence[Message]]
"""Returns the messages of the request with this id."""


def read_record(line: OutputLine, place: str, limit: int, messages: MessagesOf) -> Record:
    """Read a line; its problems are part of the record."""
    where = f"line {line.number:,} of {place}"
    if line.is_cut:
        return _broken(line, f"{where} is longer than {limit:,} bytes: raise `max_output_bytes`")
    try:
        value = parse_json(line.data)
    except FormatError as error:
        if not line.data.startswith(b"{"):
            return _no_reply(line, where)
        if not line.is_whole:  # the program ended while it wrote the line
            return Record(remark=f"{where} breaks off: {quote_line(line.data)}")
        return _broken(line, f"{where} cannot be read: {error}")
    return _read_object(value, line, where, messages) if isinstance(value, dict) else _no_reply(line, where)


def _read_object(value: dict[str, Any], line: OutputLine, where: str, messages: MessagesOf) -> Record:
    wire_id = value.pop("id", None)
    if isinstance(wire_id, int) and not isinstance(wire_id, bool):
        wire_id = str(wire_id)
    if not isinstance(wire_id, str):
        remark = f"{where} has no `id`, so it cannot be assigned to a request: {quote_line(line.data)}"
        return Record(remark=remark, lacks_id=bool(value) and value.keys() <= set(REPLY_KEYS))
    value.pop("case_id", None)
    return Record(wire_id, read_reply(_drop_request(value), messages(wire_id)))


def _no_reply(line: OutputLine, where: str) -> Record:
    return Record(remark=f"{where} is no reply: {quote_line(line.data)}; print logs to stderr")


def _broken(line: OutputLine, remark: str) -> Record:
    """Return the record of a line that is invalid JSON, with its id if that can be read."""
    wire_id = _ID_FIRST.match(line.data)
    if wire_id is None:
        return Record(remark=remark)
    try:
        return Record(str(parse_json(wire_id[1])), failure("protocol", remark))
    except FormatError:
        return Record(remark=remark)


def quote_line(data: bytes) -> str:
    """Return the beginning of a line, for messages."""
    return repr(shorten(scrub_text(data[: 4 * (_MAX_QUOTED + WINDOW)].decode("utf-8", "replace")), _MAX_QUOTED))
