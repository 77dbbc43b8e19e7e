"""Runs that LangChain's callbacks tell of, added to what a reply already has: nothing twice, and nothing lost."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from msgspec import UNSET

from agentv.formats.langchain import decode_langchain
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse
from agentv.providers.python.langchain import Runs, add_runs

USAGE: Any = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


class Told(Runs):
    """Runs, told to the handler as LangChain does."""

    def __init__(self) -> None:
        super().__init__()
        self.listener = self.handler()

    def model(self, message: AIMessage, **options: Any) -> None:
        run = uuid4()
        self.listener.on_chat_model_start({}, [], run_id=run, options=options)
        self.listener.on_llm_end(LLMResult(generations=[[ChatGeneration(message=message)]]), run_id=run)

    def begin(self, name: str, inputs: Any, call_id: str | None = None) -> UUID:
        run = uuid4()
        self.listener.on_tool_start({"name": name}, str(inputs), run_id=run, inputs=inputs, tool_call_id=call_id)
        return run

    def tool(self, name: str, inputs: Any, output: Any, call_id: str | None = None) -> None:
        self.listener.on_tool_end(output, run_id=self.begin(name, inputs, call_id))


def called(name: str, call_id: str = "c1", message_id: str | None = None, **args: Any) -> AIMessage:
    calls: Any = [{"name": name, "args": args, "id": call_id}]
    return AIMessage("", tool_calls=calls, usage_metadata=USAGE, id=message_id)


def reply(*messages: Any) -> ProviderResponse:
    return decode_langchain([message.model_dump() for message in messages])


def calls(response: ProviderResponse) -> list[tuple[str, Any, Any, Any]]:
    made = [call for message in response.output_messages or () for call in message.tool_calls]
    return [(call.tool, call.input, call.output, call.status) for call in made]


def total(response: ProviderResponse) -> int | None:
    return None if response.tokens_usage is None else response.tokens_usage.total_tokens


def test_what_the_reply_has_is_not_added_again() -> None:
    runs = Told()
    first, last = called("find", message_id="m1", q=1), AIMessage("done", usage_metadata=USAGE, id="m2")
    runs.model(first)
    runs.tool("find", {"q": 1}, ToolMessage("found", tool_call_id="c1"), "c1")
    runs.model(last)
    response = reply(first, ToolMessage("found", tool_call_id="c1"), last)
    added = add_runs(response, runs)
    assert added.output_messages == response.output_messages
    assert total(added) == 30


def test_a_copy_without_its_counts_is_the_same_message() -> None:
    runs = Told()
    runs.model(called("find", message_id="m1", q=1))
    runs.model(AIMessage("done", usage_metadata=USAGE, id="m2"))
    copies = [AIMessage("", name="bob", tool_calls=called("find", q=1).tool_calls), AIMessage("done", name="bob")]
    added = add_runs(reply(*copies), runs)
    assert calls(added) == [("find", {"q": 1}, UNSET, None)]
    assert (total(added), len(added.output_messages or ()), added.warnings) == (30, 2, ())


def test_a_hidden_call_with_the_id_of_another_is_added_where_it_was_made() -> None:
    runs = Told()
    first, last = called("find", "call_0", "m1", q=1), called("find", "call_0", "m3", q=3)
    runs.model(first)
    runs.begin("find", {"q": 1}, "call_0")
    runs.model(called("find", "call_0", "m2", q=2))
    runs.tool("find", {"q": 2}, ToolMessage("hidden", tool_call_id="call_0"), "call_0")
    runs.model(last)
    runs.tool("find", {"q": 3}, ToolMessage("third", tool_call_id="call_0"), "call_0")
    added = add_runs(reply(first, last), runs)
    assert [given["q"] for _, given, _, _ in calls(added)] == [1, 2, 3]
    assert [output for _, _, output, _ in calls(added)] == [UNSET, "hidden", "third"]
    assert total(added) == 45


def test_a_hidden_model_that_says_the_same_is_not_taken_for_the_last_message() -> None:
    runs = Told()
    first, last = called("ask", message_id="m1"), AIMessage("18", usage_metadata=USAGE, id="m3")
    runs.model(first)
    runs.model(AIMessage("18", usage_metadata=USAGE, id="m2"))
    runs.tool("log", {"text": "18"}, "ok")
    runs.model(last)
    added = add_runs(reply(first, last), runs)
    assert [call[0] for call in calls(added)] == ["ask", "log"]
    assert (added.output_messages or ())[-1].text == "18"
    assert total(added) == 45


def test_a_tool_that_is_tried_again_is_one_call() -> None:
    runs = Told()
    runs.listener.on_tool_error(ValueError("busy"), run_id=runs.begin("find", {"q": 1}, "c1"))
    runs.tool("find", {"q": 1}, ToolMessage("found", tool_call_id="c1"), "c1")
    added = add_runs(reply(called("find", q=1), ToolMessage("found", tool_call_id="c1")), runs)
    assert calls(added) == [("find", {"q": 1}, "found", "ok")]


def test_equal_calls_by_hand_count_as_often_as_they_were_made() -> None:
    runs = Told()
    for _ in range(3):
        runs.tool("find", {"q": 1}, "found")
    added = add_runs(reply(called("find", q=1), AIMessage("done")), runs)
    assert len(calls(added)) == 3


def test_a_tool_that_failed_is_an_error_and_one_without_an_end_has_no_result() -> None:
    runs = Told()
    runs.listener.on_tool_error(ValueError("bad"), run_id=runs.begin("find", {"q": 1}))
    runs.begin("find", {"q": 2})
    added = add_runs(reply(AIMessage("done")), runs)
    assert calls(added) == [("find", {"q": 1}, UNSET, "error"), ("find", {"q": 2}, UNSET, None)]


def test_the_form_of_an_answer_is_no_call_but_costs() -> None:
    runs = Told()
    runs.model(called("Route", to="north"), ls_structured_output_format={"schema": {}})
    added = add_runs(reply(AIMessage("done")), runs)
    assert (calls(added), total(added)) == ([], 15)


def test_one_model_call_that_does_not_say_what_it_cost_makes_the_sum_unknown() -> None:
    runs = Told()
    runs.model(AIMessage("a", usage_metadata=USAGE))
    runs.model(AIMessage("b"))
    added = add_runs(reply(AIMessage("b")), runs)
    assert added.tokens_usage is None
    assert any("1 of 2 model calls do not say what they cost" in each for each in added.warnings)


def test_a_text_beside_tools_that_nobody_is_known_to_have_asked_for_is_unread() -> None:
    runs = Told()
    runs.tool("find", {"q": 1}, "found")
    added = add_runs(ProviderResponse(text="done"), runs)
    assert calls(added) == [("find", {"q": 1}, "found", None)]
    assert [place.path for place in added.unread] == ["text"]


@pytest.mark.parametrize("has_calls", [False, True])
def test_a_text_of_a_chain_whose_model_was_heard_is_a_message(has_calls: bool) -> None:
    runs = Told()
    runs.model(called("find", q=1) if has_calls else AIMessage("done", usage_metadata=USAGE))
    added = add_runs(ProviderResponse(text="done"), runs)
    assert added.output_messages is not None
    assert added.output_messages[-1] == Message(role="assistant", content="done")
    assert [call[0] for call in calls(added)] == ["find"] * has_calls
    assert added.unread == ()
