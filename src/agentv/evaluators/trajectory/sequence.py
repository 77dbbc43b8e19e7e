"""What `expected` asks for: one constraint, or one an entry, or a fraction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.evaluators.trajectory import words
from agentv.evaluators.trajectory.config import CLOSED, FRACTIONS, ORDERED
from agentv.evaluators.trajectory.laid import Laid, Timed, as_json, deviation, lay_calls, match_rows, mean, row
from agentv.evaluators.trajectory.repeats import repeated
from agentv.evaluators.trajectory.unseen import decide_from_counts, leave_undecided

if TYPE_CHECKING:
    from agentv.evaluators.base import Tally
    from agentv.evaluators.trajectory.evaluator import ToolTrajectory
    from agentv.evaluators.trajectory.plan import Made
    from agentv.evaluators.trajectory.script import Script
    from agentv.protocols import Context

NO_TURNS = "a `trace` does not tell turns; send `output_messages`"


def decide(config: ToolTrajectory, ctx: Context, made: Made | None, tally: Tally) -> dict[str, Any]:
    """The constraints of `expected` and its time limits; returns the details."""
    if made is None:
        return decide_from_counts(config, ctx, tally)
    details = None if config.script is None else decide_script(config.script, config.score, made, tally)
    if details is not None:
        return details
    if config.unit != "turn":
        laid = lay_calls(config.judge, made, ordered=config.mode in ORDERED)
    elif ctx.calls_source != "output_messages" and made:
        return leave_undecided(config, tally, NO_TURNS) | {"repeated": repeated(made)}
    else:
        laid = config.turn_plan.lay(made, ctx.output_messages or (), ordered=config.mode in ORDERED)
    return decide_and_tell(str(config.mode), config.score, laid, made, tally)


def decide_script(script: Script, score: str | None, made: Made, tally: Tally) -> dict[str, Any] | None:
    """The same for calls that follow a script, but perhaps for their arguments; `None` when they have to be aligned."""
    given = script.arguments(made.calls)
    if given is None:
        return None
    unequal = script.unequal(given)
    if unequal == []:
        return decide_followed(script, score, made, tally)
    places = script.deviations(given, unequal)
    return None if places is None else decide_deviating(script, score, places, made, tally)


def decide_and_tell(mode: str, score: str | None, laid: Laid, made: Made, tally: Tally) -> dict[str, Any]:
    """The constraints of an alignment and its time limits; returns the details."""
    decide_laid(mode, score, laid, tally)
    decide_times(laid.timed, tally)
    details = laid.details()
    details["repeated"] = repeated(made)
    return details


def decide_followed(script: Script, score: str | None, made: Made, tally: Tally) -> dict[str, Any]:
    """The short way for a run that did just what was expected, which most do: nothing is left to align."""
    names, numbers = script.names, made.numbers
    if score in FRACTIONS:
        tally.holds(words.fraction(str(score), 1.0, len(names), len(names), len(names)))
    elif script.mode == "any_order" and score is None:
        for name, number in zip(names, numbers, strict=True):
            tally.holds(f"{name} matched call {number}")
    else:
        tally.holds(script.followed if made.is_whole else words.matched(script.mode, names, "call", numbers))
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


def decide_deviating(script: Script, score: str | None, places: list[int], made: Made, tally: Tally) -> dict[str, Any]:
    """The same for a run that kept to its script but for the arguments at these places: no need to align it either."""
    names, numbers, wanted = script.names, made.numbers, len(script.names)
    rows, shares, sentences = match_rows(enumerate(numbers)), [], {}
    for place in places:
        found, share = deviation(script.inputs[place], made.calls[place].input)
        sentences[place] = words.mismatch(made, place, found)
        shown = [as_json(difference) for difference in found[: words.MAX_DIFFERENCES]]
        rows[place] = row(place, numbers[place], "mismatch", shown)
        if share is not None:
            shares.append(share)
    matched = wanted - len(places)
    fraction = matched / wanted
    if score in FRACTIONS:
        reasons = sentences.values() if score != "precision" else ()
        tally.fraction(fraction, words.fraction(str(score), fraction, matched, wanted, wanted), reasons)
    elif script.mode == "any_order" and score is None:
        for place, name in enumerate(names):
            met = place not in sentences
            tally.count(good=met, sentence=f"{name} matched call {numbers[place]}" if met else sentences[place])
    elif places:
        tally.fails(*sentences.values())
    else:  # they differ only in ways that mean the same
        tally.holds(words.matched(script.mode, names, "call", numbers))
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


def decide_laid(mode: str, score: str | None, laid: Laid, tally: Tally) -> None:
    """The constraints of an alignment."""
    ordered = mode in ORDERED
    if score in FRACTIONS:
        value = laid.fraction(str(score))
        reasons = laid.missing_sentences(ordered=ordered) if score != "precision" else []
        if score != "recall":
            reasons += laid.extra_sentences()
        tally.fraction(value, words.fraction(str(score), value, len(laid.matches), laid.wanted, laid.made), reasons)
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


def _held(mode: str, laid: Laid) -> str:
    names = [laid.labels[e] for e, _ in laid.matches]
    if not names and laid.wanted:
        return f"{mode}: no {laid.unit}s were made"
    return words.matched(mode, names, laid.unit, [number for _, number in laid.matches])


def _decide_entries(laid: Laid, tally: Tally) -> None:
    found = dict(laid.matches)
    wrong = {e: sentences for e, _, sentences, _ in laid.mismatches}
    for e, name in enumerate(laid.labels):
        if e in found:
            tally.holds(f"{name} matched {laid.unit} {found[e]}")
        else:
            tally.fails(*wrong.get(e) or laid.missing_with_hints(e, ordered=False))


def decide_times(timed: list[Timed], tally: Tally) -> None:
    """Each time limit is a constraint on the one call its entry is aligned with."""
    for item in timed:
        sentence = words.duration(item.tool, item.limit, item.took, was_called=item.was_called)
        if item.was_called and item.took is None:
            tally.undecided.append(sentence)
        else:
            tally.count(good=item.took is not None and item.took <= item.limit, sentence=sentence)
