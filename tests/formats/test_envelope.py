"""Known replies inside an object of the caller are read."""

import json
from typing import Any

import pytest

import agentv
from agentv.formats.reader import detect_reply
from agentv.model.response import ProviderResponse
from tests.support.samples import samples

FORBIDDEN = [{"type": "tool_trajectory", "forbidden": ["*"]}]
SAMPLES = {sample.name: sample for sample in samples()}
KINDS = (
    "langchain.parallel-state",
    "langchain.parallel-new-messages",
    "openai_sdk.parallel-messages",
    "pydantic_ai.parallel-all-messages",
    "langgraph.parallel-stream-tasks",
)
ENVELOPES: dict[str, Any] = {
    "result": lambda reply: {"result": reply},
    "output": lambda reply: {"output": reply},
    "data": lambda reply: {"status": "ok", "data": reply},
    "state": lambda reply: {"thread_id": "t1", "state": reply},
    "nested": lambda reply: {"data": {"response": reply}},
    "text": lambda reply: {"statusCode": 200, "body": json.dumps(reply)},
    "any sole key": lambda reply: {"weather_agent": reply},
}


def read(reply: Any) -> ProviderResponse:
    return detect_reply(reply).response


def told(response: ProviderResponse) -> Any:
    calls = [call for message in response.output_messages or () for call in message.tool_calls]
    return calls, response.text, response.tokens_usage, response.unread


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("name", KINDS)
def test_a_reply_is_read_in_its_envelope(name: str, envelope: str) -> None:
    reply = SAMPLES[name].reply
    assert told(read(reply))[0]
    assert told(read(ENVELOPES[envelope](reply))) == told(read(reply))


def test_what_stands_beside_the_reply_is_read_as_well() -> None:
    reply = SAMPLES["langchain.parallel-state"].reply
    response = read({"answer": "In short: warm.", "thread_id": "t1", "cost_usd": 0.5, "result": reply})
    assert (response.text, response.thread_id, response.cost_usd) == ("In short: warm.", "t1", 0.5)
    assert len(told(response)[0]) == 3


def test_calls_beside_the_reply_are_not_overlooked() -> None:
    reply = SAMPLES["langchain.plain-state"].reply
    beside = {"name": "delete_all", "args": {"path": "/"}, "tool_call_id": "call_9"}
    assert agentv.score({"result": reply}, FORBIDDEN).status == "pass"
    assert agentv.score({"result": reply, "audit": [beside]}, FORBIDDEN).status == "fail"


def test_of_two_replies_none_is_chosen() -> None:
    with_calls, without = SAMPLES["langchain.parallel-state"].reply, SAMPLES["langchain.plain-state"].reply
    assert agentv.score({"result": without, "output": with_calls}, FORBIDDEN).status != "pass"


@pytest.mark.parametrize(
    "document",
    [
        {"data": {"city": "Paris", "temperature": 18}},
        {"result": {"text": "fine"}},
        {"output": [{"name": "Paris"}, {"name": "Rome"}]},
        {"input": [{"role": "user", "content": "hi"}]},
    ],
)
def test_a_document_of_no_known_shape_stays_the_answer(document: Any) -> None:
    found = detect_reply(document)
    assert (found.shape, json.loads(found.response.text)) == ("json", document)


def test_a_list_of_json_texts_is_a_list_of_messages() -> None:
    reply = SAMPLES["langchain.parallel-new-messages"].reply
    assert told(read([json.dumps(message) for message in reply])) == told(read(reply))


def test_calls_of_earlier_lines_are_kept_when_later_lines_have_none() -> None:
    call = {"name": "delete_all", "args": {}, "id": "call_1"}
    lines = [{"content": "I do it. ", "tool_calls": [call]}, {"content": "Done.", "tool_calls": []}]
    assert agentv.score("\n".join(map(json.dumps, lines)), FORBIDDEN).status == "fail"


def test_the_nodes_of_a_graph_say_that_calls_are_unknown() -> None:
    trajectory = {
        "results": [{"messages": [{"role": "assistant", "content": "18 C"}]}],
        "steps": [["__start__", "agent", "tools", "agent"]],
    }
    forbidden: list[Any] = [{"type": "tool_trajectory", "forbidden": ["delete_*"]}]
    for reply in (trajectory, {"inputs": [], "outputs": trajectory}):
        result = agentv.score(reply, forbidden)
        assert result.status == "error"
        assert "a graph trajectory names the nodes that ran, not their calls" in str(result.evaluators[0].details)
    assert agentv.score({**trajectory, "steps": []}, forbidden).status == "pass"
