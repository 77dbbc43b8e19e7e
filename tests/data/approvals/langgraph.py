"""A graph that may delete a file only if somebody agrees."""

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt


@tool
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}" if interrupt({"path": path}) == "yes" else "not deleted"


def answer(state: MessagesState) -> dict[str, Any]:
    """Call `delete_file`, whatever was asked."""
    call = {"name": "delete_file", "args": {"path": "notes.txt"}, "id": "call_1"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_node("tools", ToolNode([delete_file]))
builder.add_edge(START, "answer")
builder.add_conditional_edges("answer", tools_condition)
builder.add_edge("tools", "answer")
agent = builder.compile(checkpointer=InMemorySaver())
