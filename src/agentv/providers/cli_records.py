"""One line of a program that answers many requests: whose reply it is, or why it is none."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from agentv.errors import FormatError
from agentv.formats.reader import read_reply
from agentv.formats.response import REPLY_KEYS
from agentv.jsonio import parse_json, scrub_text
from agentv.model.message import Message
from agentv.model.response import ProviderResponse
from agentv.process.lines import Line
from agentv.providers.base import failure

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


def read_record(line: Line, place: str, limit: int, asked: Asked) -> Record:
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


def _read_object(value: dict[str, Any], line: Line, where: str, asked: Asked) -> Record:
    found = value.pop("id", None)
    if isinstance(found, int) and not isinstance(found, bool):
        found = str(found)
    if not isinstance(found, str):
        remark = f"{where} has no `id`, so nobody can tell whose reply it is: {shown(line.data)}"
        return Record(remark=remark, lacks_id=bool(value) and value.keys() <= set(REPLY_KEYS))
    value.pop("case_id", None)  # a program may send back all it was told
    return Record(found, read_reply(value, asked(found)))


def _noise(line: Line, where: str) -> Record:
    return Record(remark=f"{where} is no reply: {shown(line.data)}; print logs to stderr")


def _broken(line: Line, remark: str) -> Record:
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
