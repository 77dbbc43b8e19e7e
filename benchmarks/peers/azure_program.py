"""Run the cases of a file through azure-ai-evaluation: a program for an environment of its own."""

import json
import sys
from pathlib import Path
from typing import Any

from azure.ai.evaluation import evaluate  # type: ignore[import-not-found]  # installed there, not here


async def _agent(query: str) -> dict[str, Any]:
    """A coroutine: a plain function would be run in a thread, and slower."""
    return {
        "response": f"ok: {query}",
        "calls": [{"tool": "search", "input": {"query": "agents"}}, {"tool": "verify"}],
    }


def main(expected: str, source: str, target: str) -> None:
    """Have it read, run, evaluate and write."""
    tools = json.loads(Path(expected).read_text())

    async def trajectory(calls: list[dict[str, Any]]) -> dict[str, Any]:
        """The expected calls, in order, others allowed in between."""
        made = iter([call["tool"] for call in calls])
        missing = [tool for tool in tools if tool not in made]
        return {"passed": not missing, "missing": ", ".join(missing)}

    evaluate(data=source, target=_agent, evaluators={"trajectory": trajectory}, output_path=target)


if __name__ == "__main__":
    main(*sys.argv[1:])
