"""What a reply cost, from the tokens it used and a dated table of prices that anybody may correct."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from agentv.model.response import Price  # noqa: TC001 - the table is decoded by it

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.model.response import TokensUsage


MILLION = 1_000_000
_DATED = re.compile(r"(?:[-@]20\d\d-?[01]\d-?[0-3]\d|-latest)$")
"""`gpt-4o-2024-08-06`, `claude-opus-4-5-20251101`, `claude-3-5-sonnet@20240620`, `claude-3-5-haiku-latest`."""
_CLOUD = re.compile(r"^(?:(?:us|eu|apac|global)\.)?anthropic\.|-v\d+(?::\d+)?$")
"""`us.anthropic.claude-sonnet-4-20250514-v1:0`."""


class PriceTable(Struct, frozen=True, kw_only=True):
    """The prices that come with this package."""

    schema: str
    date: str
    """The day up to which they were looked after."""
    unit: str
    source: str
    models: dict[str, Price]


@cache
def price_table() -> PriceTable:
    """The table, read when a price is first asked for."""
    return msgspec.json.decode(Path(__file__).with_name("prices.json").read_bytes(), type=PriceTable)


def find_price(model: str, own: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model, the user's own words first; `None` when nobody knows it.

    A vendor before the name and a date after it may be missing in the table; `*` stands for anything in `own`.
    """
    names = _names(model)
    if own:
        lower = {key.lower(): price for key, price in own.items()}
        found = next((lower[name] for name in names if name in lower), None)
        globs = (lower[key] for key in lower for name in names if "*" in key and fnmatchcase(name, key))
        found = found or next(globs, None)
        if found is not None:
            return found
    models = price_table().models
    return next((models[name] for name in names if name in models), None)


def cost_of(usage: TokensUsage | None, price: Price | None) -> float | None:
    """US dollars; `None` when the price, the input or the output is not known.

    Input includes what came from a cache or went into one, so that these tokens are billed once, at their own price.
    """
    if usage is None or price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    read = min(usage.cache_read_tokens or 0, usage.input_tokens)
    written = min(usage.cache_write_tokens or 0, usage.input_tokens - read)
    dollars = (
        (usage.input_tokens - read - written) * price.input
        + read * (price.input if price.cache_read is None else price.cache_read)
        + written * (price.input if price.cache_write is None else price.cache_write)
        + usage.output_tokens * price.output
    )
    return round(dollars / MILLION, 12)


def _names(model: str) -> list[str]:
    """What a model may be called in a table, the closest first."""
    whole = model.strip().lower()
    bare = whole.rpartition("/")[2]
    plain = _CLOUD.sub("", _CLOUD.sub("", bare))
    return list(dict.fromkeys([whole, bare, plain, _DATED.sub("", bare), _DATED.sub("", plain)]))
