"""Hand-written replies: an answer, and beside it its calls, as a list or as a log."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.builder import MessageListBuilder, other_fields
from agentv.formats.detect import TEXT_KEYS, are_messages, is_event
from agentv.formats.fields import NEVER_SEARCHED, OBJECT, is_searched, to_snake_case
from agentv.formats.langchain import unwrap_langchain
from agentv.formats.log_entries import LogEntry, add_entry, is_call_alone, read_call, read_entry, read_results
from agentv.formats.messages import is_langchain
from agentv.formats.response import add_fields, decode_fields, join_responses
from agentv.formats.tool_calls import parse_arguments
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader
from agentv.registry import reply_formats

_Object = Mapping[str, Any]
_LISTS = frozenset((
    *("tool_calls", "tools_used", "used_tools", "tools_called", "intermediate_steps", "function_calls", "tool_uses"),
    *("tool_invocations", "tool_executions"),
))  # fmt: skip
"""Keys of lists that hold only calls; an empty list means that none was made."""
_NAMES_ONLY = frozenset(("tools_used", "used_tools", "tools_called"))
"""Keys of lists in which a text is the name of a tool."""
_RESULTS = frozenset(("tool_results", "tool_outputs", "tool_responses", "observations", "function_responses"))
"""Keys of results that are listed separately from their calls."""
_SINGLE = frozenset(("tool_call", "function_call", "tool_use", "action", "call", *_LISTS))
"""Keys of a single call without a list."""
_FOREIGN_KEYS = ("role", "__interrupt__", "__error__")
"""Keys of messages and states, which have readers of their own."""
_NO_LOGS = frozenset(("metadata", "input", "inputs", "messages", "output_messages", "sources", "documents"))
_PLANS = ("plan", "next_", "suggested_", "proposed_", "available_", "allowed_", "expected_", "example")
"""Prefixes of keys of calls that were not made."""
_NAME = re.compile(r"[A-Za-z_][\w.:/-]{0,127}")
_ANSWERS = (
    *TEXT_KEYS,
    *("final_answer", "final_output", "final_response", "output_text", "completion", "generated_text", "result"),
)
_QUESTIONS = ("input", "question", "query", "prompt")


def _parse_text(value: Any) -> Any:
    """Parse a JSON text; return any other value unchanged."""
    return parse_arguments(value)[0] if isinstance(value, str) and value[:1] in ("[", "{") else value


def _listed(key: str, value: Any) -> Sequence[Any] | None:
    """Return the value of a key as a list of entries; `None` if it cannot be one."""
    value = _parse_text(value)
    if isinstance(value, OBJECT) and to_snake_case(key) in _SINGLE:
        return [value]
    return value if isinstance(value, (list, tuple)) else None


def _is_calls(key: Any, value: Any) -> bool:
    """Return whether the key names a list of calls and all of its elements can be read."""
    if not isinstance(key, str) or to_snake_case(key) not in _LISTS:
        return False
    items = _listed(key, value)
    return items is not None and all(_read_listed(item, key) is not None for item in items)


def _read_listed(item: Any, key: str) -> LogEntry | None:
    if isinstance(item, str):
        is_name = to_snake_case(key) in _NAMES_ONLY and _NAME.fullmatch(item)
        return LogEntry("call", {"tool": item}) if is_name else None
    return read_call(item)


def _is_log(key: Any, value: Any) -> bool:
    """Return whether a list has at least one entry that is a call."""
    if not isinstance(key, str) or to_snake_case(key) in _NO_LOGS or to_snake_case(key).startswith(_PLANS):
        return False
    items = _listed(key, value)
    if not items or are_messages(items) or _is_of_library(items):
        return False
    if not is_searched(key):  # a key that usually holds definitions is a log if every call has an outcome
        return to_snake_case(key) in NEVER_SEARCHED and all(_has_outcome(item) for item in items)
    read = [read_entry(item) for item in items]
    if to_snake_case(key) in _LISTS and any(entries is None for entries in read):
        return False
    return any(entry.kind == "call" for entries in read for entry in entries or ())


def _is_of_library(items: Sequence[Any]) -> bool:
    """Return whether items are messages or events of a library, which has a reader of its own."""
    if all(is_langchain(unwrap_langchain(item)) for item in items):
        return True
    return any(format_.detect(items) for format_ in reply_formats() if format_.events and format_.name == "langgraph")


def _has_outcome(item: Any) -> bool:
    entries = read_entry(item)
    return bool(entries) and all(entry.kind == "call" and "output" in entry.fields for entry in entries or ())


def _call_keys(value: _Object) -> list[str]:
    return [key for key in value if _is_calls(key, value[key])]


def _log_key(value: _Object) -> str | None:
    return next((key for key in value if _is_log(key, value[key])), None)


def _answer_key(value: _Object) -> str | None:
    """Return the key of the answer; of several texts, the one with the most common key."""
    by_name = {to_snake_case(key): key for key in reversed(list(value)) if isinstance(key, str)}
    return next((by_name[name] for name in _ANSWERS if name in by_name and isinstance(value[by_name[name]], str)), None)


def _detect(value: Any) -> bool:
    if not isinstance(value, OBJECT) or any(key in value for key in _FOREIGN_KEYS) or is_langchain(value):
        return False
    keys = _call_keys(value)
    if value.get("messages") is not None:
        return are_messages(value["messages"]) and any(value[key] for key in keys)
    log = _log_key(value)
    if any(to_snake_case(str(key)) in _LISTS and key not in (*keys, log) and value[key] for key in value):
        return False  # some of the calls could not be read
    if "type" in value and not keys:
        return False
    has_answer = _answer_key(value) is not None
    return (bool(keys) and (has_answer or any(value[key] for key in keys))) or log is not None


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the calls before the answer, in the order of their list; other fields are read as in any reply."""
    keys = _call_keys(value)
    builder, text = MessageListBuilder(), None
    for key in keys:
        for item in _listed(key, value[key]) or ():
            entry = _read_listed(item, key)
            if entry is not None:
                add_entry(builder, entry)
    log = None if any(value[key] for key in keys) else _log_key(value)
    if log is not None:
        keys = [*keys, log]
        text = _add_log(builder, _listed(log, value[log]) or ())
    keys += _add_results(builder, other_fields(value, *keys))
    if value.get("messages") is not None:
        return _read_with_messages(value, keys, builder, reader)
    answer = _answer_key(value)
    text = value[answer] if answer else text
    if text is not None and not _ends_with_text(builder, text):
        builder.add_message("assistant", text)
    response = reader.read_messages(builder.build(), declared=True)
    rest = other_fields(value, *([answer] if answer else ()), *_QUESTIONS, *keys)
    joined = join_responses(response, decode_fields(rest))
    return joined if text is None else replace(joined, text=text)


def _ends_with_text(builder: MessageListBuilder, text: str) -> bool:
    """Return whether the last message already has this text."""
    last = builder.messages[-1] if builder.messages else {}
    return last.get("content") == text and not last.get("tool_calls") and last.get("role") == "assistant"


def _add_log(builder: MessageListBuilder, items: Iterable[Any]) -> str | None:
    """Add the entries of a log, and return the answer if it has one; unknown entries are reported."""
    text = None
    for item in items:
        entries = read_entry(item)
        if entries is None:
            builder.add_unknown(item)
        for entry in entries or ():
            final = add_entry(builder, entry)
            text = text if final is None else final
    return text


def _add_results(builder: MessageListBuilder, value: _Object) -> list[str]:
    """Add results that are listed separately from their calls, and return their keys."""
    read = []
    for key in value:
        results = (
            read_results(_parse_text(value[key])) if isinstance(key, str) and to_snake_case(key) in _RESULTS else None
        )
        if results and builder.messages:
            read.append(key)
            for result in results:
                add_entry(builder, result)
    return read


def _read_with_messages(
    value: _Object, keys: list[str], builder: MessageListBuilder, reader: ReplyReader
) -> ProviderResponse:
    """Add the calls that the messages lack before the first message of the assistant."""
    response = reader.read_messages(value["messages"])
    rest = decode_fields(other_fields(value, "messages", *keys))
    joined = join_responses(response, rest)
    messages = response.output_messages or ()
    if any(message.tool_calls for message in messages) or not builder.messages:
        # Duplicates of calls in the messages are recognised later, and all others are reported.
        kept = {key: value[key] for key in keys}
        return replace(joined, metadata={**(joined.metadata or {}), **kept})
    calls = reader.read_messages(builder.build(), declared=True).output_messages or ()
    at = next((at for at, message in enumerate(messages) if message.role == "assistant"), len(messages))
    return replace(joined, output_messages=(*messages[:at], *calls, *messages[at:]))


def _detect_log(value: Any) -> bool:
    """Return whether a value is a log without an answer: a list of entries, or one unambiguous call."""
    if isinstance(value, OBJECT):
        return is_call_alone(value) and not is_langchain(value)
    if not isinstance(value, (list, tuple)) or not value or are_messages(value) or all(map(is_event, value)):
        return False
    if any(is_langchain(unwrap_langchain(item)) for item in value):
        return False
    read = [read_entry(item) for item in value if isinstance(item, OBJECT)]
    if len(read) < len(value) or any(entries is None for entries in read):
        return False
    return any(map(is_call_alone, value))


def _read_log(value: Any, reader: ReplyReader) -> ProviderResponse:
    builder = MessageListBuilder()
    text = _add_log(builder, [value] if isinstance(value, OBJECT) else value)
    if text is not None:
        builder.add_message("assistant", text)
    return add_fields(reader.read_messages(builder.build(), declared=True), {}, text=text)


FORMAT = ReplyFormat(name="calls_beside", detect=_detect, read=_read)
LOG = ReplyFormat(name="log", detect=_detect_log, read=_read_log, events=True)
