"""Sessions and OpenTelemetry spans that were read from stored traces, and the report of what was read."""

from typing import Any

from msgspec import Struct

from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, Unread


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One session of an agent: a conversation of one or more turns that took place earlier."""

    id: str
    """Id in its source: of the session, else of the trace, else the name of the file."""
    format: str
    """Name of the trace format that it was read from."""
    place: str
    """Place of its first record, as `file` or `file:line`."""
    input_messages: tuple[Message, ...] = ()
    """Messages before the first one of the agent."""
    response: ProviderResponse = ProviderResponse()
    """The rest: messages of the agent, and those of the user in later turns."""
    case_id: str | None = None
    """Case that the session says it belongs to; `None` if it says nothing."""
    started_at: str | None = None
    """Time of the first record, in UTC."""
    ended_at: str | None = None
    """Time of the last record, in UTC."""
    agent: str | None = None
    """Name of the agent."""
    model: str | None = None
    """Name of the model that was used last."""
    notes: tuple[str, ...] = ()
    """Remarks about the data, such as spans whose parent is missing."""
    metadata: dict[str, Any] | None = None
    """Further attributes, for `--where`."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation."""
        return (*self.input_messages, *(self.response.output_messages or ()))

    @property
    def turns(self) -> int:
        """Number of turns: groups of user messages that the agent answered, without those before the session."""
        count, is_asking = 0, False
        for message in self.input_messages:
            if message.role in ("user", "assistant"):  # what was answered before is the context of this session
                count = int(message.role == "user")
                is_asking = bool(count)
        for message in self.response.output_messages or ():
            if message.role == "user" and not is_asking:
                count, is_asking = count + 1, True
            elif message.role == "assistant":
                is_asking = False
        return count or int(any(message.role == "assistant" for message in self.messages))


class SkippedRecord(Struct, frozen=True):
    """A record or file that could not be read."""

    place: str
    """The place, as `file` or `file:line`."""
    reason: str
    """The reason, and what to do."""

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


class SessionUnread(Struct, frozen=True):
    """A place of a session that was not understood."""

    session_id: str
    """Id of the session."""
    place: str
    """Place of the session in its file."""
    unread: Unread
    """The place in the session and the reason."""

    def __str__(self) -> str:
        return f"{self.place}, session {self.session_id}: {self.unread}"


class TraceCoverage(Struct, frozen=True, kw_only=True):
    """Counts of what was read from traces, and of what was not."""

    files: int = 0
    """Files that were read."""
    sessions: int = 0
    """Sessions."""
    selected: int | None = None
    """Sessions after `--where` and `--sample`; `None` without these options."""
    formats: dict[str, int] = {}
    """Sessions by format."""
    turns: int = 0
    """Turns of all sessions."""
    calls: int = 0
    """Tool calls."""
    calls_without_input: int = 0
    """Calls whose arguments were not captured."""
    calls_without_output: int = 0
    """Calls without a result."""
    messages: int = 0
    """Messages of the agents."""
    messages_without_usage: int = 0
    """Messages of agents whose token counts are not known, neither by message nor by session."""
    sessions_partly_understood: int = 0
    """Sessions with places that were not understood, so that their calls are a lower bound."""
    sessions_without_answer: int = 0
    """Sessions whose answer was not captured."""
    unread_places: int = 0
    """Places that were not understood."""
    unread: tuple[SessionUnread, ...] = ()
    """The first of these places."""
    skipped_records: int = 0
    """Records and files that could not be read."""
    skipped: tuple[SkippedRecord, ...] = ()
    """The first of these."""
    ignored_files: int = 0
    """Files of a folder that hold no traces."""
    notes: dict[str, int] = {}
    """Remarks about the data, and how often each applies."""


class SpanEvent(Struct, kw_only=True, omit_defaults=True, array_like=True):
    """Event of a span, or log record that names its span."""

    name: str = ""
    """Name of the event."""
    time: int = 0
    """Nanoseconds since 1970; 0 if unknown."""
    attributes: dict[str, Any] = {}
    """Attributes."""
    body: Any = None
    """Body of a log record."""


class OtelSpan(Struct, kw_only=True, omit_defaults=True, array_like=True):
    """One span; only its trace id and span id are always known."""

    trace_id: str
    """Id of the trace."""
    span_id: str = ""
    """Id of the span; empty for the span that only holds log records."""
    parent_id: str = ""
    """Id of the parent; empty for a root."""
    name: str = ""
    """Name of the span."""
    start: int = 0
    """Nanoseconds since 1970; 0 if unknown."""
    end: int = 0
    """Nanoseconds since 1970; 0 if it has not ended."""
    attributes: dict[str, Any] = {}
    """Attributes."""
    resource: dict[str, Any] = {}
    """Attributes of the resource that are used: session and run ids."""
    scope: str = ""
    """Name of the instrumentation."""
    events: list[SpanEvent] = []
    """Events, and log records that name this span."""
    is_error: bool = False
    """`True` if its status is an error."""
    error: str = ""
    """Message of the status, or of the exception."""
    dropped: int = 0
    """Number of attributes and events that the emitter dropped."""
    place: str = ""
    """Place of the record, as `file:line`."""
    file: int = 0
    """Number of the file that it was read from."""
    format: str = ""
    """Name of the trace format."""
    is_log: bool = False
    """`True` if it only carries log records of the span with this id."""
