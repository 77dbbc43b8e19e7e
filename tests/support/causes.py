"""Runs of one case with seeded causes of failure, for the search for divergences."""

import random
from typing import NamedTuple

from agentv.model.conversation import ToolCall

CAUSES = ("no approval", "wrong region", "refunded twice", "order not found", "approval before policy")


class SeededRun(NamedTuple):
    """Calls of a run, and the cause why it failed; `None` if it passed."""

    calls: list[ToolCall]
    cause: str | None


def call(tool: str, **arguments: object) -> ToolCall:
    """Return a call that succeeded."""
    return ToolCall(tool=tool, input=arguments, output="ok")


def seeded_runs(seed: int, count: int = 200, failing: float = 0.5) -> list[SeededRun]:
    """Return runs with harmless differences (ids, texts, extra calls), of which some fail for one of five causes."""
    rng = random.Random(seed)  # noqa: S311 - nobody's secret hangs on it
    runs = []
    for _ in range(count):
        calls = _harmless_run(rng)
        cause = rng.choice(CAUSES) if rng.random() < failing else None
        runs.append(SeededRun(calls if cause is None else _spoil(calls, cause, rng), cause))
    return runs


def _harmless_run(rng: random.Random) -> list[ToolCall]:
    calls = [
        call("get_order", order_id="B-42", request_id=str(rng.random())),
        call("check_policy", region="EU"),
        call("ask_approval", amount=900),
        call("refund", order_id="B-42", amount=900),
        call("notify", text=str(rng.random())),
    ]
    if rng.random() < 0.3:
        calls.insert(rng.randrange(len(calls)), call("search", query=rng.choice("abcdefg")))
    if rng.random() < 0.2:
        calls.insert(0, call("think", thought=str(rng.random())))
    return calls


def _spoil(calls: list[ToolCall], cause: str, rng: random.Random) -> list[ToolCall]:
    places = {each.tool: index for index, each in enumerate(calls)}
    policy, approval = places["check_policy"], places["ask_approval"]
    if cause == "no approval":
        del calls[approval]
    elif cause == "wrong region":
        calls[policy] = call("check_policy", region=rng.choice(["US", "FR", "UK"]))
    elif cause == "refunded twice":
        calls.insert(places["refund"] + 1, calls[places["refund"]])
    elif cause == "order not found":
        order = calls[places["get_order"]]
        calls[places["get_order"]] = ToolCall(tool="get_order", input=order.input, status="error", error="not found")
    else:
        calls[policy], calls[approval] = calls[approval], calls[policy]
    return calls
