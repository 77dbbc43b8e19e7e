"""Normalization of replies built by user code, and conversion of exceptions to failed replies."""

from math import inf

from msgspec.structs import replace

from agentv.errors import AgentVError, ProviderError
from agentv.formats.conversation import last_assistant_text
from agentv.formats.messages import is_normalized
from agentv.formats.response import decode_fields
from agentv.model.conversation import TraceEvent, TraceSummary
from agentv.model.response import ErrorKind, ProviderResponse, ResponseError, TokensUsage, Unread


def normalize(response: ProviderResponse) -> ProviderResponse:
    """Convert the fields of a reply to their declared types: user code may pass dicts and lists."""
    if _is_normalized(response):
        return response
    values = {name: getattr(response, name) for name in response.__struct_fields__}
    defaults = zip(response.__struct_fields__, response.__struct_defaults__, strict=True)
    return decode_fields({name: values[name] for name, default in defaults if values[name] is not default})


def normalize_user_reply(response: ProviderResponse) -> ProviderResponse:
    """Normalize a reply built by user code, and derive its text and its success from the other fields."""
    response = normalize(response)
    text = response.text or last_assistant_text(response.output_messages)
    success = response.success and response.error is None
    is_unchanged = text == response.text and success == response.success
    return response if is_unchanged else replace(response, text=text, success=success)


def _is_normalized(response: ProviderResponse) -> bool:
    messages, trace = response.output_messages, response.trace
    return (
        (messages is None or (type(messages) is tuple and all(map(is_normalized, messages))))
        and (trace is None or (type(trace) is tuple and all(isinstance(event, TraceEvent) for event in trace)))
        and (response.error is None or isinstance(response.error, ResponseError))
        and (response.trace_summary is None or isinstance(response.trace_summary, TraceSummary))
        and (response.tokens_usage is None or isinstance(response.tokens_usage, TokensUsage))
        and (response.metadata is None or isinstance(response.metadata, dict))
        and isinstance(response.text, str)
        and type(response.warnings) is tuple
        and (response.unread == () or all(isinstance(place, Unread) for place in response.unread))
        and (response.incomplete == () or all(isinstance(place, Unread) for place in response.incomplete))
    )


_COUNTS = ("input_tokens", "output_tokens", "total_tokens")


def drop_invalid_numbers(response: ProviderResponse) -> ProviderResponse:
    """Drop invalid numbers with a warning: one NaN would invalidate all sums and limits."""
    usage = response.tokens_usage
    if _is_amount(response.cost_usd) and _is_amount(response.latency_ms) and (usage is None or _counts(usage)):
        return response
    invalid = [name for name in ("cost_usd", "latency_ms") if not _is_amount(getattr(response, name))]
    warnings = [f"{name}: expected a number of at least 0, got {getattr(response, name)!r}" for name in invalid]
    if usage is not None and not _counts(usage):
        invalid.append("tokens_usage")
        counts = ", ".join(f"{name} {getattr(usage, name)!r}" for name in _COUNTS)
        warnings.append(f"tokens_usage: expected whole numbers of at least 0, got {counts}")
    return replace(response, **dict.fromkeys(invalid), warnings=(*response.warnings, *warnings))


def _is_amount(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and 0 <= value < inf)


def _counts(usage: TokensUsage) -> bool:
    return _is_count(usage.input_tokens) and _is_count(usage.output_tokens) and _is_count(usage.total_tokens)


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and value >= 0)


def failure_from_exception(error: BaseException) -> ProviderResponse:
    """Return the failed reply of a target that raised an exception."""
    if isinstance(error, ProviderError):
        return failed_response("transport", str(error), retryable=error.transient)
    if isinstance(error, ConnectionError):
        return failed_response("transport", describe_exception(error), retryable=True)
    if isinstance(error, TimeoutError):
        return failed_response("timeout", str(error) or "the agent ran out of time by its own clock")
    if isinstance(error, AgentVError):
        return failed_response("protocol", str(error))
    return failed_response("agent", describe_exception(error))


def describe_exception(error: BaseException) -> str:
    """Return the type and the message of an exception; the message may be empty or raise itself."""
    name = type(error).__name__
    try:
        message = str(error)
    except Exception as nested:  # noqa: BLE001 - user-defined exceptions may raise anything
        return f"{name}, whose text is itself an error ({type(nested).__name__})"
    return f"{name}: {message}" if message else name


def failed_response(kind: ErrorKind, message: str, *, retryable: bool = False) -> ProviderResponse:
    """Return the reply of a target that failed."""
    return ProviderResponse(success=False, error=ResponseError(kind=kind, message=message, retryable=retryable))
