"""Pydantic AI: a scripted FunctionModel; messages, results, retries, approvals, events."""

import asyncio
import json
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import (
    Agent,
    AgentRunResult,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    ToolDenied,
)
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage
from pydantic_core import to_json, to_jsonable_python
from record.common import *

record = Recorder("pydantic_ai", "pydantic-ai-slim")


def scripted(steps: list[Step]) -> FunctionModel:
    left = iter(steps)

    def say(messages: Any, info: Any) -> ModelResponse:
        step = next(left)
        parts: list[Any] = [ThinkingPart(step.thought)] if step.thought else []
        parts += [TextPart(step.text)] if step.text else []
        parts += [ToolCallPart(name, given, tool_call_id=number) for number, name, given in step.calls]
        counts = RequestUsage(input_tokens=step.given, output_tokens=step.made)
        return ModelResponse(parts=parts, usage=counts, finish_reason="tool_call" if step.calls else "stop")

    async def stream(messages: Any, info: Any) -> Any:
        step = next(left)
        if step.thought:
            yield {0: DeltaThinkingPart(content=step.thought)}
        for word in step.text.partition(" "):
            if word:
                yield word
        for index, (number, name, given) in enumerate(step.calls):
            text = json.dumps(given)
            yield {index: DeltaToolCall(name=name, json_args=text[:5], tool_call_id=number)}
            yield {index: DeltaToolCall(json_args=text[5:])}

    return FunctionModel(say, stream_function=stream, model_name="scripted-1")


def agent_of(scenario: str, raised: type[Exception] = ModelRetry, **more: Any) -> Agent[Any, Any]:
    agent: Agent[Any, Any] = Agent(scripted(script(scenario)), instructions="Be brief.", **more)

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """Tell the weather in a city."""
        try:
            return weather(city)
        except ValueError as error:
            raise raised(str(error)) from error

    @agent.tool_plain
    def get_time(zone: str) -> str:
        """Tell the time in a zone."""
        return time_in(zone)

    @agent.tool_plain(requires_approval=True)
    def delete_file(path: str) -> str:
        """Delete a file."""
        return f"deleted {path}"

    return agent


def read(text: bytes) -> Any:
    return json.loads(text)


WANTED = {
    "call": expect(paris(), ANSWER, usage("call")),
    "thinking": expect(paris(), ANSWER, usage("call")),
    "parallel": expect(three(), ANSWER_PARALLEL, usage("parallel")),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}
for found in WANTED.values():
    for each in found["calls"]:
        each["status"] = "ok"

for scenario, found in WANTED.items():
    result = agent_of(scenario, output_type=str, toolsets=[]).run_sync(QUESTIONS[scenario])
    record.save(
        f"{scenario}-all-messages",
        scenario,
        "json.loads(result.all_messages_json())",
        read(result.all_messages_json()),
        found,
    )
    if scenario in {"parallel", "plain"}:
        whole = TypeAdapter(AgentRunResult[str]).dump_python(result, mode="json")
        record.save(
            f"{scenario}-result",
            scenario,
            "TypeAdapter(AgentRunResult[str]).dump_python(result, mode='json')",
            whole,
            found,
        )
        shown = {
            "output": result.output,
            "usage": TypeAdapter(Any).dump_python(result.usage, mode="json"),
            "messages": read(result.new_messages_json()),
        }
        record.save(
            f"{scenario}-output-usage-messages",
            scenario,
            '{"output", "usage", "messages": new_messages} of the result',
            shown,
            found,
        )

history = agent_of("plain").run_sync(QUESTION_PLAIN).all_messages()
result = agent_of("call").run_sync(QUESTION, message_history=history)
record.save(
    "call-new-messages",
    "call, after an earlier turn",
    "json.loads(result.new_messages_json())",
    read(result.new_messages_json()),
    WANTED["call"],
)

for name, raised in (("retry", ModelRetry), ("failed", ToolFailed)):
    result = agent_of("failed", raised).run_sync(QUESTION_FAILED)
    record.save(
        f"{name}-all-messages",
        f"failed: the tool raises {raised.__name__}",
        "json.loads(result.all_messages_json())",
        read(result.all_messages_json()),
        expect(atlantis(status="error", output=FAILURE), ANSWER_FAILED, usage("failed")),
    )

agent = agent_of("delete", output_type=[str, DeferredToolRequests])
result = agent.run_sync(QUESTION_DELETE)
title = "pending: the call waits for a human"
waiting = expect(notes(status="pending"), "", usage("delete", slice(1)))
shown = {
    "output": TypeAdapter(DeferredToolRequests).dump_python(result.output, mode="json"),
    "messages": read(result.all_messages_json()),
}
record.save("pending-output", title, '{"output": the DeferredToolRequests, "messages": all_messages}', shown, waiting)
record.save(
    "pending-result",
    title,
    "TypeAdapter(AgentRunResult[...]).dump_python(result, mode='json')",
    TypeAdapter(AgentRunResult[str | DeferredToolRequests]).dump_python(result, mode="json"),
    waiting,
)
answer = DeferredToolResults(approvals={"call_1": ToolDenied("the user said no")})
result = agent.run_sync(message_history=result.all_messages(), deferred_tool_results=answer)
record.save(
    "denied-all-messages",
    "denied: a human rejects the call",
    "json.loads(result.all_messages_json())",
    read(result.all_messages_json()),
    expect(notes(output="the user said no", status="denied"), ANSWER_DENIED, usage("delete")),
)


def searching(messages: Any, info: Any) -> ModelResponse:
    parts = [
        NativeToolCallPart("web_search", {"query": "Paris weather"}, tool_call_id="srv_1", provider_name="scripted"),
        NativeToolReturnPart(
            "web_search", [{"title": "Paris", "text": "18 C"}], tool_call_id="srv_1", provider_name="scripted"
        ),
        TextPart(ANSWER),
    ]
    return ModelResponse(parts=parts, usage=RequestUsage(input_tokens=90, output_tokens=9))


result = Agent(FunctionModel(searching, model_name="scripted-1")).run_sync(QUESTION)
searched = call(
    "web_search", {"query": "Paris weather"}, "srv_1", output=[{"title": "Paris", "text": "18 C"}], status="ok"
)
record.save(
    "server-tool-all-messages",
    "a search that ran at the provider",
    "json.loads(result.all_messages_json())",
    read(result.all_messages_json()),
    expect([searched], ANSWER, {"input_tokens": 90, "output_tokens": 9, "total_tokens": 99}),
)


async def streamed(scenario: str) -> list[Any]:
    events = []
    async with agent_of(scenario).run_stream_events(QUESTIONS[scenario]) as stream:
        async for event in stream:
            events.append(TypeAdapter(type(event)).dump_python(event, mode="json"))  # noqa: PERF401 - it is awaited
    return events


events = asyncio.run(streamed("call"))
counts = events[-1]["result"]["usage"]  # a FunctionModel that streams guesses them
total = counts["input_tokens"] + counts["output_tokens"]
found = expect(
    paris(status="ok"),
    ANSWER,
    {"input_tokens": counts["input_tokens"], "output_tokens": counts["output_tokens"], "total_tokens": total},
)
record.save(
    "call-stream-events",
    "call",
    "every event of agent.run_stream_events(...), dumped with a TypeAdapter",
    events,
    found,
)

inner = agent_of("call")
outer: Agent[Any, Any] = Agent(
    scripted([Step(20, 5, (("call_9", "forecaster", {"question": QUESTION}),)), Step(30, 6, (), ANSWER)])
)


@outer.tool_plain
async def forecaster(question: str) -> str:
    """Ask the forecaster."""
    return (await inner.run(question)).output


result = outer.run_sync(QUESTION)
record.save(
    "subagent-all-messages",
    "an agent as a tool of another",
    "json.loads(result.all_messages_json()) of the outer agent",
    read(result.all_messages_json()),
    expect(
        [call("forecaster", {"question": QUESTION}, "call_9", output=ANSWER, status="ok")],
        ANSWER,
        {"input_tokens": 50, "output_tokens": 11, "total_tokens": 61},
    ),
)

result = agent_of("parallel").run_sync(QUESTION_PARALLEL)
record.save(
    "parallel-result-fields",
    "parallel",
    "pydantic_core.to_json(result): the fields of the result",
    json.loads(to_json(result, fallback=str)),
    WANTED["parallel"],
)
result = agent_of("delete", output_type=[str, DeferredToolRequests]).run_sync(QUESTION_DELETE)
record.save(
    "pending-deferred",
    title,
    "the DeferredToolRequests alone",
    TypeAdapter(DeferredToolRequests).dump_python(result.output, mode="json"),
    expect(notes(status="pending"), ""),
)


async def nodes() -> list[Any]:
    async with agent_of("call").iter(QUESTION) as run:
        return [to_jsonable_python(node, fallback=str) async for node in run]


shown = [
    {key: node[key] for key in ("user_prompt", "request", "model_response", "data") if key in node}
    for node in asyncio.run(nodes())
]
record.save("call-nodes", "call", "[node async for node in agent.iter(...)], their messages", shown, WANTED["call"])
