"""`replay`: recorded replies and stored runs."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
from msgspec import Meta

from agentv.errors import FormatError
from agentv.files import find_in_root, read_in_root
from agentv.formats.reader import read_reply
from agentv.jsonio import MAX_BYTES, parse_json
from agentv.model.marks import may_have_gap
from agentv.providers.base import ProviderBase, failure
from agentv.providers.recordings import EXPORTED_RUN, read_recording
from agentv.scoring.calls import trace_warnings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentv.model.request import Request, Scope
    from agentv.model.response import ProviderResponse


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
