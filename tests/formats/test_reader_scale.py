"""Replies of any depth and size are read."""

import json
from copy import deepcopy
from typing import Any

import pytest

from agentv.formats import canonical
from agentv.formats.reader import decode_response
from agentv.jsonio import DEPTH_MARKER, MAX_DEPTH


def nested(levels: int) -> Any:
    value: Any = "bottom"
    for level in range(levels):
        value = {"down": value} if level % 2 else [value]
    return value


def depth(value: Any) -> int:
    levels = 0
    while isinstance(value, (dict, list)):
        levels += 1
        value = value["down"] if isinstance(value, dict) else value[0]
    return levels


COMPACT = {"tool": "search", "input": {"q": 1}}
OPENAI = {"type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}
LANGCHAIN = {"name": "search", "args": {"q": 1}}


@pytest.mark.parametrize("levels", [1, 7, MAX_DEPTH, MAX_DEPTH + 1, 800])
@pytest.mark.parametrize("field", ["input", "output", "error", "metadata"])
def test_values_nested_too_deeply_are_cut_and_reported(field: str, levels: int) -> None:
    value = nested(levels) if field != "metadata" else {"down": nested(levels - 1)}
    reply = [{"role": "assistant", "tool_calls": [{"tool": "a", field: value}]}]
    before = deepcopy(reply) if levels < 200 else None
    response = decode_response(reply)
    assert response.output_messages is not None
    read = getattr(response.output_messages[0].tool_calls[0], field)
    if levels <= MAX_DEPTH:
        assert read == value
        assert not response.warnings
    else:
        assert depth(read) == MAX_DEPTH
        assert DEPTH_MARKER in json.dumps(read)
        assert response.warnings == (
            f"output_messages[0].tool_calls[0].{field}: cut off, nested deeper than 128 levels",
        )
    assert before is None or reply == before


@pytest.mark.parametrize(
    ("reply", "path"),
    [
        ({"raw_response": nested(200)}, "raw_response"),
        ({"unknown": nested(200)}, "metadata"),
        ({"output_messages": [nested(201)]}, "output_messages[0]"),
        ({"output_messages": [{"role": "user", "content": [{"x": nested(200)}]}]}, "output_messages[0].content"),
        ({"trace": [{"type": "tool_call", "input": nested(200)}]}, "trace[0].input"),
        ({"trace": [nested(201)]}, "trace[0]"),
    ],
)
def test_nothing_deep_gets_in_anywhere(reply: dict[str, Any], path: str) -> None:
    response = decode_response(reply)
    assert f"{path}: cut off, nested deeper than 128 levels" in response.warnings
    assert DEPTH_MARKER in repr(response)


def test_arguments_nested_too_deeply_are_kept_as_text() -> None:
    arguments = "[" * 200 + "]" * 200
    response = decode_response(
        [{"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": arguments}}]}]
    )
    assert response.output_messages is not None
    assert response.output_messages[0].tool_calls[0].input == arguments
    assert "nested deeper than 128 levels" in response.warnings[0]


def test_a_value_that_holds_itself_is_cut_too() -> None:
    loop: dict[str, Any] = {}
    loop["down"] = [loop]
    assert depth(decode_response({"raw_response": loop}).raw_response) == MAX_DEPTH
    loop["again"] = [loop, loop]
    assert decode_response({"raw_response": loop}).warnings == ("raw_response: cut off, nested deeper than 128 levels",)


@pytest.mark.parametrize("shape", [COMPACT, OPENAI, LANGCHAIN])
def test_too_many_calls_are_cut_and_reported(shape: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("messages", "canonical"):
        monkeypatch.setattr(f"agentv.formats.{module}.MAX_CALLS", 3)
    turns = [
        {"role": "assistant", "tool_calls": [{**shape, "id": f"{turn}{n}"} for n in range(2)]} for turn in range(3)
    ]
    response = decode_response(turns)
    assert response.output_messages is not None
    assert [len(message.tool_calls) for message in response.output_messages] == [2, 1, 0]
    assert response.warnings[0] == "output_messages[1].tool_calls: more than 3 calls, the rest are left out"


def test_too_many_messages_are_cut_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("messages", "canonical"):
        monkeypatch.setattr(f"agentv.formats.{module}.MAX_MESSAGES", 2)
    response = decode_response([{"role": "user", "content": str(n)} for n in range(3)])
    assert response.output_messages is not None
    assert len(response.output_messages) == 2
    assert response.warnings == ("output_messages: more than 2 messages, the rest are left out",)


def test_too_many_events_are_cut_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("trace", "response"):
        monkeypatch.setattr(f"agentv.formats.{module}.MAX_EVENTS", 2)
    response = decode_response({"trace": [{"type": "message"}] * 3})
    assert response.trace is not None
    assert len(response.trace) == 2
    assert response.warnings == ("trace: more than 2 events, the rest are left out",)


def test_the_limits_are_generous() -> None:
    assert canonical.MAX_CALLS >= 1_000_000
    assert canonical.MAX_MESSAGES >= 1_000_000
