"""Example of a provider in its own package: a parrot that calls a tool and repeats the prompt."""

from typing import Literal

from agentv import Message, ProviderBase, ProviderResponse, Request, ToolCall, failure


class Parrot(ProviderBase, kw_only=True):
    """Its fields are the keys that a target may have, checked like those of any other provider."""

    provider: Literal["parrot"] = "parrot"
    times: int = 1
    """The number of repetitions."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the reply to one request; a provider with a connection returns a session from `open` instead."""
        if not request.prompt:
            return failure("agent", "a parrot needs something to repeat")
        text = " ".join([request.prompt] * self.times)
        call = ToolCall(tool="listen", input={"words": request.prompt})
        message = Message(role="assistant", content=text, tool_calls=(call,))
        return ProviderResponse(text=text, output_messages=(message,))
