"""Where the parts of a reply stand, as the settings say."""

from msgspec import Struct

POINTERS = ("text", "messages", "tool_calls", "usage", "cost", "thread_id", "error")


class Pointers(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the parts of a reply stand, each a JSON pointer."""

    text: str | None = None
    """The answer; in a stream its next piece, in each event."""
    messages: str | None = None
    """What the agent added to the conversation: messages in any shape, or one of them."""
    tool_calls: str | None = None
    """The calls that the agent made, where they do not stand in messages."""
    usage: str | None = None
    """Token counts in any provider's shape."""
    cost: str | None = None
    """What it cost, in US dollars."""
    thread_id: str | None = None
    """The conversation's id, which the next turn sends."""
    error: str | None = None
    """What is there when the agent failed, and absent, null, false or empty when it did not."""
    sum_usage: bool = False
    """In a stream: whether each event's counts and cost are a step's own, to be added up; else the last one counts."""

    @property
    def tell_answer(self) -> bool:
        """Whether they say what the answer is, so that no shape has to be recognised."""
        return not (self.text is self.messages is self.tool_calls is None)

    @property
    def lead_anywhere(self) -> bool:
        """Whether there are any."""
        return any(getattr(self, name) is not None for name in POINTERS)
