"""Gemini API: replies, streamed chunks, contents as messages, and messages of the Live API."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.fields import OBJECT, is_count, objects_in
from agentv.formats.response import decode_fields, join_responses
from agentv.formats.unread import unread_fields, with_searched
from agentv.formats.usage import decode_usage
from agentv.formats.vocabulary import to_snake_case
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]


def _detect(value: Any) -> bool:
    """Recognize a reply by its candidates, or by the reason for having none."""
    if not isinstance(value, OBJECT):
        return False
    first = next(objects_in(value.get("candidates")), None)
    return _block_reason(value) is not None or (
        first is not None and ("content" in first or finish_of(first) is not None)
    )


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the first candidate, after the calls that the client made automatically."""
    first = next(objects_in(value.get("candidates")), None)
    usage = value.get("usageMetadata", value.get("usage_metadata"))
    if first is None:
        return decode_fields({"usage": usage, "error": f"the prompt was blocked: {_block_reason(value)}"})
    content = first.get("content")
    content = content if isinstance(content, OBJECT) else {}
    metadata = {key: value[key] for key in ("modelVersion", "responseId") if value.get(key) is not None}
    if finish_of(first) is not None:
        metadata["finish_reason"] = finish_of(first)
    history = value.get("automaticFunctionCallingHistory", value.get("automatic_function_calling_history"))
    history = list(history) if isinstance(history, (list, tuple)) else []
    response = reader.read_messages([*history, {"role": "model", **content}], declared=not history)
    reply = {
        "usage": usage,
        "reasoning": _thoughts(content),
        "metadata": metadata,
        "raw_response": value,
    }
    own = {key: item for key, item in first.items() if key != "content"}
    other_candidates = list(objects_in(value.get("candidates")))[1:]  # the agent may have used another one
    return with_searched(
        join_responses(response, decode_fields(reply)), {"candidates": [own, *other_candidates]}, reader.asked or ()
    )


def finish_of(candidate: _Object) -> Any:
    """Return the finish reason of a candidate, or `None`."""
    return candidate.get("finishReason", candidate.get("finish_reason"))


def has_ended(value: Any) -> bool:
    """Return whether a reply or a chunk has a finish reason."""
    return any(finish_of(item) is not None for item in objects_in(value.get("candidates")))


def are_turns(items: Sequence[Any]) -> bool:
    """Return whether a list contains several replies, each with its own id and a finish reason, not chunks of one."""
    answers = [item for item in objects_in(items) if isinstance(item.get("candidates"), (list, tuple))]
    ids = [item.get("responseId", item.get("response_id")) for item in answers]
    is_named = all(isinstance(entry, str) and entry for entry in ids) and len(set(map(str, ids))) == len(items) > 1
    return is_named and all(map(has_ended, answers[:-1]))


def _block_reason(value: _Object) -> Any:
    feedback = value.get("promptFeedback", value.get("prompt_feedback"))
    return feedback.get("blockReason", feedback.get("block_reason")) if isinstance(feedback, OBJECT) else None


def _thoughts(content: _Object) -> str | None:
    parts = [part for part in objects_in(content.get("parts")) if part.get("thought")]
    return "".join(part["text"] for part in parts if isinstance(part.get("text"), str)) or None


def assemble_gemini(chunks: Sequence[_Object]) -> dict[str, Any]:
    """Assemble the chunks of one reply: texts are joined, other fields are taken from the last chunk that has them."""
    document: dict[str, Any] = {}
    candidate: dict[str, Any] = {}
    parts: list[dict[str, Any]] = []
    texts: list[list[str]] = []
    turns: list[_Object] = []
    for chunk in chunks:
        if finish_of(candidate) is not None and _speaks(chunk):  # of the next turn
            turns.append(_take_usage(document))
            candidate = {}
        document |= {key: value for key, value in chunk.items() if key != "candidates" and value is not None}
        first = next(objects_in(chunk.get("candidates")), {})
        candidate |= {key: value for key, value in first.items() if key != "content" and value is not None}
        content = first.get("content")
        for part in objects_in(content.get("parts") if isinstance(content, OBJECT) else None):
            if texts and isinstance(part.get("text"), str) and texts[-1] and parts[-1].keys() == part.keys():
                texts[-1].append(part["text"])
            else:
                parts.append(dict(part))
                texts.append([part["text"]] if isinstance(part.get("text"), str) else [])
    for part, pieces in zip(parts, texts, strict=True):
        if pieces:
            part["text"] = "".join(pieces)
    if turns:
        document["usageMetadata"] = add_counts([*turns, _take_usage(document)])
    return {**document, "candidates": [{**candidate, "content": {"role": "model", "parts": parts}}]}


def _speaks(chunk: _Object) -> bool:
    content = next(objects_in(chunk.get("candidates")), {}).get("content")
    return isinstance(content, OBJECT) and bool(content.get("parts"))


def _take_usage(document: dict[str, Any]) -> _Object:
    """Remove the token counts of a turn from the document and return them."""
    counts = [document.pop(key, None) for key in ("usageMetadata", "usage_metadata")]
    return next(objects_in(counts), {})


def add_counts(turns: Sequence[_Object]) -> dict[str, int] | None:
    """Sum the token counts of several turns; return `None` if a turn has none."""
    if not turns or not all(turns):
        return None
    names = {key for turn in turns for key, count in turn.items() if is_count(count)}
    return {name: sum(turn[name] for turn in turns if is_count(turn.get(name))) for name in sorted(names)}


FORMAT = ReplyFormat(
    name="gemini",
    detect=_detect,
    read=_read,
    keys=frozenset(
        (
            *("candidates", "usageMetadata", "usage_metadata", "modelVersion", "model_version", "responseId"),
            *("response_id", "promptFeedback", "prompt_feedback", "createTime", "create_time"),
            *("automaticFunctionCallingHistory", "automatic_function_calling_history"),
        )
    ),
)


_LIVE_KEYS = frozenset((
    *("setup_complete", "server_content", "tool_call", "tool_call_cancellation", "usage_metadata", "go_away"),
    *("session_resumption_update", "voice_activity_detection_signal", "voice_activity", "tool_response"),
))  # fmt: skip
"""Fields of a message; each message has one or two of them."""
_LIVE_MARKS = frozenset(("setup_complete", "server_content"))


def _live_fields(item: Any) -> dict[str, Any]:
    """Return the non-empty fields of a message by their snake_case names."""
    if not isinstance(item, OBJECT):
        return {}
    return {to_snake_case(str(key)): value for key, value in item.items() if value is not None}


def _detect_live(value: Any) -> bool:
    if not isinstance(value, (list, tuple)) or not value:
        return False
    fields = [_live_fields(item) for item in value]
    return all(_LIVE_KEYS & entry.keys() for entry in fields) and any(_LIVE_MARKS & entry.keys() for entry in fields)


def _read_live(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read the model's turns, each with its text joined, and the calls between them."""
    contents: list[dict[str, Any]] = []
    counts: list[Any] = []
    for fields in map(_live_fields, items):
        _add_live_parts(contents, "model", _live_parts(_live_fields(fields.get("server_content"))))
        calls = _live_fields(fields.get("tool_call")).get("function_calls")
        _add_live_parts(contents, "model", [{"functionCall": call} for call in objects_in(calls)])
        answers = _live_fields(fields.get("tool_response")).get("function_responses")
        _add_live_parts(contents, "user", [{"functionResponse": answer} for answer in objects_in(answers)])
        if "usage_metadata" in fields:
            counts.append(
                {to_snake_case(str(key)): count for key, count in _live_fields(fields["usage_metadata"]).items()}
            )
    response = reader.read_messages(contents, declared=True)
    total = add_counts(counts) or {}
    if "response_token_count" in total:
        total["candidates_token_count"] = total.pop("response_token_count")
    extra = {
        f"messages[{at}]": {key: value for key, value in _live_fields(item).items() if key not in _LIVE_KEYS}
        for at, item in enumerate(items)
    }
    unread = (*response.unread, *unread_fields(extra, response))
    return replace(response, tokens_usage=decode_usage(total) if total else response.tokens_usage, unread=unread)


def _live_parts(content: _Object) -> list[Any]:
    """Return the parts of a turn, or the transcript of a spoken one."""
    turn, spoken = content.get("model_turn"), content.get("output_transcription")
    parts = list(objects_in(turn.get("parts"))) if isinstance(turn, OBJECT) else []
    text = spoken.get("text") if isinstance(spoken, OBJECT) else None
    return [*parts, {"text": text}] if isinstance(text, str) else parts


def _add_live_parts(contents: list[dict[str, Any]], role: str, parts: Sequence[Any]) -> None:
    """Append parts to the current content or start a new one, joining consecutive texts."""
    for part in parts:
        if not contents or contents[-1]["role"] != role:
            contents.append({"role": role, "parts": []})
        before = contents[-1]["parts"]
        if before and before[-1].keys() == part.keys() == {"text"}:
            before[-1] = {"text": before[-1]["text"] + part["text"]}
        else:
            before.append(part)


LIVE = ReplyFormat(name="gemini_live", detect=_detect_live, read=_read_live, events=True)
