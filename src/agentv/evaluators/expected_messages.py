"""`expected_messages`: compare the expected calls in order, with partial credit."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from agentv.evaluators.base import ConstraintTally, EvaluatorBase, Example, Finding, run_searches
from agentv.evaluators.call_checks import (
    DEFAULT_EXCLUDED,
    ONLY_COUNTS,
    explain_uncounted,
    has_missing_text,
    unread_calls,
)
from agentv.evaluators.trajectory import wording
from agentv.evaluators.trajectory.config import Entry
from agentv.evaluators.trajectory.constraints import no_calls_result
from agentv.evaluators.trajectory.expectations import CallMatcher, CountedCalls, Expectation, count_calls
from agentv.evaluators.trajectory.lower_bound import call_bounds
from agentv.evaluators.trajectory.report import AlignmentReport, empty_details, match_rows, report_alignment
from agentv.evaluators.trajectory.script import repeated_calls
from agentv.matching.alignment import longest_sequence
from agentv.matching.matchers import has_search
from agentv.model.conversation import Message, ToolCall
from agentv.model.results import EvaluatorResult
from agentv.protocols import Context
from agentv.scoring.scorer import TURN, name_incomplete
from agentv.scoring.turns import golden_segments, is_golden_path

NO_TRACE = "No trace available to validate tool_calls"


class ExpectedMessages(EvaluatorBase, kw_only=True):
    """The tool calls of `expected_messages`, in order, with partial credit; extra calls are ignored."""

    type: Literal["expected_messages"] = "expected_messages"

    handles_incomplete: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={"type": "expected_messages"},
            reply=[
                {"role": "assistant", "tool_calls": [{"tool": tool, "input": {"order": 7}} for tool in tools]},
                {"role": "assistant", "content": "Done."},
            ],
            expected_messages=[
                {"role": "assistant", "tool_calls": [{"tool": "get_order"}, {"tool": "refund", "input": {"order": 7}}]},
            ],
            passes=passes,
        )
        for tools, passes in ((("get_order", "refund"), True), (("get_order",), False))
    )

    def evaluate(self, ctx: Context) -> Finding:
        """Decide one constraint per expected call; a golden path of several turns is compared turn by turn."""
        if ctx.turns and is_golden_path(ctx.expected_messages or ()):
            return run_searches(lambda: self._evaluate_turns(ctx))
        wanted = expected_calls(ctx.expected_messages or ())
        if ctx.calls_source is None:
            return no_calls_result(self, NO_TRACE)
        if any(has_search(call.input) or has_search(call.output) for call in wanted):
            return run_searches(lambda: self._evaluate_now(ctx, wanted))
        return self._evaluate_now(ctx, wanted)

    def _evaluate_turns(self, ctx: Context) -> EvaluatorResult:
        """Compare each turn with its part of the golden path; turns that did not take place made no calls."""
        tally = ConstraintTally()
        turns: list[dict[str, Any]] = []
        failed: dict[str, Any] = {}
        for index, segment in enumerate(golden_segments(ctx.expected_messages or ())):
            part = ConstraintTally()
            wanted = expected_calls(segment)
            if index >= len(ctx.turns):
                part.add_miss(*[f"{call.tool} was expected, and the turn did not take place" for call in wanted])
            elif wanted and ctx.turns[index].calls_source is None:
                _leave_undecided(wanted, NO_TRACE, part)
            elif wanted:
                turns.append({TURN: index + 1, **self._compare(ctx.turns[index], wanted, part)})
                failed = failed or (turns[-1] if part.misses else {})
            tally.hits += [f"turn {index + 1}: {sentence}" for sentence in part.hits]
            tally.misses += [f"turn {index + 1}: {sentence}" for sentence in part.misses]
            tally.undecided += [f"turn {index + 1}: {sentence}" for sentence in part.undecided]
            tally.values += part.values
        status, score = tally.verdict(self.threshold, negate=self.negate)
        details = {**failed, "turns": turns, "undecided": tally.undecided}
        return self.result(status, score, tally.hits, tally.misses, details)

    def _evaluate_now(self, ctx: Context, wanted: Sequence[ToolCall]) -> EvaluatorResult:
        tally = ConstraintTally()
        details = self._compare(ctx, wanted, tally)
        details["undecided"] = tally.undecided
        status, score = tally.verdict(self.threshold, negate=self.negate)
        return self.result(status, score, tally.hits, tally.misses, details)

    def _compare(self, ctx: Context, wanted: Sequence[ToolCall], tally: ConstraintTally) -> dict[str, Any]:
        """Decide the expected calls of a reply, and return the details of the comparison."""
        if ctx.calls is None:
            details = empty_details()
            _leave_undecided(wanted, ONLY_COUNTS, tally)
        else:
            counted = count_calls(ctx.calls, DEFAULT_EXCLUDED)
            matcher = CallMatcher([_expectation(call) for call in wanted])
            if ctx.incomplete and any(map(has_missing_text, counted.calls)):
                details = _decide_incomplete(matcher, counted, ctx, tally)
            elif ctx.calls_complete:
                report = report_alignment(matcher, counted, ordered=True)
                _decide(report, tally)
                details = report.details()
            else:
                details = _decide_lower_bound(matcher, counted, unread_calls(ctx), tally)
            details["repeated"] = repeated_calls(counted)
            details["unnamed"] = sum(not call.tool for call in ctx.calls)
            names = {wanted[e].tool for e in details["missing"] or ()}
            tally.misses += explain_uncounted(ctx.calls, DEFAULT_EXCLUDED, names.__contains__)
        return details

    def sides(self, ctx: Context) -> tuple[str, list[str], dict[int, str]] | None:
        """Return the unit and the labels of both sides of `details.alignment`."""
        if ctx.calls is None or (ctx.turns and is_golden_path(ctx.expected_messages or ())):
            return None
        wanted = [wording.call_label(call) for call in expected_calls(ctx.expected_messages or ())]
        return "call", wanted, dict(enumerate(map(wording.call_label, ctx.calls)))


def expected_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """Return the tool calls of the expected assistant messages, in order."""
    return [call for message in messages if message.role == "assistant" for call in message.tool_calls]


def _expectation(call: ToolCall) -> Expectation:
    # Names are exact here: a tool called `get_*` is not a glob.
    return Expectation(Entry(tool=call.tool, input=call.input, output=call.output), "exact", None, globs=False)


def _leave_undecided(wanted: Sequence[ToolCall | Expectation], reason: str, tally: ConstraintTally) -> None:
    tally.undecided += [f"tool_calls[{index}] ({call.tool}): {reason}" for index, call in enumerate(wanted)]


def _decide_lower_bound(
    matcher: CallMatcher, counted: CountedCalls, reason: str, tally: ConstraintTally
) -> dict[str, Any]:
    """Decide a partly understood reply: all calls match, or nothing is known.

    A match of some of them may be none of the longest alignment any more once the calls are there that were not read.
    """
    wanted = matcher.expectations
    pairs = longest_sequence(call_bounds(matcher, counted).certain, len(wanted))
    if len(pairs) < len(wanted):
        _leave_undecided(wanted, reason, tally)
        return empty_details()
    for e, expectation in enumerate(wanted):
        tally.add_hit(_matched(e, expectation.tool))
    alignment = match_rows((e, counted.numbers[a]) for e, a in pairs)
    return empty_details() | {"recall": 1.0, "missing": [], "alignment": alignment}


def _decide_incomplete(
    matcher: CallMatcher, counted: CountedCalls, ctx: Context, tally: ConstraintTally
) -> dict[str, Any]:
    """Decide calls in which text is missing if the result is the same for what they certainly and may meet."""
    bounds = call_bounds(matcher, counted, is_incomplete=True)
    reports = [
        report_alignment(matcher, counted, ordered=True, rows=rows) for rows in (bounds.certain, bounds.possible)
    ]
    if not ctx.calls_complete or len(reports[0].matches) != len(reports[1].matches):
        reason = name_incomplete(ctx) if ctx.calls_complete else unread_calls(ctx)
        _leave_undecided(matcher.expectations, reason, tally)
        return empty_details()
    _decide(reports[0], tally)
    return reports[0].details()


def _matched(index: int, tool: str) -> str:
    return f"tool_calls[{index}]: {tool} matched"


def _decide(report: AlignmentReport, tally: ConstraintTally) -> None:
    matched = dict(report.matches)
    wrong = {e: differences for e, _, _, differences in report.mismatches}
    unrelated = {e: name for e, _, name in report.unrelated}
    following: str | None = None
    sentences: list[tuple[bool, str]] = []
    for e in range(report.wanted - 1, -1, -1):
        place, name = f"tool_calls[{e}]", report.labels[e]
        if e in matched:
            following = name
            sentences.append((True, _matched(e, name)))
        elif e in wrong:
            part = "input" if any(d.path.startswith("input") for d in wrong[e]) else "output"
            sentences.append((False, f"{place}: {part} mismatch: {wording.joined(wrong[e])}"))
        elif e in unrelated:
            sentences.append((False, f"{place}: expected {name}, got {unrelated[e]}"))
        elif following is not None:
            sentences.append((False, f"{place}: expected {name}, but it was not called before {following}"))
        else:
            sentences.append((False, f"{place}: expected {name}, but no more tool calls in trace"))
    for good, sentence in reversed(sentences):
        tally.add(good=good, sentence=sentence)
