"""Semantic Kernel: an agent over a scripted endpoint; its chat history in the ways it is stored."""

import asyncio
import json
from typing import Any

from openai import AsyncOpenAI
from record import wire
from record.common import *
from record.wire import httpx
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function

record = Recorder("semantic_kernel", "semantic-kernel")


class Tools:
    """The plugin `Tools`; its functions are named `Tools-get_weather` and so on."""

    @kernel_function
    def get_weather(self, city: str) -> str:
        """Tell the weather in a city."""
        return weather(city)

    @kernel_function
    def get_time(self, zone: str) -> str:
        """Tell the time in a zone."""
        return time_in(zone)


def scripted(scenario: str) -> OpenAIChatCompletion:
    steps = [
        Step(step.given, step.made, tuple((n, f"Tools-{name}", given) for n, name, given in step.calls), step.text)
        for step in script(scenario)
    ]
    bodies = (wire.chat_body(step, number) for number, step in enumerate(steps, 1))
    client = AsyncOpenAI(api_key=wire.KEY, http_client=httpx.AsyncClient(transport=wire.transport(bodies)))
    return OpenAIChatCompletion(ai_model_id="scripted-1", async_client=client)


def named(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each | {"tool": f"Tools-{each['tool']}"} for each in calls]


WANTED = {
    "call": expect(named(paris()), ANSWER),
    "parallel": expect(named(three()), ANSWER_PARALLEL),
    "failed": expect(named(atlantis()), ANSWER_FAILED),
    "plain": expect([], ANSWER_PLAIN),
}


async def main() -> None:
    for scenario, found in WANTED.items():
        agent = ChatCompletionAgent(service=scripted(scenario), name="assistant", plugins=[Tools()])
        thread = ChatHistoryAgentThread()
        new: list[Any] = []

        async def keep(message: Any) -> None:
            new.append(message)

        (response,) = [
            each async for each in agent.invoke(QUESTIONS[scenario], thread=thread, on_intermediate_message=keep)
        ]
        history = thread._chat_history
        if scenario == "failed":
            found["calls"][0]["output"] = new[1].items[0].result
        last = expect(None, found["text"], usage(scenario, slice(-1, None)))
        shown = json.loads(history.serialize())
        summed = found | {"usage": usage(scenario)}
        record.save(f"{scenario}-history", scenario, "json.loads(chat_history.serialize())", shown, summed)
        if scenario in {"parallel", "plain"}:
            dicts = [each.to_dict() for each in history.messages]
            record.save(
                f"{scenario}-to-dict", scenario, "[message.to_dict() for message in chat_history]", dicts, found
            )
            record.save(
                f"{scenario}-dump",
                scenario,
                "chat_history.model_dump(mode='json')",
                history.model_dump(mode="json"),
                summed,
            )
            messages = [each.model_dump(mode="json") for each in (*new, response.message)]
            record.save(
                f"{scenario}-new-messages",
                scenario,
                "intermediate messages and the answer, model_dump(mode='json')",
                messages,
                summed,
            )
        if scenario == "call":
            note = "Only the last message: the calls were made before it, so nothing is known about them."
            record.save(
                "call-response",
                scenario,
                "response.message.model_dump(mode='json')",
                response.message.model_dump(mode="json"),
                last,
                note,
            )


asyncio.run(main())
