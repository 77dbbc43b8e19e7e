"""CAMEL: a `ChatAgent` over a scripted model; its response with the records of its calls."""

import json
import os
from typing import Any

os.environ |= {"OPENAI_API_KEY": "none"}

from camel.agents import ChatAgent
from camel.models import StubModel
from camel.toolkits import FunctionTool
from camel.types import ChatCompletion, ModelType
from record import wire
from record.common import *

record = Recorder("camel", "camel-ai")


class Scripted(StubModel):
    """Says its steps one after the other."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(ModelType.STUB)
        self.bodies = iter([wire.chat_body(step, number) for number, step in enumerate(steps, 1)])

    def run(self, *rest: Any, **more: Any) -> Any:
        return ChatCompletion.model_validate(next(self.bodies))


def get_weather(city: str) -> str:
    """Tell the weather in a city.

    Args:
        city (str): The city.
    """
    return weather(city)


def get_time(zone: str) -> str:
    """Tell the time in a zone.

    Args:
        zone (str): The zone.
    """
    return time_in(zone)


def plain(value: Any) -> Any:
    """The fields of what JSON does not know."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return value.to_dict() if hasattr(value, "to_dict") else str(value)


for scenario, found in {
    "parallel": expect(three(), ANSWER_PARALLEL, usage("parallel")),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}.items():
    tools = [FunctionTool(get_weather), FunctionTool(get_time)]
    response = ChatAgent("Be brief.", model=Scripted(script(scenario)), tools=tools).step(QUESTIONS[scenario])
    shown = json.loads(json.dumps(vars(response), default=plain))
    record.save(f"{scenario}-response", scenario, "the fields of agent.step(...)", shown, found)
