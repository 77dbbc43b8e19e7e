"""OpenAI's Responses, from the server's side."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from tests.fakes.model_server.chat import text_of
from tests.fakes.model_server.replies import Call, Counts, Event, Reply, pieces

_numbers = count(1)


def read_request(body: dict[str, Any]) -> tuple[str, bool]:
    """The last prompt, and whether results of tools stand after it."""
    items = [{"role": "user", "content": body["input"]}] if isinstance(body["input"], str) else body["input"]
    said = [item["content"] for item in items if item.get("role") == "user"]
    return text_of(said[-1]) if said else "", items[-1].get("type") == "function_call_output"


def whole(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    return _response(reply, body, "incomplete" if reply.is_cut else "completed", list(_items(reply)))


def events(reply: Reply, body: dict[str, Any]) -> Iterator[Event]:
    number = count()

    def event(kind: str, **fields: Any) -> Event:
        return kind, {"type": kind, "sequence_number": next(number), **fields}

    done = whole(reply, body)
    begun = {**_response(reply, body, "in_progress", []), "id": done["id"]}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for index, item in enumerate(_items(reply)):
        yield from _item_events(event, item, {"output_index": index, "item_id": item["id"]})
    yield event(f"response.{done['status']}", response=done)


def _item_events(event: Any, item: dict[str, Any], place: dict[str, Any]) -> Iterator[Event]:
    index = place["output_index"]
    begun = {**item, "status": "in_progress"} if "status" in item else item
    if item["type"] == "message":
        yield event("response.output_item.added", output_index=index, item={**begun, "content": []})
        part = item["content"][0]
        kind, name = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
        extra: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
        place = {**place, "content_index": 0}
        yield event("response.content_part.added", **place, part={**part, name: ""})
        for piece in pieces(part[name]):
            yield event(f"response.{kind}.delta", **place, delta=piece, **extra)
        yield event(f"response.{kind}.done", **place, **{name: part[name]}, **extra)
        yield event("response.content_part.done", **place, part=part)
    elif item["type"] == "function_call":
        yield event("response.output_item.added", output_index=index, item={**begun, "arguments": ""})
        for piece in pieces(item["arguments"]):
            yield event("response.function_call_arguments.delta", **place, delta=piece)
        yield event("response.function_call_arguments.done", **place, name=item["name"], arguments=item["arguments"])
    else:
        yield event("response.output_item.added", output_index=index, item=begun)
    yield event("response.output_item.done", output_index=index, item=item)


def _items(reply: Reply) -> Iterator[dict[str, Any]]:
    if reply.thought:
        yield {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": reply.thought}]}
    if reply.search:
        action = {"type": "search", "query": reply.search}
        yield {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": action}
    if reply.remote:
        named = {"id": "mcp_1", "type": "mcp_call", "server_label": "met", "name": "forecast", "status": "completed"}
        yield {**named, "arguments": '{"city": "Bergen"}', "output": reply.remote, "error": None}
    content: dict[str, Any] | None = None
    if reply.refusal:
        content = {"type": "refusal", "refusal": reply.refusal}
    elif reply.text:
        content = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
    if content:
        status = "incomplete" if reply.is_cut else "completed"
        yield {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": [content]}
    for number, call in enumerate(reply.calls):
        yield _call(call, number)


def _call(call: Call, number: int) -> dict[str, Any]:
    own = {"id": f"fc_{number}", "call_id": call.id, "name": call.name, "arguments": call.arguments}
    return {"type": "function_call", "status": "completed", **own}


def _response(reply: Reply, body: dict[str, Any], status: str, output: list[Any]) -> dict[str, Any]:
    is_over = status != "in_progress"
    return {
        "id": f"resp_{next(_numbers)}",
        "object": "response",
        "created_at": 1_750_000_000,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": f"{body['model']}-2026-01-01",
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "usage": _usage(reply.counts) if is_over and reply.counts else None,
    }


def _usage(counts: Counts) -> dict[str, Any]:
    return {
        "input_tokens": counts.read,
        "input_tokens_details": {"cached_tokens": counts.cached},
        "output_tokens": counts.wrote,
        "output_tokens_details": {"reasoning_tokens": counts.thought},
        "total_tokens": counts.read + counts.wrote,
    }
