"""Are ADK's events read as the turns that they are, and their usage added up once?"""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agentv.formats.adk import decode_adk, to_adk
from agentv.model.conversation import UNSET, Message, ToolCall
from agentv.model.response import ProviderResponse, TokensUsage
from tests.support import strategies
from tests.support.reading import decode_returned


def event(*parts: dict[str, Any], role: str | None = "model", author: str = "agent", **fields: Any) -> dict[str, Any]:
    return {"author": author, "content": {"role": role, "parts": list(parts)}, **fields}


def call(name: str, args: Any = UNSET, call_id: str | None = None) -> dict[str, Any]:
    found = {"name": name, **({} if args is UNSET else {"args": args}), **({} if call_id is None else {"id": call_id})}
    return {"function_call": found}


def back(name: str, response: Any, call_id: str | None = None) -> dict[str, Any]:
    return {"function_response": {"name": name, "response": response, **({} if call_id is None else {"id": call_id})}}


def spent(read: int, wrote: int, thought: int = 0) -> dict[str, int]:
    counts = {"prompt_token_count": read, "candidates_token_count": wrote, "total_token_count": read + wrote + thought}
    return {**counts, "thoughts_token_count": thought} if thought else counts


def calls_of(response: ProviderResponse) -> list[ToolCall]:
    return [each for message in response.output_messages or () for each in message.tool_calls]


CONVERSATION = [
    event({"text": "Weather?"}, role="user", author="user"),
    event(
        {"text": "I should look", "thought": True},
        call("weather", {"city": "Paris"}, "adk-1"),
        call("now", {}, "adk-2"),
        usage_metadata=spent(40, 18, thought=5),
        id="e1",
        timestamp=1794778510.5,
    ),
    event(back("weather", {"temp_c": 18}, "adk-1"), back("now", {"result": "noon"}, "adk-2"), role="user"),
    event({"text": "18 "}, {"text": "at noon"}, usage_metadata=spent(70, 7)),
]


def camel(value: Any) -> Any:
    """Every key of the format in camelCase; what tools were given and gave back stays as it is."""
    if isinstance(value, list):
        return [camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, item in value.items():
        first, *rest = key.split("_")
        found["".join([first, *map(str.title, rest)])] = item if key in ("args", "response") else camel(item)
    return found


@pytest.mark.parametrize("events", [CONVERSATION, camel(CONVERSATION), CONVERSATION[1:]])
def test_calls_of_one_turn_are_of_one_message_and_have_their_results(events: list[Any]) -> None:
    response = decode_returned(events, "Weather?")
    first, last = response.output_messages or ()
    assert (first.role, first.name, first.id, first.content) == ("assistant", "agent", "e1", None)
    assert first.timestamp == "2026-11-15T21:35:10.500000Z"
    weather, now = first.tool_calls
    assert (weather.tool, weather.input, weather.output, weather.id) == (
        "weather",
        {"city": "Paris"},
        {"temp_c": 18},
        "adk-1",
    )
    assert (now.input, now.output) == ({}, "noon")
    assert (last.content, response.text, response.reasoning) == ("18 at noon", "18 at noon", "I should look")
    assert response.warnings == ()
    assert response.tokens_usage is not None
    counts = response.tokens_usage
    assert (counts.input_tokens, counts.output_tokens, counts.total_tokens) == (110, 30, 140)


def test_thoughts_are_part_of_the_output_tokens() -> None:
    usage = decode_adk([event({"text": "x"}, usage_metadata=spent(40, 18, thought=5))]).tokens_usage
    assert usage == TokensUsage(input_tokens=40, output_tokens=23, total_tokens=63, reasoning_tokens=5)


def test_what_was_streamed_counts_once() -> None:
    events = [
        event({"text": "Hel"}, partial=True, usage_metadata=spent(10, 1)),
        event({"text": "lo"}, partial=True, usage_metadata=spent(10, 2)),
        event({"text": "Hello"}, partial=False, usage_metadata=spent(10, 2)),
    ]
    response = decode_adk(events)
    assert response.text == "Hello"
    assert len(response.output_messages or ()) == 1
    assert response.tokens_usage == TokensUsage(input_tokens=10, output_tokens=2, total_tokens=12)


def test_one_turn_that_does_not_say_makes_the_sum_unknown() -> None:
    response = decode_adk([event(call("a", {}), usage_metadata=spent(1, 2)), event({"text": "x"})])
    assert response.tokens_usage is None
    assert "the sum is unknown" in response.warnings[0]
    silent = decode_adk([event({"text": "x"})])
    assert (silent.tokens_usage, silent.warnings) == (None, ())


def test_results_without_ids_are_paired_by_name_and_order() -> None:
    events = [event(call("a", {"n": 1}), call("b", {}), call("a", {"n": 2})), event(back("a", {"x": 1}), role="user")]
    events.append(event(back("a", {"x": 2}), back("b", {"x": 3}), role="user"))
    assert [each.output for each in calls_of(decode_adk(events))] == [{"x": 1}, {"x": 3}, {"x": 2}]


def test_null_arguments_are_none_and_missing_ones_are_unknown() -> None:
    first, second = calls_of(decode_adk([event(call("a", None), call("b"))]))
    assert (first.input, second.input) == ({}, UNSET)


def test_an_error_that_a_tool_reports_is_one() -> None:
    events = [
        event(call("a", {}, "1"), call("b", {}, "2")),
        event(back("a", {"error": "no such city"}, "1"), role="user"),
    ]
    failed, open_ = calls_of(decode_adk(events))
    assert (failed.status, failed.error, failed.output) == ("error", "no such city", {"error": "no such city"})
    assert (open_.status, open_.output) == (None, UNSET)


def test_a_tool_that_takes_its_time_is_marked() -> None:
    (found,) = calls_of(decode_adk([event(call("a", {}, "1"), long_running_tool_ids=["1"])]))
    assert found.metadata == {"long_running": True}


def test_an_event_that_says_why_there_is_no_answer_is_an_error() -> None:
    failed = {"author": "agent", "error_code": "SAFETY", "error_message": "blocked"}
    response = decode_adk([event({"text": "One moment"}), failed])
    assert not response.success
    assert response.error is not None
    assert response.error.message == "SAFETY: blocked"
    assert decode_adk([failed, event({"text": "Sorry, again:"})]).success


def test_nobody_is_taken_for_the_agent() -> None:
    events = [
        event({"text": "rules"}, role="user", author="system"),
        event({"text": "question"}, role="user", author="user"),
        event({"text": "of a kind"}, role="narrator", author="x"),
        event({"text": "mine"}, role=None, author="agent"),
    ]
    roles = [message.role for message in decode_adk(events).output_messages or ()]
    assert roles == ["system", "user", "narrator", "assistant"]


def test_parts_that_nobody_knows_are_blocks() -> None:
    code = {"executable_code": {"code": "1+1", "language": "PYTHON"}}
    (message,) = decode_adk([event({"text": "see"}, code)]).output_messages or ()
    assert message.content == [
        {"type": "text", "text": "see"},
        {"type": "executable_code", "executable_code": {"code": "1+1", "language": "PYTHON"}},
    ]


def test_what_an_event_did_beside_is_kept() -> None:
    actions = {"state_delta": {"seen": True}, "artifact_delta": {}, "transfer_to_agent": "other"}
    (message,) = (
        decode_adk([event({"text": "x"}, actions=actions, invocation_id="i", branch="b")]).output_messages or ()
    )
    assert message.metadata == {
        "invocation_id": "i",
        "branch": "b",
        "actions": {"state_delta": {"seen": True}, "transfer_to_agent": "other"},
    }


@pytest.mark.parametrize(
    "item",
    [None, 1, "x", {"content": {"parts": None}}, {"content": {"parts": [1]}}, {"content": 3}, {"timestamp": 1e300}],
)
def test_nonsense_stops_nobody(item: Any) -> None:
    assert decode_adk([item, event({"text": "Hi"})]).text == "Hi"


@given(strategies.conversations)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_call_that_was_written_is_read(conversation: tuple[Message, ...]) -> None:
    """Calls that are written as events and read again are the same, in the same order."""
    written = [each for message in conversation for each in message.tool_calls]
    read = calls_of(decode_adk(to_adk(conversation)))
    assert [each.tool for each in read] == [each.tool for each in written]
    for mine, theirs in zip(written, read, strict=True):
        if isinstance(mine.input, dict):
            assert theirs.input == mine.input
