"""Google ADK with its own instrumentation: parallel calls, a failing tool, and two turns of one session."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from typing import Any

from common import save
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types


def call(name: str, **arguments: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


class ScriptedModel(BaseLlm):
    """Model that says what the number of results since the last user message asks for."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        del stream
        results = users = 0
        for content in llm_request.contents:
            parts = content.parts or []
            if any(part.text for part in parts) and content.role == "user":
                users, results = users + 1, 0
            results += sum(part.function_response is not None for part in parts)
        if users == 1 and results == 0:
            parts = [call("add", a=1, b=2), call("add", a=3, b=4)]
        elif users == 1 and results == 2:
            parts = [types.Part(text="Let me try."), call("boom", x="y")]
        elif users > 1 and results == 0:
            parts = [call("add", a=5, b=6)]
        else:
            parts = [types.Part(text=f"done {users}")]
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=50 + results, candidates_token_count=10, total_token_count=60 + results
        )
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage)


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def boom(x: str) -> dict[str, str]:
    """Fail."""
    return {"error": f"no {x}"}


async def main() -> None:
    agent = LlmAgent(name="math", model=ScriptedModel(model="test"), instruction="You add.", tools=[add, boom])
    runner = InMemoryRunner(agent, app_name="emitter")
    session = await runner.session_service.create_session(app_name="emitter", user_id="u", session_id="session-adk")
    for text in ("add things", "more"):
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass
    save(sys.argv[1])


asyncio.run(main())
