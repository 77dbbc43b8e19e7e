"""Variants of the libraries' replies that the samples do not show: optional parts, pieces, refusals, broken events."""

from typing import Any

import pytest
from msgspec import UNSET

from agentv.formats.reader import detect_reply, read_events, read_reply
from agentv.formats.streams import StreamEvent
from agentv.model.conversation import ToolCall
from agentv.model.response import ProviderResponse

USAGE = {"prompt_tokens": 5, "completion_tokens": 2}


def calls_of(response: ProviderResponse) -> list[ToolCall]:
    return [call for message in response.output_messages or () for call in message.tool_calls]


def told(response: ProviderResponse) -> list[tuple[str, Any, Any, str | None]]:
    """Give name, input, output and status of each call."""
    return [(call.tool, call.input, call.output, call.status) for call in calls_of(response)]


def total(response: ProviderResponse) -> int | None:
    return None if response.tokens_usage is None else response.tokens_usage.total_tokens


# AutoGen


def autogen(kind: str, content: Any, source: str = "bot", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "source": source, "content": content, "models_usage": None, "metadata": {}, **fields}


ASKS = autogen("ToolCallRequestEvent", [{"id": "c1", "name": "f", "arguments": "{}"}], models_usage=USAGE)
GETS = autogen("ToolCallExecutionEvent", [{"call_id": "c1", "name": "f", "content": "x", "is_error": False}])


def test_autogen_a_response_is_its_inner_messages_and_its_last() -> None:
    response = read_reply({"chat_message": autogen("TextMessage", "done"), "inner_messages": [ASKS, GETS]})
    assert told(response) == [("f", {}, "x", "ok")]
    assert (response.text, total(response), response.unread) == ("done", 7, ())


def test_autogen_a_team_s_state_is_read_by_the_thread_of_its_manager() -> None:
    thread = [autogen("TextMessage", "hi", "user"), ASKS, GETS, autogen("StopMessage", "done")]
    states = {"bot": {"agent_state": {}}, "RoundRobinGroupChatManager": {"message_thread": thread}}
    response = read_reply({"type": "TeamState", "agent_states": states})
    assert (told(response), response.text) == ([("f", {}, "x", "ok")], "done")


def test_autogen_a_summary_tells_the_calls_whose_events_are_missing() -> None:
    summary = autogen("ToolCallSummaryMessage", "x", tool_calls=ASKS["content"], results=GETS["content"])
    assert told(read_reply([autogen("TextMessage", "hi", "user"), summary])) == [("f", {}, "x", "ok")]


def test_autogen_a_thought_belongs_to_what_comes_after_it() -> None:
    (message,) = read_reply([autogen("ThoughtEvent", "hm"), autogen("TextMessage", "done")]).output_messages or ()
    assert (message.content, (message.metadata or {})["thought"]) == ("done", "hm")


def test_autogen_an_event_of_no_known_type_is_reported() -> None:
    assert read_reply([autogen("TextMessage", "done"), autogen("ToolCallStreamEvent", [{"x": 1}])]).unread


def test_autogen_a_structured_answer_is_json() -> None:
    assert read_reply([autogen("StructuredMessage[Answer]", {"city": "Paris"})]).text == '{"city":"Paris"}'


# AG2


def ag2(kind: str, **fields: Any) -> dict[str, Any]:
    return {"__event__": f"ag2.events.{kind}", "created_at": 1.0, **fields}


def test_ag2_a_tool_that_is_not_there_is_an_error() -> None:
    calls = ag2("ToolCallsEvent", calls=[ag2("ToolCallEvent", id="c1", name="f", arguments="{}")])
    events = [
        ag2("ModelRequest", parts=[ag2("TextInput", content="hi")]),
        ag2("ModelResponse", message=None, tool_calls=calls, usage=None),
        ag2("ToolNotFoundErrorEvent", parent_id="c1", name="f", error="no such tool", result=None),
        ag2("ModelResponse", message=ag2("ModelMessage", content="sorry"), tool_calls=None, usage=None),
    ]
    response = read_reply(events)
    assert told(response) == [("f", {}, None, "error")]
    assert (response.text, response.tokens_usage, response.unread) == ("sorry", None, ())
    assert read_reply([*events, ag2("SomethingNew", tool={"name": "g"})]).unread


def test_ag2_classic_a_conversation_that_an_assistant_begins_is_not_turned_round() -> None:
    said = [{"role": "assistant", "name": "greeter", "content": "Hi"}, {"role": "user", "name": "bob", "content": "Yo"}]
    assert read_reply(said).text == "Hi"


def test_ag2_classic_the_asker_may_have_any_name_where_a_result_tells() -> None:
    history = [
        {"role": "assistant", "name": "customer", "content": "hi"},
        {"role": "user", "name": "clerk", "content": "hello"},
    ]
    response = read_reply({"chat_id": 1, "chat_history": history, "summary": "hello", "cost": {}})
    assert (response.text, calls_of(response), response.tokens_usage) == ("hello", [], None)


# Agent Framework


def update(*contents: dict[str, Any], role: str = "assistant", **fields: Any) -> dict[str, Any]:
    return {"type": "agent_response_update", "role": role, "contents": list(contents), **fields}


def test_agent_framework_pieces_of_texts_and_arguments_are_joined() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "f"}
    events = [
        update({**call, "arguments": '{"x"'}, message_id="m1"),
        update({**call, "name": "", "arguments": ": 1}"}, message_id="m1"),
        update({"type": "function_result", "call_id": "c1", "result": "y", "exception": "boom"}, role="tool"),
        update({"type": "text", "text": "do"}, message_id="m2"),
        update({"type": "text", "text": "ne"}, message_id="m2"),
        update({"type": "usage", "usage_details": {"input_token_count": 3, "output_token_count": 4}}),
    ]
    response = read_reply(events)
    assert told(response) == [("f", {"x": 1}, "y", "error")]
    assert (response.text, total(response), response.unread) == ("done", 7, ())


@pytest.mark.parametrize(("approved", "status"), [(True, None), (False, "denied")])
def test_agent_framework_an_answer_settles_what_was_asked(approved: bool, status: str | None) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    question = {"type": "function_approval_request", "function_call": call}
    answer = {"type": "function_approval_response", "function_call": call, "approved": approved}
    messages = [
        {"type": "message", "role": "user", "contents": [{"type": "text", "text": "hi"}]},
        {"type": "message", "role": "assistant", "contents": [question]},
        {"type": "message", "role": "user", "contents": [answer]},
        {"type": "message", "role": "assistant", "contents": [{"type": "text", "text": "done"}]},
    ]
    response = read_reply(messages)
    assert (told(response), response.echo_end) == ([("f", {}, UNSET, status)], None)


# Haystack


def test_haystack_the_messages_of_a_pipeline_s_component_are_found() -> None:
    reply = {"role": "assistant", "name": None, "meta": {"usage": USAGE}, "content": [{"text": "done"}]}
    response = read_reply({"llm": {"replies": [reply]}, "joiner": {"values": [1]}})
    assert (response.text, total(response), calls_of(response)) == ("done", 7, [])


def test_haystack_a_part_of_no_known_kind_is_reported() -> None:
    assert read_reply([{"role": "assistant", "meta": {}, "content": [{"text": "x"}, {"tool_use_v2": {"a": 1}}]}]).unread


# LlamaIndex


def test_llama_index_the_sources_of_a_chat_response_are_calls() -> None:
    source = {"content": "18 C", "tool_name": "f", "raw_input": {"args": [], "kwargs": {"x": 1}}, "raw_output": "18 C"}
    response = read_reply({"response": "done", "sources": [{**source, "is_error": False}], "source_nodes": []})
    assert (told(response), response.text) == ([("f", {"x": 1}, "18 C", "ok")], "done")


def test_llama_index_the_last_event_repeats_the_output_and_is_read_once() -> None:
    output = {"response": {"role": "assistant", "blocks": [{"block_type": "text", "text": "done"}]}, "tool_calls": []}
    events = [
        {"type": "AgentStream", "event": {"delta": "do", "response": "do", "current_agent_name": "a"}},
        {"type": "AgentOutput", "event": output},
        {"type": "StopEvent", "event": {"result": output}},
    ]
    response = read_reply(events)
    assert ([message.content for message in response.output_messages or ()], response.unread) == (["done"], ())


# Inspect


def test_inspect_arguments_that_did_not_parse_are_told() -> None:
    call = {"id": "c1", "function": "f", "arguments": {}, "type": "function", "parse_error": "bad JSON"}
    (found,) = calls_of(read_reply([{"role": "assistant", "content": "", "tool_calls": [call]}]))
    assert (found.tool, (found.metadata or {})["arguments_error"]) == ("f", "bad JSON")


# CrewAI


def test_crewai_all_tasks_are_read_and_a_call_that_is_written_as_text_is_reported() -> None:
    def task(*added: dict[str, Any]) -> dict[str, Any]:
        return {"raw": "x", "agent": "a", "messages": [{"role": "user", "content": "do it"}, *added]}

    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    first = task({"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1"})
    second = task({"role": "assistant", "content": "done"})
    crew = {"raw": "done", "tasks_output": [first, second], "token_usage": USAGE}
    response = read_reply(crew)
    assert ([call.tool for call in calls_of(response)], response.text, response.unread) == (["f"], "done", ())
    written = task({"role": "assistant", "content": "Thought: hm\nAction: f\nAction Input: {}"})
    assert read_reply({**crew, "tasks_output": [first, written]}).unread


# smolagents


def test_smolagents_which_of_several_calls_failed_is_not_guessed() -> None:
    calls = [{"id": f"c{at}", "type": "function", "function": {"name": "f", "arguments": {"x": at}}} for at in (1, 2)]
    step = {
        "step_number": 1,
        "model_output_message": {"role": "assistant", "content": None, "tool_calls": calls},
        "tool_calls": [],
        "error": {"type": "AgentToolExecutionError", "message": "boom"},
        "observations": None,
    }
    assert told(read_reply([{"task": "hi"}, step])) == [("f", {"x": 1}, UNSET, None), ("f", {"x": 2}, UNSET, None)]


# DSPy


def test_dspy_a_step_that_was_broken_off_has_no_output() -> None:
    trajectory = {"thought_0": "hm", "tool_name_0": "f", "tool_args_0": {"x": 1}}
    response = read_reply({"trajectory": trajectory, "reasoning": "hm", "city": "Paris", "degrees": 18})
    assert (told(response), response.text) == ([("f", {"x": 1}, UNSET, None)], "Paris")


# ATIF


def test_atif_what_is_not_counted_is_unknown() -> None:
    steps = [{"step_id": 1, "source": "agent", "message": "done"}, "broken"]
    response = read_reply({"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": steps})
    assert (response.text, response.tokens_usage, len(response.unread)) == ("", None, 1)


# Agno


def agno(role: str, **fields: Any) -> dict[str, Any]:
    return {"role": role, "from_history": False, "stop_after_tool_call": False, "content": None, **fields}


def test_agno_messages_of_earlier_runs_are_left_out_and_a_failed_run_is_one() -> None:
    call = {"id": "c0", "type": "function", "function": {"name": "old", "arguments": "{}"}}
    messages = [
        agno("assistant", tool_calls=[call], from_history=True),
        agno("user", content="hi"),
        agno("assistant", content="done", metrics={"input_tokens": 5, "output_tokens": 2}),
    ]
    assert (calls_of(read_reply(messages)), total(read_reply(messages))) == ([], 7)
    run = {"run_id": "r", "agent_id": "a", "session_id": "s", "content": "no key", "messages": messages}
    response = read_reply({**run, "status": "ERROR"})
    assert (response.success, response.error is not None, response.thread_id) == (False, True, "s")


# LangGraph and LangChain


def langchain(kind: str, content: Any, own_id: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "content": content, "id": own_id, **fields}


CALLING = langchain("ai", "", "m1", tool_calls=[{"name": "f", "args": {}, "id": "c1", "type": "tool_call"}])


def test_langgraph_calls_that_a_later_state_no_longer_holds_stay() -> None:
    states = [{"messages": [CALLING]}, {"messages": [langchain("ai", "a summary", "m2")]}]
    assert ([call.tool for call in calls_of(read_reply(states))], read_reply(states).text) == (["f"], "a summary")


def test_langgraph_the_events_of_a_subgraph_are_read() -> None:
    events = [
        StreamEvent({"agent": {"messages": [CALLING]}}, "updates|sub:1"),
        StreamEvent({"agent": {"messages": [langchain("ai", "done", "m2")]}}, "updates"),
    ]
    found = read_events(events)
    assert found is not None
    assert ([call.tool for call in calls_of(found.response)], found.response.text) == (["f"], "done")


def test_langchain_the_chunks_of_a_model_are_one_message() -> None:
    piece = {"name": "f", "args": '{"x"', "id": "c1", "index": 0, "type": "tool_call_chunk"}
    more = {"name": None, "args": ": 1}", "id": None, "index": 0, "type": "tool_call_chunk"}
    chunks = [
        langchain("AIMessageChunk", "do", "m1", tool_call_chunks=[]),
        langchain("AIMessageChunk", "ne", "m1", tool_call_chunks=[piece]),
        langchain("AIMessageChunk", "", "m1", tool_call_chunks=[more]),
    ]
    response = read_reply(chunks)
    assert (told(response), response.text) == ([("f", {"x": 1}, UNSET, None)], "done")


# OpenAI Agents, pydantic-ai, ADK, MCP


def test_openai_agents_a_stream_without_items_is_read_by_the_model_s_own_events() -> None:
    item = {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "f", "arguments": "{}"}
    whole = {"object": "response", "id": "r1", "status": "completed", "output": [item]}
    events = [{"type": "raw_response_event", "data": {"type": "response.completed", "response": whole}}]
    assert [call.tool for call in calls_of(read_reply(events))] == ["f"]


def test_pydantic_ai_a_stream_without_a_result_is_read_by_its_whole_parts() -> None:
    call = {"part_kind": "tool-call", "tool_name": "f", "args": "{}", "tool_call_id": "c1"}
    result = {"part_kind": "tool-return", "tool_name": "f", "content": "x", "tool_call_id": "c1", "outcome": "success"}
    events = [
        {"event_kind": "part_end", "index": 0, "part": call},
        {"event_kind": "function_tool_call", "part": call},
        {"event_kind": "function_tool_result", "part": result},
        {"event_kind": "part_end", "index": 0, "part": {"part_kind": "text", "content": "done"}},
    ]
    response = read_reply(events)
    assert (told(response), response.text, response.unread) == ([("f", {}, "x", "ok")], "done", ())


def test_adk_a_call_that_was_allowed_is_like_any_other() -> None:
    def event(*parts: dict[str, Any], role: str = "model", **actions: Any) -> dict[str, Any]:
        return {"author": "a", "content": {"role": role, "parts": list(parts)}, "actions": actions}

    call, name = {"id": "c1", "name": "f", "args": {}}, "adk_request_confirmation"
    question = {"id": "q1", "name": name, "args": {"originalFunctionCall": call, "toolConfirmation": {}}}
    waits = {"function_response": {"id": "c1", "name": "f", "response": {"error": "requires confirmation"}}}
    events = [
        event({"function_call": call}),
        event({"function_call": question}),
        event(waits, role="user", requested_tool_confirmations={"c1": {}}),
        event({"function_response": {"id": "q1", "name": name, "response": {"confirmed": True}}}, role="user"),
        event({"function_response": {"id": "c1", "name": "f", "response": {"result": "x"}}}, role="user"),
        event({"text": "done"}),
    ]
    response = read_reply(events)
    assert (told(response), response.text, response.unread) == ([("f", {}, "x", None)], "done", ())


def test_mcp_a_result_without_a_text_is_its_structured_content() -> None:
    response = read_reply({"content": [], "structuredContent": {"x": 1}, "isError": False})
    assert (response.text, response.output_messages, response.success) == ('{"x":1}', None, True)


# What people write by hand


def test_several_whole_replies_with_the_results_between_them_are_one_conversation() -> None:
    def turn(**message: Any) -> dict[str, Any]:
        return {"choices": [{"message": {"role": "assistant", **message}}], "usage": USAGE}

    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    replies = [
        turn(content=None, tool_calls=[call]),
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
        turn(content="done"),
    ]
    response = read_reply(replies)
    assert (told(response), response.text, total(response)) == ([("f", {}, "x", None)], "done", 14)
    replies[2].pop("usage")
    assert read_reply(replies).tokens_usage is None


def test_calls_beside_the_answer_are_read_or_reported_and_never_lost() -> None:
    assert detect_reply({"answer": "x", "tools_used": ["f", "g"]}).shape == "calls_beside"
    assert read_reply({"answer": "x", "tools_used": ["I used f and then g"]}).unread
    assert read_reply({"answer": "x", "intermediate_steps": [[{"log": "?"}, "y"]]}).unread
    own = {"role": "assistant", "content": "x", "tool_calls": [{"tool": "f", "id": "c1"}]}
    other = [{"name": "g", "args": {}, "id": "c2"}]
    assert read_reply({"messages": [own], "tool_calls": other}).unread
    assert [call.tool for call in calls_of(read_reply({"text": "x", "tool_calls": other}))] == ["g"]


def test_usage_on_messages_is_summed_and_one_that_lacks_it_makes_the_sum_unknown() -> None:
    said = [
        {"role": "assistant", "content": "a", "usage": USAGE},
        {"role": "assistant", "content": "b", "usage": USAGE},
    ]
    assert total(read_reply(said)) == 14
    assert read_reply([*said, {"role": "assistant", "content": "c"}]).tokens_usage is None
