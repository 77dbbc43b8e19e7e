"""Messages as an SDK or a library hands them out, in a list of dicts: as people keep their conversations."""

from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import TextBlock, ToolUseBlock
from langchain_core.messages import AIMessage, ToolMessage
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall

import agentv

SEARCHES = [{"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "search", "input": {"query": "x"}}]}]
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "x"}'}}
OPENAI: list[Any] = [
    {"role": "user", "content": "Where?"},
    ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [CALL]}),
    {"role": "tool", "tool_call_id": "c1", "content": "3 found"},
    ChatCompletionMessage(role="assistant", content="There."),
]
LANGCHAIN: list[Any] = [
    AIMessage("", tool_calls=[{"name": "search", "args": {"query": "x"}, "id": "c1"}]),
    ToolMessage("3 found", tool_call_id="c1"),
    AIMessage("There."),
]
COMPACT = {"role": "assistant", "tool_calls": [{"tool": "search", "input": {"query": "x"}}]}


@pytest.mark.parametrize("messages", [OPENAI, LANGCHAIN], ids=["openai", "langchain"])
def test_a_conversation_with_objects_in_it_is_scored(messages: list[Any]) -> None:
    for reply in (messages, {"output_messages": messages}):
        result = agentv.score(reply, SEARCHES)
        assert (result.status, result.warnings) == ("pass", ())


@pytest.mark.parametrize("messages", [OPENAI, LANGCHAIN], ids=["openai", "langchain"])
def test_a_function_may_return_it(messages: list[Any]) -> None:
    case = {"id": "a", "input": "Where?", "evaluators": SEARCHES}
    for reply in (messages, {"output_messages": messages}):
        (result,) = agentv.evaluate({"cases": [case]}, target=lambda _, reply=reply: reply).results
        assert (result.status, result.candidate) == ("pass", "There.")


def test_the_result_of_a_call_is_found_whoever_said_what() -> None:
    response = agentv.decode_response(OPENAI)
    assert response.output_messages is not None
    assert response.output_messages[1].tool_calls[0].output == "3 found"


@pytest.mark.parametrize("message", [COMPACT, OPENAI[1]], ids=["compact", "openai"])
def test_one_message_alone_is_a_reply(message: Any) -> None:
    case = {"id": "a", "input": "Where?", "evaluators": SEARCHES}
    (result,) = agentv.evaluate({"cases": [case]}, target=lambda _: message).results
    assert result.status == "pass"


def test_one_message_alone_is_scored() -> None:
    assert agentv.score(COMPACT, SEARCHES).status == "pass"


def test_what_has_no_fields_to_tell_is_still_refused() -> None:
    assert agentv.decode_response([object()]).warnings != ()


def test_a_whole_answer_of_an_sdk_is_scored() -> None:
    answer = ChatCompletion.model_validate(
        {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": OPENAI[1].model_dump()}],
        }
    )
    assert agentv.score(answer, SEARCHES).status == "pass"


BLOCKS = [
    TextBlock(type="text", text="Hm."),
    ToolUseBlock(type="tool_use", id="c1", name="search", input={"query": "x"}),
]
ITEM = ResponseFunctionToolCall(type="function_call", call_id="c1", name="search", arguments='{"query": "x"}')
WHEREVER: dict[str, Any] = {
    "blocks in a dict": {"role": "assistant", "content": BLOCKS},
    "blocks in a message of a state": {"messages": [{"role": "assistant", "content": BLOCKS}], "turn": 1},
    "blocks alone": BLOCKS,
    "a whole message": AnthropicMessage.model_validate(
        {
            "id": "m",
            "model": "m",
            "role": "assistant",
            "type": "message",
            "content": [block.model_dump() for block in BLOCKS],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    ),
    "items alone": [ITEM],
    "items in a dict": {"output": [ITEM]},
    "calls in a dict": {"role": "assistant", "content": "Hm.", "tool_calls": OPENAI[1].tool_calls},
    "calls alone": OPENAI[1].tool_calls,
    "a message in a message list": {"messages": [OPENAI[1]]},
}


@pytest.mark.parametrize("form", WHEREVER)
def test_objects_are_read_wherever_they_stand(form: str) -> None:
    reply = WHEREVER[form]
    assert agentv.score(reply, SEARCHES).status == "pass"
    case = {"id": "a", "input": "Where?", "evaluators": SEARCHES}
    (result,) = agentv.evaluate({"cases": [case]}, target=lambda _: reply).results
    assert result.status == "pass"
