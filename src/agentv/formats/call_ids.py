"""Ids for calls that came without one, in forms that demand them."""

from collections.abc import Iterable, Iterator
from itertools import count

from agentv.formats.results import RESULT_MESSAGE
from agentv.model.message import Message


def fresh_call_ids(messages: Iterable[Message]) -> Iterator[str]:
    """Give `call_0`, `call_1` and so on, leaving out whatever the conversation uses already."""
    used = set()
    for message in messages:
        used.add(message.tool_call_id)
        for call in message.tool_calls:
            used.add(call.id)
            record = (call.metadata or {}).get(RESULT_MESSAGE)
            if isinstance(record, dict) and isinstance(record.get("tool_call_id"), str):
                used.add(record["tool_call_id"])
    return (name for name in map("call_{}".format, count()) if name not in used)
