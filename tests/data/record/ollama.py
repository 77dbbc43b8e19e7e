"""Ollama: its client over a scripted endpoint; responses, streamed parts, the messages that users keep."""

import json
from typing import Any

import httpx
from ollama import Client
from record.common import *

record = Recorder(
    "ollama",
    "ollama",
    made_by=CLIENT,
    durations=["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"],
)


def body(step: Step) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": step.text}
    if step.thought:
        message["thinking"] = step.thought
    if step.calls:
        message["tool_calls"] = [{"function": {"name": name, "arguments": given}} for _, name, given in step.calls]
    return {
        "model": "scripted-1",
        "created_at": "2026-01-01T00:00:00Z",
        "message": message,
        "done": True,
        "done_reason": "stop",
        "total_duration": 1,
        "load_duration": 1,
        "prompt_eval_count": step.given,
        "prompt_eval_duration": 1,
        "eval_count": step.made,
        "eval_duration": 1,
    }


def client_of(*bodies: Any) -> Client:
    left = iter(bodies)

    def answer(request: Any) -> Any:
        told = next(left)
        return (
            httpx.Response(200, text="".join(f"{json.dumps(each)}\n" for each in told))
            if isinstance(told, list)
            else httpx.Response(200, json=told)
        )

    return Client(transport=httpx.MockTransport(answer))


def dump(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_none=True)


def bare(found: list[dict[str, Any]], *gone: str) -> list[dict[str, Any]]:
    return [{key: each[key] for key in each if key not in gone} for each in found]


for scenario, found in {
    "thinking": expect(bare(paris(), "id"), ANSWER),
    "parallel": expect(bare(three(), "id"), ANSWER_PARALLEL),
    "failed": expect(bare(atlantis(output=f"Error: {FAILURE}"), "id"), ANSWER_FAILED),
    "plain": expect([], ANSWER_PLAIN),
}.items():
    client = client_of(*(body(step) for step in script(scenario)))
    asked: list[Any] = [{"role": "user", "content": QUESTIONS[scenario]}]
    replies = []
    for step in script(scenario):
        response = client.chat(model="scripted-1", messages=asked)
        replies.append(dump(response))
        asked.append(dump(response.message))
        for _, name, given in step.calls:
            try:
                told = weather(**given) if name == "get_weather" else time_in(**given)
            except ValueError as error:
                told = f"Error: {error}"
            asked.append({"role": "tool", "tool_name": name, "content": told})
    steps = "call" if scenario == "thinking" else scenario
    first = bare(found["calls"], "output")[: len(script(scenario)[0].calls)]
    record.save(
        f"{scenario}-chat",
        f"{scenario}, the first step only",
        "response.model_dump(mode='json', exclude_none=True)",
        replies[0],
        expect(first, script(scenario)[0].text, usage(steps, slice(1))),
    )
    record.save(
        f"{scenario}-messages",
        scenario,
        "the messages that were sent, and the last one",
        asked,
        found,
        "Calls have no ids: results pair by name and order." if first else "",
    )
    if scenario == "parallel":
        record.save(
            "parallel-chats",
            scenario,
            "[response.model_dump(mode='json', exclude_none=True) ...], one per step",
            replies,
            expect(bare(found["calls"], "output"), ANSWER_PARALLEL, usage("parallel")),
        )

whole = body(script("call")[0])
last = {key: value for key, value in whole.items() if key != "message"} | {
    "message": {"role": "assistant", "content": ""}
}
start = {"model": "scripted-1", "created_at": "2026-01-01T00:00:00Z", "done": False, "message": whole["message"]}
parts = client_of([start, last]).chat(model="scripted-1", messages=[], stream=True)
record.save(
    "call-stream-parts",
    "call, the first step only, streamed",
    "[part.model_dump(mode='json', exclude_none=True) ...]",
    [dump(part) for part in parts],
    expect([call("get_weather", {"city": "Paris"})], "", usage("call", slice(1))),
)
