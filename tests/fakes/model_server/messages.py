"""Anthropic's Messages, from the server's side."""

import json
from collections.abc import Iterator
from typing import Any

from tests.fakes.model_server.replies import Counts, Event, Reply, pieces

_RESULT = {"type": "web_search_result", "title": "Bergen", "url": "https://example.com", "encrypted_content": "x"}


def read_request(body: dict[str, Any]) -> tuple[str, bool]:
    """The last prompt, and whether results of tools stand after it."""
    last = body["messages"][-1]
    blocks = [{"type": "text", "text": last["content"]}] if isinstance(last["content"], str) else last["content"]
    prompt = "".join(block["text"] for block in blocks if block["type"] == "text")
    return prompt, any(block["type"] == "tool_result" for block in blocks)


def whole(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    return {
        **_head(body),
        "content": list(_blocks(reply)),
        "stop_reason": _reason(reply),
        "stop_sequence": None,
        **_counted(reply.counts),
    }


def events(reply: Reply, body: dict[str, Any]) -> Iterator[Event]:
    counts = reply.counts
    begun = {**_head(body), "content": [], "stop_reason": None, "stop_sequence": None}
    yield _event("message_start", message={**begun, **_counted(counts and counts._replace(wrote=1))})
    yield _event("ping")
    for index, block in enumerate(_blocks(reply)):
        yield _event("content_block_start", index=index, content_block=_begun(block))
        for delta in _deltas(block, reply):
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {"stop_reason": _reason(reply), "stop_sequence": None}
    # Counted from the beginning each time, the input once more included.
    told = (
        {key: value for key, value in _usage(counts).items() if key in ("input_tokens", "output_tokens")}
        if counts
        else None
    )
    yield _event("message_delta", delta=ending, **({"usage": told} if told else {}))
    yield _event("message_stop")


def _event(kind: str, **fields: Any) -> Event:
    return kind, {"type": kind, **fields}


def _head(body: dict[str, Any]) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": f"{body['model']}-20260101"}


def _reason(reply: Reply) -> str:
    if reply.refusal:
        return "refusal"
    return "max_tokens" if reply.is_cut else "tool_use" if reply.calls else "end_turn"


def _blocks(reply: Reply) -> Iterator[dict[str, Any]]:
    if reply.thought:
        yield {"type": "thinking", "thinking": reply.thought, "signature": "sig=="}
    if reply.search:
        query = {"query": reply.search}
        yield {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": query}
        yield {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [_RESULT]}
    if reply.text or reply.refusal:
        yield {"type": "text", "text": reply.text or reply.refusal}
    for call in reply.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)}


def _input(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return {}


def _begun(block: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, dict[str, Any]] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
        "server_tool_use": {"input": {}},
    }
    return {**block, **empty.get(block["type"], {})}


def _deltas(block: dict[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"]))
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] in ("tool_use", "server_tool_use"):
        written = [call.arguments for call in reply.calls if call.id == block.get("id")]
        yield {"type": "input_json_delta", "partial_json": ""}
        for piece in pieces(written[0] if written else json.dumps(block["input"])):
            yield {"type": "input_json_delta", "partial_json": piece}


def _counted(counts: Counts | None) -> dict[str, Any]:
    return {"usage": _usage(counts)} if counts else {}


def _usage(counts: Counts) -> dict[str, Any]:
    return {
        "input_tokens": counts.read - counts.cached - counts.written,
        "cache_creation_input_tokens": counts.written,
        "cache_read_input_tokens": counts.cached,
        "output_tokens": counts.wrote,
        "service_tier": "standard",
    }
