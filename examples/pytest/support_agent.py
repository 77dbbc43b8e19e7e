"""An agent as a function."""

from typing import Any


def agent(prompt: str) -> list[dict[str, Any]]:
    """Search, then answer."""
    call = {"tool": "search", "input": {"query": prompt}, "output": "3 results"}
    return [{"role": "assistant", "content": "Under Settings.", "tool_calls": [call]}]
