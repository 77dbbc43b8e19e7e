"""AG2 since its version 1: an agent with a scripted model; the events of its history."""

import asyncio
import json

from ag2 import Agent
from ag2.events._serialization import serialize_value
from ag2.events.tool_events import ToolCallEvent, ToolCallsEvent
from ag2.events.types import ModelMessage, ModelResponse, Usage
from ag2.testing import TestConfig
from record.common import *

record = Recorder("ag2", "ag2")
TRACE = f"Traceback (most recent call last):\n  ...\nValueError: {FAILURE}\n"


def played(scenario: str) -> TestConfig:
    said = []
    for step in script(scenario):
        calls = [ToolCallEvent(name, id=number, arguments=json.dumps(given)) for number, name, given in step.calls]
        counts = Usage(prompt_tokens=step.given, completion_tokens=step.made, total_tokens=step.given + step.made)
        message = ModelMessage(step.text) if step.text else None
        reason = "tool_calls" if calls else "stop"
        said.append(
            ModelResponse(
                message, tool_calls=ToolCallsEvent(calls), usage=counts, model="scripted-1", finish_reason=reason
            )
        )
    return TestConfig(*said, raise_tool_errors=False)


def agent_of(scenario: str) -> Agent:
    agent = Agent("assistant", config=played(scenario))

    @agent.tool
    def get_weather(city: str) -> str:
        """Tell the weather in a city."""
        return weather(city)

    @agent.tool
    def get_time(zone: str) -> str:
        """Tell the time in a zone."""
        return time_in(zone)

    return agent


async def main() -> None:
    for scenario, found in {
        "call": expect(paris(), ANSWER, usage("call")),
        "parallel": expect(three(), ANSWER_PARALLEL, usage("parallel")),
        "failed": expect(atlantis(output=TRACE, status="error"), ANSWER_FAILED, usage("failed")),
        "plain": expect([], ANSWER_PLAIN, usage("plain")),
    }.items():
        reply = await agent_of(scenario).ask(QUESTIONS[scenario])
        events = [*await reply.history.get_events()]
        tagged = [serialize_value(event) for event in events]
        plain = [event.to_dict() for event in events]
        record.save(
            f"{scenario}-events",
            scenario,
            "[serialize_value(event) for event in await reply.history.get_events()]: dicts that name their class",
            tagged,
            found,
        )
        if scenario == "parallel":
            record.save(
                f"{scenario}-events-bare",
                scenario,
                "[event.to_dict() for event in await reply.history.get_events()]",
                plain,
                found,
            )


asyncio.run(main())
