"""Source of a reply's tool calls; conversion between traces and messages."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Literal, get_args

from msgspec import UNSET, Struct
from msgspec.structs import replace

from agentv.model.conversation import Message, Status, ToolCall, TraceEvent, TraceSummary
from agentv.model.response import ProviderResponse, Unread
from agentv.scoring.turns import message_starts, shift_places, split_turns, warnings_of_turns


def summarize_calls(calls: Sequence[ToolCall]) -> TraceSummary:
    """Return the summary of an agent that sent messages: its calls are the events."""
    counts: dict[str, int] = {}
    errors = 0
    for call in calls:
        tool = call.tool
        counts[tool] = counts.get(tool, 0) + 1
        if call.error is not None or call.status is not None:
            errors += call.effective_status == "error"
    counts.pop("", None)
    return _summary(len(calls), counts, errors)


def summarize_trace(trace: Iterable[TraceEvent]) -> TraceSummary:
    """Return the summary of an agent that sent a trace."""
    counts: dict[str, int] = {}
    total = errors = 0
    for event in trace:
        total += 1
        if event.type == "tool_call" and event.name:
            counts[event.name] = counts.get(event.name, 0) + 1
        errors += event.type == "error"
    return _summary(total, counts, errors)


def _summary(event_count: int, counts: dict[str, int], error_count: int) -> TraceSummary:
    return TraceSummary(
        event_count=event_count,
        tool_names=tuple(sorted(counts)),
        tool_calls_by_name=counts,
        error_count=error_count,
    )


_STATUSES = get_args(Status)


def trace_from_messages(messages: Iterable[Message]) -> tuple[TraceEvent, ...]:
    """Return one `tool_call` event per call, in order."""
    return tuple(
        TraceEvent(
            type="tool_call",
            name=call.tool or None,
            input=call.input,
            output=call.output,
            id=call.id,
            timestamp=call.timestamp or message.timestamp,
        )
        for message in messages
        for call in message.tool_calls
    )


def calls_from_trace(trace: Iterable[TraceEvent]) -> tuple[ToolCall, ...]:
    """Return the calls of a trace, each with the result of its `tool_result` event.

    A result belongs to the call with its `id`; else to the first call of its `name` that has no result; else to the
    last call that has none.
    """
    events = tuple(trace)
    ids = {event.id for event in events if event.type == "tool_call" and event.id is not None}
    pairing = _ResultPairing(ids)
    for event in events:
        if event.type == "tool_call":
            pairing.add_call(event)
        elif event.type == "tool_result":
            pairing.add_result(event)
    return tuple(pairing.calls)


class _ResultPairing:
    """Calls of a trace so far, and those of them that still wait for a result."""

    def __init__(self, ids: AbstractSet[str]) -> None:
        self.calls: list[ToolCall] = []
        self._ids = ids
        """Ids of all calls, those to come included."""
        self._has_result: list[bool] = []
        self._by_id: dict[str, deque[int]] = {}
        """Positions of all calls with an id; more than one only where an agent repeats its ids."""
        self._by_name: dict[str, deque[int]] = {}
        """Positions of calls that may wait for a result, in order."""
        self._waiting: list[int] = []
        """As above, of all names."""
        self._early: dict[str, list[TraceEvent]] = {}
        """Results that were logged before their calls, by id."""

    def add_call(self, event: TraceEvent) -> None:
        """Add a call, and the results that were logged before it."""
        position = len(self.calls)
        self.calls.append(_call(event))
        self._has_result.append(event.output is not UNSET)
        if event.output is UNSET:
            self._by_name.setdefault(event.name or "", deque()).append(position)
            self._waiting.append(position)
        if event.id is not None:
            self._by_id.setdefault(event.id, deque()).append(position)
            for result in self._early.pop(event.id, ()):
                self._answer(position, result)

    def add_result(self, event: TraceEvent) -> None:
        """Add a result to its call, if there is one."""
        if event.id is not None and event.id in self._ids:
            position = self._find_by_id(event.id)
            if position is None:
                self._early.setdefault(event.id, []).append(event)
        else:
            position = self._find_by_name(event.name) if event.name else None
            position = self._find_last() if position is None else position
        if position is not None:
            self._answer(position, event)

    def _answer(self, position: int, event: TraceEvent) -> None:
        self.calls[position] = _answer(self.calls[position], event)
        self._has_result[position] = True

    def _find_by_id(self, call_id: str) -> int | None:
        positions = self._by_id.get(call_id)
        if not positions:
            return None
        while len(positions) > 1 and self._has_result[positions[0]]:
            positions.popleft()
        return positions[0]

    def _find_by_name(self, name: str) -> int | None:
        positions = self._by_name.get(name, deque())
        while positions and self._has_result[positions[0]]:
            positions.popleft()
        return positions[0] if positions else None

    def _find_last(self) -> int | None:
        while self._waiting and self._has_result[self._waiting[-1]]:
            self._waiting.pop()
        return self._waiting[-1] if self._waiting else None


def _call(event: TraceEvent) -> ToolCall:
    extra = event.metadata or {}
    status, duration = extra.get("status"), extra.get("duration_ms")
    return ToolCall(
        tool=event.name or "",
        input=event.input,
        output=event.output,
        id=event.id,
        timestamp=event.timestamp,
        duration_ms=duration if _is_number(duration) else None,
        status=_status(status),
        error=extra.get("error"),
        metadata=event.metadata,
    )


def _answer(call: ToolCall, result: TraceEvent) -> ToolCall:
    extra = result.metadata or {}
    status, duration = extra.get("status"), extra.get("duration_ms")
    return replace(
        call,
        output=call.output if result.output is UNSET else result.output,
        duration_ms=_first(call.duration_ms, duration if _is_number(duration) else None, _elapsed(call, result)),
        status=_first(call.status, _status(status)),
        error=_first(call.error, extra.get("error")),
    )


def _status(value: Any) -> Any:
    return value if isinstance(value, str) and value in _STATUSES else None


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _elapsed(call: ToolCall, result: TraceEvent) -> float | None:
    if call.timestamp is None or result.timestamp is None:
        return None
    try:
        start, end = datetime.fromisoformat(call.timestamp), datetime.fromisoformat(result.timestamp)
        elapsed = (end - start).total_seconds() * 1000
    except (ValueError, TypeError):  # not ISO 8601, or only one of the two has a time zone
        return None
    # The clock went backwards: the duration is unknown.
    return round(elapsed, 3) if elapsed >= 0 else None


Source = Literal["output_messages", "trace", "trace_summary"]

TRACE_ONLY = "`trace` is deprecated: send `output_messages`, which carry the calls where they were made"
TRACE_REF_ONLY = "`trace_ref` is deprecated: send `output_messages`, which carry the calls where they were made"
BOTH = "the reply holds both `output_messages` and `trace`: only one is read; send `output_messages` alone"
BOTH_REF = BOTH.replace("`trace`", "`trace` (from `trace_ref`)")
NAMES_ALONE = "`trace_summary` names tools but not how often they were called: send `tool_calls_by_name`"
WITHOUT_NAME = "a call without a name"
CALLS_UNKNOWN = "this turn says nothing about calls, so calls may be missing"
MAX_WARNINGS = 10
"""The number of places that were not understood with a warning of their own."""


class Calls(Struct, frozen=True, kw_only=True):
    """The known tool calls of a reply."""

    source: Source | None
    """`None` when the agent sent nothing that reports calls."""
    calls: tuple[ToolCall, ...] | None
    """Every call in order; `None` when only counts, or nothing, is known."""
    summary: TraceSummary | None = None
    complete: bool = True
    """True if everything that may hold a call was understood; when false, `calls` is a lower bound."""
    unread: tuple[Unread, ...] = ()
    """All places of the reply that were not understood, including those of other sources."""
    warnings: tuple[str, ...] = ()


def resolve_calls(response: ProviderResponse) -> Calls:
    """Return the calls of the first completely understood source with a named one.

    Without such a source, return those of the first partly understood one, else of the first that tells anything. The
    calls of a conversation are those of its turns.
    """
    if response.turns:
        replies = [exchange.response for exchange in split_turns(response)]
        return join_calls([resolve_calls(reply) for reply in replies], replies)
    sent = _sent(response.output_messages or ())
    counted = summarize_calls(sent)
    names = counted.tool_calls_by_name
    if names and not response.unread and sum(names.values()) == len(sent):
        return _from_messages(response, sent, counted)
    unread = (*response.unread, *_unnamed_in_messages(response), *_unnamed_in_trace(response.trace or ()))
    traced = calls_from_trace(response.trace) if response.trace else ()
    calls = _completely_understood(response, sent, counted, traced, unread)
    if calls is not None:
        return calls
    if any(map(about_messages, unread)):
        return _from_messages(response, sent, counted, unread, complete=False)
    if unread:
        return _from_trace(response, traced, unread, complete=False)
    return _without_names(response, sent, traced)


def join_calls(calls: Sequence[Calls], replies: Sequence[ProviderResponse]) -> Calls:
    """Return the calls of a conversation, given those of its turns and their replies.

    A turn that does not report its calls makes those of the conversation a lower bound, unless no turn reports any.
    A call that waited for an approval has its result in a later turn.
    """
    warnings = warnings_of_turns([known.warnings for known in calls])
    if all(known.source is None for known in calls):
        return Calls(source=None, calls=None, warnings=warnings)
    unread: list[Unread] = []
    for turn, (known, start) in enumerate(zip(calls, message_starts(replies), strict=True)):
        unread += shift_places(known.unread, turn, start)
        if known.source is None:
            unread.append(Unread(path=f"turns[{turn}]", reason=CALLS_UNKNOWN))
    summaries = [known.summary for known in calls if known.summary is not None]
    summary = _add_summaries(summaries) if summaries else None
    joined = None if _has_counts_only(calls) else tuple([call for known in calls for call in known.calls or ()])
    if joined is not None and (paired := _pair_later_results(calls, replies)) is not None:
        errors = _count_errors(paired) - _count_errors(joined)
        summary = None if summary is None else replace(summary, error_count=summary.error_count + errors)
        joined = paired
    return Calls(
        source=_source_of_turns(calls),
        calls=joined,
        summary=summary,
        complete=all(known.complete and known.source is not None for known in calls),
        unread=tuple(unread),
        warnings=warnings,
    )


def _pair_later_results(calls: Sequence[Calls], replies: Sequence[ProviderResponse]) -> tuple[ToolCall, ...] | None:
    """Return all calls, those without a result with that of a later turn; `None` if no later turn has one."""
    joined: list[ToolCall] = []
    waiting: dict[str, int] = {}
    is_changed = False
    for known, reply in zip(calls, replies, strict=True):
        for message in reply.output_messages or () if waiting else ():
            if message.role == "tool" and (position := waiting.pop(message.tool_call_id or "", None)) is not None:
                joined[position] = _with_result(joined[position], message)
                is_changed = True
        for call in known.calls or ():
            if call.id and call.output is UNSET:
                waiting[call.id] = len(joined)
            joined.append(call)
    return tuple(joined) if is_changed else None


def _with_result(call: ToolCall, message: Message) -> ToolCall:
    extra = message.metadata or {}
    status = _status(extra.get("status"))
    if status is None and call.status != "pending":  # a call with a result is no longer pending
        status = call.status
    output = extra.get("output", message.content)
    return replace(call, output=output, status=status, error=_first(call.error, extra.get("error")))


def _count_errors(calls: Iterable[ToolCall]) -> int:
    return sum(call.effective_status == "error" for call in calls)


def _has_counts_only(calls: Sequence[Calls]) -> bool:
    return any(known.calls is None and known.source is not None for known in calls)


def _source_of_turns(calls: Sequence[Calls]) -> Source:
    """Return the source of a conversation's calls: of those of its turns, the one that tells least."""
    sources = {known.source for known in calls}
    if _has_counts_only(calls) or sources <= {"trace_summary", None}:
        return "trace_summary"
    return "trace" if "trace" in sources else "output_messages"


def _add_summaries(summaries: Sequence[TraceSummary]) -> TraceSummary:
    counts: dict[str, int] = {}
    for summary in summaries:
        for tool, number in summary.tool_calls_by_name.items():
            counts[tool] = counts.get(tool, 0) + number
    return TraceSummary(
        event_count=sum(summary.event_count for summary in summaries),
        tool_names=tuple(sorted({name for summary in summaries for name in summary.tool_names})),
        tool_calls_by_name=counts,
        error_count=sum(summary.error_count for summary in summaries),
    )


def _completely_understood(
    response: ProviderResponse,
    sent: tuple[ToolCall, ...],
    counted: TraceSummary,
    traced: tuple[ToolCall, ...],
    unread: tuple[Unread, ...],
) -> Calls | None:
    """Return the first source that has a named call and of which everything was understood, if there is one."""
    if counted.tool_names and not any(map(about_messages, unread)):
        return _from_messages(response, sent, counted, unread)
    if any(call.tool for call in traced) and not any(map(about_trace, unread)):
        return _from_trace(response, traced, unread)
    summary = response.trace_summary
    if summary is None or not any(summary.tool_calls_by_name.values()):
        return None
    warnings = (*trace_warnings(response), *_unread_warnings(unread))
    return Calls(source="trace_summary", calls=None, summary=summary, unread=unread, warnings=warnings)


def about_messages(place: Unread) -> bool:
    """Return whether calls may be missing from the messages; only a place in the trace does not concern them."""
    return not place.path.startswith("trace") or place.path.startswith("trace_summary")


def about_trace(place: Unread) -> bool:
    """Return whether calls may be missing from the trace; only a place in the messages does not concern it."""
    return not place.path.startswith("output_messages")


def _unnamed_in_messages(response: ProviderResponse) -> Iterator[Unread]:
    """Yield the place of every call without a name that the reader of the reply did not report itself."""
    for index, message in enumerate(response.output_messages or ()):
        inside = f"output_messages[{index}]"
        if any(place.path.startswith(inside) and WITHOUT_NAME in place.reason for place in response.unread):
            continue
        for number, call in enumerate(message.tool_calls):
            if not call.tool:
                yield Unread(path=f"{inside}.tool_calls[{number}]", reason=WITHOUT_NAME)


def _unnamed_in_trace(trace: Sequence[TraceEvent]) -> Iterator[Unread]:
    for index, event in enumerate(trace):
        if event.type == "tool_call" and not event.name:
            yield Unread(path=f"trace[{index}]", reason=WITHOUT_NAME)


def _unread_warnings(unread: Sequence[Unread]) -> tuple[str, ...]:
    """Return one sentence for each place, and for more than anybody reads their number."""
    more = len(unread) - MAX_WARNINGS
    rest = (f"and {more} more places that were not understood",) if more > 0 else ()
    return (*map(str, unread[:MAX_WARNINGS]), *rest)


def _without_names(response: ProviderResponse, sent: tuple[ToolCall, ...], traced: tuple[ToolCall, ...]) -> Calls:
    """Return no calls if the agent sent messages without any; a reply without messages leaves them unknown."""
    if any(message.role == "assistant" for message in response.output_messages or ()):
        return _from_messages(response, sent, summarize_calls(sent))
    if response.trace:
        return _from_trace(response, traced)
    summary = response.trace_summary
    warnings = trace_warnings(response)
    if summary is not None and summary.tool_names:
        return Calls(source=None, calls=None, warnings=(*warnings, NAMES_ALONE))
    if summary is not None:
        return Calls(source="trace_summary", calls=(), summary=summary, warnings=warnings)
    return Calls(source=None, calls=None, warnings=warnings)


def _sent(messages: tuple[Message, ...]) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for message in messages:
        calls += message.tool_calls
    return tuple(calls)


def _from_messages(
    response: ProviderResponse,
    calls: tuple[ToolCall, ...],
    summary: TraceSummary,
    unread: tuple[Unread, ...] = (),
    *,
    complete: bool = True,
) -> Calls:
    warnings = trace_warnings(response, calls)
    return Calls(
        source="output_messages",
        calls=calls,
        # Zeros would mean that nothing was called.
        summary=summary if complete or response.output_messages else None,
        complete=complete,
        unread=unread,
        warnings=(*warnings, *_unread_warnings(unread)) if unread else warnings,
    )


def _from_trace(
    response: ProviderResponse, calls: tuple[ToolCall, ...], unread: tuple[Unread, ...] = (), *, complete: bool = True
) -> Calls:
    trace = response.trace
    warnings = trace_warnings(response)
    return Calls(
        source="trace",
        calls=calls,
        summary=summarize_trace(trace) if trace else None,
        complete=complete,
        unread=unread,
        warnings=(*warnings, *_unread_warnings(unread)),
    )


def trace_warnings(response: ProviderResponse, calls: tuple[ToolCall, ...] | None = None) -> tuple[str, ...]:
    """Return the deprecation of a trace, or the warning that the messages were sent as well; `calls` are theirs."""
    trace, is_file = response.trace or (), response.trace_ref is not None
    if not trace and not is_file:
        return ()
    if not response.output_messages:
        return (TRACE_REF_ONLY if is_file else TRACE_ONLY,)
    warning = BOTH_REF if is_file else BOTH
    if not trace:
        return (warning,)
    sent = _sent(response.output_messages) if calls is None else calls
    traced = calls_from_trace(trace)
    here, there = [call.tool for call in sent], [call.tool for call in traced]
    if here == there:
        return (warning + _first_differing_input(sent, traced),)
    return (f"{warning}. Their calls differ: output_messages {_names(here)}, trace {_names(there)}",)


def _first_differing_input(calls: tuple[ToolCall, ...], traced: tuple[ToolCall, ...]) -> str:
    for index, (call, event) in enumerate(zip(calls, traced, strict=True)):
        if _differs(call.input, event.input):
            return f". Their calls differ: the input of call {index} ({call.tool}) is not the same in both"
    return ""


def _differs(left: Any, right: Any) -> bool:
    try:
        return bool(left != right)
    except Exception:  # noqa: BLE001 - foreign values compare as they please; an array's answer is one more array
        return left is not right


def _names(names: list[str], most: int = 10) -> str:
    shown = ", ".join(name or "(unnamed)" for name in names[:most])
    return f"[{shown}{', …' if len(names) > most else ''}]"
