"""Reader of an agent's own trace and its summary."""

from collections.abc import Sequence
from typing import Any, get_args

from msgspec import UNSET

from agentv.formats.fields import OBJECT, Fields, Path, Report, describe_value, is_count
from agentv.model.conversation import EventType, TraceEvent, TraceSummary

MAX_EVENTS = 1_000_000

EVENT_TYPES = frozenset(get_args(EventType))
_EVENT_LISTS = ("events", "trace")
_EVENT = {name: name for name in TraceEvent.__struct_fields__}
_SUMMARY = {
    **{name: name for name in TraceSummary.__struct_fields__},
    "eventCount": "event_count",
    "toolNames": "tool_names",
    "toolCallsByName": "tool_calls_by_name",
    "errorCount": "error_count",
}


def events_of(value: Any) -> Sequence[Any] | None:
    """Return the events of a trace: a list, an object with `events` or `trace`, or a single event."""
    if isinstance(value, (list, tuple)):
        return value
    if not isinstance(value, OBJECT):
        return None
    kind = value.get("type")
    if isinstance(kind, str) and kind in EVENT_TYPES:
        return [value]
    return next((value[key] for key in _EVENT_LISTS if isinstance(value.get(key), (list, tuple))), None)


def decode_events(items: Sequence[Any], report: Report, path: Path) -> tuple[TraceEvent, ...]:
    """Read the events of a trace; invalid ones are reported and dropped."""
    if len(items) > MAX_EVENTS:
        report.warn(path, f"more than {MAX_EVENTS:,} events, the rest are left out")
        report.skip(path, f"what comes after {MAX_EVENTS:,} events")
        items = items[:MAX_EVENTS]
    events = (_event(raw, (*path, position), report) for position, raw in enumerate(items))
    return tuple(event for event in events if event is not None)


def _event(raw: Any, path: Path, report: Report) -> TraceEvent | None:
    if isinstance(raw, TraceEvent):
        return raw
    if not isinstance(raw, OBJECT):
        report.skip_invalid(path, "an object", raw)
        return None
    kind = raw.get("type")
    if not isinstance(kind, str) or kind not in EVENT_TYPES:
        report.warn_invalid((*path, "type"), "one of " + ", ".join(get_args(EventType)), kind)
        report.skip(path, f"an event of type {describe_value(kind)}")
        report.malformed.append(report.limit(raw, path))
        return None
    fields = Fields(raw, _EVENT, path, report)
    return TraceEvent(
        type=kind,  # type: ignore[arg-type]  # one of the literals, as just checked
        timestamp=fields.text("timestamp"),
        id=fields.identifier("id"),
        name=fields.text("name"),
        input=fields.value("input", UNSET),
        output=fields.value("output", UNSET),
        text=fields.text("text"),
        metadata=fields.metadata(),
    )


def decode_summary(raw: Any, path: Path, report: Report) -> tuple[TraceSummary | None, bool]:
    """Read a summary; return it and whether it holds all data that the agent sent."""
    if isinstance(raw, TraceSummary):
        return raw, True
    if not isinstance(raw, OBJECT):
        report.warn_invalid(path, "an object", raw)
        return None, False
    fields = Fields(raw, _SUMMARY, path, report)
    by_name = _calls_by_name(fields)
    listed = fields.items("tool_names") or ()
    names = [report.valid_text(name, (*path, "tool_names")) for name in listed if isinstance(name, str)]
    if len(names) < len(fields.get("tool_names") or ()):
        fields.warn_invalid("tool_names", "a list of strings")
    events, errors = _count(fields, "event_count"), _count(fields, "error_count")
    summary = TraceSummary(
        event_count=sum(by_name.values()) if events is None else events,
        tool_names=tuple(sorted({*names, *by_name})),
        tool_calls_by_name=by_name,
        error_count=errors or 0,
    )
    return summary, fields.metadata() is None


def _calls_by_name(fields: Fields) -> dict[str, int]:
    value = fields.get("tool_calls_by_name")
    if value is None:
        return {}
    if isinstance(value, OBJECT):
        counts = {
            fields.report.valid_text(name, (*fields.path, "tool_calls_by_name")): count
            for name, count in value.items()
            if isinstance(name, str) and is_count(count)
        }
        if len(counts) == len(value):
            return counts
    else:
        counts = {}
    fields.warn_invalid("tool_calls_by_name", "an object of whole numbers")
    return counts


def _count(fields: Fields, name: str) -> int | None:
    value = fields.get(name)
    if value is None or is_count(value):
        return value  # type: ignore[no-any-return]  # a count, as just checked
    fields.warn_invalid(name, "a whole number of at least 0")
    return None
