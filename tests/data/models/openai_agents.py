"""A model that looks up the weather in Paris and then says it."""

from typing import Any

from agents import Model, ModelResponse, Usage, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)


class Scripted(Model):
    """Call `get_weather` when a person spoke last, else repeat what it said."""

    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> ModelResponse:  # noqa: A002 - theirs
        """Say one step."""
        last = input[-1]
        if last.get("type") != "function_call_output":
            call = ResponseFunctionToolCall(
                call_id="call_1", name="get_weather", arguments='{"city": "Paris"}', type="function_call", id="fc_1"
            )
            return ModelResponse(output=[call], usage=counts(50, 10), response_id=None)
        text = ResponseOutputText(type="output_text", text=f"It is {last['output']} in Paris.", annotations=[])
        said = ResponseOutputMessage(id="m_1", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[said], usage=counts(70, 8), response_id=None)

    def stream_response(self, *rest: Any, **more: Any) -> Any:
        """Refuse."""
        raise NotImplementedError


def counts(given: int, made: int) -> Usage:
    return Usage(requests=1, input_tokens=given, output_tokens=made, total_tokens=given + made)


model = Scripted()
