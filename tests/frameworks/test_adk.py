"""Are the events of a real ADK runner read right, as they come and from its session?"""

from pathlib import Path

from agentv.model.response import TokensUsage
from tests.support.environments import ask_there

AGENT = """
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

class Scripted(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        parts = [part for content in request.contents for part in content.parts]
        if not any(part.function_response for part in parts):
            yield LlmResponse(
                content=types.Content(role="model", parts=[
                    types.Part(text="I should look", thought=True),
                    types.Part(function_call=types.FunctionCall(name="weather", args={"city": "Paris"})),
                    types.Part(function_call=types.FunctionCall(name="now", args={})),
                    types.Part(function_call=types.FunctionCall(name="weather", args={"city": "Atlantis"})),
                ]),
                usage_metadata=types.GenerateContentResponseUsageMetadata(
                    prompt_token_count=10, candidates_token_count=5, thoughts_token_count=2, total_token_count=17
                ),
            )
            return
        counts = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=20, candidates_token_count=3, total_token_count=23
        )
        if stream:
            for piece in ("18 ", "at noon"):
                content = types.Content(role="model", parts=[types.Part(text=piece)])
                yield LlmResponse(partial=True, content=content, usage_metadata=counts)
        content = types.Content(role="model", parts=[types.Part(text="18 at noon")])
        yield LlmResponse(content=content, usage_metadata=counts)

def weather(city: str) -> dict:
    "Tells the weather."
    return {"temp_c": 18} if city == "Paris" else {"error": "no such city"}

def now() -> str:
    "Tells the time."
    return "noon"

runner = InMemoryRunner(agent=LlmAgent(name="clock", model=Scripted(model="s"), tools=[weather, now]), app_name="app")

async def agent(prompt):
    session = await runner.session_service.create_session(app_name="app", user_id="eval")
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    async for event in runner.run_async(user_id="eval", session_id=session.id, new_message=message):
        yield event

async def streamed(prompt):
    session = await runner.session_service.create_session(app_name="app", user_id="eval")
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    async for event in runner.run_async(
        user_id="eval", session_id=session.id, new_message=message, run_config=config
    ):
        yield event

async def listed(prompt):
    return [event async for event in agent(prompt)]

async def session(prompt):
    await listed(prompt)
    found = await runner.session_service.list_sessions(app_name="app", user_id="eval")
    return await runner.session_service.get_session(app_name="app", user_id="eval", session_id=found.sessions[0].id)
"""


def test_a_run_of_adk_is_read(tmp_path: Path) -> None:
    names = ("agent", "streamed", "listed", "session")
    for name, response in zip(names, ask_there(".venv-adk", AGENT, tmp_path, *names), strict=True):
        assert response.error is None, name
        first, last = response.output_messages or ()
        assert (first.role, first.name, last.content) == ("assistant", "clock", "18 at noon")
        paris, now, atlantis = first.tool_calls
        assert (paris.tool, paris.input, paris.output, paris.status) == (
            "weather",
            {"city": "Paris"},
            {"temp_c": 18},
            None,
        )
        assert (now.tool, now.input, now.output) == ("now", {}, "noon")
        assert (atlantis.status, atlantis.error) == ("error", "no such city")
        assert (response.text, response.reasoning) == ("18 at noon", "I should look")
        assert response.tokens_usage == TokensUsage(input_tokens=30, output_tokens=10, total_tokens=40)
        assert response.warnings == ()


TARGETS = """
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=10, candidates_token_count=5, total_token_count=15
)

class Scripted(BaseLlm):
    tool: str = "weather"
    args: dict = {"city": "Paris"}

    async def generate_content_async(self, request, stream=False):
        part = types.Part(function_call=types.FunctionCall(name=self.tool, args=self.args))
        if request.contents[-1].parts[-1].function_response:
            part = types.Part(text=f"told {[content.role for content in request.contents]}")
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=USAGE)

class Failing(Scripted):
    async def generate_content_async(self, request, stream=False):
        if request.contents[-1].parts[-1].function_response:
            raise RuntimeError("out of order")
        async for each in super().generate_content_async(request, stream):
            yield each

def weather(city: str) -> dict:
    "Tell the weather."
    return {"temp_c": 18}

def clock(model=Scripted):
    return LlmAgent(name="clock", model=model(model="s"), tools=[weather])

agent = clock()
runner = InMemoryRunner(agent=clock(), app_name="mine")
app = App(name="mine", root_agent=clock())
boss = Scripted(model="s", tool="clock", args={"request": "Paris?"})
nested = LlmAgent(name="boss", model=boss, tools=[AgentTool(agent=clock())])
failing = clock(Failing)
"""


def test_agents_runners_and_apps_of_adk_are_targets(tmp_path: Path) -> None:
    names = ("agent", "runner", "runner", "app", "agent+", "nested", "failing")
    replies = ask_there(".venv-adk", TARGETS, tmp_path, *names)
    found = [[call.tool for message in reply.output_messages or () for call in message.tool_calls] for reply in replies]
    assert found == [["weather"]] * 5 + [["clock", "weather"], ["weather"]]
    *good, failing = replies
    for reply in good[:4]:
        assert (reply.error, reply.text, reply.unread) == (None, "told ['user', 'model', 'user']", ())
        assert reply.tokens_usage == TokensUsage(input_tokens=20, output_tokens=10, total_tokens=30)
        assert reply.thread_id
    conversation, nested = good[4:]
    assert conversation.text == "told ['user', 'model', 'user', 'model', 'user']"
    # An agent inside of a tool counts, too.
    assert nested.tokens_usage == TokensUsage(input_tokens=40, output_tokens=20, total_tokens=60)
    assert failing.error is not None
    assert failing.error.message == "RuntimeError: out of order"
