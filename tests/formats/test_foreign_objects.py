"""Objects of the caller that raise on access lead to a verdict, and are not modified."""

import asyncio
import enum
import json
import types
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import agentv
from agentv.formats.adk import decode_adk
from agentv.formats.openai.agents import decode_openai_agents
from agentv.formats.response import follow_trace_ref
from agentv.jsonio import dump_json
from tests.support.reading import decode_returned

CHECK = [{"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "find", "input": {"q": 1}}]}]


class Broken(Exception):  # noqa: N818 - no error of ours
    """An unexpected exception."""


def fail(*_: Any, **__: Any) -> Any:
    raise Broken


class Untruthful:
    """An array like those of numeric libraries: comparison returns an array, which has no truth value."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        return self

    def __ne__(self, other: object) -> Any:
        return self

    __bool__ = fail


class Locked(Mapping[str, Any]):
    """A mapping whose items cannot be read."""

    def __getitem__(self, key: str) -> Any:
        raise Broken

    def __iter__(self) -> Iterator[str]:
        raise Broken

    def __len__(self) -> int:
        return 1


class Endless(Mapping[str, Any]):
    """A mapping that contains itself."""

    def __getitem__(self, key: str) -> Any:
        return self

    def __iter__(self) -> Iterator[str]:
        return iter(("a",))

    def __len__(self) -> int:
        return 1


ODD: dict[str, Any] = {
    "untruthful": Untruthful,
    "locked": Locked,
    "endless": Endless,
    "list": type("List", (list,), {"__iter__": fail, "__len__": fail}),
    "dict": type("Dict", (dict,), {"items": fail, "values": fail, "get": fail, "keys": fail}),
    "text": lambda: type("Text", (str,), {"isascii": fail, "__len__": fail, "encode": fail})("x"),
    "number": lambda: type("Number", (int,), {"__abs__": fail, "__str__": fail, "bit_length": fail})(3),
    "keys": type("Keys", (), {"keys": fail, "__getitem__": fail}),
    "attributes": type("Attributes", (), {"__getattr__": fail}),
}
PLACES: dict[str, Any] = {
    "message": lambda odd: [{"role": "assistant", "content": "x"}, odd],
    "content": lambda odd: [{"role": "assistant", "content": odd}],
    "calls": lambda odd: [{"role": "assistant", "tool_calls": odd}],
    "call": lambda odd: [{"role": "assistant", "tool_calls": [odd]}],
    "name": lambda odd: [{"role": "assistant", "tool_calls": [{"tool": odd}]}],
    "input": lambda odd: [{"role": "assistant", "tool_calls": [{"tool": "find", "input": odd}]}],
    "below": lambda odd: [{"role": "assistant", "tool_calls": [{"tool": "find", "input": {"q": [odd]}}]}],
    "arguments": lambda odd: [{"role": "assistant", "tool_calls": [{"function": {"name": "find", "arguments": odd}}]}],
    "metadata": lambda odd: [{"role": "assistant", "metadata": odd, "tool_calls": [{"tool": "find", "metadata": odd}]}],
    "messages": lambda odd: {"messages": odd},
    "usage": lambda odd: {"text": "x", "usage": odd},
    "error": lambda odd: {"error": odd},
    "raw": lambda odd: {"text": "x", "raw_response": odd, "odd": odd},
    "trace": lambda odd: {"trace": [{"type": "tool_call", "name": "find", "input": odd, "metadata": {"status": odd}}]},
    "both": lambda odd: {
        "trace": [{"type": "tool_call", "name": "find", "input": odd}],
        "output_messages": [{"role": "assistant", "tool_calls": [{"tool": "find", "input": odd}]}],
    },
    "langchain": lambda odd: [{"type": "ai", "content": odd, "tool_calls": odd, "response_metadata": {"model": odd}}],
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("place", PLACES)
def test_no_object_stops_a_reply_from_being_scored(kind: str, place: str) -> None:
    reply = PLACES[place](ODD[kind]())
    for result in (
        agentv.score(reply, CHECK),
        agentv.score(reply, [*CHECK, {"type": "contains", "value": "x"}]),
        asyncio.run(agentv.ascore(reply, CHECK)),
        *agentv.score_many([reply], CHECK),
        agentv.decode_response(reply),
        decode_returned(reply),
    ):
        json.loads(dump_json(result), parse_constant=fail)
    if isinstance(reply, list):
        for write in (agentv.to_openai, agentv.to_adk, agentv.to_mastra):
            json.loads(dump_json(write(reply)), parse_constant=fail)


def test_what_could_not_be_read_as_it_is_costs_a_warning_and_nothing_else() -> None:
    calls = [{"tool": "find", "input": {"q": 1}}]
    reply = [{"role": "user", "content": ODD["list"]([1])}, {"role": "assistant", "tool_calls": calls}]
    result = agentv.score(reply, CHECK)
    assert result.status == "pass"
    assert result.warnings[-1] == "reply: read from a plain copy of it, for one of its values raised Broken"
    warnings: list[str] = []
    assert agentv.from_openai(reply, warnings)[1].tool_calls[0].input == {"q": 1}
    assert warnings[0] == "messages: read from a plain copy, for one of the values raised Broken"


class Tool(str, enum.Enum):  # noqa: UP042 - as older code has it, whose members print as `Tool.FIND`
    """An enum of names, as many projects have."""

    FIND = "find"


@pytest.mark.parametrize("shape", ["tool", "name", "function"])
def test_a_tool_that_is_a_member_of_an_enum_is_called_by_its_value(shape: str) -> None:
    call: dict[str, Any] = {shape: Tool.FIND, "input": {"q": 1}}
    if shape == "function":
        call = {"id": "a", "type": "function", "function": {"name": Tool.FIND, "arguments": Tool("find")}}
    reply = [{"role": "assistant", "tool_calls": [call]}]
    wanted = [{"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "other"}]}]
    for checks in (wanted, [*wanted, {"type": "contains", "value": "x"}]):
        result = agentv.score(reply, checks)
        assert "unexpected call 0: find" in result.evaluators[0].misses
        assert result.trace_summary is not None
        assert type(result.trace_summary.tool_names[0]) is str


def test_ids_that_are_numbers_pair_as_their_digits() -> None:
    calls = [{"id": number, "tool": "find", "input": {"q": number}} for number in (1, 2)]
    results = [{"role": "tool", "tool_call_id": number, "content": f"of {number}"} for number in (2, "1")]
    (message,) = agentv.from_openai([{"role": "assistant", "tool_calls": calls}, *results])
    assert [(call.id, call.output) for call in message.tool_calls] == [("1", "of 1"), ("2", "of 2")]
    assert [(call.metadata or {})["id"] for call in message.tool_calls] == [1, 2]
    assert agentv.from_openai(agentv.to_openai([message])) == (message,)
    (alone,) = agentv.from_openai([{"role": "tool", "tool_call_id": 7, "content": "x"}])
    assert alone.tool_call_id == "7"
    assert alone.metadata == {"tool_call_id": 7}


def test_an_output_that_came_as_an_object_is_a_text_in_openai_s_form() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    conversation = agentv.from_openai(
        [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": {"hits": 3}},
        ]
    )
    written = agentv.to_openai(conversation)
    assert written[1]["content"] == '{"hits":3}'
    assert agentv.from_openai(written) == conversation


def test_a_proxy_is_as_good_as_a_dict() -> None:
    call = types.MappingProxyType({"tool": "find", "input": types.MappingProxyType({"q": 1})})
    assert agentv.score([types.MappingProxyType({"role": "assistant", "tool_calls": (call,)})], CHECK).status == "pass"


@pytest.mark.parametrize("model", [["a"], {"a": 1}, 5, ""])
def test_a_model_of_langchain_s_without_a_name_is_none(model: Any) -> None:
    told = [{"type": "ai", "content": "x", "response_metadata": {"model": model, "model_name": None}}]
    assert agentv.decode_response(told).metadata is None


@pytest.mark.parametrize("summary", [1, 1.5, True, "x", {"text": "y"}])
def test_thoughts_that_are_no_list_are_none(summary: Any) -> None:
    assert decode_openai_agents([{"type": "reasoning", "summary": summary}]).reasoning is None


def test_a_part_of_adk_s_that_has_a_type_is_kept_as_it_is() -> None:
    parts = [{"text": "x"}, {"type": "text", "text": 5}]
    (message,) = decode_adk([{"author": "a", "content": {"role": "model", "parts": parts}}]).output_messages or ()
    assert message.content == [{"type": "text", "text": "x"}, {"type": "text", "text": 5}]


@pytest.mark.parametrize("data", [b"[]", b'{"events": []}'])
def test_a_file_without_events_takes_nothing_from_the_trace_beside_it(data: bytes) -> None:
    trace = (agentv.TraceEvent(type="model_step"),)
    response = follow_trace_ref(agentv.ProviderResponse(trace=trace, trace_ref="t.json"), lambda _: data)
    assert response.trace == trace
    assert response.warnings == ("trace_ref: 't.json' holds no events",)


def test_a_stored_reply_is_not_warned_of_twice() -> None:
    once = agentv.decode_response([{"role": "assistant", "tool_calls": [{"input": {}}]}])
    again = agentv.decode_response_json(dump_json(once))
    assert len(once.warnings) == 1
    assert again.warnings == once.warnings


@pytest.mark.parametrize(
    "usage",
    [
        {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13, "cachedInputTokens": 5, "reasoningTokens": 2},
        {
            "inputTokens": 9,
            "outputTokens": 4,
            "inputTokenDetails": {"cacheReadTokens": 5},
            "outputTokenDetails": {"reasoningTokens": 2},
        },
        {"input_tokens": 9, "cached_input_tokens": 5, "output_tokens": 4, "reasoning_output_tokens": 2},
    ],
)
def test_parts_of_the_ai_sdk_s_and_of_codex_s_counts_are_read(usage: Any) -> None:
    response = agentv.decode_response({"text": "x", "usage": usage})
    assert response.tokens_usage == agentv.TokensUsage(
        input_tokens=9, output_tokens=4, total_tokens=13, cache_read_tokens=5, reasoning_tokens=2
    )
    assert response.metadata is None
