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
from agentv.providers.cli.command import IN_WORKSPACE, CommandTemplate, RequestIds, request_json, start_failure
from agentv.providers.cli.output import TRY_AGAIN, describe_exit, last_lines, read_record
from agentv.providers.cli.workspace import Workspace, workspace

_CHUNK = 1 << 18
_MAX_REMARKS = 5
_FILES = ("requests.jsonl", "replies.jsonl")


class BatchRunner:
    """Session of `mode: batch`."""

    def __init__(self, template: CommandTemplate) -> None:
        self._template = template
        self._suspects: set[tuple[str, int]] = set()
        """Cases at which the program ended without a reply: each gets its own process, so that it affects no other."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """Run the program for a single request."""
        return (await self.invoke_many([request]))[0]

    async def close(self) -> None:
        """Do nothing."""

    async def invoke_many(self, requests: Sequence[Request]) -> list[ProviderResponse]:
        """Return one reply for each request; on cancellation, nothing is left running."""
        replies_by_id: dict[int, ProviderResponse] = {}
        for group in self._group_requests(requests):
            try:
                replies = await self._invoke_group([requests[at] for at in group])
            except asyncio.CancelledError as error:
                # Keep the replies that arrived in time.
                received = getattr(error, REPLIES, {})
                setattr(error, REPLIES, replies_by_id | {group[at]: reply for at, reply in received.items()})
                raise
            replies_by_id |= dict(zip(group, replies, strict=True))
        return [replies_by_id[at] for at in range(len(requests))]

    def _group_requests(self, requests: Sequence[Request]) -> list[list[int]]:
        """Group requests by the processes that they are sent to."""
        alone = [[at] for at, request in enumerate(requests) if _key(request) in self._suspects]
        together = [at for at, request in enumerate(requests) if _key(request) not in self._suspects]
        return [*alone, together] if together else alone

    async def _invoke_group(self, requests: Sequence[Request]) -> list[ProviderResponse]:
        ids = RequestIds()
        requests_by_id = {ids.make(request.id): request for request in requests}
        try:
            with workspace(*_FILES) if self._template.used & IN_WORKSPACE else nullcontext() as folder:
                responses = await self._run(requests_by_id, folder)
                # Before the workspace is removed.
                return responses if folder is None else list(map(folder.fetch_trace, responses))
        except FormatError as error:
            return [failure("protocol", str(error))] * len(requests)
        except OSError as error:
            return [failure("transport", f"the workspace cannot be used: {error}")] * len(requests)

    async def _run(self, requests_by_id: dict[str, Request], folder: Workspace | None) -> list[ProviderResponse]:
        used, limit = self._template.used, self._template.max_output_bytes
        command = self._command(requests_by_id, folder)
        replies = Replies(requests_by_id, "stdout", limit)
        pipe = InteractivePipe(replies.lines.feed)
        pipe.close_stdin()
        try:
            done = await run(command, pipe)
        except OSError as error:
            return [start_failure(error, command)] * len(requests_by_id)
        except asyncio.CancelledError as error:
            if replies.replies_by_id:
                received = f"{len(replies.replies_by_id):,} of {len(requests_by_id):,} replies had come"
                error.add_note(f"{received}: the time is for the whole batch; allow more, or lower `batch_size`")
                places = {wire_id: at for at, wire_id in enumerate(requests_by_id)}
                in_time = {places[wire_id]: reply.response for wire_id, reply in replies.replies_by_id.items()}
                setattr(error, REPLIES, in_time)
            raise
        replies.lines.end()
        file = folder.open_output() if folder is not None and "output_file" in used else None
        if file is not None:
            with file:
                replies = await _read_file(file, requests_by_id, limit) or replies
        return self._responses(requests_by_id, replies, done)

    def _command(self, requests_by_id: dict[str, Request], folder: Workspace | None) -> Command:
        lines = b"".join(request_json(request, wire_id) for wire_id, request in requests_by_id.items())
        if folder is None:
            return self._template.make({}, lines)
        if "input_file" in self._template.used:
            folder.write_input(lines)
            lines = b""
        return self._template.make({name: getattr(folder, name) for name in IN_WORKSPACE}, lines)

    def _responses(
        self, requests_by_id: dict[str, Request], replies: "Replies", done: ProcessResult
    ) -> list[ProviderResponse]:
        missing = [request for wire_id, request in requests_by_id.items() if wire_id not in replies.replies_by_id]
        self._suspects.difference_update(_key(requests_by_id[wire_id]) for wire_id in replies.replies_by_id)
        if missing:
            self._suspects.add(_key(missing[0]))
            why = _missing_reply(replies, done, len(requests_by_id))
            return [
                replies.replies_by_id[wire_id].response if wire_id in replies.replies_by_id else why
                for wire_id in requests_by_id
            ]
        first, *others = [replies.replies_by_id[wire_id].response for wire_id in requests_by_id]
        remarks = replies.remarks
        if done.exit_code != 0:
            remarks = (f"the program ended with {_ending(done)}", *remarks)
        # They concern no particular case, so the first reply carries them.
        return [replace(first, warnings=(*first.warnings, *remarks)) if remarks else first, *others]


class FoundReply(NamedTuple):
    """Reply and the number of its line."""

    response: ProviderResponse
    line: int


class Replies:
    """Replies that a program has printed so far."""

    def __init__(self, requests_by_id: dict[str, Request], place: str, limit: int) -> None:
        self._asked = requests_by_id
        self._place = place
        self._limit = limit
        self.replies_by_id: dict[str, FoundReply] = {}
        self._remarks: list[str] = []
        self._omitted = 0
        self.lines = LineSplitter(limit, self._on_line)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks about lines that are no reply to any request."""
        more = (f"{self._omitted:,} more lines are nobody's either",) if self._omitted else ()
        return (*self._remarks, *more)

    def _on_line(self, line: OutputLine) -> None:
        record = read_record(line, self._place, self._limit, self._messages_of)
        if record.id is None or record.response is None:
            self._remark(record.remark)
        elif record.id not in self._asked:
            self._remark(f"line {line.number:,} of {self._place} is a reply to {record.id!r}, which was not asked")
        elif record.id in self.replies_by_id:
            first = self.replies_by_id[record.id].line
            message = f"two replies have the id {record.id!r}: lines {first:,} and {line.number:,} of {self._place}"
            self.replies_by_id[record.id] = FoundReply(failure("protocol", message), first)
        else:
            self.replies_by_id[record.id] = FoundReply(record.response, line.number)

    def _messages_of(self, wire_id: str) -> Sequence[Message]:
        request = self._asked.get(wire_id)
        return () if request is None else request.input_messages

    def _remark(self, words: str) -> None:
        if len(self._remarks) < _MAX_REMARKS:
            self._remarks.append(words)
        else:
            self._omitted += 1


async def _read_file(file: BinaryIO, requests_by_id: dict[str, Request], limit: int) -> Replies | None:
    """Read the replies in a file of any size; return `None` if it is empty."""
    replies = Replies(requests_by_id, "the file at {output_file}", limit)
    is_empty = True
    while data := file.read(_CHUNK):
        is_empty = False
        replies.lines.feed(data)
        await asyncio.sleep(0)  # let other tasks run
    replies.lines.end()
    return None if is_empty else replies


def _missing_reply(replies: Replies, done: ProcessResult, count: int) -> ProviderResponse:
    """Return the failure of a case without a reply, retryable if another case of the batch may be the cause."""
    others = f" ({len(replies.replies_by_id):,} of {count:,} came)" if count > 1 else ""
    nothing = f"no reply for this case{others}"
    if done.exit_code == 0:
        return failure("protocol", "; ".join([f"the program gave {nothing}", *replies.remarks]), retryable=True)
    message = "; ".join([f"{nothing}: the program ended with {_ending(done)}", *replies.remarks])
    return failure("agent", message, retryable=count > 1 or done.exit_code == TRY_AGAIN)


def _ending(done: ProcessResult) -> str:
    words = last_lines(done.stderr)
    return f"{describe_exit(done)}: {words}" if words else describe_exit(done)


def _key(request: Request) -> tuple[str, int]:
    return request.id, request.repeat
