"""What judges used, summed from the findings that tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agentv.model.judging import JudgeSums, JudgeUsage, add_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentv.model.usage import TokensUsage


class _Sum:
    """One judge's numbers so far."""

    def __init__(self) -> None:
        self.calls = self.cached = self.findings = self.reported = 0
        self.cost = 0.0
        self.tokens: TokensUsage | None = None


class JudgeTotals:
    """The judges of an execution, by name."""

    def __init__(self) -> None:
        self._sums: dict[str, _Sum] = {}

    def add(self, details: Mapping[str, Any]) -> None:
        """One finding, and those that it is made of."""
        for usage in _usages(details):
            total = self._sums.setdefault(usage.target, _Sum())
            total.findings += 1
            total.calls += usage.calls
            total.cached += usage.cached
            total.tokens = add_tokens([total.tokens, usage.tokens_usage])
            if usage.cost_usd is not None:
                total.reported += 1
                total.cost += usage.cost_usd

    def sums(self) -> dict[str, JudgeSums]:
        """What each of them came to, in the order of their names."""
        return {
            name: JudgeSums(
                calls=total.calls,
                cached=total.cached,
                tokens_usage=total.tokens,
                cost_usd=total.cost if total.reported else None,
                findings=total.findings,
                reported_cost=total.reported,
            )
            for name, total in sorted(self._sums.items())
        }


def _usages(details: Mapping[str, Any]) -> Iterator[JudgeUsage]:
    """Those of one finding: a panel has several, and a finding made of others has theirs."""
    told = details.get("judge")
    for each in told if isinstance(told, list) else [told]:
        if isinstance(each, dict):
            try:
                yield msgspec.convert(each, JudgeUsage)
            except msgspec.ValidationError:  # somebody else's evaluator has a word of its own there
                continue
    inner = details.get("inner")
    for result in inner if isinstance(inner, list) else ():
        if isinstance(result, dict) and isinstance(result.get("details"), dict):
            yield from _usages(result["details"])
