"""Graders of the npm package AgentV as checks of agentv.

It reads the run that agentv writes to stdin, gives it to the program of its arguments in AgentV's form, and prints the
verdict in ours. `agentv convert-eval` puts this file beside an eval that needs it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def payload(run: dict[str, Any]) -> dict[str, Any]:
    """Return a run in the form that graders read, under the names of all versions."""
    case, settings, response = run["case"], run.get("config") or {}, run.get("response") or {}
    answer = run.get("candidate") or ""
    messages = run.get("output_messages") or [{"role": "assistant", "content": answer}]
    questions = case.get("input_messages") or []
    question = questions[-1].get("content") if questions else ""
    expected = case.get("expected_messages") or []
    reference = expected[-1].get("content") if expected else None
    usage = response.get("tokens_usage") or {}
    data = {
        "input": questions,
        "input_messages": questions,
        "input_files": [],
        "question": question,
        "criteria": settings.get("criteria", ""),
        "expected_outcome": settings.get("criteria", ""),
        "output": answer,
        "candidate_answer": answer,
        "expected_output": expected,
        "expected_messages": expected,
        "reference_answer": reference,
        "messages": messages,
        "output_messages": messages,
        "config": settings.get("config"),
        "metadata": case.get("metadata"),
        "trace_summary": run.get("trace_summary"),
        "token_usage": {"input": usage.get("input_tokens"), "output": usage.get("output_tokens")} if usage else None,
        "cost_usd": response.get("cost_usd"),
        "duration_ms": response.get("latency_ms"),
    }
    camel = {
        "".join([word if at == 0 else word.title() for at, word in enumerate(key.split("_"))]): key for key in data
    }
    return {**data, **{name: data[key] for name, key in camel.items() if name not in data}}


def verdict(ended: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return our verdict for what a grader printed, or for its exit code if it printed no JSON."""
    try:
        printed = json.loads(ended.stdout)
    except ValueError:
        printed = None
    if isinstance(printed, dict) and isinstance(printed.get("score"), (int, float)):
        asserted = [entry for entry in printed.get("assertions") or () if isinstance(entry, dict)]
        hits = [str(text) for text in printed.get("hits") or ()]
        misses = [str(text) for text in printed.get("misses") or ()]
        hits += [str(entry.get("text")) for entry in asserted if entry.get("passed")]
        misses += [str(entry.get("text")) for entry in asserted if not entry.get("passed")]
        return {"score": min(1.0, max(0.0, float(printed["score"]))), "hits": hits, "misses": misses}
    text = ended.stdout.strip()[:500]
    if ended.returncode == 0 and not ended.stderr.strip():
        return {"score": 1, "hits": [text or "the grader ended with exit code 0"]}
    if ended.stderr.strip():
        return {"error": f"exit code {ended.returncode}: {ended.stderr.strip()[-500:]}"}
    return {"score": 0, "misses": [text or f"the grader ended with exit code {ended.returncode}"]}


if __name__ == "__main__":
    run = json.load(sys.stdin)
    ended = subprocess.run(sys.argv[1:], input=json.dumps(payload(run)), capture_output=True, text=True, check=False)
    print(json.dumps(verdict(ended)))
