"""The OpenAI Agents SDK with the instrumentation of OpenInference: both APIs of OpenAI, and a handoff."""

import os

os.environ["OPENAI_API_KEY"] = "none"
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from common import TRACER_PROVIDER, save
from model_server import URL
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

OpenAIAgentsInstrumentor().instrument(tracer_provider=TRACER_PROVIDER)


@function_tool
def add(a: int, b: int) -> int:
    return a + b


@function_tool
def boom(x: str) -> str:
    raise ValueError(x)


client = AsyncOpenAI(base_url=URL, api_key="none")
for name, kind in (("chat", OpenAIChatCompletionsModel), ("responses", OpenAIResponsesModel)):
    agent = Agent(name="A", instructions="You add.", model=kind("gpt-test", client), tools=[add, boom])
    Runner.run_sync(agent, "add things")
    save(f"openai_agents_{name}")
