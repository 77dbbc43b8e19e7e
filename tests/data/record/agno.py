"""Agno: an agent over a scripted endpoint; run outputs, events, pauses, teams."""

import json
from typing import Any

import httpx
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat
from agno.team import Team
from agno.tools import tool
from agno.workflow import Step as WorkflowStep
from agno.workflow import Workflow
from record import wire
from record.common import *

DURATIONS = ["duration", "time", "time_to_first_token"]
record = Recorder("agno", "agno", durations=DURATIONS)


def model(transport: Any) -> OpenAIChat:
    return OpenAIChat(id="scripted-1", api_key=wire.KEY, http_client=httpx.Client(transport=transport))


def played(steps: list[Step]) -> OpenAIChat:
    return model(wire.transport((wire.chat_body(step, number) for number, step in enumerate(steps, 1)), httpx))


def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return weather(city)


def get_time(zone: str) -> str:
    """Tell the time in a zone."""
    return time_in(zone)


@tool(requires_confirmation=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


def agent_of(transport: Any) -> Agent:
    return Agent(
        name="assistant",
        id="assistant",
        model=model(transport),
        tools=[get_weather, get_time, delete_file],
        telemetry=False,
        db=InMemoryDb(),
    )


WANTED = {
    "call": expect(paris(status="ok"), ANSWER, usage("call")),
    "parallel": expect(three(status="ok"), ANSWER_PARALLEL, usage("parallel")),
    "failed": expect(atlantis(output=FAILURE, status="error"), ANSWER_FAILED, usage("failed")),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}
for scenario, found in WANTED.items():
    output = agent_of(wire.chat(scenario, httpx)).run(QUESTIONS[scenario], session_id="session_1")
    found["thread_id"] = "session_1"
    record.save(f"{scenario}-run-output", scenario, "run_output.to_dict()", output.to_dict(), found)
    if scenario in {"parallel", "plain", "failed"}:
        messages = [message.to_dict() for message in output.messages]
        record.save(
            f"{scenario}-messages",
            scenario,
            "[message.to_dict() for message in run_output.messages]",
            messages,
            found | {"thread_id": None},
        )
    if scenario == "parallel":
        shown = {"content": output.content, "tools": [each.to_dict() for each in output.tools]}
        record.save(
            "parallel-content-tools",
            scenario,
            '{"content", "tools": [tool.to_dict() ...]} of the run output',
            shown,
            # The content of a run is all that the model said, joined.
            found | {"text": output.content, "usage": None, "thread_id": None},
        )

events = [
    event.to_dict()
    for event in agent_of(wire.chat_stream("call", httpx)).run(
        QUESTION, session_id="session_1", stream=True, stream_events=True
    )
]
record.save(
    "call-stream-events",
    "call",
    "[event.to_dict() for event in agent.run(..., stream=True, stream_events=True)]",
    events,
    WANTED["call"],
)

agent = agent_of(wire.chat("delete", httpx))
output = agent.run(QUESTION_DELETE, session_id="session_1")
record.save(
    "pending-run-output",
    "pending: the call waits for a human",
    "run_output.to_dict()",
    output.to_dict(),
    expect(notes(status="pending"), output.content, usage("delete", slice(1)), "session_1"),
)
for each in output.active_requirements:
    each.reject("the user said no")
output = agent.continue_run(run_id=output.run_id, requirements=output.requirements, session_id="session_1")
record.save(
    "denied-run-output",
    "denied: a human rejects the call",
    "run_output.to_dict()",
    output.to_dict(),
    expect(notes(output="the user said no", status="denied"), ANSWER_DENIED, usage("delete"), "session_1"),
)

member = Agent(
    name="forecaster",
    id="forecaster",
    role="Knows the weather.",
    model=model(wire.chat("call", httpx)),
    tools=[get_weather],
    telemetry=False,
)
asks = [
    Step(20, 5, (("call_9", "delegate_task_to_member", {"member_id": "forecaster", "task": QUESTION}),)),
    Step(30, 6, (), ANSWER),
]
team = Team(name="team", id="team", members=[member], model=played(asks), telemetry=False)
output = team.run(QUESTION, session_id="session_1")
told = output.tools[0].result
summed = {key: getattr(output.metrics, key) for key in ("input_tokens", "output_tokens", "total_tokens")}
record.save(
    "team-run-output",
    "a team whose leader delegates to a member",
    "team_run_output.to_dict()",
    output.to_dict(),
    expect(
        [
            call(
                "delegate_task_to_member",
                {"member_id": "forecaster", "task": QUESTION},
                "call_9",
                output=told,
                status="ok",
            ),
            *paris(status="ok"),
        ],
        ANSWER,
        summed,
        "session_1",
    ),
)

agent = agent_of(wire.chat("call", httpx))
agent.run(QUESTION, session_id="session_1")
session = json.loads(json.dumps(agent.get_session(session_id="session_1").to_dict(), default=str))
record.save("call-session", "call", "agent.get_session(...).to_dict()", session, WANTED["call"])
steps = [WorkflowStep(name="look up", agent=agent_of(wire.chat("call", httpx)))]
workflow = Workflow(name="workflow", id="workflow", steps=steps, db=InMemoryDb(), telemetry=False)
output = json.loads(json.dumps(workflow.run(input=QUESTION, session_id="session_1").to_dict(), default=str))
record.save("call-workflow-output", "call", "workflow_run_output.to_dict()", output, WANTED["call"])
tools = [each.to_dict() for each in agent_of(wire.chat("parallel", httpx)).run(QUESTION_PARALLEL).tools]
found = expect(three(status="ok"), None)
record.save("parallel-tools", "parallel", "[tool.to_dict() for tool in run_output.tools]", tools, found)
stream = agent_of(wire.chat_stream("call", httpx)).run(QUESTION, session_id="session_1", stream=True)
record.save(
    "call-stream-content",
    "call",
    "[event.to_dict() ...] of a stream without `stream_events`",
    [event.to_dict() for event in stream],
    expect(None, ANSWER, None, "session_1"),
    "Only pieces of the text are told, so nothing is known about calls.",
)
