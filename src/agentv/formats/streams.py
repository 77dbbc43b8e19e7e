"""Assembler of streams of events (AG-UI, AI SDK, Ollama, LangGraph, vendors) into one complete reply."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.formats.anthropic import AnthropicStreamDecoder
from agentv.formats.fields import MISSING_CALLS, OBJECT, is_list, objects_in, to_snake_case
from agentv.formats.gemini import assemble_gemini, finish_of
from agentv.formats.langgraph import assemble_state
from agentv.formats.log_entries import StrayEvents, is_ping, read_strays, reports_calls, with_strays
from agentv.formats.ollama import assemble_ollama, is_ollama
from agentv.formats.openai.chat import ChatStreamDecoder
from agentv.formats.openai.responses import FORMAT as REALTIME
from agentv.formats.openai.responses import ResponsesStreamDecoder
from agentv.formats.sse import ServerEvent
from agentv.formats.turns import is_between, split_turns
from agentv.formats.ui_streams import accept_ag_ui, accept_ai_sdk, assemble_ag_ui, assemble_ai_sdk, is_ag_ui, is_ai_sdk
from agentv.formats.unread import call_in, has_no_calls
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse, Unread
from agentv.protocols import ReplyFormat, ReplyReader
from agentv.registry import reply_formats

_Object = Mapping[str, Any]
DELTA_KEYS = ("delta", "token", "chunk", "text", "answer", "response", "output", "message", "content", "reply")
"""Common keys of the next chunk of a text."""
_STATES = ("values", "updates", "messages", "messages/partial", "messages/complete")
"""LangGraph events that hold messages."""


class StreamEvent(Struct, frozen=True):
    """One event of a stream."""

    value: Any
    """The parsed data; a text if it is not JSON."""
    name: str = "message"

    @property
    def mode(self) -> str:
        """The stream mode of LangGraph: the name without the subgraph."""
        return self.name.partition("|")[0]

    @property
    def kind(self) -> str:
        """The kind of event: its name, else its `type`, else its `event`."""
        if self.name != "message" or not isinstance(self.value, OBJECT):
            return self.name
        return next((value for key in ("type", "event") if isinstance(value := self.value.get(key), str)), "")


class AssembledStream(Struct, frozen=True):
    """A stream assembled into one document."""

    document: Any
    """The answer as a server would have sent it without streaming."""
    missing: str = ""
    """The missing final event if the stream was truncated."""
    shape: str = ""
    """The detected shape, if it cannot be detected from the document alone."""
    texts: Sequence[str] = ()
    """The chunks of the text, if they were identified only by their position."""
    strays: StrayEvents = StrayEvents()
    """The content of events that do not belong to the format of the stream."""


def assemble_stream(events: Sequence[StreamEvent], *, snapshots: bool = False) -> AssembledStream | None:
    """Assemble a stream; return `None` if its kind is unknown or ambiguous.

    With `snapshots`, a text holds the complete text so far if nothing else says whether it is a chunk.
    """
    events = [event for event in events if not is_ping(event.value, event.name)]
    values = [event.value for event in events if isinstance(event.value, OBJECT)]
    stream = _assemble_known(events)
    if stream is not None:
        return stream
    named = _assemble_cortex(events) or _assemble_deltas([event.value for event in events])
    if named is not None:
        return AssembledStream(named)
    if any(event.mode in _STATES for event in events):
        return _assemble_states(events)
    listed = _assemble_list(events)
    if listed is not None:
        return listed
    formats = [
        format_ for format_ in reply_formats() if not format_.items and format_ is not FORMAT and format_.name != _LOG
    ]
    if any(format_.detect(values) for format_ in formats):
        return AssembledStream(values, strays=_collect_strays(events, _accept_all))
    custom = _assemble_custom_events(events, snapshots=snapshots) or _assemble_list(events, _LOG)
    return (
        custom
        or _assemble_messages(events)
        or _take_whole_reply(events)
        or _assemble_texts(events, snapshots=snapshots)
    )


def _assemble_known(events: Sequence[StreamEvent]) -> AssembledStream | None:
    for kind in _STREAM_KINDS:
        if any(kind.detect(event.value) for event in events if isinstance(event.value, OBJECT)):
            accept = _accept_turns(kind) if kind.single_turn else kind.accept
            accepted = [event.value for event in events if isinstance(event.value, OBJECT) and accept(event.value)]
            stream = _assemble_turns(accepted, kind.assemble) if kind.single_turn else kind.assemble(accepted)
            return replace(stream, strays=_collect_strays(events, accept))
    return None


def _accept_turns(kind: "_StreamKind") -> "_Predicate":
    """Return a predicate that also accepts the messages and results between turns."""
    return lambda value: kind.accept(value) or is_between(value)


def _assemble_turns(values: Sequence[_Object], assemble: "_Assembler") -> AssembledStream:
    """Assemble each turn; several turns, and the messages between them, become a list of complete replies."""
    streams = [assemble(turn) if isinstance(turn, list) else AssembledStream(turn) for turn in split_turns(values)]
    if len(streams) == 1:
        return streams[0]
    missing = next((stream.missing for stream in streams if stream.missing), "")
    return AssembledStream([stream.document for stream in streams], missing, streams[0].shape)


def _collect_strays(events: Sequence[StreamEvent], accept: "_Predicate") -> StrayEvents:
    return read_strays(
        (at, event.name, event.value)
        for at, event in enumerate(events)
        if not (isinstance(event.value, OBJECT) and accept(event.value))
    )


def add_stream_findings(stream: AssembledStream, response: ProviderResponse) -> ProviderResponse:
    """Add the stray events of a stream to its reply, and report a truncated stream."""
    response = with_strays(response, stream.strays)
    if not stream.missing:
        return response
    reason = f"the stream ended before {stream.missing} came, {MISSING_CALLS}"
    return replace(response, unread=(*response.unread, Unread(path="stream", reason=reason)))


def _detect(value: Any) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    return any(kind.detect(item) for kind in _STREAM_KINDS for item in objects_in(value))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    stream = _assemble_known([StreamEvent(item) for item in items])
    return ProviderResponse() if stream is None else add_stream_findings(stream, reader.read(stream.document))


def _detect_turns(value: Any) -> bool:
    """Return whether a list holds events of turns with messages or results between them."""
    if not isinstance(value, (list, tuple)) or not any(map(is_between, value)):
        return False
    return any(kind.detect(item) for kind in _STREAM_KINDS if kind.single_turn for item in objects_in(value))


FORMAT = ReplyFormat(name="stream", detect=_detect, read=_read, events=True)
TURNS = ReplyFormat(name="stream", detect=_detect_turns, read=_read)


def _accept_all(value: _Object) -> bool:
    """Accept all events: fields that are not read stay in the document and are searched there."""
    del value
    return True


_RESPONSE_PREFIXES = (
    "response.",
    "session.",
    "conversation.",
    "input_audio_buffer.",
    "output_audio_buffer.",
    "rate_limits.",
)
"""Prefixes of the events of OpenAI's Responses and Realtime APIs."""


def _accept_response_event(value: _Object) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and (kind.startswith(_RESPONSE_PREFIXES) or kind in ("error", "keepalive", "ping"))


_ANTHROPIC_EVENTS = frozenset((
    *("message_start", "message_delta", "message_stop", "ping", "error"),
    *("content_block_start", "content_block_delta", "content_block_stop"),
    # Events added by the client's helper, which repeat the others.
    *("text", "thinking", "signature", "input_json", "citation", "compaction"),
))  # fmt: skip


def _accept_anthropic_event(value: _Object) -> bool:
    return isinstance(value.get("type"), str) and value["type"] in _ANTHROPIC_EVENTS


def _is_chunk(value: _Object) -> bool:
    choice = next(objects_in(value.get("choices")), None)
    return choice is not None and isinstance(choice.get("delta"), OBJECT)


_CHUNK_EVENTS = ("content.", "refusal.", "tool_calls.", "logprobs.")
"""Events that the helper of OpenAI's client adds, which repeat the chunks."""


def _is_chunk_event(value: _Object) -> bool:
    inner = value.get("chunk")
    return value.get("type") == "chunk" and isinstance(inner, OBJECT) and "choices" in inner


def _accept_chunk_event(value: _Object) -> bool:
    return _is_chunk_event(value) or str(value.get("type")).startswith(_CHUNK_EVENTS)


def _assemble_chunk_events(values: Sequence[_Object]) -> AssembledStream:
    chunks = [value["chunk"] for value in values if _is_chunk_event(value)]
    return _assemble_turns(chunks, _assemble_chat)


def _is_response_event(value: _Object) -> bool:
    return isinstance(value.get("type"), str) and value["type"].startswith("response.")


def _is_message_start(value: _Object) -> bool:
    return value.get("type") == "message_start" and isinstance(value.get("message"), OBJECT)


def _decode_events(
    decoder: ChatStreamDecoder | ResponsesStreamDecoder | AnthropicStreamDecoder, values: Sequence[_Object]
) -> dict[str, Any]:
    for value in values:
        decoder.feed(ServerEvent(dump_json(value).decode()))
    return decoder.body


def _assemble_chat(values: Sequence[_Object]) -> AssembledStream:
    decoder = ChatStreamDecoder()
    document = _decode_events(decoder, values)
    return AssembledStream(document, "" if decoder.is_complete else "a `finish_reason`")


def _assemble_responses(values: Sequence[_Object]) -> AssembledStream:
    decoder = ResponsesStreamDecoder()
    document = {"object": "response", "output": [], **_decode_events(decoder, values)}
    # Servers that send only complete items end with the last item.
    has_begun = any(value.get("type") in ("response.created", "response.in_progress") for value in values)
    is_over = not has_begun and values[-1].get("type") == "response.output_item.done"
    return AssembledStream(document, "" if decoder.is_complete or is_over else "`response.completed`")


def _assemble_anthropic(values: Sequence[_Object]) -> AssembledStream:
    decoder = AnthropicStreamDecoder()
    document = {**_decode_events(decoder, values), "type": "message", "role": "assistant"}
    return AssembledStream(document, "" if decoder.is_complete else "`message_stop`")


def is_realtime(value: _Object) -> bool:
    """Return whether an event ends a response of OpenAI's Realtime API."""
    inner = value.get("response")
    return value.get("type") == "response.done" and isinstance(inner, OBJECT) and is_list(inner.get("output"))


def _assemble_realtime(values: Sequence[_Object]) -> AssembledStream:
    return AssembledStream(list(values), shape=REALTIME.name)


def _has_candidates(value: _Object) -> bool:
    return is_list(value.get("candidates"))


def _assemble_gemini(values: Sequence[_Object]) -> AssembledStream:
    document = assemble_gemini(values)
    return AssembledStream(document, "" if finish_of(document["candidates"][0]) is not None else "a `finishReason`")


def _assemble_ollama(values: Sequence[_Object]) -> AssembledStream:
    document = assemble_ollama(values)
    return AssembledStream(document, "" if document.get("done") is True else "`done: true`")


def _assemble_ag_ui(values: Sequence[_Object]) -> AssembledStream:
    document, ended = assemble_ag_ui(values)
    return AssembledStream(document, "" if ended else "`RUN_FINISHED`", "ag_ui")


def _assemble_ai_sdk(values: Sequence[_Object]) -> AssembledStream:
    document, ended = assemble_ai_sdk(values)
    return AssembledStream(document, "" if ended else "`finish`", "ai_sdk")


def _accept_chunk(value: _Object) -> bool:
    return is_list(value.get("choices")) or value.get("error") is not None or "usage" in value


def _accept_gemini(value: _Object) -> bool:
    return any(key in value for key in ("candidates", "usageMetadata", "usage_metadata", "promptFeedback", "error"))


_Predicate = Callable[[_Object], bool]
_Assembler = Callable[[Sequence[_Object]], AssembledStream]


class _StreamKind(Struct, frozen=True):
    """A kind of stream with its detector and its assembler."""

    detect: _Predicate
    """Return whether an event identifies this kind of stream."""
    accept: _Predicate
    """Return whether an event belongs to this kind of stream."""
    assemble: _Assembler
    """Assemble the events."""
    single_turn: bool = False
    """`True` if `assemble` handles only one turn of a model."""


_STREAM_KINDS = (
    _StreamKind(_is_chunk, _accept_chunk, _assemble_chat, single_turn=True),
    _StreamKind(_is_chunk_event, _accept_chunk_event, _assemble_chunk_events),
    _StreamKind(is_realtime, _accept_response_event, _assemble_realtime),
    _StreamKind(_is_response_event, _accept_response_event, _assemble_responses, single_turn=True),
    _StreamKind(_is_message_start, _accept_anthropic_event, _assemble_anthropic, single_turn=True),
    _StreamKind(_has_candidates, _accept_gemini, _assemble_gemini),
    _StreamKind(is_ollama, is_ollama, _assemble_ollama),
    _StreamKind(is_ag_ui, accept_ag_ui, _assemble_ag_ui),
    _StreamKind(is_ai_sdk, accept_ai_sdk, _assemble_ai_sdk),
)


def join_calls(chunks: Sequence[Any]) -> list[Any]:
    """Join the chunks of calls, as streamed by OpenAI."""
    whole = _assemble_chat([{"choices": [{"delta": {"tool_calls": list(chunks)}}]}]).document
    calls: list[Any] = whole["choices"][0]["message"].get("tool_calls", [])
    return calls


def merge_usage(before: Any, after: Any) -> Any:
    """Return the later counts, completed by the earlier ones: servers send cumulative counts."""
    if not isinstance(before, OBJECT) or not isinstance(after, OBJECT):
        return before if after is None else after
    return {**before, **{key: count for key, count in after.items() if count is not None}}


_GRAPH_MODES = frozenset((
    *(*_STATES, "metadata", "end", "error", "debug", "events", "tasks", "checkpoints", "custom", "feedback"),
    *("heartbeat", "messages/metadata", "messages-tuple"),
))  # fmt: skip


def _assemble_states(events: Sequence[StreamEvent]) -> AssembledStream:
    """Assemble the events of LangGraph: the last complete state, else the messages of all steps."""
    states = [event for event in events if event.mode in _GRAPH_MODES]
    strays = read_strays(
        (at, event.name, event.value) for at, event in enumerate(events) if event.mode not in _GRAPH_MODES
    )
    return AssembledStream(assemble_state([(event.mode, event.value) for event in states]), strays=strays)


def _assemble_cortex(events: Sequence[StreamEvent]) -> Any:
    """Return the complete message that Cortex sends after its chunks."""
    if not all(event.name.startswith(("response", "done", "error", "metadata", "message")) for event in events):
        return None
    whole = [event.value for event in events if event.name == "response" and isinstance(event.value, OBJECT)]
    is_message = bool(whole) and is_list(whole[-1].get("content")) and "role" in whole[-1]
    return whole[-1] if is_message else None


def _assemble_deltas(values: Sequence[Any]) -> Any:
    """Return the messages of a stream whose events hold a message, or a chunk of one, under `delta`."""
    items = [value for value in values if value not in ("", "[DONE]", None)]
    deltas = [value.get("delta") for value in items if isinstance(value, OBJECT) and "type" not in value]
    if not deltas or len(deltas) < len(items):
        return None
    messages: list[dict[str, Any]] = []
    for delta in deltas:
        if not isinstance(delta, OBJECT) or not isinstance(delta.get("role"), str):
            return None
        last = messages[-1] if messages else {}
        if delta.get("id") is not None and last.get("id") == delta["id"] and not delta.get("tool_calls"):
            last["content"] = (last.get("content") or "") + (delta.get("content") or "")
        else:
            messages.append(dict(delta))
    return messages


_LOG = "log"
_NON_ANSWER_KINDS = frozenset(("thinking", "reasoning", "thought", "status", "progress", "info", "debug", "plan"))
"""Kinds of events whose texts are not part of the answer."""


def _assemble_custom_events(events: Sequence[StreamEvent], *, snapshots: bool) -> AssembledStream | None:
    """Assemble events of a custom server: calls from some events, the answer from others."""
    reports = [event for event in events if isinstance(event.value, OBJECT) and reports_calls(event.value, event.name)]
    if not reports:
        return None
    rest = [event for event in events if event not in reports and to_snake_case(event.kind) not in _NON_ANSWER_KINDS]
    messages = [event for event in rest if isinstance(event.value, OBJECT) and isinstance(event.value.get("role"), str)]
    stream = _assemble_messages(messages) or _assemble_texts(rest, snapshots=snapshots)
    return None if stream is None else replace(stream, strays=_collect_strays(reports, lambda _: False))


def _assemble_list(events: Sequence[StreamEvent], name: str | None = None) -> AssembledStream | None:
    """Return all events as a list if a library's format, or the named format, reads it."""
    values = [event.value for event in events if event.value not in ("", "[DONE]", None)]
    formats: tuple[ReplyFormat, ...] = reply_formats()
    fitting = [
        format_ for format_ in formats if format_.events and (format_.name == name if name else format_.name != _LOG)
    ]
    shape = next((format_ for format_ in fitting if format_.detect(values)), None)
    return None if shape is None else AssembledStream(values, shape=shape.name)


def _assemble_messages(events: Sequence[StreamEvent]) -> AssembledStream | None:
    """Assemble a stream of complete messages, one per event."""
    values = [event.value for event in events]
    if not values or not all(isinstance(value, OBJECT) and isinstance(value.get("role"), str) for value in values):
        return None
    accumulator = MessageAccumulator()
    for value in values:
        accumulator.add(value)
    return AssembledStream(accumulator.messages)


def _take_whole_reply(events: Sequence[StreamEvent]) -> AssembledStream | None:
    """Return the event that holds a complete reply, with the calls that the other events report."""
    values = [event.value for event in events if isinstance(event.value, OBJECT)]
    whole = [value for value in values if any(value.get(key) for key in ("output_messages", "outputMessages"))]
    states = [value for value in values if is_list(value.get("messages"))]
    candidates = whole or states
    if not candidates:
        return None
    others = [event for event in events if event.value not in candidates and not _is_text_piece(event)]
    return AssembledStream(candidates[-1], strays=_collect_strays(others, lambda _: False))


def _is_text_piece(event: StreamEvent) -> bool:
    """Return whether an event holds only a chunk of text."""
    value = event.value
    if not isinstance(value, OBJECT) or "tool" in event.kind.lower() or not has_no_calls(value):
        return False
    return any(isinstance(value.get(key), str) for key in DELTA_KEYS)


def _assemble_texts(events: Sequence[StreamEvent], *, snapshots: bool) -> AssembledStream | None:
    """Join the chunks of a text if their position is unambiguous: one key, in events of one kind."""
    chunks: dict[tuple[str, str], list[str]] = {}
    others: dict[str, Any] = {}
    for event in events:
        if isinstance(event.value, str):
            if "tool" in event.name.lower():
                return None  # the text of a tool is not part of the answer
            chunks.setdefault(("", event.name), []).append(event.value)
        elif isinstance(event.value, OBJECT):
            keys = [key for key in DELTA_KEYS if isinstance(event.value.get(key), str)]
            if len(keys) > 1 or call_in(event.value) is not None:
                return None
            if keys:
                chunks.setdefault((keys[0], event.kind), []).append(event.value[keys[0]])
            _add_others(others, event.value)
    if len(chunks) != 1:
        return None
    ((key, kind), texts), *_ = chunks.items()
    document = {**others, "text": texts[-1] if snapshots else "".join(texts)}
    strays = read_strays(
        (at, event.name, event.value)
        for at, event in enumerate(events)
        if not (isinstance(event.value, str) and event.name == kind) and _may_be_stray(event, key)
    )
    return AssembledStream(document, shape=f"stream:{key}" if key else "stream", texts=texts, strays=strays)


def _may_be_stray(event: StreamEvent, key: str) -> bool:
    """Return whether an event reports a tool and is not a chunk of the text."""
    return isinstance(event.value, OBJECT) and key not in event.value and "tool" in event.kind.lower()


def _add_others(others: dict[str, Any], value: _Object) -> None:
    """Collect the fields beside a chunk of text; lists are concatenated, because they may hold calls."""
    for key, item in value.items():
        if key in (*DELTA_KEYS, "type", "event"):
            continue
        known = others.get(key)
        if isinstance(known, (list, tuple)) and known != item:
            others[key] = [*known, *(item if is_list(item) else [item] if item is not None else [])]
        elif isinstance(known, OBJECT) and isinstance(item, OBJECT):
            merged = dict(known)
            _add_others(merged, item)
            others[key] = merged
        else:
            others[key] = item


class MessageAccumulator:
    """Accumulator of messages that arrive one by one, or as a growing list."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self._places: dict[str, int] = {}

    def add(self, messages: Any) -> None:
        """Add a message or a list; a list that repeats all messages so far, or a message with a known id, replaces."""
        items = list(messages) if is_list(messages) else [messages] if isinstance(messages, OBJECT) else []
        if self.messages and items[: len(self.messages)] == self.messages:
            self.messages, self._places = [], {}
        for item in items:
            message_id = item.get("id") if isinstance(item, OBJECT) else None
            if not isinstance(message_id, str) or not message_id:
                self.messages.append(item)
            elif message_id in self._places:
                self.messages[self._places[message_id]] = item
            else:
                self._places[message_id] = len(self.messages)
                self.messages.append(item)
