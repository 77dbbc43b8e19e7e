"""The conversation of a request, for agents that do not take all of it as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.conversation import Message
    from agentv.model.request import Request


def only_prompt(request: Request) -> str:
    """Return the prompt of a request that has no other messages; an agent that takes a text cannot be told more."""
    refuse_blocks(request.input_messages)
    if len(request.input_messages) != 1 or request.input_messages[0].role != "user":
        found = f"the input has {len(request.input_messages)} messages and this agent takes one text of the user's"
        msg = f"{found}: write a function that hands them to the agent"
        raise FormatError(msg)
    return request.prompt


def text_turns(request: Request, roles: Sequence[str] = ("system", "user", "assistant")) -> list[tuple[str, str]]:
    """Return the conversation as pairs of a role and a text, the last one the user's; anything else is refused."""
    refuse_blocks(request.input_messages)
    turns = [(message.role, message.text) for message in request.input_messages]
    odd = next((role for role, _ in turns if role not in roles), None)
    if odd is not None:
        msg = f"the input has a message of role {odd!r}: write a function that hands it to the agent"
        raise FormatError(msg)
    if any(message.tool_calls for message in request.input_messages):
        msg = "the input has earlier calls: write a function that hands them to the agent"
        raise FormatError(msg)
    if not turns or turns[-1][0] != "user":
        msg = "the input does not end with a message of the user's: write a function that hands it to the agent"
        raise FormatError(msg)
    return turns


def refuse_blocks(messages: Sequence[Message]) -> None:
    """Refuse content that is no text: an agent would be asked about a picture which it never got."""
    for message in messages:
        for block in message.content if isinstance(message.content, list) else ():
            if not isinstance(block.get("text"), str):
                kind = block.get("type", "unknown")
                msg = f"the input has a block of type {kind!r}: write a function that hands it to the agent"
                raise FormatError(msg)
