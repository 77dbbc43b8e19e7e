"""AG-UI: the events that an agent streams to a page, and message snapshots, built with the protocol's types."""

import json
from typing import Any

from ag_ui import core as c
from record.common import *

record = Recorder("ag_ui", "ag-ui-protocol", made_by=TYPES)


def told(name: str, given: dict[str, Any]) -> tuple[str, str | None]:
    if name == "delete_file":
        return f"deleted {given['path']}", None
    try:
        return (weather(**given) if name == "get_weather" else time_in(**given)), None
    except ValueError as error:
        return f"Error: {error}", str(error)


def counted(scenario: str) -> list[c.TokenUsage]:
    summed = usage("call" if scenario == "thinking" else scenario)
    return [c.TokenUsage(model="scripted-1", **summed)]


def events(scenario: str) -> list[Any]:
    shown: list[Any] = [c.RunStartedEvent(thread_id="thread_1", run_id="run_1")]
    for index, step in enumerate(script(scenario), 1):
        message = f"msg_{index}"
        if step.thought:
            reason = f"reason_{index}"
            shown += [
                c.ReasoningStartEvent(message_id=reason),
                c.ReasoningMessageStartEvent(message_id=reason, role="reasoning"),
            ]
            shown += [
                c.ReasoningMessageContentEvent(message_id=reason, delta=step.thought),
                c.ReasoningMessageEndEvent(message_id=reason),
                c.ReasoningEndEvent(message_id=reason),
            ]
        if step.text:
            shown.append(c.TextMessageStartEvent(message_id=message, role="assistant"))
            shown += [
                c.TextMessageContentEvent(message_id=message, delta=word) for word in step.text.partition(" ") if word
            ]
            shown.append(c.TextMessageEndEvent(message_id=message))
        for number, name, given in step.calls:
            text = json.dumps(given)
            shown.append(c.ToolCallStartEvent(tool_call_id=number, tool_call_name=name, parent_message_id=message))
            shown += [c.ToolCallArgsEvent(tool_call_id=number, delta=part) for part in (text[:5], text[5:])]
            shown.append(c.ToolCallEndEvent(tool_call_id=number))
        for number, name, given in step.calls:
            shown.append(
                c.ToolCallResultEvent(
                    message_id=f"result_{number}", tool_call_id=number, content=told(name, given)[0], role="tool"
                )
            )
    return [*shown, c.RunFinishedEvent(thread_id="thread_1", run_id="run_1", usage=counted(scenario))]


def messages(scenario: str) -> list[Any]:
    shown: list[Any] = [c.UserMessage(id="msg_0", role="user", content=QUESTIONS[scenario])]
    for index, step in enumerate(script(scenario), 1):
        if step.thought:
            shown.append(c.ReasoningMessage(id=f"reason_{index}", role="reasoning", content=step.thought))
        calls = [
            c.ToolCall(id=number, type="function", function=c.FunctionCall(name=name, arguments=json.dumps(given)))
            for number, name, given in step.calls
        ]
        shown.append(
            c.AssistantMessage(id=f"msg_{index}", role="assistant", content=step.text or None, tool_calls=calls or None)
        )
        for number, name, given in step.calls:
            text, error = told(name, given)
            shown.append(
                c.ToolMessage(id=f"result_{number}", role="tool", tool_call_id=number, content=text, error=error)
            )
    return shown


def wire(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


for scenario, found in {
    "thinking": expect(paris(), ANSWER),
    "parallel": expect(three(), ANSWER_PARALLEL),
    "failed": expect(atlantis(output=f"Error: {FAILURE}"), ANSWER_FAILED),
    "plain": expect([], ANSWER_PLAIN),
}.items():
    summed = usage("call" if scenario == "thinking" else scenario)
    streamed = found | {"usage": summed, "thread_id": "thread_1"}
    record.save(
        f"{scenario}-stream-events",
        scenario,
        "[event.model_dump(mode='json', by_alias=True, exclude_none=True) ...]",
        [wire(each) for each in events(scenario)],
        streamed,
    )
    failed = (
        found | {"calls": [each | {"status": "error"} for each in found["calls"]]} if scenario == "failed" else found
    )
    record.save(
        f"{scenario}-messages",
        scenario,
        "[message.model_dump(mode='json', by_alias=True, exclude_none=True) ...]",
        [wire(each) for each in messages(scenario)],
        failed,
    )
    if scenario == "parallel":
        snapshot = [
            c.RunStartedEvent(thread_id="thread_1", run_id="run_1"),
            c.MessagesSnapshotEvent(messages=messages(scenario)),
            c.RunFinishedEvent(thread_id="thread_1", run_id="run_1"),
        ]
        record.save(
            "parallel-stream-snapshot",
            scenario,
            "events of a run that sends a snapshot of its messages",
            [wire(each) for each in snapshot],
            found | {"thread_id": "thread_1"},
        )
        snake = [each.model_dump(mode="json", exclude_none=True) for each in events(scenario)]
        record.save(
            "parallel-stream-events-snake",
            scenario,
            "[event.model_dump(mode='json', exclude_none=True) ...], without aliases",
            snake,
            streamed,
        )

waits = events("delete")[:5]
asks = c.RunFinishedInterruptOutcome(
    type="interrupt",
    interrupts=[c.Interrupt(id="interrupt_1", reason="tool_approval", tool_call_id="call_1", message="Delete it?")],
)
waits.append(c.RunFinishedEvent(thread_id="thread_1", run_id="run_1", outcome=asks))
record.save(
    "pending-stream-events",
    "pending: the call waits for a human",
    "[event.model_dump(mode='json', by_alias=True, exclude_none=True) ...]",
    [wire(each) for each in waits],
    expect(notes(status="pending"), "", None, "thread_1"),
)
