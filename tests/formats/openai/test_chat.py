"""OpenAI chat completions, complete and streamed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.errors import FormatError
from agentv.formats.openai.chat import ChatStreamDecoder, decode_completion, error_in_completion, to_completions
from agentv.formats.sse import ServerEvent
from agentv.formats.usage import add_usage
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse, TokensUsage


def completion(message: Any, **others: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **others}


def called(function: dict[str, Any]) -> ToolCall:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    response = decode_completion(completion(message))
    assert response.output_messages is not None
    return response.output_messages[0].tool_calls[0]


def assembled(*chunks: Any) -> ChatStreamDecoder:
    pieces = ChatStreamDecoder()
    for chunk in chunks:
        pieces.feed(ServerEvent(chunk if isinstance(chunk, str) else json.dumps(chunk)))
    return pieces


def delta(delta: Any, reason: str | None = None, **others: Any) -> dict[str, Any]:
    return {"id": "1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **others}


def streamed_calls(*deltas: Any) -> list[tuple[str | None, str, Any]]:
    pieces = assembled(*(delta({"tool_calls": [each]}) for each in deltas), delta({}, "tool_calls"), "[DONE]")
    response = decode_completion(pieces.body)
    assert response.output_messages is not None
    return [(call.id, call.tool, call.input) for call in response.output_messages[0].tool_calls]


# Arguments


@pytest.mark.parametrize("arguments", [None, "null"])
def test_null_arguments_are_not_the_word_null(arguments: Any) -> None:
    assert called({"name": "f", "arguments": arguments}).input is None


def test_null_arguments_are_sent_as_no_arguments() -> None:
    (message,) = to_completions([Message(role="assistant", tool_calls=(ToolCall(tool="f", input=None, id="1"),))])
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_arguments_that_do_not_parse_are_kept_and_marked_and_sent_back_as_they_were() -> None:
    call = called({"name": "f", "arguments": '{"a": '})
    assert call.input == '{"a": '
    assert call.metadata == {"arguments_error": "Input data was truncated"}
    (message,) = to_completions([Message(role="assistant", tool_calls=(call,))])
    assert message["tool_calls"][0]["function"]["arguments"] == '{"a": '


def test_arguments_that_are_an_object_already_are_taken_as_they_are() -> None:
    assert called({"name": "f", "arguments": {"a": 1}}).input == {"a": 1}


# Usage


def test_counts_that_are_texts_are_unknown_and_never_strung_together() -> None:
    usage = {"prompt_tokens": "12", "completion_tokens": "7", "total_tokens": 19}
    response = decode_completion(completion({"content": "a"}, usage=usage))
    assert response.tokens_usage == TokensUsage(total_tokens=19)
    assert len(response.warnings) == 2


def test_the_usage_of_a_stream_is_its_last_one_wherever_it_stands() -> None:
    first, last = {"prompt_tokens": 5, "completion_tokens": 1}, {"prompt_tokens": 5, "completion_tokens": 9}
    with_every_piece = assembled(delta({"content": "a"}, usage=first), delta({}, "stop", usage=last), "[DONE]")
    after_the_end = assembled(delta({"content": "a"}), delta({}, "stop"), {"choices": [], "usage": last}, "[DONE]")
    then_null = assembled(delta({"content": "a"}, usage=last), delta({}, "stop", usage=None), "[DONE]")
    elsewhere = assembled(delta({"content": "a"}, x_groq={"usage": last}), delta({}, "stop"), "[DONE]")
    for pieces in (with_every_piece, after_the_end, then_null, elsewhere):
        usage = decode_completion(pieces.body).tokens_usage
        assert usage == TokensUsage(input_tokens=5, output_tokens=9, total_tokens=14)


def test_the_usage_of_several_turns_is_their_sum() -> None:
    turns = [
        decode_completion(completion({"content": "a"}, usage={"prompt_tokens": n, "completion_tokens": 1}))
        for n in (3, 4)
    ]
    assert add_usage(turn.tokens_usage for turn in turns) == TokensUsage(
        input_tokens=7, output_tokens=2, total_tokens=9
    )


# Pieces


def test_pieces_of_calls_are_put_together_by_index() -> None:
    assert streamed_calls(
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}},
        {"index": 1, "id": "b", "function": {"name": "g", "arguments": '{"x"'}},
        {"index": 0, "function": {"arguments": '{"y": 1}'}},
        {"index": 1, "function": {"arguments": ": 2}"}},
    ) == [("a", "f", {"y": 1}), ("b", "g", {"x": 2})]


def test_servers_that_count_every_call_as_the_first_or_none_at_all_are_understood() -> None:
    both = [("a", "f", {"y": 1}), ("b", "f", {"y": 2})]
    whole = [
        {"id": name, "function": {"name": "f", "arguments": f'{{"y": {at}}}'}} for at, name in ((1, "a"), (2, "b"))
    ]
    assert streamed_calls(*({"index": 0, **each} for each in whole)) == both
    assert streamed_calls(*whole) == both
    cut = [{"id": "a", "function": {"name": "f", "arguments": '{"y"'}}, {"function": {"arguments": ": 1}"}}, whole[1]]
    assert streamed_calls(*cut) == both


def test_a_name_that_comes_again_with_every_piece_is_one_name() -> None:
    again = [{"index": 0, "id": "a", "function": {"name": "look", "arguments": part}} for part in ('{"y"', ": 1}")]
    assert streamed_calls(*again) == [("a", "look", {"y": 1})]
    in_pieces = [{"index": 0, "id": "a", "function": {"name": part}} for part in ("lo", "ok")]
    assert streamed_calls(*in_pieces, {"index": 0, "function": {"arguments": "{}"}}) == [("a", "look", {})]


def test_arguments_that_come_as_an_object_are_taken_as_they_are() -> None:
    assert streamed_calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": {"y": 1}}}) == [
        ("a", "f", {"y": 1})
    ]


@pytest.mark.parametrize(
    ("chunks", "complete"),
    [
        ([], False),
        ([delta({"content": "a"})], False),
        ([delta({"content": "a"}), delta({}, "stop")], True),
        ([delta({"content": "a"}), "[DONE]"], True),
        ([{"choices": [], "usage": {"prompt_tokens": 1}}], False),
    ],
)
def test_a_reply_is_complete_when_it_says_so(chunks: list[Any], *, complete: bool) -> None:
    assert assembled(*chunks).is_complete is complete


def test_several_answers_are_put_together_apart() -> None:
    def piece(index: int, text: str, reason: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": reason}]}

    pieces = assembled(piece(1, "b"), piece(0, "a"), piece(1, "d", "stop"), piece(0, "c", "stop"))
    response = decode_completion(pieces.body)
    assert response.text == "ac"
    assert response.warnings == ("choices: 2 answers came, the first is taken",)


_texts = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4), max_size=5)
"""Text without NUL, which is replaced when JSON is parsed."""


@given(_texts, st.lists(_texts, max_size=3))
def test_whatever_the_pieces_the_whole_is_the_same(content: list[str], calls: list[list[str]]) -> None:
    chunks: list[Any] = [delta({"content": part}) for part in content]
    for index, parts in enumerate(calls):
        chunks.append(delta({"tool_calls": [{"index": index, "id": str(index), "function": {"name": "f"}}]}))
        chunks += [delta({"tool_calls": [{"index": index, "function": {"arguments": part}}]}) for part in parts]
    message = assembled(*chunks, delta({}, "stop")).body["choices"][0]["message"]
    assert (message["content"] or "") == "".join(content)
    assert [call["function"]["arguments"] for call in message.get("tool_calls", ())] == ["".join(c) for c in calls]


# The rest


def test_an_error_in_place_of_a_reply_is_found() -> None:
    assert error_in_completion({"error": {"message": "m"}}) == {"message": "m"}
    assert error_in_completion(completion({"content": "a"}, error=None)) is None
    assert assembled({"error": {"message": "m"}}).error == {"error": {"message": "m"}}


@pytest.mark.parametrize("body", [None, [], 3, {}, {"choices": []}, {"choices": [3]}, {"choices": [{"message": None}]}])
def test_what_is_no_completion_is_refused(body: Any) -> None:
    with pytest.raises(FormatError, match="choices"):
        decode_completion(body)


_keys = st.sampled_from([
    *("choices", "message", "delta", "tool_calls", "function", "name"),
    *("arguments", "index", "content", "usage", "id"),
])  # fmt: skip
_any = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=12,
)


@given(_any)
def test_no_reply_breaks_the_reading(body: Any) -> None:
    message = body if isinstance(body, dict) else {"content": body}
    assert isinstance(decode_completion(completion(message)), ProviderResponse)
    pieces = ChatStreamDecoder()
    if isinstance(body, dict):
        pieces.feed(ServerEvent(json.dumps(body)))
        pieces.feed(ServerEvent(json.dumps({"choices": [{"delta": body}]})))
        decode_completion({**pieces.body, "choices": pieces.body["choices"] or completion({})["choices"]})
