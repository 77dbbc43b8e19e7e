"""A scripted server with both APIs of OpenAI: it asks for two calls, then for one that fails, then it answers."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def next_message(turn: int, results: int) -> dict[str, Any]:
    """Return the next message of the model by the number of the turn and of results in it."""
    if turn == 1 and results == 0:
        calls = [call("call_1a", "add", a=1, b=2), call("call_1b", "add", a=3, b=4)]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    if turn == 1 and results == 2:
        return {"role": "assistant", "content": "Let me try.", "tool_calls": [call("call_1c", "boom", x="y")]}
    if turn > 1 and results == 0:
        return {"role": "assistant", "content": None, "tool_calls": [call("call_2d", "add", a=5, b=6)]}
    return {"role": "assistant", "content": f"done {turn}"}


class Handler(BaseHTTPRequestHandler):
    """Answers requests of chat completions and of responses."""

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = self.response(body) if self.path.endswith("/responses") else self.completion(body)
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    @staticmethod
    def completion(body: dict[str, Any]) -> dict[str, Any]:
        roles = [message["role"] for message in body["messages"]]
        last = max(at for at, role in enumerate(roles) if role == "user")
        results = roles[last:].count("tool")
        message = next_message(roles.count("user"), results)
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        return {
            "id": f"chatcmpl-{roles.count('user')}{results}",
            "object": "chat.completion",
            "created": 1794833245,
            "model": "gpt-test",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {
                "prompt_tokens": 50 + results,
                "completion_tokens": 10,
                "total_tokens": 60 + results,
                "prompt_tokens_details": {"cached_tokens": 8},
            },
        }

    @staticmethod
    def response(body: dict[str, Any]) -> dict[str, Any]:
        items = body["input"] if isinstance(body["input"], list) else [{"role": "user"}]
        results = sum(item.get("type") == "function_call_output" for item in items)
        message = next_message(1, results)
        output: list[dict[str, Any]] = [
            {"type": "function_call", "id": f"fc_{each['id']}", "call_id": each["id"], "status": "completed"}
            | each["function"]
            for each in message.get("tool_calls", [])
        ]
        if not output:
            content = [{"type": "output_text", "text": message["content"], "annotations": []}]
            output = [
                {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
            ]
        return {
            "id": f"resp_{results}",
            "object": "response",
            "created_at": 1794833245,
            "status": "completed",
            "model": "gpt-test",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": 50 + results,
                "output_tokens": 10,
                "total_tokens": 60 + results,
                "input_tokens_details": {"cached_tokens": 8},
                "output_tokens_details": {"reasoning_tokens": 2},
            },
        }


SERVER = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=SERVER.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{SERVER.server_port}/v1"
