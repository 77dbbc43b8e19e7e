"""The cost of reading a reply into the model, compared with parsing its JSON."""

from collections.abc import Callable
from functools import partial
from json import dumps, loads

import agentv
from benchmarks.clock import best_of
from benchmarks.conversations import Json, compact, make_calls, openai
from benchmarks.table import Bar, Row

_ROUNDS = 40
_SIZE = 20_000
"""Bytes of a record, more or less."""
_BAR = Bar("at most", 2)
_WORDS = "The order was paid on Monday and left the warehouse on Tuesday.\n"


def measure() -> list[Row]:
    """Three records of the same size that look as different as replies do."""
    records = {
        "few long messages": _record(lambda size: _talk(size * 1_000), 1),
        "many small calls, compact": _record(
            lambda size: [{"role": "assistant", "tool_calls": _small_calls(size)}], 10
        ),
        "one call a message, OpenAI": _record(lambda size: openai(make_calls(1, 1, count=size)), 1),
        "one call a message, compact": _record(lambda size: compact(make_calls(1, 1, count=size)), 1),
    }
    rows = []
    for name, record in records.items():
        decode, parse = partial(agentv.decode_response_json, record), partial(loads, record)
        response = decode()
        assert response.success
        assert not response.warnings
        ours, floor = best_of(_ROUNDS, decode, parse)
        rows.append(Row(name=f"decode: {name}", unit="seconds", ours=ours, other=floor, bar=_BAR))
    return rows


def _record(messages: Callable[[int], list[Json]], step: int) -> bytes:
    """A reply with as many messages as make up the size."""
    size, record = step, b""
    while len(record) < _SIZE:
        record = dumps({"output_messages": messages(size)}).encode()
        size += step
    return record


def _talk(length: int) -> list[Json]:
    text = (_WORDS * (length // len(_WORDS) + 1))[:length]
    return [
        {"role": "assistant", "content": text[: length // 2]},
        {"role": "assistant", "content": None, "tool_calls": make_calls(1, 1, count=2)},
        {"role": "assistant", "content": text[length // 2 :]},
    ]


def _small_calls(count: int) -> list[Json]:
    return [
        {"tool": "get_order", "input": {"order_id": number, "fields": ["status", "total"]}, "output": {"total": 12.5}}
        for number in range(count)
    ]
