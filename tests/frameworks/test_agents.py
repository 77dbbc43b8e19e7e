"""Agents of real libraries as targets: asked in their own way, with nothing written but where they are."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.model.conversation import Message, ToolCall
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.providers.python import PythonAgent

PATIENCE = 60.0
HISTORY = (
    Message(role="system", content="Be brief."),
    Message(role="user", content="Weather in Paris?"),
    Message(
        role="assistant",
        tool_calls=(ToolCall(tool="weather", input={"city": "Paris"}, output={"temp_c": 18}, id="c0"),),
    ),
    Message(role="assistant", content="18 degrees."),
    Message(role="user", content="And the time?"),
)

PYDANTIC_AI = """
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

def model(messages, info):
    parts = [part for message in messages for part in message.parts]
    if isinstance(parts[-1], UserPromptPart):
        return ModelResponse(parts=[ToolCallPart("now", {"zone": "CET"}, tool_call_id="c1")])
    told = [type(part).__name__ for part in parts]
    return ModelResponse(parts=[TextPart(f"{info.instructions} {told}")])

agent = Agent(FunctionModel(model), instructions="Own.")

@agent.tool_plain
def now(zone: str) -> str:
    return f"noon {zone}"
"""

OPENAI_AGENTS = """
import json
from agents import Agent, Model, ModelResponse, Usage, set_tracing_disabled
from agents.tool import function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)

class Scripted(Model):
    async def get_response(self, system_instructions, input, *rest, **more):
        usage = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
        if input[-1].get("role") == "user":
            call = ResponseFunctionToolCall(
                call_id="c1", name="now", arguments='{"zone": "CET"}', type="function_call", id="f"
            )
            return ModelResponse(output=[call], usage=usage, response_id=None)
        told = [item.get("role") or item["type"] for item in input]
        text = ResponseOutputText(type="output_text", text=f"{system_instructions} {told}", annotations=[])
        said = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[said], usage=usage, response_id=None)

    def stream_response(self, *rest, **more):
        raise NotImplementedError

@function_tool
def now(zone: str) -> str:
    return f"noon {zone}"

agent = Agent(name="Clock", instructions="Own.", model=Scripted(), tools=[now])
"""

LANGCHAIN = """
from langchain_core.messages import AIMessage, ToolMessage, convert_to_messages
from langchain_core.runnables import RunnableLambda

def act(state):
    told = convert_to_messages(state["messages"])
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    call = AIMessage("", tool_calls=[{"name": "now", "args": {"zone": "CET"}, "id": "c1"}], usage_metadata=usage)
    words = AIMessage(f"Own. {[type(message).__name__ for message in told]}", usage_metadata=usage)
    return {"messages": [*told, call, ToolMessage("noon CET", tool_call_id="c1"), words], "steps": 2}

agent = RunnableLambda(act)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(code: str, messages: tuple[Message, ...] = HISTORY[-1:], **settings: Any) -> ProviderResponse:
    Path("agent.py").write_text(code)

    async def main() -> ProviderResponse:
        here = str(Path.cwd())
        provider = PythonAgent(name="agent", function="./agent.py:agent", **settings)
        session = await provider.open(Scope(root=here, folder=here))
        try:
            async with asyncio.timeout(PATIENCE):
                return await session.invoke(Request(id="a", input_messages=messages))
        finally:
            await session.close()

    return asyncio.run(main())


def told(response: ProviderResponse) -> list[str]:
    """The messages before the last one that the model received."""
    found: list[str] = json.loads(response.text[response.text.index("[") :].replace("'", '"'))
    return found


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("code", [PYDANTIC_AI, OPENAI_AGENTS, LANGCHAIN])
@pytest.mark.parametrize("workers", [None, 1])
def test_an_agent_is_asked_and_what_it_did_is_read(code: str, workers: int | None) -> None:
    response = ask(code, workers=workers)
    assert response.error is None
    assert [message.role for message in response.output_messages or ()] == ["assistant", "assistant"]
    (call,) = [call for message in response.output_messages or () for call in message.tool_calls]
    assert (call.tool, call.input, call.output, call.id) == ("now", {"zone": "CET"}, "noon CET", "c1")
    assert response.text.startswith("Own. ")
    assert response.tokens_usage is not None
    assert response.tokens_usage.total_tokens is not None
    if code is not PYDANTIC_AI:  # whose stand-in for a model guesses
        assert response.tokens_usage.total_tokens == 30
    assert response.warnings == ()


@pytest.mark.parametrize(("code", "name"), [(PYDANTIC_AI, "Agent"), (OPENAI_AGENTS, "Clock"), (LANGCHAIN, "act")])
def test_an_agent_may_be_handed_to_evaluate_as_it_is(code: str, name: str) -> None:
    made: dict[str, Any] = {}
    exec(code, made)  # noqa: S102 - our own, above
    case = {"id": "a", "input": "The time?", "evaluators": [{"type": "tool_trajectory", "minimums": {"now": 1}}]}
    execution = agentv.evaluate({"cases": [case]}, target=made["agent"])
    (record,) = execution.results
    assert (record.status, record.target) == ("pass", name)


@pytest.mark.usefixtures("folder")
def test_pydantic_ai_gets_the_history_and_keeps_its_own_instructions() -> None:
    response = ask(PYDANTIC_AI, HISTORY)
    assert response.text.startswith("Own.")
    assert "Be brief." in response.text
    assert told(response) == [
        "UserPromptPart",
        "ToolCallPart",
        "ToolReturnPart",
        "TextPart",
        "UserPromptPart",
        "ToolCallPart",
        "ToolReturnPart",
    ]
    assert len(response.output_messages or ()) == 2


@pytest.mark.usefixtures("folder")
def test_openai_agents_gets_the_history() -> None:
    response = ask(OPENAI_AGENTS, HISTORY)
    assert told(response) == [
        "system",
        "user",
        "function_call",
        "function_call_output",
        "assistant",
        "user",
        "function_call",
        "function_call_output",
    ]
    assert len(response.output_messages or ()) == 2


@pytest.mark.usefixtures("folder")
def test_langchain_gets_the_history() -> None:
    response = ask(LANGCHAIN, HISTORY)
    assert told(response) == [
        "SystemMessage",
        "HumanMessage",
        "AIMessage",
        "ToolMessage",
        "AIMessage",
        "HumanMessage",
    ]
    assert len(response.output_messages or ()) == 2
    assert response.metadata == {"steps": 2}


@pytest.mark.usefixtures("folder")
def test_a_chat_model_alone_gets_the_messages() -> None:
    code = """
from langchain_core.language_models.fake_chat_models import FakeListChatModel
agent = FakeListChatModel(responses=["Hello"])
"""
    assert ask(code).text == "Hello"


@pytest.mark.usefixtures("folder")
def test_a_function_may_return_what_its_library_gives() -> None:
    code = PYDANTIC_AI + "\nclock = agent\nasync def agent(prompt): return await clock.run(f'Question: {prompt}')\n"
    assert [message.role for message in ask(code).output_messages or ()] == ["assistant", "assistant"]
    code = f"""{OPENAI_AGENTS}
from agents import Runner
clock = agent
def agent(prompt): return Runner.run(clock, [{{"role": "user", "content": prompt}}])
"""
    assert [message.role for message in ask(code).output_messages or ()] == ["assistant", "assistant"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("code", [PYDANTIC_AI, OPENAI_AGENTS])
def test_a_picture_is_an_error_rather_than_forgotten(code: str) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    found = ask(code, (Message(role="user", content=[{"type": "text", "text": "What is this?"}, picture]),))
    assert found.error is not None
    assert found.error.kind == "protocol"
    assert "a block of type 'image_url': write a function" in found.error.message


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("code", [PYDANTIC_AI, OPENAI_AGENTS, LANGCHAIN])
def test_args_make_no_sense_for_an_agent_that_is_there_already(code: str) -> None:
    found = ask(code, args={"model": "x"})
    assert found.error is not None
    assert "`args` are for a function or a class" in found.error.message


@pytest.mark.usefixtures("folder")
def test_a_stream_of_openai_agents_is_read_to_its_end() -> None:
    code = """
import agents
class RunResultStreaming:
    __module__ = "agents.result"
    new_items, raw_responses, final_output = [], [], None
    async def stream_events(self):
        yield 1
        self.final_output = "whole"
def agent(prompt): return RunResultStreaming()
"""
    assert ask(code).text == "whole"


PYDANTIC_AI_STREAM = (
    PYDANTIC_AI.replace("FunctionModel(model)", "FunctionModel(model, stream_function=stream)").replace(
        "agent = Agent",
        """
from pydantic_ai.models.function import DeltaToolCall

async def stream(messages, info):
    parts = [part for message in messages for part in message.parts]
    if isinstance(parts[-1], UserPromptPart):
        yield {0: DeltaToolCall(name="now", json_args='{"zone": ', tool_call_id="c1")}
        yield {0: DeltaToolCall(json_args='"CET"}')}
    else:
        yield "noon"

clock = Agent""",
    )
    + """
now = clock.tool_plain(now)

async def events(prompt):
    async with clock.run_stream_events(prompt) as found:
        async for event in found:
            yield event

async def iteration(prompt):
    async with clock.iter(prompt) as run:
        async for node in run:
            pass
    return run

async def unfinished(prompt):
    async with clock.iter(prompt) as run:
        await run.next(run.next_node)
    return run
"""
).replace("@agent.tool_plain\n", "")


def ask_each(code: str, *names: str) -> list[ProviderResponse]:
    return [ask(f"{code}\nagent = {name}\n") for name in names]


@pytest.mark.usefixtures("folder")
def test_events_and_walked_runs_of_pydantic_ai_are_read() -> None:
    events, iteration, unfinished = ask_each(PYDANTIC_AI_STREAM, "events", "iteration", "unfinished")
    for response in (events, iteration):
        assert response.error is None
        (call,) = [call for message in response.output_messages or () for call in message.tool_calls]
        assert (call.tool, call.input, call.output, call.id) == ("now", {"zone": "CET"}, "noon CET", "c1")
        assert response.tokens_usage is not None
        assert response.unread == ()
    assert events.text == "noon"
    assert [place.reason for place in unfinished.unread] == ["the run had not come to its end, so calls may be missing"]


@pytest.mark.usefixtures("folder")
def test_objects_of_runs_are_scored_as_they_are() -> None:
    made: dict[str, Any] = {}
    exec(OPENAI_AGENTS, made)  # noqa: S102 - our own, above
    from agents import Runner  # noqa: PLC0415 - as a user has it

    result = asyncio.run(Runner.run(made["agent"], "The time?"))
    check = [{"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "now", "output": "noon CET"}]}]
    assert agentv.score(result, check).status == "pass"
    streaming = type("RunResultStreaming", (), {"__module__": "agents.result", "new_items": [], "raw_responses": []})()
    streaming.is_complete = False
    (checked,) = agentv.score(streaming, [{"type": "tool_trajectory", "maximums": {"now": 0}}]).evaluators
    assert checked.status == "error"


KEYED = """
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

@tool
def now(zone: str) -> str:
    "Tell the time."
    return f"noon {zone}"

def act(value):
    now.invoke({"zone": "CET"})
    return f"{value.to_string()}"

one = ChatPromptTemplate.from_messages([("human", "Question: {question}")]) | RunnableLambda(act)
several = ChatPromptTemplate.from_messages(
    [MessagesPlaceholder("history"), ("human", "Question: {question}")]
) | RunnableLambda(act)
two = ChatPromptTemplate.from_messages([("human", "{question} in {city}")]) | RunnableLambda(act)
"""


@pytest.mark.usefixtures("folder")
def test_a_chain_gets_the_prompt_under_the_key_of_its_own_and_its_tools_are_seen() -> None:
    response = ask(KEYED + "\nagent = one\n")
    assert response.text == "Human: Question: And the time?"
    (call,) = [call for message in response.output_messages or () for call in message.tool_calls]
    assert (call.tool, call.input, call.output) == ("now", {"zone": "CET"}, "noon CET")
    # Who asked for it is not known, so there may have been others.
    assert [place.path for place in response.unread] == ["text"]


@pytest.mark.usefixtures("folder")
def test_earlier_messages_are_handed_to_a_chain_or_refused_but_never_dropped() -> None:
    conversation = (Message(role="user", content="Hi"), Message(role="assistant", content="Hello"), HISTORY[-1])
    told = ask(KEYED + "\nagent = several\n", conversation)
    assert told.text == "Human: Hi\nAI: Hello\nHuman: Question: And the time?"
    refused = ask(KEYED + "\nagent = one\n", conversation).error
    assert refused is not None
    assert "has 3 messages and this agent takes one text" in refused.message
    picture = Message(role="user", content=[{"type": "image_url", "image_url": {"url": "data:,"}}])
    unseen = ask(KEYED + "\nagent = several\n", (*conversation[:2], picture)).error
    assert unseen is not None
    assert "a block of type 'image_url': write a function" in unseen.message
    unclear = ask(KEYED + "\nagent = two\n").error
    assert unclear is not None
    assert "has the keys 'city', 'question': write a function" in unclear.message


NESTED_AGENTS = (
    OPENAI_AGENTS.replace(
        "class Scripted(Model):", "class Scripted(Model):\n    call = ('now', '{\"zone\": \"CET\"}', 'c1')"
    )
    .replace("""name="now", arguments='{"zone": "CET"}'""", "name=self.call[0], arguments=self.call[1]")
    .replace('call_id="c1"', "call_id=self.call[2]")
    + """
class Boss(Scripted):
    call = ("ask_clock", '{"input": "The time?"}', "o1")

def boss(clock):
    tool = clock.as_tool(tool_name="ask_clock", tool_description="Ask.")
    return Agent(name="Boss", model=Boss(), tools=[tool])

outer = boss(agent)
silent = boss(Agent(name="Silent", model=Scripted(), tools=[now], tool_use_behavior="stop_on_first_tool"))

class Endless(Scripted):
    async def get_response(self, system_instructions, input, *rest, **more):
        return await super().get_response(system_instructions, [{"role": "user"}])

endless = Agent(name="Endless", model=Endless(), tools=[now])
"""
)


@pytest.mark.usefixtures("folder")
def test_calls_of_an_openai_agent_that_is_a_tool_are_read_where_they_were_made() -> None:
    outer, silent, endless = ask_each(NESTED_AGENTS, "outer", "silent", "endless")
    made = [[call for message in each.output_messages or () for call in message.tool_calls] for each in (outer, silent)]
    assert [(call.tool, call.id) for call in made[0]] == [("ask_clock", "o1"), ("now", "c1")]
    assert made[0][1].output == "noon CET"
    assert outer.unread == ()
    assert outer.tokens_usage is not None
    assert outer.tokens_usage.total_tokens == 60
    # One that ends with a call tells no model of it.
    assert [call.tool for call in made[1]] == ["ask_clock"]
    (place,) = silent.unread
    assert "the agent 'Silent' works inside of a tool and may end with a call" in place.reason
    # A run that was broken off keeps what it did.
    assert endless.error is not None
    assert "MaxTurnsExceeded" in endless.error.message
    assert {call.tool for message in endless.output_messages or () for call in message.tool_calls} == {"now"}


@pytest.mark.usefixtures("folder")
def test_calls_of_the_conversation_before_are_not_taken_for_hidden_ones() -> None:
    response = ask(OPENAI_AGENTS, HISTORY)
    assert [call.id for message in response.output_messages or () for call in message.tool_calls] == ["c1"]
