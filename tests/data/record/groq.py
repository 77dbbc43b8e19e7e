"""Groq: its client over a scripted endpoint; completions with calls, and with tools that ran at the provider."""

from typing import Any

import httpx
from groq import Groq
from record import wire
from record.common import *

record = Recorder("groq", "groq", made_by=CLIENT)


def ask(*bodies: dict[str, Any]) -> Any:
    client = Groq(api_key=wire.KEY, http_client=httpx.Client(transport=wire.transport(iter(bodies), httpx)))
    return client.chat.completions.create(
        model="scripted-1", messages=[{"role": "user", "content": QUESTION}]
    ).model_dump(mode="json", exclude_none=True)


def body(step: Step) -> dict[str, Any]:
    made = wire.chat_body(step, 1)
    if step.thought:
        made["choices"][0]["message"]["reasoning"] = step.thought
    made["usage"] |= {"prompt_time": 0.001, "completion_time": 0.001, "queue_time": 0.001, "total_time": 0.002}
    return made


WHAT = "completion.model_dump(mode='json', exclude_none=True)"
record.save(
    "thinking-completion",
    "thinking, the first step only",
    WHAT,
    ask(body(script("thinking")[0])),
    expect([call("get_weather", {"city": "Paris"}, 1)], "", usage("call", slice(1))),
)
record.save("plain-completion", "plain", WHAT, ask(body(script("plain")[0])), expect([], ANSWER_PLAIN, usage("plain")))
served = body(Step(300, 60, (), ANSWER))
served["choices"][0]["message"]["executed_tools"] = [
    {
        "index": 0,
        "type": "search",
        "arguments": '{"query": "weather in Paris"}',
        "output": "Paris: 18 C",
        "search_results": {
            "results": [{"title": "Paris", "url": "https://example.com/paris", "content": "18 C", "score": 0.9}]
        },
    },
    {
        "index": 1,
        "type": "python",
        "arguments": '{"code": "print(18)"}',
        "output": "18\n",
        "code_results": [{"text": "18\n"}],
    },
]
calls = [
    {"tool": "search", "input": {"query": "weather in Paris"}, "output": "Paris: 18 C"},
    {"tool": "python", "input": {"code": "print(18)"}, "output": "18\n"},
]
record.save(
    "server-tools-completion",
    "calls that ran at the provider",
    WHAT,
    ask(served),
    expect(calls, ANSWER, {"input_tokens": 300, "output_tokens": 60, "total_tokens": 360}),
)
