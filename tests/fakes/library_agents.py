"""Agents of libraries that live in environments of their own, each over a model that calls `weather` once."""

ENDPOINT = """
import json

import httpx

TOOL = "weather"

def answer(request):
    asked = json.loads(request.content)
    messages = asked["messages"]
    message = {"role": "assistant", "content": f"told {[each['role'] for each in messages]}"}
    if messages[-1]["role"] != "tool":
        call = {"id": "c1", "type": "function", "function": {"name": TOOL, "arguments": '{"city": "Paris"}'}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    head = {"id": "r", "created": 0, "model": "s"}
    if asked.get("stream"):
        kind = {**head, "object": "chat.completion.chunk"}
        calls = [{**call, "index": 0} for call in message.pop("tool_calls", [])]
        delta = {**message, "tool_calls": calls} if calls else message
        begun = {"index": 0, "delta": delta, "finish_reason": None}
        ended = {"index": 0, "delta": {}, "finish_reason": reason}
        chunks = [{**kind, "choices": [begun]}, {**kind, "choices": [ended]}, {**kind, "choices": [], "usage": usage}]
        lines = "".join(f"data: {json.dumps(chunk)}\\n\\n" for chunk in chunks) + "data: [DONE]\\n\\n"
        return httpx.Response(200, text=lines, headers={"content-type": "text/event-stream"})
    return httpx.Response(200, json={**head, "object": "chat.completion", "choices": [choice], "usage": usage})
"""

SMOLAGENTS = """
from smolagents import ToolCallingAgent, tool
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, Model
from smolagents.monitoring import LogLevel, TokenUsage

class Scripted(Model):
    def generate(self, messages, **more):
        told = any(message.role == MessageRole.TOOL_RESPONSE for message in messages)
        name, given = ("final_answer", {"answer": "18"}) if told else ("weather", {"city": "Paris"})
        function = ChatMessageToolCallFunction(name=name, arguments=given)
        call = ChatMessageToolCall(id=f"call-{name}", type="function", function=function)
        usage = TokenUsage(input_tokens=10, output_tokens=5)
        return ChatMessage(role=MessageRole.ASSISTANT, content=None, tool_calls=[call], token_usage=usage)

@tool
def weather(city: str) -> str:
    '''Tell the weather.

    Args:
        city: The city.
    '''
    return "18 C"

agent = ToolCallingAgent(tools=[weather], model=Scripted(model_id="s"), verbosity_level=LogLevel.OFF)

def returned(prompt):
    return agent.run(prompt, return_full_result=True)

def streamed(prompt):
    yield from agent.run(prompt, stream=True)

def memory(prompt):
    agent.run(prompt)
    return agent.memory.steps
"""

LLAMA_INDEX = """
from typing import Any
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, TextBlock, ToolCallBlock
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection

class Scripted(FunctionCallingLLM):
    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True, model_name="s")

    def said(self, messages):
        if messages[-1].role == "tool":
            block = TextBlock(text=f"told {[message.role.value for message in messages]}")
        else:
            block = ToolCallBlock(tool_call_id="c1", tool_name="weather", tool_kwargs={"city": "Paris"})
        return ChatResponse(message=ChatMessage(role="assistant", blocks=[block]))

    def get_tool_calls_from_response(self, response, *rest, **more):
        return [
            ToolSelection(tool_id=block.tool_call_id, tool_name=block.tool_name, tool_kwargs=block.tool_kwargs)
            for block in response.message.blocks
            if isinstance(block, ToolCallBlock)
        ]

    def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **more):
        return {"messages": chat_history or []}

    async def achat(self, messages, **more):
        return self.said(messages)

    async def astream_chat(self, messages, **more):
        async def stream():
            yield self.said(messages)

        return stream()

    def chat(self, messages, **more):
        return self.said(messages)

    def refuse(self, *rest, **more):
        raise NotImplementedError

    complete = acomplete = stream_chat = stream_complete = astream_complete = refuse

def weather(city: str) -> str:
    "Tell the weather."
    return "18 C"

agent = FunctionAgent(tools=[weather], llm=Scripted())
member = FunctionAgent(name="a", description="b", tools=[weather], llm=Scripted())
workflow = AgentWorkflow(agents=[member], root_agent="a")

async def returned(prompt):
    return await agent.run(user_msg=prompt)

async def streamed(prompt):
    handler = agent.run(user_msg=prompt)
    async for event in handler.stream_events():
        yield event
"""

STRANDS = """
import json
from strands import Agent, tool
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.models import Model

class Scripted(Model):
    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *rest, **more):
        raise NotImplementedError
        yield {}

    async def stream(self, messages, *rest, **more):
        yield {"messageStart": {"role": "assistant"}}
        is_told = any("toolResult" in block for block in messages[-1]["content"])
        if is_told:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": f"told {[message['role'] for message in messages]}"}}}
        else:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "c1", "name": "weather"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps({"city": "Paris"})}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if is_told else "tool_use"}}
        usage = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}

@tool
def weather(city: str) -> str:
    "Tell the weather."
    return "18 C"

agent = Agent(model=Scripted(), tools=[weather], callback_handler=None)

def returned(prompt):
    return Agent(model=Scripted(), tools=[weather], callback_handler=None)(prompt)

async def streamed(prompt):
    async for event in Agent(model=Scripted(), tools=[weather], callback_handler=None).stream_async(prompt):
        yield event

again = Agent(model=Scripted(), tools=[weather], callback_handler=None)

class Forgetful(SlidingWindowConversationManager):
    def apply_management(self, agent, **more):
        del agent.messages[:-1]

forgetful = Agent(model=Scripted(), tools=[weather], callback_handler=None, conversation_manager=Forgetful())

def repeated(prompt):
    again(prompt)
    again.messages.clear()
    return again(prompt)
"""

AGNO = (
    ENDPOINT
    + """
import os
os.environ["AGNO_TELEMETRY"] = "false"
from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.team import Team

def weather(city: str) -> str:
    "Tell the weather."
    return "18 C"

class Client(httpx.AsyncClient):
    def __init__(self):
        super().__init__(transport=httpx.MockTransport(answer))

def model():
    return OpenAIChat(id="s", api_key="k", http_client=Client())

agent = Agent(name="assistant", model=model(), tools=[weather], telemetry=False)
team = Team(name="team", model=model(), members=[agent], tools=[weather], telemetry=False)

async def returned(prompt):
    return await agent.arun(prompt)

async def streamed(prompt):
    async for event in agent.arun(prompt, stream=True, stream_events=True):
        yield event
"""
)

AUTOGEN = """
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, FunctionExecutionResultMessage, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

INFO = ModelInfo(
    vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False,
    multiple_system_messages=True,
)

class Scripted(ReplayChatCompletionClient):
    async def create(self, messages, **more):
        usage = RequestUsage(prompt_tokens=10, completion_tokens=5)
        if isinstance(messages[-1], FunctionExecutionResultMessage):
            text = f"told {[type(message).__name__ for message in messages]}"
            return CreateResult(finish_reason="stop", content=text, usage=usage, cached=False)
        call = FunctionCall(id="c1", name="weather", arguments='{"city": "Paris"}')
        return CreateResult(finish_reason="function_calls", content=[call], usage=usage, cached=False)

async def weather(city: str) -> str:
    "Tell the weather."
    return "18 C"

def assistant():
    model = Scripted([], model_info=INFO)
    return AssistantAgent("assistant", model_client=model, tools=[weather], reflect_on_tool_use=True)

agent = assistant()
team = RoundRobinGroupChat([assistant()], termination_condition=MaxMessageTermination(2))

async def returned(prompt):
    return await assistant().run(task=prompt)

async def streamed(prompt):
    async for message in assistant().run_stream(task=prompt):
        yield message
"""

AGENT_FRAMEWORK = """
from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message, tool
from agent_framework import UsageDetails

class Scripted(FunctionInvocationLayer, BaseChatClient):
    def _inner_get_response(self, *, messages, stream, options, **more):
        async def whole():
            contents = [Content.from_function_call(call_id="c1", name="weather", arguments='{"city": "Paris"}')]
            if any(content.type == "function_result" for content in messages[-1].contents):
                contents = [Content.from_text(f"told {[str(message.role) for message in messages]}")]
            counts = UsageDetails(input_token_count=10, output_token_count=5, total_token_count=15)
            return ChatResponse(messages=[Message(role="assistant", contents=contents)], usage_details=counts)

        return whole()

@tool(approval_mode="never_require")
def weather(city: str) -> str:
    "Tell the weather."
    return "18 C"

agent = Agent(client=Scripted(), tools=[weather])

async def returned(prompt):
    return await agent.run(prompt)
"""

HAYSTACK = (
    ENDPOINT
    + """
import os
os.environ |= {"OPENAI_API_KEY": "k", "HAYSTACK_TELEMETRY_ENABLED": "False"}
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.tools import tool

@tool
def weather(city: str) -> str:
    "Tell the weather."
    return "18 C"

generator = OpenAIChatGenerator(model="s", http_client_kwargs={"transport": httpx.MockTransport(answer)})
agent = Agent(chat_generator=generator, tools=[weather])
from haystack.dataclasses import ChatMessage

def returned(prompt):
    return agent.run(messages=[ChatMessage.from_user(prompt)])
"""
)

SEMANTIC_KERNEL = (
    ENDPOINT
    + """
from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function

TOOL = "Tools-weather"

class Tools:
    @kernel_function
    def weather(self, city: str) -> str:
        "Tell the weather."
        return "18 C"

client = AsyncOpenAI(api_key="k", http_client=httpx.AsyncClient(transport=httpx.MockTransport(answer)))
service = OpenAIChatCompletion(ai_model_id="s", async_client=client)
agent = ChatCompletionAgent(service=service, name="assistant", plugins=[Tools()])
"""
)

DSPY = """
import logging
import dspy
from dspy.utils.dummies import DummyLM
logging.disable(logging.CRITICAL)

def weather(city: str) -> str:
    "Tell the weather."
    return "18 C"

said = [
    {"next_thought": "I look.", "next_tool_name": "weather", "next_tool_args": '{"city": "Paris"}'},
    {"next_thought": "Done.", "next_tool_name": "finish", "next_tool_args": "{}"},
    {"reasoning": "I know.", "answer": "18"},
]
dspy.configure(lm=DummyLM(said * 3))
agent = dspy.ReAct("question -> answer", tools=[weather])
two = dspy.ReAct("question, city -> answer", tools=[weather])

class Wrapped(dspy.Module):
    def forward(self, question):
        return agent(question=question)

wrapped = Wrapped()

def returned(prompt):
    return agent(question=prompt)
"""

CREWAI = """
import logging, os
os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}
from types import SimpleNamespace
from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool
logging.disable(logging.CRITICAL)

class Scripted(BaseLLM):
    def supports_function_calling(self):
        return True

    def call(self, messages, *rest, **more):
        self._track_token_usage_internal({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
        if any(message.get("role") == "tool" for message in messages):
            return f"told {sum('Weather in Paris?' in str(message['content']) for message in messages)}"
        function = SimpleNamespace(name="weather", arguments='{"city": "Paris"}')
        return [SimpleNamespace(id="c1", type="function", function=function)]

    async def acall(self, *rest, **more):
        return self.call(*rest, **more)

@tool("weather")
def weather(city: str) -> str:
    "Tell the weather."
    return "18 C"

def worker():
    return Agent(role="assistant", goal="Answer.", backstory="Helpful.", llm=Scripted(model="s"), tools=[weather])

def crew():
    member = worker()
    task = Task(description="{question}", expected_output="An answer.", agent=member)
    return Crew(agents=[member], tasks=[task], verbose=False)

single = worker()
member = worker()
agent = crew()
greeting = Task(description="Say hello.", expected_output="An answer.", agent=member)
fixed = Crew(agents=[member], tasks=[greeting], verbose=False)

def returned(prompt):
    return crew().kickoff(inputs={"question": prompt})
"""

CODES = {
    "smolagents": SMOLAGENTS,
    "llama_index": LLAMA_INDEX,
    "strands": STRANDS,
    "agno": AGNO,
    "autogen": AUTOGEN,
    "agent_framework": AGENT_FRAMEWORK,
    "haystack": HAYSTACK,
    "semantic_kernel": SEMANTIC_KERNEL,
    "dspy": DSPY,
    "crewai": CREWAI,
}
