"""Exports of tracing systems, which are rejected by name, with advice on what to send instead."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentv.errors import FormatError
from agentv.formats.fields import OBJECT, object_or_empty, objects_in
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_SEND = "Let the agent send its messages (`output_messages`), or its text with its calls, in place of the trace"
_SPAN_LISTS = ("spans", "data", "traces", "result")
"""Keys of the spans in an export."""


def _detect_otlp(value: Any) -> bool:
    return any(_has_list(item, "resourceSpans", "resource_spans") for item in _objects(value))


def _detect_jaeger(value: Any) -> bool:
    return any(isinstance(item.get("traceID"), str) and _has_list(item, "spans") for item in _objects_with_data(value))


def _detect_mlflow(value: Any) -> bool:
    for item in _objects(value):
        info, data = item.get("info"), item.get("data")
        if isinstance(info, OBJECT) and isinstance(data, OBJECT) and _has_list(data, "spans"):
            return True
    return False


def _detect_langfuse(value: Any) -> bool:
    """Return whether a value is a trace with its observations, or a list of observations."""
    return any(
        any(
            isinstance(each.get("traceId"), str) and "startTime" in each
            for each in objects_in(item.get("observations"))
        )
        or (isinstance(item.get("traceId"), str) and "parentObservationId" in item)
        for item in _objects_with_data(value)
    )


def _detect_langsmith(value: Any) -> bool:
    return any(
        isinstance(item.get("run_type"), str) and ("dotted_order" in item or "child_runs" in item or "trace_id" in item)
        for item in _objects(value)
    )


def _detect_inspect(value: Any) -> bool:
    return any(
        isinstance(item.get("eval"), OBJECT) and "version" in item and ("samples" in item or "plan" in item)
        for item in _objects(value)
    )


def _detect_openinference(value: Any) -> bool:
    return any(
        any(str(key).startswith("openinference.") for key in span["attributes"])
        or "openinference" in span["attributes"]
        for span in _spans(value)
    )


def _detect_spans(value: Any) -> bool:
    return any(True for _ in _spans(value))


def _spans(value: Any) -> Iterator[_Object]:
    """Yield the objects that are spans: with attributes, a span id and a trace id."""
    lists = [object_or_empty(value).get(key) for key in _SPAN_LISTS]
    for item in (*_objects(value), *(each for items in lists for each in objects_in(items))):
        context = item.get("context")
        places = [item, context] if isinstance(context, OBJECT) else [item]
        has_id = any(place.get(key) for place in places for key in ("span_id", "spanId", "spanID"))
        if has_id and isinstance(item.get("attributes"), OBJECT) and "role" not in item:
            yield item


def _detect_bare_spans(value: Any) -> bool:
    """Return whether a value holds spans of OTLP, Zipkin or Datadog, by the names of their ids and times."""
    fields = object_or_empty(value)
    attributes = object_or_empty(object_or_empty(fields.get("data")).get("attributes"))
    lists = [*(fields.get(key) for key in _SPAN_LISTS), attributes.get("spans")]
    for item in (*_objects(value), *(each for items in lists for each in objects_in(items))):
        has_trace = any(isinstance(item.get(key), str) for key in ("traceId", "trace_id", "traceID"))
        has_span = any(isinstance(item.get(key), str) for key in ("spanId", "span_id", "spanID"))
        is_zipkin = "localEndpoint" in item and "id" in item
        if has_trace and "role" not in item and "name" in item and (has_span or is_zipkin):
            return True
    return False


def _detect_helicone(value: Any) -> bool:
    return any("request_body" in each and "response_body" in each for each in _objects_with_data(value))


def _objects(value: Any) -> list[_Object]:
    return [value] if isinstance(value, OBJECT) else list(objects_in(value))


def _objects_with_data(value: Any) -> list[_Object]:
    return [each for item in _objects(value) for each in (item, *objects_in(item.get("data")))]


def _has_list(item: _Object, *keys: str) -> bool:
    return any(isinstance(item.get(key), (list, tuple)) and bool(item[key]) for key in keys)


_KINDS: tuple[tuple[Callable[[Any], bool], str, str], ...] = (
    (_detect_otlp, "an OTLP export of OpenTelemetry spans", _SEND),
    (_detect_jaeger, "a trace of Jaeger", _SEND),
    (_detect_mlflow, "a trace of MLflow", _SEND),
    (_detect_langfuse, "a trace of Langfuse", _SEND),
    (_detect_langsmith, "a run of LangSmith", _SEND),
    (_detect_inspect, "an eval log of Inspect", "Score its samples one by one: each has `messages`"),
    (_detect_openinference, "spans of OpenInference (Arize Phoenix)", _SEND),
    (_detect_spans, "a list of OpenTelemetry spans", _SEND),
    (_detect_helicone, "a log of requests of Helicone", _SEND),
    (_detect_bare_spans, "a list of spans", _SEND),
)
"""The detector, the name and the advice for each export."""


_KEYS = frozenset((
    *("resourceSpans", "resource_spans", "traceID", "traceId", "trace_id", "info", "observations", "run_type", "eval"),
    *("attributes", "request_body", *_SPAN_LISTS),
))  # fmt: skip
"""Keys of which each kind of export has at least one."""


def _detect(value: Any) -> bool:
    if all(map(_KEYS.isdisjoint, _objects(value))):
        return False
    return any(detect(value) for detect, _, _ in _KINDS)


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    del reader
    name, advice = next((name, advice) for detect, name, advice in _KINDS if detect(value))
    msg = f"the reply is {name}, which is a record of runs and not a reply. {advice}"
    raise FormatError(msg)


FORMAT = ReplyFormat(name="telemetry", detect=_detect, read=_read)
