"""`no_redundant_calls`: nothing was asked of a tool that had been asked of it before."""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from agentv.errors import Problem
from agentv.evaluators.base import EvaluatorBase, Example, Tally
from agentv.evaluators.told import (
    Name,
    Names,
    check_filter,
    concluded,
    counts_told,
    excluded_by,
    first_of,
    meant_by,
    why_unseen,
)
from agentv.evaluators.trajectory import words
from agentv.evaluators.trajectory.config import CallFilter
from agentv.evaluators.trajectory.plan import count_calls, count_certain_calls
from agentv.evaluators.unread import unread_calls
from agentv.matching.equality import canonical
from agentv.matching.inputs import PLAIN_RULE, InputRule
from agentv.model.message import ToolCall
from agentv.model.result import EvaluatorResult
from agentv.protocols import Context


class NoRedundantCalls(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """No call was made twice: the same tool with an equal input."""

    type: Literal["no_redundant_calls"] = "no_redundant_calls"
    tools: Names | UnsetType = UNSET
    """Only calls of these tools; `*` and `?` make a name a glob."""
    ignore: list[Name] = []
    """Keys of the input that make no difference; globs, and a dotted path reaches deeper."""
    calls: CallFilter | None = None
    """Which calls count, by their status; denied and pending ones do not, unless it says so."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={"type": "no_redundant_calls", "ignore": ["request_id"]},
            reply=[
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"tool": "search", "input": {"query": query, "request_id": number}}
                        for number, query in enumerate(queries)
                    ],
                }
            ],
            passes=passes,
        )
        for queries, passes in ((("refund", "return"), True), (("refund", "refund"), False))
    )

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        return list(check_filter(self.calls, path))

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """One constraint."""
        tally = Tally()
        if ctx.calls is None:
            self._from_counts(ctx, tally)
            return concluded(self, tally, repeated=[])
        count = count_calls if ctx.calls_complete else count_certain_calls
        made = count(ctx.calls, excluded_by(self.calls))
        meant = meant_by(self.tools, [call.tool for call in made.calls])
        first: dict[Hashable, int] = {}
        pairs: list[tuple[int, int]] = []
        for number, key in zip(made.numbers, keys_of(made.calls, self.ignore), strict=True):
            earlier = first.setdefault(key, number)
            if earlier != number and ctx.calls[number].tool in meant:
                pairs.append((number, earlier))
        if pairs:
            tally.fails(*first_of([_told(ctx.calls[number], number, earlier) for number, earlier in pairs]))
        elif ctx.calls_complete:
            tally.holds("no call was made twice")
        else:
            tally.undecided.append(f"repeated calls: {unread_calls(ctx)}")
        return concluded(self, tally, repeated=[number for number, _ in pairs])

    def _from_counts(self, ctx: Context, tally: Tally) -> None:
        counts = counts_told(ctx)
        if counts is not None and all(counts[tool] <= 1 for tool in meant_by(self.tools, counts)):
            tally.holds("no call was made twice: no tool was called more than once")
        else:
            tally.undecided.append(f"repeated calls: {why_unseen(ctx)}")


def keys_of(calls: Sequence[ToolCall], ignore: Sequence[str]) -> list[Hashable]:
    """What two calls share exactly when they are the same tool with an equal input; one without a name is like none."""
    rule = InputRule(tuple(ignore)) if ignore else PLAIN_RULE
    return [
        (call.tool, _input_key(rule.prepare(call.input))) if call.tool else number for number, call in enumerate(calls)
    ]


def _input_key(value: Any) -> Hashable:
    return UNSET if value is UNSET else canonical(value)


def _told(call: ToolCall, number: int, earlier: int) -> str:
    silent = " (neither tells its input)" if call.input is UNSET else ""
    return f"call {number} {words.call_label(call)} repeats call {earlier}{silent}"
