"""A refund agent small enough to read: rules instead of a model, so it needs no key and always does the same.

agentv calls `reply` once for each turn, with the whole conversation so far.
"""

import re
from typing import Any

ORDERS = {"A-17": {"amount": 30, "region": "EU"}, "B-42": {"amount": 900, "region": "EU"}}


def reply(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the messages that the agent adds to the conversation."""
    said = " ".join(message["content"] for message in messages if message["role"] == "user")
    order_id = next((name for name in ORDERS if name in said), None)
    mail = re.search(r"[\w.]+@[\w.]+\w", said)
    if order_id is None:
        return answer("I am sorry to hear that. Which order is it?")
    if mail is None:
        order = ORDERS[order_id]
        calls = [call("get_order", order, order_id=order_id), call("check_policy", "allowed", region=order["region"])]
        return answer(f"I can refund {order['amount']} EUR. Please tell me your mail address.", calls)
    # Large sums need an approval, which this agent forgets: that is the failure to find.
    calls = [call("refund", "done", order_id=order_id, amount=ORDERS[order_id]["amount"], mail=mail[0])]
    return answer(f"Your refund of order {order_id} is done.", calls)


def call(tool: str, output: Any, **arguments: Any) -> dict[str, Any]:
    """Call a tool: here its output is known beforehand."""
    return {"tool": tool, "input": arguments, "output": output}


def answer(text: str, calls: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return an answer, after a message with the calls if there are any."""
    before = [{"role": "assistant", "tool_calls": calls}] if calls else []
    return {"output_messages": [*before, {"role": "assistant", "content": text}]}
