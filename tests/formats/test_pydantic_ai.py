"""Is what a pydantic-ai agent did read right, from real runs and from their JSON?"""

import asyncio
import json
from decimal import Decimal
from typing import Any

import pydantic
import pytest
from pydantic_ai import Agent, DeferredToolRequests, ModelRetry
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel as AnyModel
from pydantic_ai.usage import RequestUsage

from agentv.formats.objects import plain
from agentv.formats.pydantic_ai import decode_pydantic_ai, decode_pydantic_ai_run, to_pydantic_ai
from agentv.model.conversation import UNSET, Message, ToolCall
from agentv.model.response import ProviderResponse, TokensUsage
from tests.support.reading import decode_returned


def scripted(*turns: ModelResponse) -> Agent:
    """An agent whose model says these things, one after the other."""

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        return turns[sum(isinstance(message, ModelResponse) for message in messages)]

    agent = Agent(FunctionModel(reply), system_prompt="You are a weather bot")

    @agent.tool_plain
    def weather(city: str) -> dict[str, int]:
        if city == "London":
            message = "try again"
            raise ModelRetry(message)
        return {"temp_c": 18}

    @agent.tool_plain
    def now() -> str:
        return "noon"

    return agent


def calls_of(response: ProviderResponse) -> list[ToolCall]:
    return [call for message in response.output_messages or () for call in message.tool_calls]


def run(agent: Agent[Any, Any], prompt: str = "Weather?", **options: Any) -> Any:
    return asyncio.run(agent.run(prompt, **options))


PARALLEL = ModelResponse(
    parts=[
        ThinkingPart(content="need the weather"),
        TextPart(content="Let me look."),
        ToolCallPart("weather", {"city": "Paris"}, tool_call_id="c1"),
        ToolCallPart("weather", '{"city": "London"}', tool_call_id="c2"),
        ToolCallPart("now", None, tool_call_id="c3"),
        ToolCallPart("now", "", tool_call_id="c4"),
    ]
)


def test_a_run_is_what_it_added_with_results_laid_into_their_calls() -> None:
    result = run(scripted(PARALLEL, ModelResponse(parts=[TextPart(content="18 degrees at noon")])))
    response = decode_returned(result, "Weather?")
    assert response.output_messages is not None
    assert [message.role for message in response.output_messages] == ["assistant", "assistant"]
    assert response.output_messages[0].content == "Let me look."
    assert response.text == "18 degrees at noon"
    assert response.reasoning == "need the weather"
    assert response.warnings == ()
    paris, london, now, _ = calls_of(response)
    assert (paris.tool, paris.input, paris.output, paris.id, paris.status) == (
        "weather",
        {"city": "Paris"},
        {"temp_c": 18},
        "c1",
        "ok",
    )
    assert (london.input, london.output, london.status, london.error) == (
        {"city": "London"},
        "try again",
        "error",
        "try again",
    )
    assert london.metadata is not None
    assert london.metadata["outcome"] == "retried"
    assert (now.output, now.status) == ("noon", "ok")


def test_no_arguments_are_none_and_never_the_text_null() -> None:
    result = run(scripted(PARALLEL, ModelResponse(parts=[TextPart(content="done")])))
    assert [call.input for call in calls_of(decode_returned(result))[2:]] == [{}, {}]
    for read in (decode_pydantic_ai_run(result), decode_pydantic_ai(json.loads(result.all_messages_json()))):
        assert "null" not in [call.input for call in calls_of(read)]


def test_usage_is_that_of_all_turns() -> None:
    turns = [
        ModelResponse(
            parts=[ToolCallPart("now", {})],
            usage=RequestUsage(input_tokens=100, output_tokens=10, cache_read_tokens=0),
        ),
        ModelResponse(
            parts=[TextPart(content="noon")],
            usage=RequestUsage(
                input_tokens=200, output_tokens=20, cache_read_tokens=80, details={"reasoning_tokens": 5}
            ),
        ),
    ]
    expected = TokensUsage(
        input_tokens=300, output_tokens=30, total_tokens=330, cache_read_tokens=80, reasoning_tokens=5
    )
    result = run(scripted(*turns))
    assert decode_returned(result).tokens_usage == expected
    assert decode_returned(result.all_messages(), "Weather?").tokens_usage == expected


def test_one_turn_that_does_not_say_makes_the_sum_unknown() -> None:
    measured = RequestUsage(input_tokens=100, output_tokens=10)
    for silent in (RequestUsage(), RequestUsage(unmeasured_requests=1, input_tokens=3)):
        messages = [
            ModelResponse(parts=[TextPart("a")], usage=measured),
            ModelResponse(parts=[TextPart("b")], usage=silent),
        ]
        response = decode_returned(messages)
        assert response.tokens_usage is None
        assert "the sum is unknown" in response.warnings[0]
    nothing = decode_returned([ModelResponse(parts=[TextPart("a")])])
    assert (nothing.tokens_usage, nothing.warnings) == (None, ())


def test_what_it_cost_is_known_when_it_says_so() -> None:
    class Run:
        usage = RequestUsage(input_tokens=1, output_tokens=1, cost=Decimal("0.25"))
        output = "x"

        def new_messages(self) -> list[ModelMessage]:
            return [ModelResponse(parts=[TextPart("x")])]

    assert decode_pydantic_ai_run(Run()).cost_usd == 0.25


def test_with_a_history_only_the_new_messages_are_output_and_only_they_cost() -> None:
    first = ModelResponse(parts=[TextPart("one")], usage=RequestUsage(input_tokens=1000, output_tokens=1))
    second = ModelResponse(parts=[TextPart("two")], usage=RequestUsage(input_tokens=5, output_tokens=2))
    agent = scripted(first, second)
    history = run(agent, "First?").all_messages()
    result = run(agent, "Second?", message_history=history)
    for returned in (result, result.all_messages(), result.new_messages(), json.loads(result.all_messages_json())):
        response = decode_returned(returned, [("user", "First?"), ("assistant", "one"), ("user", "Second?")])
        assert [message.text for message in response.output_messages or ()] == ["two"]
        assert response.tokens_usage == TokensUsage(input_tokens=5, output_tokens=2, total_tokens=7)


def test_a_prompt_that_was_put_in_other_words_is_no_output_either() -> None:
    result = run(scripted(ModelResponse(parts=[TextPart("fine")])), "Question: weather?")
    for returned in (result, result.all_messages()):
        assert [message.role for message in decode_returned(returned, "weather?").output_messages or ()] == [
            "assistant"
        ]


def test_a_call_that_somebody_must_allow_waits_and_is_no_answer() -> None:
    asked = ModelResponse(parts=[TextPart("May I?"), ToolCallPart("delete_file", {"path": "a"}, tool_call_id="c1")])
    agent = Agent(FunctionModel(lambda *_: asked), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def delete_file(path: str) -> str:
        return path

    response = decode_returned(run(agent))
    assert [(call.tool, call.status) for call in calls_of(response)] == [("delete_file", "pending")]
    assert response.text == "May I?"


def test_a_structured_output_is_the_answer_and_its_value() -> None:
    class Forecast(pydantic.BaseModel):
        city: str
        celsius: float

    agent = Agent(AnyModel(custom_output_args={"city": "Paris", "celsius": 18.5}), output_type=Forecast)
    response = decode_returned(run(agent))
    assert json.loads(response.text) == {"city": "Paris", "celsius": 18.5}
    assert response.raw_response == {"city": "Paris", "celsius": 18.5}
    assert [call.tool for call in calls_of(response)] == ["final_result"]


def test_a_single_response_is_a_reply() -> None:
    response = decode_returned(ModelResponse(parts=[TextPart("Hello "), TextPart("there")]))
    assert response.text == "Hello there"


def test_parts_that_nobody_knows_are_nobody_s_words() -> None:
    data = [
        {
            "kind": "request",
            "parts": [
                {"part_kind": "user-prompt", "content": ["Look: ", {"kind": "image-url", "url": "data:,"}]},
                {"part_kind": "retry-feedback", "content": "Give an answer"},
                {"part_kind": "brand-new", "value": 1},
            ],
        },
        {"kind": "response", "parts": [{"part_kind": "hologram", "value": 2}, {"part_kind": "text", "content": "Hi"}]},
    ]
    response = decode_pydantic_ai(data)
    assert response.output_messages is not None
    user, feedback, new, said = response.output_messages
    assert (user.role, user.text) == ("user", "Look: ")
    assert (feedback.role, feedback.content) == ("retry-feedback", "Give an answer")
    assert (new.role, new.content, new.metadata) == ("brand-new", None, {"value": 1})
    assert said.content == [{"type": "hologram", "value": 2}, {"type": "text", "text": "Hi"}]
    assert response.text == "Hi"


def test_outcomes_are_kept() -> None:
    def answered(**fields: Any) -> ToolCall:
        call = {"part_kind": "tool-call", "tool_name": "t", "args": "{}", "tool_call_id": "c"}
        back = {"part_kind": "tool-return", "tool_name": "t", "tool_call_id": "c", "content": "x", **fields}
        data = [{"kind": "response", "parts": [call]}, {"kind": "request", "parts": [back]}]
        (found,) = calls_of(decode_pydantic_ai(data))
        return found

    assert answered(outcome="success").status == "ok"
    assert answered(outcome="failed").status == "error"
    assert answered(outcome="denied").status == "denied"
    assert answered(outcome="interrupted").status == "error"
    assert answered(outcome="never heard of").status is None
    assert answered().status is None
    assert answered(part_kind="retry-prompt").status == "error"


def test_tools_that_the_provider_runs_have_their_results_in_the_same_message() -> None:
    parts = [
        {"part_kind": "builtin-tool-call", "tool_name": "web_search", "args": {"q": "x"}, "tool_call_id": "s"},
        {"part_kind": "builtin-tool-return", "tool_name": "web_search", "content": [1], "tool_call_id": "s"},
        {"part_kind": "text", "content": "found"},
    ]
    response = decode_pydantic_ai([{"kind": "response", "parts": parts}])
    (call,) = calls_of(response)
    assert (call.tool, call.input, call.output) == ("web_search", {"q": "x"}, [1])
    assert response.text == "found"


def test_arguments_that_are_no_json_are_kept_and_marked() -> None:
    part = {"part_kind": "tool-call", "tool_name": "t", "args": "{city: Paris", "tool_call_id": "c"}
    response = decode_pydantic_ai([{"kind": "response", "parts": [part]}])
    (call,) = calls_of(response)
    assert call.input == "{city: Paris"
    assert "arguments_error" in (call.metadata or {})
    assert response.warnings


def test_a_result_that_answers_no_call_is_kept() -> None:
    part = {"part_kind": "tool-return", "tool_name": "t", "content": {"a": 1}, "tool_call_id": "c"}
    (message,) = decode_pydantic_ai([{"kind": "request", "parts": [part]}]).output_messages or ()
    assert (message.role, message.name, message.tool_call_id) == ("tool", "t", "c")
    assert message.metadata == {"output": {"a": 1}}


@pytest.mark.parametrize("item", [None, 1, "x", {}, {"kind": "response"}, {"kind": "response", "parts": [1, None]}])
def test_nonsense_is_reported_and_stops_nobody(item: Any) -> None:
    response = decode_pydantic_ai([item, {"kind": "response", "parts": [{"part_kind": "text", "content": "Hi"}]}])
    assert response.text == "Hi"
    assert response.warnings


def test_a_conversation_is_written_as_history_that_pydantic_ai_reads() -> None:
    conversation = [
        Message(role="system", content="Be brief."),
        Message(role="user", content="Weather?"),
        Message(
            role="assistant",
            content="One moment.",
            tool_calls=(
                ToolCall(tool="weather", input={"city": "Paris"}, output={"temp_c": 18}, id="c1"),
                ToolCall(tool="now"),
            ),
        ),
        Message(role="assistant", content="18"),
    ]
    written = ModelMessagesTypeAdapter.validate_python(to_pydantic_ai(conversation))
    assert [type(message).__name__ for message in written] == [
        "ModelRequest",
        "ModelRequest",
        "ModelResponse",
        "ModelRequest",
        "ModelResponse",
    ]
    assert [type(part) for part in written[0].parts] == [SystemPromptPart]
    assert [type(part) for part in written[1].parts] == [UserPromptPart]
    assert isinstance(written[3], ModelRequest)
    assert [part.content for part in written[3].parts if isinstance(part, ToolReturnPart)] == [{"temp_c": 18}, None]
    read = decode_pydantic_ai([plain(message) for message in written])
    first, second = calls_of(read)
    assert (first.tool, first.input, first.output, first.id) == ("weather", {"city": "Paris"}, {"temp_c": 18}, "c1")
    assert (second.input, second.output, second.id) == ({}, None, "call_0")
    assert second.input is not UNSET
