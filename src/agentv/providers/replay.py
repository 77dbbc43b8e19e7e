"""`replay`: recorded replies and stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from agentv.errors import FormatError
from agentv.files import find_in_root, read_in_root
from agentv.formats.reader import read_reply
from agentv.jsonio import MAX_BYTES, parse_json
from agentv.providers.base import ProviderBase, failure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agentv.model.request import Request, Scope
    from agentv.model.response import ProviderResponse


class Stored:
    """Answers with the reply that was kept for this case and repetition."""

    is_live = False
    executes = False
    retries = 0
    """What failed then fails now: it would not pass by being read again."""

    def __init__(self, find: Callable[[str, int], ProviderResponse | None]) -> None:
        self._find = find

    async def open(self, scope: Scope) -> None:
        """Nothing to do."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """The reply as it was kept."""
        found = self._find(request.id, request.repeat)
        if found is None:
            return failure("protocol", f"no reply to case {request.id!r}, repetition {request.repeat + 1}, was kept")
        return found

    async def close(self) -> None:
        """Nothing to do."""


CASE_ID = "{case_id}"
_UNSAFE = frozenset('/\\:*?"<>|\0')
MAX_NAMED = 5


class Replay(ProviderBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Answers from a file."""

    is_live: ClassVar[bool] = False
    provider: Literal["replay"] = "replay"
    file: Annotated[str, Meta(min_length=1)]
    """JSONL with one reply a line, found by `id`; or one JSON file, a reply or a trace, for every case.
    `{case_id}` in the name makes it one JSON file for each case."""

    async def open(self, scope: Scope) -> None:
        """Note where each reply lies."""
        await super().open(scope)
        if CASE_ID in self.file:
            return
        try:
            path = find_in_root(scope.root, self.file, scope.folder)
            data = _sole_document(path)
            if data is not None:
                self.__dict__["sole"] = data
            else:
                self.__dict__["index"] = _Index(path)
        except (FormatError, OSError) as error:
            self.__dict__["broken"] = str(error)

    async def invoke(self, request: Request) -> ProviderResponse:
        """The reply that was recorded for this case; repetition i gets the i-th one."""
        try:
            return self._recorded(request)
        except (FormatError, OSError) as error:
            return failure("protocol", f"{self.file}: {error}")

    def _recorded(self, request: Request) -> ProviderResponse:
        broken = self.__dict__.get("broken")
        if broken is not None:
            return failure("protocol", broken)
        if CASE_ID in self.file:
            return self._own_file(request)
        if "sole" in self.__dict__:
            return _reply(self.__dict__["sole"], request)
        index: _Index = self.__dict__["index"]
        line = index.find(request.id, request.repeat)
        if line is None:
            return failure("protocol", f"{self.file} holds no reply for case {request.id!r}{index.complaint}")
        number, data = line
        try:
            reply = _reply(parse_json(data), request)
        except FormatError as error:
            return failure("protocol", f"{self.file}:{number}: {error}")
        return reply

    def _own_file(self, request: Request) -> ProviderResponse:
        if not _UNSAFE.isdisjoint(request.id) or request.id in (".", ".."):
            return failure("protocol", f"case id {request.id!r} cannot be part of a file's name")
        name = self.file.replace(CASE_ID, request.id)
        data = parse_json(read_in_root(self.scope.root, name, self.scope.folder))
        return _reply(data, request)


class _Line(msgspec.Struct):
    """What is needed of a line to find it again."""

    id: str | int | None = None
    case_id: str | int | None = None


class _Index:
    """Where in a JSONL file the replies to each case begin."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._unreadable: list[int] = []
        decode = msgspec.json.Decoder(_Line, strict=False).decode
        with path.open("rb") as stream:
            offset = number = 0
            while line := stream.readline(MAX_BYTES + 1):
                number += 1
                if line.strip():
                    self._note(line, number, offset, decode)
                offset += len(line)

    def _note(self, line: bytes, number: int, offset: int, decode: Any) -> None:
        try:
            found = decode(line.removeprefix(b"\xef\xbb\xbf"))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._unreadable.append(number)
            return
        name = found.case_id if found.id is None else found.id
        if name is None:
            self._unreadable.append(number)
        else:
            self._places.setdefault(str(name), []).append((number, offset))

    @property
    def complaint(self) -> str:
        """Which lines could not be read, for a case that is missing."""
        if not self._unreadable:
            return ""
        some = ", ".join(map(str, self._unreadable[:MAX_NAMED]))
        more = ", …" if len(self._unreadable) > MAX_NAMED else ""
        return f"; not a JSON object with an `id`: line{'s' * (len(self._unreadable) > 1)} {some}{more}"

    def find(self, name: str, repeat: int) -> tuple[int, bytes] | None:
        """The number and the text of the line for this repetition of a case."""
        places = self._places.get(name)
        if not places:
            return None
        number, offset = places[repeat % len(places)]
        with self._path.open("rb") as stream:
            stream.seek(offset)
            return number, stream.readline(MAX_BYTES + 1)


def _sole_document(path: Path) -> Any:
    """The content of a `.json` file, which is one document; `None` for JSONL."""
    if path.suffix == ".json":
        return parse_json(path.read_bytes())
    return None


def _reply(data: Any, request: Request) -> ProviderResponse:
    """Read a recorded reply, in any shape; an `id` that names the case is no part of it."""
    if isinstance(data, Mapping):
        named = [key for key in ("id", "case_id") if str(data.get(key)) == request.id]
        data = {key: value for key, value in data.items() if key not in named} if named else data
    return read_reply(data, request.input_messages)
