"""The OpenAI Agents SDK with the instrumentation of Logfire."""

import os

os.environ["OPENAI_API_KEY"] = "none"
import logfire
from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_trace_processors
from common import SPANS, save
from model_server import URL
from openai import AsyncOpenAI
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

logfire.configure(
    send_to_logfire=False,
    console=False,
    additional_span_processors=[SimpleSpanProcessor(SPANS)],
    service_name="emitter",
)
set_trace_processors([])
logfire.instrument_openai_agents()


@function_tool
def add(a: int, b: int) -> int:
    return a + b


@function_tool
def boom(x: str) -> str:
    raise ValueError(x)


client = AsyncOpenAI(base_url=URL, api_key="none")
agent = Agent(name="A", instructions="You add.", model=OpenAIResponsesModel("gpt-test", client), tools=[add, boom])
Runner.run_sync(agent, "add things")
save("logfire_openai_agents")
