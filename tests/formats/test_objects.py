"""Objects of libraries are recognised and converted to plain data without importing the libraries."""

import operator
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
)

from agentv.errors import FormatError
from agentv.formats.objects import library_of, plain
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse, TokensUsage
from tests.support.examples import examples
from tests.support.reading import decode_returned


class Colour(Enum):
    RED = "red"


class Model(pydantic.BaseModel):
    name: str
    inner: "Model | None" = None
    when: date | None = None


@dataclass
class Record:
    name: str
    parts: list[Any] = field(default_factory=list)


class Unwilling:
    def __str__(self) -> str:
        raise RuntimeError


class Stubborn(pydantic.BaseModel):
    @pydantic.model_serializer
    def refuse(self) -> Any:
        message = "no"
        raise ValueError(message)


def calls_of(response: ProviderResponse) -> list[ToolCall]:
    return [call for message in response.output_messages or () for call in message.tool_calls]


# Made plain


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            Model(name="a", inner=Model(name="b"), when=date(2026, 1, 2)),
            {"name": "a", "inner": {"name": "b"}, "when": "2026-01-02"},
        ),
        (
            Record("a", [Record("b"), Model(name="c")]),
            {"name": "a", "parts": [{"name": "b", "parts": []}, {"name": "c"}]},
        ),
        ({"when": datetime(2026, 1, 2, tzinfo=UTC)}, {"when": "2026-01-02T00:00:00Z"}),
        (
            [Colour.RED, Decimal("1.5"), UUID(int=0), b"ab"],
            ["red", "1.5", "00000000-0000-0000-0000-000000000000", "YWI="],
        ),
        ((1, None, True, 2.5, "x"), [1, None, True, 2.5, "x"]),
        ({"x": Unwilling(), "y": int}, {"x": "<Unwilling>", "y": "<class 'int'>"}),
        ({1: "a", (2, 3): "b"}, {"1": "a", "(2, 3)": "b"}),
        (Model(name="lone \udc80"), {"name": "lone \ufffd"}),
        ({"x": float("nan"), "y": {1}}, {"x": None, "y": [1]}),
    ],
)
def test_anything_becomes_what_json_knows(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    dump_json(plain(value))


def test_a_model_that_will_not_be_written_is_its_words() -> None:
    assert isinstance(plain({"x": Stubborn()})["x"], str)


def test_a_circle_ends() -> None:
    circle: list[Any] = [1]
    circle.append(circle)
    dump_json(plain(circle))
    record = Record("a")
    record.parts.append(record)
    dump_json(plain(record))


def test_what_is_plain_is_copied_and_never_written_into() -> None:
    value = {"a": [1, {"b": None}]}
    copied = plain(value)
    assert copied == value
    copied["a"].append(2)
    assert value == {"a": [1, {"b": None}]}


# Told apart


def test_a_class_of_the_user_s_own_counts_as_what_it_is_derived_from() -> None:
    class Mine(AIMessage):
        pass

    assert library_of(Mine(content="x")) == "langchain"
    assert decode_returned(Mine(content="x")).text == "x"


@pytest.mark.parametrize("module", ["agents.items", "agents.result", "agents.weather"])
def test_a_package_of_the_user_s_that_is_called_agents_is_not_a_library(module: str) -> None:
    @dataclass
    class Answer:
        answer: str

    Answer.__module__ = module
    assert library_of(Answer("Paris")) is None
    assert decode_returned(Answer("Paris")).text == "Paris"


def test_reading_a_reply_imports_no_library() -> None:
    program = """
import sys
from tests.support.reading import decode_returned
decode_returned([{"type": "ai", "content": "x"}])
decode_returned([{"kind": "response", "parts": [{"part_kind": "text", "content": "x"}]}])
decode_returned([{"content": {"role": "model", "parts": [{"text": "x"}]}, "author": "a"}])
decode_returned([{"type": "function_call", "call_id": "c", "name": "x", "arguments": "{}"}])
found = {"pydantic", "pydantic_ai", "agents", "langchain_core", "google", "openai", "asyncio"} & set(sys.modules)
sys.exit(str(found) if found else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Of everybody's kind


def test_our_own_messages_and_replies_are_taken_as_they_are() -> None:
    message = Message(role="assistant", content="x", tool_calls=(ToolCall(tool="t"),))
    assert decode_returned(message).output_messages == (message,)
    assert decode_returned([message]).output_messages == (message,)
    assert decode_returned((message,)).text == "x"
    response = ProviderResponse(text="y")
    assert decode_returned(response) is response


def test_nothing_and_nonsense_are_failed_replies() -> None:
    for value in (None, 1, 1.5, object()):
        response = decode_returned(value)
        assert not response.success
        assert response.error is not None
        assert response.error.kind == "protocol"


def test_an_object_without_a_word_is_warned_about() -> None:
    assert "neither `text` nor `output_messages`" in decode_returned({"cost_usd": 1.0}).warnings[0]
    assert "it is an empty object" in decode_returned({}).warnings[0]


def test_messages_up_to_the_prompt_are_not_output() -> None:
    said = [
        {"role": "user", "content": "First?"},
        {"role": "assistant", "content": "One."},
        {"role": "user", "content": "Second?"},
        {"role": "assistant", "content": "Two."},
    ]
    asked = [("user", "First?"), ("assistant", "One."), ("user", "Second?")]
    for returned in (said, {"messages": said}, {"output_messages": said}):
        response = decode_returned(returned, asked)
        assert [message.text for message in response.output_messages or ()] == ["Two."]
        assert response.echo_end is None


def test_an_echo_that_cannot_be_aligned_is_read_in_two_ways() -> None:
    said = [
        {"role": "system", "content": "You are a bot."},
        {"role": "user", "content": "First?"},
        {"role": "assistant", "content": "One."},
        {"role": "user", "content": "Second?"},
        {"role": "assistant", "content": "Two."},
    ]
    for returned in (said, {"messages": said}):
        for asked in ("Second?", "Third?"):
            response = decode_returned(returned, asked)
            assert [message.text for message in response.output_messages or ()] == ["One.", "Second?", "Two."]
            assert response.echo_end == 2
        unknown = decode_returned(returned)
        assert len(unknown.output_messages or ()) == 5
        assert unknown.echo_end == 4
    declared = decode_returned({"output_messages": said}, "Third?")
    assert len(declared.output_messages or ()) == 5
    assert declared.echo_end is None


# LangChain's


STATE: list[Any] = [
    SystemMessage("You are a weather bot"),
    HumanMessage("Weather?"),
    AIMessage(
        content="",
        tool_calls=[
            {"name": "weather", "args": {"city": "Paris"}, "id": "c1"},
            {"name": "now", "args": {}, "id": "c2"},
        ],
        usage_metadata={
            "input_tokens": 40,
            "output_tokens": 18,
            "total_tokens": 58,
            "input_token_details": {"cache_read": 30},
        },
    ),
    ToolMessage(content="18", tool_call_id="c1", name="weather"),
    ToolMessage(content="no clock", tool_call_id="c2", name="now", status="error"),
    AIMessage(
        content=[{"type": "text", "text": "18 "}, {"type": "text", "text": "degrees"}],
        usage_metadata={
            "input_tokens": 70,
            "output_tokens": 5,
            "total_tokens": 75,
            "input_token_details": {"cache_read": 40},
        },
    ),
]


@pytest.mark.parametrize(
    "returned",
    [
        STATE,
        tuple(STATE),
        {"messages": STATE},
        {"messages": STATE, "documents": [Model(name="d")]},
        [message.model_dump() for message in STATE],
        [message_to_dict(message) for message in STATE],
        STATE[2:],
    ],
)
def test_a_state_of_langchain_s_is_what_the_agent_added(returned: Any) -> None:
    response = decode_returned(returned, "Weather?")
    assert [message.role for message in response.output_messages or ()] == ["assistant", "assistant"]
    weather, now = calls_of(response)
    assert (weather.tool, weather.input, weather.output, weather.id) == ("weather", {"city": "Paris"}, "18", "c1")
    assert (now.input, now.output, now.status) == ({}, "no clock", "error")
    assert response.text == "18 degrees"
    assert response.tokens_usage == TokensUsage(
        input_tokens=110, output_tokens=23, total_tokens=133, cache_read_tokens=70
    )
    if isinstance(returned, dict) and "documents" in returned:
        assert response.metadata == {"documents": [{"name": "d"}]}


def test_a_single_message_is_a_reply() -> None:
    response = decode_returned(
        AIMessage(content="Hi", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3})
    )
    assert response.text == "Hi"
    assert response.tokens_usage is not None
    assert response.tokens_usage.total_tokens == 3
    assert decode_returned({"messages": [AIMessage(content="Hi")]}).text == "Hi"


def test_one_message_without_its_usage_makes_the_sum_unknown() -> None:
    known = AIMessage(content="a", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3})
    response = decode_returned([known, AIMessage(content="b")])
    assert response.tokens_usage is None
    assert response.warnings


def test_messages_that_are_nobody_s_are_not_the_assistant_s() -> None:
    returned = [
        AIMessage(content="mine"),
        ChatMessage(role="critic", content="theirs"),
        FunctionMessage(name="f", content="a result"),
        RemoveMessage(id="x"),
    ]
    response = decode_returned(returned)
    assert [message.role for message in response.output_messages or ()] == ["assistant", "critic", "function", "remove"]
    assert response.text == "mine"


def test_null_arguments_are_never_the_text_null() -> None:
    message = {"type": "ai", "content": "", "tool_calls": [{"name": "t", "args": None, "id": "c"}]}
    (call,) = calls_of(decode_returned([message]))
    assert call.input is None


def test_a_prompt_that_was_put_in_other_words_is_no_output_either() -> None:
    response = decode_returned({"messages": [SystemMessage("s"), HumanMessage("Question: x"), AIMessage("y")]}, "x")
    assert [message.role for message in response.output_messages or ()] == ["assistant"]


def test_fields_beside_the_messages_are_the_reply_s() -> None:
    response = decode_returned({"messages": [AIMessage("y")], "cost_usd": 0.5, "thread_id": "t", "text": "z"})
    assert (response.cost_usd, response.thread_id, response.text) == (0.5, "t", "z")


def test_a_chunk_is_a_message() -> None:
    assert decode_returned(AIMessageChunk(content="x")).text == "x"


# Whatever comes


KEYS = st.sampled_from(
    [
        *("role", "type", "kind", "content", "parts", "part_kind", "messages", "output_messages", "raw_item", "author"),
        *("function_call", "function_response", "tool_calls", "args", "name", "id", "call_id", "usage", "output"),
        *("usage_metadata", "arguments", "summary", "response", "tool_name", "data", "kwargs", "text", "error"),
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats()
    | st.sampled_from(
        [
            *(
                "",
                "x",
                "ai",
                "human",
                "tool",
                "request",
                "response",
                "tool-call",
                "tool-return",
                "function_call",
                "model",
            ),
            *(
                "function_call_output",
                "message",
                "reasoning",
                "constructor",
                "web_search_call",
                "user",
                "assistant",
                "\udc80",
            ),
        ]
    )
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4) | st.tuples(inner),
    max_leaves=25,
)
LOOKS_LIKE = st.sampled_from(
    [
        {"kind": "response", "parts": []},
        {"kind": "request", "parts": []},
        {"content": {"parts": []}, "author": "a"},
        {"type": "function_call", "call_id": "c"},
        {"type": "ai"},
        {"type": "tool", "tool_call_id": "c"},
    ]
)


@given(st.one_of(ANYTHING, st.lists(st.builds(operator.or_, LOOKS_LIKE, st.dictionaries(KEYS, ANYTHING, max_size=4)))))
@settings(deadline=None, max_examples=examples(400), suppress_health_check=[HealthCheck.too_slow])
def test_whatever_an_agent_returns_is_read_or_refused(value: Any) -> None:
    try:
        response = decode_returned(value, "x")
    except FormatError:
        return
    dump_json(response)
