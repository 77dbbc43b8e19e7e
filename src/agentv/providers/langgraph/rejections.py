"""Calls that the answer to an interrupt of the graph rejects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.fields import objects_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from agentv.model.conversation import Message, ToolCall
    from agentv.model.response import ProviderResponse

_REJECTIONS = frozenset(("reject", "ignore"))
"""Answers by which a call is not carried out: LangChain's middleware has the first, the agent inbox the second."""


def rejected_calls(interrupts: Sequence[Mapping[str, Any]], answer: Any, messages: Iterable[Message]) -> set[str]:
    """Return the ids of the calls without a result that an answer to these questions rejects."""
    calls = [call for message in messages for call in message.tool_calls]
    waiting = [call for call in calls if call.output is UNSET and call.id is not None]
    rejected_ids: set[str] = set()
    for interrupt in interrupts:
        for question, decision in _questions(interrupt.get("value"), answer):
            if decision.get("type") in _REJECTIONS:
                rejected_ids |= _calls_in_question(question, [call for call in waiting if call.id not in rejected_ids])
    return rejected_ids


def with_rejected(response: ProviderResponse, rejected: Collection[str]) -> ProviderResponse:
    """Return the reply with these calls `denied`, but for those whose result says that they were carried out."""
    messages = [_denied_in(message, rejected) for message in response.output_messages or ()]
    return replace(response, output_messages=tuple(messages)) if rejected and messages else response


def _denied_in(message: Message, rejected: Collection[str]) -> Message:
    metadata = message.metadata or {}
    if message.role == "tool" and message.tool_call_id in rejected and metadata.get("status") == "error":
        return replace(message, metadata={**metadata, "status": "denied"})  # its call is in an earlier turn
    return replace(message, tool_calls=tuple([_denied(call, rejected) for call in message.tool_calls]))


def _denied(call: ToolCall, rejected: Collection[str]) -> ToolCall:
    is_carried_out = call.output is not UNSET and call.status != "error"
    return call if call.id not in rejected or is_carried_out else replace(call, status="denied")


def _questions(value: Any, answer: Any) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each question about a call with its part of the answer.

    Known are the forms of LangChain's `HumanInTheLoopMiddleware` and of the agent inbox: any other interrupt says
    nothing about calls.
    """
    questions = objects_in(value) if isinstance(value, (list, tuple)) else objects_in([value])
    answers = objects_in(answer) if isinstance(answer, (list, tuple)) else objects_in([answer])
    for question, decision in zip(questions, answers, strict=False):
        if "action_requests" in question:
            yield from zip(objects_in(question["action_requests"]), objects_in(decision.get("decisions")), strict=False)
        elif question.get("type") == "tool_approval":
            yield question, decision
        else:
            yield from ((each, decision) for each in objects_in([question.get("action_request")]))


def _calls_in_question(question: Mapping[str, Any], waiting: Sequence[ToolCall]) -> set[str]:
    if isinstance(question.get("tool_call_id"), str):
        return {call.id for call in waiting if call.id is not None and call.id == question["tool_call_id"]}
    name = question.get("name", question.get("action"))
    same = [call.id for call in waiting if call.tool == name and call.input == question.get("args")]
    return {same[-1]} if same and same[-1] is not None else set()
