"""Gemini API: replies, streamed chunks, contents as messages, messages of the Live API, and the Interactions API."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.builder import read_arguments
from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Report, is_count, is_harmless_type, objects_in, to_snake_case
from agentv.formats.messages import join_call_messages
from agentv.formats.response import decode_fields, join_responses
from agentv.formats.unread import unread_fields, with_searched
from agentv.formats.usage import decode_usage
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


_LISTS = ("steps", "outputs")
_MESSAGES = {"user_input": "user", "model_output": "assistant"}
_CALL = frozenset(("type", "id", "name", "arguments"))
_NAMED = ("function", "mcp_server_tool")
"""Call types that name their tool; other calls are named after their type."""
_READ = frozenset(("usage", "id", "output_text", "error", "text"))


def _detect_interaction(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("status"), str):
        return False
    items = [item for key in _LISTS for item in objects_in(value.get(key))]
    if value.get("object") == "interaction":
        return True
    return "created" in value and any(map(_is_step, items))


def _is_step(item: _Object) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and (kind in (*_MESSAGES, "thought") or kind.endswith(("_call", "_result")))


def _has_type(item: _Object) -> bool:
    return isinstance(item.get("type"), str)


def _read_interaction(value: _Object, reader: ReplyReader) -> ProviderResponse:
    report = Report()
    key = next((key for key in _LISTS if any(map(_has_type, objects_in(value.get(key))))), "")
    items = value[key] if key else ()
    response = reader.read_messages(join_call_messages(_messages(items, key, report)))
    failed = value.get("status") in ("failed", "cancelled")
    extra = {name: item for name, item in value.items() if name not in _READ and name != key}
    details = {
        "usage": value.get("usage"),
        "thread_id": text_or_none(value.get("id")),
        "error": value.get("error") or (f"the interaction is {value['status']}" if failed else None),
        "reasoning": "\n\n".join(_thoughts_interaction(items)) or None,
        "metadata": extra,
        "warnings": report.warnings,
        "unread": report.unread(any(message.tool_calls for message in response.output_messages or ())),
    }
    if isinstance(value.get("output_text"), str):
        details["text"] = value["output_text"]
    return join_responses(response, decode_fields(details))


def _messages(items: Sequence[Any], key: str, report: Report) -> Iterator[dict[str, Any]]:
    for at, item in enumerate(items):
        kind = text_or_none(item.get("type")) if isinstance(item, OBJECT) else None
        if not isinstance(item, OBJECT):
            report.skip_invalid((key, at), "a step", item)
        elif kind in _MESSAGES:
            extra = non_empty_fields(item, frozenset(("type", "content"))) or None
            yield {"role": _MESSAGES[kind], "content": item.get("content"), "metadata": extra}
        elif kind is not None and kind.endswith("_call"):
            yield {"role": "assistant", "content": None, "tool_calls": [_call(item, kind)]}
        elif kind is not None and kind.endswith("_result"):
            yield _result(item)
        elif kind is not None and kind != "thought" and is_harmless_type(kind):
            yield {"role": "assistant", "content": [dict(item)]}  # an output is itself a block
        elif kind != "thought":
            report.skip((key, at), f"a step of type {kind!r}" if kind else "a step without a type")


def _call(item: _Object, kind: str) -> dict[str, Any]:
    name = kind.removesuffix("_call")
    call: dict[str, Any] = {
        "tool": item.get("name") if name in _NAMED else name,
        "id": text_or_none(item.get("id")) or text_or_none(item.get("call_id")),
        "metadata": non_empty_fields(item, _CALL) or None,
    }
    return {**call, "input": item["arguments"]} if "arguments" in item else call


def _result(item: _Object) -> dict[str, Any]:
    result = {"role": "tool", "tool_call_id": text_or_none(item.get("call_id")), "content": item.get("result")}
    if isinstance(item.get("name"), str):
        result["name"] = item["name"]
    if isinstance(item.get("is_error"), bool):
        result["status"] = "error" if item["is_error"] else "ok"
    return result


def _thoughts_interaction(items: Sequence[Any]) -> Iterator[str]:
    for item in objects_in(items):
        if item.get("type") == "thought":
            yield from (
                entry["text"] for entry in objects_in(item.get("summary")) if isinstance(entry.get("text"), str)
            )


INTERACTIONS = ReplyFormat(name="interactions", detect=_detect_interaction, read=_read_interaction)


def _event_kind(item: _Object) -> str:
    return text_or_none(item.get("event_type")) or text_or_none(item.get("type")) or ""


def _detect_stream(items: Any) -> bool:
    if not isinstance(items, (list, tuple)):
        return False
    return any(
        _event_kind(item).startswith("interaction.") and isinstance(item.get("interaction"), OBJECT)
        for item in objects_in(items)
    )


def _read_stream(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Assemble the streamed contents and read them as outputs of the interaction."""
    report, contents = Report(), dict[Any, dict[str, Any]]()
    document: dict[str, Any] = {"object": "interaction", "status": "in_progress"}
    ended = False
    for at, item in enumerate(items):
        kind = _event_kind(item) if isinstance(item, OBJECT) else ""
        if not isinstance(item, OBJECT):
            if item not in ("", "[DONE]", None):
                report.skip_invalid(("events", at), "an event", item)
        elif kind.startswith("interaction."):
            inner = item.get("interaction")
            fields = inner.items() if isinstance(inner, OBJECT) else ()
            document |= {key: entry for key, entry in fields if entry is not None}
            ended = ended or kind in ("interaction.complete", "interaction.completed", "interaction.failed")
        elif kind.startswith(("content.", "step.")):
            _add_piece(contents, item)
        elif kind == "error":
            document["error"] = item.get("error") or item.get("message")
        else:
            report.skip(("events", at), f"an event of type {kind[:60]!r}")
    if not ended and not document.get("error"):
        report.skip(("events",), "the end of the stream, which did not come,")
    if not any(document.get(key) for key in _LISTS):
        document["outputs"] = [_with_arguments(entry) for entry in contents.values()]
    response = _read_interaction(document, reader)
    unread = report.unread(any(message.tool_calls for message in response.output_messages or ()))
    return replace(response, unread=(*response.unread, *unread)) if unread else response


def _with_arguments(content: dict[str, Any]) -> dict[str, Any]:
    """Return a call with its complete arguments parsed."""
    return {**content, **read_arguments(content["arguments"], "arguments")} if "arguments" in content else content


def _add_piece(contents: dict[Any, dict[str, Any]], item: _Object) -> None:
    """Add a delta: texts and argument strings are joined, other fields replaced."""
    whole = contents.setdefault(str(item.get("index")), {})
    pieces = [item[key] for key in ("delta", "content", "step") if isinstance(item.get(key), OBJECT)]
    piece: _Object = pieces[0] if pieces else {}
    kind = text_or_none(piece.get("type")) or ""
    if kind == "thought_summary":
        whole["type"] = "thought"
        whole.setdefault("summary", []).append(piece.get("content"))
        return
    for key, value in piece.items():
        grows = key in ("text", "arguments") and isinstance(value, str) and isinstance(whole.get(key), str)
        if value is not None and not (key == "type" and kind in ("thought_signature", "arguments_delta")):
            whole[key] = whole[key] + value if grows else value


INTERACTIONS_STREAM = ReplyFormat(name="interactions", detect=_detect_stream, read=_read_stream, events=True)
