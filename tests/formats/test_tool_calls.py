"""A tool call is read alike in all of its shapes."""

from typing import Any

import pytest

from agentv.formats.reader import decode_response
from agentv.model.conversation import Message, ToolCall


def call_of(raw: Any) -> ToolCall:
    """Return the only call of a reply."""
    messages = decode_response([{"role": "assistant", "tool_calls": [raw]}]).output_messages
    assert messages is not None
    return messages[0].tool_calls[0]


def message_of(raw: Any) -> Message:
    messages = decode_response([raw]).output_messages
    assert messages is not None
    return messages[0]


OPENAI = {"id": "c", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}
LANGCHAIN = {"name": "search", "args": {"q": 1}, "id": "c", "type": "tool_call"}
COMPACT = {"tool": "search", "input": {"q": 1}, "id": "c"}


@pytest.mark.parametrize("raw", [OPENAI, LANGCHAIN, COMPACT])
def test_every_shape_gives_the_same_call(raw: dict[str, Any]) -> None:
    assert call_of(raw) == ToolCall(tool="search", input={"q": 1}, id="c")


def test_shapes_are_mixed_freely() -> None:
    response = decode_response([{"role": "assistant", "tool_calls": [COMPACT, OPENAI, LANGCHAIN]}])
    assert response.output_messages is not None
    assert set(map(repr, response.output_messages[0].tool_calls)) == {repr(call_of(COMPACT))}
    assert not response.warnings


def test_a_function_call_of_old() -> None:
    message = message_of({"role": "assistant", "function_call": {"name": "search", "arguments": '{"q": 1}'}})
    assert message == Message(role="assistant", tool_calls=(ToolCall(tool="search", input={"q": 1}),))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"function": {"name": "a"}}, ToolCall(tool="a")),
        ({"function": {"name": "a", "arguments": {"x": 1}}}, ToolCall(tool="a", input={"x": 1})),
        ({"function": {"name": "a", "arguments": "5"}}, ToolCall(tool="a", input=5)),
        ({"function": {"name": "a", "arguments": None}}, ToolCall(tool="a", input=None)),
        ({"name": "a"}, ToolCall(tool="a")),
        ({"name": "a", "arguments": '{"x": 1}'}, ToolCall(tool="a", input={"x": 1})),
        ({"tool": "a", "name": "b", "args": {}}, ToolCall(tool="a", metadata={"name": "b", "args": {}})),
        ({"tool": "a", "function": {"name": "b"}}, ToolCall(tool="a", metadata={"function": {"name": "b"}})),
        (
            {"function": {"name": "a", "arguments": "1", "strict": True}, "type": "custom", "index": 0},
            ToolCall(tool="a", input=1, metadata={"type": "custom", "index": 0, "function": {"strict": True}}),
        ),
        (
            {"function": {"name": "a", "arguments": "1"}, "input": 2},
            ToolCall(tool="a", input=2, metadata={"function": {"arguments": "1"}}),
        ),
    ],
)
def test_nothing_of_a_call_is_lost(raw: dict[str, Any], expected: ToolCall) -> None:
    response = decode_response([{"role": "assistant", "tool_calls": [raw]}])
    assert call_of(raw) == expected
    assert not response.warnings


@pytest.mark.parametrize("arguments", ["{", "", "{city: 'Paris'}", '{"x": NaN}', '"\\ud800"', "[" * 5000])
def test_arguments_that_do_not_parse_are_kept_and_marked(arguments: str) -> None:
    raw = {"id": "c", "type": "function", "function": {"name": "a", "arguments": arguments}}
    response = decode_response([{"role": "assistant", "tool_calls": [raw, COMPACT]}])
    assert response.output_messages is not None
    call, other = response.output_messages[0].tool_calls
    assert (call.tool, call.input, call.id) == ("a", arguments, "c")
    assert call.metadata is not None
    assert call.metadata.keys() == {"arguments_error"}
    assert other == call_of(COMPACT)
    assert response.warnings == (
        f"output_messages[0].tool_calls[0].function.arguments: {call.metadata['arguments_error']}",
    )
