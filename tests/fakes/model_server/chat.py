"""OpenAI's Chat Completions, from the server's side."""

from collections.abc import Iterator
from typing import Any

from tests.fakes.model_server.replies import Call, Counts, Event, Reply, pieces

_HEAD = {"id": "chatcmpl-1", "created": 1_750_000_000, "system_fingerprint": "fp_1"}


def read_request(body: dict[str, Any]) -> tuple[str, bool]:
    """The last prompt, and whether results of tools stand after it."""
    messages = body["messages"]
    said = [message["content"] for message in messages if message["role"] == "user"]
    return text_of(said[-1]) if said else "", messages[-1]["role"] == "tool"


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def whole(reply: Reply, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal, "annotations": []}
    if reply.calls:
        message["tool_calls"] = [_call(call) for call in reply.calls]
    if reply.thought:
        message["reasoning_content"] = reply.thought
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(reply)}
    body = {**_HEAD, "object": "chat.completion", "model": f"{model}-2026-01-01", "choices": [choice]}
    return {**body, "usage": _usage(reply.counts)} if reply.counts else body


def events(reply: Reply, body: dict[str, Any]) -> Iterator[Event]:
    wants_usage = (body.get("stream_options") or {}).get("include_usage")
    head = {**_HEAD, "object": "chat.completion.chunk", "model": f"{body['model']}-2026-01-01"}

    def chunk(delta: dict[str, Any] | None, reason: str | None = None) -> Event:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
        return None, {**head, "choices": choices, **({"usage": None} if wants_usage else {})}

    yield chunk({"role": "assistant", "content": "" if reply.text else None, "refusal": None})
    for name, text in (("reasoning_content", reply.thought), ("content", reply.text), ("refusal", reply.refusal)):
        for piece in pieces(text or ""):
            yield chunk({name: piece})
    for index, call in enumerate(reply.calls):
        yield chunk({"tool_calls": [{"index": index, **_call(call._replace(arguments=""))}]})
    # The pieces of parallel calls come mixed.
    parts = [(index, piece) for index, call in enumerate(reply.calls) for piece in enumerate(pieces(call.arguments))]
    for index, (_, piece) in sorted(parts, key=lambda part: (part[1][0], part[0])):
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _reason(reply))
    if wants_usage and reply.counts:
        yield None, {**head, "choices": [], "usage": _usage(reply.counts)}
    yield None, "[DONE]"


def _call(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _reason(reply: Reply) -> str:
    return "length" if reply.is_cut else "tool_calls" if reply.calls else "stop"


def _usage(counts: Counts) -> dict[str, Any]:
    return {
        "prompt_tokens": counts.read,
        "completion_tokens": counts.wrote,
        "total_tokens": counts.read + counts.wrote,
        "prompt_tokens_details": {"cached_tokens": counts.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": counts.thought, "audio_tokens": 0},
    }
