"""Langflow: run replies and stream events; messages keep the used tools in blocks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentv.formats.builder import MessageListBuilder
from agentv.formats.conversation import text_or_none
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields
from agentv.formats.unread import with_searched
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]


def _messages(value: _Object) -> Iterator[_Object]:
    """Yield the messages among the components' results."""
    for run in objects_in(value.get("outputs")):
        for output in objects_in(run.get("outputs")):
            results = output.get("results")
            for result in objects_in(list(results.values()) if isinstance(results, OBJECT) else None):
                inner = result.get("data")
                whole = {**inner, **result} if isinstance(inner, OBJECT) else dict(result)
                blocks = [item for item in (result, inner) if isinstance(item, OBJECT) and item.get("content_blocks")]
                yield {**whole, "content_blocks": blocks[0]["content_blocks"]} if blocks else whole


def _is_message(item: Any) -> bool:
    return isinstance(item, OBJECT) and "text" in item and ("content_blocks" in item or "text_key" in item)


def _detect(value: Any) -> bool:
    return isinstance(value, OBJECT) and any(map(_is_message, _messages(value)))


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    return _write(list(_messages(value)), reader, text_or_none(value.get("session_id")), {"outputs": value["outputs"]})


def _write(
    messages: Sequence[_Object], reader: ReplyReader, thread: str | None, extra: _Object | None = None
) -> ProviderResponse:
    builder = MessageListBuilder()
    for message in messages:
        if message.get("sender") == "User":
            continue
        for block in objects_in(message.get("content_blocks")):
            for content in objects_in(block.get("contents")):
                _read_content(builder, content)
        builder.add_message("assistant", message.get("text"))
    response = add_fields(reader.read_messages(builder.build(), declared=True), {}, thread_id=thread)
    return with_searched(response, extra or {})


def _read_content(builder: MessageListBuilder, content: _Object) -> None:
    kind = content.get("type")
    if kind == "tool_use":
        call = builder.add_call(content.get("name"), content.get("tool_input", content.get("input")))
        call["duration_ms"] = content.get("duration")
        error = content.get("error") or None
        builder.add_result(
            None, content.get("output"), tool=content.get("name"), error=error, status="error" if error else None
        )
    elif kind not in ("text", "media", "json", "code", "error"):
        builder.add_unknown(content)


def _detect_stream(items: Any) -> bool:
    if not isinstance(items, (list, tuple)):
        return False
    messages = [item["data"] for item in objects_in(items) if item.get("event") == "add_message" and "data" in item]
    return any(map(_is_message, messages))


def _read_stream(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read the last version of each message; the final event contains the complete reply."""
    messages: dict[str, _Object] = {}
    for item in objects_in(items):
        data = item.get("data")
        if item.get("event") == "end" and isinstance(data, OBJECT) and _detect(data.get("result")):
            return _read(data["result"], reader)
        if item.get("event") == "add_message" and isinstance(data, OBJECT):
            messages[str(data.get("id"))] = data
    return _write(list(messages.values()), reader, None)


FORMAT = ReplyFormat(name="langflow", detect=_detect, read=_read, keys=frozenset(("outputs", "session_id")))
STREAM = ReplyFormat(name="langflow", detect=_detect_stream, read=_read_stream, events=True)
