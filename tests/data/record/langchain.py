"""LangChain: agents of `create_agent`, messages in every way of dumping them, and the older AgentExecutor."""

import os
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolRetryMiddleware
from langchain.tools import tool
from langchain_classic.agents import AgentExecutor, create_react_agent, create_tool_calling_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    ToolMessage,
    convert_to_openai_messages,
    message_to_dict,
    messages_to_dict,
)
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from record import wire
from record.common import *
from record.wire import httpx

record = Recorder("langchain", "langchain", ids=[r"(?<=run--)[0-9a-f-]{36}"])
core = Recorder("langchain_core", "langchain-core", made_by=TYPES, ids=[r"(?<=run--)[0-9a-f-]{36}"])


class Scripted(GenericFakeChatModel):
    """A fake model that may be told of tools."""

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self


def said(step: Step, number: int) -> AIMessage:
    content: Any = step.text
    if step.thought:
        content = [{"type": "thinking", "thinking": step.thought, "signature": "c2lnbmF0dXJl"}]
        content += [{"type": "tool_use", "id": i, "name": n, "input": g} for i, n, g in step.calls]
    return AIMessage(
        content=content,
        tool_calls=[{"name": name, "args": given, "id": number} for number, name, given in step.calls],
        usage_metadata={
            "input_tokens": step.given,
            "output_tokens": step.made,
            "total_tokens": step.given + step.made,
        },
        response_metadata={"model_name": "scripted-1", "finish_reason": "tool_calls" if step.calls else "stop"},
        id=f"msg_{number}",
    )


def scripted(scenario: str) -> Scripted:
    return Scripted(messages=iter([said(step, number) for number, step in enumerate(script(scenario), 1)]))


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
    return f"deleted {path}"


TOOLS = [get_weather, get_time, delete_file]


def ask(scenario: str, **more: Any) -> Any:
    agent = create_agent(scripted(scenario), TOOLS, **more)
    return agent.invoke({"messages": [{"role": "user", "content": QUESTIONS[scenario]}]})


def dumped(state: dict[str, Any]) -> dict[str, Any]:
    return state | {"messages": [message.model_dump(mode="json") for message in state["messages"]]}


WANTED = {
    "call": expect(paris(status="ok"), ANSWER, usage("call")),
    "thinking": expect(paris(status="ok"), ANSWER, usage("call")),
    "parallel": expect(three(status="ok"), ANSWER_PARALLEL, usage("parallel")),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}


def agents() -> None:
    for scenario, found in WANTED.items():
        state = ask(scenario)
        record.save(
            f"{scenario}-state", scenario, "agent.invoke(...), messages with model_dump()", dumped(state), found
        )
        if scenario == "parallel":
            messages = state["messages"]
            record.save(
                "parallel-dumpd",
                scenario,
                'dumpd(state["messages"]): the "lc constructor" form',
                dumpd(messages),
                found,
            )
            record.save(
                "parallel-messages-to-dict",
                scenario,
                'messages_to_dict(state["messages"])',
                messages_to_dict(messages),
                found,
            )
            record.save(
                "parallel-new-messages",
                scenario,
                "the messages after the question, model_dump()",
                dumped(state)["messages"][1:],
                found,
            )
            bare = expect(three(), ANSWER_PARALLEL)
            record.save(
                "parallel-openai",
                scenario,
                'convert_to_openai_messages(state["messages"])',
                convert_to_openai_messages(messages),
                bare,
            )
        if scenario == "call":
            last = state["messages"][-1]
            nothing = expect(None, ANSWER, usage("call", slice(1, 2)))
            note = "Only the last message: the calls were made before it, so nothing is known about them."
            record.save(
                "call-last-message",
                scenario,
                'message_to_dict(state["messages"][-1])',
                message_to_dict(last),
                nothing,
                note,
            )

    retry = ToolRetryMiddleware(max_retries=0, on_failure="continue")
    state = ask("failed", middleware=[retry])
    told = state["messages"][2].content
    found = expect(atlantis(output=told, status="error"), ANSWER_FAILED, usage("failed"))
    record.save("failed-state", "failed", "agent.invoke(...), messages with model_dump()", dumped(state), found)
    record.save("failed-dumpd", "failed", "dumpd(state)", dumpd(state), found)

    agent = create_agent(scripted("call"), TOOLS)
    question = {"messages": [{"role": "user", "content": QUESTION}]}
    updates = [
        {node: dumped(update) for node, update in chunk.items()}
        for chunk in agent.stream(question, stream_mode="updates")
    ]
    record.save(
        "call-updates",
        "call",
        'list(agent.stream(..., stream_mode="updates")), messages with model_dump()',
        updates,
        WANTED["call"],
    )


def structured() -> None:
    """A structured answer that came as a call, with the message it came in."""
    message = said(script("call")[0], 1)
    result = {"raw": message.model_dump(mode="json"), "parsed": {"city": "Paris"}, "parsing_error": None}
    found = expect([call("get_weather", {"city": "Paris"}, 1)], None, usage("call", slice(1)))
    what = "model.with_structured_output(..., include_raw=True).invoke(...)"
    record.save("call-include-raw", "call", what, result, found)


def approvals() -> None:
    for name in ("pending", "denied"):
        asks = HumanInTheLoopMiddleware(interrupt_on={"delete_file": True})
        agent = create_agent(scripted("delete"), TOOLS, middleware=[asks], checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "thread_1"}}
        state = agent.invoke({"messages": [{"role": "user", "content": QUESTION_DELETE}]}, config)
        if name == "denied":
            decision = {"type": "reject", "message": "the user said no"}
            state = agent.invoke(Command(resume={"decisions": [decision]}), config)
            told = state["messages"][2].content
            found = expect(notes(output=told, status="denied"), ANSWER_DENIED, usage("delete"))
            note = "The library calls it an error; that a human said no is in its fixed first words."
            record.save(
                "denied-state",
                "denied: a human rejects the call",
                "agent.invoke(...), messages with model_dump()",
                dumped(state),
                found,
                note,
            )
            continue
        shown = dumped(state)
        shown["__interrupt__"] = [{"value": each.value, "id": each.id} for each in state["__interrupt__"]]
        found = expect(notes(status="pending"), "", usage("delete", slice(1)))
        record.save(
            "pending-state",
            "pending: the call waits for a human",
            "agent.invoke(...), messages with model_dump(), interrupts with their fields",
            shown,
            found,
        )


def openai_models() -> None:
    """Return the messages that langchain-openai makes of OpenAI's bodies."""
    os.environ["OPENAI_API_KEY"] = wire.KEY

    def model(client: httpx.MockTransport, **more: Any) -> ChatOpenAI:
        return ChatOpenAI(model="scripted-1", http_client=httpx.Client(transport=client), **more)

    agent = create_agent(model(wire.chat("parallel")), TOOLS)
    state = agent.invoke({"messages": [{"role": "user", "content": QUESTION_PARALLEL}]})
    record.save(
        "parallel-openai-chat",
        "parallel",
        "agent.invoke(...) with ChatOpenAI, messages with model_dump()",
        dumped(state),
        WANTED["parallel"],
    )
    for version in ("responses/v1", "v1"):
        agent = create_agent(model(wire.responses("thinking"), use_responses_api=True, output_version=version), TOOLS)
        state = agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})
        record.save(
            f"thinking-openai-{version.replace('/', '-')}",
            "thinking",
            f"agent.invoke(...) with ChatOpenAI, output_version={version!r}, messages with model_dump()",
            dumped(state),
            WANTED["thinking"],
        )

    body = wire.response_body(Step(500, 40, (), "The Seine is 777 km long."), 1)
    search = {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "length of the Seine", "sources": None},
    }
    run = {
        "id": "ci_1",
        "type": "code_interpreter_call",
        "status": "completed",
        "code": "print(777)",
        "container_id": "cntr_1",
        "outputs": [{"type": "logs", "logs": "777"}],
    }
    body["output"] = [search, run, *body["output"]]
    counts = {"input_tokens": 500, "output_tokens": 40, "total_tokens": 540}
    for version in ("responses/v1", "v1"):
        message = model(wire.transport(iter([body])), use_responses_api=True, output_version=version).invoke(
            "How long is the Seine?"
        )
        told = {"status": "ok"} if version == "v1" else {}
        code = {"code": "print(777)"} if version == "v1" else "print(777)"
        found = expect(
            [
                call("web_search", {"type": "search", "query": "length of the Seine"}, "ws_1", **told),
                call("code_interpreter", code, "ci_1", output=[{"logs": "777", "type": "logs"}], **told),
            ],
            "The Seine is 777 km long.",
            counts,
        )
        record.save(
            f"server-tools-{version.replace('/', '-')}",
            "calls that ran at the provider",
            f"ChatOpenAI(output_version={version!r}).invoke(...).model_dump()",
            message.model_dump(mode="json"),
            found,
        )
        if version == "v1":
            record.save(
                "server-tools-v1-dumpd", "calls that ran at the provider", "dumpd(message)", dumpd(message), found
            )


def messages() -> None:
    """Messages that no current model makes but that stored conversations hold."""
    function = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
    old = AIMessage(
        content="", additional_kwargs={"tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    )
    answer = ToolMessage(content="18 C", tool_call_id="call_1", name="get_weather")
    end = AIMessage(content=ANSWER)
    chain = [old, answer, end]
    core.save(
        "legacy-tool-calls",
        "call",
        "[message.model_dump() ...] with calls in additional_kwargs",
        [each.model_dump(mode="json") for each in chain],
        expect(paris(status="ok"), ANSWER),
    )
    older = AIMessage(content="", additional_kwargs={"function_call": function})
    from langchain_core.messages import FunctionMessage

    chain = [older, FunctionMessage(content="18 C", name="get_weather"), end]
    core.save(
        "legacy-function-call",
        "call",
        "[message.model_dump() ...] with the call in additional_kwargs.function_call",
        [each.model_dump(mode="json") for each in chain],
        expect(paris(None), ANSWER),
    )
    core.save(
        "legacy-function-call-dict",
        "call",
        "messages_to_dict(...)",
        messages_to_dict(chain),
        expect(paris(None), ANSWER),
    )
    broken = AIMessage(
        content="",
        tool_calls=[],
        invalid_tool_calls=[{"name": "get_weather", "args": '{"city": ', "id": "call_1", "error": "not JSON"}],
    )
    core.save(
        "invalid-call",
        "a call whose arguments are not JSON",
        "[message.model_dump()]",
        [broken.model_dump(mode="json"), end.model_dump(mode="json")],
        expect([call("get_weather", '{"city": ', 1)], ANSWER),
    )
    blocks: Any = [
        {"type": "reasoning", "reasoning": THOUGHT},
        {"type": "server_tool_call", "id": "srv_1", "name": "web_search", "args": {"query": "Paris weather"}},
        {
            "type": "server_tool_result",
            "tool_call_id": "srv_1",
            "status": "success",
            "output": [{"title": "Paris", "text": "18 C"}],
        },
        {"type": "text", "text": "The web says 18 C. "},
        {"type": "tool_call", "id": "call_1", "name": "get_weather", "args": {"city": "Paris"}},
    ]
    full = AIMessage(content_blocks=blocks)
    searched = call(
        "web_search", {"query": "Paris weather"}, "srv_1", output=[{"title": "Paris", "text": "18 C"}], status="ok"
    )
    chain = [full, answer, end]
    found = expect([searched, *paris(status="ok")], ANSWER)
    core.save(
        "standard-blocks",
        "call, reasoning and a search at the provider",
        "[message.model_dump() ...], content of standard blocks",
        [each.model_dump(mode="json") for each in chain],
        found,
    )


def executors() -> None:
    prompt = ChatPromptTemplate.from_messages([("human", "{input}"), ("placeholder", "{agent_scratchpad}")])
    for scenario, found in (("parallel", expect(three(), ANSWER_PARALLEL)), ("plain", expect([], ANSWER_PLAIN))):
        agent = create_tool_calling_agent(scripted(scenario), TOOLS, prompt)
        executor = AgentExecutor(agent=agent, tools=TOOLS, return_intermediate_steps=True, stream_runnable=False)
        result = executor.invoke({"input": QUESTIONS[scenario]})
        shown = result | {
            "intermediate_steps": [
                [action.model_dump(mode="json"), output] for action, output in result["intermediate_steps"]
            ]
        }
        record.save(
            f"{scenario}-executor",
            scenario,
            "AgentExecutor.invoke(...) with intermediate steps, actions with model_dump()",
            shown,
            found,
        )
        record.save(f"{scenario}-executor-dumpd", scenario, "dumpd(AgentExecutor.invoke(...))", dumpd(result), found)
    template = "{tools} {tool_names} Question: {input} {agent_scratchpad}"
    words = [
        "Thought: I look it up.\nAction: get_weather\nAction Input: Paris",
        f"I now know the final answer.\nFinal Answer: {ANSWER}",
    ]
    agent = create_react_agent(
        FakeListChatModel(responses=words), [get_weather], PromptTemplate.from_template(template)
    )
    executor = AgentExecutor(agent=agent, tools=[get_weather], return_intermediate_steps=True, stream_runnable=False)
    result = executor.invoke({"input": QUESTION})
    shown = result | {
        "intermediate_steps": [
            [action.model_dump(mode="json"), output] for action, output in result["intermediate_steps"]
        ]
    }
    found = expect([call("get_weather", "Paris", output="18 C")], ANSWER)
    record.save(
        "react-executor",
        "call, of a ReAct agent that writes its calls as text",
        "AgentExecutor.invoke(...) with intermediate steps, actions with model_dump()",
        shown,
        found,
    )


agents()
structured()
approvals()
openai_models()
messages()
executors()
