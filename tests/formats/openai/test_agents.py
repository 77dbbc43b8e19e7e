"""Is what an agent of the OpenAI Agents SDK did read right, from real runs with a model of our own?"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pydantic
import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from agents.tool import function_tool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_reasoning_item import Summary
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from agentv.formats.openai.agents import decode_openai_agents, to_openai_items
from agentv.model.conversation import UNSET, Message, ToolCall
from agentv.model.response import ProviderResponse, TokensUsage
from tests.support.reading import decode_returned

QUIET = RunConfig(tracing_disabled=True)


class Scripted(Model):
    """Says these things, one after the other."""

    def __init__(self, *turns: list[Any], usage: list[Usage] | None = None) -> None:
        self.turns = list(turns)
        self.usage = usage or [spent(10, 5)] * len(turns)
        self.asked: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> ModelResponse:  # noqa: A002 - theirs
        del system_instructions, rest, more
        self.asked.append(input)
        at = len(self.asked) - 1
        return ModelResponse(output=self.turns[at], usage=self.usage[at], response_id=None)

    def stream_response(self, *rest: Any, **more: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def spent(read: int, wrote: int, cached: int = 0, thought: int = 0) -> Usage:
    return Usage(
        requests=1,
        input_tokens=read,
        output_tokens=wrote,
        total_tokens=read + wrote,
        input_tokens_details=InputTokensDetails(cached_tokens=cached, cache_write_tokens=0),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=thought),
    )


def call(call_id: str, name: str, arguments: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        id=f"fc_{call_id}", call_id=call_id, name=name, arguments=arguments, type="function_call"
    )


def say(words: str) -> ResponseOutputMessage:
    text = ResponseOutputText(type="output_text", text=words, annotations=[])
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])


@function_tool
def weather(city: str) -> dict[str, int]:
    """Tells the weather."""
    assert city
    return {"temp_c": 18}


@function_tool
def now() -> str:
    """Tells the time."""
    return "noon"


def agent_of(*turns: list[Any], **options: Any) -> Agent[Any]:
    usage = options.pop("usage", None)
    return Agent(name="Weather", model=Scripted(*turns, usage=usage), tools=[weather, now], **options)


def run(agent: Agent[Any], prompt: Any = "Weather?") -> Any:
    return asyncio.run(Runner.run(agent, prompt, run_config=QUIET))


def calls_of(response: ProviderResponse) -> list[ToolCall]:
    return [each for message in response.output_messages or () for each in message.tool_calls]


LOOK = [
    ResponseReasoningItem(id="r", type="reasoning", summary=[Summary(type="summary_text", text="need the weather")]),
    say("Let me look."),
    call("c1", "weather", '{"city": "Paris"}'),
    call("c2", "now", ""),
]


def test_a_run_is_what_it_added_with_results_laid_into_their_calls() -> None:
    response = decode_returned(run(agent_of(LOOK, [say("18 degrees")])), "Weather?")
    assert response.output_messages is not None
    first, last = response.output_messages
    assert (first.role, first.content, first.name) == ("assistant", "Let me look.", "Weather")
    assert (last.content, response.text, response.reasoning) == ("18 degrees", "18 degrees", "need the weather")
    paris, time = first.tool_calls
    assert (paris.tool, paris.input, paris.output, paris.id) == ("weather", {"city": "Paris"}, {"temp_c": 18}, "c1")
    assert (time.input, time.output) == ({}, "noon")
    assert (paris.status, response.warnings) == (None, ())


def test_the_same_from_the_items_alone_and_from_their_json() -> None:
    result = run(agent_of(LOOK, [say("18 degrees")]), [{"role": "user", "content": "Weather?"}])
    for returned in (result.new_items, result.to_input_list()):
        response = decode_returned(returned, "Weather?")
        assert [message.role for message in response.output_messages or ()] == ["assistant", "assistant"]
        assert [each.tool for each in calls_of(response)] == ["weather", "now"]
        assert response.text == "18 degrees"
        assert calls_of(response)[1].output == "noon"


def test_usage_is_that_of_all_turns() -> None:
    usage = [spent(100, 10), spent(200, 20, cached=80, thought=5)]
    response = decode_returned(run(agent_of([call("c", "now", "{}")], [say("noon")], usage=usage)))
    assert response.tokens_usage == TokensUsage(
        input_tokens=300, output_tokens=30, total_tokens=330, cache_read_tokens=80, reasoning_tokens=5
    )


def test_one_turn_that_does_not_say_makes_the_sum_unknown() -> None:
    usage = [spent(100, 10), Usage()]
    response = decode_returned(run(agent_of([call("c", "now", "{}")], [say("noon")], usage=usage)))
    assert response.tokens_usage is None
    assert response.warnings == ("raw_responses[1].usage: missing, so the tokens of the run together are unknown",)


def test_a_run_of_which_nobody_counted_anything_is_unknown_without_a_word() -> None:
    response = decode_returned(run(agent_of([say("noon")], usage=[Usage()])))
    assert (response.tokens_usage, response.warnings) == (None, ())


def test_agents_that_were_called_as_tools_cost_as_well_and_only_once() -> None:
    helper = Agent(name="Helper", model=Scripted([say("42")], usage=[spent(1000, 100)]))
    tool = helper.as_tool("helper", "Helps")
    main = Agent(
        name="Main",
        model=Scripted([call("c", "helper", '{"input": "?"}')], [say("42!")], usage=[spent(10, 1), spent(20, 2)]),
        tools=[tool],
    )
    response = decode_returned(run(main))
    assert [each.output for each in calls_of(response)] == ["42"]
    assert response.tokens_usage == TokensUsage(input_tokens=1030, output_tokens=103, total_tokens=1133)


def test_a_handoff_is_a_call_and_the_words_of_each_agent_bear_its_name() -> None:
    second = Agent(name="Second", model=Scripted([say("I take over")]))
    first = Agent(name="First", model=Scripted([call("h", "transfer_to_second", "{}")]), handoffs=[second])
    response = decode_returned(run(first))
    assert [message.name for message in response.output_messages or ()] == ["First", "Second"]
    (handoff,) = calls_of(response)
    assert handoff.tool == "transfer_to_second"
    assert handoff.output is not UNSET


def test_a_structured_output_is_the_answer_and_its_value() -> None:
    class Forecast(pydantic.BaseModel):
        city: str

    response = decode_returned(run(agent_of([say('{"city": "Paris"}')], output_type=Forecast)))
    assert (json.loads(response.text), response.raw_response) == ({"city": "Paris"}, {"city": "Paris"})


def test_a_call_that_awaits_somebody_s_consent_is_pending() -> None:
    @function_tool(needs_approval=True)
    def delete() -> str:
        """Deletes all."""
        return "gone"

    agent = Agent(name="Careful", model=Scripted([call("d", "delete", "{}")]), tools=[delete])
    (found,) = calls_of(decode_returned(run(agent)))
    assert (found.tool, found.status, found.output) == ("delete", "pending", UNSET)


def test_a_refusal_is_an_answer() -> None:
    refusal = ResponseOutputRefusal(type="refusal", refusal="I cannot do that.")
    message = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[refusal])
    assert (
        decode_returned([{"type": "message_output_item", "raw_item": message.model_dump()}]).text == "I cannot do that."
    )


def test_tools_of_openai_s_own_are_calls_named_by_their_type() -> None:
    items = [
        {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "code_interpreter_call", "id": "k", "status": "failed", "code": "1/0", "outputs": [{"logs": "boom"}]},
        {"type": "mcp_call", "id": "p", "name": "lookup", "server_label": "crm", "arguments": "{}", "error": "no such"},
        {"type": "custom_tool_call", "id": "u", "call_id": "cu", "name": "sql", "input": "select 1"},
        {"type": "custom_tool_call_output", "call_id": "cu", "output": "1"},
        {"type": "mcp_list_tools", "id": "l", "server_label": "crm", "tools": []},
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ]
    response = decode_returned(items)
    assert not response.warnings
    search, code, lookup, sql = calls_of(response)
    assert (search.tool, search.input) == ("web_search", {"action": {"type": "search", "query": "x"}})
    assert (code.tool, code.input, code.output, code.status) == (
        "code_interpreter",
        {"code": "1/0"},
        [{"logs": "boom"}],
        "error",
    )
    assert (lookup.tool, lookup.input, lookup.status, lookup.error) == ("lookup", {}, "error", "no such")
    assert (sql.tool, sql.input, sql.output, sql.id) == ("sql", "select 1", "1", "cu")
    assert [message.role for message in response.output_messages or ()] == ["assistant", "mcp_list_tools", "assistant"]
    assert response.text == "done"


def test_results_are_paired_by_call_id_and_not_by_id() -> None:
    items = [
        {"type": "function_call", "id": "b", "call_id": "a", "name": "first", "arguments": "{}"},
        {"type": "function_call", "id": "a", "call_id": "b", "name": "second", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
    ]
    assert [(each.tool, each.output) for each in calls_of(decode_openai_agents(items))] == [
        ("first", "1"),
        ("second", "2"),
    ]


@pytest.mark.parametrize("item", [None, 1, "x", {"raw_item": 5}])
def test_nonsense_is_reported_and_stops_nobody(item: Any) -> None:
    response = decode_openai_agents([item, {"role": "assistant", "content": "Hi"}])
    assert response.text == "Hi"
    assert response.warnings


def test_a_conversation_is_written_as_input_that_the_runner_takes() -> None:
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
        Message(role="user", content="And?"),
    ]
    items = to_openai_items(conversation)
    agent = agent_of([say("18")])
    run(agent, items)
    assert isinstance(agent.model, Scripted)
    assert agent.model.asked == [items]
    assert [item.get("role") or item["type"] for item in items] == [
        "system",
        "user",
        "assistant",
        "function_call",
        "function_call_output",
        "function_call",
        "function_call_output",
        "user",
    ]
    first, second = calls_of(decode_openai_agents(items))
    assert (first.input, first.output, second.input, second.id) == ({"city": "Paris"}, '{"temp_c":18}', {}, "call_0")
