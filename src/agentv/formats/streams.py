"""Assemble streams of events (AG-UI, AI SDK, Ollama, LangGraph, vendors) into one whole answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentv.formats.anthropic import MessagePieces
from agentv.formats.fields import MAX_WARNINGS, MISSING_CALLS, OBJECT, objects_in
from agentv.formats.gemini import finish_of, fold_gemini
from agentv.formats.langgraph_stream import fold_parts
from agentv.formats.ollama import fold_ollama, is_ollama
from agentv.formats.openai_chat import ChatPieces
from agentv.formats.openai_realtime import FORMAT as REALTIME
from agentv.formats.openai_responses import ResponsePieces
from agentv.formats.sse import ServerEvent
from agentv.formats.stream_turns import (
    add_counts,
    begins_candidate,
    begins_completion,
    begins_message,
    begins_response,
    split_turns,
)
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.unread import call_in
from agentv.formats.usage import add_usage, decode_usage
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
    unread: tuple[Unread, ...] = ()
    """Events that were not understood."""


def fold_stream(events: Sequence[StreamEvent], *, snapshots: bool = False) -> Folded | None:
    """Put a stream together; `None` when it is of no kind that is known, or could be of several.

    With `snapshots` each text is all of it so far, where nothing else tells whether it is a piece.
    """
    values = [event.value for event in events if isinstance(event.value, OBJECT)]
    if REALTIME.detect(values):
        return Folded(values, shape=REALTIME.name)
    folded = _fold_vendor(events, values)
    if folded is not None:
        return folded
    if any(event.mode in _STATES for event in events):
        return _fold_states(events)
    listed = _fold_listed(events)
    if listed is not None:
        return listed
    if any(each.detect(values) for each in reply_formats() if not each.items and each is not FORMAT):
        return Folded(values, unread=_unknown_events(events, _knows_all))
    return _fold_messages(events) or _fold_last(values) or _fold_texts(events, snapshots=snapshots)


def _fold_vendor(events: Sequence[StreamEvent], values: Sequence[_Object]) -> Folded | None:
    for fits, knows, fold in _VENDORS:
        if any(map(fits, values)):
            return fold(values)._replace(unread=_unknown_events(events, knows))
    return None


def _unknown_events(events: Sequence[StreamEvent], knows: "_Test") -> tuple[Unread, ...]:
    """Report the events of a stream that were not understood."""
    unread = [
        Unread(
            path=f"stream[{at}]",
            reason=f"an event of type {event.kind[:60]!r} was not understood, {MISSING_CALLS}",
        )
        for at, event in enumerate(events)
        if not (knows(event.value) if isinstance(event.value, OBJECT) else event.value in ("", "[DONE]", None))
    ]
    return tuple(unread[:MAX_WARNINGS])


def read_folded(folded: Folded, response: ProviderResponse) -> ProviderResponse:
    """Return the reply that a stream amounts to with what was not understood of the stream."""
    unread = folded.unread
    if folded.missing:
        reason = f"the stream ended before {folded.missing} came, {MISSING_CALLS}"
        unread = (*unread, Unread(path="stream", reason=reason))
    return replace(response, unread=(*response.unread, *unread)) if unread else response


def _detect(value: Any) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    return any(fits(item) for fits, _, _ in _VENDORS for item in objects_in(value))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    folded = _fold_vendor([StreamEvent(item) for item in items], list(objects_in(items)))
    return ProviderResponse() if folded is None else read_folded(folded, reader.read(folded.document))


FORMAT = ReplyFormat(name="stream", detect=_detect, read=_read, events=True)


def _knows_all(value: _Object) -> bool:
    """Tell that no event is unknown: fields that are not read stay in the document, and are searched there."""
    del value
    return True


def _knows_response_event(value: _Object) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and (kind.startswith("response.") or kind in ("error", "keepalive", "ping"))


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
    return _by_turn(_fold_chat, begins_completion)(chunks)


def _is_response_event(value: _Object) -> bool:
    return isinstance(value.get("type"), str) and value["type"].startswith("response.")


def _is_message_start(value: _Object) -> bool:
    return value.get("type") == "message_start" and isinstance(value.get("message"), OBJECT)


def _fold_pieces(pieces: ChatPieces | ResponsePieces | MessagePieces, values: Sequence[_Object]) -> dict[str, Any]:
    for value in values:
        pieces.feed(ServerEvent(dump_json(value).decode()))
    return pieces.body


_Fold = Callable[[Sequence[_Object]], Folded]


def _by_turn(fold: _Fold, begins: Callable[[_Object, Sequence[_Object]], bool]) -> _Fold:
    """Make a function that puts each of several turns together by itself."""

    def fold_all(values: Sequence[_Object]) -> Folded:
        folded = [fold(turn) for turn in split_turns(values, begins)]
        if len(folded) == 1:
            return folded[0]
        missing = next((each.missing for each in folded if each.missing), "")
        return Folded([each.document for each in folded], missing)

    return fold_all


def _fold_chat(values: Sequence[_Object]) -> Folded:
    pieces = ChatPieces()
    document = _fold_pieces(pieces, values)
    return Folded(document, "" if pieces.is_complete else "a `finish_reason`")


def _fold_responses(values: Sequence[_Object]) -> Folded:
    pieces = ResponsePieces()
    document = {"object": "response", "output": [], **_fold_pieces(pieces, values)}
    return Folded(document, "" if pieces.is_complete else "`response.completed`")


def _fold_anthropic(values: Sequence[_Object]) -> Folded:
    pieces = MessagePieces()
    document = {**_fold_pieces(pieces, values), "type": "message", "role": "assistant"}
    return Folded(document, "" if pieces.is_complete else "`message_stop`")


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _has_candidates(value: _Object) -> bool:
    return _is_list(value.get("candidates"))


def _fold_gemini(values: Sequence[_Object]) -> Folded:
    document = fold_gemini(values)
    turns = split_turns(values, begins_candidate)
    if len(turns) > 1:
        counts = [fold_gemini(turn) for turn in turns]
        key = next((key for key in ("usageMetadata", "usage_metadata") if document.get(key)), "usageMetadata")
        document[key] = add_counts([each.get(key) for each in counts])
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


_Test = Callable[[_Object], bool]
_VENDORS: tuple[tuple[_Test, _Test, _Fold], ...] = (
    (_is_chunk, _knows_all, _by_turn(_fold_chat, begins_completion)),
    (_is_chunk_event, _knows_chunk_event, _fold_chunk_events),
    (_is_response_event, _knows_response_event, _by_turn(_fold_responses, begins_response)),
    (_is_message_start, _knows_anthropic_event, _by_turn(_fold_anthropic, begins_message)),
    (_has_candidates, _knows_all, _fold_gemini),
    (is_ollama, is_ollama, _fold_ollama),
    (is_ag_ui, knows_ag_ui, _fold_ag_ui),
    (is_ai_sdk, knows_ai_sdk, _fold_ai_sdk),
)
"""Whose stream it is, which of its events are known, and how they are put together."""


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


def _fold_states(events: Sequence[StreamEvent]) -> Folded:
    """Put LangGraph's events together: the last whole state, else the messages of all steps."""
    return Folded(fold_parts([(event.mode, event.value) for event in events]))


def _fold_listed(events: Sequence[StreamEvent]) -> Folded | None:
    """Take all events as a list, when it is one of a library's."""
    values = [event.value for event in events if event.value not in ("", "[DONE]", None)]
    formats: tuple[ReplyFormat, ...] = reply_formats()
    shape = next((each for each in formats if each.events and each.detect(values)), None)
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


def _fold_last(values: Sequence[_Object]) -> Folded | None:
    """Take the one event that holds a whole reply."""
    whole = [value for value in values if any(value.get(key) for key in ("output_messages", "outputMessages"))]
    states = [value for value in values if _is_list(value.get("messages"))]
    found = whole or states
    return Folded(found[-1]) if found else None


def _fold_texts(events: Sequence[StreamEvent], *, snapshots: bool) -> Folded | None:
    """Join pieces of text, when there is no doubt where they stand: one key, in events of one kind."""
    found: dict[tuple[str, str], list[str]] = {}
    others: dict[str, Any] = {}
    for event in events:
        if isinstance(event.value, str):
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
    ((key, _), pieces), *_ = found.items()
    document = {**others, "text": pieces[-1] if snapshots else "".join(pieces)}
    return Folded(document, shape=f"stream:{key}" if key else "stream", texts=pieces)


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
