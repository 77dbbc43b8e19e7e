"""Tokens that a reply cost."""

from typing import Any

from msgspec import Struct


class TokensUsage(Struct, frozen=True, kw_only=True):
    """Token counts under one rule: a whole includes its parts, and unknown is `None`, never 0."""

    input_tokens: int | None = None
    """Everything the model read, cached tokens included."""
    output_tokens: int | None = None
    """Everything the model wrote, reasoning tokens included."""
    total_tokens: int | None = None
    """As the provider reported it, else the sum of the two."""
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    metadata: dict[str, Any] | None = None
    """`sum_tokens`, when the reported total disagrees with the sum."""
