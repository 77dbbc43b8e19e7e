"""A LangChain agent with one of two instrumentations, or with both: `python langchain_agents.py NAME`."""

import sys

from common import TRACER_PROVIDER, save
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from model_server import URL

name = sys.argv[1]
if name in ("openinference", "both"):
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=TRACER_PROVIDER)
if name in ("traceloop", "both"):
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    LangchainInstrumentor().instrument(tracer_provider=TRACER_PROVIDER)


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def boom(x: str) -> str:
    """Fail."""
    raise ValueError(f"no {x}")


@wrap_tool_call
def as_message(request, handler):
    try:
        return handler(request)
    except ValueError as error:
        return ToolMessage(content=f"Error: {error}", tool_call_id=request.tool_call["id"], status="error")


model = ChatOpenAI(model="gpt-test", base_url=URL, api_key="none")
agent = create_agent(model, [add, boom], system_prompt="You add.", middleware=[as_message])
first = agent.invoke({"messages": [{"role": "user", "content": "add things"}]})
agent.invoke({"messages": [*first["messages"], {"role": "user", "content": "more"}]})
save(f"langchain_{name}")
