"""Anthropic's client over a scripted endpoint: messages, server tools, MCP, streams, the tool runner, histories."""

import json
from typing import Any

import httpx2
from anthropic import Anthropic, beta_tool
from anthropic.lib.tools import ToolError
from record.common import *

record = Recorder("anthropic_sdk", "anthropic", made_by=CLIENT)


def body(step: Step, number: int = 1, content: list[dict[str, Any]] | None = None, **counts: Any) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if step.thought:
        blocks.append({"type": "thinking", "thinking": step.thought, "signature": "c2lnbmF0dXJl"})
    if step.text:
        blocks.append({"type": "text", "text": step.text, "citations": None})
    blocks += [
        {"type": "tool_use", "id": call, "name": name, "input": given, "caller": {"type": "direct"}}
        for call, name, given in step.calls
    ]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "scripted-1",
        "content": content or blocks,
        "stop_reason": "tool_use" if step.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": step.given,
            "output_tokens": step.made,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "service_tier": "standard",
        }
        | counts,
    }


def client_of(*bodies: dict[str, Any] | str) -> Anthropic:
    left = iter(bodies)

    def answer(request: Any) -> Any:
        told = next(left)
        if isinstance(told, str):
            return httpx2.Response(200, text=told, headers={"content-type": "text/event-stream"})
        return httpx2.Response(200, json=told)

    return Anthropic(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))


def scripted(scenario: str) -> Anthropic:
    return client_of(*(body(step, number) for number, step in enumerate(script(scenario), 1)))


def run(name: str, given: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"content": weather(**given) if name == "get_weather" else time_in(**given)}
    except ValueError as error:
        return {"content": str(error), "is_error": True}


def plain(message: Any) -> Any:
    return message.model_dump(mode="json", exclude_none=True)


def bare(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: each[key] for key in each if key not in {"output", "status"}} for each in found]


WANTED = {
    "thinking": expect(paris(), ANSWER, usage("call")),
    "parallel": expect(three(), ANSWER_PARALLEL, usage("parallel")),
    "failed": expect(atlantis(output=FAILURE, status="error"), ANSWER_FAILED, usage("failed")),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}
for scenario, found in WANTED.items():
    client = scripted(scenario)
    asked: Any = [{"role": "user", "content": QUESTIONS[scenario]}]
    shown = []
    for step in script(scenario):
        message = client.messages.create(model="scripted-1", max_tokens=100, messages=asked)
        shown.append(plain(message))
        asked.append({"role": "assistant", "content": [plain(block) for block in message.content]})
        if step.calls:
            asked.append(
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": number, **run(name, given)}
                        for number, name, given in step.calls
                    ],
                }
            )
    record.save(
        f"{scenario}-messages",
        scenario,
        "the messages that were sent, and the last one",
        asked,
        found | {"usage": None},
    )
    record.save(
        f"{scenario}-message",
        f"{scenario}, the first step only",
        "message.model_dump(mode='json', exclude_none=True)",
        shown[0],
        expect(
            [] if scenario == "plain" else bare(found["calls"])[: len(script(scenario)[0].calls)],
            script(scenario)[0].text,
            usage("call" if scenario == "thinking" else scenario, slice(1)),
        ),
    )
    if scenario == "parallel":
        record.save(
            "parallel-replies",
            scenario,
            "[message.model_dump(mode='json', exclude_none=True) ...], one per step",
            shown,
            found | {"calls": bare(found["calls"])},
            "What the model sent: outputs of tools are not in it.",
        )

SERVED: list[dict[str, Any]] = [
    {"type": "text", "text": "I search the web."},
    {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "weather in Paris"},
        "caller": {"type": "direct"},
    },
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {
                "type": "web_search_result",
                "title": "Paris",
                "url": "https://example.com/paris",
                "encrypted_content": "aGVsbG8=",
                "page_age": None,
            }
        ],
        "caller": {"type": "direct"},
    },
    {
        "type": "server_tool_use",
        "id": "srvtoolu_2",
        "name": "web_fetch",
        "input": {"url": "https://example.com/gone"},
        "caller": {"type": "direct"},
    },
    {
        "type": "web_fetch_tool_result",
        "tool_use_id": "srvtoolu_2",
        "content": {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"},
        "caller": {"type": "direct"},
    },
    {
        "type": "server_tool_use",
        "id": "srvtoolu_3",
        "name": "bash_code_execution",
        "input": {"command": "echo 18"},
        "caller": {"type": "direct"},
    },
    {
        "type": "bash_code_execution_tool_result",
        "tool_use_id": "srvtoolu_3",
        "content": {
            "type": "bash_code_execution_result",
            "stdout": "18\n",
            "stderr": "",
            "return_code": 0,
            "content": [],
        },
    },
    {"type": "text", "text": ANSWER},
]
message = client_of(
    body(Step(300, 60), 1, SERVED, server_tool_use={"web_search_requests": 1, "web_fetch_requests": 1})
).messages.create(model="scripted-1", max_tokens=100, messages=[])
shown = plain(message)
results = {block["tool_use_id"]: block["content"] for block in shown["content"] if "tool_use_id" in block}
searched = [
    call("web_search", {"query": "weather in Paris"}, "srvtoolu_1", output=results["srvtoolu_1"]),
    call("web_fetch", {"url": "https://example.com/gone"}, "srvtoolu_2", output=results["srvtoolu_2"], status="error"),
    call("bash_code_execution", {"command": "echo 18"}, "srvtoolu_3", output=results["srvtoolu_3"]),
]
record.save(
    "server-tools-message",
    "calls that ran at the provider",
    "message.model_dump(mode='json', exclude_none=True)",
    shown,
    expect(searched, ANSWER, {"input_tokens": 300, "output_tokens": 60, "total_tokens": 360}),
)

OVER_MCP = [
    {
        "type": "mcp_tool_use",
        "id": "mcptoolu_1",
        "name": "get_weather",
        "server_name": "weather",
        "input": {"city": "Paris"},
    },
    {
        "type": "mcp_tool_result",
        "tool_use_id": "mcptoolu_1",
        "is_error": False,
        "content": [{"type": "text", "text": "18 C", "citations": None}],
    },
    {"type": "text", "text": ANSWER},
]
message = client_of(body(Step(50, 20), 1, OVER_MCP)).beta.messages.create(
    model="scripted-1", max_tokens=100, messages=[]
)
record.save(
    "mcp-message",
    "call, of an MCP server that the provider asks",
    "beta message.model_dump(mode='json', exclude_none=True)",
    plain(message),
    expect(paris("mcptoolu_1", status="ok"), ANSWER, {"input_tokens": 50, "output_tokens": 20, "total_tokens": 70}),
)

cached = client_of(
    body(script("plain")[0], 1, None, cache_read_input_tokens=100, cache_creation_input_tokens=20)
).messages.create(model="scripted-1", max_tokens=100, messages=[])
record.save(
    "plain-cached-message",
    "plain, most of the input cached",
    "message.model_dump(mode='json', exclude_none=True)",
    plain(cached),
    expect([], ANSWER_PLAIN, {"input_tokens": 150, "output_tokens": 7, "total_tokens": 157}),
    "Anthropic's input tokens are without the cached ones; the expected ones include them.",
)

whole = body(script("thinking")[0])
events: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": whole | {"content": [], "stop_reason": None, "usage": {"input_tokens": 50, "output_tokens": 1}},
    }
]
events += [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": THOUGHT}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2lnbmF0dXJl"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {}},
    },
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"cit'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": 'y": "Paris"}'}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 10},
    },
    {"type": "message_stop"},
]
lines = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
stream = client_of(lines).messages.create(model="scripted-1", max_tokens=100, messages=[], stream=True)
record.save(
    "thinking-stream-events",
    "thinking, the first step only, streamed",
    "[event.model_dump(mode='json', exclude_none=True) ...]",
    [plain(event) for event in stream],
    expect(bare(paris()), "", usage("call", slice(1))),
)
with client_of(lines).messages.stream(model="scripted-1", max_tokens=100, messages=[]) as helper:
    shown = [plain(event) for event in helper]
record.save(
    "thinking-stream-helper-events",
    "thinking, the first step only, streamed",
    "[event.model_dump(...) ...] of messages.stream(): raw events and the helper's own",
    shown,
    expect(bare(paris()), "", usage("call", slice(1))),
)


@beta_tool
def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    try:
        return weather(city)
    except ValueError as error:
        raise ToolError(str(error)) from error


@beta_tool
def get_time(zone: str) -> str:
    """Tell the time in a zone."""
    return time_in(zone)


for scenario in ("parallel", "failed"):
    runner = scripted(scenario).beta.messages.tool_runner(
        model="scripted-1",
        max_tokens=100,
        messages=[{"role": "user", "content": QUESTIONS[scenario]}],
        tools=[get_weather, get_time],
    )
    kept: list[Any] = []
    for message in runner:
        kept.append({"role": "assistant", "content": [plain(block) for block in message.content]})
        told = runner.generate_tool_call_response()
        kept += [json.loads(json.dumps(told))] if told else []
    record.save(
        f"{scenario}-tool-runner",
        scenario,
        "messages of a tool runner and its tool results",
        kept,
        WANTED[scenario] | {"usage": None},
    )

events: list[Any] = []
for number, step in enumerate(script("call"), 1):
    begun = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted-1", "content": []}
    counts = {"input_tokens": step.given, "output_tokens": 1}
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": step.text}
    for call_id, name, given in step.calls:
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
    reason = "tool_use" if step.calls else "end_turn"
    events += [
        {"type": "message_start", "message": {**begun, "usage": counts}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": step.made}},
        {"type": "message_stop"},
    ]
record.save(
    "call-streams-events",
    "call",
    "the events of two streams, one after the other, as a loop gathers them",
    events,
    expect(bare(paris()), ANSWER, usage("call")),
    made_by=HAND,
)
