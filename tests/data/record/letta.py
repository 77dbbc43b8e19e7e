"""Letta: responses and messages of an agent, built with the client's types."""

import json
from datetime import UTC, datetime
from typing import Any

from letta_client.types import ToolReturnMessage
from letta_client.types.agents import (
    ApprovalRequestMessage,
    ApprovalResponseMessage,
    AssistantMessage,
    LettaResponse,
    ReasoningMessage,
    ToolCall,
    ToolCallMessage,
    ToolReturn,
    UserMessage,
)
from letta_client.types.agents.letta_response import StopReason, Usage
from record.common import *

record = Recorder("letta", "letta-client", made_by=TYPES)
THEN = datetime(2026, 1, 1, tzinfo=UTC)


def head(number: int, kind: str) -> dict[str, Any]:
    return {
        "message_type": kind,
        "id": f"message-{number}",
        "date": THEN,
        "run_id": "run-1",
        "step_id": f"step-{number}",
    }


def messages(scenario: str) -> list[Any]:
    shown: list[Any] = []
    for index, step in enumerate(script(scenario), 1):
        if step.thought or step.calls:
            shown.append(
                ReasoningMessage(
                    **head(index, "reasoning_message"),
                    reasoning=step.thought or "I look it up.",
                    source="reasoner_model",
                )
            )
        if step.text:
            shown.append(AssistantMessage(**head(index, "assistant_message"), content=step.text))
        if step.calls:
            calls = [
                ToolCall(tool_call_id=number, name=name, arguments=json.dumps(given))
                for number, name, given in step.calls
            ]
            shown.append(ToolCallMessage(**head(index, "tool_call_message"), tool_call=calls[0], tool_calls=calls))
            returns = []
            for number, name, given in step.calls:
                try:
                    returns.append(
                        ToolReturn(
                            status="success",
                            tool_call_id=number,
                            tool_return=weather(**given) if name == "get_weather" else time_in(**given),
                        )
                    )
                except ValueError as error:
                    returns.append(ToolReturn(status="error", tool_call_id=number, tool_return=f"ValueError: {error}"))
            first = returns[0]
            shown.append(
                ToolReturnMessage(
                    **head(index, "tool_return_message"),
                    status=first.status,
                    tool_call_id=first.tool_call_id,
                    tool_return=first.tool_return,
                    tool_returns=returns,
                )
            )
    return shown


def counted(scenario: str, steps: slice = slice(None)) -> Usage:
    summed = usage(scenario, steps)
    return Usage(
        message_type="usage_statistics",
        prompt_tokens=summed["input_tokens"],
        completion_tokens=summed["output_tokens"],
        total_tokens=summed["total_tokens"],
        step_count=1,
    )


def dump(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_none=True)


NOTE = "`tool_call` repeats the first of `tool_calls`, and the fields of a return the first of `tool_returns`."
for scenario, found in {
    "thinking": expect(paris(status="ok"), ANSWER, usage("call")),
    "parallel": expect(three(status="ok"), ANSWER_PARALLEL, usage("parallel")),
    "failed": expect(atlantis(output=f"ValueError: {FAILURE}", status="error"), ANSWER_FAILED, usage("failed")),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}.items():
    made = messages(scenario)
    response = LettaResponse(
        messages=made,
        stop_reason=StopReason(stop_reason="end_turn", message_type="stop_reason"),
        usage=counted("call" if scenario == "thinking" else scenario),
    )
    record.save(
        f"{scenario}-response",
        scenario,
        "client.agents.messages.create(...).model_dump(mode='json', exclude_none=True)",
        dump(response),
        found,
        NOTE,
    )
    if scenario in {"parallel", "plain"}:
        listed = [UserMessage(**head(0, "user_message"), content=QUESTIONS[scenario]), *made]
        record.save(
            f"{scenario}-messages",
            scenario,
            "[message.model_dump(...) for client.agents.messages.list(...)]",
            [dump(each) for each in listed],
            found | {"usage": None},
            NOTE,
        )
    if scenario == "parallel":
        streamed = [*map(dump, made), dump(response.stop_reason), dump(response.usage)]
        record.save(
            "parallel-stream-events",
            scenario,
            "[chunk.model_dump(...) for client.agents.messages.stream(...)]",
            streamed,
            found,
            NOTE,
        )

wants = ToolCall(tool_call_id="call_1", name="delete_file", arguments='{"path": "notes.txt"}')
asks = ApprovalRequestMessage(**head(1, "approval_request_message"), tool_call=wants, tool_calls=[wants])
response = LettaResponse(
    messages=[asks],
    stop_reason=StopReason(stop_reason="requires_approval", message_type="stop_reason"),
    usage=counted("delete", slice(1)),
)
record.save(
    "pending-response",
    "pending: the call waits for a human",
    "client.agents.messages.create(...).model_dump(mode='json', exclude_none=True)",
    dump(response),
    expect(notes(status="pending"), "", usage("delete", slice(1))),
)
said = ApprovalResponseMessage(
    **head(1, "approval_response_message"),
    approval_request_id="message-1",
    approve=False,
    reason="the user said no",
    approvals=[{"type": "approval", "approve": False, "tool_call_id": "call_1", "reason": "the user said no"}],
)
refused = "Error: request to call tool denied. User reason: the user said no"
back = ToolReturnMessage(**head(2, "tool_return_message"), status="error", tool_call_id="call_1", tool_return=refused)
listed = [
    UserMessage(**head(0, "user_message"), content=QUESTION_DELETE),
    asks,
    said,
    back,
    AssistantMessage(**head(2, "assistant_message"), content=ANSWER_DENIED),
]
record.save(
    "denied-messages",
    "denied: a human rejects the call",
    "[message.model_dump(...) for client.agents.messages.list(...)]",
    [dump(each) for each in listed],
    expect(notes(output=refused, status="denied"), ANSWER_DENIED),
)
