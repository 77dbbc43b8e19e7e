"""smolagents: a ToolCallingAgent and a CodeAgent with scripted models; run results and memory steps."""

import json
from typing import Any

from record.common import *
from smolagents import CodeAgent, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    Model,
)
from smolagents.monitoring import LogLevel, TokenUsage

record = Recorder("smolagents", "smolagents", durations=["duration"])


class Scripted(Model):
    """Says its steps; the last one is a call of `final_answer`."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(model_id="scripted-1")
        self.steps = iter(steps)

    def generate(self, messages: Any, **more: Any) -> ChatMessage:
        step = next(self.steps)
        calls = [
            ChatMessageToolCall(
                id=number, type="function", function=ChatMessageToolCallFunction(name=name, arguments=given)
            )
            for number, name, given in step.calls
        ]
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content=step.text or None,
            tool_calls=calls or None,
            token_usage=TokenUsage(input_tokens=step.given, output_tokens=step.made),
        )


def ending(scenario: str) -> list[Step]:
    """In place of a last text, a call of `final_answer`."""
    *steps, last = script(scenario)
    return [*steps, Step(last.given, last.made, (("call_end", "final_answer", {"answer": last.text}),))]


@tool
def get_weather(city: str) -> str:
    """Tell the weather in a city.

    Args:
        city: The city.
    """
    return weather(city)


@tool
def get_time(zone: str) -> str:
    """Tell the time in a zone.

    Args:
        zone: The zone.
    """
    return time_in(zone)


def plain(value: Any) -> Any:
    """Return the value after `json.dumps(..., default=str)`."""
    return json.loads(json.dumps(value, default=str))


def end(text: str) -> dict[str, Any]:
    return call("final_answer", {"answer": text}, "call_end", output=text)


def bare(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: each[key] for key in each if key != "output"} for each in calls]


MERGED = "What several tools of one step returned is one text, `observations`: outputs are not told apart."
WANTED = {
    "call": expect([*paris(), end(ANSWER)], ANSWER, usage("call")),
    "parallel": expect([*bare(three()[:2]), three()[2], end(ANSWER_PARALLEL)], ANSWER_PARALLEL, usage("parallel")),
    "failed": expect([*atlantis(status="error"), end(ANSWER_FAILED)], ANSWER_FAILED, usage("failed")),
    "plain": expect([end(ANSWER_PLAIN)], ANSWER_PLAIN, usage("plain")),
}
for scenario, found in WANTED.items():
    agent = ToolCallingAgent(
        tools=[get_weather, get_time],
        model=Scripted(ending(scenario)),
        verbosity_level=LogLevel.OFF,
        max_tool_threads=1,
    )
    result = agent.run(QUESTIONS[scenario], return_full_result=True)
    note = MERGED if scenario == "parallel" else ""
    shown = plain(result.dict())
    for step in shown["steps"]:
        step.pop("model_input_messages", None)
        step.pop("system_prompt", None)
    record.save(
        f"{scenario}-run-result",
        scenario,
        "agent.run(..., return_full_result=True).dict(), prompts left out",
        shown,
        found,
        note,
    )
    if scenario in {"parallel", "failed", "plain"}:
        steps = [step for step in plain(agent.memory.get_succinct_steps()) if "system_prompt" not in step]
        record.save(
            f"{scenario}-steps",
            scenario,
            "agent.memory.get_succinct_steps(), the system prompt left out",
            steps,
            found,
            note,
        )
    if scenario == "parallel":
        messages = [
            message.dict() if hasattr(message, "dict") else message for message in agent.write_memory_to_messages()[1:]
        ]
        record.save(
            "parallel-messages",
            scenario,
            "agent.write_memory_to_messages() without the system prompt",
            plain(messages),
            expect(None, None) | {"unread": True},
            "Calls are written as text here: they need not be read, but to say that there were none is wrong.",
        )

code = 'weather = get_weather(city="Paris")\nfinal_answer(f"It is {weather} in Paris.")'
agent = CodeAgent(
    tools=[get_weather],
    model=Scripted([Step(50, 10, (), f"Thought: I look it up.\n<code>\n{code}\n</code>")]),
    verbosity_level=LogLevel.OFF,
)
result = agent.run(QUESTION, return_full_result=True)
shown = plain(result.dict())
for step in shown["steps"]:
    step.pop("model_input_messages", None)
    step.pop("system_prompt", None)
record.save(
    "code-agent-run-result",
    "call, of an agent that writes code",
    "agent.run(..., return_full_result=True).dict(), prompts left out",
    shown,
    expect([call("python_interpreter", code, 1)], ANSWER, usage("call", slice(1))),
    "The one call is of the interpreter; that the code called get_weather is known to nobody.",
)

agent = ToolCallingAgent(tools=[get_weather], model=Scripted(ending("call")), verbosity_level=LogLevel.OFF)
told = plain([each.dict() if hasattr(each, "dict") else vars(each) for each in agent.run(QUESTION, stream=True)])
for each in told:
    each.pop("model_input_messages", None)
found = expect([*paris(), end(ANSWER)], ANSWER, usage("call"))
record.save("call-stream", "call", "list(agent.run(..., stream=True)), prompts left out", told, found)
