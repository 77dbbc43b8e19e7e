"""Google ADK: events of a runner with a scripted model; sessions, agents as tools, transfers, confirmations."""

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from record.common import *

record = Recorder("adk", "google-adk", ids=[r"(?<=^)(?P<keep>adk-)[0-9a-f-]{36}"])


class Scripted(BaseLlm):
    """Says its steps one after the other; without `ids` it is ADK that numbers the calls."""

    steps: list[Any]
    ids: bool = True

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:  # noqa: FBT002 - ADK's
        step = self.steps.pop(0)
        parts = [types.Part(text=step.thought, thought=True)] if step.thought else []
        parts += [types.Part(text=step.text)] if step.text else []
        parts += [
            types.Part(function_call=types.FunctionCall(id=number if self.ids else None, name=name, args=given))
            for number, name, given in step.calls
        ]
        thought = 4 if step.thought else None
        counts = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=step.given,
            candidates_token_count=step.made - (thought or 0),
            thoughts_token_count=thought,
            total_token_count=step.given + step.made,
        )
        if stream and step.text:
            for word in step.text.partition(" "):
                content = types.Content(role="model", parts=[types.Part(text=word)])
                yield LlmResponse(partial=True, content=content)
        content = types.Content(role="model", parts=parts)
        yield LlmResponse(content=content, usage_metadata=counts, finish_reason="STOP", model_version="scripted-1")


def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return weather(city)


def get_time(zone: str) -> dict[str, str]:
    """Tell the time in a zone."""
    return {"time": time_in(zone)}


def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


TOOLS = [get_weather, get_time, FunctionTool(delete_file, require_confirmation=True)]


def told(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, str]:
    return {"error": str(error)}


def agent_of(scenario: str, ids: bool = True) -> LlmAgent:  # noqa: FBT002 - a script's own
    return LlmAgent(
        name="assistant",
        model=Scripted(model="scripted-1", steps=script(scenario), ids=ids),
        tools=TOOLS,
        on_tool_error_callback=told,
    )


class Talk:
    """A session of its own for one agent."""

    def __init__(self, agent: LlmAgent) -> None:
        self.runner = InMemoryRunner(agent=agent, app_name="app")

    async def say(self, *parts: types.Part, mode: Any = None) -> list[Any]:
        if await self.session() is None:
            await self.runner.session_service.create_session(app_name="app", user_id="user", session_id="session_1")
        message = types.Content(role="user", parts=list(parts))
        config = RunConfig(streaming_mode=mode) if mode else None
        return [
            event
            async for event in self.runner.run_async(
                user_id="user", session_id="session_1", new_message=message, run_config=config
            )
        ]

    async def session(self) -> Any:
        return await self.runner.session_service.get_session(app_name="app", user_id="user", session_id="session_1")


def snake(events: Any) -> Any:
    return [event.model_dump(mode="json", exclude_none=True) for event in events]


def camel(events: Any) -> Any:
    return [event.model_dump(mode="json", exclude_none=True, by_alias=True) for event in events]


def ask(text: str) -> types.Part:
    return types.Part(text=text)


SNAKE = "[event.model_dump(mode='json', exclude_none=True) ...]"
CAMEL = "[event.model_dump(mode='json', exclude_none=True, by_alias=True) ...]: what `adk api_server` answers"
OUTPUTS = ["18 C", "24 C", {"time": "12:00"}]
WANTED = {
    "call": expect(paris(), ANSWER, usage("call")),
    "thinking": expect(paris(), ANSWER, usage("call")),
    "parallel": expect(three(outputs=OUTPUTS), ANSWER_PARALLEL, usage("parallel")),
    "failed": expect(atlantis(output={"error": FAILURE}, status="error"), ANSWER_FAILED, usage("failed")),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}
WRAPPED = "ADK wraps a text that a tool returned as {'result': text}; the text is the output."


async def main() -> None:
    for scenario, found in WANTED.items():
        talk = Talk(agent_of(scenario))
        events = await talk.say(ask(QUESTIONS[scenario]))
        note = WRAPPED if scenario in {"call", "thinking", "parallel"} else ""
        record.save(f"{scenario}-events", scenario, SNAKE, snake(events), found, note)
        if scenario in {"parallel", "failed", "plain"}:
            record.save(f"{scenario}-events-camel", scenario, CAMEL, camel(events), found, note)
        if scenario in {"parallel", "plain"}:
            session = await talk.session()
            shown = session.model_dump(mode="json", exclude_none=True)
            record.save(
                f"{scenario}-session",
                scenario,
                "session.model_dump(mode='json', exclude_none=True), with the question",
                shown,
                found | {"thread_id": "session_1"},
                note,
            )
        if scenario == "call":
            last = [event for event in events if event.is_final_response()]
            record.save(
                "call-final-event",
                "call",
                "the final event only",
                snake(last)[0],
                expect(None, ANSWER, usage("call", slice(1, 2))),
                "Only the last event: the calls were made before it, so nothing is known about them.",
            )

    events = await Talk(agent_of("parallel", ids=False)).say(ask(QUESTION_PARALLEL))
    record.save(
        "parallel-events-own-ids",
        "parallel, the model gave no ids",
        SNAKE,
        snake(events),
        expect(three(("adk-1", "adk-2", "adk-3"), OUTPUTS), ANSWER_PARALLEL, usage("parallel")),
        WRAPPED,
    )
    events = await Talk(agent_of("call")).say(ask(QUESTION), mode=StreamingMode.SSE)
    record.save("call-stream-events", "call, streamed", SNAKE, snake(events), WANTED["call"], WRAPPED)

    talk = Talk(agent_of("delete"))
    events = await talk.say(ask(QUESTION_DELETE))
    title = "pending: the call waits for a human"
    waiting = expect(notes(status="pending"), "", usage("delete", slice(1)))
    record.save(
        "pending-events",
        title,
        SNAKE,
        snake(events),
        waiting,
        "The call `adk_request_confirmation` is ADK's own question to the human, not the agent's.",
    )
    record.save("pending-events-camel", title, CAMEL, camel(events), waiting)
    (asked,) = [
        each for event in events for each in event.get_function_calls() if each.name == "adk_request_confirmation"
    ]
    answer = types.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": False})
    events = await talk.say(types.Part(function_response=answer))
    session = await talk.session()
    shown = session.model_dump(mode="json", exclude_none=True)
    rejected = next(
        each.response
        for event in session.events
        for each in event.get_function_responses()
        if each.name == "delete_file" and "is rejected" in str(each.response)
    )
    record.save(
        "denied-session",
        "denied: a human rejects the call",
        "session.model_dump(mode='json', exclude_none=True)",
        shown,
        expect(notes(output=rejected, status="denied"), ANSWER_DENIED, usage("delete"), "session_1"),
    )

    forecaster = LlmAgent(
        name="forecaster",
        description="Knows the weather.",
        model=Scripted(model="scripted-1", steps=script("call")),
        tools=[get_weather],
    )
    asks = [Step(20, 5, (("call_9", "forecaster", {"request": QUESTION}),)), Step(30, 6, (), ANSWER)]
    boss = LlmAgent(name="boss", model=Scripted(model="scripted-1", steps=asks), tools=[AgentTool(forecaster)])
    events = await Talk(boss).say(ask(QUESTION))
    record.save(
        "subagent-events",
        "an agent as a tool of another",
        SNAKE,
        snake(events),
        expect(
            [call("forecaster", {"request": QUESTION}, "call_9", output=ANSWER)],
            ANSWER,
            {"input_tokens": 50, "output_tokens": 11, "total_tokens": 61},
        ),
        WRAPPED,
    )

    forecaster = LlmAgent(
        name="forecaster",
        description="Knows the weather.",
        model=Scripted(model="scripted-1", steps=script("call")),
        tools=[get_weather],
    )
    over = [Step(20, 5, (("call_9", "transfer_to_agent", {"agent_name": "forecaster"}),))]
    triage = LlmAgent(name="triage", model=Scripted(model="scripted-1", steps=over), sub_agents=[forecaster])
    events = await Talk(triage).say(ask(QUESTION))
    moved = call("transfer_to_agent", {"agent_name": "forecaster"}, "call_9", output=None)
    record.save(
        "handoff-events",
        "call, after a transfer to another agent",
        SNAKE,
        snake(events),
        expect([moved, *paris()], ANSWER, {"input_tokens": 140, "output_tokens": 23, "total_tokens": 163}),
        WRAPPED,
    )


asyncio.run(main())
