"""The fast paths of the reader agree with the full reader."""

from copy import deepcopy
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.formats import reader, usage
from agentv.formats.fields import Report
from agentv.formats.reader import decode_response, decode_response_json, detect_conversation, detect_reply
from agentv.jsonio import dump_json, parse_json
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse
from tests.support import strategies
from tests.support.examples import examples

CHECK = settings(deadline=None, max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow])


def decode_slowly(reply: Any) -> ProviderResponse:
    with (
        patch("agentv.formats.messages.read_plain", lambda _: None),
        patch("agentv.formats.messages.read_plain_calls", lambda _: None),
        patch("agentv.formats.reader.read_plain", lambda _: None),
        patch("agentv.formats.reader.decode_canonical", lambda _: None),
    ):
        return decode_response(reply)


def in_any_order(response: ProviderResponse) -> ProviderResponse:
    """Return the reply with its warnings sorted: the order of reading is not significant."""
    return replace(response, warnings=tuple(sorted(response.warnings)))


@CHECK
@given(strategies.replies | strategies.canonical_replies)
def test_a_reply_is_read_the_same_fast_and_slowly(reply: dict[str, Any]) -> None:
    before = deepcopy(reply)
    response = decode_response(reply)
    assert in_any_order(response) == in_any_order(decode_slowly(reply))
    assert reply == before, "the caller's objects were written to"


@CHECK
@given(strategies.openai_conversations)
def test_openai_messages_are_read_the_same_fast_and_slowly(messages: list[dict[str, Any]]) -> None:
    assert decode_response(messages) == decode_slowly({"output_messages": messages})


@CHECK
@given(strategies.replies)
def test_a_reply_is_read_the_same_from_its_json(reply: dict[str, Any]) -> None:
    data = dump_json(reply)
    assert in_any_order(decode_response_json(data)) == in_any_order(decode_slowly(parse_json(data)))


@CHECK
@given(strategies.replies)
def test_messages_and_events_that_were_stored_are_read_the_same_again(reply: dict[str, Any]) -> None:
    data = dump_json(reply)
    assume(b"u0000" not in data)  # inside of `arguments` a NUL stays until it is written
    response = decode_response_json(data)
    again = decode_response_json(dump_json(response))
    assert (again.output_messages, again.trace, again.tokens_usage) == (
        response.output_messages,
        response.trace,
        response.tokens_usage,
    )


@CHECK
@given(st.dictionaries(strategies.words, strategies.values) | st.lists(strategies.values))
def test_no_object_or_list_is_refused(reply: Any) -> None:
    assert isinstance(decode_response(reply), ProviderResponse)


NAMES = sorted(reader.NAMING - {"messages"})
PLAIN = st.sampled_from(["v", "", "error", "assistant", '{"a": 1}', "é", "\ud800", 3, -1, 1.5, True, None])


@CHECK
@given(
    st.dictionaries(st.sampled_from(NAMES), PLAIN, min_size=1, max_size=4),
    strategies.openai_conversations | st.just([{"role": "assistant", "content": "a", "name": "bob"}]),
)
def test_messages_with_ids_and_times_beside_them_are_read_the_same_fast_and_slowly(
    fields: dict[str, Any], messages: list[dict[str, Any]]
) -> None:
    value = {**fields, "messages": messages}
    prompt = [Message(role="user", content="q")]
    found = detect_conversation(value), detect_reply(value), detect_reply(value, prompt)
    with patch("agentv.formats.reader._RegistryReader._read_named", lambda *_: None):
        assert found == (detect_conversation(value), detect_reply(value), detect_reply(value, prompt))


PLACES = sorted({
    place
    for shape in usage.SHAPES
    for places in (shape.marks, *shape.counts.values(), *shape.added.values())
    for place in places
} | {"metadata", "service_tier", "server_tool_use.web_search_requests", "costUsd"})  # fmt: skip
COUNTS: st.SearchStrategy[Any] = st.one_of(
    st.integers(0, 300), st.sampled_from([None, -1, 1.0, 1.5, "3", True, 2**64, [], {}])
)


@CHECK
@given(st.dictionaries(st.sampled_from(PLACES), COUNTS, max_size=7))
def test_token_counts_are_read_the_same_fast_and_slowly(counts: dict[str, Any]) -> None:
    data: dict[str, Any] = {}
    for place, count in counts.items():
        key, _, inner = place.partition(".")
        if not inner:
            data[key] = count
        elif isinstance(data.setdefault(key, {}), dict):
            data[key][inner] = count
    quick, slow = Report(), Report()
    found = usage.read_usage(data, ("u",), quick)
    with patch("agentv.formats.usage._plain_keys", lambda _: None):
        assert found == usage.read_usage(data, ("u",), slow)
    assert (quick.warnings, quick.server_tool_uses) == (slow.warnings, slow.server_tool_uses)
