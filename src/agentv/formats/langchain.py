"""LangChain messages in all of their serialized forms, as LangGraph also stores them in its state."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentv.formats.conversation import text_or_none
from agentv.formats.embedded_calls import THINKING
from agentv.formats.fields import OBJECT, Report, clean_text
from agentv.formats.messages import as_list, decode_messages, is_langchain
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.usage import add_usage, lift_usage, read_usage
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, TokensUsage
from agentv.protocols import ReplyFormat, ReplyReader

_ROLES = {
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "human": "user",
    "HumanMessageChunk": "user",
    "system": "system",
    "SystemMessageChunk": "system",
    "tool": "tool",
    "ToolMessageChunk": "tool",
    "remove": "remove",
    "FunctionMessageChunk": "function",
}
"""Roles by message type; any other type is its own role, so only `ai` is read as the assistant."""
_CLASSES = {
    "AIMessage": "ai",
    "HumanMessage": "human",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "function",
    "ChatMessage": "chat",
    "RemoveMessage": "remove",
}
_CHAT = ("chat", "ChatMessageChunk")
_READ = frozenset(("type", "role", "tool_calls", "invalid_tool_calls", "tool_call_chunks", "chunk_position"))
_BASE_FIELDS = frozenset(("content", "additional_kwargs", "response_metadata", "type", "name", "id"))
_AI_FIELDS = frozenset(("tool_calls", "invalid_tool_calls", "tool_call_chunks", "usage_metadata", "example"))
_CACHE_WRITES = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
_MODELS = ("model_name", "model", "model_id")
"""Keys of the model's name, depending on the vendor's client."""
_REJECTED = ("with id ", "with reason: ")
UNKNOWN_SUM = "so the tokens of the messages together are unknown"
_NO_REASON = "the agent did not say why they could not be read"


def decode_langchain(messages: Iterable[Any], name: str = "messages") -> ProviderResponse:
    """Decode LangChain messages, and sum the token usage of the model's turns.

    `name` is the name of the list in warnings.
    """
    items = [unwrap_langchain(item) for item in as_list(messages)]
    report = Report()
    decoded = decode_messages([_plain(item) for item in items], report, (name,))
    usage = _usage(items, report, name)
    for position, item in enumerate(items):
        if _lost_calls(item):
            report.skip((name, position), "a message that was written as its base class, without its calls,")
    return ProviderResponse(
        text=next((clean_text(message.text) for message in reversed(decoded) if message.role == "assistant"), ""),
        output_messages=lift_usage(decoded),
        reasoning=_reasoning(decoded),
        tokens_usage=usage,
        metadata=({"malformed": report.malformed} if report.malformed else {}) | _model(items) or None,
        warnings=report.warnings,
        unread=report.unread(any(message.tool_calls for message in decoded)),
    )


def _lost_calls(item: Any) -> bool:
    """Return whether an AI message has only the fields of every message and none of its own.

    A pydantic field declared as `BaseMessage` serializes it like this, without its calls.
    """
    if not isinstance(item, OBJECT) or item.get("type") != "ai" or not item.keys() >= _BASE_FIELDS:
        return False
    return item.keys().isdisjoint(_AI_FIELDS) and not item["additional_kwargs"]


def unwrap_langchain(item: Any) -> Any:
    """Return the fields of a message without LangChain's wrapper."""
    if not isinstance(item, OBJECT):
        return item
    inner, kind = item.get("data"), item.get("type")
    if isinstance(inner, OBJECT) and isinstance(kind, str) and "content" not in item:
        return inner if isinstance(inner.get("type"), str) else {**inner, "type": kind}
    inner, names = item.get("kwargs"), item.get("id")
    if kind == "constructor" and isinstance(inner, OBJECT) and isinstance(names, (list, tuple)) and names:
        name = names[-1] if isinstance(names[-1], str) else ""
        return inner if isinstance(inner.get("type"), str) else {**inner, "type": _CLASSES.get(name, name)}
    return item


def _plain(item: Any) -> Any:
    """Convert a LangChain message to the canonical form; return anything else unchanged."""
    if not isinstance(item, OBJECT):
        return item
    kind = item.get("type")
    if not isinstance(kind, str) or ("role" in item and kind not in _CHAT):
        return item
    if "content" not in item and kind not in _ROLES:  # an item, not a message
        return item
    # Empty fields are dropped: LangChain writes every field on every message.
    plain = {key: value for key, value in item.items() if key not in _READ and _says_something(key, value)}
    plain["role"] = item.get("role") if kind in _CHAT else _ROLES.get(kind, kind)
    content = item.get("content")
    if plain["role"] != "tool" and isinstance(content, (list, tuple)):
        plain["content"] = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    if _is_rejection(item):
        plain["status"] = "denied"
    calls = _calls(item)
    if calls:
        plain["tool_calls"] = calls
    elif item.get("tool_call_chunks"):
        plain["tool_call_chunks"] = item["tool_call_chunks"]
    return plain


def _is_rejection(item: Mapping[Any, Any]) -> bool:
    """Recognize the result that `HumanInTheLoopMiddleware` writes for a call that a person rejected.

    It is an error that starts with a fixed phrase naming the message's tool; a tool's own error does not match.
    """
    content, name = item.get("content"), item.get("name")
    if item.get("status") != "error" or not isinstance(content, str) or not isinstance(name, str):
        return False
    return content.startswith(tuple(f"User rejected the tool call for `{name}` {phrase}" for phrase in _REJECTED))


def _says_something(key: Any, value: Any) -> bool:
    if key == "content":
        return True
    return not (value is None or (key == "example" and value is False) or (isinstance(value, OBJECT) and not value))


def _calls(item: Mapping[Any, Any]) -> Any:
    """Return all calls of a message, including invalid ones, in the order of the model."""
    valid, invalid = item.get("tool_calls"), list_field(item, "invalid_tool_calls")
    if valid and not isinstance(valid, (list, tuple)):
        return valid
    calls = [_call(call) for call in valid or ()] + [_invalid_call(call) for call in invalid]
    extra = item.get("additional_kwargs")
    raw = extra.get("tool_calls") if isinstance(extra, OBJECT) else None
    if not calls and not raw and isinstance(extra, OBJECT) and isinstance(extra.get("function_call"), OBJECT):
        return [{"function": extra["function_call"]}]
    if not isinstance(raw, (list, tuple)) or not raw:
        return calls
    if not calls:
        return list(raw)
    # The vendor's form repeats the same calls, but only it has the right order.
    order = {_id(call): at for at, call in enumerate(raw)}
    if any(_id(call) is None or _id(call) not in order for call in calls):
        return calls
    return sorted(calls, key=lambda call: order[_id(call)])


def list_field(item: Mapping[Any, Any], key: str) -> list[Any] | tuple[Any, ...]:
    """Return a field if it is a list, else an empty tuple."""
    value = item.get(key)
    return value if isinstance(value, (list, tuple)) else ()


def _id(call: Any) -> str | None:
    value = call.get("id") if isinstance(call, OBJECT) else None
    return value if isinstance(value, str) else None


def _call(raw: Any) -> Any:
    """Convert a call; `args` is a value, and `null` is a valid one."""
    if not isinstance(raw, OBJECT) or "function" in raw or "tool" in raw:
        return raw
    call = {key: value for key, value in raw.items() if key not in ("name", "args", "type")}
    if raw.get("type") not in (None, "tool_call"):
        call["type"] = raw["type"]
    call["tool"] = raw.get("name")
    if "args" in raw:
        call["input"] = raw["args"]
    return call


def _invalid_call(raw: Any) -> Any:
    """Convert a call whose arguments LangChain could not parse; its input is the text of the model."""
    if not isinstance(raw, OBJECT):
        return raw
    arguments, error = raw.get("args"), raw.get("error")
    parse_error = parse_arguments(arguments)[1] if isinstance(arguments, str) else None
    metadata = {key: value for key, value in raw.items() if key not in ("name", "args", "id", "type", "error")}
    metadata["arguments_error"] = parse_error or (error if isinstance(error, str) and error else _NO_REASON)
    if parse_error and error is not None:
        metadata["error"] = error
    call: dict[str, Any] = {"tool": raw.get("name") or "", "id": raw.get("id"), "metadata": metadata}
    if arguments is not None:
        call["input"] = arguments
    return call


def _usage(items: list[Any], report: Report, name: str) -> TokensUsage | None:
    """Sum the token usage of the model's turns; the sum is unknown if one turn has none."""
    turns: list[TokensUsage | None] = []
    silent: list[int] = []
    for position, item in enumerate(items):
        if not isinstance(item, OBJECT) or not _is_assistant(item):
            continue
        path = (name, position, "usage_metadata")
        turns.append(read_usage(_counts(item), path, report)[0])
        if turns[-1] is None:
            silent.append(position)
    if silent and len(silent) < len(turns):
        report.warn((name, silent[0], "usage_metadata"), f"missing, {UNKNOWN_SUM}")
    return add_usage(turns)


def _model(items: list[Any]) -> dict[str, str]:
    """Return the model if all turns name the same one, so that their usage has one price."""
    metadata = [item.get("response_metadata") for item in items if isinstance(item, OBJECT) and _is_assistant(item)]
    metadata_objects = [entry if isinstance(entry, OBJECT) else {} for entry in metadata]
    names = {
        next((text for key in _MODELS if (text := text_or_none(entry.get(key)))), None) for entry in metadata_objects
    }
    name = names.pop() if len(names) == 1 else None
    return {} if name is None else {"model": name}


def _is_assistant(item: Mapping[Any, Any]) -> bool:
    kind, role = item.get("type"), item.get("role")
    return role == "assistant" or (role is None and isinstance(kind, str) and _ROLES.get(kind) == "assistant")


def _counts(item: Mapping[Any, Any]) -> Any:
    """Find the token counts of a message: LangChain's own field, else the vendor's."""
    counts = item.get("usage_metadata")
    if counts is None:
        metadata = item.get("response_metadata")
        metadata = metadata if isinstance(metadata, OBJECT) else {}
        return next((metadata[key] for key in ("token_usage", "usage") if isinstance(metadata.get(key), OBJECT)), None)
    details = counts.get("input_token_details") if isinstance(counts, OBJECT) else None
    if not isinstance(details, OBJECT):
        return counts
    # For caches with two lifetimes, Anthropic's client reports the parts, and 0 for the whole.
    writes = [details[key] for key in _CACHE_WRITES if isinstance(details.get(key), int)]
    if len(writes) <= 1:
        return counts
    extra = {key: value for key, value in details.items() if key not in _CACHE_WRITES}
    return {**counts, "input_token_details": {**extra, "cache_creation": sum(writes)}}


def _reasoning(messages: tuple[Message, ...]) -> str | None:
    """Join the model's reasoning from wherever its client stores it."""
    thoughts = [thought for message in messages if message.role == "assistant" for thought in _thoughts(message)]
    return "\n\n".join(map(clean_text, thoughts)) or None


def _thoughts(message: Message) -> list[str]:
    stored = (message.metadata or {}).get(THINKING)
    blocks = [
        *(stored if isinstance(stored, list) else ()),
        *(message.content if isinstance(message.content, list) else ()),
    ]
    thoughts = [block for block in blocks if block.get("type") in ("thinking", "reasoning")]
    texts: list[Any] = []
    for block in thoughts:
        summary = block.get("summary")
        parts = summary if isinstance(summary, list) else []
        texts += [block.get("thinking"), block.get("reasoning"), *(p.get("text") for p in parts if isinstance(p, dict))]
    extra = (message.metadata or {}).get("additional_kwargs")
    if not thoughts and isinstance(extra, dict):
        texts.append(extra.get("reasoning_content"))
    return [text for text in texts if isinstance(text, str) and text]


def _detect(items: Any) -> bool:
    if not isinstance(items, (list, tuple)):
        return False
    return any(
        is_langchain(item := unwrap_langchain(entry)) and ("content" in item or item["type"] == "remove")
        for entry in items
    )


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    del reader
    return decode_langchain(items, "output_messages")


FORMAT = ReplyFormat(name="langchain", detect=_detect, read=_read, items=True, events=True)
