"""Are the lines of programs, and the replies of AWS and of the Assistants API, read where no sample shows them?"""

import json
from typing import Any

import pytest

from agentv.formats.reader import detect_reply, read_reply
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse, TokensUsage

SESSION = {"session_id": "s1"}


def calls(response: ProviderResponse) -> list[ToolCall]:
    return [call for message in response.output_messages or () for call in message.tool_calls]


def assistant(*blocks: dict[str, Any], own_id: str = "m1", **fields: Any) -> dict[str, Any]:
    message = {"id": own_id, "role": "assistant", "content": list(blocks)}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, **SESSION, **fields}


def use(call_id: str = "t1", name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": "done", **SESSION, **fields}


INIT = {"type": "system", "subtype": "init", "tools": ["Bash"], **SESSION}


# Claude Code


def test_lines_of_one_message_are_one_message_and_a_repeated_call_is_one() -> None:
    lines = [INIT, assistant(use()), assistant(use("t2")), assistant(use()), result()]
    response = read_reply(lines)
    assert [call.id for call in calls(response)] == ["t1", "t2"]
    assert len(response.output_messages or ()) == 1
    assert not response.unread


def test_a_run_without_its_result_is_cut_off() -> None:
    assert read_reply([INIT, assistant({"type": "text", "text": "I begin."})]).unread


def test_a_call_that_only_pieces_tell_is_missing() -> None:
    piece = {"type": "content_block_start", "content_block": use("t9")}
    lines = [INIT, {"type": "stream_event", "event": piece, "uuid": "u", **SESSION}, assistant(), result()]
    assert "t9" in str(read_reply(lines).unread[0])


def test_a_line_of_an_unknown_type_is_not_understood() -> None:
    assert read_reply([INIT, {"type": "tool_bundle", **SESSION}, assistant(), result()]).unread


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"subtype": "error_max_turns", "result": None}, "error_max_turns"),
        ({"subtype": "error_during_execution", "errors": ["it broke"], "result": None}, "it broke"),
        ({"is_error": True, "result": "API Error"}, "API Error"),
    ],
)
def test_a_run_that_failed_says_why(fields: dict[str, Any], message: str) -> None:
    response = read_reply([INIT, assistant(use()), result(**fields)])
    assert response.error is not None
    assert response.error.message == message
    assert [call.tool for call in calls(response)] == ["Bash"]


def test_a_session_that_was_kept_is_read_without_the_turns_before() -> None:
    def line(role: str, content: Any) -> dict[str, Any]:
        return {"type": role, "message": {"role": role, "content": content}, "uuid": "u", "sessionId": "s1"}

    lines = [
        line("user", "Hello"),
        line("assistant", [use()]),
        line("user", "And now?"),
        line("assistant", [use("t2")]),
    ]
    response = read_reply(lines, [Message(role="user", content="Hello"), Message(role="user", content="And now?")])
    assert response.thread_id == "s1"
    assert read_reply(lines).echo_end is not None
    assert [call.id for call in calls(read_reply(lines[:2]))] == ["t1"]


def test_blocks_of_the_sdk_are_known_by_the_names_of_their_classes() -> None:
    block = {"type": "ToolUseBlock", "id": "t1", "name": "Read", "input": {"path": "a"}}
    message = {"type": "AssistantMessage", "content": [block], "model": "m", "parent_tool_use_id": None}
    assert calls(read_reply([message])) == [ToolCall(tool="Read", input={"path": "a"}, id="t1")]


def test_messages_without_a_result_cost_what_each_message_cost() -> None:
    usage = {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 5}
    first, second = assistant(use()), assistant(use("t2"), own_id="m2")
    for line in (first, second):
        line["message"]["usage"] = usage
    assert read_reply([first, first, second]).tokens_usage == TokensUsage(
        input_tokens=30, output_tokens=4, total_tokens=34, cache_read_tokens=10
    )


# Cursor


def test_what_a_call_was_given_may_come_with_its_result() -> None:
    def line(subtype: str, body: dict[str, Any]) -> dict[str, Any]:
        call = {"startedAtMs": {"a": 1}, "shellToolCall": body}
        return {"type": "tool_call", "subtype": subtype, "call_id": "c1", "tool_call": call, **SESSION}

    over = {"args": {"command": "ls"}, "result": {"success": {"content": "a.txt"}}}
    (call,) = calls(read_reply([line("started", {}), line("completed", over), result(request_id="r")]))
    assert (call.tool, call.input, call.output, call.status) == ("shellToolCall", {"command": "ls"}, "a.txt", "ok")


# Codex


def test_an_item_of_an_unknown_type_is_not_understood() -> None:
    lines = [{"type": "item.completed", "item": {"id": "i1", "type": "robot_arm"}}, {"type": "turn.completed"}]
    assert "robot_arm" in str(read_reply(lines).unread[0])


def test_a_new_kind_of_call_is_a_call() -> None:
    item = {"id": "i1", "type": "image_tool_call", "prompt": "a cat", "status": "completed"}
    (call,) = calls(read_reply([{"type": "item.completed", "item": item}, {"type": "turn.completed"}]))
    assert (call.tool, call.input, call.status) == ("image_tool_call", {"prompt": "a cat"}, "ok")


def test_a_turn_that_goes_on_after_an_error_has_not_failed() -> None:
    said = {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": "Hi."}}
    lines = [{"type": "turn.started"}, {"type": "error", "message": "reconnecting"}, said, {"type": "turn.completed"}]
    response = read_reply(lines)
    assert response.success
    assert response.text == "Hi."
    assert read_reply(lines[:3]).error is not None


def test_the_counter_of_codex_is_not_summed() -> None:
    usage = [{"type": "turn.completed", "usage": {"input_tokens": each, "output_tokens": 1}} for each in (10, 25)]
    found = read_reply([{"type": "thread.started", "thread_id": "t"}, *usage]).tokens_usage
    assert found is not None
    assert found.input_tokens == 25


def test_a_turn_of_the_sdk() -> None:
    item = {"id": "i1", "type": "command_execution", "command": "ls", "aggregated_output": "a", "exit_code": 0}
    turn = {"items": [item], "finalResponse": "One file.", "usage": {"input_tokens": 3, "output_tokens": 1}}
    response = read_reply(turn)
    assert (response.text, [call.output for call in calls(response)]) == ("One file.", ["a"])


def test_a_session_file_holds_items_of_the_responses_api() -> None:
    call = {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "c1"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "a"}
    total = {"total_token_usage": {"input_tokens": 5, "output_tokens": 2}}
    lines = [
        {"type": "session_meta", "payload": {"id": "s1"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": []}},
        *({"type": "response_item", "payload": each} for each in (call, output)),
        {"type": "event_msg", "payload": {"type": "token_count", "info": total}},
    ]
    response = read_reply(lines)
    assert calls(response) == [ToolCall(tool="shell", input={"command": ["ls"]}, output="a", id="c1")]
    assert response.thread_id == "s1"
    assert response.tokens_usage is not None


# Gemini CLI, opencode, Copilot CLI


def test_calls_that_gemini_cli_counts_and_does_not_tell_are_missing() -> None:
    end = {"type": "result", "status": "success", "stats": {"tool_calls": 2}}
    lines = [
        {"type": "init", "session_id": "s", "model": "m"},
        {"type": "message", "role": "assistant", "content": "."},
    ]
    assert read_reply([*lines, end]).unread


def test_an_exported_session_of_opencode() -> None:
    part = {
        "type": "tool",
        "tool": "read",
        "callID": "c1",
        "state": {"status": "completed", "input": {}, "output": "a"},
    }
    info = {"role": "assistant", "sessionID": "ses_1"}
    asked = {"info": {"role": "user", "sessionID": "ses_1"}, "parts": [{"type": "text", "text": "Read it"}]}
    response = read_reply({"info": {"id": "ses_1"}, "messages": [asked, {"info": info, "parts": [part]}]})
    assert [(call.tool, call.output) for call in calls(response)] == [("read", "a")]
    assert [message.role for message in response.output_messages or ()] == ["user", "assistant"]


def test_a_step_of_opencode_that_did_not_end() -> None:
    step = {"type": "step_start", "sessionID": "s", "part": {"type": "step-start"}}
    text = {"type": "text", "sessionID": "s", "part": {"type": "text", "text": "Hm"}}
    assert read_reply([step, text]).unread


def test_a_call_of_copilot_that_was_only_begun_is_missing() -> None:
    piece = {"type": "assistant.tool_call_delta", "data": {"toolCallId": "c1", "toolName": "bash"}}
    said = {"type": "assistant.message", "data": {"content": "Hm", "toolRequests": []}}
    assert "c1" in str(read_reply([piece, said]).unread[0])
    assert not read_reply([{"type": "new_thing.happened", "data": {}}, said]).unread
    assert read_reply([{"type": "assistant.new_thing", "data": {}}, said]).unread


# AWS, Assistants, AG-UI


def test_a_reply_of_converse_with_a_trace_is_no_trace_of_ours() -> None:
    message = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "f", "input": {}}}]}
    reply = {"output": {"message": message}, "stopReason": "tool_use", "trace": {"guardrail": {}}}
    found = detect_reply(reply)
    assert (found.shape, [call.tool for call in calls(found.response)]) == ("bedrock", ["f"])


def test_a_stream_of_converse_that_was_cut_off() -> None:
    start = {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "c1", "name": "f"}}, "contentBlockIndex": 0}}
    delta = {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"a":'}}, "contentBlockIndex": 0}}
    response = read_reply({"stream": [{"messageStart": {"role": "assistant"}}, start, delta]})
    assert [(call.tool, call.input) for call in calls(response)] == [("f", '{"a":')]
    assert response.unread


def test_control_that_is_returned_without_a_trace_tells_only_those_calls() -> None:
    given = {"actionGroup": "g", "function": "f", "parameters": [{"name": "a", "value": "1"}]}
    event = {"returnControl": {"invocationId": "i", "invocationInputs": [{"functionInvocationInput": given}]}}
    response = read_reply([event, {"chunk": {"bytes": ""}}])
    assert [(call.tool, call.input, call.status) for call in calls(response)] == [("f", {"a": "1"}, "pending")]
    assert response.unread


def test_calls_that_strands_counts_and_does_not_tell_are_missing() -> None:
    message = {"role": "assistant", "content": [{"text": "Hi."}]}
    used = {"f": {"tool": {"name": "f"}, "call_count": 1}}
    value = {"stop_reason": "end_turn", "message": message, "metrics": {"tool_metrics": used}}
    assert read_reply(value).unread
    value["metrics"] = {"tool_metrics": {}}
    assert not read_reply(value).unread
    assert read_reply(value).output_messages


def test_a_page_of_steps_that_is_not_the_last_one() -> None:
    step = {"id": "s1", "object": "thread.run.step", "step_details": {"type": "message_creation"}, "thread_id": "t"}
    assert not read_reply({"object": "list", "data": [step], "has_more": False}).unread
    assert read_reply({"object": "list", "data": [step], "has_more": True}).unread


def test_steps_of_one_second_are_in_the_order_of_a_page() -> None:
    def step(own_id: str) -> dict[str, Any]:
        call = {"id": own_id, "type": "function", "function": {"name": own_id, "arguments": "{}"}}
        details = {"type": "tool_calls", "tool_calls": [call]}
        return {"id": own_id, "object": "thread.run.step", "created_at": 1, "step_details": details}

    response = read_reply({"object": "list", "data": [step("second"), step("first")]})
    assert [call.tool for call in calls(response)] == ["first", "second"]


@pytest.mark.parametrize(
    "lines",
    [
        [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}],
        [INIT, result()],
        [{"type": "init", "session_id": "s", "model": "m"}, {"type": "result", "status": "success", "stats": {}}],
    ],
)
def test_lines_are_the_same_as_a_list_and_as_a_text(lines: list[Any]) -> None:
    assert read_reply("\n".join(map(json.dumps, lines))) == read_reply(lines)


def test_a_call_that_only_the_snapshot_of_ag_ui_has_is_read() -> None:
    def call(own_id: str) -> dict[str, Any]:
        return {"role": "assistant", "toolCalls": [{"id": own_id, "function": {"name": "f", "arguments": "{}"}}]}

    user = {"role": "user", "content": "Go on"}
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": [user, call("before"), user, call("now")]}
    text = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "delta": "Done."}
    events = [{"type": "RUN_STARTED", "threadId": "t"}, text, snapshot, {"type": "RUN_FINISHED"}]
    assert [each.id for each in calls(read_reply(events))] == ["now"]
