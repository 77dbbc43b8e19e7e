"""Resume decision: which runs of an execution keep their stored results, and which are run (again)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from agentv.model.stored import Outcome

FINISHED = ("completed", "error")
"""Statuses of runs that have a result."""


def keeps_result(outcome: Outcome | None, rerun: Collection[str] = ()) -> bool:
    """Return whether a run is skipped because of its stored outcome.

    It is run again if it never ended, if it was cancelled, or if its verdict is in `rerun` (`error`, `fail`). The key
    of a run covers its case, so that an edited case has no outcome.
    """
    return outcome is not None and outcome.status in FINISHED and outcome.verdict not in rerun


def count_kept(known: Mapping[str, Outcome], rerun: Collection[str] = ()) -> int:
    """Return the number of stored runs that keep their results, without those of edited cases."""
    return sum(keeps_result(outcome, rerun) and not outcome.superseded for outcome in known.values())


def find_superseded(known: Mapping[str, Outcome], planned: Collection[str]) -> list[str]:
    """Return the keys of stored runs that are not in the complete plan: their cases were edited or removed."""
    return [key for key, outcome in known.items() if key not in planned and not outcome.superseded]
