"""Is a compiled graph asked in its own way, and its state read without what it was asked?"""

from pathlib import Path

from agentv.model.usage import TokensUsage
from tests.frameworks.elsewhere import ask_there

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
