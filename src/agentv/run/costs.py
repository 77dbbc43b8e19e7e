"""Costs of an execution: the cost of each reply, the sums, and the limits `max_cost` and `max_tokens`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv.pricing import calculate_cost, find_price, price_table
from agentv.run.rate_limit import tokens_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agentv.evals import Eval
    from agentv.model.response import Price, ProviderResponse
    from agentv.protocols import ProviderSettings
    from agentv.run.options import RunOptions


COST_TOLERANCE = 1e-9
"""Sums of money that differ by less are equal."""
MAX_NAMED = 5


class Spending:
    """Costs and tokens of one execution, and its limits."""

    def __init__(self, max_cost: float | None = None, max_tokens: int | None = None) -> None:
        self._max_cost = max_cost
        self._max_tokens = max_tokens
        self._is_limited = max_cost is not None or max_tokens is not None
        self.cost_usd = 0.0
        self.tokens = 0
        self.reached: str | None = None
        """The limit that was reached, as a sentence; nothing more may be started then."""
        self._unpriced: dict[str, None] = {}
        """Names of models without a known price, in the order of their first reply."""
        self._without_cost = 0
        self._without_tokens = 0

    def make_cost_counter(
        self, settings: ProviderSettings, prices: Mapping[str, Price] | None = None
    ) -> Callable[[ProviderResponse], ProviderResponse]:
        """Return a function that adds the cost to each reply of this target, and counts it."""
        known: dict[str, Price | None] = {}

        def price_of(response: ProviderResponse) -> Price | None:
            if settings.price is not None:
                return settings.price
            # The model that replied may have another name than the requested one, and no price under it.
            reported = (response.metadata or {}).get("model")
            names = [name for name in (reported, settings.model) if isinstance(name, str) and name]
            if not names:
                return None
            model = names[0]
            if model not in known:
                known[model] = next((price for name in names if (price := find_price(name, prices))), None)
                if known[model] is None:
                    self._unpriced[model] = None
            return known[model]

        def count_cost(response: ProviderResponse) -> ProviderResponse:
            if response.cost_usd is None and response.tokens_usage is not None:
                cost = calculate_cost(response.tokens_usage, price_of(response))
                if cost is not None:
                    response = replace(response, cost_usd=cost)
            if self._is_limited:
                self.add(response)
            return response

        return count_cost

    def add(self, response: ProviderResponse) -> None:
        """Add one reply to the sums."""
        tokens = tokens_of(response)
        self.cost_usd += response.cost_usd or 0.0
        self.tokens += tokens or 0
        if response.success:
            self._without_cost += response.cost_usd is None
            self._without_tokens += tokens is None
        if self.reached is not None:
            return
        if self._max_cost is not None and self.cost_usd >= self._max_cost - COST_TOLERANCE:
            self.reached = f"`max_cost` of ${self._max_cost:g} is reached"
        elif self._max_tokens is not None and self.tokens >= self._max_tokens:
            self.reached = f"`max_tokens` of {self._max_tokens:,} is reached"

    def stop_reason(self, missing: int, planned: int) -> str | None:
        """Return why this number of runs is missing, if a limit is the reason."""
        if self.reached is None or missing <= 0:
            return None
        spent = f"${self.cost_usd:.4f}" if "cost" in self.reached else f"{self.tokens:,} tokens"
        runs = "run was" if planned == 1 else "runs were"
        return f"{self.reached} ({spent} spent): {missing:,} of {planned:,} {runs} not started"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Replies and models that the sums do not include."""
        warnings = []
        if self._unpriced:
            names = [repr(name) for name in self._unpriced]
            some = ", ".join([*names[:MAX_NAMED], *(["…"] if len(names) > MAX_NAMED else [])])
            table = f"the table of {price_table().date}"
            whose = "its" if len(names) == 1 else "their"
            warnings.append(
                f"no price is known for {some}: {whose} cost is null; {table} has none, set `prices` or `price`"
            )
        if self._max_cost is not None and self._without_cost:
            warnings.append(f"`max_cost` did not see {_replies(self._without_cost)} whose cost is not known")
        if self._max_tokens is not None and self._without_tokens:
            warnings.append(f"`max_tokens` did not see {_replies(self._without_tokens)} without a count of tokens")
        return tuple(warnings)


def with_limits(options: RunOptions, evals: Iterable[Eval]) -> RunOptions:
    """Return the options with the smallest `max_cost` and `max_tokens` of the evals, unless they set their own."""
    limits = [eval_.limits for eval_ in evals]
    costs = [limit.max_cost for limit in limits if limit.max_cost is not None]
    tokens = [limit.max_tokens for limit in limits if limit.max_tokens is not None]
    return replace(
        options,
        max_cost=min(costs, default=None) if options.max_cost is None else options.max_cost,
        max_tokens=min(tokens, default=None) if options.max_tokens is None else options.max_tokens,
    )


def _replies(count: int) -> str:
    return f"{count:,} {'reply' if count == 1 else 'replies'}"
