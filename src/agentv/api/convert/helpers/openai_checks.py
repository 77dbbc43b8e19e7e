"""Graders of OpenAI Evals as Python functions.

`agentv convert-eval` puts this file beside an eval that needs it.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def run_grader(ctx: Any, file: str) -> float:
    """Call `grade(sample, item)` of a file beside this one and return its score."""
    score = _load(file).grade(_sample(ctx), dict((ctx.case.vars or {}).get("item") or {}))
    return float(score)


def text_similarity(ctx: Any, reference: str, measure: str) -> float:
    """Score the answer against a reference from 0 to 1."""
    if measure == "fuzzy_match":
        # pip install rapidfuzz
        return float(import_module("rapidfuzz.fuzz").ratio(ctx.candidate, reference)) / 100
    scorer = import_module("rouge_score.rouge_scorer")  # pip install rouge-score
    name = "rougeL" if measure == "rouge_l" else measure.replace("_", "")
    return float(scorer.RougeScorer([name]).score(target=reference, prediction=ctx.candidate)[name].fmeasure)


def _sample(ctx: Any) -> dict[str, Any]:
    """Return the sample as graders of OpenAI get it."""
    try:
        output_json = json.loads(ctx.candidate)
    except ValueError:
        output_json = None
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": json.dumps(call.input)}}
        for call in ctx.calls or ()
    ]
    message = {"role": "assistant", "content": ctx.candidate, "tool_calls": calls}
    return {
        "output_text": ctx.candidate,
        "output_json": output_json,
        "output_tools": calls,
        "choices": [{"message": message}],
    }


@cache
def _load(file: str) -> Any:
    path = Path(__file__).parent / file
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        msg = f"{file} cannot be loaded"
        raise ValueError(msg)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
