"""An endpoint of Anthropic's Messages API whose model looks up the weather in Paris and then says it."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def steps(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], str, int, int]:
    """Choose the block to say, its delta, the reason to stop and the tokens: a call first, then its result."""
    content = body["messages"][-1]["content"]
    results = [block for block in content if isinstance(block, dict) and block.get("type") == "tool_result"]
    if not results and body.get("tools"):
        call = {"type": "tool_use", "id": "toolu_1", "name": "mcp__tools__get_weather", "input": {}}
        return call, {"type": "input_json_delta", "partial_json": '{"city": "Paris"}'}, "tool_use", 50, 10
    said = results[-1]["content"] if results else "Weather"
    words = said if isinstance(said, str) else said[0]["text"]
    text = f"It is {words} in Paris."
    return {"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn", 70, 8


def events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Write the answer as a stream."""
    block, delta, reason, given, made = steps(body)
    counts = {"input_tokens": given, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    yield {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": counts}}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    ending = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": made}}
    yield {"type": "message_stop"}


class Handler(BaseHTTPRequestHandler):
    """Answers every request for a message, and has nothing else."""

    def do_POST(self) -> None:
        """Stream one answer."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        found = self.path.partition("?")[0] == "/v1/messages"
        self.send_response(200 if found else 404)
        self.send_header("content-type", "text/event-stream" if found else "application/json")
        self.end_headers()
        for event in events(body) if found else ():
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *rest: Any) -> None:
        """Keep quiet."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
