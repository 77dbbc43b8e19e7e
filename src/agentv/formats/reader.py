"""Reader of any content as a reply, shared by all providers, by `score` and by stored replies.

The content may be a text, parsed JSON, JSON Lines, or objects of a library. It is converted to plain data, its shape is
looked up in the table of formats (`agentv.registry.FORMATS`), and all places that were not understood are reported in
`unread`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

from msgspec.structs import force_setattr, replace

from agentv.errors import AgentVError, FormatError
from agentv.formats.canonical import read_calls, read_plain
from agentv.formats.conversation import last_assistant_text
from agentv.formats.detect import TEXT_KEYS, are_messages, describe_shape, read_agentv_reply, text_key
from agentv.formats.echo import ALL_NEW, NewPart, find_new, find_new_quickly, speaker_of
from agentv.formats.fields import MISSING_CALLS, OBJECT, describe_value, is_list
from agentv.formats.normalize import describe_exception, failed_response, normalize_user_reply
from agentv.formats.objects import is_object, plain, plain_data
from agentv.formats.response import LIST_KEYS, REPLY_KEYS, decode_canonical, decode_fields, with_turn_usage
from agentv.formats.sse import find_data, server_events
from agentv.formats.streams import AssembledStream, StreamEvent, add_stream_findings, assemble_stream
from agentv.formats.structure import KnownStructures
from agentv.formats.ui_streams import read_data_stream
from agentv.formats.unread import with_dropped, with_unread, with_unread_fields
from agentv.formats.usage import lift_usage
from agentv.jsonio import dump_json, has_surrogates, parse_json, parse_with_hooks, scrub, scrub_text
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse, Unread
from agentv.protocols import ReplyFormat
from agentv.registry import find_reply_format, reply_formats

TEXT_SHAPE = "string"
UNKNOWN_SHAPE = "json"
UNKNOWN = "a JSON document of no known shape is taken as the answer, and says nothing about calls"
_EMPTY_REPLY = "the reply has neither `text` nor `output_messages`"
_USAGE_UNKNOWN = "tokens_usage: which of the messages are new is not known, so neither is what they cost"
_NO_REPLY = "there is no reply: the agent gave back nothing; send a text, messages, or a reply"
_TURNS = Unread(path="turns", reason=f"the turns of a whole conversation are no reply, {MISSING_CALLS}")
_ROLES = ("assistant", "user", "system", "tool", "developer", "function", "model", "ai", "human")
_REPLY_ONLY = [name for name in REPLY_KEYS if name not in ("metadata", "warnings", "incomplete")]
_REPLY = re.compile(rf'\{{\s*"(?:[^{{]*?")?(?:{"|".join(_REPLY_ONLY)})"\s*:')
_MESSAGES = re.compile(rf'\[\s*\{{[^{{]*?"(?:role|type)"\s*:\s*"(?:{"|".join(_ROLES)})"')
_WEAK_SHAPES = frozenset((TEXT_SHAPE, UNKNOWN_SHAPE, "message", "messages", "error", "log", "stream", *TEXT_KEYS))
"""Shapes that are not accepted as a reply when they are found in the middle of a text."""
_CONTAINERS = frozenset((dict, list, tuple))
NAMING = frozenset((
    *("messages", "id", "uuid", "session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "run_id"),
    *("case_id", "user_id", "userId", "model", "timestamp", "time", "date", "created_at", "createdAt", "started_at"),
    *("startedAt", "ended_at", "endedAt", "updated_at", "updatedAt", "title", "source", "split", "score", "language"),
))  # fmt: skip
"""Keys of a stored conversation that no format is recognised by, if their values are texts or numbers."""
_PLAIN_TYPES = frozenset((int, float, bool, NoneType))
_PREFIX_LENGTH = 10_000
"""Number of leading characters that are searched for the first keys of a reply."""


class DetectedReply(NamedTuple):
    """A reply and the name of its detected shape."""

    shape: str
    response: ProviderResponse


def read_reply(content: Any, prompt: Sequence[Message] | None = None) -> ProviderResponse:
    """Read any content as a reply, without the conversation that precedes it. Never raises.

    `prompt` holds the messages of the request; `None` if they are unknown.
    """
    return detect_reply(content, prompt).response


def detect_reply(content: Any, prompt: Sequence[Message] | None = None) -> DetectedReply:
    """Read any content as a reply and return it with the name of its shape."""
    detected = _read_completed(content, prompt)
    response = detected.response
    is_reply = detected.shape not in (TEXT_SHAPE, UNKNOWN_SHAPE) and not isinstance(content, ProviderResponse)
    if is_reply and response.success and not response.text and _is_empty(response):
        response = replace(response, warnings=(*response.warnings, _EMPTY_REPLY))
    if response.turns and not isinstance(content, ProviderResponse):
        # Only a stored conversation has turns; an agent answers in one of them.
        response = replace(response, turns=(), unread=(*response.unread, _TURNS))
    return DetectedReply(detected.shape, response)


def _read_completed(content: Any, prompt: Sequence[Message] | None) -> DetectedReply:
    reader = _RegistryReader(prompt)
    return _complete(_read_safely(content, reader), reader)


def _is_empty(response: ProviderResponse) -> bool:
    values = (
        response.output_messages,
        response.trace,
        response.trace_ref,
        response.trace_summary,
        response.raw_response,
    )
    return not any(values)


def cut_echo(response: ProviderResponse, prompt: Sequence[Message]) -> ProviderResponse:
    """Return a reply that was read without its request, without an exact echo of it."""
    messages = response.output_messages or ()
    if not any(message.role == "user" for message in messages):
        return response
    new = find_new([speaker_of(message) for message in messages], prompt, declared=True)
    return replace(response, output_messages=messages[new.start :]) if new.start else response


def read_events(
    events: Sequence[StreamEvent], prompt: Sequence[Message] | None = None, *, snapshots: bool = False
) -> DetectedReply | None:
    """Read the events of a stream as a reply; return `None` if their kind is unknown."""
    stream = assemble_stream(events, snapshots=snapshots)
    return None if stream is None else read_assembled_stream(stream, events, prompt)


def read_assembled_stream(
    stream: AssembledStream, events: Sequence[StreamEvent], prompt: Sequence[Message] | None = None
) -> DetectedReply:
    """Read a stream that was assembled from these events as a reply."""
    reader = _RegistryReader(prompt)
    shape, response = _read_safely(stream.document, reader)
    response = add_stream_findings(stream, response)
    shape, response = _complete(DetectedReply(stream.shape or shape, response), reader)
    return DetectedReply(shape, with_dropped(response, [event.value for event in events], prompt or ()))


def read_chunks(pieces: Sequence[Any], prompt: Sequence[Message] | None = None) -> ProviderResponse:
    """Read the chunks of a reply: texts are parts of the answer, other values are events, chunks or messages."""
    texts = [piece for piece in pieces if isinstance(piece, str)]
    others = [piece for piece in pieces if not isinstance(piece, str)]
    if not others:
        return read_reply("".join(texts) if texts else None, prompt)
    response = _read_events_or_list(others, prompt)
    return replace(response, text=scrub_text("".join(texts))) if texts else response


def _read_events_or_list(pieces: Sequence[Any], prompt: Sequence[Message] | None) -> ProviderResponse:
    """Read one chunk as a reply, several as the events of a stream, or else as a list."""
    if len(pieces) == 1 and not isinstance(pieces[0], tuple):
        return read_reply(pieces[0], prompt)
    try:
        detected = read_events([StreamEvent(plain_data(piece)) for piece in pieces], prompt)
    except Exception:  # noqa: BLE001 - user objects may raise anything; `read_reply` handles a list of them
        detected = None
    return read_reply(list(pieces), prompt) if detected is None else detected.response


def is_reply_object(value: Any) -> bool:
    """Return whether an object of a library is a complete reply."""
    return any(format_.detect_object is not None and format_.detect_object(value) for format_ in reply_formats())


def read_any(reply: Any, prompt: Sequence[Message] | None = None) -> ProviderResponse:
    """Read a value that a caller passed as a reply; raise `FormatError` if it cannot be one."""
    if reply is None or isinstance(reply, (bool, int, float)):
        msg = f"expected a text, an object or a list of messages, got {describe_value(reply)}"
        raise FormatError(msg)
    return _read_completed(reply, prompt).response


def detect_conversation(
    content: Any, formats: tuple[str, ...] = (), known: KnownStructures | None = None
) -> DetectedReply:
    """Read a whole conversation, such as a stored one: all of its messages are kept, those of the user too.

    `formats` are the names of the formats that parsed JSON is known to have; others are tried only if none of them
    fits. To try all formats takes longer than to read a short conversation. `known` remembers the formats of parsed
    JSON that was read before.
    """
    reader = _RegistryReader(None, keep_all=True, formats=formats, known=known)
    return _complete(_read_safely(content, reader), reader)


def decode_response(reply: Mapping[str, Any] | Sequence[Any]) -> ProviderResponse:
    """Read a parsed reply with all of its messages, even if it is malformed; raise `FormatError` for other values.

    The request is unknown here, so an echoed conversation is kept.
    """
    if type(reply) not in _CONTAINERS and (
        isinstance(reply, (str, bytes, bytearray)) or not (isinstance(reply, (*OBJECT, Sequence)) or is_object(reply))
    ):
        msg = f"expected an object or a list of messages, got {describe_value(reply)}"
        raise FormatError(msg)
    reader = _RegistryReader(None, keep_all=True)
    return _complete(_read_safely(reply, reader), reader).response


def decode_response_json(data: bytes | bytearray | memoryview | str) -> ProviderResponse:
    """Read a reply from its JSON text."""
    return decode_response(parse_json(data))


def decode_calls(reply: Any) -> list[ToolCall] | None:
    """Read the calls of a reply that holds only compact messages of the agent; return `None` for any other reply.

    This is a fast path of `agentv.score`, which needs only the calls.
    """
    if type(reply) is dict and len(reply) == 1:
        ((key, reply),) = reply.items()
        if key not in LIST_KEYS:
            return None
    try:
        return read_calls(reply) if type(reply) is list else None
    except Exception:  # noqa: BLE001 - user objects may raise anything; the full reader handles them
        return None


def looks_like_reply(text: str) -> bool:
    """Return whether a text starts like a reply in JSON, so that a truncated reply is not taken as an answer."""
    beginning = text.lstrip()[:_PREFIX_LENGTH]
    return bool(_REPLY.match(beginning) or _MESSAGES.match(beginning))


_SINGLE_REQUESTS = frozenset(("anthropic", "bedrock", "cohere", "gemini", "ollama", "openai_chat", "openai_responses"))
"""Shapes of replies to one request of a model."""


def _complete(detected: DetectedReply, reader: "_RegistryReader") -> DetectedReply:
    response = _search_safely(detected, reader)
    if detected.shape in _SINGLE_REQUESTS:
        response = with_turn_usage(response)
    messages = response.output_messages
    if messages and (lifted := lift_usage(messages)) is not messages:
        response = replace(response, output_messages=lifted)
    return detected if response is detected.response else DetectedReply(detected.shape, response)


def _search_safely(detected: DetectedReply, reader: "_RegistryReader") -> ProviderResponse:
    """Report the calls in what was not read; a reply that cannot be searched may hold calls."""
    prompt = reader.asked or ()
    try:
        response = with_unread(detected.response, prompt)
        if reader.data is not None and not reader.is_cut_unasked and detected.shape != UNKNOWN_SHAPE:
            response = with_dropped(response, reader.data, prompt)
    except Exception as error:  # noqa: BLE001 - user objects may raise anything on access
        place = Unread(
            path="reply",
            reason=f"it could not be searched, for one of its values raised {type(error).__name__}, {MISSING_CALLS}",
        )
        response = replace(detected.response, unread=(*detected.response.unread, place))
    return response


def _read_safely(content: Any, reader: "_RegistryReader") -> DetectedReply:
    try:
        return reader.detect(content)
    except AgentVError as error:
        return DetectedReply("error", failed_response("protocol", str(error)))
    except Exception as error:  # noqa: BLE001 - user objects may raise anything on access
        return _read_copy(content, reader, error)


def _read_copy(content: Any, reader: "_RegistryReader", error: Exception) -> DetectedReply:
    """Read a plain copy of content that raises an exception on access."""
    try:
        copy = scrub(plain(content))
        shape, response = reader.detect(copy if isinstance(copy, (dict, list)) else scrub(content))
    except Exception:  # noqa: BLE001 - as above; a reply must be returned in any case
        return DetectedReply(
            "error", failed_response("protocol", f"the reply cannot be read: {describe_exception(error)}")
        )
    warning = f"reply: read from a plain copy of it, for one of its values raised {type(error).__name__}"
    return DetectedReply(shape, replace(response, warnings=(*response.warnings, warning)))


class _RegistryReader:
    """Reader of one reply; formats call it back to read nested replies and messages."""

    def __init__(
        self,
        prompt: Sequence[Message] | None,
        *,
        keep_all: bool = False,
        formats: tuple[str, ...] = (),
        known: KnownStructures | None = None,
    ) -> None:
        self.asked = prompt
        self._first: tuple[ReplyFormat, ...] = tuple(filter(None, map(find_reply_format, formats)))
        """The formats that are tried before all others."""
        self._known = known
        """Formats of other conversations; `None` once that of this one was looked for."""
        self._used: list[ReplyFormat] | None = None
        """The formats that were found, if they are to be remembered."""
        self._is_plain = bool(formats) or known is not None
        """`True` if the data is known to contain no objects of libraries."""
        self._inner = ""
        """The shape of the last nested reply."""
        self._is_declared = False
        """`True` if the list under translation is declared to hold only messages that the agent added."""
        self._translating: tuple[ReplyFormat, ...] = ()
        """The formats that are translating items to messages; they are skipped when their output is read."""
        self._keep_all = keep_all
        """`True` if all messages are kept, including those of the request."""
        self.data: Any = None
        """The plain data of the whole reply, if a format has read it."""
        self._is_cut = False
        """`True` if messages were taken for those of the request."""

    @property
    def is_cut_unasked(self) -> bool:
        """`True` if messages were taken for those of an unknown request, whose calls are not the agent's."""
        return self._is_cut and self.asked is None

    def read(self, value: Any) -> ProviderResponse:
        """Read a nested reply."""
        self._inner, response = self.detect(value)
        return response

    def detect(self, value: Any) -> DetectedReply:
        """Read a reply and detect its shape."""
        if type(value) in _CONTAINERS:
            return self._read_named(value) or self._detect_quickly(value) or self._detect_data(value)
        if isinstance(value, ProviderResponse):
            return DetectedReply("agentv", normalize_user_reply(value))
        if isinstance(value, (str, bytes, bytearray, memoryview)):
            return self._detect_text(value)
        if value is None:
            raise FormatError(_NO_REPLY)
        if isinstance(value, Message):
            value = [value]
        return self._detect_quickly(value) or self._detect_data(value)

    def _detect_text(self, value: str | bytes | bytearray | memoryview) -> DetectedReply:
        """Read a text: JSON and JSON Lines are parsed, any other text is the answer."""
        text = value if isinstance(value, str) else bytes(value).decode("utf-8", "replace").removeprefix("\ufeff")
        if text.lstrip()[:1] not in ("{", "["):
            return self._detect_inside(text) or DetectedReply(TEXT_SHAPE, ProviderResponse(text=scrub_text(text)))
        try:
            data = parse_json(text)
        except FormatError as error:
            return self._detect_lines(text) or self._detect_inside(text) or self._refuse(text, error)
        detected = self.detect(data)
        if detected.shape == UNKNOWN_SHAPE and not _is_strict(text):
            # With duplicate keys it is unknown which value was meant: keep the original text.
            return DetectedReply(detected.shape, replace(detected.response, text=scrub_text(text)))
        return detected

    def _detect_lines(self, text: str) -> DetectedReply | None:
        """Read JSON Lines; return `None` if the text has another form."""
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            values = [parse_json(line) for line in lines] if len(lines) > 1 else []
        except FormatError:
            return None
        if not values or not all(isinstance(value, (dict, list)) for value in values):
            return None
        detected = read_events([StreamEvent(value) for value in values], self.asked)
        return detected or self.detect(values)

    def _detect_inside(self, text: str) -> DetectedReply | None:
        """Read a reply inside a text (JSON encoded twice, or between log lines); return `None` if there is none."""
        events = [StreamEvent(value, name) for name, value in server_events(text)]
        events = events or [StreamEvent(part) for part in read_data_stream(text)]
        if events:
            return read_events(events, self.asked) or self.detect([event.value for event in events])
        data, passed = find_data(text)
        if isinstance(data, str):
            detected = self._detect_text(data)
            return None if detected.shape == TEXT_SHAPE else detected
        if not data:
            return None
        listed = read_events([StreamEvent(event) for event in data], self.asked) if len(data) > 1 else None
        detected = listed or self.detect(data[0] if len(data) == 1 else data)
        has_messages = any(isinstance(item, dict) and "messages" in item for item in data)
        if detected.shape in _WEAK_SHAPES and not (detected.shape == "messages" and has_messages):
            return None
        if detected.shape == "agentv" and not (detected.response.output_messages or detected.response.trace):
            return None
        note = f"{len(passed)} line(s) around the reply are no JSON and were passed over: {passed[0][:80]!r}"
        return DetectedReply(detected.shape, replace(detected.response, warnings=(*detected.response.warnings, note)))

    def _refuse(self, text: str, error: FormatError) -> DetectedReply:
        if looks_like_reply(text):
            msg = f"the reply cannot be read: {error}; it must be one JSON value and nothing else"
            raise FormatError(msg)
        return DetectedReply(TEXT_SHAPE, ProviderResponse(text=scrub_text(text)))

    def _detect_quickly(self, value: Any) -> DetectedReply | None:
        """Read a reply in our own form or in OpenAI's, the most common; return `None` if it needs the full reader."""
        if not value and not self._keep_all:
            return self._read_unknown(value)
        items, declared = value, False
        if type(value) is dict:
            key = next(iter(value)) if len(value) == 1 else ""
            if key not in LIST_KEYS:
                response = decode_canonical(value)
                if response is None or self._new_part(response.output_messages or (), declared=True) != ALL_NEW:
                    return None
                return _agentv_reply(response)
            items, declared = value[key], key != "messages"
        messages = read_plain(items) if isinstance(items, (list, tuple)) else None
        if messages is None or _may_be_ag2(messages):
            return None
        if items is value and messages and not are_messages(messages):
            return None
        return DetectedReply("agentv" if declared else "messages", self._read_plain(messages, declared=declared))

    def _read_named(self, value: Any) -> DetectedReply | None:
        """Read messages with ids and times beside them; return `None` for any other value."""
        if type(value) is not dict or len(value) == 1 or type(value.get("messages")) is not list:
            return None
        if not value.keys() <= NAMING:
            return None
        fields = {key: item for key, item in value.items() if key != "messages"}
        if not all(map(_is_plain_value, fields.values())):
            return None
        thread_id = fields.pop("thread_id", None)
        messages = read_plain(value["messages"])
        if not isinstance(thread_id, (str, NoneType)) or not messages or _may_be_ag2(messages):
            return None
        if not are_messages(messages):
            return None
        response = self._read_plain(messages, declared=False)
        # This value is not shared yet.
        force_setattr(response, "metadata", fields or None)
        force_setattr(response, "thread_id", thread_id)
        return DetectedReply("messages", response)

    def _read_plain(self, messages: tuple[Message, ...], *, declared: bool) -> ProviderResponse:
        new = self._new_part(messages, declared=declared)
        output = messages[new.start :] if new.start else messages
        self._is_cut = self._is_cut or new != ALL_NEW
        echo_end = None if new.uncertain_end is None else new.uncertain_end - new.start
        return ProviderResponse(text=last_assistant_text(output), output_messages=output, echo_end=echo_end)

    def _new_part(self, items: Sequence[Any], *, declared: bool) -> NewPart:
        if self._keep_all:
            return ALL_NEW
        quick = find_new_quickly(items, self.asked, declared=declared)
        if quick is not None:
            return quick
        return find_new([speaker_of(item) for item in items], self.asked, declared=declared)

    def _detect_data(self, value: Any) -> DetectedReply:
        """Read plain data, or an object of a library, with the first matching format of the table."""
        if type(value) is dict and is_list(value.get("output_messages")):  # cheapest test first
            self.data = value if self.data is None else self.data
            return _agentv_reply(read_agentv_reply(value, self))
        detected = None if type(value) in _CONTAINERS else self._detect_object(value)
        if detected is not None:
            return detected
        data = value if self._is_plain else plain_data(value)
        if not isinstance(data, (*OBJECT, list, tuple)):
            data = list(value) if isinstance(value, Sequence) else plain(value)
        if not isinstance(data, (*OBJECT, list, tuple)):
            msg = f"expected a text, messages or a reply, got {describe_value(value)}"
            raise FormatError(msg)
        self._is_plain = True
        if self.data is None:
            self.data = data
        if self._known is None:
            return self._detect_format(data)
        known, self._known = self._known, None
        structure, self._first = known.find(data)
        if structure is None or self._first:
            return self._detect_format(data)
        self._used = []
        detected = self._detect_format(data)
        # In the order of the table, so that the same ones are found again at each level.
        known.remember(structure, tuple([each for each in reply_formats() if each in self._used]))
        return detected

    def _detect_object(self, value: Any) -> DetectedReply | None:
        """Read an object of a library that cannot be converted to plain data; return `None` for other values."""
        for format_ in reply_formats():
            if format_.detect_object is not None and format_.read_object is not None and format_.detect_object(value):
                return DetectedReply(format_.name, format_.read_object(value, self))
        return None

    def _formats(self) -> Iterator[ReplyFormat]:
        """Yield the formats in the order in which they are tried."""
        yield from self._first
        yield from reply_formats()

    def _note(self, format_: ReplyFormat) -> None:
        if self._used is not None:
            self._used.append(format_)

    def _detect_format(self, data: Any) -> DetectedReply:
        for format_ in self._formats():
            if format_.items and isinstance(data, OBJECT):
                if format_.detect([data]):
                    self._note(format_)
                    name = "message" if format_.name == "messages" else format_.name
                    return DetectedReply(name, self.read_messages([data], declared=True))
            elif format_.detect(data):
                self._note(format_)
                return self._read_as(format_, data)
        return self._read_unknown(data)

    def _read_unknown(self, data: Any) -> DetectedReply:
        """Return a JSON document of unknown shape as the answer; `decode_response` reads it as a reply instead."""
        if self._keep_all:
            return _agentv_reply(decode_fields(data if isinstance(data, OBJECT) else {"output_messages": data}))
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
        """Read a list of messages, items or events in any known form, without the messages of the request."""
        messages = read_plain(items)
        if messages is not None and not _may_be_ag2(messages):
            return self._read_plain(messages, declared=declared)
        items = list(items) if self._is_plain else plain_data(list(items))
        formats = (format_ for format_ in self._formats() if format_ not in self._translating)
        shape = next((format_ for format_ in formats if format_.detect(items)), None)
        if shape is None:
            return decode_fields({"output_messages": items})
        self._note(shape)
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
        self._is_cut = self._is_cut or new != ALL_NEW
        response = shape.read(items[new.start :], self)
        if new.uncertain_end is None:
            return response
        before = shape.read(items[new.start : new.uncertain_end], self)
        response = replace(response, echo_end=len(before.output_messages or ()))
        if before.tokens_usage is None:
            return response
        return replace(response, tokens_usage=None, warnings=(*response.warnings, _USAGE_UNKNOWN))


def _is_plain_value(value: Any) -> bool:
    """Return whether a value is a text, a number, a boolean or null, and needs no cleaning."""
    kind = type(value)
    return (kind is str and not has_surrogates(value)) or kind in _PLAIN_TYPES


def _may_be_ag2(messages: tuple[Message, ...]) -> bool:
    """Return whether a conversation begins with a named assistant, which in AG2 may be the one who asked."""
    return bool(messages) and messages[0].role == "assistant" and bool(messages[0].name)


def _name(shape: ReplyFormat, data: Any) -> str:
    return text_key(data) if shape.name == "text" else shape.name


def _is_strict(text: str) -> bool:
    """Return whether a JSON text has no duplicate keys and no constants outside of the standard."""
    try:
        parse_with_hooks(text, object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError
    return result


def _reject_constant(name: str) -> None:
    raise ValueError(name)


def _agentv_reply(response: ProviderResponse) -> DetectedReply:
    return DetectedReply("agentv", response)
