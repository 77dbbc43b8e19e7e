"""Microsoft Agent Framework: an agent over a scripted chat client; responses, messages, updates, approvals."""

import asyncio
import json
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    UsageDetails,
    WorkflowBuilder,
    tool,
)
from record.common import *

record = Recorder("agent_framework", "agent-framework-core")


class Scripted(FunctionInvocationLayer, BaseChatClient):
    """Says its steps one after the other."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__()
        self.steps = iter(steps)

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        step = next(self.steps)
        contents = [Content.from_text_reasoning(text=step.thought)] if step.thought else []
        contents += [Content.from_text(step.text)] if step.text else []
        contents += [
            Content.from_function_call(call_id=number, name=name, arguments=json.dumps(given))
            for number, name, given in step.calls
        ]
        counts = UsageDetails(
            input_token_count=step.given, output_token_count=step.made, total_token_count=step.given + step.made
        )
        reason = "tool_calls" if step.calls else "stop"

        async def whole() -> ChatResponse:
            return ChatResponse(
                messages=[Message(role="assistant", contents=contents)],
                response_id="response_1",
                usage_details=counts,
                finish_reason=reason,
                model="scripted-1",
            )

        async def parts() -> Any:
            for content in contents:
                yield ChatResponseUpdate(
                    role="assistant", contents=[content], response_id="response_1", message_id="msg_1"
                )
            yield ChatResponseUpdate(
                role="assistant", contents=[Content.from_usage(counts)], response_id="response_1", finish_reason=reason
            )

        return ResponseStream(parts(), finalizer=ChatResponse.from_updates) if stream else whole()


@tool(approval_mode="never_require")
def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return weather(city)


@tool(approval_mode="never_require")
def get_time(zone: str) -> str:
    """Tell the time in a zone."""
    return time_in(zone)


@tool(approval_mode="always_require")
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


def agent_of(steps: list[Step], **more: Any) -> Agent:
    return Agent(Scripted(steps), name="assistant", tools=[get_weather, get_time, delete_file], **more)


WANTED = {
    "call": expect(paris(), ANSWER, usage("call")),
    "thinking": expect(paris(), ANSWER, usage("call")),
    "parallel": expect(three(), ANSWER_PARALLEL, usage("parallel")),
    "failed": expect(atlantis(status="error"), ANSWER_FAILED, usage("failed")),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}


async def main() -> None:
    for scenario, found in WANTED.items():
        agent = agent_of(script(scenario))
        session = agent.create_session()
        response = await agent.run(QUESTIONS[scenario], session=session)
        if scenario == "failed":
            (told,) = [
                each for message in response.messages for each in message.contents if each.type == "function_result"
            ]
            found["calls"][0]["output"] = told.result
        record.save(f"{scenario}-response", scenario, "response.to_dict()", response.to_dict(), found)
        if scenario in {"parallel", "plain", "failed"}:
            record.save(
                f"{scenario}-messages",
                scenario,
                "[message.to_dict() for message in response.messages]",
                [each.to_dict() for each in response.messages],
                found | {"usage": None},
            )
        if scenario == "parallel":
            record.save(
                "parallel-session",
                scenario,
                "session.to_dict(), with the question",
                session.to_dict(),
                found | {"usage": None, "thread_id": session.session_id},
            )
    updates = [update.to_dict() async for update in agent_of(script("call")).run(QUESTION, stream=True)]
    record.save(
        "call-stream-updates",
        "call",
        "[update.to_dict() async for update in agent.run(..., stream=True)]",
        updates,
        WANTED["call"],
    )

    agent = agent_of(script("delete"))
    session = agent.create_session()
    response = await agent.run(QUESTION_DELETE, session=session)
    title = "pending: the call waits for a human"
    record.save(
        "pending-response",
        title,
        "response.to_dict()",
        response.to_dict(),
        expect(notes(status="pending"), "", usage("delete", slice(1))),
    )
    (asked,) = response.user_input_requests
    response = await agent.run(
        Message(role="user", contents=[asked.to_function_approval_response(approved=False)]), session=session
    )
    record.save(
        "denied-response",
        "denied: a human rejects the call",
        "response.to_dict(): the turn after the refusal",
        response.to_dict(),
        expect(None, ANSWER_DENIED, usage("delete", slice(1, 2))),
        "Only the result of the call is here: the call itself, with its name and input, is in the turn before.",
    )
    record.save(
        "denied-session",
        "denied: a human rejects the call",
        "session.to_dict()",
        session.to_dict(),
        expect(
            notes(output="Error: Tool call invocation was rejected by user.", status="denied"),
            ANSWER_DENIED,
            None,
            session.session_id,
        ),
    )

    inner = agent_of(script("call"), description="Knows the weather.")
    asks = [Step(20, 5, (("call_9", "forecaster", {"task": QUESTION}),)), Step(30, 6, (), ANSWER)]
    boss = Agent(Scripted(asks), name="boss", tools=[inner.as_tool(name="forecaster")])
    response = await boss.run(QUESTION)
    record.save(
        "subagent-response",
        "an agent as a tool of another",
        "response.to_dict()",
        response.to_dict(),
        expect(
            [call("forecaster", {"task": QUESTION}, "call_9", output=ANSWER)],
            ANSWER,
            {"input_tokens": 50, "output_tokens": 11, "total_tokens": 61},
        ),
    )

    contents = [
        Content.from_mcp_server_tool_call("mcp_1", "get_weather", server_name="weather", arguments={"city": "Paris"}),
        Content.from_mcp_server_tool_result("mcp_1", output=[Content.from_text("18 C")]),
        Content.from_code_interpreter_tool_call(call_id="code_1", inputs=[Content.from_text("print(18)")]),
        Content.from_code_interpreter_tool_result(call_id="code_1", outputs=[Content.from_text("18")]),
        Content.from_text(ANSWER),
    ]
    message = Message(role="assistant", contents=contents)
    ran = {"tool": "code_interpreter", "id": "code_1", "output": "18"}
    record.save(
        "server-tools-message",
        "calls that ran at the provider",
        "Message(...).to_dict(), built by hand",
        message.to_dict(),
        expect([call("get_weather", {"city": "Paris"}, "mcp_1", output="18 C"), ran], ANSWER),
        made_by=TYPES,
    )

    result = await WorkflowBuilder(start_executor=agent_of(script("call"))).build().run(QUESTION)
    told = [
        {
            "type": each.type,
            "executor_id": each.executor_id,
            "data": each.data.to_dict() if each.type == "output" else None,
        }
        for each in result
    ]
    found = WANTED["call"]
    record.save("call-workflow-events", "call", "[{type, executor_id, data} of each workflow event]", told, found)


asyncio.run(main())
