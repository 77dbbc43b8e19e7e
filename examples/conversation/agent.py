"""An agent that asks back until it knows the order, and pays once."""

import re
from typing import Any


def reply(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the messages of one turn; `messages` is the whole conversation."""
    said = " ".join(str(message.get("content")) for message in messages if message["role"] == "user")
    order = re.search(r"[A-Z]-\d+", said)
    if order is None:
        return [{"role": "assistant", "content": "What is the number of your order?"}]
    call = {"tool": "refund", "input": {"order_id": order[0]}, "output": "done"}
    return [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "assistant", "content": f"I have refunded order {order[0]}."},
    ]
