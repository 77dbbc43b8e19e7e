"""The `tool_trajectory` evaluator: its configuration becomes constraints, which the calls decide."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from agentv.errors import Problem
from agentv.evaluators.base import ConstraintTally, EvaluatorBase, Example, Finding, cached, run_searches
from agentv.evaluators.call_checks import CallFilter, Choice, check_filter, excluded_statuses, explain_uncounted
from agentv.evaluators.trajectory import constraints, lower_bound, wording
from agentv.evaluators.trajectory.config import (
    FRACTIONS,
    MODES,
    Count,
    Entry,
    Mode,
    ToolName,
    ToolRule,
    WrittenMode,
    as_input_mode,
    check_counts,
    check_entry,
    check_paths,
    check_rules,
)
from agentv.evaluators.trajectory.constraints import no_calls_result
from agentv.evaluators.trajectory.expectations import CallMatcher, Expectation, count_calls
from agentv.evaluators.trajectory.report import empty_details
from agentv.evaluators.trajectory.script import Script, make_script
from agentv.evaluators.trajectory.turns import TurnPlan, group_turns, turns_of
from agentv.matching.matchers import has_search
from agentv.matching.text import name_match
from agentv.model.conversation import ToolCall
from agentv.model.results import EvaluatorResult
from agentv.protocols import Context


class ToolTrajectory(EvaluatorBase, kw_only=True):
    """The agent called the right tools, in the right order, with the right arguments."""

    type: Literal["tool_trajectory"] = "tool_trajectory"
    mode: Mode | None = None
    """The way `expected` is compared with the calls; required with it."""
    expected: list[Entry | list[Entry | ToolName] | ToolName] | None = None
    """The calls, or with `unit: step` the steps, in order; the name of a tool alone is a call with any input."""
    minimums: dict[str, Count] | None = None
    """At least so many calls of a tool; a key may be a glob."""
    maximums: dict[str, Count] | None = None
    """At most so many calls of a tool; a key may be a glob."""
    allowed: list[str] | None = None
    """The only tools that may be called, any number of times."""
    forbidden: list[str] | None = None
    """Tools that must not be called, not even unsuccessfully."""
    input_match: WrittenMode | None = None
    """The way inputs are compared: `exact` by default."""
    tools: dict[str, ToolRule] | None = None
    """Rules by the name of the call made; a key may be a glob."""
    score: Literal["binary", "recall", "precision", "f1"] | None = None
    """`binary` is all or nothing, the others make `expected` worth that fraction; by default the score is the mean
    over all constraints."""
    unit: Literal["call", "step", "turn"] | None = None
    """`call` by default; with `step` the calls of one assistant message are one unordered group. `turn` is an alias of
    `step`."""
    calls: CallFilter | None = None
    """The calls that count, by their status; denied and pending ones do not, unless it says so."""
    failed: CallFilter | Choice | None = None
    """Another word for `calls`; a bare `include` or `exclude` is about calls that ended in an error."""

    handles_incomplete: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={
                "type": "tool_trajectory",
                "mode": "in_order",
                "expected": [{"tool": "search", "input": {"query": "refund policy"}}, {"tool": "reply"}],
            },
            reply=[
                {"role": "assistant", "tool_calls": [{"tool": "search", "input": {"query": query}}, {"tool": "reply"}]}
            ],
            passes=passes,
        )
        for query, passes in (("refund policy", True), ("weather", False))
    )

    @property
    def by_step(self) -> bool:
        """True if the calls of one assistant message are compared as one group."""
        return self.unit in ("step", "turn")

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the configuration as a whole."""
        problems: list[Problem] = []
        if self.expected is None:
            if (self.minimums, self.maximums, self.allowed, self.forbidden) == (None, None, None, None):
                keys = "`expected`, `minimums`, `maximums`, `allowed` or `forbidden`"
                problems.append(Problem(path, f"checks nothing: give {keys}"))
            unused = [key for key in ("unit", "input_match", "tools") if getattr(self, key) is not None]
            problems += [Problem(f"{path}.{key}", "means nothing without `expected`") for key in unused]
        elif self.mode is None:
            problems.append(Problem(f"{path}.mode", f"required with `expected`; one of {', '.join(MODES)}"))
        if self.minimums and self.maximums:
            problems += check_counts(self.minimums, self.maximums, path)
        if self.tools:
            problems += check_rules(self.tools, f"{path}.tools")
        problems += check_filter(self.calls, path)
        if self.calls is not None and self.failed is not None:
            problems.append(Problem(f"{path}.failed", "`failed` is another word for `calls`; give one of them"))
        if self.expected and (self.script is None or self.input_match is not None):
            problems += self._check_entries(self.entries, path)
        return problems

    def _check_entries(self, expected: list[Entry | list[Entry]], path: str) -> list[Problem]:
        problems: list[Problem] = []
        for index, item in enumerate(expected):
            place = f"{path}.expected[{index}]"
            if isinstance(item, Entry):
                problems += check_entry(item, place, self.excluded)
            elif not self.by_step:
                problems.append(Problem(place, "a list is a step of several calls; add `unit: step` or list the calls"))
            elif not item:
                problems.append(Problem(place, "an empty step can never match; a step has at least one call"))
            else:
                for inner, entry in enumerate(item):
                    problems += check_entry(entry, f"{place}[{inner}]", self.excluded)
        entries = [entry for item in expected for entry in ([item] if isinstance(item, Entry) else item)]
        return problems + list(check_paths(entries, self.input_match, self.tools, path))

    def warnings(self, path: str) -> list[str]:
        """Return warnings about constraints that can never fail."""
        warnings: list[str] = []
        if self.expected == [] and self.mode in ("in_order", "any_order", "superset") and self.score not in FRACTIONS:
            warnings.append(f"{path}.expected: an empty list in mode {self.mode!r}: this can never fail")
        if self.minimums == {}:
            warnings.append(f"{path}.minimums: empty: this can never fail")
        if self.maximums == {}:
            warnings.append(f"{path}.maximums: empty: this can never fail")
        if self.forbidden == []:
            warnings.append(f"{path}.forbidden: empty: this can never fail")
        if self.minimums:
            zeros = [key for key, least in self.minimums.items() if least == 0]
            warnings += [f"{path}.minimums.{key}: a minimum of 0: this can never fail" for key in zeros]
        return warnings

    @cached
    def excluded(self) -> frozenset[str]:
        """The statuses of calls that do not count."""
        if isinstance(self.failed, str):
            return CallFilter(error=self.failed).excluded
        return excluded_statuses(self.calls or self.failed)

    @cached
    def entries(self) -> list[Entry | list[Entry]]:
        """`expected` with each name of a tool as an entry."""
        return [
            [_as_entry(call) for call in item] if isinstance(item, list) else _as_entry(item)
            for item in self.expected or ()
        ]

    @cached
    def script(self) -> Script | None:
        """The expectations as a script, if they consist of plain names and inputs."""
        if self.expected is None or self.by_step or self.tools or self.input_match not in (None, "exact"):
            return None
        return make_script(str(self.mode), self.entries)

    @cached
    def _turns(self) -> list[list[Expectation]]:
        mode, plain = as_input_mode(self.input_match) or "exact", self.script is not None
        return [
            [
                Expectation(entry, mode, self.tools, plain=plain)
                for entry in ([item] if isinstance(item, Entry) else item)
            ]
            for item in self.entries
        ]

    @cached
    def expectations(self) -> list[Expectation]:
        """The expected calls in order, turns or not."""
        return [item for turn in self._turns for item in turn]

    @property
    def labels(self) -> list[str]:
        """The label of each entry of `expected`."""
        if self.by_step:
            return [wording.turn_label(map(wording.label, turn)) for turn in self._turns]
        return [wording.label(item) for item in self.expectations]

    @cached
    def matcher(self) -> CallMatcher:
        """The matcher of calls and expectations."""
        return CallMatcher(self.expectations)

    @cached
    def turn_plan(self) -> TurnPlan:
        """The expected turns."""
        return TurnPlan(self._turns)

    @cached
    def _has_search(self) -> bool:
        """True if a pattern has to be searched for in what the agent wrote."""
        entries = [item.entry for item in self.expectations]
        return any(has_search(entry.wanted_input) or has_search(entry.output) for entry in entries)

    def evaluate(self, ctx: Context) -> Finding:
        """Decide every constraint, as far as the reply allows."""
        if ctx.calls_source is None:
            return no_calls_result(self, wording.NO_TRACE, wording.what_came(ctx.response))
        return run_searches(lambda: self._evaluate_now(ctx)) if self._has_search else self._evaluate_now(ctx)

    def _evaluate_now(self, ctx: Context) -> EvaluatorResult:
        tally = ConstraintTally()
        is_whole = False
        if ctx.calls_complete:
            counted = None if ctx.calls is None else count_calls(ctx.calls, self.excluded)
            if self.expected is None:
                details = empty_details()
            elif counted is not None and ctx.incomplete and lower_bound.is_affected(ctx, counted):
                details = lower_bound.decide_incomplete(self, ctx, counted, tally)
            else:
                details = constraints.decide_sequence(self, ctx, counted, tally)
            constraints.decide_counts(self, ctx, counted, tally)
            is_whole = counted is not None and counted.is_whole
        else:
            decide = lower_bound.decide_partly_understood
            details = empty_details() if self.expected is None else decide(self, ctx, tally)
            constraints.decide_lower_bound(self, ctx, tally)
        if ctx.calls is not None:
            details["unnamed"] = [call.tool for call in ctx.calls].count("")
            if tally.misses and not is_whole:
                tally.misses += self._explain_uncounted(ctx.calls, details["missing"] or ())
        details["undecided"] = tally.undecided
        status, score = tally.verdict(self.threshold, binary=self.score == "binary", negate=self.negate)
        return self.result(status, score, tally.hits, tally.misses, details)

    def _explain_uncounted(self, calls: Sequence[ToolCall], missing: Iterable[int]) -> list[str]:
        """Return a sentence for each call that was made as expected but does not count, such as a denied one."""
        excluded = self.excluded
        counted = count_calls(calls, excluded)
        if len(counted) == len(calls):
            return []
        names = [call.tool for call in counted.calls]
        wanted = [item.tool for entry in missing for item in self._turns[entry]]
        for key, least in (self.minimums or {}).items():
            if sum(name_match(key, name) for name in names) < least:
                wanted.append(key)
        return explain_uncounted(calls, excluded, lambda tool: any(name_match(name, tool) for name in wanted))

    def sides(self, ctx: Context) -> tuple[str, list[str], dict[int, str]] | None:
        """Return the unit and the labels of both sides of `details.alignment`."""
        if self.expected is None or ctx.calls is None:
            return None
        if self.by_step and ctx.calls_source != "output_messages":
            return None
        if not self.by_step:
            return "call", self.labels, dict(enumerate(map(wording.call_label, ctx.calls)))
        turns = group_turns(count_calls(ctx.calls, self.excluded), turns_of(ctx.output_messages or ()))
        labels = [wording.turn_label(map(wording.call_label, turn.calls)) for turn in turns]
        return "turn", self.labels, dict(enumerate(labels))


def _as_entry(item: Entry | str) -> Entry:
    return Entry(tool=item) if isinstance(item, str) else item
