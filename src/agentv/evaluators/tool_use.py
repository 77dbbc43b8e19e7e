"""Evaluators of tool use: errors, retries, redundant calls, loops."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType

from agentv.errors import Problem
from agentv.evaluators.base import ConstraintTally, EvaluatorBase, Example
from agentv.evaluators.call_checks import (
    CallFilter,
    Name,
    Names,
    check_filter,
    excluded_statuses,
    has_missing_input,
    is_any_name,
    is_not_captured,
    join_numbers,
    match_tools,
    missing_calls_reason,
    n_times,
    reported_counts,
    result_from,
    truncate_list,
    unread_calls,
)
from agentv.evaluators.trajectory import wording
from agentv.evaluators.trajectory.config import Count
from agentv.evaluators.trajectory.expectations import UNNAMED, count_calls, count_certain_calls
from agentv.evaluators.trajectory.index import key_of
from agentv.matching.diff import MAX_QUOTED, quote
from agentv.matching.inputs import PLAIN_RULE, InputRule
from agentv.model.conversation import ToolCall, has_gap
from agentv.model.results import EvaluatorResult
from agentv.protocols import Context
from agentv.redaction import shorten
from agentv.scoring.scorer import name_incomplete


def _search_reply(*statuses: str) -> list[Any]:
    return [{"role": "assistant", "tool_calls": [{"tool": "search", "status": status}]} for status in statuses]


class NoToolErrors(EvaluatorBase, kw_only=True):
    """No tool call ended in an error, or only as many as are allowed."""

    type: Literal["no_tool_errors"] = "no_tool_errors"
    tools: Names | UnsetType = UNSET
    """Only calls of these tools; `*` and `?` make a name a glob."""
    allow: Count = 0
    """The number of errors allowed."""

    handles_incomplete: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (
        Example(config={"type": "no_tool_errors"}, reply=_search_reply("ok"), passes=True),
        Example(config={"type": "no_tool_errors"}, reply=_search_reply("error", "ok"), passes=False),
    )

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Decide the one constraint."""
        tally = ConstraintTally()
        if ctx.calls is None:
            return result_from(self, tally, value=self._from_counts(ctx, tally), calls=[])
        meant = match_tools(self.tools, [call.tool for call in ctx.calls])
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
            return result_from(self, tally, value=None, at_least=len(reasons), calls=failed)
        self._decide(reasons, stray, tally)
        return result_from(self, tally, value=len(reasons), calls=failed)

    def _decide_lower_bound(self, reasons: list[str], unread: str, tally: ConstraintTally) -> None:
        """Decide a partly understood reply: too many errors stay too many, and no others may be missing."""
        if len(reasons) > self.allow:
            self._decide(reasons, [], tally)
        else:
            tally.undecided.append(f"tool errors (allowed: {self.allow}): {unread}")

    def _decide(self, reasons: list[str], stray: list[str], tally: ConstraintTally) -> None:
        counted = f"{_errors(len(reasons))} (allowed: {self.allow})"
        if len(reasons) > self.allow:
            tally.add_miss(*([counted] if self.allow else []), *truncate_list(reasons))
        elif len(reasons) + len(stray) > self.allow:
            tally.undecided += truncate_list(stray)
        else:
            tally.add_hit(counted if reasons else "no tool call ended in an error")

    def _trace_errors(self, ctx: Context, known_ids: set[str | None]) -> tuple[list[str], list[str]]:
        """Return the `error` events of these tools in a trace, and those that name no tool."""
        ids = {call.id: call.tool for call in ctx.calls or () if call.id is not None}
        errors: list[str] = []
        stray: list[str] = []
        for place, event in enumerate(ctx.trace or ()):
            if event.type != "error" or (event.id is not None and event.id in known_ids):
                continue
            tool = event.name or ids.get(event.id or "", "")
            if self.tools is UNSET or (tool and match_tools(self.tools, [tool])):
                words = "" if event.text is None else f": {quote(event.text)}"
                errors.append(f"trace event {place} is an error{f' of {tool}' if tool else ''}{words}")
            elif not tool:
                stray.append(f"trace event {place} is an error that names no tool; give it a `name`")
        return errors, stray

    def _from_counts(self, ctx: Context, tally: ConstraintTally) -> int | None:
        counts, summary = reported_counts(ctx), ctx.trace_summary
        if counts is not None and not any(counts[tool] for tool in match_tools(self.tools, counts)):
            tally.add_hit("no tool call ended in an error: none of these tools was called")
            return 0
        # A missing `error_count` is read as 0, so only another number was certainly reported.
        if summary is None or self.tools is not UNSET or not summary.error_count:
            tally.undecided.append(f"tool errors (allowed: {self.allow}): {missing_calls_reason(ctx)}")
            return None
        sentence = f"{_errors(summary.error_count)} in the `trace_summary` (allowed: {self.allow})"
        tally.add(good=summary.error_count <= self.allow, sentence=sentence)
        return summary.error_count


class Retries(EvaluatorBase, kw_only=True):
    """After an error the same tool was called again at most `max` times in a row."""

    type: Literal["retries"] = "retries"
    max: Count
    """The number of retries of a tool in a row; a call that does not fail ends the sequence."""
    tools: Names | UnsetType = UNSET
    """Only calls of these tools; `*` and `?` make a name a glob."""

    handles_incomplete: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = (
        Example(config={"type": "retries", "max": 1}, reply=_search_reply("error", "ok"), passes=True),
        Example(config={"type": "retries", "max": 1}, reply=_search_reply("error", "error", "ok"), passes=False),
    )

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Decide the one constraint."""
        tally = ConstraintTally()
        if ctx.calls is None:
            self._from_counts(ctx, tally)
            return result_from(self, tally, value=None, retries=[])
        rows = retry_rows(ctx.calls, match_tools(self.tools, [call.tool for call in ctx.calls]))
        reported = [{"tool": ctx.calls[row[0]].tool, "calls": row} for row in rows]
        if not ctx.calls_complete:
            self._decide_lower_bound(rows, ctx, tally)
            return result_from(self, tally, value=None, at_least=int(bool(rows)), retries=reported)
        longest = max((len(row) - 1 for row in rows), default=0)
        over = [self._sentence(ctx.calls[row[0]].tool, row) for row in rows if len(row) - 1 > self.max]
        if over:
            tally.add_miss(*truncate_list(over))
        elif rows:
            tally.add_hit(
                f"after an error a tool was tried again {n_times(longest)} in a row at most (max: {self.max})"
            )
        else:
            tally.add_hit(f"no tool was tried again after an error (max: {self.max})")
        return result_from(self, tally, value=longest, retries=reported)

    def _decide_lower_bound(self, rows: Sequence[Sequence[int]], ctx: Context, tally: ConstraintTally) -> None:
        """Decide a partly understood reply: that a tool was tried again is certain, how often in a row is not.

        A call of the tool that did not fail may stand between any two of its calls and end the row.
        """
        if rows and not self.max:
            tally.add_miss(*truncate_list([self._sentence((ctx.calls or ())[row[0]].tool, row[:2]) for row in rows]))
        else:
            tally.undecided.append(f"retries (max: {self.max}): {unread_calls(ctx)}")

    def _sentence(self, tool: str, row: Sequence[int]) -> str:
        again = f"was tried again {n_times(len(row) - 1)} in a row at {join_numbers('call', row[1:])}"
        return f"{tool} ended in an error at call {row[0]} and {again} (max: {self.max})"

    def _from_counts(self, ctx: Context, tally: ConstraintTally) -> None:
        counts = reported_counts(ctx)
        if counts is not None and all(counts[tool] <= self.max + 1 for tool in match_tools(self.tools, counts)):
            tally.add_hit(f"no tool was called more than {n_times(self.max + 1)}, retries included (max: {self.max})")
        else:
            tally.undecided.append(f"retries (max: {self.max}): {missing_calls_reason(ctx)}")


def retry_rows(calls: Iterable[ToolCall], tools: set[str]) -> list[list[int]]:
    """Return the calls of each row of retries: the error and the attempts that followed it."""
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


class NoRedundantCalls(EvaluatorBase, kw_only=True):
    """No call was made twice: the same tool with an equal input."""

    type: Literal["no_redundant_calls"] = "no_redundant_calls"
    tools: Names | UnsetType = UNSET
    """Only calls of these tools; `*` and `?` make a name a glob."""
    ignore: list[Name] = []
    """Keys of the input that are ignored; globs, and a dotted path reaches deeper."""
    calls: CallFilter | None = None
    """The calls that count, by their status; denied and pending ones do not, unless it says so."""

    handles_incomplete: ClassVar[bool] = True
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
        """Return the problems of the configuration as a whole."""
        return list(check_filter(self.calls, path))

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Decide the one constraint."""
        tally = ConstraintTally()
        if ctx.calls is None:
            self._from_counts(ctx, tally)
            return result_from(self, tally, repeated=[])
        count = count_calls if ctx.calls_complete else count_certain_calls
        counted = count(ctx.calls, excluded_statuses(self.calls))
        meant = match_tools(self.tools, [call.tool for call in counted.calls])
        first: dict[Hashable, int] = {}
        pairs: list[tuple[int, int]] = []
        keys = keys_of(counted.calls, self.ignore, is_incomplete=bool(ctx.incomplete))
        for number, key in zip(counted.numbers, keys, strict=True):
            earlier = first.setdefault(key, number)
            if earlier != number and ctx.calls[number].tool in meant:
                pairs.append((number, earlier))
        if pairs:
            tally.add_miss(*truncate_list([_sentence(ctx.calls[number], number, earlier) for number, earlier in pairs]))
        elif ctx.incomplete and self._may_repeat(counted.calls, meant):
            tally.undecided.append(f"repeated calls: {name_incomplete(ctx)}")
        elif ctx.calls_complete:
            tally.add_hit("no call was made twice")
        else:
            tally.undecided.append(f"repeated calls: {unread_calls(ctx)}")
        return result_from(self, tally, repeated=[number for number, _ in pairs])

    def _may_repeat(self, calls: Sequence[ToolCall], meant: set[str]) -> bool:
        """Return whether a call in which text is missing may be the same as another of its tool."""
        names = [call.tool for call in calls]
        return any(has_missing_input(call) and call.tool in meant and names.count(call.tool) > 1 for call in calls)

    def _from_counts(self, ctx: Context, tally: ConstraintTally) -> None:
        counts = reported_counts(ctx)
        if counts is not None and all(counts[tool] <= 1 for tool in match_tools(self.tools, counts)):
            tally.add_hit("no call was made twice: no tool was called more than once")
        else:
            tally.undecided.append(f"repeated calls: {missing_calls_reason(ctx)}")


def keys_of(calls: Sequence[ToolCall], ignore: Sequence[str], *, is_incomplete: bool = False) -> list[Hashable]:
    """Return a key per call, equal for the same tool and input; unnamed calls are all different.

    With `is_incomplete`, so are calls in whose input text is missing.
    """
    rule = InputRule(tuple(ignore)) if ignore else PLAIN_RULE
    if is_incomplete:
        inputs = [rule.prepare(call.input) for call in calls]
        return [
            number if not call.tool or has_gap(value) or is_not_captured(call, "input") else (call.tool, key_of(value))
            for number, (call, value) in enumerate(zip(calls, inputs, strict=True))
        ]
    return [(call.tool, key_of(rule.prepare(call.input))) if call.tool else number for number, call in enumerate(calls)]


def _sentence(call: ToolCall, number: int, earlier: int) -> str:
    silent = " (neither has its input)" if call.input is UNSET else ""
    return f"call {number} {wording.call_label(call)} repeats call {earlier}{silent}"


# Every length takes another pass over all calls.
LONGEST = 50


class RepeatedSequence(NamedTuple):
    """Calls that repeat a cycle."""

    start: int
    """The number of its first call."""
    length: int
    """The number of calls in the cycle."""
    end: int
    """The number of the first call that is no longer in it."""

    @property
    def rounds(self) -> int:
        """The number of complete repetitions."""
        return (self.end - self.start) // self.length


class LoopDetection(EvaluatorBase, kw_only=True):
    """No cycle of calls was repeated `times` times in a row."""

    type: Literal["loop_detection"] = "loop_detection"
    times: Annotated[int, Meta(ge=2)] = 3
    """The number of rounds from which a cycle is a loop."""
    max_length: Annotated[int, Meta(ge=1, le=LONGEST)] = 10
    """The largest number of calls in a cycle."""
    input_match: Literal["exact", "ignore"] = "exact"
    """Compares calls with their inputs, or by the name of the tool alone."""
    ignore: list[Name] = []
    """Keys of the input that are ignored; globs, and a dotted path reaches deeper."""

    handles_incomplete: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={"type": "loop_detection", "times": 3},
            reply=[
                {"role": "assistant", "tool_calls": [{"tool": "read", "input": {"page": page}}, {"tool": "wait"}]}
                for page in pages
            ],
            passes=passes,
        )
        for pages, passes in (((1, 2, 3), True), ((1, 1, 1), False))
    )

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the configuration as a whole."""
        if self.ignore and self.input_match == "ignore":
            return [Problem(f"{path}.ignore", "means nothing with `input_match: ignore`, which leaves out all of it")]
        return []

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Decide the one constraint."""
        tally = ConstraintTally()
        if ctx.calls is None:
            self._from_counts(ctx, tally)
            return result_from(self, tally, loops=[])
        if not ctx.calls_complete:
            # A call that was not read may be between any two, so that no cycle is certain.
            tally.undecided.append(f"loops of {n_times(self.times)} or more: {unread_calls(ctx)}")
            return result_from(self, tally, loops=[])
        loops = find_loops(self._keys(ctx), self.times, self.max_length)
        if loops:
            tally.add_miss(*truncate_list([self._sentence(loop, ctx.calls) for loop in loops]))
        elif ctx.incomplete and self._may_loop(ctx.calls):
            tally.undecided.append(f"loops of {n_times(self.times)} or more: {name_incomplete(ctx)}")
        else:
            tally.add_hit(f"no cycle of calls came {n_times(self.times)} in a row")
        rows = [{"calls": [loop.start, loop.end - 1], "length": loop.length, "rounds": loop.rounds} for loop in loops]
        return result_from(self, tally, loops=rows)

    def _keys(self, ctx: Context) -> Sequence[Hashable]:
        calls = ctx.calls or ()
        if self.input_match == "ignore":
            return _names_of(calls)
        return keys_of(calls, self.ignore, is_incomplete=bool(ctx.incomplete))

    def _may_loop(self, calls: Sequence[ToolCall]) -> bool:
        """Return whether calls in which text is missing may make a cycle: then their names alone do so."""
        if self.input_match == "ignore" or not any(map(has_missing_input, calls)):
            return False
        return bool(find_loops(_names_of(calls), self.times, self.max_length))

    def _sentence(self, loop: RepeatedSequence, calls: Sequence[ToolCall]) -> str:
        cycle = calls[loop.start : loop.start + loop.length]
        by_name = self.input_match == "ignore"
        label = ", ".join(call.tool if by_name else wording.call_label(call) for call in cycle)
        label = shorten(label, MAX_QUOTED)
        rounds = f"{n_times(loop.rounds)} in a row (loop: {n_times(self.times)} or more)"
        return f"calls {loop.start} to {loop.end - 1} are [{label}] {rounds}"

    def _from_counts(self, ctx: Context, tally: ConstraintTally) -> None:
        counts = reported_counts(ctx)
        if counts is not None and all(number < self.times for number in counts.values()):
            tally.add_hit(f"no cycle of calls came {n_times(self.times)} in a row: no tool was called that often")
        else:
            tally.undecided.append(f"loops of {n_times(self.times)} or more: {missing_calls_reason(ctx)}")


def _names_of(calls: Sequence[ToolCall]) -> list[Hashable]:
    return [call.tool or number for number, call in enumerate(calls)]


def find_loops(keys: Sequence[Hashable], rounds: int, longest: int) -> list[RepeatedSequence]:
    """Return the longest stretches that repeat one cycle; cycles within the loop of a shorter one are left out."""
    numbers: dict[Hashable, int] = {}
    calls = [numbers.setdefault(key, len(numbers)) for key in keys]  # small numbers compare faster than keys
    loops: list[RepeatedSequence] = []
    reach = [0] * len(calls)  # by call, the end of the loops that begin there or before
    for length in range(1, min(longest, len(calls) // rounds) + 1):
        fresh = [loop for loop in _loops_of(length, calls, rounds) if reach[loop.start] < loop.end]
        if fresh:
            loops += fresh
            for loop in fresh:
                reach[loop.start] = loop.end
            reach = list(accumulate(reach, max))
    return sorted(loops)


def _loops_of(length: int, calls: list[int], rounds: int) -> list[RepeatedSequence]:
    """Return the longest stretches in which every call equals the one `length` calls before it."""
    loops: list[RepeatedSequence] = []
    start = 0
    for end, (before, call) in enumerate(zip(calls, calls[length:], strict=False), length):
        if before != call:
            if end - start >= rounds * length:
                loops.append(RepeatedSequence(start, length, end))
            start = end - length + 1
    if len(calls) - start >= rounds * length:
        loops.append(RepeatedSequence(start, length, len(calls)))
    return loops
