"""Replies of a real LangGraph server: messages, calls, results, cost and state are read correctly."""

import asyncio
import json
from typing import Any

import pytest

from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse, ResponseError, TokensUsage
from tests.support.langgraph_requests import ask, question, target

PLAIN = {"assistant": "plain", "input_key": "question", "input_text": True}
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "weather": ("weather", {}),
    "weather, waited for": ("weather", {"stream": False}),
    "two cities": ("two cities", {}),
    "a broken tool": ("broken", {}),
    "a crash": ("crash", {}),
    "a crash, waited for": ("crash", {"stream": False}),
    "a malformed call": ("malformed", {}),
    "blocks": ("blocks", {}),
    "a message without a price": ("unpriced", {}),
    "a question": ("approve", {}),
    "a question, waited for": ("approve", {"stream": False}),
    "a question, answered": ("approve", {"resume": False}),
    "a question, answered with null": ("approve", {"resume": None, "stream": False}),
    "questions at once": ("start", {"assistant": "committee", "resume": "aye"}),
    "too many questions": ("start", {"assistant": "committee", "resume": "aye", "max_resumes": 1}),
    "a breakpoint": ("weather", {"assistant": "careful"}),
    "a breakpoint, waited for": ("weather", {"assistant": "careful", "stream": False}),
    "a breakpoint, passed": ("weather", {"assistant": "careful", "resume": "go"}),
    "a breakpoint, passed, waited for": ("weather", {"assistant": "careful", "resume": "go", "stream": False}),
    "a team": ("go", {"assistant": "team"}),
    "a team without subgraphs": ("go", {"assistant": "team", "subgraphs": False}),
    "a team, waited for": ("go", {"assistant": "team", "stream": False}),
    "no messages": ("why?", PLAIN),
    "no messages, but a key": ("why?", {**PLAIN, "output_key": "answer"}),
    "no messages, but a key, waited for": ("why?", {**PLAIN, "output_key": "answer", "stream": False}),
    "an answer that is no text": ("why?", {**PLAIN, "output_key": "sources"}),
    "config": ("settings", {"config": {"configurable": {"model": "m-1"}}, "headers": {"X-Team": "blue"}}),
    "context": ("settings", {"context": {"tone": "dry"}, "durability": "exit", "metadata": {"suite": "s"}}),
    # The server sends an empty line every five seconds.
    "patience": ("sleep 5.5", {"stream": False}),
}


@pytest.fixture(scope="module")
def replies(server: str) -> dict[str, ProviderResponse]:
    """All replies, asked for at once: a development server takes a second for each."""

    async def one(text: str, settings: dict[str, Any]) -> ProviderResponse:
        return (await ask(target(server, **settings), question(text)))[0]

    async def everything() -> list[ProviderResponse]:
        return await asyncio.gather(*(one(*asked) for asked in ASKED.values()))

    return dict(zip(ASKED, asyncio.run(everything()), strict=True))


def messages(response: ProviderResponse) -> tuple[Message, ...]:
    assert response.output_messages is not None
    return response.output_messages


def calls(response: ProviderResponse) -> list[ToolCall]:
    return [call for message in messages(response) for call in message.tool_calls]


def words(response: ProviderResponse) -> list[str]:
    return [message.text for message in messages(response)]


@pytest.mark.parametrize("name", ["weather", "weather, waited for"])
def test_a_turn_with_a_call_is_two_messages_and_its_result(replies: dict[str, ProviderResponse], name: str) -> None:
    response = replies[name]
    assert response.success
    assert response.error is None
    assert response.warnings == ()
    assert [message.role for message in messages(response)] == ["assistant", "assistant"]
    (call,) = calls(response)
    assert (call.tool, call.input, call.output) == ("forecast", {"city": "Rome"}, "21 C in Rome")
    assert (call.id, call.status) == ("call_1", "ok")
    assert call.metadata is not None
    assert call.metadata["result_message"]["metadata"]["artifact"] == {"station": "rome"}
    assert response.text == "I found: 21 C in Rome"


@pytest.mark.parametrize("name", ["weather", "weather, waited for", "a breakpoint, passed"])
def test_usage_is_the_sum_of_this_run_s_turns(replies: dict[str, ProviderResponse], name: str) -> None:
    assert replies[name].tokens_usage == TokensUsage(
        input_tokens=40, output_tokens=10, total_tokens=50, cache_read_tokens=4, reasoning_tokens=2
    )


def test_what_the_model_told_of_itself_is_kept(replies: dict[str, ProviderResponse]) -> None:
    metadata = messages(replies["weather"])[0].metadata
    assert metadata is not None
    assert metadata["response_metadata"]["model_name"] == "script-1"
    assert metadata["langgraph_node"] == "model"


def test_two_calls_of_one_message_have_their_own_results(replies: dict[str, ProviderResponse]) -> None:
    found = [(call.id, call.input, call.output) for call in messages(replies["two cities"])[0].tool_calls]
    assert found == [
        ("call_a", {"city": "Rome"}, "21 C in Rome"),
        ("call_b", {"city": "Oslo", "unit": "F"}, "21 F in Oslo"),
    ]


def test_a_tool_that_fails_is_a_call_with_status_error(replies: dict[str, ProviderResponse]) -> None:
    response = replies["a broken tool"]
    assert response.success
    (call,) = calls(response)
    assert (call.tool, call.input, call.status) == ("broken", {"part": 7}, "error")
    assert "part 7 is missing" in call.output


@pytest.mark.parametrize("name", ["a crash", "a crash, waited for"])
def test_a_graph_that_raises_is_an_error_of_the_agent(replies: dict[str, ProviderResponse], name: str) -> None:
    response = replies[name]
    assert not response.success
    assert response.error == ResponseError(kind="agent", message="RuntimeError: the model is out of order")
    assert response.thread_id is not None


def test_a_malformed_call_keeps_what_the_model_wrote(replies: dict[str, ProviderResponse]) -> None:
    (call,) = calls(replies["a malformed call"])
    assert (call.tool, call.id, call.input) == ("forecast", "call_m", "{city: Rome")
    assert call.metadata is not None
    assert "malformed" in call.metadata["arguments_error"]


def test_blocks_stay_blocks(replies: dict[str, ProviderResponse]) -> None:
    assert messages(replies["blocks"])[0].content == [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    assert replies["blocks"].text == "one two"


def test_usage_is_unknown_when_one_message_does_not_say(replies: dict[str, ProviderResponse]) -> None:
    response = replies["a message without a price"]
    assert response.tokens_usage is None
    assert response.warnings == (
        "messages[1].usage_metadata: missing, so the tokens of the messages together are unknown",
    )


@pytest.mark.parametrize("name", ["a question", "a question, waited for"])
def test_a_graph_that_waits_for_somebody_is_interrupted(replies: dict[str, ProviderResponse], name: str) -> None:
    response = replies[name]
    assert not response.success
    assert response.error is not None
    assert response.error.kind == "interrupted"
    assert not response.error.retryable
    assert '{"question":"may I?"}' in response.error.message
    assert "`resume`" in response.error.message


@pytest.mark.parametrize(
    ("name", "answer"), [("a question, answered", "False"), ("a question, answered with null", "None")]
)
def test_a_graph_that_waits_goes_on_with_the_target_s_answer(
    replies: dict[str, ProviderResponse], name: str, answer: str
) -> None:
    assert replies[name].success
    assert words(replies[name]) == [f"somebody said {answer}"]


def test_several_questions_at_once_are_all_answered(replies: dict[str, ProviderResponse]) -> None:
    response = replies["questions at once"]
    assert response.success
    assert sorted(words(response)) == ["chair: aye", "first: aye", "second: aye"]
    assert words(response)[0] == "chair: aye"


def test_a_graph_that_asks_for_ever_is_not_answered_for_ever(replies: dict[str, ProviderResponse]) -> None:
    response = replies["too many questions"]
    assert words(response) == ["chair: aye"]
    assert response.error is not None
    assert response.error.kind == "interrupted"
    assert response.error.message.startswith("after 1 answers the graph still asks: ")
    assert "first?" in response.error.message
    assert "second?" in response.error.message


@pytest.mark.parametrize("name", ["a breakpoint", "a breakpoint, waited for"])
def test_a_breakpoint_interrupts(replies: dict[str, ProviderResponse], name: str) -> None:
    response = replies[name]
    assert response.error is not None
    assert response.error.kind == "interrupted"
    assert "breakpoint" in response.error.message
    assert [call.tool for call in calls(response)] == ["forecast"]


@pytest.mark.parametrize("name", ["a breakpoint, passed", "a breakpoint, passed, waited for"])
def test_a_breakpoint_is_passed_with_an_answer(replies: dict[str, ProviderResponse], name: str) -> None:
    response = replies[name]
    assert response.success
    assert [call.output for call in calls(response)] == ["21 C in Rome"]
    assert response.text == "I found: 21 C in Rome"


def test_messages_of_many_nodes_come_once_each_in_order(replies: dict[str, ProviderResponse]) -> None:
    response = replies["a team"]
    assert response.success
    found = words(response)
    assert sorted(found[:2]) == ["left, corrected", "right"]
    assert found[2:] == ["searched", "read", "done", "no, not", ""]
    by_words = {message.text: message.metadata or {} for message in messages(response)}
    assert by_words["searched"]["langgraph_node"] == "search"
    assert by_words["searched"]["langgraph_subgraph"] == "research"
    assert "langgraph_subgraph" not in by_words["done"]


def test_a_message_that_is_taken_back_was_said_and_is_not_the_answer(replies: dict[str, ProviderResponse]) -> None:
    response = replies["a team"]
    assert messages(response)[-1].role == "remove"
    assert "no, not" in words(response)
    assert response.text == "done"


@pytest.mark.parametrize("name", ["a team without subgraphs", "a team, waited for"])
def test_the_graph_s_own_state_tells_the_same(replies: dict[str, ProviderResponse], name: str) -> None:
    said = [text for text in words(replies[name]) if text not in ("no, not", "")]
    assert sorted(said[:2]) == ["left, corrected", "right"]
    assert said[2:] == ["searched", "read", "done"]
    assert replies[name].text == "done"


def test_a_graph_without_messages_says_which_key_to_name(replies: dict[str, ProviderResponse]) -> None:
    response = replies["no messages"]
    assert response.output_messages is None
    assert response.text == ""
    assert response.metadata == {"state": {"answer": "WHY?", "sources": ["a book"]}}
    (warning,) = response.warnings
    assert "answer, sources" in warning
    assert "`output_key`" in warning


@pytest.mark.parametrize("name", ["no messages, but a key", "no messages, but a key, waited for"])
def test_the_answer_may_be_a_key_of_the_state(replies: dict[str, ProviderResponse], name: str) -> None:
    assert replies[name].text == "WHY?"
    assert replies[name].warnings == ()


def test_an_answer_that_is_no_text_is_json(replies: dict[str, ProviderResponse]) -> None:
    assert replies["an answer that is no text"].text == '["a book"]'


def test_the_graph_gets_config_and_headers(replies: dict[str, ProviderResponse]) -> None:
    assert json.loads(replies["config"].text) == {"model": "m-1", "x-team": "blue", "tone": None}


def test_the_graph_gets_its_context(replies: dict[str, ProviderResponse]) -> None:
    assert json.loads(replies["context"].text)["tone"] == "dry"


def test_empty_lines_while_a_run_goes_on_are_not_its_reply(replies: dict[str, ProviderResponse]) -> None:
    assert words(replies["patience"]) == ["echo: sleep 5.5"]


def test_every_attempt_has_a_thread_of_its_own(replies: dict[str, ProviderResponse]) -> None:
    threads = [response.thread_id for response in replies.values()]
    assert None not in threads
    assert len(set(threads)) == len(threads)


def test_what_the_server_sent_is_kept_with_the_reply(replies: dict[str, ProviderResponse]) -> None:
    events = replies["weather"].raw_response["events"]
    assert [event["event"] for event in events] == ["metadata", "updates", "updates", "updates"]
