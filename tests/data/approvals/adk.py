"""An agent that may delete a file only if somebody agrees, and a function that asks it."""

from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types


class Scripted(BaseLlm):
    """Calls `delete_file`, whatever it is asked."""

    async def generate_content_async(self, llm_request: Any, **more: Any) -> AsyncIterator[LlmResponse]:
        """Say one step."""
        call = types.FunctionCall(name="delete_file", args={"path": "notes.txt"})
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))


def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


tools = [FunctionTool(delete_file, require_confirmation=True)]
runner = InMemoryRunner(LlmAgent(name="files", model=Scripted(model="scripted"), tools=tools))


async def agent(prompt: str) -> AsyncIterator[Any]:
    """Yield the events of one run."""
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="eval")
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    async for event in runner.run_async(user_id="eval", session_id=session.id, new_message=message):
        yield event
