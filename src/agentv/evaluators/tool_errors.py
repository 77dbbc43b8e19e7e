"""`no_tool_errors` and `retries`: which calls ended in an error, and how often the agent tried again."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from agentv.evaluators.base import EvaluatorBase, Example, Tally
from agentv.evaluators.told import Names, concluded, counts_told, first_of, listed, meant_by, n_times, why_unseen
from agentv.evaluators.trajectory.config import Count
from agentv.evaluators.trajectory.plan import UNNAMED
from agentv.evaluators.unread import is_any_name, unread_calls
from agentv.matching.diff import quote
from agentv.model.message import ToolCall
from agentv.model.result import EvaluatorResult
from agentv.protocols import Context


def _search_reply(*statuses: str) -> list[Any]:
    return [{"role": "assistant", "tool_calls": [{"tool": "search", "status": status}]} for status in statuses]


class NoToolErrors(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """No tool call ended in an error, or only as many as are allowed."""

    type: Literal["no_tool_errors"] = "no_tool_errors"
    tools: Names | UnsetType = UNSET
    """Only calls of these tools; `*` and `?` make a name a glob."""
    allow: Count = 0
    """How many errors are forgiven."""

    examples: ClassVar[tuple[Example, ...]] = (
        Example(config={"type": "no_tool_errors"}, reply=_search_reply("ok"), passes=True),
        Example(config={"type": "no_tool_errors"}, reply=_search_reply("error", "ok"), passes=False),
    )

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """One constraint."""
        tally = Tally()
        if ctx.calls is None:
            return concluded(self, tally, value=self._from_counts(ctx, tally), calls=[])
        meant = meant_by(self.tools, [call.tool for call in ctx.calls])
        everything = isinstance(self.tools, UnsetType) or any(map(is_any_name, self.tools))  # a call without a name too
        failed = [
            number
            for number, call in enumerate(ctx.calls)
            if call.effective_status == "error" and (everything or call.tool in meant)
        ]
        reasons = [_failure(number, ctx.calls[number]) for number in failed]
        stray: list[str] = []
        if ctx.calls_source == "trace":
            reported, stray = self._trace_errors(ctx, {ctx.calls[number].id for number in failed})
            reasons += reported
        if not ctx.calls_complete:
            self._decide_lower_bound(reasons, unread_calls(ctx), tally)
            return concluded(self, tally, value=None, at_least=len(reasons), calls=failed)
        self._decide(reasons, stray, tally)
        return concluded(self, tally, value=len(reasons), calls=failed)

    def _decide_lower_bound(self, reasons: list[str], unread: str, tally: Tally) -> None:
        """Decide a partly understood reply: too many errors stay too many, and no others may be missing."""
        if len(reasons) > self.allow:
            self._decide(reasons, [], tally)
        else:
            tally.undecided.append(f"tool errors (allowed: {self.allow}): {unread}")

    def _decide(self, reasons: list[str], stray: list[str], tally: Tally) -> None:
        counted = f"{_errors(len(reasons))} (allowed: {self.allow})"
        if len(reasons) > self.allow:
            tally.fails(*([counted] if self.allow else []), *first_of(reasons))
        elif len(reasons) + len(stray) > self.allow:
            tally.undecided += first_of(stray)
        else:
            tally.holds(counted if reasons else "no tool call ended in an error")

    def _trace_errors(self, ctx: Context, told: set[str | None]) -> tuple[list[str], list[str]]:
        """The `error` events of a trace: those of these tools, and those that do not say which tool they are about."""
        ids = {call.id: call.tool for call in ctx.calls or () if call.id is not None}
        found: list[str] = []
        stray: list[str] = []
        for place, event in enumerate(ctx.trace or ()):
            if event.type != "error" or (event.id is not None and event.id in told):
                continue
            tool = event.name or ids.get(event.id or "", "")
            if self.tools is UNSET or (tool and meant_by(self.tools, [tool])):
                words = "" if event.text is None else f": {quote(event.text)}"
                found.append(f"trace event {place} is an error{f' of {tool}' if tool else ''}{words}")
            elif not tool:
                stray.append(f"trace event {place} is an error that names no tool; give it a `name`")
        return found, stray

    def _from_counts(self, ctx: Context, tally: Tally) -> int | None:
        counts, summary = counts_told(ctx), ctx.trace_summary
        if counts is not None and not any(counts[tool] for tool in meant_by(self.tools, counts)):
            tally.holds("no tool call ended in an error: none of these tools was called")
            return 0
        # A summary without `error_count` reads as 0, so only another number was certainly reported.
        if summary is None or self.tools is not UNSET or not summary.error_count:
            tally.undecided.append(f"tool errors (allowed: {self.allow}): {why_unseen(ctx)}")
            return None
        sentence = f"{_errors(summary.error_count)} in the `trace_summary` (allowed: {self.allow})"
        tally.count(good=summary.error_count <= self.allow, sentence=sentence)
        return summary.error_count


class Retries(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """After an error the same tool was tried again at most so many times in a row."""

    type: Literal["retries"] = "retries"
    max: Count
    """How often in a row a tool may be tried again; a call that does not fail ends the row."""
    tools: Names | UnsetType = UNSET
    """Only calls of these tools; `*` and `?` make a name a glob."""

    examples: ClassVar[tuple[Example, ...]] = (
        Example(config={"type": "retries", "max": 1}, reply=_search_reply("error", "ok"), passes=True),
        Example(config={"type": "retries", "max": 1}, reply=_search_reply("error", "error", "ok"), passes=False),
    )

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """One constraint."""
        tally = Tally()
        if ctx.calls is None:
            self._from_counts(ctx, tally)
            return concluded(self, tally, value=None, retries=[])
        rows = retried(ctx.calls, meant_by(self.tools, [call.tool for call in ctx.calls]))
        told = [{"tool": ctx.calls[row[0]].tool, "calls": row} for row in rows]
        if not ctx.calls_complete:
            self._decide_lower_bound(rows, ctx, tally)
            return concluded(self, tally, value=None, at_least=int(bool(rows)), retries=told)
        longest = max((len(row) - 1 for row in rows), default=0)
        over = [self._told(ctx.calls[row[0]].tool, row) for row in rows if len(row) - 1 > self.max]
        if over:
            tally.fails(*first_of(over))
        elif rows:
            tally.holds(f"after an error a tool was tried again {n_times(longest)} in a row at most (max: {self.max})")
        else:
            tally.holds(f"no tool was tried again after an error (max: {self.max})")
        return concluded(self, tally, value=longest, retries=told)

    def _decide_lower_bound(self, rows: Sequence[Sequence[int]], ctx: Context, tally: Tally) -> None:
        """Decide a partly understood reply: that a tool was tried again is certain, how often in a row is not.

        A call of the tool that did not fail may stand between any two of its calls and end the row.
        """
        if rows and not self.max:
            tally.fails(*first_of([self._told((ctx.calls or ())[row[0]].tool, row[:2]) for row in rows]))
        else:
            tally.undecided.append(f"retries (max: {self.max}): {unread_calls(ctx)}")

    def _told(self, tool: str, row: Sequence[int]) -> str:
        again = f"was tried again {n_times(len(row) - 1)} in a row at {listed('call', row[1:])}"
        return f"{tool} ended in an error at call {row[0]} and {again} (max: {self.max})"

    def _from_counts(self, ctx: Context, tally: Tally) -> None:
        counts = counts_told(ctx)
        if counts is not None and all(counts[tool] <= self.max + 1 for tool in meant_by(self.tools, counts)):
            tally.holds(f"no tool was called more than {n_times(self.max + 1)}, retries included (max: {self.max})")
        else:
            tally.undecided.append(f"retries (max: {self.max}): {why_unseen(ctx)}")


def retried(calls: Iterable[ToolCall], tools: set[str]) -> list[list[int]]:
    """Each error after which its tool was called again: its number, and those of the tries that followed in a row."""
    rows: list[list[int]] = []
    unsettled: dict[str, list[int]] = {}
    for number, call in enumerate(calls):
        if call.tool not in tools:
            continue
        row = unsettled.pop(call.tool, None)
        if row is not None:
            row.append(number)
        if call.effective_status == "error":
            if row is None:
                row = [number]
                rows.append(row)
            unsettled[call.tool] = row
    return [row for row in rows if len(row) > 1]


def _errors(number: int) -> str:
    return f"{number} tool {'error' if number == 1 else 'errors'}"


def _failure(number: int, call: ToolCall) -> str:
    why = "" if call.error is None else f": {quote(call.error)}"
    return f"call {number} {call.tool or UNNAMED} ended in an error{why}"
