"""Gemini's answers: whole, in chunks, and its contents as messages."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentv.formats.fields import OBJECT
from agentv.formats.response import decode_response
from agentv.model.response import ProviderResponse

_Object = Mapping[str, Any]
_PARTS = ("text", "functionCall", "function_call", "functionResponse", "function_response")


def objects_in(value: Any) -> Iterator[_Object]:
    """Give the objects of a list; what is no list holds none."""
    if isinstance(value, (list, tuple)):
        yield from (item for item in value if isinstance(item, OBJECT))


def is_gemini(value: _Object) -> bool:
    """Tell whether this is an answer of Gemini's: candidates, or why there are none."""
    first = next(objects_in(value.get("candidates")), None)
    return _blocked(value) is not None or (first is not None and ("content" in first or finish_of(first) is not None))


def decode_gemini(value: _Object, prompt: str = "") -> ProviderResponse:
    """Read an answer; its first candidate counts."""
    del prompt
    first = next(objects_in(value.get("candidates")), None)
    usage = value.get("usageMetadata", value.get("usage_metadata"))
    if first is None:
        return decode_response({"usage": usage, "error": f"the prompt was blocked: {_blocked(value)}"})
    content = first.get("content")
    content = content if isinstance(content, OBJECT) else {}
    metadata = {key: value[key] for key in ("modelVersion", "responseId") if value.get(key) is not None}
    if finish_of(first) is not None:
        metadata["finish_reason"] = finish_of(first)
    reply = {
        "usage": usage,
        "output_messages": list(unfold_parts(content)),
        "reasoning": _thoughts(content),
        "metadata": metadata,
        "raw_response": value,
    }
    return decode_response(reply)


def finish_of(candidate: _Object) -> Any:
    """Give the reason why a candidate ended; `None` when it has not."""
    return candidate.get("finishReason", candidate.get("finish_reason"))


def _blocked(value: _Object) -> Any:
    told = value.get("promptFeedback", value.get("prompt_feedback"))
    return told.get("blockReason", told.get("block_reason")) if isinstance(told, OBJECT) else None


def unfold_parts(content: _Object) -> Iterator[dict[str, Any]]:
    """Split a content into a message of its words and calls, and one for each result that it holds."""
    parts = list(objects_in(content.get("parts")))
    words = [part for part in parts if isinstance(part.get("text"), str) and not part.get("thought")]
    calls = [_call(call) for part in parts if (call := _either(part, "functionCall", "function_call"))]
    results = [each for part in parts if (each := _either(part, "functionResponse", "function_response"))]
    others = [dict(part) for part in parts if part.keys().isdisjoint(_PARTS)]
    role = "assistant" if content.get("role") in ("model", None) else content["role"]
    if words or calls or others or not results:
        text = "".join(part["text"] for part in words)
        said: Any = [*([{"type": "text", "text": text}] if words else []), *others] if others else text
        yield {"role": role, "content": said if words or others else None, **({"tool_calls": calls} if calls else {})}
    for each in results:
        result = {"role": "tool", "name": each.get("name"), "content": each.get("response")}
        yield {**result, "tool_call_id": each["id"]} if isinstance(each.get("id"), str) else result


def _call(call: _Object) -> dict[str, Any]:
    made = {"tool": call.get("name"), "id": call.get("id")}
    return {**made, "input": call["args"]} if "args" in call else made


def _either(part: _Object, *names: str) -> _Object | None:
    return next((part[name] for name in names if isinstance(part.get(name), OBJECT)), None)


def _thoughts(content: _Object) -> str | None:
    parts = [part for part in objects_in(content.get("parts")) if part.get("thought")]
    return "".join(part["text"] for part in parts if isinstance(part.get("text"), str)) or None


def fold_gemini(chunks: Sequence[_Object]) -> dict[str, Any]:
    """Put the chunks of one answer together: words joined, everything else from the last that says it."""
    document: dict[str, Any] = {}
    candidate: dict[str, Any] = {}
    parts: list[dict[str, Any]] = []
    texts: list[list[str]] = []
    for chunk in chunks:
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
    return {**document, "candidates": [{**candidate, "content": {"role": "model", "parts": parts}}]}
