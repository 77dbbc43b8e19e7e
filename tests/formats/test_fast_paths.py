"""The fast paths of the reader agree with the full reader."""

from copy import deepcopy
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.formats.reader import decode_response, decode_response_json
from agentv.jsonio import dump_json, parse_json
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
