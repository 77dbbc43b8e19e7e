"""The cost of all evaluators on one transcript, compared with reading it."""

import asyncio
from collections.abc import Callable
from functools import partial
from json import dumps

import agentv
from agentv.registry import EVALUATORS
from benchmarks.clock import best_of
from benchmarks.conversations import Json, expect, make_calls, openai
from benchmarks.table import Bar, Row

_ROUNDS = 12
_SIZE = 20_000
"""Bytes of the transcript, more or less."""
_AT_ONCE = 20
"""Replies an event loop is entered for: `agentv eval` enters it once for all."""
_BAR = Bar("at most", 20)
_TOP = 3
_NOT_IN_PROCESS = {"code", "llm_judge", "trajectory_judge", "panel"}
"""They wait for a program or a model."""
_SENTENCES = "".join(f"Order {number} was paid on Monday and left the warehouse on Tuesday.\n" for number in range(20))
_DATA = {"status": "shipped", "days": 2, "orders": [{"id": number, "total": 12.5} for number in range(5)]}
_ANSWER = f"Good morning, Ada.\n{_SENTENCES}```json\n{dumps(_DATA)}\n```\nAnything else?"
_SCHEMA: Json = {
    "type": "object",
    "required": ["status", "orders"],
    "properties": {"days": {"type": "integer"}, "orders": {"type": "array", "items": {"required": ["id"]}}},
}


def measure() -> list[Row]:
    """The whole set as `agentv eval` and as `agentv.score` run it, then the evaluators that cost most."""
    calls, record = _transcript()
    configs = _configs(calls)
    assert {config["type"] for config in configs} == set(EVALUATORS) - _NOT_IN_PROCESS
    golden = openai(calls)
    scorers = [agentv.Scorer(configs, expected_messages=golden), *[_alone(config, golden) for config in configs]]
    for scorer in scorers:
        result = scorer.score(agentv.decode_response_json(record))
        assert result.status == "pass", [(found.type, found.misses, found.details) for found in result.evaluators]
    with asyncio.Runner() as loop:
        decode = partial(agentv.decode_response_json, record)
        jobs = [partial(_in_loop, loop, scorer, decode) for scorer in scorers]
        library = partial(_in_library, scorers[0], decode)
        reading, whole, *alone, in_library = best_of(_ROUNDS, decode, *jobs, library)
    # What is decoded anew for every job, so that nothing is remembered from one to the next, is not theirs.
    costs = {config["type"]: each / _AT_ONCE - reading for config, each in zip(configs, alone, strict=True)}
    dearest = sorted(costs, key=lambda name: costs[name], reverse=True)[:_TOP]
    row = partial(Row, unit="seconds", other=reading)
    size = f"{len(record) / 1_000:.0f} KB"
    return [
        row(name=f"evaluators: all {len(configs)}, {size}, in the loop", ours=whole / _AT_ONCE - reading, bar=_BAR),
        row(name=f"evaluators: all {len(configs)}, {size}, agentv.score", ours=in_library - reading),
        *[row(name=f"evaluators: {name} alone", ours=costs[name]) for name in dearest],
    ]


def _transcript() -> tuple[list[Json], bytes]:
    """As many calls as make up the size, and an answer to look at."""
    calls: list[Json] = []
    record = b""
    while len(record) < _SIZE:
        calls = make_calls(1, 1, count=len(calls) + 1)
        reply = {
            "output_messages": [*openai(calls), {"role": "assistant", "content": _ANSWER}],
            "usage": {"input_tokens": 6_000, "output_tokens": 900},
            "cost_usd": 0.012,
            "latency_ms": 840.5,
        }
        record = dumps(reply).encode()
    return calls, record


def _configs(calls: list[Json]) -> list[Json]:
    """Every evaluator that runs in this process, with something to do, and passing."""
    inner: list[Json] = [
        {"type": "contains", "all": ["paid", "Tuesday"]},
        {"type": "tool_call_count", "tool": "get_*", "min": 1},
        {"type": "no_tool_errors"},
    ]
    near = f"Hello, Ada.{_ANSWER[18:-1]}!"  # no common beginning or end that need not be compared
    return [
        {"type": "tool_trajectory", "mode": "in_order", "expected": expect(calls)},
        {"type": "expected_messages"},
        {"type": "equals", "on": "tool_calls[get_order][0].input", "value": calls[1]["input"]},
        {"type": "contains", "all": ["Monday", "shipped"], "none": ["sorry"], "ignore_case": True},
        {"type": "starts_with", "value": ["Hello", "Good morning"]},
        {"type": "ends_with", "value": "?", "trim": True},
        {"type": "regex", "pattern": r"(?i)order \d+ was (paid|sent) on \w+day and left.*Tuesday\.\n```"},
        {"type": "json", "fenced": True, "matches": {"days": {"$lte": 3}}, "schema": _SCHEMA},
        {"type": "levenshtein", "value": near, "threshold": 0.9},
        {"type": "word_count", "min": 2, "max": 500},
        {"type": "token_budget", "max_total": 8_000, "max_output": 2_000},
        {"type": "tool_call_count", "tool": "search_*", "min": 1, "max": 50},
        {"type": "latency_budget", "max_ms": 2_000},
        {"type": "cost_budget", "max_usd": 0.05},
        {"type": "turn_budget", "max": 200},
        {"type": "step_budget", "max": 200},
        {"type": "conversation_turns", "max": 1},
        {"type": "no_tool_errors"},
        {"type": "no_redundant_calls", "ignore": ["limit"]},
        {"type": "retries", "max": 1},
        {"type": "loop_detection"},
        {"type": "tool_order", "rules": ["search_orders before get_order", {"never": "search_*", "after": "log_out"}]},
        {"type": "refusal", "expected": False},
        {"type": "all_of", "evaluators": inner},
        {"type": "any_of", "evaluators": inner},
        {"type": "at_least", "n": 2, "evaluators": inner},
        {"type": "python", "function": "agentv.evaluators.python:max_words", "config": {"most": 500}},
    ]


def _alone(config: Json, golden: list[Json]) -> agentv.Scorer:
    return agentv.Scorer([config], expected_messages=golden if config["type"] == "expected_messages" else None)


def _in_loop(loop: asyncio.Runner, scorer: agentv.Scorer, decode: Callable[[], agentv.ProviderResponse]) -> None:
    """One reply after another, each decoded first."""

    async def score() -> None:
        for _ in range(_AT_ONCE):
            await scorer.ascore(decode())

    loop.run(score())


def _in_library(scorer: agentv.Scorer, decode: Callable[[], agentv.ProviderResponse]) -> agentv.RunResult:
    return scorer.score(decode())
