"""Haystack: an Agent over a scripted endpoint; messages in the three forms that versions have written."""

import json
import os
from dataclasses import asdict
from typing import Any

import httpx
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, ReasoningContent, ToolCall
from haystack.tools import ComponentTool, tool
from record import wire
from record.common import *

os.environ["OPENAI_API_KEY"] = wire.KEY
record = Recorder("haystack", "haystack-ai")


def scripted(steps: list[Step]) -> OpenAIChatGenerator:
    bodies = (wire.chat_body(step, number) for number, step in enumerate(steps, 1))
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=next(bodies)))
    return OpenAIChatGenerator(model="scripted-1", http_client_kwargs={"transport": transport})


@tool
def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return weather(city)


@tool
def get_time(zone: str) -> str:
    """Tell the time in a zone."""
    return time_in(zone)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def underscored(message: dict[str, Any]) -> dict[str, Any]:
    """The format of versions 2.9 to 2.11, which later versions still read."""
    old = {f"_{key}": message[key] for key in ("role", "content", "name", "meta")}
    assert ChatMessage.from_dict(old) == ChatMessage.from_dict(message)
    return old


WANTED = {
    "call": expect(paris(status="ok"), ANSWER, usage("call")),
    "parallel": expect(three(status="ok"), ANSWER_PARALLEL, usage("parallel")),
    "failed": expect(atlantis(status="error"), ANSWER_FAILED, usage("failed")),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}
for scenario, found in WANTED.items():
    agent = Agent(chat_generator=scripted(script(scenario)), tools=[get_weather, get_time])
    result = agent.run(messages=[ChatMessage.from_user(QUESTIONS[scenario])])
    messages = [message.to_dict() for message in result["messages"]]
    if scenario == "failed":
        found["calls"][0]["output"] = result["messages"][2].tool_call_result.result
    record.save(f"{scenario}-result", scenario, "agent.run(...), messages with to_dict()", plain(result), found)
    if scenario in {"parallel", "failed", "plain"}:
        record.save(
            f"{scenario}-messages", scenario, '[message.to_dict() for message in result["messages"]]', messages, found
        )
        what = "the messages as versions from 2.9 to 2.11 wrote them"
        note = "Keys renamed by hand; the library still reads them."
        old = [underscored(each) for each in messages]
        record.save(f"{scenario}-messages-underscored", scenario, what, old, found, note, HAND)
    if scenario == "parallel":
        what = '[message.to_openai_dict_format() for message in result["messages"]]'
        record.save(
            "parallel-openai",
            scenario,
            what,
            [each.to_openai_dict_format() for each in result["messages"]],
            expect(three(), ANSWER_PARALLEL),
        )

thinks = ChatMessage.from_assistant(
    reasoning=ReasoningContent(THOUGHT), tool_calls=[ToolCall("get_weather", {"city": "Paris"}, id="call_1")]
)
tells = ChatMessage.from_tool("18 C", origin=thinks.tool_calls[0])
shown = [
    each.to_dict() for each in (ChatMessage.from_user(QUESTION), thinks, tells, ChatMessage.from_assistant(ANSWER))
]
record.save(
    "thinking-messages",
    "thinking",
    "[message.to_dict() ...], messages built by hand",
    shown,
    expect(paris(status="ok"), ANSWER),
    made_by=TYPES,
)

inner = Agent(chat_generator=scripted(script("call")), tools=[get_weather])
forecaster = ComponentTool(
    inner,
    name="forecaster",
    description="Knows the weather.",
    outputs_to_string={"source": "last_message", "handler": lambda message: message.text},
    parameters={
        "type": "object",
        "properties": {"messages": {"type": "array", "items": {"type": "object"}}},
        "required": ["messages"],
    },
)
given = {"messages": [ChatMessage.from_user(QUESTION).to_dict()]}
boss = Agent(
    chat_generator=scripted([Step(20, 5, (("call_9", "forecaster", given),)), Step(30, 6, (), ANSWER)]),
    tools=[forecaster],
)
result = boss.run(messages=[ChatMessage.from_user(QUESTION)])
record.save(
    "subagent-messages",
    "an agent as a tool of another",
    '[message.to_dict() for message in result["messages"]]',
    plain(result["messages"]),
    expect(
        [call("forecaster", given, "call_9", output=result["messages"][2].tool_call_result.result, status="ok")],
        ANSWER,
        {"input_tokens": 50, "output_tokens": 11, "total_tokens": 61},
    ),
)

chunks: list[Any] = []
bodies = (wire.sse(wire.chat_chunks(step, number)) for number, step in enumerate(script("call"), 1))
streaming = OpenAIChatGenerator(model="scripted-1", http_client_kwargs={"transport": wire.transport(bodies, httpx)})
Agent(chat_generator=streaming, tools=[get_weather]).run(
    messages=[ChatMessage.from_user(QUESTION)], streaming_callback=chunks.append
)
what = "[chunk.to_dict() ...] of what a streaming callback was given, objects in it with to_dict()"
shown = json.loads(json.dumps([each.to_dict() for each in chunks], default=lambda value: value.to_dict()))
record.save("call-stream-chunks", "call, streamed", what, shown, expect(paris(status="ok"), ANSWER, usage("call")))

agent = Agent(chat_generator=scripted(script("call")), tools=[get_weather, get_time])
result = agent.run(messages=[ChatMessage.from_user(QUESTION)])
fields = [asdict(message) for message in result["messages"]]
record.save("call-messages-fields", "call", "[dataclasses.asdict(message) ...]", plain(fields), WANTED["call"])
