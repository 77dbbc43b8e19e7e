"""Replies of Python code that are not quite what their types say, made what reading them would have made of them."""

from msgspec.structs import replace

from agentv.formats.messages import is_whole
from agentv.formats.response import decode_foreign, last_words
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.trace import TraceEvent, TraceSummary
from agentv.model.usage import TokensUsage

_TYPES = {"error": ResponseError, "trace_summary": TraceSummary, "tokens_usage": TokensUsage, "metadata": dict}


def settle(response: ProviderResponse) -> ProviderResponse:
    """Give a reply whose parts are what its type says: whoever puts one together may put dicts and lists into it."""
    if _is_settled(response):
        return response
    told = {name: getattr(response, name) for name in response.__struct_fields__}
    defaults = zip(response.__struct_fields__, response.__struct_defaults__, strict=True)
    return decode_foreign({name: told[name] for name, default in defaults if told[name] is not default})


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
    )
