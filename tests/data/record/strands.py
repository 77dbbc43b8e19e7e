"""Strands Agents: an agent with a scripted model; its messages, its result, its streamed events."""

import asyncio
import json
from typing import Any

from record.common import *
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.models import Model
from strands.multiagent import GraphBuilder

record = Recorder(
    "strands",
    "strands-agents",
    durations=["latencyMs", "total_duration", "duration", "average_cycle_time", "total_time", "average_time"],
)


class Scripted(Model):
    """Says the steps of a scenario, whatever it is asked."""

    def __init__(self, scenario: str) -> None:
        self.steps = iter(script(scenario))

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *rest: Any, **more: Any) -> Any:
        raise NotImplementedError
        yield {}

    async def stream(self, *rest: Any, **more: Any) -> Any:
        step = next(self.steps)
        yield {"messageStart": {"role": "assistant"}}
        if step.thought:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"reasoningContent": {"text": step.thought}}}}
            yield {"contentBlockDelta": {"delta": {"reasoningContent": {"signature": "c2lnbmF0dXJl"}}}}
            yield {"contentBlockStop": {}}
        if step.text:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": step.text}}}
            yield {"contentBlockStop": {}}
        for number, name, given in step.calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": number, "name": name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(given)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if step.calls else "end_turn"}}
        counts = {"inputTokens": step.given, "outputTokens": step.made, "totalTokens": step.given + step.made}
        yield {"metadata": {"usage": counts, "metrics": {"latencyMs": 1}}}


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


def agent_of(scenario: str) -> Agent:
    return Agent(model=Scripted(scenario), tools=[get_weather, get_time, delete_file], callback_handler=None)


def plainly(value: Any) -> Any:
    """Return the data that `json.dumps(event, default=str)` keeps, without live objects."""
    if isinstance(value, dict):
        return {key: plainly(each) for key, each in value.items() if key not in LIVE}
    if isinstance(value, list):
        return [plainly(each) for each in value]
    return value if isinstance(value, str | int | float | None) else str(value)


LIVE = {
    "agent",
    "event_loop_cycle_trace",
    "event_loop_cycle_span",
    "request_state",
    "invocation_state",
    "tracer",
    "event_loop_parent_cycle_id",
    "event_loop_cycle_id",
    "event_loop_parent_span",
    "model",
    "messages",
    "event_loop_metrics",
    "result",
    "trace_state",
}

# Strands wraps what a tool returned into a list of blocks; the text of its one block is the output.
wanted = {
    "call": expect(paris(status="ok"), ANSWER, usage("call")),
    "thinking": expect(paris(status="ok"), ANSWER, usage("call")),
    "parallel": expect(three(status="ok"), ANSWER_PARALLEL, usage("parallel")),
    "failed": expect(atlantis(output=f"Error: {FAILURE}", status="error"), ANSWER_FAILED, usage("failed")),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}


def main() -> None:
    for scenario, found in wanted.items():
        agent = agent_of(scenario)
        result = agent(QUESTIONS[scenario])
        record.save(f"{scenario}-messages", scenario, "agent.messages", agent.messages, found)
        if scenario in {"parallel", "plain"}:
            new = agent.messages[1:]
            record.save(f"{scenario}-new-messages", scenario, "agent.messages[1:], without the question", new, found)
            shown = {"result": result.to_dict(), "messages": agent.messages, "metrics": result.metrics.get_summary()}
            shown["metrics"].pop("traces")
            record.save(
                f"{scenario}-result",
                scenario,
                '{"result": result.to_dict(), "messages": agent.messages, "metrics": get_summary() less its traces}',
                shown,
                found,
            )
        if scenario == "call":
            record.save(
                "call-to-dict",
                "call",
                "result.to_dict(): the last message only",
                result.to_dict(),
                expect(None, ANSWER, usage("call", slice(1, 2))),
                "Only the last message: the calls were made before it, so nothing is known about them.",
            )
            state = result.to_dict() | {"metrics": result.metrics.get_summary()}
            record.save(
                "call-metrics", "call", 'result.to_dict() | {"metrics": result.metrics.get_summary()}', state, found
            )

    agent = agent_of("call")

    async def streamed() -> list[Any]:
        return [plainly(event) async for event in agent.stream_async(QUESTION)]

    events = [event for event in asyncio.run(streamed()) if event]
    record.save(
        "call-stream",
        "call",
        "[event async for event in agent.stream_async(...)], live objects left out",
        events,
        wanted["call"],
    )
    raw = [event["event"] for event in events if "event" in event]
    record.save(
        "call-stream-model",
        "call",
        'the "event" of each streamed event: what the model sent',
        raw,
        expect([call("get_weather", {"city": "Paris"}, 1)], ANSWER, usage("call")),
    )

    for answer, name in ((None, "pending"), ("no", "denied"), ("cancel", "cancelled")):
        agent = agent_of("delete")

        def approve(event: BeforeToolCallEvent) -> None:
            if (
                answer == "cancel"
                or event.interrupt("delete", reason={"path": event.tool_use["input"]["path"]}) == "no"
            ):
                event.cancel_tool = "the user said no"

        agent.add_hook(approve, BeforeToolCallEvent)
        result = agent(QUESTION_DELETE)
        if name == "pending":
            shown = {
                "stop_reason": result.stop_reason,
                "message": result.message,
                "interrupts": [each.to_dict() for each in result.interrupts],
            }
            record.save(
                "pending-result",
                "pending: the call waits for a human",
                '{"stop_reason", "message", "interrupts"} of the result',
                shown,
                {**expect(notes(status="pending"), "", usage("delete", slice(1))), "complete": False},
                "Only the last message: calls that were made before it are not told.",
            )
            state = {"messages": agent.messages} | {key: shown[key] for key in ("stop_reason", "interrupts")}
            record.save(
                "pending-state",
                "pending: the call waits for a human",
                '{"messages": agent.messages}, and "stop_reason" and "interrupts" of the result',
                state,
                expect(notes(status="pending"), "", usage("delete", slice(1))),
            )
            record.save(
                "pending-messages",
                "pending: the call waits for a human",
                "agent.messages",
                agent.messages,
                expect(notes(), "", usage("delete", slice(1))),
                "The messages alone do not say that the call waits: it has no result yet.",
            )
            continue
        if name == "denied":
            (interrupt,) = result.interrupts
            agent([{"interruptResponse": {"interruptId": interrupt.id, "response": "no"}}])
        record.save(
            f"{name}-messages",
            f"{name}: a human rejects the call",
            "agent.messages",
            agent.messages,
            expect(notes(output="the user said no", status="error"), ANSWER_DENIED, usage("delete")),
            "The library calls it an error; that a human said no is only in the text.",
        )

    class Boss(Scripted):
        def __init__(self) -> None:
            self.steps = iter([Step(20, 5, (("call_9", "forecaster", {"input": QUESTION}),)), Step(30, 6, (), ANSWER)])

    forecaster = Agent(
        model=Scripted("call"),
        tools=[get_weather],
        name="forecaster",
        description="Knows the weather.",
        callback_handler=None,
    )
    boss = Agent(model=Boss(), tools=[forecaster], callback_handler=None)
    boss(QUESTION)
    record.save(
        "subagent-messages",
        "an agent as a tool of another",
        "messages of the outer agent",
        boss.messages,
        expect(
            [call("forecaster", {"input": QUESTION}, "call_9", output=f"{ANSWER}\n", status="ok")],
            ANSWER,
            {"input_tokens": 50, "output_tokens": 11, "total_tokens": 61},
        ),
    )

    summary = agent_of("parallel")
    shown = json.loads(json.dumps(summary(QUESTION_PARALLEL).metrics.get_summary(), default=str))
    record.save("parallel-summary", "parallel", "result.metrics.get_summary()", shown, wanted["parallel"])

    def graph() -> Any:
        builder = GraphBuilder()
        builder.add_node(agent_of("call"), "forecaster")
        builder.set_entry_point("forecaster")
        return builder.build()

    found = expect(None, ANSWER, usage("call"))
    note = "Only the last message of each node: nothing is known about calls."
    record.save("call-graph", "call", "graph(...).to_dict()", graph()(QUESTION).to_dict(), found, note)

    async def events_of_graph() -> list[Any]:
        return [plainly(event) async for event in graph().stream_async(QUESTION)]

    told = [each for each in asyncio.run(events_of_graph()) if each.get("event") or "node_id" not in each]
    record.save("call-graph-stream", "call", "[event async for event in graph.stream_async(...)]", told, wanted["call"])


main()
