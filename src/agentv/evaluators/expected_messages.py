"""`expected_messages`: the golden path, call by call with partial credit (seed 001's Pattern A)."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from agentv.evaluators.base import ConstraintTally, EvaluatorBase, Example
from agentv.evaluators.call_checks import ONLY_COUNTS, CallFilter, unread_calls
from agentv.evaluators.trajectory import wording
from agentv.evaluators.trajectory.alignment import AlignmentReport, match_rows, nothing_told, report_alignment
from agentv.evaluators.trajectory.config import Entry
from agentv.evaluators.trajectory.constraints import no_calls_result
from agentv.evaluators.trajectory.expectations import CallMatcher, CountedCalls, Expectation, count_calls
from agentv.evaluators.trajectory.lower_bound import call_bounds
from agentv.evaluators.trajectory.script import repeated
from agentv.matching.alignment import longest_sequence
from agentv.model.conversation import Message, ToolCall
from agentv.model.results import EvaluatorResult
from agentv.protocols import Context

NO_TRACE = "No trace available to validate tool_calls"


class ExpectedMessages(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """The tool calls of `expected_messages`, in order, with partial credit; extra calls are forgiven."""

    type: Literal["expected_messages"] = "expected_messages"

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={"type": "expected_messages"},
            reply=[
                {"role": "assistant", "tool_calls": [{"tool": tool, "input": {"order": 7}} for tool in made]},
                {"role": "assistant", "content": "Done."},
            ],
            expected_messages=[
                {"role": "assistant", "tool_calls": [{"tool": "get_order"}, {"tool": "refund", "input": {"order": 7}}]},
            ],
            passes=passes,
        )
        for made, passes in ((("get_order", "refund"), True), (("get_order",), False))
    )

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """One constraint an expected call."""
        wanted = expected_calls(ctx.expected_messages or ())
        if ctx.calls_source is None:
            return no_calls_result(self, NO_TRACE)
        tally = ConstraintTally()
        if ctx.calls is None:
            details = nothing_told()
            _leave_undecided(wanted, ONLY_COUNTS, tally)
        else:
            made = count_calls(ctx.calls, CallFilter().excluded)
            judge = CallMatcher([_expectation(call) for call in wanted])
            if ctx.calls_complete:
                laid = report_alignment(judge, made, ordered=True)
                _decide(laid, tally)
                details = laid.details()
            else:
                details = _decide_lower_bound(judge, made, unread_calls(ctx), tally)
            details["repeated"] = repeated(made)
            details["unnamed"] = sum(not call.tool for call in ctx.calls)
        details["undecided"] = tally.undecided
        status, score = tally.verdict(self.threshold, negate=self.negate)
        return self.result(status, score, tally.hits, tally.misses, details)

    def sides(self, ctx: Context) -> tuple[str, list[str], dict[int, str]] | None:
        """For a diff: what the indices of `details.alignment` stand for."""
        if ctx.calls is None:
            return None
        wanted = [wording.call_label(call) for call in expected_calls(ctx.expected_messages or ())]
        return "call", wanted, dict(enumerate(map(wording.call_label, ctx.calls)))


def expected_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """The tool calls of the expected assistant messages, in order."""
    return [call for message in messages if message.role == "assistant" for call in message.tool_calls]


def _expectation(call: ToolCall) -> Expectation:
    # Seed 001's names are exact: a tool called `get_*` is just that.
    return Expectation(Entry(tool=call.tool, input=call.input, output=call.output), "exact", None, globs=False)


def _leave_undecided(wanted: Sequence[ToolCall | Expectation], reason: str, tally: ConstraintTally) -> None:
    tally.undecided += [f"tool_calls[{index}] ({call.tool}): {reason}" for index, call in enumerate(wanted)]


def _decide_lower_bound(judge: CallMatcher, made: CountedCalls, reason: str, tally: ConstraintTally) -> dict[str, Any]:
    """Decide a partly understood reply: all calls match, or nothing is known.

    A match of some of them may be none of the longest alignment any more once the calls are there that were not read.
    """
    wanted = judge.expectations
    pairs = longest_sequence(call_bounds(judge, made).certain, len(wanted))
    if len(pairs) < len(wanted):
        _leave_undecided(wanted, reason, tally)
        return nothing_told()
    for e, expectation in enumerate(wanted):
        tally.holds(_matched(e, expectation.tool))
    alignment = match_rows((e, made.numbers[a]) for e, a in pairs)
    return nothing_told() | {"recall": 1.0, "missing": [], "alignment": alignment}


def _matched(index: int, tool: str) -> str:
    return f"tool_calls[{index}]: {tool} matched"


def _decide(laid: AlignmentReport, tally: ConstraintTally) -> None:
    matched = dict(laid.matches)
    wrong = {e: found for e, _, _, found in laid.mismatches}
    strangers = {e: name for e, _, name in laid.strangers}
    following: str | None = None
    sentences: list[tuple[bool, str]] = []
    for e in range(laid.wanted - 1, -1, -1):
        place, name = f"tool_calls[{e}]", laid.labels[e]
        if e in matched:
            following = name
            sentences.append((True, _matched(e, name)))
        elif e in wrong:
            part = "input" if any(d.path.startswith("input") for d in wrong[e]) else "output"
            sentences.append((False, f"{place}: {part} mismatch: {wording.joined(wrong[e])}"))
        elif e in strangers:
            sentences.append((False, f"{place}: expected {name}, got {strangers[e]}"))
        elif following is not None:
            sentences.append((False, f"{place}: expected {name}, but it was not called before {following}"))
        else:
            sentences.append((False, f"{place}: expected {name}, but no more tool calls in trace"))
    for good, sentence in reversed(sentences):
        tally.count(good=good, sentence=sentence)
