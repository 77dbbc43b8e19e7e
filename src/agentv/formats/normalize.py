"""Make replies that were built by user code sound, and turn exceptions into failed replies."""

from math import inf

from msgspec.structs import replace

from agentv.errors import AgentVError, ProviderError
from agentv.formats.messages import is_whole
from agentv.formats.response import decode_fields, last_words
from agentv.model.conversation import TraceEvent, TraceSummary
from agentv.model.response import ErrorKind, ProviderResponse, ResponseError, TokensUsage, Unread

_TYPES = {"error": ResponseError, "trace_summary": TraceSummary, "tokens_usage": TokensUsage, "metadata": dict}


def settle(response: ProviderResponse) -> ProviderResponse:
    """Give a reply whose parts are what its type says: whoever puts one together may put dicts and lists into it."""
    if _is_settled(response):
        return response
    told = {name: getattr(response, name) for name in response.__struct_fields__}
    defaults = zip(response.__struct_fields__, response.__struct_defaults__, strict=True)
    return decode_fields({name: told[name] for name, default in defaults if told[name] is not default})


def settle_made(response: ProviderResponse) -> ProviderResponse:
    """Give a reply that was put together by hand with what follows from its fields: its text, and that it failed."""
    response = settle(response)
    text = response.text or last_words(response.output_messages)
    success = response.success and response.error is None
    is_so = text == response.text and success == response.success
    return response if is_so else replace(response, text=text, success=success)


def _is_settled(response: ProviderResponse) -> bool:
    messages, trace = response.output_messages, response.trace
    return (
        (messages is None or (type(messages) is tuple and all(map(is_whole, messages))))
        and (trace is None or (type(trace) is tuple and all(isinstance(event, TraceEvent) for event in trace)))
        and all((value := getattr(response, name)) is None or isinstance(value, kind) for name, kind in _TYPES.items())
        and isinstance(response.text, str)
        and type(response.warnings) is tuple
        and all(isinstance(place, Unread) for place in response.unread)
    )


_COUNTS = ("input_tokens", "output_tokens", "total_tokens")


def sound(response: ProviderResponse) -> ProviderResponse:
    """The reply without what is no amount: one NaN among the costs would make every sum and every limit void."""
    usage = response.tokens_usage
    if _is_amount(response.cost_usd) and _is_amount(response.latency_ms) and (usage is None or _counts(usage)):
        return response
    wrong = [name for name in ("cost_usd", "latency_ms") if not _is_amount(getattr(response, name))]
    told = [f"{name}: expected a number of at least 0, got {getattr(response, name)!r}" for name in wrong]
    if usage is not None and not _counts(usage):
        wrong.append("tokens_usage")
        counts = ", ".join(f"{name} {getattr(usage, name)!r}" for name in _COUNTS)
        told.append(f"tokens_usage: expected whole numbers of at least 0, got {counts}")
    return replace(response, **dict.fromkeys(wrong), warnings=(*response.warnings, *told))


def _is_amount(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and 0 <= value < inf)


def _counts(usage: TokensUsage) -> bool:
    return _is_count(usage.input_tokens) and _is_count(usage.output_tokens) and _is_count(usage.total_tokens)


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and value >= 0)


def failure_of(error: BaseException) -> ProviderResponse:
    """The reply of a target that threw this instead of giving one."""
    if isinstance(error, ProviderError):
        return failed("transport", str(error), retryable=error.transient)
    if isinstance(error, ConnectionError):
        return failed("transport", words_of(error), retryable=True)
    if isinstance(error, TimeoutError):
        return failed("timeout", str(error) or "the agent ran out of time by its own clock")
    if isinstance(error, AgentVError):
        return failed("protocol", str(error))
    return failed("agent", words_of(error))


def words_of(error: BaseException) -> str:
    """What an exception is and says; one may say nothing, or fail even at that."""
    name = type(error).__name__
    try:
        said = str(error)
    except Exception as wrong:  # noqa: BLE001 - code of somebody's, as all that is thrown here
        return f"{name}, whose text is itself an error ({type(wrong).__name__})"
    return f"{name}: {said}" if said else name


def failed(kind: ErrorKind, message: str, *, retryable: bool = False) -> ProviderResponse:
    """Return the reply of a target that gave none."""
    return ProviderResponse(success=False, error=ResponseError(kind=kind, message=message, retryable=retryable))
