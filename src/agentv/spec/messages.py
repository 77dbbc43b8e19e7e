"""`expected_messages` as people write them, in either shape of tool call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from agentv.errors import FormatError, Problem, SpecError
from agentv.formats.reader import decode_response
from agentv.matching.values import check_expected
from agentv.model.message import Message, ToolCall
from agentv.spec.check import TOO_DEEP, is_too_deep, not_json, shown, unknown_key

MESSAGE_KEYS = [*Message.__struct_fields__, "toolCalls", "toolCallId", "function_call"]
CALL_KEYS = [*ToolCall.__struct_fields__, "args", "durationMs"]
OPENAI_KEYS = ["id", "type", "function"]
LANGCHAIN_KEYS = ["name", "args", "id", "type"]
FUNCTION_KEYS = ["name", "arguments"]
CALLS = ("tool_calls", "toolCalls", "function_call")
"""Where the calls of a message may stand."""


def check_messages(data: Any, path: str, role: str = "user") -> tuple[Message, ...]:
    """The messages of a text, of one message or of a list of them, or a `SpecError`."""
    if isinstance(data, str):
        return (Message(role=role, content=data),)
    if isinstance(data, Mapping):
        data = [data if "role" in data else {"role": role, **data}]
    messages, problems = _read(data, path)
    if problems:
        raise SpecError(problems)
    return messages


def check_expected_messages(data: Sequence[Any] | None, path: str = "expected_messages") -> tuple[Message, ...] | None:
    """The messages, or a `SpecError`: what is forgiven in an agent's reply is a mistake in an expectation."""
    if data is None:
        return None
    if isinstance(data, (str, bytes)) or not isinstance(data, Sequence):
        raise SpecError([Problem(path, "expected a list of messages")])
    messages, problems = _read(data, path)
    for index, message in enumerate(messages):
        for number, call in enumerate(message.tool_calls):
            place = f"{path}[{index}].tool_calls[{number}]"
            if not call.tool:
                problems.append(Problem(f"{place}.tool", "required: the name of the tool"))
            for part, value in (("input", call.input), ("output", call.output)):
                if value is not UNSET:
                    problems += check_expected(value, f"{place}.{part}")
    if problems:
        raise SpecError(problems)
    return messages


def _read(data: Sequence[Any], path: str) -> tuple[tuple[Message, ...], list[Problem]]:
    if all(isinstance(message, Message) for message in data):
        return tuple(data), []
    problems: list[Problem] = []
    if not any(isinstance(message, Message) for message in data):
        data = _own_copy(data, path)
    items = [
        item if isinstance(item, Message) else _renamed(item, f"{path}[{index}]", problems)
        for index, item in enumerate(data)
    ]
    try:
        response = decode_response(items)
    except FormatError as error:
        raise SpecError([Problem(path, str(error))]) from error
    problems += [Problem("", warning.replace("output_messages", path, 1)) for warning in response.warnings]
    return response.output_messages or (), problems


def _own_copy(data: Sequence[Any], path: str) -> list[Any]:
    """The same as plain JSON, which shares nothing with objects that may change later."""
    try:
        text = msgspec.json.encode(list(data))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise SpecError([not_json(error, path)]) from error
    if is_too_deep(text):
        raise SpecError([Problem(path, TOO_DEEP)])
    copy: list[Any] = msgspec.json.decode(text)
    return copy


def _renamed(message: Any, path: str, problems: list[Problem]) -> Any:
    """The message with `args` under its proper name; a key that nobody reads is a problem, for it checks nothing."""
    if not isinstance(message, Mapping):
        return message
    problems += [
        Problem(f"{path}.{key}", unknown_key(key, Message.__struct_fields__), "key")
        for key in message
        if key not in MESSAGE_KEYS
    ]
    given = [key for key in CALLS if message.get(key)]
    problems += [
        Problem(f"{path}.{key}", f"{key!r} is another word for {given[0]!r}; give one of them", "key")
        for key in given[1:]
    ]
    _check_function(message.get("function_call"), f"{path}.function_call", problems)
    calls = message.get("tool_calls", message.get("toolCalls"))
    if not isinstance(calls, (list, tuple)) or not calls:
        return message
    if message.get("role") != "assistant":
        problems.append(Problem(f"{path}.role", f"tool calls belong to 'assistant'; got {shown(message.get('role'))}"))
    renamed = [_renamed_call(call, f"{path}.tool_calls[{index}]", problems) for index, call in enumerate(calls)]
    return {**{key: value for key, value in message.items() if key != "toolCalls"}, "tool_calls": renamed}


def _renamed_call(call: Any, path: str, problems: list[Problem]) -> Any:
    if not isinstance(call, Mapping):
        return call
    keys = OPENAI_KEYS if "function" in call else LANGCHAIN_KEYS if "tool" not in call and "name" in call else CALL_KEYS
    problems += [Problem(f"{path}.{key}", unknown_key(key, keys), "key") for key in call if key not in keys]
    _check_function(call.get("function"), f"{path}.function", problems)
    if "tool" not in call or "args" not in call:
        return call
    if "input" in call:
        problems.append(Problem(f"{path}.args", "`args` is another word for `input`; give one of them"))
    return {**{key: value for key, value in call.items() if key != "args"}, "input": call["args"]}


def _check_function(function: Any, path: str, problems: list[Problem]) -> None:
    if isinstance(function, Mapping):
        problems += [
            Problem(f"{path}.{key}", unknown_key(key, FUNCTION_KEYS), "key")
            for key in function
            if key not in FUNCTION_KEYS
        ]
