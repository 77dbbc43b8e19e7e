"""Python providers of promptfoo as targets: calls `call_api(prompt, options, context)` of a file beside this one."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
from functools import cache
from pathlib import Path
from typing import Any


def call_provider(
    request: Any, *, file: str, function: str = "call_api", config: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Call the provider with the prompt of a request and return its output."""
    messages = request.input_messages
    alone = len(messages) == 1 and isinstance(messages[0].content, str)
    prompt = messages[0].content if alone else json.dumps([{"role": m.role, "content": m.content} for m in messages])
    result = getattr(_load(file), function)(prompt, {"config": config or {}}, {"vars": dict(request.vars or {})})
    if inspect.isawaitable(result):
        result = asyncio.run(_wait(result))
    if not isinstance(result, dict):
        return {"text": str(result)}
    if result.get("error"):
        return {"error": str(result["error"])}
    output = result.get("output")
    reply: dict[str, Any] = {"text": output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)}
    usage = result.get("tokenUsage") or result.get("token_usage") or {}
    if usage:
        names = {"prompt": "input_tokens", "completion": "output_tokens", "total": "total_tokens"}
        reply["tokens_usage"] = {ours: usage[theirs] for theirs, ours in names.items() if usage.get(theirs) is not None}
    if result.get("cost") is not None:
        reply["cost_usd"] = result["cost"]
    return {**reply, **(result.get("metadata") or {})}


async def _wait(result: Any) -> Any:
    return await result


@cache
def _load(file: str) -> Any:
    path = Path(__file__).parent / file
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        msg = f"{file} cannot be loaded"
        raise ValueError(msg)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
