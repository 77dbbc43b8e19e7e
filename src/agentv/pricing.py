"""Cost of a reply, from its token usage and a dated price table that users can override."""

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
"""Date of a model, as in `gpt-4o-2024-08-06`, `claude-3-5-sonnet@20240620` or `claude-3-5-haiku-latest`."""
_CLOUD = re.compile(r"^(?:(?:us|eu|apac|global)\.)?anthropic\.|-v\d+(?::\d+)?$")
"""Region, vendor and version of a cloud, as in `us.anthropic.claude-sonnet-4-20250514-v1:0`."""


class PriceTable(Struct, frozen=True, kw_only=True):
    """The price table of this package (`prices.json`)."""

    schema: str
    date: str
    """Day on which the prices were last checked."""
    unit: str
    source: str
    models: dict[str, Price]


@cache
def price_table() -> PriceTable:
    """Return the price table; it is read at the first call."""
    return msgspec.json.decode(Path(__file__).with_name("prices.json").read_bytes(), type=PriceTable)


def find_price(model: str, own: Mapping[str, Price] | None = None) -> Price | None:
    """Return the price of a model, from the user's prices first; `None` if it is unknown.

    The vendor before the name and the date after it are optional; `*` in `own` matches any text.
    """
    names = _model_names(model)
    if own:
        lower = {key.lower(): price for key, price in own.items()}
        price = next((lower[name] for name in names if name in lower), None)
        globs = (lower[key] for key in lower for name in names if "*" in key and fnmatchcase(name, key))
        price = price or next(globs, None)
        if price is not None:
            return price
    models = price_table().models
    return next((models[name] for name in names if name in models), None)


def calculate_cost(usage: TokensUsage | None, price: Price | None) -> float | None:
    """Return the cost in US dollars; `None` if the price, the input or the output is unknown.

    `input_tokens` includes tokens read from and written to a cache, which are billed at their own price.
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


def _model_names(model: str) -> list[str]:
    """Return the names that a model may have in a price table, the most specific first."""
    whole = model.strip().lower()
    bare = whole.rpartition("/")[2]
    plain = _CLOUD.sub("", _CLOUD.sub("", bare))
    return list(dict.fromkeys([whole, bare, plain, _DATED.sub("", bare), _DATED.sub("", plain)]))
