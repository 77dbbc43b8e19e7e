"""OpenAI's client over a scripted endpoint: completions, responses of many item types, their streams, histories."""

import json
from typing import Any

from openai import OpenAI
from openai.types.responses import Response
from record import wire
from record.common import *
from record.wire import httpx

record = Recorder("openai_sdk", "openai", made_by=CLIENT)


def client_of(transport: Any) -> OpenAI:
    return OpenAI(api_key=wire.KEY, http_client=httpx.Client(transport=transport))


def bare(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: each[key] for key in each if key not in {"output", "status"}} for each in found]


def run(name: str, given: dict[str, Any]) -> str:
    try:
        return weather(**given) if name == "get_weather" else time_in(**given)
    except ValueError as error:
        return f"Error: {error}"


def completions() -> None:
    first = bare(three()[:2])
    client = client_of(wire.chat("parallel"))
    asked: Any = [{"role": "user", "content": QUESTION_PARALLEL}]
    shown = []
    for step in script("parallel"):
        completion = client.chat.completions.create(model="scripted-1", messages=asked)
        shown.append(completion.model_dump(mode="json"))
        asked.append(completion.choices[0].message.model_dump(mode="json", exclude_none=True))
        asked += [
            {"role": "tool", "tool_call_id": number, "content": run(name, given)} for number, name, given in step.calls
        ]
    record.save(
        "parallel-completion",
        "parallel, the first step only",
        "completion.model_dump(mode='json')",
        shown[0],
        expect(first, "I look both up.", usage("parallel", slice(1))),
    )
    record.save(
        "parallel-completions",
        "parallel",
        "[completion.model_dump(mode='json') ...], one per step",
        shown,
        expect(bare(three()), ANSWER_PARALLEL, usage("parallel")),
        "What the model sent: outputs of tools are not in it.",
    )
    record.save(
        "parallel-messages",
        "parallel",
        "the messages that were sent, and the last one",
        asked,
        expect(three(), ANSWER_PARALLEL),
    )
    shown = {"messages": asked, "usage": completion.usage.model_dump(mode="json")}
    record.save(
        "parallel-messages-usage",
        "parallel",
        '{"messages", "usage": the last completion\'s}',
        shown,
        expect(three(), ANSWER_PARALLEL, usage("parallel", slice(2, 3))),
    )
    completion = client_of(wire.chat("plain")).chat.completions.create(model="scripted-1", messages=asked[:1])
    record.save(
        "plain-completion",
        "plain",
        "completion.to_dict()",
        completion.to_dict(mode="json"),
        expect([], ANSWER_PLAIN, usage("plain")),
    )
    stream = client_of(wire.chat_stream("parallel")).chat.completions.create(
        model="scripted-1", messages=asked[:1], stream=True
    )
    record.save(
        "parallel-stream-chunks",
        "parallel, the first step only, streamed",
        "[chunk.model_dump(mode='json', exclude_none=True) ...]",
        [chunk.model_dump(mode="json", exclude_none=True) for chunk in stream],
        expect(first, "I look both up.", usage("parallel", slice(1))),
    )

    body = wire.chat_body(Step(50, 10), 1)
    body["choices"][0] |= {"finish_reason": "function_call"}
    body["choices"][0]["message"]["function_call"] = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
    completion = client_of(wire.transport(iter([body]))).chat.completions.create(model="scripted-1", messages=asked[:1])
    record.save(
        "legacy-function-call",
        "call, by the older function_call",
        "completion.model_dump(mode='json', exclude_none=True)",
        completion.model_dump(mode="json", exclude_none=True),
        expect(bare(paris(None)), "", usage("call", slice(1))),
    )
    body = wire.chat_body(Step(50, 10), 1)
    body["choices"][0] |= {"finish_reason": "tool_calls"}
    body["choices"][0]["message"]["tool_calls"] = [
        {"id": "call_1", "type": "custom", "custom": {"name": "run_code", "input": "print(18)"}}
    ]
    completion = client_of(wire.transport(iter([body]))).chat.completions.create(model="scripted-1", messages=asked[:1])
    record.save(
        "custom-tool-completion",
        "a call of a custom tool, whose input is a text",
        "completion.model_dump(mode='json', exclude_none=True)",
        completion.model_dump(mode="json", exclude_none=True),
        expect([call("run_code", "print(18)", 1)], "", usage("call", slice(1))),
    )


ITEMS: list[dict[str, Any]] = [
    {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": THOUGHT}],
        "encrypted_content": None,
    },
    {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {
            "type": "search",
            "query": "weather in Paris",
            "sources": [{"type": "url", "url": "https://example.com/paris"}],
        },
    },
    {
        "id": "fs_1",
        "type": "file_search_call",
        "status": "completed",
        "queries": ["weather notes"],
        "results": [{"file_id": "file_1", "filename": "notes.txt", "score": 0.9, "text": "18 C", "attributes": {}}],
    },
    {
        "id": "ci_1",
        "type": "code_interpreter_call",
        "status": "completed",
        "code": "print(18)",
        "container_id": "cntr_1",
        "outputs": [{"type": "logs", "logs": "18\n"}],
    },
    {
        "id": "mcpl_1",
        "type": "mcp_list_tools",
        "server_label": "weather",
        "tools": [
            {
                "name": "get_weather",
                "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
                "description": None,
                "annotations": None,
            }
        ],
    },
    {
        "id": "mcp_1",
        "type": "mcp_call",
        "server_label": "weather",
        "name": "get_weather",
        "arguments": '{"city": "Paris"}',
        "output": "18 C",
        "error": None,
        "approval_request_id": None,
        "status": "completed",
    },
    {
        "id": "mcp_2",
        "type": "mcp_call",
        "server_label": "weather",
        "name": "get_weather",
        "arguments": '{"city": "Atlantis"}',
        "output": None,
        "error": {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": FAILURE}]},
        "approval_request_id": None,
        "status": "failed",
    },
    {"id": "ct_1", "type": "custom_tool_call", "call_id": "call_2", "name": "run_code", "input": "print(18)"},
    {
        "id": "lsh_1",
        "type": "local_shell_call",
        "call_id": "call_3",
        "status": "completed",
        "action": {
            "type": "exec",
            "command": ["ls"],
            "env": {},
            "timeout_ms": None,
            "user": None,
            "working_directory": None,
        },
    },
    {
        "id": "cu_1",
        "type": "computer_call",
        "call_id": "call_4",
        "status": "completed",
        "action": {"type": "click", "button": "left", "x": 1, "y": 2},
        "pending_safety_checks": [],
    },
    {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "aGVsbG8="},
    {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call_1",
        "name": "get_weather",
        "arguments": '{"city": "Paris"}',
        "status": "completed",
    },
]
CALLS = [
    call("web_search", ITEMS[1]["action"], "ws_1"),
    call("file_search", ["weather notes"], "fs_1", output=ITEMS[2]["results"]),
    call("code_interpreter", "print(18)", "ci_1", output=ITEMS[3]["outputs"]),
    call("get_weather", {"city": "Paris"}, "mcp_1", output="18 C"),
    call("get_weather", {"city": "Atlantis"}, "mcp_2", status="error"),
    call("run_code", "print(18)", 2),
    {"tool": "local_shell", "id": "call_3"},
    {"tool": "computer", "id": "call_4"},
    {"tool": "image_generation", "id": "ig_1"},
    call("get_weather", {"city": "Paris"}, 1),
]
NOTE = "What is left out of the expected calls is for the reader to decide."


def responses() -> None:
    client = client_of(wire.responses("parallel"))
    asked: Any = [{"role": "user", "content": QUESTION_PARALLEL}]
    shown = []
    for step in script("parallel"):
        response = client.responses.create(model="scripted-1", input=asked)
        shown.append(response.model_dump(mode="json"))
        asked += [item.model_dump(mode="json", exclude_none=True) for item in response.output]
        asked += [
            {"type": "function_call_output", "call_id": number, "output": run(name, given)}
            for number, name, given in step.calls
        ]
    first = bare(three()[:2])
    record.save(
        "parallel-response",
        "parallel, the first step only",
        "response.model_dump(mode='json')",
        shown[0],
        expect(first, "I look both up.", usage("parallel", slice(1))),
    )
    record.save(
        "parallel-responses",
        "parallel",
        "[response.to_dict() ...], one per step",
        shown,
        expect(bare(three()), ANSWER_PARALLEL, usage("parallel")),
        "What the model sent: outputs of tools are not in it.",
    )
    record.save(
        "parallel-input-items",
        "parallel",
        "the input items that were sent, and the last output",
        asked,
        expect(three(), ANSWER_PARALLEL),
    )
    response = client_of(wire.responses("plain")).responses.create(model="scripted-1", input="")
    record.save(
        "plain-response",
        "plain",
        "response.model_dump(mode='json')",
        response.model_dump(mode="json"),
        expect([], ANSWER_PLAIN, usage("plain")),
    )

    body = wire.response_body(Step(500, 40), 1)
    body["output"] = ITEMS
    Response.model_validate(body)  # the client itself takes whatever comes
    response = client_of(wire.transport(iter([body]))).responses.create(model="scripted-1", input="")
    counts = {"input_tokens": 500, "output_tokens": 40, "total_tokens": 540}
    record.save(
        "items-response",
        "items of many types",
        "response.model_dump(mode='json', exclude_none=True)",
        response.model_dump(mode="json", exclude_none=True),
        expect(CALLS, "", counts),
        NOTE,
    )
    body = wire.response_body(Step(40, 12), 1)
    body["output"] = [
        {
            "id": "mcpr_1",
            "type": "mcp_approval_request",
            "server_label": "files",
            "name": "delete_file",
            "arguments": '{"path": "notes.txt"}',
        }
    ]
    response = client_of(wire.transport(iter([body]))).responses.create(model="scripted-1", input="")
    record.save(
        "pending-response",
        "pending: a call of an MCP server waits for a human",
        "response.model_dump(mode='json', exclude_none=True)",
        response.model_dump(mode="json", exclude_none=True),
        expect(notes("mcpr_1", status="pending"), "", usage("delete", slice(1))),
    )

    body = wire.response_body(script("call")[0], 1)
    item = body["output"][0]
    text = item["arguments"]
    events = [
        {"type": "response.created", "response": body | {"output": [], "status": "in_progress", "usage": None}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": item | {"arguments": "", "status": "in_progress"},
        },
        {"type": "response.function_call_arguments.delta", "item_id": item["id"], "output_index": 0, "delta": text[:5]},
        {"type": "response.function_call_arguments.delta", "item_id": item["id"], "output_index": 0, "delta": text[5:]},
        {
            "type": "response.function_call_arguments.done",
            "item_id": item["id"],
            "output_index": 0,
            "name": item["name"],
            "arguments": text,
        },
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": body},
    ]
    lines = "".join(
        f"event: {each['type']}\ndata: {json.dumps(each | {'sequence_number': index})}\n\n"
        for index, each in enumerate(events)
    )
    stream = client_of(wire.transport(iter([lines]))).responses.create(model="scripted-1", input="", stream=True)
    shown = [event.model_dump(mode="json", exclude_none=True) for event in stream]
    record.save(
        "call-stream-events",
        "call, the first step only, streamed",
        "[event.model_dump(mode='json', exclude_none=True) ...]",
        shown,
        expect(bare(paris()), "", usage("call", slice(1))),
    )


completions()
responses()


def several_streams() -> None:
    """Return the list of a loop that streams each of its turns."""
    events: list[Any] = []
    chunks: list[Any] = []
    for number, step in enumerate(script("call"), 1):
        body = wire.response_body(step, number)
        events.append({"type": "response.created", "response": {**body, "output": [], "usage": None}})
        events += [
            {"type": "response.output_item.done", "output_index": at, "item": item}
            for at, item in enumerate(body["output"])
        ]
        events.append({"type": "response.completed", "response": body})
        chunks += wire.chat_chunks(step, number)
    found = expect(bare(paris()), ANSWER, usage("call"))
    what = "the events of two streams of responses, one after the other"
    record.save("call-streams-events", "call", what, events, found, made_by=HAND)
    what = "the chunks of two streams of completions, one after the other"
    record.save("call-streams-chunks", "call", what, chunks, found, made_by=HAND)
    with client_of(wire.chat_stream("parallel")).chat.completions.stream(
        model="scripted-1", messages=[{"role": "user", "content": QUESTION_PARALLEL}]
    ) as stream:
        told = [json.loads(event.model_dump_json()) for event in stream]
    for event in told:
        event.pop("snapshot", None)  # all so far, again and again
    record.save(
        "parallel-stream-helper-events",
        "parallel, the first step only, streamed",
        "[event ...] of chat.completions.stream(), their snapshots left out",
        told,
        expect(bare(three()[:2]), "I look both up.", usage("parallel", slice(1))),
    )


def realtime() -> None:
    """A session of the Realtime API: a call, its result from the client, and an answer that is spoken."""
    made = {"id": "item_1", "object": "realtime.item", "type": "function_call", "status": "completed"}
    made |= {"name": "get_weather", "call_id": "call_1", "arguments": '{"city": "Paris"}'}
    given = {"id": "item_2", "object": "realtime.item", "type": "function_call_output", "call_id": "call_1"}
    spoken = [{"type": "output_audio", "transcript": ANSWER}]
    said = {"id": "item_3", "object": "realtime.item", "type": "message", "role": "assistant", "status": "completed"}
    turns = [[made], [said | {"content": spoken}]]
    events: list[Any] = [{"type": "session.created", "event_id": "event_1", "session": {"id": "session_1"}}]
    for number, (items, (taken, wrote)) in enumerate(zip(turns, STEPS["call"], strict=True), 1):
        body: dict[str, Any] = {"id": f"resp_{number}", "object": "realtime.response"}
        events.append({"type": "response.created", "response": body | {"status": "in_progress", "output": []}})
        events += [{"type": "response.output_item.done", "item": item} for item in items]
        counts = {"input_tokens": taken, "output_tokens": wrote, "total_tokens": taken + wrote}
        events.append({"type": "response.done", "response": body | {"output": items, "usage": counts}})
        events.append({"type": "rate_limits.updated", "rate_limits": []})
        if number == 1:
            events.append({"type": "conversation.item.created", "item": given | {"output": "18 C"}})
    found = expect(paris(), ANSWER, usage("call"))
    what = "the events of a session, after the types of openai.types.realtime"
    record.save("call-realtime-events", "call", what, events, found, made_by=HAND)
    plain = [events[0], *events[6:]]
    found = expect([], ANSWER, usage("call", slice(1, 2)))
    record.save("plain-realtime-events", "plain", what, plain, found, made_by=HAND)


several_streams()
realtime()
