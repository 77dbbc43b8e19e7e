"""What an execution has spent: the cost of each reply, the sums, and whether there is more to spend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.pricing import cost_of, find_price, price_table
from agentv.run.rate_limit import tokens_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agentv.evals import Eval
    from agentv.model.response import Price, ProviderResponse
    from agentv.run.options import RunOptions


NEAR = 1e-9
"""Sums of money that differ by less are the same."""
MAX_NAMED = 5


class Spending:
    """The account of one execution."""

    def __init__(self, max_cost: float | None = None, max_tokens: int | None = None) -> None:
        self._max_cost = max_cost
        self._max_tokens = max_tokens
        self._is_limited = max_cost is not None or max_tokens is not None
        self.cost_usd = 0.0
        self.tokens = 0
        self.reached: str | None = None
        """Which limit, in words; once there is one, nothing more may be started."""
        self._unpriced: dict[str, None] = {}
        self._costless = 0
        self._tokenless = 0

    def accountant(
        self, provider: Any, prices: Mapping[str, Price] | None = None
    ) -> Callable[[ProviderResponse], ProviderResponse]:
        """Who adds to each reply of this target what it cost, and counts it."""
        fixed: Price | None = getattr(provider, "price", None)
        usual = getattr(provider, "model", None)
        known: dict[str, Price | None] = {}

        def price_of(response: ProviderResponse) -> Price | None:
            if fixed is not None:
                return fixed
            # What answered may be called otherwise than what was asked for, and be in no table under that name.
            names = [name for name in ((response.metadata or {}).get("model"), usual) if isinstance(name, str) and name]
            if not names:
                return None
            model = names[0]
            if model not in known:
                known[model] = next((price for name in names if (price := find_price(name, prices))), None)
                if known[model] is None:
                    self._unpriced[model] = None
            return known[model]

        def account(response: ProviderResponse) -> ProviderResponse:
            if response.cost_usd is None and response.tokens_usage is not None:
                cost = cost_of(response.tokens_usage, price_of(response))
                if cost is not None:
                    response = replace(response, cost_usd=cost)
            if self._is_limited:
                self.count(response)
            return response

        return account

    def count(self, response: ProviderResponse) -> None:
        """Add one reply to the sums."""
        tokens = tokens_of(response)
        self.cost_usd += response.cost_usd or 0.0
        self.tokens += tokens or 0
        if response.success:
            self._costless += response.cost_usd is None
            self._tokenless += tokens is None
        if self.reached is not None:
            return
        if self._max_cost is not None and self.cost_usd >= self._max_cost - NEAR:
            self.reached = f"`max_cost` of ${self._max_cost:g} is reached"
        elif self._max_tokens is not None and self.tokens >= self._max_tokens:
            self.reached = f"`max_tokens` of {self._max_tokens:,} is reached"

    def stopped(self, missing: int, planned: int) -> str | None:
        """Why runs are missing, when it is because of a limit."""
        if self.reached is None or missing <= 0:
            return None
        spent = f"${self.cost_usd:.4f}" if "cost" in self.reached else f"{self.tokens:,} tokens"
        return f"{self.reached} ({spent} spent): {missing:,} of {planned:,} runs were not started"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the sums do not tell."""
        said = []
        if self._unpriced:
            names = [repr(name) for name in self._unpriced]
            some = ", ".join([*names[:MAX_NAMED], *(["…"] if len(names) > MAX_NAMED else [])])
            table = f"the table of {price_table().date}"
            whose = "its" if len(names) == 1 else "their"
            said.append(
                f"no price is known for {some}: {whose} cost is null; {table} has none, set `prices` or `price`"
            )
        if self._max_cost is not None and self._costless:
            said.append(f"`max_cost` did not see {_replies(self._costless)} whose cost is not known")
        if self._max_tokens is not None and self._tokenless:
            said.append(f"`max_tokens` did not see {_replies(self._tokenless)} without a count of tokens")
        return tuple(said)


def with_limits(options: RunOptions, evals: Iterable[Eval]) -> RunOptions:
    """What an execution may spend: as the caller said, else the smallest that any of its evals says."""
    limits = [each.limits for each in evals]
    costs = [each.max_cost for each in limits if each.max_cost is not None]
    tokens = [each.max_tokens for each in limits if each.max_tokens is not None]
    return replace(
        options,
        max_cost=min(costs, default=None) if options.max_cost is None else options.max_cost,
        max_tokens=min(tokens, default=None) if options.max_tokens is None else options.max_tokens,
    )


def _replies(count: int) -> str:
    return f"{count:,} {'reply' if count == 1 else 'replies'}"
