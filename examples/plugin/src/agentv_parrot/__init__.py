"""A provider in a package of its own: a parrot that looks a word up and repeats what it was told."""

from typing import Literal

from agentv import Message, ProviderBase, ProviderResponse, Request, ToolCall, failure


class Parrot(ProviderBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Its fields are the keys that a target may have, checked like those of any other provider."""

    provider: Literal["parrot"] = "parrot"
    times: int = 1
    """How often it says it."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """Everything that is needed; `open` and `close` are there for those who keep a connection."""
        if not request.prompt:
            return failure("agent", "a parrot needs something to repeat")
        text = " ".join([request.prompt] * self.times)
        call = ToolCall(tool="listen", input={"words": request.prompt})
        message = Message(role="assistant", content=text, tool_calls=(call,))
        return ProviderResponse(text=text, output_messages=(message,))
