"""What a model charges."""

from typing import Annotated

from msgspec import Meta, Struct

Dollars = Annotated[float, Meta(ge=0, le=1_000_000)]


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a million tokens cost, in US dollars."""

    input: Dollars
    """Tokens that the model read and that were in no cache."""
    output: Dollars
    """Tokens that the model wrote, reasoning included."""
    cache_read: Dollars | None = None
    """Tokens that were read from a cache; by default as much as any other input."""
    cache_write: Dollars | None = None
    """Tokens that were put into a cache; by default as much as any other input."""
