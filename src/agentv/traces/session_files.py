"""Files of sessions, one in each line: in our own form, as messages of OpenAI, as events of ADK, or exported runs.

Each line of `agentv convert` has what the form cannot express in its field `agentv`, so that a session that is read
again is the same, and what was not understood stays unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import to_builtins

from agentv.formats.adk import from_adk, to_adk
from agentv.formats.fields import MISSING_CALLS, OBJECT
from agentv.formats.incomplete import mark_incomplete
from agentv.formats.openai import from_openai, to_openai
from agentv.formats.run_export import EXECUTION_SCHEMAS, RUN_SCHEMAS, is_openai_form, read_openai_run, read_run
from agentv.model.conversation import Message, may_have_gap
from agentv.model.request import Case
from agentv.model.response import ProviderResponse, Unread
from agentv.model.session import Session
from agentv.protocols.traces import TraceFormat
from agentv.traces.records import describe_error, flat_records, parse_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agentv.model.stored import StoredRun
    from agentv.protocols.traces import TraceSample, TraceSink, TraceSource

SCHEMA = "agentv.session/1"
Form = Literal["compact", "openai", "adk"]
_OWN = "agentv"
_PLACES = {"compact": "messages", "openai": "messages", "adk": "events"}
"""Key of the messages in each form."""
_ABSENT = "absent"
"""Key of the fields that the form adds and the session does not have."""
_NOT_STORED = Unread(path="reply", reason=f"the run was stored without its messages, {MISSING_CALLS}")
_decode_messages: Callable[[Any], tuple[Message, ...]] = lambda items: msgspec.convert(items, tuple[Message, ...])  # noqa: E731 - beside the others
_WRITERS: dict[str, Callable[[Any], list[Any]]] = {"compact": to_builtins, "openai": to_openai, "adk": to_adk}
_READERS: dict[str, Callable[[Any], tuple[Message, ...]]] = {
    "compact": _decode_messages,
    "openai": from_openai,
    "adk": from_adk,
}


def write_session(session: Session, form: Form) -> dict[str, Any]:
    """Return a session as the JSON data of one line."""
    messages = session.messages
    written = to_builtins(_WRITERS[form](messages))
    fields = to_builtins(session)
    response = fields.pop("response", {})
    response.pop("output_messages", None)
    fields.pop("input_messages", None)
    own: dict[str, Any] = {"schema": SCHEMA, "form": form, "prompt": len(session.input_messages)}
    own |= {"session": fields, "response": response, "has_output": session.response.output_messages is not None}
    if rest := _differences(messages, _READERS[form](written)):
        own["rest"] = rest
    line: dict[str, Any] = {"id": session.id}
    if form == "adk":
        line |= {"app_name": session.agent or "agent", "user_id": "user"}
    return {**line, _PLACES[form]: written, _OWN: own}


def _differences(messages: Sequence[Message], read: Sequence[Message]) -> Any:
    """Return what a form loses: the fields of each message, or all messages if it has another number of them."""
    originals: list[dict[str, Any]] = to_builtins(tuple(messages))
    found: list[dict[str, Any]] = to_builtins(tuple(read))
    if len(originals) != len(found):
        return originals
    rest = {}
    for index, (original, other) in enumerate(zip(originals, found, strict=True)):
        calls, other_calls = original.get("tool_calls", []), other.get("tool_calls", [])
        lost = _lost_fields(original, other)
        if len(calls) == len(other_calls):
            lost.pop("tool_calls", None)
            pairs = enumerate(zip(calls, other_calls, strict=True))
            by_call = {str(at): fields for at, pair in pairs if (fields := _lost_fields(*pair))}
            lost |= {"calls": by_call} if by_call else {}
        if lost:
            rest[str(index)] = lost
    return rest


def _lost_fields(original: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    lost = {key: value for key, value in original.items() if key not in other or not _is_same(other[key], value)}
    added = [key for key in other if key not in original]
    return {**lost, **({_ABSENT: added} if added else {})}


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; `1`, `1.0` and `true` are not."""
    return msgspec.json.encode(one) == msgspec.json.encode(other)


def read_session(line: Any, place: str) -> Session:
    """Return the session of a line; raise `ValueError` if it is none."""
    own = line[_OWN]
    form = own.get("form")
    if form not in _READERS or not isinstance(line.get(_PLACES[form]), list):
        msg = f"a session of the form {form!r}, of which there are {', '.join(_READERS)}"
        raise ValueError(msg)
    messages = _restored(_READERS[form](line[_PLACES[form]]), own.get("rest"))
    count = own.get("prompt")
    if not isinstance(count, int) or not 0 <= count <= len(messages):
        msg = "the number of its first messages, `agentv.prompt`, is wrong"
        raise ValueError(msg)
    response = msgspec.convert(own.get("response") or {}, ProviderResponse)
    output = messages[count:] if own.get("has_output") or messages[count:] else None
    session = {**(own.get("session") or {}), "id": str(line.get("id") or place)}
    return msgspec.structs.replace(
        msgspec.convert({"format": "session", "place": place, **session}, Session),
        input_messages=messages[:count],
        response=msgspec.structs.replace(response, output_messages=output),
    )


def _restored(messages: tuple[Message, ...], rest: Any) -> tuple[Message, ...]:
    """Return messages with what their form could not express."""
    if not rest:
        return messages
    if isinstance(rest, list):
        return _decode_messages(rest)
    items: list[dict[str, Any]] = to_builtins(messages)
    for index, fields in rest.items():
        item = items[int(index)]
        calls = fields.get("calls") or {}
        _restore(item, {key: value for key, value in fields.items() if key != "calls"})
        for at, lost in calls.items():
            _restore(item["tool_calls"][int(at)], lost)
    return _decode_messages(items)


def _restore(item: dict[str, Any], lost: dict[str, Any]) -> None:
    for key in lost.get(_ABSENT, ()):
        item.pop(key, None)
    item.update({key: value for key, value in lost.items() if key != _ABSENT})


def _is_session(value: Any) -> bool:
    own = value.get(_OWN) if isinstance(value, OBJECT) else None
    return isinstance(own, OBJECT) and own.get("schema") == SCHEMA


def _detect(sample: TraceSample) -> bool:
    return any(map(_is_session, sample.values))


def _read(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    for record in flat_records(file, sink, as_lines=is_lines):
        try:
            value = parse_record(record.data)
            if not _is_session(value):
                msg = f"no session: its field `agentv` does not name {SCHEMA}"
                raise ValueError(msg)  # noqa: TRY301 - reported below, as all others
            yield read_session(value, record.place)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            sink.skip(record.place, describe_error(error))


FORMAT = TraceFormat(name="session", description="sessions that `agentv convert` wrote", detect=_detect, read=_read)


def session_of_run(run: StoredRun, run_id: str, case: Case, response: ProviderResponse) -> Session:
    """Return a stored run as a session."""
    prompt = case.input_messages
    if response.turns:  # whose messages include those of the user in the first turn
        messages, asked = response.output_messages or (), response.turns[0].user_messages
        prompt = (*prompt, *messages[:asked])
        response = msgspec.structs.replace(response, output_messages=messages[asked:], turns=())
    return Session(
        id=run_id,
        format="export",
        place=run.place,
        input_messages=prompt,
        response=response,
        case_id=run.case_id,
        started_at=run.started_at,
        agent=run.target,
    )


def _read_run_line(line: bytes, number: int, place: str) -> Session:
    execution_id, run = read_openai_run(line, number) if is_openai_form(line) else read_run(line)
    case, _ = msgspec.json.decode(run.content, type=tuple[Case, Any])
    response = ProviderResponse(unread=(_NOT_STORED,))
    if run.response is not None:
        response = msgspec.json.decode(run.response, type=ProviderResponse)
        response = mark_incomplete(response) if may_have_gap(run.response) else response
    session = session_of_run(run, run.own_id or f"{execution_id}-{run.key}", case, response)
    return msgspec.structs.replace(session, place=place)


def _schema(value: Any) -> Any:
    return value.get("schema") if isinstance(value, OBJECT) else None


def _detect_export(sample: TraceSample) -> bool:
    return any(_schema(value) in (*RUN_SCHEMAS, *EXECUTION_SCHEMAS) for value in sample.values)


def _read_export(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    for number, record in enumerate(flat_records(file, sink, as_lines=is_lines), 1):
        try:
            schema = _schema(parse_record(record.data))
            if schema in RUN_SCHEMAS:
                yield _read_run_line(bytes(record.data), number, record.place)
            elif schema not in EXECUTION_SCHEMAS:
                sink.skip(record.place, f"schema {schema!r}; expected {RUN_SCHEMAS[0]} or {EXECUTION_SCHEMAS[0]}")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            sink.skip(record.place, describe_error(error))


EXPORT = TraceFormat(
    name="export", description="runs that `agentv executions export` wrote", detect=_detect_export, read=_read_export
)
