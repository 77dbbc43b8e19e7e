"""Calls that several spans tell: events of pydantic-ai in an attribute, ids in histories, and parallel agents."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentv.model.session import Session
from tests.support.traces import calls, chat, read_one, request, result, results, said, span, tool, user, write_lines

SYSTEM = {"event.name": "gen_ai.system.message", "role": "system", "content": "You add."}
ASKED = {"event.name": "gen_ai.user.message", "role": "user", "content": "add things"}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
CALLED = {"role": "assistant", "tool_calls": [CALL]}
TOLD = {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "name": "add", "content": 3}
DONE = {"role": "assistant", "content": "done"}
AGENT = {"agent_name": "math", "model_name": "m", "final_result": "done"}
CHOICE = {"event.name": "gen_ai.choice", "index": 0}
HISTORY = {"event.name": "gen_ai.assistant.message"}


def session_of(tmp_path: Path, *spans: Any, scope: str = "pydantic-ai") -> Session:
    return read_one(write_lines(tmp_path / "traces.jsonl", [request(*spans, scope=scope)]))


def model(number: int, start: int, end: int, events: Any) -> Any:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "events": events}
    return span(number, "chat m", start, end, attributes=attributes, parent=1)


def agent(**attributes: Any) -> Any:
    return span(1, "agent run", 0, 9, attributes={**AGENT, **attributes})


def test_events_in_an_attribute_of_a_model_are_its_messages(tmp_path: Path) -> None:
    session = session_of(
        tmp_path,
        agent(),
        model(2, 1, 2, json.dumps([SYSTEM, ASKED, {**CHOICE, "message": CALLED}])),
        tool(3, "add", 3, 4, parent=1, attributes={"gen_ai.tool.call.id": "c1", "tool_response": "3"}),
        model(4, 5, 6, json.dumps([SYSTEM, ASKED, {**HISTORY, **CALLED}, TOLD, {**CHOICE, "message": DONE}])),
    )
    assert [message.role for message in session.messages] == ["system", "user", "assistant", "assistant"]
    assert results(session) == [("add", 3, "ok")]
    assert session.response.text == "done"
    assert session.agent == "math"
    assert not session.response.unread


def test_a_call_that_only_the_events_tell_is_a_call(tmp_path: Path) -> None:
    session = session_of(tmp_path, agent(), model(2, 1, 2, json.dumps([ASKED, {**CHOICE, "message": CALLED}])))
    assert calls(session) == [("add", {"a": 1})]


def test_thoughts_in_events_are_no_answer(tmp_path: Path) -> None:
    content = [{"kind": "thinking", "text": "hm"}, {"kind": "text", "text": "It is 3."}]
    done = {**CHOICE, "message": {"role": "assistant", "content": content}}
    assert session_of(tmp_path, agent(), model(2, 1, 2, json.dumps([ASKED, done]))).response.text == "It is 3."


def test_events_that_were_cut_off_make_calls_unknown(tmp_path: Path) -> None:
    text = json.dumps([ASKED, {**CHOICE, "message": CALLED}])
    session = session_of(tmp_path, agent(), model(2, 1, 2, text[:-20]))
    assert "`events` is no valid JSON" in session.response.unread[0].reason


def test_events_of_an_agent_whose_models_have_no_spans_are_its_conversation(tmp_path: Path) -> None:
    events = [SYSTEM, ASKED, {**HISTORY, **CALLED}, TOLD, {**HISTORY, **DONE}]
    session = session_of(tmp_path, agent(all_messages_events=json.dumps(events)))
    assert calls(session) == [("add", {"a": 1})]
    assert session.response.text == "done"
    assert not session.response.unread


@pytest.mark.parametrize("arguments", [{"a": 1}, None])
def test_a_call_of_an_earlier_trace_is_none_of_this_one_although_both_are_equal(tmp_path: Path, arguments: Any) -> None:
    def call(call_id: str) -> Any:
        written = said(None, (call_id, "add", arguments))
        if arguments is None:
            del written["parts"][0]["arguments"]
        return written

    earlier = [user("first"), call("old"), result("old", 3), said("done"), user("more")]
    session = session_of(
        tmp_path,
        chat(1, 0, 1, [call("new")], earlier),
        tool(2, "add", 2, 3, attributes={"gen_ai.tool.call.id": "new"}),
        chat(3, 4, 5, [said("done")], [*earlier, call("new"), result("new", 3)]),
    )
    assert [call.id for message in session.input_messages for call in message.tool_calls] == ["old"]
    assert [call.id for message in session.response.output_messages or () for call in message.tool_calls] == ["new"]


def test_an_agent_that_failed_after_its_last_calls_is_a_failure(tmp_path: Path) -> None:
    root = span(1, "workflow", 0, 9, attributes={"gen_ai.operation.name": "invoke_workflow"})
    failed = span(2, "agent", 0, 8, parent=1, failed=True, attributes={"gen_ai.operation.name": "invoke_agent"})
    failed["status"]["message"] = "Max turns exceeded"
    model = chat(3, 1, 2, [said(None, ("c1", "add", {}))], [user("add things")], parent=2)
    session = session_of(tmp_path, root, failed, model, tool(4, "add", 3, 4, parent=2))
    assert session.response.error is not None
    assert session.response.error.message == "Max turns exceeded"
    answered = session_of(tmp_path, root, failed, model, chat(5, 5, 6, [said("done")], parent=2))
    assert answered.response.error is None


def test_parallel_agents_whose_calls_have_the_same_ids_ask_twice(tmp_path: Path) -> None:
    def agent_of(number: int) -> Any:
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"a{number}"}
        return span(number, f"invoke_agent a{number}", 0, 9, attributes=attributes)

    for second in (1, 2):
        session = session_of(
            tmp_path,
            agent_of(1),
            agent_of(2),
            chat(3, 1, 3, [said(None, ("add_0", "add", {"a": 1}))], parent=1),
            chat(4, 2, 4, [said(None, ("add_0", "add", {"a": second}))], parent=2),
        )
        assert calls(session) == [("add", {"a": 1}), ("add", {"a": second})]
        assert session.response.tokens_usage is not None
        assert session.response.tokens_usage.input_tokens == 20


def adk_model(number: int, start: int, end: int, part: dict[str, Any], **fields: Any) -> Any:
    attributes = {
        "gen_ai.system": "gcp.vertex.agent",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
        "gcp.vertex.agent.llm_response": json.dumps({"content": {"role": "model", "parts": [part]}}),
    }
    return span(number, "call_llm", start, end, attributes=attributes, **fields)


def test_models_of_a_subagent_are_not_parts_of_the_model_that_asked_for_it(tmp_path: Path) -> None:
    """In early versions of ADK the span of a model contains the tools and agents that it asked for."""
    session = session_of(
        tmp_path,
        span(1, "agent_run [outer]", 0, 9),
        adk_model(2, 1, 7, {"functionCall": {"name": "helper", "args": {}}}, parent=1),
        tool(3, "helper", 2, 6, parent=2),
        span(4, "agent_run [helper]", 3, 5, parent=3),
        adk_model(5, 3, 4, {"functionCall": {"name": "add", "args": {"a": 1}}}, parent=4),
        adk_model(6, 4, 5, {"text": "3"}, parent=4),
        adk_model(7, 8, 9, {"text": "It is 3."}, parent=1),
        scope="gcp.vertex.agent",
    )
    assert calls(session) == [("helper", {}), ("add", {"a": 1})]
    assert session.response.text == "It is 3."
    assert session.agent == "outer"
    assert session.response.tokens_usage is not None
    assert session.response.tokens_usage.input_tokens == 40


def test_a_tool_of_adk_that_failed_is_one_although_its_span_has_no_attributes(tmp_path: Path) -> None:
    failed = span(3, "execute_tool crash", 2, 3, parent=2, failed=True)
    failed["status"]["message"] = "no key"
    root = span(1, "invocation", 0, 9, failed=True)
    root["status"]["message"] = "no key"
    session = session_of(
        tmp_path,
        root,
        adk_model(2, 1, 7, {"functionCall": {"name": "crash", "args": {"a": 1}}}, parent=1),
        failed,
        scope="gcp.vertex.agent",
    )
    assert [status for _, _, status in results(session)] == ["error"]
    assert session.response.error is not None
    assert session.response.error.message == "no key"


@pytest.mark.parametrize("role", [True, {}, 7])
@pytest.mark.parametrize("convention", ["openinference", "traceloop", "genai"])
def test_a_role_that_is_no_text_begins_no_turn(convention: str, role: Any, tmp_path: Path) -> None:
    """The calls before it would be a part of the history, and those of the session would vanish."""
    asked = {"role": "user", "content": "add things"}
    prompt: list[Any] = [
        asked,
        CALLED,
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": role, "content": "hm"},
    ]
    attributes: dict[str, Any] = {"gen_ai.operation.name": "chat"}
    if convention == "genai":
        parts = [{"role": role, "parts": [{"type": "text", "content": "hm"}]}]
        attributes |= {"gen_ai.input.messages": [*prompt[:-1], *parts], "gen_ai.output.messages": [said("done")]}
    elif convention == "traceloop":
        attributes |= {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "done"}
        for at, message in enumerate(prompt):
            attributes |= {f"gen_ai.prompt.{at}.{key}": message[key] for key in ("role", "content") if key in message}
        attributes |= {"gen_ai.prompt.1.tool_calls.0.id": "c1", "gen_ai.prompt.1.tool_calls.0.name": "add"}
    else:
        place = "llm.input_messages"
        attributes = {"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant"}
        attributes["llm.output_messages.0.message.content"] = "done"
        for at, message in enumerate(prompt):
            told = {key: message[key] for key in ("role", "content") if key in message}
            attributes |= {f"{place}.{at}.message.{key}": value for key, value in told.items()}
        attributes[f"{place}.1.message.tool_calls.0.tool_call.function.name"] = "add"
    session = session_of(tmp_path, span(1, "chat m", 0, 5, attributes=attributes), scope="test")
    assert [call.tool for message in session.response.output_messages or () for call in message.tool_calls] == ["add"]
