"""Fixed replies of the server's models, by the name of the model."""

import json
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A call that a model makes."""

    id: str
    name: str
    arguments: str


class Counts(NamedTuple):
    """The tokens of a reply: `read` and `wrote` are totals, the others are parts of them."""

    read: int = 12
    wrote: int = 7
    cached: int = 0
    written: int = 0
    thought: int = 0


class Reply(NamedTuple):
    """The reply of a model."""

    text: str | None = None
    calls: tuple[Call, ...] = ()
    thought: str | None = None
    refusal: str | None = None
    search: str | None = None
    """The query of the vendor's own search before the text."""
    remote: str | None = None
    """The result of an MCP tool that the vendor calls; only the Responses API reports it."""
    is_cut: bool = False
    """True if the limit of tokens ended it."""
    counts: Counts | None = Counts()


LONG = "The weather in Zürich is fine: 18 °C. 🌤 " * 3
WEATHER = Call("call_weather", "get_weather", '{"city": "Zürich", "days": [1, 2]}')
TIME = Call("call_time", "get_time", "{}")

FIXED = {
    "words": Reply(LONG),
    "tools": Reply("Let me look.", calls=(WEATHER, TIME)),
    "silent-tools": Reply(None, calls=(WEATHER,)),
    "bad-arguments": Reply(None, calls=(Call("call_bad", "get_weather", '{"city": "Par'),)),
    "thinking": Reply("42", thought="Six times seven is forty-two.", counts=Counts(20, 30, thought=25)),
    "refusal": Reply(None, refusal="I cannot help with that."),
    "cut-by-length": Reply("It was a dark and", is_cut=True),
    "search": Reply("It rains in Bergen.", search="weather bergen"),
    "remote": Reply("It rains in Bergen.", remote="rain"),
    "cached": Reply("Yes.", counts=Counts(1000, 3, cached=900, written=50)),
    "no-usage": Reply("Yes.", counts=None),
    "user": Reply('{"message": "It is order A-17.", "stop": false, "reason": "asked"}'),
    "inventing-user": Reply('{"message": "It is order B-99.", "stop": false, "reason": "asked"}'),
}


def reply_of(model: str, prompt: str, *, has_results: bool) -> Reply:
    """The answer of this model; after the results of tools it is always a text."""
    if has_results:
        return Reply("It is 18 degrees.", counts=Counts(40, 6))
    return FIXED.get(model) or Reply(f"You said: {prompt}")


def pieces(text: str, size: int = 7) -> list[str]:
    """A text as a model streams it."""
    return [text[at : at + size] for at in range(0, len(text), size)]


Event = tuple[str | None, Any]
"""The name of an event, where it has one, and what it holds."""


def written(event: Event) -> bytes:
    """An event as it stands on the wire."""
    name, data = event
    head = f"event: {name}\n" if name else ""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{head}data: {text}\n\n".encode()
