"""A model that looks up the weather in Paris and then says it."""

from typing import Any

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage


def say(messages: Any, info: Any) -> ModelResponse:
    """Call `get_weather` when a person spoke last, else repeat what it said."""
    last = messages[-1].parts[-1]
    if last.part_kind == "user-prompt":
        call = ToolCallPart("get_weather", {"city": "Paris"}, "call_1")
        return ModelResponse([call], usage=RequestUsage(input_tokens=50, output_tokens=10))
    text = TextPart(f"It is {last.content} in Paris.")
    return ModelResponse([text], usage=RequestUsage(input_tokens=70, output_tokens=8))


model = FunctionModel(say)
