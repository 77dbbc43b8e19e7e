"""The trace that a reply keeps in a file."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.json import parse_json
from agentv.formats.response import decode_response
from agentv.model.response import ProviderResponse


def follow_trace_ref(response: ProviderResponse, read: Callable[[str], bytes]) -> ProviderResponse:
    """The reply with its trace inside, or with a warning that says why it could not be read."""
    try:
        data = parse_json(read(response.trace_ref or ""))
        events = data.get("trace", data.get("events")) if isinstance(data, Mapping) else data
        found = decode_response({"trace": events})
    except FormatError as error:
        return replace(response, warnings=(*response.warnings, f"trace_ref: {error}"))
    warnings = [warning.replace("trace", "trace_ref", 1) for warning in found.warnings]
    if not found.trace and not warnings:
        warnings = [f"trace_ref: {response.trace_ref!r} holds no events"]
    # A file without any says nothing that the events sent along could not.
    return replace(response, trace=found.trace or response.trace, warnings=(*response.warnings, *warnings))


def leave_trace_ref(response: ProviderResponse) -> ProviderResponse:
    """The reply with a warning that nobody said where its trace lies."""
    warning = f"trace_ref: {response.trace_ref!r} was not read: pass `root`, the folder it lies below"
    return replace(response, warnings=(*response.warnings, warning))
