"""pydantic-ai with its own instrumentation, in several versions, with content and without."""

import warnings

from common import TRACER_PROVIDER, save
from model_server import URL
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

warnings.simplefilter("ignore")

for version, content in ((2, True), (2, False), (5, True)):
    settings = InstrumentationSettings(tracer_provider=TRACER_PROVIDER, version=version, include_content=content)
    Agent.instrument_all(settings)
    model = OpenAIChatModel("gpt-test", provider=OpenAIProvider(base_url=URL, api_key="none"))
    agent = Agent(model, name="math", instructions="You add.")

    @agent.tool_plain
    def add(a: int, b: int) -> int:
        return a + b

    @agent.tool_plain(retries=3)
    def boom(x: str) -> str:
        raise ModelRetry(f"no {x}")

    first = agent.run_sync("add things")
    agent.run_sync("more", message_history=first.all_messages())
    save(f"pydantic_ai_v{version}{'' if content else '_without_content'}")
