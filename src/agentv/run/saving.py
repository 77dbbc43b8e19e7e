"""What is written of a result: as much as the project keeps of it, with everything secret taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET, json
from msgspec.structs import force_setattr, replace

from agentv.jsonio import dump_json
from agentv.model.attempt import Attempt
from agentv.model.record import ResultRecord
from agentv.model.run import Saved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.event import RunFinished
    from agentv.model.response import ProviderResponse
    from agentv.model.run import Persist
    from agentv.redaction import Redactor

SMALL = 8192
"""Bytes of a result that is nothing out of the ordinary."""
_decode_record = json.Decoder(ResultRecord).decode
_decode_attempts = json.Decoder(tuple[Attempt, ...]).decode


class Finished(NamedTuple):
    """A result that nobody has heard of yet."""

    saved: Saved
    """As it is kept, unless there is something to redact in it."""
    event: RunFinished
    weight: int
    """How much room it takes while it waits, in units of a small result."""
    told: bytes
    """The attempts as JSON; empty where there is nothing in them that anybody else has written."""


def to_save(event: RunFinished, attempts: tuple[Attempt, ...], persist: Persist) -> Finished:
    """A result made ready to be written."""
    record = event.record
    if record.messages is not UNSET or record.trace is not UNSET:
        record = replace(record, messages=UNSET, trace=UNSET)
    line = dump_json(record)
    if record is event.record:
        force_setattr(event, "line", line)  # nobody has seen the event yet, and a file may want the same line
    response = _kept(event.response, persist)
    sides = None if response is None or not any(event.sides) else dump_json(event.sides)
    told = b""
    for one in attempts:
        if one.error is not None or one.thread_id is not None:
            told = dump_json(attempts)
            break
    key = record.run_id.rpartition("-")[2]
    weight = 1 + (len(line) + len(response or b"")) // SMALL
    return Finished(Saved(key, record, line, response, sides, attempts), event, weight, told)


def _kept(response: ProviderResponse, persist: Persist) -> bytes | None:
    """As much of a reply as the project wants to keep."""
    if persist == "summary":
        return None
    if persist == "messages" and (response.raw_response is not None or response.reasoning is not None):
        response = replace(response, raw_response=None, reasoning=None)
    return dump_json(response)


def redacted(finished: Sequence[Finished], redactor: Redactor) -> list[Saved]:
    """The results as they are written, and their lines as files may have them."""
    saved = [item.saved for item in finished]
    parts = [
        *[each.line for each in saved],
        *[each.response or b"" for each in saved],
        *[each.sides or b"" for each in saved],
        *[item.told for item in finished],
    ]
    found = redactor.lines(parts)
    if found is parts:
        return saved
    count = len(finished)
    clean = []
    for at, (item, each) in enumerate(zip(finished, saved, strict=True)):
        line, response, sides, told = found[at::count]
        if item.event.line is not None:
            force_setattr(item.event, "line", line)
        record = each.record if line is each.line else _decode_record(line)
        attempts = each.attempts if told is item.told else _decode_attempts(told)
        clean.append(Saved(each.key, record, line, response or None, sides or None, attempts))
    return clean
