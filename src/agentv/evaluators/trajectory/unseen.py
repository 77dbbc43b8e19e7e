"""What `expected` comes to when the calls themselves cannot be seen: by counts, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.evaluators.trajectory import words
from agentv.evaluators.trajectory.config import CLOSED, FRACTIONS, ORDERED
from agentv.evaluators.trajectory.laid import fraction_of, nothing_told
from agentv.matching.align import largest_assignment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentv.evaluators.base import EvaluatorBase, Tally
    from agentv.evaluators.trajectory.evaluator import ToolTrajectory
    from agentv.evaluators.trajectory.plan import Expectation
    from agentv.model.result import EvaluatorResult
    from agentv.protocols import Context

ONLY_COUNTS = "a `trace_summary` tells only how often each tool was called; send `output_messages`"


def leave_undecided(config: ToolTrajectory, tally: Tally, reason: str) -> dict[str, Any]:
    """Every constraint of `expected`, named with what is missing to decide it."""
    if config.mode == "any_order" and config.score is None:
        tally.undecided += [f"expected {label}: {reason}" for label in config.labels]
    else:
        tally.undecided.append(f"expected ({config.mode}): {reason}")
    _decide_times(config, tally, [])
    return nothing_told()


def untold(evaluator: EvaluatorBase, sentence: str) -> EvaluatorResult:
    """A reply that tells nothing of calls fails; where a fail would be turned round, it could not be measured."""
    if evaluator.negate:
        return evaluator.result("error", None, details=nothing_told() | {"undecided": [sentence]})
    return evaluator.result("fail", 0.0, (), (sentence,), nothing_told())


def decide_from_counts(config: ToolTrajectory, ctx: Context, tally: Tally) -> dict[str, Any]:
    """Names and how often are enough where neither order nor inputs matter."""
    by_entry = config.mode == "any_order" and config.score is None
    summary = ctx.trace_summary
    counts: Mapping[str, int] = {} if summary is None else summary.tool_calls_by_name
    named = [item for item in config.expectations if item.name_only_among(counts)]
    all_named = len(named) == len(config.expectations)
    if config.mode in ORDERED or config.unit == "turn" or not (all_named or by_entry):
        return leave_undecided(config, tally, ONLY_COUNTS)
    counted = Counted.of(named, counts)
    if by_entry:
        _decide_entries(config, counted, tally)
    else:
        _decide_whole(config, counted, tally)
    missing = [item for item in named if item not in counted.matched]
    _decide_times(config, tally, missing)
    details = nothing_told()
    details["missing"] = [e for e, item in enumerate(config.expectations) if item in missing]
    if all_named:
        details.update({kind: counted.fraction(kind) for kind in FRACTIONS})
    return details


def _decide_times(config: ToolTrajectory, tally: Tally, missing: Sequence[Expectation]) -> None:
    """How long a call took is not told; that there was none may be."""
    for item in config.expectations:
        if item.limit is not None:
            sentence = words.duration(item.tool, item.limit, None, was_called=item not in missing)
            if item in missing:
                tally.fails(sentence)
            else:
                tally.undecided.append(sentence)


class Counted(NamedTuple):
    """Expectations held against bare counts."""

    wanted: Sequence[Expectation]
    matched: list[Expectation]
    made: int
    extra: dict[str, int]

    @classmethod
    def of(cls, expectations: Sequence[Expectation], counts: Mapping[str, int]) -> Counted:
        """The best assignment of so many calls of each tool."""
        rows: list[int] = []
        tools: list[str] = []
        for tool, times in counts.items():
            mask = sum(1 << e for e, item in enumerate(expectations) if item.names(tool))
            # More calls of one tool than there are expectations cannot all find one.
            copies = min(times, len(expectations))
            rows += [mask] * copies
            tools += [tool] * copies
        pairs = largest_assignment(rows, len(expectations))
        extra = dict(counts)
        for _, a in pairs:
            extra[tools[a]] -= 1
        return cls(expectations, [expectations[e] for e, _ in pairs], sum(counts.values()), extra)

    def fraction(self, kind: str) -> float:
        """`recall`, `precision` or `f1` of the matches."""
        return fraction_of(kind, len(self.matched), len(self.wanted), self.made)


def _decide_entries(config: ToolTrajectory, counted: Counted, tally: Tally) -> None:
    for item in config.expectations:
        if item not in counted.wanted:
            tally.undecided.append(f"expected {words.label(item)}: {ONLY_COUNTS}")
        elif item in counted.matched:
            tally.holds(f"{item.tool} matched a call")
        else:
            tally.fails(f"missing call: {item.tool}")


def _decide_whole(config: ToolTrajectory, counted: Counted, tally: Tally) -> None:
    mode, kind = str(config.mode), str(config.score)
    missing = [f"missing call: {item.tool}" for item in counted.wanted if item not in counted.matched]
    extra = [words.called(tool, times, "unexpected") for tool, times in counted.extra.items() if times]
    if kind in FRACTIONS:
        value = counted.fraction(kind)
        reasons = [*(missing if kind != "precision" else ()), *(extra if kind != "recall" else ())]
        sentence = words.fraction(kind, value, len(counted.matched), len(counted.wanted), counted.made)
        tally.fraction(value, sentence, reasons)
        return
    reasons = [*(missing if mode != "subset" else ()), *(extra if mode in CLOSED else ())]
    if reasons:
        tally.fails(*reasons)
    else:
        names = ", ".join(item.tool for item in counted.matched)
        tally.holds(f"{mode}: {names or 'no calls'} matched by count")
