"""A model that looks up the weather in Paris and then says it."""

import json
from collections.abc import AsyncIterator
from typing import Any

from strands.models import Model


class Scripted(Model):
    """Call `get_weather` when a person spoke last, else repeat what it said."""

    def update_config(self, **model_config: Any) -> None:
        """Take no settings."""

    def get_config(self) -> Any:
        """Return no settings."""
        return {}

    async def structured_output(self, *rest: Any, **more: Any) -> AsyncIterator[Any]:
        """Refuse."""
        raise NotImplementedError
        yield {}

    async def stream(self, messages: Any, *rest: Any, **more: Any) -> AsyncIterator[Any]:
        """Say one step."""
        result = messages[-1]["content"][-1].get("toolResult")
        yield {"messageStart": {"role": "assistant"}}
        if result is None:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "call_1", "name": "get_weather"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps({"city": "Paris"})}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": f"It is {result['content'][0]['text']} in Paris."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if result else "tool_use"}}
        given, made = (70, 8) if result else (50, 10)
        counts = {"inputTokens": given, "outputTokens": made, "totalTokens": given + made}
        yield {"metadata": {"usage": counts, "metrics": {"latencyMs": 1}}}


model = Scripted()
