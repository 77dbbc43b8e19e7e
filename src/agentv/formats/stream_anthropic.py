"""A message of Anthropic's that comes in pieces, put together again."""

from collections.abc import Mapping
from typing import Any

from agentv.formats.calls import parse_arguments
from agentv.formats.reading import OBJECT
from agentv.formats.sse import ServerEvent
from agentv.formats.stream_chat import event_object

_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class MessagePieces:
    """Feed it events; when it `is_complete`, `body` is what would have come without streaming."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[Any, _Block] = {}
        self._stopped = False
        self.error: Any = None
        """What the server sent in place of the rest."""

    def feed(self, event: ServerEvent) -> None:
        """Take in the next event."""
        told = event_object(event)
        kind = told.get("type") or event.event
        if kind == "error":
            self.error = told
        elif kind == "message_start" and isinstance(told.get("message"), OBJECT):
            self._head = {key: value for key, value in told["message"].items() if key != "usage"}
            self._count(told["message"].get("usage"))
        elif kind == "content_block_start" and isinstance(told.get("content_block"), OBJECT):
            self._blocks[_index(told)] = _Block(told["content_block"])
        elif kind == "content_block_delta" and isinstance(told.get("delta"), OBJECT):
            block = self._blocks.get(_index(told))
            if block is None:  # the start was left out; what comes is not
                block = self._blocks[_index(told)] = _Block({"type": "text"})
            block.feed(told["delta"])
        elif kind == "message_delta":
            if isinstance(told.get("delta"), OBJECT):
                self._head |= told["delta"]
            self._count(told.get("usage"))
        elif kind == "message_stop":
            self._stopped = True

    def _count(self, usage: Any) -> None:
        """Take over the counts: each is the sum so far, and a later one replaces an earlier one."""
        if isinstance(usage, OBJECT):
            self._usage |= {key: value for key, value in usage.items() if value is not None}

    @property
    def is_complete(self) -> bool:
        """Whether the reply has come to its end, as opposed to having been cut off."""
        return self._stopped or self._head.get("stop_reason") is not None

    @property
    def body(self) -> dict[str, Any]:
        """The message."""
        content = [block.body() for block in self._blocks.values()]
        return {**self._head, "content": content, **({"usage": self._usage} if self._usage else {})}


class _Block:
    """One block so far."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        self._start = dict(start)
        self._texts: dict[str, list[str]] = {}
        self._json: list[str] = []
        self._citations: list[Any] = []

    def feed(self, delta: Mapping[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "input_json_delta" and isinstance(delta.get("partial_json"), str):
            self._json.append(delta["partial_json"])
        elif kind == "citations_delta":
            self._citations.append(delta.get("citation"))
        elif isinstance(kind, str) and kind in _TEXTS and isinstance(delta.get(_TEXTS[kind]), str):
            self._texts.setdefault(_TEXTS[kind], []).append(delta[_TEXTS[kind]])

    def body(self) -> dict[str, Any]:
        block = self._start
        for name, parts in self._texts.items():
            begun = block.get(name)
            block = {**block, name: "".join([begun if isinstance(begun, str) else "", *parts])}
        if self._citations:
            begun = block.get("citations")
            block = {**block, "citations": [*(begun if isinstance(begun, list) else ()), *self._citations]}
        written = "".join(self._json)
        if written:
            # What does not parse stays as it came: whoever reads the block says so.
            block = {**block, "input": parse_arguments(written)[0]}
        return block


def _index(told: Mapping[str, Any]) -> int | str | None:
    """Which block an event is about."""
    index = told.get("index")
    return index if isinstance(index, (int, str)) else None
