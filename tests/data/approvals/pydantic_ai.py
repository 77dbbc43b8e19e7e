"""An agent that may delete a file only if somebody agrees."""

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel

asks = ModelResponse([ToolCallPart("delete_file", {"path": "notes.txt"}, "call_1")])
agent = Agent(FunctionModel(lambda messages, info: asks), output_type=[str, DeferredToolRequests])


@agent.tool_plain(requires_approval=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"
