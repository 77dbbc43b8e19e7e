"""Deep Agents: a graph with files and sub-agents; its state and its streamed updates."""

from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from record.common import *

record = Recorder("deepagents", "deepagents", ids=[r"(?<=run--)[0-9a-f-]{36}"])


class Scripted(GenericFakeChatModel):
    """A fake model that may be told of tools."""

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self


def scripted(steps: list[Step], start: int = 1) -> Scripted:
    said = [
        AIMessage(
            content=step.text,
            tool_calls=[{"name": name, "args": given, "id": number} for number, name, given in step.calls],
            usage_metadata={
                "input_tokens": step.given,
                "output_tokens": step.made,
                "total_tokens": step.given + step.made,
            },
            id=f"msg_{index}",
        )
        for index, step in enumerate(steps, start)
    ]
    return Scripted(messages=iter(said))


@tool
def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return weather(city)


@tool
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if type(value).__name__ == "Interrupt":
        return {"value": plain(value.value), "id": value.id}
    if type(value).__name__ == "Overwrite":
        return plain(value.value)
    return value


written = {"file_path": "/plan.md", "content": "Ask the forecaster."}
asks = {"description": QUESTION, "subagent_type": "forecaster"}
STEPS_OUTER = [
    Step(20, 5, (("call_8", "write_file", written),)),
    Step(30, 6, (("call_9", "task", asks),)),
    Step(40, 7, (), ANSWER),
]
COUNTS = {"input_tokens": 90, "output_tokens": 18, "total_tokens": 108}


def agent() -> Any:
    forecaster = {
        "name": "forecaster",
        "description": "Knows the weather.",
        "system_prompt": "Be brief.",
        "tools": [get_weather],
        "model": scripted(script("call"), 11),
    }
    return create_deep_agent(model=scripted(STEPS_OUTER), tools=[get_weather], subagents=[forecaster])


question = {"messages": [{"role": "user", "content": QUESTION}]}
state = agent().invoke(question)
told = {message.tool_call_id: message.content for message in state["messages"] if message.type == "tool"}
outer = [
    call("write_file", written, "call_8", output=told["call_8"], status="ok"),
    call("task", asks, "call_9", output=told["call_9"], status="ok"),
]
record.save(
    "subagent-state",
    "a file, then a sub-agent that makes the call",
    "agent.invoke(...), messages with model_dump()",
    plain(state),
    expect(outer, ANSWER, COUNTS),
    "What the sub-agent called is not in the outer state.",
)
updates = list(agent().stream(question, stream_mode="updates", subgraphs=True))
found = expect([*outer, *paris(status="ok")], ANSWER, {"input_tokens": 210, "output_tokens": 36, "total_tokens": 246})
record.save(
    "subagent-updates",
    "a file, then a sub-agent that makes the call",
    'list(agent.stream(..., stream_mode="updates", subgraphs=True))',
    plain(updates),
    found,
)
state = create_deep_agent(model=scripted(script("plain")), tools=[get_weather]).invoke(
    {"messages": [{"role": "user", "content": QUESTION_PLAIN}]}
)
record.save(
    "plain-state",
    "plain",
    "agent.invoke(...), messages with model_dump()",
    plain(state),
    expect([], ANSWER_PLAIN, usage("plain")),
)
waits = create_deep_agent(
    model=scripted(script("delete")),
    tools=[delete_file],
    interrupt_on={"delete_file": True},
    checkpointer=InMemorySaver(),
)
state = waits.invoke(
    {"messages": [{"role": "user", "content": QUESTION_DELETE}]}, {"configurable": {"thread_id": "thread_1"}}
)
record.save(
    "pending-state",
    "pending: the call waits for a human",
    "agent.invoke(...), messages with model_dump(), interrupts with their fields",
    plain(state),
    expect(notes(status="pending"), "", usage("delete", slice(1))),
)
