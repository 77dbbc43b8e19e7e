"""The model `strict`: it refuses what the real APIs refuse in a conversation, and says what it was told."""

from typing import Any, NamedTuple

from tests.fakes.model_server.chat import text_of
from tests.fakes.model_server.replies import Call, Reply

MODEL = "strict"


class Part(NamedTuple):
    """One thing of a conversation: a text of `user` or `assistant`, or the id of a `call` or a `result`."""

    kind: str
    value: str


class Ledger:
    """Replies that the Responses API keeps, each with the conversation that it ends."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Part]] = {}

    def read(self, body: dict[str, Any]) -> tuple[list[Part], str | None]:
        """Return the whole conversation of a request, and the reason to refuse it."""
        earlier: list[Part] | None = []
        if body.get("previous_response_id") is not None:
            earlier = self._kept.get(body["previous_response_id"])
        if earlier is None:
            return [], f"Previous response with id '{body['previous_response_id']}' not found."
        parts = [*earlier, *read_parts(body)]
        return parts, _reason(parts)

    def keep(self, sent: Any, parts: list[Part], reply: Reply) -> None:
        """Keep a reply of the Responses API, which was sent whole or with the last event."""
        whole = sent.get("response", sent) if isinstance(sent, dict) else {}
        if whole.get("object") == "response":
            said = [Part("assistant", reply.text)] if reply.text else []
            self._kept[whole["id"]] = [*parts, *said, *(Part("call", call.id) for call in reply.calls)]


def answer(parts: list[Part]) -> Reply:
    """Call a tool when the last message is about the weather, else repeat what was said so far."""
    said = [part.value for part in parts if part.kind == "user"]
    if "weather" in said[-1] and parts[-1].kind == "user":
        return Reply(None, calls=(Call(f"call_{len(parts)}", "get_weather", "{}"),))
    results = sum(part.kind == "result" for part in parts)
    return Reply(f"{' | '.join(said)} ({results} results)")


def read_parts(body: dict[str, Any]) -> list[Part]:
    """Return the conversation in a request of any of the three APIs."""
    items = body["messages"] if "messages" in body else body["input"]
    return [part for item in items for part in _parts_of(item)]


def _parts_of(item: dict[str, Any]) -> list[Part]:
    if item.get("type") == "function_call":
        return [Part("call", item["call_id"])]
    if item.get("type") == "function_call_output":
        return [Part("result", item["call_id"])]
    if item["role"] == "tool":
        return [Part("result", item["tool_call_id"])]
    content = item["content"]
    blocks = content if isinstance(content, list) else []
    results = [Part("result", block["tool_use_id"]) for block in blocks if block["type"] == "tool_result"]
    texts = [Part(item["role"], text)] if (text := text_of(content)) else []
    calls = [Part("call", block["id"]) for block in blocks if block["type"] == "tool_use"]
    return [*results, *texts, *calls, *(Part("call", call["id"]) for call in item.get("tool_calls") or ())]


def _reason(parts: list[Part]) -> str | None:
    """Return the reason why a real API refuses a conversation."""
    waiting: set[str] = set()
    for part in parts:
        if part.kind == "call":
            waiting.add(part.value)
        elif part.kind == "result" and part.value not in waiting:
            return f"the result {part.value} has no call before it"
        elif part.kind == "result":
            waiting.remove(part.value)
        elif waiting and part.kind == "user":
            return f"No tool output found for function call {min(waiting)}."
    return None
