"""Conditions of `agentv eval` that replace the rule that every run has to pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from agentv.model.results import OutcomeCounts

CaseKey = tuple[str, str, str, str | None]
"""Eval, target, case and persona."""
MAX_NAMED = 10
_ROUNDING = 1e-9


class Gates(NamedTuple):
    """Conditions on an execution."""

    min_pass_rate: float | None = None
    """Share of the measured runs that has to pass."""
    max_regressions: int | None = None
    """Number of cases that passed in the baseline and may fail now."""
    baseline: str = ""
    """Name of the baseline."""
    passed_before: frozenset[CaseKey] = frozenset()
    """Cases that passed in the baseline."""

    def judge(self, counts: OutcomeCounts, failed: Collection[CaseKey]) -> list[GateOutcome]:
        """Return the outcome of each condition; `failed` are the cases that do not pass now."""
        outcomes = []
        if self.min_pass_rate is not None:
            rate = counts.pass_rate or 0.0
            text = f"--min-pass-rate {self.min_pass_rate:g}: {rate * 100:.1f} % of the measured runs passed"
            outcomes.append(GateOutcome(rate >= self.min_pass_rate - _ROUNDING, text))
        if self.max_regressions is not None:
            lost = [key for key in failed if key in self.passed_before]
            names = ", ".join([*map(_name, lost[:MAX_NAMED]), *(["…"] if lost[MAX_NAMED:] else [])])
            cases = f"{len(lost):,} of the {len(self.passed_before):,} cases that passed in {self.baseline} fail now"
            text = f"--max-regressions {self.max_regressions}: {cases}{f': {names}' if names else ''}"
            outcomes.append(GateOutcome(len(lost) <= self.max_regressions, text))
        return outcomes


def _name(key: CaseKey) -> str:
    """Return the id of a case, with its persona."""
    _, _, case_id, persona_id = key
    return case_id if persona_id is None else f"{case_id} [{persona_id}]"


class GateOutcome(NamedTuple):
    """Outcome of one condition."""

    is_met: bool
    text: str
