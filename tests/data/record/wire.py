"""A scripted model behind OpenAI's wires, for libraries that bring a client of their own: no network, no key."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from record.common import Step, script

try:
    import httpx2 as httpx  # what OpenAI's client has used since its version 3
except ModuleNotFoundError:
    import httpx

KEY = "none"


def chat_message(step: Step) -> dict[str, Any]:
    """The assistant message of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None, "refusal": None, "annotations": []}
    if step.calls:
        message["tool_calls"] = [
            {"id": number, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for number, name, given in step.calls
        ]
    return message


def chat_body(step: Step, number: int) -> dict[str, Any]:
    """The body of a chat completion."""
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1767225600,
        "model": "scripted-1",
        "choices": [
            {
                "index": 0,
                "message": chat_message(step),
                "logprobs": None,
                "finish_reason": "tool_calls" if step.calls else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": step.given,
            "completion_tokens": step.made,
            "total_tokens": step.given + step.made,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        "system_fingerprint": None,
    }


def response_body(step: Step, number: int) -> dict[str, Any]:
    """The body of a response of the Responses API."""
    output: list[dict[str, Any]] = []
    if step.thought:
        summary = [{"type": "summary_text", "text": step.thought}]
        output.append({"id": f"rs_{number}", "type": "reasoning", "summary": summary})
    if step.text:
        text = {"type": "output_text", "text": step.text, "annotations": [], "logprobs": []}
        output.append(
            {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
        )
    output += [
        {
            "id": f"fc_{call}",
            "type": "function_call",
            "call_id": call,
            "name": name,
            "arguments": json.dumps(given),
            "status": "completed",
        }
        for call, name, given in step.calls
    ]
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1767225600,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": "scripted-1",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": {
            "input_tokens": step.given,
            "output_tokens": step.made,
            "total_tokens": step.given + step.made,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def chat_chunks(step: Step, number: int) -> list[dict[str, Any]]:
    """The chunks of a streamed chat completion: calls and texts in two pieces each."""
    pieces: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    pieces += [{"content": word} for word in step.text.partition(" ") if word]
    for index, (call, name, given) in enumerate(step.calls):
        text = json.dumps(given)
        first = {"index": index, "id": call, "type": "function", "function": {"name": name, "arguments": text[:5]}}
        pieces.append({"tool_calls": [first]})
        pieces.append({"tool_calls": [{"index": index, "function": {"arguments": text[5:]}}]})
    body = chat_body(step, number)
    head = {key: body[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    chunks = [{**head, "choices": [{"index": 0, "delta": piece, "finish_reason": None}]} for piece in pieces]
    reason = body["choices"][0]["finish_reason"]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    chunks.append({**head, "choices": [], "usage": body["usage"]})
    return chunks


def sse(events: Iterable[dict[str, Any]], end: str = "data: [DONE]\n\n") -> str:
    """Server-sent events."""
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + end


def transport(bodies: Iterator[dict[str, Any] | str], http: Any = httpx) -> Any:
    """Answers each request with the next body, a text being a stream."""

    def answer(request: Any) -> Any:
        body = next(bodies)
        if isinstance(body, str):
            return http.Response(200, text=body, headers={"content-type": "text/event-stream"})
        return http.Response(200, json=body)

    return http.MockTransport(answer)


def chat(scenario: str, http: Any = httpx) -> Any:
    """A chat completions endpoint that plays a scenario."""
    return transport((chat_body(step, number) for number, step in enumerate(script(scenario), 1)), http)


def chat_stream(scenario: str, http: Any = httpx) -> Any:
    """A chat completions endpoint that streams a scenario."""
    return transport((sse(chat_chunks(step, number)) for number, step in enumerate(script(scenario), 1)), http)


def responses(scenario: str, http: Any = httpx) -> Any:
    """A Responses endpoint that plays a scenario."""
    return transport((response_body(step, number) for number, step in enumerate(script(scenario), 1)), http)
