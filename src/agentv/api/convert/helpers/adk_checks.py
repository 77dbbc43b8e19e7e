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
