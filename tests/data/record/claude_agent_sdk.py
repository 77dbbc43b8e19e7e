"""Claude Agent SDK: its message classes, filled by its own parser from what the program prints, and dumped."""

from dataclasses import asdict
from typing import Any

from claude_agent_sdk._internal.message_parser import parse_message
from record.common import *

record = Recorder("claude_agent_sdk", "claude-agent-sdk", made_by=TYPES)
SESSION = "session_1"


def lines_of(scenario: str, results: list[list[dict[str, Any]]], **more: Any) -> list[dict[str, Any]]:
    """Return the output of `claude -p --output-format stream-json --verbose`, one object per line."""
    init = {
        "type": "system",
        "subtype": "init",
        "session_id": SESSION,
        "cwd": "project",
        "tools": ["Bash", "mcp__weather__get_weather"],
        "mcp_servers": [{"name": "weather", "status": "connected"}],
        "model": "scripted-1",
        "permissionMode": "default",
        "apiKeySource": "none",
        "uuid": "uuid_0",
    }
    shown: list[dict[str, Any]] = [init]
    left = iter(results)
    for number, step in enumerate(script(scenario), 1):
        blocks: list[dict[str, Any]] = (
            [{"type": "thinking", "thinking": step.thought, "signature": "c2lnbmF0dXJl"}] if step.thought else []
        )
        blocks += [{"type": "text", "text": step.text}] if step.text else []
        blocks += [{"type": "tool_use", "id": call, "name": name, "input": given} for call, name, given in step.calls]
        for block in blocks:  # the program prints one line per block, each with the whole message's usage
            message = {
                "id": f"msg_{number}",
                "type": "message",
                "role": "assistant",
                "model": "scripted-1",
                "content": [block],
                "stop_reason": None,
                "usage": {
                    "input_tokens": step.given,
                    "output_tokens": step.made,
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0,
                },
            }
            shown.append(
                {
                    "type": "assistant",
                    "message": message,
                    "parent_tool_use_id": None,
                    "session_id": SESSION,
                    "uuid": f"uuid_{len(shown)}",
                }
            )
        if step.calls:
            content = next(left)
            shown.append(
                {
                    "type": "user",
                    "message": {"role": "user", "content": content},
                    "parent_tool_use_id": None,
                    "session_id": SESSION,
                    "uuid": f"uuid_{len(shown)}",
                }
            )
    summed = usage("call" if scenario == "thinking" else scenario)
    last = script(scenario)[-1].text
    counts = {
        "input_tokens": summed["input_tokens"],
        "output_tokens": summed["output_tokens"],
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
    }
    shown.append(
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "duration_ms": 1000,
            "duration_api_ms": 900,
            "num_turns": len(results) + 1,
            "result": last,
            "session_id": SESSION,
            "total_cost_usd": 0.01,
            "usage": counts,
            "permission_denials": [],
            "uuid": "uuid_end",
        }
        | more
    )
    return shown


def told(number: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": number, "content": content, **more}


RESULTS = {
    "thinking": [[told("call_1", [{"type": "text", "text": "18 C"}])]],
    "parallel": [[told("call_1", "18 C"), told("call_2", "24 C")], [told("call_3", "12:00")]],
    "failed": [[told("call_1", FAILURE, is_error=True)]],
    "plain": [],
}
WANTED = {
    "thinking": expect(paris(), ANSWER, usage("call"), SESSION),
    "parallel": expect(three(), ANSWER_PARALLEL, usage("parallel"), SESSION),
    "failed": expect(atlantis(output=FAILURE, status="error"), ANSWER_FAILED, usage("failed"), SESSION),
    "plain": expect([], ANSWER_PLAIN, usage("plain"), SESSION),
}
LINES = "lines of `claude -p --output-format stream-json --verbose`, as the library's parser takes them"
NOTE = "The classes' dicts have no field that names their type: blocks are known by their keys alone."

for scenario, found in WANTED.items():
    lines = lines_of(scenario, RESULTS[scenario])
    messages = [parse_message(line) for line in lines]
    dumped = [asdict(message) for message in messages]
    record.save(f"{scenario}-asdict", scenario, "[dataclasses.asdict(message) ...]", dumped, found, NOTE)
    if scenario in {"parallel", "plain"}:
        named = [{"type": type(message).__name__, **asdict(message)} for message in messages]
        record.save(
            f"{scenario}-asdict-named",
            scenario,
            '[{"type": class name, **dataclasses.asdict(message)} ...]',
            named,
            found,
        )
        record.save(f"{scenario}-lines", scenario, LINES, lines, found, made_by=HAND)
    if scenario == "parallel":
        record.save(
            "parallel-result-only",
            scenario,
            "dataclasses.asdict(the ResultMessage)",
            dumped[-1],
            expect(None, ANSWER_PARALLEL, usage("parallel"), SESSION),
            "The result alone says nothing about calls.",
        )

denied = [{"tool_name": "delete_file", "tool_use_id": "call_1", "tool_input": {"path": "notes.txt"}}]
refused = told("call_1", "The user doesn't want to proceed with this tool use.", is_error=True)
lines = lines_of("delete", [[refused]], permission_denials=denied)
messages = [parse_message(line) for line in lines]
found = expect(notes(output=refused["content"], status="denied"), ANSWER_DENIED, usage("delete"), SESSION)
record.save(
    "denied-asdict",
    "denied: a human rejects the call",
    "[dataclasses.asdict(message) ...]",
    [asdict(message) for message in messages],
    found,
    NOTE,
)
record.save(
    "denied-lines",
    "denied: a human rejects the call",
    LINES,
    lines,
    found,
    made_by=HAND,
)
waits = lines_of("delete", [[]])[:2]
result = lines_of(
    "delete",
    [[]],
    deferred_tool_use={"id": "call_1", "name": "delete_file", "input": {"path": "notes.txt"}},
    result="",
    stop_reason="tool_deferred",
    usage={"input_tokens": 40, "output_tokens": 12},
)[-1]
messages = [parse_message(line) for line in (*waits, result)]
record.save(
    "pending-asdict",
    "pending: the call is put off",
    "[dataclasses.asdict(message) ...]",
    [asdict(message) for message in messages],
    expect(notes(status="pending"), "", usage("delete", slice(1)), SESSION),
    NOTE,
)

# A sub-agent: its messages name the call that started it.
asks = {
    "type": "tool_use",
    "id": "call_9",
    "name": "Task",
    "input": {"description": "weather", "prompt": QUESTION, "subagent_type": "forecaster"},
}
inner = lines_of("call", [[told("call_1", "18 C")]])[1:-1]
for line in inner:
    line["parent_tool_use_id"] = "call_9"
start, end = lines_of("plain", [])[0], lines_of("plain", [])[-1]
head = {
    "type": "assistant",
    "message": {
        "id": "msg_9",
        "type": "message",
        "role": "assistant",
        "model": "scripted-1",
        "content": [asks],
        "usage": {"input_tokens": 20, "output_tokens": 5},
    },
    "parent_tool_use_id": None,
    "session_id": SESSION,
    "uuid": "uuid_90",
}
back = {
    "type": "user",
    "message": {"role": "user", "content": [told("call_9", [{"type": "text", "text": ANSWER}])]},
    "parent_tool_use_id": None,
    "session_id": SESSION,
    "uuid": "uuid_91",
}
said = {
    "type": "assistant",
    "message": {
        "id": "msg_10",
        "type": "message",
        "role": "assistant",
        "model": "scripted-1",
        "content": [{"type": "text", "text": ANSWER}],
        "usage": {"input_tokens": 30, "output_tokens": 6},
    },
    "parent_tool_use_id": None,
    "session_id": SESSION,
    "uuid": "uuid_92",
}
counts = {"input_tokens": 170, "output_tokens": 29, "total_tokens": 199}
lines = [start, head, *inner, back, said, end | {"result": ANSWER, "usage": {"input_tokens": 170, "output_tokens": 29}}]
found = expect([call("Task", asks["input"], "call_9", output=ANSWER), *paris()], ANSWER, counts, SESSION)
record.save(
    "subagent-asdict",
    "a sub-agent makes the call",
    "[dataclasses.asdict(message) ...]",
    [asdict(parse_message(line)) for line in lines],
    found,
    NOTE,
)
record.save(
    "subagent-lines",
    "a sub-agent makes the call",
    LINES,
    lines,
    found,
    made_by=HAND,
)
