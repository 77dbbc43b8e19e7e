"""LlamaIndex: agents over a scripted model; outputs, events, memory; calls in blocks and in extra arguments."""

import asyncio
import json
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from pydantic import PrivateAttr
from record.common import *

record = Recorder("llama_index", "llama-index-core")


class Scripted(FunctionCallingLLM):
    """Says its steps; calls are blocks, or OpenAI's objects among the extra arguments."""

    in_blocks: bool = True
    _steps: Any = PrivateAttr()

    def __init__(self, steps: list[Step], **more: Any) -> None:
        super().__init__(**more)
        self._steps = iter(steps)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, model_name="scripted-1")

    def _said(self) -> ChatResponse:
        step = next(self._steps)
        blocks: list[Any] = [ThinkingBlock(content=step.thought)] if step.thought else []
        blocks += [TextBlock(text=step.text)] if step.text else []
        extra: dict[str, Any] = {}
        if self.in_blocks:
            blocks += [
                ToolCallBlock(tool_call_id=number, tool_name=name, tool_kwargs=given)
                for number, name, given in step.calls
            ]
        elif step.calls:
            extra["tool_calls"] = [
                {"id": number, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
                for number, name, given in step.calls
            ]
        counts = {"prompt_tokens": step.given, "completion_tokens": step.made, "total_tokens": step.given + step.made}
        message = ChatMessage(role="assistant", blocks=blocks, additional_kwargs=extra)
        return ChatResponse(message=message, raw={"usage": counts}, additional_kwargs=counts)

    def get_tool_calls_from_response(self, response: ChatResponse, *rest: Any, **more: Any) -> list[ToolSelection]:
        found = [
            ToolSelection(tool_id=block.tool_call_id, tool_name=block.tool_name, tool_kwargs=block.tool_kwargs)
            for block in response.message.blocks
            if isinstance(block, ToolCallBlock)
        ]
        return found + [
            ToolSelection(
                tool_id=each["id"],
                tool_name=each["function"]["name"],
                tool_kwargs=json.loads(each["function"]["arguments"]),
            )
            for each in response.message.additional_kwargs.get("tool_calls", [])
        ]

    def _prepare_chat_with_tools(self, tools: Any, user_msg: Any = None, chat_history: Any = None, **more: Any) -> Any:
        return {"messages": chat_history or []}

    async def achat(self, messages: Any, **more: Any) -> ChatResponse:
        return self._said()

    async def astream_chat(self, messages: Any, **more: Any) -> Any:
        async def stream() -> Any:
            yield self._said()

        return stream()

    def chat(self, messages: Any, **more: Any) -> ChatResponse:
        return self._said()

    def complete(self, prompt: str, formatted: bool = False, **more: Any) -> CompletionResponse:  # noqa: FBT002 - theirs
        raise NotImplementedError

    stream_chat = stream_complete = acomplete = astream_complete = complete


def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return weather(city)


def get_time(zone: str) -> str:
    """Tell the time in a zone."""
    return time_in(zone)


TOOLS = [get_weather, get_time]
NO_OUTPUTS = "The object has the tools' outputs, its dump has not."
WANTED = {
    "call": expect(paris(status="ok"), ANSWER),
    "thinking": expect(paris(status="ok"), ANSWER),
    "parallel": expect(three(status="ok"), ANSWER_PARALLEL),
    "failed": expect(atlantis(status="error"), ANSWER_FAILED),
    "plain": expect([], ANSWER_PLAIN),
}


def bare(found: dict[str, Any], *gone: str) -> dict[str, Any]:
    return found | {"calls": [{key: each[key] for key in each if key not in gone} for each in found["calls"]]}


async def run(agent: Any, question: str) -> tuple[Any, list[Any], list[Any]]:
    """The output, the events and the memory of one run."""
    memory = ChatMemoryBuffer.from_defaults(token_limit=100000, tokenizer_fn=str.split)
    handler = agent.run(question, memory=memory)
    events = [
        {"type": type(each).__name__, "event": each.model_dump(mode="json")} async for each in handler.stream_events()
    ]
    output = await handler
    return output, events, [each.model_dump(mode="json") for each in await memory.aget_all()]


def settled(events: list[Any]) -> list[Any]:
    """Calls of one step run at once, and their events come in any order: here the calls, then the results."""
    shown: list[Any] = []
    step: list[Any] = []
    for event in (*events, None):
        if event is not None and event["type"] in {"ToolCall", "ToolCallResult"}:
            step.append(event)
            continue
        shown += sorted(step, key=lambda each: (each["type"], each["event"]["tool_id"]))
        step = []
        shown += [] if event is None else [event]
    return shown


def shown(output: Any) -> Any:
    """The value that most users return. Its field `tool_calls` is of a class without outputs, so a dump loses them."""
    return output.model_dump(mode="json")


async def main() -> None:
    for scenario, found in WANTED.items():
        agent = FunctionAgent(name="assistant", tools=TOOLS, llm=Scripted(script(scenario)), streaming=False)
        output, events, memory = await run(agent, QUESTIONS[scenario])
        if scenario == "failed":
            (told,) = [each["event"]["tool_output"] for each in events if each["type"] == "ToolCallResult"]
            found["calls"][0]["output"] = told["blocks"][0]["text"]
        record.save(
            f"{scenario}-output",
            scenario,
            "(await agent.run(...)).model_dump(mode='json')",
            shown(output),
            bare(found, "status", "output"),
            NO_OUTPUTS,
        )
        record.save(
            f"{scenario}-memory",
            scenario,
            "[message.model_dump(mode='json') for message in await memory.aget_all()]",
            memory,
            bare(found, "status"),
        )
        if scenario in {"parallel", "failed", "plain"}:
            kept = [each for each in settled(events) if each["type"] in {"AgentOutput", "ToolCall", "ToolCallResult"}]
            record.save(
                f"{scenario}-stream-events",
                scenario,
                '[{"type": class name, "event": model_dump()} ...] of AgentOutput, ToolCall, ToolCallResult',
                kept,
                found,
            )
            record.save(
                f"{scenario}-stream-events-bare",
                scenario,
                "[event.model_dump(mode='json') ...], without their class names",
                [each["event"] for each in kept],
                found,
            )
        agent = FunctionAgent(
            name="assistant", tools=TOOLS, llm=Scripted(script(scenario), in_blocks=False), streaming=False
        )
        if scenario == "parallel":
            _, _, memory = await run(agent, QUESTIONS[scenario])
            record.save(
                "parallel-memory-kwargs",
                "parallel, calls in additional_kwargs",
                "[message.model_dump(mode='json') for message in await memory.aget_all()]",
                memory,
                bare(found, "status"),
            )

    forecaster = FunctionAgent(
        name="forecaster",
        description="Knows the weather.",
        tools=[get_weather],
        llm=Scripted(script("call")),
        streaming=False,
    )
    over = [Step(20, 5, (("call_9", "handoff", {"to_agent": "forecaster", "reason": "it knows the weather"}),))]
    triage = FunctionAgent(
        name="triage",
        description="Finds who knows.",
        tools=[],
        llm=Scripted(over),
        can_handoff_to=["forecaster"],
        streaming=False,
    )
    workflow = AgentWorkflow(agents=[triage, forecaster], root_agent="triage")
    output, events, memory = await run(workflow, QUESTION)
    (told,) = [
        each["event"]["tool_output"]
        for each in events
        if each["type"] == "ToolCallResult" and each["event"]["tool_name"] == "handoff"
    ]
    moved = call(
        "handoff",
        {"to_agent": "forecaster", "reason": "it knows the weather"},
        "call_9",
        output=told["blocks"][0]["text"],
        status="ok",
    )
    record.save(
        "handoff-output",
        "call, after a handoff to another agent",
        "(await workflow.run(...)).model_dump(mode='json')",
        shown(output),
        bare(expect([moved, *paris(status="ok")], ANSWER), "status", "output"),
        NO_OUTPUTS,
    )
    record.save(
        "handoff-memory",
        "call, after a handoff to another agent",
        "[message.model_dump(mode='json') for message in await memory.aget_all()]",
        memory,
        bare(expect([moved, *paris()], ANSWER), "status"),
    )

    words = [
        'Thought: I look it up.\nAction: get_weather\nAction Input: {"city": "Paris"}',
        f"Thought: I can answer without using any more tools.\nAnswer: {ANSWER}",
    ]
    react = ReActAgent(
        name="assistant",
        tools=TOOLS,
        llm=Scripted([Step(50, 10, (), words[0]), Step(70, 8, (), words[1])]),
        streaming=False,
    )
    output, events, memory = await run(react, QUESTION)
    found = expect(
        [
            call(
                "get_weather",
                {"city": "Paris"},
                next(each["event"]["tool_id"] for each in events if each["type"] == "ToolCall"),
                output="18 C",
                status="ok",
            )
        ],
        ANSWER,
    )
    record.save(
        "react-output",
        "call, of a ReAct agent that writes its calls as text",
        "(await agent.run(...)).model_dump(mode='json')",
        shown(output),
        bare(found, "status", "output"),
        NO_OUTPUTS,
    )

    output, events, memory = await run(
        FunctionAgent(name="assistant", tools=TOOLS, llm=Scripted(script("call")), streaming=False), QUESTION
    )
    told = [{"event": each["type"], "data": each["event"]} for each in events]
    found = expect(paris(status="ok"), ANSWER)
    record.save("call-stream-events-data", "call", '[{"event": class name, "data": fields} ...]', told, found)


asyncio.run(main())
