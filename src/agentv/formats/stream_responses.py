"""A response of OpenAI's that comes in pieces; its last event holds it as a whole."""

from typing import Any

from agentv.formats.reading import OBJECT
from agentv.formats.sse import ServerEvent
from agentv.formats.stream_chat import event_object

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


class ResponsePieces:
    """Feed it events; when it `is_complete`, `body` is what would have come without streaming."""

    def __init__(self) -> None:
        self._items: dict[int, Any] = {}
        self._whole: dict[str, Any] | None = None
        self.error: Any = None
        """What the server sent in place of the rest."""

    def feed(self, event: ServerEvent) -> None:
        """Take in the next event."""
        if event.data.strip() == "[DONE]":  # some compatible servers end as chat completions do
            return
        told = event_object(event)
        kind = told.get("type") or event.event
        if kind == "error" or (told.get("error") is not None and kind not in _ENDS):
            self.error = told.get("error") or told
        elif kind == "response.output_item.done" and isinstance(told.get("item"), OBJECT):
            index = told.get("output_index")
            self._items[index if isinstance(index, int) else len(self._items)] = told["item"]
        elif kind in _ENDS and isinstance(told.get("response"), OBJECT):
            self._whole = dict(told["response"])

    @property
    def is_complete(self) -> bool:
        """Whether the reply has come to its end, as opposed to having been cut off."""
        return self._whole is not None

    @property
    def body(self) -> dict[str, Any]:
        """The response; its items as they came one by one, where the last event leaves them out."""
        whole = self._whole or {}
        if self._items and not whole.get("output"):
            return {**whole, "output": [self._items[index] for index in sorted(self._items)]}
        return whole
