"""OpenAI Agents SDK: agents over a scripted endpoint; input lists, items, raw responses, handoffs, approvals."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from record import wire
from record.common import *
from record.wire import httpx

set_tracing_disabled(True)
record = Recorder("openai_agents", "openai-agents")


def model(bodies: httpx.MockTransport, kind: Any = OpenAIResponsesModel) -> Any:
    client = AsyncOpenAI(api_key=wire.KEY, http_client=httpx.AsyncClient(transport=bodies))
    return kind(model="scripted-1", openai_client=client)


@function_tool
def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return weather(city)


@function_tool
def get_time(zone: str) -> str:
    """Tell the time in a zone."""
    return time_in(zone)


@function_tool(needs_approval=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


TOOLS = [get_weather, get_time, delete_file]


def agent_of(scenario: str) -> Agent[Any]:
    return Agent(name="Assistant", instructions="Be brief.", model=model(wire.responses(scenario)), tools=TOOLS)


def items(result: Any) -> list[Any]:
    """Each new item: its type, its agent's name, its raw item and its output."""
    return [
        {"type": each.type, "agent": each.agent.name, "raw_item": plain(each.raw_item)}
        | ({"output": each.output} if hasattr(each, "output") else {})
        for each in result.new_items
    ]


def plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_unset=True) if hasattr(value, "model_dump") else value


def responses_of(result: Any) -> list[Any]:
    return [
        {"output": [plain(item) for item in each.output], "usage": counts(each.usage), "response_id": each.response_id}
        for each in result.raw_responses
    ]


def counts(used: Any) -> Any:
    return {key: value for key, value in asdict(used).items() if key.endswith("tokens") or key == "requests"}


WANTED = {
    "call": expect(paris(), ANSWER),
    "thinking": expect(paris(), ANSWER),
    "parallel": expect(three(), ANSWER_PARALLEL),
    "failed": expect(atlantis(), ANSWER_FAILED),
    "plain": expect([], ANSWER_PLAIN),
}

for scenario, found in WANTED.items():
    result = Runner.run_sync(agent_of(scenario), QUESTIONS[scenario])
    listed = result.to_input_list()
    if scenario == "failed":
        found["calls"][0]["output"] = next(
            each["output"] for each in listed if each["type" if "type" in each else "role"] == "function_call_output"
        )
    record.save(f"{scenario}-input-list", scenario, "result.to_input_list()", listed, found)
    if scenario != "thinking":
        record.save(
            f"{scenario}-new-items",
            scenario,
            '[{"type", "agent", "raw_item", "output"?} for each of result.new_items]',
            items(result),
            found,
        )
    if scenario in {"parallel", "plain"}:
        used = found | {"usage": usage(scenario)}
        bare = expect(
            [{key: value for key, value in each.items() if key != "output"} for each in found["calls"]],
            found["text"],
            usage(scenario),
        )
        record.save(
            f"{scenario}-raw-responses",
            scenario,
            '[{"output", "usage", "response_id"} for each of result.raw_responses]',
            responses_of(result),
            bare,
            "What the model sent: outputs of tools are not in it.",
        )
        shown = {
            "final_output": result.final_output,
            "new_items": items(result),
            "usage": counts(result.context_wrapper.usage),
            "last_agent": result.last_agent.name,
        }
        record.save(
            f"{scenario}-result",
            scenario,
            '{"final_output", "new_items", "usage", "last_agent"} of the result',
            shown,
            used,
        )
        shown = {"final_output": result.final_output, "messages": listed, "usage": counts(result.context_wrapper.usage)}
        record.save(
            f"{scenario}-final-output-messages",
            scenario,
            '{"final_output", "messages": result.to_input_list(), "usage"}',
            shown,
            used,
        )
        record.save(
            f"{scenario}-state",
            scenario,
            "json.loads(result.to_state().to_string())",
            json.loads(result.to_state().to_string()),
            used,
        )

chat = Agent(name="Assistant", model=model(wire.chat("parallel"), OpenAIChatCompletionsModel), tools=TOOLS)
result = Runner.run_sync(chat, QUESTION_PARALLEL)
record.save(
    "parallel-chat-input-list",
    "parallel, over chat completions",
    "result.to_input_list()",
    result.to_input_list(),
    WANTED["parallel"],
)

agent = agent_of("delete")
result = Runner.run_sync(agent, QUESTION_DELETE)
title = "pending: the call waits for a human"
waiting = expect(notes(status="pending"), "", usage("delete", slice(1)))
shown = {
    "final_output": result.final_output,
    "new_items": items(result),
    "interruptions": [
        {"type": each.type, "agent": each.agent.name, "raw_item": plain(each.raw_item)} for each in result.interruptions
    ],
    "usage": counts(result.context_wrapper.usage),
}
record.save(
    "pending-result", title, '{"final_output", "new_items", "interruptions", "usage"} of the result', shown, waiting
)
record.save(
    "pending-state",
    title,
    "json.loads(result.to_state().to_string())",
    json.loads(result.to_state().to_string()),
    waiting,
)
record.save(
    "pending-input-list",
    title,
    "result.to_input_list()",
    result.to_input_list(),
    expect(notes(), ""),
    "The list alone does not say that the call waits: it has no output yet.",
)
state = result.to_state()
state.reject(result.interruptions[0])
result = asyncio.run(Runner.run(agent, state))
listed = result.to_input_list()
told = next(each["output"] for each in listed if each.get("type") == "function_call_output")
note = "That a human said no is only in the text."
record.save(
    "denied-input-list",
    "denied: a human rejects the call",
    "result.to_input_list()",
    listed,
    expect(notes(output=told), ANSWER_DENIED),
    note,
)
record.save(
    "denied-new-items",
    "denied: a human rejects the call",
    '[{"type", "agent", "raw_item", "output"?} for each of result.new_items]',
    items(result),
    expect(notes(output=told), ANSWER_DENIED),
    note,
)


def told_in(steps: list[Step]) -> Iterator[dict[str, Any]]:
    return (wire.response_body(step, number) for number, step in enumerate(steps, 11))


forecaster = Agent(
    name="Forecaster",
    handoff_description="Knows the weather.",
    model=model(wire.responses("call")),
    tools=[get_weather],
)
over = [Step(20, 5, (("call_9", "transfer_to_forecaster", {}),))]
triage = Agent(name="Triage", model=model(wire.transport(told_in(over))), handoffs=[forecaster])
result = Runner.run_sync(triage, QUESTION)
transfer = call("transfer_to_forecaster", {}, "call_9", output='{"assistant": "Forecaster"}')
handed = expect([transfer, *paris()], ANSWER)
record.save(
    "handoff-input-list",
    "call, after a handoff to another agent",
    "result.to_input_list()",
    result.to_input_list(),
    handed,
)
record.save(
    "handoff-new-items",
    "call, after a handoff to another agent",
    '[{"type", "agent", "raw_item", "output"?} for each of result.new_items]',
    items(result),
    handed,
)

inner = Agent(name="Forecaster", model=model(wire.responses("call")), tools=[get_weather])
asks = [Step(20, 5, (("call_9", "ask_forecaster", {"input": QUESTION}),)), Step(30, 6, (), ANSWER)]
outer = Agent(
    name="Boss",
    model=model(wire.transport(told_in(asks))),
    tools=[inner.as_tool("ask_forecaster", "Ask the forecaster.")],
)
result = Runner.run_sync(outer, QUESTION)
record.save(
    "subagent-input-list",
    "an agent as a tool of another",
    "result.to_input_list()",
    result.to_input_list(),
    expect([call("ask_forecaster", {"input": QUESTION}, "call_9", output=ANSWER)], ANSWER),
)


async def streamed() -> list[Any]:
    """A stream of its own: the endpoint answers with server-sent events."""
    bodies = [wire.response_body(step, number) for number, step in enumerate(script("call"), 1)]

    def answer(request: httpx.Request) -> httpx.Response:
        body = bodies.pop(0)
        events = [
            {
                "type": "response.created",
                "response": body | {"output": [], "status": "in_progress", "usage": None},
                "sequence_number": 0,
            }
        ]
        for index, item in enumerate(body["output"]):
            events.append(
                {"type": "response.output_item.added", "output_index": index, "item": item, "sequence_number": 1}
            )
            events.append(
                {"type": "response.output_item.done", "output_index": index, "item": item, "sequence_number": 2}
            )
        events.append({"type": "response.completed", "response": body, "sequence_number": 3})
        lines = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
        return httpx.Response(200, text=lines, headers={"content-type": "text/event-stream"})

    agent = Agent(name="Assistant", model=model(httpx.MockTransport(answer)), tools=TOOLS)
    result = Runner.run_streamed(agent, QUESTION)
    shown = []
    async for event in result.stream_events():
        if event.type == "raw_response_event":
            shown.append({"type": event.type, "data": plain(event.data)})
        elif event.type == "run_item_stream_event":
            item = event.item
            told = {"type": item.type, "raw_item": plain(item.raw_item)} | (
                {"output": item.output} if hasattr(item, "output") else {}
            )
            shown.append({"type": event.type, "name": event.name, "item": told})
        else:
            shown.append({"type": event.type, "new_agent": event.new_agent.name})
    return shown


events = asyncio.run(streamed())
record.save(
    "call-stream-events",
    "call",
    "fields of every event of result.stream_events()",
    events,
    expect(paris(), ANSWER, usage("call")),
)
