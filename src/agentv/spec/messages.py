"""Messages of a case: `file://` texts, `{{ variable }}` values, and strict checks of their keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import FormatError, Problem, SpecError
from agentv.files import read_in_root
from agentv.formats.reader import decode_response
from agentv.matching.matchers import check_expected
from agentv.model.conversation import Message, ToolCall
from agentv.spec.validation import (
    TOO_DEEP,
    choice_message,
    is_too_deep,
    not_json_problem,
    short_repr,
    unknown_key_message,
)
from agentv.templating import MISSING, Template, lookup

FILE_PREFIX = "file://"
_VARIABLE_NAME = re.compile(r"[ \t]*[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*[ \t]*")


class VariableFiller:
    """Fills the variables and files of one case into its messages."""

    def __init__(self, root: str, folder: str, values: Mapping[str, Any], files: frozenset[str] | None = None) -> None:
        self._root = root
        self._folder = folder
        self._values = values
        self._files = files
        """The only paths to fill, if the other texts come from columns of a dataset."""
        self.problems: list[Problem] = []

    def fill(self, message: Message, path: str) -> Message:
        """Return the message with `file://` texts read and variables filled."""
        content = message.content
        if isinstance(content, str):
            filled: Any = self._text(content, path)
        elif isinstance(content, list):
            filled = [
                {**block, "text": self._text(block["text"], f"{path}[{index}].text")}
                if isinstance(block.get("text"), str)
                else block
                for index, block in enumerate(content)
            ]
        else:
            return message
        return message if filled == content else replace(message, content=filled)

    def _text(self, text: str, path: str) -> str:
        if self._files is not None and path not in self._files:
            return text
        if text.startswith(FILE_PREFIX):
            text = self._file(text.removeprefix(FILE_PREFIX).strip(), path)
        # Without variables, braces are plain text.
        if not self._values or "{{" not in text:
            return text
        return _TEMPLATE.compile_text(text, path)(self)

    def _file(self, name: str, path: str) -> str:
        try:
            return read_in_root(self._root, name, self._folder).decode("utf-8-sig")
        except UnicodeDecodeError:
            self.problems.append(Problem(path, f"{name!r} is not UTF-8 text"))
        except FormatError as error:
            self.problems.append(Problem(path, str(error)))
        return ""

    def value(self, name: str, path: str) -> Any:
        """Return the value of a variable; one that does not exist is a problem."""
        value = lookup(self._values, name)
        if value is MISSING:
            choices = choice_message(name, list(self._values))
            self.problems.append(Problem(path, f"{{{{ {name} }}}} names no value of `vars`: {choices}"))
            return ""
        return value


_TEMPLATE = Template(VariableFiller.value, is_name=lambda name: bool(_VARIABLE_NAME.fullmatch(name)))


MESSAGE_KEYS = [*Message.__struct_fields__, "toolCalls", "toolCallId", "function_call"]
CALL_KEYS = [*ToolCall.__struct_fields__, "args", "durationMs"]
OPENAI_KEYS = ["id", "type", "function"]
LANGCHAIN_KEYS = ["name", "args", "id", "type"]
FUNCTION_KEYS = ["name", "arguments"]
CALL_FIELDS = ("tool_calls", "toolCalls", "function_call")
"""Fields of a message that may contain tool calls."""


def check_messages(data: Any, path: str, role: str = "user") -> tuple[Message, ...]:
    """Return the messages of a text, a message or a list of messages, or raise `SpecError`."""
    if isinstance(data, str):
        return (Message(role=role, content=data),)
    if isinstance(data, Mapping):
        data = [data if "role" in data else {"role": role, **data}]
    messages, problems = _decode_messages(data, path)
    if problems:
        raise SpecError(problems)
    return messages


def check_expected_messages(data: Sequence[Any] | None, path: str = "expected_messages") -> tuple[Message, ...] | None:
    """Return the expected messages, or raise `SpecError`; stricter than for the reply of an agent."""
    if data is None:
        return None
    if isinstance(data, (str, bytes)) or not isinstance(data, Sequence):
        raise SpecError([Problem(path, "expected a list of messages")])
    messages, problems = _decode_messages(data, path)
    for index, message in enumerate(() if problems else messages):
        for number, call in enumerate(message.tool_calls):
            call_path = f"{path}[{index}].tool_calls[{number}]"
            if not call.tool:
                problems.append(Problem(f"{call_path}.tool", "required: the name of the tool"))
            for part, value in (("input", call.input), ("output", call.output)):
                if value is not UNSET:
                    problems += check_expected(value, f"{call_path}.{part}")
    if problems:
        raise SpecError(problems)
    return messages


def _decode_messages(data: Sequence[Any], path: str) -> tuple[tuple[Message, ...], list[Problem]]:
    if all(isinstance(message, Message) for message in data):
        return tuple(data), []
    problems: list[Problem] = []
    if not any(isinstance(message, Message) for message in data):
        data = _copy_as_json(data, path)
    items = [
        item if isinstance(item, Message) else _with_canonical_keys(item, f"{path}[{index}]", problems)
        for index, item in enumerate(data)
    ]
    try:
        response = decode_response(items)
    except FormatError as error:
        raise SpecError([Problem(path, str(error))]) from error
    problems += [Problem("", warning.replace("output_messages", path, 1)) for warning in response.warnings]
    return response.output_messages or (), problems


def _copy_as_json(data: Sequence[Any], path: str) -> list[Any]:
    """Copy messages as plain JSON data, since the objects may change later."""
    try:
        text = msgspec.json.encode(list(data))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise SpecError([not_json_problem(error, path)]) from error
    if is_too_deep(text):
        raise SpecError([Problem(path, TOO_DEEP)])
    copy: list[Any] = msgspec.json.decode(text)
    return copy


def _with_canonical_keys(message: Any, path: str, problems: list[Problem]) -> Any:
    """Return the message with `args` renamed to `input`; an unknown key is a problem, since it would check nothing."""
    if not isinstance(message, Mapping):
        return message
    problems += [
        Problem(f"{path}.{key}", unknown_key_message(key, Message.__struct_fields__), "key")
        for key in message
        if key not in MESSAGE_KEYS
    ]
    fields = [key for key in CALL_FIELDS if message.get(key)]
    problems += [
        Problem(f"{path}.{key}", f"{key!r} is another word for {fields[0]!r}; give one of them", "key")
        for key in fields[1:]
    ]
    _check_function(message.get("function_call"), f"{path}.function_call", problems)
    calls = message.get("tool_calls", message.get("toolCalls"))
    if not isinstance(calls, (list, tuple)) or not calls:
        return message
    if message.get("role") != "assistant":
        problems.append(
            Problem(f"{path}.role", f"tool calls belong to 'assistant'; got {short_repr(message.get('role'))}")
        )
    renamed = [_with_canonical_call(call, f"{path}.tool_calls[{index}]", problems) for index, call in enumerate(calls)]
    return {**{key: value for key, value in message.items() if key != "toolCalls"}, "tool_calls": renamed}


def _with_canonical_call(call: Any, path: str, problems: list[Problem]) -> Any:
    if not isinstance(call, Mapping):
        return call
    keys = OPENAI_KEYS if "function" in call else LANGCHAIN_KEYS if "tool" not in call and "name" in call else CALL_KEYS
    problems += [Problem(f"{path}.{key}", unknown_key_message(key, keys), "key") for key in call if key not in keys]
    _check_function(call.get("function"), f"{path}.function", problems)
    if "tool" not in call or "args" not in call:
        return call
    if "input" in call:
        problems.append(Problem(f"{path}.args", "`args` is another word for `input`; give one of them"))
    return {**{key: value for key, value in call.items() if key != "args"}, "input": call["args"]}


def _check_function(function: Any, path: str, problems: list[Problem]) -> None:
    if isinstance(function, Mapping):
        problems += [
            Problem(f"{path}.{key}", unknown_key_message(key, FUNCTION_KEYS), "key")
            for key in function
            if key not in FUNCTION_KEYS
        ]


TOOL_NAME = re.compile(r"[^\s,;!?]+")


def check_expected_field(entry: Any, path: str = "") -> tuple[Message, ...] | None:
    """Return the `expected_messages` or `expected` of a case or of a turn, or raise `SpecError`."""
    name, short = "expected_messages", "expected"
    below = f"{path}." if path else ""
    long_form, short_form = getattr(entry, name), getattr(entry, short)
    if long_form is not UNSET and short_form is not UNSET:
        problem = f"{short!r} is another word for {name!r}; give one of them"
        raise SpecError([Problem(f"{below}{short}", problem, "key")])
    place = f"{below}{short if long_form is UNSET else name}"
    data = short_form if long_form is UNSET else long_form
    if data is UNSET:
        return None
    messages = check_messages(data, place, "assistant") if isinstance(data, (str, dict)) else ()
    return check_expected_messages(messages or _calls_alone(data, place), place)


def _calls_alone(data: Any, path: str) -> Any:
    """Return a list of calls without a message (names of tools, or mappings with `tool`) as one message with them."""
    if not isinstance(data, list) or not data or not all(map(_is_call, data)):
        return data
    for index, name in enumerate(data):
        if isinstance(name, str) and not TOOL_NAME.fullmatch(name):
            message = f"{short_repr(name)} is no name of a tool; for an expected answer write one text, not a list"
            raise SpecError([Problem(f"{path}[{index}]", message)])
    problems: list[Problem] = []
    for index, call in enumerate(data):
        if not isinstance(call, str):
            _with_canonical_call(call, f"{path}[{index}]", problems)
    if problems:
        raise SpecError(problems)
    return [{"role": "assistant", "tool_calls": [{"tool": call} if isinstance(call, str) else call for call in data]}]


def _is_call(item: Any) -> bool:
    return isinstance(item, str) or (isinstance(item, Mapping) and "tool" in item and "role" not in item)
