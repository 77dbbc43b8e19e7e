"""`expected_messages` as people write them, in either shape of tool call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from agentv.errors import FormatError, Problem, SpecError
from agentv.formats.response import decode_response
from agentv.matching.values import check_expected
from agentv.model.message import Message


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
    try:
        response = decode_response(list(data))
    except FormatError as error:
        raise SpecError([Problem(path, str(error))]) from error
    problems = [Problem("", warning.replace("output_messages", path, 1)) for warning in response.warnings]
    return response.output_messages or (), problems
