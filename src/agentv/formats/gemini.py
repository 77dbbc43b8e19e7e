"""Gemini's answers: whole, in chunks, and its contents as messages."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.fields import OBJECT, is_count, objects_in
from agentv.formats.response import decode_fields, join_responses
from agentv.formats.unread import with_searched
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]


def _detect(value: Any) -> bool:
    """Tell an answer of Gemini's: candidates, or why there are none."""
    if not isinstance(value, OBJECT):
        return False
    first = next(objects_in(value.get("candidates")), None)
    return _blocked(value) is not None or (first is not None and ("content" in first or finish_of(first) is not None))


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read an answer; its first candidate counts, and before it the calls that the client made by itself."""
    first = next(objects_in(value.get("candidates")), None)
    usage = value.get("usageMetadata", value.get("usage_metadata"))
    if first is None:
        return decode_fields({"usage": usage, "error": f"the prompt was blocked: {_blocked(value)}"})
    content = first.get("content")
    content = content if isinstance(content, OBJECT) else {}
    metadata = {key: value[key] for key in ("modelVersion", "responseId") if value.get(key) is not None}
    if finish_of(first) is not None:
        metadata["finish_reason"] = finish_of(first)
    history = value.get("automaticFunctionCallingHistory", value.get("automatic_function_calling_history"))
    history = list(history) if isinstance(history, (list, tuple)) else []
    said = reader.read_messages([*history, {"role": "model", **content}], declared=not history)
    reply = {
        "usage": usage,
        "reasoning": _thoughts(content),
        "metadata": metadata,
        "raw_response": value,
    }
    own = {key: each for key, each in first.items() if key != "content"}
    others = list(objects_in(value.get("candidates")))[1:]  # which the agent may have taken instead
    return with_searched(join_responses(said, decode_fields(reply)), {"candidates": [own, *others]}, reader.asked or ())


def finish_of(candidate: _Object) -> Any:
    """Give the reason why a candidate ended; `None` when it has not."""
    return candidate.get("finishReason", candidate.get("finish_reason"))


def has_ended(value: Any) -> bool:
    """Tell an answer, or a chunk of one, that says why it ended."""
    return any(finish_of(each) is not None for each in objects_in(value.get("candidates")))


def are_turns(items: Sequence[Any]) -> bool:
    """Tell several whole answers in a list from the chunks of one: each has an id of its own, and came to its end."""
    found = [item for item in objects_in(items) if isinstance(item.get("candidates"), (list, tuple))]
    ids = [item.get("responseId", item.get("response_id")) for item in found]
    is_named = all(isinstance(each, str) and each for each in ids) and len(set(map(str, ids))) == len(items) > 1
    return is_named and all(map(has_ended, found[:-1]))


def _blocked(value: _Object) -> Any:
    told = value.get("promptFeedback", value.get("prompt_feedback"))
    return told.get("blockReason", told.get("block_reason")) if isinstance(told, OBJECT) else None


def _thoughts(content: _Object) -> str | None:
    parts = [part for part in objects_in(content.get("parts")) if part.get("thought")]
    return "".join(part["text"] for part in parts if isinstance(part.get("text"), str)) or None


def fold_gemini(chunks: Sequence[_Object]) -> dict[str, Any]:
    """Put the chunks of one answer together: words joined, everything else from the last that says it."""
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
    """Take the counts of a turn out of what is put together."""
    found = [document.pop(key, None) for key in ("usageMetadata", "usage_metadata")]
    return next(objects_in(found), {})


def add_counts(turns: Sequence[_Object]) -> dict[str, int] | None:
    """Add up the token counts of several turns; `None` when a turn has none."""
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
