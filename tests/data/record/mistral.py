"""Mistral: conversations with their entries, chat completions, streamed events, built with the client's types."""

import json
from datetime import UTC, datetime
from typing import Any

from mistralai.client import models as m
from record import wire
from record.common import *

record = Recorder("mistral", "mistralai", made_by=TYPES)
THEN = {"created_at": datetime(2026, 1, 1, tzinfo=UTC), "completed_at": datetime(2026, 1, 1, tzinfo=UTC)}


def entries(scenario: str) -> list[Any]:
    """Return the messages after the question: calls, results that the client appended, the answer."""
    shown: list[Any] = []
    for index, step in enumerate(script(scenario), 1):
        thought: list[Any] = [m.ThinkChunk(thinking=[m.TextChunk(text=step.thought)])] if step.thought else []
        if step.text or thought:
            content = [*thought, m.TextChunk(text=step.text)] if thought else step.text
            shown.append(m.MessageOutputEntry(content=content, model="scripted-1", id=f"msg_{index}", **THEN))
        for number, name, given in step.calls:
            shown.append(
                m.FunctionCallEntry(
                    tool_call_id=number, name=name, arguments=json.dumps(given), id=f"fc_{number}", **THEN
                )
            )
        for number, name, given in step.calls:
            try:
                told = weather(**given) if name == "get_weather" else time_in(**given)
            except ValueError as error:
                told = f"Error: {error}"
            shown.append(m.FunctionResultEntry(tool_call_id=number, result=told, id=f"fr_{number}", **THEN))
    return shown


def dump(value: Any) -> Any:
    return value.model_dump(mode="json")


def bare(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: each[key] for key in each if key not in {"output", "status"}} for each in found]


def counted(scenario: str, steps: slice = slice(None)) -> Any:
    summed = usage(scenario, steps)
    return m.ConversationUsageInfo(
        prompt_tokens=summed["input_tokens"],
        completion_tokens=summed["output_tokens"],
        total_tokens=summed["total_tokens"],
    )


for scenario, found in {
    "thinking": expect(paris(), ANSWER),
    "parallel": expect(three(), ANSWER_PARALLEL),
    "failed": expect(atlantis(output=f"Error: {FAILURE}"), ANSWER_FAILED),
    "plain": expect([], ANSWER_PLAIN),
}.items():
    asked = m.MessageInputEntry(role="user", content=QUESTIONS[scenario], id="msg_0", **THEN)
    history = m.ConversationHistory(conversation_id="conv_1", entries=[asked, *entries(scenario)])
    record.save(
        f"{scenario}-history",
        scenario,
        "client.beta.conversations.get_history(...).model_dump(mode='json')",
        dump(history),
        found | {"thread_id": "conv_1"},
    )

first = [each for each in entries("parallel")[:3] if each.type != "function.result"]
response = m.ConversationResponse(conversation_id="conv_1", outputs=first, usage=counted("parallel", slice(1)))
record.save(
    "parallel-conversation",
    "parallel, the first step only",
    "client.beta.conversations.start(...).model_dump(mode='json')",
    dump(response),
    expect(bare(three()[:2]), "I look both up.", usage("parallel", slice(1)), "conv_1"),
)
response = m.ConversationResponse(conversation_id="conv_1", outputs=entries("plain"), usage=counted("plain"))
record.save(
    "plain-conversation",
    "plain",
    "client.beta.conversations.start(...).model_dump(mode='json')",
    dump(response),
    expect([], ANSWER_PLAIN, usage("plain"), "conv_1"),
)
served = [
    m.ToolExecutionEntry(name="web_search", arguments='{"query": "weather in Paris"}', id="te_1", info={}, **THEN),
    m.AgentHandoffEntry(
        previous_agent_id="ag_1",
        previous_agent_name="triage",
        next_agent_id="ag_2",
        next_agent_name="forecaster",
        id="ah_1",
        **THEN,
    ),
    m.MessageOutputEntry(
        content=[
            m.TextChunk(text=ANSWER),
            m.ToolReferenceChunk(tool="web_search", title="Paris", url="https://example.com/paris"),
        ],
        model="scripted-1",
        id="msg_1",
        **THEN,
    ),
]
response = m.ConversationResponse(conversation_id="conv_1", outputs=served, usage=counted("call"))
record.save(
    "server-tool-conversation",
    "a search at the provider and a handoff",
    "client.beta.conversations.start(...).model_dump(mode='json')",
    dump(response),
    expect(
        [call("web_search", {"query": "weather in Paris"}, "te_1"), {"tool": "agent.handoff", "id": "ah_1"}],
        ANSWER,
        usage("call"),
        "conv_1",
    ),
    "What a handoff is called is for the reader to decide.",
)
for status, name in (("pending", "pending"), ("denied", "denied")):
    waits = m.FunctionCallEntry(
        tool_call_id="call_1",
        name="delete_file",
        arguments='{"path": "notes.txt"}',
        id="fc_1",
        confirmation_status=status,
        **THEN,
    )
    outputs = (
        [waits]
        if status == "pending"
        else [waits, m.MessageOutputEntry(content=ANSWER_DENIED, model="scripted-1", id="msg_1", **THEN)]
    )
    response = m.ConversationResponse(conversation_id="conv_1", outputs=outputs, usage=counted("delete", slice(1)))
    record.save(
        f"{name}-conversation",
        f"{name}: a human is asked about the call",
        "client.beta.conversations.start(...).model_dump(mode='json')",
        dump(response),
        expect(notes(status=status), "" if status == "pending" else ANSWER_DENIED, usage("delete", slice(1)), "conv_1"),
    )

when = {"created_at": datetime(2026, 1, 1, tzinfo=UTC)}
events = [
    m.ConversationEvents(
        event="conversation.response.started", data=m.ResponseStartedEvent(conversation_id="conv_1", **when)
    ),
    m.ConversationEvents(
        event="function.call.delta",
        data=m.FunctionCallEvent(
            id="fc_1", name="get_weather", tool_call_id="call_1", arguments='{"cit', output_index=0, **when
        ),
    ),
    m.ConversationEvents(
        event="function.call.delta",
        data=m.FunctionCallEvent(
            id="fc_1", name="get_weather", tool_call_id="call_1", arguments='y": "Paris"}', output_index=0, **when
        ),
    ),
    m.ConversationEvents(
        event="conversation.response.done", data=m.ResponseDoneEvent(usage=counted("call", slice(1)), **when)
    ),
]
record.save(
    "call-stream-events",
    "call, the first step only, streamed",
    "[event.model_dump(mode='json') ...]",
    [dump(event) for event in events],
    expect(bare(paris()), "", usage("call", slice(1)), "conv_1"),
)

for scenario in ("parallel", "plain"):
    body = wire.chat_body(script(scenario)[0], 1)
    body["choices"][0]["message"] = {
        key: value for key, value in body["choices"][0]["message"].items() if key in {"role", "content", "tool_calls"}
    }
    body["choices"][0].pop("logprobs")
    completion = m.ChatCompletionResponse.model_validate(body)
    found = bare(three()[:2]) if scenario == "parallel" else []
    record.save(
        f"{scenario}-completion",
        f"{scenario}, the first step only",
        "client.chat.complete(...).model_dump(mode='json')",
        dump(completion),
        expect(found, script(scenario)[0].text, usage(scenario, slice(1))),
    )
think = m.AssistantMessage(
    content=[m.ThinkChunk(thinking=[m.TextChunk(text=THOUGHT)]), m.TextChunk(text="")],
    tool_calls=[m.ToolCall(id="call_1", function=m.FunctionCall(name="get_weather", arguments={"city": "Paris"}))],
)
chat: list[Any] = [
    m.UserMessage(content=QUESTION),
    think,
    m.ToolMessage(content="18 C", tool_call_id="call_1", name="get_weather"),
    m.AssistantMessage(content=ANSWER),
]
record.save(
    "thinking-messages",
    "thinking",
    "[message.model_dump(mode='json') ...]",
    [dump(each) for each in chat],
    expect(paris(), ANSWER),
    "The arguments are an object here, not a text.",
)
