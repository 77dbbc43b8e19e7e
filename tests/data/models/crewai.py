"""A model that looks up the weather in Paris and then says it."""

import logging
from types import SimpleNamespace
from typing import Any

from crewai import BaseLLM

logging.disable(logging.WARNING)  # it cannot count this model's tokens, and says so at each step


class Scripted(BaseLLM):
    """Call `get_weather` when a person spoke last, else repeat what it said."""

    def supports_function_calling(self) -> bool:
        """Tell that calls need not be written as text."""
        return True

    def call(self, messages: Any, *rest: Any, **more: Any) -> Any:
        """Say one step."""
        results = [message["content"] for message in messages if message["role"] == "tool"]
        given, made = (70, 8) if results else (50, 10)
        self._track_token_usage_internal(
            {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
        )
        if results:
            return f"It is {results[-1]} in Paris."
        function = SimpleNamespace(name="get_weather", arguments='{"city": "Paris"}')
        return [SimpleNamespace(id="call_1", type="function", function=function)]

    async def acall(self, *rest: Any, **more: Any) -> Any:
        """Say one step."""
        return self.call(*rest, **more)


model = Scripted(model="scripted")
