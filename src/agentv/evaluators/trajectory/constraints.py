"""Constraints of a trajectory: the sequence, the counts, and unknown calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentv.evaluators.call_checks import ONLY_COUNTS, is_any_name, unread_calls
from agentv.evaluators.trajectory import wording
from agentv.evaluators.trajectory.config import CLOSED, FRACTIONS, ORDERED
from agentv.evaluators.trajectory.expectations import UNNAMED, count_certain_calls
from agentv.evaluators.trajectory.report import (
    AlignmentReport,
    TimeLimit,
    argument_difference,
    as_json,
    empty_details,
    fractions_of,
    match_rows,
    mean,
    report_alignment,
    row,
)
from agentv.evaluators.trajectory.script import repeated_calls
from agentv.matching.alignment import largest_assignment
from agentv.matching.text import glob_test, is_glob

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agentv.evaluators.base import ConstraintTally, EvaluatorBase
    from agentv.evaluators.trajectory.evaluator import ToolTrajectory
    from agentv.evaluators.trajectory.expectations import CountedCalls, Expectation
    from agentv.evaluators.trajectory.script import Script
    from agentv.model.conversation import ToolCall
    from agentv.model.results import EvaluatorResult
    from agentv.protocols import Context


def decide_counts(config: ToolTrajectory, ctx: Context, counted: CountedCalls | None, tally: ConstraintTally) -> None:
    """Decide the counts of the configuration; a completely understood reply decides all of them."""
    if config.minimums or config.maximums:
        counts = _reported_counts(ctx) if counted is None else count(call.tool for call in counted.calls)
        for key, least in (config.minimums or {}).items():
            times = total(counts, key)
            tally.add(good=times >= least, sentence=wording.called(key, times, f"minimum: {least}"))
        for key, most in (config.maximums or {}).items():
            times = total(counts, key)
            tally.add(good=times <= most, sentence=wording.called(key, times, f"maximum: {most}"))
    if config.forbidden:
        attempted = _reported_counts(ctx) if ctx.calls is None else count(call.tool for call in ctx.calls)
        for key in config.forbidden:
            times = total(attempted, key)
            tally.add(good=times == 0, sentence=wording.called(key, times, "forbidden"))
    if config.allowed is not None:
        violations = list(_violations(config.allowed, ctx))
        if violations:
            tally.add_miss(*violations)
        else:
            tally.add_hit("only allowed tools were called")


def decide_lower_bound(config: ToolTrajectory, ctx: Context, tally: ConstraintTally) -> None:
    """Decide the counts of a partly understood reply, to which any number of calls may be added."""
    reason, calls = unread_calls(ctx), ctx.calls or ()
    certain = count_certain_calls(calls, config.excluded).calls
    for key, least in (config.minimums or {}).items():
        decide_minimum(key, least, count_at_least(certain, key), reason, tally)
    for key, most in (config.maximums or {}).items():
        decide_maximum(key, most, count_at_least(certain, key), reason, tally)
    for key in config.forbidden or ():
        times = count_at_least(calls, key)
        sentence = wording.called(key, times, "forbidden", at_least=True)
        tally.decide(good=False if times else None, sentence=sentence, undecided=f"{key} (forbidden): {reason}")
    if config.allowed is not None:
        _decide_allowed(config.allowed, ctx, reason, tally)


def decide_minimum(key: str, least: int, times: int, reason: str, tally: ConstraintTally) -> None:
    """Decide a minimum by the calls that were read: once it is reached, it holds."""
    bound = f"minimum: {least}"
    sentence = wording.called(key, times, bound, at_least=True)
    tally.decide(good=True if times >= least else None, sentence=sentence, undecided=f"{key} ({bound}): {reason}")


def decide_maximum(key: str, most: int, times: int, reason: str, tally: ConstraintTally) -> None:
    """Decide a maximum by the calls that were read: once it is exceeded, it does not hold."""
    bound = f"maximum: {most}"
    sentence = wording.called(key, times, bound, at_least=True)
    tally.decide(good=False if times > most else None, sentence=sentence, undecided=f"{key} ({bound}): {reason}")


def _decide_allowed(allowed: list[str], ctx: Context, reason: str, tally: ConstraintTally) -> None:
    """Decide an allow-list: a call without a name violates it only where it allows no name at all."""
    violations = list(_violations(allowed, ctx, unnamed=not allowed))
    if violations:
        tally.add_miss(*violations)
    elif any(map(is_any_name, allowed)):
        tally.add_hit("only allowed tools were called")
    else:
        tally.undecided.append(f"allowed: {reason}")


def count_at_least(calls: Sequence[ToolCall], key: str) -> int:
    """Return how many calls a key, which may be a glob, stands for at least; one without a name only for all tools."""
    return len(calls) if is_any_name(key) else total(count(call.tool for call in calls), key)


def _violations(allowed: list[str], ctx: Context, *, unnamed: bool = True) -> Iterable[str]:
    exact, tests = frozenset(allowed), [glob_test(pattern) for pattern in allowed if is_glob(pattern)]
    if ctx.calls is None:
        for tool, times in _reported_counts(ctx).items():
            if times and tool not in exact and not any([fits(tool) for fits in tests]):  # noqa: C419 - see below
                yield f"{wording.called(tool, times, 'not allowed')}"
        return
    known: dict[str, bool] = {"": not unnamed}
    for number, call in enumerate(ctx.calls):
        if call.tool not in known:
            known[call.tool] = call.tool in exact or any([fits(call.tool) for fits in tests])  # noqa: C419 - twice as fast
        if not known[call.tool]:
            yield f"call {number} {call.tool or UNNAMED} is not allowed"


def _reported_counts(ctx: Context) -> Mapping[str, int]:
    return {} if ctx.trace_summary is None else ctx.trace_summary.tool_calls_by_name


def count(tools: Iterable[str]) -> dict[str, int]:
    """Count the named calls by tool."""
    counts: dict[str, int] = {}
    for tool in tools:
        if tool:
            counts[tool] = counts.get(tool, 0) + 1
    return counts


def total(counts: Mapping[str, int], key: str) -> int:
    """Return the number of calls that a key, which may be a glob, stands for."""
    if is_glob(key):
        fits = glob_test(key)
        return sum([times for tool, times in counts.items() if fits(tool)])
    return counts.get(key, 0)


NO_TURNS = "a `trace` has no turns; send `output_messages`"


def decide_sequence(
    config: ToolTrajectory, ctx: Context, counted: CountedCalls | None, tally: ConstraintTally
) -> dict[str, Any]:
    """Decide the constraints of `expected` and its time limits; return the details."""
    if counted is None:
        return decide_from_counts(config, ctx, tally)
    details = None if config.script is None else decide_script(config.script, config.score, counted, tally)
    if details is not None:
        return details
    if not config.by_step:
        report = report_alignment(config.matcher, counted, ordered=config.mode in ORDERED)
    elif ctx.calls_source != "output_messages" and counted:
        return leave_undecided(config, tally, NO_TURNS) | {"repeated": repeated_calls(counted)}
    else:
        report = config.turn_plan.align(counted, ctx.output_messages or (), ordered=config.mode in ORDERED)
    return decide_report(str(config.mode), config.score, report, counted, tally)


def decide_script(
    script: Script, score: str | None, counted: CountedCalls, tally: ConstraintTally
) -> dict[str, Any] | None:
    """Decide calls that follow a script except for their arguments; `None` if they must be aligned."""
    inputs = script.arguments(counted.calls)
    if inputs is None:
        return None
    unequal = script.unequal(inputs)
    if unequal == []:
        return decide_script_match(script, score, counted, tally)
    places = script.deviations(inputs, unequal)
    return None if places is None else decide_script_mismatch(script, score, places, counted, tally)


def decide_report(
    mode: str, score: str | None, report: AlignmentReport, counted: CountedCalls, tally: ConstraintTally
) -> dict[str, Any]:
    """Decide the constraints of an alignment and its time limits; return the details."""
    decide_alignment(mode, score, report, tally)
    decide_times(report.time_limits, tally)
    details = report.details()
    details["repeated"] = repeated_calls(counted)
    return details


def decide_script_match(
    script: Script, score: str | None, counted: CountedCalls, tally: ConstraintTally
) -> dict[str, Any]:
    """Decide a run that did exactly what was expected, as most do, without aligning it."""
    names, numbers = script.names, counted.numbers
    if score in FRACTIONS:
        tally.add_hit(wording.fraction(str(score), 1.0, len(names), len(names), len(names)))
    elif script.mode == "any_order" and score is None:
        for name, number in zip(names, numbers, strict=True):
            tally.add_hit(f"{name} matched call {number}")
    else:
        tally.add_hit(script.hit_sentence if counted.is_whole else wording.matched(script.mode, names, "call", numbers))
    return {
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
        "argument_score": 1.0 if script.argument_calls else None,
        "missing": [],
        "extra": [],
        "out_of_order": [],
        "repeated": repeated_calls(counted) if script.loose else [numbers[place] for place in script.repeats],
        "alignment": match_rows(enumerate(numbers)),
    }


def decide_script_mismatch(
    script: Script, score: str | None, places: list[int], counted: CountedCalls, tally: ConstraintTally
) -> dict[str, Any]:
    """Decide a run that follows its script except for the arguments at these places, without aligning it."""
    names, numbers, wanted = script.names, counted.numbers, len(script.names)
    rows, shares, sentences = match_rows(enumerate(numbers)), [], {}
    for place in places:
        differences, share = argument_difference(script.inputs[place], counted.calls[place].input)
        sentences[place] = wording.mismatch(counted, place, differences)
        shown = [as_json(difference) for difference in differences[: wording.MAX_DIFFERENCES]]
        rows[place] = row(place, numbers[place], "mismatch", shown)
        if share is not None:
            shares.append(share)
    matched = wanted - len(places)
    fraction = matched / wanted
    if score in FRACTIONS:
        reasons = sentences.values() if score != "precision" else ()
        tally.add_fraction(fraction, wording.fraction(str(score), fraction, matched, wanted, wanted), reasons)
    elif script.mode == "any_order" and score is None:
        for place, name in enumerate(names):
            met = place not in sentences
            tally.add(good=met, sentence=f"{name} matched call {numbers[place]}" if met else sentences[place])
    elif places:
        tally.add_miss(*sentences.values())
    else:  # they differ only in notation
        tally.add_hit(wording.matched(script.mode, names, "call", numbers))
    return {
        "precision": fraction,
        "recall": fraction,
        "f1": fraction,
        "argument_score": mean([1.0] * (script.argument_calls - len(shares)) + shares),
        "missing": [],
        "extra": [],
        "out_of_order": [],
        "repeated": repeated_calls(counted),
        "alignment": rows,
    }


def decide_alignment(mode: str, score: str | None, report: AlignmentReport, tally: ConstraintTally) -> None:
    """Decide the constraints of an alignment."""
    ordered = mode in ORDERED
    if score in FRACTIONS:
        value = report.fraction(str(score))
        reasons = report.missing_sentences(ordered=ordered) if score != "precision" else []
        if score != "recall":
            reasons += report.extra_sentences()
        tally.add_fraction(
            value, wording.fraction(str(score), value, len(report.matches), report.wanted, report.actual_count), reasons
        )
    elif mode == "any_order" and score is None:
        _decide_entries(report, tally)
    else:
        complete, closed = len(report.matches) == report.wanted, len(report.matches) == report.actual_count
        if (complete or mode == "subset") and (closed or mode not in CLOSED):
            tally.add_hit(_hit_sentence(mode, report))
        else:
            mismatched = [sentence for _, _, sentences, _ in report.mismatches for sentence in sentences]
            reasons = mismatched if mode == "subset" else report.missing_sentences(ordered=ordered)
            tally.add_miss(*reasons, *(report.extra_sentences() if mode in CLOSED else ()))


def _hit_sentence(mode: str, report: AlignmentReport) -> str:
    names = [report.labels[e] for e, _ in report.matches]
    if not names and report.wanted:
        return f"{mode}: no {report.unit}s were made"
    return wording.matched(mode, names, report.unit, [number for _, number in report.matches])


def _decide_entries(report: AlignmentReport, tally: ConstraintTally) -> None:
    matches = dict(report.matches)
    wrong = {e: sentences for e, _, sentences, _ in report.mismatches}
    for e, name in enumerate(report.labels):
        if e in matches:
            tally.add_hit(f"{name} matched {report.unit} {matches[e]}")
        else:
            tally.add_miss(*wrong.get(e) or report.missing_with_hints(e, ordered=False))


def decide_times(time_limits: list[TimeLimit], tally: ConstraintTally) -> None:
    """Decide each time limit: it is a constraint on the one call that its entry is aligned with."""
    for item in time_limits:
        sentence = wording.duration(item.tool, item.limit, item.took, was_called=item.was_called)
        if item.was_called and item.took is None:
            tally.undecided.append(sentence)
        else:
            tally.add(good=item.took is not None and item.took <= item.limit, sentence=sentence)


def leave_undecided(config: ToolTrajectory, tally: ConstraintTally, reason: str) -> dict[str, Any]:
    """Leave every constraint of `expected` undecided for this reason; return the details."""
    if config.mode == "any_order" and config.score is None:
        tally.undecided += [f"expected {label}: {reason}" for label in config.labels]
    else:
        tally.undecided.append(f"expected ({config.mode}): {reason}")
    _decide_times(config, tally, [])
    return empty_details()


def no_calls_result(evaluator: EvaluatorBase, sentence: str, *more: str) -> EvaluatorResult:
    """Fail a reply from which no calls are known; with `not: true`, which would make that a pass, it is an error.

    `more` are further misses: what came instead, and what to send.
    """
    if evaluator.negate:
        return evaluator.result("error", None, details=empty_details() | {"undecided": [sentence]})
    return evaluator.result("fail", 0.0, (), (sentence, *more), empty_details())


def decide_from_counts(config: ToolTrajectory, ctx: Context, tally: ConstraintTally) -> dict[str, Any]:
    """Decide `expected` by counts of tools, which suffice if neither order nor inputs matter; return the details."""
    by_entry = config.mode == "any_order" and config.score is None
    summary = ctx.trace_summary
    counts: Mapping[str, int] = {} if summary is None else summary.tool_calls_by_name
    named = [item for item in config.expectations if item.name_only_among(counts)]
    all_named = len(named) == len(config.expectations)
    if config.mode in ORDERED or config.by_step:
        return leave_undecided(config, tally, ONLY_COUNTS)
    match = CountMatch.of(named, counts)
    if by_entry:
        _decide_entries_from_counts(config, match, tally)
    elif all_named:
        _decide_whole(config, match, tally)
    else:
        tally.undecided.append(f"expected ({config.mode}): {ONLY_COUNTS}")
    missing = [item for item in named if item not in match.matched]
    _decide_times(config, tally, missing)
    details = empty_details()
    details["missing"] = [e for e, item in enumerate(config.expectations) if item in missing]
    if all_named:
        details.update({kind: match.fraction(kind) for kind in FRACTIONS})
    return details


def _decide_times(config: ToolTrajectory, tally: ConstraintTally, missing: Sequence[Expectation]) -> None:
    """Decide time limits by counts, which have no durations: a limit fails if its call is missing."""
    for item in config.expectations:
        if item.limit is not None:
            sentence = wording.duration(item.tool, item.limit, None, was_called=item not in missing)
            if item in missing:
                tally.add_miss(sentence)
            else:
                tally.undecided.append(sentence)


class CountMatch(Struct, frozen=True):
    """Expectations matched with the counts of tools."""

    wanted: Sequence[Expectation]
    matched: list[Expectation]
    actual_count: int
    extra: dict[str, int]

    @classmethod
    def of(cls, expectations: Sequence[Expectation], counts: Mapping[str, int]) -> CountMatch:
        """Return the best assignment of these numbers of calls to the expectations."""
        rows: list[int] = []
        tools: list[str] = []
        for tool, times in counts.items():
            mask = sum(1 << e for e, item in enumerate(expectations) if item.names(tool))
            # More calls of one tool than expectations cannot all be paired.
            copies = min(times, len(expectations))
            rows += [mask] * copies
            tools += [tool] * copies
        pairs = largest_assignment(rows, len(expectations))
        extra = dict(counts)
        for _, a in pairs:
            extra[tools[a]] -= 1
        return cls(expectations, [expectations[e] for e, _ in pairs], sum(counts.values()), extra)

    def fraction(self, kind: str) -> float:
        """Return `recall`, `precision` or `f1` of the matches."""
        return fractions_of(len(self.matched), len(self.wanted), self.actual_count)[kind]


def _decide_entries_from_counts(config: ToolTrajectory, match: CountMatch, tally: ConstraintTally) -> None:
    for item in config.expectations:
        if item not in match.wanted:
            tally.undecided.append(f"expected {wording.label(item)}: {ONLY_COUNTS}")
        elif item in match.matched:
            tally.add_hit(f"{item.tool} matched a call")
        else:
            tally.add_miss(f"missing call: {item.tool}")


def _decide_whole(config: ToolTrajectory, match: CountMatch, tally: ConstraintTally) -> None:
    mode, kind = str(config.mode), str(config.score)
    missing = [f"missing call: {item.tool}" for item in match.wanted if item not in match.matched]
    extra = [wording.called(tool, times, "unexpected") for tool, times in match.extra.items() if times]
    if kind in FRACTIONS:
        value = match.fraction(kind)
        reasons = [*(missing if kind != "precision" else ()), *(extra if kind != "recall" else ())]
        sentence = wording.fraction(kind, value, len(match.matched), len(match.wanted), match.actual_count)
        tally.add_fraction(value, sentence, reasons)
        return
    reasons = [*(missing if mode != "subset" else ()), *(extra if mode in CLOSED else ())]
    if reasons:
        tally.add_miss(*reasons)
    else:
        names = ", ".join(item.tool for item in match.matched)
        tally.add_hit(f"{mode}: {names or 'no calls'} matched by count")
