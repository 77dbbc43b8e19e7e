"""Checks of Google ADK as Python functions.

`agentv convert-eval` puts this file beside an eval that needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def response_match(ctx: Any, reference: str) -> float:
    """Score the answer against the expected one as ADK does: the F-measure of ROUGE-1 over word stems."""
    # ADK's own library: pip install rouge-score
    scorer = import_module("rouge_score.rouge_scorer").RougeScorer(["rouge1"], use_stemmer=True)
    return float(scorer.score(target=reference, prediction=ctx.candidate)["rouge1"].fmeasure)


def response_match_mean(ctx: Any, references: list[str]) -> float:
    """Score the answer of each turn against the expected one, and return the mean."""
    turns = _turns(ctx, len(references))
    return sum(map(response_match, turns, references)) / len(turns)


def trajectory_mean(ctx: Any, expected: list[Any], match_type: str = "EXACT", *, ignore_args: bool = False) -> float:
    """Return the share of turns whose tool calls match the expected ones."""
    turns = _turns(ctx, len(expected))
    matches = [
        _matches(turn, calls, match_type, ignore_args=ignore_args) for turn, calls in zip(turns, expected, strict=True)
    ]
    return sum(matches) / len(turns)


def _turns(ctx: Any, count: int) -> Any:
    if len(ctx.turns) == count:
        return ctx.turns
    msg = f"{count} turns are expected, and the conversation has {len(ctx.turns)}"
    raise ValueError(msg)


def _matches(turn: Any, expected: list[Any], match_type: str, *, ignore_args: bool) -> bool:
    if turn.calls is None or not turn.calls_complete:
        msg = "the tool calls of a turn are not known"
        raise ValueError(msg)
    made = [(call.tool, None if ignore_args else call.input or {}) for call in turn.calls]
    wanted = [(call["tool"], None if ignore_args else call["input"]) for call in expected]
    if match_type == "EXACT":
        return made == wanted
    if match_type == "IN_ORDER":
        rest = iter(made)
        return all(call in rest for call in wanted)
    for call in wanted:
        if call not in made:
            return False
        made.remove(call)
    return True
