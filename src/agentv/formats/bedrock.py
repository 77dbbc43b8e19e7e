"""Amazon Bedrock: replies of Converse, and its stream."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentv.formats.conversation import said_fields
from agentv.formats.fields import OBJECT, Path, objects_in
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.transcript import Transcript
from agentv.formats.usage import add_usage, read_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

if TYPE_CHECKING:
    from agentv.model.response import TokensUsage

_Object = Mapping[str, Any]
_REPLY = frozenset(("output", "usage", "ResponseMetadata", "$metadata"))


def _is_reply(value: Any) -> bool:
    output = value.get("output") if isinstance(value, OBJECT) else None
    message = output.get("message") if isinstance(output, OBJECT) else None
    return isinstance(message, OBJECT) and isinstance(message.get("content"), (list, tuple)) and "stopReason" in value


def _detect_converse(value: Any) -> bool:
    return _is_reply(value) or any(map(_is_reply, objects_in(value)))


def _read_converse(value: Any, reader: ReplyReader) -> ProviderResponse:
    """Read a reply of Converse, or the replies of several turns."""
    run = Transcript()
    turns: list[TokensUsage | None] = []
    for position, reply in enumerate([value] if isinstance(value, OBJECT) else value):
        if not _is_reply(reply):
            run.skip_event(None, ("replies", position))
            continue
        run.messages.append(dict(reply["output"]["message"]))
        turns.append(read_usage(reply.get("usage"), ("replies", position, "usage"), run.report)[0])
        run.metadata.update(said_fields(reply, _REPLY))
    run.usage = add_usage(turns)
    return run.finish(reader)


CONVERSE = ReplyFormat(name="bedrock", detect=_detect_converse, read=_read_converse)


def _is_piece(event: _Object) -> bool:
    return len(event) == 1 and isinstance(event.get("messageStart", event.get("contentBlockDelta")), OBJECT)


def _pieces(value: Any) -> Any:
    return value.get("stream") if isinstance(value, OBJECT) else value


def _detect_stream(value: Any) -> bool:
    return any(map(_is_piece, objects_in(_pieces(value))))


def _read_stream(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = _Stream()
    for position, event in enumerate(_pieces(value)):
        if isinstance(event, OBJECT):
            run.read(event, ("events", position))
        else:
            run.transcript.report.reject(("events", position), "an event", event)
    return run.finish(reader)


class _Stream:
    """Messages that come in pieces."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self._turns: list[TokensUsage | None] = []
        self._blocks: list[dict[str, Any]] = []
        self._index: Any = None
        """Which block the last pieces belong to; some leave it out."""
        self._is_begun = False

    def read(self, event: _Object, path: Path) -> None:
        """Read the next piece."""
        run = self.transcript
        kind, body = next(((str(key), body) for key, body in event.items() if body is not None), ("", None))
        body = body if isinstance(body, OBJECT) else {}
        if kind == "messageStart":
            self._blocks, self._is_begun = [], False
            run.messages.append({"role": body.get("role", "assistant"), "content": self._blocks})
            run.unfinished = "`messageStop`"
        elif kind in ("contentBlockStart", "contentBlockDelta"):
            self._feed(body, is_start=kind == "contentBlockStart", path=path)
        elif kind == "contentBlockStop":
            self._is_begun = False
        elif kind == "messageStop":
            run.unfinished = ""
            run.metadata.update(said_fields(body, frozenset()))
        elif kind == "metadata":
            self._turns.append(read_usage(body.get("usage"), (*path, "usage"), run.report)[0])
        elif kind.endswith("Exception"):
            run.fail(body)
        else:
            run.skip_event(kind, path)

    def _feed(self, body: _Object, *, is_start: bool, path: Path) -> None:
        index = body.get("contentBlockIndex")
        if not self.transcript.messages:  # the start was left out; what comes is not
            self.transcript.messages.append({"role": "assistant", "content": self._blocks})
        if is_start or not self._is_begun or index != self._index:
            self._blocks.append({})
        self._is_begun, self._index = True, index
        block = self._blocks[-1]
        given = body.get("start" if is_start else "delta")
        for key, piece in given.items() if isinstance(given, OBJECT) else ():
            if key == "text" and isinstance(piece, str):
                block["text"] = block.get("text", "") + piece
            elif isinstance(piece, OBJECT):
                block[str(key)] = _joined(block.get(str(key)), piece)
            else:
                self.transcript.skip_event(key, path)

    def finish(self, reader: ReplyReader) -> ProviderResponse:
        """Return the reply."""
        run = self.transcript
        for message in run.messages:
            message["content"] = [_whole(block) for block in message["content"] if block]
        run.usage = add_usage(self._turns)
        return run.finish(reader)


def _joined(before: Any, piece: _Object) -> dict[str, Any]:
    """Put a piece to those before: texts are joined."""
    whole = dict(before) if isinstance(before, OBJECT) else {}
    for key, value in piece.items():
        begun = whole.get(key)
        whole[key] = begun + value if isinstance(begun, str) and isinstance(value, str) else value
    return whole


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    call = block.get("toolUse")
    if not isinstance(call, OBJECT) or not isinstance(call.get("input"), str):
        return block
    return {**block, "toolUse": {**call, "input": parse_arguments(call["input"])[0] if call["input"] else {}}}


STREAM = ReplyFormat(name="bedrock", detect=_detect_stream, read=_read_stream)
