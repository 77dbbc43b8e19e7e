"""Plans of small evals."""

from typing import Any

from agentv.run.options import RunOptions
from agentv.run.plan import PlannedRun, plan_runs
from agentv.spec.loader import load_data

CHECK = {"type": "contains", "value": "x"}


def plan(*case_ids: str, **target: Any) -> list[PlannedRun]:
    """Return the runs of one case for each id, with a target of these settings."""
    cases = [{"id": each, "input": f"question {each}", "evaluators": [CHECK]} for each in case_ids]
    targets = [{"name": "scripted", "provider": "mock", "reply": "x", **target}]
    return list(plan_runs([load_data({"targets": targets, "cases": cases})], RunOptions()))
