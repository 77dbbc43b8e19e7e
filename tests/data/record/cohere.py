"""Cohere: its client over a scripted endpoint; chats of both versions, streamed events, histories."""

import json
from typing import Any

import cohere
import httpx
from record.common import *

record = Recorder("cohere", "cohere", made_by=CLIENT)


def body(step: Step, number: int = 1) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    if step.calls:
        message["tool_plan"] = step.text or step.thought or "I will look it up."
        message["tool_calls"] = [
            {"id": call, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for call, name, given in step.calls
        ]
    else:
        message["content"] = [{"type": "text", "text": step.text}]
        message["citations"] = []
    counts = {"input_tokens": step.given, "output_tokens": step.made}
    return {
        "id": f"reply_{number}",
        "finish_reason": "TOOL_CALL" if step.calls else "COMPLETE",
        "message": message,
        "usage": {"billed_units": {"input_tokens": step.given // 2, "output_tokens": step.made // 2}, "tokens": counts},
    }


def http(*bodies: Any) -> httpx.Client:
    left = iter(bodies)

    def answer(request: Any) -> Any:
        told = next(left)
        return (
            httpx.Response(200, text=told, headers={"content-type": "text/event-stream"})
            if isinstance(told, str)
            else httpx.Response(200, json=told)
        )

    return httpx.Client(transport=httpx.MockTransport(answer))


def plain(value: Any) -> Any:
    return json.loads(value.model_dump_json(exclude_none=True))


def bare(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: each[key] for key in each if key not in {"output", "status"}} for each in found]


NOTE = "`tokens` is what was used; `billed_units` is what is paid for."
for scenario, found in {
    "thinking": expect(paris(), ANSWER),
    "parallel": expect(three(), ANSWER_PARALLEL),
    "failed": expect(atlantis(output=f"Error: {FAILURE}"), ANSWER_FAILED),
    "plain": expect([], ANSWER_PLAIN),
}.items():
    client = cohere.ClientV2(
        api_key="none", httpx_client=http(*(body(step, number) for number, step in enumerate(script(scenario), 1)))
    )
    asked: Any = [{"role": "user", "content": QUESTIONS[scenario]}]
    replies = []
    for step in script(scenario):
        reply = client.chat(model="scripted-1", messages=asked)
        replies.append(plain(reply))
        asked.append(plain(reply.message))
        for number, name, given in step.calls:
            try:
                told = weather(**given) if name == "get_weather" else time_in(**given)
            except ValueError as error:
                told = f"Error: {error}"
            asked.append(
                {
                    "role": "tool",
                    "tool_call_id": number,
                    "content": [{"type": "document", "document": {"data": told}}] if name == "get_time" else told,
                }
            )
    steps = "call" if scenario == "thinking" else scenario
    if scenario == "parallel":
        found["calls"][2]["output"] = [{"type": "document", "document": {"data": "12:00"}}]
    opening = bare(found["calls"])[: len(script(scenario)[0].calls)]
    record.save(
        f"{scenario}-chat",
        f"{scenario}, the first step only",
        "response.model_dump_json(exclude_none=True)",
        replies[0],
        expect(opening, script(scenario)[0].text if not opening else None, usage(steps, slice(1))),
        NOTE,
    )
    record.save(f"{scenario}-messages", scenario, "the messages that were sent, and the last one", asked, found)
    if scenario == "parallel":
        record.save(
            "parallel-chats",
            scenario,
            "[response.model_dump_json(exclude_none=True) ...], one per step",
            replies,
            expect(bare(found["calls"]), ANSWER_PARALLEL, usage("parallel")),
            NOTE,
        )

events: list[dict[str, Any]] = [
    {
        "type": "message-start",
        "id": "reply_1",
        "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}},
    },
    {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I will look it up."}}},
    {
        "type": "tool-call-start",
        "index": 0,
        "delta": {
            "message": {
                "tool_calls": {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
            }
        },
    },
    {"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": {"function": {"arguments": '{"cit'}}}}},
    {
        "type": "tool-call-delta",
        "index": 0,
        "delta": {"message": {"tool_calls": {"function": {"arguments": 'y": "Paris"}'}}}},
    },
    {"type": "tool-call-end", "index": 0},
    {
        "type": "message-end",
        "delta": {
            "finish_reason": "TOOL_CALL",
            "usage": {
                "billed_units": {"input_tokens": 25, "output_tokens": 5},
                "tokens": {"input_tokens": 50, "output_tokens": 10},
            },
        },
    },
]
lines = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
stream = cohere.ClientV2(api_key="none", httpx_client=http(lines)).chat_stream(model="scripted-1", messages=[])
record.save(
    "call-stream-events",
    "call, the first step only, streamed",
    "[event.model_dump_json(exclude_none=True) ...]",
    [plain(event) for event in stream],
    expect(bare(paris()), None, usage("call", slice(1))),
)

old = {
    "response_id": "reply_1",
    "generation_id": "generation_1",
    "text": "I will look it up.",
    "finish_reason": "COMPLETE",
    "chat_history": [
        {"role": "USER", "message": QUESTION},
        {
            "role": "CHATBOT",
            "message": "I will look it up.",
            "tool_calls": [{"name": "get_weather", "parameters": {"city": "Paris"}}],
        },
    ],
    "tool_calls": [{"name": "get_weather", "parameters": {"city": "Paris"}}],
    "meta": {
        "api_version": {"version": "1"},
        "billed_units": {"input_tokens": 25, "output_tokens": 5},
        "tokens": {"input_tokens": 50, "output_tokens": 10},
    },
}
reply = cohere.Client(api_key="none", httpx_client=http(old)).chat(message=QUESTION)
record.save(
    "call-chat-v1",
    "call, the first step only, of the older version",
    "response.model_dump_json(exclude_none=True)",
    plain(reply),
    expect(bare(paris(None)), "I will look it up.", usage("call", slice(1))),
    NOTE,
)
