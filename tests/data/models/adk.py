"""A model that looks up the weather in Paris and then says it."""

from collections.abc import AsyncIterator
from typing import Any

from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


class Scripted(BaseLlm):
    """Call `get_weather` when a person spoke last, else repeat what it said."""

    async def generate_content_async(self, llm_request: Any, **more: Any) -> AsyncIterator[LlmResponse]:
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None:
            part = types.Part(function_call=types.FunctionCall(name="get_weather", args={"city": "Paris"}))
            yield said(part, 50, 10)
        else:
            part = types.Part(text=f"It is {last.function_response.response['result']} in Paris.")
            yield said(part, 70, 8)


def said(part: types.Part, given: int, made: int) -> LlmResponse:
    counts = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=given, candidates_token_count=made, total_token_count=given + made
    )
    return LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=counts)


model = Scripted(model="scripted")
