"""`mode: batch`: one process for many requests, a line each, and replies found by their ids."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from typing import BinaryIO, NamedTuple

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.model.conversation import Message
from agentv.model.request import Request
from agentv.model.response import ProviderResponse
from agentv.process import Command, InteractivePipe, ProcessResult, run
from agentv.process.pipes import LineSplitter, OutputLine
from agentv.protocols import REPLIES
from agentv.providers.base import failure
from agentv.providers.cli.command import IN_WORKSPACE, CommandTemplate, WireIds, not_started, request_json
from agentv.providers.cli.output import TRY_AGAIN, ending_of, last_lines, read_record
from agentv.providers.cli.workspace import Workspace, workspace

_CHUNK = 1 << 18
_MAX_REMARKS = 5
_FILES = ("requests.jsonl", "replies.jsonl")


class Batch:
    """A target that is asked many times at once."""

    def __init__(self, launch: CommandTemplate) -> None:
        self._launch = launch
        self._suspects: set[tuple[str, int]] = set()
        """Cases before whose reply the program broke off: each is asked for alone, so that it costs nobody else."""

    async def invoke(self, requests: Sequence[Request]) -> list[ProviderResponse]:
        """One reply for each request; when this is cancelled, nothing is left running."""
        found: dict[int, ProviderResponse] = {}
        for group in self._groups(requests):
            try:
                replies = await self._invoke_group([requests[at] for at in group])
            except asyncio.CancelledError as error:
                # What came in time is not lost with the rest.
                come = error.__dict__.get(REPLIES, {})
                error.__dict__[REPLIES] = found | {group[at]: reply for at, reply in come.items()}
                raise
            found |= dict(zip(group, replies, strict=True))
        return [found[at] for at in range(len(requests))]

    def _groups(self, requests: Sequence[Request]) -> list[list[int]]:
        """Which requests go into one process."""
        alone = [[at] for at, request in enumerate(requests) if _key(request) in self._suspects]
        together = [at for at, request in enumerate(requests) if _key(request) not in self._suspects]
        return [*alone, together] if together else alone

    async def _invoke_group(self, requests: Sequence[Request]) -> list[ProviderResponse]:
        ids = WireIds()
        asked = {ids.make(request.id): request for request in requests}
        try:
            with workspace(*_FILES) if self._launch.used & IN_WORKSPACE else nullcontext() as private:
                responses = await self._run(asked, private)
                # What a reply left in the workspace is gone in a moment.
                return responses if private is None else list(map(private.fetch_trace, responses))
        except FormatError as error:
            return [failure("protocol", str(error))] * len(requests)
        except OSError as error:
            return [failure("transport", f"the workspace cannot be used: {error}")] * len(requests)

    async def _run(self, asked: dict[str, Request], private: Workspace | None) -> list[ProviderResponse]:
        used, limit = self._launch.used, self._launch.max_output_bytes
        command = self._command(asked, private)
        heard = Replies(asked, "stdout", limit)
        pipe = InteractivePipe(heard.lines.feed)
        pipe.close_stdin()
        try:
            done = await run(command, pipe)
        except OSError as error:
            return [not_started(error, command)] * len(asked)
        except asyncio.CancelledError as error:
            if heard.found:
                come = f"{len(heard.found):,} of {len(asked):,} replies had come"
                error.add_note(f"{come}: the time is for the whole batch; allow more, or lower `batch_size`")
                places = {wire_id: at for at, wire_id in enumerate(asked)}
                error.__dict__[REPLIES] = {places[wire_id]: reply.response for wire_id, reply in heard.found.items()}
            raise
        heard.lines.end()
        file = private.open_output() if private is not None and "output_file" in used else None
        if file is not None:
            with file:
                heard = await _read_file(file, asked, limit) or heard
        return self._answers(asked, heard, done)

    def _command(self, asked: dict[str, Request], private: Workspace | None) -> Command:
        lines = b"".join(request_json(request, wire_id) for wire_id, request in asked.items())
        if private is None:
            return self._launch.make({}, lines)
        if "input_file" in self._launch.used:
            private.write_input(lines)
            lines = b""
        return self._launch.make({name: getattr(private, name) for name in IN_WORKSPACE}, lines)

    def _answers(self, asked: dict[str, Request], heard: "Replies", done: ProcessResult) -> list[ProviderResponse]:
        missing = [request for wire_id, request in asked.items() if wire_id not in heard.found]
        self._suspects.difference_update(_key(asked[wire_id]) for wire_id in heard.found)
        if missing:
            self._suspects.add(_key(missing[0]))
            why = _why_missing(heard, done, len(asked))
            return [heard.found[wire_id].response if wire_id in heard.found else why for wire_id in asked]
        first, *others = [heard.found[wire_id].response for wire_id in asked]
        remarks = heard.remarks
        if done.exit_code != 0:
            remarks = (f"the program ended with {_ending(done)}", *remarks)
        # They concern no case in particular, and to be told once is enough.
        return [replace(first, warnings=(*first.warnings, *remarks)) if remarks else first, *others]


class FoundReply(NamedTuple):
    """A reply, and where it was."""

    response: ProviderResponse
    line: int


class Replies:
    """What a program answered so far."""

    def __init__(self, asked: dict[str, Request], place: str, limit: int) -> None:
        self._asked = asked
        self._place = place
        self._limit = limit
        self.found: dict[str, FoundReply] = {}
        self._remarks: list[str] = []
        self._unsaid = 0
        self.lines = LineSplitter(limit, self._take)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is wrong with lines that are nobody's."""
        more = (f"{self._unsaid:,} more lines are nobody's either",) if self._unsaid else ()
        return (*self._remarks, *more)

    def _take(self, line: OutputLine) -> None:
        record = read_record(line, self._place, self._limit, self._messages_of)
        if record.id is None or record.response is None:
            self._remark(record.remark)
        elif record.id not in self._asked:
            self._remark(f"line {line.number:,} of {self._place} is a reply to {record.id!r}, which was not asked")
        elif record.id in self.found:
            first = self.found[record.id].line
            message = f"two replies have the id {record.id!r}: lines {first:,} and {line.number:,} of {self._place}"
            self.found[record.id] = FoundReply(failure("protocol", message), first)
        else:
            self.found[record.id] = FoundReply(record.response, line.number)

    def _messages_of(self, wire_id: str) -> Sequence[Message]:
        request = self._asked.get(wire_id)
        return () if request is None else request.input_messages

    def _remark(self, words: str) -> None:
        if len(self._remarks) < _MAX_REMARKS:
            self._remarks.append(words)
        else:
            self._unsaid += 1


async def _read_file(file: BinaryIO, asked: dict[str, Request], limit: int) -> Replies | None:
    """The replies in a file of any size; `None` when it is empty."""
    heard = Replies(asked, "the file at {output_file}", limit)
    is_empty = True
    while data := file.read(_CHUNK):
        is_empty = False
        heard.lines.feed(data)
        await asyncio.sleep(0)  # others have their turn
    heard.lines.end()
    return None if is_empty else heard


def _why_missing(heard: Replies, done: ProcessResult, count: int) -> ProviderResponse:
    """The reply of a case that got none, which may be the fault of another one unless it was asked for alone."""
    others = f" ({len(heard.found):,} of {count:,} came)" if count > 1 else ""
    nothing = f"no reply for this case{others}"
    if done.exit_code == 0:
        return failure("protocol", "; ".join([f"the program gave {nothing}", *heard.remarks]), retryable=True)
    message = "; ".join([f"{nothing}: the program ended with {_ending(done)}", *heard.remarks])
    return failure("agent", message, retryable=count > 1 or done.exit_code == TRY_AGAIN)


def _ending(done: ProcessResult) -> str:
    words = last_lines(done.stderr)
    return f"{ending_of(done)}: {words}" if words else ending_of(done)


def _key(request: Request) -> tuple[str, int]:
    return request.id, request.repeat
