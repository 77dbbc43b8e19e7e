"""Places of a reply whose text is not all there: secrets were redacted, or the text was cut."""

from collections.abc import Iterator

from msgspec.structs import replace

from agentv.formats.unread import MAX_PLACES, WITHOUT_NAME
from agentv.model.conversation import REST_MISSING, Message, TraceEvent, has_gap
from agentv.model.response import ProviderResponse, Unread

NOT_FOUND = "so what is not found may have been in the missing part"
REDACTED = f"secrets in it were redacted, {NOT_FOUND}"
_FIELDS = ("text", "reasoning", "metadata", "raw_response")


def mark_incomplete(response: ProviderResponse) -> ProviderResponse:
    """Return a reply that was read from a file with all places at which secrets were redacted or text was cut."""
    response = _without_hidden_names(response)
    known = {place.path for place in response.incomplete}
    found = [Unread(path=path, reason=REDACTED) for path in _places(response) if path not in known]
    if not found:
        return response
    return replace(response, incomplete=(*response.incomplete, *found)[:MAX_PLACES])


def with_cut_end(response: ProviderResponse, reason: str) -> ProviderResponse:
    """Return a reply of which the end did not arrive: its text is incomplete, and calls may be missing."""
    messages = response.output_messages
    if messages and messages[-1].role == "assistant" and isinstance(messages[-1].content, str):
        last = replace(messages[-1], content=messages[-1].content + REST_MISSING)
        messages = (*messages[:-1], last)
    return replace(
        response,
        text=response.text + REST_MISSING,
        output_messages=messages,
        unread=(*response.unread, Unread(path="reply", reason=f"{reason}, so calls may be missing")),
        incomplete=(*response.incomplete, Unread(path="text", reason=f"{reason}, {NOT_FOUND}")),
    )


def _places(response: ProviderResponse) -> Iterator[str]:
    for name in _FIELDS:
        if has_gap(getattr(response, name)):
            yield name
    for index, message in enumerate(response.output_messages or ()):
        yield from _message_places(message, f"output_messages[{index}]")
    for index, event in enumerate(response.trace or ()):
        for name in ("name", "input", "output", "text", "metadata"):
            if has_gap(getattr(event, name)):
                yield f"trace[{index}].{name}"


def _message_places(message: Message, path: str) -> Iterator[str]:
    for name in ("content", "name", "metadata"):
        if has_gap(getattr(message, name)):
            yield f"{path}.{name}"
    for number, call in enumerate(message.tool_calls):
        for name in ("tool", "input", "output", "error", "metadata"):
            if has_gap(getattr(call, name)):
                yield f"{path}.tool_calls[{number}].{name}"


def _without_hidden_names(response: ProviderResponse) -> ProviderResponse:
    """Return the reply with calls whose name was redacted as calls without a name, which may be of any tool."""
    messages, trace, summary = response.output_messages or (), response.trace or (), response.trace_summary
    unread: list[Unread] = []
    for index, message in enumerate(messages):
        for number, call in enumerate(message.tool_calls):
            if has_gap(call.tool):
                path = f"output_messages[{index}].tool_calls[{number}]"
                unread.append(Unread(path=path, reason=f"{WITHOUT_NAME}: it was redacted"))
    for index, event in enumerate(trace):
        if has_gap(event.name):
            unread.append(Unread(path=f"trace[{index}]", reason=f"{WITHOUT_NAME}: it was redacted"))
    if summary is not None and has_gap(summary.tool_names):
        unread.append(Unread(path="trace_summary", reason="names of tools were redacted, so calls are unknown"))
    if not unread:
        return response
    return replace(
        response,
        output_messages=None if response.output_messages is None else tuple(map(_without_hidden_calls, messages)),
        trace=None if response.trace is None else tuple(map(_without_hidden_name, trace)),
        trace_summary=None if summary is not None and has_gap(summary.tool_names) else summary,
        unread=(*response.unread, *unread),
    )


def _without_hidden_calls(message: Message) -> Message:
    if not any(has_gap(call.tool) for call in message.tool_calls):
        return message
    calls = tuple([replace(call, tool="") if has_gap(call.tool) else call for call in message.tool_calls])
    return replace(message, tool_calls=calls)


def _without_hidden_name(event: TraceEvent) -> TraceEvent:
    return replace(event, name=None) if has_gap(event.name) else event
