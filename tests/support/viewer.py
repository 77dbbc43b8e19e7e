"""A store with runs of every outcome, made by a real execution, for tests of lists, the viewer and the report."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from agentv.stores.sqlite.store import SqliteStore
from tests.support.command import Command, Result

ORDER = {"tool": "get_order", "input": {"order_id": "B-42"}, "output": {"total": 900}, "duration_ms": 12.5}
REFUND = {"tool": "refund", "input": {"order_id": "B-42", "amount": 900}, "output": "ok", "duration_ms": 40}
APPROVAL = {"tool": "ask_approval", "input": {"amount": 900}, "output": True, "duration_ms": 1000}


def reply(*calls: dict[str, Any], text: str = "It is done.", **more: Any) -> dict[str, Any]:
    """Return a reply with these calls, in the compact shape."""
    messages = [{"role": "assistant", "content": "One moment.", "tool_calls": list(calls)}] if calls else []
    messages.append({"role": "assistant", "content": text})
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {"text": text, "output_messages": messages, "tokens_usage": usage, "cost_usd": 0.002, **more}


def support_eval() -> dict[str, Any]:
    """Return an eval with two targets: a careful agent, and one that forgets the approval."""
    check = {"name": "approval first", "type": "tool_trajectory", "mode": "in_order"}
    expected = [{"tool": name} for name in ("get_order", "ask_approval", "refund")]
    cases = [
        {"id": f"refund-{number}", "input": f"Refund order B-4{number}, please.", "tags": ["money", f"n{number % 2}"],
         "evaluators": [{**check, "expected": expected}]}
        for number in range(4)
    ]  # fmt: skip
    greeting = [{"type": "tool_trajectory", "maximums": {"*": 9}}]
    cases.append({"id": "greeting", "input": "Hello!", "evaluators": greeting})
    hasty = reply(ORDER, REFUND, text="Done, friend.")
    return {
        "targets": [
            {"name": "careful", "provider": "mock", "reply": reply(ORDER, APPROVAL, REFUND)},
            {"name": "hasty", "provider": "mock", "reply": [*[hasty] * 4, reply(text="Hello.")]},
        ],
        "cases": cases,
    }


def in_thread(run: Command, *args: str) -> Result:
    """Run a command in a thread of this process: in that of a test, Playwright has an event loop of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run, *args).result()


def write_store(run: Command, *options: str, data: dict[str, Any] | None = None, name: str = "support") -> str:
    """Run an eval in the folder of the command; return the id of its execution."""
    file = run.folder / f"{name}.eval.yaml"
    file.write_text(yaml.safe_dump(data or support_eval(), sort_keys=False), encoding="utf-8")
    done = in_thread(run, "eval", file.name, "--json", *options)
    assert done.code in (0, 1, 3), done.err
    return str(done.lines[-1]["execution_id"])


def open_store(run: Command) -> SqliteStore:
    """Open the store of the folder."""
    return SqliteStore(store_file(run))


def store_file(run: Command) -> Path:
    """Return the file of the store."""
    return run.folder / ".agentv" / "runs.db"
