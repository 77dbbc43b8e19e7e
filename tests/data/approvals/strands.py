"""An agent that may delete a file only if somebody agrees, and a function that asks it."""

from collections.abc import AsyncIterator
from typing import Any

from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.models import Model


class Scripted(Model):
    """Calls `delete_file`, whatever it is asked."""

    def update_config(self, **model_config: Any) -> None:
        """Take no settings."""

    def get_config(self) -> Any:
        """Return no settings."""
        return {}

    async def structured_output(self, *rest: Any, **more: Any) -> AsyncIterator[Any]:
        """Refuse."""
        raise NotImplementedError
        yield {}

    async def stream(self, *rest: Any, **more: Any) -> AsyncIterator[Any]:
        """Say one step."""
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "call_1", "name": "delete_file"}}}}
        yield {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"path": "notes.txt"}'}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use"}}
        yield {
            "metadata": {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}
        }


@tool
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


def approve(event: BeforeToolCallEvent) -> None:
    """Ask a person."""
    if event.interrupt("delete", reason=event.tool_use["input"]) == "no":
        event.cancel_tool = "no"


async def agent(prompt: str) -> Any:
    """Return the messages, and why the agent stopped."""
    files = Agent(model=Scripted(), tools=[delete_file], callback_handler=None)
    files.add_hook(approve, BeforeToolCallEvent)
    result = await files.invoke_async(prompt)
    waiting = [each.to_dict() for each in result.interrupts]
    return {"messages": files.messages, "stop_reason": result.stop_reason, "interrupts": waiting}
