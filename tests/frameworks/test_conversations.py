"""Agents of libraries hold conversations of several turns: nothing that was said or called is dropped in between."""

from pathlib import Path
from typing import Any

import pytest

from agentv.model.response import ProviderResponse
from agentv.providers.python import Function
from tests.support.environments import talk_there
from tests.support.talks import Talk, talk, texts_of

GRAPH = """
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

class State(MessagesState):
    turns: int

def model(state):
    messages = state["messages"]
    if isinstance(messages[-1], ToolMessage):
        seen = " ".join(f"{message.type}:{message.content}" for message in messages if message.content)
        return {"messages": [AIMessage(f"{state.get('turns', 0) + 1}. {seen}")], "turns": state.get("turns", 0) + 1}
    call = {"name": "refund", "args": {}, "id": f"c{len(messages)}"}
    return {"messages": [AIMessage("", tool_calls=[call])]}

def tools(state):
    answer = interrupt("Refund it?") if "ask" in state["messages"][-2].content else "paid"
    return {"messages": [ToolMessage(answer, tool_call_id=state["messages"][-1].tool_calls[0]["id"])]}

graph = StateGraph(State)
graph.add_node("model", model)
graph.add_node("tools", tools)
graph.add_edge(START, "model")
graph.add_edge("tools", "model")
graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
plain = graph.compile()
remembering = graph.compile(checkpointer=InMemorySaver())
"""
THREE = [{"user": "a"}, {"user": "b"}, {"user": "c"}]
APPROVED = [{"user": "a"}, {"user": "ask"}, {"resume": "yes"}, {"user": "d"}]
TWO_SEEN = "human:a tool:paid ai:1. human:a tool:paid human:b tool:paid"


def calls(response: ProviderResponse) -> list[tuple[str | None, Any, Any]]:
    messages = response.output_messages or ()
    return [(call.id, call.output, call.status) for message in messages for call in message.tool_calls]


def test_a_graph_holds_a_conversation(tmp_path: Path) -> None:
    talks = [
        ("plain", "full", THREE),
        ("remembering", "full", THREE),
        ("remembering", "thread", THREE),
        ("remembering", "full", APPROVED),
        ("remembering", "thread", APPROVED),
        ("plain", "thread", [{"user": "a"}]),
    ]
    *threes, full, thread, impossible = talk_there(".venv-langgraph", GRAPH, tmp_path, *talks)
    for (name, mode, _), replies in zip(talks, threes, strict=False):
        assert [len(reply.output_messages or ()) for reply in replies] == [2, 2, 2], (name, mode)
        assert [calls(reply) for reply in replies] == [
            [("c1", "paid", "ok")],
            [("c5", "paid", "ok")],
            [("c9", "paid", "ok")],
        ]
        number = 2 if mode == "thread" else 1
        assert replies[1].text == f"{number}. {TWO_SEEN}", "the state of the thread is kept in it, and only there"
        threads = {reply.thread_id for reply in replies}
        expected = 1 if name == "plain" or mode == "thread" else 3
        assert len(threads) == expected
        assert (threads == {None}) == (name == "plain")
        assert not any(reply.unread or reply.warnings for reply in replies)
    assert threes[2][0].thread_id == "talk-2"
    for replies in (full, thread):
        first, pending, resumed, last = replies
        assert all(reply.success for reply in replies), [reply.error for reply in replies]
        assert calls(pending) == [("c5", pending.output_messages[0].tool_calls[0].output, "pending")]  # type: ignore[index]
        assert [message.role for message in resumed.output_messages or ()] == ["tool", "assistant"]
        assert resumed.text.endswith("human:ask tool:yes")
        assert resumed.thread_id == pending.thread_id
        assert last.text.count("human:") >= 3
        assert first.success
    (error,) = [reply.error for reply in impossible]
    assert error is not None
    assert "this graph has no checkpointer, so it cannot keep a thread" in error.message


ADK = """
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

class Scripted(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        parts = [part for content in request.contents for part in content.parts]
        if parts[-1].function_response is None:
            call = types.FunctionCall(name="refund", args={}, id=f"c{len(parts)}")
            part = types.Part(function_call=call)
        else:
            told = [part.text or ("call" if part.function_call else "result") for part in parts]
            part = types.Part(text=f"[{' '.join(told)}]")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

def refund() -> dict:
    return {"paid": True}

agent = LlmAgent(name="clerk", model=Scripted(model="scripted"), tools=[refund])
"""


def test_an_agent_of_adk_holds_a_conversation(tmp_path: Path) -> None:
    talks = [("agent", mode, THREE[:2]) for mode in ("full", "thread")]
    for replies in talk_there(".venv-adk", ADK, tmp_path, *talks):
        first, second = replies
        assert first.text == "[a call result]", first.error
        assert second.text == "[a call result [a call result] b call result]", second.error
        assert [len(calls(reply)) for reply in replies] == [1, 1]
        assert first.thread_id
        assert not any(reply.unread for reply in replies)
    assert first.thread_id == second.thread_id


def test_an_agent_of_pydantic_ai_holds_a_conversation() -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart  # noqa: PLC0415 - a library of others
    from pydantic_ai.models.function import FunctionModel  # noqa: PLC0415 - as above

    def model(messages: Any, info: Any) -> Any:
        del info
        kinds = [part.part_kind for message in messages for part in message.parts]
        if kinds[-1] != "tool-return":
            return ModelResponse(parts=[ToolCallPart("refund", {}, f"c{len(kinds)}")])
        return ModelResponse(parts=[TextPart(" ".join(kinds))])

    agent = pydantic_ai.Agent(FunctionModel(model))
    agent.tool_plain(lambda: "paid", name="refund")
    _check_history(talk(Function(function=agent), "a", "b"), "user-prompt tool-call tool-return", "text")


def test_an_agent_of_openai_agents_holds_a_conversation() -> None:
    agents = pytest.importorskip("agents")
    from openai.types.responses import (  # noqa: PLC0415 - a library of others
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    def kind(item: Any) -> str:
        return str(item.get("role") or item.get("type"))

    class Scripted(agents.Model):  # type: ignore[misc, name-defined]  # a library of others
        async def get_response(self, **given: Any) -> Any:
            items = given["input"]
            if kind(items[-1]) != "function_call_output":
                name = f"c{len(items)}"
                output: Any = ResponseFunctionToolCall(
                    type="function_call", name="refund", arguments="{}", call_id=name, id=name
                )
            else:
                text = ResponseOutputText(type="output_text", text=" ".join(map(kind, items)), annotations=[])
                output = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            return agents.ModelResponse(output=[output], usage=agents.Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    @agents.function_tool  # type: ignore[untyped-decorator, unused-ignore]
    def refund() -> str:
        """Refund it."""
        return "paid"

    agent = agents.Agent(name="clerk", model=Scripted(), tools=[refund])
    agents.set_tracing_disabled(disabled=True)
    _check_history(talk(Function(function=agent), "a", "b"), "user function_call function_call_output", "assistant")


def _check_history(held: Talk, turn: str, answer: str) -> None:
    assert texts_of(held) == [turn, f"{turn} {answer} {turn}"]
    assert [len(calls(reply)) for reply in held.replies] == [1, 1]
    assert len({call[0] for reply in held.replies for call in calls(reply)}) == 2
    assert [message.role for message in held.messages if not message.tool_calls] == ["user", "assistant"] * 2
    assert not any(reply.unread or reply.echo_end for reply in held.replies)
