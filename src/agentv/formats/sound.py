"""What a reply of somebody's own code counts: numbers that can be added up, or nothing and a word about it."""

from math import inf

from msgspec.structs import replace

from agentv.model.response import ProviderResponse
from agentv.model.usage import TokensUsage

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
