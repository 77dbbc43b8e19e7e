"""CrewAI: a crew with a scripted model; its output with the messages of its tasks, by native calls and by text."""

import json
import logging
import os
from types import SimpleNamespace
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool
from pydantic import PrivateAttr
from record.common import *

logging.disable(logging.CRITICAL)
record = Recorder("crewai", "crewai")


class Scripted(BaseLLM):
    """Says its steps: calls as objects of OpenAI's shape, or as the text of a ReAct agent."""

    native: bool = True
    _steps: Any = PrivateAttr()

    def __init__(self, scenario: str, **more: Any) -> None:
        super().__init__(model="scripted-1", **more)
        self._steps = iter(script(scenario))

    def supports_function_calling(self) -> bool:
        return self.native

    def call(self, messages: Any, *rest: Any, **more: Any) -> Any:
        step = next(self._steps)
        self._track_token_usage_internal(
            {"prompt_tokens": step.given, "completion_tokens": step.made, "total_tokens": step.given + step.made}
        )
        if not self.native:
            if step.calls:
                _, name, given = step.calls[0]
                return f"Thought: I look it up.\nAction: {name}\nAction Input: {json.dumps(given)}"
            return f"Thought: I now know the final answer.\nFinal Answer: {step.text}"
        if step.calls:
            return [
                SimpleNamespace(
                    id=number, type="function", function=SimpleNamespace(name=name, arguments=json.dumps(given))
                )
                for number, name, given in step.calls
            ]
        return step.text

    async def acall(self, *rest: Any, **more: Any) -> Any:
        return self.call(*rest, **more)


@tool("get_weather")
def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return weather(city)


@tool("get_time")
def get_time(zone: str) -> str:
    """Tell the time in a zone."""
    return time_in(zone)


def agent_of(scenario: str, native: bool = True) -> Agent:  # noqa: FBT002 - a script's own
    return Agent(
        role="assistant",
        goal="Answer.",
        backstory="Helpful.",
        llm=Scripted(scenario, native=native),
        tools=[get_weather, get_time],
        max_retry_limit=0,
    )


def crew_of(scenario: str, native: bool = True) -> Any:  # noqa: FBT002 - a script's own
    agent = agent_of(scenario, native)
    task = Task(description=QUESTIONS[scenario], expected_output="An answer.", agent=agent)
    return Crew(agents=[agent], tasks=[task], verbose=False).kickoff()


for scenario, found in {
    "call": expect(paris(), ANSWER, usage("call")),
    "parallel": expect(three(), ANSWER_PARALLEL, usage("parallel")),
    "failed": expect(
        atlantis(output=f"Error executing tool: {FAILURE}", status="error"), ANSWER_FAILED, usage("failed")
    ),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}.items():
    note = "That the call failed is in `tool_failures`." if scenario == "failed" else ""
    record.save(
        f"{scenario}-crew-output",
        scenario,
        "crew.kickoff().model_dump(mode='json')",
        crew_of(scenario).model_dump(mode="json"),
        found,
        note,
    )
    if scenario in {"parallel", "plain"}:
        output = agent_of(scenario).kickoff(QUESTIONS[scenario])
        record.save(
            f"{scenario}-agent-output",
            scenario,
            "agent.kickoff(...).model_dump(mode='json')",
            output.model_dump(mode="json"),
            found,
        )
    if scenario == "call":
        shown = crew_of(scenario)
        record.save(
            "call-raw",
            scenario,
            '{"raw", "token_usage"} of crew.kickoff()',
            {"raw": shown.raw, "token_usage": shown.token_usage.model_dump()},
            expect(None, ANSWER, usage("call")),
            "An answer only: it says nothing about calls.",
        )

shown = crew_of("call", native=False).model_dump(mode="json")
note = "Calls are written as text here: they need not be read, but to say that there were none is wrong."
record.save(
    "react-crew-output",
    "call, of a model that cannot call tools",
    "crew.kickoff().model_dump(mode='json')",
    shown,
    expect(None, ANSWER, usage("call")) | {"unread": True},
    note,
)
