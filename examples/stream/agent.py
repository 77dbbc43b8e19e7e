"""A support agent in Python: `serve` reads the requests and writes the replies."""

import asyncio
from typing import Any

from agentv.agent import serve

ORDERS = {"A-17": "shipped", "B-42": "cancelled"}


async def agent(prompt: str) -> dict[str, Any]:
    """Answer one question; while this one waits for a model or a tool, others are answered."""
    print("asked", prompt)  # goes to stderr, where it disturbs nobody
    order = next((name for name in ORDERS if name in prompt), None)
    if order is None:
        return {"output_messages": [{"role": "assistant", "content": "Which order?"}]}
    await asyncio.sleep(0.01)  # a tool that takes its time
    call = {"tool": "find_order", "input": {"order_id": order}, "output": {"status": ORDERS[order]}}
    return {
        "output_messages": [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "assistant", "content": f"Your order is {ORDERS[order]}."},
        ]
    }


serve(agent)
