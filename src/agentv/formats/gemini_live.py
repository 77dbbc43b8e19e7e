"""The messages of Gemini's Live API: pieces of the model's turns, and calls that the client answers."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.gemini import add_counts
from agentv.formats.unread import unread_fields
from agentv.formats.usage import decode_usage
from agentv.formats.vocabulary import snake
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_KEYS = frozenset((
    *("setup_complete", "server_content", "tool_call", "tool_call_cancellation", "usage_metadata", "go_away"),
    *("session_resumption_update", "voice_activity_detection_signal", "voice_activity", "tool_response"),
))  # fmt: skip
"""The fields of a message, of which each has one or two."""
_MARKS = frozenset(("setup_complete", "server_content"))


def _fields(item: Any) -> dict[str, Any]:
    """Return the fields of a message that say something, by their names in snake case."""
    if not isinstance(item, OBJECT):
        return {}
    return {snake(str(key)): value for key, value in item.items() if value is not None}


def _detect(value: Any) -> bool:
    if not isinstance(value, (list, tuple)) or not value:
        return False
    fields = [_fields(item) for item in value]
    return all(_KEYS & each.keys() for each in fields) and any(_MARKS & each.keys() for each in fields)


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read the model's turns, each with its pieces of text joined, and the calls between them."""
    contents: list[dict[str, Any]] = []
    counts: list[Any] = []
    for fields in map(_fields, items):
        _add(contents, "model", _parts_of(_fields(fields.get("server_content"))))
        calls = _fields(fields.get("tool_call")).get("function_calls")
        _add(contents, "model", [{"functionCall": call} for call in objects_in(calls)])
        answers = _fields(fields.get("tool_response")).get("function_responses")
        _add(contents, "user", [{"functionResponse": answer} for answer in objects_in(answers)])
        if "usage_metadata" in fields:
            counts.append({snake(str(key)): count for key, count in _fields(fields["usage_metadata"]).items()})
    said = reader.read_messages(contents, declared=True)
    total = add_counts(counts) or {}
    if "response_token_count" in total:
        total["candidates_token_count"] = total.pop("response_token_count")
    others = {
        f"messages[{at}]": {key: value for key, value in _fields(item).items() if key not in _KEYS}
        for at, item in enumerate(items)
    }
    unread = (*said.unread, *unread_fields(others, said))
    return replace(said, tokens_usage=decode_usage(total) if total else said.tokens_usage, unread=unread)


def _parts_of(content: _Object) -> list[Any]:
    """Return what the model said; its words alone where it spoke."""
    turn, spoken = content.get("model_turn"), content.get("output_transcription")
    parts = list(objects_in(turn.get("parts"))) if isinstance(turn, OBJECT) else []
    words = spoken.get("text") if isinstance(spoken, OBJECT) else None
    return [*parts, {"text": words}] if isinstance(words, str) else parts


def _add(contents: list[dict[str, Any]], role: str, parts: Sequence[Any]) -> None:
    """Add parts to the content under way, or begin one; a text that goes on is one text."""
    for part in parts:
        if not contents or contents[-1]["role"] != role:
            contents.append({"role": role, "parts": []})
        before = contents[-1]["parts"]
        if before and before[-1].keys() == part.keys() == {"text"}:
            before[-1] = {"text": before[-1]["text"] + part["text"]}
        else:
            before.append(part)


FORMAT = ReplyFormat(name="gemini_live", detect=_detect, read=_read, events=True)
