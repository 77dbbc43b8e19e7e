"""LangGraph: what a graph returns and streams, where it stops for a human, graphs inside graphs."""

import asyncio
import json
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.load import dumpd, dumps
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from record.common import *

record = Recorder("langgraph", "langgraph", ids=[r"(?<=run--)[0-9a-f-]{36}"])
CONFIG: Any = {"configurable": {"thread_id": "thread_1"}}


class Scripted(GenericFakeChatModel):
    """Streams its calls in pieces, as models do."""

    def _stream(self, *rest: Any, **more: Any) -> Any:
        from langchain_core.outputs import ChatGenerationChunk

        message = next(self.messages)
        for piece in pieces(message):
            yield ChatGenerationChunk(message=piece)


def pieces(message: AIMessage) -> list[AIMessageChunk]:
    chunks = [AIMessageChunk(content=word, id=message.id) for word in message.content.partition(" ") if word]
    for index, each in enumerate(message.tool_calls):
        text = json.dumps(each["args"])
        first = {"name": each["name"], "args": "", "id": each["id"], "index": index, "type": "tool_call_chunk"}
        rest = [
            {"name": None, "args": part, "id": None, "index": index, "type": "tool_call_chunk"}
            for part in (text[:5], text[5:])
        ]
        chunks += [AIMessageChunk(content="", tool_call_chunks=[chunk], id=message.id) for chunk in (first, *rest)]
    chunks.append(AIMessageChunk(content="", usage_metadata=message.usage_metadata, id=message.id))
    return chunks


def said(step: Step, number: int) -> AIMessage:
    counts = {"input_tokens": step.given, "output_tokens": step.made, "total_tokens": step.given + step.made}
    return AIMessage(
        content=step.text,
        tool_calls=[{"name": name, "args": given, "id": each} for each, name, given in step.calls],
        usage_metadata=counts,
        id=f"msg_{number}",
    )


@tool
def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return weather(city)


@tool
def get_time(zone: str) -> str:
    """Tell the time in a zone."""
    return time_in(zone)


@tool
def delete_file(path: str) -> str:
    """Delete a file."""
    if interrupt({"question": "Delete it?", "path": path}) != "yes":
        return "not deleted: the user said no"
    return f"deleted {path}"


def graph(scenario: str, name: str = "LangGraph", **more: Any) -> Any:
    model = Scripted(messages=iter([said(step, number) for number, step in enumerate(script(scenario), 1)]))
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([get_weather, get_time, delete_file], handle_tool_errors=True))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(name=name, **more)


def plain(value: Any) -> Any:
    """`model_dump()` of every message, fields of every interrupt."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if type(value).__name__ == "Interrupt":
        return {"value": value.value, "id": value.id}
    return value


def asked(scenario: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": QUESTIONS[scenario]}]}


WANTED = {
    "call": expect(paris(status="ok"), ANSWER, usage("call")),
    "parallel": expect(three(status="ok"), ANSWER_PARALLEL, usage("parallel")),
    "failed": expect(atlantis(status="error"), ANSWER_FAILED, usage("failed")),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}

for scenario, found in WANTED.items():
    state = graph(scenario).invoke(asked(scenario))
    if scenario == "failed":
        found["calls"][0]["output"] = state["messages"][2].content
    record.save(f"{scenario}-state", scenario, "graph.invoke(...), messages with model_dump()", plain(state), found)
    if scenario in {"parallel", "failed", "plain"}:
        updates = list(graph(scenario).stream(asked(scenario), stream_mode="updates"))
        what = 'list(graph.stream(..., stream_mode="updates")), messages with model_dump()'
        record.save(f"{scenario}-updates", scenario, what, plain(updates), found)
    if scenario in {"call", "plain"}:
        values = list(graph(scenario).stream(asked(scenario), stream_mode="values"))
        what = 'list(graph.stream(..., stream_mode="values")), messages with model_dump()'
        record.save(f"{scenario}-values", scenario, what, plain(values), found)
        chunks = list(graph(scenario).stream(asked(scenario), stream_mode="messages"))
        what = 'list(graph.stream(..., stream_mode="messages")), chunks with model_dump()'
        record.save(f"{scenario}-stream-messages", scenario, what, plain(chunks), found)
    if scenario == "parallel":
        record.save("parallel-state-dumpd", scenario, "dumpd(graph.invoke(...))", dumpd(state), found)
        both = list(graph(scenario).stream(asked(scenario), stream_mode=["updates", "custom"]))
        what = 'list(graph.stream(..., stream_mode=["updates", "custom"])): pairs of mode and update'
        record.save("parallel-updates-modes", scenario, what, plain(both), found)

waits = graph("delete", checkpointer=InMemorySaver())
state = waits.invoke(asked("delete"), CONFIG)
told = expect(notes(status="pending"), "", usage("delete", slice(1)))
title = "pending: the call waits for a human"
record.save(
    "pending-state",
    title,
    "graph.invoke(...), messages with model_dump(), interrupts with their fields",
    plain(state),
    told,
)
shot = waits.get_state(CONFIG)
shown = {
    "values": plain(shot.values),
    "next": list(shot.next),
    "config": shot.config,
    "created_at": shot.created_at,
    "tasks": [{"id": t.id, "name": t.name, "interrupts": plain(t.interrupts)} for t in shot.tasks],
}
record.save("pending-snapshot", title, "fields of graph.get_state(config)", shown, told | {"thread_id": "thread_1"})
updates = list(graph("delete", checkpointer=InMemorySaver()).stream(asked("delete"), CONFIG, stream_mode="updates"))
record.save("pending-updates", title, 'list(graph.stream(..., stream_mode="updates"))', plain(updates), told)
state = waits.invoke(Command(resume="no"), CONFIG)
answered = expect(notes(output="not deleted: the user said no", status="ok"), ANSWER_DENIED, usage("delete"))
note = "The tool itself asked, so the library saw it succeed."
record.save(
    "denied-state",
    "denied: a human rejects the call",
    "graph.invoke(...), messages with model_dump()",
    plain(state),
    answered,
    note,
)


def outer() -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("forecaster", graph("call", name="forecaster"))
    builder.add_edge(START, "forecaster")
    builder.add_edge("forecaster", END)
    return builder.compile()


state = outer().invoke(asked("call"))
record.save(
    "subgraph-state",
    "call, made in a graph inside the graph",
    "graph.invoke(...), messages with model_dump()",
    plain(state),
    WANTED["call"],
)
updates = list(outer().stream(asked("call"), stream_mode="updates", subgraphs=True))
what = 'list(graph.stream(..., stream_mode="updates", subgraphs=True)): pairs of namespace and update'
record.save("subgraph-updates", "call, made in a graph inside the graph", what, plain(updates), WANTED["call"])


def recorded(value: Any) -> Any:
    """As `plain`, with the fields of named tuples by their names and what JSON does not know as a text."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: recorded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [recorded(each) for each in value]
    shown = plain(value)
    return shown if isinstance(shown, dict | str | int | float | None) else str(shown)


for scenario in ("parallel", "plain"):
    for mode in ("debug", "tasks", "checkpoints"):
        kept = graph(scenario, checkpointer=InMemorySaver())
        parts = list(kept.stream(asked(scenario), CONFIG, stream_mode=mode))
        if scenario == "parallel" or mode == "debug":
            what = f'list(graph.stream(..., stream_mode="{mode}")), messages with model_dump()'
            record.save(f"{scenario}-stream-{mode}", scenario, what, recorded(parts), WANTED[scenario])
    what = 'list(graph.stream(..., stream_mode=["updates", "messages"], version="v2"))'
    parts = list(graph(scenario).stream(asked(scenario), stream_mode=["updates", "messages"], version="v2"))
    if scenario == "parallel":
        for each in parts:
            if each["type"] == "messages":  # what the graph says of its steps is long
                each["data"] = [each["data"][0], {"langgraph_node": "agent"}]
        record.save("parallel-stream-v2", scenario, what, recorded(parts), WANTED[scenario])
    found = WANTED[scenario] | {"thread_id": "thread_1"}
    what = "json.dumps(graph.get_state(config)): a list of the fields"
    record.save(f"{scenario}-snapshot-list", scenario, what, list(recorded(kept.get_state(CONFIG)).values()), found)
    history = recorded(list(kept.get_state_history(CONFIG)))
    record.save(f"{scenario}-history", scenario, "list(graph.get_state_history(config))", history, WANTED[scenario])


async def events(scenario: str) -> list[Any]:
    stream = graph(scenario).astream_events(asked(scenario), version="v2", exclude_types=["prompt"])
    told = [each async for each in stream if each["event"] not in ("on_chain_stream", "on_chat_model_start")]
    return [{**each, "metadata": {}} for each in json.loads(dumps(told))]  # the numbers of steps are many


for scenario in ("call", "plain"):
    what = "[event async for event in graph.astream_events(..., version='v2')], dumpd"
    record.save(f"{scenario}-events-v2", scenario, what, asyncio.run(events(scenario)), WANTED[scenario])
