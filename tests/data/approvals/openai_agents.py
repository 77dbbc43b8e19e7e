"""An agent that may delete a file only if somebody agrees."""

from typing import Any

from agents import Agent, Model, ModelResponse, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall

set_tracing_disabled(True)
CALL = {"call_id": "call_1", "name": "delete_file", "arguments": '{"path": "notes.txt"}', "type": "function_call"}


class Scripted(Model):
    """Calls `delete_file`, whatever it is asked."""

    async def get_response(self, *rest: Any, **more: Any) -> ModelResponse:
        """Say one step."""
        return ModelResponse(output=[ResponseFunctionToolCall(**CALL)], usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **more: Any) -> Any:
        """Refuse."""
        raise NotImplementedError


@function_tool(needs_approval=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


agent = Agent(name="Files", model=Scripted(), tools=[delete_file])
