"""JSON pointers of the settings, and the values they lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert
from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.detect import describe_shape
from agentv.formats.fields import Number, describe_value
from agentv.formats.reader import decode_response, read_reply
from agentv.formats.streams import MessageAccumulator, join_calls, merge_usage
from agentv.formats.usage import add_usage, decode_usage
from agentv.jsonio import CONVERT_ERRORS, dump_json
from agentv.matching.diff import NOTHING, at_steps, pointer_steps
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, ResponseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentv.model.response import TokensUsage


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


_TOLD = ("usage", "cost", "thread_id")
"""Parts whose absence is worth a word: the pointer may be misspelled."""


class PointerValues:
    """What was found where the pointers lead, in one document or in many events."""

    def __init__(self, pointers: Pointers, *, snapshots: bool = False) -> None:
        self.pointers = pointers
        self._steps = {
            name: pointer_steps(pointer) for name in POINTERS if (pointer := getattr(pointers, name)) is not None
        }
        self._snapshots = snapshots
        self.texts: list[str] = []
        self.met: set[str] = set()
        """Pointers that led to something, if only `null`."""
        self.messages = MessageAccumulator()
        self._calls: list[Any] = []
        self._pieces: list[Any] = []
        """Calls that come piece by piece, as OpenAI streams them."""
        self._usages: list[Any] = []
        self._costs: list[Any] = []
        self._thread: Any = None
        self.error: Any = None

    def add(self, document: Any) -> None:
        """Take what one document, or one event, has."""
        for name, steps in self._steps.items():
            value = at_steps(document, steps)
            if value is not NOTHING:
                self.met.add(name)
                self._take(name, value)

    def _take(self, name: str, value: Any) -> None:
        if name == "text" and value is not None:
            self.texts.append(_words(value))
        elif name == "messages":
            self.messages.add(value)
        elif name == "tool_calls":
            self._take_calls(value)
        elif name == "usage" and value is not None:
            self._usages.append(value)
        elif name == "cost" and value is not None:
            self._costs.append(value)
        elif name == "thread_id" and value is not None:
            self._thread = value
        elif name == "error" and self.error is None and is_error(value):
            self.error = value

    def _take_calls(self, value: Any) -> None:
        items = value if isinstance(value, list) else [] if value is None else [value]
        for item in items:
            if isinstance(item, dict) and isinstance(item.get("index"), int) and "function" in item:
                self._pieces.append(item)
            else:
                self._calls.append(item)

    @property
    def text(self) -> str:
        """The pieces together, or the last of them when each is the whole so far."""
        if self._snapshots:
            return self.texts[-1] if self.texts else ""
        return "".join(self.texts)

    @property
    def calls(self) -> list[Any]:
        """Every call, those that came in pieces among them."""
        return [*self._calls, *join_calls(self._pieces)] if self._pieces else self._calls

    @property
    def thread_id(self) -> str | None:
        """The conversation's id."""
        if isinstance(self._thread, bool) or not isinstance(self._thread, (str, int)):
            return None
        return str(self._thread) or None

    def usage(self, warnings: list[str]) -> TokensUsage | None:
        """The token counts: the last ones, completed by earlier ones, or all added up."""
        path = f"reply.usage at {self.pointers.usage}"
        if self.pointers.sum_usage:
            return add_usage([decode_usage(each, path, warnings) for each in self._usages])
        merged: Any = None
        for each in self._usages:
            merged = merge_usage(merged, each)
        return decode_usage(merged, path, warnings)

    def cost(self, warnings: list[str]) -> float | None:
        """The cost: the last one, or all added up."""
        numbers: list[float] = []
        for each in self._costs:
            try:
                numbers.append(convert(each, Number))
            except CONVERT_ERRORS:
                told = (
                    f"reply.cost at {self.pointers.cost}: expected a number of at least 0, got {describe_value(each)}"
                )
                if told not in warnings:
                    warnings.append(told)
        if not numbers:
            return None
        return sum(numbers) if self.pointers.sum_usage else numbers[-1]


def is_error(value: Any) -> bool:
    """Whether this says that something went wrong: nothing, `false`, zero and what is empty do not."""
    return bool(value)


def error_of(value: Any, pointer: str | None) -> ResponseError:
    """The error that an agent told."""
    if isinstance(value, (str, dict)):
        found = decode_response({"error": value}).error
        if found is not None:
            return found
    return ResponseError(kind="agent", message=f"the reply has an error at {pointer}: {_words(value)}")


def read_pointed(pointed: PointerValues, asked: Sequence[Message], seen: Any) -> ProviderResponse:
    """The answer where the pointers lead; `FormatError` when there is none at any of these places."""
    pointers, met = pointed.pointers, pointed.met
    if not met & {"text", "messages", "tool_calls"}:
        wanted = [f"`reply.{name}` is {getattr(pointers, name)}" for name in POINTERS[:3] if getattr(pointers, name)]
        msg = f"{' and '.join(wanted)}, and nothing is there: the reply is {describe_shape(seen)}"
        raise FormatError(msg)
    warnings: list[str] = []
    if "messages" in met:
        response = read_reply(pointed.messages.messages, asked)
        if not pointed.messages.messages:
            response = ProviderResponse()
    elif pointers.tool_calls is not None:
        if "tool_calls" not in met:
            warnings.append(f"reply.tool_calls: nothing at {pointers.tool_calls}, which is read as no calls")
        message = {"role": "assistant", "content": pointed.text or None, "tool_calls": pointed.calls}
        response = decode_response({"output_messages": [message]})
    else:
        response = ProviderResponse()
    text = pointed.text if "text" in met else response.text
    return replace(response, text=text, warnings=(*response.warnings, *warnings))


def add_pointed(response: ProviderResponse, pointed: PointerValues) -> ProviderResponse:
    """The reply with everything else that the pointers lead to."""
    pointers, warnings = pointed.pointers, list(response.warnings)
    for name in _TOLD:
        pointer = getattr(pointers, name)
        if pointer is not None and name not in pointed.met:
            warnings.append(f"reply.{name}: nothing at {pointer}")
    usage, cost = pointed.usage(warnings), pointed.cost(warnings)
    return replace(
        response,
        tokens_usage=usage or response.tokens_usage,
        cost_usd=response.cost_usd if cost is None else cost,
        thread_id=pointed.thread_id or response.thread_id,
        warnings=tuple(warnings),
    )


def grows(texts: Iterable[str]) -> bool:
    """Whether each text begins with the one before: whole texts so far, not pieces."""
    before, count = "", 0
    for text in texts:
        if not text:
            continue
        if not text.startswith(before) or len(text) <= len(before):
            return False
        before, count = text, count + 1
    return count > 1


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(block, dict) for block in value):
        text = Message(role="assistant", content=value).text
        if text:
            return text
    return dump_json(value).decode()
