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
from agentv.matching.json_pointer import NOTHING, at_steps, pointer_steps
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, ResponseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentv.model.response import TokensUsage


POINTERS = ("text", "messages", "tool_calls", "usage", "cost", "thread_id", "error")


class Pointers(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """JSON pointers to the parts of a reply."""

    text: str | None = None
    """Text of the answer; in a stream, its next piece in each event."""
    messages: str | None = None
    """Messages that the agent added to the conversation, in any format, or one of them."""
    tool_calls: str | None = None
    """Tool calls of the agent, if they are not in messages."""
    usage: str | None = None
    """Token counts in any format."""
    cost: str | None = None
    """Cost in US dollars."""
    thread_id: str | None = None
    """Thread id, which the next turn sends."""
    error: str | None = None
    """Error of the agent; absent, null, false or empty if it did not fail."""
    sum_usage: bool = False
    """In a stream: true to add up the counts and costs of all events; else the last ones are used."""

    @property
    def tell_answer(self) -> bool:
        """True if they point to the answer, so that the format of the reply need not be detected."""
        return not (self.text is self.messages is self.tool_calls is None)


_WARNED_PARTS = ("usage", "cost", "thread_id")
"""Parts whose absence causes a warning, because the pointer may be misspelled."""


class PointerValues:
    """Values that the pointers lead to, in one document or in many events."""

    def __init__(self, pointers: Pointers, *, snapshots: bool = False) -> None:
        self.pointers = pointers
        self._steps = {
            name: pointer_steps(pointer) for name in POINTERS if (pointer := getattr(pointers, name)) is not None
        }
        self._snapshots = snapshots
        self.texts: list[str] = []
        self.found_names: set[str] = set()
        """Pointers that led to a value, be it `null`."""
        self.messages = MessageAccumulator()
        self._calls: list[Any] = []
        self._pieces: list[Any] = []
        """Pieces of calls, as OpenAI streams them."""
        self._usages: list[Any] = []
        self._costs: list[Any] = []
        self._thread: Any = None
        self.error: Any = None

    def add(self, document: Any) -> None:
        """Add the values in one document or event."""
        for name, steps in self._steps.items():
            value = at_steps(document, steps)
            if value is not NOTHING:
                self.found_names.add(name)
                self._take(name, value)

    def _take(self, name: str, value: Any) -> None:
        if name == "text" and value is not None:
            self.texts.append(_to_text(value))
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
        """Joined pieces, or the last one if each is the whole text so far."""
        if self._snapshots:
            return self.texts[-1] if self.texts else ""
        return "".join(self.texts)

    @property
    def calls(self) -> list[Any]:
        """All calls, including those that were streamed in pieces."""
        return [*self._calls, *join_calls(self._pieces)] if self._pieces else self._calls

    @property
    def thread_id(self) -> str | None:
        """Thread id."""
        if isinstance(self._thread, bool) or not isinstance(self._thread, (str, int)):
            return None
        return str(self._thread) or None

    def usage(self, warnings: list[str]) -> TokensUsage | None:
        """Return the token counts: the last ones, completed by earlier ones, or the sum of all."""
        path = f"reply.usage at {self.pointers.usage}"
        if self.pointers.sum_usage:
            return add_usage([decode_usage(usage, path, warnings) for usage in self._usages])
        merged: Any = None
        for usage in self._usages:
            merged = merge_usage(merged, usage)
        return decode_usage(merged, path, warnings)

    def cost(self, warnings: list[str]) -> float | None:
        """Return the cost: the last one, or the sum of all."""
        numbers: list[float] = []
        for cost in self._costs:
            try:
                numbers.append(convert(cost, Number))
            except CONVERT_ERRORS:
                warning = (
                    f"reply.cost at {self.pointers.cost}: expected a number of at least 0, got {describe_value(cost)}"
                )
                if warning not in warnings:
                    warnings.append(warning)
        if not numbers:
            return None
        return sum(numbers) if self.pointers.sum_usage else numbers[-1]


def is_error(value: Any) -> bool:
    """Return whether a value is an error: null, `false`, zero and empty values are none."""
    return bool(value)


def error_of(value: Any, pointer: str | None) -> ResponseError:
    """Return the error of an agent."""
    if isinstance(value, (str, dict)):
        error = decode_response({"error": value}).error
        if error is not None:
            return error
    return ResponseError(kind="agent", message=f"the reply has an error at {pointer}: {_to_text(value)}")


def read_pointed(values: PointerValues, messages: Sequence[Message], seen: Any) -> ProviderResponse:
    """Return the answer that the pointers lead to; raise `FormatError` if there is none."""
    pointers, found_names = values.pointers, values.found_names
    if not found_names & {"text", "messages", "tool_calls"}:
        wanted = [f"`reply.{name}` is {getattr(pointers, name)}" for name in POINTERS[:3] if getattr(pointers, name)]
        msg = f"{' and '.join(wanted)}, and nothing is there: the reply is {describe_shape(seen)}"
        raise FormatError(msg)
    warnings: list[str] = []
    if "messages" in found_names:
        response = read_reply(values.messages.messages, messages)
        if not values.messages.messages:
            response = ProviderResponse()
    elif pointers.tool_calls is not None:
        if "tool_calls" not in found_names:
            warnings.append(f"reply.tool_calls: nothing at {pointers.tool_calls}, which is read as no calls")
        message = {"role": "assistant", "content": values.text or None, "tool_calls": values.calls}
        response = decode_response({"output_messages": [message]})
    else:
        response = ProviderResponse()
    text = values.text if "text" in found_names else response.text
    return replace(response, text=text, warnings=(*response.warnings, *warnings))


def add_pointed(response: ProviderResponse, values: PointerValues) -> ProviderResponse:
    """Add usage, cost and thread id that the pointers lead to."""
    pointers, warnings = values.pointers, list(response.warnings)
    for name in _WARNED_PARTS:
        pointer = getattr(pointers, name)
        if pointer is not None and name not in values.found_names:
            warnings.append(f"reply.{name}: nothing at {pointer}")
    usage, cost = values.usage(warnings), values.cost(warnings)
    return replace(
        response,
        tokens_usage=usage or response.tokens_usage,
        cost_usd=response.cost_usd if cost is None else cost,
        thread_id=values.thread_id or response.thread_id,
        warnings=tuple(warnings),
    )


def grows(texts: Iterable[str]) -> bool:
    """Return whether each text begins with the previous one, so that they are whole texts and not pieces."""
    before, count = "", 0
    for text in texts:
        if not text:
            continue
        if not text.startswith(before) or len(text) <= len(before):
            return False
        before, count = text, count + 1
    return count > 1


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(block, dict) for block in value):
        text = Message(role="assistant", content=value).text
        if text:
            return text
    return dump_json(value).decode()
