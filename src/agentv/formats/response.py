"""Reader of a reply in our own form as a `ProviderResponse`, and of the trace file that its `trace_ref` names."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, get_args

from msgspec import UNSET, convert
from msgspec.structs import force_setattr, replace

from agentv.errors import FormatError
from agentv.formats.canonical import WireResponse, is_canonical
from agentv.formats.conversation import last_assistant_text
from agentv.formats.fields import MISSING_CALLS, OBJECT, Fields, Report, clean_text, describe_value, is_count
from agentv.formats.messages import decode_messages
from agentv.formats.trace import MAX_EVENTS, decode_events, decode_summary, events_of
from agentv.formats.usage import add_usage, read_usage
from agentv.jsonio import CONVERT_ERRORS, dump_json, parse_json
from agentv.model.conversation import TraceSummary
from agentv.model.response import TRACE_REF, ErrorKind, ProviderResponse, ResponseError, TokensUsage, TurnReply, Unread

_NAMES = {
    **{name: name for name in ProviderResponse.__struct_fields__},
    "messages": "output_messages",
    "outputMessages": "output_messages",
    "usage": "tokens_usage",
    "tokensUsage": "tokens_usage",
    "raw": "raw_response",
    "rawResponse": "raw_response",
    "traceRef": "trace_ref",
    "traceHash": "trace_hash",
    "traceSummary": "trace_summary",
    "threadId": "thread_id",
    "latencyMs": "latency_ms",
    "costUsd": "cost_usd",
}
REPLY_KEYS = tuple(_NAMES)
"""All accepted names of the fields of a reply."""
CONTENT_KEYS = ("text", "output_messages", "outputMessages", "error", "turns")
"""Names of fields that only replies in our own form have."""
_ERROR = {
    "kind": "kind",
    "message": "message",
    "retryable": "retryable",
    "code": "code",
    "retry_after_s": "retry_after_s",
    "retryAfterS": "retry_after_s",
}
_KINDS = frozenset(get_args(ErrorKind))
_OLD_METADATA = {"tokenUsage": "tokens_usage", "latencyMs": "latency_ms"}
"""Fields that older replies hold in their metadata."""
_MAX_ERROR_BYTES = 500
SUCCESS_WITH_ERROR = "the reply says `success: true` and has an `error`: it counts as an error; send one of them"
LIST_KEYS = ("output_messages", "outputMessages", "messages")
"""All accepted names of the messages of a reply."""


def decode_canonical(reply: Mapping[str, Any]) -> ProviderResponse | None:
    """Read a reply that is entirely in our own form; return `None` otherwise."""
    try:
        wire = convert(reply, WireResponse)
        # The strict types have checked for unknown keys, which our model types ignore.
        response = convert(reply, ProviderResponse)
    except CONVERT_ERRORS:  # including text with lone surrogates
        return None
    messages = response.output_messages
    if messages is not None and not is_canonical(messages):
        return None
    if response.trace is not None and len(response.trace) > MAX_EVENTS:
        return None
    metadata, usage = response.metadata, response.tokens_usage
    is_contradiction = response.error is not None and wire.success is True  # of which the other reader warns
    if is_contradiction or (metadata is not None and not _OLD_METADATA.keys().isdisjoint(metadata)):
        return None
    if usage is not None and usage.input_tokens + usage.output_tokens != usage.total_tokens:  # type: ignore[operator]
        return None  # the strict type requires all three
    # This value is not shared yet.
    if wire.text is UNSET:
        force_setattr(response, "text", last_assistant_text(messages))
    if response.error is not None and wire.success is UNSET:
        force_setattr(response, "success", False)  # noqa: FBT003 - the value of the field
    return response


def decode_fields(reply: Mapping[Any, Any]) -> ProviderResponse:
    """Read a reply in any mixture of shapes, field by field."""
    report = Report()
    fields = Fields(_lift_old_metadata(reply), _NAMES, (), report)
    items, events = fields.items("output_messages"), _events(fields)
    messages = None if items is None else decode_messages(items, report, ("output_messages",))
    trace = None if events is None else decode_events(events, report, ("trace",))
    if report.malformed:
        fields.add_metadata("malformed", report.malformed)
    text, error = fields.text("text"), _error(fields)
    success = _success(fields, error)
    earlier, unread, echo_end = _earlier_warnings(fields), _earlier_places(fields, "unread"), _earlier_echo_end(fields)
    incomplete, turns = _earlier_places(fields, "incomplete"), _earlier_turns(fields)
    return ProviderResponse(
        success=success,
        text=last_assistant_text(messages) if text is None else text,
        output_messages=messages,
        trace=trace,
        trace_ref=fields.text("trace_ref"),
        trace_hash=fields.text("trace_hash"),
        trace_summary=_summary(fields),
        reasoning=fields.text("reasoning"),
        tokens_usage=_usage(fields),
        cost_usd=fields.number("cost_usd"),
        latency_ms=fields.number("latency_ms"),
        thread_id=fields.text("thread_id"),
        raw_response=fields.value("raw_response"),
        error=error,
        metadata=fields.metadata(),
        # Last, because all of the above may add warnings. A stored reply already has its own.
        warnings=(*earlier, *[warning for warning in report.warnings if warning not in earlier]),
        unread=(*unread, *report.unread(any(message.tool_calls for message in messages or ()))),
        incomplete=incomplete,
        echo_end=echo_end,
        turns=turns,
    )


def _events(fields: Fields) -> Sequence[Any] | None:
    """Return the events of a trace, which may be wrapped in an object; its other fields are kept as metadata."""
    value = fields.get("trace")
    if not isinstance(value, OBJECT) or (events := events_of(value)) is None:
        return fields.items("trace")
    others = {key: item for key, item in value.items() if item is not events} if "type" not in value else {}
    if others:
        fields.add_metadata("trace", others)
    return events


def _earlier_places(fields: Fields, name: str) -> tuple[Unread, ...]:
    """Return the unread or incomplete places of a stored reply; an agent's own field of that name is metadata."""
    value = fields.get(name)
    if value is None:
        return ()
    try:
        return convert(value, tuple[Unread, ...])
    except CONVERT_ERRORS:
        fields.keep_as_metadata(name)
        return ()


def _earlier_echo_end(fields: Fields) -> int | None:
    value = fields.get("echo_end")
    if isinstance(value, int) and is_count(value):
        return value
    if value is not None:
        fields.keep_as_metadata("echo_end")
    return None


def _earlier_turns(fields: Fields) -> tuple[TurnReply, ...]:
    """Return the turns of a stored conversation; an agent's own field of that name is metadata."""
    value = fields.get("turns")
    if value is None:
        return ()
    try:
        return convert(value, tuple[TurnReply, ...])
    except CONVERT_ERRORS:
        fields.keep_as_metadata("turns")
        return ()


def _join_metadata(first: dict[str, Any] | None, second: dict[str, Any] | None) -> dict[str, Any] | None:
    if first is None or second is None:
        return second if first is None else first
    malformed = [
        call for part in (first, second) if isinstance(part.get("malformed"), list) for call in part["malformed"]
    ]
    return {**first, **second, **({"malformed": malformed} if malformed else {})}


def join_responses(messages: ProviderResponse, rest: ProviderResponse) -> ProviderResponse:
    """Join messages that were read separately with the other fields of their reply."""
    return replace(
        rest,
        success=rest.success and messages.success,
        text=rest.text or messages.text,
        output_messages=messages.output_messages,
        reasoning=messages.reasoning if rest.reasoning is None else rest.reasoning,
        tokens_usage=messages.tokens_usage if rest.tokens_usage is None else rest.tokens_usage,
        error=rest.error or messages.error,
        metadata=_join_metadata(messages.metadata, rest.metadata),
        warnings=(*messages.warnings, *[warning for warning in rest.warnings if warning not in messages.warnings]),
        unread=(*messages.unread, *rest.unread),
        incomplete=(*messages.incomplete, *rest.incomplete),
        echo_end=rest.echo_end if messages.echo_end is None else messages.echo_end,
    )


def with_turn_usage(response: ProviderResponse) -> ProviderResponse:
    """Return the reply to one request of a model, whose usage is that of its message if it has only one."""
    messages, usage = response.output_messages or (), response.tokens_usage
    turns = [message for message in messages if message.role == "assistant"]
    if usage is None or response.echo_end is not None or len(turns) != 1 or turns[0].tokens_usage is not None:
        return response
    filled = replace(turns[0], tokens_usage=usage)
    return replace(
        response, output_messages=tuple([filled if message is turns[0] else message for message in messages])
    )


def join_turns(turns: Sequence[ProviderResponse]) -> ProviderResponse:
    """Join consecutive replies: the last one has the answer, and their usage is added up."""
    turns = [with_turn_usage(turn) for turn in turns]
    errors = [turn.error for turn in turns if turn.error is not None]
    return replace(
        turns[-1],
        success=all(turn.success for turn in turns),
        output_messages=tuple(message for turn in turns for message in turn.output_messages or ()),
        reasoning="\n\n".join(turn.reasoning for turn in turns if turn.reasoning) or None,
        tokens_usage=add_usage([turn.tokens_usage for turn in turns]),
        error=errors[0] if errors else None,
        warnings=tuple(warning for turn in turns for warning in turn.warnings),
        unread=tuple(place for turn in turns for place in turn.unread),
        incomplete=tuple(place for turn in turns for place in turn.incomplete),
    )


def add_fields(messages: ProviderResponse, others: Mapping[str, Any], **fields: Any) -> ProviderResponse:
    """Join messages that were read separately with our own fields; `others` become metadata."""
    kept = {key: value for key, value in others.items() if value is not None}
    return join_responses(messages, decode_fields({**fields, "metadata": kept or None}))


def _lift_old_metadata(reply: Mapping[Any, Any]) -> Mapping[Any, Any]:
    metadata = reply.get("metadata")
    if not isinstance(metadata, OBJECT) or _OLD_METADATA.keys().isdisjoint(metadata):
        return reply
    present = {_NAMES.get(key) for key, value in reply.items() if value is not None}
    raised = {
        new: metadata[old] for old, new in _OLD_METADATA.items() if metadata.get(old) is not None and new not in present
    }
    kept = {key: value for key, value in metadata.items() if _OLD_METADATA.get(key) not in raised}
    return {**reply, "metadata": kept or None, **raised}


def _success(fields: Fields, error: ResponseError | None) -> bool:
    """Return whether there is a usable reply: an error counts, even if the agent says that it succeeded."""
    success = fields.flag("success")
    if success and error is not None:
        fields.report.warn(("success",), SUCCESS_WITH_ERROR)
    return error is None and success is not False


def _error(fields: Fields) -> ResponseError | None:
    value = fields.get("error")
    if value is None or (isinstance(value, (str, *OBJECT)) and not value):
        return None
    if isinstance(value, ResponseError):
        return value
    if isinstance(value, str):
        return ResponseError(kind="agent", message=fields.text("error") or "")
    if not isinstance(value, OBJECT):
        fields.warn_invalid("error", "a string or an object")
        return ResponseError(kind="agent", message=_error_text(value, fields.report)) if value else None
    inner = Fields(value, _ERROR, (*fields.path, "error"), fields.report)
    kind, message, retryable = inner.text("kind"), inner.text("message"), inner.flag("retryable")
    if kind is not None and kind not in _KINDS:
        inner.warn_invalid("kind", "one of " + ", ".join(get_args(ErrorKind)))
        kind = None
    code, pause = inner.get("code"), inner.number("retry_after_s")
    if code is not None and not isinstance(code, str):  # a number, which is valid in other APIs
        inner.keep_as_metadata("code")
        code = None
    unknown = inner.metadata()
    if unknown is not None:
        fields.add_metadata("error", unknown)
    return ResponseError(
        kind=kind or "agent",  # type: ignore[arg-type]  # one of the literals, as just checked
        message=_error_text(value, fields.report) if message is None else message,
        retryable=retryable or False,
        code=UNSET if code is None else code,
        retry_after_s=UNSET if pause is None else pause,
    )


def _error_text(value: Any, report: Report) -> str:
    if isinstance(value, int):
        return describe_value(value)
    return dump_json(report.limit(value, ("error",)))[:_MAX_ERROR_BYTES].decode("utf-8", "ignore")


def _usage(fields: Fields) -> TokensUsage | None:
    usage, complete = read_usage(fields.get("tokens_usage"), ("tokens_usage",), fields.report)
    if not complete:
        fields.keep_as_metadata("tokens_usage")
    return usage


def _summary(fields: Fields) -> TraceSummary | None:
    if fields.get("trace_summary") is None:
        return None
    summary, complete = decode_summary(fields.get("trace_summary"), ("trace_summary",), fields.report)
    if not complete:
        fields.keep_as_metadata("trace_summary")
    return summary


def _earlier_warnings(fields: Fields) -> tuple[str, ...]:
    """Return the warnings of a stored reply."""
    warnings = fields.items("warnings") or ()
    if all(isinstance(warning, str) for warning in warnings):
        return tuple(map(clean_text, warnings))
    fields.warn_invalid("warnings", "a list of strings")
    return ()


ReadTraceFile = Callable[[str], bytes]
"""Returns the content of the file that a `trace_ref` names, or raises `FormatError`."""
HASH_PREFIX = "sha256:"
_SHOWN_DIGITS = 12


def follow_trace_ref(response: ProviderResponse, read: ReadTraceFile) -> ProviderResponse:
    """Return the reply with the events of its trace file and their hash.

    If they cannot be read, or are not those of the hash that the reply has already, the file is an unread place.
    """
    name = response.trace_ref or ""
    try:
        data = read(name)
        document = _parse(data)
    except FormatError as error:
        return with_unread_file(response, str(error))
    digest = HASH_PREFIX + sha256(data).hexdigest()
    if response.trace_hash not in (None, digest):
        return with_unread_file(response, _changed(name, response.trace_hash or "", digest))
    events = events_of(document)
    if events is None:
        return with_unread_file(response, f"{name!r} holds no list of events")
    decoded = decode_fields({"trace": events})
    warnings = [warning.replace("trace", "trace_ref", 1) for warning in decoded.warnings]
    if not decoded.trace and not warnings:
        warnings = [f"trace_ref: {name!r} holds no events"]
    return replace(
        response,
        # An empty file does not replace the events that were sent along.
        trace=decoded.trace or response.trace or (),
        trace_hash=digest,
        # A stored reply already has the warnings and the places of its file.
        warnings=(*response.warnings, *[warning for warning in warnings if warning not in response.warnings]),
        unread=(*response.unread, *[place for place in decoded.unread if place not in response.unread]),
    )


def with_unread_file(response: ProviderResponse, reason: str) -> ProviderResponse:
    """Return the reply with its trace file as a place that was not read."""
    place = Unread(path=TRACE_REF, reason=f"{reason}, {MISSING_CALLS}")
    return replace(response, unread=(*response.unread, place))


def without_root(response: ProviderResponse) -> ProviderResponse:
    """Return the reply with its trace file unread, since the folder of the file is unknown."""
    return with_unread_file(response, f"{response.trace_ref!r} was not read: pass `root`, the folder that holds it")


def _parse(data: bytes) -> Any:
    """Parse a trace file: one document, or one event a line."""
    try:
        return parse_json(data)
    except FormatError:
        lines = [line for line in data.split(b"\n") if line.strip(b" \t\r")]
        if len(lines) < 2 or not _is_json(lines[0]):  # noqa: PLR2004 - one line is one document
            raise
        return [_parse_line(line) for line in lines]


def _is_json(line: bytes) -> bool:
    try:
        parse_json(line)
    except FormatError:
        return False
    return True


def _parse_line(line: bytes) -> Any:
    """Return the value of a line, or its text: an event that is no object is reported as not understood."""
    try:
        return parse_json(line)
    except FormatError:
        return line.decode("utf-8", "replace")


def _changed(name: str, before: str, now: str) -> str:
    then, today = (digest.removeprefix(HASH_PREFIX)[:_SHOWN_DIGITS] for digest in (before, now))
    return f"{name!r} changed since it was read for this reply (its SHA-256 was {then}…, and is {today}… now)"
