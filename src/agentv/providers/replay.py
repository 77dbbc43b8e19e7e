"""`replay`: recorded replies, recorded conversations and stored runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.files import find_in_root, read_in_root
from agentv.formats.conversation import last_assistant_text
from agentv.formats.fields import MISSING_CALLS
from agentv.formats.incomplete import mark_incomplete
from agentv.formats.reader import decode_response, read_reply
from agentv.formats.response import CONTENT_KEYS, LIST_KEYS, REPLY_KEYS
from agentv.jsonio import MAX_BYTES, parse_json
from agentv.model.conversation import may_have_gap
from agentv.model.response import ProviderResponse, Unread
from agentv.providers.base import ProviderBase, failure
from agentv.scoring.calls import trace_warnings
from agentv.scoring.turns import split_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentv.model.conversation import Message
    from agentv.model.request import Request, Scope

EXPORTED_RUN = "agentv.run/"
"""Beginning of the schema of an exported run."""
_NO_MESSAGES = "the turns of this result have no messages: write it with `--include-messages`"
_SOME_CALLS = Unread(path="reply", reason=f"the recorded turn has not all of its calls, {MISSING_CALLS}")


def read_recording(data: Any, request: Request, *, has_gaps: bool) -> ProviderResponse:
    """Read the recorded reply to a request, in any shape; an `id` that names the case is no part of it.

    With `has_gaps` it may have been written without its secrets. Raise `FormatError` if it cannot be one.
    """
    response = _read(_plain_recording(data, request), request)
    return mark_incomplete(response) if has_gaps else response


def _read(data: Any, request: Request) -> ProviderResponse:
    turns = _turns_of(data)
    if not request.is_conversation:
        if turns is not None and (isinstance(data, Mapping) or not all(isinstance(turn, str) for turn in turns)):
            count = f"a conversation of {len(turns)} turn{'s' * (len(turns) != 1)}"
            return failure("protocol", f"the recording of case {request.id!r} is {count}, and the case has none")
        return read_reply(data, request.input_messages)
    if turns is None:
        turns = _split_by_user(data, request) or [data]
    if request.turn > len(turns):
        count = f"{len(turns)} turn{'s' * (len(turns) != 1)}"
        return failure("protocol", f"the recording of case {request.id!r} has {count}, and no turn {request.turn}")
    turn = turns[request.turn - 1]
    return turn if isinstance(turn, ProviderResponse) else read_reply(turn, request.input_messages)


def _plain_recording(data: Any, request: Request) -> Any:
    """Return the reply in a recording: without the id of its case, and of an exported run the part of the agent."""
    if not isinstance(data, Mapping):
        return data
    schema, response = data.get("schema"), data.get("response")
    if isinstance(schema, str) and schema.startswith(EXPORTED_RUN) and isinstance(response, Mapping):
        start, end = data.get("output_from"), data.get("output_to")
        if isinstance(start, int) and isinstance(end, int):
            return {**response, "output_messages": (data.get("messages") or [])[start:end]}
        return response
    named = [key for key in ("id", "case_id") if str(data.get(key)) == request.id]
    return {key: value for key, value in data.items() if key not in named} if named else data


def _turns_of(data: Any) -> list[Any] | None:
    """Return the replies of the turns of a conversation; `None` if the recording does not separate turns."""
    if isinstance(data, list):
        return data if data and all(map(_is_reply, data)) else None
    turns = data.get("turns") if isinstance(data, Mapping) else None
    if not isinstance(turns, list) or not turns:
        return None
    if all(isinstance(turn, Mapping) and "first_message" in turn for turn in turns):
        if all("response" in turn for turn in turns):
            return [exchange.response for exchange in split_turns(decode_response(data))]
        return _turns_of_result(data, turns)
    return turns if all(isinstance(turn, (str, list)) or _is_raw_reply(turn) for turn in turns) else None


def _is_reply(value: Any) -> bool:
    """Return whether an item of a list is a reply in our own form; lists of other items are one reply of a library."""
    if isinstance(value, Mapping):
        return any(key in value for key in CONTENT_KEYS) and value.keys() <= set(REPLY_KEYS)
    return isinstance(value, str)


def _is_raw_reply(value: Any) -> bool:
    """Return whether an item of `turns` is a reply of any format, and no message of a transcript."""
    return isinstance(value, Mapping) and ("role" not in value or value.get("type") == "message")


def _turns_of_result(data: Mapping[str, Any], turns: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the replies of the turns of a result record, whose messages are those of the whole conversation."""
    messages = data.get("messages")
    if not isinstance(messages, list):
        raise FormatError(_NO_MESSAGES)
    replies: list[Any] = []
    for turn in turns:
        part = messages[turn["first_message"] : turn["last_message"] + 1]
        known = {key: turn.get(key) for key in ("tokens_usage", "cost_usd", "latency_ms")}
        reply = {**known, "thread_id": data.get("thread_id"), "output_messages": part}
        replies.append(_without_user(decode_response(reply), is_known=turn.get("calls") is not None))
    if isinstance(data.get("error"), Mapping):
        failed = decode_response({"error": data["error"]})
        replies[-1] = replace(replies[-1], success=False, error=failed.error)
    return replies


def _without_user(response: ProviderResponse, *, is_known: bool) -> ProviderResponse:
    """Return the part of the agent of a turn; without messages if the agent sent a text only."""
    messages = list(response.output_messages or ())
    while messages and messages[0].role == "user":
        messages.pop(0)
    text = last_assistant_text(tuple(messages))
    if is_known:
        return replace(response, text=text, output_messages=tuple(messages))
    if any(message.tool_calls for message in messages):
        return replace(response, text=text, output_messages=tuple(messages), unread=(*response.unread, _SOME_CALLS))
    return replace(response, text=text, output_messages=None)


def _split_by_user(data: Any, request: Request) -> list[Any] | None:
    """Return the messages after each message of the user; `None` if the recording has none."""
    found = [data[key] for key in LIST_KEYS if key in data] if isinstance(data, Mapping) else [data]
    if not found or not isinstance(found[0], list):
        return None
    messages = decode_response({"output_messages": found[0]}).output_messages or ()
    starts = [at for at, message in enumerate(messages) if message.role == "user"]
    if not starts:
        return None
    ends = [*starts[1:], len(messages)]
    parts = [messages[start + 1 : end] for start, end in zip(starts, ends, strict=True)]
    earlier = _users_before(request)
    is_with_history = earlier and messages[starts[0]].text == _first_user(request.input_messages)
    return [
        ProviderResponse(text=last_assistant_text(part), output_messages=part)
        for part in (parts[earlier:] if is_with_history else parts)
    ]


def _users_before(request: Request) -> int:
    """Return the number of messages of the user in the history of a conversation, before its first turn."""
    users = sum(message.role == "user" for message in request.input_messages)
    return max(users - request.turn, 0)


def _first_user(messages: Sequence[Message]) -> str:
    return next((message.text for message in messages if message.role == "user"), "")


class StoredReplies:
    """Provider whose replies are those of stored runs, found by case and repetition."""

    is_live = False
    executes = False
    retries = 0
    """A stored failure does not change by being read again."""
    replies_with_runs = True

    def __init__(self, find: Callable[[Request], ProviderResponse | None]) -> None:
        self._find = find

    async def open(self, scope: Scope) -> None:
        """Do nothing."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the stored reply."""
        response = self._find(request)
        if response is None:
            return failure("protocol", f"no reply to case {request.id!r}, repetition {request.repeat + 1}, was kept")
        return response

    async def close(self) -> None:
        """Do nothing."""


CASE_ID = "{case_id}"
_UNSAFE = frozenset('/\\:*?"<>|\0')
MAX_NAMED = 5
_EXPORTED_EXECUTION = "agentv.execution/"


class Replay(ProviderBase, kw_only=True):
    """Target whose replies are recorded in a file."""

    is_live: ClassVar[bool] = False
    provider: Literal["replay"] = "replay"
    file: Annotated[str, Meta(min_length=1)]
    """JSONL with one reply a line, found by `id`; or one JSON file, a reply or a trace, for every case.
    `{case_id}` in the name makes it one JSON file for each case. The recording of a conversation has its `turns`."""

    def reply_warnings(self, scope: Scope) -> list[tuple[str, str]]:
        """Return the deprecations of the recorded replies; a file that cannot be read has none yet."""
        if CASE_ID in self.file:
            return []
        try:
            path = find_in_root(scope.root, self.file, scope.folder)
            return list(islice(_recorded_warnings(path, self.file), MAX_NAMED))
        except (FormatError, OSError):
            return []

    async def open(self, scope: Scope) -> ReplaySession:
        """Index the replies of the file."""
        return ReplaySession(self.file, scope)


def _recorded_warnings(path: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield the deprecations of recorded replies, each with its file and line."""
    if path.suffix == ".json":
        response = read_reply(parse_json(path.read_bytes()))
        yield from ((name, warning) for warning in trace_warnings(response))
        return
    with path.open("rb") as stream:
        number = 0
        while line := stream.readline(MAX_BYTES + 1):
            number += 1
            if b'"trace' not in line:
                continue
            with suppress(FormatError):  # reported when its case is run
                response = read_reply(parse_json(line))
                yield from ((f"{name}:{number}", warning) for warning in trace_warnings(response))


class ReplaySession:
    """Recorded replies of one file, or of one file for each case."""

    def __init__(self, file: str, scope: Scope) -> None:
        self._file = file
        self._scope = scope
        self._document: Any = None
        """Content of a `.json` file: the reply to every case."""
        self._has_gaps = False
        """True if secrets may have been redacted in it."""
        self._index: _ReplyIndex | None = None
        self._error: str | None = None
        """Reason why the file cannot be read."""
        if CASE_ID in file:
            return
        try:
            path = find_in_root(scope.root, file, self._folder_of(file))
            if path.suffix == ".json":
                data = path.read_bytes()
                self._document, self._has_gaps = parse_json(data), may_have_gap(data)
            if self._document is None:
                self._index = _ReplyIndex(path)
        except (FormatError, OSError) as error:
            self._error = str(error)

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the reply that was recorded for this case; repetition i gets the i-th one."""
        try:
            return self._find(request)
        except (FormatError, OSError) as error:
            return failure("protocol", f"{self._file}: {error}")

    async def close(self) -> None:
        """Do nothing."""

    def _find(self, request: Request) -> ProviderResponse:
        if self._error is not None:
            return failure("protocol", self._error)
        if CASE_ID in self._file:
            return self._read_case_file(request)
        if self._index is None:
            return read_recording(self._document, request, has_gaps=self._has_gaps)
        line = self._index.find(request)
        if line is None:
            whose = f"case {request.id!r}" + (f" and persona {request.persona_id!r}" if request.persona_id else "")
            return failure("protocol", f"{self._file} holds no reply for {whose}{self._index.unreadable_lines}")
        number, data = line
        try:
            return read_recording(parse_json(data), request, has_gaps=may_have_gap(data))
        except FormatError as error:
            return failure("protocol", f"{self._file}:{number}: {error}")

    def _folder_of(self, name: str) -> str:
        """Return the folder of the target, or that of the eval if only it has the file."""
        folder, eval_folder = self._scope.folder, self._scope.eval_folder
        is_elsewhere = eval_folder and not Path(folder, name).exists() and Path(eval_folder, name).exists()
        return eval_folder if is_elsewhere else folder

    def _read_case_file(self, request: Request) -> ProviderResponse:
        if not _UNSAFE.isdisjoint(request.id) or request.id in (".", ".."):
            return failure("protocol", f"case id {request.id!r} cannot be part of a file's name")
        name = self._file.replace(CASE_ID, request.id)
        data = read_in_root(self._scope.root, name, self._folder_of(name))
        return read_recording(parse_json(data), request, has_gaps=may_have_gap(data))


class _LineIds(msgspec.Struct):
    """Fields of a line that name its case."""

    id: str | int | None = None
    case_id: str | int | None = None
    persona_id: Any = None
    schema: Any = None

    @property
    def name(self) -> str | int | None:
        """Id of the case; an exported run has an id of its own, too."""
        return self.case_id if self.id is None or str(self.schema).startswith(EXPORTED_RUN) else self.id


class _Line(NamedTuple):
    """Place of a line."""

    number: int
    offset: int
    persona_id: Any


class _ReplyIndex:
    """Offsets of the lines of a JSONL file, by case."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, list[_Line]] = {}
        self._unreadable: list[int] = []
        decode = msgspec.json.Decoder(_LineIds, strict=False).decode
        with path.open("rb") as stream:
            offset = number = 0
            while line := stream.readline(MAX_BYTES + 1):
                number += 1
                if line.strip():
                    self._add(line, number, offset, decode)
                offset += len(line)

    def _add(self, line: bytes, number: int, offset: int, decode: Any) -> None:
        try:
            ids = decode(line.removeprefix(b"\xef\xbb\xbf"))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._unreadable.append(number)
            return
        if str(ids.schema).startswith(_EXPORTED_EXECUTION):
            return
        if ids.name is None:
            self._unreadable.append(number)
        else:
            self._places.setdefault(str(ids.name), []).append(_Line(number, offset, ids.persona_id))

    @property
    def unreadable_lines(self) -> str:
        """Part of a message that lists the lines which could not be read; empty if there are none."""
        if not self._unreadable:
            return ""
        some = ", ".join(map(str, self._unreadable[:MAX_NAMED]))
        more = ", …" if len(self._unreadable) > MAX_NAMED else ""
        return f"; not a JSON object with an `id`: line{'s' * (len(self._unreadable) > 1)} {some}{more}"

    def find(self, request: Request) -> tuple[int, bytes] | None:
        """Return the number and the text of the line for this repetition of a case, with this persona."""
        places = self._places.get(request.id, [])
        if any(place.persona_id is not None for place in places):
            places = [place for place in places if place.persona_id == request.persona_id]
        if not places:
            return None
        number, offset, _ = places[request.repeat % len(places)]
        with self._path.open("rb") as stream:
            stream.seek(offset)
            return number, stream.readline(MAX_BYTES + 1)
