"""Reader of one tool call in any shape, and generator of ids for calls without one."""

from collections.abc import Iterable, Iterator
from copy import copy
from itertools import count
from typing import Any, get_args

from msgspec import UNSET
from msgspec.json import Decoder

from agentv.formats.conversation import RESULT_MESSAGE
from agentv.formats.fields import OBJECT, Fields, Path, Report
from agentv.jsonio import DEPTH_MARKER, MAX_DEPTH, is_deep
from agentv.model.conversation import Message, Status, ToolCall

STATUSES = frozenset(get_args(Status))

_COMPACT = {**{name: name for name in ToolCall.__struct_fields__}, "durationMs": "duration_ms"}
_OPENAI = {**_COMPACT, "function": "function", "type": "type"}
_LANGCHAIN = {**_COMPACT, "name": "name", "args": "args", "arguments": "arguments", "type": "type"}
_FUNCTION = {"name": "name", "arguments": "arguments"}
_CUSTOM = {**_COMPACT, "custom": "custom"}
_FREE = {"name": "name", "input": "input"}
_decode = Decoder().decode


def decode_call(raw: Any, path: Path, report: Report) -> ToolCall:
    """Read one element of `tool_calls`; an invalid element is still a call."""
    if isinstance(raw, ToolCall):
        return copy(raw)  # a copy: its result may follow, and the caller's value must not change
    if not isinstance(raw, OBJECT):
        return _no_call(raw, path, report)
    if raw.get("tool") is None and isinstance(raw.get("function"), str) and raw.get("name") is None:
        raw = {**{key: value for key, value in raw.items() if key != "function"}, "name": raw["function"]}
        raw = {key: value for key, value in raw.items() if key != "type" or value != "function"}
    if raw.get("tool") is None and raw.get("function") is not None:
        fields = Fields(raw, _OPENAI, path, report)
        tool, input_ = _openai(fields)
    elif raw.get("tool") is None and isinstance(raw.get("custom"), OBJECT):
        fields = Fields(raw, _CUSTOM, path, report)
        tool, input_ = _custom(fields)
    elif raw.get("tool") is None and raw.get("name") is not None:
        fields = Fields(raw, _LANGCHAIN, path, report)
        tool, input_ = _langchain(fields)
    else:
        fields = Fields(raw, _COMPACT, path, report)
        tool, input_ = _name(fields, "tool"), fields.value("input", UNSET)
    return ToolCall(
        tool=tool,
        input=input_,
        output=fields.value("output", UNSET),
        id=fields.identifier("id"),
        timestamp=fields.text("timestamp"),
        duration_ms=fields.number("duration_ms"),
        status=_status(fields),
        error=_error(fields),
        metadata=fields.metadata(),
    )


def decode_function_call(raw: Any, path: Path, report: Report) -> ToolCall:
    """Read OpenAI's deprecated `function_call` field of a message."""
    path = (*path, "function_call")
    if not isinstance(raw, OBJECT):
        return _no_call(raw, path, report)
    fields = Fields(raw, _FUNCTION, path, report)
    return ToolCall(tool=_name(fields, "name"), input=_arguments(fields, fields), metadata=fields.metadata())


def parse_arguments(text: str) -> tuple[Any, str | None]:
    """Parse `function.arguments` strictly; return the value, or the original text and the parse error."""
    try:
        value = _decode(text if type(text) is str else str.__str__(text))
    except RecursionError:
        return text, "nested too deeply to be read"
    except ValueError as error:
        return text, str(error)
    # Every level takes two characters, so a short text cannot be deep.
    if len(text) > 2 * MAX_DEPTH and is_deep(value):
        return text, DEPTH_MARKER[1:-1]
    return value, None


def _no_call(raw: Any, path: Path, report: Report) -> ToolCall:
    report.warn_invalid(path, "an object", raw)
    return ToolCall(metadata={"malformed": report.limit(raw, path)})


def _openai(fields: Fields) -> tuple[str, Any]:
    if fields.get("type") not in (None, "function"):
        fields.keep_as_metadata("type")
    function = fields.get("function")
    if not isinstance(function, OBJECT):
        fields.warn_invalid("function", "an object")
        return "", fields.value("input", UNSET)
    inner = Fields(function, _FUNCTION, (*fields.path, "function"), fields.report)
    tool = _name(inner, "name")
    if "input" in fields:
        input_ = fields.value("input")
        if "arguments" in inner:
            inner.keep_as_metadata("arguments")
    else:
        input_ = _arguments(inner, fields)
    unknown = inner.metadata()
    if unknown is not None:
        fields.add_metadata("function", unknown)
    return tool, input_


def _custom(fields: Fields) -> tuple[str, Any]:
    """Read an OpenAI custom tool call, whose input is free text."""
    inner = Fields(fields.get("custom"), _FREE, (*fields.path, "custom"), fields.report)
    tool, input_ = _name(inner, "name"), inner.value("input", UNSET)
    unknown = inner.metadata()
    if unknown is not None:
        fields.add_metadata("custom", unknown)
    return tool, input_


def _langchain(fields: Fields) -> tuple[str, Any]:
    if fields.get("type") not in (None, "tool_call"):
        fields.keep_as_metadata("type")
    names = [name for name in ("input", "args", "arguments") if name in fields]
    for name in names[1:]:
        fields.keep_as_metadata(name)
    tool = _name(fields, "name")
    if names[:1] == ["arguments"]:
        return tool, _arguments(fields, fields)
    return tool, fields.value(names[0]) if names else UNSET


def _name(fields: Fields, field: str) -> str:
    if fields.get(field) is not None:
        return fields.text(field) or ""
    fields.report.warn((*fields.path, field), "expected a string, got nothing")
    return ""


def _arguments(fields: Fields, call: Fields) -> Any:
    """Parse OpenAI's JSON arguments; if they are invalid, keep the text and record the error."""
    value = fields.get("arguments")
    if not isinstance(value, str):
        return fields.value("arguments", UNSET)
    parsed, error = parse_arguments(value)
    if error is not None:
        fields.report.warn((*fields.path, "arguments"), error)
        call.add_metadata("arguments_error", error)
    return parsed


def _error(fields: Fields) -> Any:
    error = fields.value("error")
    if isinstance(error, str):
        return fields.text("error") or None
    return None if error is False else error


def _status(fields: Fields) -> Status | None:
    status = fields.text("status")
    if status is None:
        return None
    if status in STATUSES:
        return status  # type: ignore[return-value]  # one of the literals, as just checked
    fields.warn_invalid("status", "one of ok, error, denied, pending")
    return None


def fresh_call_ids(messages: Iterable[Message]) -> Iterator[str]:
    """Yield `call_0`, `call_1` and so on, without the ids that the conversation already uses."""
    used = set()
    for message in messages:
        used.add(message.tool_call_id)
        for call in message.tool_calls:
            used.add(call.id)
            record = (call.metadata or {}).get(RESULT_MESSAGE)
            if isinstance(record, dict) and isinstance(record.get("tool_call_id"), str):
                used.add(record["tool_call_id"])
    return (name for name in map("call_{}".format, count()) if name not in used)
