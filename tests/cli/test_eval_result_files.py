"""Result files stay the same byte for byte, except for times and ids; `AGENTV_REWRITE_DOCS=1` writes them anew."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Command

APPROVED = Path(__file__).parents[1] / "data" / "results"
MASKS = (
    (re.compile(rb'"execution_id":"[^"]*"'), b'"execution_id":"E"'),
    (re.compile(rb'"run_id":"[^"]*-([0-9a-f]+)"'), rb'"run_id":"E-\1"'),
    (re.compile(rb'"(started_at|completed_at)":"[^"]*"'), rb'"\1":"T"'),
    (re.compile(rb'"latency_ms":[0-9.e-]+'), b'"latency_ms":0'),
)
CALLS: list[dict[str, Any]] = [
    {"tool": "search", "input": {"query": "agents", "limit": 3}, "output": "two hits", "id": "a"},
    {"tool": "verify", "input": {"id": 7}, "duration_ms": 12},
    {"tool": "search", "input": {"query": "x" * 300}, "error": "no such index"},
]
REPLY: dict[str, Any] = {
    "text": "done: Zürich, 3 °C",
    "output_messages": [
        {"role": "assistant", "content": "let me see", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "a", "content": "two hits"},
        {"role": "assistant", "content": "done: Zürich, 3 °C"},
    ],
    "tokens_usage": {"input_tokens": 10, "output_tokens": 5},
    "cost_usd": 0.25,
    "thread_id": "t-1",
}
SECRET = "sk-ant-api03-" + "a1B2c3D4e5F6g7H8" * 4
TRAJECTORIES: list[dict[str, Any]] = [
    {"type": "tool_trajectory", "name": mode, "mode": mode, "expected": [{"tool": "search"}, {"tool": "verify"}]}
    for mode in ("exact", "in_order", "any_order", "superset", "subset")
]
CHECKS: list[dict[str, Any]] = [
    {"type": "contains", "value": "done"},
    {"type": "contains", "name": "not there", "value": "absent"},
    {"type": "word_count", "max": 2},
    {"type": "regex", "pattern": "z.rich", "ignore_case": True, "weight": 2},
    {"type": "tool_trajectory", "name": "arguments", "mode": "in_order", "score": "recall", "expected": [
        {"tool": "search", "input": {"query": "agents"}}, {"tool": "verify", "input": {"id": 8}},
    ]},
    {"type": "tool_trajectory", "name": "counts", "minimums": {"search": 2}, "maximums": {"verify": 0}},
]  # fmt: skip
SCRIPTED = [{"name": "scripted", "provider": "mock", "reply": REPLY}]
SUITES: dict[str, dict[str, Any]] = {
    "dataset": {
        "targets": SCRIPTED,
        "defaults": {"evaluators": TRAJECTORIES[1:2], "vars": {"place": "Bern"}, "tags": ["nightly"]},
        "dataset": "cases.jsonl",
    },
    "trajectories": {"targets": SCRIPTED, "cases": [{"id": "all", "input": "go", "evaluators": TRAJECTORIES}]},
    "checks": {
        "targets": SCRIPTED,
        "defaults": {"threshold": 0.5},
        "cases": [
            {"id": "mixed", "input": "go", "evaluators": CHECKS, "metadata": {"team": "a"}},
            {"id": "strict", "input": "go", "evaluators": CHECKS, "threshold": 1, "repeat": 2},
            {"id": "never", "input": "go", "skip": "not yet", "evaluators": CHECKS[:1]},
        ],
    },
    "replies": {
        "targets": [
            {"name": "plain", "provider": "mock", "reply": ["a text only", {"text": f"key {SECRET}"}]},
            {"name": "failing", "provider": "mock", "fail_rate": 1, "retries": 0},
            {"name": "unread", "provider": "mock", "reply": {
                "text": "x", "output_messages": [
                    {"role": "assistant", "content": [{"type": "mystery", "value": 1}], "tool_calls": CALLS[:1]},
                ],
            }},
            {"name": "unnamed", "provider": "mock", "reply": {
                "text": "x", "output_messages": [{"role": "assistant", "tool_calls": [{"tool": ""}, *CALLS]}],
            }},
            {"name": "trace", "provider": "mock", "reply": {
                "text": "x", "trace": [{"type": "tool_call", "name": "search", "input": {"a": 1}}],
            }},
            {"name": "echo", "provider": "mock"},
        ],
        "cases": [
            {"id": f"case-{at}", "input": f"say {at}", "evaluators": [*TRAJECTORIES[1:3], CHECKS[0]]} for at in range(2)
        ],
    },
    "expected": {
        "targets": SCRIPTED,
        "cases": [
            {"id": "golden", "input": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "go"}],
             "expected_messages": [{"role": "assistant", "tool_calls": [{"tool": "search"}]}]},
            {"id": "long", "input": "word " * 400, "evaluators": CHECKS[:1]},
        ],
    },
    "conversation": {
        "targets": [{"name": "scripted", "provider": "mock", "reply": [REPLY, {**REPLY, "text": "second"}]}],
        "cases": [{
            "id": "talk", "turns": [{"user": "one"}, {"user": "two", "evaluators": CHECKS[:2]}],
            "evaluators": [TRAJECTORIES[1]],
        }],
    },
}  # fmt: skip
LINES = (
    '{"id": "first", "input": "question {{ place }}"}\n'
    '{"id": "second", "input": "question", "vars": {"place": "Basel"}, "tags": ["slow"], "threshold": 0.2}\n'
    '{"id": "third", "input": {"role": "user", "content": "äöü \\u0000 \\" {{ place }}"}, "metadata": {"n": 1}}\n'
    '{"id": "fourth", "input": "q", "evaluators": [{"type": "contains", "value": "absent"}]}\n'
)


@pytest.mark.parametrize("store", ["kept", "--no-store"])
@pytest.mark.parametrize("name", SUITES)
def test_a_result_file_is_as_approved(run: Command, name: str, store: str) -> None:
    run.write("cases.jsonl", LINES)
    run.write("suite.eval.yaml", SUITES[name])
    options = ["--no-store"] if store == "--no-store" else []
    run("eval", "suite.eval.yaml", "--out", "results.jsonl", "-q", *options)
    found = (run.folder / "results.jsonl").read_bytes()
    for pattern, label in MASKS:
        found = pattern.sub(label, found)
    approved = APPROVED / f"{name}.jsonl"
    if os.environ.get("AGENTV_REWRITE_DOCS"):
        approved.write_bytes(found)
    assert found == approved.read_bytes()
