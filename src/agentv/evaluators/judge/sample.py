"""A judge that says what it was told to say: for examples, and for tests of evals that have a judge."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agentv.jsonio import dump_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_WORD = re.compile(r'"verdict" must be "([^"]+)"')


def scripted(verdict: Mapping[str, Any]) -> Callable[[str], str]:
    """A function that can be a judge, and gives this verdict under the word of each call."""

    def judge(prompt: str) -> str:
        return dump_json({"verdict": word_in(prompt), **verdict}).decode()

    return judge


def word_in(prompt: str) -> str:
    """The word that a verdict has to carry: the last one that is asked for, as data comes before the instructions."""
    found = _WORD.findall(prompt)
    return found[-1] if found else ""
