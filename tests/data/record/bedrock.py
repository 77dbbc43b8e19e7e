"""Amazon Bedrock: answers of Converse and traces of agents, each checked against botocore's model of the service."""

import json
from typing import Any

import botocore.session
from botocore.stub import Stubber
from botocore.validate import ParamValidator
from record.common import *

record = Recorder("bedrock", "botocore", made_by=TYPES)
session = botocore.session.Session()


session.set_credentials("none", "none")
runtime = session.create_client("bedrock-runtime", region_name="us-east-1")


def checked(service: str, shape: str, data: Any) -> Any:
    """The data, if the service's model allows it."""
    report = ParamValidator().validate(data, session.get_service_model(service).shape_for(shape))
    assert not report.has_errors(), report.generate_report()
    return data


def answer(step: Step) -> dict[str, Any]:
    """Return the result of `client.converse(...)`."""
    blocks: list[dict[str, Any]] = (
        [{"reasoningContent": {"reasoningText": {"text": step.thought, "signature": "c2lnbmF0dXJl"}}}]
        if step.thought
        else []
    )
    blocks += [{"text": step.text}] if step.text else []
    blocks += [{"toolUse": {"toolUseId": number, "name": name, "input": given}} for number, name, given in step.calls]
    body = {
        "ResponseMetadata": {"RequestId": "request_1", "HTTPStatusCode": 200, "HTTPHeaders": {}, "RetryAttempts": 0},
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": "tool_use" if step.calls else "end_turn",
        "usage": {"inputTokens": step.given, "outputTokens": step.made, "totalTokens": step.given + step.made},
        "metrics": {"latencyMs": 1},
    }
    with Stubber(runtime) as stub:
        stub.add_response("converse", body)
        return runtime.converse(modelId="scripted-1", messages=[])


def result(number: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    try:
        if name == "get_weather":
            told: dict[str, Any] = {"content": [{"text": weather(**given)}], "status": "success"}
        else:
            told = {"content": [{"json": {"time": time_in(**given)}}]}
    except ValueError as error:
        told = {"content": [{"text": str(error)}], "status": "error"}
    return {"toolResult": {"toolUseId": number, **told}}


def bare(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: each[key] for key in each if key not in {"output", "status"}} for each in found]


first, second, third = three(outputs=["18 C", "24 C", {"time": "12:00"}])
found_three = [first | {"status": "ok"}, second | {"status": "ok"}, third]
for scenario, found in {
    "thinking": expect(paris(status="ok"), ANSWER),
    "parallel": expect(found_three, ANSWER_PARALLEL),
    "failed": expect(atlantis(output=FAILURE, status="error"), ANSWER_FAILED),
    "plain": expect([], ANSWER_PLAIN),
}.items():
    messages: list[Any] = [{"role": "user", "content": [{"text": QUESTIONS[scenario]}]}]
    replies = []
    for step in script(scenario):
        replies.append(answer(step))
        messages.append(replies[-1]["output"]["message"])
        if step.calls:
            messages.append({"role": "user", "content": [result(*each) for each in step.calls]})
    checked("bedrock-runtime", "Messages", messages)
    steps = "call" if scenario == "thinking" else scenario
    opening = bare(found["calls"])[: len(script(scenario)[0].calls)]
    record.save(
        f"{scenario}-converse",
        f"{scenario}, the first step only",
        "client.converse(...)",
        replies[0],
        expect(opening, script(scenario)[0].text, usage(steps, slice(1))),
    )
    record.save(f"{scenario}-messages", scenario, "the messages that were sent, and the last one", messages, found)
    if scenario == "parallel":
        record.save(
            "parallel-converses",
            scenario,
            "[client.converse(...) ...], one per step",
            replies,
            expect(bare(found["calls"]), ANSWER_PARALLEL, usage("parallel")),
        )
        shown = {"messages": messages, "usage": replies[-1]["usage"], "stopReason": "end_turn"}
        record.save(
            "parallel-messages-usage",
            scenario,
            '{"messages", "usage", "stopReason"}: the counts are the last step\'s',
            shown,
            found | {"usage": usage("parallel", slice(2, 3))},
        )

events = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"delta": {"text": "I look "}, "contentBlockIndex": 0}},
    {"contentBlockDelta": {"delta": {"text": "both up."}, "contentBlockIndex": 0}},
    {"contentBlockStop": {"contentBlockIndex": 0}},
]
for index, (number, name, given) in enumerate(script("parallel")[0].calls, 1):
    text = json.dumps(given)
    events += [
        {"contentBlockStart": {"start": {"toolUse": {"toolUseId": number, "name": name}}, "contentBlockIndex": index}},
        {"contentBlockDelta": {"delta": {"toolUse": {"input": text[:5]}}, "contentBlockIndex": index}},
        {"contentBlockDelta": {"delta": {"toolUse": {"input": text[5:]}}, "contentBlockIndex": index}},
        {"contentBlockStop": {"contentBlockIndex": index}},
    ]
events += [
    {"messageStop": {"stopReason": "tool_use"}},
    {"metadata": {"usage": {"inputTokens": 100, "outputTokens": 20, "totalTokens": 120}, "metrics": {"latencyMs": 1}}},
]
for event in events:
    checked("bedrock-runtime", "ConverseStreamOutput", event)
record.save(
    "parallel-stream-events",
    "parallel, the first step only, streamed",
    'list(client.converse_stream(...)["stream"])',
    events,
    expect(bare(three()[:2]), "I look both up.", usage("parallel", slice(1))),
)

cached = answer(script("plain")[0])
cached["usage"] |= {"cacheReadInputTokens": 100, "cacheWriteInputTokens": 20, "totalTokens": 157}
checked("bedrock-runtime", "TokenUsage", cached["usage"])
record.save(
    "plain-cached-converse",
    "plain, most of the input cached",
    "client.converse(...)",
    cached,
    expect([], ANSWER_PLAIN, {"input_tokens": 150, "output_tokens": 7, "total_tokens": 157}),
    "Input tokens are without the cached ones; the expected ones include them.",
)


def trace(**more: Any) -> dict[str, Any]:
    return {
        "trace": checked(
            "bedrock-agent-runtime",
            "TracePart",
            {"agentId": "agent_1", "sessionId": "session_1", "trace": {"orchestrationTrace": more}},
        )
    }


completion = [
    trace(rationale={"traceId": "trace_1", "text": THOUGHT}),
    trace(modelInvocationOutput={"traceId": "trace_1", "metadata": {"usage": {"inputTokens": 50, "outputTokens": 10}}}),
    trace(
        invocationInput={
            "traceId": "trace_1",
            "invocationType": "ACTION_GROUP",
            "actionGroupInvocationInput": {
                "actionGroupName": "weather",
                "function": "get_weather",
                "parameters": [{"name": "city", "type": "string", "value": "Paris"}],
                "executionType": "LAMBDA",
            },
        }
    ),
    trace(observation={"traceId": "trace_1", "type": "ACTION_GROUP", "actionGroupInvocationOutput": {"text": "18 C"}}),
    trace(modelInvocationOutput={"traceId": "trace_2", "metadata": {"usage": {"inputTokens": 70, "outputTokens": 8}}}),
    trace(observation={"traceId": "trace_2", "type": "FINISH", "finalResponse": {"text": ANSWER}}),
    {"chunk": {"bytes": ANSWER}},
]
asked = [{"tool": "get_weather", "output": "18 C"}]
record.save(
    "agent-completion",
    "call, of a Bedrock agent",
    'list(client.invoke_agent(..., enableTrace=True)["completion"]), bytes decoded',
    completion,
    expect(asked, ANSWER, usage("call"), "session_1"),
    "The input is a list of named parameters; the tool belongs to the action group `weather`.",
)
