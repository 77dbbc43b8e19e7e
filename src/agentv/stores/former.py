"""What a result takes the place of: an earlier run of the same case, target and repetition, with another content."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

SAME = "eval_id, case_id, persona_id, target_id, repeat"
"""What a run is a run of, whatever its content."""

MARK = "[redacted"
"""Names that differ in what was taken out of them alone look the same, and are not."""


class Former:
    """The runs of an execution that goes on, by what they are runs of."""

    def __init__(self, db: sqlite3.Connection, execution: int) -> None:
        self._db = db
        self._execution = execution

    @cached_property
    def _known(self) -> dict[tuple[Any, ...], tuple[int, ...]]:
        found: dict[tuple[Any, ...], tuple[int, ...]] = {}
        query = f"SELECT seq, {SAME} FROM runs WHERE execution = ? AND replaced = 0"  # noqa: S608 - names of columns, ours
        for seq, *same in self._db.execute(query, (self._execution,)):
            run_of = tuple(same)
            found[run_of] = (*found.get(run_of, ()), seq)
        return found

    def give_way_to(self, runs: Iterable[int]) -> None:
        """These count from now on: an execution has one result of each case, target and repetition."""
        for seq in runs:
            run_of = self._db.execute(f"SELECT {SAME} FROM runs WHERE seq = ?", (seq,)).fetchone()  # noqa: S608 - as above
            if any(MARK in part for part in run_of if isinstance(part, str)):
                continue
            before = [(other,) for other in self._known.get(run_of, ()) if other != seq]
            if before:
                self._db.executemany("UPDATE runs SET replaced = 1 WHERE seq = ?", before)
            self._known[run_of] = (seq,)
