"""AutoGen AgentChat: an AssistantAgent that replays a script; task results, streamed messages, handoffs, its state."""

import asyncio
import json
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import HandoffTermination, TextMentionTermination
from autogen_agentchat.teams import Swarm
from autogen_agentchat.tools import AgentTool
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient
from record.common import *

record = Recorder("autogen", "autogen-agentchat")


def played(steps: list[Step]) -> ReplayChatCompletionClient:
    said = []
    for step in steps:
        calls = [FunctionCall(id=number, name=name, arguments=json.dumps(given)) for number, name, given in step.calls]
        thought = step.thought or (step.text if calls else "") or None
        counts = RequestUsage(prompt_tokens=step.given, completion_tokens=step.made)
        said.append(
            CreateResult(
                finish_reason="function_calls" if calls else "stop",
                content=calls or step.text,
                usage=counts,
                cached=False,
                thought=thought,
            )
        )
    info = ModelInfo(
        vision=False,
        function_calling=True,
        json_output=False,
        family="unknown",
        structured_output=False,
        multiple_system_messages=True,
    )
    return ReplayChatCompletionClient(said, model_info=info)


async def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return weather(city)


async def get_time(zone: str) -> str:
    """Tell the time in a zone."""
    return time_in(zone)


TOOLS = [get_weather, get_time]


def dumped(result: TaskResult) -> dict[str, Any]:
    return {
        "messages": [message.model_dump(mode="json") for message in result.messages],
        "stop_reason": result.stop_reason,
    }


async def main() -> None:
    for scenario, found in {
        "call": expect(paris(status="ok"), ANSWER, usage("call")),
        "thinking": expect(paris(status="ok"), ANSWER, usage("call")),
        "parallel": expect(three(status="ok"), ANSWER_PARALLEL, usage("parallel")),
        "failed": expect(atlantis(output=FAILURE, status="error"), ANSWER_FAILED, usage("failed")),
        "plain": expect([], ANSWER_PLAIN, usage("plain")),
    }.items():
        agent = AssistantAgent("assistant", played(script(scenario)), tools=TOOLS, max_tool_iterations=5)
        result = await agent.run(task=QUESTIONS[scenario])
        shown = dumped(result)
        record.save(
            f"{scenario}-result", scenario, "the TaskResult, messages with model_dump(mode='json')", shown, found
        )
        if scenario in {"parallel", "failed", "plain"}:
            record.save(
                f"{scenario}-messages",
                scenario,
                "[message.model_dump(mode='json') for message in result.messages]",
                shown["messages"],
                found,
            )
            state = await agent.save_state()
            record.save(f"{scenario}-state", scenario, "await agent.save_state()", dict(state), found | {"usage": None})
    agent = AssistantAgent(
        "assistant", played(script("call")), tools=TOOLS, max_tool_iterations=5, model_client_stream=True
    )
    events = [
        dumped(each) if isinstance(each, TaskResult) else each.model_dump(mode="json")
        async for each in agent.run_stream(task=QUESTION)
    ]
    record.save(
        "call-stream",
        "call",
        "[message.model_dump(mode='json') async for message in agent.run_stream(...)], the last one the TaskResult",
        events,
        expect(paris(status="ok"), ANSWER, usage("call")),
    )

    summary = AssistantAgent("assistant", played(script("call")), tools=TOOLS)
    shown = dumped(await summary.run(task=QUESTION))
    record.save(
        "summary-result",
        "call, the tool's result being the answer",
        "the TaskResult, messages with model_dump(mode='json')",
        shown,
        expect(paris(status="ok"), "18 C", usage("call", slice(1))),
    )

    over = [Step(20, 5, (("call_9", "transfer_to_forecaster", {}),))]
    triage = AssistantAgent("triage", played(over), handoffs=["forecaster"])
    forecaster = AssistantAgent("forecaster", played(script("call")), tools=TOOLS, max_tool_iterations=5)
    team = Swarm(
        [triage, forecaster], termination_condition=TextMentionTermination("in Paris.") | HandoffTermination("user")
    )
    result = await team.run(task="Weather, please.")
    moved = call(
        "transfer_to_forecaster",
        {},
        "call_9",
        output="Transferred to forecaster, adopting the role of forecaster immediately.",
        status="ok",
    )
    record.save(
        "handoff-result",
        "call, after a handoff to another agent",
        "the TaskResult, messages with model_dump(mode='json')",
        dumped(result),
        expect([moved, *paris(status="ok")], ANSWER, {"input_tokens": 140, "output_tokens": 23, "total_tokens": 163}),
    )

    inner = AssistantAgent(
        "forecaster", played(script("call")), tools=TOOLS, max_tool_iterations=5, description="Knows the weather."
    )
    asks = [Step(20, 5, (("call_9", "forecaster", {"task": QUESTION}),)), Step(30, 6, (), ANSWER)]
    boss = AssistantAgent(
        "boss", played(asks), tools=[AgentTool(inner, return_value_as_last_message=True)], max_tool_iterations=5
    )
    shown = dumped(await boss.run(task=QUESTION))
    record.save(
        "subagent-result",
        "an agent as a tool of another",
        "the TaskResult, messages with model_dump(mode='json')",
        shown,
        expect(
            [call("forecaster", {"task": QUESTION}, "call_9", output=ANSWER, status="ok"), *paris(status="ok")],
            ANSWER,
            {"input_tokens": 170, "output_tokens": 29, "total_tokens": 199},
        ),
    )


asyncio.run(main())
