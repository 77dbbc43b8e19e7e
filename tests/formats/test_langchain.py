"""Are LangChain's messages read right, in each form that it writes them in?"""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
)
from msgspec import UNSET

from agentv.formats.langchain import decode_langchain
from agentv.formats.openai import from_openai, to_openai
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import TokensUsage
from tests.support.examples import examples

BARE: dict[str, Any] = {"content": "hi", "additional_kwargs": {}, "response_metadata": {}, "name": None, "id": None}


def ai(**fields: Any) -> dict[str, Any]:
    """A message of the assistant's, with everything that LangChain writes."""
    empty: dict[str, Any] = {"tool_calls": [], "invalid_tool_calls": [], "usage_metadata": None}
    return {**BARE, "type": "ai", **empty, **fields}


def result(call_id: str, **fields: Any) -> dict[str, Any]:
    more = {"tool_call_id": call_id, "artifact": None, "status": "success"}
    return {**BARE, "type": "tool", "name": "search", "id": "t1", **more, **fields}


def call(**fields: Any) -> dict[str, Any]:
    return {"name": "search", "args": {"q": "x"}, "id": "c1", "type": "tool_call", **fields}


def usage(read: int, wrote: int, **fields: Any) -> dict[str, Any]:
    return {"input_tokens": read, "output_tokens": wrote, "total_tokens": read + wrote, **fields}


def one(raw: dict[str, Any]) -> Message:
    (message,) = decode_langchain([raw]).output_messages or ()
    return message


def calls(*messages: dict[str, Any]) -> tuple[ToolCall, ...]:
    found = [call for message in decode_langchain(messages).output_messages or () for call in message.tool_calls]
    return tuple(found)


# Who said it


@pytest.mark.parametrize(
    ("fields", "role"),
    [
        ({"type": "ai"}, "assistant"),
        ({"type": "AIMessageChunk"}, "assistant"),
        ({"type": "human"}, "user"),
        ({"type": "HumanMessageChunk"}, "user"),
        ({"type": "system"}, "system"),
        ({"type": "developer"}, "developer"),
        ({"type": "tool", "tool_call_id": "nobody's"}, "tool"),
        ({"type": "function", "name": "search"}, "function"),
        ({"type": "chat", "role": "critic"}, "critic"),
        ({"type": "chat", "role": "assistant"}, "assistant"),
        ({"type": "ChatMessageChunk", "role": "critic"}, "critic"),
        ({"type": "remove", "id": "m1"}, "remove"),
        ({"type": "martian"}, "martian"),
    ],
)
def test_each_type_of_message_has_its_role_and_only_the_assistant_s_is_the_assistant_s(
    fields: dict[str, Any], role: str
) -> None:
    message = one({**BARE, **fields})
    assert (message.role, message.content) == (role, "hi")


def test_a_message_that_says_nothing_but_its_words_has_no_metadata() -> None:
    assert one(ai(id="m1")) == Message(role="assistant", content="hi", id="m1")
    assert one({**BARE, "type": "human", "example": False}) == Message(role="user", content="hi")


def test_what_the_vendor_told_is_kept() -> None:
    extra = {"additional_kwargs": {"refusal": None}, "response_metadata": {"model_name": "m"}, "citations": [1]}
    assert one(ai(name="writer", **extra)) == Message(role="assistant", content="hi", name="writer", metadata=extra)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, None),
        ("", ""),
        ([], []),
        ([{"type": "text", "text": "a"}, {"type": "image", "url": "u"}],) * 2,
        (["a", {"type": "text", "text": "b"}], [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
    ],
)
def test_content_is_kept_as_it_is_and_plain_texts_in_a_list_are_blocks(content: Any, expected: Any) -> None:
    response = decode_langchain([ai(content=content)])
    assert response.output_messages is not None
    assert response.output_messages[0].content == expected
    assert response.warnings == ()


def test_the_answer_is_the_last_word_of_the_assistant() -> None:
    items = [ai(content="first"), ai(content=["last ", "word"]), {**BARE, "type": "human"}, {**BARE, "type": "martian"}]
    assert decode_langchain(items).text == "last word"
    assert decode_langchain([{**BARE, "type": "human"}]).text == ""


# What was called


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"args": {"q": "x"}}, {"q": "x"}),
        ({"args": {}}, {}),
        ({"args": None}, None),
        ({"args": "null"}, "null"),
    ],
)
def test_arguments_are_a_value_and_null_is_none_of_its_words(given: dict[str, Any], expected: Any) -> None:
    assert calls(ai(tool_calls=[call(**given)])) == (ToolCall(tool="search", input=expected, id="c1"),)


def test_a_call_without_arguments_has_no_input() -> None:
    (found,) = calls(ai(tool_calls=[{"name": "search", "id": None, "type": "tool_call"}]))
    assert found == ToolCall(tool="search")
    assert found.input is UNSET


@pytest.mark.parametrize(("status", "expected"), [("success", "ok"), ("error", "error"), (None, None)])
def test_a_result_gives_its_call_output_and_status(status: str | None, expected: str | None) -> None:
    (found,) = calls(ai(tool_calls=[call()]), result("c1", content="3 hits", status=status))
    assert (found.output, found.status) == ("3 hits", expected)


REJECTED = "User rejected the tool call for `search` with "


@pytest.mark.parametrize(
    ("content", "status", "expected"),
    [
        (f"{REJECTED}id c1. The tool was not executed.", "error", "denied"),
        (f"{REJECTED}id c1", "error", "denied"),
        (f"{REJECTED}reason: not now", "error", "denied"),
        (f"{REJECTED}id c1", "success", "ok"),
        ("User rejected the tool call for `delete` with id c1", "error", "error"),
        (f"Error: {REJECTED}id c1", "error", "error"),
        ("The user rejected it.", "error", "error"),
        ([{"type": "text", "text": f"{REJECTED}id c1"}], "error", "error"),
    ],
)
def test_a_call_is_denied_by_the_words_of_langchain_s_middleware_together_with_its_status(
    content: Any, status: str, expected: str
) -> None:
    messages = decode_langchain([ai(tool_calls=[call()]), result("c1", content=content, status=status)]).output_messages
    assert messages is not None
    assert [each.status for each in messages[0].tool_calls] == [expected]


def test_results_find_their_calls_by_id_in_any_order() -> None:
    asked = ai(tool_calls=[call(id="a"), call(id="b")])
    found = calls(asked, result("b", content="of b"), result("a", content="of a"))
    assert [(each.id, each.output) for each in found] == [("a", "of a"), ("b", "of b")]


@pytest.mark.parametrize("content", [["a", "b"], [{"type": "text", "text": "a"}], None, ""])
def test_the_output_of_a_tool_is_what_it_gave(content: Any) -> None:
    (found,) = calls(ai(tool_calls=[call()]), result("c1", content=content))
    assert found.output == content


def test_an_artifact_is_kept_with_its_result() -> None:
    (found,) = calls(ai(tool_calls=[call()]), result("c1", artifact={"rows": [1]}))
    assert found.metadata == {
        "result_message": {"name": "search", "id": "t1", "metadata": {"artifact": {"rows": [1]}, "status": "success"}}
    }


def test_a_result_without_a_call_is_kept() -> None:
    message = one(result("unknown", content="late"))
    assert (message.role, message.tool_call_id, message.content) == ("tool", "unknown", "late")


@pytest.mark.parametrize(
    ("given", "expected_input", "reason"),
    [
        ({"args": "{bad", "error": None}, "{bad", "malformed"),
        ({"args": "{bad", "error": "told so"}, "{bad", "malformed"),
        ({"args": "[1]", "error": "not an object"}, "[1]", "not an object"),
        ({"args": "", "error": ""}, "", "truncated"),
        ({"args": None, "error": "no arguments"}, UNSET, "no arguments"),
        ({"args": None, "error": None}, UNSET, "did not say why"),
    ],
)
def test_a_call_that_langchain_could_not_read_stays_a_call(
    given: dict[str, Any], expected_input: Any, reason: str
) -> None:
    wrong = {"type": "invalid_tool_call", "name": "search", "id": "c9", **given}
    response = decode_langchain([ai(invalid_tool_calls=[wrong]), result("c9", content="no such thing")])
    assert response.output_messages is not None
    (found,) = response.output_messages[0].tool_calls
    assert (found.tool, found.id, found.input, found.output) == ("search", "c9", expected_input, "no such thing")
    assert found.metadata is not None
    assert reason in found.metadata["arguments_error"]
    assert response.warnings == ()


def test_what_langchain_said_of_a_malformed_call_is_kept_beside_our_reason() -> None:
    wrong = {"type": "invalid_tool_call", "name": "search", "id": "c9", "args": "{bad", "error": "told so"}
    (found,) = calls(ai(invalid_tool_calls=[wrong]))
    assert found.metadata is not None
    assert found.metadata["error"] == "told so"
    assert found.error is None
    assert to_openai([Message(role="assistant", tool_calls=(found,))])[0]["tool_calls"][0]["function"] == {
        "name": "search",
        "arguments": "{bad",
    }


def vendor_call(call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "search", "arguments": arguments}}


def test_the_vendor_s_form_of_the_same_calls_is_not_read_twice() -> None:
    raw = ai(tool_calls=[call()], additional_kwargs={"tool_calls": [vendor_call("c1", '{"q": "x"}')]})
    assert calls(raw) == (ToolCall(tool="search", input={"q": "x"}, id="c1"),)
    assert one(raw).metadata == {"additional_kwargs": raw["additional_kwargs"]}


def test_the_vendor_s_form_is_read_where_there_is_no_other() -> None:
    raw = ai(additional_kwargs={"tool_calls": [vendor_call("c1", '{"q": "x"}')]})
    assert calls(raw) == (ToolCall(tool="search", input={"q": "x"}, id="c1"),)


def test_calls_that_could_be_read_and_others_come_in_the_model_s_order() -> None:
    wrong = {"type": "invalid_tool_call", "name": "search", "id": "b", "args": "{bad", "error": None}
    vendor = [vendor_call("a"), vendor_call("b", "{bad"), vendor_call("c")]
    valid = [call(id="a"), call(id="c")]
    raw = ai(tool_calls=valid, invalid_tool_calls=[wrong], additional_kwargs={"tool_calls": vendor})
    assert [each.id for each in calls(raw)] == ["a", "b", "c"]
    assert [each.id for each in calls({**raw, "additional_kwargs": {}})] == ["a", "c", "b"]


# What it cost


def test_usage_is_added_up_over_the_assistant_s_messages() -> None:
    details = {"input_token_details": {"cache_read": 3, "cache_creation": 4}, "output_token_details": {"reasoning": 2}}
    items = [ai(usage_metadata=usage(10, 5, **details)), ai(usage_metadata=usage(20, 6, **details))]
    assert decode_langchain(items).tokens_usage == TokensUsage(
        input_tokens=30,
        output_tokens=11,
        total_tokens=41,
        cache_read_tokens=6,
        cache_write_tokens=8,
        reasoning_tokens=4,
    )


def test_a_message_without_a_total_counts_in_the_total_all_the_same() -> None:
    items = [ai(usage_metadata=usage(10, 5)), ai(usage_metadata={"input_tokens": 20, "output_tokens": 6})]
    found = decode_langchain(items).tokens_usage
    assert found is not None
    assert found.total_tokens == 41


def test_one_message_that_does_not_say_makes_the_sum_unknown() -> None:
    response = decode_langchain([ai(usage_metadata=usage(10, 5)), {**BARE, "type": "human"}, ai(), ai()])
    assert response.tokens_usage is None
    assert response.warnings == (
        "messages[2].usage_metadata: missing, so the tokens of the messages together are unknown",
    )


@pytest.mark.parametrize("key", ["model_name", "model", "model_id"])
def test_the_model_is_named_so_that_its_price_is_found(key: str) -> None:
    said = ai(response_metadata={key: "gpt-4o"})
    assert decode_langchain([said, {**BARE, "type": "human"}, said]).metadata == {"model": "gpt-4o"}


@pytest.mark.parametrize("other", [{"model_name": "gpt-4o-mini"}, {}, {"model_name": 7}])
def test_turns_of_several_models_have_no_one_price(other: dict[str, Any]) -> None:
    response = decode_langchain([ai(response_metadata={"model_name": "gpt-4o"}), ai(response_metadata=other)])
    assert response.metadata is None


@pytest.mark.parametrize("items", [[], [ai()], [{**BARE, "type": "human", "usage_metadata": usage(1, 1)}]])
def test_usage_that_nobody_reports_is_unknown_without_a_word(items: list[Any]) -> None:
    response = decode_langchain(items)
    assert response.tokens_usage is None
    assert response.warnings == ()


@pytest.mark.parametrize(
    "told",
    [
        {"token_usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}},
        {
            "usage": {
                "input_tokens": 4,
                "cache_read_input_tokens": 6,
                "cache_creation_input_tokens": 0,
                "output_tokens": 5,
            }
        },
    ],
)
def test_the_vendor_s_own_count_serves_where_langchain_s_is_missing(told: dict[str, Any]) -> None:
    found = decode_langchain([ai(response_metadata=told)]).tokens_usage
    assert found is not None
    assert (found.input_tokens, found.output_tokens, found.total_tokens) == (10, 5, 15)


def test_langchain_s_count_is_taken_before_the_vendor_s() -> None:
    vendor = {"token_usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    found = decode_langchain([ai(usage_metadata=usage(10, 5), response_metadata=vendor)]).tokens_usage
    assert found is not None
    assert found.total_tokens == 15


def test_what_was_written_to_a_cache_is_counted_by_its_parts() -> None:
    parts = {"cache_read": 1, "cache_creation": 0, "ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 3}
    found = decode_langchain([ai(usage_metadata=usage(30, 5, input_token_details=parts))]).tokens_usage
    assert found is not None
    assert (found.cache_read_tokens, found.cache_write_tokens) == (1, 23)


@pytest.mark.parametrize(
    "raw",
    [
        ai(content=[{"type": "thinking", "thinking": "let me see"}, {"type": "text", "text": "hi"}]),
        ai(content=[{"type": "reasoning", "reasoning": "let me see"}]),
        ai(content=[{"type": "reasoning", "summary": [{"type": "summary_text", "text": "let me see"}]}]),
        ai(additional_kwargs={"reasoning_content": "let me see"}),
    ],
)
def test_what_the_model_thought_is_its_reasoning(raw: dict[str, Any]) -> None:
    response = decode_langchain([raw, ai()])
    assert response.reasoning == "let me see"
    assert "let me see" not in response.text


# The forms it is written in

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NAMES = st.text("abc_", min_size=1, max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
COUNTS = st.integers(0, 1000)


@st.composite
def usages(draw: st.DrawFn) -> Any:
    read, wrote = draw(COUNTS), draw(COUNTS)
    details = draw(st.sampled_from([{}, {"input_token_details": {"cache_read": min(read, 1)}}]))
    return usage(read, wrote, **details)


@st.composite
def assistants(draw: st.DrawFn) -> AIMessage:
    made = [call(name=draw(NAMES), args=draw(st.dictionaries(NAMES, VALUES, max_size=2)), id=f"c{at}") for at in (1, 2)]
    return AIMessage(
        content=draw(TEXT | st.lists(TEXT | TEXT.map(lambda text: {"type": "text", "text": text}), max_size=2)),
        id=draw(st.none() | TEXT),
        name=draw(st.none() | NAMES),
        tool_calls=made[: draw(st.integers(0, 2))],
        usage_metadata=draw(st.none() | usages()),
        response_metadata=draw(st.dictionaries(NAMES, VALUES, max_size=1)),
    )


@st.composite
def results(draw: st.DrawFn) -> ToolMessage:
    return ToolMessage(
        content=draw(TEXT),
        tool_call_id=draw(st.sampled_from(["c1", "c2", "c3"])),
        status=draw(st.sampled_from(["success", "error"])),
        artifact=draw(st.none() | VALUES),
    )


CONVERSATIONS = st.lists(
    st.one_of(
        assistants(),
        results(),
        TEXT.map(lambda text: HumanMessage(content=text)),
        TEXT.map(lambda text: SystemMessage(content=text)),
        TEXT.map(lambda text: ChatMessage(content=text, role="critic")),
        TEXT.map(lambda text: FunctionMessage(content=text, name="search")),
        NAMES.map(lambda name: RemoveMessage(id=name)),
    ),
    max_size=5,
)


@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(CONVERSATIONS)
def test_every_form_that_langchain_writes_says_the_same(messages: list[BaseMessage]) -> None:
    plain = [message.model_dump(mode="json") for message in messages]
    response = decode_langchain(plain)
    assert decode_langchain([message_to_dict(message) for message in messages]) == response
    assert decode_langchain(json.loads(json.dumps([dumpd(message) for message in messages]))) == response


@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(CONVERSATIONS)
def test_every_call_and_every_message_of_the_assistant_s_is_there_once(messages: list[BaseMessage]) -> None:
    decoded = decode_langchain([message.model_dump(mode="json") for message in messages]).output_messages
    assert decoded is not None
    spoken = [message for message in messages if isinstance(message, AIMessage)]
    assert [message.id for message in decoded if message.role == "assistant"] == [message.id for message in spoken]
    assert [each.tool for message in decoded for each in message.tool_calls] == [
        each["name"] for message in spoken for each in message.tool_calls
    ]
    assert from_openai(to_openai(decoded)) == decoded


@settings(deadline=None, max_examples=examples(150))
@given(st.lists(VALUES | st.dictionaries(st.sampled_from([*ai(), "lc", "kwargs", "data", "role"]), VALUES, max_size=6)))
def test_nothing_that_json_can_hold_breaks_it_or_is_changed_by_it(items: list[Any]) -> None:
    before = deepcopy(items)
    response = decode_langchain(items)
    assert items == before
    dump_json(response)


def test_a_message_that_lost_its_calls_is_not_understood() -> None:
    """A model with a field of `list[BaseMessage]` writes an AI message without its calls."""
    fields: dict[str, Any] = {
        "content": "I do it.",
        "additional_kwargs": {},
        "response_metadata": {},
        "name": None,
        "id": "msg_1",
    }
    lost: dict[str, Any] = {**fields, "type": "ai"}
    whole: dict[str, Any] = {**lost, "tool_calls": [], "invalid_tool_calls": []}
    assert decode_langchain([lost]).unread
    assert not decode_langchain([whole]).unread
    assert not decode_langchain([{**fields, "type": "human"}, whole]).unread
