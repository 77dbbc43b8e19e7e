"""Read any content as a reply: the one way in for every provider, for `score` and for stored replies.

The content may be a text, parsed JSON, JSON Lines, or objects of a library. It is made plain, its shape is detected in
the table of formats (`agentv.registry.FORMATS`), and everything that was not understood is reported in `unread`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentv.errors import AgentVError, FormatError
from agentv.formats.canonical import read_calls, read_plain
from agentv.formats.data_stream import read_data_stream
from agentv.formats.detect import TEXT_KEYS, are_messages, describe_shape, is_list, read_own, text_key
from agentv.formats.echo import ALL_NEW, NewPart, find_new, find_new_quickly, speaker_of
from agentv.formats.fields import OBJECT, show
from agentv.formats.lines import find_data, server_events
from agentv.formats.normalize import failed, settle_made, words_of
from agentv.formats.objects import is_object, plain, plain_data
from agentv.formats.response import LIST_KEYS, REPLY_KEYS, decode_canonical, decode_fields, last_words
from agentv.formats.streams import Folded, StreamEvent, fold_stream, read_folded
from agentv.formats.unread import with_unread, with_unread_fields
from agentv.jsonio import dump_json, parse_json, scrub, scrub_text
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat
from agentv.registry import reply_formats

TEXT_SHAPE = "string"
UNKNOWN_SHAPE = "json"
UNKNOWN = "a JSON document of no known shape is taken as the answer, and tells nothing about calls"
_SAYS_NOTHING = "the reply has neither `text` nor `output_messages`"
_USAGE_UNKNOWN = "tokens_usage: which of the messages are new is not known, so neither is what they cost"
_NOTHING = "there is no reply: the agent gave back nothing; send a text, messages, or a reply"
_ROLES = ("assistant", "user", "system", "tool", "developer", "function", "model", "ai", "human")
_REPLY_ONLY = [name for name in REPLY_KEYS if name not in ("metadata", "warnings")]
_REPLY = re.compile(rf'\{{\s*"(?:[^{{]*?")?(?:{"|".join(_REPLY_ONLY)})"\s*:')
_MESSAGES = re.compile(rf'\[\s*\{{[^{{]*?"(?:role|type)"\s*:\s*"(?:{"|".join(_ROLES)})"')
_WEAK_SHAPES = frozenset((TEXT_SHAPE, UNKNOWN_SHAPE, "message", "messages", "error", "log", "stream", *TEXT_KEYS))
"""Shapes that what stands in the middle of a text may have without being a reply."""
_CONTAINERS = frozenset((dict, list, tuple))
_LOOKED_AT = 10_000
"""Characters from the beginning in which a reply shows its first keys."""


class DetectedReply(NamedTuple):
    """A reply, and the name of the shape that it was recognised by."""

    shape: str
    response: ProviderResponse


def read_reply(content: Any, asked: Sequence[Message] | None = None) -> ProviderResponse:
    """Read any content as a reply, without the conversation that led up to it. It never raises.

    `asked` are the messages of the request; `None` when they are not known.
    """
    return detect_reply(content, asked).response


def detect_reply(content: Any, asked: Sequence[Message] | None = None) -> DetectedReply:
    """Read any content as a reply, and name its shape."""
    found = _read_new(content, asked)
    response = found.response
    is_reply = found.shape not in (TEXT_SHAPE, UNKNOWN_SHAPE) and not isinstance(content, ProviderResponse)
    if is_reply and response.success and not response.text and _tells_nothing(response):
        response = replace(response, warnings=(*response.warnings, _SAYS_NOTHING))
    return DetectedReply(found.shape, response)


def _read_new(content: Any, asked: Sequence[Message] | None) -> DetectedReply:
    return _complete(_read_safely(content, _Reader(asked)), asked)


def _tells_nothing(response: ProviderResponse) -> bool:
    told = (response.output_messages, response.trace, response.trace_ref, response.trace_summary, response.raw_response)
    return not any(told)


def read_events(
    events: Sequence[StreamEvent], asked: Sequence[Message] | None = None, *, snapshots: bool = False
) -> DetectedReply | None:
    """Read the events of a stream as a reply; `None` when they are of no known kind."""
    folded = fold_stream(events, snapshots=snapshots)
    return None if folded is None else read_folded_stream(folded, asked)


def read_folded_stream(folded: Folded, asked: Sequence[Message] | None = None) -> DetectedReply:
    """Read what a stream amounts to as a reply."""
    shape, response = _read_safely(folded.document, _Reader(asked))
    response = read_folded(folded, response)
    return _complete(DetectedReply(folded.shape or shape, response), asked)


def read_pieces(pieces: Sequence[Any], asked: Sequence[Message] | None = None) -> ProviderResponse:
    """Read what came piece by piece: texts are parts of the answer, anything else events, chunks or messages."""
    texts = [piece for piece in pieces if isinstance(piece, str)]
    others = [piece for piece in pieces if not isinstance(piece, str)]
    if not others:
        return read_reply("".join(texts) if texts else None, asked)
    response = _read_events_or_list(others, asked)
    return replace(response, text=scrub_text("".join(texts))) if texts else response


def _read_events_or_list(pieces: Sequence[Any], asked: Sequence[Message] | None) -> ProviderResponse:
    """Read one piece as a reply, several as the events of a stream, else as a list."""
    if len(pieces) == 1 and not isinstance(pieces[0], tuple):
        return read_reply(pieces[0], asked)
    try:
        found = read_events([StreamEvent(plain_data(piece)) for piece in pieces], asked)
    except Exception:  # noqa: BLE001 - objects of the caller's may raise anything; a list of them is read with care
        found = None
    return read_reply(list(pieces), asked) if found is None else found.response


def is_reply_object(value: Any) -> bool:
    """Tell an object of a library that is a whole reply, whatever else one could do with it."""
    return any(each.detect_object is not None and each.detect_object(value) for each in reply_formats())


def read_any(reply: Any, asked: Sequence[Message] | None = None) -> ProviderResponse:
    """Read what somebody passed as a reply; `FormatError` for a value that can be none."""
    if reply is None or isinstance(reply, (bool, int, float)):
        msg = f"expected a text, an object or a list of messages, got {show(reply)}"
        raise FormatError(msg)
    return _read_new(reply, asked).response


def decode_response(reply: Mapping[str, Any] | Sequence[Any]) -> ProviderResponse:
    """Read a parsed reply with all of its messages, whatever is wrong with it; other values are refused.

    Nothing is known of the request here, so a conversation that was sent back stays in it.
    """
    if type(reply) not in _CONTAINERS and (
        isinstance(reply, (str, bytes, bytearray)) or not (isinstance(reply, (*OBJECT, Sequence)) or is_object(reply))
    ):
        msg = f"expected an object or a list of messages, got {show(reply)}"
        raise FormatError(msg)
    return _complete(_read_safely(reply, _Reader(None, is_whole=True)), None).response


def decode_response_json(data: bytes | bytearray | memoryview | str) -> ProviderResponse:
    """Read a reply from its JSON text."""
    return decode_response(parse_json(data))


def decode_calls(reply: Any) -> list[ToolCall] | None:
    """Read the calls of a reply that is nothing but compact messages of the agent; `None` when it is any other.

    A fast path of `agentv.score`, which needs nothing else of such a reply.
    """
    if type(reply) is dict and len(reply) == 1:
        ((key, reply),) = reply.items()
        if key not in LIST_KEYS:
            return None
    try:
        return read_calls(reply) if type(reply) is list else None
    except Exception:  # noqa: BLE001 - objects of the caller's may raise anything; whoever reads all of it copes
        return None


def looks_like_reply(text: str) -> bool:
    """Tell a text that begins like a reply in JSON: half of one must not pass for an answer."""
    beginning = text.lstrip()[:_LOOKED_AT]
    return bool(_REPLY.match(beginning) or _MESSAGES.match(beginning))


def _complete(found: DetectedReply, asked: Sequence[Message] | None) -> DetectedReply:
    response = with_unread(found.response, asked or ())
    return found if response is found.response else DetectedReply(found.shape, response)


def _read_safely(content: Any, reader: "_Reader") -> DetectedReply:
    try:
        return reader.detect(content)
    except AgentVError as error:
        return DetectedReply("error", failed("protocol", str(error)))
    except Exception as error:  # noqa: BLE001 - objects of the caller's may raise anything when they are looked at
        return _read_copy(content, reader, error)


def _read_copy(content: Any, reader: "_Reader", error: Exception) -> DetectedReply:
    """Read a plain copy of content that cannot be looked at without an exception."""
    try:
        copy = scrub(plain(content))
        shape, response = reader.detect(copy if isinstance(copy, (dict, list)) else scrub(content))
    except Exception:  # noqa: BLE001 - as above; whatever happens, a reply comes back
        return DetectedReply("error", failed("protocol", f"the reply cannot be read: {words_of(error)}"))
    warning = f"reply: read from a plain copy of it, for one of its values raised {type(error).__name__}"
    return DetectedReply(shape, replace(response, warnings=(*response.warnings, warning)))


class _Reader:
    """One reading of one reply: it goes through the table of formats, and they come back to it for what is nested."""

    def __init__(self, asked: Sequence[Message] | None, *, is_whole: bool = False) -> None:
        self.asked = asked
        self._is_plain = False
        """Whether the data that is read is known to hold no objects of libraries."""
        self._inner = ""
        """The shape of the last reply that stood inside of another."""
        self._is_declared = False
        """Whether the list that is being translated is said to hold only what the agent added."""
        self._translating: tuple[ReplyFormat, ...] = ()
        """The formats that are writing items as messages, which are of another form then."""
        self._is_whole = is_whole
        """Whether all messages are kept, those of the request among them."""

    def read(self, value: Any) -> ProviderResponse:
        """Read a reply that stands inside of another."""
        self._inner, response = self.detect(value)
        return response

    def detect(self, value: Any) -> DetectedReply:
        """Read a reply and name its shape."""
        if type(value) in _CONTAINERS:
            return self._detect_quickly(value) or self._detect_data(value)
        if isinstance(value, ProviderResponse):
            return DetectedReply("agentv", settle_made(value))
        if isinstance(value, (str, bytes, bytearray, memoryview)):
            return self._detect_text(value)
        if value is None:
            raise FormatError(_NOTHING)
        if isinstance(value, Message):
            value = [value]
        return self._detect_quickly(value) or self._detect_data(value)

    def _detect_text(self, value: str | bytes | bytearray | memoryview) -> DetectedReply:
        """Read a text: JSON and JSON Lines are data, everything else is an answer."""
        text = value if isinstance(value, str) else bytes(value).decode("utf-8", "replace").removeprefix("\ufeff")
        if text.lstrip()[:1] not in ("{", "["):
            return self._detect_inside(text) or DetectedReply(TEXT_SHAPE, ProviderResponse(text=scrub_text(text)))
        try:
            data = parse_json(text)
        except FormatError as error:
            return self._detect_lines(text) or self._detect_inside(text) or self._refuse(text, error)
        found = self.detect(data)
        if found.shape == UNKNOWN_SHAPE and not _is_strict(text):
            # Nobody can tell which of two values of one key was meant: the text stays as it is.
            return DetectedReply(found.shape, replace(found.response, text=scrub_text(text)))
        return found

    def _detect_lines(self, text: str) -> DetectedReply | None:
        """Read JSON Lines; `None` when the text is none."""
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            values = [parse_json(line) for line in lines] if len(lines) > 1 else []
        except FormatError:
            return None
        if not values or not all(isinstance(value, (dict, list)) for value in values):
            return None
        found = read_events([StreamEvent(value) for value in values], self.asked)
        return found or self.detect(values)

    def _detect_inside(self, text: str) -> DetectedReply | None:
        """Read a reply that stands in a text: written as JSON twice, or among lines of a log; `None` without any."""
        told = [StreamEvent(value, name) for name, value in server_events(text)]
        told = told or [StreamEvent(part) for part in read_data_stream(text)]
        if told:
            return read_events(told, self.asked) or self.detect([event.value for event in told])
        data, passed = find_data(text)
        if isinstance(data, str):
            found = self._detect_text(data)
            return None if found.shape == TEXT_SHAPE else found
        if not data:
            return None
        listed = read_events([StreamEvent(each) for each in data], self.asked) if len(data) > 1 else None
        found = listed or self.detect(data[0] if len(data) == 1 else data)
        has_messages = any(isinstance(each, dict) and "messages" in each for each in data)
        if found.shape in _WEAK_SHAPES and not (found.shape == "messages" and has_messages):
            return None
        if found.shape == "agentv" and not (found.response.output_messages or found.response.trace):
            return None
        note = f"{len(passed)} line(s) around the reply are no JSON and were passed over: {passed[0][:80]!r}"
        return DetectedReply(found.shape, replace(found.response, warnings=(*found.response.warnings, note)))

    def _refuse(self, text: str, error: FormatError) -> DetectedReply:
        if looks_like_reply(text):
            msg = f"the reply cannot be read: {error}; it must be one JSON value and nothing else"
            raise FormatError(msg)
        return DetectedReply(TEXT_SHAPE, ProviderResponse(text=scrub_text(text)))

    def _detect_quickly(self, value: Any) -> DetectedReply | None:
        """Read a reply in our own form or in OpenAI's, as most are; `None` when it needs a closer look."""
        if not value and not self._is_whole:
            return self._read_unknown(value)
        items, declared = value, False
        if type(value) is dict:
            key = next(iter(value)) if len(value) == 1 else ""
            if key not in LIST_KEYS:
                response = decode_canonical(value)
                if response is None or self._new_part(response.output_messages or (), declared=True) != ALL_NEW:
                    return None
                return _own(response)
            items, declared = value[key], key != "messages"
        messages = read_plain(items) if isinstance(items, (list, tuple)) else None
        if messages is None or _may_be_named_speakers(messages):
            return None
        if items is value and messages and not are_messages(messages):
            return None
        return DetectedReply("agentv" if declared else "messages", self._read_plain(messages, declared=declared))

    def _read_plain(self, messages: tuple[Message, ...], *, declared: bool) -> ProviderResponse:
        new = self._new_part(messages, declared=declared)
        said = messages[new.start :] if new.start else messages
        doubt = None if new.doubt is None else new.doubt - new.start
        return ProviderResponse(text=last_words(said), output_messages=said, echo_end=doubt)

    def _new_part(self, items: Sequence[Any], *, declared: bool) -> NewPart:
        if self._is_whole:
            return ALL_NEW
        quick = find_new_quickly(items, self.asked, declared=declared)
        if quick is not None:
            return quick
        return find_new([speaker_of(item) for item in items], self.asked, declared=declared)

    def _detect_data(self, value: Any) -> DetectedReply:
        """Read plain data, or an object of a library, by the first format in the table that it fits."""
        if type(value) is dict and is_list(value.get("output_messages")):  # before all that others need
            return _own(read_own(value, self))
        found = None if type(value) in _CONTAINERS else self._detect_object(value)
        if found is not None:
            return found
        data = value if self._is_plain else plain_data(value)
        if not isinstance(data, (*OBJECT, list, tuple)):
            data = list(value) if isinstance(value, Sequence) else plain(value)
        if not isinstance(data, (*OBJECT, list, tuple)):
            msg = f"expected a text, messages or a reply, got {show(value)}"
            raise FormatError(msg)
        self._is_plain = True
        return self._detect_format(data)

    def _detect_object(self, value: Any) -> DetectedReply | None:
        """Read an object of a library that cannot be written as plain data; `None` when it is none."""
        for each in reply_formats():
            if each.detect_object is not None and each.read_object is not None and each.detect_object(value):
                return DetectedReply(each.name, each.read_object(value, self))
        return None

    def _detect_format(self, data: Any) -> DetectedReply:
        for each in reply_formats():
            if each.items and isinstance(data, OBJECT):
                if each.detect([data]):
                    name = "message" if each.name == "messages" else each.name
                    return DetectedReply(name, self.read_messages([data], declared=True))
            elif each.detect(data):
                return self._read_as(each, data)
        return self._read_unknown(data)

    def _read_unknown(self, data: Any) -> DetectedReply:
        """Take a JSON document of no known shape as the answer; to `decode_response` it is a reply all the same."""
        if self._is_whole:
            return _own(decode_fields(data if isinstance(data, OBJECT) else {"output_messages": data}))
        note = f"{UNKNOWN}: it is {describe_shape(data)}"
        text, data = dump_json(data).decode(), plain(data)
        return DetectedReply(UNKNOWN_SHAPE, ProviderResponse(text=text, raw_response=data, warnings=(note,)))

    def _read_as(self, shape: ReplyFormat, data: Any) -> DetectedReply:
        if shape.items:
            return DetectedReply(shape.name, self._read_items(shape, data, declared=False))
        response = shape.read(data, self)
        if shape.keys is not None and isinstance(data, OBJECT):
            response = with_unread_fields(response, data, shape.keys, self.asked or ())
        return DetectedReply(self._inner if shape.name == "stream" and self._inner else _name(shape, data), response)

    def read_messages(self, items: Sequence[Any], *, declared: bool = False) -> ProviderResponse:
        """Read a list of messages, items or events in any known form, without the request's own."""
        messages = read_plain(items)
        if messages is not None and not _may_be_named_speakers(messages):
            return self._read_plain(messages, declared=declared)
        items = list(items) if self._is_plain else plain_data(list(items))
        formats = [each for each in reply_formats() if each not in self._translating]
        shape = next((each for each in formats if each.detect(items)), None)
        if shape is None:
            return decode_fields({"output_messages": items})
        if shape.items:
            return self._read_items(shape, items, declared=declared)
        response: ProviderResponse = shape.read(items, self)
        return response

    def _read_items(self, shape: ReplyFormat, items: Sequence[Any], *, declared: bool) -> ProviderResponse:
        declared = declared or self._is_declared
        if shape.translates:
            outer = self._is_declared, self._translating
            self._is_declared, self._translating = declared, (*self._translating, shape)
            try:
                return shape.read(items, self)
            finally:
                self._is_declared, self._translating = outer
        new = self._new_part(items, declared=declared)
        response = shape.read(items[new.start :], self)
        if new.doubt is None:
            return response
        before = shape.read(items[new.start : new.doubt], self)
        response = replace(response, echo_end=len(before.output_messages or ()))
        if before.tokens_usage is None:
            return response
        return replace(response, tokens_usage=None, warnings=(*response.warnings, _USAGE_UNKNOWN))


def _may_be_named_speakers(messages: tuple[Message, ...]) -> bool:
    """Tell a conversation that begins with a named assistant, who in AG2 may be the one who asked."""
    return bool(messages) and messages[0].role == "assistant" and bool(messages[0].name)


def _name(shape: ReplyFormat, data: Any) -> str:
    return text_key(data) if shape.name == "text" else shape.name


def _is_strict(text: str) -> bool:
    """Tell JSON in which no key stands twice, and no value is a word that JSON does not have."""
    from json import loads  # noqa: PLC0415 - only a document of no known shape needs it

    try:
        loads(text, object_pairs_hook=_refuse_twins, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _refuse_constant(word: str) -> None:
    raise ValueError(word)


def _own(response: ProviderResponse) -> DetectedReply:
    return DetectedReply("agentv", response)
