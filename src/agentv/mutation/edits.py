"""Edits of the tool calls of a reply, whether messages or a trace tell them."""

from collections.abc import Sequence
from math import isnan
from typing import Any

from msgspec.structs import replace

from agentv.model.conversation import Message, ToolCall, TraceEvent
from agentv.model.response import ProviderResponse
from agentv.scoring.calls import Calls, Source, calls_from_trace


class EditableCalls:
    """Calls of a reply, with the methods that return a copy of the reply in which some of them are changed."""

    def __init__(self, response: ProviderResponse, known: Calls) -> None:
        self.response = response
        self.calls: tuple[ToolCall, ...] = () if known.source == "trace_summary" else known.calls or ()
        self._in_trace = known.source == "trace"
        if self._in_trace:
            self.response = _with_whole_events(response)

    @property
    def is_editable(self) -> bool:
        """`False` if the reply does not report its calls, so that none can be added either."""
        return self._in_trace or self.response.output_messages is not None

    def drop(self, index: int) -> ProviderResponse:
        """Return the reply without a call."""
        return self._change(index, ())

    def set(self, index: int, call: ToolCall) -> ProviderResponse:
        """Return the reply with another call in the place of one."""
        return self._change(index, (call,))

    def repeat(self, index: int) -> ProviderResponse:
        """Return the reply with a call made twice; the second has no id, as that would be the same call."""
        return self._change(index, (self.calls[index], replace(self.calls[index], id=None)))

    def swap(self, index: int) -> ProviderResponse:
        """Return the reply with a call and the next one in each other's place."""
        first, second = self.calls[index], self.calls[index + 1]
        source: Source = "trace" if self._in_trace else "output_messages"
        half = EditableCalls(self._change(index, (second,)), Calls(source=source, calls=self.calls))
        return half.set(index + 1, first)

    def append(self, call: ToolCall) -> ProviderResponse:
        """Return the reply with a further call after all others."""
        if self.calls:
            return self._change(len(self.calls) - 1, (self.calls[-1], call))
        if self._in_trace:
            return replace(self.response, trace=(*(self.response.trace or ()), _event(call)))
        messages = list(self.response.output_messages or ())
        at = next((index for index, message in enumerate(messages) if message.role == "assistant"), None)
        if at is None:
            messages.insert(0, Message(role="assistant", tool_calls=(call,)))
        else:
            messages[at] = replace(messages[at], tool_calls=(*messages[at].tool_calls, call))
        return replace(self.response, output_messages=tuple(messages))

    def _change(self, index: int, calls: Sequence[ToolCall]) -> ProviderResponse:
        """Return the reply with these calls in the place of one."""
        if self._in_trace:
            events = list(self.response.trace or ())
            at = [place for place, event in enumerate(events) if event.type == "tool_call"][index]
            events[at : at + 1] = map(_event, calls)
            return replace(self.response, trace=tuple(events))
        messages = list(self.response.output_messages or ())
        for at, message in enumerate(messages):
            if index < len(message.tool_calls):
                changed = list(message.tool_calls)
                dropped = changed[index]
                changed[index : index + 1] = calls
                messages[at] = replace(message, tool_calls=tuple(changed))
                break
            index -= len(message.tool_calls)
        if not calls and dropped.id is not None:
            messages = [message for message in messages if message.tool_call_id != dropped.id]
        return replace(self.response, output_messages=tuple(messages))


def _with_whole_events(response: ProviderResponse) -> ProviderResponse:
    """Return a reply with the results of its trace beside their calls."""
    trace = response.trace or ()
    calls = iter(calls_from_trace(trace))
    events = [
        _event(next(calls), event) if event.type == "tool_call" else event
        for event in trace
        if event.type != "tool_result"
    ]
    return replace(response, trace=tuple(events))


def _event(call: ToolCall, event: TraceEvent | None = None) -> TraceEvent:
    """Return a call with its result as one event."""
    more = {"status": call.status, "duration_ms": call.duration_ms, "error": call.error}
    metadata = {**(call.metadata or {}), **{name: value for name, value in more.items() if value is not None}}
    event = event or TraceEvent(type="tool_call", id=call.id, timestamp=call.timestamp)
    return replace(event, name=call.tool or None, input=call.input, output=call.output, metadata=metadata or None)


def with_answer(response: ProviderResponse, text: str) -> ProviderResponse:
    """Return the reply with another answer, in the last message too."""
    messages = response.output_messages
    if messages is not None:
        last = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "assistant"), None)
        if last is not None and messages[last].text == response.text:
            changed = replace(messages[last], content=text)
            messages = (*messages[:last], changed, *messages[last + 1 :])
    return replace(response, text=text, output_messages=messages)


def with_double_tokens(response: ProviderResponse) -> ProviderResponse | None:
    """Return the reply with twice its tokens and its cost; `None` if it reports neither."""
    if response.tokens_usage is None and response.cost_usd is None:
        return None
    messages = response.output_messages
    if messages is not None:
        messages = tuple([replace(each, tokens_usage=_double(each.tokens_usage)) for each in messages])
    cost = None if response.cost_usd is None else 2 * response.cost_usd
    return replace(response, tokens_usage=_double(response.tokens_usage), cost_usd=cost, output_messages=messages)


def _double(usage: Any) -> Any:
    if usage is None:
        return None
    counts = {name: getattr(usage, name) for name in usage.__struct_fields__ if name != "metadata"}
    return replace(usage, **{name: 2 * count for name, count in counts.items() if count is not None})


def changed_value(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return 0 if isnan(value) or value == -0.5 else -value - 1  # noqa: PLR2004 - its own opposite less one
    if isinstance(value, dict):
        return {} if value else {"changed": True}
    if isinstance(value, (list, tuple)):
        return [] if value else ["changed"]
    return "changed" if value != "changed" else "changed again"
