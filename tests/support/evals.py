"""Small evals in a folder of their own, and what the loader makes of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

import agentv
from agentv.evals import Eval
from agentv.spec.loader import load_evals

MOCK = "targets: [{name: t, provider: mock, reply: ok}]\n"
CHECK = "evaluators: [{type: tool_trajectory, minimums: {a: 1}}]"
CASE = f"cases: [{{id: a, input: x, {CHECK}}}]"
HEAD = f"{MOCK}defaults: {{{CHECK}}}\n"
"""An eval but for its cases."""
Write = Callable[..., Path]


def only(path: Path | str, targets: tuple[str, ...] = ()) -> Eval:
    (found,) = load_evals([path], targets)
    return found


def problems(*paths: Path | str) -> list[str]:
    with pytest.raises(agentv.SpecError) as caught:
        load_evals(paths)
    return [str(problem) for problem in caught.value.problems]
