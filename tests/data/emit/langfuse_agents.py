"""A LangChain agent with the callback of Langfuse."""

import os

os.environ |= {"LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk", "LANGFUSE_HOST": "http://127.0.0.1:9"}
from common import TRACER_PROVIDER, save
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langfuse import Langfuse
from langfuse.langchain import CallbackHandler
from model_server import URL

Langfuse(tracer_provider=TRACER_PROVIDER)


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
config = {"callbacks": [CallbackHandler()], "metadata": {"langfuse_session_id": "session-langfuse"}}
first = agent.invoke({"messages": [{"role": "user", "content": "add things"}]}, config=config)
agent.invoke({"messages": [*first["messages"], {"role": "user", "content": "more"}]}, config=config)
save("langfuse")
os._exit(0)  # there is no server that it could send to
