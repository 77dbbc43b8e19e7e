"""What `expected` asks for: one constraint, or one an entry, or a fraction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.evaluators.trajectory import words
from agentv.evaluators.trajectory.config import CLOSED, FRACTIONS, ORDERED
from agentv.evaluators.trajectory.laid import Laid, Timed, lay_calls, lay_deviations, match_rows
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
    script, ordered, places = config.script, config.mode in ORDERED, None
    given = None if script is None else script.arguments(made.calls)
    if script is not None and given is not None:
        if script.is_met(given):
            return _decide_followed(config, script, made, tally)
        places = script.deviations(given)
    if script is not None and places is not None:
        laid = lay_deviations(script, made, places)
    elif config.unit == "turn":
        if ctx.calls_source != "output_messages" and made:
            return leave_undecided(config, tally, NO_TURNS) | {"repeated": repeated(made)}
        laid = config.turn_plan.lay(made, ctx.output_messages or (), ordered=ordered)
    else:
        laid = lay_calls(config.judge, made, ordered=ordered)
    decide_laid(config, laid, tally)
    decide_times(laid.timed, tally)
    details = laid.details()
    details["repeated"] = repeated(made)
    return details


def _decide_followed(config: ToolTrajectory, script: Script, made: Made, tally: Tally) -> dict[str, Any]:
    """The short way for a run that did just what was expected, which most do: nothing is left to align."""
    names, numbers = script.names, made.numbers
    if config.score in FRACTIONS:
        tally.holds(words.fraction(str(config.score), 1.0, len(names), len(names), len(names)))
    elif config.mode == "any_order" and config.score is None:
        for name, number in zip(names, numbers, strict=True):
            tally.holds(f"{name} matched call {number}")
    else:
        tally.holds(config.followed if made.is_whole else words.matched(str(config.mode), names, "call", numbers))
    return {
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
        "argument_score": 1.0 if script.expects_arguments else None,
        "missing": [],
        "extra": [],
        "out_of_order": [],
        "repeated": repeated(made) if script.loose else [numbers[place] for place in script.repeats],
        "alignment": match_rows(enumerate(numbers)),
    }


def decide_laid(config: ToolTrajectory, laid: Laid, tally: Tally) -> None:
    """The constraints of an alignment."""
    mode, ordered = str(config.mode), config.mode in ORDERED
    if config.score in FRACTIONS:
        value = laid.fraction(str(config.score))
        reasons = laid.missing_sentences(ordered=ordered) if config.score != "precision" else []
        if config.score != "recall":
            reasons += laid.extra_sentences()
        tally.fraction(
            value, words.fraction(str(config.score), value, len(laid.matches), laid.wanted, laid.made), reasons
        )
    elif mode == "any_order" and config.score is None:
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
