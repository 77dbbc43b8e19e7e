"""Google's Interactions API: interactions with steps or outputs, and their streams."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.builder import read_arguments
from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Report, objects_in
from agentv.formats.messages import join_call_messages
from agentv.formats.response import decode_fields, join_responses
from agentv.formats.vocabulary import is_harmless_type
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_LISTS = ("steps", "outputs")
_MESSAGES = {"user_input": "user", "model_output": "assistant"}
_CALL = frozenset(("type", "id", "name", "arguments"))
_NAMED = ("function", "mcp_server_tool")
"""Call types that name their tool; other calls are named after their type."""
_READ = frozenset(("usage", "id", "output_text", "error", "text"))


def _detect(value: Any) -> bool:
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


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
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
        "reasoning": "\n\n".join(_thoughts(items)) or None,
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


def _thoughts(items: Sequence[Any]) -> Iterator[str]:
    for item in objects_in(items):
        if item.get("type") == "thought":
            yield from (
                entry["text"] for entry in objects_in(item.get("summary")) if isinstance(entry.get("text"), str)
            )


FORMAT = ReplyFormat(name="interactions", detect=_detect, read=_read)


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
    response = _read(document, reader)
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


STREAM = ReplyFormat(name="interactions", detect=_detect_stream, read=_read_stream, events=True)
