"""MCP: sampled messages with calls, and what a tool that is an agent answers, built with the protocol's types."""

from typing import Any

from mcp import types as t
from record.common import *

record = Recorder("mcp", "mcp", made_by=TYPES)


def told(number: str, name: str, given: dict[str, Any]) -> t.ToolResultContent:
    try:
        text, wrong = (weather(**given) if name == "get_weather" else time_in(**given)), False
    except ValueError as error:
        text, wrong = str(error), True
    return t.ToolResultContent(tool_use_id=number, content=[t.TextContent(text=text)], is_error=wrong)


def messages(scenario: str) -> list[t.SamplingMessage]:
    shown = [t.SamplingMessage(role="user", content=t.TextContent(text=QUESTIONS[scenario]))]
    for step in script(scenario):
        blocks: list[Any] = [t.TextContent(text=step.text)] if step.text else []
        blocks += [t.ToolUseContent(id=number, name=name, input=given) for number, name, given in step.calls]
        shown.append(t.SamplingMessage(role="assistant", content=blocks if step.calls else blocks[0]))
        if step.calls:
            shown.append(t.SamplingMessage(role="user", content=[told(*each) for each in step.calls]))
    return shown


def wire(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


ONE = "A message of one block has the block itself as its content, not a list."
for scenario, found in {
    "call": expect(paris(status="ok"), ANSWER),
    "parallel": expect(three(status="ok"), ANSWER_PARALLEL),
    "failed": expect(atlantis(output=FAILURE, status="error"), ANSWER_FAILED),
    "plain": expect([], ANSWER_PLAIN),
}.items():
    sampled = messages(scenario)
    record.save(
        f"{scenario}-messages",
        scenario,
        "[SamplingMessage.model_dump(mode='json', by_alias=True, exclude_none=True) ...]",
        [wire(each) for each in sampled],
        found,
        ONE,
    )
    if scenario == "parallel":
        shown = [each.model_dump(mode="json", exclude_none=True) for each in sampled]
        record.save("parallel-messages-snake", scenario, "the same without aliases", shown, found, ONE)

first = t.CreateMessageResultWithTools(
    role="assistant", content=messages("parallel")[1].content, model="scripted-1", stop_reason="toolUse"
)
record.save(
    "parallel-create-message",
    "parallel, the first step only",
    "CreateMessageResultWithTools by alias",
    wire(first),
    expect([call("get_weather", {"city": "Paris"}, 1), call("get_weather", {"city": "Rome"}, 2)], "I look both up."),
)
answer = t.CallToolResult(content=[t.TextContent(text=ANSWER)], structured_content={"answer": ANSWER})
record.save(
    "call-tool-result",
    "an agent that is a tool of an MCP server answers",
    "CallToolResult by alias",
    wire(answer),
    expect(None, ANSWER),
    "An answer only: it tells nothing about the calls of the agent behind it.",
)
body = {"jsonrpc": "2.0", "id": 1, "result": wire(answer)}
record.save(
    "call-tool-result-rpc",
    "an agent that is a tool of an MCP server answers",
    "the JSON-RPC message around the CallToolResult",
    wire(t.JSONRPCResponse.model_validate(body)),
    expect(None, ANSWER),
)
wrong = t.CallToolResult(content=[t.TextContent(text=f"Error: {FAILURE}")], is_error=True)
record.save(
    "failed-tool-result",
    "an agent that is a tool of an MCP server fails",
    "CallToolResult by alias",
    wire(wrong),
    expect(None, f"Error: {FAILURE}"),
)
