"""Assemble streams of events (AG-UI, AI SDK, Ollama, LangGraph, vendors) into one whole answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentv.formats.anthropic import MessagePieces
from agentv.formats.fields import MISSING_CALLS, OBJECT, objects_in, word
from agentv.formats.gemini import finish_of, fold_gemini
from agentv.formats.langgraph_stream import fold_parts
from agentv.formats.named_events import fold_named
from agentv.formats.ollama import fold_ollama, is_ollama
from agentv.formats.openai_chat import ChatPieces
from agentv.formats.openai_responses import ResponsePieces
from agentv.formats.sse import ServerEvent
from agentv.formats.strays import Strays, is_ping, read_strays, tells_calls, with_strays
from agentv.formats.stream_turns import is_between, split_turns
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.unread import holds_nothing
from agentv.formats.usage import add_usage, decode_usage
from agentv.formats.vocabulary import snake
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse, Unread
from agentv.protocols import ReplyFormat, ReplyReader
from agentv.registry import reply_formats

_Object = Mapping[str, Any]
_AG_UI = frozenset((
    *("RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"),
    *("TOOL_CALL_START", "TOOL_CALL_CHUNK", "MESSAGES_SNAPSHOT"),
))  # fmt: skip
_AI_SDK = frozenset((
    *("start-step", "step-start", "text-start", "reasoning-start", "tool-input-start", "tool-input-available"),
    *("tool-output-available", "tool-output-denied", "tool-call-input-streaming-start"),
))  # fmt: skip


def is_ag_ui(value: _Object) -> bool:
    """Tell an event of AG-UI's."""
    return isinstance(value.get("type"), str) and value["type"] in _AG_UI


def is_ai_sdk(value: _Object) -> bool:
    """Tell a part of a UI message stream."""
    return isinstance(value.get("type"), str) and value["type"] in _AI_SDK


_AG_UI_WORDS = (
    *("RUN_", "STEP_", "TEXT_MESSAGE_", "TOOL_CALL_", "STATE_", "MESSAGES_", "THINKING_", "REASONING_"),
    *("ACTIVITY_", "RAW", "CUSTOM", "META"),
)
_AI_SDK_WORDS = (
    *("start", "finish", "abort", "error", "file", "message-metadata", "text-", "reasoning-", "source", "data-", "raw"),
    *("step-", "response-metadata", "tool-input-", "tool-output-", "tool-approval-", "tool-call", "tool-result"),
    *("tool-error",),
)


def knows_ag_ui(value: _Object) -> bool:
    """Tell an event of AG-UI's that is read or holds no calls."""
    return isinstance(value.get("type"), str) and value["type"].startswith(_AG_UI_WORDS)


def knows_ai_sdk(value: _Object) -> bool:
    """Tell a part of a UI message stream that is read or holds no calls."""
    return isinstance(value.get("type"), str) and value["type"].startswith(_AI_SDK_WORDS)


class _Told:
    """The conversation so far: texts and calls by their ids, in the order in which they began."""

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._by_id: dict[str, dict[str, Any]] = {}
        self._calls: dict[str, dict[str, Any]] = {}
        self._results: list[dict[str, Any]] = []
        """Results of calls that an earlier reply made."""
        self.thoughts: list[str] = []

    def begin(self, own_id: Any = None, role: Any = None) -> dict[str, Any]:
        """Begin a message."""
        message = {"role": role if isinstance(role, str) else "assistant", "texts": [], "calls": [], "id": own_id}
        self._messages.append(message)
        if isinstance(own_id, str):
            self._by_id[own_id] = message
        return message

    def say(self, message: dict[str, Any], piece: Any) -> None:
        """Add to what a message says."""
        if isinstance(piece, str):
            message["texts"].append(piece)

    def find(self, own_id: Any) -> dict[str, Any] | None:
        """Give the message of this id."""
        return self._by_id.get(own_id) if isinstance(own_id, str) else None

    @property
    def last(self) -> dict[str, Any]:
        """Give the message that is under way."""
        return self._messages[-1] if self._messages else self.begin()

    def call(self, own_id: Any, name: Any = None, message: dict[str, Any] | None = None) -> dict[str, Any]:
        """Give the call of this id, a new one on this message, or on the last, when there is none yet."""
        key = own_id if isinstance(own_id, str) else ""
        if key not in self._calls:
            home = self.last if message is None else message
            self._calls[key] = {"tool": None, "id": key or None, "pieces": []}
            home["calls"].append(self._calls[key])
        call = self._calls[key]
        call["tool"] = call["tool"] or (name if isinstance(name, str) else None)
        return call

    @property
    def call_ids(self) -> list[str]:
        """Give the ids of all calls."""
        return list(self._calls)

    def knows(self, own_id: Any) -> bool:
        """Tell whether there is a call of this id."""
        return isinstance(own_id, str) and own_id in self._calls

    def answer(self, own_id: Any, **result: Any) -> None:
        """Add a result to its call; a call of an earlier reply is answered by a message of its own."""
        call = self._calls.get(own_id if isinstance(own_id, str) else "")
        if call is not None:
            call.pop("status", None)  # it waits no longer
            call.update(result)
            return
        told = {"role": "tool", "tool_call_id": own_id, "content": result.get("output"), **result}
        self._results.append({key: value for key, value in told.items() if key != "output"})

    def messages(self) -> list[dict[str, Any]]:
        """Give the messages that say or call something, in the contract's form."""
        return self._results + [_message(each) for each in self._messages if each["texts"] or each["calls"]]


def _message(told: _Object) -> dict[str, Any]:
    message = {"role": told["role"], "content": "".join(told["texts"]) or None}
    if isinstance(told["id"], str):
        message["id"] = told["id"]
    return {**message, "tool_calls": [_call(call) for call in told["calls"]]} if told["calls"] else message


def _call(told: _Object) -> dict[str, Any]:
    call = {key: value for key, value in told.items() if key != "pieces"}
    written = "".join(told["pieces"])
    if "input" in call or not written:
        return call
    given, error = parse_arguments(written)
    return {**call, "input": given, **({} if error is None else {"arguments_error": error})}


def fold_ag_ui(values: Sequence[_Object]) -> tuple[dict[str, Any], bool]:
    """Put the events of a run together, and tell whether it came to its end."""
    told = _Told()
    document: dict[str, Any] = {}
    snapshot: Any = None
    usage: list[_Object] = []
    ended = False
    for value in values:
        kind = value.get("type")
        thread = _either(value, "threadId", "thread_id")
        if isinstance(thread, str):
            document["thread_id"] = thread
        if kind == "RUN_ERROR":
            document["error"] = value.get("message") or "the run failed, and does not say why"
        elif kind == "MESSAGES_SNAPSHOT":
            snapshot = value.get("messages")
        elif kind == "RUN_FINISHED":
            usage += list(objects_in(value.get("usage")))
            _suspend(told, value.get("outcome"))
        elif isinstance(kind, str) and kind in _AG_UI_STEPS:
            _AG_UI_STEPS[kind](told, value)
        ended = ended or kind in ("RUN_FINISHED", "RUN_ERROR")
    messages = told.messages()
    if messages:
        document["output_messages"] = _told_by_snapshot(snapshot, told) or messages
    elif isinstance(snapshot, list):
        document["messages"] = snapshot
    document["tokens_usage"] = add_usage(map(decode_usage, usage))
    return {**document, "reasoning": "".join(told.thoughts) or None}, ended


def _told_by_snapshot(snapshot: Any, told: _Told) -> list[_Object]:
    """Return the messages since the user's last one, where the snapshot has calls of which no event told."""
    new: list[_Object] = []
    for message in objects_in(snapshot):
        new = [] if message.get("role") == "user" else [*new, message]
    ids = [call.get("id") for message in new for call in objects_in(_either(message, "toolCalls", "tool_calls"))]
    is_whole = all(call_id in ids for call_id in told.call_ids)
    return new if is_whole and not all(map(told.knows, ids)) else []


def _suspend(told: _Told, outcome: Any) -> None:
    """Mark the calls that a run waits for."""
    for interrupt in objects_in(outcome.get("interrupts") if isinstance(outcome, OBJECT) else None):
        call_id = _either(interrupt, "toolCallId", "tool_call_id")
        if told.knows(call_id):
            told.call(call_id)["status"] = "pending"


def _either(value: _Object, *names: str) -> Any:
    """Give the field under the first of these names: some servers write snake_case."""
    return next((value[name] for name in names if name in value), None)


def _say(told: _Told, value: _Object) -> None:
    own_id = _either(value, "messageId", "message_id")
    message = told.find(own_id) or told.begin(own_id, value.get("role"))
    told.say(message, value.get("delta"))


def _argue(told: _Told, value: _Object) -> None:
    parent = told.find(_either(value, "parentMessageId", "parent_message_id"))
    name = _either(value, "toolCallName", "tool_call_name")
    call = told.call(_either(value, "toolCallId", "tool_call_id"), name, parent)
    if isinstance(value.get("delta"), str):
        call["pieces"].append(value["delta"])


def _return(told: _Told, value: _Object) -> None:
    told.call(_either(value, "toolCallId", "tool_call_id"))["output"] = value.get("content")
    told.begin()  # what comes next is a step of its own


def _think(told: _Told, value: _Object) -> None:
    if isinstance(value.get("delta"), str):
        told.thoughts.append(value["delta"])


_Step = Callable[[_Told, _Object], None]
_AG_UI_STEPS: dict[str, _Step] = {
    **dict.fromkeys(("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"), _say),
    **dict.fromkeys(("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK"), _argue),
    "TOOL_CALL_RESULT": _return,
    **dict.fromkeys(("REASONING_MESSAGE_CONTENT", "THINKING_TEXT_MESSAGE_CONTENT"), _think),
}


def fold_ai_sdk(values: Sequence[_Object]) -> tuple[dict[str, Any], bool]:
    """Put the parts of a UI message together, a message for each step, and tell whether it came to its end.

    The parts of a `fullStream`, and the chunks of Mastra, which hold them under `payload`, are read as well.
    """
    told = _Told()
    document: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    ended = False
    for value in map(_ai_sdk_part, values):
        kind = value.get("type")
        if kind in ("start-step", "step-start"):
            told.begin()
        elif kind == "text-delta":
            told.say(told.last, _either(value, "delta", "text"))
        elif kind == "reasoning-delta":
            _think(told, {"delta": _either(value, "delta", "text")})
        elif kind == "error":
            error = _either(value, "errorText", "error")
            document["error"] = error if error and isinstance(error, (str, *OBJECT)) else "the stream reports an error"
        elif isinstance(kind, str):
            _call_ai_sdk(told, kind, value)
        if isinstance(value.get("messageMetadata"), OBJECT):
            metadata |= value["messageMetadata"]
        if kind in ("finish", "abort"):
            ended = True
            metadata |= {key: value[key] for key in ("totalUsage", "usage") if isinstance(value.get(key), OBJECT)}
    usage = next((metadata[key] for key in ("totalUsage", "usage") if isinstance(metadata.get(key), OBJECT)), None)
    document |= {"output_messages": told.messages(), "reasoning": "".join(told.thoughts) or None, "usage": usage}
    return {**document, "metadata": metadata or None}, ended


def _ai_sdk_part(value: _Object) -> _Object:
    """Return the part that a chunk of Mastra's wraps."""
    inner = value.get("payload")
    if not isinstance(inner, OBJECT):
        return value
    output = inner.get("output")
    usage = output.get("usage") if isinstance(output, OBJECT) and value.get("type") == "finish" else None
    return {**inner, "type": value.get("type"), **({"usage": usage} if isinstance(usage, OBJECT) else {})}


def _call_ai_sdk(told: _Told, kind: str, value: _Object) -> None:
    """Read a part that begins, goes on with or ends a call."""
    inner = value.get("toolCall")
    value = {**inner, **value} if isinstance(inner, OBJECT) else value  # what is to be approved
    own_id, piece = value.get("toolCallId"), _either(value, "inputTextDelta", "argsTextDelta")
    if kind in ("tool-input-start", "tool-input-available", "tool-input-error", "tool-call"):
        call = told.call(own_id, value.get("toolName"))
        if "input" in value or "args" in value:
            call["input"] = _either(value, "input", "args")
    elif kind in ("tool-input-delta", "tool-call-delta") and isinstance(piece, str):
        told.call(own_id)["pieces"].append(piece)
    elif kind in ("tool-output-available", "tool-result") and value.get("preliminary") is not True:
        failed = {"status": "error"} if value.get("isError") is True else {}
        told.answer(own_id, output=_either(value, "output", "result"), **failed)
    elif kind in ("tool-output-error", "tool-error"):
        told.answer(own_id, error=_either(value, "errorText", "error"), status="error")
    elif kind == "tool-output-denied":
        told.answer(own_id, status="denied")
    elif kind in ("tool-approval-request", "tool-call-approval"):
        told.call(own_id, value.get("toolName")).update(status="pending")


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


FORMAT = ReplyFormat(name="stream", detect=_detect, read=_read)
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
    """Put a session together: what its responses say and call, and the results that were sent between them."""
    items: list[Any] = []
    for value in values:
        item = value.get("item")
        if is_realtime(value):
            items += value["response"]["output"]
        elif isinstance(item, OBJECT) and word(item.get("type")).endswith("_output") and item not in items:
            items.append(item)
    done = [value["response"] for value in values if is_realtime(value)]
    usage = add_usage(decode_usage(each.get("usage")) for each in done)
    last = done[-1]
    document = {"object": "response", "output": items, "id": last.get("id"), "status": last.get("status")}
    begun = sum(value.get("type") == "response.created" for value in values)
    return Folded({**document, "usage": usage}, "" if len(done) >= begun else "`response.done`")


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
            if len(keys) > 1:
                return None
            if keys:
                found.setdefault((keys[0], event.kind), []).append(event.value[keys[0]])
            beside = {key: value for key, value in event.value.items() if key not in (*DELTA_KEYS, "type", "event")}
            if any(_is_lost(others.get(key), value) for key, value in beside.items()):
                return None  # of two lists or objects one would be lost
            others |= beside
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


def _is_lost(before: Any, after: Any) -> bool:
    """Tell a list or an object that may hold calls, and that another would take the place of."""
    if not isinstance(before, (list, tuple, *OBJECT)) or before == after:
        return False
    return not holds_nothing({"value": before})


def _may_be_stray(event: StreamEvent, key: str) -> bool:
    """Tell an event that says what it is and is no piece of the text."""
    return isinstance(event.value, OBJECT) and key not in event.value and "tool" in event.kind.lower()


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
