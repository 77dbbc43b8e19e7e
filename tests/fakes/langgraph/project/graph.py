"""Graphs that do what they are told, without a model: what a test says decides what happens."""

import asyncio
import json
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt


class Context(TypedDict, total=False):
    """The context of a run."""

    tone: str


@tool(response_format="content_and_artifact")
def forecast(city: str, unit: str = "C") -> tuple[str, dict[str, Any]]:
    """Tell the weather of a city."""
    return f"21 {unit} in {city}", {"station": city.lower()}


@tool
def broken(part: int) -> str:
    """Fail, whatever is asked."""
    msg = f"part {part} is missing"
    raise ValueError(msg)


def said(text: str | list[Any], turn: int, **fields: Any) -> AIMessage:
    """Give a message as a model does, with what it cost: ten tokens to read for every message before it."""
    usage = {
        "input_tokens": 10 * turn,
        "output_tokens": 5,
        "total_tokens": 10 * turn + 5,
        "input_token_details": {"cache_read": turn},
        "output_token_details": {"reasoning": 1},
    }
    return AIMessage(content=text, usage_metadata=usage, response_metadata={"model_name": "script-1"}, **fields)


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


CALLS = {
    "weather": [call("forecast", "call_1", city="Rome")],
    "two cities": [call("forecast", "call_a", city="Rome"), call("forecast", "call_b", city="Oslo", unit="F")],
    "broken": [call("broken", "call_x", part=7)],
}


def malformed(messages: list[Any]) -> list[AIMessage]:
    """Make a call that is no JSON."""
    wrong = {"type": "invalid_tool_call", "name": "forecast", "args": "{city: Rome", "id": "call_m", "error": None}
    return [said("", len(messages), invalid_tool_calls=[wrong])]


def recall(messages: list[Any]) -> list[AIMessage]:
    """Say everything that the user said."""
    heard = [str(message.content) for message in messages if isinstance(message, HumanMessage)]
    return [said(" | ".join(heard), len(messages))]


def crash(_: list[Any]) -> list[AIMessage]:
    """Fail."""
    msg = "the model is out of order"
    raise RuntimeError(msg)


COMMANDS = {
    "malformed": malformed,
    "recall": recall,
    "crash": crash,
    "approve": lambda messages: [said(f"somebody said {interrupt({'question': 'may I?'})}", len(messages))],
    "unpriced": lambda messages: [said("one", len(messages)), AIMessage(content="two")],
    "silent": lambda _: [AIMessage(content="no counts, no model")],
    "think": lambda messages: [
        said([{"type": "thinking", "thinking": "so it is"}, {"type": "text", "text": "yes"}], len(messages))
    ],
    "blocks": lambda messages: [
        said([{"type": "text", "text": "one "}, {"type": "text", "text": "two"}], len(messages))
    ],
}


async def model(state: MessagesState, config: RunnableConfig, runtime: Runtime[Context]) -> dict[str, Any]:
    """Do what the last message says."""
    messages = state["messages"]
    last, turn = messages[-1], len(messages)
    words = str(last.content)
    if last.type == "tool":
        return {"messages": [said(f"I found: {words}", turn)]}
    if words in CALLS:
        return {"messages": [said("", turn, tool_calls=CALLS[words])]}
    if words in COMMANDS:
        return {"messages": COMMANDS[words](messages)}
    if words == "settings":
        told = {**config["configurable"], **(runtime.context or {})}
        return {"messages": [said(json.dumps({key: told.get(key) for key in ("model", "x-team", "tone")}), turn)]}
    if words.startswith("sleep "):
        await asyncio.sleep(float(words.removeprefix("sleep ")))
    return {"messages": [said(f"echo: {words}", turn)]}


def with_tools() -> StateGraph:
    """Build the usual loop of a model and its tools."""
    builder = StateGraph(MessagesState, context_schema=Context)
    builder.add_node("model", model)
    builder.add_node("tools", ToolNode([forecast, broken], handle_tool_errors=True))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder


agent = with_tools().compile()
careful = with_tools().compile(interrupt_before=["tools"])


def researchers() -> Any:
    """Build a graph that works inside of another, and gives its messages no ids."""
    builder = StateGraph(MessagesState)
    builder.add_node("search", lambda _: {"messages": [AIMessage(content="searched")]})
    builder.add_node("read", lambda _: {"messages": [AIMessage(content="read")]})
    builder.add_edge(START, "search")
    builder.add_edge("search", "read")
    return builder.compile()


def team() -> Any:
    """Build a graph whose nodes work side by side, write in every form, and take back what they said."""
    builder = StateGraph(MessagesState)
    builder.add_node("left", lambda _: {"messages": [AIMessage(content="left", id="l1")]})
    builder.add_node("right", lambda _: {"messages": AIMessage(content="right", id="r1")})
    builder.add_node("research", researchers())
    builder.add_node("edit", lambda _: {"messages": [AIMessage(content="left, corrected", id="l1")]})
    builder.add_node("idle", lambda _: None)
    builder.add_node("conclude", lambda _: Command(update={"messages": [("ai", "done")]}, goto="withdraw"))
    builder.add_node("withdraw", lambda _: {"messages": [AIMessage(content="no, not", id="w1")]})
    builder.add_node("forget", lambda _: {"messages": [RemoveMessage(id="w1")]})
    for before, after in [
        (START, "left"),
        (START, "right"),
        ("left", "research"),
        ("right", "research"),
        ("research", "edit"),
        ("edit", "idle"),
        ("idle", "conclude"),
        ("withdraw", "forget"),
    ]:
        builder.add_edge(before, after)
    return builder.compile()


def committee() -> Any:
    """Build a graph that asks twice, the second time two questions at once."""
    builder = StateGraph(MessagesState)
    for name in ("chair", "first", "second"):
        builder.add_node(
            name, lambda _, name=name: {"messages": [AIMessage(content=f"{name}: {interrupt(f'{name}?')}")]}
        )
    builder.add_edge(START, "chair")
    builder.add_edge("chair", "first")
    builder.add_edge("chair", "second")
    return builder.compile()


class Question(TypedDict):
    """A state without messages."""

    question: str
    answer: str
    sources: list[str]


def plain() -> Any:
    """Build a graph that has no messages at all."""
    builder = StateGraph(Question)
    builder.add_node("look_up", lambda state: {"answer": state["question"].upper(), "sources": ["a book"]})
    builder.add_edge(START, "look_up")
    return builder.compile()


class Work(TypedDict):
    """The state of a subgraph that shares no messages with the graph around it."""

    work: Annotated[list[Any], add_messages]
    answer: str


class Answered(MessagesState):
    """Messages, and an answer that a subgraph finds."""

    answer: str


class Answer(TypedDict):
    """All that a subgraph shows to the graph around it."""

    answer: str


def worker(state: type, key: str, **schema: type) -> Any:
    """Build a subgraph that calls a tool and keeps that under a key."""
    builder = StateGraph(state, **schema)
    builder.add_node("ask", lambda _: {key: [said("", 1, tool_calls=CALLS["weather"])]})
    builder.add_node("tools", ToolNode([forecast], messages_key=key))
    builder.add_node("answer", lambda _: {"answer": "fine"})
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "tools")
    builder.add_edge("tools", "answer")
    return builder.compile()


def around(subgraph: Any) -> Any:
    """Build a graph whose own messages hold nothing of what its subgraph did."""
    builder = StateGraph(Answered)
    builder.add_node("work", subgraph)
    builder.add_node("say", lambda state: {"messages": [said(f"It is {state['answer']}.", 1)]})
    builder.add_edge(START, "work")
    builder.add_edge("work", "say")
    return builder.compile()


def private() -> Any:
    """Build a graph with a subgraph that has a state of its own."""
    return around(worker(Work, "work"))


def tacit() -> Any:
    """Build a graph with a subgraph whose output schema leaves its messages out."""
    return around(worker(Answered, "messages", output_schema=Answer))


@tool
async def ask_expert(question: str) -> str:
    """Ask another agent."""
    answered = await agent.ainvoke({"messages": [("user", question)]})
    return str(answered["messages"][-1].content)


async def asks_expert(state: MessagesState) -> dict[str, Any]:
    """Ask the expert first, then say what it found."""
    last = state["messages"][-1]
    if last.type == "tool":
        return {"messages": [said(str(last.content), 1)]}
    calls = [call("ask_expert", "call_e", question=str(last.content))]
    return {"messages": [said("", 1, tool_calls=calls)]}


def boss() -> Any:
    """Build an agent that has another one inside of a tool."""
    builder = StateGraph(MessagesState)
    builder.add_node("model", asks_expert)
    builder.add_node("tools", ToolNode([ask_expert]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder.compile()


def forgetful() -> Any:
    """Build a graph that ends with a summary in place of its messages."""
    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    summary = [RemoveMessage(id=REMOVE_ALL_MESSAGES), AIMessage(content="it was asked and answered", id="s1")]
    builder.add_node("sum_up", lambda _: {"messages": summary})
    builder.add_edge(START, "agent")
    builder.add_edge("agent", "sum_up")
    return builder.compile()


async def wait(_: MessagesState) -> None:
    """Do nothing for ten minutes."""
    await asyncio.sleep(600)


def slow() -> Any:
    """Build a graph that calls a tool, and takes for ever to say what it found."""
    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("wait", wait)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", "wait")
    return builder.compile()


def review(state: MessagesState) -> dict[str, Any] | None:
    """Ask about each call as `HumanInTheLoopMiddleware` of LangChain does, in the words of its first version."""
    calls = state["messages"][-1].tool_calls
    requests = [{"name": each["name"], "args": each["args"], "description": "may it?"} for each in calls]
    configs = [{"action_name": each["name"], "allowed_decisions": ["approve", "reject"]} for each in calls]
    decisions = interrupt({"action_requests": requests, "review_configs": configs})["decisions"]
    rejected = [
        ToolMessage(decision["message"], name=each["name"], tool_call_id=each["id"], status="error")
        for each, decision in zip(calls, decisions, strict=True)
        if decision["type"] == "reject"
    ]
    return {"messages": rejected}


def reviewed() -> Any:
    """Build an agent whose calls a person reviews."""
    builder = StateGraph(MessagesState)
    builder.add_node(
        "model", lambda state: {"messages": [said("", 1, tool_calls=CALLS[state["messages"][-1].content])]}
    )
    builder.add_node("review", review)
    builder.add_node("tools", run_approved)
    builder.add_node("say", lambda _: {"messages": [said("reviewed", 1)]})
    for before, after in [(START, "model"), ("model", "review"), ("review", "tools"), ("tools", "say")]:
        builder.add_edge(before, after)
    return builder.compile()


async def run_approved(state: MessagesState) -> dict[str, Any]:
    """Carry out the calls that have no result yet."""
    answered = {message.tool_call_id for message in state["messages"] if message.type == "tool"}
    asked = next(message for message in reversed(state["messages"]) if message.type == "ai")
    return {"messages": [await forecast.ainvoke(each) for each in asked.tool_calls if each["id"] not in answered]}
