"""Habits of single emitters: second records of a reply, items of a reply as messages, counts that leave some out."""

import json
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.model.session import Session
from tests.support.traces import (
    calls,
    chat,
    read_one,
    request,
    result,
    results,
    said,
    span,
    tool,
    user,
    write_lines,
)

COUNTS = {"llm.token_count.prompt": 10, "llm.token_count.completion": 2}
CHAT = {"gen_ai.operation.name": "chat"}
CLIENT = {**CHAT, "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}


def session_of(tmp_path: Path, *requests: Any) -> Session:
    return read_one(write_lines(tmp_path / "traces.jsonl", list(requests)))


def scoped(name: str, *spans: Any) -> dict[str, Any]:
    """Return a request with spans of one instrumentation."""
    made = request(*spans)
    made["resourceSpans"][0]["scopeSpans"][0]["scope"]["name"] = name
    return made


def model(number: int, start: int, end: int, attributes: dict[str, Any], **fields: Any) -> Any:
    """Return the span of a model in the form of OpenInference."""
    attributes = {"openinference.span.kind": "LLM", **COUNTS, **attributes}
    return span(number, "messages.create", start, end, attributes=attributes, **fields)


def asked(place: str, call_id: str, value: int) -> dict[str, Any]:
    return {
        f"{place}.id": call_id,
        f"{place}.function.name": "add",
        f"{place}.function.arguments": f'{{"a": {value}}}',
    }


def test_a_call_that_stands_among_the_calls_and_the_contents_is_one_call(tmp_path: Path) -> None:
    place = "llm.output_messages.0.message"
    attributes = {
        f"{place}.role": "assistant",
        **asked(f"{place}.tool_calls.0.tool_call", "c1", 1),
        **asked(f"{place}.tool_calls.1.tool_call", "c2", 1),
        f"{place}.contents.0.message_content.type": "tool_use",
        **asked(f"{place}.contents.0.tool_call", "c1", 1),
        **asked(f"{place}.contents.1.tool_call", "c2", 1),
        **asked(f"{place}.contents.2.tool_call", "c3", 3),
    }
    session = session_of(tmp_path, request(model(1, 0, 5, attributes)))
    assert calls(session) == [("add", {"a": 1}), ("add", {"a": 1}), ("add", {"a": 3})]


@pytest.mark.parametrize("convention", ["openinference", "genai"])
def test_items_of_one_reply_are_one_message_whose_tokens_count_once(tmp_path: Path, convention: str) -> None:
    if convention == "openinference":
        attributes = {
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "Let me see.",
        }
        for number in (1, 2):
            place = f"llm.output_messages.{number}.message"
            attributes |= {f"{place}.role": "assistant"}
            attributes |= asked(f"{place}.tool_calls.0.tool_call", f"c{number}", number)
        made = model(1, 0, 5, attributes)
    else:
        replies = [said("Let me see."), said(None, ("c1", "add", {"a": 1})), said(None, ("c2", "add", {"a": 2}))]
        finish = {"gen_ai.response.finish_reasons": ["tool_calls"]}
        made = chat(1, 0, 5, replies, [user("go")], attributes=finish)
    session = session_of(tmp_path, request(made))
    (message,) = session.response.output_messages or ()
    assert (message.text, len(message.tool_calls)) == ("Let me see.", 2)
    assert session.response.tokens_usage is not None
    assert session.response.tokens_usage.input_tokens == 10
    assert not session.response.unread


@pytest.mark.parametrize("parent", [9, 2], ids=["beside", "below"])
def test_a_span_of_the_client_without_content_repeats_that_of_an_instrumentation(tmp_path: Path, parent: int) -> None:
    root = span(9, "turn", 0, 60, attributes={"gen_ai.operation.name": "invoke_agent"})
    replies = said(None, ("c1", "add", {"a": 1}))
    first = chat(2, 0, 10, [replies], [user("go")], parent=9)
    client = span(3, "messages.create", 1, 5, parent=parent, attributes=CLIENT)
    session = session_of(tmp_path, scoped("client", client), request(root, first))
    (message,) = session.response.output_messages or ()
    assert len(message.tool_calls) == 1
    assert session.response.tokens_usage is not None
    assert session.response.tokens_usage.input_tokens == 10


@pytest.mark.parametrize(
    ("start", "end", "attributes"),
    [
        (11, 20, CLIENT),
        (1, 5, {**CLIENT, "gen_ai.usage.output_tokens": 3}),
        (1, 5, CHAT),
    ],
    ids=["later", "other tokens", "nothing in common"],
)
def test_a_reply_without_content_that_is_no_second_record_stays(
    tmp_path: Path, start: int, end: int, attributes: dict[str, Any]
) -> None:
    first = chat(2, 0, 10, [said("one")], [user("go")])
    client = span(3, "messages.create", start, end, attributes=attributes)
    session = session_of(tmp_path, scoped("client", client), request(first))
    assert len(session.response.output_messages or ()) == 2
    assert session.response.unread, "nothing is known of the calls of the second reply"


@pytest.mark.parametrize(
    ("scope", "counts", "expected"),
    [
        ("opentelemetry.instrumentation.botocore.bedrock-runtime", (92, 20, None, 8), (100, 20, 120)),
        ("opentelemetry.instrumentation.bedrock", (92, 20, 112, 8), (100, 20, 120)),
        ("any", (5, 20, None, 8), (13, 20, 33)),
        ("any", (100, 20, 120, 8), (100, 20, 120)),
        ("opentelemetry.instrumentation.google_generativeai", (100, 16, 120, 8), (100, 20, 120)),
    ],
)
def test_input_has_the_cached_tokens_and_output_those_of_thoughts(
    tmp_path: Path, scope: str, counts: tuple[int | None, ...], expected: tuple[int, ...]
) -> None:
    names = ("input_tokens", "output_tokens", "total_tokens", "cache_read.input_tokens")
    values = {f"gen_ai.usage.{name}": count for name, count in zip(names, counts, strict=True) if count is not None}
    session = session_of(tmp_path, scoped(scope, chat(1, 0, 5, [said("done")], [user("go")], attributes=values)))
    usage = session.response.tokens_usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == expected
    assert usage.metadata is None


def test_results_whose_ids_no_call_has_belong_to_the_calls_of_the_history_in_order(tmp_path: Path) -> None:
    first = said(None, ("fc_1", "add", {"a": 1}), ("fc_2", "add", {"a": 2}))
    history = [user("go"), first, result("c1", "one"), result("c2", "two")]
    session = session_of(
        tmp_path, request(chat(1, 0, 5, [first], [user("go")]), chat(2, 6, 9, [said("done")], history))
    )
    assert results(session) == [("add", "one", None), ("add", "two", None)]


def test_a_reply_that_only_the_history_tells_is_one_message(tmp_path: Path) -> None:
    silent = span(1, "chat m", 0, 5, attributes={**CHAT, "gen_ai.input.messages": [user("go")]})
    history = [user("go"), said("Let me see.", ("c1", "add", {"a": 1})), result("c1", "one")]
    session = session_of(tmp_path, request(silent, chat(2, 6, 9, [said("done")], history)))
    texts = [(message.text, len(message.tool_calls)) for message in session.response.output_messages or ()]
    assert texts == [("Let me see.", 1), ("done", 0)]
    assert not session.response.unread


def test_a_turn_whose_prompt_was_cut_off_is_a_turn_of_unknown_words(tmp_path: Path) -> None:
    conversation = {"gen_ai.conversation.id": "s"}
    root = {"gen_ai.operation.name": "invoke_agent", **conversation}
    system = {**conversation, "gen_ai.system_instructions": [{"type": "text", "content": "You add."}]}
    cut = {**system, "gen_ai.input.messages": '[{"role": "user", "par'}
    session = session_of(
        tmp_path,
        request(
            span(1, "a", 0, 9, attributes=root),
            chat(2, 1, 5, [said("one")], [user("go")], parent=1, attributes=system),
            span(3, "a", 20, 29, trace=2, attributes=root),
            chat(4, 21, 25, [said("two")], parent=3, trace=2, attributes=cut),
        ),
    )
    assert session.turns == 2
    assert session.response.unread


def test_turns_before_the_session_are_not_counted(tmp_path: Path) -> None:
    history = [user("one"), said("first"), user("two")]
    session = session_of(tmp_path, request(chat(1, 0, 5, [said("second")], history)))
    assert [message.text for message in session.input_messages] == ["one", "first", "two"]
    assert session.turns == 1


def test_calls_whose_ids_are_numbered_anew_in_each_reply_are_calls_of_their_own(tmp_path: Path) -> None:
    first, second = said(None, ("add_0", "add", {"a": 1})), said(None, ("add_0", "add", {"a": 1}))
    history = [user("go"), first, result("add_0", "one")]
    session = session_of(
        tmp_path,
        request(
            chat(1, 0, 5, [first], [user("go")]),
            chat(2, 6, 9, [second], history),
            chat(3, 10, 12, [said("done")], [*history, second, result("add_0", "two")]),
        ),
    )
    assert results(session) == [("add", "one", None), ("add", "two", None)]


def test_calls_that_have_other_ids_in_the_history_are_recognized_by_their_arguments(tmp_path: Path) -> None:
    asked_first = said(None, ("adk-1", "add", {"a": 1}), ("adk-2", "add", {"a": 2}))
    told = said(None, ("add_0", "add", {"a": 1}), ("add_1", "add", {"a": 2}))
    history = [user("go"), told, result("add_0", "one"), result("add_1", "two")]
    session = session_of(
        tmp_path, request(chat(1, 0, 5, [asked_first], [user("go")]), chat(2, 6, 9, [said("done")], history))
    )
    assert results(session) == [("add", "one", None), ("add", "two", None)]


@pytest.mark.parametrize(
    ("given", "told", "expected"),
    [
        ({"kwargs": {"a": 1}}, {"raw_output": 3, "raw_input": {}, "is_error": False, "blocks": []}, (3, "ok")),
        ({"args": [], "kwargs": {"a": 1}, "sanitize_inputs_outputs": True}, "3", ("3", "ok")),
        ({"a": 1}, {"raw_output": "no", "raw_input": {}, "is_error": True}, ("no", "error")),
    ],
    ids=["LlamaIndex", "smolagents", "failed"],
)
def test_arguments_and_results_are_taken_out_of_what_a_library_puts_around_them(
    tmp_path: Path, given: Any, told: Any, expected: tuple[Any, ...]
) -> None:
    attributes = {"openinference.span.kind": "TOOL", "tool.name": "add", "input.value": given, "output.value": told}
    session = session_of(tmp_path, request(span(1, "FunctionTool.acall", 0, 5, attributes=attributes)))
    assert calls(session) == [("add", {"a": 1})]
    assert [each[1:] for each in results(session)] == [expected]


def test_a_span_that_only_makes_a_request_is_no_reply(tmp_path: Path) -> None:
    attributes = {"output.value": '{"messages": [], "tools": null}'}
    prepare = span(1, "M._prepare_chat_with_tools", 0, 1, attributes={"openinference.span.kind": "LLM", **attributes})
    session = session_of(tmp_path, request(prepare, chat(2, 2, 5, [said("done")], [user("go")])))
    assert len(session.response.output_messages or ()) == 1
    assert not session.response.unread


@pytest.mark.parametrize("parent", [1, 9], ids=["below", "beside"])
def test_a_failure_that_only_the_second_record_of_a_tool_tells_is_a_failure(tmp_path: Path, parent: int) -> None:
    root = span(9, "turn", 0, 60, attributes={"gen_ai.operation.name": "invoke_agent"})
    outer = span(1, "boom", 2, 9, parent=9, attributes={"openinference.span.kind": "TOOL", "tool.name": "boom"})
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "boom", "error.type": "ValueError"}
    inner = span(2, "execute_tool boom", 3, 8, parent=parent, attributes=attributes, failed=True)
    session = session_of(tmp_path, scoped("outer", outer), scoped("inner", inner), request(root))
    assert results(session) == [("boom", None, "error")]


def ai_sdk_prompt(kind: str) -> list[Any]:
    asked = {"type": "tool-call", "toolCallId": "c1", "toolName": "get", "input": {}}
    output = {"type": kind, "value": "no", "reason": "no"}
    told = {"type": "tool-result", "toolCallId": "c1", "toolName": "get", "output": output}
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [asked]},
        {"role": "tool", "content": [told]},
    ]


@pytest.mark.parametrize(("kind", "status"), [("error-text", "error"), ("execution-denied", "denied"), ("text", None)])
def test_the_status_of_a_call_without_a_span_is_that_of_its_result_in_the_history(
    tmp_path: Path, kind: str, status: str | None
) -> None:
    operation = {"ai.operationId": "ai.generateText.doGenerate"}
    calls_made = [{"toolCallId": "c1", "toolName": "get", "input": "{}"}]
    session = session_of(
        tmp_path,
        request(
            span(1, "ai.generateText.doGenerate", 0, 5, attributes={**operation, "ai.response.toolCalls": calls_made}),
            span(
                2,
                "ai.generateText.doGenerate",
                6,
                9,
                attributes={**operation, "ai.prompt.messages": ai_sdk_prompt(kind), "ai.response.text": "done"},
            ),
        ),
    )
    ((_, output, found),) = results(session)
    assert found == status
    assert output == ({"type": kind, "value": "no", "reason": "no"} if status == "denied" else "no")


@pytest.mark.parametrize("tools", ["add, get", "add"])
def test_calls_that_stand_in_attributes_of_a_tool_on_the_span_of_a_model_are_those_of_its_reply(
    tmp_path: Path, tools: str
) -> None:
    attributes = {
        **CHAT,
        "gen_ai.completion": "",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.tool.name": tools,
        "gen_ai.tool.call.id": "c1, c2",
        "gen_ai.tool.args": '{"a": "x, y"}, {}',
    }
    session = session_of(tmp_path, request(span(1, "chat m", 0, 5, attributes=attributes)))
    if tools == "add":
        assert session.response.unread, "one name and two ids"
    else:
        assert calls(session) == [("add", {"a": "x, y"}), ("get", {})]
        assert not session.response.unread


def test_calls_that_another_convention_tells_beside_a_reply_without_calls_are_its_calls(tmp_path: Path) -> None:
    reply = {"role": "assistant", "parts": [{"type": "text", "content": "Let me see."}], "finish_reason": "tool_calls"}
    attributes = {
        "gen_ai.completion.0.function_call.name": "add",
        "gen_ai.completion.0.function_call.arguments": '{"a": 1}',
        "gen_ai.completion.1.function_call.name": "get",
        "gen_ai.completion.1.function_call.arguments": "{}",
    }
    session = session_of(tmp_path, request(chat(1, 0, 5, [reply], [user("go")], attributes=attributes)))
    (message,) = session.response.output_messages or ()
    assert message.text == "Let me see."
    assert calls(session) == [("add", {"a": 1}), ("get", {})]
    assert not session.response.unread


ARGUMENTS = '{"a": 1}'
FUNCTION = f"'function': {{'name': 'add', 'arguments': '{ARGUMENTS}'}}"
MESSAGE_REPR = (
    f"{{'content': None, 'role': 'assistant', 'tool_calls': [{{'id': 'c1', {FUNCTION}, 'type': 'function'}}]}}"
)
CALL_REPR = (
    f"ResponseFunctionToolCall(arguments='{ARGUMENTS}', call_id='c1', name='add', type='function_call', caller=None)"
)


@pytest.mark.parametrize("text", [MESSAGE_REPR, CALL_REPR, f"{CALL_REPR}\n{CALL_REPR.replace('c1', 'c2')}"])
def test_a_reply_that_was_written_in_its_python_form_is_read_as_calls(tmp_path: Path, text: str) -> None:
    session = session_of(tmp_path, request(chat(1, 0, 5, [said(text)], [user("go")])))
    assert set(map(str, calls(session))) == {str(("add", {"a": 1}))}
    assert len(calls(session)) == 1 + text.count("\n")


def test_a_python_form_that_cannot_be_read_makes_calls_unknown(tmp_path: Path) -> None:
    cut = CALL_REPR[:40]
    assert session_of(tmp_path, request(chat(1, 0, 5, [said(cut)], [user("go")]))).response.unread


@pytest.mark.parametrize("text", ["{'a': 1}", "ResponseFunction", "{'tool_calls'"])
def test_other_texts_stay_texts(tmp_path: Path, text: str) -> None:
    session = session_of(tmp_path, request(chat(1, 0, 5, [said(text)], [user("go")])))
    assert session.response.text == text
    assert calls(session) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("content='it\\'s 3' name='add' tool_call_id='c1'", ("it's 3", "ok")),
        ("content='Error: no' name='add' tool_call_id='c1' status='error'", ("Error: no", "error")),
        (
            "content=[{'type': 'text', 'text': 'a b=c'}] name='add' tool_call_id='c1'",
            ([{"type": "text", "text": "a b=c"}], "ok"),
        ),
        ("content=", ("content=", "ok")),
    ],
)
def test_a_langchain_message_in_its_python_form_is_a_result(
    tmp_path: Path, text: str, expected: tuple[Any, ...]
) -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add", "gen_ai.tool.call.result": text}
    session = session_of(tmp_path, request(span(1, "execute_tool add", 0, 5, attributes=attributes)))
    assert [each[1:] for each in results(session)] == [expected]


def test_a_span_without_a_duration_tells_the_end_of_the_stream_before_it(tmp_path: Path) -> None:
    root = span(9, "turn", 0, 60, attributes={"gen_ai.operation.name": "invoke_agent"})
    begun = {**CHAT, "gen_ai.input.messages": [user("go")]}
    session = session_of(
        tmp_path,
        scoped("logfire", root, span(1, "chat m", 1, 2, parent=9, attributes=begun)),
        scoped("client", span(2, "messages.create", 1, 10, parent=1, attributes=CLIENT)),
        scoped("logfire", chat(3, 11, 11, [said("done")], [user("go")], parent=9)),
    )
    assert [message.text for message in session.response.output_messages or ()] == ["done"]
    assert session.response.tokens_usage is not None
    assert session.response.tokens_usage.input_tokens == 10
    assert not session.response.unread


@pytest.mark.parametrize(("start", "end", "prompt"), [(11, 12, "go"), (11, 11, "other")], ids=["long", "other prompt"])
def test_a_reply_that_does_not_end_a_stream_does_not_hide_another(
    tmp_path: Path, start: int, end: int, prompt: str
) -> None:
    begun = {**CHAT, "gen_ai.input.messages": [user("go")]}
    session = session_of(
        tmp_path,
        request(span(1, "chat m", 1, 2, attributes=begun), chat(3, start, end, [said("done")], [user(prompt)])),
    )
    assert len([each for each in session.response.output_messages or () if each.role == "assistant"]) == 2


def test_the_history_tells_what_the_span_of_a_reply_leaves_out(tmp_path: Path) -> None:
    reply = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "ping"}]}
    history = [user("go"), said("Let me see.", ("c1", "ping", {})), result("c1", "pong")]
    session = session_of(
        tmp_path, request(chat(1, 0, 5, [reply], [user("go")]), chat(2, 6, 9, [said("done")], history))
    )
    assert [message.text for message in session.response.output_messages or ()] == ["Let me see.", "done"]
    assert calls(session) == [("ping", {})]
    assert not session.response.incomplete


def test_a_reply_whose_calls_only_the_history_tells_is_one_message(tmp_path: Path) -> None:
    history = [user("go"), said("Let me see.", ("c1", "add", {"a": 1})), result("c1", "one")]
    session = session_of(
        tmp_path, request(chat(1, 0, 5, [said("Let me see.")], [user("go")]), chat(2, 6, 9, [said("done")], history))
    )
    texts = [(message.text, len(message.tool_calls)) for message in session.response.output_messages or ()]
    assert texts == [("Let me see.", 1), ("done", 0)]


def test_the_answer_is_never_that_of_an_earlier_turn(tmp_path: Path) -> None:
    history = [user("one"), said("first"), user("two")]
    session = session_of(tmp_path, request(chat(1, 0, 5, [said(None, ("c1", "add", {}))], history)))
    assert session.response.text == ""


def test_results_of_earlier_turns_are_context(tmp_path: Path) -> None:
    earlier = [user("one"), result("c0", 1), said("first")]
    now = chat(1, 0, 5, [said("second")], [*earlier, user("two")])
    assert not session_of(tmp_path, request(now)).response.unread
    lost = chat(1, 0, 5, [said("second")], [*earlier, user("two"), result("c1", 1)])
    assert [place.path for place in session_of(tmp_path, request(lost)).response.unread] == ["span 0000000000000001"]


def test_instructions_that_stand_among_the_messages_too_are_said_once(tmp_path: Path) -> None:
    instructions = [{"type": "text", "content": "You add."}]
    system = {"role": "system", "parts": instructions}
    attributes = {"gen_ai.system_instructions": instructions}
    made = chat(1, 0, 5, [said("done")], [system, user("go")], attributes=attributes)
    roles = [message.role for message in session_of(tmp_path, request(made)).input_messages]
    assert roles == ["system", "user"]


def test_the_memory_of_smolagents_tells_calls_and_results_as_texts(tmp_path: Path) -> None:
    place = "llm.output_messages.0.message"
    first = {f"{place}.role": "assistant", **asked(f"{place}.tool_calls.0.tool_call", "c1", 1)}
    memory = "Calling tools:\n[{'id': 'c1', 'type': 'function', 'function': {'name': 'add', 'arguments': {'a': 1}}}]"
    texts = (("user", "go"), ("tool-call", memory), ("tool-response", "Observation:\n3"))
    prompt = {
        f"llm.input_messages.{at}.message.{key}": value
        for at, (role, text) in enumerate(texts)
        for key, value in (("role", role), ("content", text))
    }
    last = {f"{place}.role": "assistant", f"{place}.content": "done", **prompt}
    session = session_of(tmp_path, request(model(1, 0, 5, first), model(2, 6, 9, last)))
    assert calls(session) == [("add", {"a": 1})]
    assert not session.response.unread
    lost = session_of(tmp_path, request(model(2, 6, 9, last)))
    assert calls(lost) == [("add", {"a": 1})]
    unknown = {key: value.replace("[{'id'", "{'id'") for key, value in last.items()}
    assert session_of(tmp_path, request(model(1, 0, 5, first), model(2, 6, 9, unknown))).response.unread


def test_results_in_the_name_of_the_user_are_no_turn(tmp_path: Path) -> None:
    def event(name: str, time: int, **body: Any) -> dict[str, Any]:
        values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in body.items()}
        made = [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
        return {"name": name, "timeUnixNano": str(1_790_000_000_000_000_000 + time), "attributes": made}

    called = [{"id": "c1", "type": "function", "function": {"name": "add"}}]
    first = span(1, "chat m", 0, 5, attributes=CHAT)
    first["events"] = [event("gen_ai.user.message", 1), event("gen_ai.choice", 2, message={"tool_calls": called})]
    second = span(2, "chat m", 6, 9, attributes=CHAT)
    second["events"] = [
        event("gen_ai.user.message", 1),
        event("gen_ai.assistant.message", 2, tool_calls=called),
        event("gen_ai.tool.message", 3, id="c1"),
        event("gen_ai.user.message", 4),
        event("gen_ai.choice", 5, finish_reason="stop"),
    ]
    assert session_of(tmp_path, request(first, second)).turns == 1


CLAUDE_CODE = "com.anthropic.claude_code.events"


def record(second: int, name: str, **fields: Any) -> dict[str, Any]:
    """Return a log record of Claude Code."""
    values = {"event.name": name, "session.id": "s", "event.sequence": second, **fields}
    made = [
        {"key": key, "value": {"intValue": value} if isinstance(value, int) else {"stringValue": value}}
        for key, value in values.items()
    ]
    return {"timeUnixNano": str((1_790_000_000 + second) * 1_000_000_000), "attributes": made}


def records(*made: dict[str, Any]) -> dict[str, Any]:
    group = {"scope": {"name": CLAUDE_CODE}, "logRecords": list(made)}
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [group]}]}


def test_log_records_of_claude_code_make_turns_with_calls_of_hidden_and_denied_tools(tmp_path: Path) -> None:
    details = '{"mcp_server_name": "shop", "mcp_tool_name": "get_order"}'
    first, second = {"prompt.id": "p1"}, {"prompt.id": "p2"}
    session = session_of(
        tmp_path,
        records(
            record(0, "user_prompt", prompt="yes", **first),
            record(1, "api_request", model="m", input_tokens=1, output_tokens=2, **first),
            record(2, "tool_decision", decision="reject", tool_name="Bash", tool_use_id="c1", **first),
            record(
                3,
                "tool_result",
                tool_name="mcp_tool",
                tool_use_id="c2",
                tool_parameters=details,
                success="true",
                **first,
            ),
            record(4, "tool_result", tool_name="mcp_tool", tool_use_id="c3", success="true", **first),
            record(5, "user_prompt", prompt="yes", **second),
            record(6, "api_request", model="m", input_tokens=1, output_tokens=2, **second),
            record(7, "assistant_response", response="done", **second),
        ),
    )
    assert [name for name, _ in calls(session)] == ["Bash", "mcp__shop__get_order", ""]
    assert [status for _, _, status in results(session)] == ["denied", "ok", "ok"]
    assert (session.turns, session.response.text) == (2, "done")


@pytest.mark.parametrize("name", ["claude_code.tool", "execute_tool"])
def test_a_tool_that_no_attribute_names_is_an_unknown_tool(tmp_path: Path, name: str) -> None:
    unnamed = span(2, name, 6, 9, attributes={"gen_ai.tool.call.id": "c1"})
    session = session_of(tmp_path, request(chat(1, 0, 5, [said("done")], [user("go")]), unnamed))
    assert [tool for tool, _ in calls(session)] == [""]
    assert agentv.score(session.response, [{"type": "tool_trajectory", "forbidden": ["delete"]}]).status == "error"


def test_the_step_of_mastra_tells_the_calls_that_its_model_leaves_out(tmp_path: Path) -> None:
    made = [
        {"toolCallId": "c1", "toolName": "add", "args": {"a": 1}},
        {"toolCallId": "c2", "toolName": "rm", "args": {}},
    ]
    step = {
        "mastra.model_step.input": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "[tool: add]"}],
        "mastra.model_step.output": {"text": "", "toolCalls": made},
    }
    inner = chat(2, 1, 5, [said("")], parent=1, attributes={"gen_ai.response.finish_reasons": ["tool-calls"]})
    ran = tool(3, "add", 6, 7, attributes={"gen_ai.tool.call.id": "c1"})
    session = session_of(tmp_path, request(span(1, "agent_step m", 0, 5, attributes=step), inner, ran))
    assert calls(session) == [("add", {"a": 1}), ("rm", {})]
    assert [message.text for message in session.input_messages] == ["go"]
    assert session.response.tokens_usage is not None
    assert session.response.tokens_usage.input_tokens == 10
    assert not session.response.unread


def test_the_result_of_a_model_in_mastra_is_its_text(tmp_path: Path) -> None:
    result_of_model = {"files": [], "reasoning": [], "sources": [], "text": "done", "warnings": []}
    attributes = {**CHAT, "gen_ai.completion": result_of_model}
    assert session_of(tmp_path, request(span(1, "m", 0, 5, attributes=attributes))).response.text == "done"
    made = {**result_of_model, "toolResults": [{"toolName": "add", "args": {}}]}
    called = session_of(tmp_path, request(span(1, "m", 0, 5, attributes={**CHAT, "gen_ai.completion": made})))
    assert calls(called) == [("add", {})]


def test_a_tool_within_a_tool_of_the_same_name_is_a_call_of_its_own(tmp_path: Path) -> None:
    outer, inner = tool(1, "delegate", 0, 9), tool(2, "delegate", 1, 5, parent=1)
    assert len(calls(session_of(tmp_path, scoped("a", outer, inner)))) == 2
    assert len(calls(session_of(tmp_path, scoped("a", outer), scoped("b", inner)))) == 1
    same = {"gen_ai.tool.call.arguments": {"a": 1}}
    repeated = (tool(1, "delegate", 0, 9, attributes=same), tool(2, "delegate", 1, 5, parent=1, attributes=same))
    assert len(calls(session_of(tmp_path, scoped("a", *repeated)))) == 1


@pytest.mark.parametrize(("again", "expected"), [(False, "no key"), (True, None)])
def test_the_failure_of_an_agent_is_told_although_the_workflow_around_it_ended_well(
    tmp_path: Path, again: bool, expected: str | None
) -> None:
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
    failed = span(2, "invoke_agent a", 1, 8, attributes=agent, parent=1)
    failed["status"] = {"code": "STATUS_CODE_ERROR", "message": "no key"}
    spans = [
        span(1, "invoke_workflow w", 0, 9, attributes={"gen_ai.operation.name": "invoke_workflow"}),
        failed,
        span(3, "chat m", 2, 7, attributes=CHAT, parent=2, failed=True),
        *([span(4, "chat m", 8, 9, attributes=CHAT, parent=1)] if again else []),
    ]
    error = session_of(tmp_path, request(*spans)).response.error
    assert (error.message if error else None) == expected
