"""Calls that the answer of a `langgraph` target rejects are known by the questions that the graph asked."""

from typing import Any

import pytest

from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse
from agentv.providers.langgraph.run import rejected_calls, with_rejected

DONE = ToolCall(tool="send", input={"to": "me"}, id="done", output="sent")
FIRST, SECOND = (ToolCall(tool="send", input={"to": to}, id=to) for to in ("ann", "bob"))
REPLY = ProviderResponse(output_messages=(Message(role="assistant", tool_calls=(DONE, FIRST, SECOND)),))
REJECT, APPROVE, IGNORE = {"type": "reject"}, {"type": "approve"}, {"type": "ignore"}


def reviews(*names: str) -> dict[str, Any]:
    """The question of LangChain's middleware about all calls of a turn."""
    return {"action_requests": [{"name": "send", "args": {"to": name}} for name in names], "review_configs": []}


def inbox(name: str) -> dict[str, Any]:
    return {"action_request": {"action": "send", "args": {"to": name}}, "config": {"allow_ignore": True}}


def approval(call_id: str) -> dict[str, Any]:
    return {"type": "tool_approval", "tool_call_id": call_id, "name": "send", "args": {}}


@pytest.mark.parametrize(
    ("questions", "answer", "rejected"),
    [
        ([reviews("ann", "bob")], {"decisions": [APPROVE, REJECT]}, {"bob"}),
        ([reviews("ann", "bob")], {"decisions": [REJECT, REJECT]}, {"ann", "bob"}),
        ([reviews("ann")], {"decisions": [{"type": "respond", "message": "no"}]}, set()),
        ([reviews("me")], {"decisions": [REJECT]}, set()),  # that call has its result already
        ([reviews("carl")], {"decisions": [REJECT]}, set()),
        ([approval("ann"), approval("bob")], REJECT, {"ann", "bob"}),
        ([approval("ann")], APPROVE, set()),
        ([inbox("bob")], IGNORE, {"bob"}),
        ([[inbox("bob")]], [IGNORE], {"bob"}),
        ([[inbox("bob")]], [{"type": "accept"}], set()),
        (["may I send it?"], "reject", set()),
        ([{"question": "may I send it?"}], REJECT, set()),
        ([reviews("ann"), None, 7, [], {"action_requests": "x"}], [REJECT], set()),
        ([], REJECT, set()),
    ],
)
def test_an_answer_rejects_the_calls_that_it_was_asked_about(
    questions: list[Any], answer: Any, rejected: set[str]
) -> None:
    interrupts = [{"id": str(at), "value": value} for at, value in enumerate(questions)]
    assert rejected_calls(interrupts, answer, REPLY.output_messages or ()) == rejected


def test_a_call_that_was_carried_out_all_the_same_is_not_denied() -> None:
    calls = (
        ToolCall(tool="send", id="ran", output="sent", status="ok"),
        ToolCall(tool="send", id="refused", output="rather not", status="error"),
        ToolCall(tool="send", id="unanswered"),
        ToolCall(tool="send", id="another", output="no such person", status="error"),
    )
    response = ProviderResponse(output_messages=(Message(role="assistant", tool_calls=calls),))
    found = with_rejected(response, {"ran", "refused", "unanswered"}).output_messages or ()
    assert [call.status for call in found[0].tool_calls] == ["ok", "denied", "denied", "error"]
    assert with_rejected(response, set()) is response
