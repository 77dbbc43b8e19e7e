"""OpenAI Realtime API: complete responses, and tool results in the client's items."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.fields import MISSING_CALLS, OBJECT, objects_in
from agentv.formats.usage import add_usage, decode_usage
from agentv.model.response import ProviderResponse, Unread
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_KNOWN = (
    *("session.", "transcription_session.", "response.", "conversation.", "input_audio_buffer."),
    *("output_audio_buffer.", "rate_limits.", "mcp_list_tools.", "error"),
)
"""Prefixes of all event types."""
_MARKS = ("session.created", "session.updated", "rate_limits.updated", "response.done")
_CUT_OFF = f"a response that began did not come to its end (`response.done`), {MISSING_CALLS}"


def _kind(event: Any) -> str:
    kind = event.get("type") if isinstance(event, OBJECT) else None
    return kind if isinstance(kind, str) else ""


def _detect(value: Any) -> bool:
    if not isinstance(value, (list, tuple)) or not value or not all(_kind(item).startswith(_KNOWN) for item in value):
        return False
    return any(_kind(item) in _MARKS or _kind(item).startswith("conversation.item.") for item in value)


def _read(events: Sequence[_Object], reader: ReplyReader) -> ProviderResponse:
    """Read the items of all responses, and the tool results that the client sent."""
    items: list[_Object] = []
    ids: set[Any] = set()
    turns = [event.get("response") for event in events if _kind(event) == "response.done"]
    for event in events:
        event_items = []
        if _kind(event) == "response.done" and isinstance(event.get("response"), OBJECT):
            event_items = list(objects_in(event["response"].get("output")))
        elif _kind(event).startswith("conversation.item.") and _kind(event.get("item")) == "function_call_output":
            event_items = [event["item"]]
        # A result is reported when sent and again when accepted.
        items += [_with_transcripts(item) for item in event_items if item.get("id") is None or item["id"] not in ids]
        ids |= {item.get("id") for item in event_items}
    response = reader.read_messages(items, declared=True)
    usage = add_usage([decode_usage(turn.get("usage")) for turn in objects_in(turns)])
    started = sum(_kind(event) == "response.created" for event in events)
    unread = (Unread(path="events", reason=_CUT_OFF),) if started > len(turns) else ()
    return replace(response, tokens_usage=usage or response.tokens_usage, unread=(*response.unread, *unread))


def _with_transcripts(item: _Object) -> _Object:
    """Return a message with transcripts in place of audio."""
    blocks = item.get("content")
    if not isinstance(blocks, (list, tuple)):
        return item
    return {**item, "content": [_text(block) for block in blocks]}


def _text(block: Any) -> Any:
    transcript = block.get("transcript") if isinstance(block, OBJECT) else None
    return {"type": "output_text", "text": transcript} if isinstance(transcript, str) else block


FORMAT = ReplyFormat(name="openai_realtime", detect=_detect, read=_read, events=True)
