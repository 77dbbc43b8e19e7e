"""Calls that the last state of a graph does not show are read from a real server, streamed and waited for."""

import asyncio
import json
from typing import Any

import pytest

from agentv.model.conversation import ToolCall
from agentv.model.request import Scope
from agentv.model.response import ProviderResponse
from agentv.protocols import PARTIAL_REPLY
from tests.fakes.langgraph.server import KEY
from tests.providers.langgraph.test_eval_live import evaluate
from tests.providers.langgraph.test_threads_live import until_over
from tests.support.command import Command
from tests.support.langgraph_requests import ask, question, target

HIDDEN = {
    "private": ["forecast"],  # a subgraph with a state of its own
    "tacit": ["forecast"],  # a subgraph whose output schema leaves its messages out
    "boss": ["ask_expert", "forecast"],  # an agent inside of a tool
    "forgetful": ["forecast"],  # messages that were removed at the end
}
REJECT: dict[str, Any] = {"type": "reject", "message": "rather not"}


def asked(server: str, text: str = "weather", **settings: Any) -> ProviderResponse:
    return asyncio.run(ask(target(server, **settings), question(text)))[0]


def calls(response: ProviderResponse) -> list[ToolCall]:
    return [call for message in response.output_messages or () for call in message.tool_calls]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("assistant", HIDDEN)
def test_calls_that_the_last_state_does_not_show_are_read(server: str, assistant: str, *, stream: bool) -> None:
    response = asked(server, assistant=assistant, stream=stream)
    assert response.success, response.error
    assert sorted(call.tool for call in calls(response)) == HIDDEN[assistant]
    assert [call.output for call in calls(response) if call.tool == "forecast"] == ["21 C in Rome"]
    assert response.unread == ()


@pytest.mark.parametrize("stream", [True, False])
def test_the_answer_of_a_graph_is_its_own_and_not_that_of_a_subgraph(server: str, *, stream: bool) -> None:
    assert asked(server, assistant="private", stream=stream).text == "It is fine."
    assert asked(server, assistant="forgetful", stream=stream).text == "it was asked and answered"


@pytest.mark.parametrize("stream", [True, False])
def test_a_call_that_the_target_rejects_is_denied_and_the_others_are_not(server: str, *, stream: bool) -> None:
    resume = {"decisions": [{"type": "approve"}, REJECT]}
    response = asked(server, "two cities", assistant="reviewed", stream=stream, resume=resume)
    assert response.success, response.error
    found = [(call.input["city"], call.status, call.output) for call in calls(response)]
    assert found == [("Rome", "ok", "21 C in Rome"), ("Oslo", "denied", "rather not")]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("assistant", ["reviewed", "careful"])  # a question, and a breakpoint
def test_calls_that_a_graph_waits_with_are_pending(server: str, assistant: str, *, stream: bool) -> None:
    response = asked(server, assistant=assistant, stream=stream)
    assert response.error is not None
    assert response.error.kind == "interrupted"
    assert [(call.tool, call.status) for call in calls(response)] == [("forecast", "pending")]


@pytest.mark.parametrize("stream", [True, False])
def test_an_attempt_that_is_cancelled_hands_over_what_it_has(server: str, *, stream: bool) -> None:
    async def give_up() -> BaseException:
        provider = target(server, assistant="slow", stream=stream)
        session = await provider.open(Scope(root=".", folder="."))
        try:
            with pytest.raises(TimeoutError) as caught:
                async with asyncio.timeout(5):
                    await session.invoke(question("weather"))
        finally:
            await session.close()
        assert caught.value.__cause__ is not None
        return caught.value.__cause__

    partial = getattr(asyncio.run(give_up()), PARTIAL_REPLY)
    assert [(call.tool, call.output) for call in calls(partial)] == [("forecast", "21 C in Rome")]
    assert partial.tokens_usage.total_tokens == 50
    assert until_over(server, partial.thread_id) == ["interrupted"]


@pytest.mark.parametrize("stream", [True, False])
def test_a_run_that_timed_out_is_stored_with_its_thread_and_its_calls(
    run: Command, server: str, *, stream: bool
) -> None:
    agent = {"name": "slow", "provider": "langgraph", "url": server, "assistant": "slow", "api_key": "${GRAPHS_KEY}"}
    case = {"id": "a", "input": "weather", "evaluators": [{"type": "tool_trajectory", "forbidden": ["delete"]}]}
    written = {"targets": [{**agent, "timeout_s": 5, "stream": stream}], "cases": [case]}
    run.write("graph.eval.yaml", written)
    done = evaluate(run, server, "--out", "results.jsonl", "--retries", "0", "--include-messages")
    assert done.code == 3, done.err
    (record,) = [record for record in run.records() if "case_id" in record]
    assert record["error"]["kind"] == "timeout"
    assert record["thread_id"] in record["error"]["message"]
    assert record["trace_summary"]["tool_calls_by_name"] == {"forecast": 1}
    assert record["tokens_usage"]["total_tokens"] == 50
    assert [place["path"] for place in record["unread"]] == ["reply"]
    shown = json.loads(run("runs", "show", "last", "--case", "a", "--json", env={"GRAPHS_KEY": KEY}).out)
    assert shown["response"]["thread_id"] == record["thread_id"]
    assert [call["tool"] for message in shown["messages"] for call in message.get("tool_calls", ())] == ["forecast"]
    told = run("runs", "show", "last", "--case", "a", env={"GRAPHS_KEY": KEY}).out
    assert record["thread_id"] in told
    assert "forecast" in told
