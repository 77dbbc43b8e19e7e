"""Detection of the new part of a returned conversation.

Some agents return the messages of the request before those that they added. The messages of the request are aligned
with the start of the returned list; the rest is new.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from agentv.formats.fields import CALL_ID_KEYS, OBJECT, texts_under, to_snake_case
from agentv.model.conversation import Message

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system"}
_TYPES = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessageChunk": "system",
    "tool": "tool",
    "ToolMessageChunk": "tool",
    "user": "user",
    "assistant": "assistant",
}
_BLOCKS = ("content", "parts", "contents", "items", "blocks")
_RESULT_WORDS = ("result", "return", "response", "output")


class Speaker(Struct, frozen=True):
    """The role, the text and the call ids of an item."""

    role: str
    text: str = ""
    call_ids: frozenset[str] = frozenset()


class NewPart(Struct, frozen=True):
    """The start of the new part of a list."""

    start: int
    uncertain_end: int | None = None
    """The start by the alternative interpretation, if the echo cannot be aligned."""


ALL_NEW = NewPart(0)
_PROMPT_ROLES = frozenset(("user", "system", "developer"))


def find_new_quickly(items: Sequence[Any], prompt: Sequence[Message] | None, *, declared: bool) -> NewPart | None:
    """Find the new part of messages by their roles alone; return `None` if that is not sufficient."""
    first = last_prompt = -1
    for at, item in enumerate(items):
        if type(item) is not Message:
            return None
        if item.role not in _PROMPT_ROLES:
            first = at if first < 0 else first
        elif item.role == "user" or first < 0:
            last_prompt = at
    if last_prompt < 0:
        return ALL_NEW
    if prompt is None and not 0 <= first < last_prompt:
        return ALL_NEW  # the request is unknown, so all messages are kept
    if declared or (0 <= first < last_prompt) or (prompt and any(message.tool_calls for message in prompt)):
        return None
    return NewPart(len(items) if first < 0 else first)


def find_new(speakers: Sequence[Speaker], prompt: Sequence[Message] | None, *, declared: bool) -> NewPart:
    """Find the start of the items that the agent added.

    `prompt` holds the messages of the request, `None` if they are unknown. `declared` means that the list is declared
    to hold only items that the agent added: then only an exact echo of the request is dropped.
    """
    if prompt is not None and not any(_is_comparable(message.role, message.text) for message in prompt):
        return NewPart(0)  # the request has no text that could be echoed
    aligned = None if prompt is None else _align(speakers, prompt)
    users = [at for at, speaker in enumerate(speakers) if speaker.role == "user"]
    if aligned is not None:
        question = next((message.text.strip() for message in reversed(prompt or ()) if message.role == "user"), "")
        repeated = [at for at in users if at >= aligned and speakers[at].text.strip() == question]
        return NewPart(aligned, repeated[-1] + 1 if repeated and question else None)
    if declared:
        return NewPart(0)
    first = next((at for at, speaker in enumerate(speakers) if speaker.role not in ("user", "system")), len(speakers))
    start = 0 if prompt is None else first  # the items before the agent's first one are dropped if the request is known
    return NewPart(start, users[-1] + 1 if users and users[-1] > first else None)


def _align(speakers: Sequence[Speaker], prompt: Sequence[Message]) -> int | None:
    """Find the end of the request's messages at the start of the list; return `None` if they are not there."""
    expected = [
        (message.role, message.text.strip()) for message in prompt if _is_comparable(message.role, message.text)
    ]
    comparable = [(at, speaker) for at, speaker in enumerate(speakers) if _is_comparable(speaker.role, speaker.text)]
    for length in range(min(len(expected), len(comparable)), 0, -1):
        if [(speaker.role, speaker.text.strip()) for _, speaker in comparable[:length]] == expected[-length:]:
            end = comparable[length - 1][0] + 1
            break
    else:
        return None
    ids = {call.id for message in prompt for call in message.tool_calls if call.id}
    while end < len(speakers) and speakers[end].call_ids and speakers[end].call_ids <= ids:
        end += 1  # calls and results of the request
    return end


def _is_comparable(role: str, text: str) -> bool:
    return role in ("user", "assistant") and bool(text.strip())


def speaker_of(item: Any) -> Speaker:
    """Return the speaker of an item in any known form; a message with only tool results is not the user's."""
    if isinstance(item, Message):
        ids = [call.id for call in item.tool_calls if call.id] + ([item.tool_call_id] if item.tool_call_id else [])
        return Speaker(_ROLES.get(item.role, item.role), item.text, frozenset(ids))
    if not isinstance(item, OBJECT):
        return Speaker("")
    for wrapper in ("raw_item", "data", "kwargs", "message"):
        inner = item.get(wrapper)
        if isinstance(inner, OBJECT) and "content" not in item and "role" not in item:
            return speaker_of({"type": item.get("type"), **inner})
    blocks = _blocks_of(item)
    if blocks and all(map(_is_result, blocks)):
        return Speaker("tool", "", _ids(item, blocks))
    return Speaker(_role(item, blocks), _text(item, blocks), _ids(item, blocks))


def _role(item: Mapping[str, Any], blocks: Sequence[Any]) -> str:
    author = item.get("author")
    if author in ("user", "system"):  # an ADK event
        return str(author)
    if item.get("kind") == "request":  # a pydantic-ai request
        kinds = texts_under("part_kind", blocks)
        return (
            "system" if kinds == {"system-prompt"} else "user" if kinds <= {"system-prompt", "user-prompt"} else "tool"
        )
    role = item.get("role")
    if isinstance(role, str):
        return _ROLES.get(role, role)
    kind = item.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        return _TYPES[kind]
    if isinstance(kind, str) and to_snake_case(kind).endswith("_output"):
        return "tool"
    return "assistant"


def _blocks_of(item: Mapping[str, Any]) -> Sequence[Any]:
    content = item.get("content")
    if isinstance(content, OBJECT):
        if isinstance(content.get("type"), str):  # a single block, as in MCP
            return (content,)
        item = content
    return next((item[key] for key in _BLOCKS if isinstance(item.get(key), (list, tuple))), ())


def _is_result(block: Any) -> bool:
    if not isinstance(block, OBJECT):
        return False
    kind = block.get("type", block.get("part_kind"))
    if isinstance(kind, str):
        return "tool" in kind and any(word in kind for word in _RESULT_WORDS)
    return any(key in block for key in ("toolResult", "functionResponse", "function_response", "tool_call_result"))


def _text(item: Mapping[str, Any], blocks: Sequence[Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    texts = [_block_text(block) for block in blocks]
    return "".join(text for text in texts if isinstance(text, str)) or _string(item.get("text"))


def _block_text(block: Any) -> Any:
    if not isinstance(block, OBJECT):
        return block
    if block.get("part_kind") in ("user-prompt", "text"):
        content = block.get("content")
        return "".join(part for part in content if isinstance(part, str)) if isinstance(content, list) else content
    if block.get("thought") is True or block.get("type") in ("thinking", "reasoning"):
        return None
    return block.get("content") if block.get("type") == "text" and "text" not in block else block.get("text")


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _ids(item: Mapping[str, Any], blocks: Sequence[Any]) -> frozenset[str]:
    """Return the ids of the calls that an item makes or answers."""
    calls = item.get("tool_calls")
    boxes = [item, *(calls if isinstance(calls, (list, tuple)) else ()), *blocks]
    ids = [box.get(key) for box in boxes if isinstance(box, OBJECT) for key in CALL_ID_KEYS]
    ids += [box.get("id") for box in boxes[1:] if isinstance(box, OBJECT) and box.get("type") not in ("text", None)]
    return frozenset(id_ for id_ in ids if isinstance(id_, str) and id_)
