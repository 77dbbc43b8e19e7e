"""Assemble streams of events (AG-UI, AI SDK, Ollama, LangGraph, vendors) into one whole answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentv.formats.anthropic import MessagePieces
from agentv.formats.fields import MISSING_CALLS, OBJECT, objects_in
from agentv.formats.gemini import finish_of, fold_gemini
from agentv.formats.langgraph_stream import fold_parts
from agentv.formats.named_events import fold_named
from agentv.formats.ollama import fold_ollama, is_ollama
from agentv.formats.openai_chat import ChatPieces
from agentv.formats.openai_realtime import FORMAT as REALTIME
from agentv.formats.openai_responses import ResponsePieces
from agentv.formats.sse import ServerEvent
from agentv.formats.strays import Strays, is_ping, read_strays, tells_calls, with_strays
from agentv.formats.stream_turns import is_between, split_turns
from agentv.formats.ui_streams import fold_ag_ui, fold_ai_sdk, is_ag_ui, is_ai_sdk, knows_ag_ui, knows_ai_sdk
from agentv.formats.unread import call_in, holds_nothing
from agentv.formats.vocabulary import snake
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse, Unread
from agentv.protocols import ReplyFormat, ReplyReader
from agentv.registry import reply_formats

_Object = Mapping[str, Any]
DELTA_KEYS = ("delta", "token", "chunk", "text", "answer", "response", "output", "message", "content", "reply")
"""Where the next piece of a text usually stands."""
_STATES = ("values", "updates", "messages", "messages/partial", "messages/complete")
"""How LangGraph calls events that hold messages."""


class StreamEvent(NamedTuple):
    """One event of a stream."""

    value: Any
    """Its data, parsed; a text when it is no JSON."""
    name: str = "message"

    @property
    def mode(self) -> str:
        """What LangGraph calls it: its name, without that of the subgraph."""
        return self.name.partition("|")[0]

    @property
    def kind(self) -> str:
        """What it calls itself: its name, else its `type`, else its `event`."""
        if self.name != "message" or not isinstance(self.value, OBJECT):
            return self.name
        return next((value for key in ("type", "event") if isinstance(value := self.value.get(key), str)), "")


class Folded(NamedTuple):
    """What a stream amounts to."""

    document: Any
    """The answer as it would have come in one piece."""
    missing: str = ""
    """What should have ended it and did not come: the stream was cut off."""
    shape: str = ""
    """What it was recognised by, where the document alone does not tell."""
    texts: Sequence[str] = ()
    """The pieces of its text, where nothing but their place told that they are such."""
    strays: Strays = Strays()
    """What the events tell that are none of the stream's own."""


def fold_stream(events: Sequence[StreamEvent], *, snapshots: bool = False) -> Folded | None:
    """Put a stream together; `None` when it is of no kind that is known, or could be of several.

    With `snapshots` each text is all of it so far, where nothing else tells whether it is a piece.
    """
    events = [event for event in events if not is_ping(event.value, event.name)]
    values = [event.value for event in events if isinstance(event.value, OBJECT)]
    folded = _fold_vendor(events)
    if folded is not None:
        return folded
    named = fold_named(events)
    if named is not None:
        return Folded(named)
    if any(event.mode in _STATES for event in events):
        return _fold_states(events)
    listed = _fold_listed(events)
    if listed is not None:
        return listed
    formats = [each for each in reply_formats() if not each.items and each is not FORMAT and each.name != _LOG]
    if any(each.detect(values) for each in formats):
        return Folded(values, strays=_find_strays(events, _knows_all))
    told = _fold_told(events, snapshots=snapshots) or _fold_listed(events, _LOG)
    return told or _fold_messages(events) or _fold_last(events) or _fold_texts(events, snapshots=snapshots)


def _fold_vendor(events: Sequence[StreamEvent]) -> Folded | None:
    for vendor in _VENDORS:
        if any(vendor.fits(event.value) for event in events if isinstance(event.value, OBJECT)):
            knows = _knows_turns(vendor) if vendor.is_one_turn else vendor.knows
            own = [event.value for event in events if isinstance(event.value, OBJECT) and knows(event.value)]
            folded = _fold_turns(own, vendor.fold) if vendor.is_one_turn else vendor.fold(own)
            return folded._replace(strays=_find_strays(events, knows))
    return None


def _knows_turns(vendor: "_Vendor") -> "_Test":
    """Return a test that accepts the messages and results between turns beside the events of a vendor."""
    return lambda value: vendor.knows(value) or is_between(value)


def _fold_turns(values: Sequence[_Object], fold: "_Fold") -> Folded:
    """Put each turn together; several, and the messages between them, are a list of whole replies."""
    folded = [fold(turn) if isinstance(turn, list) else Folded(turn) for turn in split_turns(values)]
    if len(folded) == 1:
        return folded[0]
    missing = next((each.missing for each in folded if each.missing), "")
    return Folded([each.document for each in folded], missing, folded[0].shape)


def _find_strays(events: Sequence[StreamEvent], knows: "_Test") -> Strays:
    return read_strays(
        (at, event.name, event.value)
        for at, event in enumerate(events)
        if not (isinstance(event.value, OBJECT) and knows(event.value))
    )


def read_folded(folded: Folded, response: ProviderResponse) -> ProviderResponse:
    """Return the reply that a stream amounts to with what else the stream told, and what was not understood of it."""
    response = with_strays(response, folded.strays)
    if not folded.missing:
        return response
    reason = f"the stream ended before {folded.missing} came, {MISSING_CALLS}"
    return replace(response, unread=(*response.unread, Unread(path="stream", reason=reason)))


def _detect(value: Any) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    return any(vendor.fits(item) for vendor in _VENDORS for item in objects_in(value))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    folded = _fold_vendor([StreamEvent(item) for item in items])
    return ProviderResponse() if folded is None else read_folded(folded, reader.read(folded.document))


def _detect_turns(value: Any) -> bool:
    """Tell events of turns with messages or results between them, which others take for their own."""
    if not isinstance(value, (list, tuple)) or not any(map(is_between, value)):
        return False
    return any(vendor.fits(item) for vendor in _VENDORS if vendor.is_one_turn for item in objects_in(value))


FORMAT = ReplyFormat(name="stream", detect=_detect, read=_read, events=True)
TURNS = ReplyFormat(name="stream", detect=_detect_turns, read=_read)


def _knows_all(value: _Object) -> bool:
    """Tell that no event is unknown: fields that are not read stay in the document, and are searched there."""
    del value
    return True


_RESPONSE_WORDS = (
    "response.",
    "session.",
    "conversation.",
    "input_audio_buffer.",
    "output_audio_buffer.",
    "rate_limits.",
)
"""How the events of OpenAI's Responses and Realtime begin."""


def _knows_response_event(value: _Object) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and (kind.startswith(_RESPONSE_WORDS) or kind in ("error", "keepalive", "ping"))


_ANTHROPIC_EVENTS = frozenset((
    *("message_start", "message_delta", "message_stop", "ping", "error"),
    *("content_block_start", "content_block_delta", "content_block_stop"),
    # What the helper of its client adds to them, all of it told by the others as well.
    *("text", "thinking", "signature", "input_json", "citation", "compaction"),
))  # fmt: skip


def _knows_anthropic_event(value: _Object) -> bool:
    return isinstance(value.get("type"), str) and value["type"] in _ANTHROPIC_EVENTS


def _is_chunk(value: _Object) -> bool:
    choice = next(objects_in(value.get("choices")), None)
    return choice is not None and isinstance(choice.get("delta"), OBJECT)


_CHUNK_EVENTS = ("content.", "refusal.", "tool_calls.", "logprobs.")
"""Events that the helper of OpenAI's client adds to the chunks, which tell it all."""


def _is_chunk_event(value: _Object) -> bool:
    inner = value.get("chunk")
    return value.get("type") == "chunk" and isinstance(inner, OBJECT) and "choices" in inner


def _knows_chunk_event(value: _Object) -> bool:
    return _is_chunk_event(value) or str(value.get("type")).startswith(_CHUNK_EVENTS)


def _fold_chunk_events(values: Sequence[_Object]) -> Folded:
    chunks = [value["chunk"] for value in values if _is_chunk_event(value)]
    return _fold_turns(chunks, _fold_chat)


def _is_response_event(value: _Object) -> bool:
    return isinstance(value.get("type"), str) and value["type"].startswith("response.")


def _is_message_start(value: _Object) -> bool:
    return value.get("type") == "message_start" and isinstance(value.get("message"), OBJECT)


def _fold_pieces(pieces: ChatPieces | ResponsePieces | MessagePieces, values: Sequence[_Object]) -> dict[str, Any]:
    for value in values:
        pieces.feed(ServerEvent(dump_json(value).decode()))
    return pieces.body


def _fold_chat(values: Sequence[_Object]) -> Folded:
    pieces = ChatPieces()
    document = _fold_pieces(pieces, values)
    return Folded(document, "" if pieces.is_complete else "a `finish_reason`")


def _fold_responses(values: Sequence[_Object]) -> Folded:
    pieces = ResponsePieces()
    document = {"object": "response", "output": [], **_fold_pieces(pieces, values)}
    # Servers that send whole items and nothing before them end with the last item.
    has_begun = any(value.get("type") in ("response.created", "response.in_progress") for value in values)
    is_over = not has_begun and values[-1].get("type") == "response.output_item.done"
    return Folded(document, "" if pieces.is_complete or is_over else "`response.completed`")


def _fold_anthropic(values: Sequence[_Object]) -> Folded:
    pieces = MessagePieces()
    document = {**_fold_pieces(pieces, values), "type": "message", "role": "assistant"}
    return Folded(document, "" if pieces.is_complete else "`message_stop`")


def is_realtime(value: _Object) -> bool:
    """Tell the event that ends a response of OpenAI's Realtime."""
    inner = value.get("response")
    return value.get("type") == "response.done" and isinstance(inner, OBJECT) and _is_list(inner.get("output"))


def _fold_realtime(values: Sequence[_Object]) -> Folded:
    return Folded(list(values), shape=REALTIME.name)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _has_candidates(value: _Object) -> bool:
    return _is_list(value.get("candidates"))


def _fold_gemini(values: Sequence[_Object]) -> Folded:
    document = fold_gemini(values)
    return Folded(document, "" if finish_of(document["candidates"][0]) is not None else "a `finishReason`")


def _fold_ollama(values: Sequence[_Object]) -> Folded:
    document = fold_ollama(values)
    return Folded(document, "" if document.get("done") is True else "`done: true`")


def _fold_ag_ui(values: Sequence[_Object]) -> Folded:
    document, ended = fold_ag_ui(values)
    return Folded(document, "" if ended else "`RUN_FINISHED`", "ag_ui")


def _fold_ai_sdk(values: Sequence[_Object]) -> Folded:
    document, ended = fold_ai_sdk(values)
    return Folded(document, "" if ended else "`finish`", "ai_sdk")


def _knows_chunk(value: _Object) -> bool:
    return _is_list(value.get("choices")) or value.get("error") is not None or "usage" in value


def _knows_gemini(value: _Object) -> bool:
    return any(key in value for key in ("candidates", "usageMetadata", "usage_metadata", "promptFeedback", "error"))


_Test = Callable[[_Object], bool]
_Fold = Callable[[Sequence[_Object]], Folded]


class _Vendor(NamedTuple):
    """A kind of stream."""

    fits: _Test
    """Tell by one event that a stream is of this kind."""
    knows: _Test
    """Tell an event of this kind."""
    fold: _Fold
    """Put the events together."""
    is_one_turn: bool = False
    """Whether `fold` puts one turn of a model together and no more."""


_VENDORS = (
    _Vendor(_is_chunk, _knows_chunk, _fold_chat, is_one_turn=True),
    _Vendor(_is_chunk_event, _knows_chunk_event, _fold_chunk_events),
    _Vendor(is_realtime, _knows_response_event, _fold_realtime),
    _Vendor(_is_response_event, _knows_response_event, _fold_responses, is_one_turn=True),
    _Vendor(_is_message_start, _knows_anthropic_event, _fold_anthropic, is_one_turn=True),
    _Vendor(_has_candidates, _knows_gemini, _fold_gemini),
    _Vendor(is_ollama, is_ollama, _fold_ollama),
    _Vendor(is_ag_ui, knows_ag_ui, _fold_ag_ui),
    _Vendor(is_ai_sdk, knows_ai_sdk, _fold_ai_sdk),
)


def join_calls(pieces: Sequence[Any]) -> list[Any]:
    """Put together the calls of which these are pieces, as OpenAI streams them."""
    whole = _fold_chat([{"choices": [{"delta": {"tool_calls": list(pieces)}}]}]).document
    calls: list[Any] = whole["choices"][0]["message"].get("tool_calls", [])
    return calls


def merge_usage(before: Any, after: Any) -> Any:
    """Give the later counts, and of the earlier ones what the later lack: servers tell the total so far."""
    if not isinstance(before, OBJECT) or not isinstance(after, OBJECT):
        return before if after is None else after
    return {**before, **{key: count for key, count in after.items() if count is not None}}


_GRAPH_MODES = frozenset((
    *(*_STATES, "metadata", "end", "error", "debug", "events", "tasks", "checkpoints", "custom", "feedback"),
    *("heartbeat", "messages/metadata", "messages-tuple"),
))  # fmt: skip


def _fold_states(events: Sequence[StreamEvent]) -> Folded:
    """Put LangGraph's events together: the last whole state, else the messages of all steps."""
    own = [event for event in events if event.mode in _GRAPH_MODES]
    others = read_strays((at, each.name, each.value) for at, each in enumerate(events) if each.mode not in _GRAPH_MODES)
    return Folded(fold_parts([(event.mode, event.value) for event in own]), strays=others)


_LOG = "log"
_ASIDE = frozenset(("thinking", "reasoning", "thought", "status", "progress", "info", "debug", "plan"))
"""Kinds of events whose texts are no part of the answer."""


def _fold_told(events: Sequence[StreamEvent], *, snapshots: bool) -> Folded | None:
    """Put together what a server tells in its own words: its tools by some events, the answer by others."""
    told = [event for event in events if isinstance(event.value, OBJECT) and tells_calls(event.value, event.name)]
    if not told:
        return None
    rest = [event for event in events if event not in told and snake(event.kind) not in _ASIDE]
    spoken = [event for event in rest if isinstance(event.value, OBJECT) and isinstance(event.value.get("role"), str)]
    folded = _fold_messages(spoken) or _fold_texts(rest, snapshots=snapshots)
    return None if folded is None else folded._replace(strays=_find_strays(told, lambda _: False))


def _fold_listed(events: Sequence[StreamEvent], name: str | None = None) -> Folded | None:
    """Take all events as a list, when it is one of a library's, or, with a name, of that format."""
    values = [event.value for event in events if event.value not in ("", "[DONE]", None)]
    formats: tuple[ReplyFormat, ...] = reply_formats()
    fitting = [each for each in formats if each.events and (each.name == name if name else each.name != _LOG)]
    shape = next((each for each in fitting if each.detect(values)), None)
    return None if shape is None else Folded(values, shape=shape.name)


def _fold_messages(events: Sequence[StreamEvent]) -> Folded | None:
    """Take a stream of whole messages, one an event."""
    values = [event.value for event in events]
    if not values or not all(isinstance(value, OBJECT) and isinstance(value.get("role"), str) for value in values):
        return None
    gathered = Gathered()
    for value in values:
        gathered.add(value)
    return Folded(gathered.messages)


def _fold_last(events: Sequence[StreamEvent]) -> Folded | None:
    """Take the one event that holds a whole reply, and of the others what they tell of calls."""
    values = [event.value for event in events if isinstance(event.value, OBJECT)]
    whole = [value for value in values if any(value.get(key) for key in ("output_messages", "outputMessages"))]
    states = [value for value in values if _is_list(value.get("messages"))]
    found = whole or states
    if not found:
        return None
    others = [event for event in events if event.value not in found and not _is_text_piece(event)]
    return Folded(found[-1], strays=_find_strays(others, lambda _: False))


def _is_text_piece(event: StreamEvent) -> bool:
    """Tell an event that holds nothing but a piece of text."""
    value = event.value
    if not isinstance(value, OBJECT) or "tool" in event.kind.lower() or not holds_nothing(value):
        return False
    return any(isinstance(value.get(key), str) for key in DELTA_KEYS)


def _fold_texts(events: Sequence[StreamEvent], *, snapshots: bool) -> Folded | None:
    """Join pieces of text, when there is no doubt where they stand: one key, in events of one kind."""
    found: dict[tuple[str, str], list[str]] = {}
    others: dict[str, Any] = {}
    for event in events:
        if isinstance(event.value, str):
            if "tool" in event.name.lower():
                return None  # what it tells of a tool is no part of the answer
            found.setdefault(("", event.name), []).append(event.value)
        elif isinstance(event.value, OBJECT):
            keys = [key for key in DELTA_KEYS if isinstance(event.value.get(key), str)]
            if len(keys) > 1 or call_in(event.value) is not None:
                return None
            if keys:
                found.setdefault((keys[0], event.kind), []).append(event.value[keys[0]])
            _add_others(others, event.value)
    if len(found) != 1:
        return None
    ((key, kind), pieces), *_ = found.items()
    document = {**others, "text": pieces[-1] if snapshots else "".join(pieces)}
    strays = read_strays(
        (at, event.name, event.value)
        for at, event in enumerate(events)
        if not (isinstance(event.value, str) and event.name == kind) and _may_be_stray(event, key)
    )
    return Folded(document, shape=f"stream:{key}" if key else "stream", texts=pieces, strays=strays)


def _may_be_stray(event: StreamEvent, key: str) -> bool:
    """Tell an event that says what it is and is no piece of the text."""
    return isinstance(event.value, OBJECT) and key not in event.value and "tool" in event.kind.lower()


def _add_others(others: dict[str, Any], value: _Object) -> None:
    """Take what stands beside a piece of text; a later list is added to an earlier one, which may hold calls."""
    for key, item in value.items():
        if key in (*DELTA_KEYS, "type", "event"):
            continue
        known = others.get(key)
        if isinstance(known, (list, tuple)) and known != item:
            others[key] = [*known, *(item if _is_list(item) else [item] if item is not None else [])]
        elif isinstance(known, OBJECT) and isinstance(item, OBJECT):
            merged = dict(known)
            _add_others(merged, item)
            others[key] = merged
        else:
            others[key] = item


class Gathered:
    """Messages that come one by one, or all again each time."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self._places: dict[str, int] = {}

    def add(self, found: Any) -> None:
        """Take one message or a list; a list that begins with all so far, and a message of a known id, replaces."""
        items = list(found) if _is_list(found) else [found] if isinstance(found, OBJECT) else []
        if self.messages and items[: len(self.messages)] == self.messages:
            self.messages, self._places = [], {}
        for item in items:
            own_id = item.get("id") if isinstance(item, OBJECT) else None
            if not isinstance(own_id, str) or not own_id:
                self.messages.append(item)
            elif own_id in self._places:
                self.messages[self._places[own_id]] = item
            else:
                self._places[own_id] = len(self.messages)
                self.messages.append(item)
