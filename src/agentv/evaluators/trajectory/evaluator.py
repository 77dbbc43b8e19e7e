"""The evaluator itself: its configuration becomes constraints, the calls decide them."""

from typing import ClassVar, Literal

from agentv.errors import Problem
from agentv.evaluators.base import ConstraintTally, EvaluatorBase, Example, once
from agentv.evaluators.call_checks import CallFilter, Choice
from agentv.evaluators.trajectory import constraints, lower_bound, wording
from agentv.evaluators.trajectory.alignment import nothing_told
from agentv.evaluators.trajectory.config import (
    FRACTIONS,
    MODES,
    Count,
    Entry,
    Mode,
    ToolRule,
    WrittenMode,
    check_counts,
    check_entry,
    check_paths,
    check_rules,
    written,
)
from agentv.evaluators.trajectory.constraints import no_calls_result
from agentv.evaluators.trajectory.expectations import CallMatcher, Expectation, count_calls
from agentv.evaluators.trajectory.script import Script, script_of
from agentv.evaluators.trajectory.turns import TurnPlan, group_turns, turns_of
from agentv.model.results import EvaluatorResult
from agentv.protocols import Context

DEFAULT_EXCLUDED = CallFilter().excluded


class ToolTrajectory(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Did the agent call the right tools, in the right order, with the right arguments."""

    type: Literal["tool_trajectory"] = "tool_trajectory"
    mode: Mode | None = None
    """How `expected` is held against the calls; required with it."""
    expected: list[Entry | list[Entry]] | None = None
    """The calls, or with `unit: turn` the turns, in order."""
    minimums: dict[str, Count] | None = None
    """At least so many calls of a tool; a key may be a glob."""
    maximums: dict[str, Count] | None = None
    """At most so many calls of a tool; a key may be a glob."""
    allowed: list[str] | None = None
    """The only tools that may be called, as often as you like."""
    forbidden: list[str] | None = None
    """Tools that must not be called, not even in vain."""
    input_match: WrittenMode | None = None
    """How inputs are compared: `exact` by default."""
    tools: dict[str, ToolRule] | None = None
    """Rules by the name of the call made; a key may be a glob."""
    score: Literal["binary", "recall", "precision", "f1"] | None = None
    """`binary` is all or nothing, the others make `expected` worth that fraction; by default the score is the mean
    over all constraints."""
    unit: Literal["call", "turn"] | None = None
    """`call` by default; with `turn` the calls of one assistant message are one unordered group."""
    calls: CallFilter | None = None
    """Which calls count, by their status; denied and pending ones do not, unless it says so."""
    failed: CallFilter | Choice | None = None
    """Another word for `calls`; a bare `include` or `exclude` is about calls that ended in an error."""

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

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        found: list[Problem] = []
        if self.expected is None:
            if (self.minimums, self.maximums, self.allowed, self.forbidden) == (None, None, None, None):
                keys = "`expected`, `minimums`, `maximums`, `allowed` or `forbidden`"
                found.append(Problem(path, f"checks nothing: give {keys}"))
            idle = [key for key in ("unit", "input_match", "tools") if getattr(self, key) is not None]
            found += [Problem(f"{path}.{key}", "means nothing without `expected`") for key in idle]
        elif self.mode is None:
            found.append(Problem(f"{path}.mode", f"required with `expected`; one of {', '.join(MODES)}"))
        if self.minimums and self.maximums:
            found += check_counts(self.minimums, self.maximums, path)
        if self.tools:
            found += check_rules(self.tools, f"{path}.tools")
        if self.calls is not None and self.calls.error and self.calls.failed:
            found.append(Problem(f"{path}.calls.failed", "`failed` is another word for `error`; give one of them"))
        if self.calls is not None and self.failed is not None:
            found.append(Problem(f"{path}.failed", "`failed` is another word for `calls`; give one of them"))
        if self.expected and (self.script is None or self.input_match is not None):
            found += self._check_entries(self.expected, path)
        return found

    def _check_entries(self, expected: list[Entry | list[Entry]], path: str) -> list[Problem]:
        found: list[Problem] = []
        for index, item in enumerate(expected):
            place = f"{path}.expected[{index}]"
            if isinstance(item, Entry):
                found += check_entry(item, place, self.excluded)
            elif self.unit != "turn":
                found.append(Problem(place, "a list is a turn of several calls; add `unit: turn` or list the calls"))
            elif not item:
                found.append(Problem(place, "an empty turn can never match; a turn has at least one call"))
            else:
                for inner, entry in enumerate(item):
                    found += check_entry(entry, f"{place}[{inner}]", self.excluded)
        entries = [entry for item in expected for entry in ([item] if isinstance(item, Entry) else item)]
        return found + list(check_paths(entries, self.input_match, self.tools, path))

    def warnings(self, path: str) -> list[str]:
        """What can never fail."""
        found: list[str] = []
        if self.expected == [] and self.mode in ("in_order", "any_order", "superset") and self.score not in FRACTIONS:
            found.append(f"{path}.expected: an empty list in mode {self.mode!r}: this can never fail")
        if self.minimums == {}:
            found.append(f"{path}.minimums: empty: this can never fail")
        if self.maximums == {}:
            found.append(f"{path}.maximums: empty: this can never fail")
        if self.forbidden == []:
            found.append(f"{path}.forbidden: empty: this can never fail")
        if self.minimums:
            zeros = [key for key, least in self.minimums.items() if least == 0]
            found += [f"{path}.minimums.{key}: a minimum of 0: this can never fail" for key in zeros]
        return found

    @property
    def excluded(self) -> frozenset[str]:
        """The statuses of calls that do not count."""
        if isinstance(self.failed, str):
            return CallFilter(error=self.failed).excluded
        chosen = self.calls or self.failed
        return DEFAULT_EXCLUDED if chosen is None else chosen.excluded

    @once
    def script(self) -> Script | None:
        """The expectations as one comparison, where that is all there is to them."""
        if self.expected is None or self.unit == "turn" or self.tools or self.input_match not in (None, "exact"):
            return None
        return script_of(str(self.mode), self.expected)

    @once
    def _turns(self) -> list[list[Expectation]]:
        mode, plain = written(self.input_match) or "exact", self.script is not None
        return [
            [
                Expectation(entry, mode, self.tools, plain=plain)
                for entry in ([item] if isinstance(item, Entry) else item)
            ]
            for item in self.expected or ()
        ]

    @once
    def expectations(self) -> list[Expectation]:
        """The expected calls in order, turns or not."""
        return [item for turn in self._turns for item in turn]

    @property
    def labels(self) -> list[str]:
        """What each entry of `expected` is called."""
        if self.unit == "turn":
            return [wording.turn_label(map(wording.label, turn)) for turn in self._turns]
        return [wording.label(item) for item in self.expectations]

    @once
    def judge(self) -> CallMatcher:
        """Which calls meet which expectations."""
        return CallMatcher(self.expectations)

    @once
    def turn_plan(self) -> TurnPlan:
        """The expected turns."""
        return TurnPlan(self._turns)

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Every constraint decided, as far as the agent's reply tells."""
        if ctx.calls_source is None:
            return no_calls_result(self, wording.NO_TRACE)
        tally = ConstraintTally()
        if ctx.calls_complete:
            made = None if ctx.calls is None else count_calls(ctx.calls, self.excluded)
            details = nothing_told() if self.expected is None else constraints.decide_sequence(self, ctx, made, tally)
            constraints.decide_counts(self, ctx, made, tally)
        else:
            decide = lower_bound.decide_partly_understood
            details = nothing_told() if self.expected is None else decide(self, ctx, tally)
            constraints.decide_lower_bound(self, ctx, tally)
        if ctx.calls is not None:
            details["unnamed"] = [call.tool for call in ctx.calls].count("")
        details["undecided"] = tally.undecided
        status, score = tally.verdict(self.threshold, binary=self.score == "binary", negate=self.negate)
        return self.result(status, score, tally.hits, tally.misses, details)

    def sides(self, ctx: Context) -> tuple[str, list[str], dict[int, str]] | None:
        """For a diff: what the indices of `details.alignment` stand for."""
        if self.expected is None or ctx.calls is None:
            return None
        if self.unit == "turn" and ctx.calls_source != "output_messages":
            return None
        if self.unit != "turn":
            return "call", self.labels, dict(enumerate(map(wording.call_label, ctx.calls)))
        turns = group_turns(count_calls(ctx.calls, self.excluded), turns_of(ctx.output_messages or ()))
        labels = [wording.turn_label(map(wording.call_label, turn.calls)) for turn in turns]
        return "turn", self.labels, dict(enumerate(labels))
