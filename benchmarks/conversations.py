"""The conversations of the benchmarks: the same calls in each of the shapes that are read."""

from json import dumps
from typing import Any

Json = dict[str, Any]

CALLS = 10
"""Of one trajectory."""
_TOOLS = ("search_orders", "get_order", "check_stock", "quote_refund", "send_email")
_ONE_WRONG_IN = 5


def wrong_call(number: int, count: int = CALLS) -> int | None:
    """Return the index of the call with a wrong argument, if any; all indexes take turns."""
    return None if number % _ONE_WRONG_IN else number // _ONE_WRONG_IN % count


def make_calls(task: int, run: int, wrong: int | None = None, count: int = CALLS) -> list[Json]:
    """Compact calls whose arguments belong to the task, and whose ids and outputs to the run."""
    return [
        {
            "tool": _TOOLS[position % len(_TOOLS)],
            "input": {
                "order_id": f"order-{task:06}-{position}",
                "customer": {"id": task * count + position, "region": "eu"},
                "limit": 11 if position == wrong else 10,
            },
            "output": f"{position} of run {run}: found, paid, sent",
            "id": f"call_{run:06}_{position}",
        }
        for position in range(count)
    ]


def expect(calls: list[Json]) -> list[Json]:
    """The entries of `expected` that these calls meet."""
    return [{"tool": call["tool"], "input": call["input"]} for call in calls]


def compact(calls: list[Json]) -> list[Json]:
    """Messages in the contract's own form, one call each, its result beside it."""
    return [{"role": "assistant", "content": None, "tool_calls": [call]} for call in calls]


def openai(calls: list[Json]) -> list[Json]:
    """Messages in OpenAI's form, one call each, its arguments a JSON text and its result in a message of its own."""
    messages: list[Json] = []
    for call in calls:
        function = {"name": call["tool"], "arguments": dumps(call["input"])}
        called = [{"id": call["id"], "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": None, "tool_calls": called})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": call["output"]})
    return messages
