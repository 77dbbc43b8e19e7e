"""Messages whose calls and results stand in their content: Anthropic's, Azure's, Gemini's, the AI SDK's, Mastra's."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentv.formats.ai_sdk import has_parts, unfold_message
from agentv.formats.anthropic import CALLS, THINKING, THOUGHTS, failed, is_plain, is_result, output_of
from agentv.formats.fields import OBJECT
from agentv.formats.gemini import objects_in, unfold_parts

_Object = Mapping[str, Any]
_AZURE = "tool_call"
_CALLS = (*CALLS, _AZURE)
_CALL = frozenset(("type", "id", "tool_call_id", "name", "input", "args", "arguments"))


def unfold(items: Sequence[Any]) -> list[Any]:
    """Give each such message as messages of ours, in order; any other stays as it is."""
    return [each for item in items for each in _unfold(item)]


def _unfold(item: Any) -> Iterator[Any]:
    if not isinstance(item, OBJECT):
        return iter((item,))
    if has_parts(item):
        return unfold_message(item)
    if is_gemini_content(item):
        return _unfold_content(item)
    if item.get("role") == "tool":
        return iter((_azure_result(item),))
    return _unfold_blocks(item) if has_blocks(item) else iter((item,))


def is_gemini_content(item: Any) -> bool:
    """Tell a content of Gemini's; a request of Pydantic AI's has parts, too, and a `kind`."""
    return (
        isinstance(item, OBJECT)
        and isinstance(item.get("parts"), (list, tuple))
        and "kind" not in item
        and "content" not in item
    )


def has_blocks(item: _Object) -> bool:
    """Tell a message with blocks that are calls or results; LangChain writes such calls beside the blocks as well."""
    return (
        not item.get("tool_calls")
        and item.get("role") != "tool"
        and any(
            isinstance(kind := block.get("type"), str) and kind.endswith(("tool_use", "tool_result", _AZURE))
            for block in objects_in(item.get("content"))
        )
    )


def _unfold_content(item: _Object) -> Iterator[dict[str, Any]]:
    """Split a content of Gemini's, with what else stands on it, and what the model thought, on the first of them."""
    first, *rest = unfold_parts(item)
    others = {key: value for key, value in item.items() if key not in ("role", "parts", *first)}
    thoughts = [part for part in objects_in(item["parts"]) if part.get("thought")]
    yield {**others, **({THINKING: thoughts} if thoughts else {}), **first}
    yield from rest


def _unfold_blocks(item: _Object) -> Iterator[dict[str, Any]]:
    """Split a message into its words and calls, and one message for each result that it holds."""
    written: list[dict[str, Any]] = []
    turn: dict[str, Any] | None = None
    for block in item["content"]:
        kind = block.get("type") if isinstance(block, OBJECT) else None
        if isinstance(block, OBJECT) and is_result(block):
            written.append(_result(block))
            continue
        # Words after a call are a step of their own: the vendor's tools answer within one message.
        if turn is None or (turn["tool_calls"] and kind not in _CALLS):
            turn = {"role": item.get("role"), "content": [], "tool_calls": [], THINKING: []}
            written.append(turn)
        place = "tool_calls" if kind in _CALLS else THINKING if kind in THOUGHTS else "content"
        turn[place].append(_call(block) if place == "tool_calls" else block)
    others = {key: value for key, value in item.items() if key not in ("role", "content", "tool_calls")}
    for message in written:
        told = {key: value for key, value in message.items() if key == "content" or value not in (None, [])}
        yield {**others, **told, "content": _words(message["content"]) if "tool_calls" in message else told["content"]}
        others = {}  # what is said of a message is said once


def _words(blocks: list[Any]) -> Any:
    """Give the words as a text where they are nothing else."""
    if blocks and all(isinstance(block, OBJECT) and is_plain(block) for block in blocks):
        return "".join(block["text"] for block in blocks)
    return blocks or None


def _call(block: _Object) -> dict[str, Any]:
    call = {key: value for key, value in block.items() if key not in _CALL and value is not None}
    if block["type"] not in ("tool_use", _AZURE):
        call["type"] = block["type"]
    call |= {"name": block.get("name"), "id": block.get("id", block.get("tool_call_id"))}
    place = next((key for key in ("input", "arguments", "args") if key in block), None)
    if place is None:
        return call
    # A text is JSON, or what a stream left whose pieces never became an object.
    return {**call, "arguments" if isinstance(block[place], str) else "args": block[place]}


def _azure_result(item: _Object) -> _Object:
    """Give a result without its wrapper, a block of one field."""
    blocks = list(objects_in(item.get("content")))
    if len(blocks) != 1 or blocks[0].keys() != {"type", "tool_result"}:
        return item
    return {**item, "content": blocks[0]["tool_result"]}


def _result(block: _Object) -> dict[str, Any]:
    output = output_of(block.get("content"))
    result = {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": output}
    if block.get("is_error") is True or failed(output):
        return {**result, "status": "error"}
    return {**result, "status": "ok"} if block.get("is_error") is False else result
