"""Replies of services and of JavaScript libraries, where the samples do not show a variant of them."""

from typing import Any

import pytest
from msgspec import UNSET

from agentv.formats.reader import read_events, read_reply
from agentv.formats.streams import StreamEvent
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse


def calls_of(response: ProviderResponse) -> list[ToolCall]:
    return [call for message in response.output_messages or () for call in message.tool_calls]


def stream(*values: Any) -> ProviderResponse:
    found = read_events([StreamEvent(value) for value in values])
    assert found is not None
    return found.response


def test_a_result_of_the_ai_sdk_4_has_its_calls_beside_the_text() -> None:
    step = {
        "text": "Let me look.",
        "toolCalls": [{"type": "tool-call", "toolCallId": "c1", "toolName": "find", "args": {"q": 1}}],
        "toolResults": [{"type": "tool-result", "toolCallId": "c1", "toolName": "find", "args": {"q": 1}, "result": 2}],
        "finishReason": "tool-calls",
        "usage": {"promptTokens": 3, "completionTokens": 4, "totalTokens": 7},
    }
    last = {"text": "It is 2.", "toolCalls": [], "toolResults": [], "finishReason": "stop", "usage": step["usage"]}
    response = read_reply({"text": "It is 2.", "steps": [step, last], "usage": last["usage"]})
    (call,) = calls_of(response)
    assert (call.tool, call.input, call.output, call.id) == ("find", {"q": 1}, 2, "c1")
    assert response.tokens_usage is not None
    assert response.tokens_usage.total_tokens == 14
    assert not response.unread


def test_a_call_that_only_another_list_of_a_result_tells_is_not_overlooked() -> None:
    step = {"content": [{"type": "text", "text": "Done."}], "finishReason": "stop", "usage": {}}
    hidden = [{"type": "tool-call", "toolCallId": "c9", "toolName": "delete", "input": {}}]
    response = read_reply({"text": "Done.", "steps": [step], "staticToolCalls": hidden})
    assert calls_of(response) == []
    assert response.unread


def test_a_tool_whose_output_looks_like_a_wrapper_keeps_it() -> None:
    output = {"type": "text", "value": "x"}
    content = [
        {"type": "tool-call", "toolCallId": "c1", "toolName": "find", "input": {}},
        {"type": "tool-result", "toolCallId": "c1", "toolName": "find", "input": {}, "output": output},
    ]
    (call,) = calls_of(read_reply({"steps": [{"content": content, "finishReason": "stop", "usage": {}}]}))
    assert call.output == output


def test_a_result_that_answers_a_call_of_the_request_is_understood() -> None:
    answer = {
        "type": "tool-result",
        "toolCallId": "c1",
        "toolName": "delete",
        "output": {"type": "text", "value": "ok"},
    }
    messages = [{"role": "tool", "content": [answer]}, {"role": "assistant", "content": "Deleted."}]
    step = {"content": [{"type": "text", "text": "Deleted."}], "finishReason": "stop", "usage": {}}
    reply = {"steps": [{**step, "response": {"messages": messages}}]}
    asked = [
        Message(role="user", content="Yes."),
        Message(role="assistant", tool_calls=(ToolCall(tool="delete", id="c1"),)),
    ]
    assert read_reply(reply).unread
    assert not read_reply(reply, asked).unread


def test_an_approval_among_the_blocks_of_a_message_makes_its_call_wait() -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "delete", "input": {"id": 1}}
    request = {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"}
    asking = {"role": "assistant", "content": [call, request]}
    (waiting,) = calls_of(read_reply([asking]))
    assert waiting.status == "pending"
    answered = [
        asking,
        {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "a1", "approved": True}]},
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c1",
                    "toolName": "delete",
                    "output": {"type": "json", "value": 1},
                }
            ],
        },
    ]
    response = read_reply(answered)
    (done,) = calls_of(response)
    assert (done.status, done.output, response.unread) == (None, 1, ())


def test_the_full_stream_of_the_ai_sdk_is_read() -> None:
    response = stream(
        {"type": "start"},
        {"type": "start-step", "request": {}},
        {"type": "tool-call", "toolCallId": "c1", "toolName": "find", "input": {"q": 1}},
        {"type": "tool-error", "toolCallId": "c1", "toolName": "find", "input": {"q": 1}, "error": "no"},
        {"type": "finish-step", "usage": {"inputTokens": 1, "outputTokens": 1}},
        {"type": "start-step", "request": {}},
        {"type": "text-start", "id": "0"},
        {"type": "text-delta", "id": "0", "text": "Sorry."},
        {"type": "finish", "finishReason": "stop", "totalUsage": {"inputTokens": 5, "outputTokens": 6}},
    )
    (call,) = calls_of(response)
    assert (call.tool, call.status, call.error, response.text) == ("find", "error", "no", "Sorry.")
    assert response.tokens_usage is not None
    assert response.tokens_usage.total_tokens == 11
    assert not response.unread


def test_chunks_of_mastra_are_read_out_of_their_payload() -> None:
    response = stream(
        {"type": "step-start", "runId": "r", "from": "AGENT", "payload": {}},
        {"type": "tool-call", "payload": {"toolCallId": "c1", "toolName": "find", "args": {"q": 1}}},
        {"type": "tool-result", "payload": {"toolCallId": "c1", "toolName": "find", "result": 2, "isError": True}},
        {"type": "text-delta", "payload": {"id": "t", "text": "No."}},
        {"type": "finish", "payload": {"output": {"usage": {"inputTokens": 1, "outputTokens": 2}}}},
    )
    (call,) = calls_of(response)
    assert (call.input, call.output, call.status, response.text) == ({"q": 1}, 2, "error", "No.")
    assert response.tokens_usage is not None
    assert response.tokens_usage.input_tokens == 1


def test_an_error_in_a_ui_stream_is_a_failure() -> None:
    response = stream({"type": "start-step"}, {"type": "error", "errorText": "overloaded"}, {"type": "finish"})
    assert not response.success
    assert response.error is not None
    assert response.error.message == "overloaded"


def test_tokens_of_letta_are_put_together() -> None:
    pieces = ['{"q"', ": 1}"]
    events: list[dict[str, Any]] = [
        {
            "message_type": "tool_call_message",
            "id": "m1",
            "tool_call": {"name": "find", "arguments": p, "tool_call_id": "c"},
        }
        for p in pieces
    ]
    events += [{"message_type": "assistant_message", "id": "m2", "content": word} for word in ("Good ", "day.")]
    response = stream(*events, {"message_type": "stop_reason", "stop_reason": "end_turn"})
    (call,) = calls_of(response)
    assert (call.tool, call.input, response.text) == ("find", {"q": 1}, "Good day.")
    assert not response.unread


def test_a_message_of_letta_of_an_unknown_type_may_hold_calls() -> None:
    messages = [
        {"message_type": "assistant_message", "id": "m", "content": "Hello."},
        {"message_type": "robot_message", "id": "n"},
    ]
    assert [each.path for each in read_reply(messages).unread] == ["messages[1]"]
    assert read_reply({"messages": messages}).unread


def test_a_call_that_was_allowed_waits_no_longer() -> None:
    request = {"name": "delete", "arguments": "{}", "tool_call_id": "c1"}
    messages = [
        {"message_type": "approval_request_message", "id": "m1", "tool_call": request},
        {"message_type": "approval_response_message", "id": "m2", "approve": True, "approval_request_id": "m1"},
        {
            "message_type": "tool_return_message",
            "id": "m3",
            "tool_call_id": "c1",
            "tool_return": "ok",
            "status": "success",
        },
    ]
    (call,) = calls_of(read_reply({"messages": messages}))
    assert (call.status, call.output) == ("ok", "ok")


def test_an_entry_of_mistral_of_an_unknown_type_may_hold_calls() -> None:
    outputs = [
        {"object": "entry", "type": "message.output", "content": "Hello."},
        {"object": "entry", "type": "robot.action"},
    ]
    response = read_reply({"object": "conversation.response", "conversation_id": "v", "outputs": outputs})
    assert (response.text, [each.path for each in response.unread]) == ("Hello.", ["outputs[1]"])


def test_a_stream_of_mistral_that_was_cut_off_may_lack_calls() -> None:
    response = stream(
        {"type": "conversation.response.started", "conversation_id": "v"},
        {"type": "message.output.delta", "id": "m", "output_index": 0, "content": "Hel"},
        {"type": "message.output.delta", "id": "m", "output_index": 0, "content": "lo."},
    )
    assert (response.text, response.thread_id) == ("Hello.", "v")
    assert response.unread


def test_an_interaction_that_failed_is_a_failure() -> None:
    response = read_reply({"object": "interaction", "id": "i", "status": "failed", "created": "2026", "steps": []})
    assert response.error is not None
    assert response.error.message == "the interaction is failed"


def test_words_of_cohere_are_put_together() -> None:
    response = stream(
        {"type": "message-start", "id": "r", "delta": {"message": {"role": "assistant"}}},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "Hel"}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "lo."}}}},
        {"type": "content-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {"tokens": {"input_tokens": 1.0}}}},
    )
    assert (response.text, calls_of(response), response.unread) == ("Hello.", [], ())


def test_of_two_calls_of_one_tool_dify_tells_one_input() -> None:
    thought = {
        "event": "agent_thought",
        "task_id": "t",
        "id": "h",
        "tool": "find;find",
        "tool_input": '{"find": {"q": 2}}',
        "observation": '{"find": "two"}',
    }
    response = stream(thought, {"event": "message_end", "task_id": "t"})
    first, second = calls_of(response)
    assert (first.input, first.output) == (UNSET, UNSET)
    assert (second.input, second.output) == ({"q": 2}, "two")


def test_a_chat_app_of_dify_tells_nothing_about_calls() -> None:
    events = [{"event": "message", "task_id": "t", "answer": word} for word in ("Hel", "lo.")]
    response = stream(*events, {"event": "message_end", "task_id": "t"})
    assert (response.text, response.output_messages, response.unread) == ("Hello.", None, ())


def test_a_log_of_an_agent_of_dify_is_not_overlooked() -> None:
    log = {"event": "agent_log", "task_id": "t", "data": {"label": "CALL find"}}
    response = stream(
        {"event": "message", "task_id": "t", "answer": "x"}, log, {"event": "message_end", "task_id": "t"}
    )
    assert [call.tool for call in calls_of(response)] == ["find"]


def test_a_call_that_flowise_tells_twice_is_one() -> None:
    tools = [{"tool": "find", "toolInput": {"q": 1}, "toolOutput": "x"}, None]
    reply = {"text": "x", "chatId": "c", "usedTools": tools, "agentReasoning": [{"agentName": "a", "usedTools": tools}]}
    assert len(calls_of(read_reply(reply))) == 1
    assert len(calls_of(read_reply({**reply, "usedTools": [*tools, *tools]}))) == 2


@pytest.mark.parametrize("tools", [{"0": {"tool": "find", "toolInput": {}}}, ["find"]])
def test_tools_of_flowise_that_are_no_list_of_calls_are_not_overlooked(tools: Any) -> None:
    assert read_reply({"text": "x", "chatId": "c", "chatMessageId": "m", "usedTools": tools}).unread


def test_a_stream_of_flowise_is_put_together() -> None:
    events = [
        {"event": "start", "data": ""},
        {"event": "token", "data": "Good "},
        {"event": "usedTools", "data": [{"tool": "find", "toolInput": {"q": 1}, "toolOutput": "x"}]},
        {"event": "token", "data": "day."},
        {"event": "metadata", "data": {"chatId": "c", "chatMessageId": "m", "sessionId": "s"}},
        {"event": "end", "data": "[DONE]"},
    ]
    response = stream(*events)
    (call,) = calls_of(response)
    assert (call.tool, call.output, response.text, response.thread_id) == ("find", "x", "Good day.", "s")
    assert not response.unread
    assert stream(*events, {"event": "robot", "data": {}}).unread


def test_a_step_of_n8n_without_an_action_is_not_overlooked() -> None:
    assert read_reply([{"output": "x", "intermediateSteps": ["find"]}]).unread


def test_calls_in_the_metadata_of_a_task_are_not_overlooked() -> None:
    task = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}}
    artifact = {"artifactId": "a", "parts": [{"kind": "text", "text": "Done."}]}
    plain = read_reply({**task, "artifacts": [artifact], "metadata": {"trace_id": "x"}})
    assert (plain.text, plain.output_messages, plain.unread) == ("Done.", None, ())
    assert read_reply({**task, "artifacts": [artifact], "metadata": {"tool_calls": [{"name": "find"}]}}).unread


def test_a_task_that_failed_is_a_failure_with_its_words() -> None:
    words = {"messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "No credit."}]}
    response = read_reply({"kind": "task", "id": "t", "status": {"state": "failed", "message": words}})
    assert not response.success
    assert response.error is not None
    assert (response.text, response.error.message) == ("No credit.", "No credit.")


def test_reasoning_that_a_total_counts_apart_is_part_of_the_output() -> None:
    usage: dict[str, Any] = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 15}
    usage["completion_tokens_details"] = {"reasoning_tokens": 3}
    message = {"role": "assistant", "content": "x"}
    response = read_reply({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})
    assert response.tokens_usage is not None
    assert response.tokens_usage.output_tokens == 5


@pytest.mark.parametrize(
    ("export", "name"),
    [
        ([{"resourceSpans": [{}]}], "OTLP"),
        ({"version": 2, "status": "success", "eval": {"task": "t"}, "samples": []}, "Inspect"),
        ([{"id": "o", "traceId": "t", "type": "TOOL", "parentObservationId": None}], "Langfuse"),
        ({"spans": [{"spanId": "s", "traceId": "t", "name": "n", "attributes": {}}]}, "OpenTelemetry spans"),
    ],
)
def test_an_export_of_a_tracing_system_is_refused_by_its_name(export: Any, name: str) -> None:
    response = read_reply(export)
    assert response.error is not None
    assert response.error.kind == "protocol"
    assert name in response.error.message
