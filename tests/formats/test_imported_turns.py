"""Imported messages become turns where it is certain that they are."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.formats.imported_turns import as_response, read_turns, restore_turns
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse
from agentv.run.records import recorded_turns
from agentv.scoring.calls import resolve_calls
from agentv.scoring.turns import split_turns
from tests.support.examples import examples


def talk(*roles: str) -> tuple[Message, ...]:
    """Return messages of these roles; a call is a message of the assistant with one."""
    return tuple(
        Message(role="assistant", tool_calls=(ToolCall(tool=f"t{at}"),))
        if role == "call"
        else Message(role=role, content=f"m{at}")
        for at, role in enumerate(roles)
    )


def texts(*roles: str) -> list[tuple[list[str], list[str]]] | None:
    found = read_turns(talk(*roles))
    if found is None:
        return None
    response = as_response(found, ProviderResponse())
    return [
        ([message.text for message in turn.user], [message.text for message in turn.response.output_messages or ()])
        for turn in split_turns(response)
    ]


def test_a_message_of_the_user_after_a_reply_begins_a_turn() -> None:
    assert texts("user", "assistant", "user", "assistant") == [(["m0"], ["m1"]), (["m2"], ["m3"])]
    assert texts("system", "user", "user", "assistant", "user", "call", "assistant") == [
        (["m1", "m2"], ["m3"]),
        (["m4"], ["", "m6"]),
    ]


def test_one_question_is_no_conversation() -> None:
    assert texts("user", "assistant") is None
    assert texts("system", "user", "call", "assistant") is None
    assert texts("user", "user", "assistant") is None
    assert texts() is None


def test_an_agent_that_speaks_first_is_read_as_before() -> None:
    # Its first messages may hold calls that a history would take out of the evaluation.
    assert texts("assistant", "user", "assistant", "user", "assistant") is None
    assert texts("call", "user", "assistant", "user", "assistant") is None


def test_what_the_agent_did_in_an_unanswered_turn_is_not_known() -> None:
    found = read_turns(talk("user", "call", "user"))
    assert found is not None
    last = split_turns(as_response(found, ProviderResponse()))[-1]
    assert last.response.output_messages is None
    assert resolve_calls(last.response).calls is None


def test_the_case_of_an_imported_conversation_has_its_turns() -> None:
    found = read_turns(talk("system", "user", "user", "assistant", "user", "assistant"))
    assert found is not None
    assert [turn.user and turn.user.text for turn in found.script()] == ["m1\n\nm2", "m4"]
    assert [message.role for message in found.history] == ["system"]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.sampled_from(["user", "assistant", "call", "system", "odd"]), max_size=12))
def test_no_message_is_lost_and_turns_are_restored(roles: list[str]) -> None:
    messages = talk(*roles)
    found = read_turns(messages)
    if found is None:
        return
    response = as_response(found, ProviderResponse())
    assert (*found.history, *found.output) == messages
    assert [message for turn in split_turns(response) for message in turn.messages] == list(found.output)
    restored = restore_turns(messages, recorded_turns(response))
    assert restored is not None
    assert split_turns(as_response(restored, ProviderResponse())) == split_turns(response)
