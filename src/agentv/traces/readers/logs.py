"""Logs of evaluations and frameworks: Inspect (`.eval` and JSON), ADK, ATIF, and result files of agentv."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.fields import MISSING_CALLS, objects_in
from agentv.formats.reader import detect_conversation
from agentv.model.response import Unread
from agentv.protocols.traces import TraceFormat
from agentv.traces.files import MAX_DOCUMENT, READ_ERRORS, ZIP, load_zstd
from agentv.traces.readers.lines import iter_placed, time_range
from agentv.traces.records import PARSE_ERRORS, describe_error, parse_record
from agentv.traces.sessions import session_from_response, with_lost_records
from agentv.traces.spans.values import first_of, format_time, read_time, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agentv.model.conversation import ToolCall
    from agentv.model.response import ProviderResponse
    from agentv.model.session import Session
    from agentv.protocols.traces import TraceSample, TraceSink, TraceSource

    _Object = Mapping[str, Any]

_ZSTD_METHOD = 93
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_ATTACHMENT = "attachment://"
_NS_PER_MS = 1_000_000
_MAX_DEPTH = 60
_ATIF_IDS = ("session_id", "trajectory_id")
_INSPECT = ("inspect_ai_sample", "inspect_ai", "messages")
_ADK = ("adk_session", "adk")
"""Formats of replies that records have."""
_NO_RECORD = "a record of another shape than the format has"
_CUT = "…"
"""End of a text that agentv cut in a result file."""


class _Member(io.RawIOBase):
    """The compressed bytes of one member of a zip file."""

    def __init__(self, stream: Any, size: int) -> None:
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read bytes into a buffer, at most to the end of the member."""
        data = self._stream.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)


def _read_member(archive: zipfile.ZipFile, stream: Any, info: zipfile.ZipInfo) -> bytes:
    """Return a member of a zip file, also one that is compressed with zstd, which `zipfile` does not know."""
    if info.compress_type != _ZSTD_METHOD:
        with archive.open(info) as member:
            data = member.read(MAX_DOCUMENT + 1)
    else:
        stream.seek(info.header_offset)
        header = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
        if header[0] != ZIP:
            msg = "the zip file is damaged"
            raise FormatError(msg)
        stream.seek(header[-1] + header[-2], io.SEEK_CUR)
        zstandard = load_zstd()
        source: Any = _Member(stream, info.compress_size)
        try:
            data = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True).read(MAX_DOCUMENT + 1)
        except zstandard.ZstdError as error:
            raise FormatError(str(error)) from error
        if len(data) <= MAX_DOCUMENT and (len(data) != info.file_size or zlib.crc32(data) != info.CRC):
            msg = "the member is damaged: its size or checksum differs"
            raise FormatError(msg)
    if len(data) > MAX_DOCUMENT:
        msg = f"a member of more than {MAX_DOCUMENT // 1024 // 1024} MB is not read"
        raise FormatError(msg)
    return bytes(data)


def _is_inspect(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("eval"), dict) and "version" in value:
        return "samples" in value or "status" in value
    return _is_sample(value)


def _is_sample(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "epoch" in value
        and "id" in value
        and isinstance(value.get("messages", value.get("events")), list)
    )


def _detect_inspect(sample: TraceSample) -> bool:
    if sample.head.startswith(ZIP):
        return any(mark in sample.head for mark in (b"_journal/", b"samples/", b"header.json"))
    return any(map(_is_inspect, sample.values))


def _read_inspect(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    with file.open() as stream:
        is_zip = stream.read(len(ZIP)) == ZIP
    if is_zip:
        yield from _read_eval(file, sink)
        return
    for place, value in iter_placed(file, sink, as_lines=is_lines):
        if not _is_inspect(value):
            sink.skip(place, _NO_RECORD)
            continue
        samples = [value] if _is_sample(value) else value.get("samples")
        model = value["eval"].get("model") if isinstance(value.get("eval"), dict) else None
        if not samples:
            sink.note("an Inspect log without samples")
        for number, sample in enumerate(samples if isinstance(samples, list) else ()):
            where = place if _is_sample(value) else f"{place} samples[{number}]"
            if _is_sample(sample):
                yield _inspect_session(sample, where, model)
            else:
                sink.skip(where, "a sample without messages")


def _read_eval(file: TraceSource, sink: TraceSink) -> Iterator[Session]:
    """Yield the samples of a `.eval` file, one in memory at a time."""
    with file.open() as stream:
        try:
            archive = zipfile.ZipFile(stream)
            members = [info for info in archive.infolist() if _is_sample_name(info.filename)]
        except (zipfile.BadZipFile, NotImplementedError, *PARSE_ERRORS, *READ_ERRORS) as error:
            sink.skip(file.name, f"the zip file is damaged: {describe_error(error)}")
            return
        model = _eval_model(archive, stream)
        if not members:
            sink.note("an Inspect log without samples")
        for info in members:
            place = f"{file.name}:{info.filename}"
            try:
                sample = parse_record(_read_member(archive, stream, info))
            except (
                zipfile.BadZipFile,
                NotImplementedError,
                RuntimeError,
                struct.error,
                *PARSE_ERRORS,
                *READ_ERRORS,
            ) as error:
                sink.skip(place, describe_error(error))
                continue
            if _is_sample(sample):
                yield _inspect_session(sample, place, model)
            else:
                sink.skip(place, "a sample without messages")


def _is_sample_name(name: str) -> bool:
    return name.startswith("samples/") and name.endswith(".json")


def _eval_model(archive: zipfile.ZipFile, stream: Any) -> Any:
    for name in ("header.json", "_journal/start.json"):
        try:
            header = parse_record(_read_member(archive, stream, archive.getinfo(name)))
        except (
            KeyError,
            zipfile.BadZipFile,
            NotImplementedError,
            RuntimeError,
            struct.error,
            *PARSE_ERRORS,
            *READ_ERRORS,
        ):
            continue
        own = header.get("eval") if isinstance(header, dict) else None
        if isinstance(own, dict):
            return own.get("model")
    return None


def _inspect_session(sample: _Object, place: str, model: Any) -> Session:
    """Return the session of a sample: its messages, and calls of subagents and of compacted parts from its events."""
    attachments = sample.get("attachments")
    attachments = attachments if isinstance(attachments, dict) else {}
    missing: set[str] = set()
    messages = _with_attachments(sample.get("messages"), attachments, missing)
    events = [event for event in objects_in(sample.get("events")) if event.get("event") == "tool"]
    content = {**sample, "messages": _with_event_calls(messages, events, attachments, missing)}
    response = detect_conversation({key: item for key, item in content.items() if key != "events"}, _INSPECT).response
    response = _with_durations(response, events)
    if missing:
        lost = Unread(path="attachments", reason=f"{len(missing)} attachments are missing, so calls may be missing")
        response = replace(response, unread=(*response.unread, lost))
    start, end = time_range(objects_in(sample.get("events")))  # type: ignore[arg-type]  # objects
    start, end = read_time(sample.get("started_at")) or start, read_time(sample.get("completed_at")) or end
    if response.latency_ms is None and end > start > 0:
        response = replace(response, latency_ms=(end - start) / _NS_PER_MS)
    own, epoch = sample.get("id"), sample.get("epoch")
    return session_from_response(
        response,
        id=text_of(sample.get("uuid")) or f"{own}#{epoch}",
        format="inspect",
        place=place,
        case_id=str(own),
        started_at=format_time(start),
        ended_at=format_time(end),
        model=text_of(model),
        metadata={"epoch": epoch},
    )


def _with_attachments(value: Any, attachments: _Object, missing: set[str], depth: int = 0) -> Any:
    """Return a value whose references to attachments are replaced by them."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        name = value[len(_ATTACHMENT) :]
        if name not in attachments:
            missing.add(name)
        return attachments.get(name, value)
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, list):
        return [_with_attachments(item, attachments, missing, depth + 1) for item in value]
    if isinstance(value, dict):
        return {key: _with_attachments(item, attachments, missing, depth + 1) for key, item in value.items()}
    return value


def _with_event_calls(messages: Any, events: list[Any], attachments: _Object, missing: set[str]) -> list[Any]:
    """Return messages with the calls that only events tell, each after the call before it."""
    found: list[Any] = list(messages) if isinstance(messages, list) else []
    known = {str(call.get("id")) for message in objects_in(found) for call in objects_in(message.get("tool_calls"))}
    at = 0
    for event in events:
        own = event.get("id")
        if str(own) in known:
            places = [number for number, message in enumerate(found) if _names(message, own)]
            at = max([at, *(number + 1 for number in places)])
            continue
        event = _with_attachments(dict(event), attachments, missing)  # noqa: PLW2901 - the whole one
        call = {"id": own, "function": event.get("function"), "arguments": event.get("arguments"), "type": "function"}
        result = {
            "role": "tool",
            "tool_call_id": own,
            "function": event.get("function"),
            "content": event.get("result"),
        }
        result["error"] = event.get("error")
        at = at or next(
            (n for n, each in enumerate(found) if isinstance(each, dict) and each.get("role") == "assistant"),
            len(found),
        )
        added = [{"role": "assistant", "content": "", "tool_calls": [call]}, result]
        found[at:at] = added if event.get("pending") is not True else added[:1]
        at += len(added)
    return found


def _names(message: Any, call_id: Any) -> bool:
    if not isinstance(message, dict):
        return False
    return message.get("tool_call_id") == call_id or any(
        call.get("id") == call_id for call in objects_in(message.get("tool_calls"))
    )


def _with_durations(response: ProviderResponse, events: list[Any]) -> ProviderResponse:
    times = {event["id"]: event for event in events if isinstance(event.get("id"), str)}

    def complete(call: ToolCall) -> ToolCall:
        event = times.get(call.id or "", {})
        call = _with_error(call, event.get("error"))
        start, end = read_time(event.get("timestamp")), read_time(event.get("completed"))
        if not start:
            return call
        return replace(
            call,
            timestamp=call.timestamp or format_time(start),
            duration_ms=(end - start) / _NS_PER_MS if end >= start else call.duration_ms,
        )

    messages = [
        replace(message, tool_calls=tuple(map(complete, message.tool_calls))) if message.tool_calls else message
        for message in response.output_messages or ()
    ]
    return replace(response, output_messages=tuple(messages)) if messages else response


def _with_error(call: ToolCall, error: Any) -> ToolCall:
    """Return a call with the error that only its event tells."""
    if call.status is not None or not isinstance(error, dict) or not error:
        return call
    return replace(
        call, status="denied" if error.get("type") == "approval" else "error", error=call.error or error.get("message")
    )


def _is_adk(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(first_of(value, "eval_cases", "evalCases", "eval_case_results", "evalCaseResults"), list):
        return True
    has_names = any(key in value for key in ("app_name", "appName")) and any(
        key in value for key in ("user_id", "userId")
    )
    return (has_names and isinstance(value.get("events"), list)) or _is_adk_event(value)


def _is_adk_event(value: _Object) -> bool:
    return "author" in value and any(key in value for key in ("invocation_id", "invocationId")) and "actions" in value


def _adk_sessions(value: _Object, place: str) -> Iterator[Session]:
    """Yield the session of a session file, or one for each case of an evalset or of its results."""
    cases = first_of(value, "eval_cases", "evalCases", "eval_case_results", "evalCaseResults")
    if not isinstance(cases, list):
        start, end = time_range(list(objects_in(value.get("events"))))
        response = detect_conversation(value, _ADK).response
        agent = text_of(first_of(value, "app_name", "appName"))
        name = text_of(value.get("id")) or place
        times = {"started_at": format_time(start), "ended_at": format_time(end)}
        yield session_from_response(response, id=name, format="adk", place=place, agent=agent, **times)
        return
    for number, case in enumerate(cases):
        own = text_of(first_of(case, "eval_id", "evalId")) if isinstance(case, dict) else None
        where = f"{place} eval_cases[{number}]"
        events = list(_adk_events(case)) if isinstance(case, dict) else [case]
        response = detect_conversation(events, _ADK).response
        session_id = text_of(first_of(case, "session_id", "sessionId")) if isinstance(case, dict) else None
        yield session_from_response(
            response, id=session_id or own or f"{place}#{number}", format="adk", place=where, case_id=own
        )


def _adk_events(case: _Object) -> Iterator[Any]:
    """Yield the invocations of a case as events."""
    invocations = case.get("conversation")
    if not isinstance(invocations, list):
        results = objects_in(first_of(case, "eval_metric_result_per_invocation", "evalMetricResultPerInvocation"))
        invocations = [first_of(each, "actual_invocation", "actualInvocation") for each in results]
    for invocation in invocations:
        if not isinstance(invocation, dict):
            yield {"author": "agent", "content": invocation}
            continue
        user = first_of(invocation, "user_content", "userContent")
        yield {"author": "user", "content": user}
        data = first_of(invocation, "intermediate_data", "intermediateData")
        data = data if isinstance(data, dict) else {}
        for event in objects_in(first_of(data, "invocation_events", "invocationEvents")):
            yield {"author": event.get("author", "agent"), "content": event.get("content")}
        uses = list(objects_in(first_of(data, "tool_uses", "toolUses")))
        if uses:
            parts = [{"function_call": use} for use in uses]
            yield {"author": "agent", "content": {"role": "model", "parts": parts}}
        responses = list(objects_in(first_of(data, "tool_responses", "toolResponses")))
        if responses:
            parts = [{"function_response": each} for each in responses]
            yield {"author": "agent", "content": {"role": "user", "parts": parts}}
        final = first_of(invocation, "final_response", "finalResponse")
        if final is not None:
            yield {"author": "agent", "content": final}


def _read_adk(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    """Yield the sessions of documents; single events of a file are one session."""
    events: list[Any] = []
    lost: list[str] = []
    for place, value in iter_placed(file, sink, as_lines=is_lines, lost=lost):
        if isinstance(value, dict) and _is_adk_event(value):
            events.append(value)
        elif _is_adk(value):
            yield from _adk_sessions(value, place)
        else:
            sink.skip(place, _NO_RECORD)
            lost.append(place)
    if events:
        start, end = time_range(events)
        session = session_from_response(
            detect_conversation(events, _ADK).response,
            id=file.stem, format="adk", place=file.name, started_at=format_time(start), ended_at=format_time(end),
        )  # fmt: skip
        yield with_lost_records(session, lost)


def _is_atif(value: Any) -> bool:
    version = value.get("schema_version") if isinstance(value, dict) else None
    return isinstance(version, str) and version.upper().startswith("ATIF") and isinstance(value.get("steps"), list)


def _atif_sessions(value: _Object, place: str) -> Iterator[Session]:
    agent = value.get("agent")
    agent = agent if isinstance(agent, dict) else {}
    start, end = time_range(list(objects_in(value["steps"])))
    response = detect_conversation(value, ("atif",)).response
    if response.latency_ms is None and end > start:
        response = replace(response, latency_ms=(end - start) / _NS_PER_MS)
    if away := tuple(_subagents_elsewhere(value)):
        response = replace(response, unread=(*response.unread, *away))
    yield session_from_response(
        response,
        id=text_of(value.get("session_id")) or place,
        format="atif",
        place=place,
        started_at=format_time(start),
        ended_at=format_time(end),
        agent=text_of(agent.get("name")),
        model=text_of(agent.get("model_name")),
    )
    for number, inner in enumerate(objects_in(value.get("subagent_trajectories"))):
        if _is_atif(inner):
            yield from _atif_sessions(inner, f"{place} subagent_trajectories[{number}]")


def _subagents_elsewhere(value: _Object) -> Iterator[Unread]:
    """Yield the subagents whose trajectories are not in that of the agent."""
    inside = {text_of(each.get(key)) for each in objects_in(value.get("subagent_trajectories")) for key in _ATIF_IDS}
    for number, step in enumerate(objects_in(value["steps"])):
        observation = step.get("observation")
        for result in objects_in(observation.get("results") if isinstance(observation, dict) else None):
            found = result.get("subagent_trajectory_ref")
            for ref in objects_in(found if isinstance(found, list) else [found]):
                names = [name for key in _ATIF_IDS if (name := text_of(ref.get(key)))]
                if inside.isdisjoint(names):
                    name = text_of(ref.get("trajectory_path")) or next(iter(names), "")
                    reason = f"the calls of the subagent {name!r} are in a trajectory of its own, {MISSING_CALLS}"
                    yield Unread(path=f"steps[{number}]", reason=reason)


def _is_result(value: Any) -> bool:
    return isinstance(value, dict) and all(key in value for key in ("run_id", "case_id", "candidate", "evaluators"))


def _result_sessions(value: _Object, place: str) -> Iterator[Session]:
    """Yield the session of a result record; without its messages only the first calls are known, and no results."""
    messages, calls = value.get("messages"), value.get("calls")
    text = value["candidate"] if isinstance(value["candidate"], str) else ""
    unread: list[Unread] = []
    if not isinstance(messages, list):
        asked = value.get("input")
        messages = [{"role": "user", "content": asked}] if isinstance(asked, str) else []
        known = [_recorded_call(call) for call in objects_in(calls)]
        messages.append({"role": "assistant", "content": text, **({"tool_calls": known} if known else {})})
        summary = value.get("trace_summary")
        count = summary.get("event_count") if isinstance(summary, dict) else None
        if calls is None or count != len(known):
            reason = "the record does not hold all calls: write results with messages, so calls may be missing"
            unread.append(Unread(path="calls", reason=reason))
    unread += [
        Unread(path=str(item.get("path")), reason=str(item.get("reason"))) for item in objects_in(value.get("unread"))
    ]
    if value.get("calls_complete") is False and not unread:
        unread.append(Unread(path="calls", reason="the record says that its calls are incomplete"))
    reply = {"output_messages": messages, "text": text, "tokens_usage": value.get("tokens_usage")}
    reply |= {"cost_usd": value.get("cost_usd"), "latency_ms": value.get("latency_ms")}
    response = detect_conversation(reply, ("agentv", "messages")).response
    response = replace(response, unread=(*response.unread, *unread))
    yield session_from_response(
        response,
        id=str(value["run_id"]),
        format="agentv",
        place=place,
        case_id=text_of(value.get("case_id")),
        started_at=text_of(value.get("started_at")),
        ended_at=text_of(value.get("completed_at")),
        agent=text_of(value.get("target")),
    )


def _recorded_call(call: _Object) -> dict[str, Any]:
    """Return a call of a record; the beginning of a long input stands for one that was not captured."""
    value = call.get("input", UNSET)
    is_cut = isinstance(value, str) and value.endswith(_CUT)
    return {"tool": call.get("tool"), **({} if value is UNSET or is_cut else {"input": value})}


def _format(
    name: str,
    description: str,
    is_record: Callable[[Any], bool],
    sessions_of: Callable[[_Object, str], Iterator[Session]],
) -> TraceFormat:
    """Return a format in which each record is one or more sessions."""

    def detect(sample: TraceSample) -> bool:
        return any(map(is_record, sample.values))

    def read(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
        for place, value in iter_placed(file, sink, as_lines=is_lines):
            if is_record(value):
                yield from sessions_of(value, place)
            else:
                sink.skip(place, _NO_RECORD)

    return TraceFormat(name=name, description=description, detect=detect, read=read)


INSPECT = TraceFormat(
    name="inspect",
    description="logs of Inspect: `.eval` files and JSON",
    detect=_detect_inspect,
    read=_read_inspect,
)
ADK = TraceFormat(
    name="adk",
    description="Google ADK: sessions, events, evalsets and their results",
    detect=lambda sample: any(map(_is_adk, sample.values)),
    read=_read_adk,
)
ATIF = _format("atif", "trajectories in the Agent Trajectory Interchange Format", _is_atif, _atif_sessions)
AGENTV = _format("agentv", "result files of agentv", _is_result, _result_sessions)
