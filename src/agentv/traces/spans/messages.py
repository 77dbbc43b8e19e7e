"""Messages in attributes of spans: the parts of GenAI, the shapes of OpenAI and Gemini, and any other known one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from agentv.formats.fields import is_call_key, to_snake_case
from agentv.formats.reader import detect_conversation
from agentv.jsonio import DEPTH_MARKER, dump_json, is_deep, scrub, truncate_depth
from agentv.model.conversation import Message, Status, ToolCall
from agentv.traces.spans.values import parse_arguments_text, parse_value, text_of

_Object = Mapping[str, Any]
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool"}
_OPENAI_KEYS = frozenset((
    *("role", "content", "tool_calls", "tool_call_id", "name", "id", "refusal", "audio", "annotations"),
    *("finish_reason", "function_call", "reasoning", "reasoning_content", "parsed"),
))  # fmt: skip
_RESULT_KEYS = frozenset(("text", "files", "reasoning", "reasoningText", "sources", "warnings", "finishReason"))
"""Keys of a result of a model in Mastra that holds no calls."""
_SMOLAGENTS = frozenset(("tool-call", "tool-response"))
_CALL_PARTS = frozenset(("tool_call", "server_tool_call"))
_RESULT_PARTS = frozenset(("tool_call_response", "server_tool_call_response"))
_GEMINI_RESULTS = ("functionResponse", "function_response")
_GEMINI_KEYS = frozenset(("functionCall", "function_call", *_GEMINI_RESULTS))
_TEXT_KEYS = 2
"""Number of keys of a part that is only a text."""
_STATUSES: dict[Any, Status] = {"ok": "ok", "error": "error", "denied": "denied", "pending": "pending"}
_PLAIN_BLOCKS = frozenset(("text", "input_text", "output_text"))
_LANGCHAIN_TYPES = frozenset(("human", "ai", "AIMessageChunk"))
_ANTHROPIC_BLOCKS = frozenset(("tool_use", "tool_result", "thinking", "redacted_thinking"))
REDACTED = "__REDACTED__"
"""Text that OpenInference writes in place of hidden content."""


class Said(Struct):
    """One message as a span tells it: its text, the calls in it, and the results in it."""

    role: str
    content: Any = None
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolCall, ...] = ()
    """Results of earlier calls, each as a call with its id or name and its output."""
    name: str | None = None
    finish: str | None = None
    metadata: dict[str, Any] | None = None
    is_captured: bool = True
    """`False` if a part of its text was not captured."""
    known_key: Any = None
    """The value of `key`, once it was asked for."""

    @property
    def text(self) -> str:
        """The text of the content, without reasoning."""
        content = self.content
        return content if isinstance(content, str) else Message(role=self.role, content=content).text

    @property
    def key(self) -> Any:
        """A value by which the same message is recognized in a repeated history."""
        if self.known_key is None:
            self.known_key = self._make_key()
        return self.known_key

    def _make_key(self) -> Any:
        if self.role == "assistant" and self.calls:
            ids = [call.id for call in self.calls if call.id]
            if len(ids) == len(self.calls):
                return (self.role, *ids)
            calls = [(call.tool, None if call.input is UNSET else call.input) for call in self.calls]
            return (self.role, dump_json(calls))
        content = self.text.strip() if isinstance(self.content, (str, list)) else ""
        return (self.role, content or dump_json([self.content, self.metadata]))


def clean_value(value: Any) -> Any:
    """Return a value of a span as one that can be stored: of limited depth."""
    if type(value) is dict:  # most arguments have no lists and objects in them
        for inner in value.values():
            if isinstance(inner, (dict, list, tuple)):
                return truncate_depth(value) if is_deep(value) else value
    elif isinstance(value, (dict, list, tuple)) and is_deep(value):
        return truncate_depth(value)
    return value


class MessageReader:
    """Reader of messages, which reads a message that is repeated in several spans once."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[Said]] = {}
        self._last: dict[str, tuple[str, list[Said]]] = {}
        """The last list of messages under each name: the next one often begins with the same text."""
        self.problems: list[str] = []
        """Reasons why messages could not be read, with the name of the attribute; emptied by the caller."""

    def read(self, value: Any, name: str, role: str) -> list[Said] | None:
        """Return the messages of an attribute; `None` if they were not captured. `role` is that of a bare text."""
        if value is None or value in ("", REDACTED):
            return None
        if isinstance(value, str) and value.lstrip()[:1] == "[":
            said = self._read_list(value, name, role)
            if said is None:
                self.problems.append(f"`{name}` is no valid JSON: it was cut off")
            return said
        value = parse_value(value)
        if isinstance(value, dict):
            inner = next((value[key] for key in ("messages", "contents") if isinstance(value.get(key), list)), None)
            if inner is None and isinstance(value.get("text"), str) and value.keys() <= _RESULT_KEYS:
                return [Said(role, value["text"])]
            value = [value] if inner is None else inner
        if isinstance(value, str) and value.lstrip()[:1] != "{":
            return [Said(role, value)]
        if not isinstance(value, list):
            reason = "is no valid JSON: it was cut off" if isinstance(value, str) else "holds no messages"
            self.problems.append(f"`{name}` {reason}")
            return None
        return [said for item in value for said in translate(item, role)]

    def _read_list(self, text: str, name: str, role: str) -> list[Said] | None:
        """Return the messages of a JSON list; those that the last list under this name has too are not read again."""
        before, known = self._last.get(name, ("", []))
        rest = text
        if before and text.startswith(before) and (more := text[len(before) :].lstrip())[:1] == ",":
            rest = f"[{more[1:]}"
        if rest is text or rest[1:].lstrip()[:1] == "]":
            known, rest = [], text
        try:
            items = _raw_items(rest)
        except (ValueError, RecursionError):
            return None
        said = [*known, *[said for item in items for said in self._read_raw(item, role)]]
        if text.endswith("]"):
            self._last[name] = (text[:-1], said)
        return said

    def _read_raw(self, item: Raw, role: str) -> list[Said]:
        key = bytes(item)
        known = self._known.get(key)
        if known is None:
            said = _decode_plain(key, role)
            known = self._known[key] = translate(msgspec.json.decode(key), role) if said is None else [said]
        return known


class _MessagePart(Struct, forbid_unknown_fields=True, gc=False):
    """A part of a message as the GenAI conventions have it: a text, a call or a result."""

    type: str
    content: str | UnsetType | None = UNSET
    id: str | None = None
    name: str | None = None
    arguments: Any = UNSET
    response: Any = UNSET
    result: Any = UNSET


class _WrittenMessage(Struct, forbid_unknown_fields=True, gc=False):
    """A message as the GenAI conventions have it; one with any other field is read without types."""

    parts: list[_MessagePart]
    role: str = ""
    name: str | None = None
    finish_reason: str | None = None


_decode_message = msgspec.json.Decoder(_WrittenMessage).decode


def _decode_plain(data: bytes, role: str) -> Said | None:
    """Return a message of texts, calls and results; `None` for any other."""
    if b'"parts"' not in data:
        return None
    try:
        message = _decode_message(data)
    except (ValueError, RecursionError):
        return None
    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[ToolCall] = []
    for part in message.parts:
        content = part.content
        if part.type == "text" and isinstance(content, str):
            texts.append(content)
        elif part.type == "tool_call":
            calls.append(_call(part.name, part.arguments, part.id))
        elif part.type == "tool_call_response":
            output = part.response if part.response is not UNSET else part.result
            results.append(_call(part.name, UNSET, part.id, output=content if output is UNSET else output))
        else:
            return None
    role = "assistant" if calls else "tool" if results and not texts else _role(message.role, role)
    content = "\n".join(texts) if texts else None
    name, finish = message.name or None, message.finish_reason or None
    return Said(role, content, tuple(calls), tuple(results), name=name, finish=finish)


def join_items(messages: list[Said]) -> list[Said]:
    """Return messages in which the items of one reply, such as its text and its parallel calls, are one message."""
    if not any(one.role == other.role == "assistant" for one, other in pairwise(messages)):
        return messages
    joined: list[Said] = []
    for said in messages:
        last = joined[-1] if joined else None
        if last is None or not _is_item_of(last, said):
            joined.append(said)
            continue
        texts = [each.content for each in (last, said) if each.content]
        joined[-1] = replace(
            last,
            content="\n".join(texts) or None,
            calls=last.calls + said.calls,
            results=last.results + said.results,
            finish=last.finish or said.finish,
            is_captured=last.is_captured and said.is_captured,
            known_key=None,
        )
    return joined


def _is_item_of(last: Said, said: Said) -> bool:
    if not (said.role == last.role == "assistant" and (said.calls or last.calls)):
        return False
    return last.name == said.name and not (isinstance(said.content, list) or isinstance(last.content, list))


_raw_items = msgspec.json.Decoder(list[Raw]).decode


def translate(item: Any, role: str = "user") -> list[Said]:
    """Return the messages that one item holds; a part that is not understood becomes a content block."""
    if isinstance(item, str):
        parsed = parse_value(item)
        if not isinstance(parsed, dict):
            return [Said(role, item)]
        item = parsed  # a message as JSON text in a list
    if isinstance(item, list):  # a batch of messages, as LangChain has it
        return [said for each in item for said in translate(each, role)]
    if not isinstance(item, dict):
        return [Said(role, [{"type": "unknown", "item": item}])]
    choices = item.get("choices")
    if isinstance(choices, list) and choices and all(map(_is_choice, choices)):  # a chat completion
        return [said for choice in choices for said in translate(choice, "assistant")]
    return _translate_object(_unwrap(item, role), role)


def _unwrap(item: _Object, role: str) -> _Object:
    """Return the message in a choice of OpenAI, a candidate of Gemini, or an event with content."""
    message = item.get("message")
    if isinstance(message, dict) and "role" not in item:
        item = {**message, "finish_reason": item.get("finish_reason")}
    content = item.get("content")
    if not isinstance(content, dict):
        return item
    if isinstance(content.get("parts"), list):
        return {"role": content.get("role") or role, "parts": content["parts"]}
    return content if "finishReason" in item else item


def _translate_object(item: _Object, role: str) -> list[Said]:
    role_name = item.get("role")
    if isinstance(role_name, str) and role_name in _SMOLAGENTS and (said := _from_smolagents(item)) is not None:
        return [said]
    if isinstance(item.get("parts"), list):
        return [_from_parts(item, role)]
    if isinstance(item.get("role"), str) and _is_openai(item):
        return [_from_openai(item)]
    return _from_any(item, role)


def _from_smolagents(item: _Object) -> Said | None:
    """Read a message of a memory of smolagents, which tells calls and results as texts; `None` if it is another."""
    content = item.get("content")
    blocks = content if isinstance(content, list) else [content]
    told = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    texts = [text for text in told if isinstance(text, str)]
    if not texts or len(texts) < len(told):
        return None
    text = "".join(texts)
    if item["role"] == "tool-response":
        return Said("tool", results=(ToolCall(tool="", output=text),))
    calls = parse_arguments_text(text[text.find("[") :]) if "[" in text else None
    if not isinstance(calls, list) or not all(isinstance(call, dict) and "function" in call for call in calls):
        return None
    return Said("assistant", calls=tuple(map(_openai_call, calls)))


def _is_choice(value: Any) -> bool:
    message = value.get("message") if isinstance(value, dict) else None
    return isinstance(message, dict) and isinstance(message.get("role"), str) and _is_openai(message)


def _role(value: Any, default: str) -> str:
    role = written_role(value, default).lower()
    return _ROLES.get(role, role)


def written_role(value: Any, default: str) -> str:
    """Return the role of a message; one that is no text is not taken as that of the user, who begins a turn."""
    if isinstance(value, str) and value:
        return value
    return default if value in (None, "") or default != "user" else "unknown"


def _from_parts(item: _Object, role: str) -> Said:
    """Read a message with parts, of GenAI (typed) or of Gemini (by key)."""
    blocks: list[Any] = []
    calls: list[ToolCall] = []
    results: list[ToolCall] = []
    is_captured = True
    for part in item["parts"]:
        if isinstance(part, str):
            blocks.append({"type": "text", "text": part})
        elif not isinstance(part, dict):
            blocks.append({"type": "unknown", "item": part})
        elif part.get("type") == "text" and "content" not in part and "text" not in part:
            is_captured = False
        else:
            _add_part(part, blocks, calls, results)
    role = _role(item.get("role"), role)
    if calls:
        role = "assistant"
    elif results and not blocks:
        role = "tool"
    return Said(
        role,
        _content(blocks),
        tuple(calls),
        tuple(results),
        name=text_of(item.get("name")),
        finish=text_of(item.get("finish_reason")),
        is_captured=is_captured,
    )


def _add_part(part: _Object, blocks: list[Any], calls: list[ToolCall], results: list[ToolCall]) -> None:
    type_ = part.get("type")
    kind = to_snake_case(type_) if isinstance(type_, str) else ""
    if kind in _CALL_PARTS:
        calls.append(_call_of_part(part, kind))
        return
    if kind in _RESULT_PARTS:
        results.append(_result_of_part(part, kind))
        return
    gemini = response = None
    if not _GEMINI_KEYS.isdisjoint(part):
        gemini = next((key for key in ("functionCall", "function_call") if isinstance(part.get(key), dict)), None)
        response = next((key for key in _GEMINI_RESULTS if isinstance(part.get(key), dict)), None)
    if gemini is not None:
        calls.append(_call(part[gemini].get("name"), part[gemini].get("args", UNSET), part[gemini].get("id")))
    elif response is not None:
        inner = part[response]
        results.append(_call(inner.get("name"), UNSET, inner.get("id"), output=inner.get("response", UNSET)))
    elif kind == "text":
        blocks.append({"type": "text", "text": str(part.get("content", part.get("text", "")))})
        if len(part) > _TEXT_KEYS and (beside := {key: value for key, value in part.items() if is_call_key(key)}):
            blocks.append({"type": "unknown", **beside})
    elif kind in ("reasoning", "thinking"):
        blocks.append({"type": "reasoning", "text": part.get("content", part.get("text"))})
    elif not kind and isinstance(part.get("text"), str):
        blocks.append({"type": "reasoning" if part.get("thought") else "text", "text": part["text"]})
    else:
        blocks.append(dict(part))


def _call_of_part(part: _Object, kind: str) -> ToolCall:
    inner = part.get("server_tool_call") if kind == "server_tool_call" else None
    name = part.get("name") or (inner.get("type") if isinstance(inner, dict) else None)
    if "arguments" in part:
        arguments = part["arguments"]
    elif isinstance(inner, dict):
        arguments = {key: value for key, value in inner.items() if key != "type"}
    else:
        arguments = UNSET
    return _call(name, arguments, part.get("id"))


def _result_of_part(part: _Object, kind: str) -> ToolCall:
    keys = ("response", "result", kind, "content")
    output = next((part[key] for key in keys if key in part), UNSET)
    return _call(part.get("name"), UNSET, part.get("id"), output=output)


def _call(name: Any, arguments: Any, call_id: Any, *, output: Any = UNSET) -> ToolCall:
    """Return a call; arguments may be a JSON text, and `null` means that they were not captured."""
    tool = name if isinstance(name, str) else ""
    value = UNSET if arguments is UNSET else parse_arguments_text(arguments)
    own_id = call_id.strip() if isinstance(call_id, str) else str(call_id) if isinstance(call_id, int) else ""
    return ToolCall(tool=tool, input=clean_value(value), output=clean_value(output), id=own_id or None)


def _content(blocks: list[Any]) -> Any:
    if not blocks:
        return None
    if all(type(block) is dict and block.get("type") == "text" for block in blocks):
        return "\n".join([block["text"] for block in blocks])
    return clean_value(blocks)


def _is_openai(item: _Object) -> bool:
    if not item.keys() <= _OPENAI_KEYS:
        return False
    content = item.get("content")
    if content is None or isinstance(content, str):
        return True
    return isinstance(content, list) and all(
        isinstance(block, dict) and block.get("type") in _PLAIN_BLOCKS and isinstance(block.get("text"), str)
        for block in content
    )


def _from_openai(item: _Object) -> Said:
    content = item.get("content")
    if isinstance(content, list):
        content = "".join([block["text"] for block in content])
    role = _role(item["role"], "user")
    if role == "tool":
        output = content if "content" in item else UNSET
        result = _call(item.get("name"), UNSET, item.get("tool_call_id") or item.get("id"), output=output)
        return Said(role, results=(result,), name=text_of(item.get("name")))
    raw = item.get("tool_calls")
    raw = parse_value(raw) if isinstance(raw, str) else raw
    calls = [_openai_call(call) for call in raw] if isinstance(raw, list) else []
    if isinstance(item.get("function_call"), dict):
        calls.append(_openai_call({"function": item["function_call"]}))
    if calls:  # only the agent makes calls, whatever role is written
        role = "assistant"
        content = None if content in ("", REDACTED) else content
    return Said(role, content, tuple(calls), name=text_of(item.get("name")), finish=text_of(item.get("finish_reason")))


def _openai_call(raw: Any) -> ToolCall:
    """Read a call of OpenAI, of OpenInference (in `tool_call`), or of LangChain (`args`)."""
    if not isinstance(raw, dict):
        return ToolCall(metadata={"item": raw})
    raw = raw["tool_call"] if isinstance(raw.get("tool_call"), dict) else raw
    function = raw.get("function")
    body = function if isinstance(function, dict) else raw
    name = body.get("name") or raw.get("name") or raw.get("toolName")
    arguments = next((body[key] for key in ("arguments", "args", "input") if key in body), UNSET)
    return _call(name, arguments, raw.get("id") or raw.get("toolCallId"))


def _from_any(item: _Object, role: str) -> list[Said]:
    """Read a message of any other known shape with the reader of replies."""
    response = detect_conversation([dict(item)], _formats_of(item)).response
    messages = response.output_messages
    if not messages:
        return [Said(role, [{"type": "unknown", "item": scrub(dict(item))}])]
    return [said for message in messages for said in _from_message(message, role)]


def _formats_of(item: _Object) -> tuple[str, ...]:
    """Return the formats of replies that an item most likely has; all others are tried after them."""
    if "lc" in item or item.get("type") in _LANGCHAIN_TYPES:
        return ("langchain",)
    if item.get("kind") in ("request", "response"):
        return ("pydantic_ai",)
    content = item.get("content")
    if isinstance(item.get("role"), str) and isinstance(content, list) and any(map(_is_block, content)):
        return ("messages",)
    return ()


def _is_block(value: Any) -> bool:
    """Return whether a value is a block of Anthropic."""
    return isinstance(value, dict) and value.get("type") in _ANTHROPIC_BLOCKS


def _from_message(message: Message, role: str) -> list[Said]:
    """Return a message that the reader of replies read; results beside their calls become results of their own."""
    if message.role == "tool":
        told = message.metadata or {}
        output = told.get("output", told.get("content")) if message.content is None else message.content
        status = told.get("status")
        result = ToolCall(
            tool=message.name or "",
            output=clean_value(output),
            id=message.tool_call_id,
            status=_STATUSES.get(status) if isinstance(status, str) else None,
            error=told.get("error"),
        )
        return [Said("tool", results=(result,), metadata=message.metadata)]
    spoken = "assistant" if message.tool_calls else _role(message.role, role)
    return [Said(spoken, message.content, message.tool_calls, name=message.name, metadata=message.metadata)]


__all__ = [
    "DEPTH_MARKER",
    "REDACTED",
    "MessageReader",
    "Said",
    "clean_value",
    "join_items",
    "translate",
    "written_role",
]
