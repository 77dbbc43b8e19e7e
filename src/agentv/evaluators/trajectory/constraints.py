"""Decide the constraints of a trajectory: the sequence, the counts, and unknown calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.evaluators.call_checks import ONLY_COUNTS, is_any_name, unread_calls
from agentv.evaluators.trajectory import wording
from agentv.evaluators.trajectory.alignment import (
    AlignmentReport,
    Timed,
    as_json,
    deviation,
    fraction_of,
    match_rows,
    mean,
    nothing_told,
    report_alignment,
    row,
)
from agentv.evaluators.trajectory.config import CLOSED, FRACTIONS, ORDERED
from agentv.evaluators.trajectory.expectations import UNNAMED, count_certain_calls
from agentv.evaluators.trajectory.script import repeated
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


def decide_counts(config: ToolTrajectory, ctx: Context, made: CountedCalls | None, tally: ConstraintTally) -> None:
    """Every count of the configuration; they can always be decided."""
    if config.minimums or config.maximums:
        counted = _given(ctx) if made is None else count(call.tool for call in made.calls)
        for key, least in (config.minimums or {}).items():
            times = total(counted, key)
            tally.count(good=times >= least, sentence=wording.called(key, times, f"minimum: {least}"))
        for key, most in (config.maximums or {}).items():
            times = total(counted, key)
            tally.count(good=times <= most, sentence=wording.called(key, times, f"maximum: {most}"))
    if config.forbidden:
        attempted = _given(ctx) if ctx.calls is None else count(call.tool for call in ctx.calls)
        for key in config.forbidden:
            times = total(attempted, key)
            tally.count(good=times == 0, sentence=wording.called(key, times, "forbidden"))
    if config.allowed is not None:
        violations = list(_violations(config.allowed, ctx))
        if violations:
            tally.fails(*violations)
        else:
            tally.holds("only allowed tools were called")


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
        tally.fails(*violations)
    elif any(map(is_any_name, allowed)):
        tally.holds("only allowed tools were called")
    else:
        tally.undecided.append(f"allowed: {reason}")


def count_at_least(calls: Sequence[ToolCall], key: str) -> int:
    """Return how many calls a key, which may be a glob, stands for at least; one without a name only for all tools."""
    return len(calls) if is_any_name(key) else total(count(call.tool for call in calls), key)


def _violations(allowed: list[str], ctx: Context, *, unnamed: bool = True) -> Iterable[str]:
    exact, tests = frozenset(allowed), [glob_test(pattern) for pattern in allowed if is_glob(pattern)]
    if ctx.calls is None:
        for tool, times in _given(ctx).items():
            if times and tool not in exact and not any([fits(tool) for fits in tests]):  # noqa: C419 - see below
                yield f"{wording.called(tool, times, 'not allowed')}"
        return
    known: dict[str, bool] = {"": not unnamed}
    for number, call in enumerate(ctx.calls):
        if call.tool not in known:
            known[call.tool] = call.tool in exact or any([fits(call.tool) for fits in tests])  # noqa: C419 - twice as fast
        if not known[call.tool]:
            yield f"call {number} {call.tool or UNNAMED} is not allowed"


def _given(ctx: Context) -> Mapping[str, int]:
    return {} if ctx.trace_summary is None else ctx.trace_summary.tool_calls_by_name


def count(tools: Iterable[str]) -> dict[str, int]:
    """Named calls by tool."""
    found: dict[str, int] = {}
    for tool in tools:
        if tool:
            found[tool] = found.get(tool, 0) + 1
    return found


def total(counted: Mapping[str, int], key: str) -> int:
    """All calls that a key, which may be a glob, stands for."""
    if is_glob(key):
        fits = glob_test(key)
        return sum([times for tool, times in counted.items() if fits(tool)])
    return counted.get(key, 0)


NO_TURNS = "a `trace` does not tell turns; send `output_messages`"


def decide_sequence(
    config: ToolTrajectory, ctx: Context, made: CountedCalls | None, tally: ConstraintTally
) -> dict[str, Any]:
    """The constraints of `expected` and its time limits; returns the details."""
    if made is None:
        return decide_from_counts(config, ctx, tally)
    details = None if config.script is None else decide_script(config.script, config.score, made, tally)
    if details is not None:
        return details
    if config.unit != "turn":
        laid = report_alignment(config.judge, made, ordered=config.mode in ORDERED)
    elif ctx.calls_source != "output_messages" and made:
        return leave_undecided(config, tally, NO_TURNS) | {"repeated": repeated(made)}
    else:
        laid = config.turn_plan.lay(made, ctx.output_messages or (), ordered=config.mode in ORDERED)
    return decide_and_tell(str(config.mode), config.score, laid, made, tally)


def decide_script(
    script: Script, score: str | None, made: CountedCalls, tally: ConstraintTally
) -> dict[str, Any] | None:
    """The same for calls that follow a script, but perhaps for their arguments; `None` when they have to be aligned."""
    given = script.arguments(made.calls)
    if given is None:
        return None
    unequal = script.unequal(given)
    if unequal == []:
        return decide_followed(script, score, made, tally)
    places = script.deviations(given, unequal)
    return None if places is None else decide_deviating(script, score, places, made, tally)


def decide_and_tell(
    mode: str, score: str | None, laid: AlignmentReport, made: CountedCalls, tally: ConstraintTally
) -> dict[str, Any]:
    """The constraints of an alignment and its time limits; returns the details."""
    decide_laid(mode, score, laid, tally)
    decide_times(laid.timed, tally)
    details = laid.details()
    details["repeated"] = repeated(made)
    return details


def decide_followed(script: Script, score: str | None, made: CountedCalls, tally: ConstraintTally) -> dict[str, Any]:
    """The short way for a run that did just what was expected, which most do: nothing is left to align."""
    names, numbers = script.names, made.numbers
    if score in FRACTIONS:
        tally.holds(wording.fraction(str(score), 1.0, len(names), len(names), len(names)))
    elif script.mode == "any_order" and score is None:
        for name, number in zip(names, numbers, strict=True):
            tally.holds(f"{name} matched call {number}")
    else:
        tally.holds(script.followed if made.is_whole else wording.matched(script.mode, names, "call", numbers))
    return {
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
        "argument_score": 1.0 if script.expecting else None,
        "missing": [],
        "extra": [],
        "out_of_order": [],
        "repeated": repeated(made) if script.loose else [numbers[place] for place in script.repeats],
        "alignment": match_rows(enumerate(numbers)),
    }


def decide_deviating(
    script: Script, score: str | None, places: list[int], made: CountedCalls, tally: ConstraintTally
) -> dict[str, Any]:
    """The same for a run that kept to its script but for the arguments at these places: no need to align it either."""
    names, numbers, wanted = script.names, made.numbers, len(script.names)
    rows, shares, sentences = match_rows(enumerate(numbers)), [], {}
    for place in places:
        found, share = deviation(script.inputs[place], made.calls[place].input)
        sentences[place] = wording.mismatch(made, place, found)
        shown = [as_json(difference) for difference in found[: wording.MAX_DIFFERENCES]]
        rows[place] = row(place, numbers[place], "mismatch", shown)
        if share is not None:
            shares.append(share)
    matched = wanted - len(places)
    fraction = matched / wanted
    if score in FRACTIONS:
        reasons = sentences.values() if score != "precision" else ()
        tally.fraction(fraction, wording.fraction(str(score), fraction, matched, wanted, wanted), reasons)
    elif script.mode == "any_order" and score is None:
        for place, name in enumerate(names):
            met = place not in sentences
            tally.count(good=met, sentence=f"{name} matched call {numbers[place]}" if met else sentences[place])
    elif places:
        tally.fails(*sentences.values())
    else:  # they differ only in ways that mean the same
        tally.holds(wording.matched(script.mode, names, "call", numbers))
    return {
        "precision": fraction,
        "recall": fraction,
        "f1": fraction,
        "argument_score": mean([1.0] * (script.expecting - len(shares)) + shares),
        "missing": [],
        "extra": [],
        "out_of_order": [],
        "repeated": repeated(made),
        "alignment": rows,
    }


def decide_laid(mode: str, score: str | None, laid: AlignmentReport, tally: ConstraintTally) -> None:
    """The constraints of an alignment."""
    ordered = mode in ORDERED
    if score in FRACTIONS:
        value = laid.fraction(str(score))
        reasons = laid.missing_sentences(ordered=ordered) if score != "precision" else []
        if score != "recall":
            reasons += laid.extra_sentences()
        tally.fraction(value, wording.fraction(str(score), value, len(laid.matches), laid.wanted, laid.made), reasons)
    elif mode == "any_order" and score is None:
        _decide_entries(laid, tally)
    else:
        complete, closed = len(laid.matches) == laid.wanted, len(laid.matches) == laid.made
        if (complete or mode == "subset") and (closed or mode not in CLOSED):
            tally.holds(_held(mode, laid))
        else:
            mismatched = [sentence for _, _, sentences, _ in laid.mismatches for sentence in sentences]
            reasons = mismatched if mode == "subset" else laid.missing_sentences(ordered=ordered)
            tally.fails(*reasons, *(laid.extra_sentences() if mode in CLOSED else ()))


def _held(mode: str, laid: AlignmentReport) -> str:
    names = [laid.labels[e] for e, _ in laid.matches]
    if not names and laid.wanted:
        return f"{mode}: no {laid.unit}s were made"
    return wording.matched(mode, names, laid.unit, [number for _, number in laid.matches])


def _decide_entries(laid: AlignmentReport, tally: ConstraintTally) -> None:
    found = dict(laid.matches)
    wrong = {e: sentences for e, _, sentences, _ in laid.mismatches}
    for e, name in enumerate(laid.labels):
        if e in found:
            tally.holds(f"{name} matched {laid.unit} {found[e]}")
        else:
            tally.fails(*wrong.get(e) or laid.missing_with_hints(e, ordered=False))


def decide_times(timed: list[Timed], tally: ConstraintTally) -> None:
    """Each time limit is a constraint on the one call its entry is aligned with."""
    for item in timed:
        sentence = wording.duration(item.tool, item.limit, item.took, was_called=item.was_called)
        if item.was_called and item.took is None:
            tally.undecided.append(sentence)
        else:
            tally.count(good=item.took is not None and item.took <= item.limit, sentence=sentence)


def leave_undecided(config: ToolTrajectory, tally: ConstraintTally, reason: str) -> dict[str, Any]:
    """Every constraint of `expected`, named with what is missing to decide it."""
    if config.mode == "any_order" and config.score is None:
        tally.undecided += [f"expected {label}: {reason}" for label in config.labels]
    else:
        tally.undecided.append(f"expected ({config.mode}): {reason}")
    _decide_times(config, tally, [])
    return nothing_told()


def no_calls_result(evaluator: EvaluatorBase, sentence: str) -> EvaluatorResult:
    """A reply that tells nothing of calls fails; where a fail would be turned round, it could not be measured."""
    if evaluator.negate:
        return evaluator.result("error", None, details=nothing_told() | {"undecided": [sentence]})
    return evaluator.result("fail", 0.0, (), (sentence,), nothing_told())


def decide_from_counts(config: ToolTrajectory, ctx: Context, tally: ConstraintTally) -> dict[str, Any]:
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
        _decide_entries_from_counts(config, counted, tally)
    else:
        _decide_whole(config, counted, tally)
    missing = [item for item in named if item not in counted.matched]
    _decide_times(config, tally, missing)
    details = nothing_told()
    details["missing"] = [e for e, item in enumerate(config.expectations) if item in missing]
    if all_named:
        details.update({kind: counted.fraction(kind) for kind in FRACTIONS})
    return details


def _decide_times(config: ToolTrajectory, tally: ConstraintTally, missing: Sequence[Expectation]) -> None:
    """How long a call took is not told; that there was none may be."""
    for item in config.expectations:
        if item.limit is not None:
            sentence = wording.duration(item.tool, item.limit, None, was_called=item not in missing)
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


def _decide_entries_from_counts(config: ToolTrajectory, counted: Counted, tally: ConstraintTally) -> None:
    for item in config.expectations:
        if item not in counted.wanted:
            tally.undecided.append(f"expected {wording.label(item)}: {ONLY_COUNTS}")
        elif item in counted.matched:
            tally.holds(f"{item.tool} matched a call")
        else:
            tally.fails(f"missing call: {item.tool}")


def _decide_whole(config: ToolTrajectory, counted: Counted, tally: ConstraintTally) -> None:
    mode, kind = str(config.mode), str(config.score)
    missing = [f"missing call: {item.tool}" for item in counted.wanted if item not in counted.matched]
    extra = [wording.called(tool, times, "unexpected") for tool, times in counted.extra.items() if times]
    if kind in FRACTIONS:
        value = counted.fraction(kind)
        reasons = [*(missing if kind != "precision" else ()), *(extra if kind != "recall" else ())]
        sentence = wording.fraction(kind, value, len(counted.matched), len(counted.wanted), counted.made)
        tally.fraction(value, sentence, reasons)
        return
    reasons = [*(missing if mode != "subset" else ()), *(extra if mode in CLOSED else ())]
    if reasons:
        tally.fails(*reasons)
    else:
        names = ", ".join(item.tool for item in counted.matched)
        tally.holds(f"{mode}: {names or 'no calls'} matched by count")
