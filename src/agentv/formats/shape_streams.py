"""Streams of events made into the whole answer that the same server would have sent without streaming."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from agentv.formats.json import dump_json
from agentv.formats.reading import OBJECT
from agentv.formats.shape_agents import fold_ag_ui, fold_ai_sdk, is_ag_ui, is_ai_sdk
from agentv.formats.shape_gemini import finish_of, fold_gemini, objects_in
from agentv.formats.shape_vendors import is_list, is_ollama
from agentv.formats.sse import ServerEvent
from agentv.formats.stream_anthropic import MessagePieces
from agentv.formats.stream_chat import ChatPieces
from agentv.formats.stream_responses import ResponsePieces

DELTA_KEYS = ("delta", "token", "chunk", "text", "answer", "response", "output", "message", "content", "reply")
"""Where the next piece of a text usually stands."""
_STATES = ("values", "updates", "messages/partial", "messages/complete")
"""How LangGraph calls events that hold messages."""
_Object = Mapping[str, Any]


class StreamEvent(NamedTuple):
    """One event of a stream."""

    value: Any
    """Its data, parsed; a text when it is no JSON."""
    name: str = "message"

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


def fold_stream(events: Sequence[StreamEvent], *, snapshots: bool = False) -> Folded | None:
    """Put a stream together; `None` when it is of no kind that is known, or could be of several.

    With `snapshots` each text is all of it so far, where nothing else tells whether it is a piece.
    """
    values = [event.value for event in events if isinstance(event.value, OBJECT)]
    for fits, fold in _VENDORS:
        if any(map(fits, values)):
            return fold(values)
    if any(event.name in _STATES for event in events):
        return _fold_states(events)
    return _fold_messages(events) or _fold_last(values) or _fold_texts(events, snapshots=snapshots)


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
    return Folded(document, "" if pieces.is_complete else "`response.completed`")


def _fold_anthropic(values: Sequence[_Object]) -> Folded:
    pieces = MessagePieces()
    document = {**_fold_pieces(pieces, values), "type": "message", "role": "assistant"}
    return Folded(document, "" if pieces.is_complete else "`message_stop`")


def _has_candidates(value: _Object) -> bool:
    return is_list(value.get("candidates"))


def _fold_gemini(values: Sequence[_Object]) -> Folded:
    document = fold_gemini(values)
    return Folded(document, "" if finish_of(document["candidates"][0]) is not None else "a `finishReason`")


def _fold_ollama(values: Sequence[_Object]) -> Folded:
    texts: dict[str, list[str]] = {"content": [], "thinking": []}
    calls: list[Any] = []
    last: _Object = {}
    for value in filter(is_ollama, values):
        last = value
        piece = value.get("message")
        piece = piece if isinstance(piece, OBJECT) else {"content": value.get("response")}
        for name, pieces in texts.items():
            if isinstance(piece.get(name), str):
                pieces.append(piece[name])
        calls += objects_in(piece.get("tool_calls"))
    message = {"role": "assistant", **{name: "".join(pieces) for name, pieces in texts.items() if pieces}}
    document = {**last, "message": {**message, "tool_calls": calls} if calls else message}
    return Folded(document, "" if last.get("done") is True else "`done: true`")


def _fold_ag_ui(values: Sequence[_Object]) -> Folded:
    document, ended = fold_ag_ui(values)
    return Folded(document, "" if ended else "`RUN_FINISHED`", "ag_ui")


def _fold_ai_sdk(values: Sequence[_Object]) -> Folded:
    document, ended = fold_ai_sdk(values)
    return Folded(document, "" if ended else "`finish`", "ai_sdk")


_VENDORS: tuple[tuple[Callable[[_Object], bool], Callable[[Sequence[_Object]], Folded]], ...] = (
    (_is_chunk, _fold_chat),
    (_is_response_event, _fold_responses),
    (_is_message_start, _fold_anthropic),
    (_has_candidates, _fold_gemini),
    (is_ollama, _fold_ollama),
    (is_ag_ui, _fold_ag_ui),
    (is_ai_sdk, _fold_ai_sdk),
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


def _fold_states(events: Sequence[StreamEvent]) -> Folded:
    """Put LangGraph's events together: the last whole state, else the messages of all steps."""
    states = [event.value for event in events if event.name == "values" and isinstance(event.value, OBJECT)]
    if states:
        return Folded(states[-1])
    gathered = Gathered()
    for event in events:
        if event.name == "updates" and isinstance(event.value, OBJECT):
            for update in event.value.values():
                gathered.add(update.get("messages") if isinstance(update, OBJECT) else None)
        elif event.name in _STATES:
            gathered.add(event.value)
    return Folded({"messages": gathered.messages})


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
    states = [value for value in values if is_list(value.get("messages"))]
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
            if len(keys) > 1:
                return None
            if keys:
                found.setdefault((keys[0], event.kind), []).append(event.value[keys[0]])
            others |= {key: value for key, value in event.value.items() if key not in (*DELTA_KEYS, "type", "event")}
    if len(found) != 1:
        return None
    ((key, _), pieces), *_ = found.items()
    document = {**others, "text": pieces[-1] if snapshots else "".join(pieces)}
    return Folded(document, shape=f"stream:{key}" if key else "stream", texts=pieces)


class Gathered:
    """Messages that come one by one, or all again each time."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self._places: dict[str, int] = {}

    def add(self, found: Any) -> None:
        """Take one message or a list; a list that begins with all so far, and a message of a known id, replaces."""
        items = list(found) if is_list(found) else [found] if isinstance(found, OBJECT) else []
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
