"""Graphs of LangGraph as targets: read with all that their subgraphs, sub-agents and tools did."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from agentv.model.response import ProviderResponse, TokensUsage
from tests.support.environments import ask_there

GRAPH = """
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}

class State(MessagesState):
    steps: int

def model(state):
    if isinstance(state["messages"][-1], ToolMessage):
        return {"messages": [AIMessage("18 degrees", usage_metadata=USAGE)], "steps": 2}
    call = {"name": "weather", "args": {"city": "Paris"}, "id": "c1"}
    return {"messages": [AIMessage("", tool_calls=[call], usage_metadata=USAGE)], "steps": 1}

def tools(state):
    return {"messages": [ToolMessage("18", tool_call_id="c1", name="weather")]}

graph = StateGraph(State)
graph.add_node("model", model)
graph.add_node("tools", tools)
graph.add_edge(START, "model")
graph.add_edge("tools", "model")
graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
agent = graph.compile()
remembering = graph.compile(checkpointer=InMemorySaver())
"""


def test_a_compiled_graph_is_a_target(tmp_path: Path) -> None:
    names = ("agent", "remembering")
    for name, response in zip(names, ask_there(".venv-langgraph", GRAPH, tmp_path, *names), strict=True):
        assert response.error is None, name
        first, last = response.output_messages or ()
        (call,) = first.tool_calls
        assert (call.tool, call.input, call.output, call.id, call.status) == (
            "weather",
            {"city": "Paris"},
            "18",
            "c1",
            "ok",
        )
        assert (last.content, response.text) == ("18 degrees", "18 degrees")
        assert response.tokens_usage == TokensUsage(input_tokens=20, output_tokens=10, total_tokens=30)
        assert response.metadata == {"steps": 2}
        assert response.warnings == ()
        assert bool(response.thread_id) == (name == "remembering")


NESTED = """
from typing import Annotated, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Overwrite, interrupt

USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}

class Scripted(BaseChatModel):
    "Calls its tool once, then says how many messages it was told."
    tool: str = ""
    args: dict = {}
    _llm_type = "scripted"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        if self.tool and not isinstance(messages[-1], ToolMessage):
            call = {"name": self.tool, "args": self.args, "id": f"call-{self.tool}"}
            message = AIMessage("", tool_calls=[call], usage_metadata=USAGE)
        else:
            message = AIMessage(f"done with {self.tool or 'nothing'}", usage_metadata=USAGE)
        return ChatResult(generations=[ChatGeneration(message=message)])

def loop(model, tools, **options):
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder.compile(**options)

@tool
def weather(city: str) -> str:
    "Tell the weather."
    return f"18 in {city}"

@tool
def broken(city: str) -> str:
    "Fail."
    raise ValueError("no such city")

weather_model = Scripted(tool="weather", args={"city": "Paris"})
inner = loop(weather_model, [weather])

# A sub-agent inside of a tool: its messages never reach the state of the graph around it.
@tool
def ask_expert(question: str) -> str:
    "Ask an expert."
    return inner.invoke({"messages": [("user", question)]})["messages"][-1].content

outer = loop(Scripted(tool="ask_expert", args={"question": "Paris?"}), [ask_expert])

# An agent that is no graph, inside of a tool.
@tool
def ask_chain(question: str) -> str:
    "Ask a chain."
    message = weather_model.invoke(question)
    return weather.invoke(message.tool_calls[0]).content

chained = loop(Scripted(tool="ask_chain", args={"question": "Paris?"}), [ask_chain])

# A state whose messages are removed at the end.
def summarize(state):
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), AIMessage("in short", usage_metadata=USAGE)]}

builder = StateGraph(MessagesState)
builder.add_node("work", inner)
builder.add_node("summarize", summarize)
builder.add_edge(START, "work")
builder.add_edge("work", "summarize")
trimmed = builder.compile()

def overwrite(state):
    return {"messages": Overwrite([AIMessage("in short", usage_metadata=USAGE)])}

builder = StateGraph(MessagesState)
builder.add_node("work", inner)
builder.add_node("overwrite", overwrite)
builder.add_edge(START, "work")
builder.add_edge("work", "overwrite")
overwritten = builder.compile()

# A subgraph that keeps its messages under a key of its own, and makes them without a model of LangChain's.
class Notes(TypedDict):
    notes: Annotated[list[AnyMessage], add_messages]

def research(state):
    call = {"name": "search", "args": {"q": "Paris"}, "id": "s1"}
    said = AIMessage("", tool_calls=[call], usage_metadata=USAGE)
    return {"notes": [said, ToolMessage("found", tool_call_id="s1")]}

private = StateGraph(Notes)
private.add_node("research", research)
private.add_edge(START, "research")
private = private.compile()

def consult(state):
    private.invoke({"notes": []})
    return {"messages": [AIMessage("ok", usage_metadata=USAGE)]}

builder = StateGraph(MessagesState)
builder.add_node("private", consult)
builder.add_edge(START, "private")
secretive = builder.compile()

# A node that runs tools by hand, and a model whose answer has a form.
def by_hand(state):
    weather.invoke({"city": "Oslo"})
    Scripted(tool="Route", args={"to": "north"}).invoke(
        "where?", ls_structured_output_format={"kwargs": {}, "schema": {"title": "Route", "type": "object"}}
    )
    return {"messages": [("ai", "by hand")]}

builder = StateGraph(MessagesState)
builder.add_node("by_hand", by_hand)
builder.add_edge(START, "by_hand")
manual = builder.compile()

# Graphs that wait.
@tool
def refund(amount: int) -> str:
    "Pay back."
    return f"paid {interrupt({'question': 'may I?'})}"

refund_model = Scripted(tool="refund", args={"amount": 9})
asking = loop(refund_model, [refund], checkpointer=InMemorySaver())
stopping = loop(weather_model, [weather], checkpointer=InMemorySaver(), interrupt_before=["tools"])

# A graph that fails after a call.
def fail(state):
    raise RuntimeError("out of order")

builder = StateGraph(MessagesState)
builder.add_node("work", inner)
builder.add_node("fail", fail)
builder.add_edge(START, "work")
builder.add_edge("work", "fail")
failing = builder.compile()

# Functional form.
@task
def call_model(messages):
    return weather_model.invoke(messages)

@task
def call_tool(call):
    return weather.invoke(call)

@entrypoint()
def workflow(messages: list):
    said = call_model(messages).result()
    found = [call_tool({**call, "type": "tool_call"}).result() for call in said.tool_calls]
    return call_model([*messages, said, *found]).result()

@entrypoint()
def words(question: str):
    return f"heard {question}"

# Other inputs.
class Question(TypedDict):
    question: str

class Answer(TypedDict):
    answer: str

class Both(Question, Answer):
    pass

builder = StateGraph(Both, input_schema=Question)
builder.add_node("answer", lambda state: {"answer": f"heard {state['question']}"})
builder.add_edge(START, "answer")
question = builder.compile()

chain = RunnableLambda(lambda given: given["messages"]) | weather_model | (lambda message: "a text")
"""
NAMES = (
    *("inner", "outer", "chained", "trimmed", "overwritten", "secretive", "manual", "asking", "stopping", "failing"),
    *("workflow", "words", "question", "chain"),
)


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ProviderResponse]:
    """The replies of all graphs, asked in one process."""
    folder = tmp_path_factory.mktemp("langgraph")
    return dict(zip(NAMES, ask_there(".venv-langgraph", NESTED, folder, *NAMES), strict=True))


def calls(response: ProviderResponse) -> list[tuple[str, Any, Any]]:
    made = [call for message in response.output_messages or () for call in message.tool_calls]
    return [(call.tool, call.output, call.status) for call in made]


def total(response: ProviderResponse) -> int | None:
    return None if response.tokens_usage is None else response.tokens_usage.total_tokens


@pytest.mark.parametrize(
    ("name", "expected", "text", "tokens"),
    [
        ("inner", [("weather", "18 in Paris", "ok")], "done with weather", 30),
        (
            "outer",
            [("ask_expert", "done with weather", "ok"), ("weather", "18 in Paris", "ok")],
            "done with ask_expert",
            60,
        ),
        ("chained", [("ask_chain", "18 in Paris", "ok"), ("weather", "18 in Paris", None)], "done with ask_chain", 45),
        ("trimmed", [("weather", "18 in Paris", "ok")], "in short", 45),
        ("overwritten", [("weather", "18 in Paris", "ok")], "in short", 45),
        ("secretive", [("search", "found", "ok")], "ok", 30),
        ("manual", [("weather", "18 in Oslo", None)], "by hand", 15),
        ("workflow", [("weather", "18 in Paris", "ok")], "done with weather", 30),
        ("words", [], "heard Weather in Paris?", None),
        ("chain", [("weather", UNSET, None)], "a text", 15),
    ],
)
def test_calls_and_costs_of_a_graph_are_read_wherever_they_were_made(
    nested: dict[str, ProviderResponse], name: str, expected: Any, text: str, tokens: int | None
) -> None:
    response = nested[name]
    assert response.error is None
    assert calls(response) == expected
    assert (response.text, total(response)) == (text, tokens)
    assert (response.unread, response.warnings) == ((), ())


def test_a_graph_without_messages_gets_the_prompt_under_its_only_key(nested: dict[str, ProviderResponse]) -> None:
    assert (nested["question"].metadata or {})["answer"] == "heard Weather in Paris?"


def test_a_graph_that_waits_is_an_error_with_pending_calls(nested: dict[str, ProviderResponse]) -> None:
    for name, tool, words in (
        ("asking", "refund", 'the graph asks: {"question":"may I?"}; write a function'),
        ("stopping", "weather", "the graph stopped at a breakpoint; write a function"),
    ):
        response = nested[name]
        assert calls(response) == [(tool, UNSET, "pending")]
        assert response.error is not None
        assert (response.error.kind, response.success) == ("interrupted", False)
        assert words in response.error.message
        assert response.thread_id


def test_a_graph_that_fails_keeps_what_it_did_before(nested: dict[str, ProviderResponse]) -> None:
    response = nested["failing"]
    assert response.error is not None
    assert (response.error.kind, response.error.message) == ("agent", "RuntimeError: out of order")
    assert calls(response) == [("weather", "18 in Paris", "ok")]
