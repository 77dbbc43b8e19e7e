"""One short session in each format of stored traces: the user asks, two tools are called, and the agent answers."""

import json
from typing import Any

TRACE_ID, ROOT, MODEL, FIRST, SECOND, LAST = "0a" * 16, "01" * 8, "02" * 8, "03" * 8, "04" * 8, "05" * 8
QUESTION, ANSWER = "Where is order 7?", "It is in Rome."
CALLS = [("get_order", {"id": 7}), ("get_city", {"code": "ROM"})]
TIMES = [f"2026-05-01T10:00:0{second}.000Z" for second in range(10)]
ASSISTANT = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": 7}'}},
        {"id": "c2", "type": "function", "function": {"name": "get_city", "arguments": '{"code": "ROM"}'}},
    ],
}
USER = {"role": "user", "content": QUESTION}
FINAL = {"role": "assistant", "content": ANSWER}
TOOL_RESULTS = [
    {"role": "tool", "tool_call_id": "c1", "content": "sent"},
    {"role": "tool", "tool_call_id": "c2", "content": "Rome"},
]


def _nanoseconds(second: int) -> int:
    return (1_777_629_600 + second) * 1_000_000_000


def _claude(uuid: str, kind: str, second: int, **message: Any) -> dict[str, Any]:
    return {"type": kind, "uuid": uuid, "sessionId": "s1", "timestamp": TIMES[second], "message": message}


def claude_code() -> list[Any]:
    """Return the lines of a session file of Claude Code."""
    usage = {"input_tokens": 3, "cache_read_input_tokens": 97, "output_tokens": 20}
    first = {"id": "m1", "role": "assistant", "model": "claude", "usage": usage}
    return [
        _claude("u1", "user", 0, role="user", content=QUESTION),
        _claude(
            "u2",
            "assistant",
            1,
            **first,
            content=[{"type": "tool_use", "id": "c1", "name": "get_order", "input": {"id": 7}}],
        ),
        _claude(
            "u3",
            "assistant",
            1,
            **first,
            content=[{"type": "tool_use", "id": "c2", "name": "get_city", "input": {"code": "ROM"}}],
        ),
        _claude(
            "u4", "user", 2, role="user", content=[{"type": "tool_result", "tool_use_id": "c1", "content": "sent"}]
        ),
        _claude(
            "u5", "user", 3, role="user", content=[{"type": "tool_result", "tool_use_id": "c2", "content": "Rome"}]
        ),
        _claude("u6", "assistant", 4, **{**first, "id": "m2"}, content=[{"type": "text", "text": ANSWER}]),
    ]


def codex() -> list[Any]:
    """Return the lines of a rollout of Codex; the token counts are cumulative."""

    def line(second: int, kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": TIMES[second], "type": kind, "payload": payload}

    def tokens(second: int, count: int) -> dict[str, Any]:
        totals = {"input_tokens": count, "output_tokens": count // 10, "total_tokens": count + count // 10}
        return line(second, "event_msg", type="token_count", info={"total_token_usage": totals})

    text = [{"type": "input_text", "text": QUESTION}]
    return [
        line(0, "session_meta", id="s1", cwd="/app"),
        line(0, "response_item", type="message", role="user", content=text),
        line(1, "response_item", type="reasoning", summary=[], encrypted_content="gAAAA"),
        line(1, "response_item", type="function_call", name="get_order", arguments='{"id": 7}', call_id="c1"),
        line(1, "response_item", type="function_call", name="get_city", arguments='{"code": "ROM"}', call_id="c2"),
        line(2, "response_item", type="function_call_output", call_id="c1", output="sent"),
        line(2, "response_item", type="function_call_output", call_id="c2", output="Rome"),
        tokens(3, 100),
        line(4, "response_item", type="message", role="assistant", content=[{"type": "output_text", "text": ANSWER}]),
        tokens(4, 200),
    ]


def copilot_cli() -> list[Any]:
    """Return the events of a session of Copilot CLI, which tells each call three times."""

    def event(second: int, kind: str, **data: Any) -> dict[str, Any]:
        return {"type": kind, "data": data, "id": f"{kind}{second}", "timestamp": TIMES[second]}

    requests = [
        {"toolCallId": f"c{number}", "name": tool, "arguments": given} for number, (tool, given) in enumerate(CALLS, 1)
    ]
    usage = {"usage": {"inputTokens": 200, "outputTokens": 20}}
    return [
        event(0, "session.start", sessionId="s1", selectedModel="gpt"),
        event(0, "user.message", content=QUESTION),
        event(1, "assistant.message", messageId="m1", content="", toolRequests=requests),
        *(
            event(
                2,
                "tool.execution_start",
                toolCallId=each["toolCallId"],
                toolName=each["name"],
                arguments=each["arguments"],
            )
            for each in requests
        ),
        event(3, "tool.execution_complete", toolCallId="c1", success=True, result={"content": "sent"}),
        event(3, "tool.execution_complete", toolCallId="c2", success=True, result={"content": "Rome"}),
        event(4, "assistant.message", messageId="m2", content=ANSWER, toolRequests=[]),
        event(5, "session.shutdown", modelMetrics={"gpt": usage}),
    ]


def gemini_cli() -> list[Any]:
    """Return a stored chat of Gemini CLI: the first line of the session, then its messages."""

    def call(number: int, result: str) -> dict[str, Any]:
        tool, given = CALLS[number - 1]
        output = [{"functionResponse": {"id": f"c{number}", "name": tool, "response": {"output": result}}}]
        return {"id": f"c{number}", "name": tool, "args": given, "result": output, "status": "success"}

    tokens = {"input": 100, "output": 8, "cached": 40, "thoughts": 2, "tool": 0, "total": 110}
    return [
        {"sessionId": "s1", "projectHash": "ab", "startTime": TIMES[0], "lastUpdated": TIMES[4]},
        {"id": "1", "type": "user", "timestamp": TIMES[0], "content": QUESTION},
        {"id": "2", "type": "gemini", "timestamp": TIMES[1], "content": "", "model": "gemini", "tokens": tokens},
        {
            "id": "2",
            "type": "gemini",
            "timestamp": TIMES[1],
            "content": "",
            "model": "gemini",
            "tokens": tokens,
            "toolCalls": [call(1, "sent"), call(2, "Rome")],
        },
        {"id": "3", "type": "gemini", "timestamp": TIMES[4], "content": ANSWER, "model": "gemini", "tokens": tokens},
    ]


def opencode() -> list[Any]:
    """Return the lines of `opencode run --format json`."""

    def line(kind: str, **part: Any) -> dict[str, Any]:
        return {"type": kind, "timestamp": 1_777_629_600_000, "sessionID": "s1", "part": {"messageID": "m1", **part}}

    def tool(number: int, output: str) -> dict[str, Any]:
        name, given = CALLS[number - 1]
        state = {"status": "completed", "input": given, "output": output, "time": {"start": 10, "end": 30}}
        return line("tool_use", type="tool", tool=name, callID=f"c{number}", state=state)

    tokens = {"input": 60, "output": 8, "reasoning": 2, "cache": {"read": 40, "write": 0}}
    return [
        line("step_start", type="step-start"),
        tool(1, "sent"),
        tool(2, "Rome"),
        line("step_finish", type="step-finish", tokens=tokens),
        line("step_start", type="step-start"),
        line("text", type="text", text=ANSWER),
        line("step_finish", type="step-finish", tokens=tokens),
    ]


def langfuse() -> list[Any]:
    """Return a trace of Langfuse with its observations, whose inputs and outputs are JSON texts."""

    def observation(own: str, kind: str, second: int, name: str, **fields: Any) -> dict[str, Any]:
        times = {"startTime": TIMES[second], "endTime": TIMES[second + 1]}
        return {"id": own, "traceId": "t1", "type": kind, "name": name, "parentObservationId": "a", **times, **fields}

    usage = {"usageDetails": {"input": 100, "output": 10, "total": 110}, "model": "gpt"}
    history = [USER, ASSISTANT, *TOOL_RESULTS]
    observations = [
        observation("d", "TOOL", 3, "get_city", input=json.dumps({"code": "ROM"}), output='"Rome"'),
        observation("c", "TOOL", 2, "get_order", input=json.dumps(json.dumps({"id": 7})), output='"sent"'),
        {**observation("a", "AGENT", 0, "agent", output=ANSWER), "parentObservationId": None, "endTime": TIMES[6]},
        observation("b", "GENERATION", 1, "chat", input=json.dumps([USER]), output=json.dumps(ASSISTANT), **usage),
        observation("e", "GENERATION", 4, "chat", input=json.dumps(history), output=json.dumps(FINAL), **usage),
    ]
    return [
        {
            "id": "t1",
            "name": "run",
            "projectId": "p",
            "sessionId": "s1",
            "timestamp": TIMES[0],
            "observations": observations,
        }
    ]


def mlflow() -> list[Any]:
    """Return a trace of MLflow, whose attributes are JSON texts."""

    def span(own: str, parent: str | None, kind: str, second: int, name: str, **fields: Any) -> dict[str, Any]:
        attributes = {f"mlflow.{key}": json.dumps(value) for key, value in {"spanType": kind, **fields}.items()}
        return {
            "trace_id": TRACE_ID,
            "span_id": own,
            "parent_span_id": parent,
            "name": name,
            "attributes": attributes,
            "start_time_unix_nano": _nanoseconds(second),
            "end_time_unix_nano": _nanoseconds(second + 1),
            "status": {"code": "STATUS_CODE_OK", "message": ""},
            "events": [],
        }

    usage = {"chat.tokenUsage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}}
    history = [USER, ASSISTANT, *TOOL_RESULTS]
    root = span(ROOT, None, "AGENT", 0, "agent", spanOutputs=ANSWER)
    spans = [
        {**root, "end_time_unix_nano": _nanoseconds(6)},
        span(
            MODEL,
            ROOT,
            "CHAT_MODEL",
            1,
            "chat",
            spanInputs={"messages": [USER]},
            spanOutputs={"choices": [{"message": ASSISTANT}]},
            **usage,
        ),
        span(FIRST, ROOT, "TOOL", 2, "get_order", spanInputs={"id": 7}, spanOutputs="sent"),
        span(SECOND, ROOT, "TOOL", 3, "get_city", spanInputs={"code": "ROM"}, spanOutputs="Rome"),
        span(
            LAST,
            ROOT,
            "CHAT_MODEL",
            4,
            "chat",
            spanInputs={"messages": history},
            spanOutputs={"choices": [{"message": FINAL}]},
            **usage,
        ),
    ]
    return [{"info": {"trace_id": "tr-1", "trace_metadata": {"mlflow.trace.session": "s1"}}, "data": {"spans": spans}}]


def langsmith() -> list[Any]:
    """Return the runs of a LangSmith export, of which the root repeats the token counts of the models."""

    def run(own: str, parent: str | None, kind: str, second: int, name: str, **fields: Any) -> dict[str, Any]:
        times = {"start_time": TIMES[second], "end_time": TIMES[second + 1]}
        extra = {"extra": {"metadata": {"session_id": "s1"}}}
        return {
            "id": own,
            "trace_id": "r0",
            "parent_run_id": parent,
            "run_type": kind,
            "name": name,
            **times,
            **extra,
            **fields,
        }

    def generations(message: dict[str, Any]) -> dict[str, Any]:
        return {"generations": [[{"text": message["content"] or "", "message": message}]]}

    counts = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    history = [USER, ASSISTANT, *TOOL_RESULTS]
    return [
        {
            **run("r0", None, "chain", 0, "agent", inputs={"messages": [USER]}, outputs={"messages": [FINAL]}),
            **counts,
            "end_time": TIMES[6],
        },
        run("r1", "r0", "llm", 1, "ChatModel", inputs={"messages": [[USER]]}, outputs=generations(ASSISTANT), **counts),
        run("r2", "r0", "tool", 2, "get_order", inputs={"input": "{'id': 7}"}, outputs={"output": "sent"}),
        run("r3", "r0", "tool", 3, "get_city", inputs={"code": "ROM"}, outputs={"output": "Rome"}),
        run("r4", "r0", "llm", 4, "ChatModel", inputs={"messages": [history]}, outputs=generations(FINAL), **counts),
    ]


def _openinference() -> list[tuple[str, str, str, int, dict[str, Any]]]:
    """Return the spans of OpenInference as id, parent, name, second and attributes."""
    counts = {"llm.token_count.prompt": 100, "llm.token_count.completion": 10, "session.id": "s1"}
    asked = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": QUESTION}
    calls = {"llm.output_messages.0.message.role": "assistant"}
    for number, (tool, given) in enumerate(CALLS):
        prefix = f"llm.output_messages.0.message.tool_calls.{number}.tool_call"
        calls |= {
            f"{prefix}.id": f"c{number + 1}",
            f"{prefix}.function.name": tool,
            f"{prefix}.function.arguments": json.dumps(given),
        }
    said = {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": ANSWER}
    kind = "openinference.span.kind"
    return [
        (ROOT, "", "agent", 0, {kind: "AGENT", "output.value": ANSWER, "session.id": "s1"}),
        (MODEL, ROOT, "chat", 1, {kind: "LLM", **counts, **asked, **calls}),
        (
            FIRST,
            ROOT,
            "get_order",
            2,
            {kind: "TOOL", "tool.name": "get_order", "input.value": '{"id": 7}', "output.value": "sent"},
        ),
        (
            SECOND,
            ROOT,
            "get_city",
            3,
            {kind: "TOOL", "tool.name": "get_city", "input.value": '{"code": "ROM"}', "output.value": "Rome"},
        ),
        (LAST, ROOT, "chat", 4, {kind: "LLM", **counts, **asked, **said}),
    ]


def phoenix() -> list[Any]:
    """Return the spans of a Phoenix export."""
    return [
        {
            "name": name,
            "context": {"trace_id": TRACE_ID, "span_id": own},
            "parent_id": parent or None,
            "span_kind": attributes["openinference.span.kind"],
            "start_time": TIMES[second],
            "end_time": TIMES[second + 1 if parent else 6],
            "status_code": "OK",
            "attributes": attributes,
            "events": [],
        }
        for own, parent, name, second, attributes in _openinference()
    ]


def jaeger() -> list[Any]:
    """Return a result of Jaeger's query API."""
    spans = [
        {
            "traceID": TRACE_ID,
            "spanID": own,
            "operationName": name,
            "processID": "p1",
            "references": [{"refType": "CHILD_OF", "traceID": TRACE_ID, "spanID": parent}] if parent else [],
            "startTime": _nanoseconds(second) // 1000,
            "duration": 1_000_000 if parent else 6_000_000,
            "logs": [],
            "tags": [{"key": key, "type": "string", "value": value} for key, value in attributes.items()],
        }
        for own, parent, name, second, attributes in _openinference()
    ]
    return [{"data": [{"traceID": TRACE_ID, "spans": spans, "processes": {"p1": {"serviceName": "shop", "tags": []}}}]}]


def mastra() -> list[Any]:
    """Return the spans of a trace of Mastra."""

    def span(own: str, parent: str | None, kind: str, second: int, name: str, **fields: Any) -> dict[str, Any]:
        times = {"startedAt": TIMES[second], "endedAt": TIMES[second + 1 if parent else 6]}
        return {
            "traceId": "t1",
            "spanId": own,
            "parentSpanId": parent,
            "spanType": kind,
            "name": name,
            **times,
            **fields,
        }

    usage = {"attributes": {"model": "gpt", "usage": {"inputTokens": 100, "outputTokens": 10}}}
    requests = [
        {"toolCallId": f"c{number}", "toolName": tool, "args": given} for number, (tool, given) in enumerate(CALLS, 1)
    ]
    spans = [
        span("a", None, "agent_run", 0, "agent run: 'shop'", output={"text": ANSWER}, metadata={"sessionId": "s1"}),
        span(
            "b",
            "a",
            "model_generation",
            1,
            "llm: 'gpt'",
            input={"messages": [USER]},
            output={"text": "", "toolCalls": requests},
            **usage,
        ),
        span("c", "a", "tool_call", 2, "tool: 'get_order'", input={"id": 7}, output="sent"),
        span("d", "a", "tool_call", 3, "tool: 'get_city'", input={"code": "ROM"}, output="Rome"),
        span(
            "e",
            "a",
            "model_generation",
            4,
            "llm: 'gpt'",
            input={"messages": [USER, ASSISTANT, *TOOL_RESULTS]},
            output={"text": ANSWER},
            **usage,
        ),
    ]
    return [{"traceId": "t1", "spans": spans}]


def inspect() -> list[Any]:
    """Return a log of Inspect in JSON."""
    requests = [
        {"id": f"c{number}", "function": tool, "arguments": given, "type": "function"}
        for number, (tool, given) in enumerate(CALLS, 1)
    ]
    sample = {
        "id": "order",
        "epoch": 1,
        "uuid": "s1",
        "input": QUESTION,
        "target": "Rome",
        "messages": [
            USER,
            {"role": "assistant", "content": "", "tool_calls": requests},
            {"role": "tool", "tool_call_id": "c1", "function": "get_order", "content": "sent"},
            {"role": "tool", "tool_call_id": "c2", "function": "get_city", "content": "attachment://abc"},
            FINAL,
        ],
        "output": {"model": "m", "choices": [{"message": FINAL, "stop_reason": "stop"}], "completion": ANSWER},
        "model_usage": {"m": {"input_tokens": 200, "output_tokens": 20, "total_tokens": 220}},
        "events": [
            {"event": "tool", "id": "c1", "function": "get_order", "timestamp": TIMES[2], "completed": TIMES[3]}
        ],
        "attachments": {"abc": "Rome"},
    }
    return [{"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": [sample]}]


def adk() -> list[Any]:
    """Return a session of ADK."""

    def event(second: int, author: str, *parts: Any, **fields: Any) -> dict[str, Any]:
        role = "user" if author == "user" else "model"
        content = {"role": role, "parts": list(parts)}
        return {
            "author": author,
            "invocationId": "i1",
            "actions": {},
            "content": content,
            "timestamp": 1_777_629_600.0 + second,
            **fields,
        }

    counts = {
        "usageMetadata": {
            "promptTokenCount": 100,
            "candidatesTokenCount": 8,
            "thoughtsTokenCount": 2,
            "totalTokenCount": 110,
        }
    }
    requests = [
        {"functionCall": {"id": f"c{number}", "name": tool, "args": given}}
        for number, (tool, given) in enumerate(CALLS, 1)
    ]
    answers = [
        {"functionResponse": {"id": "c1", "name": "get_order", "response": {"result": "sent"}}},
        {"functionResponse": {"id": "c2", "name": "get_city", "response": {"result": "Rome"}}},
    ]
    events = [
        event(0, "user", {"text": QUESTION}),
        event(1, "shop", *requests, **counts),
        event(2, "shop", *answers),
        event(3, "shop", {"text": ANSWER}, **counts),
    ]
    return [{"id": "s1", "appName": "shop", "userId": "u", "state": {}, "events": events, "lastUpdateTime": 1.0}]


def atif() -> list[Any]:
    """Return a trajectory of ATIF."""
    requests = [
        {"tool_call_id": f"c{number}", "function_name": tool, "arguments": given}
        for number, (tool, given) in enumerate(CALLS, 1)
    ]
    found = [{"source_call_id": "c1", "content": "sent"}, {"source_call_id": "c2", "content": "Rome"}]
    steps = [
        {"step_id": 1, "source": "user", "message": QUESTION, "timestamp": TIMES[0]},
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "tool_calls": requests,
            "observation": {"results": found},
            "timestamp": TIMES[1],
        },
        {"step_id": 3, "source": "agent", "message": ANSWER, "timestamp": TIMES[4]},
    ]
    totals = {"total_prompt_tokens": 200, "total_completion_tokens": 20}
    return [
        {
            "schema_version": "ATIF-v1.6",
            "session_id": "s1",
            "agent": {"name": "shop", "version": "1"},
            "steps": steps,
            "final_metrics": totals,
        }
    ]


LINES = {
    "claude_code": claude_code,
    "codex": codex,
    "copilot_cli": copilot_cli,
    "gemini_cli": gemini_cli,
    "opencode": opencode,
    "langsmith": langsmith,
    "phoenix": phoenix,
}
"""Formats of JSON Lines in which a session is spread over lines."""
DOCUMENTS = {
    "langfuse": langfuse,
    "mlflow": mlflow,
    "jaeger": jaeger,
    "mastra": mastra,
    "inspect": inspect,
    "adk": adk,
    "atif": atif,
}
"""Formats in which a session is one document."""
ALL = {**LINES, **DOCUMENTS}
